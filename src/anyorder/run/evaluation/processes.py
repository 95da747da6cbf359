"""`workers=8`: local processes that hold the function, and are replaced if they hang or die."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection as connection
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple

from anyorder._internal.checks import integer, wait_time
from anyorder.errors import DIED, FAILED, TIMEOUT
from anyorder.run.evaluation.evaluators import Done, Outcome, call_remotely, describe

# A worker that fails at its start is replaced so many times; after that the run ends with an error.
_FAILED_STARTS = 2
_UNGUARDED = 113  # the exit status of a process that runs a script without a main guard
_GUARD = (
    "a script that uses workers= or timeout= needs its main part under `if __name__ == "
    "'__main__':`, since every worker process imports it"
)
_EXIT_SECONDS = 2.0  # idle workers have so long to exit before they are killed


@dataclass
class _Worker:
    """A worker process.

    `ready` is set once it has read the function; `job`, `started` and `deadline` belong to the job
    that it is evaluating, if any.
    """

    process: Any
    pipe: Any
    ready: bool = False
    job: int | None = None
    started: float = 0.0
    deadline: float | None = None


class _Message(NamedTuple):
    """A message of a worker: an outcome of a job, or, without a job, whether it is ready.

    If a function forks, both processes have the pipe; `pid` tells them apart.
    """

    pid: int
    job: int | None
    outcome: Outcome | None


_forked = False  # whether this process was forked from one that may have had a fork server


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def leave_unguarded_import() -> None:
    """End this process, without a message, if it is a worker that imports an unguarded script.

    The process that started it reports what is missing, once.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        os._exit(_UNGUARDED)


class Processes:
    """Worker processes that each hold the function.

    A thread waits for their messages and for their exit. A worker that exceeds the time limit is
    killed with all processes that it has started, and a worker that dies is replaced; in both cases
    only its current job fails. Workers do not receive Ctrl-C. They exit when this process does,
    however that happens.
    """

    in_process = False
    keeps_time = True
    waits = False

    def __init__(
        self, f: Callable[..., Any], done: Done, count: int, timeout: float | None
    ) -> None:
        # Windows waits for at most 64 objects at once, and a worker is two of them.
        self.slots = integer("workers", count, 1, 31 if os.name == "nt" else None)
        self._payload = _pickle(f)
        self._done, self._timeout = done, timeout
        methods = multiprocessing.get_all_start_methods()
        # Forking a process that has threads, as this one does, may deadlock; the fork server has no
        # threads.
        forks = "forkserver" in methods and not _forked  # the server only answers its parent
        self._context: Any = multiprocessing.get_context("forkserver" if forks else "spawn")
        if forks:  # so that replacing a worker takes milliseconds
            self._context.set_forkserver_preload(["__main__", __name__])
        self._jobs: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
        self._wake_out, self._wake = multiprocessing.Pipe(duplex=False)
        self._workers: list[_Worker] = []
        self._waiting: deque[tuple[int, Any]] = deque()
        self._failed_starts = 0
        for _ in range(self.slots):
            try:
                self._workers.append(self._start_worker())
            except (EOFError, ConnectionError) as error:  # the fork server imports the script, too
                self._stop_workers()
                raise RuntimeError(
                    f"the worker processes end while they start: {_GUARD}"
                ) from error
        self._thread = threading.Thread(target=self._watch, daemon=True, name="anyorder-workers")
        self._thread.start()

    def start(self, job: int, points: Any) -> None:
        """Send a job to an idle worker."""
        self._jobs.put((job, points))
        self._wake.send_bytes(b".")

    def abandon(self, job: int) -> None:
        """Do nothing: this class enforces time limits itself."""

    def close(self) -> None:
        """Kill busy workers, and wait until all workers have exited."""
        self._jobs.put(None)
        self._wake.send_bytes(b".")
        self._thread.join()
        self._wake.close()
        self._wake_out.close()

    # --- workers --------------------------------------------------------------------------------

    def _start_worker(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._payload), daemon=True)
        try:
            with _without_missing_script():
                process.start()
        finally:
            theirs.close()
        return _Worker(process, ours)

    def _kill_worker(self, worker: _Worker) -> None:
        _kill(worker.process)
        worker.process.join()
        worker.process.close()
        worker.pipe.close()

    def _stop_workers(self) -> None:
        """Let idle workers exit by themselves, so that exit handlers run, and kill the others."""
        idle = [worker for worker in self._workers if worker.ready and worker.job is None]
        for worker in idle:
            worker.pipe.close()
        end = time.monotonic() + _EXIT_SECONDS
        for worker in idle:
            with contextlib.suppress(ValueError):
                worker.process.join(max(0.0, end - time.monotonic()))
        for worker in self._workers:
            with contextlib.suppress(ValueError):  # it was killed before, and could not be replaced
                self._kill_worker(worker)
        self._workers.clear()

    # --- the thread -----------------------------------------------------------------------------

    def _watch(self) -> None:
        try:
            while self._step():
                pass
        except Exception as error:  # without this thread no outcome would ever arrive
            reason = f"the thread that watches the workers failed: {error!r}"
            self._done.put((-1, Outcome(None, None, reason, error)))
        finally:
            self._stop_workers()

    def _step(self) -> bool:
        """Wait for an event and handle it; return False once the evaluator is closed."""
        deadlines = [w.deadline for w in self._workers if w.deadline is not None]
        left = wait_time(min(deadlines) - time.monotonic()) if deadlines else None
        sentinels: list[Any] = [w.process.sentinel for w in self._workers]
        pipes = [w.pipe for w in self._workers]
        events = set(connection.wait([self._wake_out, *pipes, *sentinels], left))
        if self._wake_out in events:
            self._wake_out.recv_bytes()
            task = self._jobs.get()
            if task is None:
                return False
            self._waiting.append(task)
        for k, worker in enumerate(self._workers):
            # The pipe comes first: what a worker sent before it died is valid.
            if worker.pipe in events and self._receive(worker):
                continue
            dead = worker.pipe in events or worker.process.sentinel in events
            late = worker.deadline is not None and time.monotonic() >= worker.deadline
            if dead or late:
                self._report_loss(worker, late and not dead)
                self._kill_worker(worker)
                self._workers[k] = self._start_worker()
        for worker in self._workers:
            if self._waiting and worker.ready and worker.job is None:
                self._assign(worker)
        return True

    def _receive(self, worker: _Worker) -> bool:
        """Read a message; return False if the worker's end of the pipe is closed."""
        try:
            sent = worker.pipe.recv_bytes()
        except (EOFError, OSError):
            return False
        try:
            pid, job, outcome = pickle.loads(sent)
        except Exception as error:  # such as an exception class that only the worker knows
            reason = f"what the worker sent cannot be read here: {describe(error)}"
            failure = Outcome(FAILED, None, reason, RuntimeError(reason))
            pid, job, outcome = worker.process.pid, worker.job, failure
        if pid != worker.process.pid:
            return True  # the message is from a process that the function forked
        if outcome is None:
            worker.ready, self._failed_starts = True, 0
        elif job is None:  # the worker cannot read the function
            self._done.put((-1, outcome))
        elif job == worker.job:
            self._done.put((job, outcome))
            worker.job = worker.deadline = None
        return True

    def _assign(self, worker: _Worker) -> None:
        job, points = self._waiting.popleft()
        worker.job, worker.started = job, time.monotonic()
        worker.deadline = None if self._timeout is None else worker.started + self._timeout
        with contextlib.suppress(OSError):  # it has died, which the next step notices
            worker.pipe.send((job, points))

    def _report_loss(self, worker: _Worker, late: bool) -> None:
        """Report what the death or the timeout of a worker means for its job, or for the run."""
        seconds = time.monotonic() - worker.started
        if worker.job is not None:
            worker.process.join(0 if late else 1)
            status = worker.process.exitcode
            reason = f"no answer in {self._timeout:g} s" if late else f"exit status {status}"
            outcome = Outcome(TIMEOUT if late else DIED, None, reason, None, seconds)
            self._done.put((worker.job, outcome))
        elif not worker.ready:
            self._failed_starts += 1
            worker.process.join(1)
            unguarded = worker.process.exitcode == _UNGUARDED
            if unguarded or self._failed_starts >= _FAILED_STARTS * self.slots:
                what = "end" if unguarded else "die"
                reason = f"the worker processes {what} while they start: {_GUARD}"
                self._done.put((-1, Outcome(None, None, reason)))


def _has_script() -> bool:
    """Return whether the main module has a file that a worker process can import.

    Notebooks, interactive sessions, and programs on standard input have no such file.
    """
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return path is not None and os.path.exists(path)


@contextlib.contextmanager
def _without_missing_script() -> Iterator[None]:
    """Let processes start without the main module if it has a name but no file."""
    main = sys.modules.get("__main__")
    path = getattr(main, "__file__", None)
    if main is None or path is None or _has_script():
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = path


def _pickle(f: Callable[..., Any]) -> bytes:
    """Return the function as bytes; if processes cannot import it, it is pickled by value."""
    import cloudpickle  # importing it takes a while

    theirs = getattr(f, "f", f)
    try:
        if getattr(theirs, "__module__", "") == "__main__" and not _has_script():
            raise TypeError("it is defined in an interactive session")
        return pickle.dumps(f)
    except Exception:
        pass
    try:
        return bytes(cloudpickle.dumps(f))
    except Exception as error:
        raise TypeError(
            f"f is {theirs!r}, which cannot be sent to the worker processes that workers= and "
            f"timeout= require ({describe(error)}): executor='threads' evaluates in this process"
        ) from error


def _kill(process: Any) -> None:
    """Kill a worker and the processes that it has started."""
    with contextlib.suppress(OSError, ValueError):
        _kill_tree(process.pid)
    with contextlib.suppress(OSError, ValueError):
        process.kill()


def _kill_tree(pid: int) -> None:
    if os.name == "nt":
        command = ["taskkill", "/T", "/F", "/PID", str(pid)]
        with contextlib.suppress(subprocess.SubprocessError):
            subprocess.run(command, capture_output=True, timeout=_EXIT_SECONDS, check=False)
    else:
        os.killpg(pid, signal.SIGKILL)  # once it runs, a worker leads a process group


def _serve(pipe: Any, payload: bytes) -> None:
    """Evaluate jobs until the pipe is closed: the main function of a worker."""
    pid = os.getpid()
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C of the terminal does not reach it, and killpg reaches its children
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        f = pickle.loads(payload)
    except BaseException as error:
        reason = f"the function cannot be read in a worker process: {describe(error)}"
        pipe.send(_Message(pid, None, Outcome(None, None, reason)))
        return
    pipe.send(_Message(pid, None, None))
    while True:
        try:
            job, points = pipe.recv()
        except (EOFError, OSError):
            return
        outcome = call_remotely(f, points)
        if os.getpid() != pid:  # f has forked, and the child has returned as well
            os._exit(0)
        pipe.send(_Message(pid, job, outcome))


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        with contextlib.suppress(OSError):
            _kill_tree(os.getpid())
        os._exit(1)
