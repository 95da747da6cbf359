"""What an operator is, and what it may use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from anyorder.space import Space
from anyorder.strategies.auto.lists import Lists
from anyorder.strategies.auto.memory import Memory
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Answer, Codes, Index
from anyorder.strategies.models.landscape import Landscape

ATTEMPTS = 5  # to find a point that is new
MORE_CHANGES = 0.33  # chance of each further change of a point, after a first one


class Tools(NamedTuple):
    """What the operators of a portfolio share.

    Attributes
    ----------
    space, rng
        Where to search, and the random numbers of the strategy.
    landscape
        What is known of changes of the best point.
    memory
        Tells whether a point is new.
    uniform
        Draws so many random points.
    vary
        Copies a point so many times, each with so many variables changed at random.
    change
        Copies a point, with these columns changed at random.
    lists
        What is known of moves of lists; None if there are no lists.
    """

    space: Space
    rng: np.random.Generator
    landscape: Landscape
    memory: Memory
    uniform: Callable[[int], Codes]
    vary: Callable[[Codes, int, int], Codes]
    change: Callable[[Codes, Index], Codes]
    lists: Lists | None


class Operator:
    """A way to make a point from the best one. A subclass writes `propose`.

    Attributes
    ----------
    name
        What facts and credit call it.
    prior
        Its share of the evaluations before there is any credit, relative to those of others.
    climbs
        Whether a climb starts at its points, whatever their values are. If not, a point costs one
        evaluation, and is climbed from only if it is not worse than the best.
    interrupts
        Of one that climbs: whether a climb at the best point may be left for it. Others wait until
        a local optimum is found, which in spaces of wide variables can take the whole run.
    moves
        Of one that climbs: whether lists are climbed, too, below the best point.
    held
        Of one that climbs: a variable that the climb must not change, or -1.
    most
        Of one that climbs: after how many evaluations, times n, its climb ends if it is still below
        the best point.
    """

    name: ClassVar[str]
    prior: ClassVar[float]
    climbs: ClassVar[bool] = False
    interrupts: ClassVar[bool] = False
    moves: ClassVar[bool] = False
    most: ClassVar[float] = math.inf
    held: int = -1

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    @classmethod
    def serves(cls, space: Space) -> bool:
        """Return whether there is anything to do in a space."""
        return True

    def weight(self, idle: float) -> float:
        """Return a factor of the prior at present, 0 if the operator is of no use now.

        `idle` is the part of the run since an operator that uses the models improved the best.
        """
        return 1.0

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        raise NotImplementedError

    def answered(self, point: Codes, f: float | None) -> None:
        """Take the value of a point that it proposed; None if it failed, or will never come."""

    def note_data(self, answer: Answer) -> None:
        """Take note of an answer that no operator asked for, before the first climb."""

    def note_violation(self, point: Codes, violation: float) -> None:
        """Take note of a point without a value, and by how much it was refused, if that is known.

        Otherwise `violation` is NaN or inf.
        """

    def note_optimum(self, point: Codes) -> None:
        """Take note of a local optimum that was measured."""

    def facts(self) -> dict[str, Any]:
        """Return what is worth showing about the operator, as JSON values."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return the state, which `restore` takes over."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""

    def first_new(self, draw: Callable[[], Codes | None]) -> Codes | None:
        """Return the first point of a few drawn that is new; None if none is."""
        for _ in range(ATTEMPTS):
            point = draw()
            if point is None or self.tools.memory.is_new(point):
                return point
        return None


class ScalarOperator(Operator):
    """An operator that changes only scalars."""

    @classmethod
    def serves(cls, space: Space) -> bool:
        """Return whether there are variables that are no lists."""
        return sum(group.size for group in space.groups) < len(space)


class ListOperator(Operator):
    """An operator that changes lists.

    Attributes
    ----------
    lists
        What is known of moves of lists.
    columns
        The columns of lists that can change.
    """

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        assert tools.lists is not None  # `serves`
        self.lists: Lists = tools.lists
        columns = [
            np.arange(len(tools.space))[g.columns] for g in tools.space.groups if not g.fixed
        ]
        self.columns: Index = np.concatenate(columns)

    @classmethod
    def serves(cls, space: Space) -> bool:
        """Return whether there are lists that can change."""
        return any(not group.fixed for group in space.groups)
