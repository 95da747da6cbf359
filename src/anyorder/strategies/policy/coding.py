"""Coding: the inputs and outputs of networks for the variables of a space.

The space is given by the number of values of each variable and whether these are ordered. Variables
with many values have been split into digits (`anyorder.space.digits`), which are called variables
here.

*Inputs* (features). A variable with two values has one input, -1 or +1. A variable with d > 2
values has d inputs, +1 at its value and -1 elsewhere; if it is ordered, it has d - 1 inputs, each
+1 if the value is above a threshold. A constant has none. The inputs of a variable are visible or
hidden together.

*Outputs*. One logit for two values (sigmoid), d logits for d > 2 values (softmax), none for a
constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.config import Config

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coding:
    """Index arrays of the inputs and outputs of one space.

    With n variables, F inputs and V values in total:

    Attributes
    ----------
    cards
        `(n,)`: the number of values of each variable.
    outputs
        `(n,)`: the number of logits of each variable: 0, 1 or d.
    value_start
        `(n + 1,)`: the distribution of variable i is entries `value_start[i]:value_start[i + 1]`
        of a row of V probabilities.
    feature_start
        `(n + 1,)`: the inputs of variable i are `feature_start[i]:feature_start[i + 1]`.
    owner
        `(F,)`: the variable that each input belongs to.
    codes, code_base
        Input f is `codes[code_base[f] + v]` if the variable `owner[f]` has value v.
    hidden_value
        `(F,)`: the value of each input when it is hidden.
    floor
        `(n,)`: the least probability of a value of variable i (the paper's epsilon).
    """

    cards: IntArray
    outputs: IntArray
    value_start: IntArray
    feature_start: IntArray
    owner: IntArray
    codes: npt.NDArray[np.float32]
    code_base: IntArray
    hidden_value: npt.NDArray[np.float32]
    floor: npt.NDArray[np.float64]

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.cards)

    @property
    def features(self) -> int:
        """The number of inputs, F."""
        return len(self.owner)

    @property
    def values(self) -> int:
        """The length of a row of probabilities, V."""
        return int(self.value_start[-1])

    def features_of(self, points: npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
        """Return the inputs `(..., F)` of codes `(..., n)`; the inputs of code -1 are hidden."""
        value = np.take(points, self.owner, axis=-1)
        return np.where(value < 0, self.hidden_value, self.codes[self.code_base + value])


def make_coding(cards: npt.ArrayLike, ordered: npt.ArrayLike, config: Config) -> Coding:
    """Return the coding of a space whose variable i has `cards[i]` values."""
    cards = np.asarray(cards, np.int64)
    thermometer = np.asarray(ordered, bool) & (config.integer_encoding == "thermometer")
    outputs = np.where(cards == 1, 0, np.where(cards == 2, 1, cards))
    inputs = np.where((cards <= 2) | thermometer, cards - 1, cards)
    if config.network == "univariate":
        inputs = np.zeros_like(inputs)
    owner = np.repeat(np.arange(len(cards)), inputs)
    feature_start = np.concatenate([[0], np.cumsum(inputs)])
    codes, zero = _code_tables(cards, thermometer, config.unchosen_input)
    # the place of each input among those of its variable
    place = np.arange(len(owner)) - feature_start[owner]
    return Coding(
        cards=cards,
        outputs=outputs,
        value_start=np.concatenate([[0], np.cumsum(cards)]),
        feature_start=feature_start,
        owner=owner,
        codes=codes,
        code_base=zero[owner] - place,
        hidden_value=np.where(cards[owner] == 2, config.masked_input, 0.0).astype(np.float32),
        floor=np.where(cards == 2, config.clip, np.minimum(config.clip, 0.1 / cards)),
    )


def _code_tables(
    cards: IntArray, thermometer: npt.NDArray[np.bool_], unchosen: float
) -> tuple[npt.NDArray[np.float32], IntArray]:
    """Return a table for each kind of variable, and for each variable the place of v - t = 0 in it.

    Input t of value v depends only on v - t, so a table has 2 d - 1 entries, and every input is a
    window on it.
    """
    kinds = list(zip(cards.tolist(), thermometer.tolist(), strict=True))
    tables, zero, size = [], {}, 0
    for d, is_thermometer in sorted(set(kinds)):
        difference = np.arange(1 - d, d)
        if d == 2 or is_thermometer:
            tables.append(np.where(difference > 0, 1.0, -1.0))
        else:
            tables.append(np.where(difference == 0, 1.0, unchosen))
        zero[d, is_thermometer] = size + d - 1
        size += 2 * d - 1
    return (
        np.concatenate(tables).astype(np.float32),
        np.array([zero[kind] for kind in kinds], np.int64),
    )
