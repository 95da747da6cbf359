"""Studies that were damaged, edited, deleted or cut off."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import random
import resource
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import assert_same
from conftest import refused
from functions import (
    QUICK,
    SPACE,
    value,
)

import anyorder as ao
from anyorder.errors import StudyError
from anyorder.session.reading import load
from anyorder.space.packing import Packing

# --- damage ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "study.db"
    ao.maximize(value, ao.Space.binary(16), 1_000, study=path, **QUICK)
    return path.read_bytes()


def survives(study: Path) -> bool:
    """Whether it can be read and go on; if not, that is said as it should be."""
    said = []
    for use in (
        lambda: load(study),
        lambda: ao.maximize(value, ao.Space.binary(16), 1_020, study=study, **QUICK),
    ):
        try:
            use()
        except StudyError as error:
            said.append(str(error))
    assert all(str(study) in text for text in said)
    return not said


def test_a_truncated_study(study: Path, sound: bytes) -> None:
    pages = len(sound) // 4096
    for page in range(0, pages, 5):
        study.write_bytes(sound[: page * 4096 + 1234])
        assert not survives(study)
    study.write_bytes(sound[:100])
    assert not survives(study)


def test_garbage_in_a_study(study: Path, sound: bytes) -> None:
    """Whole pages, and a few bytes anywhere; SQLite keeps no checksums, so some go unnoticed."""
    rng = random.Random(0)
    noticed = 0
    for page in range(1, len(sound) // 4096, 3):
        damaged = bytearray(sound)
        damaged[page * 4096 : (page + 1) * 4096] = rng.randbytes(4096)
        study.write_bytes(damaged)
        noticed += not survives(study)
    assert noticed > len(sound) // 4096 // 6
    places = [sound.index(b"CREATE TABLE"), *(rng.randrange(4096, len(sound)) for _ in range(20))]
    for at in places:
        damaged = bytearray(sound)
        damaged[at : at + 8] = b"\xd3" * 8
        study.write_bytes(damaged)
        survives(study)


def _evil() -> bytes:
    class Evil:
        def __reduce__(self) -> Any:
            return os._exit, (17,)

    buffer = io.BytesIO()
    np.savez(buffer, header=np.array([Evil()], dtype=object))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["truncated", "empty", "text", "pickle", "bare pickle", "flipped"])
def test_a_damaged_state(study: Path, kind: str) -> None:
    ao.maximize(value, SPACE, 40, study=study, cache=False, **QUICK)
    with contextlib.closing(sqlite3.connect(study)) as database:
        ((blob,),) = database.execute("SELECT arrays FROM state").fetchall()
        flipped = bytearray(blob)
        flipped[len(blob) // 2] ^= 255
        damaged = {
            "truncated": blob[: len(blob) // 2], "empty": b"", "text": b"hello", "pickle": _evil(),
            "bare pickle": pickle.dumps({"theta": np.zeros(3)}), "flipped": bytes(flipped),
        }[kind]  # fmt: skip
        database.execute("UPDATE state SET arrays=?", (damaged,))
        database.commit()
    with refused(StudyError, str(study), "state is damaged"):
        ao.maximize(value, SPACE, 60, study=study, cache=False, **QUICK)
    assert len(load(study)) == 40  # the evaluations are all there


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_full_disk(study: Path, asynchronous: bool) -> None:
    """A limit on the size of files is the nearest to a full disk that needs no disk."""
    space = ao.Space.binary(64)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    calls = []

    def f(x: np.ndarray) -> float:
        calls.append(1)
        return float(x.sum())

    with ThreadPoolExecutor(1) as pool:
        where = {"executor": pool, "asynchronous": True} if asynchronous else {}
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, hard))
            with refused(StudyError, str(study), "what was written before is safe"):
                ao.maximize(f, space, 2_000, study=study, **where, **QUICK)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, handler)
        had = load(study)
        assert len(calls) - 1 <= (~had.cached).sum() <= len(calls)  # but the last
        budget = len(calls) + 100
        result = ao.maximize(f, space, budget, study=study, **where, **QUICK)
        whole = ao.maximize(f, space, budget, **where, **QUICK)
    assert_same(result.history, whole.history)


def test_the_disk_fills_up_while_the_study_is_begun(study: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, hard))
        with refused(StudyError, str(study)):
            ao.maximize(value, SPACE, 20, study=study, **QUICK)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert ao.maximize(value, SPACE, 20, study=study, **QUICK).evaluations == 20


def test_a_study_begun_elsewhere_is_kept_as_it_is(
    study: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If candidates are drawn otherwise, those of the study count, and that is said."""
    ao.maximize(value, SPACE, 25, study=study, **QUICK)
    with contextlib.closing(sqlite3.connect(study)) as database:
        database.execute("DELETE FROM state")
        (point,) = Packing(SPACE).pack(np.array([[1, 0, 1, 0, 1, 0, 1, 0]]))
        old = database.execute("SELECT value FROM candidates WHERE number=4").fetchone()
        database.execute("UPDATE candidates SET point=? WHERE number=4", (point,))
        database.commit()
    assert old is not None
    had = load(study)
    result = ao.maximize(value, SPACE, 40, study=study, **QUICK)
    assert "is drawn otherwise here" in caplog.text
    np.testing.assert_array_equal(result.history.codes[: len(had)], had.codes)
    assert result.evaluations == 40
