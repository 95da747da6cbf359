"""One small network per variable: an MLP from the inputs of all variables to its own logits.

*Arrangement of the parameters.* All parameters of variable i's network are one contiguous part of a
flat vector theta: for each layer, from the inputs to the output, the weights (outputs x inputs,
row-major), then the biases. The variables follow one another. Engines may use another arrangement;
this one is stored and exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.coding import Coding, IntArray
from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.rng import INIT, uniform, words

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class SeparateNetworks:
    """Shapes, learning rates and arrangement of the networks of all variables.

    Attributes
    ----------
    outputs
        `(n,)`: the number of logits of each variable; a variable without logits has no network.
    widths
        `(L,)`: the number of inputs of each of the L layers: F, then the hidden widths.
    rates
        `(L, 2)`: the learning rates of each layer's weights and biases; 0 freezes them.
    theta_start
        `(n + 1,)`: the parameters of variable i are `theta_start[i]:theta_start[i + 1]`.
    adam_eps
        Adam's eps for gradients of a mean over candidates. The loss of the paper's code is that
        mean divided by `loss_runs * n`; dividing the loss is equivalent to multiplying eps.
    """

    kind: ClassVar[str] = "separate"

    outputs: IntArray
    widths: IntArray
    rates: npt.NDArray[np.float64]
    theta_start: IntArray
    adam_eps: float

    @property
    def parameters(self) -> int:
        """The length of theta."""
        return int(self.theta_start[-1])

    @property
    def multiply_adds(self) -> int:
        """The work of one forward pass of one candidate: one multiply-add per parameter."""
        return self.parameters

    def layers(self, theta: Floats, i: int) -> list[tuple[Floats, Floats]]:
        """Return (weights, biases) of every layer of variable i's network, as views into theta."""
        at = int(self.theta_start[i])
        result = []
        for inputs, outputs in self._shapes(i):
            end = at + inputs * outputs
            result.append((theta[at:end].reshape(outputs, inputs), theta[end : end + outputs]))
            at = end + outputs
        return result

    def initial_theta(self, seed: int, restart: int) -> npt.NDArray[np.float32]:
        """Return initial parameters: uniform in +-1/sqrt(fan in), weights and biases alike."""
        theta = np.empty(self.parameters, np.float32)
        for i in range(len(self.outputs)):
            start, end = self.theta_start[i : i + 2]
            theta[start:end] = 2.0 * uniform(words(seed, INIT, restart, i, int(end - start))) - 1.0
            for weights, biases in self.layers(theta, i):
                inputs = weights.shape[1]
                bound = np.float32(1.0 / np.sqrt(inputs) if inputs else 0.0)
                weights *= bound
                biases *= bound
        return theta

    def _shapes(self, i: int) -> list[tuple[int, int]]:
        """Return (inputs, outputs) of every layer of variable i's network."""
        out = int(self.outputs[i])
        if out == 0:
            return []
        widths = self.widths.tolist()
        return list(zip(widths, [*widths[1:], out], strict=True))


def make_separate(coding: Coding, config: Config) -> SeparateNetworks:
    """Return the networks of a coding; those of a univariate policy have no inputs and layers."""
    hidden = () if config.network == "univariate" else config.hidden
    widths = np.array([coding.features, *hidden], np.int64)
    hidden_size = widths[:-1] @ widths[1:] + widths[1:].sum()
    size = np.where(coding.outputs > 0, hidden_size + coding.outputs * (widths[-1] + 1), 0)
    return SeparateNetworks(
        outputs=coding.outputs,
        widths=widths,
        rates=layer_rates(coding, config, len(widths)),
        theta_start=np.concatenate([[0], np.cumsum(size)]),
        adam_eps=adam_eps(coding, config),
    )


def layer_rates(coding: Coding, config: Config, layers: int) -> npt.NDArray[np.float64]:
    """Return the learning rates `(layers, 2)` of each layer's weights and biases."""
    rates = np.full((layers, 2), config.learning_rate)
    if config.layer_rates is not None:
        rates *= np.array(config.layer_rates)[:, None]
    if config.input_rate is not None:
        rates[0, 0] *= min(1.0, config.input_rate / coding.n)
    return rates


def adam_eps(coding: Coding, config: Config) -> float:
    """Return Adam's eps for gradients of a mean over candidates."""
    return config.adam_eps * (1 if config.loss_runs is None else config.loss_runs * coding.n)
