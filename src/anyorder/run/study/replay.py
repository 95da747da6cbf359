"""Continuing a study: propose and learn again what came after the last state that was kept.

A strategy proposes the same candidates from the same state and answers. So nothing is evaluated
twice: the answers are taken from the study, in the order in which they were learned.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from anyorder._internal.checks import integer, real
from anyorder.archive import CLAIM, CONFIRM
from anyorder.archive.candidate import Candidate
from anyorder.archive.objectives import Objectives, Values
from anyorder.errors import INFEASIBLE, OK, StudyError
from anyorder.proposer import Proposer
from anyorder.run.evaluation.evaluators import Outcome
from anyorder.run.progress import count_of
from anyorder.run.study.reading import (
    Row,
    damage_error,
    open_study,
    read_settings,
    read_state,
    translate_errors,
    vector_of,
)
from anyorder.run.study.writing import Study
from anyorder.space import Space
from anyorder.strategies.base import Strategy
from anyorder.strategies.create import recreate
from anyorder.strategies.registry import find

if TYPE_CHECKING:
    from anyorder.run.loop import Session
    from anyorder.run.state import State

logger = logging.getLogger("anyorder")

_ROUNDING = 1e-9  # between machines, a deterministic function may differ by so much, relatively


class Replay:
    """What a study holds beyond its last state.

    Making one restores that state: the strategy, the archive, and the session's counters.
    """

    def __init__(self, state: State, study: Study) -> None:
        self._study = study
        kept = study.state()
        archive = state.archive
        tickets: dict[int, int | None] = {}
        if kept is not None:
            with translate_errors(study.path):
                state.proposer.restore(kept.arrays)
                state.drawn, state.told = kept.drawn, kept.told
                state.idle = integer("idle", kept.counters["idle"], 0)
                state.seconds_before = real("seconds", kept.counters.get("seconds", 0.0), 0.0)
                for number, ticket in kept.counters["tickets"]:
                    tickets[number] = None if ticket is None else integer("ticket", ticket, 0)
        study.fill(archive, state.told)
        if kept is not None and kept.counters.get("restarts") != len(archive.restarts):
            raise damage_error(study.path, "restarts are missing")
        rows = study.rows(archive.space, state.drawn, state.told)
        self._vectors = study.vectors()
        self._notes = study.notes()
        self._later = deque(row for row in rows if row.number >= state.drawn)
        self._open: dict[int, Candidate] = {}  # proposed before that state, or again since
        self._places = {row.place: row for row in rows if row.place is not None}
        with translate_errors(study.path):
            older = [row for row in rows if row.number < state.drawn]
            points = archive.packing.unpack(row.point for row in older)
            for row, codes in zip(older, points, strict=True):
                if row.number not in tickets:
                    raise ValueError(f"its state lacks candidate {row.number}")
                ticket = tickets[row.number]
                candidate = Candidate(ticket, codes, row.point, row.generation, row.number)
                self._open[row.number] = self._fill_in(candidate, row)
        if not state.evaluation.asynchronous:
            state.batch = list(self._open.values())

    def step(self, session: Session) -> None:
        """Propose and learn what comes next in the study; at its end, let the session go on."""
        if session.state.evaluation.asynchronous:
            self._all_answers(session)
        else:
            self._next_batch(session)

    def _next_batch(self, session: Session) -> None:
        if not session.state.batch:
            if not self._later:
                session.state.replaying = False
                return
            after = self._later[0].after
            rows = []
            while self._later and self._later[0].after == after:
                rows.append(self._later.popleft())
            session.state.batch = self._again(session, rows)
            for candidate, row in zip(session.state.batch, rows, strict=True):
                self._fill_in(candidate, row)
        if not self._later:
            self._settle(session, [c for c in session.state.batch if c.status is None])
            session.state.replaying = False
        session.learn([])
        if self._later and session.state.batch:
            raise damage_error(self._study.path, "answers are missing")

    def _all_answers(self, session: Session) -> None:
        """Propose and learn in the order in which it happened, in asynchronous mode."""
        while True:
            while self._later and self._later[0].after <= session.state.told:
                row = self._later.popleft()
                (self._open[row.number],) = self._again(session, [row])
            answer = self._places.get(session.state.told)
            if answer is None or answer.number not in self._open:
                break
            session.tell([self._fill_in(self._open.pop(answer.number), answer)])
        if self._later:
            raise damage_error(self._study.path, "answers are missing")
        settled = self._settle(session, [self._open[number] for number in sorted(self._open)])
        session.state.replaying = False
        session.learn(settled)

    def _settle(self, session: Session, candidates: list[Candidate]) -> list[Candidate]:
        """Get candidates ready that were not answered; returns those that need no evaluation.

        Those are of points that were answered meanwhile.
        """
        settled = [candidate for candidate in candidates if session.settle(candidate)]
        if settled:
            with self._study.writing():
                self._study.answer(settled)
        return settled

    def _again(self, session: Session, rows: list[Row]) -> list[Candidate]:
        """Propose candidates again; they should be those that the study has."""
        proposer = session.state.proposer
        points = proposer.archive.packing.unpack(row.point for row in rows)
        if rows[0].generation in (CONFIRM, CLAIM):  # not the strategy's
            again = [
                Candidate(None, codes, row.point, row.generation)
                for row, codes in zip(rows, points, strict=True)
            ]
            session.number(again)
            return again
        waiting = self._open.values() if session.state.evaluation.asynchronous else ()
        busy = {candidate.key for candidate in waiting}
        candidates = session.draw(len(rows), busy)
        if [candidate.key for candidate in candidates] != [row.point for row in rows]:
            logger.warning(
                "study %s: candidate %d is proposed differently here than where the run was "
                "started (another machine, engine or version); its answers are kept, but the run "
                "is not continued bit for bit",
                self._study.path, rows[0].number,
            )  # fmt: skip
            tickets = [candidate.ticket for candidate in candidates]
            proposer.strategy.give_up([ticket for ticket in tickets if ticket is not None])
            proposer.suggested[:0] = list(points)
            candidates = proposer.draw(len(rows))
        session.number(candidates)
        for candidate, row in zip(candidates, rows, strict=True):
            candidate.generation = row.generation
        return candidates

    def _fill_in(self, candidate: Candidate, row: Row) -> Candidate:
        """Return the candidate with the answer that the study has, if there is one."""
        candidate.after, candidate.place = row.after, row.place
        with translate_errors(self._study.path):
            candidate.values = vector_of(row, self._vectors)
        if row.status is not None:
            candidate.status = row.status
            candidate.value = np.nan if row.value is None else float(row.value)
            candidate.known = not row.paid
            candidate.tries, candidate.seconds = row.tries or 0, row.seconds or 0.0
            candidate.error, candidate.notes = row.error, self._notes.get(row.number)
        return candidate


def announce(state: State, study: Study) -> None:
    """Log that a study is continued, and whether anything is left to do."""
    budget, given = state.stopping.budget, study.settings["budget"]
    there = count_of(state.evaluations, budget)
    if budget is None or state.evaluations < budget:
        level, rest = logging.INFO, ""
    else:
        level, rest = logging.WARNING, "; nothing is left to do, and f is not called"
        if given is not None and budget < given:
            rest += f" (the budget was {given} before)"
    logger.log(level, "continuing %s: %s are there%s", study.path, there, rest)


def verify(session: Session, study: Study) -> None:
    """Measure the best stored point again, before anything new: f may have been edited since.

    Other evaluations wait for it, so that no value of another function gets into the study. It
    costs no budget, and neither the strategy nor the archive learns of it.
    """
    space = session.state.archive.space
    row = study.best_row(space)
    if row is None:
        return
    with translate_errors(study.path):
        had = vector_of(row, study.vectors()) or (float(row.value or 0.0),)
    codes = session.state.archive.packing.unpack([row.point])
    vectorized = session.state.evaluation.vectorized
    job = session.state.jobs.start(space.decode(codes) if vectorized else space.point(codes[0]))
    session.state.running[job] = []  # no candidate waits for it
    until = session.state.deadline
    while job in session.state.running and session.state.jobs.error is None:
        if until is not None and time.monotonic() >= until:
            return
        for done, outcome in session.state.jobs.wait(until):
            session.end(session.state.running.pop(done), outcome)
            _compare(study, space.brief(codes[0]), had, outcome)


def _compare(study: Study, where: str, values: Values, outcome: Outcome) -> None:
    """Raise StudyError if a point that was measured again has another value."""
    had = values if len(values) > 1 else values[0]
    advice = (
        "f, or something it reads, has changed since. Pass another study= to start again, or "
        "verify=False to continue with this f; a noisy f requires deterministic=False from the "
        "beginning"
    )
    if outcome.status == INFEASIBLE:
        raise StudyError(
            f"study {study.path} has the value {had!r} at {where}, which f now calls infeasible: "
            f"{advice}"
        )
    if outcome.status != OK:  # which may pass, and says little about f
        logger.warning(
            "study %s: a point that was measured again, %s, failed: %s",
            study.path, where, outcome.reason,
        )  # fmt: skip
        return
    again: list[float] = np.ravel(outcome.value).tolist()
    if not all(
        math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
        for one, other in zip(again, values, strict=True)
    ):
        now = tuple(again) if len(again) > 1 else again[0]
        raise StudyError(
            f"study {study.path} has the value {had!r} at {where}, where f now gives {now!r}: "
            f"{advice}"
        )


def load_strategy(study: str) -> Strategy | None:
    """Return the strategy of a study as it was last kept; None if that cannot be made again."""
    file = Path(study).absolute()
    with open_study(file) as database, translate_errors(file):
        settings, kept = read_settings(database), read_state(database)
        if kept is None or find(settings["algorithm"]) is None:
            return None
        space, seed = Space.from_dict(settings["space"]), settings["seed"]
        strategy = recreate(settings["algorithm"], settings["config"], space, seed)
        several = Objectives.from_json(settings.get("objectives"))
        proposer = Proposer(space, seed, strategy, settings["direction"], True, None, several)
        proposer.restore(kept.arrays)
    return strategy
