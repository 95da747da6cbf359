"""The base class of operators, and the tools that operators share."""

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

ATTEMPTS = 5  # points that an operator draws to find a new one
MORE_CHANGES = 0.33  # the chance of a further change, after each change that a mutation makes


class Tools(NamedTuple):
    """The tools that the operators of a portfolio share.

    Attributes
    ----------
    space, rng
        The search space, and the generator of the strategy.
    landscape
        The models, which predict the gains of changes.
    memory
        The points that are known or being evaluated.
    uniform
        `uniform(count)` returns so many random points.
    vary
        `vary(point, count, changes)` returns so many copies of a point, each with so many variables
        changed at random.
    change
        `change(point, columns)` returns a copy of a point with these columns changed at random.
    lists
        The moves and the model of lists; None if there are no lists.
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
    """A way to make a point from the best point. A subclass defines `propose`.

    Attributes
    ----------
    name
        The name of the operator in facts and credit.
    prior
        The share of the evaluations at first, relative to the priors of other operators.
    climbs
        Whether a climb starts at each point of the operator, whatever its value is. If not, the
        point is a trial: it costs one evaluation, and a climb starts there only if it is not worse
        than the best point.
    interrupts
        Only if `climbs`: whether the operator may interrupt a climb at the best point. Other
        operators are used after its local optimum is found, which can take the whole run if
        variables have many values.
    moves
        Only if `climbs`: whether a climb below the best point also makes moves of lists.
    held
        Only if `climbs`: a variable that the climb does not change, or -1.
    most
        Only if `climbs`: a climb that is still below the best point ends after so many evaluations,
        times n.
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
        """Return whether the operator is of use in a space."""
        return True

    def weight(self, idle: float) -> float:
        """Return the present factor of the prior, 0 if the operator is of no use now.

        `idle` is the part of the run since the best value was last improved, except by explorers.
        """
        return 1.0

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        raise NotImplementedError

    def answered(self, point: Codes, f: float | None) -> None:
        """Learn the value of a point of this operator; None if it failed, or will never come."""

    def note_data(self, answer: Answer) -> None:
        """Learn an answer before the first climb whose point no operator proposed."""

    def note_violation(self, point: Codes, violation: float) -> None:
        """Learn a point without a value, and how much it violates the constraint.

        `violation` is NaN or inf if that is not known.
        """

    def note_optimum(self, point: Codes) -> None:
        """Learn a local optimum that was measured."""

    def facts(self) -> dict[str, Any]:
        """Return facts about the operator to show to users, as JSON values."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""

    def first_new(self, draw: Callable[[], Codes | None]) -> Codes | None:
        """Return the first new point of a few that `draw` returns; None if none is new."""
        for _ in range(ATTEMPTS):
            point = draw()
            if point is None or self.tools.memory.is_new(point):
                return point
        return None


class ScalarOperator(Operator):
    """An operator that changes only scalars."""

    @classmethod
    def serves(cls, space: Space) -> bool:
        """Return whether the space has scalars, which are variables other than lists."""
        return sum(group.size for group in space.groups) < len(space)


class ListOperator(Operator):
    """An operator that changes lists.

    Attributes
    ----------
    lists
        The moves and the model of lists.
    columns
        The columns of the lists that can change.
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
        """Return whether the space has lists that can change."""
        return any(not group.fixed for group in space.groups)
