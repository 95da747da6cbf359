"""Ask and tell: a strategy together with the archive of what was evaluated."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder import optimizer_state
from anyorder._checks import choice, function, integer, numbers, optional
from anyorder.archive import DATA, Archive
from anyorder.candidate import Candidate
from anyorder.errors import FAILED, OK, ON_FAILURE, REJECTED
from anyorder.feasibility import Feasibility, violation_of
from anyorder.knowledge import Data, as_batch, read_data
from anyorder.optimizer_state import (
    arrays_of,
    header_of,
    matrix,
    points_in,
    prefixed,
    rebuilt,
    refusing_damage,
    unpickled,
    without_prefix,
)
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Strategy
from anyorder.strategies.create import Algorithm, create
from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.search import PolicySearch
from anyorder.strategies.registry import REGISTRY

_MOST_DRAWS = 1_000  # in one `ask`, if the constraint refuses what is drawn


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
    config
        For the policy: a preset ("default", "fast", "balanced", "paper", "paper-code") or a
        `Config`.
    engine
        For the policy: "cuda", "cpu" or "reference"; "auto" takes the fastest that can run here
        for one run of this size, and logs why (logger "anyorder", INFO).
    algorithm
        A name, with settings if need be ("tabu", "policy:paper", "boa+population=500"), or an
        object that keeps the protocol of `anyorder.strategies.Strategy`.
    direction
        "maximize" or "minimize".
    graph
        For the policy: an n x n boolean matrix, True where variable i may depend on j, if known.
    deterministic
        False: values are noisy. Repeated ones are averaged, and the best is that with the best
        mean.
    constraint
        Says which points `ask` may give; see `maximize`.
    data
        What is known already, as in `maximize`; a study as `anyorder.load(path)`.
    """

    def __init__(
        self,
        space: Space,
        seed: int | None = None,
        config: Config | str | None = None,
        engine: str = "auto",
        *,
        algorithm: Algorithm | None = None,
        direction: str = "maximize",
        graph: npt.ArrayLike | None = None,
        deterministic: bool = True,
        constraint: Callable[[Any], Any] | None = None,
        data: Any = None,
    ) -> None:
        if not isinstance(space, Space):
            raise TypeError(f"space is {space!r}, expected a Space")
        seed = secrets.randbits(32) if seed is None else integer("seed", seed, 0, 2**64 - 1)
        choice("direction", direction, ("maximize", "minimize"))
        known = None if data is None else read_data(data, space)
        strategy = create(algorithm, space, seed, config=config, engine=engine, graph=graph)
        optional(function)("constraint", constraint)
        self._set(space, seed, strategy, direction, deterministic, constraint)
        if known is not None:
            self._know(known)

    @classmethod
    def _of(cls, *parts: Any) -> Optimizer:
        """An optimizer of the parts that `_set` takes."""
        self = cls.__new__(cls)
        self._set(*parts)
        return self

    def _set(
        self,
        space: Space,
        seed: int,
        strategy: Strategy,
        direction: str,
        deterministic: bool,
        constraint: Callable[[Any], Any] | None = None,
    ) -> None:
        self.space, self.seed, self.strategy, self.direction = space, seed, strategy, direction
        self.archive = strategy.archive = Archive(space, direction, deterministic=deterministic)
        self.feasibility = None if constraint is None else Feasibility(space, constraint, seed)
        self._restarts_before = strategy.restarts  # in an earlier run of the same object
        self._suggested: list[Codes] = []
        self._open: dict[bytes, list[Candidate]] = {}  # asked and not told

    # --- what can be seen -----------------------------------------------------------------------

    @property
    def config(self) -> Config | None:
        """The settings of the policy; None for other strategies."""
        return self.strategy.config if isinstance(self.strategy, PolicySearch) else None

    @property
    def engine(self) -> str | None:
        """The engine of the policy; None for other strategies."""
        return self.strategy.engine if isinstance(self.strategy, PolicySearch) else None

    @property
    def best(self) -> Any:
        """The best candidate told so far, the first of equals; None before any."""
        best = self.archive.best
        return None if best is None else self.space.one(best)

    @property
    def best_value(self) -> float:
        """Its value; the worst infinity before any."""
        return self.archive.best_value

    @property
    def told(self) -> int:
        """How many values have been told."""
        return len(self.archive)

    @property
    def generation(self) -> int:
        """The strategy's own count of its progress; for the policy, how often it has trained."""
        return self.strategy.generation

    @property
    def restarts(self) -> tuple[int, ...]:
        """After how many told values the strategy was restarted, each time."""
        return tuple(self.archive.restarts)

    @property
    def diversity(self) -> float | None:
        """For the policy: share of the last generation's values that differ from its best's."""
        return self.strategy.diversity if isinstance(self.strategy, PolicySearch) else None

    @property
    def entropy(self) -> float | None:
        """For the policy: how undecided it is, from 1 (all values alike) to 0 (one point)."""
        return self.strategy.entropy if isinstance(self.strategy, PolicySearch) else None

    def facts(self) -> dict[str, Any]:
        """What the strategy says about its search."""
        return self.strategy.facts()

    def influence(self, points: int = 10) -> npt.NDArray[np.float64]:
        """How much variable i moves when variable j changes, as the strategy has learned it.

        Of the policy, i's probabilities (`anyorder.strategies.PolicySearch.influence`); of `auto`
        and `delta`, the gain of changing i (`anyorder.strategies.DeltaSearch.influence`).
        """
        learned: Callable[[int], npt.NDArray[np.float64]] | None = getattr(
            self.strategy, "influence", None
        )
        if learned is None:
            raise ValueError(f"{self.strategy.name!r} does not learn which variables interact")
        return learned(points)

    # --- ask and tell ---------------------------------------------------------------------------

    def ask(self, n: int | None = None) -> Any:
        """Candidates to evaluate: as many as the strategy prefers, or any number `n`.

        A list of dicts for a named space, else an integer matrix with a row per candidate. Asking
        again before telling gives further ones. There are fewer than `n` only where the strategy
        has to wait for answers, or has finished.
        """
        count = self.strategy.batch if n is None else integer("n", n, 1)
        candidates = self._draw(count)
        if self.feasibility is not None:
            candidates = self._allowed(candidates, count, self.feasibility)
        for candidate in candidates:
            self._open.setdefault(candidate.key, []).append(candidate)
        return self.space.decode(np.array([candidate.codes for candidate in candidates], np.int32))

    def _draw(self, count: int) -> list[Candidate]:
        """Candidates from the strategy, suggested points first."""
        given = self._suggested[:count]
        generation = self.strategy.generation
        tickets, codes = self.strategy.propose(count, np.stack(given) if given else None)
        if len(codes) > count or codes.shape[1:] != (len(self.space),):
            raise ValueError(
                f"{self.strategy.name} proposed points of shape {codes.shape}, expected at most "
                f"{count} of {len(self.space)} variables"
            )
        codes = self.space.canonical(codes)
        del self._suggested[:count]
        keys = self.archive.packing.pack(codes)
        candidates = [
            Candidate(ticket, row, key, generation)
            for ticket, row, key in zip(tickets, codes, keys, strict=True)
        ]
        if self.feasibility is not None:
            self.feasibility.screen(candidates, len(given), self.archive, self._suggested)
        return candidates

    def _allowed(
        self, candidates: list[Candidate], count: int, feasibility: Feasibility
    ) -> list[Candidate]:
        """Those candidates that may be evaluated, and others instead of the rest."""
        allowed: list[Candidate] = []
        for _ in range(_MOST_DRAWS):
            allowed += [c for c in candidates if not c.violation]
            refused = [c for c in candidates if c.violation]
            for candidate in refused:
                candidate.status, candidate.known = REJECTED, True
            self._take(refused)
            if len(allowed) == count or not (candidates := self._draw(count - len(allowed))):
                break
        if not allowed and not feasibility.allowed:
            raise ValueError(feasibility.explain())
        return allowed

    def suggest(self, candidate: Any) -> None:
        """Put a point of your own into what `ask` gives next.

        It is evaluated and learned from like any other.
        """
        codes = self._encode(candidate)
        if len(codes) != 1:
            raise ValueError(f"suggest takes one candidate, got {len(codes)}")
        self._suggested.append(codes[0])

    def tell(self, candidates: Any, values: Any, *, on_failure: str = "raise") -> None:
        """Report values: of any candidates asked, in any order, or of points never asked.

        One candidate and one number will do as well as a batch. Infinities are values like others.
        A bad argument changes nothing. Every strategy learns from points never asked; the policy
        does so once there are two generations of them. Those that the constraint refuses have no
        value.

        Parameters
        ----------
        candidates
            Any of what `ask` gave, or other points of the space.
        values
            A number for each.
        on_failure
            What NaN (or None) means: "raise" a ValueError; "worst": rank the candidate below every
            success; "skip": do not learn from it.
        """
        choice("on_failure", on_failure, ON_FAILURE)
        codes = self._encode(candidates)
        told = numbers(values, len(codes), nan=on_failure != "raise").tolist()
        keys = self.archive.packing.pack(codes)
        answered = []
        for row, key, value in zip(codes, keys, told, strict=True):
            candidate = self._asked(row, key)
            candidate.value, candidate.status = value, FAILED if math.isnan(value) else OK
            if candidate.ticket is None and self.feasibility is not None:
                self.feasibility.judge(candidate)
            answered.append(candidate)
        self._take(answered, skip=on_failure == "skip")

    def _asked(self, codes: Codes, key: bytes) -> Candidate:
        """The open candidate at a point, or a new one.

        Of equal ones that of the latest generation comes first, and of those the oldest: an earlier
        one is likely to be lost, and if it is not, its turn comes with the next answer.
        """
        queue = self._open.get(key)
        if queue is None:
            return Candidate(None, codes, key, self.strategy.generation)
        latest = queue[-1].generation
        place = next(k for k, candidate in enumerate(queue) if candidate.generation == latest)
        candidate = queue.pop(place)
        if not queue:
            del self._open[key]
        return candidate

    def _take(self, candidates: Sequence[Candidate], skip: bool = False) -> None:
        """Record answered candidates in the archive, and let the strategy learn from them."""
        archive, strategy = self.archive, self.strategy
        answers, given_up = [], []
        for candidate in candidates:
            self._record(candidate)
            if skip and candidate.status != OK:
                if candidate.ticket is not None:
                    given_up.append(candidate.ticket)
                continue
            noisy = not archive.deterministic and candidate.status == OK
            value = archive.mean(candidate.key) if noisy else candidate.value
            answers.append(
                Answer(candidate.ticket, candidate.codes, archive.sign * value,
                       candidate.status or OK, candidate.known,
                       violation_of(candidate, archive, self.feasibility))
            )  # fmt: skip
        if given_up:
            strategy.give_up(given_up)
        if answers:
            strategy.learn(answers)
        counted = self._restarts_before + len(archive.restarts)  # without those made in `propose`
        archive.restarts += [len(archive)] * (strategy.restarts - counted)

    def _record(self, candidate: Candidate) -> None:
        self.archive.add(
            candidate.key, candidate.value, candidate.status or OK, known=candidate.known,
            generation=candidate.generation, seconds=candidate.seconds, error=candidate.error,
        )  # fmt: skip

    def _know(self, data: Data) -> None:
        """Let archive and strategy learn what was measured before, at no cost."""
        archive, answers = self.archive, []
        data = data if self.feasibility is None else self.feasibility.refuse(data)
        data.add_to(archive)
        values, statuses = data.values.tolist(), data.statuses.tolist()
        for k, key in enumerate(archive.packing.pack(data.codes)):
            value = values[k] if archive.deterministic else archive.mean(key)
            candidate = Candidate(None, data.codes[k], key, DATA, status=statuses[k])
            violation = violation_of(candidate, archive, self.feasibility)
            answer = Answer(None, data.codes[k], archive.sign * value, statuses[k], True, violation)
            answers.append(answer)
        if answers:
            self.strategy.learn(answers)

    def _encode(self, candidates: Any) -> Codes:
        """Codes of a batch, or of a lone candidate."""
        return self.space.encode(as_batch(candidates, self.space))

    # --- state ----------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        # A state can be read where the engine cannot run. The space may have values that JSON
        # cannot hold; a strategy of the user's is pickled itself.
        strategy = None if self.strategy.name in REGISTRY else self.strategy
        constraint = None if self.feasibility is None else self.feasibility.constraint
        parts = type(self), self.space, header_of(self), arrays_of(self)
        return unpickled, (*parts, strategy, constraint)

    def state_dict(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as a dict of NumPy arrays: `np.savez(path, **state)` keeps it.

        `from_state` continues bit for bit. There is nothing pickled in it.
        """
        header = {**header_of(self), "space": self.space.to_dict()}
        return {"header": np.array(json.dumps(header)), **arrays_of(self)}

    def _search_state(self) -> dict[str, npt.NDArray[Any]]:
        """What determines the next proposals, without the archive."""
        feasibility = {} if self.feasibility is None else self.feasibility.state()
        return {
            "suggested": matrix(self._suggested, self.space),
            **prefixed("strategy", self.strategy.state()),
            **prefixed("feasibility", feasibility),
        }

    def _restore_search(self, state: Mapping[str, Any]) -> None:
        self._suggested = list(points_in(state, "suggested", self.space))
        self.strategy.restore(without_prefix("strategy", state))
        kept = without_prefix("feasibility", state)
        if kept and self.feasibility is not None:  # studies of earlier versions keep none
            self.feasibility.restore(kept)

    @classmethod
    def from_state(
        cls,
        state: Mapping[str, Any],
        engine: str | None = None,
        *,
        algorithm: Strategy | None = None,
        constraint: Callable[[Any], Any] | None = None,
    ) -> Optimizer:
        """The optimiser that `state_dict` described.

        Parameters
        ----------
        state
            What `state_dict` returned, or `np.load` read.
        engine
            For the policy: moves it to another engine.
        algorithm
            For a strategy that is not one of this library's: a new object of its class.
        constraint
            The constraint, if it has one: functions are not part of a state.
        """
        header = optimizer_state.read_header(state)
        with refusing_damage("the state's header"):
            space = Space.from_dict(header["space"])
        return rebuilt(cls, space, header, state, engine, algorithm, constraint)
