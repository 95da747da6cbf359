"""One parent and its mutants: randomised local search and two (1+1) evolutionary algorithms.

Droste, Jansen and Wegener, "On the analysis of the (1+1) evolutionary algorithm", Theoretical
Computer Science 276 (2002). Neumann and Wegener, "Randomized local search, evolutionary
algorithms, and the minimum spanning tree problem", Theoretical Computer Science 378 (2007).
Doerr, Le, Makhmara and Nguyen, "Fast genetic algorithms", GECCO (2017).
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from anyorder.space import Space
from anyorder.strategies.baseline import Baseline, Codes, Seed, real


class OneParent(Baseline):
    """One parent; an offspring that is not worse takes its place. A subclass writes `_mutants`.

    `ask(n)` gives n offspring of the present parent, or n uniform points before the first `tell`.
    """

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        self._parent: Codes | None = None
        self._parent_value = -np.inf

    def _propose(self, n: int) -> Codes:
        if self._parent is None or not len(self._free):
            return self._uniform(n)
        return self._mutants(self._parent, n)

    @abstractmethod
    def _mutants(self, parent: Codes, n: int) -> Codes:
        """N offspring; some variable can change."""

    def _learn(self, codes: Codes, values: NDArray[np.float64]) -> None:
        # As if told one by one: the last of the best.
        last = len(values) - 1 - int(values[::-1].argmax())
        if values[last] >= self._parent_value:
            self._parent, self._parent_value = codes[last].copy(), float(values[last])

    def _mutants_at(self, parent: Codes, rates: NDArray[np.float64]) -> Codes:
        """An offspring for each rate: every variable changes with it, at least one does."""
        # The first change is drawn by inverting its distribution, given that one happens. That is
        # mutating again until something changes, without the wait that a small rate would mean.
        places = len(self._free)
        with np.errstate(divide="ignore"):
            stay = np.log1p(-rates)
        drawn = np.log1p(self._rng.random(len(rates)) * np.expm1(places * stay)) / stay
        first = np.minimum(drawn, places - 1).astype(np.int64)[:, None]
        position = np.arange(places)
        later = (position > first) & (self._rng.random((len(rates), places)) < rates[:, None])
        rows, columns = np.nonzero((position == first) | later)
        return self._vary(np.tile(parent, (len(rates), 1)), rows, self._free[columns])


class RLS(OneParent):
    """Randomised local search: one variable changes; an offspring that is not worse is the parent.

    The variable is drawn from those with more than one value, the value from its others, all
    alike. A local optimum is never left but for an equal point; the (1+1) EAs can.

    `ask(n)` gives n offspring of the present parent, or n uniform points before the first `tell`.
    """

    def _mutants(self, parent: Codes, n: int) -> Codes:
        return self._varied(parent, n)


class OnePlusOneEA(OneParent):
    """The (1+1) EA with standard mutation: an offspring that is not worse is the next parent.

    Every variable changes with probability `rate` (default 1/n, n counting the variables that
    have more than one value) to one of its other values, all alike; at least one changes.
    `ask(n)` gives n offspring of the present parent, or n uniform points before the first `tell`.
    """

    def __init__(self, space: Space, seed: Seed = None, rate: float | None = None) -> None:
        super().__init__(space, seed)
        if rate is None:
            rate = 1 / max(1, len(self._free))
        self.rate = real("rate", rate, 0, 1)

    def _mutants(self, parent: Codes, n: int) -> Codes:
        return self._mutants_at(parent, np.full(n, self.rate))


class FastOnePlusOneEA(OneParent):
    """The (1+1) EA with fast mutation: as `OnePlusOneEA`, at a rate drawn anew for each offspring.

    The rate is a/n, where a is 1, 2, ... n/2 with a chance proportional to a^-beta and n counts
    the variables with more than one value. An offspring without a change is drawn again, its rate
    too. So k changes, k up to n/2, happen about k^-beta of the time: most offspring are near, and
    far ones, which a local optimum needs, are not as rare as under the standard mutation.

    Parameters
    ----------
    space, seed : as for every baseline.
    beta : exponent of the power law, above 1. The default of 1.5 is the paper's recommendation.
    """

    def __init__(self, space: Space, seed: Seed = None, beta: float = 1.5) -> None:
        super().__init__(space, seed)
        self.beta = real("beta", beta, 1)
        n = max(1, len(self._free))
        strengths = np.arange(1, max(1, n // 2) + 1)
        self._rates = strengths / n
        with np.errstate(divide="ignore"):
            something = -np.expm1(n * np.log1p(-self._rates))
        self._chances = np.cumsum(strengths**-self.beta * something)
        self._chances /= self._chances[-1]

    def _mutants(self, parent: Codes, n: int) -> Codes:
        drawn = np.searchsorted(self._chances, self._rng.random(n), side="right")
        return self._mutants_at(parent, self._rates[drawn])
