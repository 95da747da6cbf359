"""One network for all variables: an MLP from all inputs, with an output head for each variable.

The hidden layers are shared. A variable's own parameters are the weights of its inputs in the first
layer, and its head. The number of parameters is linear in the number of variables.

*Arrangement of the parameters.* The first layer comes first: its weights (inputs x outputs, so that
those of an input are contiguous), then its biases. The other hidden layers follow, from below, each
with its weights (outputs x inputs), then its biases. Then come the weights of all heads (outputs x
inputs), variable by variable, and their biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.coding import Coding, IntArray
from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.networks.separate import adam_eps, layer_rates
from anyorder.strategies.policy.rng import INIT, uniform, words

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class SharedNetwork:
    """Shapes, learning rates and arrangement of the network.

    Attributes
    ----------
    head_start
        `(n + 1,)`: the logits of variable i are `head_start[i]:head_start[i + 1]` of all logits.
    widths
        `(L,)`: the number of inputs of each of the L layers: F, then the hidden widths.
    rates
        `(L, 2)`: the learning rates of each layer's weights and biases; 0 freezes them. The last
        layer is that of the heads.
    adam_eps
        As in `SeparateNetworks`.
    """

    kind: ClassVar[str] = "shared"

    head_start: IntArray
    widths: IntArray
    rates: npt.NDArray[np.float64]
    adam_eps: float

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """The (inputs, outputs) of every layer."""
        widths = [int(width) for width in self.widths]
        return list(zip(widths, [*widths[1:], int(self.head_start[-1])], strict=True))

    @property
    def parameters(self) -> int:
        """The length of theta."""
        return sum((inputs + 1) * outputs for inputs, outputs in self.shapes)

    @property
    def multiply_adds(self) -> int:
        """The work of one forward pass of one candidate, whose contexts are nested prefixes."""
        inner = sum(inputs * outputs for inputs, outputs in self.shapes[1:-1])
        return self.parameters + (len(self.head_start) - 1) * inner

    def parts(self, theta: Floats) -> list[tuple[Floats, Floats]]:
        """Return views of (weights, biases) of every layer; weights are outputs x inputs."""
        at, result = 0, []
        for layer, (inputs, outputs) in enumerate(self.shapes):
            end = at + inputs * outputs
            weights = theta[at:end]
            turned = weights.reshape(inputs, outputs).T if layer == 0 else None
            result.append(
                (
                    weights.reshape(outputs, inputs) if turned is None else turned,
                    theta[end : end + outputs],
                )
            )
            at = end + outputs
        return result

    def layers(self, theta: Floats, i: int) -> list[tuple[Floats, Floats]]:
        """Return views of the network of variable i alone: the hidden layers and its own head."""
        *hidden, (weights, biases) = self.parts(theta)
        own = slice(int(self.head_start[i]), int(self.head_start[i + 1]))
        return [*hidden, (weights[own], biases[own])]

    def initial_theta(self, seed: int, restart: int) -> npt.NDArray[np.float32]:
        """Return initial parameters: uniform in +-1/sqrt(fan in), weights and biases alike."""
        draws = uniform(words(seed, INIT, restart, 0, self.parameters))
        theta = (2.0 * draws - 1.0).astype(np.float32)
        for weights, biases in self.parts(theta):
            inputs = weights.shape[1]
            bound = np.float32(1.0 / np.sqrt(inputs) if inputs else 0.0)
            weights *= bound
            biases *= bound
        return theta


def make_shared(coding: Coding, config: Config) -> SharedNetwork:
    """Return the network of a coding."""
    return SharedNetwork(
        head_start=np.concatenate([[0], np.cumsum(coding.outputs)]),
        widths=np.array([coding.features, *config.hidden], np.int64),
        rates=layer_rates(coding, config, len(config.hidden) + 1),
        adam_eps=adam_eps(coding, config),
    )
