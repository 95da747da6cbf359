"""Doing the missing runs of a campaign: in processes, on a GPU, or on several machines."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from platform import python_version
from typing import Any

import numpy as np

from anyorder import problems
from anyorder._internal.checks import require
from anyorder._version import __version__
from anyorder.bench import algorithms
from anyorder.bench.algorithms.naming import split
from anyorder.bench.store import Finished, Spec, Store
from anyorder.errors import DIED, OK
from anyorder.run.evaluation.evaluators import Outcome
from anyorder.run.evaluation.executors import OnExecutor
from anyorder.run.evaluation.interrupts import Interrupts
from anyorder.run.evaluation.jobs import Jobs
from anyorder.run.evaluation.processes import Processes
from anyorder.strategies.policy.engines import why_not

logger = logging.getLogger("anyorder")

# A run whose worker dies is repeated by another worker; after so many deaths the run is the cause.
_MOST_TRIES = 3
_LONGEST_EMPTY = 60.0  # seconds without a worker: Dask restarts workers that have died
# The most runs that a GPU does at a time.
_BATCH = 100
# A lock, since global generators are seeded and memory is limited for a whole process, while a
# worker of Dask may have several threads.
_ONE_AT_A_TIME = threading.Lock()
# A worker of Dask ends itself so many seconds after the time limit of a run.
_GRACE = 2.0
_LATEST = 1e9  # seconds, 31 years: every platform has timers for so long


class OneRun:
    """A function that does a run, given by its `Spec`, within limits of memory and time."""

    def __init__(
        self, memory: int | None, seconds: float | None = None, modules: Sequence[str] = ()
    ) -> None:
        self.memory, self.seconds, self.modules = memory, seconds, tuple(modules)

    def __call__(self, spec: Spec) -> Finished:
        """Do the run, and return its result."""
        os.environ.setdefault("ANYORDER_NUM_THREADS", "1")  # one process for each core
        with _ONE_AT_A_TIME, _limit_time(self.seconds), _limit_memory(self.memory):
            for module in self.modules:
                importlib.import_module(module)
            problem = problems.get(spec.problem)
            try:
                trace = algorithms.run(spec.method, problem, spec.budget, spec.seed, spec.grid)
            except algorithms.AlgorithmError as error:
                # the reason is stored with the run, and equal reasons are counted together
                raise error.__cause__ or error from None
        return _finish(trace, versions(spec.method))


def _finish(trace: algorithms.Trace, made_with: Mapping[str, str]) -> Finished:
    return Finished(
        curve=trace.curve,
        best=trace.best_value,
        point=np.asarray(trace.best).tolist(),
        evaluations=trace.evaluations,
        seconds=trace.seconds,
        configuration=trace.configuration,
        versions=made_with,
    )


def run(
    store: Store,
    *,
    workers: int,
    scheduler: str | None = None,
    seconds: float | None = None,
    memory: int | None = None,
    modules: Sequence[str] = (),
    engine: str = "auto",
    progress: Callable[[int], None] = lambda done: None,
) -> str:
    """Do all waiting runs of a store; return "done", or "interrupted" after Ctrl-C.

    Parameters
    ----------
    store
        The file in which runs wait, and in which their results are recorded.
    workers
        The number of processes.
    scheduler
        The address of a Dask scheduler, whose workers are then used.
    seconds, memory
        Limits of a run, in seconds and bytes; a run that exceeds them has failed.
    modules
        Modules that the workers import first.
    engine
        With "cuda" or "auto" this library's own algorithms run on the GPU, if there is one, many
        runs at a time.
    progress
        A function that is called with the number of runs finished since the last call.
    """
    if memory is not None:
        _resource()
    waits = "finishing the runs that are under way"
    with Interrupts(waits, always=True) as interrupts, store.heartbeat():
        if engine != "cpu" and _gpu(engine):
            _run_batches(store, interrupts, progress)
        if not interrupts.count:
            one = OneRun(memory, seconds, modules)
            _run_each(store, interrupts, progress, workers, scheduler, one)
    return "interrupted" if interrupts.count else "done"


def _gpu(engine: str) -> bool:
    reason = why_not("cuda")
    if reason is not None and engine == "cuda":
        raise RuntimeError(f"engine cuda cannot run here: {reason}")
    return reason is None


def _run_batches(store: Store, interrupts: Interrupts, progress: Callable[[int], None]) -> None:
    """Run this library's own algorithms, a batch of one distribution at a time."""
    not_together: set[tuple[str, str]] = set()
    while not interrupts.count:
        specs = store.claim(_BATCH, True, not_together)
        if not specs:
            return
        try:
            instances = {name: problems.get(name) for name in {spec.problem for spec in specs}}
            traces = algorithms.run_many(
                specs[0].method,
                [instances[spec.problem] for spec in specs],
                specs[0].budget,
                [spec.seed for spec in specs],
                specs[0].grid,
            )
        except Exception as error:  # alone, an error only costs the run that has it
            logger.warning(
                "%s on %s runs one at a time: %s",
                specs[0].algorithm,
                specs[0].distribution,
                error,
            )
            not_together.add((specs[0].method, specs[0].distribution))
            for spec in specs:
                store.release(spec)
            continue
        made_with = versions(specs[0].method)
        ended = list(zip(specs, traces, strict=True))
        store.fail(*((spec, trace) for spec, trace in ended if isinstance(trace, str)))
        store.finish(
            *((spec, _finish(trace, made_with)) for spec, trace in ended
              if not isinstance(trace, str))
        )  # fmt: skip
        progress(len(specs))


def _run_each(
    store: Store,
    interrupts: Interrupts,
    progress: Callable[[int], None],
    workers: int,
    scheduler: str | None,
    one: OneRun,
) -> None:
    with _jobs(one, workers, scheduler) as jobs:
        running: dict[int, Spec] = {}
        empty_since: float | None = None
        while True:
            room = max(0, jobs.slots - len(running))
            for spec in store.claim(room) if room and not interrupts.count else ():
                running[jobs.start(spec)] = spec
            if running:
                empty_since = None
            elif room or interrupts.count:
                return
            else:
                empty_since = empty_since or time.monotonic()
                if not jobs.waits or time.monotonic() - empty_since > _LONGEST_EMPTY:
                    what = "the cluster has no workers" if jobs.waits else "every worker hangs"
                    raise RuntimeError(f"no further run is possible: {what}")
            for job, outcome in jobs.wait():
                # Dask has retried already, on several workers
                tries = _MOST_TRIES if scheduler is None else 1
                _record(store, running.pop(job), outcome, tries)
                progress(1)
            if jobs.error is not None:
                raise RuntimeError(f"no further run is possible: {jobs.error}")


def _record(store: Store, spec: Spec, outcome: Outcome, most_tries: int) -> None:
    if outcome.status == OK:
        if not store.finish((spec, outcome.value)):
            logger.warning(
                "%s on %s: another process has done it as well", spec.algorithm, spec.problem
            )
    elif outcome.status == DIED and store.release(spec, most_tries):
        logger.warning("%s on %s: its worker died, retrying", spec.algorithm, spec.problem)
    else:
        store.fail((spec, outcome.reason or "unknown"))
        logger.warning("%s on %s failed: %s", spec.algorithm, spec.problem, outcome.reason)


@contextlib.contextmanager
def _jobs(f: OneRun, workers: int, scheduler: str | None) -> Iterator[Jobs]:
    with contextlib.ExitStack() as stack:
        if scheduler is None:
            stack.enter_context(_limit_threads())
            jobs = Jobs(lambda done: Processes(f, done, workers, f.seconds))
        else:
            client = stack.enter_context(_client(scheduler))
            count = len(client.nthreads())
            jobs = Jobs(lambda done: OnExecutor(f, done, client, count), f.seconds)
        stack.callback(jobs.close)
        yield jobs


def _client(scheduler: str) -> Any:
    distributed = require("distributed", "dask", "a scheduler requires Dask")
    client = distributed.Client(scheduler, timeout="30s")
    threads = client.nthreads().values()
    if not threads:
        client.close()
        raise RuntimeError(f"the scheduler {scheduler} has no workers")
    if max(threads) > 1:
        logger.warning("a worker does one run at a time: start them with --nthreads 1")
    return client


@contextlib.contextmanager
def _limit_threads() -> Iterator[None]:
    """Limit worker processes to one thread; libraries read this when they are loaded."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    added = [name for name in names if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextlib.contextmanager
def _limit_time(most: float | None) -> Iterator[None]:
    """End a Dask worker whose run is late; its nanny starts another one.

    By then the run has been abandoned; without this, other runs would wait behind it for ever.
    """
    dask = sys.modules.get("distributed")
    nanny = None
    if most is not None and dask is not None:
        with contextlib.suppress(ValueError):  # this is not a worker
            nanny = dask.get_worker().nanny
    if most is None or nanny is None:
        yield
        return
    faulthandler.dump_traceback_later(min(most, _LATEST) + _GRACE, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@contextlib.contextmanager
def _limit_memory(most: int | None) -> Iterator[None]:
    if most is None:
        yield
        return
    resource = _resource()
    had = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most, had[1]))
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"more than {most / 1e9:g} GB") from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, had)


def _resource() -> Any:
    try:
        return importlib.import_module("resource")
    except ImportError:
        raise RuntimeError(
            "a limit on the memory of a run requires Linux or macOS: leave `memory` out"
        ) from None


def versions(method: str) -> dict[str, str]:
    """Return the versions of Python, of this library, and of the packages that a method uses."""
    library = algorithms.LIBRARIES[split(method).kind]
    packages = {*library.used, *([library.package] if library.package else [])}
    loaded = {"torch": "torch", "triton": "triton", "ioh": "ioh", "sklearn": "scikit-learn"}
    packages |= {package for module, package in loaded.items() if module in sys.modules}
    found = {"python": python_version(), "anyorder": __version__}
    for package in sorted(packages):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
