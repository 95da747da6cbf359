"""SQLite files: created, refused, written in transactions, read while they are written."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from anyorder._internal.sqlite import Database, Format, is_database, reading, storable
from anyorder.errors import StudyError

NOTES = Format("notebook", 0x6E6F7465, 3, "CREATE TABLE notes (text TEXT)", rescue="; a remedy")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


def write(database: Database, text: str) -> None:
    with database.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES (?)", (text,))


def test_created_written_and_read_while_open(path: Path) -> None:
    database = Database(path, NOTES)
    assert database.fresh
    write(database, "one")
    with reading(path, NOTES) as connection:
        assert connection.execute("SELECT * FROM notes").fetchall() == [("one",)]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM notes")
    database.close()
    database.close()
    again = Database(path, NOTES, existing=True)
    assert not again.fresh
    assert again.read("SELECT count(*) FROM notes") == [(1,)]
    assert again.damage() is None
    again.close()
    assert is_database(path)


def test_created_while_another_creates_it(path: Path) -> None:
    """For this lock SQLite itself does not wait."""
    locked = threading.Event()

    def create() -> None:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            locked.set()
            time.sleep(0.1)
            other.execute("COMMIT")

    thread = threading.Thread(target=create)
    thread.start()
    assert locked.wait(60)
    database = Database(path, NOTES)
    assert database.fresh
    database.close()
    thread.join()


def test_a_transaction_is_all_or_nothing(path: Path) -> None:
    database = Database(path, NOTES)

    def fail() -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES ('lost')")
            connection.execute("INSERT INTO no_such_table VALUES (1)")

    with pytest.raises(StudyError, match="no such table"):
        fail()
    assert database.read("SELECT * FROM notes") == []
    write(database, "kept")
    assert database.read("SELECT * FROM notes") == [("kept",)]
    database.close()


@pytest.mark.parametrize(("every", "modes"), [(0.0, [2, 2]), (1e9, [1, 1])])
def test_how_often_the_disk_is_waited_for(path: Path, every: float, modes: list[int]) -> None:
    """`synchronous` is 2 (FULL) where a transaction waits for the disk, else 1 (NORMAL)."""
    database = Database(path, NOTES, sync_every=every)
    found = []
    for _ in modes:
        with database.transaction() as connection:
            found += connection.execute("PRAGMA synchronous").fetchone()
    assert found == modes
    database.close()


def test_in_memory() -> None:
    database = Database(None, NOTES)
    write(database, "one")
    assert database.read("SELECT * FROM notes") == [("one",)]
    database.close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a database", "is not a notebook of anyorder; it was left unchanged"),
        (
            b"SQLite format 3\0" + b"x" * 200,
            "is not a notebook of anyorder; it was left unchanged",
        ),
    ],
)
def test_other_files_are_refused(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    for opened in (Database, lambda *rest: reading(*rest).__enter__()):
        with pytest.raises(StudyError, match=message):
            opened(path, NOTES)
        assert path.read_bytes() == content


def test_a_file_whose_tables_are_not_there_yet_is_empty(path: Path) -> None:
    """As a process leaves it that is killed at that moment, or has not come further."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    with pytest.raises(StudyError, match=f"notebook {re.escape(str(path))} is empty: it has just"):
        reading(path, NOTES).__enter__()
    database = Database(path, NOTES)
    assert database.fresh
    database.close()


def test_other_kinds_and_versions_are_refused(path: Path) -> None:
    Database(path, NOTES).close()
    newer = Format("notebook", NOTES.application, 4, NOTES.tables)
    with pytest.raises(StudyError, match=r"has format 3; this is anyorder .* reads format 4"):
        Database(path, newer)
    other = Format("study", 1, 3, NOTES.tables)
    with pytest.raises(StudyError, match="is not a study of anyorder"), reading(path, other):
        pass


def test_missing_files_and_folders(path: Path) -> None:
    with pytest.raises(StudyError, match="there is no notebook"):
        Database(path, NOTES, existing=True)
    with pytest.raises(StudyError, match="there is no notebook"), reading(path, NOTES):
        pass
    with pytest.raises(StudyError, match="there is no such folder"):
        Database(path / "no" / "notes.db", NOTES)
    assert not path.exists()


def test_any_text_can_be_stored(path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.dat")
    assert storable(name) == r"caf\udce9.dat"
    assert storable("café 🎲 \\ \x00") == "café 🎲 \\ \x00"
    database = Database(path, NOTES)
    write(database, storable(name))
    assert database.read("SELECT * FROM notes") == [(r"caf\udce9.dat",)]
    database.close()
