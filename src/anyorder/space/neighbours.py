"""The neighbourhood: small changes of a point, for all kinds of variables.

Strategies, repairs of constraints and models all make small changes of points. What a small change
is, is defined here, once:

    single values   another value; for variables with many ordered values, a value near or far on
                    their scale (`digits.py`), so that all orders of magnitude are tried equally
    lists           the moves and exchanges of their kind (`groups.py`)
    conditions      variables that become present get a random value, absent ones lose theirs

There are three ways to use it: random changes (`vary`, `mutate`) are for mutations; numbered
changes (`changes`) are for local search, which tries all of them in its own order; and changes to
given values (`give`) are for repairs.

Other libraries place this elsewhere. In Nevergrad every parameter mutates itself, and containers
pass the request on: a new kind is one class, but points are trees of objects that are copied, and
there is no list of neighbours. In ConfigSpace hyperparameters return their neighbours, but a
function over the whole space checks their types, and conditions by trial. In pymoo operators
(sampling, mutation, repair) are looked up by the type of variable, for matrices of one type at a
time. Here points are rows of one integer matrix, as fast loops require; kinds of columns are
objects that work on their columns of it, as in Nevergrad; and this class handles what concerns
whole points, above all conditions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from anyorder.space.changes import Changes
from anyorder.space.digits import Digits, wide_scales
from anyorder.space.groups import Bools, Codes, Index
from anyorder.space.space import Space


class Neighbourhood:
    """Random points of a space, and the points near a given point.

    Points are rows of codes `(count, n)`, or of digits if these are given. Random numbers are drawn
    from the generator that is passed to each method.

    Parameters
    ----------
    space
        The space.
    digits
        The digits of the space, for strategies that work on digits.

    Attributes
    ----------
    cardinalities
        The number of values of each column, as int64: sums of a code and a step must not overflow.
    groups
        The columns of lists.
    scales
        The scales of variables that are changed by small and large steps, by column.
    free
        The columns that can change.
    """

    def __init__(self, space: Space, digits: Digits | None = None) -> None:
        self.space = space
        self._digits = digits
        self.scales = {} if digits is not None else wide_scales(space)
        self.cardinalities = (digits or space).cardinalities.astype(np.int64)
        self.groups = space.groups
        if digits is not None and space.groups:
            first = np.searchsorted(digits.owner, np.arange(len(space))).tolist()
            self.groups = tuple(replace(g, first=first[g.first]) for g in space.groups)
        self._group_of = np.full(len(self.cardinalities), -1)
        can_change = self.cardinalities > 1
        for k, group in enumerate(self.groups):
            self._group_of[group.columns] = k
            can_change[group.columns] &= not group.fixed
        self.free: Index = np.flatnonzero(can_change)

    @cached_property
    def changes(self) -> Changes:
        """All small changes, with numbers; raises a ValueError if memory cannot hold them."""
        return Changes(self.cardinalities, self.scales, self.groups)

    # --- random points and changes --------------------------------------------------------------

    def sample(self, count: int, rng: Generator) -> Codes:
        """Return random points, uniform on the scale of each variable."""
        shape = (count, len(self.cardinalities))
        points = rng.integers(self.cardinalities, size=shape, dtype=np.int32)
        for j, scale in self.scales.items():
            if scale.log:
                points[:, j] = scale.codes(rng.integers(scale.positions, size=count))
        for group in self.groups:
            points[:, group.columns] = group.uniform(count, rng)
        return self.complete(points, np.ones(shape, np.bool_), rng)

    def vary(self, points: Codes, rows: Index, variables: Index, rng: Generator) -> Codes:
        """Return `points` with the given entries, which must be present, changed in place.

        All other values are equally likely; for a wide variable all orders of magnitude of the step
        are. Variables that become present by a change get a random value. In a list, a random move
        that involves the column is made.
        """
        before = self.present(points) if self.space.conditional else None
        if self.groups:
            listed = self._group_of[variables] >= 0
            for row, column in zip(rows[listed].tolist(), variables[listed].tolist(), strict=True):
                group = self.groups[self._group_of[column]]
                group.move(points[row, group.columns], column - group.first, rng)
            rows, variables = rows[~listed], variables[~listed]
        old = points[rows, variables].astype(np.int64)
        new = self.other_values(old, variables, rng)
        for j, scale in self.scales.items():
            here = np.flatnonzero(variables == j)
            if len(here):
                sizes = (scale.length / 2) ** rng.random(len(here))
                signs = rng.choice((-1, 1), len(here))
                new[here] = scale.move(old[here], signs * sizes.astype(np.int64))
        points[rows, variables] = new
        return self.complete(points, before, rng)

    def mutate(self, point: Codes, count: int, changes: int, rng: Generator) -> Codes:
        """Return copies of a point, each with `changes` variables changed, or all that can."""
        points, free = np.tile(point, (count, 1)), self.changeable(point)
        changes = min(changes, len(free))
        if not changes:
            return points
        if changes == 1:
            variables = free[rng.integers(len(free), size=count)]
        else:
            drawn = [rng.choice(free, changes, replace=False) for _ in range(count)]
            variables = drawn[0] if count == 1 else np.concatenate(drawn)
        return self.vary(points, np.repeat(np.arange(count), changes), variables, rng)

    def other_values(
        self, codes: NDArray[np.integer], columns: Index, rng: Generator
    ) -> NDArray[np.int64]:
        """Return another code of a column for each code, all equally likely."""
        values = self.cardinalities[columns]
        steps = 1 + (rng.random(len(columns)) * (values - 1)).astype(np.int64)
        found: NDArray[np.int64] = (codes + steps) % values
        return found

    # --- changes that are asked for -------------------------------------------------------------

    def give(
        self,
        point: Codes,
        columns: Iterable[int],
        values: Iterable[int],
        rng: Generator,
        goal: Codes | None = None,
    ) -> Codes:
        """Return a point with the given values in some columns; lists stay valid.

        With a `goal`, a point to approach, lists change where they differ from it.
        """
        point = point.copy()
        for i, value in zip(columns, values, strict=True):
            if self._group_of[i] < 0:
                point[i] = value
                continue
            group = self.groups[self._group_of[i]]
            near = None if goal is None else goal[group.columns]
            group.give(point[group.columns], i - group.first, value, rng, near)
        return point

    def neighbours(self, point: Codes, changes: Index, rng: Generator) -> Codes:
        """Return the points that numbered changes lead to; new variables get random values."""
        return self.settle(self.changes.apply(point, changes), point, rng)

    def distinct(self, point: Codes, changes: Index) -> Index:
        """Return the changes that lead to a neighbour which no earlier change leads to."""
        changeable = self.changeable(point) if self.space.conditional else None
        return self.changes.distinct(point, changes, changeable)

    # --- conditions -----------------------------------------------------------------------------

    def present(self, points: Codes) -> Bools:
        """Return which variables, or their digits, are present in the points."""
        if not self.space.conditional:
            return np.ones(points.shape, np.bool_)
        if self._digits is None:
            return self.space.present(points)
        return self.space.present(self._digits.join(points))[:, self._digits.owner]

    def changeable(self, point: Codes) -> Index:
        """Return the columns that are present in a point and can change."""
        if not self.space.conditional:
            return self.free
        here: Index = self.free[self.present(point[None])[0, self.free]]
        return here

    def complete(
        self, points: Codes, own: Bools | None, rng: Generator, kept: Bools | None = None
    ) -> Codes:
        """Return points in which present variables without a value of their `own` get a random one.

        Without `own` they all have one. Lists that are no values of their variables are repaired;
        the columns that are `kept` change only if nothing else can.
        """
        if self.groups:
            points = points.copy()
        for group in self.groups:
            fixed = None if kept is None else kept[group.columns]
            points[:, group.columns] = group.repair(points[:, group.columns], rng, fixed)
        if own is None or not self.space.conditional:
            return points

        def draw(variable: int, count: int) -> NDArray[np.int64]:
            scale = self.scales.get(variable)
            if scale is not None and scale.log:
                return scale.codes(rng.integers(scale.positions, size=count))
            return rng.integers(int(self.space.cardinalities[variable]), size=count)

        if self._digits is None:
            return self.space.complete(points, own, draw)
        first = np.searchsorted(self._digits.owner, np.arange(len(self.space)))
        codes = self._digits.join(points)
        return self._digits.split(self.space.complete(codes, own[:, first], draw))

    def settle(self, points: Codes, origin: Codes, rng: Generator) -> Codes:
        """Return changed copies of a point, with random values for variables that it lacked."""
        if not self.space.conditional:
            return points
        own = np.broadcast_to(self.present(origin[None]), points.shape)
        return self.complete(points, own, rng)

    def mark_absent(self, points: Codes) -> Codes:
        """Return points in which absent variables have an additional value, for models."""
        if not self.space.conditional:
            return points
        return np.where(self.present(points), points, self.cardinalities).astype(np.int32)
