"""Where evaluations run: the same history everywhere, and what goes wrong costs one evaluation."""

from __future__ import annotations

import functools
import math
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
from children import PROC, assert_same, descendants, marked, processes, wait_until
from conftest import posix
from functions import (
    FAST,
    QUICK,
    SPACE,
    TAME,
    WILD,
    Broken,
    bears,
    demanding,
    exits,
    flaky,
    flaky_status,
    forks,
    hangs,
    interrupts,
    leaves,
    lines,
    nan,
    nap,
    raises,
    slow_for_some,
    sometimes,
    text,
    third_time,
    value,
)

import anyorder as ao
from anyorder import errors
from anyorder.run.evaluation.evaluators import Outcome
from anyorder.run.evaluation.executors import OnExecutor
from anyorder.run.evaluation.processes import Processes


def check_troubled(result: ao.Result, status: int, said: str) -> None:
    history = result.history
    bad = history.codes[:, 0] == 1
    assert bad.any()
    assert not bad.all()
    assert (history.statuses[bad] == status).all()
    assert (history.statuses[~bad] == errors.OK).all()
    assert np.isnan(history.values[bad]).all()  # no number is invented
    np.testing.assert_array_equal(history.values[~bad], [value(x) for x in history.codes[~bad]])
    assert result.best_value == history.values[~bad].max()
    assert result.failures == (bad & ~history.cached).sum()
    assert result.evaluations == (~history.cached).sum() == 30
    assert all(said in history.errors[k] for k in np.flatnonzero(bad & ~history.cached))


def _label(entry: Any) -> str | None:
    return entry.__name__.strip("_") if callable(entry) else None


@pytest.mark.parametrize("on_failure", ["worst", "skip"])
@pytest.mark.parametrize(("trouble", "status", "said"), TAME, ids=_label)
def test_what_goes_wrong_here(trouble: Any, status: int, said: str, on_failure: Any) -> None:
    f = functools.partial(sometimes, trouble, None)
    check_troubled(ao.maximize(f, SPACE, 30, on_failure=on_failure, **QUICK), status, said)


@pytest.mark.parametrize(("trouble", "status", "said"), TAME + WILD, ids=_label)
def test_what_goes_wrong_in_a_worker(
    trouble: Any, status: int, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = str(tmp_path / "log")
    f = functools.partial(sometimes, trouble, log)
    timeout = 1.0 if trouble is hangs else None
    result = ao.maximize(f, SPACE, 30, on_failure="worst", workers=4, timeout=timeout, **QUICK)
    check_troubled(result, status, said)
    assert len(lines(log)) == 30


def test_what_goes_wrong_in_a_thread() -> None:
    with ThreadPoolExecutor(2) as pool:
        for trouble, status, said in [
            *TAME,
            (exits, errors.DIED, "SystemExit: 5"),
            (interrupts, errors.DIED, "KeyboardInterrupt"),
        ]:
            f = functools.partial(sometimes, trouble, None)
            result = ao.maximize(f, SPACE, 30, on_failure="worst", executor=pool, **QUICK)
            check_troubled(result, status, said)


@pytest.mark.parametrize("where", [{}, {"workers": 2}])
@pytest.mark.parametrize(
    ("trouble", "error", "said"),
    [
        (raises, KeyError, "missing part"),
        (nan, ValueError, "NaN for array"),
        (demanding, Exception, "part 7"),
        (text, TypeError, "'good', expected a number"),
    ],
    ids=_label,
)
def test_raise_raises_what_was_raised(trouble: Any, error: Any, said: str, where: Any) -> None:
    with pytest.raises(error, match=said) as raised:
        ao.maximize(functools.partial(sometimes, trouble, None), SPACE, 30, **where, **QUICK)
    if where and error is KeyError:  # where it happened is told as well
        assert "raises" in "".join(raised.value.__notes__)


def test_a_dead_worker_raises_and_the_study_goes_on(tmp_path: Path) -> None:
    study = tmp_path / "study.db"
    f = functools.partial(sometimes, leaves, None)
    with pytest.raises(RuntimeError, match="exit status 3"):
        ao.maximize(f, SPACE, 30, workers=2, study=study, **QUICK)
    result = ao.maximize(value, SPACE, 30, workers=2, study=study, **QUICK)
    assert_same(result.history, ao.maximize(value, SPACE, 30, **QUICK).history)


def test_retries(tmp_path: Path) -> None:
    log = tmp_path / "log"
    result = ao.maximize(
        functools.partial(third_time, str(log)), SPACE, 25, workers=3, retries=2, **QUICK
    )
    assert_same(result.history, ao.maximize(value, SPACE, 25, **QUICK).history)
    assert len(lines(log)) == 3 * 25  # further tries cost nothing
    assert result.evaluations == 25
    with pytest.raises(OSError, match="busy"):
        ao.maximize(
            functools.partial(third_time, str(tmp_path / "other")), SPACE, 25, retries=1, **QUICK
        )


def test_retries_of_a_vectorised_function() -> None:
    calls = []

    def f(points: np.ndarray) -> list[float]:
        calls.append(len(points))
        bad = len(calls) % 2 == 1
        return [np.nan if bad and k % 3 == 0 else value(x) for k, x in enumerate(points)]

    result = ao.maximize(f, SPACE, 25, vectorized=True, retries=1, **QUICK)
    assert_same(result.history, ao.maximize(value, SPACE, 25, **QUICK).history)


# --- the same history everywhere ------------------------------------------------------------------


def process_pool() -> ProcessPoolExecutor:
    """The standard library's; without forks of this process, whose threads may hold locks."""
    return ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))


@pytest.fixture(scope="module")
def serial() -> ao.History:
    return ao.maximize(value, SPACE, 57, **QUICK).history


@pytest.mark.parametrize("workers", [1, 3])
def test_processes_give_the_serial_history(serial: ao.History, workers: int) -> None:
    assert_same(ao.maximize(slow_for_some, SPACE, 57, workers=workers, **QUICK).history, serial)


def test_executors_give_the_serial_history(serial: ao.History) -> None:
    with ThreadPoolExecutor(3) as threads:
        assert_same(
            ao.maximize(slow_for_some, SPACE, 57, executor=threads, **QUICK).history, serial
        )
    with process_pool() as pool:
        assert_same(ao.maximize(slow_for_some, SPACE, 57, executor=pool, **QUICK).history, serial)


def test_dask_gives_the_serial_history(serial: ao.History) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=3, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        result = ao.maximize(slow_for_some, SPACE, 57, executor=client, **QUICK)
        assert_same(result.history, serial)
        count = ao.maximize(value, SPACE, 57, executor=client, asynchronous=True, **QUICK)
        assert count.evaluations == 57
        failed = ao.maximize(
            functools.partial(sometimes, demanding, None), SPACE, 30, executor=client,
            on_failure="worst", **QUICK,
        )  # fmt: skip
        check_troubled(failed, errors.FAILED, "Demanding: part 7")


BUSY: list[int] = [0]  # evaluations that run now, and how many there were at each start
BUSY_LOCK = threading.Lock()


def counted(x: np.ndarray) -> float:
    """Count how many of these run at a time, in threads of this process."""
    with BUSY_LOCK:
        BUSY[0] += 1
        BUSY.append(BUSY[0])
    time.sleep(0.02)
    with BUSY_LOCK:
        BUSY[0] -= 1
    return value(x)


def test_dask_workers_that_come_are_used() -> None:
    """A cluster without workers is waited for; those that come are used, up to workers=."""
    distributed = pytest.importorskip("distributed")
    options: dict[str, Any] = {
        "algorithm": "random", "asynchronous": True, "cache": False, "seed": 0, "workers": 3
    }  # fmt: skip
    with (
        distributed.LocalCluster(
            n_workers=0, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        with pytest.raises(RuntimeError, match="no worker of the executor has come"):
            ao.maximize(counted, SPACE, executor=client, max_seconds=0.5, **options)
        come = threading.Timer(0.3, lambda: cluster.scale(2))  # four threads in all
        come.start()
        result = ao.maximize(
            counted, SPACE, executor=client,
            stop=lambda progress: "three" if 3 in BUSY[1:] else None,
            max_seconds=60, **options,
        )  # fmt: skip
        come.join()
    assert result.stop_reason == "three"
    assert max(BUSY) == 3


class Submitit:
    """An executor whose futures do not call back, like submitit's."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(2)

    def submit(self, fn: Any, *args: Any) -> Any:
        future = self.pool.submit(fn, *args)

        class Job:
            done, result = future.done, future.result

        return Job()


def test_futures_that_do_not_call_back_are_looked_at() -> None:
    executor = Submitit()
    result = ao.maximize(value, SPACE, 6, executor=executor, workers=2, algorithm="tabu", seed=0)
    assert result.evaluations == 6
    with pytest.raises(RuntimeError, match="on purpose"):
        ao.maximize(raises_on_purpose, SPACE, 6, executor=executor, workers=2, seed=0)
    executor.pool.shutdown()


def raises_on_purpose(x: np.ndarray) -> float:
    raise RuntimeError("on purpose")


@pytest.mark.slow
def test_ray_gives_the_serial_history(serial: ao.History) -> None:
    ray = pytest.importorskip("ray")
    try:
        result = ao.maximize(slow_for_some, SPACE, 57, executor="ray", **QUICK)
    finally:
        ray.shutdown()
    assert_same(result.history, serial)


class Hand(Executor):
    """An executor whose futures end when we say so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        return future


def test_an_executor_must_tell_how_many_workers_it_has() -> None:
    with pytest.raises(ValueError, match="does not say how many workers"):
        ao.maximize(value, SPACE, 10, executor=Hand(), **QUICK)
    with pytest.raises(TypeError, match="expected an Executor"):
        ao.maximize(value, SPACE, 10, executor=3, **QUICK)
    with pytest.raises(ValueError, match="expected 'threads' or 'ray'"):
        ao.maximize(value, SPACE, 10, executor="slurm", **QUICK)


def test_a_slot_given_up_comes_back_once() -> None:
    done: Any = SimpleQueue()
    hand = Hand()
    evaluator = OnExecutor(value, done, hand, 2)
    evaluator.start(0, np.zeros(8, int))
    first, _ = hand.waiting[0]
    assert first.set_running_or_notify_cancel()
    evaluator.abandon(0)
    assert evaluator.slots == 1
    evaluator.start(0, np.zeros(8, int))  # tried again, under the same number
    first.set_result(Outcome(errors.OK, 1.0))  # the first try ends after all
    assert evaluator.slots == 2
    assert done.get_nowait() == (-1, Outcome(None))  # which is no answer of the second
    second, run = hand.waiting[1]
    second.set_result(run())
    job, outcome = done.get_nowait()
    assert (job, outcome.value) == (0, value(np.zeros(8)))
    evaluator.abandon(0)  # too late: nothing happens
    assert evaluator.slots == 2


def test_a_timeout_on_an_executor() -> None:
    release = threading.Event()

    def f(x: np.ndarray) -> float:
        if x[0]:
            release.wait(30)
        return value(x)

    for asynchronous in (False, True):
        with ThreadPoolExecutor(2) as pool:
            release.clear()
            start = time.monotonic()
            with pytest.raises(RuntimeError, match=r"past its timeout of 0\.2 s"):
                ao.maximize(
                    f, SPACE, 200, executor=pool, timeout=0.2, on_failure="worst",
                    asynchronous=asynchronous, **QUICK,
                )  # fmt: skip
            assert time.monotonic() - start < 25  # they wait for half a minute
            release.set()


def test_a_timeout_on_an_executor_costs_one_evaluation() -> None:
    ends = threading.Event()
    stuck = []

    def f(x: np.ndarray) -> float:
        if not stuck:
            stuck.append(x.copy())
            ends.wait(30)
        return value(x)

    with ThreadPoolExecutor(3) as pool:
        result = ao.maximize(f, SPACE, 40, executor=pool, timeout=1.0, on_failure="skip", **QUICK)
        ends.set()
    assert result.failures == 1
    late = result.history.statuses == errors.TIMEOUT
    assert (result.history.codes[late] == stuck[0]).all()


def test_a_broken_executor_ends_the_run_and_the_study_goes_on(tmp_path: Path) -> None:
    study = tmp_path / "study.db"
    f = functools.partial(sometimes, leaves, None)
    with (
        process_pool() as pool,
        pytest.raises(RuntimeError, match="not possible any more: BrokenProcessPool"),
    ):
        ao.maximize(f, SPACE, 30, executor=pool, study=study, on_failure="worst", **QUICK)
    with ThreadPoolExecutor(2) as threads:
        result = ao.maximize(
            value, SPACE, 30, executor=threads, study=study, on_failure="worst", **QUICK
        )
    assert_same(result.history, ao.maximize(value, SPACE, 30, **QUICK).history)


# --- asynchronous ---------------------------------------------------------------------------------


def test_asynchronous_workers_do_not_wait_for_the_slowest() -> None:
    """One evaluation lasts as long as fifty others: several batches of ten."""
    ended, others, first = threading.Event(), [], threading.Lock()

    def f(x: np.ndarray) -> float:
        if first.acquire(blocking=False):
            assert ended.wait(60)
        else:
            others.append(1)
            if len(others) == 50:
                ended.set()
        return value(x)

    with ThreadPoolExecutor(3) as pool:
        result = ao.maximize(
            f, ao.Space.binary(16), 80, executor=pool, asynchronous=True, cache=False, **QUICK
        )
    assert (result.evaluations, result.failures) == (80, 0)
    assert result.history.generations.tolist().index(0) == 0
    assert (np.diff(result.history.generations) < 0).any()  # the first was answered late


@posix
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_function_that_forks(asynchronous: bool, tmp_path: Path) -> None:
    """Both processes return from it; only the worker may answer."""
    log = tmp_path / "log"
    result = ao.maximize(
        functools.partial(forks, str(log)), SPACE, 40, workers=2, asynchronous=asynchronous, **QUICK
    )
    assert result.evaluations == 40
    values = [value(x) for x in result.history.codes]
    np.testing.assert_array_equal(result.history.values, values)
    if not asynchronous:
        assert_same(result.history, ao.maximize(value, SPACE, 40, **QUICK).history)
    pids = {int(line) for line in lines(log)}
    assert len(lines(log)) == 40  # a child for each
    wait_until(lambda: not pids & processes().keys())


@pytest.mark.parametrize("option", ["timeout", "max_seconds"])
def test_long_waits(option: str) -> None:
    """Systems cannot wait as long as that in one go."""
    for seconds in (3_000_000.0, 1e9):
        for where in ({"workers": 1}, {"executor": ThreadPoolExecutor(1)}):
            result = ao.maximize(value, SPACE, 12, **{option: seconds}, **where, **QUICK)
            assert result.evaluations == 12
    for seconds in (math.inf, 1e10, math.nan):
        with pytest.raises(ValueError, match=f"{option} is"):
            ao.maximize(value, SPACE, 12, workers=1, **{option: seconds}, **QUICK)


@pytest.mark.parametrize("kind", ["processes", "threads"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_waiting_costs_no_cpu(tmp_path: Path, kind: str, asynchronous: bool) -> None:
    f = functools.partial(nap, 0.5, str(tmp_path / "log"))
    with ThreadPoolExecutor(2) as pool:
        where = {"workers": 2} if kind == "processes" else {"executor": pool}
        ao.maximize(value, SPACE, 2, asynchronous=asynchronous, **where, **QUICK)  # warm
        cpu, wall = time.process_time(), time.monotonic()
        ao.maximize(f, SPACE, 6, asynchronous=asynchronous, max_seconds=60, **where, **QUICK)
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    assert wall > 1.0
    assert cpu < 0.2 * wall


@pytest.mark.parametrize("cache", [True, False])
def test_asynchronous_ends_in_a_space_smaller_than_its_workers(cache: bool) -> None:
    with ThreadPoolExecutor(8) as pool:
        result = ao.maximize(
            lambda x: time.sleep(0.02) or float(x.sum()), ao.Space.binary(2), 50, executor=pool,
            asynchronous=True, cache=cache, **QUICK,
        )  # fmt: skip
    assert result.best_value == 2
    assert (result.stop_reason, result.evaluations) == (
        ("exhausted", 4) if cache else ("budget", 50)
    )


def test_asynchronous_waits_for_twins_of_what_is_out() -> None:
    """A policy that knows one point only draws it again and again while it is being evaluated."""
    config = FAST.replace(learning_rate=0.5, restart_agreement=None)
    with ThreadPoolExecutor(4) as pool:
        result = ao.maximize(
            lambda x: time.sleep(0.005) or float(x.sum()),
            ao.Space.binary(5),
            10_000,
            seed=0,
            executor=pool,
            asynchronous=True,
            algorithm=ao.policy.Policy(config),
            max_seconds=60,
        )
    assert result.stop_reason == "exhausted"


# --- nothing is left behind -----------------------------------------------------------------------


@pytest.mark.skipif(not PROC, reason="there is no /proc to look into")
@pytest.mark.parametrize("budget", [300, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_function_that_fails_at_random(budget: int, asynchronous: bool) -> None:
    ao.maximize(value, SPACE, 4, workers=4, **QUICK)  # what stays is there from now on
    files, before = len(os.listdir("/proc/self/fd")), descendants()
    threads = threading.active_count()
    result = ao.maximize(
        flaky,
        ao.Space.binary(32),
        budget,
        workers=4,
        timeout=0.2,
        on_failure="worst",
        seed=0,
        algorithm=ao.policy.Policy(FAST.replace(epochs=1)),
        asynchronous=asynchronous,
        cache=False,
    )
    assert result.evaluations == (~result.history.cached).sum() == budget
    statuses = result.history.statuses
    expected = np.array([flaky_status(x) for x in result.history.codes.astype(np.int64)])
    assert set(expected) == {errors.OK, errors.FAILED, errors.DIED, errors.TIMEOUT}
    assert ((statuses == expected) | (statuses == errors.TIMEOUT)).all()  # by a slow machine
    np.testing.assert_array_equal(statuses == errors.OK, ~np.isnan(result.history.values))
    assert len(os.listdir("/proc/self/fd")) == files
    assert threading.active_count() == threads
    assert descendants() <= before


@pytest.mark.skipif(not PROC, reason="there is no /proc to look into")
def test_what_a_worker_started_dies_with_it() -> None:
    ao.maximize(bears, SPACE, 4, workers=2, timeout=0.3, on_failure="worst", **QUICK)
    wait_until(lambda: not marked("ANYORDER_BORN=here"))


def test_max_seconds_ends_while_workers_are_busy(tmp_path: Path) -> None:
    study = tmp_path / "study.db"
    start = time.monotonic()
    result = ao.maximize(hangs, SPACE, 10, workers=2, max_seconds=0.5, study=study, **QUICK)
    assert time.monotonic() - start < 50  # one evaluation takes a minute
    assert (result.stop_reason, result.evaluations, result.best) == ("time", 0, None)
    assert len(ao.resume(study, value, workers=2).history) == 10


# --- functions that cannot be sent ---------------------------------------------------------------


def test_a_function_that_no_worker_can_read() -> None:
    with pytest.raises(RuntimeError, match="cannot be read in a worker process: ImportError"):
        ao.maximize(Broken(), SPACE, 20, workers=2, **QUICK)


def test_a_function_that_cannot_be_sent() -> None:
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"worker processes.*executor='threads' evaluates"):
        ao.maximize(lambda x: float(lock.locked()), SPACE, 20, workers=2, **QUICK)


def test_a_function_of_an_interactive_session() -> None:
    script = (
        "import anyorder as ao\n"
        "def f(x): return float(x.sum())\n"
        "o = {'workers': 2, 'seed': 0, 'algorithm': 'random'}\n"
        "print(ao.maximize(f, ao.Space.binary(4), 5, **o).evaluations)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, encoding="utf-8"
    )
    assert run.stdout.strip() == "5", run.stderr


def test_a_watcher_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    done: Any = SimpleQueue()
    evaluator = Processes(value, done, 2, None)
    started: Iterator[int] = iter(range(1))

    def start() -> Any:
        next(started)
        raise OSError("no more processes")

    monkeypatch.setattr(evaluator, "_start_worker", start)
    evaluator._workers[0].process.kill()
    job, outcome = done.get(timeout=20)
    assert (job, outcome.status) == (-1, None)
    assert "no more processes" in outcome.reason
    evaluator.close()
    assert evaluator._workers == []


def test_functions_pickle() -> None:
    """Else the tests above test something else."""
    for trouble, *_ in TAME + WILD:
        pickle.dumps(functools.partial(sometimes, trouble, None))


# --- what a user meets first ----------------------------------------------------------------------

SCRIPT = """
import anyorder as ao

def f(x):
    return float(x.sum())

result = ao.maximize(f, ao.Space.binary(6), 12, algorithm="ils", seed=0, workers=3, progress=False)
print(result.evaluations)
"""


def test_a_script_without_a_main_guard_is_told_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.count("if __name__ == '__main__':") == 1


def test_a_script_on_standard_input_has_functions_like_others() -> None:
    done = subprocess.run(
        [sys.executable, "-"], input=SCRIPT, capture_output=True, encoding="utf-8", check=False
    )
    assert (done.stdout, done.stderr) == ("12\n", "")


FORKED = """
import os
import anyorder as ao

def f(x):
    return float(x.sum())

def run():
    return ao.maximize(f, ao.Space.binary(6), 12, seed=0, workers=2, progress=False).evaluations

if __name__ == "__main__":
    assert run() == 12
    child = os.fork()
    if not child:
        os._exit(run())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@posix
def test_a_forked_child_has_workers_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(FORKED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script], capture_output=True, encoding="utf-8", check=False
    )
    assert (done.stdout, done.stderr) == ("12\n", "")


def test_threads_by_name() -> None:
    seen = set()

    def f(x: np.ndarray) -> float:
        seen.add(threading.current_thread().name)
        return float(x.sum())

    result = ao.maximize(f, ao.Space.binary(8), 30, executor="threads", workers=3, **QUICK)
    assert result.evaluations == 30
    assert 1 <= len(seen) <= 3
    assert all(name.startswith("anyorder") for name in seen)


def test_what_cannot_submit_is_refused_by_name() -> None:
    class Pool:
        def __repr__(self) -> str:
            return "<Pool of mine>"

    with pytest.raises(TypeError, match="executor is <Pool of mine>, which has no `submit`"):
        ao.maximize(value, ao.Space.binary(8), 30, executor=Pool())
    with pytest.raises(ValueError, match=r"executor is 'thread'.*did you mean 'threads'"):
        ao.maximize(value, ao.Space.binary(8), 30, executor="thread")
