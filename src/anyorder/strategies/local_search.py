"""Local search by first improvement: restart hill climbing and iterated local search.

Simple, and on small budgets ahead of much that is not.

Lourenço, Martin and Stützle, "Iterated local search", Handbook of Metaheuristics (2003).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyorder._checks import integer
from anyorder.space import Space
from anyorder.strategies.baseline import Baseline, Codes, Seed
from anyorder.strategies.changes import Changes


class HillClimber(Baseline):
    """First improvement over single changes, from uniform points.

    A climb tries the changes (one variable to another of its values) in a random order, goes
    round it from where the last improvement was found, and never back to the point it just left.
    When no change of its point is left untried it starts again elsewhere.

    `ask(n)` gives the next n untried neighbours, then starting points where those run out.
    Whatever is told, the climb moves to it if it is better than its present point, and to the
    first starting point in any case, unless it has moved since that was asked for.
    """

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        self._changes = Changes(space)
        self._point: Codes | None = None
        self._value = -np.inf
        self._order = np.empty(0, dtype=np.int64)
        self._untried = self._order
        self._starts: set[bytes] = set()  # asked for since the last move

    def _propose(self, n: int) -> Codes:
        changes, self._untried = self._untried[:n], self._untried[n:]
        if self._point is None or not len(changes):
            return self._start(n)
        neighbours = self._changes.apply(self._point, changes)
        if len(changes) < n:
            neighbours = np.concatenate([neighbours, self._start(n - len(changes))])
        return neighbours

    def _learn(self, codes: Codes, values: NDArray[np.float64]) -> None:
        for point, value in zip(codes, values, strict=True):
            better = value > self._value
            step = None
            if better and self._point is not None:
                step = self._changes.between(self._point, point)
            if step is not None:
                self._turn_order(*step)
            elif better or point.tobytes() in self._starts:
                self._order = self._untried = self._rng.permutation(len(self._changes))
            else:
                continue
            self._point, self._value = point.copy(), float(value)
            self._starts.clear()

    def _start(self, n: int) -> Codes:
        points = self._starting_points(n)
        self._starts.update(point.tobytes() for point in points)
        return points

    def _starting_points(self, n: int) -> Codes:
        return self._uniform(n)

    def _turn_order(self, change: int, back: int) -> None:
        """Go on behind the change that was made, leaving out the one that leads back."""
        place = int((self._order == change).argmax()) + 1
        self._order = np.concatenate([self._order[place:], self._order[:place]])
        self._untried = self._order[self._order != back]


class IteratedLocalSearch(HillClimber):
    """Hill climbing that starts again near its local optimum, not elsewhere.

    It climbs as `HillClimber` does. Where a climb ends, its local optimum is accepted if it is
    not worse than the one accepted last, else forgotten; the next climb starts from the accepted
    one with `kick` variables changed, drawn anew each time, to other values. So the accepted
    values never fall, and equal ones let it drift.

    `ask` and `tell` are those of `HillClimber`; a climb ends when all neighbours were asked for,
    and one told later counts if it is better than the present point.

    Parameters
    ----------
    space, seed : as for every baseline.
    kick : how many variables change, all of them where there are fewer. With the default of 4,
        a customary choice, most of what was found is kept; but the next climb undoes many such
        kicks, and where optima are wide (QUBO, for one) larger ones can do better.
    """

    def __init__(self, space: Space, seed: Seed = None, kick: int = 4) -> None:
        super().__init__(space, seed)
        self.kick = integer("kick", kick, 1)
        self._accepted: Codes | None = None
        self._accepted_value = -np.inf

    def _starting_points(self, n: int) -> Codes:
        if self._point is not None and self._value >= self._accepted_value:
            self._accepted, self._accepted_value = self._point, self._value
        if self._accepted is None or not len(self._free):
            return self._uniform(n)
        return self._varied(self._accepted, n, self.kick)
