"""Sets of vectors that do not dominate each other, and the hypervolume of such a set.

All objectives are maximised here: callers change the signs of those that are minimised.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import require

Floats = npt.NDArray[np.float64]


def dominates(one: Floats, other: Floats) -> npt.NDArray[np.bool_]:
    """Return where one vector is at least as good as another in every objective."""
    return np.asarray((one >= other).all(axis=-1))


class NonDominated:
    """A set of vectors of which none is at least as good as another one in every objective.

    Parameters
    ----------
    count
        The number of objectives.

    Attributes
    ----------
    values
        The vectors, `(size, count)`, in the order in which they were added.
    items
        What each vector belongs to, such as the number of a point.
    """

    def __init__(self, count: int) -> None:
        self.values: Floats = np.empty((0, count))
        self.items: list[int] = []

    def __len__(self) -> int:
        return len(self.items)

    def add(self, item: int, values: npt.ArrayLike) -> bool:
        """Add a vector unless one is as good, and remove those that it dominates; True if added."""
        new = np.asarray(values, np.float64)
        if dominates(self.values, new).any():
            return False
        kept = ~dominates(new, self.values)
        if kept.all():
            self.values = np.concatenate([self.values, new[None]])
            self.items.append(item)
        else:
            self.values = np.concatenate([self.values[kept], new[None]])
            self.items = [one for one, stays in zip(self.items, kept, strict=True) if stays]
            self.items.append(item)
        return True


def hypervolume(values: Floats, reference: Floats) -> float:
    """Return the volume between the reference and the vectors that dominate it.

    Two objectives are sorted; more require moocore, `pip install 'anyorder[objectives]'`.
    """
    inside = values[(values > reference).all(axis=1)]
    if not len(inside):
        return 0.0
    if len(reference) == 2:
        order = np.lexsort((-inside[:, 1], -inside[:, 0]))
        first, second = inside[order].T
        height = np.maximum.accumulate(second)
        below = np.concatenate([reference[1:], height[:-1]])
        return float(((first - reference[0]) * (height - below)).sum())
    return float(import_moocore().hypervolume(-inside, ref=-reference))


def import_moocore() -> Any:
    """Return the module that computes the hypervolume of more than two objectives."""
    return require(
        "moocore", "objectives", "the hypervolume of more than two objectives requires moocore"
    )


def hypervolumes(values: Floats, reference: Floats) -> Floats:
    """Return the hypervolume of the first k vectors for each k; rows with NaN add nothing."""
    found = np.zeros(len(values))
    good = np.asarray((values > reference).all(axis=1))  # False for NaN
    if len(reference) == 2:
        stairs = _Stairs(*reference.tolist())
        for k in np.flatnonzero(good).tolist():
            found[k] = stairs.add(*values[k].tolist())
        return np.asarray(found.cumsum())
    front = NonDominated(len(reference))
    total = 0.0
    for k in range(len(values)):
        if good[k] and front.add(k, values[k]):
            total = hypervolume(front.values, reference)
        found[k] = total
    return found


class _Stairs:
    """The front of two objectives in order, and the area that each new point adds."""

    def __init__(self, left: float, low: float) -> None:
        self._left, self._low = left, low
        self._first: list[float] = []  # ascending
        self._second: list[float] = []  # descending

    def add(self, x: float, y: float) -> float:
        """Add a point, and return the area that no earlier point covers."""
        first, second = self._first, self._second
        k = bisect_left(first, x)  # from here on, points have an x that is as good
        if k < len(first) and second[k] >= y:
            return 0.0
        end = k + 1 if k < len(first) and first[k] == x else k
        start = k
        while start > 0 and second[start - 1] <= y:  # these points are dominated
            start -= 1
        floor = second[end] if end < len(first) else self._low
        left = self._left if start == 0 else first[start - 1]
        covered, edge = 0.0, left
        for j in range(start, end):
            covered += (first[j] - edge) * (second[j] - floor)
            edge = first[j]
        area = (x - left) * (y - floor) - covered
        first[start:end], second[start:end] = [x], [y]
        return area
