"""All changes of one variable to another of its values: the neighbourhood of local search."""

from __future__ import annotations

import numpy as np

from anyorder.space import Space
from anyorder.strategies.base import Codes, Index

# Local search tries all of them in turn, and holds them in memory.
_MOST_CHANGES = 1 << 24


class Changes:
    """The single changes of a space, by number.

    Change c adds steps[c] to the code of variables[c], modulo its number of values. A number
    therefore means the same at every point, and 0 to len - 1 give all neighbours of any point.
    """

    def __init__(self, space: Space) -> None:
        self._cardinalities = space.cardinalities.astype(np.int64)
        others = self._cardinalities - 1
        if others.sum() > _MOST_CHANGES:
            raise ValueError(
                f"space has {others.sum()} single changes, expected at most {_MOST_CHANGES}"
            )
        self._offsets = np.cumsum(others) - others
        self.variables = np.repeat(np.arange(len(others)), others)
        self.steps = np.arange(len(self.variables)) - self._offsets[self.variables] + 1

    def __len__(self) -> int:
        return len(self.variables)

    def targets(self, point: Codes, changes: Index) -> Index:
        """The code that each change gives to its variable."""
        variables = self.variables[changes]
        codes: Index = (point[variables] + self.steps[changes]) % self._cardinalities[variables]
        return codes

    def apply(self, point: Codes, changes: Index) -> Codes:
        """The neighbours of a point, one per row."""
        neighbours = np.tile(point, (len(changes), 1))
        rows = np.arange(len(changes))
        neighbours[rows, self.variables[changes]] = self.targets(point, changes)
        return neighbours

    def between(self, old: Codes, new: Codes) -> tuple[int, int] | None:
        """The change from old to new and the one back; None if they are not neighbours."""
        different = np.flatnonzero(old != new)
        if len(different) != 1:
            return None
        i = int(different[0])
        values, offset = int(self._cardinalities[i]), int(self._offsets[i])
        step = int(new[i] - old[i]) % values
        return offset + step - 1, offset + values - step - 1


def turned(order: Index, change: int, back: int) -> tuple[Index, Index]:
    """A cyclic order from behind `change` on; the same without `back`, the change that undoes it.

    First improvement continues there after a move: what it has just tried comes last.
    """
    place = int((order == change).argmax()) + 1
    order = np.concatenate([order[place:], order[:place]])
    return order, order[order != back]
