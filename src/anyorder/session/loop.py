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
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anyorder.candidate import Candidate
from anyorder.errors import FAILED, INFEASIBLE, OK, REJECTED, STATUSES
from anyorder.optimizer import Optimizer
from anyorder.session.ending import failure, final_reason, is_exhausted, lost, stop_reason
from anyorder.session.evaluators import Outcome
from anyorder.session.interrupts import Interrupts
from anyorder.session.jobs import Jobs, make_evaluator
from anyorder.session.options import Evaluation, Stopping
from anyorder.session.progress import Progress
from anyorder.session.replay import Replay
from anyorder.session.study import Study

logger = logging.getLogger("anyorder")

# After so many proposals, or batches, in a row that are being evaluated already, wait for them.
_SAME_CANDIDATES, _SAME_BATCHES = 30, 3
_LONGEST_ERROR = 500  # characters of a failure's message that are kept
# A state is kept every so many seconds, and so seldom that it costs at most a twentieth.
_KEEP_EVERY, _KEEP_SHARE = 2.0, 0.05


class Session:
    """One run, or the continuation of one.

    Parameters
    ----------
    f
        The user's function.
    optimizer, evaluation, stopping
        Strategy and archive, how to evaluate, and when to stop.
    study
        Where the run is kept, if anywhere.
    bar
        A tqdm progress bar.
    callback
        Called with the optimiser after each batch, or generation; true stops the run.

    Attributes
    ----------
    evaluations, failures
        How many evaluations there were, and how many of them failed.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        optimizer: Optimizer,
        evaluation: Evaluation,
        stopping: Stopping,
        study: Study | None,
        bar: Any,
        callback: Callable[[Optimizer], Any] | None = None,
    ) -> None:
        self.optimizer, self.study = optimizer, study
        self._archive, self._strategy = optimizer.archive, optimizer.strategy
        self._evaluation, self._stopping = evaluation, stopping
        self._progress, self._callback = Progress(bar), callback
        self._start = self._kept = time.monotonic()
        self._drawn = 0  # candidates proposed
        self._told = 0  # answers learned
        self._placed = 0  # answers that have a place and are not learned yet
        self._batch: list[Candidate] = []  # in batch mode: what the strategy waits for
        self._ready: deque[Candidate] = deque()
        self._running: dict[int, list[Candidate]] = {}  # by job
        self._out = 0  # candidates in `_running`
        self._same: dict[bytes, list[Candidate]] = {}  # point that is out: others that wait for it
        self._idle = 0  # answers in a row that were not evaluations
        self._finished = self._called_off = False
        sign, target = self._archive.sign, stopping.target
        self._reached = target is not None and sign * self._archive.best_value >= sign * target
        self._keep_cost = 0.0  # seconds
        self._learning = self._evaluating = 0.0  # seconds: of one training, of one evaluation
        self._error: Exception | None = None
        self.evaluations = self.failures = 0
        self._replay: Replay | None = None
        self._jobs = Jobs(lambda done: make_evaluator(f, done, evaluation), evaluation.timeout)
        self._interrupts = Interrupts("finishing what is being evaluated", self._jobs)

    # --- the run --------------------------------------------------------------------------------

    def run(self) -> str:
        """Go on until something stops the run; returns what did."""
        consistent = True
        try:
            with self._interrupts:
                if self.study is not None and self.study.resumed:
                    self._resume(self.study)
                while (reason := stop_reason(self)) is None:
                    self._propose()
                    self._dispatch()
                    if self._running:
                        self._collect()
        except KeyboardInterrupt:  # not by way of `Interrupts`, or asked twice
            if self._interrupts.count > 1:
                raise
            # Wherever it was raised, something may be half done: the last state kept is not.
            reason, consistent = "interrupted", False
        finally:
            self._jobs.close()
        if consistent:
            self._keep_state(at_once=True)
        for candidate in self._batch:  # answers that the strategy would wait for
            if candidate.status is not None:
                self.optimizer._record(candidate)
        self._progress.show(self, at_once=True)
        return final_reason(self, reason)

    # --- proposing ------------------------------------------------------------------------------

    def _room(self) -> int:
        """How many candidates may be sent out within the budget."""
        return self._stopping.budget - self.evaluations - self._out

    def _places(self) -> int:
        """How many jobs may be out.

        In asynchronous mode some more than there are workers: twice as many as end while the
        strategy learns, so that no worker waits for that. Not where time limits are kept here.
        """
        slots = self._jobs.slots
        asynchronous = self._evaluation.asynchronous
        if not asynchronous or slots < 2 or not self._evaluating or self._jobs.timed:
            return slots
        return slots + min(slots, round(2 * slots * self._learning / self._evaluating))

    def _propose(self) -> None:
        """Get new candidates where they are needed."""
        if self._replay is not None:
            self._replay.step(self)
        elif self._interrupts.count:
            return
        elif not self._evaluation.asynchronous:
            if not self._batch:
                preferred = self._strategy.batch
                # a strategy without batches of its own keeps all workers busy
                self._draw(preferred if preferred > 1 else max(1, self._jobs.slots))
        else:
            self._propose_one_by_one()

    def _propose_one_by_one(self) -> None:
        same, most = 0, max(_SAME_CANDIDATES, _SAME_BATCHES * self._strategy.batch)
        while (
            len(self._ready) + len(self._running) < self._places()
            and len(self._ready) < self._room()
            and same < most
            and not is_exhausted(self)
            and stop_reason(self) is None
        ):
            before = len(self._ready), self._told
            if not self._draw(1):
                return
            same = same + 1 if before == (len(self._ready), self._told) else 0

    def _draw(self, count: int) -> bool:
        """Get candidates, write them down, and settle those that need no evaluation.

        Returns whether there were any: a strategy may have to wait for answers.
        """
        candidates = self.optimizer._draw(count)
        if not candidates:
            self._finished = not self._running and not self._ready
            return False
        self._number(candidates)
        settled = [candidate for candidate in candidates if self._settle(candidate)]
        if self.study is not None:
            with self.study.writing():
                self.study.add(candidates)
        self._learn(settled)
        return True

    def _number(self, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            candidate.number, candidate.after = self._drawn, self._told
            self._drawn += 1
        if not self._evaluation.asynchronous:
            self._batch = list(candidates)

    def _settle(self, candidate: Candidate) -> bool:
        """Answer a new candidate if nothing need be evaluated for it; else it is ready.

        In batch mode the archive does not have the rest of its batch yet, so that a run that is
        resumed settles the same candidates.
        """
        evaluation = self._evaluation
        if evaluation.deterministic:
            found = self._archive.lookup(candidate.key)
            if found is not None and (evaluation.cache or found[0] != OK):
                candidate.status, candidate.value = found
                candidate.known = True
                self._place(candidate)
                return True
            if evaluation.cache and candidate.key in self._same:
                self._same[candidate.key].append(candidate)
                return False
        feasibility = self.optimizer.feasibility
        if feasibility is not None:
            if candidate.violation is None:
                candidate.violation = feasibility.violation(candidate.codes)
            if candidate.violation > 0:
                candidate.status, candidate.known = REJECTED, True
                self._place(candidate)
                return True
        self._same.setdefault(candidate.key, [])
        self._ready.append(candidate)
        return False

    def _place(self, candidate: Candidate) -> None:
        """The place of an answer: in batch mode that of its proposal, else that of its arrival."""
        if self._evaluation.asynchronous:
            candidate.place = self._told + self._placed
            self._placed += 1
        else:
            candidate.place = candidate.number

    # --- evaluating -----------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Send out what is ready, as far as there are workers and budget."""
        vectorized, space = self._evaluation.vectorized, self.optimizer.space
        while self._ready and not self._interrupts.count and len(self._running) < self._places():
            count = min(self._room(), len(self._ready) if vectorized else 1)
            if count < 1:
                return
            candidates = [self._ready.popleft() for _ in range(count)]
            for candidate in candidates:
                candidate.tries += 1
            points: Any
            if vectorized:
                points = space.decode(np.stack([candidate.codes for candidate in candidates]))
            else:
                points = space.point(candidates[0].codes)
            self._running[self._jobs.start(points)] = candidates
            self._out += count
            if self._jobs.in_process:
                return  # it is done: take it before the next
        if (
            not self._running
            and self._jobs.slots < 1
            and (self._ready or self._evaluation.asynchronous)
        ):
            raise RuntimeError(
                f"every worker of the executor is past its timeout of {self._evaluation.timeout:g} "
                "s and cannot be stopped; workers=N replaces workers that hang"
            )

    def _collect(self) -> None:
        """Wait for an outcome, or for a time limit; then take all that are there."""
        limit = self._stopping.max_seconds
        for job, outcome in self._jobs.wait(None if limit is None else self._start + limit):
            self._end(self._running.pop(job), outcome)
        if self._jobs.error is not None:
            where = lost(self.optimizer.space, list(self._running.values()))
            gone = RuntimeError(
                f"evaluations are not possible any more: {self._jobs.error}{where}; every answer "
                "so far is kept in the study, if there is one"
            )
            raise self._error or gone from self._jobs.error.__cause__
        if self._error is not None:
            raise self._error

    def _end(self, candidates: list[Candidate], outcome: Outcome) -> None:
        """Take the outcome of a job: answers for its candidates, or another try."""
        self._out -= len(candidates)
        share = 0.1 if self._evaluating else 1.0
        self._evaluating += (outcome.seconds - self._evaluating) * share
        answered: list[Candidate] = []
        for k, candidate in enumerate(candidates):
            status, value, reason = outcome.status, math.nan, outcome.reason
            if status == OK:
                value = float(outcome.value[k]) if self._evaluation.vectorized else outcome.value
                if math.isnan(value):
                    status, reason = FAILED, f"value {k} is NaN or None, expected a number"
                    outcome = outcome._replace(reason=reason, error=ValueError(reason))
            if status not in (OK, INFEASIBLE):
                if candidate.tries <= self._evaluation.retries:
                    self._ready.appendleft(candidate)
                    continue
                if self._evaluation.on_failure == "raise":  # once other answers are written
                    space = self.optimizer.space
                    self._error = self._error or failure(space, candidates, k, outcome)
                    continue
            candidate.status, candidate.value = status, value
            candidate.seconds = outcome.seconds / len(candidates)
            candidate.error = None if reason is None else reason[:_LONGEST_ERROR]
            answered.append(candidate)
        self._conclude(answered)

    def _conclude(self, evaluated: list[Candidate]) -> None:
        """Record evaluations, and answer the candidates that waited for the same points."""
        answered: list[Candidate] = []
        for candidate in evaluated:
            self.evaluations += 1
            if candidate.status != OK:
                self._count_failure(candidate)
            self._look_for_target(candidate)
            self._place(candidate)
            answered.append(candidate)
            for other in self._same.pop(candidate.key, ()):
                other.status, other.value, other.known = candidate.status, candidate.value, True
                self._place(other)
                answered.append(other)
        if not answered:
            return
        if self.study is not None:
            with self.study.writing():
                self.study.answer(answered)
        self._learn(answered)
        self._progress.show(self)

    def _look_for_target(self, candidate: Candidate) -> None:
        """Whether a value is as good as the target, be its batch complete or not."""
        target, sign = self._stopping.target, self._archive.sign
        # of a noisy function the mean counts, which the archive has
        if target is not None and self._evaluation.deterministic and candidate.status == OK:
            self._reached = self._reached or sign * candidate.value >= sign * target

    def _count_failure(self, candidate: Candidate) -> None:
        self.failures += 1
        level = logging.WARNING if self.failures == 1 else logging.INFO
        ended, where = STATUSES[candidate.status or OK], self.optimizer.space.brief(candidate.codes)
        about = candidate.number, where, ended, candidate.error
        logger.log(level, "candidate %d, %s: %s: %s", *about)

    # --- learning -------------------------------------------------------------------------------

    def _learn(self, answered: list[Candidate]) -> None:
        """Let the strategy learn answers that are written: one by one, or the whole batch."""
        if self._evaluation.asynchronous:
            for candidate in answered:
                self._placed -= 1
                self._tell([candidate])
        elif self._batch and all(candidate.status is not None for candidate in self._batch):
            batch, self._batch = self._batch, []
            self._tell(batch)
        self._keep_state()  # not earlier: what is answered and not learned would be missing

    def _tell(self, candidates: list[Candidate]) -> None:
        strategy, archive = self._strategy, self._archive
        for candidate in candidates:
            self._idle = self._idle + 1 if candidate.known else 0
        generation, restarts = strategy.generation, len(archive.restarts)
        start = time.monotonic()
        self.optimizer._take(candidates, skip=self._evaluation.on_failure == "skip")
        self._told += len(candidates)
        if self.study is not None and len(archive.restarts) > restarts:
            self.study.add_restarts(archive.restarts[restarts:], restarts)
        target = self._stopping.target
        if target is not None and not self._reached and archive.improved:
            self._reached = archive.sign * archive.best_value >= archive.sign * target
        progressed = strategy.generation != generation
        if progressed:
            self._learning = time.monotonic() - start
        if self._callback is not None and self._replay is None:
            wanted = progressed or not self._evaluation.asynchronous
            if wanted and self._callback(self.optimizer):
                self._called_off = True

    # --- the study ------------------------------------------------------------------------------

    def _keep_state(self, at_once: bool = False) -> None:
        if self.study is None or self._replay is not None:
            return
        now = time.monotonic()
        if at_once or now - self._kept >= max(_KEEP_EVERY, self._keep_cost / _KEEP_SHARE):
            waiting = [*self._batch, *self._ready]
            waiting += [c for candidates in self._running.values() for c in candidates]
            waiting += [c for others in self._same.values() for c in others]
            tickets = {candidate.number: candidate.ticket for candidate in waiting}
            restarts = len(self._archive.restarts)
            counters = {
                "idle": self._idle,
                "restarts": restarts,
                "tickets": list(tickets.items()),
                "facts": self._strategy.facts(),  # for `anyorder show`
            }
            state = self.optimizer._search_state()
            self.study.keep_state(state, self._drawn, self._told, counters)
            self._kept = time.monotonic()
            self._keep_cost = self._kept - now

    def _resume(self, study: Study) -> None:
        """Continue a study: from its last state, propose and learn again what came after."""
        self._replay = Replay(self, study)
        self.evaluations, self.failures = study.evaluations()
        logger.info("study %s: %d evaluations so far", study.path, self.evaluations)
