"""What differs on Windows and macOS, tried here by taking away what they lack."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import refused, subprocess_environment
from functions import QUICK, value

import anyorder as ao
from anyorder.bench import runner
from anyorder.program.command import Command
from anyorder.run.evaluation import processes
from anyorder.run.study import ownership
from anyorder.strategies.policy import engines

EVERYTHING = """
import importlib, pkgutil, sys
import multiprocessing.connection, multiprocessing.util, selectors, subprocess, tempfile
import click, numba, numpy, sklearn.model_selection, tqdm
for missing in ("fcntl", "resource", "termios", "pwd", "grp", "pty", "syslog"):
    sys.modules[missing] = None
for extra in ("torch", "triton"):  # which take seconds, and import some of these
    sys.modules[extra] = None
import anyorder
kinds = ("cuda", "__main__", "_process")
names = [module.name for module in pkgutil.walk_packages(anyorder.__path__, "anyorder.")]
for name in names:
    if not name.endswith(kinds) and ".cuda." not in name and ".algorithms." not in name:
        try:
            importlib.import_module(name)
        except ImportError as error:
            extras = error.name in ("torch", "triton") or ".integrations." in name
            if not extras:
                raise
print(len(names))
"""


def test_nothing_that_only_posix_has_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EVERYTHING], env=subprocess_environment(), capture_output=True,
        text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


def test_a_program_is_refused_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        with refused(RuntimeError, "a program as the function requires Linux or macOS"):
            Command(("echo", "{x}"))


def test_a_limit_on_memory_is_refused_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    with (
        runner.Store(tmp_path / "runs.db") as store,
        refused(RuntimeError, "memory of a run requires Linux or macOS: leave `memory` out"),
    ):
        runner.run(store, workers=1, memory=10**9)


def test_workers_end_with_their_children_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **options: Any) -> None:
        ran.append(command)
        raise FileNotFoundError

    class Process:
        pid, killed = 17, False

        def kill(self) -> None:
            self.killed = True

    process = Process()
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        patch.setattr(subprocess, "run", run)
        processes._kill(process)
    assert ran == [["taskkill", "/T", "/F", "/PID", "17"]]
    assert process.killed


def test_windows_waits_for_few_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        with refused(ValueError, "workers is 32, expected an integer from 1 to 31"):
            processes.Processes(value, None, 32, None)  # type: ignore[arg-type]


def test_the_lock_of_a_study_goes_where_open_files_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, closed = Path.unlink, []

    class Owner(sqlite3.Connection):
        def close(self) -> None:
            closed.append(self)
            super().close()

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path.name.endswith("-owner") and not closed:
            raise PermissionError(13, "the file is used by another process", str(path))
        plain(path, missing_ok)

    connect = sqlite3.connect

    def tracked(file: Any, **options: Any) -> sqlite3.Connection:
        own = {"factory": Owner} if str(file).endswith("-owner") else {}
        return connect(file, **options, **own)

    monkeypatch.setattr(ownership.sqlite3, "connect", tracked)
    monkeypatch.setattr(Path, "unlink", unlink)
    study = tmp_path / "study.db"
    ao.maximize(value, ao.Space.binary(8), 20, study=study, **QUICK)
    assert closed
    assert [file.name for file in tmp_path.iterdir()] == ["study.db"]


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_no_advice_to_install_what_is_for_linux(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = importlib.util.find_spec
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "triton" else plain(name)
    )
    assert engines.why_not("cuda") == "it requires Triton, which is for Linux"


def test_names_that_the_output_cannot_encode(tmp_path: Path) -> None:
    """Pipes on Windows have an encoding of few letters."""
    study = tmp_path / "δ.db"
    ao.maximize(value, ao.Space.binary(8), 20, study=study, **QUICK)
    done = subprocess.run(
        [sys.executable, "-m", "anyorder", "show", str(study)], capture_output=True,
        env=subprocess_environment(PYTHONIOENCODING="cp1252"), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"\\u03b4.db" in done.stdout
