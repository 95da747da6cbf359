"""The shares of the portfolio and of NSGA-II in the points, which follow their gains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.archive.hypervolume import hypervolume

Floats = npt.NDArray[np.float64]

LEAST = 0.1  # the least share of each source
MEMORY = 300.0  # evaluations over which gains and costs decay
PRIOR = 20.0  # evaluations of average gain that each source is assumed to have had at first
TURN = 10  # successive points of NSGA-II


class Shares:
    """The gains per evaluation of two sources of points: 0, the portfolio, and 1, NSGA-II.

    A gain is the growth of the front's hypervolume, relative to the present hypervolume; for more
    than two objectives, it is the number of points that enter the front.

    Attributes
    ----------
    spent
        The number of answers to points of each source.
    """

    def __init__(self) -> None:
        self.spent = [0, 0]
        self._gains, self._costs = [0.0, 0.0], [0.0, 0.0]  # both decay
        self._left = 0  # points that are left of a turn of source 1
        self._front: Floats = np.empty((0, 0))  # the front when gains were last counted

    def breeds(self) -> bool:
        """Return whether source 1 makes the next point."""
        if self._left:
            self._left -= 1
            return True
        share = self._share()
        if self._costs[1] > share * (self._costs[0] + self._costs[1]):
            return False
        self._left = TURN - 1
        return True

    def _share(self) -> float:
        """Return the share of source 1."""
        mean = (self._gains[0] + self._gains[1]) / max(self._costs[0] + self._costs[1], 1.0)
        rates = [
            (gain + PRIOR * mean) / (cost + PRIOR)
            for gain, cost in zip(self._gains, self._costs, strict=True)
        ]
        whole = rates[0] + rates[1]
        share = rates[1] / whole if whole > 0 else 0.5
        return min(max(share, LEAST), 1.0 - LEAST)

    def credit(self, bred: Sequence[bool], front: Floats) -> None:
        """Learn the front after some answers; `bred` says which were to points of source 1."""
        if not bred:
            return
        gain = self._gain(front)
        kept = math.exp(-len(bred) / MEMORY)
        for source in (0, 1):
            count = sum(one == source for one in map(int, bred))
            self.spent[source] += count
            self._costs[source] = kept * self._costs[source] + count
            self._gains[source] = kept * self._gains[source] + gain * count / len(bred)

    def _gain(self, front: Floats) -> float:
        before, self._front = self._front, front
        if len(front) < 2 or (front.shape == before.shape and np.array_equal(front, before)):
            return 0.0
        if before.shape[1] != front.shape[1] or not len(before):
            return 0.0
        if front.shape[1] > 2:
            return float((~(front[:, None] == before).all(axis=2).any(axis=1)).sum())
        low, high = front.min(axis=0), front.max(axis=0)
        scale = np.where(high > low, high - low, 1.0)
        now, past = (front - low) / scale, (before - low) / scale
        reference = np.full(2, -0.1)
        volume = hypervolume(now, reference)
        return max(volume - hypervolume(past, reference), 0.0) / max(volume, 1e-300)

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {"spent": self.spent, "gains": self._gains, "costs": self._costs,
                "left": self._left, "front": self._front}  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""
        self.spent, self._left = state["spent"], int(state["left"])
        self._gains, self._costs = state["gains"], state["costs"]
        self._front = np.asarray(state["front"], np.float64)
        if not (len(self.spent) == len(self._gains) == len(self._costs) == 2):
            raise ValueError("the state has shares of other sources: it is damaged")
