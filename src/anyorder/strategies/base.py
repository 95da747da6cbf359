"""The protocol of a search strategy, and a base class that does the bookkeeping.

A strategy is the search itself: it proposes points and learns from their answers. It works on
integer codes and maximises. It knows nothing of users' values, workers, files or budgets, which
belong to the session (`anyorder.run`) and to `Optimizer`.

    proposals = strategy.propose(8)           # points, each with a ticket
    strategy.learn([Answer(ticket, ...)])     # the answers of some of them, in any order
    strategy.give_up([ticket])                # these answers will never come

A proposal is identified by its ticket, never by its point: two proposals of the same point are
different proposals.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from numpy.random import BitGenerator, Generator, SeedSequence

from anyorder._internal.checks import integer
from anyorder.archive import Archive
from anyorder.errors import OK
from anyorder.space import Space
from anyorder.space.digits import Digits
from anyorder.space.neighbours import Neighbourhood
from anyorder.strategies.state import State, check_codes, from_state, refusing_damage, to_state

Codes = npt.NDArray[np.int32]
Index = npt.NDArray[np.intp]
Seed = int | SeedSequence | BitGenerator | Generator | None


class Proposals(NamedTuple):
    """Points to evaluate, with a ticket for each row of codes."""

    tickets: Sequence[int]
    codes: Codes  # (count, n)


class Answer(NamedTuple):
    """The outcome of a point.

    Attributes
    ----------
    ticket
        The proposal that is answered; None for a point that the strategy did not propose.
    codes
        The point, `(n,)`.
    value
        Its value, to be maximised; NaN if there is none.
    status
        The status of its evaluation, an index of `anyorder.STATUSES`: "ok", a failure, or
        "rejected" by the constraint. There is a value if and only if it is "ok".
    known
        Whether the answer came from the archive, so that nothing was evaluated.
    violation
        By how much a rejected or infeasible point violates the constraint, above 0; NaN if that is
        not known.
    values
        All values of several objectives, to be maximised; `value` is the first of them. None with
        one objective, or without a value.
    """

    ticket: int | None
    codes: Codes
    value: float
    status: int = OK
    known: bool = False
    violation: float = np.nan
    values: tuple[float, ...] | None = None


@runtime_checkable
class Strategy(Protocol):
    """A search strategy. `Search` is a base class that implements most of the protocol.

    Attributes
    ----------
    name
        The name of the strategy in records and figures.
    batch
        The number of proposals that it prefers at a time. It must accept any number: more if there
        are more workers, one by one if evaluations are asynchronous.
    generation
        A counter of its own progress, such as generations or climbs, which is recorded with
        proposals.
    restarts
        How often it has started again from scratch.
    converged
        Whether it has settled on one point and does not expect to leave it.
    archive
        The archive with all answers of the run, set by the session before the first proposal;
        read-only.
    influence_unit
        What the numbers of `influence` mean, for figures.
    """

    name: str
    batch: int
    generation: int
    restarts: int
    converged: bool
    archive: Archive | None
    influence_unit: str

    def propose(self, count: int, given: Codes | None = None) -> Proposals:
        """Return up to `count` points to evaluate.

        Parameters
        ----------
        count
            The number of points that are wanted. Returning fewer, or none, means that the strategy
            has to wait for answers. If no answer is outstanding, returning none means that it has
            finished, and the run ends: "collapsed" if it has converged, else "exhausted". Returning
            m < count points leaves the strategy as `propose(m)` would; returning none changes
            nothing.
        given
            Points `(m, n)`, m <= count, that others want to be evaluated. They come first, and get
            tickets like any other.
        """

    def learn(self, answers: Sequence[Answer]) -> None:
        """Learn from answers: of proposals, in any order and possibly late, or of other points."""

    def give_up(self, tickets: Sequence[int]) -> None:
        """Forget proposals that will never be answered; unknown tickets are ignored."""

    def state(self) -> State:
        """Return everything that determines future proposals, except the archive, as arrays."""

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned, bit for bit; ValueError if it does not fit."""

    def settings(self) -> dict[str, Any]:
        """Return the settings with which it was made, as JSON values.

        Studies store them, and make a registered strategy again from its name, a seed and these.
        """

    def facts(self) -> dict[str, Any]:
        """Return what is worth showing about the search, as JSON values; nothing is changed."""

    def influence(self, points: int = 10) -> npt.NDArray[np.float64] | None:
        """Return how much variable i moves when variable j changes, `(n, n)`; None if not learned.

        `points` is the number of samples, for strategies that draw samples.
        """


class Search(ABC):
    """A base class for strategies: tickets, random numbers and state.

    A subclass implements `_propose` and `_learn`, and lists in `STATE` the attributes that change
    during a search. With `digits = True` it works on the digits of variables with many values
    (`anyorder.space.digits`): `_cardinalities`, the points that it proposes and the codes of the
    answers that it learns are then those of digits. `anyorder.testing.check_strategy` checks
    whether it follows the protocol.

    Parameters
    ----------
    space : the space to search.
    seed : anything that `numpy.random.default_rng` accepts.
    """

    name: str = "search"
    batch: int = 1
    converged: bool = False
    influence_unit: str = ""
    digits: ClassVar[bool] = False
    # Whether it supports several objectives; otherwise they are refused.
    several: ClassVar[bool] = False
    # The attributes that make up the state; those of base classes are added.
    STATE: ClassVar[tuple[str, ...]] = ("generation", "restarts", "_next_ticket", "_rng")

    def __init__(self, space: Space, seed: Seed = None) -> None:
        if not isinstance(space, Space):
            raise TypeError(f"space is {space!r}, expected a Space")
        self.space = space
        self.archive: Archive | None = None
        self.generation = 0
        self.restarts = 0
        self._next_ticket = 0
        # Proposals, by ticket, that differ from the codes of their points, because the strategy
        # gives absent variables values of its own, or lists an item twice.
        self._as_proposed: dict[int, Codes] = {}
        self._rng = np.random.default_rng(seed)
        self._digits = Digits(space) if self.digits else None
        self._neighbourhood = Neighbourhood(space, self._digits)
        self._cardinalities = self._neighbourhood.cardinalities
        self._free = self._neighbourhood.free  # the columns that can change

    def propose(self, count: int, given: Codes | None = None) -> Proposals:
        """Return up to `count` points; those in `given` come first."""
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
        """Learn from answers."""
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
        """Forget proposals; a strategy that stores none has nothing to do."""

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor, read from the attributes of the same names."""
        found = {}
        names = [n for n in inspect.signature(type(self)).parameters if n not in ("space", "seed")]
        for name in names:
            value = getattr(self, name, None)
            value = value.item() if isinstance(value, np.generic) else value
            if value is None or isinstance(value, bool | int | float | str):
                found[name] = value
        return found

    def facts(self) -> dict[str, Any]:
        """Return {}; a subclass may know facts."""
        return {}

    def influence(self, points: int = 10) -> npt.NDArray[np.float64] | None:
        """Return None: it is not learned which variables interact."""
        return None

    def state(self) -> State:
        """Return the attributes in `STATE`, with the name of the strategy and the space."""
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
        with refusing_damage():
            for name in names:
                check_codes(name, restored[name], self._cardinalities)
                setattr(self, name, restored[name])

    def _kept_names(self) -> list[str]:
        return self._state_names() + ["_as_proposed"] * self.space.redundant

    @classmethod
    def _state_names(cls) -> list[str]:
        listed = [name for base in reversed(cls.__mro__) for name in vars(base).get("STATE", ())]
        return list(dict.fromkeys(listed))

    @abstractmethod
    def _propose(self, count: int) -> Codes:
        """Return 1 to `count` points, (count, n); row k gets the ticket `_next_ticket + k`."""

    @abstractmethod
    def _learn(self, answers: Sequence[Answer]) -> None:
        """Learn from at least one answer; `score` returns a number by which to compare answers."""

    def _canonical(self, codes: Codes, ticket: int) -> Codes:
        """Return proposals with canonical codes; answers will have the codes proposed here."""
        if not self.space.redundant:
            return codes
        canonical = self.space.canonical(codes)
        for k in np.flatnonzero((codes != canonical).any(axis=1)).tolist():
            self._as_proposed[ticket + k] = codes[k].copy()
        return canonical

    def _none(self) -> Codes:
        return np.empty((0, len(self._cardinalities)), dtype=np.int32)

    # Methods of the neighbourhood, called with the random generator of the strategy.

    def _uniform(self, count: int) -> Codes:
        """Return random points."""
        return self._neighbourhood.sample(count, self._rng)

    def _vary(self, points: Codes, rows: Index, variables: Index) -> Codes:
        """Return the points with points[rows, variables], which must be present, changed."""
        return self._neighbourhood.vary(points, rows, variables, self._rng)

    def _mutate(self, point: Codes, count: int, changes: int = 1) -> Codes:
        """Return copies of a point, each with `changes` variables changed, or all that can be."""
        return self._neighbourhood.mutate(point, count, changes, self._rng)


def is_data(answer: Answer) -> bool:
    """Return whether a point was measured before the run, and not proposed or evaluated in it."""
    return answer.ticket is None and answer.known


def score(answer: Answer) -> float:
    """Return a number by which to compare answers: the value, or -inf if there is none.

    A point that violates a constraint by a known amount is in between, but below all finite values
    of functions, so that points are ranked feasible first, then by violation.
    """
    if answer.status == OK:
        return answer.value
    violation = answer.violation
    if not violation < np.inf:  # or it is NaN
        return -np.inf
    return FEASIBLE_ABOVE * (1.0 + violation / (1.0 + violation))


FEASIBLE_ABOVE = -float(np.finfo(np.float64).max) / 2  # scores up to this one mean violations
