"""Evaluations on the user's executor, which may be a cluster that grows and shrinks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
)
from contextlib import suppress
from typing import Any

from anyorder._internal.checks import cores, integer, require, short
from anyorder.errors import DIED, FAILED
from anyorder.run.evaluation.evaluators import Done, Outcome, call_remotely, describe

logger = logging.getLogger("anyorder")

_LOOK = 0.2  # seconds between checks of clusters, and of futures that do not call back
_DEATHS = ("KilledWorker", "WorkerCrashedError", "ActorDiedError", "OutOfMemoryError")


class OnExecutor:
    """Jobs on any `concurrent.futures.Executor`, a Dask `Client`, "threads" or "ray".

    An executor cannot stop a running job: a job that exceeds its time limit is dropped, and its
    slot stays occupied until it ends. The slots of a cluster follow its workers, up to `limit`.
    Futures that cannot call back, such as submitit's, are checked by a thread.
    """

    in_process = False
    keeps_time = False

    def __init__(self, f: Callable[..., Any], done: Done, executor: Any, limit: int | None) -> None:
        self._f, self._done = f, done
        self._backend = _backend_of(executor, limit)
        self._executor, self._limit = self._backend.executor, limit
        self._workers = self._backend.count()
        if self._workers is None and limit is None:
            raise ValueError(
                f"executor {executor!r} does not say how many workers it has: pass workers="
            )
        if limit is not None:
            integer("workers", limit, 1)
        self._dropped = 0  # jobs that were dropped and still occupy a worker
        self._futures: dict[int, Any] = {}
        self._watched: dict[int, Any] = {}  # the jobs whose futures do not call back
        self._lock = threading.Lock()  # callbacks of futures run in other threads
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None
        if self._backend.changes:
            self._watch()

    @property
    def slots(self) -> int:
        """Return the number of jobs that can run at a time."""
        found = self._workers
        most = self._limit if found is None else found
        if self._limit is not None and self._backend.changes:
            most = min(most or 0, self._limit)
        elif self._limit is not None:
            most = self._limit
        return (most or 0) - self._dropped

    @property
    def waits(self) -> bool:
        """Return whether a cluster has no worker now."""
        return self._backend.changes and not self._workers

    def start(self, job: int, points: Any) -> None:
        """Submit a job to the executor."""
        try:
            future = self._executor.submit(call_remotely, self._f, points)
        except Exception as error:  # the executor is broken, or shut down
            self._done.put((job, Outcome(None, None, describe(error), error)))
            return
        calls_back = hasattr(future, "add_done_callback")
        if not calls_back and not callable(getattr(future, "done", None)):
            raise TypeError(
                f"executor submitted {short(future)}, expected a future with add_done_callback or "
                "done"
            )
        with self._lock:
            self._futures[job] = future
            if not calls_back:
                self._watched[job] = future
        if calls_back:
            future.add_done_callback(lambda ended: self._end(job, ended))
        elif self._watcher is None:
            self._watch()

    def _end(self, job: int, future: Any) -> None:
        with self._lock:
            dropped = self._futures.get(job) is not future
            if dropped:
                self._dropped -= 1
            else:
                del self._futures[job]
        if dropped:
            self._wake()
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
        """Cancel a job if it has not started; otherwise its slot is free again when it ends."""
        with self._lock:
            future = self._futures.pop(job, None)
            self._dropped += future is not None
        if future is not None:
            future.cancel()

    def close(self) -> None:
        """Cancel jobs that have not started; the user's executor is not shut down."""
        self._closed.set()
        with self._lock:
            futures, self._futures = list(self._futures.values()), {}
        for future in futures:
            with suppress(AttributeError):  # not all futures can be cancelled
                future.cancel()
        self._backend.close()

    # --- the thread that looks ------------------------------------------------------------------

    def _watch(self) -> None:
        self._watcher = threading.Thread(
            target=self._look_repeatedly, daemon=True, name="anyorder-executor"
        )
        self._watcher.start()

    def _look_repeatedly(self) -> None:
        while not self._closed.wait(_LOOK):
            try:
                self._look_at_futures()
                self._look_at_cluster()
            except Exception as error:  # without this thread no outcome would ever arrive
                reason = f"the executor does not say what became of its jobs: {describe(error)}"
                self._done.put((-1, Outcome(None, None, reason, error)))
                return

    def _look_at_futures(self) -> None:
        with self._lock:
            watched = list(self._watched.items())
        for job, future in watched:
            if future.done():
                del self._watched[job]
                self._end(job, future)

    def _look_at_cluster(self) -> None:
        if not self._backend.changes:
            return
        found = self._backend.count()
        if not found:
            self._backend.ask_for_workers()
        if found != self._workers:
            logger.debug("the executor has %s workers, after %s", found, self._workers)
            self._workers = found
            self._wake()

    def _wake(self) -> None:
        self._done.put((-1, Outcome(None)))  # the session then checks the number of slots


# --- kinds of executors ---------------------------------------------------------------------------


class _Fixed:
    """An executor whose number of workers does not change."""

    changes = False

    def __init__(self, executor: Any) -> None:
        self.executor = executor

    def count(self) -> int | None:
        """Return the number of workers, or None if the executor does not tell."""
        count: int | None = getattr(self.executor, "_max_workers", None)
        return count

    def ask_for_workers(self) -> None:
        """Do nothing: the number of workers is fixed."""

    def close(self) -> None:
        """Do nothing: the executor belongs to the user."""


class _Threads(_Fixed):
    """Threads that this library starts."""

    def __init__(self, count: int) -> None:
        super().__init__(ThreadPoolExecutor(count, thread_name_prefix="anyorder"))

    def close(self) -> None:
        """Shut the threads down once their evaluations have ended."""
        self.executor.shutdown(wait=False, cancel_futures=True)


class _Dask(_Fixed):
    """A Dask cluster."""

    changes = True

    def __init__(self, client: Any) -> None:
        # equal points are separate evaluations, and the session does the retries
        super().__init__(client.get_executor(pure=False, retries=0))
        self._client, self._probe = client, None

    def count(self) -> int | None:
        """Return the number of threads of the cluster's workers."""
        threads: dict[str, int] = self._client.nthreads()
        return sum(threads.values())

    def ask_for_workers(self) -> None:
        """Submit a task that computes nothing, for which an adaptive cluster starts a worker."""
        if self._probe is None:
            self._probe = self._client.submit(int, pure=False)


class _Ray(_Fixed, Executor):
    """The Ray cluster that this process is connected to, or else a local one."""

    changes = True

    def __init__(self) -> None:
        ray = require("ray", "ray", "executor='ray' requires Ray")
        super().__init__(self)
        self._ray = ray
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        self._call = ray.remote(max_retries=0)(call_remotely)
        self._put: dict[int, Any] = {}  # functions that the cluster has already

    def count(self) -> int | None:
        """Return the number of cores, at least 1, so that an empty cluster may grow for a job."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Evaluate args[1] by the function args[0], and return a future."""
        f, points = args
        if id(f) not in self._put:
            self._put[id(f)] = self._ray.put(f)
        future: Future[Any] = self._call.remote(self._put[id(f)], points).future()
        return future


def _backend_of(executor: Any, limit: int | None) -> _Fixed:
    """Return the backend that an `executor=` stands for; options.py has checked it."""
    if isinstance(executor, str):
        return _Ray() if executor == "ray" else _Threads(cores() if limit is None else limit)
    if hasattr(executor, "get_executor") and hasattr(executor, "scheduler_info"):
        return _Dask(executor)
    return _Fixed(executor)
