"""Where everything lies: inputs, outputs and parameters of the networks of one space.

The search space reaches an engine as the number of values of each variable and whether they are
ordered; this module turns that and the configuration into index arrays that every engine shares.

*Inputs* (features). A variable with two values is one input, -1 or +1. One with d > 2 values is d
inputs, +1 at its value and -1 elsewhere, or d - 1 "is it above v?" inputs for an ordered one. A
variable with one value is none. All of a variable's inputs are seen or hidden together.

*Outputs*. One logit for two values (sigmoid), d logits for d > 2 (softmax), none for a constant.

*Parameters*. theta_i, all of variable i's network, is one contiguous stretch of a flat vector: for
each layer, from the inputs to the output, the weights (outputs x inputs, row-major), then biases.
The variables follow one another. Engines may keep their own arrangement; this is the one that is
stored and exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.rng import INIT, uniform, words

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Layout:
    """The index arrays of one space under one configuration.

    Attributes
    ----------
    cards
        Number of values of each variable, `(n,)`.
    outputs
        Number of logits of each variable, `(n,)`: 0, 1 or d.
    value_start
        `(n + 1,)`: the distribution of variable i is entries `value_start[i]:value_start[i + 1]`
        of a row of probabilities.
    feature_start
        `(n + 1,)`: where variable i's inputs start.
    owner
        `(F,)`: the variable that input f belongs to.
    codes, code_base
        Input f of a candidate whose variable `owner[f]` has value v is `codes[code_base[f] + v]`.
    hidden_value
        `(F,)`: what input f reads when it is hidden.
    widths
        `(L + 1,)`: number of inputs of each layer: F, then the hidden widths.
    rates
        `(L + 1, 2)`: learning rates of each layer's weights and of its biases; 0 freezes them.
    theta_start
        `(n + 1,)`: where variable i's parameters start.
    floor
        `(n,)`: the least probability of a value of variable i (the paper's epsilon).
    graph
        `(n, n)` bool, True where i may see j, or None: all of them.
    """

    config: Config
    cards: IntArray
    outputs: IntArray
    value_start: IntArray
    feature_start: IntArray
    owner: IntArray
    codes: npt.NDArray[np.float32]
    code_base: IntArray
    hidden_value: npt.NDArray[np.float32]
    widths: IntArray
    rates: npt.NDArray[np.float64]
    theta_start: IntArray
    floor: npt.NDArray[np.float64]
    graph: npt.NDArray[np.bool_] | None

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.cards)

    @property
    def features(self) -> int:
        """Number of inputs of a network."""
        return len(self.owner)

    @property
    def values(self) -> int:
        """Length of a row of probabilities: the numbers of values, added up."""
        return int(self.value_start[-1])

    @property
    def parameters(self) -> int:
        """Length of theta."""
        return int(self.theta_start[-1])

    @cached_property
    def adam_eps(self) -> float:
        """Adam's eps for our gradients, which are those of a mean over candidates.

        The published loss is that over `loss_runs * n`; dividing the loss is multiplying eps.
        """
        runs = self.config.loss_runs
        return self.config.adam_eps * (1 if runs is None else runs * self.n)

    def features_of(self, points: npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
        """Codes `(..., n)` as unmasked network inputs `(..., F)`; a code of -1 is hidden."""
        value = np.take(points, self.owner, axis=-1)
        return np.where(value < 0, self.hidden_value, self.codes[self.code_base + value])

    def layers(
        self, theta: npt.NDArray[np.floating], i: int
    ) -> list[tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]]:
        """Variable i's (weights, biases) of every layer, as views into theta."""
        at = int(self.theta_start[i])
        result = []
        for inputs, outputs in self._shapes(i):
            end = at + inputs * outputs
            result.append((theta[at:end].reshape(outputs, inputs), theta[end : end + outputs]))
            at = end + outputs
        return result

    def initial_theta(self, seed: int, restart: int) -> npt.NDArray[np.float32]:
        """Fresh parameters: uniform in +-1/sqrt(fan in), weights and biases alike."""
        theta = np.empty(self.parameters, np.float32)
        for i in range(self.n):
            start, end = self.theta_start[i : i + 2]
            draw = 2.0 * uniform(words(seed, INIT, restart, i, int(end - start))) - 1.0
            theta[start:end] = draw
            for (weights, biases), (inputs, _) in zip(
                self.layers(theta, i), self._shapes(i), strict=True
            ):
                bound = np.float32(1.0 / np.sqrt(inputs) if inputs else 0.0)
                weights *= bound
                biases *= bound
        return theta

    def _shapes(self, i: int) -> list[tuple[int, int]]:
        out = int(self.outputs[i])
        if out == 0:
            return []
        widths = [int(width) for width in self.widths]
        return list(zip(widths, [*widths[1:], out], strict=True))


def make_layout(
    cards: npt.ArrayLike,
    ordered: npt.ArrayLike,
    config: Config,
    graph: npt.NDArray[np.bool_] | None = None,
) -> Layout:
    """The layout of a space whose variable i has `cards[i]` values."""
    cards = np.asarray(cards, np.int64)
    n = len(cards)
    thermometer = np.asarray(ordered, bool) & (config.integer_encoding == "thermometer")
    outputs = np.where(cards == 1, 0, np.where(cards == 2, 1, cards))
    inputs = np.where(cards <= 2, cards - 1, np.where(thermometer, cards - 1, cards))
    univariate = config.network == "univariate"
    if univariate:
        inputs = np.zeros_like(inputs)

    owner = np.repeat(np.arange(n), inputs)
    feature_start = np.concatenate([[0], np.cumsum(inputs)])
    place = np.arange(len(owner)) - feature_start[owner]  # which of its variable's inputs
    # One table per kind of variable. Input t of value v depends on v - t alone, so that a table is
    # as long as 2 d - 1 and each input is a window on it.
    kinds = list(zip(cards.tolist(), thermometer.tolist(), strict=True))
    tables, middle, at = [], {}, 0
    for d, t in sorted(set(kinds)):
        step = np.arange(1 - d, d)  # v - t
        if d == 2 or t:
            tables.append(np.where(step > 0, 1.0, -1.0))
        else:
            tables.append(np.where(step == 0, 1.0, config.unchosen_input))
        middle[d, t] = at + d - 1
        at += 2 * d - 1
    zero = np.array([middle[kind] for kind in kinds], np.int64)

    hidden = () if univariate else config.hidden
    widths = np.array([len(owner), *hidden], np.int64)
    weights = widths[:-1] @ widths[1:] + widths[1:].sum()  # of the hidden layers, with biases
    size = np.where(outputs > 0, weights + outputs * (widths[-1] + 1), 0)

    rates = np.full((len(widths), 2), config.learning_rate)
    if config.layer_rates is not None:
        rates *= np.array(config.layer_rates)[:, None]
    if config.input_rate is not None:
        rates[0, 0] *= min(1.0, config.input_rate / n)

    return Layout(
        config=config,
        cards=cards,
        outputs=outputs,
        value_start=np.concatenate([[0], np.cumsum(cards)]),
        feature_start=feature_start,
        owner=owner,
        codes=np.concatenate(tables).astype(np.float32),
        code_base=zero[owner] - place,
        hidden_value=np.where(cards[owner] == 2, config.masked_input, 0.0).astype(np.float32),
        widths=widths,
        rates=rates,
        theta_start=np.concatenate([[0], np.cumsum(size)]),
        floor=np.where(cards == 2, config.clip, np.minimum(config.clip, 0.1 / cards)),
        graph=graph,
    )
