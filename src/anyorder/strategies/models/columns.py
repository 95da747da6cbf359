"""The columns of a point that the models read: its scalars, and its lists as context.

The model of gains and the global model change only scalars. The gain of a change may depend on the
lists of the point, so lists have columns, too, but *held* ones, which no model changes. A subset of
few items has a bit for each item, so that models learn which items matter to which scalar. Any
other list has one number, which shows only whether two lists are the same.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.space import Space
from anyorder.space.groups import ListGroup, Selection
from anyorder.strategies.base import Codes, Index

MOST_BITS = 256  # a subset of more items is a single number for the models, not a bit for each item
NUMBERS = 2**31 - 1  # more than the numbers by which models represent lists


class Columns:
    """The columns of models, and their values for a point.

    Parameters
    ----------
    space
        The space of the points.

    Attributes
    ----------
    whole
        Whether the columns of models are those of points, as there are no lists.
    free
        The columns of points that models may change; they are the first columns of models.
    seen
        The columns of points that models read unchanged.
    cardinalities, ordered
        The number of values of each column of models, and whether they are ordered.
    values
        The numbers of values again, but 1 for held columns.
    """

    def __init__(self, space: Space) -> None:
        self.whole = not space.groups
        listed = np.zeros(len(space), np.bool_)
        for group in space.groups:
            listed[group.columns] = True
        self.free: Index = np.flatnonzero(~listed)
        bits = [g for g in space.groups if len(self.free) and _is_short(g)]
        self._numbered = [g for g in space.groups if g not in bits]
        columns = [np.arange(len(space))[group.columns] for group in bits]
        self.seen: Index = np.concatenate([self.free, *columns])
        self._places = np.full(len(space), -1, np.intp)
        self._places[self.free] = np.arange(len(self.free))
        numbers = np.full(len(self._numbered), NUMBERS, np.int32)
        self.cardinalities = np.concatenate([space.cardinalities[self.seen], numbers])
        self.ordered = np.append(space.ordered[self.seen], numbers < 0)
        self.values = np.where(np.arange(len(self)) < len(self.free), self.cardinalities, 1)

    def __len__(self) -> int:
        return len(self.cardinalities)

    @property
    def numbers(self) -> npt.NDArray[np.bool_]:
        """Whether each column is the number of a list."""
        return np.arange(len(self)) >= len(self.seen)

    def may_change(self, variable: int) -> bool:
        """Return whether a column of points is a scalar."""
        return self.whole or self._places[variable] >= 0

    def place(self, variable: int) -> int:
        """Return the column of models of a scalar."""
        return variable if self.whole else int(self._places[variable])

    def of(self, point: Codes) -> Codes:
        """Return the columns of models for a point."""
        if self.whole:
            return point
        numbers = [zlib.crc32(point[group.columns].tobytes()) >> 2 for group in self._numbered]
        return np.concatenate([point[self.seen], np.array(numbers, np.int32)])

    def put(self, seen: Codes, point: Codes) -> Codes:
        """Return a copy of a point with the scalars of `seen`, which are columns of models."""
        if self.whole:
            return seen
        point = point.copy()
        point[self.free] = seen[: len(self.free)]
        return point

    def square(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a table over pairs of columns of models as one over pairs of columns of points."""
        found = np.zeros((len(self._places),) * 2, table.dtype)
        kept = len(self.seen)
        found[np.ix_(self.seen, self.seen)] = table[:kept, :kept]
        return found


def _is_short(group: ListGroup) -> bool:
    return isinstance(group, Selection) and group.size <= MOST_BITS
