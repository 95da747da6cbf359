"""Reading a study: its settings, its history, its last state. The file is not changed.

`writing.py` writes the file, and describes its format.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import Check, choice, flag, integer, optional
from anyorder._internal.sqlite import Format, checksum_of, reading
from anyorder.archive import CLAIM, CONFIRM, Archive
from anyorder.archive.history import History
from anyorder.archive.knowledge import Known
from anyorder.archive.notes import from_json
from anyorder.archive.objectives import Objectives, Values
from anyorder.errors import DAMAGE, OK, ON_FAILURE, STATUSES, StudyError, StudyMismatch
from anyorder.space import Space
from anyorder.space.packing import Packing

VERSION = 2
# The times at which evaluations began and ended. They are no part of the run; older studies have
# none.
TIMES = (
    "CREATE TABLE IF NOT EXISTS times "
    "(number INTEGER PRIMARY KEY, started REAL NOT NULL, ended REAL)"
)
# What evaluations reported besides their values; only studies of runs with notes have this table.
NOTES = (
    "CREATE TABLE IF NOT EXISTS notes "
    "(number INTEGER PRIMARY KEY, text TEXT NOT NULL, checksum INTEGER NOT NULL)"
)
_TABLES = f"""
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER)
    WITHOUT ROWID;
CREATE TABLE candidates (
    number INTEGER PRIMARY KEY, after INTEGER NOT NULL, generation INTEGER NOT NULL,
    point BLOB NOT NULL, place INTEGER, status INTEGER, value REAL, paid INTEGER,
    tries INTEGER, seconds REAL, error TEXT, checksum INTEGER);
CREATE TABLE restarts (number INTEGER PRIMARY KEY, told INTEGER NOT NULL);
CREATE TABLE state (
    id INTEGER PRIMARY KEY, drawn INTEGER NOT NULL, told INTEGER NOT NULL, arrays BLOB NOT NULL,
    counters TEXT NOT NULL, checksum INTEGER NOT NULL);
{TIMES};
"""
# All values of several objectives, as float64; the candidate holds the first. Other studies lack
# it.
OBJECTIVES = (
    "CREATE TABLE IF NOT EXISTS objectives "
    "(number INTEGER PRIMARY KEY, answers BLOB NOT NULL, checksum INTEGER NOT NULL)"
)
STUDY = Format(
    name="study",
    application=0x616E796F,  # "anyo"
    version=VERSION,
    tables=_TABLES,
    rescue=": `anyorder show --output` saves what can still be read",
)

_CHUNK = 4_096  # rows that are read at a time
COLUMNS = "number, after, generation, point, place, status, value, paid, tries, seconds, error"


class Row(NamedTuple):
    """A candidate as it is stored; see `writing.py`."""

    number: int
    after: int
    generation: int
    point: bytes
    place: int | None
    status: int | None
    value: float | None
    paid: int | None
    tries: int | None
    seconds: float | None
    error: str | None

    @property
    def checksum(self) -> int:
        """The checksum of the row, which is stored with it to notice changed bytes."""
        return checksum_of(*self)


class Kept(NamedTuple):
    """A stored state of the search, with the numbers of candidates and answers before it."""

    arrays: dict[str, npt.NDArray[Any]]
    drawn: int
    told: int
    counters: dict[str, Any]


# --- the file -----------------------------------------------------------------------------------


@contextlib.contextmanager
def open_study(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """Open a study to read it, even while it is being written."""
    with reading(path, STUDY) as database, translate_errors(Path(path).absolute()):
        yield database


@contextlib.contextmanager
def translate_errors(path: Path | None) -> Iterator[None]:
    """Convert errors of SQLite, and errors caused by damaged contents, to a StudyError."""
    try:
        with STUDY.errors(path):
            yield
    except StudyMismatch:
        raise
    except (*DAMAGE, MemoryError) as error:
        raise damage_error(path, error) from error


def damage_error(path: Path | None, reason: object) -> StudyError:
    """Return the error for contents that anyorder cannot have written."""
    named = isinstance(reason, Exception) and not isinstance(reason, ValueError)
    text = f"{type(reason).__name__}: {reason}" if named else str(reason)
    return StudyError(
        f"study {path} is damaged: {text}; `anyorder show --output` saves what can still be read"
    )


# --- its contents -------------------------------------------------------------------------------


def read_settings(database: sqlite3.Connection) -> dict[str, Any]:
    """Return the settings with which the run was started, checked."""
    settings: dict[str, Any] = {}
    for name, value, checksum in database.execute("SELECT name, value, checksum FROM settings"):
        if checksum != checksum_of(name, value):
            raise ValueError(f"setting {name!r} has been changed since it was written")
        settings[name] = json.loads(value)
    if not settings:
        raise StudyError("the study is empty: its run was stopped before it began")
    # Early studies lack these settings of a strategy.
    engine, graph = settings.pop("engine", None), settings.pop("graph", None)
    if engine is not None:
        settings["config"] = {"engine": engine, "graph": graph, **settings["config"]}
    for name, check in _SETTINGS.items():
        check(name, settings[name])
    several = Objectives.from_json(settings.get("objectives"))
    confirm = optional(partial(integer, minimum=0))("confirm", settings.get("confirm"))
    budget = settings["budget"]
    if confirm and (several or settings["deterministic"] or budget is None or confirm >= budget):
        raise ValueError(f"confirm is {confirm}, which its other settings exclude")
    return settings


def _object(what: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise TypeError(f"{what} is {value!r}, expected an object")


def _text(what: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r}, expected text")


_SETTINGS: dict[str, Check] = {
    "direction": partial(choice, allowed=("maximize", "minimize")),
    "space": _object,
    "algorithm": _text,
    "config": _object,
    "seed": partial(integer, minimum=0, maximum=2**64 - 1),
    "asynchronous": flag,
    "on_failure": partial(choice, allowed=ON_FAILURE),
    "cache": flag,
    "deterministic": flag,
    "constraint": flag,
    "budget": optional(partial(integer, minimum=1)),
}


def read_rows(
    database: sqlite3.Connection, space: Space, where: str = "1", parameters: tuple[Any, ...] = ()
) -> Iterator[Row]:
    """Yield candidates, verified; raise a ValueError for one that was changed or is impossible."""
    for row, problem in check_rows(database, space, where, parameters):
        if problem is not None:
            raise ValueError(problem)
        yield row


def check_rows(
    database: sqlite3.Connection, space: Space, where: str = "1", parameters: tuple[Any, ...] = ()
) -> Iterator[tuple[Row, str | None]]:
    """Yield candidates, each with a description of what is wrong with it, or None."""
    packing = Packing(space)
    query = f"SELECT {COLUMNS}, checksum FROM candidates WHERE {where}"
    cursor = database.execute(query, parameters)
    while some := cursor.fetchmany(_CHUNK):
        rows = [Row(*columns) for *columns, _ in some]
        problems = [problem_of(row, entry[-1]) for row, entry in zip(rows, some, strict=True)]
        for k, row in enumerate(rows):
            if problems[k] is None and len(row.point) != packing.width:
                problems[k] = f"candidate {row.number} has a point of another space"
        sound = [k for k, problem in enumerate(problems) if problem is None]
        codes = packing.unpack(rows[k].point for k in sound)
        for k in np.flatnonzero((codes >= space.cardinalities).any(axis=1)).tolist():
            problems[sound[k]] = f"candidate {rows[sound[k]].number} is outside the space"
        yield from zip(rows, problems, strict=True)


def problem_of(row: Row, checksum: int | None) -> str | None:
    """Return what is wrong with a candidate, or None."""
    if checksum != row.checksum:
        return f"candidate {row.number} has been changed since it was written"
    for name, value, (kinds, nullable) in zip(row._fields, row, _KINDS, strict=True):
        if not (isinstance(value, kinds) or (nullable and value is None)):
            return f"candidate {row.number}: {name} is {value!r}"
    if row.after < 0 or (row.generation < 0 and row.generation not in (CONFIRM, CLAIM)):
        return f"candidate {row.number} was proposed at an impossible moment"
    if (row.status is None) != (row.place is None) or (row.status is None) != (row.paid is None):
        return f"candidate {row.number} is half answered"
    if row.status is not None and not 0 <= row.status < len(STATUSES):
        return f"candidate {row.number}: status is {row.status!r}"
    has_value = row.value is not None and not math.isnan(row.value)
    if has_value != (row.status == OK):
        return f"candidate {row.number}: its status and its value do not agree"
    return None


# the types of a row's columns, and whether NULL is allowed
_KINDS: tuple[tuple[Any, bool], ...] = (
    (int, False), (int, False), (int, False), (bytes, False), (int, True), (int, True),
    (int | float, True), (int, True), (int, True), (int | float, True), (str, True),
)  # fmt: skip


def read_answers(database: sqlite3.Connection, archive: Archive, before: int | None = None) -> None:
    """Add the answers of a study to an archive, in order; with `before` only up to a place."""
    first = len(archive)  # the number of answers that were known before the run
    vectors = read_vectors(database, archive.objectives)
    limit = "" if before is None else f" AND place < {int(before)}"
    notes = read_notes(database)
    for row in read_rows(database, archive.space, f"status IS NOT NULL{limit} ORDER BY place"):
        archive.add(
            row.point, math.nan if row.value is None else float(row.value), row.status or OK,
            known=not row.paid, generation=row.generation, seconds=row.seconds or 0.0,
            error=row.error, values=vector_of(row, vectors), notes=notes.get(row.number),
        )  # fmt: skip
    if before is not None and len(archive) - first != before:
        raise ValueError(f"{before + first - len(archive)} of {before} answers are missing")
    restarts = read_restarts(database)
    archive.restarts += [told for told in restarts if before is None or told <= first + before]


def read_vectors(
    database: sqlite3.Connection, objectives: Objectives | None, where: str = "1",
    parameters: tuple[Any, ...] = (),
) -> dict[int, Values] | None:  # fmt: skip
    """Return all values of several objectives by candidate's number; None with one objective.

    Raises a ValueError if they have been changed.
    """
    if objectives is None:
        return None
    found = {}
    for number, answers, checksum in database.execute(
        f"SELECT number, answers, checksum FROM objectives WHERE {where}", parameters
    ):
        if checksum != checksum_of(number, answers) or len(answers) != 8 * len(objectives):
            raise ValueError(f"the values of candidate {number} have been changed")
        found[number] = tuple(np.frombuffer(answers, "<f8").tolist())
    return found


def vector_of(row: Row, vectors: Mapping[int, Values] | None) -> Values | None:
    """Return all values of a candidate that has any; raise a ValueError if they are missing."""
    if vectors is None or row.status != OK:
        return None
    if row.number not in vectors:
        raise ValueError(f"the values of candidate {row.number} are missing")
    return vectors[row.number]


def read_notes(
    database: sqlite3.Connection, where: str = "1", parameters: tuple[Any, ...] = ()
) -> dict[int, str]:
    """Return the notes of candidates, verified, as JSON by their numbers."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'notes'").fetchone():
        return {}
    notes = {}
    query = f"SELECT number, text, checksum FROM notes WHERE {where}"
    for number, text, checksum in database.execute(query, parameters):
        if checksum != checksum_of(number, text):
            raise ValueError(f"the notes of candidate {number} have been changed")
        from_json(text)
        notes[number] = text
    return notes


def read_restarts(database: sqlite3.Connection) -> list[int]:
    """Return the numbers of answers after which the strategy restarted."""
    rows = database.execute("SELECT number, told FROM restarts ORDER BY number").fetchall()
    restarts = [told for _, told in rows]
    sound = all(isinstance(told, int) and told >= 0 for told in restarts)
    if not sound or [number for number, _ in rows] != list(range(len(rows))):
        raise ValueError("its restarts have been changed")
    return restarts


def check_complete(database: sqlite3.Connection) -> None:
    """Raise a ValueError if candidates have been removed."""
    count, last, answered, last_place = database.execute(
        "SELECT count(*), max(number), count(place), max(place) FROM candidates"
    ).fetchone()
    (drawn,) = database.execute("SELECT coalesce(max(drawn), 0) FROM state").fetchone()
    written = max(integer("drawn", drawn), 0 if last is None else integer("number", last) + 1)
    if count != written:
        raise ValueError(f"{written - count} of {written} candidates are missing")
    (asynchronous,) = database.execute(
        "SELECT value FROM settings WHERE name='asynchronous'"
    ).fetchone()
    if asynchronous == "true" and answered and last_place != answered - 1:
        raise ValueError(f"{last_place + 1 - answered} of {last_place + 1} answers are missing")


def read_state(database: sqlite3.Connection) -> Kept | None:
    """Return the last stored state; None if there is none."""
    row = database.execute("SELECT drawn, told, arrays, counters, checksum FROM state").fetchone()
    if row is None:
        return None
    drawn, told, arrays, counters, checksum = row
    if checksum != state_checksum(drawn, told, arrays, counters):
        raise ValueError("its state has been changed since it was written")
    (count,) = database.execute("SELECT count(*) FROM candidates").fetchone()
    if not 0 <= integer("told", told) <= integer("drawn", drawn) <= count:
        raise ValueError(f"its state is that after {drawn} candidates, and there are {count}")
    try:
        with np.load(io.BytesIO(arrays), allow_pickle=False) as loaded:
            return Kept(dict(loaded), drawn, told, dict(json.loads(counters)))
    except Exception as error:  # zipfile, zlib and NumPy raise exceptions of their own
        raise ValueError(f"its state cannot be read: {error}") from error


def state_checksum(drawn: int, told: int, arrays: Any, counters: str) -> int:
    """Return the checksum that is stored with a state to notice changed bytes."""
    if not isinstance(arrays, bytes | memoryview):
        raise TypeError(f"the state is {type(arrays).__name__}, expected bytes")
    return zlib.crc32(arrays, checksum_of(drawn, told, counters))


# --- the whole ----------------------------------------------------------------------------------


def load(path: str | os.PathLike[str]) -> History:
    """Return the history of a study."""
    with open_study(path) as database:
        settings = read_settings(database)
        check_complete(database)
        archive = Archive(
            Space.from_dict(settings["space"]), settings["direction"],
            deterministic=settings["deterministic"],
            objectives=Objectives.from_json(settings.get("objectives")),
        )  # fmt: skip
        known = Known.from_json(archive.space, settings)
        if known.data is not None:
            known.data.add_to(archive)
        read_answers(database, archive)
        return History(archive)


def check(path: str | os.PathLike[str]) -> list[str]:
    """Return everything that is wrong with a study; an empty list if it can be resumed."""
    problems: list[str] = []

    @contextlib.contextmanager
    def note_error() -> Iterator[None]:
        try:
            with translate_errors(file):
                yield
        except StudyError as error:
            problems.append(str(error.__cause__ or error))

    file = Path(path).absolute()
    with open_study(file) as database:
        with note_error():
            found = database.execute("PRAGMA integrity_check").fetchall()
            problems += [text for (text,) in found if text != "ok"]
        with note_error():
            settings = read_settings(database)
            space = Space.from_dict(settings["space"])
            vectors = read_vectors(database, Objectives.from_json(settings.get("objectives")))
            for row in read_rows(database, space, "status = 0") if vectors is not None else ():
                vector_of(row, vectors)
            problems += [text for _, text in check_rows(database, space) if text is not None]
        for part in (check_complete, read_restarts, read_state, read_notes):
            with note_error():
                part(database)
    return problems
