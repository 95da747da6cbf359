"""Restart hill climbing: simple, and on small budgets ahead of much that is not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyorder.baselines.base import Baseline, Codes, Seed
from anyorder.space import Space

# A climb tries them all in turn, and holds them in memory.
_MOST_CHANGES = 1 << 24


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
        # Change c adds _steps[c] to variable _variables[c], modulo its number of values.
        others = self._cardinalities - 1
        if others.sum() > _MOST_CHANGES:
            raise ValueError(
                f"space has {others.sum()} single changes, expected at most {_MOST_CHANGES}"
            )
        self._offsets = np.cumsum(others) - others
        self._variables = np.repeat(np.arange(len(others)), others)
        self._steps = np.arange(len(self._variables)) - self._offsets[self._variables] + 1
        self._point: Codes | None = None
        self._value = -np.inf
        self._order = np.empty(0, dtype=np.int64)
        self._untried = self._order
        self._starts: set[bytes] = set()  # asked for since the last move

    def _propose(self, n: int) -> Codes:
        changes, self._untried = self._untried[:n], self._untried[n:]
        if self._point is None or not len(changes):
            return self._start(n)
        neighbours = np.tile(self._point, (len(changes), 1))
        variables = self._variables[changes]
        moved = self._point[variables] + self._steps[changes]
        neighbours[np.arange(len(changes)), variables] = moved % self._cardinalities[variables]
        if len(changes) < n:
            neighbours = np.concatenate([neighbours, self._start(n - len(changes))])
        return neighbours

    def _learn(self, codes: Codes, values: NDArray[np.float64]) -> None:
        for point, value in zip(codes, values, strict=True):
            better = value > self._value
            if better and self._point is not None and (point != self._point).sum() == 1:
                self._turn_order(self._point, point)
            elif better or point.tobytes() in self._starts:
                self._order = self._untried = self._rng.permutation(len(self._variables))
            else:
                continue
            self._point, self._value = point.copy(), float(value)
            self._starts.clear()

    def _start(self, n: int) -> Codes:
        points = self._uniform(n)
        self._starts.update(point.tobytes() for point in points)
        return points

    def _turn_order(self, old: Codes, new: Codes) -> None:
        """Go on behind the change that led from old to new, leaving out the one that leads back."""
        i = int((new != old).argmax())
        others = int(self._cardinalities[i]) - 1
        step = int(new[i] - old[i]) % (others + 1)
        place = int((self._order == self._offsets[i] + step - 1).argmax()) + 1
        self._order = np.concatenate([self._order[place:], self._order[:place]])
        self._untried = self._order[self._order != self._offsets[i] + others - step]
