"""A study as a CSV table; for a damaged study, the candidates that can still be read.

SQLite's own recovery is only part of its command line, not of Python, and distributions build the
command line without it: Debian 12's `sqlite3 FILE .recover` cannot even copy an intact file. Here
every row is also compared with its checksum, which SQLite does not know.
"""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from anyorder._internal.sqlite import copy_apart
from anyorder.archive.history import columns, record
from anyorder.archive.notes import cell, from_json, table_of
from anyorder.archive.objectives import Objectives, Values
from anyorder.errors import DAMAGE, OK, STATUSES, StudyError
from anyorder.run.study.reading import (
    COLUMNS,
    STUDY,
    Row,
    open_study,
    problem_of,
    read_notes,
    read_vectors,
)
from anyorder.space import Space
from anyorder.space.packing import Packing

_GAP = 100_000  # after so many consecutive unreadable numbers the search ends


class Found(NamedTuple):
    """The number of candidates that were written, the number known to be lost, and the reason."""

    written: int
    lost: int
    error: str | None


def write_csv(study: str | os.PathLike[str], path: str | os.PathLike[str]) -> Found:
    """Write all answered candidates, in the order in which the strategy learned them.

    From a damaged study, write all that can still be read; points are written as hexadecimal
    numbers if the space cannot be read.
    """
    error = space = None
    rows: list[tuple[Row, bool]] = []
    told = _Told()
    try:
        with open_study(study) as database:
            space = _space(database)
            rows = [_check(entry, space) for entry in database.execute(_query())]
            told.read(database)
    except StudyError as damage:
        if damage.__cause__ is None or isinstance(damage.__cause__, OSError):
            raise  # there is no such file, or it is no study, or of another version
        error = str(damage.__cause__)
        space, rows, told = _rescue(Path(study).absolute())
    # the damaged tree may lead to a row twice
    sound = list({row.number: row for row, good in rows if good}.values())
    if error is None and not all(good for _, good in rows):
        error = "some candidates have been changed"
    answered = sorted(
        (row for row in sound if row.status is not None), key=lambda row: (row.place, row.number)
    )
    # names and messages may have lone surrogates, such as from bytes that were no text
    with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        table = csv.writer(file, lineterminator="\n")
        names = [*(["point"] if space is None else columns(space)), *record(told.objectives)]
        numbers = [row.number for row in answered]
        notes = table_of({k: from_json(text) for k, text in told.notes.items()}, numbers, names)
        table.writerow([*names, *notes])
        points = _values([row.point for row in answered], space)
        for k, (row, values) in enumerate(zip(answered, points, strict=True)):
            status = STATUSES[row.status or OK]
            table.writerow(
                [
                    *values,
                    *told.values(row),
                    row.generation,
                    status,
                    not row.paid,
                    row.seconds,
                    row.error,
                    *(cell(column[k]) for column in notes.values()),
                ]
            )
    expected = 1 + max((row.number for row in sound), default=-1)
    return Found(len(answered), expected - len(sound), error)


def _query(where: str = "1 ORDER BY number") -> str:
    return f"SELECT {COLUMNS}, checksum FROM candidates WHERE {where}"


def _check(entry: tuple[Any, ...], space: Space | None) -> tuple[Row, bool]:
    """Return a candidate, and whether it is unchanged since it was written."""
    *columns, checksum = entry
    row = Row(*columns)
    if problem_of(row, checksum) is not None:
        return row, False
    if space is None:
        return row, True
    packing = Packing(space)
    if len(row.point) != packing.width:
        return row, False
    return row, bool((packing.unpack([row.point]) < space.cardinalities).all())


def _values(points: list[bytes], space: Space | None) -> list[Any]:
    """Return the values of each point as a row."""
    if space is None:
        return [[point.hex()] for point in points]
    codes = Packing(space).unpack(points)
    if space.names is None:
        return list(space.decode(codes))
    return [
        [v.values[c] if here else None for v, c, here in zip(space.columns, row, own, strict=True)]
        for row, own in zip(codes.tolist(), space.present(codes).tolist(), strict=True)
    ]


def _space(database: sqlite3.Connection) -> Space:
    (text,) = database.execute("SELECT value FROM settings WHERE name='space'").fetchone()
    return Space.from_json(text)


class _Told:
    """The contents of the tables besides the candidates: notes, and several objectives."""

    def __init__(self) -> None:
        self.notes: dict[int, str] = {}
        self.objectives: Objectives | None = None
        self._vectors: dict[int, Values] = {}

    def read(self, database: sqlite3.Connection) -> None:
        """Read these tables."""
        query = "SELECT value FROM settings WHERE name='objectives'"
        found = database.execute(query).fetchone()
        self.objectives = None if found is None else Objectives.from_json(json.loads(found[0]))
        self._vectors = read_vectors(database, self.objectives) or {}
        self.notes = read_notes(database)

    def values(self, row: Row) -> Sequence[float | None]:
        """Return the value of a candidate, or its values of several objectives."""
        if self.objectives is None:
            return (row.value,)
        return self._vectors.get(row.number, (None,) * len(self.objectives))


def _rescue(file: Path) -> tuple[Space | None, list[tuple[Row, bool]], _Told]:
    """Return the space, the candidates and the rest, as far as a copy of the file can be read."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "study"
        copy_apart(file, copy)
        log = file.with_name(f"{file.name}-wal")
        if log.exists():
            copy_apart(log, copy.with_name("study-wal"))
        with closing(sqlite3.connect(copy, isolation_level=None)) as database:
            told = _Told()
            database.text_factory = lambda text: text.decode(errors="replace")
            # with this, a truncated file can be read, too
            database.execute("PRAGMA writable_schema=ON")
            try:
                STUDY.check(database, file)
                space = _readable_space(database)
                rows = [_check(entry, space) for entry in _readable(database)]
                with suppress(sqlite3.Error, *DAMAGE):
                    told.read(database)
                return space, rows, told
            except sqlite3.Error as error:
                raise StudyError(f"study {file}: nothing of it can be read: {error}") from error


def _readable_space(database: sqlite3.Connection) -> Space | None:
    try:
        return _space(database)
    except (sqlite3.Error, ValueError, TypeError):
        return None


def _readable(database: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """Yield candidates up to the first damage, then from the end back to the last, then between."""
    first, last = -1, None
    try:
        for row in database.execute(_query()):
            first = row[0]
            yield row
        return
    except sqlite3.Error as error:
        if "no such" in str(error):  # the table or a column is missing
            raise
    try:
        query = _query("number > ? ORDER BY number DESC")
        for row in database.execute(query, (first,)):
            last = row[0]
            yield row
    except sqlite3.Error:
        pass
    number, end = first + 1, first + 1 + _GAP if last is None else last
    while number < end:
        try:
            row = database.execute(_query("number = ?"), (number,)).fetchone()
        except sqlite3.Error:
            row = None
        if row is not None:
            end = end if last is not None else number + 1 + _GAP
            yield row
        number += 1
