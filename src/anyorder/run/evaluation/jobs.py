"""Jobs on an evaluator: start them, enforce their time limits, and wait for their outcomes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from anyorder._internal.checks import wait_time
from anyorder.archive.objectives import Objectives
from anyorder.errors import TIMEOUT
from anyorder.run.evaluation.evaluators import (
    Checked,
    Done,
    Evaluator,
    Inline,
    Outcome,
)
from anyorder.run.evaluation.executors import OnExecutor
from anyorder.run.evaluation.processes import Processes
from anyorder.run.options import Evaluation

# Seconds. A signal that arrives just before a wait begins, or in another thread, does not end the
# wait, and Python handles it only afterwards: without a limit, Ctrl-C could be ignored for ever.
_LONGEST_WAIT = 1.0


class EvaluatorError(RuntimeError):
    """No further evaluation is possible."""


class Jobs:
    """The running jobs, each known by its number.

    Parameters
    ----------
    make
        A function that makes the evaluator, given the queue for its outcomes.
    timeout
        The seconds that a job may take, for evaluators that do not enforce time limits themselves.

    Attributes
    ----------
    error
        The reason why no further evaluation is possible, or None.
    """

    def __init__(self, make: Callable[[Done], Evaluator], timeout: float | None = None) -> None:
        self._done: Done = SimpleQueue()
        self._evaluator = make(self._done)
        self._timeout = None if self._evaluator.keeps_time else timeout
        self._deadlines: dict[int, float] = {}  # the deadline of every running job
        self._next = 0
        self.error: EvaluatorError | None = None

    def __len__(self) -> int:
        return len(self._deadlines)

    @property
    def slots(self) -> int:
        """The number of jobs that can run at a time."""
        return self._evaluator.slots

    @property
    def waits(self) -> bool:
        """Return whether there is no slot because no worker has come yet."""
        return self._evaluator.waits

    @property
    def in_process(self) -> bool:
        """Whether `start` evaluates before it returns."""
        return self._evaluator.in_process

    @property
    def timed(self) -> bool:
        """Whether time limits are enforced here, from the start of each job."""
        return self._timeout is not None

    def start(self, payload: Any) -> int:
        """Start a job, and return its number."""
        job, self._next = self._next, self._next + 1
        limit = float("inf") if self._timeout is None else time.monotonic() + self._timeout
        self._deadlines[job] = limit
        self._evaluator.start(job, payload)
        return job

    def wait(self, until: float | None = None) -> list[tuple[int, Outcome]]:
        """Wait for an outcome, a time limit, or the time `until`; return all outcomes there are.

        The list may be empty: something else has happened, such as a worker that is free again, or
        it is time to check for signals.
        """
        found: list[tuple[int, Outcome]] = []
        pause = self._pause(until)
        try:
            # if the queue has an outcome, do not wait, whatever the time is
            job, outcome = self._done.get_nowait() if not pause else self._done.get(timeout=pause)
            self._take(job, outcome, found)
            # otherwise no further outcomes will come
            while self._deadlines or not self._evaluator.in_process:
                job, outcome = self._done.get_nowait()
                self._take(job, outcome, found)
        except Empty:
            pass
        if self._timeout is not None:
            now = time.monotonic()
            for job in [job for job, end in self._deadlines.items() if end <= now]:
                self._evaluator.abandon(job)
                reason = f"no answer in {self._timeout:g} s"
                self._take(job, Outcome(TIMEOUT, None, reason, None, self._timeout), found)
        return found

    def _pause(self, until: float | None) -> float:
        """Return the most seconds to wait for an outcome."""
        if until is None and self._timeout is None:
            return _LONGEST_WAIT
        limit = min((self._deadlines.values() if self._timeout is not None else ()), default=None)
        ends = [end for end in (until, limit) if end is not None]
        left = wait_time(min(ends) - time.monotonic() if ends else math.inf)
        return min(left, _LONGEST_WAIT)

    def _take(self, job: int, outcome: Outcome, found: list[tuple[int, Outcome]]) -> None:
        if outcome.status is None:
            if outcome.reason is not None:
                self.error = self.error or EvaluatorError(outcome.reason)
                self.error.__cause__ = self.error.__cause__ or outcome.error
        elif self._deadlines.pop(job, None) is not None:  # otherwise it was dropped before
            found.append((job, outcome))

    def close(self) -> None:
        """Stop everything that still runs."""
        self._evaluator.close()


def make_evaluator(
    f: Callable[..., Any],
    done: Done,
    evaluation: Evaluation,
    objectives: Objectives | None = None,
) -> Evaluator:
    """Return the evaluator that the options ask for."""
    checked = Checked(f, evaluation.vectorized, objectives)
    if evaluation.executor is not None:
        return OnExecutor(checked, done, evaluation.executor, evaluation.workers)
    if evaluation.workers is not None or evaluation.timeout is not None:
        return Processes(checked, done, evaluation.workers or 1, evaluation.timeout)
    return Inline(checked, done)
