"""Where evaluations run: in this process, in processes of our own, on an executor of the user's.

All three take jobs and deliver outcomes to one queue, on which the loop sleeps; nothing polls.

    Inline       the function is called where it stands
    Processes    `workers=8`: one that hangs or dies is replaced, and costs one evaluation
    OnExecutor   a concurrent.futures.Executor, a Dask Client, or "ray"
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import multiprocessing.connection as connection
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from .._checks import integer, number, numbers
from ..failures import DIED, FAILED, INFEASIBLE, OK, TIMEOUT, Infeasible

# A process that cannot even start will not start the next time either.
_FALSE_STARTS = 2
_FAREWELL = 2.0  # seconds that idle workers have to leave


class Outcome(NamedTuple):
    """What became of a job: a status of `failures`, or None where no evaluation is possible."""

    status: int | None
    value: Any = None
    reason: str | None = None
    error: Exception | None = None
    seconds: float = 0.0


Done = SimpleQueue[tuple[int, Outcome]]


class Evaluator(Protocol):
    """Runs up to `slots` jobs at a time; puts (job, outcome) on the queue it was made with."""

    slots: int

    def start(self, job: int, points: Any) -> None:
        """Evaluate a point (for a vectorised function: points); returns without waiting."""

    def abandon(self, job: int) -> None:
        """Forget a job that takes too long; its slot is free once it ends."""

    def close(self) -> None:
        """End everything that still runs."""


class Measured:
    """The user's function as a measurement: a number for a point, or an exception."""

    def __init__(self, f: Callable[..., Any], vectorized: bool = False) -> None:
        self.f, self.vectorized = f, vectorized

    def __call__(self, points: Any) -> Any:
        """A number; for points of a vectorised function as many, NaN where one failed."""
        if self.vectorized:
            size = len(points)  # before f can change it
            return numbers(self.f(points), size, nan=True)
        shown = points.copy()
        value = number("what f returned", self.f(points))
        if math.isnan(value):
            raise ValueError(f"f returned NaN or None for {shown!r}, expected a number")
        return value


def call(f: Callable[[Any], Any], points: Any) -> Outcome:
    """Evaluate here; what goes wrong becomes an outcome."""
    start = time.perf_counter()
    try:
        value = f(points)
    except Infeasible as error:
        reason = _text(error) or "infeasible"
        return Outcome(INFEASIBLE, None, reason, seconds=time.perf_counter() - start)
    except Exception as error:
        status = TIMEOUT if isinstance(error, TimeoutError) else FAILED
        return Outcome(status, None, _told(error), error, time.perf_counter() - start)
    return Outcome(OK, value, seconds=time.perf_counter() - start)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an error in the error
        return "(its message cannot be shown)"


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {_text(error)}"


def call_remotely(f: Callable[..., Any], points: Any) -> Outcome:
    """`call`, with an outcome that travels: its error pickles, and tells where it came from."""
    outcome = call(f, points)
    if outcome.error is None:
        return outcome
    told = "".join(traceback.format_exception(outcome.error))
    try:
        error = pickle.loads(pickle.dumps(outcome.error))
        if not isinstance(error, Exception):
            raise TypeError
    except Exception:
        error = RuntimeError(outcome.reason)
    error.add_note(f"In the worker:\n{told}")
    return outcome._replace(error=error)


class Inline:
    """Calls the function in this process, one job at a time."""

    slots = 1

    def __init__(self, f: Callable[..., Any], done: Done) -> None:
        self._f, self._done = f, done

    def start(self, job: int, points: Any) -> None:
        """Evaluate now."""
        self._done.put((job, call(self._f, points)))

    def abandon(self, job: int) -> None:
        """Nothing runs behind our back."""

    def close(self) -> None:
        """Nothing to end."""


# --- an executor of the user's ------------------------------------------------------------------


class OnExecutor:
    """Jobs on any `concurrent.futures.Executor`, a Dask `Client`, or "ray".

    An executor cannot be made to stop what it runs: a job past its time is given up, and its slot
    stays taken until it ends.
    """

    def __init__(self, f: Callable[..., Any], done: Done, executor: Any, slots: int | None) -> None:
        self._f, self._done = f, done
        self._executor, found = _as_executor(executor)
        if slots is None and found is None:
            raise ValueError(
                f"executor {executor!r} does not tell how many workers it has: give workers="
            )
        self.slots = integer("workers", found if slots is None else slots, 1)
        self._futures: dict[int, Future[Outcome]] = {}
        self._lock = threading.Lock()  # futures end in threads of their own

    def start(self, job: int, points: Any) -> None:
        """Hand it to the executor."""
        try:
            future: Future[Outcome] = self._executor.submit(call_remotely, self._f, points)
        except Exception as error:  # broken, or shut down
            self._done.put((job, Outcome(None, None, _told(error), error)))
            return
        with self._lock:
            self._futures[job] = future
        future.add_done_callback(lambda ended: self._ended(job, ended))

    def _ended(self, job: int, future: Future[Outcome]) -> None:
        with self._lock:
            given_up = self._futures.get(job) is not future  # it may be out again by now
            if given_up:
                self.slots += 1
            else:
                del self._futures[job]
        if given_up:
            self._done.put((-1, Outcome(None)))  # wake the loop: there is room again
            return
        try:
            outcome = future.result()
        except (BrokenExecutor, CancelledError) as error:
            # Not this candidate's failure: the executor has gone, and everything on it.
            outcome = Outcome(None, None, _told(error), error)
        except Exception as error:
            status = DIED if type(error).__name__ in _DEATHS else FAILED
            outcome = Outcome(status, None, _told(error), error)
        except BaseException as error:  # SystemExit, KeyboardInterrupt: a dead worker elsewhere
            outcome = Outcome(DIED, None, _told(error))
        self._done.put((job, outcome))

    def abandon(self, job: int) -> None:
        """Cancel it where it has not begun; else its slot comes back when it ends."""
        with self._lock:
            future = self._futures.pop(job, None)
            self.slots -= future is not None
        if future is not None:
            future.cancel()

    def close(self) -> None:
        """Cancel what has not begun; the executor itself is the user's."""
        with self._lock:
            futures, self._futures = list(self._futures.values()), {}
        for future in futures:
            future.cancel()


_DEATHS = ("KilledWorker", "WorkerCrashedError", "ActorDiedError", "OutOfMemoryError")


def _as_executor(executor: Any) -> tuple[Any, int | None]:
    """Something with `submit`, and how many workers it has, if it tells."""
    if isinstance(executor, str):
        if executor != "ray":
            raise ValueError(f"executor is {executor!r}, expected an Executor, a Client or 'ray'")
        ray_executor = _Ray()
        return ray_executor, ray_executor.slots
    if hasattr(executor, "get_executor") and hasattr(executor, "scheduler_info"):
        # Dask: equal points are different evaluations; a worker that dies is retried by us.
        slots = sum(executor.nthreads().values())
        return executor.get_executor(pure=False, retries=0), slots or None
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor is {executor!r}, expected an Executor, a Client or 'ray'")
    return executor, getattr(executor, "_max_workers", None)


class _Ray(Executor):
    """A Ray cluster, the one this process is connected to or else a local one, as an executor."""

    def __init__(self) -> None:
        try:
            import ray
        except ImportError:
            raise ImportError("executor='ray' wants Ray: pip install 'anyorder[ray]'") from None
        self._ray = ray
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        self.slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._call = ray.remote(max_retries=0)(call_remotely)
        self._put: dict[int, Any] = {}  # the function travels once

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Evaluate args[1] by the function args[0]."""
        f, points = args
        if id(f) not in self._put:
            self._put[id(f)] = self._ray.put(f)
        future: Future[Any] = self._call.remote(self._put[id(f)], points).future()
        return future


# --- processes of our own -----------------------------------------------------------------------


@dataclass
class _Worker:
    process: Any
    pipe: Any
    ready: bool = False
    job: int | None = None
    deadline: float | None = None
    started: float = 0.0


class Processes:
    """Worker processes that each hold the function.

    One thread watches their pipes and their lives: a worker past its time is killed with all it
    has started, one that dies is replaced, and either costs the job it had and nothing else. They
    do not see Ctrl-C, and end when this process does, however that happens.
    """

    def __init__(
        self, f: Callable[..., Any], done: Done, count: int, timeout: float | None
    ) -> None:
        self.slots = integer("workers", count, 1)
        self._payload = _pickled(f)
        self._done, self._timeout = done, timeout
        methods = multiprocessing.get_all_start_methods()
        # A fork of a process with threads (ours has) may hang; a fork of a clean one does not.
        forks = "forkserver" in methods
        self._context: Any = multiprocessing.get_context("forkserver" if forks else "spawn")
        if forks:  # a worker that takes another's place is there at once
            self._context.set_forkserver_preload(["__main__", __name__])
        self._jobs: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
        self._wake_out, self._wake = multiprocessing.Pipe(duplex=False)
        self._workers: list[_Worker] = []
        self._waiting: list[tuple[int, Any]] = []
        self._false_starts = 0
        for _ in range(self.slots):
            self._workers.append(self._hire())
        self._thread = threading.Thread(target=self._watch, daemon=True, name="anyorder-workers")
        self._thread.start()

    def start(self, job: int, points: Any) -> None:
        """Give it to a free worker."""
        self._jobs.put((job, points))
        self._wake.send_bytes(b".")

    def abandon(self, job: int) -> None:
        """Time is kept here; the loop has nothing to give up."""

    def close(self) -> None:
        """Kill what still works, and wait until all are gone."""
        self._jobs.put(None)
        self._wake.send_bytes(b".")
        self._thread.join()
        self._wake.close()
        self._wake_out.close()

    def _hire(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._payload), daemon=True)
        try:
            process.start()
        finally:
            theirs.close()
        return _Worker(process, ours)

    def _dismiss(self, worker: _Worker) -> None:
        _kill(worker.process)
        worker.process.join()
        worker.process.close()
        worker.pipe.close()

    def _see_off(self) -> None:
        """Let idle workers leave by themselves, so that they clear up behind them."""
        idle = [worker for worker in self._workers if worker.ready and worker.job is None]
        for worker in idle:
            worker.pipe.close()
        leave = time.monotonic() + _FAREWELL
        for worker in idle:
            with contextlib.suppress(ValueError):
                worker.process.join(max(0.0, leave - time.monotonic()))

    def _watch(self) -> None:
        try:
            while self._turn():
                pass
        except Exception as error:  # without this thread nothing would ever come back
            self._done.put(
                (-1, Outcome(None, None, f"the workers' watcher failed: {error!r}", error))
            )
        finally:
            self._see_off()
            for worker in self._workers:
                with contextlib.suppress(ValueError):  # it has gone, and could not be replaced
                    self._dismiss(worker)
            self._workers.clear()

    def _turn(self) -> bool:
        """Wait for something to happen and see to it; False when it is time to go."""
        deadlines = [w.deadline for w in self._workers if w.deadline is not None]
        left = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        lives: list[Any] = [w.process.sentinel for w in self._workers]
        pipes = [w.pipe for w in self._workers]
        happened = set(connection.wait([self._wake_out, *pipes, *lives], left))
        if self._wake_out in happened:
            self._wake_out.recv_bytes()
            task = self._jobs.get()
            if task is None:
                return False
            self._waiting.append(task)
        for k, worker in enumerate(self._workers):
            # What a dying worker still said counts: the pipe first, then its life.
            if worker.pipe in happened and self._heard(worker):
                continue
            dead = worker.pipe in happened or worker.process.sentinel in happened
            late = worker.deadline is not None and time.monotonic() >= worker.deadline
            if dead or late:
                self._lost(worker, late and not dead)
                self._dismiss(worker)
                self._workers[k] = self._hire()
        for worker in self._workers:
            if self._waiting and worker.ready and worker.job is None:
                self._give(worker)
        return True

    def _heard(self, worker: _Worker) -> bool:
        """Read what a worker has to say; False if its end of the pipe is closed."""
        try:
            sent = worker.pipe.recv_bytes()
        except (EOFError, OSError):
            return False
        try:
            message = pickle.loads(sent)
        except Exception as error:  # an exception of a class that only the worker knows
            reason = f"what the worker sent cannot be read here: {_told(error)}"
            message = Outcome(FAILED, None, reason, RuntimeError(reason))
        if message is None:
            worker.ready, self._false_starts = True, 0
        elif worker.job is None:  # the function could not be read
            self._done.put((-1, Outcome(None, None, message.reason, message.error)))
        else:
            self._done.put((worker.job, message))
            worker.job = worker.deadline = None
        return True

    def _give(self, worker: _Worker) -> None:
        job, points = self._waiting.pop(0)
        worker.job, worker.started = job, time.monotonic()
        worker.deadline = None if self._timeout is None else worker.started + self._timeout
        with contextlib.suppress(OSError):  # it is dead: its sentinel says so next
            worker.pipe.send(points)

    def _lost(self, worker: _Worker, late: bool) -> None:
        seconds = time.monotonic() - worker.started
        if worker.job is not None:
            worker.process.join(0 if late else 1)
            status = worker.process.exitcode
            reason = f"no answer in {self._timeout:g} s" if late else f"exit status {status}"
            outcome = Outcome(TIMEOUT if late else DIED, None, reason, None, seconds)
            self._done.put((worker.job, outcome))
        elif not worker.ready:
            self._false_starts += 1
            if self._false_starts >= _FALSE_STARTS * self.slots:
                reason = (
                    "the worker processes die while they start; a script that uses workers= "
                    "needs its main part under `if __name__ == '__main__':`"
                )
                self._done.put((-1, Outcome(None, None, reason)))


def _pickled(f: Callable[..., Any]) -> bytes:
    """The function as bytes; one of an interactive session can only go by value."""
    main, theirs = sys.modules.get("__main__"), getattr(f, "f", f)
    interactive = getattr(theirs, "__module__", "") == "__main__" and not hasattr(main, "__file__")
    try:
        if interactive:
            raise TypeError("it is defined in an interactive session")
        return pickle.dumps(f)
    except Exception as error:
        try:
            import cloudpickle
        except ImportError:
            raise TypeError(
                f"f is {theirs!r}, which cannot go to worker processes ({error}): define it at "
                "the top level of a module, install cloudpickle, or use an executor of threads"
            ) from error
        return bytes(cloudpickle.dumps(f))


def _kill(process: Any) -> None:
    """Kill a worker and what it has started."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        os.killpg(process.pid, signal.SIGKILL)  # it leads a group, once it runs
    with contextlib.suppress(OSError, ValueError):
        process.kill()


def _serve(pipe: Any, payload: bytes) -> None:
    """The life of a worker."""
    if hasattr(os, "setsid"):
        os.setsid()  # out of reach of the terminal's Ctrl-C, and killed with its children
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        f = pickle.loads(payload)
    except BaseException as error:
        reason = f"the function cannot be read in a worker process: {type(error).__name__}: {error}"
        pipe.send(Outcome(None, None, reason))
        return
    pipe.send(None)
    while True:
        try:
            points = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(call_remotely(f, points))


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        with contextlib.suppress(OSError, AttributeError):
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(1)
