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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from anyorder._sqlite import Database
from anyorder._version import __version__
from anyorder.archive import Archive
from anyorder.candidate import Candidate
from anyorder.errors import StudyError, StudyMismatch
from anyorder.session.ownership import claim, release
from anyorder.session.reading import (
    LATER_TABLES,
    STUDY,
    VERSION,
    Kept,
    Row,
    check_complete,
    checksum_of,
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
        if not self._file.parent.is_dir():
            raise StudyError(f"study {self.path}: there is no such folder")
        STUDY.exists(self._file)  # refuse other files before anything is written beside them
        self._owner: sqlite3.Connection | None = claim(self._file)
        try:
            self._store = Database(self._file, STUDY, sync_every=_SYNC_EVERY)
            self.resumed = not self._store.fresh
            with translated(self.path):
                self._start(settings, seed_given)
                self._inode = self._file.stat().st_ino
        except BaseException:
            self.close()
            raise

    def _start(self, settings: Mapping[str, Any], seed_given: bool) -> None:
        settings = json.loads(json.dumps(dict(settings)))  # as they will be read
        with self._store.transaction() as database:
            if self.resumed and self._has_begun():
                self.settings: dict[str, Any] = read_settings(database)
                self._compare(settings, seed_given)
                check_complete(database)
                if STUDY.check(database, self.path) < VERSION:
                    self._upgrade()
            else:  # its first process may have been stopped before this
                self.resumed, self.settings = False, dict(settings)
            database.execute(f"PRAGMA user_version={VERSION}")
            self.settings["library"] = __version__
            rows = [(name, json.dumps(value)) for name, value in self.settings.items()]
            database.executemany(
                "INSERT OR REPLACE INTO settings VALUES (?, ?, ?)",
                [(*row, checksum_of(*row)) for row in rows],
            )

    @property
    def _database(self) -> sqlite3.Connection:
        return self._store.connection

    def _has_begun(self) -> bool:
        (count,) = self._database.execute(
            "SELECT (SELECT count(*) FROM settings) + (SELECT count(*) FROM candidates)"
        ).fetchone()
        return bool(count)

    def _upgrade(self) -> None:
        """Make a study of format 1 one of this format."""
        database = self._database
        rows = list(read_rows(database, Space.from_dict(self.settings["space"])))
        _execute_all(database, _FROM_1 + LATER_TABLES)
        database.executemany(
            "UPDATE candidates SET checksum=? WHERE number=?",
            [(row.checksum, row.number) for row in rows],
        )

    def _compare(self, settings: Mapping[str, Any], seed_given: bool) -> None:
        for name, value in settings.items():
            had = self.settings.get(name)
            if value == had or name in _MAY_DIFFER or (name == "seed" and not seed_given):
                continue
            if name in ("start", "data", "constraint"):  # of which there is nothing to show
                what, some = ("a constraint", "one") if name == "constraint" else (name, "some")
                words = f"without {what}, and this call has {some}"
                if had:
                    words = f"with {what}, and this call has none"
                if had and value:
                    words = f"with other {name} than this call has"
                raise StudyMismatch(
                    f"study {self.path} was started {words}: pass the same, or another file"
                )
            if isinstance(had, dict) and isinstance(value, dict):  # only what differs
                keys = [key for key in {**had, **value} if had.get(key) != value.get(key)]
                # a schedule laid out for a budget keeps it when the run gets a larger one
                keys = [key for key in keys if key not in _MAY_DIFFER]
                if name == "config":  # a setting that is newer than the study
                    keys = [key for key in keys if key in had]
                if not keys:
                    continue
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
        with STUDY.errors(self.path):
            if self._store.sync_due:
                self._put_back()
        with self._store.transaction():
            yield

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
        self._store.close()
        self._store.connection = again
        again.execute("PRAGMA journal_mode=WAL")
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
        known = len(archive)
        with translated(self.path):
            read_answers(self._database, archive, told)
        with self.writing():
            self._database.execute("DELETE FROM restarts WHERE told > ?", (known + told,))

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
        with contextlib.suppress(AttributeError):  # it could not be opened
            self._store.close()
        if self._owner is not None:
            release(self._file, self._owner)
            self._owner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


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


def _execute_all(database: sqlite3.Connection, script: str) -> None:
    for statement in script.split(";"):  # executescript would commit
        database.execute(statement)
