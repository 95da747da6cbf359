"""Does the runs of a campaign that are missing: in processes, on a GPU, across machines."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from platform import python_version
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from .. import problems
from .._version import __version__
from ..failures import DIED, OK
from ..policy import why_not
from ..workers import Done, Evaluator, OnExecutor, Outcome, Processes
from . import algorithms
from .store import BEAT, Finished, Spec, Store

logger = logging.getLogger("anyorder")

# A run whose worker dies is done again by another; one whose workers die each time is the cause.
_MOST_TRIES = 3
# Runs of ours that go to the GPU at a time.
_BATCH = 100


class OneRun:
    """A run, by its `Spec`, within a limit of memory; what worker processes call."""

    def __init__(self, memory: int | None) -> None:
        self.memory = memory

    def __call__(self, spec: Spec) -> Finished:
        """Do it."""
        for name in ("ANYORDER_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.setdefault(name, "1")  # one process a core
        with _memory_limited(self.memory):
            problem = problems.get(spec.problem)
            trace = algorithms.run(spec.method, problem, spec.budget, spec.seed, spec.grid)
        return Finished(
            curve=trace.curve,
            best=trace.best_value,
            point=np.asarray(trace.best).tolist(),
            evaluations=trace.evaluations,
            seconds=trace.seconds,
            configuration=trace.configuration,
            versions=versions(spec.method),
        )


def run(
    store: Store,
    *,
    workers: int,
    scheduler: str | None = None,
    seconds: float | None = None,
    memory: int | None = None,
    engine: str = "auto",
    progress: Callable[[int], None] = lambda done: None,
) -> str:
    """Do all that waits in the store; returns "done", or "interrupted" after Ctrl-C.

    Parameters
    ----------
    store
        Where runs wait, and where they are put down.
    workers
        How many processes.
    scheduler
        The address of a Dask scheduler, whose workers are used instead.
    seconds, memory
        What a run may take, in seconds and bytes; one that takes more has failed.
    engine
        "cuda" or "auto": our own algorithms go to the GPU, if there is one, many runs at a time.
    progress
        Called with the number of runs that have been finished since.
    """
    with _Interrupts() as interrupts:
        if engine != "cpu" and _gpu(engine):
            _run_batches(store, interrupts, progress)
        if not interrupts.count:
            _run_each(store, interrupts, progress, workers, scheduler, seconds, memory)
    return "interrupted" if interrupts.count else "done"


def _gpu(engine: str) -> bool:
    reason = why_not("cuda")
    if reason is not None and engine == "cuda":
        raise RuntimeError(f"engine cuda cannot run here: {reason}")
    return reason is None


def _run_batches(store: Store, interrupts: _Interrupts, progress: Callable[[int], None]) -> None:
    """Our own algorithms, a batch of one distribution at a time."""
    while not interrupts.count:
        specs = store.claim(_BATCH, batch=True)
        if not specs:
            return
        instances = {spec.problem: problems.get(spec.problem) for spec in specs}
        traces = algorithms.run_many(
            specs[0].method,
            [instances[spec.problem] for spec in specs],
            specs[0].budget,
            [spec.seed for spec in specs],
            specs[0].grid,
        )
        store.beat()
        for spec, trace in zip(specs, traces, strict=True):
            if isinstance(trace, str):
                store.fail(spec, trace)
            else:
                point = np.asarray(trace.best).tolist()
                store.finish(spec, Finished(
                    trace.curve, trace.best_value, point, trace.evaluations, trace.seconds,
                    trace.configuration, versions(spec.method),
                ))  # fmt: skip
        progress(len(specs))


def _run_each(
    store: Store,
    interrupts: _Interrupts,
    progress: Callable[[int], None],
    workers: int,
    scheduler: str | None,
    seconds: float | None,
    memory: int | None,
) -> None:
    done: Done = SimpleQueue()
    with _evaluator(OneRun(memory), done, workers, scheduler, seconds) as evaluator:
        running: dict[int, tuple[Spec, float]] = {}
        number = 0
        while True:
            room = max(0, evaluator.slots - len(running))
            for spec in store.claim(room) if room and not interrupts.count else ():
                running[number] = spec, time.monotonic()
                evaluator.start(number, spec)
                number += 1
            if not running:
                return
            try:
                job, outcome = done.get(timeout=BEAT)
            except Empty:
                store.beat()
                _give_up_the_late(store, evaluator, running, seconds)
                continue
            if outcome.status is None and outcome.reason is not None:
                raise RuntimeError(f"no run is possible any more: {outcome.reason}")
            if job in running:
                _put_down(store, running.pop(job)[0], outcome)
                progress(1)


def _put_down(store: Store, spec: Spec, outcome: Outcome) -> None:
    if outcome.status == OK:
        if not store.finish(spec, outcome.value):
            logger.warning("%s on %s: another process did it too", spec.algorithm, spec.problem)
    elif outcome.status == DIED and store.release(spec, _MOST_TRIES):
        logger.warning("%s on %s: its worker died, once more", spec.algorithm, spec.problem)
    else:
        store.fail(spec, outcome.reason or "unknown")
        logger.warning("%s on %s failed: %s", spec.algorithm, spec.problem, outcome.reason)


def _give_up_the_late(
    store: Store, evaluator: Evaluator, running: dict[int, tuple[Spec, float]], limit: float | None
) -> None:
    """On an executor, which keeps no time itself."""
    if limit is None or not isinstance(evaluator, OnExecutor):
        return
    for job in [j for j, (_, start) in running.items() if time.monotonic() - start > limit]:
        evaluator.abandon(job)
        store.fail(running.pop(job)[0], f"no answer in {limit:g} s")


@contextlib.contextmanager
def _evaluator(
    f: OneRun, done: Done, workers: int, scheduler: str | None, seconds: float | None
) -> Iterator[Evaluator]:
    if scheduler is None:
        processes = Processes(f, done, workers, seconds)
        try:
            yield processes
        finally:
            processes.close()
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise ImportError("a scheduler wants Dask: pip install 'anyorder[dask]'") from None
    with Client(scheduler, timeout="30s") as client:  # type: ignore[no-untyped-call]
        executor = OnExecutor(f, done, client, None)
        try:
            yield executor
        finally:
            executor.close()


@contextlib.contextmanager
def _memory_limited(most: int | None) -> Iterator[None]:
    if most is None:
        yield
        return
    import resource

    had = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most, had[1]))
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"more than {most / 1e9:g} GB") from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, had)


def versions(method: str) -> dict[str, str]:
    """Of Python, of this library, of NumPy, and of the library an algorithm comes from."""
    packages = {"numpy", "numba"} if method.startswith("anyorder") else {"numpy"}
    packages |= {method.partition(":")[0]} - {"anyorder", "baseline"}
    found = {"python": python_version(), "anyorder": __version__}
    for package in sorted(packages):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


class _Interrupts:
    """The first Ctrl-C lets what runs finish, the second does not."""

    count = 0

    def __enter__(self) -> _Interrupts:
        self._ours = threading.current_thread() is threading.main_thread()
        if self._ours:
            self._had = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, self._had)

    def _interrupt(self, number: int, frame: Any) -> None:
        self.count += 1
        if self.count > 1:
            raise KeyboardInterrupt
        logger.warning("finishing the runs that are under way; Ctrl-C again leaves at once")
