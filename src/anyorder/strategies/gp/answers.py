"""The evaluated points: those with a value, and those that failed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anyorder.strategies.base import Codes

Floats = npt.NDArray[np.float64]


class Answers:
    """Points in the order of their first answers.

    Parameters
    ----------
    n
        The number of columns of a point.

    Attributes
    ----------
    points, values
        The points with a value, and their values.
    failed
        The points without a value.
    """

    def __init__(self, n: int) -> None:
        self.points = self.failed = np.empty((0, n), np.int32)
        self.values: Floats = np.zeros(0)
        self._index: dict[bytes, int] = {}  # the rows of points with a value
        self._bad: set[bytes] = set()  # points that failed

    def add(self, point: Codes, value: float | None) -> None:
        """Add an answer, None if it failed; it replaces an earlier answer of the same point."""
        key = point.tobytes()
        if value is None:
            if key not in self._bad:
                self._bad.add(key)
                self.failed = np.concatenate([self.failed, point[None]])
        elif key in self._index:
            # if the function is noisy, this is the mean of all
            self.values[self._index[key]] = value
        else:
            self._index[key] = len(self.values)
            self.points = np.concatenate([self.points, point[None]])
            self.values = np.append(self.values, value)

    def has(self, key: bytes) -> bool:
        """Return whether a point, given as bytes, has an answer."""
        return key in self._index or key in self._bad

    def count(self, others: set[bytes]) -> int:
        """Return the number of points that have an answer or are among `others`."""
        return len(self._index.keys() | self._bad | others)

    def state(self) -> tuple[Codes, Floats, Codes]:
        """Return the state, for `restore`."""
        return self.points, self.values, self.failed

    def restore(self, state: tuple[Codes, Floats, Codes]) -> None:
        """Continue from what `state` returned."""
        self.points, self.values, self.failed = state
        self._index = {point.tobytes(): k for k, point in enumerate(self.points)}
        self._bad = {point.tobytes() for point in self.failed}
