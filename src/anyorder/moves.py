"""Changes of a point that keep its lists valid: what repairs are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.random import Generator

from anyorder.archive import Codes
from anyorder.effects import Effects
from anyorder.samples import FEW
from anyorder.space import Space
from anyorder.space.groups import Group


class Moves:
    """The changes of points of a space.

    Attributes
    ----------
    cards
        The number of values of each column.
    free
        The columns that can change.
    wide
        Which columns are ordered and have many values.
    """

    def __init__(self, space: Space) -> None:
        self.cards = space.cardinalities.astype(np.int64)
        can_change = self.cards > 1
        self._group_of: dict[int, Group] = {}  # by column, of lists
        for group in space.groups:
            can_change[group.columns] &= not group.fixed
            self._group_of |= dict.fromkeys(range(len(self.cards))[group.columns], group)
        self.free = np.flatnonzero(can_change)
        ordered = np.array([variable.ordered for variable in space.columns], np.bool_)
        self.wide = ordered & (self.cards > FEW)

    def each(
        self, codes: Codes, effects: Effects | None, rng: Generator
    ) -> Iterator[tuple[int, int]]:
        """A change of each variable: in random order, or those that promise most first."""
        known = None if effects is None else effects.changes(codes)
        order = rng.permutation(self.free)
        if known is None:
            targets = self._others(codes, order, rng)
        else:
            order = order[np.argsort(-known[1][order], kind="stable")]
            targets = known[0][order]
        return zip(order.tolist(), targets.tolist(), strict=True)

    def given(
        self,
        codes: Codes,
        columns: list[int],
        values: Iterable[int],
        rng: Generator,
        goal: Codes | None = None,
    ) -> Codes:
        """The point with other values in some columns; lists stay valid, see `Group.give`."""
        point = codes.copy()
        for i, value in zip(columns, values, strict=True):
            if (group := self._group_of.get(i)) is None:
                point[i] = value
                continue
            near = None if goal is None else goal[group.columns]
            group.give(point[group.columns], i - group.first, value, rng, near)
        return point

    def random(self, codes: Codes, changes: int, rng: Generator) -> Codes:
        """The point with so many random changes."""
        which = rng.choice(self.free, changes, replace=False)
        return self.given(codes, which.tolist(), self._others(codes, which, rng), rng)

    def _others(self, codes: Codes, columns: Codes, rng: Generator) -> Codes:
        """Other values of some columns."""
        values = self.cards[columns]
        steps = 1 + (rng.random(len(columns)) * (values - 1)).astype(np.int64)
        others: Codes = (codes[columns] + steps) % values
        return others
