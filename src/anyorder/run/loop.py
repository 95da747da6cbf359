"""The one loop of the library: proposes, evaluates, records, learns, until something stops it.

    proposed   by the strategy, numbered, written to the study
    settled    at once: answered from the archive, or rejected by the constraint
    ready      to be evaluated, as soon as a worker is free and the budget allows
    running    on a worker
    answered   written to the study, then learned by the strategy

In batch mode the strategy learns a batch when all of it is answered, in the order it was proposed,
so that the run does not depend on which worker is first. In asynchronous mode it learns each answer
as it comes.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from anyorder._internal.checks import ProgramError
from anyorder.archive.candidate import Candidate
from anyorder.errors import FAILED, INFEASIBLE, OK, STATUSES
from anyorder.proposer import SAME_BATCHES, SAME_CANDIDATES, Proposer
from anyorder.run import confirm
from anyorder.run.ending import describe_lost, failure, final_reason, stop_reason
from anyorder.run.evaluation.evaluators import Outcome
from anyorder.run.evaluation.interrupts import Interrupts
from anyorder.run.evaluation.jobs import Jobs, make_evaluator
from anyorder.run.exhaustion import is_exhausted, is_idle, random_points, unknown_points
from anyorder.run.options import Evaluation, Stopping
from anyorder.run.progress import Display
from anyorder.run.state import State
from anyorder.run.study.replay import Replay, announce, verify
from anyorder.run.study.writing import Study

logger = logging.getLogger("anyorder")

# Points at a time for a vectorised function, where the strategy has no batches of its own.
VECTORIZED_BATCH = 16
_WAIT_QUIETLY = 10.0  # seconds to wait for a worker before a warning
_LONGEST_ERROR = 500  # characters of a failure's message that are kept
# A state is kept every so many seconds, and so seldom that it costs at most a twentieth.
_KEEP_EVERY, _KEEP_SHARE = 2.0, 0.05


class Session:
    """One run, or the continuation of one.

    Parameters
    ----------
    f
        The user's function.
    proposer, evaluation, stopping
        Strategy and archive, how to evaluate, and when to stop.
    study
        Where the run is kept, if anywhere.
    bar
        A tqdm progress bar.
    callback
        Called after each batch, or generation; true stops the run.

    Attributes
    ----------
    state
        What the run has done, and what it has under way.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        proposer: Proposer,
        evaluation: Evaluation,
        stopping: Stopping,
        study: Study | None,
        bar: Any,
        callback: Callable[[], Any] | None = None,
    ) -> None:
        several = proposer.archive.objectives
        jobs = Jobs(lambda done: make_evaluator(f, done, evaluation, several), evaluation.timeout)
        interrupts = Interrupts("finishing what is being evaluated", jobs)
        self.state = State(proposer, evaluation, stopping, study, jobs, interrupts)
        # The statuses of points that are not evaluated again.
        again = {OK} if evaluation.deterministic and not evaluation.cache else set()
        self._final = set(range(len(STATUSES))) - again if evaluation.deterministic else set()
        self._display, self._callback = Display(bar), callback
        self._replay: Replay | None = None
        self._waited_since: float | None = None  # for workers of a cluster
        self._warn_at = math.inf
        self._noted: dict[int, float] = {}  # what the study has as running: number and start
        self._kept, self._keep_cost = self.state.start, 0.0  # the last state: when, and seconds

    # --- the run --------------------------------------------------------------------------------

    def run(self) -> str:
        """Go on until something stops the run; returns what did."""
        state = self.state
        consistent = True
        try:
            with state.interrupts:
                self._display.begin(state)
                if state.study is not None and state.study.resumed:
                    self._resume(state.study)
                while (reason := stop_reason(state)) is None:
                    if self._replay is not None and state.replaying:
                        self._replay.step(self)
                        continue
                    self._propose()
                    self._dispatch()
                    if state.running:
                        self._collect()
        except KeyboardInterrupt:  # not by way of `Interrupts`, or asked twice
            if state.interrupts.count > 1:
                raise
            # Wherever it was raised, something may be half done: the last state kept is not.
            reason, consistent = "interrupted", False
        finally:
            state.jobs.close()
        if consistent:
            self._keep_state(at_once=True)
        for candidate in state.batch:  # answers that the strategy would wait for
            if candidate.status is not None:
                state.proposer.record(candidate)
        reason = final_reason(state, reason)
        self._display.end(state, reason)
        return reason

    # --- proposing ------------------------------------------------------------------------------

    def _places(self) -> int:
        """Return how many jobs may be out.

        In asynchronous mode there are some more than workers: twice as many as end while the
        strategy learns, so that no worker waits for that; but not where time limits are kept here.
        """
        state = self.state
        slots = state.jobs.slots
        asynchronous = state.evaluation.asynchronous
        if not asynchronous or slots < 2 or not state.evaluating or state.jobs.timed:
            return slots
        return slots + min(slots, round(2 * slots * state.learning / state.evaluating))

    def _propose(self) -> None:
        """Get new candidates where they are needed."""
        state = self.state
        if state.interrupts.count:
            return
        if state.evaluation.asynchronous:
            self._propose_one_by_one()
        elif not state.batch:
            self._draw_and_settle(self._batch_size())

    def _batch_size(self) -> int:
        """Return how many candidates to ask for at a time."""
        state = self.state
        if state.evaluation.batch is not None:
            return state.evaluation.batch
        if state.strategy.batch > 1:
            return state.strategy.batch
        # of a strategy without batches of its own
        return VECTORIZED_BATCH if state.evaluation.vectorized else max(1, state.jobs.slots)

    def _propose_one_by_one(self) -> None:
        state = self.state
        same, most = 0, max(SAME_CANDIDATES, SAME_BATCHES * state.strategy.batch)
        while (
            len(state.ready) + len(state.running) < self._places()
            and len(state.ready) < state.room
            and same < most
            and not is_exhausted(state)
            and not (is_idle(state) and state.running)  # what is out may bring something new
            and stop_reason(state) is None
        ):
            before = len(state.ready), state.told
            if not self._draw_and_settle(1):
                return
            same = same + 1 if before == (len(state.ready), state.told) else 0

    def _draw_and_settle(self, count: int) -> bool:
        """Get candidates, write them down, and settle those that need no evaluation.

        Returns whether there were any: a strategy may have to wait for answers.
        """
        state = self.state
        kind, most = confirm.next_kind(state)
        count = int(min(count, most))
        if count < 1:  # what is out comes before the last of a noisy run
            return False
        # nothing to finish where nothing is evaluated, and the strategy may take long
        state.interrupts.at_once = not state.running
        try:
            candidates = [] if kind is None else confirm.draw(state, kind, count)
            candidates = candidates or self.draw(count, state.same)
        finally:
            state.interrupts.at_once = False
        if not candidates:
            state.finished = not state.running and not state.ready
            return False
        self.number(candidates)
        settled = [candidate for candidate in candidates if self.settle(candidate)]
        if state.study is not None:
            with state.study.writing():
                state.study.add(candidates)
        self.learn(settled)
        return True

    def draw(self, count: int, busy: Collection[bytes]) -> list[Candidate]:
        """Get candidates from the strategy, which is given points where it has no new ones.

        Parameters
        ----------
        count
            How many are wanted.
        busy
            The points that are proposed and not answered.
        """
        state, suggested = self.state, self.state.proposer.suggested
        if is_idle(state) and not suggested:
            suggested += unknown_points(state, busy)
            state.nothing_left = not suggested and not busy
            if state.nothing_left and is_exhausted(state):
                return []
        candidates = state.proposer.draw(count)
        if not candidates and not busy and not state.strategy.converged:
            suggested += random_points(state, count)
            if suggested:
                candidates = state.proposer.draw(count)
        return candidates

    def number(self, candidates: Sequence[Candidate]) -> None:
        """Give new candidates their numbers; in batch mode the strategy waits for them."""
        state = self.state
        for candidate in candidates:
            candidate.number, candidate.after = state.drawn, state.told
            state.drawn += 1
        if not state.evaluation.asynchronous:
            state.batch = list(candidates)

    def settle(self, candidate: Candidate) -> bool:
        """Answer a new candidate if nothing need be evaluated for it; else it is ready.

        In batch mode the archive does not have the rest of its batch yet, so that a run that is
        resumed settles the same candidates.
        """
        state = self.state
        if state.proposer.settle(candidate, self._final):
            self._place(candidate)
            return True
        if OK in self._final and candidate.key in state.same:
            state.same[candidate.key].append(candidate)
            return False
        state.same.setdefault(candidate.key, [])
        state.ready.append(candidate)
        return False

    def _place(self, candidate: Candidate) -> None:
        """Give an answer its place: in batch mode that of its proposal, else of its arrival."""
        state = self.state
        if state.evaluation.asynchronous:
            candidate.place = state.told + state.placed
            state.placed += 1
        else:
            candidate.place = candidate.number

    # --- evaluating -----------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Send out what is ready, as far as there are workers and budget."""
        state = self.state
        if state.unverified and state.ready and state.room > 0 and not state.interrupts.count:
            state.unverified = False
            if state.study is not None:
                verify(self, state.study)
        vectorized, space = state.evaluation.vectorized, state.archive.space
        while state.ready and not state.interrupts.count and len(state.running) < self._places():
            if state.room < 1:
                return
            count = int(min(state.room, len(state.ready))) if vectorized else 1
            candidates = [state.ready.popleft() for _ in range(count)]
            now = time.time()
            for candidate in candidates:
                candidate.tries, candidate.started = candidate.tries + 1, now
            points: Any
            if vectorized:
                points = space.decode(np.stack([candidate.codes for candidate in candidates]))
            else:
                points = space.point(candidates[0].codes)
            state.running[state.jobs.start(points)] = candidates
            if state.jobs.in_process:
                return  # it is done: take it before the next
        if state.running or state.jobs.slots > 0:
            return
        if state.jobs.waits:
            self._wait_for_workers()
        elif state.ready or state.evaluation.asynchronous:
            raise RuntimeError(
                f"every worker of the executor is past its timeout of {state.evaluation.timeout:g} "
                "s and cannot be stopped; workers=N replaces workers that hang"
            )

    def _wait_for_workers(self) -> None:
        """Wait for the first worker of a cluster, or the next one, a moment at a time."""
        state, now = self.state, time.monotonic()
        if self._waited_since is None:
            self._waited_since, self._warn_at = now, now + _WAIT_QUIETLY
        if now >= self._warn_at:
            self._warn_at = math.inf
            logger.warning("the executor has no workers: waiting for one")
        state.jobs.wait(state.deadline)
        if state.jobs.error is not None:
            raise RuntimeError(str(state.jobs.error)) from state.jobs.error.__cause__
        if state.jobs.slots > 0:
            self._waited_since = None
        elif state.deadline is not None and time.monotonic() >= state.deadline:
            waited = time.monotonic() - self._waited_since
            raise RuntimeError(f"no worker of the executor has come in {waited:.0f} s")

    def _collect(self) -> None:
        """Wait for an outcome, or for a time limit; then take all that are there."""
        state = self.state
        outcomes = state.jobs.wait(state.deadline)
        for job, outcome in outcomes:
            self.end(state.running.pop(job), outcome)
        if not outcomes:
            self._note_running()
        if state.jobs.error is not None:
            where = describe_lost(state.archive.space, state.out)
            gone = RuntimeError(
                f"evaluations are not possible any more: {state.jobs.error}{where}; every answer "
                "so far is kept in the study, if there is one"
            )
            raise state.error or gone from state.jobs.error.__cause__
        if state.error is not None:
            raise state.error

    def _note_running(self) -> None:
        """Write down what is being evaluated; called when no answer has come for a while."""
        study = self.state.study
        if study is None:
            return
        running = {candidate.number: candidate for candidate in self.state.out}
        started = {number: c.started for number, c in running.items()}
        if new := [c for number, c in running.items() if self._noted.get(number) != c.started]:
            study.note_running(new)
        self._noted = started

    def end(self, candidates: list[Candidate], outcome: Outcome) -> None:
        """Take the outcome of a job: answers for its candidates, or another try."""
        state = self.state
        now, each = time.time(), outcome.seconds / max(1, len(candidates))
        share = 0.1 if state.evaluating else 1.0
        state.evaluating += (outcome.seconds - state.evaluating) * share
        answered: list[Candidate] = []
        for k, candidate in enumerate(candidates):
            status, value, reason = outcome.status, math.nan, outcome.reason
            if status == OK:
                given = outcome.value[k] if state.evaluation.vectorized else outcome.value
                if state.archive.objectives is not None:
                    candidate.values, given = given, given[0]
                value = float(given)
                # the better infinity would be the best for ever; the other is a usual penalty
                if math.isnan(value) or value == state.archive.sign * math.inf:
                    what = f"value {k} is" if state.evaluation.vectorized else "f returned"
                    shown = "NaN or None" if math.isnan(value) else f"{value:g}"
                    status, value, candidate.values = FAILED, math.nan, None
                    reason = f"{what} {shown}, expected a finite number"
                    outcome = outcome._replace(reason=reason, error=ValueError(reason))
            if status not in (OK, INFEASIBLE):
                wrong = isinstance(outcome.error, ProgramError)
                if candidate.tries <= state.evaluation.retries and not wrong:
                    state.ready.appendleft(candidate)
                    continue
                # once other answers are written
                if wrong or state.evaluation.on_failure == "raise":
                    space = state.archive.space
                    state.error = state.error or failure(space, candidates, k, outcome)
                    continue
            candidate.status, candidate.value = status, value
            candidate.seconds, candidate.notes = each, outcome.notes
            if state.evaluation.vectorized and outcome.notes is not None:
                candidate.notes = outcome.notes[k]
            candidate.ended = now - each * (len(candidates) - 1 - k)  # one after the other
            candidate.started = max(candidate.started, candidate.ended - each)
            candidate.error = None if reason is None else reason[:_LONGEST_ERROR]
            answered.append(candidate)
        self._conclude(answered)

    def _conclude(self, evaluated: list[Candidate]) -> None:
        """Record evaluations, and answer the candidates that waited for the same points."""
        state = self.state
        answered: list[Candidate] = []
        for candidate in evaluated:
            state.evaluations += 1
            if candidate.status != OK:
                self._count_failure(candidate)
            self._place(candidate)
            answered.append(candidate)
            for other in state.same.pop(candidate.key, ()):
                other.status, other.value, other.known = candidate.status, candidate.value, True
                other.values = candidate.values
                self._place(other)
                answered.append(other)
        if not answered:
            return
        if state.study is not None:
            with state.study.writing():
                state.study.answer(answered)
        self.learn(answered)
        self._display.show(state)

    def _count_failure(self, candidate: Candidate) -> None:
        state = self.state
        state.failures += 1
        level = logging.WARNING if state.failures == 1 else logging.DEBUG
        where = state.archive.space.brief(candidate.codes)
        about = candidate.number, where, STATUSES[candidate.status or OK], candidate.error
        logger.log(level, "candidate %d, %s: %s: %s", *about)

    # --- learning -------------------------------------------------------------------------------

    def learn(self, answered: list[Candidate]) -> None:
        """Let the strategy learn answers that are written: one by one, or the whole batch."""
        state = self.state
        if state.evaluation.asynchronous:
            for candidate in answered:
                state.placed -= 1
                self.tell([candidate])
        elif state.batch and all(candidate.status is not None for candidate in state.batch):
            batch, state.batch = state.batch, []
            self.tell(batch)
        self._keep_state()  # not earlier: what is answered and not learned would be missing

    def tell(self, candidates: list[Candidate]) -> None:
        """Let archive and strategy learn answers, and call the callback."""
        state = self.state
        strategy, archive = state.strategy, state.archive
        for candidate in candidates:
            state.idle = state.idle + 1 if candidate.known else 0
        generation, restarts = strategy.generation, len(archive.restarts)
        start = time.monotonic()
        state.proposer.learn(candidates, skip=state.evaluation.on_failure == "skip")
        state.told += len(candidates)
        if state.study is not None and len(archive.restarts) > restarts:
            state.study.add_restarts(archive.restarts[restarts:], restarts)
        progressed = strategy.generation != generation
        if progressed:
            state.learning = time.monotonic() - start
        if self._callback is not None and not state.replaying:
            wanted = progressed or not state.evaluation.asynchronous
            if wanted and self._callback():
                state.called_off = True

    # --- the study ------------------------------------------------------------------------------

    def _keep_state(self, at_once: bool = False) -> None:
        state = self.state
        if state.study is None or state.replaying:
            return
        now = time.monotonic()
        if at_once or now - self._kept >= max(_KEEP_EVERY, self._keep_cost / _KEEP_SHARE):
            waiting = [*state.batch, *state.ready, *state.out]
            waiting += [c for others in state.same.values() for c in others]
            tickets = {candidate.number: candidate.ticket for candidate in waiting}
            restarts = len(state.archive.restarts)
            counters = {
                "idle": state.idle,
                "restarts": restarts,
                "tickets": list(tickets.items()),
                # for `anyorder show`
                "facts": state.strategy.facts(),
                "evaluations": state.evaluations,
                "seconds": state.seconds_before + state.seconds,
            }
            arrays = state.proposer.state()
            state.study.keep_state(arrays, state.drawn, state.told, counters)
            self._kept = time.monotonic()
            self._keep_cost = self._kept - now

    def _resume(self, study: Study) -> None:
        """Continue a study: from its last state, propose and learn again what came after."""
        state = self.state
        self._replay = Replay(state, study)
        state.replaying = True
        state.evaluations, state.failures = study.evaluations()
        state.resumed_at = state.evaluations
        state.unverified = state.evaluation.verify and state.evaluation.deterministic
        announce(state, study)
