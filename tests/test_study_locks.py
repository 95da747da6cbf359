"""A study keeps its answers whatever its own process reads, and answers for one function only."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import assert_same
from conftest import posix

import anyorder as ao
from anyorder.errors import StudyError
from anyorder.run.progress import progress_bar
from anyorder.run.study import ownership

SPACE = ao.Space.binary(12)
READ = "import sys, anyorder as ao; print(len(ao.load(sys.argv[1])))"


def count(x: Any) -> float:
    return float(np.sum(x))


def negative(x: Any) -> float:
    return -float(np.sum(x))


def run(f: Any, path: Path, budget: int, **options: Any) -> ao.Result:
    return ao.maximize(f, SPACE, budget, study=path, algorithm="ils", seed=1, **options)


def read_elsewhere(path: Path) -> None:
    subprocess.run([sys.executable, "-c", READ, str(path)], check=True, capture_output=True)


@posix
def test_reading_its_own_study_does_not_cost_a_writer_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    log = tmp_path / "run.db-wal"
    seen = []

    def look(optimizer: ao.Optimizer) -> None:
        if len(seen) < 2:
            before = log.stat().st_ino
            ao.load(path)
            read_elsewhere(path)
            seen.append(log.exists() and log.stat().st_ino == before)

    run(count, path, 20, callback=look)
    assert seen == [True, True]


@posix
def test_a_lost_log_is_noticed_and_nothing_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, spare = tmp_path / "run.db", tmp_path / "copy.db"
    calls = []

    def copy(optimizer: ao.Optimizer) -> None:
        calls.append(1)
        if len(calls) == 5:
            shutil.copy(path, spare)
            read_elsewhere(path)
            assert not (tmp_path / "run.db-wal").exists()
        if len(calls) == 10:  # what a kill at this moment would leave
            for suffix in ("", "-wal"):
                subprocess.run(
                    ["cp", f"{path}{suffix}", f"{tmp_path}/killed.db{suffix}"], check=True
                )

    result = run(count, path, 30, callback=copy)
    assert "lost its write-ahead log" in caplog.text
    assert len(ao.load(tmp_path / "killed.db")) >= 10
    assert_same(ao.load(path), result.history)


@posix
def test_a_study_with_two_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    run(count, path, 10)
    os.link(path, tmp_path / "other.db")
    for name in ("run.db", "other.db"):
        with pytest.raises(StudyError, match=r"has 2 names \(hard links\)"):
            run(count, tmp_path / name, 20)
    assert len(ao.load(path)) >= 10


@posix
def test_a_study_that_is_mounted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may have the file, and not its folder: its lock would be another one."""
    path = tmp_path / "a run\\1.db"
    run(count, path, 10)
    line = "42 27 254:0 /run.db {} rw,relatime - ext4 /dev/vda rw\n"
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr(ownership, "_MOUNTS", mounts)
    for place in (tmp_path, path):
        escaped = str(place).replace("\\", "\\134").replace(" ", "\\040")
        mounts.write_text(line.format(escaped), encoding="utf-8")
        if place == path:
            with pytest.raises(StudyError, match="mount its folder instead"):
                run(count, path, 20)
        else:
            assert run(count, path, 12).evaluations == 12
    assert len(ao.load(path)) >= 12


@pytest.mark.parametrize("options", [{}, {"workers": 2}, {"vectorized": True}, {"timeout": 60.0}])
def test_an_edited_function_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "run.db"
    plain, other = (rows_count, rows_negative) if "vectorized" in options else (count, negative)
    first = run(plain, path, 10, **options)
    before = ao.load(path)
    with pytest.raises(StudyError) as caught:
        run(other, path, 20, **options)
    assert repr(first.best_value) in str(caught.value)
    assert repr(-first.best_value) in str(caught.value)
    assert "verify=False" in str(caught.value)
    after = ao.load(path)
    assert_same(before, after)
    assert run(other, path, 20, verify=False, **options).evaluations == 20


def rows_count(x: Any) -> Any:
    return np.sum(x, axis=1)


def rows_negative(x: Any) -> Any:
    return -np.sum(x, axis=1)


def test_verification_changes_nothing_and_a_complete_study_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[Any] = []

    def counted(x: Any) -> float:
        calls.append(x)
        return count(x)

    whole = run(counted, tmp_path / "whole.db", 30)
    path = tmp_path / "run.db"
    run(counted, path, 12)
    calls.clear()
    with caplog.at_level(logging.INFO, "anyorder"):
        again = run(counted, path, 30)
    assert "12 of 30 evaluations are there" in caplog.text
    assert len(calls) == 18 + 1
    assert again.evaluations == 30
    assert_same(whole.history, again.history)
    calls.clear()
    run(negative, path, 30)
    assert "30 of 30 evaluations are there; nothing is left to do" in caplog.text
    run(counted, path, 40, verify=False)
    assert len(calls) == 10


def test_a_noisy_function_is_not_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    run(count, path, 10, deterministic=False)
    assert run(negative, path, 12, deterministic=False).evaluations == 12


SCRIPT = """
import logging, sys
import anyorder as ao
if "configured" in sys.argv:
    logging.basicConfig(level=logging.WARNING)
progress = False if "silent" in sys.argv else None
ao.maximize(lambda x: int(x.sum()), ao.Space.binary(6), 12, algorithm="ils", seed=0,
            study=sys.argv[1], progress=progress)
"""


def test_a_run_off_a_terminal_says_what_it_does(tmp_path: Path) -> None:
    def said(*arguments: str) -> list[str]:
        command = [sys.executable, "-c", SCRIPT, *arguments]
        done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
        return done.stderr.splitlines()

    assert said(str(tmp_path / "a.db"), "silent") == []
    assert said(str(tmp_path / "b.db"), "configured") == []
    first = said(str(tmp_path / "c.db"))
    assert len(first) == 2
    assert first[0].startswith("anyorder: maximize of 6 variables by ils, budget 12, seed 0, study")
    assert first[1].startswith("anyorder: stopped by budget after ")
    assert "12 of 12 evaluations, best " in first[1]
    assert "nothing is left to do" in said(str(tmp_path / "c.db"))[1]


@posix
def test_a_terminal_without_a_size_gets_lines_and_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    import pty  # not on Windows
    import termios

    master, slave = pty.openpty()
    with os.fdopen(master), os.fdopen(slave, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        termios.tcsetwinsize(slave, (0, 0))
        assert progress_bar(10, None).disable
        termios.tcsetwinsize(slave, (24, 80))
        with progress_bar(10, None) as bar:
            assert not bar.disable
