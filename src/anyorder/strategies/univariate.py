"""Distributions of independent variables, learned: UMDA, PBIL and the compact GA.

Mühlenbein and Paaß, "From recombination of genes to the estimation of distributions I", PPSN
(1996). Baluja, "Population-based incremental learning", CMU-CS-94-163 (1994). Harik, Lobo and
Goldberg, "The compact genetic algorithm", IEEE Transactions on Evolutionary Computation 3 (1999).
More than two values, and margins for them: Ben Jedidia, Doerr and Krejca, "Estimation-of-
distribution algorithms for multi-valued decision variables", Theoretical Computer Science 1003
(2024).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder._checks import integer
from anyorder.space import Space
from anyorder.strategies.baseline import Baseline, Codes, Seed, real

Floats = NDArray[np.float64]

# A probability for each value of each variable is kept, padded to the longest.
_MOST_VALUES = 1 << 20


class Generational(Baseline):
    """Learns from what is told a generation at a time. A subclass writes `_wanted` and `_update`.

    Points count in the order of telling, asked or not, and wait until their generation is full;
    more than one generation at once is taken in turn. `ask()` gives what the generation lacks.
    """

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        self._waiting: list[tuple[Codes, float]] = []

    def ask(self, n: int | None = None) -> Any:
        """The next n candidates, or as many as the generation lacks."""
        return super().ask(self._wanted() - len(self._waiting) if n is None else n)

    def _learn(self, codes: Codes, values: Floats) -> None:
        for point, value in zip(codes, values.tolist(), strict=True):
            self._waiting.append((point, value))
            if len(self._waiting) == self._wanted():
                points, told = zip(*self._waiting, strict=True)
                self._waiting = []
                self._update(np.stack(points), np.array(told))

    @abstractmethod
    def _wanted(self) -> int:
        """How many points make a generation."""

    @abstractmethod
    def _update(self, codes: Codes, values: Floats) -> None:
        """Take a whole generation."""


class Univariate(Generational):
    """Candidates from `_chances`, (variables, most values): 0 where a variable has no such value.

    `margins` keeps every chance of a variable with d values at 1/(n (d - 1)) or more, n counting
    the variables with more than one, so that no value is lost for good; with two values that is
    the usual 1/n to 1 - 1/n. For a handful of variables this would leave nothing but the uniform
    distribution, so a margin is never above 1/(2d).
    """

    def __init__(self, space: Space, seed: Seed = None, margins: bool = True) -> None:
        super().__init__(space, seed)
        cards = self._cardinalities
        if len(cards) * cards.max() > _MOST_VALUES:
            raise ValueError(
                f"space has {len(cards)} variables of up to {cards.max()} values, "
                f"expected a product of at most {_MOST_VALUES}"
            )
        if not isinstance(margins, bool | np.bool_):
            raise TypeError(f"margins is {margins!r}, expected True or False")
        self.margins = bool(margins)
        self._exists = np.arange(cards.max()) < cards[:, None]
        self._chances = self._exists / cards[:, None]
        low = 1 / (max(1, len(self._free)) * np.maximum(1, cards - 1))
        self._low = np.where(self._exists, np.minimum(low, 0.5 / cards)[:, None], 0.0)

    def _propose(self, n: int) -> Codes:
        drawn = self._rng.random((n, len(self._cardinalities)))
        codes = np.zeros(drawn.shape, dtype=np.int32)
        for below in self._chances.cumsum(axis=1).T[:-1]:
            codes += drawn >= below
        # A sum of chances can end below 1 by rounding.
        return np.minimum(codes, self._cardinalities - 1, dtype=np.int32, casting="unsafe")

    def _unit(self, point: Codes) -> Floats:
        """The distribution that gives this point only."""
        unit: Floats = (np.arange(self._exists.shape[1]) == point[:, None]).astype(np.float64)
        return unit

    def _set(self, chances: Floats) -> None:
        """Make these the chances; what lacks to the margins is taken from those above, in share."""
        if self.margins:
            above = np.maximum(chances - self._low, 0)
            spare = 1 - self._low.sum(axis=1, keepdims=True)
            chances = self._low + above * (spare / above.sum(axis=1, keepdims=True))
        self._chances = chances


class UMDA(Univariate):
    """Univariate marginal distribution algorithm: the frequencies among the best are the model.

    Each generation of `population` points is drawn independently of the last one's points, and the
    frequencies of the values among its best, the first told of equals, are the next chances.

    Parameters
    ----------
    space, seed : as for every baseline.
    population : points a generation. The default of 100 is what MIMIC and BOA have, so that a
        comparison shows the model.
    selection : which part is selected, above 0 and at most 1; the best half, as for MIMIC and BOA.
    margins : whether chances stay 1/n away from 0 and 1; see `Univariate`. Without, a value that
        no selected point has never comes back.
    """

    def __init__(
        self,
        space: Space,
        seed: Seed = None,
        population: int = 100,
        *,
        selection: float = 0.5,
        margins: bool = True,
    ) -> None:
        super().__init__(space, seed, margins)
        self.population = integer("population", population, 2)
        self.selection = real("selection", selection, 0, 1)

    def _wanted(self) -> int:
        return self.population

    def _update(self, codes: Codes, values: Floats) -> None:
        best = codes[np.argsort(-values, kind="stable")[: part(self.selection, len(codes))]]
        counts = np.zeros_like(self._chances)
        np.add.at(counts, (np.arange(codes.shape[1]), best), 1)
        self._set(counts / len(best))


class PBIL(Univariate):
    """Population-based incremental learning: the chances move towards the best of a generation.

    After each generation the chances move by `rate` towards its best point, and by `negative_rate`
    more in the variables where its best and its worst differ. Then each variable, with chance
    `mutation`, moves by `shift` towards a random value. With two values this is Baluja's algorithm;
    with more, chances move towards the distribution that has the value alone.

    Parameters
    ----------
    space, seed : as for every baseline.
    population : points a generation: 32, as the paper's comparison ran it. Baluja has 100.
    rate, negative_rate, mutation, shift : .1, .075, .02 and .05, Baluja's and the comparison's.
        All are from 0 to 1, `rate` above 0.
    margins : as for `UMDA`; off, as in both, because mutation already brings values back.
    """

    def __init__(
        self,
        space: Space,
        seed: Seed = None,
        population: int = 32,
        *,
        rate: float = 0.1,
        negative_rate: float = 0.075,
        mutation: float = 0.02,
        shift: float = 0.05,
        margins: bool = False,
    ) -> None:
        super().__init__(space, seed, margins)
        self.population = integer("population", population, 2)
        self.rate = real("rate", rate, 0, 1)
        self.negative_rate = chance("negative_rate", negative_rate)
        self.mutation = chance("mutation", mutation)
        self.shift = chance("shift", shift)

    def _wanted(self) -> int:
        return self.population

    def _update(self, codes: Codes, values: Floats) -> None:
        order = np.argsort(-values, kind="stable")
        best, worst = codes[order[0]], codes[order[-1]]
        target = self._unit(best)
        chances = self._chances + self.rate * (target - self._chances)
        step = self.negative_rate * (best != worst)[:, None]
        chances += step * (target - chances)
        mutated = (self._rng.random(len(best)) < self.mutation)[:, None]
        chances += self.shift * mutated * (self._unit(self._uniform(1)[0]) - chances)
        self._set(chances)


class CGA(Univariate):
    """Compact genetic algorithm: of two points the winner's values gain 1/K, the loser's lose it.

    K is the size of the population that the chances stand for. Two points of equal value change
    nothing: which one wins would be chance, and only add noise.

    Parameters
    ----------
    space, seed : as for every baseline.
    size : K. By default 2 sqrt(n) ln n, at least 8, n counting the variables with more than one
        value: sqrt(n) ln n is the order that is best on OneMax (Sudholt and Witt, "Update strength
        in EDAs and ACO", GECCO 2016), below which chances wander to the wrong side.
    margins : as for `UMDA`. Without, which is Harik's algorithm, all chances end at 0 and 1, and
        from then on every candidate is the same.
    """

    def __init__(
        self, space: Space, seed: Seed = None, size: int | None = None, *, margins: bool = True
    ) -> None:
        super().__init__(space, seed, margins)
        if size is None:
            n = max(1, len(self._free))
            size = max(8, math.ceil(2 * math.sqrt(n) * math.log(n)))
        self.size = integer("size", size, 2)

    def _wanted(self) -> int:
        return 2

    def _update(self, codes: Codes, values: Floats) -> None:
        if values[0] == values[1]:
            return
        winner, loser = codes if values[0] > values[1] else codes[::-1]
        # The loser's value gives what it has, and the winner's gets that much.
        moved = np.minimum(1 / self.size, (self._chances * self._unit(loser)).sum(axis=1))
        change = self._unit(winner) - self._unit(loser)
        self._set(np.maximum(self._chances + moved[:, None] * change, 0))


def part(fraction: float, of: int) -> int:
    """So many of a population: at least one."""
    return max(1, round(fraction * of))


def chance(what: str, value: object) -> float:
    """The value as a float from 0 to 1; `what` names it in the error."""
    if not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
        raise ValueError(f"{what} is {value!r}, expected a number from 0 to 1")
    return float(value)
