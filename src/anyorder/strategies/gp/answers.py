"""What has been evaluated: points with a value, and points that failed."""

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
        Those that have a value, and these.
    failed
        Points that have none.
    """

    def __init__(self, n: int) -> None:
        self.points = self.failed = np.empty((0, n), np.int32)
        self.values: Floats = np.zeros(0)
        self._index: dict[bytes, int] = {}  # rows of points that have a value
        self._bad: set[bytes] = set()  # points that failed

    def add(self, point: Codes, value: float | None) -> None:
        """Take an answer, None if it failed; of a known point, in place of the last one."""
        key = point.tobytes()
        if value is None:
            if key not in self._bad:
                self._bad.add(key)
                self.failed = np.concatenate([self.failed, point[None]])
        elif key in self._index:
            self.values[self._index[key]] = value  # under noise the mean of all
        else:
            self._index[key] = len(self.values)
            self.points = np.concatenate([self.points, point[None]])
            self.values = np.append(self.values, value)

    def has(self, key: bytes) -> bool:
        """Return whether a point, as bytes, was answered."""
        return key in self._index or key in self._bad

    def count(self, others: set[bytes]) -> int:
        """Return how many points were answered, or are among others."""
        return len(self._index.keys() | self._bad | others)

    def state(self) -> tuple[Codes, Floats, Codes]:
        """Return the state, which `restore` takes over."""
        return self.points, self.values, self.failed

    def restore(self, state: tuple[Codes, Floats, Codes]) -> None:
        """Take over what `state` gave."""
        self.points, self.values, self.failed = state
        self._index = {point.tobytes(): k for k, point in enumerate(self.points)}
        self._bad = {point.tobytes() for point in self.failed}
