"""Evaluators: evaluations in this process, in worker processes, or on the user's executor.

Each evaluator takes jobs, and puts their outcomes on a queue (`jobs.py`).

    Inline       calls the function in this process
    OnExecutor   a concurrent.futures.Executor, a Dask Client, "threads" or "ray": executors.py
    Processes    `workers=8`: processes.py

They call `Checked`, which checks the values that the user's function returns.
"""

from __future__ import annotations

import math
import pickle
import time
import traceback
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from anyorder._internal.checks import ProgramError, numbers, short, value_of
from anyorder.archive.notes import split, split_all
from anyorder.archive.objectives import Objectives
from anyorder.errors import FAILED, INFEASIBLE, OK, TIMEOUT, Infeasible


class Outcome(NamedTuple):
    """The outcome of a job: an index of `anyorder.STATUSES`, and a value where it is "ok".

    A status of None, with a reason, means that the evaluator cannot evaluate any more.
    """

    status: int | None
    value: Any = None
    reason: str | None = None
    error: Exception | None = None
    seconds: float = 0.0
    notes: Any = None  # as JSON; a list of them if the function is vectorised


Done = SimpleQueue[tuple[int, Outcome]]


class Evaluator(Protocol):
    """Runs up to `slots` jobs at a time, and puts (job, outcome) on the queue that it was given.

    Attributes
    ----------
    slots
        The number of jobs that can run at a time, which may change.
    waits
        Whether there is no slot because no worker has come yet.
    in_process
        Whether `start` evaluates before it returns.
    keeps_time
        Whether the evaluator enforces time limits itself.
    """

    @property
    def slots(self) -> int: ...  # noqa: D102
    @property
    def waits(self) -> bool: ...  # noqa: D102

    in_process: bool
    keeps_time: bool

    def start(self, job: int, points: Any) -> None:
        """Start evaluating a point, or points if the function is vectorised; do not wait."""

    def abandon(self, job: int) -> None:
        """Drop a job that takes too long; its slot is free again when it ends."""

    def close(self) -> None:
        """Stop all jobs that still run."""


class Noted(NamedTuple):
    """A value with its notes as JSON, or the values of several points with a list of notes."""

    value: Any
    notes: Any


class Checked:
    """The user's function with a check of what it returns: a number for a point, or an exception.

    With several objectives it must return a tuple of numbers.
    """

    def __init__(
        self, f: Callable[..., Any], vectorized: bool = False, objectives: Objectives | None = None
    ) -> None:
        self.f, self.vectorized, self.objectives = f, vectorized, objectives

    def __call__(self, points: Any) -> Any:
        """Return a number, or one per point if the function is vectorised; NaN where it failed.

        If there are notes, return a `Noted`.
        """
        if self.vectorized:
            size = len(points)  # before f can change it
            try:
                returned, several = split_all(self.f(points), size)
                values: Any
                if self.objectives is not None:
                    values = self.objectives.rows_of(returned, size)
                else:
                    values = numbers(returned, size, nan=True)
            except ProgramError as error:
                raise ProgramError(f"f returned {error}") from None
            return Noted(values, several) if any(several) else values
        shown = points.copy()
        returned, notes = split(self.f(points))
        if self.objectives is not None:
            try:
                found = self.objectives.values_of("what f returned", returned)
            except ValueError as error:
                if notes is None or isinstance(error, ProgramError):
                    raise
                found = (math.nan,) * len(self.objectives)  # the notes are still stored
            return found if notes is None else Noted(found, notes)
        value = value_of("what f returned", returned)
        if notes is not None:
            return Noted(value, notes)
        if math.isnan(value):
            raise ValueError(
                f"f returned {'None' if returned is None else 'NaN'} for {short(shown)}, "
                "expected a number"
            )
        return value


def call(f: Callable[[Any], Any], points: Any) -> Outcome:
    """Return the outcome of a call in this process; exceptions become outcomes."""
    start = time.perf_counter()
    try:
        value = f(points)
    except Infeasible as error:
        reason = error.reason(_text(error))
        return Outcome(INFEASIBLE, None, reason, seconds=time.perf_counter() - start)
    except Exception as error:
        status = TIMEOUT if isinstance(error, TimeoutError) else FAILED
        return Outcome(status, None, describe(error), error, time.perf_counter() - start)
    seconds = time.perf_counter() - start
    if isinstance(value, Noted):
        return Outcome(OK, value.value, seconds=seconds, notes=value.notes)
    return Outcome(OK, value, seconds=seconds)


def _text(error: BaseException) -> str:
    """Return the message of an error, with bytes that are no text, as in file names, escaped."""
    try:
        return str(error).encode("utf-8", "backslashreplace").decode()
    except Exception:  # raised by the exception's own __str__
        return "(its message cannot be shown)"


def describe(error: BaseException) -> str:
    """Return type and message of an exception, even if making the message raises another one."""
    return f"{type(error).__name__}: {_text(error)}"


def call_remotely(f: Callable[..., Any], points: Any) -> Outcome:
    """Return the outcome of `call` so that it can be pickled, with the traceback as a note."""
    outcome = call(f, points)
    if outcome.error is None:
        return outcome
    trace = "".join(traceback.format_exception(outcome.error))
    try:
        error = pickle.loads(pickle.dumps(outcome.error))
        if not isinstance(error, Exception):
            raise TypeError
    except Exception:
        error = RuntimeError(outcome.reason)
    error.add_note(f"In the worker:\n{trace}")
    return outcome._replace(error=error)


class Inline:
    """Calls the function in this process, one job at a time."""

    slots = 1
    waits = False
    in_process = True
    keeps_time = True  # time limits are never used with it

    def __init__(self, f: Callable[..., Any], done: Done) -> None:
        self._f, self._done = f, done

    def start(self, job: int, points: Any) -> None:
        """Evaluate the job before returning."""
        self._done.put((job, call(self._f, points)))

    def abandon(self, job: int) -> None:
        """Do nothing: `start` has returned only after the evaluation."""

    def close(self) -> None:
        """Do nothing: there are no workers."""
