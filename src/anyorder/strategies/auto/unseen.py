"""New points for the case that no operator has one, and the test whether any are left."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from anyorder.strategies.auto.operators.base import Tools
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes

MOST_DRAWS = 200  # random points that are drawn to find a new one when no operator has one
ENUMERATED = 1 << 16  # in spaces of at most so many combinations, all are tried to find a new point


class Unseen:
    """Points that are neither known nor being evaluated.

    Parameters
    ----------
    tools
        The tools of the operators.
    may_vary
        Whether any variable can change.
    """

    def __init__(self, tools: Tools, *, may_vary: bool) -> None:
        self._tools, self._may_vary = tools, may_vary
        self._shape = tuple(tools.space.cardinalities.tolist())
        self._few = math.prod(self._shape) <= ENUMERATED

    def draw(self, best: Best) -> Codes | None:
        """Return a new point: near the best point, else random, else any in a small space.

        In a large space the last point drawn is returned even if it is not new.
        """
        tools, known = self._tools, best.value > -math.inf
        for k in range(MOST_DRAWS):
            near = known and k < MOST_DRAWS // 4 and self._may_vary
            drawn = tools.vary(best.point, 1, 1 + k // 4) if near else tools.uniform(1)
            point: Codes = drawn[0].astype(np.int32)
            if tools.memory.is_new(point):
                return point
        if not self._few:
            return point
        return next(self._new_points(), None)

    def is_empty(self) -> bool:
        """Return whether every point is known or being evaluated."""
        space, memory = self._tools.space, self._tools.memory
        if memory.count() < space.points:
            return False
        if space.points > ENUMERATED or not self._few:
            return memory.archive.distinct >= space.points
        return next(self._new_points(shuffled=False), None) is None

    def _new_points(self, *, shuffled: bool = True) -> Iterator[Codes]:
        """Yield all new points of a small space."""
        count = math.prod(self._shape)
        numbers = self._tools.rng.permutation(count) if shuffled else np.arange(count)
        for k in numbers.tolist():
            point = np.array(np.unravel_index(k, self._shape), np.int32)
            if self._tools.memory.is_new(point):
                yield point
