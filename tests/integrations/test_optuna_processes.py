"""Several processes on one study: in SQLite, a journal file and PostgreSQL, one of them killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

optuna = pytest.importorskip("optuna")
from optuna.trial import TrialState  # noqa: E402
from optuna_worker import open_storage  # noqa: E402

WORKER = Path(__file__).with_name("optuna_worker.py")
TRIALS = 40


def _find_initdb() -> str | None:
    """Return PostgreSQL's `initdb`; Debian keeps it off the PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return shutil.which("initdb") or (str(debian[-1]) if debian else None)


@pytest.fixture
def postgresql() -> Iterator[str]:
    """Start a server that listens on a socket only; give its address."""
    initdb = _find_initdb()
    if initdb is None:
        pytest.skip("initdb of PostgreSQL is missing")
    pytest.importorskip("psycopg2")
    # it refuses to run as root
    user: dict[str, Any] = {} if os.getuid() else {"user": "postgres"}
    folder = Path(tempfile.mkdtemp())
    if user:
        shutil.chown(folder, "postgres")
    data, control = folder / "data", str(Path(initdb).with_name("pg_ctl"))
    options = f"-c listen_addresses='' -c fsync=off -k {folder}"
    quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, **user}
    try:
        subprocess.run([initdb, "-A", "trust", "-U", "tester", "-D", data, "-N"], **quiet)
        log = folder / "log"
        subprocess.run([control, "-w", "-D", data, "-o", options, "-l", log, "start"], **quiet)
        try:
            yield f"postgresql+psycopg2://tester@/postgres?host={folder}"
        finally:
            subprocess.run([control, "-D", data, "-m", "immediate", "stop"], **quiet)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("kind", ["sqlite", "journal", "postgresql"])
def test_processes_do_not_repeat_each_other(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Two processes, of which one is killed in an evaluation, and one that takes its place."""
    where = {"sqlite": f"sqlite:///{tmp_path}/study.db", "journal": f"{tmp_path}/study.log"}.get(
        kind
    )
    where = where or request.getfixturevalue("postgresql")
    # makes the tables, and lets no trial be the first of two processes at the same time
    optuna.create_study(storage=open_storage(where), study_name="one", direction="maximize")
    marker = tmp_path / "marker"

    with ExitStack() as running:

        def start(*arguments: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen([sys.executable, WORKER, where, str(TRIALS), *arguments])
            running.callback(process.wait)
            running.callback(process.kill)
            return process

        doomed = start(str(marker))
        while not marker.exists():  # alone until then: another could finish before it begins
            assert doomed.poll() is None
            time.sleep(0.05)
        first = start()
        doomed.kill()
        doomed.wait()
        second = start()
        assert first.wait(200) == second.wait(200) == 0

    study = optuna.load_study(storage=open_storage(where), study_name="one")
    states = [trial.state for trial in study.trials]
    assert states.count(TrialState.RUNNING) == 1  # of the process that was killed
    assert TRIALS <= states.count(TrialState.COMPLETE) <= TRIALS + 2
    points = [tuple(sorted(trial.params.items())) for trial in study.trials]
    assert len(set(points)) == len(points)
