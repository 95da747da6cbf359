"""A view of the archive of several objectives as the archive of a weighted sum of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.archive import Archive
from anyorder.errors import OK

Floats = npt.NDArray[np.float64]


class View:
    """An archive in which the value of a point is a weighted sum of its values.

    Parameters
    ----------
    archive
        The archive; with one objective, the sum is its value times its weight.
    weights
        The weight of each objective, whose values are to be maximised.
    """

    sign = 1.0

    def __init__(self, archive: Archive, weights: Floats) -> None:
        self._archive = archive
        self.use(weights)

    def use(self, weights: Floats) -> None:
        """Use other weights from now on."""
        objectives = self._archive.objectives
        signs = np.array([self._archive.sign]) if objectives is None else objectives.signs
        self._weights: list[float] = (weights * signs).tolist()

    def __len__(self) -> int:
        return len(self._archive)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._archive, name)

    def lookup(self, key: bytes) -> tuple[int, float] | None:
        """Return the status and the value of a point; None if the point was never evaluated."""
        found = self._archive.lookup(key)
        if found is None or found[0] != OK:
            return found
        return OK, self.mean(key)

    def mean(self, key: bytes) -> float:
        """Return the value of a point; its mean if the function is noisy."""
        archive = self._archive
        values = (archive.mean(key),) if archive.objectives is None else archive.vector(key)
        return sum(weight * value for weight, value in zip(self._weights, values, strict=True))
