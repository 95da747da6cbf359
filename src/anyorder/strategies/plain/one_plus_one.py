"""One parent and its offspring: randomised local search and two (1+1) evolutionary algorithms.

Droste, Jansen and Wegener, "On the analysis of the (1+1) evolutionary algorithm", Theoretical
Computer Science 276 (2002). Neumann and Wegener, "Randomized local search, evolutionary
algorithms, and the minimum spanning tree problem", Theoretical Computer Science 378 (2007).
Doerr, Le, Makhmara and Nguyen, "Fast genetic algorithms", GECCO (2017).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anyorder._internal.checks import real
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Search, Seed, score


class OneParent(Search):
    """One parent, replaced by any point that is not worse; a subclass implements `_mutants`.

    `propose(k)` returns k offspring of the current parent, or k random points before the first
    answer. Answers are compared with the parent in the order in which they come, whoever proposed
    the point.

    Attributes
    ----------
    generation
        The number of answers.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_parent", "_parent_value")

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        self._parent: Codes | None = None
        self._parent_value = -np.inf

    def _propose(self, count: int) -> Codes:
        if self._parent is None or not len(self._free):
            return self._uniform(count)
        return self._mutants(self._parent, count)

    @abstractmethod
    def _mutants(self, parent: Codes, count: int) -> Codes:
        """Return `count` offspring; at least one variable has more than one value."""

    def _learn(self, answers: Sequence[Answer]) -> None:
        self.generation += len(answers)
        for answer in answers:
            value = score(answer)
            if value >= self._parent_value:
                self._parent, self._parent_value = answer.codes.copy(), value

    def _mutants_at(self, parent: Codes, rates: NDArray[np.float64]) -> Codes:
        """Return an offspring for each rate, at which variables change; at least one does."""
        # The first change is drawn by inverting its distribution, given that there is one. This
        # equals mutating until something changes, and is fast even at small rates.
        free = self._neighbourhood.changeable(parent)
        places = len(free)
        if not places:
            return np.tile(parent, (len(rates), 1))
        with np.errstate(divide="ignore"):
            stay = np.log1p(-rates)
        drawn = np.log1p(self._rng.random(len(rates)) * np.expm1(places * stay)) / stay
        first = np.minimum(drawn, places - 1).astype(np.int64).tolist()
        changed = self._rng.random((len(rates), places)) < rates[:, None]
        for row, place in zip(changed, first, strict=True):
            row[:place] = False
            row[place] = True
        rows, columns = changed.nonzero()
        return self._vary(np.tile(parent, (len(rates), 1)), rows, free[columns])


class RLS(OneParent):
    """Randomised local search: an offspring differs from the parent in one variable.

    The variable is drawn uniformly from those with more than one value, and its new value uniformly
    from the others; if there are many ordered values, near and far ones are equally likely. An
    offspring that is not worse becomes the parent. A local optimum is only left for an equal point;
    the (1+1) EAs can leave it.

    Parameters
    ----------
    space, seed
        See `Search`.
    """

    name = "rls"

    def _mutants(self, parent: Codes, count: int) -> Codes:
        return self._mutate(parent, count)


class OnePlusOneEA(OneParent):
    """The (1+1) EA with standard bit mutation: each variable changes independently.

    A variable changes with probability `rate`, to one of its other values drawn uniformly; at
    least one variable changes. An offspring that is not worse becomes the parent.

    Parameters
    ----------
    space, seed
        See `Search`.
    rate
        The probability of a change, above 0 and at most 1. The default is 1/n, where n is the
        number of variables with more than one value.
    """

    name = "one-plus-one"

    def __init__(self, space: Space, seed: Seed = None, rate: float | None = None) -> None:
        super().__init__(space, seed)
        if rate is None:
            rate = 1 / max(1, len(self._free))
        self.rate = real("rate", rate, 0, 1, above=True)

    def _mutants(self, parent: Codes, count: int) -> Codes:
        return self._mutants_at(parent, np.full(count, self.rate))


class FastOnePlusOneEA(OneParent):
    """The (1+1) EA with fast mutation: a heavy-tailed rate, drawn anew for each offspring.

    The rate is a/n, where a is 1, 2, ... n/2 with a probability proportional to a^-beta, and n is
    the number of variables with more than one value. An offspring without a change is drawn again,
    including its rate. An offspring with k changes, k up to n/2, thus has a probability of the
    order of k^-beta: most offspring are near, and distant ones, which are needed to leave a local
    optimum, are less rare than with a fixed rate.

    Parameters
    ----------
    space, seed
        See `Search`.
    beta
        The exponent of the power law, above 1. The default of 1.5 is recommended by the paper.
    """

    name = "fast-one-plus-one"

    def __init__(self, space: Space, seed: Seed = None, beta: float = 1.5) -> None:
        super().__init__(space, seed)
        self.beta = real("beta", beta, 1, above=True)
        n = max(1, len(self._free))
        strengths = np.arange(1, max(1, n // 2) + 1)
        self._rates = strengths / n
        with np.errstate(divide="ignore"):
            something = -np.expm1(n * np.log1p(-self._rates))
        self._chances = np.cumsum(strengths**-self.beta * something)
        self._chances /= self._chances[-1]

    def _mutants(self, parent: Codes, count: int) -> Codes:
        drawn = self._chances.searchsorted(self._rng.random(count), side="right")
        return self._mutants_at(parent, self._rates[drawn])
