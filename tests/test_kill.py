"""Ctrl-C and SIGKILL, in real processes: what is known stays known, and nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from children import PROC, Child, assert_same, ends, wait_until
from functions import (
    PLAIN,
    QUICK,
    SPACE,
    lines,
    value,
)

import anyorder as ao
from anyorder.run.study.reading import load

if os.name != "posix":
    pytest.skip("signals to process groups, as Linux and macOS have them", allow_module_level=True)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_ctrl_c_finishes_what_is_out_and_a_second_does_not(
    tmp_path: Path, asynchronous: bool
) -> None:
    options = {"asynchronous": asynchronous, "engine": "reference" if asynchronous else "cpu"}
    child = Child(tmp_path, 20, 0.5, workers=2, **options)
    # not when both have just ended and nothing is out
    wait_until(lambda: lines(child.log).count("start") >= 3)
    child.signal(signal.SIGINT)
    out, err = child.end()
    assert "RESULT interrupted" in out, err
    assert "finishing what is being evaluated" in err
    told = lines(child.log)
    ended = [line for line in told if line.startswith("end")]
    assert len(ended) == told.count("start")  # nothing was cut off
    assert len(ao.load(child.study)) == len(ended) < 20
    child.alone()

    again = Child(tmp_path, 20, 60.0, workers=2, **options)
    wait_until(lambda: lines(again.log).count("start") >= len(ended) + 2)
    start = time.monotonic()
    while again.process.poll() is None:  # two that come together count as one
        again.signal(signal.SIGINT)
        time.sleep(0.3)
    assert time.monotonic() - start < 50  # and not the minute and more that they take
    _, err = again.end()
    assert again.process.returncode != 0
    assert "KeyboardInterrupt" in err
    again.alone()
    assert len(ao.load(child.study)) == len(ended)

    whole = ao.resume(child.study, value, workers=2)
    assert whole.evaluations == 20
    if not asynchronous:
        assert_same(whole.history, ao.maximize(value, SPACE, 20, **QUICK).history)


def test_a_script_without_a_main_guard_says_so(tmp_path: Path) -> None:
    child = Child(tmp_path, 20, 0.0, guard=False, workers=2)
    _, err = child.end()
    assert child.process.returncode != 0
    assert "if __name__ == '__main__':" in err.splitlines()[-1]
    child.alone()


# --- kill -9 --------------------------------------------------------------------------------------


def points_of(study: Path) -> list[str]:
    history = load(study)
    return ["".join(map(str, x)) for x in history.codes[~history.cached]]


@pytest.mark.skipif(not PROC, reason="there is no /proc to look into")
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    "kills", [2, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_kill_9(tmp_path: Path, asynchronous: bool, kills: int) -> None:
    """At moments that are drawn: from while it starts to deep in the run."""
    budget, workers, nap = min(20 + 8 * kills, 200), 2 if kills == 2 else 4, 0.02  # of 256 points
    rng, known = random.Random(0), dict[str, int]()
    most = 2 * workers if asynchronous else workers  # some are sent out before a worker is free

    def check() -> None:
        answered, logged = points_of(child.study), ends(child.log)
        assert len(set(answered)) == len(answered)  # nothing is paid for twice
        assert all(logged.count(point) == times for point, times in known.items())
        known.update((point, logged.count(point)) for point in answered)
        assert known.keys() == set(answered) <= set(logged)  # nothing known is lost
        assert len(set(logged) - set(answered)) <= most  # or is, but what was out

    for _ in range(kills):
        before = len(lines(tmp_path / "log"))
        child = Child(tmp_path, budget, nap, workers=workers, asynchronous=asynchronous)
        if rng.random() < 0.9:  # else while it starts
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(0.1)
            wait_until(
                lambda b=before, c=child: c.process.poll() is not None or len(lines(c.log)) > b
            )
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.process.wait(rng.uniform(0, 0.4))
        child.process.kill()
        child.end()
        child.alone()
        if child.study.exists():
            check()
    child = Child(tmp_path, budget, 0.0, workers=workers, asynchronous=asynchronous)
    out, err = child.end()
    assert f"RESULT budget {budget}" in out, err
    child.alone()
    check()
    assert len(known) == budget
    assert len(ends(child.log)) <= budget + kills * most
    if not asynchronous:
        assert_same(load(child.study), ao.maximize(value, SPACE, budget, **PLAIN).history)


CLUSTER = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None)
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
    cluster.close()
"""

CLIENT = """
import os, sys, time
import anyorder as ao
from distributed import Client
from functions import slow_and_noted
import functools
if __name__ == "__main__":
    client = Client(sys.argv[1])
    result = ao.maximize(
        functools.partial(slow_and_noted, sys.argv[3]), ao.Space.binary(8), int(sys.argv[4]),
        seed=0, algorithm="policy+epochs=3+hidden=(4,)", study=sys.argv[2], executor=client)
    print("RESULT", result.evaluations, flush=True)
"""


@pytest.mark.slow
def test_kill_9_beside_a_dask_cluster(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    study, log, budget, kills = tmp_path / "study.db", tmp_path / "log", 100, 6
    (tmp_path / "cluster.py").write_text(CLUSTER, encoding="utf-8")
    (tmp_path / "client.py").write_text(CLIENT, encoding="utf-8")
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    cluster = subprocess.Popen(
        [sys.executable, str(tmp_path / "cluster.py")], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env=env, text=True,
        encoding="utf-8",
    )  # fmt: skip
    try:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        rng = random.Random(0)
        command = [sys.executable, str(tmp_path / "client.py"), address, str(study), str(log)]
        for _ in range(kills):
            before = len(lines(log))
            client = subprocess.Popen([*command, str(budget)], env=env)
            wait_until(lambda b=before, c=client: len(lines(log)) > b or c.poll() is not None)
            with contextlib.suppress(subprocess.TimeoutExpired):
                client.wait(rng.uniform(0, 0.5))
            client.kill()
            client.wait()
        run = subprocess.run(
            [*command, str(budget)],
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            encoding="utf-8",
        )
        assert f"RESULT {budget}" in run.stdout, run.stderr
    finally:
        cluster.communicate("", timeout=60)
    assert_same(load(study), ao.maximize(value, SPACE, budget, **QUICK).history)
    assert len(lines(log)) <= budget + 4 * kills
