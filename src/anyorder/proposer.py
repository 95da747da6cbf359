"""A strategy with the archive of what was evaluated and the constraint on what may be.

Ask and tell (`anyorder.optimizer`) and the session (`anyorder.run`) draw candidates here, and hand
their answers back.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.archive import DATA, Archive
from anyorder.archive.candidate import Candidate
from anyorder.archive.knowledge import Data
from anyorder.archive.objectives import Objectives
from anyorder.constraints.feasibility import Feasibility, violation_of
from anyorder.errors import OK, REJECTED
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Strategy

# A search in which so many candidates, or batches, in a row were known or rejected has ended.
IDLE_CANDIDATES, IDLE_BATCHES = 1_000, 100
# After so many proposals, or batches, in a row that are being evaluated already, wait for them.
SAME_CANDIDATES, SAME_BATCHES = 30, 3


class Proposer:
    """What gives the candidates of a search, and learns what became of them.

    Parameters
    ----------
    space, seed, direction, deterministic, constraint, objectives
        As `Optimizer` has them.
    strategy
        Proposes points; it gets an empty archive.

    Attributes
    ----------
    archive, feasibility
        Every answer so far, and what is known of the constraint, if there is one.
    suggested
        Points that are drawn before the strategy's own.
    """

    def __init__(
        self,
        space: Space,
        seed: int,
        strategy: Strategy,
        direction: str,
        deterministic: bool,
        constraint: Callable[[Any], Any] | None = None,
        objectives: Objectives | None = None,
    ) -> None:
        self.space, self.seed, self.strategy = space, seed, strategy
        self.archive = strategy.archive = Archive(
            space, direction, deterministic=deterministic, objectives=objectives
        )
        self.feasibility = None if constraint is None else Feasibility(space, constraint, seed)
        self.suggested: list[Codes] = []
        self._restarts_before = strategy.restarts  # in an earlier run of the same object

    def draw(self, count: int) -> list[Candidate]:
        """Return candidates from the strategy, suggested points first."""
        given = self.suggested[:count]
        generation = self.strategy.generation
        tickets, codes = self.strategy.propose(count, np.stack(given) if given else None)
        if len(codes) > count or codes.shape[1:] != (len(self.space),):
            raise ValueError(
                f"{self.strategy.name} proposed points of shape {codes.shape}, expected at most "
                f"{count} of {len(self.space)} variables"
            )
        codes = self.space.canonical(codes)
        del self.suggested[:count]
        keys = self.archive.packing.pack(codes)
        candidates = [
            Candidate(ticket, row, key, generation)
            for ticket, row, key in zip(tickets, codes, keys, strict=True)
        ]
        if self.feasibility is not None:
            self.feasibility.screen(candidates, len(given), self.archive, self.suggested)
        return candidates

    def settle(self, candidate: Candidate, final: Container[int]) -> bool:
        """Answer a candidate if nothing need be evaluated for it; return whether that is so.

        A point that the archive knows with one of the `final` statuses is not evaluated again.
        """
        found = self.archive.lookup(candidate.key)
        if found is not None and found[0] in final:
            candidate.status, candidate.value = found
            candidate.known = True
            if self.archive.objectives is not None and candidate.status == OK:
                candidate.values = self.archive.vector(candidate.key)
            return True
        if self.feasibility is None:
            return False
        # Where the violation is open, the point is known: it was rejected, or allowed.
        refused = found is not None and found[0] == REJECTED
        if candidate.violation is not None:
            refused = candidate.violation > 0
        if refused:
            candidate.status, candidate.known = REJECTED, True
        return refused

    def record(self, candidate: Candidate) -> None:
        """Add an answered candidate to the archive; the strategy does not learn from it."""
        self.archive.add(
            candidate.key, candidate.value, candidate.status or OK, known=candidate.known,
            generation=candidate.generation, seconds=candidate.seconds, error=candidate.error,
            values=candidate.values, notes=candidate.notes,
        )  # fmt: skip

    def learn(self, candidates: Sequence[Candidate], skip: bool = False) -> None:
        """Record answers; the strategy learns from them, or with `skip` from values only."""
        archive, strategy = self.archive, self.strategy
        answers, given_up = [], []
        for candidate in candidates:
            self.record(candidate)
            if skip and candidate.status != OK:
                if candidate.ticket is not None:
                    given_up.append(candidate.ticket)
                continue
            answers.append(self._answer(candidate))
        if given_up:
            strategy.give_up(given_up)
        if answers:
            strategy.learn(answers)
        counted = self._restarts_before + len(archive.restarts)  # without those made in `propose`
        archive.restarts += [len(archive)] * (strategy.restarts - counted)

    def learn_data(self, data: Data) -> None:
        """Let archive and strategy learn what was measured before, at no cost."""
        archive, answers = self.archive, []
        data = data if self.feasibility is None else self.feasibility.refuse(data)
        data.add_to(archive)
        for k, key in enumerate(archive.packing.pack(data.codes)):
            candidate = Candidate(
                None, data.codes[k], key, DATA, status=int(data.statuses[k]), known=True
            )
            candidate.value, candidate.values = data.value(k)
            answers.append(self._answer(candidate))
        if answers:
            self.strategy.learn(answers)

    def _answer(self, candidate: Candidate) -> Answer:
        """Return what the strategy learns of a candidate that is in the archive."""
        archive, several = self.archive, self.archive.objectives
        violation = violation_of(candidate, archive, self.feasibility)
        value, values = candidate.value, candidate.values
        if not archive.deterministic and candidate.status == OK:
            if several is None:
                value = archive.mean(candidate.key)
            else:
                values = archive.vector(candidate.key)
        if several is not None and values is not None:
            values = tuple((np.array(values) * several.signs).tolist())
            value = values[0]
        return Answer(
            candidate.ticket, candidate.codes, archive.sign * value, candidate.status or OK,
            candidate.known, violation, values,
        )  # fmt: skip

    # --- state ----------------------------------------------------------------------------------

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what determines the next candidates, without the archive."""
        feasibility = {} if self.feasibility is None else self.feasibility.state()
        return {
            "suggested": matrix(self.suggested, self.space),
            **add_prefix("strategy", self.strategy.state()),
            **add_prefix("feasibility", feasibility),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where `state` was taken."""
        self.suggested = list(points_in(state, "suggested", self.space))
        self.strategy.restore(remove_prefix("strategy", state))
        kept = remove_prefix("feasibility", state)
        if kept and self.feasibility is not None:  # studies of earlier versions keep none
            self.feasibility.restore(kept)


def add_prefix(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a part under names of their own."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def remove_prefix(prefix: str, state: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a part; `add_prefix` undone."""
    start = f"{prefix}."
    return {name[len(start) :]: np.asarray(state[name]) for name in state if name.startswith(start)}


def matrix(points: Sequence[Codes], space: Space) -> Codes:
    """Return points, or none, as a matrix."""
    return np.array(points, np.int32).reshape(-1, len(space))


def points_in(state: Mapping[str, Any], name: str, space: Space) -> Codes:
    """Return an array of points, if they are of the space."""
    points = np.asarray(state[name])
    if points.dtype.kind != "i" or points.ndim != 2 or points.shape[1] != len(space):
        raise ValueError(f"{name!r} is damaged or of another space")
    if ((points < 0) | (points >= space.cardinalities)).any():
        raise ValueError(f"{name!r} has points outside the space")
    return points.astype(np.int32)
