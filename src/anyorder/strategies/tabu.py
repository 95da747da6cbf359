"""Tabu search.

Glover, "Tabu search, part I", ORSA Journal on Computing 1 (1989). What is tabu for a variable of
several values: Hertz and de Werra, "Using tabu search techniques for graph coloring", Computing 39
(1987). The tenure: Palubeckis, "Multistart tabu search strategies for the unconstrained binary
quadratic optimization problem", Annals of Operations Research 131 (2004).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyorder._checks import integer
from anyorder.space import Space
from anyorder.strategies.baseline import Baseline, Codes, Seed
from anyorder.strategies.changes import Changes


class TabuSearch(Baseline):
    """Always to the best neighbour, better or not, but not back to what was left lately.

    Neighbours differ in one variable. All are evaluated, in a random order, each for one
    evaluation: a function of n bits costs n evaluations a move. Then the search moves to the best
    of them, the first of equals, among those that do not give a variable a value it has left in
    the last `tenure` moves; such a one is taken all the same if it is better than every point the
    search has been at (aspiration). Where all are tabu it takes the one that is free soonest.

    `ask(n)` gives the next n unevaluated neighbours, then uniform points where those run out. The
    next move is made when `ask` finds none left, to the best of those told by then; if none was,
    they are asked for again. Other points told, and neighbours told too late, do not count unless
    they are better than every point the search has been at: then it moves there at once.

    Parameters
    ----------
    space, seed : as for every baseline.
    tenure : how many moves a value stays tabu. The default is n/4, at least 1 and at most 20, n
        counting the variables with more than one value: Palubeckis' choice for QUBO.
    """

    def __init__(self, space: Space, seed: Seed = None, tenure: int | None = None) -> None:
        super().__init__(space, seed)
        self._changes = Changes(space)
        if tenure is None:
            tenure = min(20, max(1, len(self._free) // 4))
        self.tenure = integer("tenure", tenure, 1)
        self._point: Codes | None = None
        self._record = -np.inf  # the best value of the points it has been at
        self._untried = np.empty(0, dtype=np.int64)
        self._told: dict[int, float] = {}  # values of neighbours, by change
        self._moves = 0
        # How many moves until variable i may take value v again: at _first[i] + v.
        self._first = np.cumsum(self._cardinalities) - self._cardinalities
        self._free_at = np.zeros(int(self._cardinalities.sum()), dtype=np.int64)

    def _propose(self, n: int) -> Codes:
        if self._point is None:
            return self._uniform(n)
        if not len(self._untried):
            self._move()
        changes, self._untried = self._untried[:n], self._untried[n:]
        neighbours = self._changes.apply(self._point, changes)
        if len(changes) < n:
            neighbours = np.concatenate([neighbours, self._uniform(n - len(changes))])
        return neighbours

    def _learn(self, codes: Codes, values: NDArray[np.float64]) -> None:
        for point, value in zip(codes, values.tolist(), strict=True):
            step = None if self._point is None else self._changes.between(self._point, point)
            if step is not None:
                self._told[step[0]] = value
            elif self._point is None or value > self._record:
                self._go(point, value)

    def _move(self) -> None:
        """To the best neighbour told that may be taken; with none told, look around again."""
        point = self._point
        if point is None or not self._told:
            self._untried = self._rng.permutation(len(self._changes))
            return
        changes = np.fromiter(self._told, dtype=np.int64)
        values = np.fromiter(self._told.values(), dtype=np.float64)
        variables = self._changes.variables[changes]
        free_at = self._free_at[self._first[variables] + self._changes.targets(point, changes)]
        taken = np.flatnonzero((free_at <= self._moves) | (values > self._record))
        if not len(taken):
            taken = np.flatnonzero(free_at == free_at.min())
        chosen = taken[values[taken].argmax()]
        self._go(self._changes.apply(point, changes[chosen : chosen + 1])[0], values[chosen])

    def _go(self, point: Codes, value: float) -> None:
        self._moves += 1
        if self._point is not None:
            left = np.flatnonzero(point != self._point)
            self._free_at[self._first[left] + self._point[left]] = self._moves + self.tenure
        self._point = point.copy()
        self._record = max(self._record, float(value))
        self._told.clear()
        self._untried = self._rng.permutation(len(self._changes))
