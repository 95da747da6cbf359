"""Studies that were damaged, edited, deleted or cut off."""

from __future__ import annotations

import contextlib
import io
import math
import os
import pickle
import random
import signal
import sqlite3
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import assert_same
from conftest import posix, refused
from functions import (
    QUICK,
    SPACE,
    failing,
    no_such_file,
    value,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import anyorder as ao
from anyorder._internal import sqlite
from anyorder.errors import FAILED, StudyError
from anyorder.run.study.reading import Row, check, checksum_of, load, state_checksum
from anyorder.run.study.rescue import write_csv
from anyorder.space.packing import Packing

# --- damage ---------------------------------------------------------------------------------------


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


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
    """Whole pages that hold candidates or settings, and single bytes of their values."""
    rng = random.Random(0)
    for page in range(1, len(sound) // 4096, 6):
        damaged = bytearray(sound)
        damaged[page * 4096 : (page + 1) * 4096] = rng.randbytes(4096)
        study.write_bytes(damaged)
        assert not survives(study)
        assert check(study) != []


def test_a_changed_byte_in_a_value_is_noticed(study: Path, sound: bytes) -> None:
    history = load(write(study, sound))
    for place in random.Random(0).sample(range(len(history)), 8):
        # a float that is stored as such; whole numbers are stored as integers
        number = struct.pack(">d", history.seconds[place])
        if history.cached[place] or sound.count(number) != 1:
            continue
        damaged = bytearray(sound)
        damaged[sound.index(number) + 5] ^= 1
        assert not survives(write(study, bytes(damaged)))
        assert len(check(study)) == 1
        assert f"candidate {place} has been changed" in check(study)[0]


def write(study: Path, contents: bytes) -> Path:
    study.write_bytes(contents)
    return study


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Studies that stopped in the middle of a batch: with failures, asynchronous, and noisy."""
    folder = tmp_path_factory.mktemp("small")
    ao.maximize(failing, SPACE, 45, study=folder / "batches", on_failure="worst", **QUICK)
    with ThreadPoolExecutor(1) as pool:
        ao.maximize(
            value, SPACE, 45, study=folder / "asynchronous", executor=pool, asynchronous=True,
            on_failure="worst", **QUICK,
        )  # fmt: skip
    ao.maximize(value, SPACE, 45, study=folder / "noisy", deterministic=False, confirm=6, **QUICK)
    ao.optimize(
        two, SPACE, 45, study=folder / "several", directions=("max", "min"), reference=(0, 9),
        seed=0,
    )  # fmt: skip
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def two(x: np.ndarray) -> Any:
    """Two values, with notes at half of the points."""
    values = value(x), float(x @ np.arange(len(x)))
    return (values, {"first": int(x[0])}) if x[1] else values


EDITS = [None, -1, 0, 1, 7, 2**62, 1e300, -math.inf, "", "x", '"x"', "[]", "{}", "null", "-1",
         "1e400", "[" * 50_000, b"", b"\xff", b"\xff" * 9]  # fmt: skip


@pytest.mark.parametrize("kind", ["batches", "asynchronous", "noisy", "several"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_edited_study_is_a_study_error(
    study: Path, small: dict[str, bytes], kind: str, data: st.DataObject
) -> None:
    """Whatever is changed, with its checksum or without: never another error."""
    write(study, small[kind])
    for file in study.parent.glob("study.db-*"):
        file.unlink()
    columns = {
        "candidates": [*Row._fields, "checksum"],
        "settings": ["name", "value", "checksum"],
        "restarts": ["number", "told"],
        "state": ["drawn", "told", "arrays", "counters", "checksum"],
    }
    if kind == "several":
        columns["objectives"] = ["number", "answers", "checksum"]
        columns["notes"] = ["number", "text", "checksum"]
    with contextlib.closing(sqlite3.connect(study, isolation_level=None)) as database:
        table = data.draw(st.sampled_from(sorted(columns)))
        rows = [row for (row,) in database.execute(f"SELECT {_key(table)} FROM {table}")]
        row = data.draw(st.sampled_from(rows)) if rows else 0
        action = data.draw(st.sampled_from(["edit", "edit", "edit", "delete", "add"]))
        mended = data.draw(st.booleans())
        with contextlib.suppress(sqlite3.IntegrityError):
            if action == "delete":
                database.execute(f"DELETE FROM {table} WHERE {_key(table)} = ?", (row,))
            elif action == "add" and table == "restarts":
                number, told = data.draw(st.sampled_from([(0, 3), (4, 10), (0, -5), (-1, 0)]))
                database.execute("INSERT INTO restarts VALUES (?, ?)", (number, told))
            else:
                column = data.draw(st.sampled_from(columns[table]))
                edit = data.draw(st.sampled_from(EDITS))
                database.execute(
                    f"UPDATE {table} SET {column} = ? WHERE {_key(table)} = ?", (edit, row)
                )
                if mended:
                    mend(database)
    for use in (
        lambda: load(study),
        lambda: resumed(study, kind),
    ):
        with contextlib.suppress(StudyError):
            use()
    with contextlib.suppress(StudyError):
        assert isinstance(check(study), list)


def _key(table: str) -> str:
    return {"settings": "name", "state": "id"}.get(table, "number")


def resumed(study: Path, kind: str) -> ao.Result:
    if kind != "asynchronous":
        f = {"batches": failing, "several": two}.get(kind, value)
        return ao.resume(study, f, 50, max_seconds=20)
    with ThreadPoolExecutor(1) as pool:
        return ao.resume(study, value, 50, executor=pool, max_seconds=20)


def mend(database: sqlite3.Connection) -> None:
    """Compute checksums anew, as someone would who edits a study on purpose."""
    columns = ", ".join(Row._fields)
    for columns_ in database.execute(f"SELECT {columns} FROM candidates").fetchall():
        row = Row(*columns_)
        database.execute(
            "UPDATE candidates SET checksum = ? WHERE number = ?", (row.checksum, row.number)
        )
    for name, text in database.execute("SELECT name, value FROM settings").fetchall():
        checksum = checksum_of(name, text)
        database.execute("UPDATE settings SET checksum = ? WHERE name = ?", (checksum, name))
    for entry in database.execute("SELECT drawn, told, arrays, counters FROM state").fetchall():
        with contextlib.suppress(TypeError):
            database.execute("UPDATE state SET checksum = ?", (state_checksum(*entry),))
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    for table, column in {"objectives": "answers", "notes": "text"}.items():
        query = f"SELECT number, {column} FROM {table}"
        for number, kept in database.execute(query).fetchall() if table in tables else ():
            checksum = checksum_of(number, kept)
            database.execute(
                f"UPDATE {table} SET checksum = ? WHERE number = ?", (checksum, number)
            )


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM settings WHERE name = 'objectives'", "weights of other objectives"),
        (
            "UPDATE settings SET value = replace(value, 'false', '[1]') WHERE name = 'objectives'",
            "keyed is [1], expected True or False",
        ),
        ("UPDATE state SET counters = json_remove(counters, '$.restarts')", "restarts are missing"),
    ],
)
def test_edits_that_leave_something_out(
    study: Path, small: dict[str, bytes], statement: str, said: str
) -> None:
    """Their checksums are right."""
    write(study, small["several"])
    with contextlib.closing(sqlite3.connect(study, isolation_level=None)) as database:
        database.execute(statement)
        mend(database)
    with refused(StudyError, str(study), "is damaged", said):
        resumed(study, "several")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM candidates WHERE number = 12", "1 of 51 candidates are missing"),
        ("DELETE FROM candidates WHERE number > 40", "of 51 candidates are missing"),
        ("UPDATE candidates SET value = value + 1 WHERE number = 3", "candidate 3 has been chang"),
        ("UPDATE candidates SET error = 'x' WHERE number = 3", "candidate 3 has been changed"),
        ("UPDATE settings SET value = '7' WHERE name = 'seed'", "setting 'seed' has been changed"),
        ("UPDATE state SET drawn = drawn - 1", "its state has been changed"),
        ("INSERT INTO restarts VALUES (3, 10)", "its restarts have been changed"),
    ],
)
def test_edits_are_named(study: Path, statement: str, said: str) -> None:
    ao.maximize(value, SPACE, 45, study=study, cache=False, **QUICK)
    assert check(study) == []
    with contextlib.closing(sqlite3.connect(study, isolation_level=None)) as database:
        (count,) = database.execute("SELECT count(*) FROM candidates").fetchone()
        database.execute(statement)
    said = said.replace("51", str(count))
    with refused(StudyError, str(study), "is damaged", said):
        ao.resume(study, value, 60)
    assert any(said in problem for problem in check(study)), check(study)
    if "missing" in said:  # a shorter history would look like another run
        with refused(StudyError, str(study), "is damaged", said):
            ao.load(study)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW more AS WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k FROM n) "
        "SELECT k FROM n",
        "CREATE TRIGGER often AFTER UPDATE ON candidates BEGIN DELETE FROM restarts; END",
    ],
)
def test_a_study_with_more_than_tables_is_refused(study: Path, statement: str) -> None:
    """Reading a view could take for ever, and a trigger is a program."""
    ao.maximize(value, SPACE, 10, study=study, **QUICK)
    with contextlib.closing(sqlite3.connect(study, isolation_level=None)) as database:
        database.execute(statement)
    for use in (lambda: load(study), lambda: ao.resume(study, value, 12), lambda: check(study)):
        with refused(StudyError, str(study), "expected tables only"):
            use()


def test_reading_that_takes_far_too_long_ends(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ao.maximize(value, SPACE, 45, study=study, **QUICK)
    monkeypatch.setattr(sqlite, "_STEPS", 200)
    monkeypatch.setattr(sqlite, "_STEPS_A_BYTE", 0)
    monkeypatch.setattr(sqlite, "_STEPS_AT_A_TIME", 100)
    with refused(StudyError, str(study), "far longer than its size explains"):
        load(study)


def test_every_problem_is_listed(study: Path) -> None:
    ao.maximize(value, SPACE, 45, study=study, **QUICK)
    with contextlib.closing(sqlite3.connect(study, isolation_level=None)) as database:
        database.execute("UPDATE candidates SET value = 0.125 WHERE number IN (3, 5)")
        database.execute("DELETE FROM candidates WHERE number = 7")
        database.execute("UPDATE state SET counters = '{}'")
    problems = check(study)
    assert len(problems) == 4
    assert [p for p in problems if p.startswith("candidate ")] == [
        f"candidate {k} has been changed since it was written" for k in (3, 5)
    ]
    assert "candidates are missing" in problems[2]
    assert "state has been changed" in problems[3]


# --- files that come and go -----------------------------------------------------------------------


@posix
@pytest.mark.parametrize("link", [False, True])
def test_a_study_that_is_deleted_is_put_back(
    study: Path, link: bool, caplog: pytest.LogCaptureFixture
) -> None:
    if link:
        (study.parent / "real.db").touch()
        study.symlink_to(study.parent / "real.db")

    def f(x: np.ndarray) -> float:
        calls.append(1)
        if len(calls) in (25, 59):
            study.resolve().unlink()
        if len(calls) == 27:
            time.sleep(1.1)  # what is written is synchronised, and looked at, once a second
        if len(calls) == 40:
            assert len(load(study)) > 30
        return value(x)

    calls: list[int] = []
    result = ao.maximize(f, SPACE, 60, study=study, **QUICK)
    assert "was deleted while it was written: it is put back" in caplog.text
    whole = ao.maximize(value, SPACE, 80, **QUICK).history
    assert_same(load(study), result.history)
    assert check(study) == []
    assert_same(ao.resume(study, value, 80).history, whole)
    assert study.is_symlink() == link
    assert {file.name for file in study.parent.iterdir()} <= {"study.db", "real.db"}


@posix
def test_a_study_that_is_replaced_by_another_file(study: Path) -> None:
    def f(x: np.ndarray) -> float:
        calls.append(1)
        if len(calls) == 25:
            study.unlink()
            study.write_text("something else", encoding="utf-8")
        return value(x)

    calls: list[int] = []
    with refused(StudyError, str(study), "was replaced by another file"):
        ao.maximize(f, SPACE, 60, study=study, **QUICK)
    assert study.read_text(encoding="utf-8") == "something else"


@posix
def test_a_link_does_not_get_round_the_only_writer(study: Path) -> None:
    link = study.parent / "link.db"
    link.symlink_to(study)
    seen = []

    def f(x: np.ndarray) -> float:
        if not seen:
            for other in (link, study):
                with refused(StudyError, "is being written by another process"):
                    ao.maximize(value, SPACE, 20, study=other, **QUICK)
                seen.append(len(load(other)))
        return value(x)

    result = ao.maximize(f, SPACE, 20, study=link, **QUICK)
    assert seen == [0, 0]
    assert result.study == link
    assert_same(load(study), load(link))
    assert_same(ao.resume(link, value, 40).history, ao.maximize(value, SPACE, 40, **QUICK).history)


@posix
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for use in (
        lambda: ao.maximize(value, SPACE, 20, study=tmp_path / "pipe", **QUICK),
        lambda: ao.resume(tmp_path / "pipe", value),
        lambda: load(tmp_path / "pipe"),
        lambda: check(tmp_path / "pipe"),
    ):
        with refused(StudyError, "expected a regular file"):
            use()
    assert [file.name for file in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("where", [{}, {"workers": 1}])
def test_messages_that_are_no_text(
    study: Path, where: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The names of files are bytes, and not all of them are text."""
    options: dict[str, Any] = {"on_failure": "worst", **where, **QUICK}
    ao.maximize(no_such_file, SPACE, 15, study=study, **options)
    result = ao.maximize(no_such_file, SPACE, 30, study=study, **options)
    history = load(study)
    assert_same(history, ao.maximize(no_such_file, SPACE, 30, **options).history)
    messages = {history.errors[k] for k in np.flatnonzero(history.statuses == FAILED)
                if not history.cached[k]}  # fmt: skip
    assert all("caf\\udce9.dat" in message for message in messages)
    assert history.errors == result.history.errors
    assert write_csv(study, study.parent / "table.csv").error is None
    assert "caf\\udce9.dat" in (study.parent / "table.csv").read_text(encoding="utf-8")
    assert "caf\\udce9.dat" in caplog.text
    caplog.text.encode()


# --- states and disks -----------------------------------------------------------------------------


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
    with refused(StudyError, str(study), "its state has been changed since it was written"):
        ao.maximize(value, SPACE, 60, study=study, cache=False, **QUICK)
    assert len(load(study)) == 40  # the evaluations are all there


@posix
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_full_disk(study: Path, asynchronous: bool) -> None:
    """A limit on the size of files is the nearest to a full disk that needs no disk."""
    space = ao.Space.binary(64)
    resource = pytest.importorskip("resource")
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
            with refused(StudyError, str(study), "everything written before is safe"):
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


@posix
def test_the_disk_fills_up_while_the_study_is_begun(study: Path) -> None:
    resource = pytest.importorskip("resource")
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
        mend(database)
        database.commit()
    assert old is not None
    had = load(study)
    result = ao.maximize(value, SPACE, 40, study=study, **QUICK)
    assert "is proposed differently here" in caplog.text
    np.testing.assert_array_equal(result.history.codes[: len(had)], had.codes)
    assert result.evaluations == 40
