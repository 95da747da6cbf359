"""New points where no operator has one, and whether there are any."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from anyorder.strategies.auto.operators.base import Tools
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes

MOST_DRAWS = 200  # of random points, until one is new
ENUMERATED = 1 << 16  # combinations: in smaller spaces all are looked at for a new point


class Unseen:
    """Points that are neither known nor being evaluated.

    Parameters
    ----------
    tools
        Those of operators.
    may_vary
        Whether any variable can change.
    """

    def __init__(self, tools: Tools, *, may_vary: bool) -> None:
        self._tools, self._may_vary = tools, may_vary
        self._shape = tuple(tools.space.cardinalities.tolist())
        self._few = math.prod(self._shape) <= ENUMERATED

    def draw(self, best: Best) -> Codes | None:
        """Return a new point: near the best one, or random, or the first of all in turn."""
        tools, known = self._tools, best.value > -math.inf
        for k in range(MOST_DRAWS):
            near = known and k < MOST_DRAWS // 4 and self._may_vary
            drawn = tools.vary(best.point, 1, 1 + k // 4) if near else tools.uniform(1)
            point: Codes = drawn[0].astype(np.int32)
            if tools.memory.is_new(point):
                return point
        if not self._few:
            return point
        return next(self._new_ones(), None)

    def is_empty(self) -> bool:
        """Return whether every point is known or being evaluated."""
        space, memory = self._tools.space, self._tools.memory
        if memory.count() < space.points:
            return False
        if space.points > ENUMERATED or not self._few:
            return memory.archive.distinct >= space.points
        return next(self._new_ones(shuffled=False), None) is None

    def _new_ones(self, *, shuffled: bool = True) -> Iterator[Codes]:
        """Yield all new points of a small space."""
        count = math.prod(self._shape)
        numbers = self._tools.rng.permutation(count) if shuffled else np.arange(count)
        for k in numbers.tolist():
            point = np.array(np.unravel_index(k, self._shape), np.int32)
            if self._tools.memory.is_new(point):
                yield point
