"""The durable form of a run: one SQLite file, from which the run continues bit for bit.

A candidate is written before it is sent out, an answer before the strategy learns it. A strategy
proposes the same candidates from the same state and answers, so a run is continued by proposing
again from the last state kept and taking the answers that are there; a state is kept now and then,
only to make that short.

    settings     what the run was started with, as JSON
    candidates   in the order in which they were proposed:
                   number      of all the run's candidates
                   after       how many answers the strategy had when it was proposed
                   generation  the strategy's, when it was proposed
                   point       its codes, packed
                   place       of its answer among all answers, in the order they are learned
                   status      how it ended, an index of errors.STATUSES; NULL: not yet
                   value       NULL where it failed
                   paid        1 where it was evaluated; 0: known already, or rejected
                   tries, seconds, error
                   checksum    of all that
    restarts     after how many answers the strategy was restarted, each time
    state        the strategy's state after so many candidates and answers, and the session's
                 counters

Settings and the state have checksums as well, so that a changed byte is noticed. Nothing in it is
code, and nothing in it is run.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import math
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from anyorder._version import __version__
from anyorder.archive import Archive
from anyorder.candidate import Candidate
from anyorder.errors import StudyError, StudyMismatch
from anyorder.session.ownership import claim, owner_file
from anyorder.session.reading import (
    APPLICATION,
    VERSION,
    Kept,
    Row,
    check_complete,
    check_version,
    checksum_of,
    is_study,
    read_answers,
    read_rows,
    read_settings,
    read_state,
    state_checksum,
    translated,
)
from anyorder.space import Space

_SYNC_EVERY = 1.0  # seconds: what a power failure may cost
_MAY_DIFFER = ("engine", "budget", "library")
_LARGEST_STATE = 900_000_000  # bytes: SQLite's limit is 1e9

_TABLES = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER)
    WITHOUT ROWID;
CREATE TABLE candidates (
    number INTEGER PRIMARY KEY, after INTEGER NOT NULL, generation INTEGER NOT NULL,
    point BLOB NOT NULL, place INTEGER, status INTEGER, value REAL, paid INTEGER,
    tries INTEGER, seconds REAL, error TEXT, checksum INTEGER);
"""
_LATER_TABLES = """
CREATE TABLE restarts (number INTEGER PRIMARY KEY, told INTEGER NOT NULL);
CREATE TABLE state (
    id INTEGER PRIMARY KEY, drawn INTEGER NOT NULL, told INTEGER NOT NULL, arrays BLOB NOT NULL,
    counters TEXT NOT NULL, checksum INTEGER NOT NULL);
"""
# Format 1 had no checksums, an index that is no longer used, and another kind of state; replaying
# the run finds its restarts again.
_FROM_1 = """
ALTER TABLE settings ADD COLUMN checksum INTEGER;
ALTER TABLE candidates ADD COLUMN checksum INTEGER;
DROP INDEX IF EXISTS known;
DROP TABLE restarts;
DROP TABLE state;
"""

logger = logging.getLogger("anyorder")


class Study:
    """A study that is being written. One process writes, any number read.

    Parameters
    ----------
    path
        A file, created if there is none.
    settings
        What the run is started with, JSON-able. A study that exists must have been started with
        the same, except for those of `_MAY_DIFFER`.
    seed_given
        Whether the seed was asked for, and so must be the same as well.

    Attributes
    ----------
    resumed
        Whether the file held a run already.
    settings
        Those of the run; where it is resumed, as it was started.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: Mapping[str, Any],
        seed_given: bool = True,
    ) -> None:
        # Links are resolved: a study is written by one process, whatever it is called.
        self.path = Path(path).absolute()
        self._file = self.path.resolve()
        self._synced = time.monotonic()
        if not self._file.parent.is_dir():
            raise StudyError(f"study {self.path}: there is no such folder")
        is_study(self._file)  # refuse before anything is written beside it
        self._owner: sqlite3.Connection | None = claim(self._file)
        try:
            with translated(self.path):
                self._database = _connect(self._file)
                self.resumed = not _is_empty(self._database)
                self._start(settings, seed_given)
                self._inode = self._file.stat().st_ino
        except BaseException:
            self.close()
            raise

    def _start(self, settings: Mapping[str, Any], seed_given: bool) -> None:
        database = self._database
        database.execute("PRAGMA journal_mode=WAL")
        settings = json.loads(json.dumps(dict(settings)))  # as they will be read
        database.execute("BEGIN IMMEDIATE")
        if not self.resumed:
            _execute_all(database, _TABLES + _LATER_TABLES)
            database.execute(f"PRAGMA application_id={APPLICATION}")
            self.settings: dict[str, Any] = dict(settings)
        else:
            self.settings = read_settings(database)
            self._compare(settings, seed_given)
            check_complete(database)
            if check_version(database, self.path) == 1:
                self._upgrade()
        database.execute(f"PRAGMA user_version={VERSION}")
        self.settings["library"] = __version__
        rows = [(name, json.dumps(value)) for name, value in self.settings.items()]
        database.executemany(
            "INSERT OR REPLACE INTO settings VALUES (?, ?, ?)",
            [(*row, checksum_of(*row)) for row in rows],
        )
        database.execute("COMMIT")

    def _upgrade(self) -> None:
        """Make a study of format 1 one of this format."""
        database = self._database
        rows = list(read_rows(database, Space.from_dict(self.settings["space"])))
        _execute_all(database, _FROM_1 + _LATER_TABLES)
        database.executemany(
            "UPDATE candidates SET checksum=? WHERE number=?",
            [(row.checksum, row.number) for row in rows],
        )

    def _compare(self, settings: Mapping[str, Any], seed_given: bool) -> None:
        for name, value in settings.items():
            had = self.settings.get(name)
            if value == had or name in _MAY_DIFFER or (name == "seed" and not seed_given):
                continue
            if isinstance(had, dict) and isinstance(value, dict):  # only what differs
                keys = [key for key in {**had, **value} if had.get(key) != value.get(key)]
                had, value = ({key: side.get(key) for key in keys} for side in (had, value))
            raise StudyMismatch(
                f"study {self.path} was started with {name} {_short(had)}, and this call has "
                f"{_short(value)}: pass the same, or another file"
            )
        self.settings["budget"] = max(settings["budget"], self.settings["budget"])

    # --- writing --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction; when it ends it is on disk, or handed to the operating system."""
        with translated_sqlite(self.path):
            due = time.monotonic() - self._synced > _SYNC_EVERY
            if due:
                self._put_back()
                self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")
            if due:
                self._database.execute("PRAGMA synchronous=NORMAL")
                self._synced = time.monotonic()

    def _put_back(self) -> None:
        """Write the file again if it was deleted: we still have it open."""
        with contextlib.suppress(FileNotFoundError):
            if self._file.stat().st_ino == self._inode:
                return
            raise StudyError(f"study {self.path} was replaced by another file while it was written")
        logger.warning("study %s was deleted while it was written: it is put back", self.path)
        for suffix in ("-wal", "-shm"):
            self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
        again = sqlite3.connect(self._file, isolation_level=None, timeout=60.0)
        try:
            self._database.backup(again)
        except BaseException:
            again.close()
            raise
        self._database.close()
        self._database = again
        again.execute("PRAGMA journal_mode=WAL")
        again.execute("PRAGMA synchronous=NORMAL")
        self._inode = self._file.stat().st_ino

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Record candidates that are about to be sent out; within `writing`."""
        rows = [_row(candidate) for candidate in candidates]
        self._database.executemany(
            "INSERT INTO candidates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(*row, row.checksum) for row in rows],
        )

    def answer(self, candidates: Sequence[Candidate]) -> None:
        """Record answers that are about to be learned; within `writing`."""
        rows = [_row(candidate) for candidate in candidates]
        self._database.executemany(
            "UPDATE candidates SET place=?, status=?, value=?, paid=?, tries=?, seconds=?, "
            "error=?, checksum=? WHERE number=?",
            [(*row[4:], row.checksum, row.number) for row in rows],
        )

    def add_restarts(self, restarts: Sequence[int], first: int) -> None:
        """Record restarts, of which there were `first` before; doing it again does no harm."""
        with self.writing():
            self._database.executemany(
                "INSERT OR REPLACE INTO restarts VALUES (?, ?)", enumerate(restarts, first)
            )

    def keep_state(
        self,
        state: Mapping[str, npt.NDArray[Any]],
        drawn: int,
        told: int,
        counters: Mapping[str, Any],
    ) -> None:
        """Keep the state of the search and the session's counters, in place of the last."""
        buffer = io.BytesIO()
        np.savez(buffer, **state)  # type: ignore[arg-type]
        if buffer.tell() > _LARGEST_STATE:
            logger.warning("the state is too large to be kept in the study: resuming will replay")
            return
        arrays, text = buffer.getvalue(), json.dumps(dict(counters))
        self._put_back()
        with self.writing():
            self._database.execute(
                "INSERT OR REPLACE INTO state VALUES (0, ?, ?, ?, ?, ?)",
                (drawn, told, arrays, text, state_checksum(drawn, told, arrays, text)),
            )

    # --- reading --------------------------------------------------------------------------------

    def state(self) -> Kept | None:
        """The last state that was kept."""
        with translated(self.path):
            return read_state(self._database)

    def fill(self, archive: Archive, told: int) -> None:
        """Fill an archive with the answers before a place, and drop later restarts."""
        with translated(self.path):
            read_answers(self._database, archive, told)
        with self.writing():
            self._database.execute("DELETE FROM restarts WHERE told > ?", (told,))

    def rows(self, space: Space, drawn: int, told: int) -> list[Row]:
        """The candidates from number `drawn` on, and those answered from place `told` on."""
        with translated(self.path):
            where = "number >= ? OR place >= ? OR place IS NULL ORDER BY number"
            return list(read_rows(self._database, space, where, (drawn, told)))

    def evaluations(self) -> tuple[int, int]:
        """How many candidates were evaluated, and how many of those failed."""
        with translated(self.path):
            paid, failed = self._database.execute(
                "SELECT count(*), coalesce(sum(status != 0), 0) FROM candidates WHERE paid"
            ).fetchone()
        return int(paid), int(failed)

    # --- closing --------------------------------------------------------------------------------

    def close(self) -> None:
        """Let others have it."""
        with contextlib.suppress(Exception):  # an error that ends the run is not to be hidden
            self._put_back()
        with contextlib.suppress(sqlite3.Error, AttributeError):
            self._database.close()
        if self._owner is not None:
            owner_file(self._file).unlink(missing_ok=True)  # while it is ours
            self._owner.close()
            self._owner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@contextlib.contextmanager
def translated_sqlite(path: Path) -> Iterator[None]:
    """`translated`, for SQLite's errors alone: other errors are not the file's."""
    try:
        yield
    except sqlite3.Error:
        with translated(path):
            raise


def _row(candidate: Candidate) -> Row:
    value = None if math.isnan(candidate.value) else candidate.value + 0.0  # SQLite has no -0.0
    answered = candidate.status is not None
    return Row(
        candidate.number, candidate.after, candidate.generation, candidate.key, candidate.place,
        candidate.status, value, int(not candidate.known) if answered else None,
        candidate.tries if answered else None, candidate.seconds if answered else None,
        candidate.error,
    )  # fmt: skip


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


# --- the file -----------------------------------------------------------------------------------


def _execute_all(database: sqlite3.Connection, script: str) -> None:
    for statement in script.split(";"):  # executescript would commit
        database.execute(statement)


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None, timeout=60.0)
    try:
        database.execute("PRAGMA synchronous=NORMAL")
        if not _is_empty(database):
            check_version(database, path)
    except BaseException:
        database.close()
        raise
    return database


def _is_empty(database: sqlite3.Connection) -> bool:
    """Whether nothing has been written: its first process was stopped before the first line."""
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not application and not tables
