"""Where evaluations run: in this process, in worker processes, or on the user's executor.

Each takes jobs and puts their outcomes on a queue (`jobs.py`); nothing polls.

    Inline       calls the function in this process
    OnExecutor   a concurrent.futures.Executor, a Dask Client, or "ray"
    Processes    `workers=8`, see processes.py

They call `Measured`, which checks what the user's function returns.
"""

from __future__ import annotations

import math
import pickle
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from anyorder._checks import integer, numbers, require, short, value_of
from anyorder.errors import DIED, FAILED, INFEASIBLE, OK, TIMEOUT, Infeasible


class Outcome(NamedTuple):
    """The outcome of a job: an index of `anyorder.STATUSES`, and a value where it is "ok".

    A status of None with a reason: the evaluator cannot evaluate any more.
    """

    status: int | None
    value: Any = None
    reason: str | None = None
    error: Exception | None = None
    seconds: float = 0.0


Done = SimpleQueue[tuple[int, Outcome]]


class Evaluator(Protocol):
    """Runs up to `slots` jobs at a time; puts (job, outcome) on the queue it was made with.

    Attributes
    ----------
    in_process
        Whether `start` evaluates before it returns.
    keeps_time
        Whether it enforces time limits itself.
    """

    slots: int
    in_process: bool
    keeps_time: bool

    def start(self, job: int, points: Any) -> None:
        """Evaluate a point (for a vectorised function: points); returns without waiting."""

    def abandon(self, job: int) -> None:
        """Drop a job that takes too long; its slot is free again when it ends."""

    def close(self) -> None:
        """Stop all that still runs."""


class Measured:
    """The user's function, with what it returns checked: a number for a point, or an exception."""

    def __init__(self, f: Callable[..., Any], vectorized: bool = False) -> None:
        self.f, self.vectorized = f, vectorized

    def __call__(self, points: Any) -> Any:
        """A number; for points of a vectorised function as many, NaN where one failed."""
        if self.vectorized:
            size = len(points)  # before f can change it
            return numbers(self.f(points), size, nan=True)
        shown = points.copy()
        value = value_of("what f returned", self.f(points))
        if math.isnan(value):
            raise ValueError(f"f returned NaN or None for {short(shown)}, expected a number")
        return value


def call(f: Callable[[Any], Any], points: Any) -> Outcome:
    """Evaluate in this process; exceptions become outcomes."""
    start = time.perf_counter()
    try:
        value = f(points)
    except Infeasible as error:
        reason = error.reason(_text(error))
        return Outcome(INFEASIBLE, None, reason, seconds=time.perf_counter() - start)
    except Exception as error:
        status = TIMEOUT if isinstance(error, TimeoutError) else FAILED
        return Outcome(status, None, describe(error), error, time.perf_counter() - start)
    return Outcome(OK, value, seconds=time.perf_counter() - start)


def _text(error: BaseException) -> str:
    """The message; names of files may hold bytes that are no text, which are escaped."""
    try:
        return str(error).encode("utf-8", "backslashreplace").decode()
    except Exception:  # raised by the exception's own __str__
        return "(its message cannot be shown)"


def describe(error: BaseException) -> str:
    """Type and message of an exception, even if its message raises another."""
    return f"{type(error).__name__}: {_text(error)}"


def call_remotely(f: Callable[..., Any], points: Any) -> Outcome:
    """`call`, with an outcome that can be pickled; the error's notes hold its traceback."""
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
    in_process = True
    keeps_time = True  # time limits are never used with it

    def __init__(self, f: Callable[..., Any], done: Done) -> None:
        self._f, self._done = f, done

    def start(self, job: int, points: Any) -> None:
        """Evaluate now."""
        self._done.put((job, call(self._f, points)))

    def abandon(self, job: int) -> None:
        """Nothing to drop: `start` has returned only after the evaluation."""

    def close(self) -> None:
        """Nothing to stop."""


# --- executors ----------------------------------------------------------------------------------


class OnExecutor:
    """Jobs on any `concurrent.futures.Executor`, a Dask `Client`, or "ray".

    An executor cannot stop a job that runs: one that exceeds its time limit is dropped, and its
    slot stays occupied until it ends.
    """

    in_process = False
    keeps_time = False

    def __init__(self, f: Callable[..., Any], done: Done, executor: Any, slots: int | None) -> None:
        self._f, self._done = f, done
        self._executor, found = _as_executor(executor)
        if slots is None and found is None:
            raise ValueError(
                f"executor {executor!r} does not say how many workers it has: pass workers="
            )
        self.slots = integer("workers", found if slots is None else slots, 1)
        self._futures: dict[int, Future[Outcome]] = {}
        self._lock = threading.Lock()  # callbacks of futures run in other threads

    def start(self, job: int, points: Any) -> None:
        """Submit it to the executor."""
        try:
            future: Future[Outcome] = self._executor.submit(call_remotely, self._f, points)
        except Exception as error:  # broken, or shut down
            self._done.put((job, Outcome(None, None, describe(error), error)))
            return
        with self._lock:
            self._futures[job] = future
        future.add_done_callback(lambda ended: self._ended(job, ended))

    def _ended(self, job: int, future: Future[Outcome]) -> None:
        with self._lock:
            dropped = self._futures.get(job) is not future
            if dropped:
                self.slots += 1
            else:
                del self._futures[job]
        if dropped:
            self._done.put((-1, Outcome(None)))  # wakes the session: a slot is free again
            return
        try:
            outcome = future.result()
        except (BrokenExecutor, CancelledError) as error:
            # The executor itself failed, not this candidate.
            outcome = Outcome(None, None, describe(error), error)
        except Exception as error:
            status = DIED if type(error).__name__ in _DEATHS else FAILED
            outcome = Outcome(status, None, describe(error), error)
        except BaseException as error:  # SystemExit or KeyboardInterrupt in the worker
            outcome = Outcome(DIED, None, describe(error))
        self._done.put((job, outcome))

    def abandon(self, job: int) -> None:
        """Cancel it if it has not started; else its slot is free again when it ends."""
        with self._lock:
            future = self._futures.pop(job, None)
            self.slots -= future is not None
        if future is not None:
            future.cancel()

    def close(self) -> None:
        """Cancel what has not started; the executor itself belongs to the user."""
        with self._lock:
            futures, self._futures = list(self._futures.values()), {}
        for future in futures:
            future.cancel()


_DEATHS = ("KilledWorker", "WorkerCrashedError", "ActorDiedError", "OutOfMemoryError")


def _as_executor(executor: Any) -> tuple[Any, int | None]:
    """An object with `submit`, and how many workers it has, if that is known."""
    if isinstance(executor, str):  # "ray": options.py has checked it
        ray_executor = _Ray()
        return ray_executor, ray_executor.slots
    if hasattr(executor, "get_executor") and hasattr(executor, "scheduler_info"):
        # Dask: equal points are separate evaluations, and retries are the session's business.
        slots = sum(executor.nthreads().values())
        return executor.get_executor(pure=False, retries=0), slots or None
    return executor, getattr(executor, "_max_workers", None)


class _Ray(Executor):
    """A Ray cluster, the one this process is connected to or else a local one, as an executor."""

    def __init__(self) -> None:
        ray = require("ray", "ray", "executor='ray' requires Ray")
        self._ray = ray
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        self.slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._call = ray.remote(max_retries=0)(call_remotely)
        self._put: dict[int, Any] = {}  # functions that the cluster has already

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Evaluate args[1] by the function args[0]."""
        f, points = args
        if id(f) not in self._put:
            self._put[id(f)] = self._ray.put(f)
        future: Future[Any] = self._call.remote(self._put[id(f)], points).future()
        return future
