"""Continuing a study: propose and learn again what came after the last state that was kept.

A strategy proposes the same candidates from the same state and answers. So nothing is evaluated
twice: the answers are taken from the study, in the order in which they were learned.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from anyorder._checks import integer
from anyorder.candidate import Candidate
from anyorder.session.reading import Row, damaged, translated
from anyorder.session.study import Study

if TYPE_CHECKING:
    from anyorder.session.loop import Session

logger = logging.getLogger("anyorder")


class Replay:
    """What a study holds beyond its last state.

    Making one restores that state: the strategy, the archive, and the session's counters.
    """

    def __init__(self, session: Session, study: Study) -> None:
        self._study = study
        kept = study.state()
        archive = session.optimizer.archive
        tickets: dict[int, int] = {}
        if kept is not None:
            with translated(study.path):
                session.optimizer._restore_search(kept.arrays)
                session._drawn, session._told = kept.drawn, kept.told
                session._idle = integer("idle", kept.counters["idle"], 0)
                for number, ticket in kept.counters["tickets"]:
                    tickets[number] = integer("ticket", ticket, 0)
        study.fill(archive, session._told)
        if kept is not None and kept.counters["restarts"] != len(archive.restarts):
            raise damaged(study.path, "restarts are missing")
        rows = study.rows(archive.space, session._drawn, session._told)
        self._later = deque(row for row in rows if row.number >= session._drawn)
        self._open: dict[int, Candidate] = {}  # proposed before that state, or again since
        self._places = {row.place: row for row in rows if row.place is not None}
        with translated(study.path):
            older = [row for row in rows if row.number < session._drawn]
            points = archive.packing.unpack(row.point for row in older)
            for row, codes in zip(older, points, strict=True):
                if row.number not in tickets:
                    raise ValueError(f"its state lacks candidate {row.number}")
                ticket = tickets[row.number]
                candidate = Candidate(ticket, codes, row.point, row.generation, row.number)
                self._open[row.number] = _filled(candidate, row)
        if not session._evaluation.asynchronous:
            session._batch = list(self._open.values())

    def step(self, session: Session) -> None:
        """Propose and learn what comes next in the study; at its end, let the session go on."""
        if session._evaluation.asynchronous:
            self._all_answers(session)
        else:
            self._next_batch(session)

    def _next_batch(self, session: Session) -> None:
        if not session._batch:
            if not self._later:
                session._replay = None
                return
            after = self._later[0].after
            rows = []
            while self._later and self._later[0].after == after:
                rows.append(self._later.popleft())
            session._batch = self._again(session, rows)
            for candidate, row in zip(session._batch, rows, strict=True):
                _filled(candidate, row)
        if not self._later:
            self._reopen(session, session._batch)
            session._replay = None
        session._learn([])
        if self._later and session._batch:
            raise damaged(self._study.path, "answers are missing")

    def _reopen(self, session: Session, batch: list[Candidate]) -> None:
        """What of a batch is not answered has to be evaluated."""
        for candidate in batch:
            if candidate.status is not None:
                session._look_for_target(candidate)
        self._settle(session, [candidate for candidate in batch if candidate.status is None])

    def _all_answers(self, session: Session) -> None:
        """In asynchronous mode: propose and learn in the order in which it happened."""
        while True:
            while self._later and self._later[0].after <= session._told:
                row = self._later.popleft()
                (self._open[row.number],) = self._again(session, [row])
            answer = self._places.get(session._told)
            if answer is None or answer.number not in self._open:
                break
            session._tell([_filled(self._open.pop(answer.number), answer)])
        if self._later:
            raise damaged(self._study.path, "answers are missing")
        settled = self._settle(session, [self._open[number] for number in sorted(self._open)])
        session._replay = None
        session._learn(settled)

    def _settle(self, session: Session, candidates: list[Candidate]) -> list[Candidate]:
        """Get candidates ready that were not answered; returns those that need no evaluation.

        Those are of points that were answered meanwhile.
        """
        settled = [candidate for candidate in candidates if session._settle(candidate)]
        if settled:
            with self._study.writing():
                self._study.answer(settled)
        return settled

    def _again(self, session: Session, rows: list[Row]) -> list[Candidate]:
        """Propose candidates again; they should be those that the study has."""
        optimizer = session.optimizer
        candidates = optimizer._draw(len(rows))
        if [candidate.key for candidate in candidates] != [row.point for row in rows]:
            logger.warning(
                "study %s: candidate %d is proposed differently here than where the run was "
                "started (another machine, engine or version); its answers are kept, but the run "
                "is not continued bit for bit",
                self._study.path, rows[0].number,
            )  # fmt: skip
            tickets = [candidate.ticket for candidate in candidates]
            optimizer.strategy.give_up([ticket for ticket in tickets if ticket is not None])
            points = optimizer.archive.packing.unpack(row.point for row in rows)
            optimizer._suggested[:0] = list(points)
            candidates = optimizer._draw(len(rows))
        session._number(candidates)
        for candidate, row in zip(candidates, rows, strict=True):
            candidate.generation = row.generation
        return candidates


def _filled(candidate: Candidate, row: Row) -> Candidate:
    """The candidate with the answer that the study has, if there is one."""
    candidate.after, candidate.place = row.after, row.place
    if row.status is not None:
        candidate.status = row.status
        candidate.value = np.nan if row.value is None else float(row.value)
        candidate.known = not row.paid
        candidate.tries, candidate.seconds = row.tries or 0, row.seconds or 0.0
        candidate.error = row.error
    return candidate
