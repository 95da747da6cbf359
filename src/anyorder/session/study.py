"""The durable record of a run: one SQLite file, from which the run goes on bit for bit.

A candidate is written before it is sent out, an answer before it is told. The optimiser draws the
same candidates from the same state, so a run is continued by drawing again from the last state kept
and taking the answers that are there; a state is kept now and then, only to make that short.

    settings     what the run was begun with, as JSON
    candidates   in the order they were drawn:
                   number      of all the run's candidates
                   after       how many answers had been told when it was drawn
                   generation  whose policy it was drawn from
                   point       its codes, packed
                   place       of its answer among all answers, in the order they are told
                   status      how it ended, an index of failures.STATUSES; NULL: not yet
                   value       NULL where it failed
                   paid        1 where it was evaluated; 0: known already, or rejected
                   tries, seconds, error
    restarts     after how many answers the policy was started afresh
    state        the optimiser's state after so many candidates and answers, and the loop's counters

Nothing in it is code, and nothing in it is run. Without a path it all stays in memory.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from anyorder._version import __version__
from anyorder.errors import OK, StudyError
from anyorder.result import History
from anyorder.session.reading import (
    APPLICATION,
    VERSION,
    Packing,
    check_version,
    clear,
    is_study,
    read_history,
    read_settings,
    read_state,
)
from anyorder.space import Space

_SYNC_EVERY = 1.0  # seconds: what a power cut may cost
_MAY_DIFFER = ("engine", "budget")
_LARGEST_STATE = 900_000_000  # bytes: SQLite's limit is 1e9

_TABLES = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE candidates (
    number INTEGER PRIMARY KEY, after INTEGER NOT NULL, generation INTEGER NOT NULL,
    point BLOB NOT NULL, place INTEGER, status INTEGER, value REAL, paid INTEGER,
    tries INTEGER, seconds REAL, error TEXT);
CREATE INDEX known ON candidates (point) WHERE paid;
CREATE TABLE restarts (told INTEGER PRIMARY KEY);
CREATE TABLE state (
    id INTEGER PRIMARY KEY, drawn INTEGER NOT NULL, told INTEGER NOT NULL, arrays BLOB NOT NULL,
    counters TEXT NOT NULL);
"""

logger = logging.getLogger("anyorder")


class Row(NamedTuple):
    """A candidate as it was recorded."""

    number: int
    after: int
    point: bytes
    place: int | None
    status: int | None
    value: float | None
    paid: int | None

    def answer(self) -> Answer:
        """Its answer, where it has one."""
        status = OK if self.status is None else self.status
        return Answer(status, np.nan if self.value is None else self.value, bool(self.paid))


class Answer(NamedTuple):
    """What became of a candidate."""

    status: int
    value: float  # NaN where it failed
    paid: bool
    tries: int = 1
    seconds: float = 0.0
    error: str | None = None


class Study:
    """A study that is being written. One process writes, any number read.

    Parameters
    ----------
    path
        A file, made if there is none; None for memory.
    space
        That of its points.
    settings
        What the run is begun with, JSON-able. A study that exists must have been begun with the
        same, but for those of `_MAY_DIFFER`.
    seed_given
        Whether the seed was asked for, and so must be the same as well.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        space: Space,
        settings: Mapping[str, Any],
        seed_given: bool = True,
    ) -> None:
        self.space, self.packing = space, Packing(space)
        self.path = None if path is None else Path(path).absolute()
        self._owner: sqlite3.Connection | None = None
        self._synced = time.monotonic()
        self.fresh = True
        if self.path is None:
            self._database = sqlite3.connect(":memory:", isolation_level=None)
        else:
            if not self.path.parent.is_dir():
                raise StudyError(f"study {self.path}: there is no such folder")
            is_study(self.path)  # refuse before anything is written beside it
            self._owner = _claim(self.path)
            try:
                with clear(self.path):
                    self._database = _connect(self.path)
                    self.fresh = _is_empty(self._database)
            except BaseException:
                self._release()
                raise
        try:
            with clear(self.path):
                self._begin(settings, seed_given)
        except BaseException:
            self.close()
            raise

    def _begin(self, settings: Mapping[str, Any], seed_given: bool) -> None:
        database = self._database
        if self.path is not None:
            database.execute("PRAGMA journal_mode=WAL")
        settings = json.loads(json.dumps(dict(settings)))  # as they will be read
        database.execute("BEGIN IMMEDIATE")
        if self.fresh:
            for statement in _TABLES.split(";"):
                database.execute(statement)
            database.execute(f"PRAGMA application_id={APPLICATION}")
            database.execute(f"PRAGMA user_version={VERSION}")
            self.settings = {"library": __version__, **settings}
        else:
            self.settings = read_settings(database)
            self._compare(settings, seed_given)
        rows = [(name, json.dumps(value)) for name, value in self.settings.items()]
        database.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)
        database.execute("COMMIT")

    def _compare(self, settings: Mapping[str, Any], seed_given: bool) -> None:
        for name, value in settings.items():
            had = self.settings.get(name)
            if value == had or name in _MAY_DIFFER or (name == "seed" and not seed_given):
                continue
            if isinstance(had, dict) and isinstance(value, dict):  # only what differs
                keys = [key for key in {**had, **value} if had.get(key) != value.get(key)]
                had, value = ({key: side.get(key) for key in keys} for side in (had, value))
            raise ValueError(
                f"study {self.path} was begun with {name} {_short(had)}, this call has "
                f"{_short(value)}: give the same, or another file"
            )
        self.settings["budget"] = max(settings["budget"], self.settings["budget"])

    # --- writing --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction: on the disk, or at least in the system's hands, when it ends."""
        with clear(self.path):
            due = self.path is not None and time.monotonic() - self._synced > _SYNC_EVERY
            if due:
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

    def add(self, first: int, after: int, generation: int, points: list[bytes]) -> None:
        """Record candidates that are about to be sent out; within `writing`."""
        self._database.executemany(
            "INSERT INTO candidates (number, after, generation, point) VALUES (?, ?, ?, ?)",
            [(first + k, after, generation, point) for k, point in enumerate(points)],
        )

    def answer(self, number: int, place: int, answer: Answer) -> None:
        """Record an answer that is about to be told; within `writing`."""
        value = None if np.isnan(answer.value) else answer.value
        self._database.execute(
            "UPDATE candidates SET place=?, status=?, value=?, paid=?, tries=?, seconds=?, error=? "
            "WHERE number=?",
            (place, answer.status, value, answer.paid, answer.tries, answer.seconds, answer.error,
             number),
        )  # fmt: skip

    def add_restart(self, told: int) -> None:
        """Record that the policy was started afresh; again does no harm."""
        with self.writing():
            self._database.execute("INSERT OR IGNORE INTO restarts VALUES (?)", (told,))

    def forget_restarts(self, told: int) -> None:
        """Drop the restarts after so many answers: they are about to happen again."""
        with self.writing():
            self._database.execute("DELETE FROM restarts WHERE told > ?", (told,))

    def keep_state(
        self,
        state: Mapping[str, npt.NDArray[Any]],
        drawn: int,
        told: int,
        counters: Mapping[str, int],
    ) -> None:
        """Keep the optimiser's state and the loop's counters, in the place of the last."""
        buffer = io.BytesIO()
        np.savez(buffer, **state)  # type: ignore[arg-type]
        if buffer.tell() > _LARGEST_STATE:
            logger.warning("the policy is too large to be kept in the study: resuming will replay")
            return
        with self.writing():
            self._database.execute(
                "INSERT OR REPLACE INTO state VALUES (0, ?, ?, ?, ?)",
                (drawn, told, buffer.getbuffer(), json.dumps(dict(counters))),
            )

    # --- reading --------------------------------------------------------------------------------

    def _read(self, query: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        with clear(self.path):
            return self._database.execute(query, parameters).fetchall()

    def find(self, point: bytes, before: int) -> tuple[int, float] | None:
        """Status and value of a point when a candidate before that number first evaluated it."""
        rows = self._read(  # the first: without a cache there may be thousands
            "SELECT status, value FROM candidates WHERE point=? AND paid AND number<? "
            "ORDER BY number LIMIT 1",
            (point, before),
        )
        if not rows:
            return None
        status, value = rows[0]
        return status, np.nan if value is None else value

    def mean(self, point: bytes, place: int) -> float:
        """The mean of a point's values that are told up to a place."""
        query = "SELECT avg(value) FROM candidates WHERE point=? AND paid AND place<=?"
        ((mean,),) = self._read(query, (point, place))
        return np.nan if mean is None else float(mean)  # None: infinities of both signs

    def best_mean(self, sign: float) -> tuple[bytes, float] | None:
        """The point whose values have the best mean, and that mean."""
        order = "DESC" if sign > 0 else "ASC"
        query = "SELECT point, avg(value) AS mean FROM candidates WHERE paid AND value IS NOT NULL "
        rows = self._read(
            f"{query} GROUP BY point HAVING mean IS NOT NULL ORDER BY mean {order} LIMIT 1"
        )
        return rows[0] if rows else None

    def recorded(self, first: int, told: int) -> list[Row]:
        """The candidates from number `first` on, and older ones answered from place `told` on."""
        rows = self._read(
            "SELECT number, after, point, place, status, value, paid FROM candidates "
            "WHERE number >= ? OR place >= ? OR place IS NULL ORDER BY number",
            (first, told),
        )
        return [Row(*row) for row in rows]

    def counts(self) -> tuple[int, int, int]:
        """How many evaluations were paid for, how many of those failed, how many points known."""
        ((paid, failed, distinct),) = self._read(
            "SELECT count(*), coalesce(sum(status != 0), 0), count(DISTINCT point) "
            "FROM candidates WHERE paid"
        )
        return paid, failed, distinct

    def counters(self) -> dict[str, int]:
        """The loop's counters as they were with the last state kept; empty before any."""
        with clear(self.path):
            rows = self._read("SELECT counters FROM state")
            return dict(json.loads(rows[0][0])) if rows else {}

    def state(self) -> tuple[dict[str, npt.NDArray[Any]], int, int] | None:
        """The last state kept, after how many candidates and how many answers."""
        with clear(self.path):
            return read_state(self._database, self.path)

    def history(self, restarts: tuple[int, ...]) -> History:
        """All answers so far."""
        with clear(self.path):
            return read_history(self._database, self.space, self.settings["direction"], restarts)

    def close(self) -> None:
        """Let others have it."""
        with contextlib.suppress(sqlite3.Error):
            self._database.close()
        self._release()

    def _release(self) -> None:
        if self._owner is None or self.path is None:
            return
        _owner_file(self.path).unlink(missing_ok=True)  # while it is ours
        self._owner.close()
        self._owner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


# --- the file -----------------------------------------------------------------------------------


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
    """Whether nothing has been written: whoever began it was stopped before the first line."""
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not application and not tables


def _owner_file(path: Path) -> Path:
    return path.with_name(path.name + "-owner")


def _claim(path: Path) -> sqlite3.Connection:
    """Be the one who writes: a lock that the system takes back when this process ends."""
    file = _owner_file(path)
    while True:
        try:
            file.touch()
            before = file.stat().st_ino
            owner = sqlite3.connect(file, isolation_level=None, timeout=0.0)
        except (OSError, sqlite3.Error) as error:
            raise StudyError(f"study {path}: its folder cannot be written: {error}") from error
        try:
            owner.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            owner.close()
            if "locked" in str(error):
                raise StudyError(f"study {path} is being written by another process") from None
            raise StudyError(f"study {path}: {error}") from error
        # Its last owner may have taken the file away between the two.
        with contextlib.suppress(FileNotFoundError):
            if file.stat().st_ino == before:
                return owner
        owner.close()
