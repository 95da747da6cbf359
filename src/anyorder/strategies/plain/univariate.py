"""Estimation of distributions with independent variables: UMDA, PBIL and the compact GA.

Mühlenbein and Paaß, "From recombination of genes to the estimation of distributions I", PPSN
(1996). Baluja, "Population-based incremental learning", CMU-CS-94-163 (1994). Harik, Lobo and
Goldberg, "The compact genetic algorithm", IEEE Transactions on Evolutionary Computation 3 (1999).
For more than two values, and margins for them, see Ben Jedidia, Doerr and Krejca,
"Estimation-of-distribution algorithms for multi-valued decision variables", Theoretical Computer
Science 1003 (2024).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anyorder._internal.checks import flag, integer, real
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Search, Seed, is_data, score

Floats = NDArray[np.float64]

# The model has a probability for each value of each variable, padded to the largest cardinality.
_MOST_VALUES = 1 << 20


class Generational(Search):
    """Learns from one generation of answers at a time; a subclass implements `_size` and `_update`.

    Answers count in the order in which they come, whoever proposed the point, and are collected
    until the generation is complete. If only the last generation counts, the best data of earlier
    runs come last (`best_last`).

    Attributes
    ----------
    batch
        The number of answers that the generation still lacks.
    generation
        The number of complete generations.
    """

    digits = True
    STATE: ClassVar[tuple[str, ...]] = ("batch", "converged", "_collected", "_scores")

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        # The current generation; rows after the answers so far are not set yet.
        self._collected: Codes = self._none()
        self._scores: Floats = np.empty(0)

    def _begin(self) -> None:
        """Begin the next generation; a subclass calls this once its settings are known."""
        self.batch = self._size()
        self._collected = np.zeros((self.batch, len(self._cardinalities)), dtype=np.int32)
        self._scores = np.zeros(self.batch)

    def _learn(self, answers: Sequence[Answer]) -> None:
        for answer in self._arrange(answers):
            row = len(self._scores) - self.batch
            self._collected[row], self._scores[row] = answer.codes, score(answer)
            self.batch -= 1
            if not self.batch:
                self._update(self._collected, self._scores)
                self.generation += 1
                self._begin()

    def _arrange(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        """Return the answers in the order in which they count."""
        return answers

    @abstractmethod
    def _size(self) -> int:
        """Return the number of answers in the next generation."""

    @abstractmethod
    def _update(self, codes: Codes, values: Floats) -> None:
        """Learn from a complete generation."""


class Univariate(Generational):
    """A model of independent variables: `_chances`, (variables, largest cardinality).

    Entries for values that a variable does not have are 0. `margins` keeps the probability of every
    value of a variable with d values at or above 1/(n (d - 1)), where n is the number of variables
    with more than one value, so that no value is lost; with two values these are the usual bounds
    1/n and 1 - 1/n. With few variables that would leave only the uniform distribution, so a margin
    is at most 1/(2d).

    Attributes
    ----------
    converged
        Whether the model gives only one point, which requires `margins=False`.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_chances",)

    def __init__(self, space: Space, seed: Seed = None, margins: bool = True) -> None:
        super().__init__(space, seed)
        cards = self._cardinalities
        if len(cards) * cards.max() > _MOST_VALUES:
            raise ValueError(
                f"space has {len(cards)} variables of up to {cards.max()} values, "
                f"expected a product of at most {_MOST_VALUES}"
            )
        self.margins = flag("margins", margins)
        self._exists = np.arange(cards.max()) < cards[:, None]
        self._chances = self._exists / cards[:, None]
        low = 1 / (max(1, len(self._free)) * np.maximum(1, cards - 1))
        self._low = np.where(self._exists, np.minimum(low, 0.5 / cards)[:, None], 0.0)

    def _propose(self, count: int) -> Codes:
        drawn = self._rng.random((count, len(self._cardinalities)))
        codes = np.zeros(drawn.shape, dtype=np.int32)
        for below in self._chances.cumsum(axis=1).T[:-1]:
            codes += drawn >= below
        # Because of rounding, the sum of the probabilities may be below 1.
        codes = np.minimum(codes, self._cardinalities - 1, dtype=np.int32, casting="unsafe")
        return self._neighbourhood.complete(codes, np.ones(codes.shape, np.bool_), self._rng)

    def _unit(self, point: Codes) -> Floats:
        """Return the distribution concentrated on this point."""
        unit: Floats = (np.arange(self._exists.shape[1]) == point[:, None]).astype(np.float64)
        return unit

    def _set(self, chances: Floats) -> None:
        """Set the model; probabilities below their margin are raised, and others lowered for it."""
        if self.margins:
            above = np.maximum(chances - self._low, 0)
            spare = 1 - self._low.sum(axis=1, keepdims=True)
            chances = self._low + above * (spare / above.sum(axis=1, keepdims=True))
        self._chances = chances
        self.converged = bool((chances.max(axis=1) >= 1).all())


class UMDA(Univariate):
    """Univariate marginal distribution algorithm: the model is the frequencies among the best.

    Each generation of `population` points is drawn from the model alone. The frequencies of the
    values among its best points become the next model; of equal points the first count.

    Parameters
    ----------
    space, seed
        See `Search`.
    population
        The size of a generation. The default of 100 is also that of MIMIC and BOA, so that
        comparisons show the effect of the model.
    selection
        The share of a generation that is selected, above 0 and at most 1.
    margins
        Whether probabilities stay 1/n away from 0 and 1; see `Univariate`. Without margins, a value
        that no selected point has never comes back.
    """

    name = "umda"

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
        self.selection = real("selection", selection, 0, 1, above=True)
        self._begin()

    def _size(self) -> int:
        return self.population

    def _arrange(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        return best_last(answers)

    def _update(self, codes: Codes, values: Floats) -> None:
        best = codes[np.argsort(-values, kind="stable")[: part(self.selection, len(codes))]]
        present = self._neighbourhood.present(best)
        counts = np.zeros_like(self._chances)
        np.add.at(counts, (np.arange(codes.shape[1]), best), present)
        total = present.sum(axis=0)[:, None]
        # a variable that is absent from all selected points keeps its probabilities
        self._set(np.where(total > 0, counts / np.maximum(total, 1), self._chances))


class PBIL(Univariate):
    """Population-based incremental learning: the model moves towards the best of a generation.

    After each generation the model moves by `rate` towards its best point, and by `negative_rate`
    more in the variables where the best and the worst point differ. Each variable then, with
    probability `mutation`, moves by `shift` towards a random value. With two values this is
    Baluja's algorithm; with more, a variable moves towards the distribution concentrated on the
    value.

    Parameters
    ----------
    space, seed
        See `Search`.
    population
        The size of a generation. The default of 32 is that of the paper's comparison; Baluja uses
        100.
    rate, negative_rate, mutation, shift
        Numbers from 0 to 1, `rate` above 0. The defaults are those of Baluja and of the comparison.
    margins
        See `UMDA`. The default is False, as in both, since mutation already brings values back.
    """

    name = "pbil"

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
        self.rate = real("rate", rate, 0, 1, above=True)
        self.negative_rate = real("negative_rate", negative_rate, 0, 1)
        self.mutation = real("mutation", mutation, 0, 1)
        self.shift = real("shift", shift, 0, 1)
        self._begin()

    def _size(self) -> int:
        return self.population

    def _update(self, codes: Codes, values: Floats) -> None:
        order = np.argsort(-values, kind="stable")
        best, worst = codes[order[0]], codes[order[-1]]
        target, (here, there) = (
            self._unit(best),
            self._neighbourhood.present(np.stack([best, worst])),
        )
        chances = self._chances + self.rate * here[:, None] * (target - self._chances)
        step = self.negative_rate * (here & there & (best != worst))[:, None]
        chances += step * (target - chances)
        mutated = (self._rng.random(len(best)) < self.mutation)[:, None]
        chances += self.shift * mutated * (self._unit(self._uniform(1)[0]) - chances)
        self._set(chances)
        self.converged = self.converged and not self.mutation * self.shift


class CGA(Univariate):
    """Compact genetic algorithm: the better of two points gains 1/K in probability.

    The values of the better point gain 1/K at the expense of those of the worse point. K is the
    size of the population that the model stands for. Two points of equal value change nothing,
    since the choice between them would only add noise.

    Parameters
    ----------
    space, seed
        See `Search`.
    size
        K. The default is 2 sqrt(n) ln n, at least 8, where n is the number of variables with more
        than one value. The order sqrt(n) ln n is optimal on OneMax; with a smaller K, probabilities
        drift to the wrong side (Sudholt and Witt, "Update strength in EDAs and ACO", GECCO 2016).
    margins
        See `UMDA`. Without margins, which is Harik's algorithm, all probabilities end at 0 or 1,
        and from then on every proposal is the same.
    """

    name = "cga"

    def __init__(
        self, space: Space, seed: Seed = None, size: int | None = None, *, margins: bool = True
    ) -> None:
        super().__init__(space, seed, margins)
        if size is None:
            n = max(1, len(self._free))
            size = max(8, math.ceil(2 * math.sqrt(n) * math.log(n)))
        self.size = integer("size", size, 2)
        self._begin()

    def _size(self) -> int:
        return 2

    def _update(self, codes: Codes, values: Floats) -> None:
        if values[0] == values[1]:
            return
        winner, loser = codes if values[0] > values[1] else codes[::-1]
        # the loser's value cannot lose more than its probability; the winner's gains as much
        moved = np.minimum(1 / self.size, (self._chances * self._unit(loser)).sum(axis=1))
        moved = moved * self._neighbourhood.present(np.stack([winner, loser])).all(axis=0)
        change = self._unit(winner) - self._unit(loser)
        self._set(np.maximum(self._chances + moved[:, None] * change, 0))


def best_last(answers: Sequence[Answer]) -> Sequence[Answer]:
    """Return data of earlier runs from the worst to the best, then other answers.

    If there are many data, the last generation then holds the best of them.
    """
    data = [answer for answer in answers if is_data(answer)]
    others = [answer for answer in answers if not is_data(answer)] if data else answers
    return [*sorted(data, key=score), *others]


def part(fraction: float, of: int) -> int:
    """Return the number of points in a share of a population, at least one."""
    return max(1, round(fraction * of))
