"""Tabu search.

Glover, "Tabu search, part I", ORSA Journal on Computing 1 (1989). For tabu attributes of variables
with several values see Hertz and de Werra, "Using tabu search techniques for graph coloring",
Computing 39 (1987); for the tenure, Palubeckis, "Multistart tabu search strategies for the
unconstrained binary quadratic optimization problem", Annals of Operations Research 131 (2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from anyorder._internal.checks import integer
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Index, Search, Seed, score


class TabuSearch(Search):
    """Moves to the best neighbour, even if it is worse, but not back to recently left values.

    Neighbours differ in one variable; if it has many ordered values, some near and far ones are
    neighbours. All of them are evaluated, in a random order; with n binary variables a move costs n
    evaluations. The search then moves to the best neighbour, the first of equals, that does not
    give a variable a value which it has left in the last `tenure` moves. A tabu neighbour is
    allowed if it is better than every point that the search has visited (aspiration). If all
    neighbours are tabu, the one whose tenure ends first is taken.

    `propose(k)` returns the next k neighbours, followed by random points if there are fewer. When
    all neighbours have been proposed, the next proposal makes a move to the best neighbour answered
    so far; if none was answered, all are proposed again. Other points, and neighbours of an earlier
    point, are ignored unless they are better than every visited point: the search moves to such a
    point at once.

    Parameters
    ----------
    space, seed
        See `Search`.
    tenure
        The number of moves for which a value remains tabu. The default is n/4, at least 1 and at
        most 20, where n is the number of variables with more than one value: Palubeckis' choice for
        QUBO.

    Attributes
    ----------
    generation
        The number of moves.
    """

    name = "tabu"
    STATE: ClassVar[tuple[str, ...]] = (
        "_point", "_record", "_untried", "_proposed", "_answered", "_reached", "_free_at",
    )  # fmt: skip

    def __init__(self, space: Space, seed: Seed = None, tenure: int | None = None) -> None:
        super().__init__(space, seed)
        self._changes = self._neighbourhood.changes
        if tenure is None:
            tenure = min(20, max(1, len(self._free) // 4))
        self.tenure = integer("tenure", tenure, 1)
        self._point: Codes | None = None
        self._record = -np.inf  # the best value of the visited points
        self._untried = np.empty(0, dtype=np.int64)
        self._proposed: dict[int, int] = {}  # changes by ticket; neighbours of the current point
        self._answered: dict[int, float] = {}  # values by change
        self._reached: dict[int, Codes] = {}  # the evaluated points by change
        # The move from which on variable i may take value v again, at _first[i] + v.
        self._first = np.cumsum(self._cardinalities) - self._cardinalities
        self._free_at: dict[int, int] = {}

    def give_up(self, tickets: Sequence[int]) -> None:
        """Forget neighbours that will not be answered."""
        for ticket in tickets:
            self._proposed.pop(ticket, None)

    def _propose(self, count: int) -> Codes:
        if self._point is None:
            return self._uniform(count)
        if not len(self._untried):
            self._move()
        changes, self._untried = self._untried[:count], self._untried[count:]
        self._proposed.update(enumerate(changes.tolist(), self._next_ticket))
        neighbours = self._neighbourhood.neighbours(self._point, changes, self._rng)
        if len(changes) < count:
            neighbours = np.concatenate([neighbours, self._uniform(count - len(changes))])
        return neighbours

    def _learn(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            value = score(answer)
            change = None if answer.ticket is None else self._proposed.pop(answer.ticket, None)
            if change is not None:
                self._answered[change] = value
                self._reached[change] = answer.codes.copy()
            elif self._point is None or value > self._record:
                self._go(answer.codes, value)

    def _move(self) -> None:
        """Move to the best allowed neighbour; if none was answered, propose all of them again."""
        point = self._point
        if point is None or not self._answered:
            if point is not None:
                self._untried = self._neighbours(point)
            return
        changes = np.fromiter(self._answered, dtype=np.int64)
        values = np.fromiter(self._answered.values(), dtype=np.float64)
        variables = self._changes.variables[changes]
        targets = self._first[variables] + self._changes.targets(point, changes)
        free_at = np.array([self._free_at.get(target, 0) for target in targets.tolist()])
        allowed = np.flatnonzero((free_at <= self.generation) | (values > self._record))
        if not len(allowed):
            allowed = np.flatnonzero(free_at == free_at.min())
        chosen = allowed[values[allowed].argmax()]
        self._go(self._reached[int(changes[chosen])], float(values[chosen]))

    def _go(self, point: Codes, value: float) -> None:
        self.generation += 1
        if self._point is not None:
            now, left = self.generation, np.flatnonzero(point != self._point)
            self._free_at = {key: at for key, at in self._free_at.items() if at > now}
            tabu = (self._first[left] + self._point[left]).tolist()
            self._free_at.update(dict.fromkeys(tabu, now + self.tenure))
        self._point = point.copy()
        self._record = max(self._record, value)
        self._proposed.clear()
        self._answered.clear()
        self._reached.clear()
        self._untried = self._neighbours(point)

    def _neighbours(self, point: Codes) -> Index:
        return self._neighbourhood.distinct(point, self._changes.shuffle(self._rng))
