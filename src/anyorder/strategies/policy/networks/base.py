"""The protocol of a network."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]


class Network(Protocol):
    """The parameters of a policy.

    Attributes
    ----------
    kind
        The kind, which determines the engines that compute it: a key of `engines.ENGINE_CLASSES`.
    """

    kind: ClassVar[str]

    @property
    def adam_eps(self) -> float:
        """Adam's eps for gradients of a mean over candidates."""

    @property
    def parameters(self) -> int:
        """The number of parameters."""

    @property
    def multiply_adds(self) -> int:
        """The work of one forward pass of one candidate, for all variables together."""

    def layers(self, theta: Floats, i: int) -> list[tuple[Floats, Floats]]:
        """Return views of (weights, biases) of every layer that leads to variable i's logits."""
