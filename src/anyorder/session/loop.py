"""The loop around ask and tell: draws, evaluates, records, tells, until something stops it.

Candidates go through five places, and are written down on the way:

    drawn      numbered, written to the study
    settled    at once: answered by the study, by the cache, or refused by the constraint
    ready      to be evaluated, as soon as a worker is free and the budget allows
    running    on a worker
    answered   written to the study, then told

In batch mode a generation is told when all of it is answered, in the order it was drawn, so that
the run does not depend on who answers first. In asynchronous mode each answer is told as it comes.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.errors import FAILED, INFEASIBLE, OK, REJECTED, STATUSES, TIMEOUT
from anyorder.optimizer import Optimizer
from anyorder.session.evaluators import Done, Evaluator, Inline, Measured, OnExecutor, Outcome
from anyorder.session.interrupts import Interrupts
from anyorder.session.options import Rules
from anyorder.session.processes import Processes
from anyorder.session.study import Answer, Row, Study
from anyorder.strategies.policy.candidates import Codes
from anyorder.strategies.policy.config import Config

logger = logging.getLogger("anyorder")

# After so many generations in a row of which nothing was new, nothing will be.
_IDLE_GENERATIONS = 1_000
# After so many generations in a row that only wait for points that are out, wait with them.
_TWIN_GENERATIONS = 3
_LONGEST_REASON = 500  # characters that are kept of what went wrong
# A state is kept every so many seconds, and so seldom that it costs at most a twentieth.
_KEEP_EVERY, _KEEP_SHARE = 2.0, 0.05


@dataclass
class _Candidate:
    codes: Codes
    point: bytes
    tries: int = 0


class Driver:
    """One run, or the continuation of one."""

    def __init__(
        self,
        f: Callable[..., Any],
        optimizer: Optimizer,
        study: Study,
        rules: Rules,
        bar: Any,
        drawn: int = 0,
        told: int = 0,
    ) -> None:
        self.optimizer, self.study, self.rules, self._bar = optimizer, study, rules, bar
        self._done: Done = SimpleQueue()
        self._start = time.monotonic()
        self._drawn, self._told = drawn, told  # candidates; answers told: the optimiser's state
        self._open: dict[int, _Candidate] = {}  # drawn and not answered
        self._batch: dict[int, Answer | None] = {}  # of batch mode: the generation that is out
        self._ready: deque[int] = deque()
        self._running: dict[int, list[int]] = {}  # job: its candidates
        self._deadlines: dict[int, float] = {}  # of jobs on an executor that keeps no time
        self._twins: dict[bytes, list[int]] = {}  # point that is out: others that wait for it
        self._recorded: dict[int, Row] = {}  # what a study that goes on already holds
        self._catching_up = False
        # Counted in the order of telling, which is the same however a run is interrupted.
        counters = {} if study.fresh else study.counters()
        self._idle = counters.get("idle", 0)  # candidates told in a row that cost nothing
        self._collapsed = counters.get("collapsed", 0)
        self._paid_told = counters.get("paid", 0)
        self._improved = counters.get("improved", 0)  # after so many of those
        self._kept, self._keep_cost = time.monotonic(), 0.0
        self._training = self._evaluating = 0.0  # seconds: of one training, of one evaluation
        self._generation = optimizer.generation
        optimizer._stays_collapsed = rules.stop_collapsed
        self._interrupts = Interrupts("finishing what is being evaluated", self._running)
        self._error: Exception | None = None
        self.paid, self.failed, self._distinct = study.counts()
        self._sign = 1.0 if optimizer.direction == "maximize" else -1.0
        self._evaluator = _evaluator(f, self._done, rules)

    # --- the run --------------------------------------------------------------------------------

    def run(self) -> str:
        """Go on until something stops it; returns what did."""
        whole = True  # nothing is half done: drawn and not written, or told in part
        try:
            with self._interrupts:
                if not self.study.fresh:
                    self._restore()
                reason = self._reason()
                while reason is None:
                    self._draw_more()
                    self._dispatch()
                    reason = self._reason()
                    if reason is None and self._running:
                        self._collect()
                        reason = self._reason()
        except KeyboardInterrupt:  # not by way of `Interrupts`, or asked twice
            if self._interrupts.count > 1:
                raise
            reason, whole = "interrupted", False
        finally:
            self._evaluator.close()
        self._finish(reason, whole)
        return reason

    def _reason(self) -> str | None:
        """Why to stop now, if there is a reason."""
        rules = self.rules
        if self._interrupts.count and not self._running:
            return "interrupted"
        if self._replaying():
            return None
        if rules.target is not None and self._reached(rules.target):
            return "target"
        if self._stopped_by_callback:
            return "callback"
        if rules.patience is not None and self._paid_told - self._improved >= rules.patience:
            return "patience"
        if rules.max_seconds is not None and self._elapsed() >= rules.max_seconds:
            return "time"
        if self.paid >= rules.budget and not self._running:
            return "budget"
        if rules.stop_collapsed and self._has_collapsed():
            return "collapsed"
        if not self._ready and not self._running and self._is_exhausted():
            return "exhausted"
        return None

    _stopped_by_callback = False

    def _reached(self, target: float) -> bool:
        """Whether an answer is as good, be its generation complete and told or not."""
        known = [] if self.optimizer.best is None else [self.optimizer.best_value]
        if self.rules.deterministic:  # else the mean counts, which is told
            known += [answer.value for answer in self._batch.values() if answer is not None]
        return any(self._sign * value >= self._sign * target for value in known)

    def _elapsed(self) -> float:
        return time.monotonic() - self._start

    def _has_collapsed(self) -> bool:
        config = self.optimizer.config
        return self._collapsed >= config.restart_patience

    def _is_exhausted(self) -> bool:
        rules, space = self.rules, self.optimizer.space
        if rules.cache and rules.deterministic and self._distinct >= space.size:
            return True
        return self._idle >= _IDLE_GENERATIONS * self.optimizer.config.population

    def _finish(self, reason: str, whole: bool) -> None:
        """Keep the state; what of an unfinished generation is answered counts for the incumbent."""
        if whole:
            # Whoever goes on draws that generation again, and tells it as a whole.
            self.optimizer._undraw(len(self._batch))
            self._drawn -= len(self._batch)
            self._keep_state(at_once=True)
        else:
            self.optimizer._waiting.forget(min(self._batch, default=self._drawn))
        for number, answer in self._batch.items():
            if answer is not None:
                self.optimizer._take(self._codes[number][None], np.array([answer.value]))
        if reason == "exhausted":
            cached = self.rules.cache and self.rules.deterministic  # else points count again
            all_known = cached and self._distinct >= self.optimizer.space.size
            what = (
                "all points of the space are known"
                if all_known
                else f"of the last {self._idle} candidates drawn each was known or refused"
            )
            logger.warning("stopped after %d evaluations: %s", self.paid, what)

    # --- drawing --------------------------------------------------------------------------------

    def _replaying(self) -> bool:
        """Whether the study holds candidates that have not been drawn again."""
        return self._catching_up or self._drawn in self._recorded

    def _room(self) -> int:
        """How many candidates may be sent out within the budget."""
        out = sum(map(len, self._running.values()))
        return self.rules.budget - self.paid - out

    def _places(self) -> int:
        """How many jobs may be out.

        In asynchronous mode some more than there are workers: twice as many as end while the policy
        trains, so that no worker waits for that. Not where we keep the time of what is out.
        """
        slots = self._evaluator.slots
        if not self.rules.asynchronous or slots < 2 or not self._evaluating or self._deadlines:
            return slots
        return slots + min(slots, round(2 * slots * self._training / self._evaluating))

    def _draw_more(self) -> None:
        if self.rules.asynchronous:
            twins, most = 0, _TWIN_GENERATIONS * self.optimizer.config.population
            while (
                self._reason() is None
                and not self._interrupts.count
                and len(self._ready) + len(self._running) < self._places()
                and len(self._ready) < self._room()
                and not self._is_exhausted()
                and twins < most
            ):
                before = len(self._ready), self._told
                self._draw(1)
                twins = twins + 1 if before == (len(self._ready), self._told) else 0
        elif not self._batch and (self._replaying() or not self._interrupts.count):
            self._draw(self.optimizer.config.population)

    def _draw(self, count: int) -> None:
        """Draw candidates, write them down, and settle what needs no evaluation."""
        generation = self.optimizer.generation
        codes = self.optimizer._draw(count)
        points = self.study.packing.pack(codes)
        numbers = range(self._drawn, self._drawn + count)
        self._drawn += count
        if numbers[0] in self._recorded:
            codes, points = self._as_recorded(numbers, codes, points)
        for number, row, point in zip(numbers, codes, points, strict=True):
            self._open[number] = _Candidate(row, point)
        if not self.rules.asynchronous:
            self._batch = dict.fromkeys(numbers)
            self._codes = dict(zip(numbers, codes, strict=True))
        fresh = [number for number in numbers if number not in self._recorded]
        answers = {number: self._settled(number) for number in fresh}
        with self.study.writing():
            if fresh:
                first = points[fresh[0] - numbers[0] :]
                self.study.add(fresh[0], self._told, generation, first)
            self._write({k: answer for k, answer in answers.items() if answer is not None})
        for number in numbers:
            if number in self._recorded:
                if not self.rules.asynchronous:
                    self._take_recorded(number)
            elif (answer := answers[number]) is not None:
                self._take(number, answer)
        self._tell_batch()

    def _as_recorded(
        self, numbers: range, codes: Codes, points: list[bytes]
    ) -> tuple[Codes, list[bytes]]:
        """The candidates as the study has them; they should be the ones just drawn."""
        had = [self._recorded[k].point for k in numbers if k in self._recorded]
        if points[: len(had)] == had:
            return codes, points
        logger.warning(
            "study %s: candidate %d is drawn otherwise here than where it was begun (another "
            "machine, engine or version); what it holds is kept, but the run is not bit for bit",
            self.study.path, numbers[0],
        )  # fmt: skip
        codes = codes.copy()
        codes[: len(had)] = self.study.packing.unpack(had)
        self.optimizer._redraw(codes)
        return codes, had + points[len(had) :]

    def _settled(self, number: int) -> Answer | None:
        """The answer of a new candidate if nothing need be paid for it; else it is ready."""
        candidate, rules = self._open[number], self.rules
        if rules.deterministic:
            # In batch mode what the rest of the generation gave is not known yet, so that a run
            # that goes on settles what the first one did.
            before = self._drawn if rules.asynchronous else next(iter(self._batch))
            known = self.study.find(candidate.point, before)
            if known is not None and (rules.cache or known[0] != OK):
                return Answer(known[0], known[1], paid=False, tries=0)
            if candidate.point in self._twins and rules.cache:
                self._twins[candidate.point].append(number)
                return None
        if rules.constraint is not None:
            point = self.optimizer.space.one(candidate.codes)
            if not rules.constraint(point):
                return Answer(REJECTED, math.nan, paid=False, tries=0)
        self._twins.setdefault(candidate.point, [])
        self._ready.append(number)
        return None

    # --- evaluating -----------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Send out what is ready, as far as there are workers and budget."""
        rules, space = self.rules, self.optimizer.space
        while self._ready and not self._interrupts.count and len(self._running) < self._places():
            count = min(self._room(), len(self._ready) if rules.vectorized else 1)
            if count < 1:
                return
            numbers = [self._ready.popleft() for _ in range(count)]
            points: Any = space.decode(np.stack([self._open[k].codes for k in numbers]))
            job = numbers[0]
            self._running[job] = numbers
            for k in numbers:
                self._open[k].tries += 1
            if rules.timeout is not None and isinstance(self._evaluator, OnExecutor):
                self._deadlines[job] = time.monotonic() + rules.timeout
            self._evaluator.start(job, points if rules.vectorized else points[0])
            if isinstance(self._evaluator, Inline):
                return  # it is done: take it before the next
        stuck = not self._running and self._evaluator.slots < 1
        if stuck and (self._ready or rules.asynchronous):
            raise RuntimeError(
                f"every worker of the executor is past its timeout of {rules.timeout:g} s and "
                "cannot be stopped; workers=N replaces workers that hang"
            )

    def _collect(self) -> None:
        """Wait for an outcome, or for a time to run out; then take all that are there."""
        now = time.monotonic()
        ends = list(self._deadlines.values())
        if self.rules.max_seconds is not None:
            ends.append(self._start + self.rules.max_seconds)
        try:
            job, outcome = self._done.get(timeout=max(0.0, min(ends) - now) if ends else None)
            while True:
                self._end(job, outcome)
                job, outcome = self._done.get_nowait()
        except Empty:
            pass
        now = time.monotonic()
        for job in [job for job, end in self._deadlines.items() if end <= now]:
            self._evaluator.abandon(job)
            reason = f"no answer in {self.rules.timeout:g} s"
            self._end(job, Outcome(TIMEOUT, None, reason, None, self.rules.timeout or 0.0))
        if self._error is not None:
            raise self._error

    def _end(self, job: int, outcome: Outcome) -> None:
        """What became of a job: the answers of its candidates, or another try."""
        if outcome.status is None:
            if outcome.reason is None:
                return  # only to wake us
            gone = RuntimeError(
                f"evaluations are not possible any more: {outcome.reason}; every answer so far is "
                "kept in the study, if there is one"
            )
            gone.__cause__ = outcome.error
            self._error = self._error or gone  # once what else has come is written down
            return
        numbers = self._running.pop(job, None)
        if numbers is None:
            return  # given up before
        self._evaluating += (outcome.seconds - self._evaluating) * (0.1 if self._evaluating else 1)
        self._deadlines.pop(job, None)
        answers: dict[int, Answer] = {}
        for k, number in enumerate(numbers):
            candidate = self._open[number]
            status, value, reason, error = outcome.status, math.nan, outcome.reason, outcome.error
            if status == OK:
                value = float(outcome.value[k] if self.rules.vectorized else outcome.value)
                if math.isnan(value):
                    status, reason = FAILED, f"value {k} is NaN or None, expected a number"
                    error = ValueError(reason)
            if status not in (OK, INFEASIBLE):
                if candidate.tries <= self.rules.retries:
                    self._ready.appendleft(number)
                    continue
                if self.rules.on_failure == "raise":  # once what else has come is written down
                    ended = f"an evaluation ended with {STATUSES[status]!r}: {reason}"
                    self._error = self._error or error or RuntimeError(ended)
                    continue
            seconds = outcome.seconds / len(numbers)
            told = None if reason is None else reason[:_LONGEST_REASON]
            answers[number] = Answer(status, value, True, candidate.tries, seconds, told)
        self._conclude(answers)

    def _conclude(self, answers: dict[int, Answer]) -> None:
        """Write down what was paid for, and answer those who waited for the same points."""
        for number, answer in list(answers.items()):
            self._count(number, answer)
            for twin in self._twins.pop(self._open[number].point, []):
                answers[twin] = Answer(answer.status, answer.value, paid=False, tries=0)
        with self.study.writing():
            self._write(answers)
        for number, answer in answers.items():
            self._take(number, answer)
        self._tell_batch()
        self._show()

    def _count(self, number: int, answer: Answer) -> None:
        self.paid += 1
        self._distinct += 1
        if answer.status != OK:
            self.failed += 1
            level = logging.WARNING if self.failed == 1 else logging.INFO
            logger.log(level, "candidate %d: %s: %s", number, STATUSES[answer.status], answer.error)

    def _write(self, answers: dict[int, Answer]) -> None:
        # In batch mode candidates are told in the order of their numbers, so that is their place.
        for k, (number, answer) in enumerate(answers.items()):
            place = self._told + k if self.rules.asynchronous else number
            self.study.answer(number, place, answer)

    # --- telling --------------------------------------------------------------------------------

    def _take(self, number: int, answer: Answer) -> None:
        """An answer that is written down."""
        candidate = self._open.pop(number)
        if self.rules.asynchronous:
            self._told += 1
            self._tell_optimizer(candidate.codes[None], [answer])
        else:
            self._batch[number] = answer

    def _tell_batch(self) -> None:
        """Tell a generation that is complete."""
        answers = [answer for answer in self._batch.values() if answer is not None]
        if self._batch and len(answers) == len(self._batch):
            codes = np.stack([self._codes[number] for number in self._batch])
            self._batch = {}
            self._told += len(answers)
            self._tell_optimizer(codes, answers)

    def _tell_optimizer(self, codes: Codes, answers: list[Answer]) -> None:
        """Tell the answers up to place `_told`."""
        optimizer, callback = self.optimizer, self.rules.callback
        values = np.array([answer.value for answer in answers])
        if not self.rules.deterministic:
            for k, point in enumerate(self.study.packing.pack(codes)):
                if not math.isnan(values[k]):
                    values[k] = self.study.mean(point, self._told - len(answers) + k)
        self._follow(answers, values)
        restarts, start = len(optimizer.restarts), time.monotonic()
        optimizer._take(codes, values, skip=self.rules.on_failure == "skip")
        if len(optimizer.restarts) > restarts:
            self.study.add_restart(optimizer.restarts[-1])
        if self.rules.asynchronous and optimizer.generation == self._generation:
            return
        if optimizer.generation != self._generation:
            self._training = time.monotonic() - start
            agreement = optimizer.config.restart_agreement or Config().restart_agreement or 1.0
            near = 1.0 - optimizer.diversity >= agreement
            self._collapsed = self._collapsed + 1 if near else 0
        self._generation = optimizer.generation
        self._keep_state()
        if callback is not None and not self._replaying() and callback(optimizer):
            self._stopped_by_callback = True

    def _follow(self, answers: list[Answer], values: npt.NDArray[np.float64]) -> None:
        """Keep count of what is about to be told: what was paid for, what was better."""
        best = self._sign * self.optimizer.best_value
        for answer, value in zip(answers, self._sign * values, strict=True):
            self._idle = 0 if answer.paid else self._idle + 1
            self._paid_told += answer.paid
            if value > best:
                best, self._improved = value, self._paid_told

    # --- the study ------------------------------------------------------------------------------

    def _keep_state(self, at_once: bool = False) -> None:
        if self.study.path is None or self._replaying():
            return
        since = time.monotonic() - self._kept
        if at_once or since >= max(_KEEP_EVERY, self._keep_cost / _KEEP_SHARE):
            start = time.monotonic()
            counters = {"idle": self._idle, "collapsed": self._collapsed,
                        "paid": self._paid_told, "improved": self._improved}  # fmt: skip
            self.study.keep_state(self.optimizer.state_dict(), self._drawn, self._told, counters)
            self._kept = time.monotonic()
            self._keep_cost = self._kept - start

    def _restore(self) -> None:
        """Take up a study: from its last state, draw and tell again what came after."""
        rows = self.study.recorded(self._drawn, self._told)
        self.study.forget_restarts(self._told)
        self._recorded = {row.number: row for row in rows if row.number >= self._drawn}
        if self.rules.asynchronous:
            self._catching_up = True
            self._replay(rows)
        logger.info("study %s: %d evaluations so far", self.study.path, self.paid)

    def _take_recorded(self, number: int) -> None:
        """In batch mode: the study's answer to a candidate drawn again, or evaluate it."""
        row = self._recorded.pop(number)
        if row.status is None:
            self._evaluate_again(number)
        else:
            self._take(number, row.answer())

    def _evaluate_again(self, number: int) -> None:
        answer = self._settled(number)
        if answer is not None:  # its twin has been answered meanwhile
            with self.study.writing():
                self._write({number: answer})
            self._take(number, answer)

    def _replay(self, rows: list[Row]) -> None:
        """In asynchronous mode: draw and tell in the order in which it happened."""
        places = {row.place: row for row in rows if row.place is not None}
        drawn = deque(row for row in rows if row.number >= self._drawn)
        older = [row for row in rows if row.number < self._drawn]
        for row, codes in zip(
            older, self.study.packing.unpack(row.point for row in older), strict=True
        ):
            self._open[row.number] = _Candidate(codes, row.point)
        while True:
            while drawn and drawn[0].after <= self._told:
                drawn.popleft()
                self._draw(1)
            told = places.get(self._told)
            if told is None or told.number not in self._open or told.status is None:
                break
            self._take(told.number, told.answer())
        self._recorded, self._catching_up = {}, False
        for number in sorted(self._open):
            if number in self._open:
                self._evaluate_again(number)

    # --- around it ------------------------------------------------------------------------------

    def _show(self) -> None:
        bar, optimizer = self._bar, self.optimizer
        bar.update(self.paid - bar.n)
        if bar.disable:
            return
        parts = [f"best {optimizer.best_value:.6g}", f"diversity {optimizer.diversity:.3f}",
                 f"entropy {optimizer.entropy:.3f}"]  # fmt: skip
        if self._evaluator.slots > 1:
            parts.append(f"busy {len(self._running)}/{self._evaluator.slots}")
        if self.failed:
            parts.append(f"failed {self.failed}")
        if optimizer.restarts:
            parts.append(f"restarts {len(optimizer.restarts)}")
        bar.set_postfix_str(", ".join(parts), refresh=False)


def _evaluator(f: Callable[..., Any], done: Done, rules: Rules) -> Evaluator:
    measured = Measured(f, rules.vectorized)
    if rules.executor is not None:
        return OnExecutor(measured, done, rules.executor, rules.workers)
    if rules.workers is not None or rules.timeout is not None:
        return Processes(measured, done, rules.workers or 1, rules.timeout)
    return Inline(measured, done)
