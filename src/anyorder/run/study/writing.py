"""The durable form of a run: one SQLite file, from which the run is resumed bit for bit.

A candidate is written before it is sent out, and an answer before the strategy learns it. From the
same state and the same answers a strategy proposes the same candidates. A run is therefore resumed
by proposing again from the last stored state, and taking the answers that are in the file. States
are stored now and then only to make this short.

    settings     the settings with which the run was started, as JSON
    candidates   in the order in which they were proposed:
                   number      of the candidate in the run
                   after       the number of answers that the strategy had when it was proposed
                   generation  of the strategy when it was proposed
                   point       its codes, packed
                   place       of its answer among all answers, in the order they are learned
                   status      how it ended, an index of errors.STATUSES; NULL if it has not
                   value       NULL if it failed
                   paid        1 if it was evaluated; 0 if it was known already, or rejected
                   tries, seconds, error
                   checksum    of all these columns
    objectives   with several objectives, all values of a candidate; its `value` is the first
    restarts     the number of answers before each restart of the strategy
    state        the state of the strategy after some candidates and answers, and the counters of
                 the session
    notes        what evaluations reported besides their values, as JSON by number; a study without
                 notes has no such table
    times        when the evaluation of a candidate was sent out and when its answer came, in
                 seconds since 1970; this is for people, and the run does not depend on it

Settings and the state have checksums as well, so that a changed byte is noticed. Nothing in the
file is code, and nothing in it is executed.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import math
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from anyorder._internal.sqlite import Database, checksum_of
from anyorder._version import __version__
from anyorder.archive import Archive
from anyorder.archive.candidate import Candidate
from anyorder.archive.objectives import Objectives, Values
from anyorder.errors import StudyError, StudyMismatch
from anyorder.run.study.ownership import claim, refuse_other_names, release
from anyorder.run.study.reading import (
    NOTES,
    OBJECTIVES,
    STUDY,
    TIMES,
    Kept,
    Row,
    check_complete,
    read_answers,
    read_notes,
    read_rows,
    read_settings,
    read_state,
    read_vectors,
    state_checksum,
    translate_errors,
)
from anyorder.space import Space

_SYNC_EVERY = 1.0  # seconds of work that a power failure may cost
_MAY_DIFFER = ("engine", "stop_collapsed", "budget", "library")
_LARGEST_STATE = 900_000_000  # bytes: SQLite's limit is 1e9

logger = logging.getLogger("anyorder")


class Study:
    """A study that is being written. One process writes; any number may read.

    Parameters
    ----------
    path
        The file, which is created if it does not exist.
    settings
        The settings with which the run is started, as JSON can hold them. An existing study must
        have been started with the same settings, except for those of `_MAY_DIFFER`.
    seed_given
        Whether the user gave the seed, which must then be the same as well.

    Attributes
    ----------
    resumed
        Whether the file already held a run.
    settings
        The settings of the run; for a resumed run, those with which it was started.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: Mapping[str, Any],
        seed_given: bool = True,
    ) -> None:
        # Links are resolved: a study is written by one process, whatever name it is given.
        self.path = Path(path).absolute()
        self._file = self.path.resolve()
        if not self._file.parent.is_dir():
            raise StudyError(f"study {self.path}: there is no such folder")
        # check what the file is before anything is written beside it
        refuse_other_names(self.path, STUDY.exists(self._file))
        self._owner: sqlite3.Connection | None = claim(self._file)
        try:
            self._store = Database(self._file, STUDY, sync_every=_SYNC_EVERY)
            self.resumed = not self._store.fresh
            with translate_errors(self.path):
                self._start(settings, seed_given)
                self._inode, self._log_inode = self._inodes()
        except BaseException:
            self.close()
            raise

    def _start(self, settings: Mapping[str, Any], seed_given: bool) -> None:
        settings = json.loads(json.dumps(dict(settings)))  # in the form in which they will be read
        with self._store.transaction() as database:
            database.execute(TIMES)
            if settings.get("objectives") is not None:
                database.execute(OBJECTIVES)
            if self.resumed and self._has_begun():
                self.settings: dict[str, Any] = read_settings(database)
                self._compare(settings, seed_given)
                check_complete(database)
            else:  # its first process may have been stopped before this
                self.resumed, self.settings = False, dict(settings)
            self.settings["library"] = __version__
            rows = [(name, json.dumps(value)) for name, value in self.settings.items()]
            database.execute("DELETE FROM settings")
            database.executemany(
                "INSERT INTO settings VALUES (?, ?, ?)",
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

    def _compare(self, settings: Mapping[str, Any], seed_given: bool) -> None:
        self._compare_objectives(settings)
        for name, value in settings.items():
            had = self.settings.get(name)
            if value == had or name in _MAY_DIFFER or (name == "seed" and not seed_given):
                continue
            if name in ("start", "data", "constraint"):  # these have no short text
                what, some = ("a constraint", "one") if name == "constraint" else (name, "some")
                words = f"without {what}, and this call has {some}"
                if had:
                    words = f"with {what}, and this call has none"
                if had and value:
                    words = f"with other {name} than this call has"
                raise StudyMismatch(
                    f"study {self.path} was started {words}: pass the same, or another file"
                )
            if isinstance(had, dict) and isinstance(value, dict):  # show only what differs
                keys = [key for key in {**had, **value} if had.get(key) != value.get(key)]
                # a schedule that was laid out for a budget keeps it when the run gets a larger
                # budget
                keys = [key for key in keys if key not in _MAY_DIFFER]
                if name == "config":  # the setting is newer than the study
                    keys = [key for key in keys if key in had]
                if not keys:
                    continue
                had, value = ({key: side.get(key) for key in keys} for side in (had, value))
            raise StudyMismatch(
                f"study {self.path} was started with {name} {_short(had)}, and this call has "
                f"{_short(value)}: pass the same, or another file"
            )
        budgets = settings["budget"], self.settings["budget"]
        self.settings["budget"] = None if None in budgets else max(budgets)

    def _compare_objectives(self, settings: Mapping[str, Any]) -> None:
        """Raise unless the objectives are those of the study; their reference point may differ."""
        had = Objectives.from_json(self.settings.get("objectives"))
        given = Objectives.from_json(settings.get("objectives"))
        if (had and had.unnamed) != (given and given.unnamed):
            started, called = (
                "one objective" if one is None else f"{len(one)} objectives ({one})"
                for one in (had, given)
            )
            raise StudyMismatch(
                f"study {self.path} was started with {started}, and this call has {called}: "
                "pass the same, or another file"
            )
        if given is not None:
            self.settings["objectives"] = settings["objectives"]

    # --- writing --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Write in one transaction; at its end the data are on disk, or with the system."""
        with STUDY.errors(self.path):
            self._put_back()
        with self._store.transaction():
            yield

    def _inodes(self) -> tuple[int, int | None]:
        """Return the inodes of the file and of its write-ahead log; None if there is no log."""
        log = self._file.with_name(self._file.name + "-wal")
        with contextlib.suppress(FileNotFoundError):
            return self._file.stat().st_ino, log.stat().st_ino
        return self._file.stat().st_ino, None

    def _put_back(self) -> None:
        """Write the file again if it, or its write-ahead log, was deleted; we still have them open.

        Another process deletes the log if this one has lost its locks on the file, which happens
        when anything in this process opens and closes it, such as `shutil.copy`.
        """
        lost = "was deleted"
        with contextlib.suppress(FileNotFoundError):
            file, log = self._inodes()
            if file != self._inode:
                raise StudyError(
                    f"study {self.path} was replaced by another file while it was written"
                )
            if log == self._log_inode:
                return
            lost = "lost its write-ahead log (a file of this process was opened and closed on it)"
        logger.warning("study %s %s while it was written: it is put back", self.path, lost)
        # Write it beside, then move it: connections of one process to one file share a log.
        spare = self._file.with_name(self._file.name + "-new")
        spare.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(spare, isolation_level=None)) as copy:
            self._database.backup(copy)
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(self._file, spare)
        self._store.close()  # this removes a log of that name
        os.replace(spare, self._file)
        for suffix in ("-wal", "-shm"):
            self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
        again = sqlite3.connect(self._file, isolation_level=None, timeout=60.0)
        self._store.connection = again
        again.execute("PRAGMA journal_mode=WAL")
        again.execute("BEGIN IMMEDIATE")  # this creates the log
        again.execute("COMMIT")
        self._inode, self._log_inode = self._inodes()

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Record candidates that are about to be sent out; call it within `writing`."""
        rows = [_row(candidate) for candidate in candidates]
        self._database.executemany(
            "INSERT INTO candidates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(*row, row.checksum) for row in rows],
        )
        self._add_vectors(candidates)

    def _add_vectors(self, candidates: Iterable[Candidate]) -> None:
        """Record all values of answers with several objectives."""
        rows = [
            (c.number, np.array(c.values, "<f8").tobytes())
            for c in candidates
            if c.values is not None
        ]
        if rows:
            self._database.executemany(
                "INSERT OR REPLACE INTO objectives VALUES (?, ?, ?)",
                [(*row, checksum_of(*row)) for row in rows],
            )

    def answer(self, candidates: Sequence[Candidate]) -> None:
        """Record answers that are about to be learned; call it within `writing`."""
        rows = [_row(candidate) for candidate in candidates]
        self._database.executemany(
            "UPDATE candidates SET place=?, status=?, value=?, paid=?, tries=?, seconds=?, "
            "error=?, checksum=? WHERE number=?",
            [(*row[4:], row.checksum, row.number) for row in rows],
        )
        self._add_vectors(candidates)
        self._note_times(candidate for candidate in candidates if not candidate.known)
        noted = [(c.number, c.notes) for c in candidates if c.notes is not None]
        if noted:
            self._database.execute(NOTES)
            self._database.executemany(
                "INSERT OR REPLACE INTO notes VALUES (?, ?, ?)",
                [(*row, checksum_of(*row)) for row in noted],
            )

    def note_running(self, candidates: Iterable[Candidate]) -> None:
        """Record the times at which the evaluation of candidates began."""
        with self.writing():
            self._note_times(candidates)

    def _note_times(self, candidates: Iterable[Candidate]) -> None:
        self._database.executemany(
            "INSERT OR REPLACE INTO times VALUES (?, ?, ?)",
            [
                (c.number, c.started, None if math.isnan(c.ended) else c.ended)
                for c in candidates
                if not math.isnan(c.started)
            ],
        )

    def add_restarts(self, restarts: Sequence[int], first: int) -> None:
        """Record restarts, numbered from `first` on; recording one again has no effect."""
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
        """Store the state of the search and the session's counters, in place of the last ones."""
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
        """Return the last stored state."""
        with translate_errors(self.path):
            return read_state(self._database)

    def fill(self, archive: Archive, told: int) -> None:
        """Add the answers before a place to an archive, and delete later restarts."""
        known = len(archive)
        with translate_errors(self.path):
            read_answers(self._database, archive, told)
        with self.writing():
            self._database.execute("DELETE FROM restarts WHERE told > ?", (known + told,))

    def rows(self, space: Space, drawn: int, told: int) -> list[Row]:
        """Return the candidates from number `drawn` on, and the answers from place `told` on."""
        with translate_errors(self.path):
            where = "number >= ? OR place >= ? OR place IS NULL ORDER BY number"
            return list(read_rows(self._database, space, where, (drawn, told)))

    def vectors(self) -> dict[int, Values] | None:
        """Return all values of several objectives, by candidate's number."""
        objectives = Objectives.from_json(self.settings.get("objectives"))
        with translate_errors(self.path):
            return read_vectors(self._database, objectives)

    def notes(self) -> dict[int, str]:
        """Return the notes of candidates, as JSON by their numbers."""
        with translate_errors(self.path):
            return read_notes(self._database)

    def best_row(self, space: Space) -> Row | None:
        """Return the evaluation with the best value, which is to be measured again."""
        order = "DESC" if self.settings["direction"] == "maximize" else "ASC"
        where = f"status = 0 AND paid ORDER BY value {order}, number LIMIT 1"
        with translate_errors(self.path):
            return next(read_rows(self._database, space, where), None)

    def evaluations(self) -> tuple[int, int]:
        """Return the number of evaluations, and of those that failed."""
        with translate_errors(self.path):
            paid, failed = self._database.execute(
                "SELECT count(*), coalesce(sum(status != 0), 0) FROM candidates WHERE paid"
            ).fetchone()
        return int(paid), int(failed)

    # --- closing --------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file, so that another process may write it."""
        # errors here must not hide the error that ends the run
        with contextlib.suppress(Exception):
            self._put_back()
        with contextlib.suppress(AttributeError):  # the file could not be opened
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
