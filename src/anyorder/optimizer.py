"""Ask and tell: a strategy together with the archive of what was evaluated."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import choice, function, integer, numbers, optional, suggesting_names
from anyorder._optimizer_state import arrays_of, header_of, read_header, rebuild, refusing_damage
from anyorder.archive.candidate import Candidate, Queues
from anyorder.archive.front import Front
from anyorder.archive.history import check_names
from anyorder.archive.knowledge import as_batch, read_data
from anyorder.archive.notes import notes_of, split_all
from anyorder.archive.objectives import read_objectives
from anyorder.errors import FAILED, INFEASIBLE, OK, ON_FAILURE, STATUSES, Infeasible
from anyorder.proposer import IDLE_BATCHES, IDLE_CANDIDATES, SAME_BATCHES, SAME_CANDIDATES, Proposer
from anyorder.space import Space
from anyorder.strategies.base import Codes
from anyorder.strategies.create import Algorithm, create
from anyorder.strategies.registry import find

NO_BEST = "several objectives have no best point, but a front of them: use `front`"
KNOWN = ("answer", "give")  # what `ask` does with points that the archive knows


class Optimizer:
    """A search as ask and tell.

    `ask` gives candidates to evaluate; `tell` takes their values, any number at a time and in any
    order. The same calls with the same seed give the same candidates, with any number of threads.
    Not to be used from several threads at once.

    Parameters
    ----------
    space
        Where to search.
    seed
        An integer from 0 to 2**64 - 1; None draws one (see `.seed`).
    algorithm
        As in `maximize`.
    direction
        "maximize" or "minimize".
    deterministic
        False: values are noisy. Repeated ones are averaged, and the best is the one with the best
        mean.
    constraint
        Says which points `ask` may give; see `maximize`.
    data
        What is known already, as in `maximize`; a study as `anyorder.load(path)`.
    directions, objectives, reference
        Several objectives, as in `optimize`; `direction` is left out then. `tell` takes a tuple, or
        a dict, for each point.
    """

    @suggesting_names
    def __init__(
        self,
        space: Space,
        seed: int | None = None,
        *,
        algorithm: Algorithm | None = None,
        direction: str = "maximize",
        deterministic: bool = True,
        constraint: Callable[[Any], Any] | None = None,
        data: Any = None,
        directions: Sequence[str] | None = None,
        objectives: Mapping[str, str] | None = None,
        reference: Any = None,
    ) -> None:
        if not isinstance(space, Space):
            raise TypeError(f"space is {space!r}, expected a Space")
        seed = secrets.randbits(32) if seed is None else integer("seed", seed, 0, 2**64 - 1)
        choice("direction", direction, ("maximize", "minimize"))
        several = read_objectives(directions, objectives, reference)
        if several is not None:
            check_names(several, space)
            if direction != "maximize":
                raise ValueError(
                    f"direction is {direction!r}, which one objective has: several have "
                    "directions= or objectives= alone"
                )
        known = None if data is None else read_data(data, space, several)
        strategy = create(algorithm, space, seed, several=several is not None)
        optional(function)("constraint", constraint)
        proposer = Proposer(space, seed, strategy, direction, deterministic, constraint, several)
        if known is not None:
            proposer.learn_data(known)
        self._begin(proposer)

    def _begin(self, proposer: Proposer, asked: Queues | None = None) -> None:
        self._proposer, archive = proposer, proposer.archive
        self.space, self.seed, self.strategy = proposer.space, proposer.seed, proposer.strategy
        self.archive, self.feasibility = archive, proposer.feasibility
        self.direction, self.objectives = archive.direction, archive.objectives
        # Asked and not told; those that are `known` were not given, and wait for the same point.
        self._open: Queues = asked or {}
        self._elsewhere: set[bytes] = set()
        with refusing_damage("the state"):
            self._stop_waiting(list(self._open))  # for others, who are not part of the state

    # --- what can be seen -----------------------------------------------------------------------

    @property
    def best(self) -> Any:
        """The best candidate told so far, the first of equals; None before any.

        With `deterministic=False` the one with the best lower bound of its mean.
        """
        self.refuse_best()
        point = self.archive.answer().point
        return None if point < 0 else self.space.one(self.archive.codes_of(np.array([point]))[0])

    @property
    def best_value(self) -> float:
        """The value of the best candidate, or its mean; the worst infinity before any."""
        self.refuse_best()
        return self.archive.answer().value

    @property
    def front(self) -> Front:
        """The points that no other is better than in every objective, with their values."""
        return Front(self.archive)

    def refuse_best(self) -> None:
        """Raise an AttributeError if there are several objectives: they have no best point."""
        if self.objectives is not None:
            raise AttributeError(NO_BEST)

    @property
    def told(self) -> int:
        """How many answers there have been, those from the archive included."""
        return len(self.archive)

    @property
    def generation(self) -> int:
        """The strategy's own count of its progress; for the policy, how often it has trained."""
        return self.strategy.generation

    @property
    def restarts(self) -> tuple[int, ...]:
        """After how many told values the strategy was restarted, each time."""
        return tuple(self.archive.restarts)

    def facts(self) -> dict[str, Any]:
        """Return what the strategy says about its search."""
        return self.strategy.facts()

    def influence(self, points: int = 10) -> npt.NDArray[np.float64]:
        """Return how much variable i moves when variable j changes, as the strategy learned it.

        Of the policy, i's probabilities (`anyorder.policy.PolicySearch.influence`); of `auto`
        and `delta`, the gain of changing i (`anyorder.strategies.DeltaSearch.influence`).
        """
        learned = self.strategy.influence(points)
        if learned is None:
            raise ValueError(f"{self.strategy.name!r} does not learn which variables interact")
        return learned

    # --- ask and tell ---------------------------------------------------------------------------

    def ask(self, n: int | None = None, *, known: str | None = None) -> Any:
        """Return candidates to evaluate: as many as the strategy prefers, or any number `n`.

        A list of dicts for a named space, else an integer matrix with a row per candidate. Asking
        again before telling gives further ones. There are fewer than `n`, or none, only where the
        strategy has to wait for answers or has finished, or where nothing new can be expected: all
        points are known, or are being evaluated, or a thousand proposals in a row were.

        Parameters
        ----------
        n
            How many. Without it, those of one batch of the strategy that must be evaluated.
        known
            What happens to proposals that need no evaluation. "answer": the strategy gets the value
            of a point that the archive knows, at no cost, and proposes another; a point that is
            being evaluated is not given twice, and its value answers both. "give": they are given
            like others. The default is "answer", and "give" for `deterministic=False`.
        """
        count = self.strategy.batch if n is None else integer("n", n, 1)
        least = 1 if n is None else count
        if known is None:
            known = "answer" if self.archive.deterministic else "give"
        candidates = self._new(count, least, choice("known", known, KNOWN) == "answer")
        return self.space.decode(np.array([candidate.codes for candidate in candidates], np.int32))

    def elsewhere(self, points: Any) -> None:
        """Say which points others are evaluating; an empty list says that there are none.

        They are not asked until they are told, or until `elsewhere` is called without them. They
        are not part of the state.
        """
        some = not hasattr(points, "__len__") or len(points)  # else an error says what it is
        taken = set(self.archive.packing.pack(self._encode(points))) if some else set()
        self._stop_waiting(self._elsewhere - taken)
        self._elsewhere = taken

    def _new(self, count: int, least: int, cache: bool) -> list[Candidate]:
        """Return candidates that must be evaluated; others get their answers, or wait for them."""
        final = range(len(STATUSES)) if cache else ()
        new: list[Candidate] = []
        idle = same = 0  # in a row: answered at once, waiting
        batch = self.strategy.batch
        while len(new) < least:
            wanted, before = count - len(new), len(new)
            if cache:  # a strategy may look long for a new point where there is none
                wanted = min(wanted, self._unknown())
            candidates = self._proposer.draw(wanted) if wanted else []
            answered = []
            for candidate in candidates:
                if self._proposer.settle(candidate, final):
                    answered.append(candidate)
                    continue
                candidate.known = self._is_out(candidate.key, cache)
                self._open.setdefault(candidate.key, []).append(candidate)
                if not candidate.known:
                    new.append(candidate)
            self._proposer.learn(answered)
            if len(new) > before:
                idle = same = 0
                continue
            idle, same = idle + len(answered), same + len(candidates) - len(answered)
            if (
                not wanted
                or (len(candidates) < wanted and not answered)
                or idle >= max(IDLE_CANDIDATES, IDLE_BATCHES * batch)
                or same >= max(SAME_CANDIDATES, SAME_BATCHES * batch)
            ):
                break
        if not new and self.feasibility is not None and not self.feasibility.allowed:
            raise ValueError(self.feasibility.explain())
        return new

    def _is_out(self, key: bytes, cache: bool) -> bool:
        """Return whether a point is being evaluated, so that it is not given again."""
        if key in self._elsewhere:
            return True
        return cache and any(not candidate.known for candidate in self._open.get(key, ()))

    def _unknown(self) -> int:
        """Return how many points of the space are neither known nor being evaluated."""
        archive = self.archive
        left = self.space.points - archive.distinct
        if left > len(self._open) + len(self._elsewhere):
            return left - len(self._open) - len(self._elsewhere)  # at least so many
        out = [key for key, queue in self._open.items() if any(not c.known for c in queue)]
        return left - sum(archive.lookup(key) is None for key in self._elsewhere.union(out))

    def _stop_waiting(self, keys: Iterable[bytes]) -> None:
        """Tell the strategy that nobody evaluates these points for it, where nobody does."""
        lost: list[int] = []
        for key in keys:
            queue = self._open.get(key, [])
            if queue and all(candidate.known for candidate in queue):
                lost += [c.ticket for c in self._open.pop(key) if c.ticket is not None]
        if lost:
            self.strategy.give_up(lost)

    def suggest(self, candidate: Any) -> None:
        """Put a point of your own into what `ask` gives next.

        It is evaluated and learned from like any other.
        """
        codes = self._encode(candidate)
        if len(codes) != 1:
            raise ValueError(f"suggest takes one candidate, got {len(codes)}")
        self._proposer.suggested.append(codes[0])

    def tell(
        self,
        points: Any,
        values: Any,
        *,
        violations: Any = None,
        notes: Any = None,
        on_failure: str = "raise",
    ) -> None:
        """Report values: of any candidates asked, in any order, or of points never asked.

        One candidate and one number will do as well as a batch. Infinities are values like others.
        A bad argument changes nothing. Every strategy learns from points never asked; the policy
        does so once there are two generations of them. Those that the constraint refuses have no
        value.

        Parameters
        ----------
        points
            Any of what `ask` gave, or other points of the space.
        values
            A number for each, of several objectives a tuple, or a dict; or what a function gives
            with notes: `(value, {...})`, a `Measured`.
        violations
            How much each point violates a constraint that only its evaluation shows: 0 or less for
            a point that is allowed. A point above 0 has no value, whatever `values` says, and ranks
            as one for which a function raised `Infeasible(violation=...)`.
        notes
            What else the evaluations told: a dict for each point, or None; for one point a dict
            will do (see `Measured`). They are kept in the history and never used by the search.
        on_failure
            What NaN (or None) means: "raise" a ValueError; "worst": rank the candidate below every
            success; "skip": do not learn from it.
        """
        choice("on_failure", on_failure, ON_FAILURE)
        codes = self._encode(points)
        values, noted = split_all(values, len(codes))
        given, several = values, self.objectives
        rows = None
        if several is not None:
            failed = on_failure != "raise" or violations is not None
            rows = several.rows_of(values, len(codes), failed=failed)
            given = [row[0] for row in rows]
        told, reasons = self._values_and_reasons(
            given, violations, len(codes), on_failure != "raise"
        )
        if notes is not None:
            noted = notes_of(notes, len(codes))
        answered = []
        for k, key in enumerate(self.archive.packing.pack(codes)):
            candidate, *waiting = self._match(codes[k], key)
            candidate.value, candidate.error, candidate.notes = told[k], reasons[k], noted[k]
            candidate.status = FAILED if math.isnan(told[k]) else OK
            if reasons[k] is not None:
                candidate.status = INFEASIBLE
            if rows is not None:
                candidate.values = rows[k] if candidate.status == OK else None
            if candidate.ticket is None and self.feasibility is not None:
                self.feasibility.judge(candidate)
            for other in waiting:
                other.value, other.status = candidate.value, candidate.status
                other.values = candidate.values
            answered += [candidate, *waiting]
            self._elsewhere.discard(key)
        self._proposer.learn(answered, skip=on_failure == "skip")

    @staticmethod
    def _values_and_reasons(
        values: Any, violations: Any, count: int, nan: bool
    ) -> tuple[list[float], list[str | None]]:
        """Return the values of points, NaN for infeasible ones, and why those are infeasible."""
        if violations is None:
            return numbers(values, count, nan=nan).tolist(), [None] * count
        violated = numbers(violations, count, what="violation")
        told = numbers(values, count, nan=True)
        missing = np.isnan(told) & (violated <= 0)
        if missing.any() and not nan:
            raise ValueError(f"value {int(missing.argmax())} is NaN or None, expected a number")
        told[violated > 0] = np.nan
        # an infinite one says only that the point is not allowed
        reasons = [
            Infeasible(violation=v if math.isfinite(v) else None).reason("") if v > 0 else None
            for v in violated.tolist()
        ]
        return told.tolist(), reasons

    def _match(self, codes: Codes, key: bytes) -> list[Candidate]:
        """Return the open candidate at a point, or a new one, and those that wait for its answer.

        Of equal ones that of the latest generation comes first, and of those the oldest: an earlier
        one is likely to be lost, and if it is not, its turn comes with the next answer.
        """
        queue = self._open.pop(key, [])
        given = [candidate for candidate in queue if not candidate.known]
        waiting = [candidate for candidate in queue if candidate.known]
        if not given:  # it was evaluated elsewhere
            first = waiting.pop(0) if waiting else None
            first = first or Candidate(None, codes, key, self.strategy.generation)
            first.known = False
            return [first, *waiting]
        latest = given[-1].generation
        place = next(k for k, candidate in enumerate(given) if candidate.generation == latest)
        candidate = given.pop(place)
        if given:
            self._open[key] = given
        return [candidate, *waiting]

    def _encode(self, candidates: Any) -> Codes:
        """Return the codes of a batch, or of a lone candidate."""
        return self.space.encode(as_batch(candidates, self.space))

    # --- state ----------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        # A state can be read where the engine cannot run. The space may have values that JSON
        # cannot hold; a strategy of the user's is pickled itself.
        strategy = None if find(self.strategy.name) is type(self.strategy) else self.strategy
        constraint = None if self.feasibility is None else self.feasibility.constraint
        state = self.space, header_of(self._proposer), arrays_of(self._proposer, self._open)
        return unpickle, (type(self), *state, strategy, constraint)

    def state_dict(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as a dict of NumPy arrays: `np.savez(path, **state)` keeps it.

        `from_state` continues bit for bit. There is nothing pickled in it.
        """
        header = {**header_of(self._proposer), "space": self.space.to_dict()}
        return {"header": np.array(json.dumps(header)), **arrays_of(self._proposer, self._open)}

    @classmethod
    def from_state(
        cls,
        state: Mapping[str, Any],
        *,
        algorithm: Algorithm | None = None,
        constraint: Callable[[Any], Any] | None = None,
    ) -> Optimizer:
        """Return the optimiser that `state_dict` described.

        Parameters
        ----------
        state
            What `state_dict` returned, or `np.load` read.
        algorithm
            For a strategy without a registered name: its class, or a new object of it. Otherwise
            the state says what it is; the policy continues on another engine with the same
            `Policy(..., engine=...)`.
        constraint
            The constraint, if it has one: functions are not part of a state.
        """
        header = read_header(state)
        with refusing_damage("the state's header"):
            space = Space.from_dict(header["space"])
        return wrap(cls, *rebuild(space, header, state, algorithm, constraint))


def wrap(kind: type[Optimizer], proposer: Proposer, asked: Queues | None = None) -> Optimizer:
    """Return ask and tell for a proposer, some of whose candidates may be `asked` already."""
    optimizer = kind.__new__(kind)
    optimizer._begin(proposer, asked)
    return optimizer


def unpickle(kind: type[Optimizer], space: Space, header: dict[str, Any], *parts: Any) -> Optimizer:
    """Return the optimiser of a pickle, on another engine if its own cannot run here."""
    try:
        return wrap(kind, *rebuild(space, header, *parts))
    except (ImportError, RuntimeError):
        settings = {key: x for key, x in header["settings"].items() if key != "engine"}
        return wrap(kind, *rebuild(space, {**header, "settings": settings}, *parts))
