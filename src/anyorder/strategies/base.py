"""The protocol of a search strategy, and a base class that does the bookkeeping.

A strategy is what a search *is*: it proposes points and learns from what becomes of them. It works
on integer codes and maximises. It knows nothing of users' values, workers, files or budgets; those
belong to the session (`anyorder.session`) and to `Optimizer`.

    proposals = strategy.propose(8)           # points, each with a ticket
    strategy.learn([Answer(ticket, ...)])     # what became of some of them, in any order
    strategy.give_up([ticket])                # these answers will never come

A proposal is known by its ticket, never by its point: two proposals of the same point are two
proposals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from numpy.random import BitGenerator, Generator, SeedSequence

from anyorder._checks import integer
from anyorder.archive import Archive
from anyorder.errors import OK
from anyorder.space import Space
from anyorder.space.digits import Digits, wide_scales
from anyorder.strategies.state import State, from_state, to_state

Codes = npt.NDArray[np.int32]
Index = npt.NDArray[np.intp]
Seed = int | SeedSequence | BitGenerator | Generator | None


class Proposals(NamedTuple):
    """Points to evaluate: a ticket for each row of codes."""

    tickets: Sequence[int]
    codes: Codes  # (count, n)


class Answer(NamedTuple):
    """What became of a point.

    Attributes
    ----------
    ticket
        The proposal that is answered; None for a point that the strategy did not propose.
    codes
        The point, `(n,)`.
    value
        Its value, to be maximised; NaN where there is none.
    status
        How the evaluation ended, an index of `anyorder.STATUSES`: "ok", a failure, or "rejected"
        by the constraint. There is a value exactly where it is "ok".
    known
        Whether the answer came from the archive, so that nothing was evaluated.
    violation
        Of a point that is refused or infeasible: by how much, above 0; NaN if that is not known.
    """

    ticket: int | None
    codes: Codes
    value: float
    status: int = OK
    known: bool = False
    violation: float = np.nan


@runtime_checkable
class Strategy(Protocol):
    """A search strategy. `Search` is a base class that implements most of it.

    Attributes
    ----------
    name
        What records and figures call it.
    batch
        How many proposals it prefers at a time. It must accept any number: more when there are
        more workers, one by one when evaluations are asynchronous.
    generation
        A counter of its own progress, such as generations or climbs; recorded with each proposal.
    restarts
        How often it has started again from nothing.
    converged
        Whether it has settled on one point and does not expect to leave it.
    archive
        Every answer of the run; set by the session before the first proposal. For reading only.
    """

    name: str
    batch: int
    generation: int
    restarts: int
    converged: bool
    archive: Archive | None

    def propose(self, count: int, given: Codes | None = None) -> Proposals:
        """Up to `count` points to evaluate.

        Parameters
        ----------
        count
            How many are wanted. Fewer, or none, mean that the strategy has to wait for answers; if
            no answer is outstanding, none means that it has finished. Returning m < count points
            leaves the strategy as `propose(m)` would; returning none changes nothing.
        given
            Points `(m, n)`, m <= count, that others want evaluated. They come first, and get
            tickets like any other.
        """

    def learn(self, answers: Sequence[Answer]) -> None:
        """Take note of answers: of proposals in any order, late as well, or of other points."""

    def give_up(self, tickets: Sequence[int]) -> None:
        """These proposals will never be answered. Tickets that are unknown are ignored."""

    def state(self) -> State:
        """Everything that determines future proposals, as arrays; the archive is not part of it."""

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue where `state` was taken, bit for bit; ValueError if it does not fit."""

    def facts(self) -> dict[str, Any]:
        """What is worth showing about the search, as JSON values. It changes nothing."""


class Search(ABC):
    """A base class for strategies: tickets, random numbers and state.

    A subclass writes `_propose` and `_learn`, and lists in `STATE` the attributes that change
    during a search. With `digits = True` it works on the digits of variables with many values
    (`anyorder.space.digits`): `_cardinalities`, the points it proposes and the codes of the answers
    it learns are those of digits. `anyorder.testing.check_strategy` tells whether it keeps the
    protocol.

    Parameters
    ----------
    space : where to search.
    seed : whatever `numpy.random.default_rng` takes.
    """

    name: str = "search"
    batch: int = 1
    converged: bool = False
    digits: ClassVar[bool] = False
    # The attributes of a class that make up its state; those of its bases are added.
    STATE: ClassVar[tuple[str, ...]] = ("generation", "restarts", "_next_ticket", "_rng")

    def __init__(self, space: Space, seed: Seed = None) -> None:
        if not isinstance(space, Space):
            raise TypeError(f"space is {space!r}, expected a Space")
        self.space = space
        self.archive: Archive | None = None
        self.generation = 0
        self.restarts = 0
        self._next_ticket = 0
        # By ticket: proposals of a strategy that are not the codes of points, because it gives
        # absent variables values of its own, or lists an item twice.
        self._as_proposed: dict[int, Codes] = {}
        self._rng = np.random.default_rng(seed)
        self._digits = Digits(space) if self.digits else None
        # The variables that are stepped through near and far, by index.
        self._scales = {} if self.digits else wide_scales(space)
        # int64: sums of a code and a step must not overflow.
        self._cardinalities = (self._digits or space).cardinalities.astype(np.int64)
        # The groups of lists, by their columns in the codes that the strategy works on.
        self._groups = space.groups
        if self._digits is not None and space.groups:
            first = np.searchsorted(self._digits.owner, np.arange(len(space))).tolist()
            self._groups = tuple(replace(g, first=first[g.first]) for g in space.groups)
        self._group_of = np.full(len(self._cardinalities), -1)
        can_change = self._cardinalities > 1
        for k, group in enumerate(self._groups):
            self._group_of[group.columns] = k
            can_change[group.columns] &= not group.fixed
        self._free = np.flatnonzero(can_change)  # the variables that can change

    def propose(self, count: int, given: Codes | None = None) -> Proposals:
        """Up to `count` points, those in `given` first."""
        first, extra = self._next_ticket, 0 if given is None else len(given)
        self._next_ticket += extra
        codes = self._propose(count - extra) if count > extra else self._none()
        self._next_ticket = first + extra + len(codes)
        if self._digits is not None:
            codes = self._digits.join(codes)
        codes = self._canonical(codes, first + extra)
        if given is not None and extra:
            codes = np.concatenate([np.asarray(given, np.int32), codes])
        return Proposals(range(first, first + len(codes)), codes)

    def learn(self, answers: Sequence[Answer]) -> None:
        """Take note of answers."""
        if self._as_proposed:
            answers = [
                answer._replace(codes=self._as_proposed.pop(answer.ticket, answer.codes))
                if answer.ticket is not None
                else answer
                for answer in answers
            ]
        if self._digits is not None and self._digits.split_any and answers:
            digits = self._digits.split(np.stack([answer.codes for answer in answers]))
            answers = [
                answer._replace(codes=row) for answer, row in zip(answers, digits, strict=True)
            ]
        if answers:
            self._learn(answers)

    def give_up(self, tickets: Sequence[int]) -> None:  # noqa: B027  # a hook
        """Forget proposals; a strategy that keeps none has nothing to do."""

    def facts(self) -> dict[str, Any]:
        """Nothing, unless a subclass knows something."""
        return {}

    def state(self) -> State:
        """The attributes in `STATE`, and what they belong to: the strategy and the space."""
        kept = {name: getattr(self, name) for name in self._kept_names()}
        return to_state({"name": self.name, "cardinalities": self._cardinalities, **kept})

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Set the attributes in `STATE`."""
        names = self._kept_names()
        expected = {name: getattr(self, name) for name in names}
        restored = from_state(
            state, {"name": self.name, "cardinalities": self._cardinalities, **expected}
        )
        if restored["name"] != self.name:
            raise ValueError(f"the state is of {restored['name']!r}, expected {self.name!r}")
        if not np.array_equal(restored["cardinalities"], self._cardinalities):
            raise ValueError(
                "the state is of another space, expected one of the same cardinalities"
            )
        for name in ("generation", "restarts", "_next_ticket"):
            integer(name, restored[name], 0, 2**62)
        for name in names:
            setattr(self, name, restored[name])

    def _kept_names(self) -> list[str]:
        return self._state_names() + ["_as_proposed"] * self.space.redundant

    @classmethod
    def _state_names(cls) -> list[str]:
        listed = [name for base in reversed(cls.__mro__) for name in vars(base).get("STATE", ())]
        return list(dict.fromkeys(listed))

    @abstractmethod
    def _propose(self, count: int) -> Codes:
        """Up to `count` points, (count, n), at least 1; row k gets ticket `_next_ticket + k`."""

    @abstractmethod
    def _learn(self, answers: Sequence[Answer]) -> None:
        """Take note of at least one answer. `score` gives a number to compare by."""

    def _canonical(self, codes: Codes, ticket: int) -> Codes:
        """Proposals with canonical codes; answers will have those that were proposed."""
        if not self.space.redundant:
            return codes
        canonical = self.space.canonical(codes)
        for k in np.flatnonzero((codes != canonical).any(axis=1)).tolist():
            self._as_proposed[ticket + k] = codes[k].copy()
        return canonical

    def _none(self) -> Codes:
        return np.empty((0, len(self._cardinalities)), dtype=np.int32)

    def _uniform(self, count: int) -> Codes:
        shape = (count, len(self._cardinalities))
        points = self._rng.integers(self._cardinalities, size=shape, dtype=np.int32)
        for j, scale in self._scales.items():
            if scale.log:
                points[:, j] = scale.codes(self._rng.integers(scale.positions, size=count))
        for group in self._groups:
            points[:, group.columns] = group.uniform(count, self._rng)
        return self._completed(points, np.ones(shape, np.bool_))

    def _any_values(self, variable: int, count: int) -> Index:
        """Uniform values of a variable of the space."""
        scale = self._scales.get(variable)
        if scale is not None and scale.log:
            return scale.codes(self._rng.integers(scale.positions, size=count))
        return self._rng.integers(int(self.space.cardinalities[variable]), size=count)

    def _present(self, points: Codes) -> npt.NDArray[np.bool_]:
        """Which variables the points have, or digits of them."""
        if not self.space.conditional:
            return np.ones(points.shape, np.bool_)
        if self._digits is None:
            return self.space.present(points)
        return self.space.present(self._digits.join(points))[:, self._digits.owner]

    def _completed(
        self,
        points: Codes,
        own: npt.NDArray[np.bool_] | None,
        kept: npt.NDArray[np.bool_] | None = None,
    ) -> Codes:
        """Points with any value for variables that are present and have none of their `own`.

        Without `own` they have all. Lists that are no values of their variables are repaired; the
        columns that are `kept` change only if nothing else can.
        """
        if self._groups:
            points = points.copy()
        for group in self._groups:
            fixed = None if kept is None else kept[group.columns]
            points[:, group.columns] = group.repaired(points[:, group.columns], self._rng, fixed)
        if own is None or not self.space.conditional:
            return points
        if self._digits is None:
            return self.space.completed(points, own, self._any_values)
        first = np.searchsorted(self._digits.owner, np.arange(len(self.space)))
        codes = self._digits.join(points)
        return self._digits.split(self.space.completed(codes, own[:, first], self._any_values))

    def _settled(self, points: Codes, origin: Codes) -> Codes:
        """Changed copies of a point, with any value for the variables that it did not have."""
        if not self.space.conditional:
            return points
        own = np.broadcast_to(self._present(origin[None]), points.shape)
        return self._completed(points, own)

    def _marked(self, points: Codes) -> Codes:
        """Points in which absent variables have one more value, for models of them."""
        if not self.space.conditional:
            return points
        return np.where(self._present(points), points, self._cardinalities).astype(np.int32)

    def _changeable(self, point: Codes) -> Index:
        """The variables that a point has and that can change."""
        if not self.space.conditional:
            return self._free
        here: Index = self._free[self._present(point[None])[0, self._free]]
        return here

    def _vary(self, points: Codes, rows: Index, variables: Index) -> Codes:
        """Copies of points with points[rows, variables], which must be present, changed.

        All other values are equally likely. Of a wide variable all orders of magnitude of the step
        are: near and far. Variables that are present after a change and were not get any value. In
        a list, a random move that involves this place is made.
        """
        before = self._present(points) if self.space.conditional else None
        if self._groups:
            listed = self._group_of[variables] >= 0
            for row, column in zip(rows[listed].tolist(), variables[listed].tolist(), strict=True):
                group = self._groups[self._group_of[column]]
                group.move(points[row, group.columns], column - group.first, self._rng)
            rows, variables = rows[~listed], variables[~listed]
        values = self._cardinalities[variables]
        old = points[rows, variables].astype(np.int64)
        steps = 1 + (self._rng.random(len(values)) * (values - 1)).astype(np.int64)
        new = (old + steps) % values
        for j, scale in self._scales.items():
            here = np.flatnonzero(variables == j)
            if len(here):
                sizes = (scale.length / 2) ** self._rng.random(len(here))
                signs = self._rng.choice((-1, 1), len(here))
                new[here] = scale.moved(old[here], signs * sizes.astype(np.int64))
        points[rows, variables] = new
        return self._completed(points, before)

    def _varied(self, point: Codes, count: int, changes: int = 1) -> Codes:
        """Copies of a point, each with that many variables changed, or all that can be."""
        points, free = np.tile(point, (count, 1)), self._changeable(point)
        changes = min(changes, len(free))
        if not changes:
            return points
        if changes == 1:
            variables = free[self._rng.integers(len(free), size=count)]
        else:
            drawn = [self._rng.choice(free, changes, replace=False) for _ in range(count)]
            variables = drawn[0] if count == 1 else np.concatenate(drawn)
        return self._vary(points, np.repeat(np.arange(count), changes), variables)


def is_data(answer: Answer) -> bool:
    """Whether this was measured before the run: not proposed, and not evaluated in it."""
    return answer.ticket is None and answer.known


def score(answer: Answer) -> float:
    """A number to compare by: the value of an answer, and -inf where there is none.

    A point that violates a constraint by a known amount is in between, below all finite values that
    functions have, so that points are ranked feasible first, then by violation.
    """
    if answer.status == OK:
        return answer.value
    violation = answer.violation
    if not violation < np.inf:  # or NaN
        return -np.inf
    return FEASIBLE_ABOVE * (1.0 + violation / (1.0 + violation))


FEASIBLE_ABOVE = -float(np.finfo(np.float64).max) / 2  # scores from here down are of violations
