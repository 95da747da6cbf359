"""`workers=8`: local processes that each hold the function, replaced when they hang or die."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection as connection
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from anyorder._checks import integer, wait_time
from anyorder.errors import DIED, FAILED, TIMEOUT
from anyorder.session.evaluators import Done, Outcome, call_remotely, told

# A process that cannot even start will not start the next time either.
_FALSE_STARTS = 2
_FAREWELL = 2.0  # seconds that idle workers have to leave


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
        left = wait_time(min(deadlines) - time.monotonic()) if deadlines else None
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
            reason = f"what the worker sent cannot be read here: {told(error)}"
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
                f"f is {theirs!r}, which cannot go to the worker processes that workers= and "
                f"timeout= want ({error}): define it at the top level of a module, install "
                "cloudpickle, or use an executor of threads"
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
