"""The observed gains to which the global model is fitted, in a ring that overwrites the oldest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.strategies.base import Index
from anyorder.strategies.models.checking import check_observations
from anyorder.strategies.models.scale import Floats

FIRST_ROWS = 256  # observations for which memory is allocated at first
MOST_CHANGED = 16  # the most features that differ between the two points of an observation
MOST_OBSERVED_BYTES = 100_000_000  # bytes for all observations; beyond, the oldest are overwritten


class Observations:
    """Observations: each has two points, the features that differ between them, and the gain.

    Parameters
    ----------
    features
        The number of features of a point.

    Attributes
    ----------
    rows, steps
        For each observation, the features that differ, and by how much.
    phis
        The features of the first point; if several variables differ, the mean over both points.
    gains
        The differences of f, divided by the root of the number of variables that differ.
    changes
        The variable and both its values; if several variables differ, minus their number.
    levels
        The values of f at both points, on the scale of the models.
    count
        The number of all observations so far.
    """

    def __init__(self, features: int) -> None:
        self.features = features
        self._capacity = max(MOST_OBSERVED_BYTES // (4 * features + 8 * MOST_CHANGED), 1)
        self._allocate(FIRST_ROWS)
        self.count = 0

    def _allocate(self, size: int) -> None:
        self.rows = np.zeros((size, MOST_CHANGED), np.int32)
        self.steps = np.zeros((size, MOST_CHANGED), np.float32)
        self.phis = np.zeros((size, self.features), np.float32)
        self.gains = np.zeros(size, np.float32)
        self.changes = np.zeros((size, 3), np.int32)
        self.levels = np.zeros((size, 2), np.float64)

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """All arrays, in the order in which kernels take them."""
        return self.rows, self.steps, self.phis, self.gains, self.changes, self.levels

    @property
    def kept(self) -> int:
        """The number of observations that are kept."""
        return min(self.count, len(self.gains))

    def make_room(self) -> bool:
        """Grow if there is no room for another observation; return whether arrays are new."""
        size = len(self.gains)
        if self.count != size or size >= self._capacity:
            return False
        old = self.arrays
        self._allocate(min(2 * size, self._capacity))
        for new, kept in zip(self.arrays, old, strict=True):
            new[:size] = kept
        return True

    @property
    def place(self) -> int:
        """The row of the next observation."""
        return self.count % len(self.gains)

    def latest(self, count: int) -> Index:
        """Return the rows of the last `count` observations, or of all; the oldest first."""
        count = min(count, self.kept)
        places: Index = np.arange(self.count - count, self.count) % len(self.gains)
        return places

    def rescale(self, change: Callable[[float], float]) -> None:
        """Convert all values to another scale by `change`, and compute all gains again."""
        kept = self.kept
        levels = self.levels[:kept]
        levels[:] = map_values(change, levels)
        several = np.sqrt(np.maximum(-self.changes[:kept, 0], 1))
        self.gains[:kept] = (levels[:, 1] - levels[:, 0]) / several

    def blend(self, parts: Sequence[Observations], weights: Floats) -> None:
        """Become the observations of a weighted sum of functions, which have the same points."""
        first = parts[0]
        if len(self.gains) != len(first.gains):
            self._allocate(len(first.gains))
        kept = first.kept
        for name in ("rows", "steps", "phis", "changes"):
            getattr(self, name)[:kept] = getattr(first, name)[:kept]
        self.gains[:kept] = sum(
            a * part.gains[:kept] for a, part in zip(weights, parts, strict=True)
        )
        self.levels[:kept] = sum(
            a * part.levels[:kept] for a, part in zip(weights, parts, strict=True)
        )
        self.count = first.count

    _STATE = ("rows", "steps", "phis", "gains", "changes", "levels", "count")

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {name: getattr(self, name) for name in self._STATE}

    def restore(self, state: Mapping[str, Any], values: npt.NDArray[np.integer]) -> None:
        """Continue from what `state` returned; ValueError if it does not fit.

        `values` are the numbers of values of the variables.
        """
        check_observations(state, self.state(), values, self.features)
        for name in self._STATE:
            setattr(self, name, state[name])


def map_values(change: Callable[[float], float], levels: Floats) -> Floats:
    """Return an array of `change(value)` for each value."""
    found = np.array([change(value) for value in levels.ravel().tolist()], np.float64)
    return found.reshape(levels.shape)
