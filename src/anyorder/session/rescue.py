"""A study as a CSV table; of a damaged study, the candidates that can still be read."""

from __future__ import annotations

import csv
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from anyorder.errors import OK, STATUSES, StudyError
from anyorder.history import RECORD, columns
from anyorder.session.reading import (
    COLUMNS,
    STUDY,
    Row,
    checksum_column,
    opened,
    problem_of,
)
from anyorder.space import Space
from anyorder.space.packing import Packing

_GAP = 100_000  # consecutive numbers that may be unreadable before the search ends


class Found(NamedTuple):
    """How many candidates were written, how many are known to be lost, and why."""

    written: int
    lost: int
    error: str | None


def write_csv(study: str | os.PathLike[str], path: str | os.PathLike[str]) -> Found:
    """Write every candidate that was answered, in the order in which the strategy learned them.

    Of a damaged study, every one that can still be read; points are written as hexadecimal numbers
    if the space cannot be read.
    """
    error = space = None
    rows: list[tuple[Row, bool]] = []
    try:
        with opened(study) as database:
            space = _space(database)
            rows = [_checked(entry, space) for entry in database.execute(_query(database))]
    except StudyError as damage:
        if damage.__cause__ is None or isinstance(damage.__cause__, OSError):
            raise  # no such file, not a study, of another version
        error = str(damage.__cause__)
        space, rows = _rescued(Path(study).absolute())
    # a damaged tree may lead to a row twice
    sound = list({row.number: row for row, good in rows if good}.values())
    if error is None and not all(good for _, good in rows):
        error = "some candidates have been changed"
    answered = sorted(
        (row for row in sound if row.status is not None), key=lambda row: (row.place, row.number)
    )
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*(["point"] if space is None else columns(space)), *RECORD])
        points = _values([row.point for row in answered], space)
        for row, values in zip(answered, points, strict=True):
            status = STATUSES[row.status or OK]
            table.writerow(
                [*values, row.value, row.generation, status, not row.paid, row.seconds, row.error]
            )
    expected = 1 + max((row.number for row in sound), default=-1)
    return Found(len(answered), expected - len(sound), error)


def _query(database: sqlite3.Connection, where: str = "1 ORDER BY number") -> str:
    return f"SELECT {COLUMNS}, {checksum_column(database)} FROM candidates WHERE {where}"


def _checked(entry: tuple[Any, ...], space: Space | None) -> tuple[Row, bool]:
    """A candidate, and whether it is what was written."""
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
    """A row of values for each point."""
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


def _rescued(file: Path) -> tuple[Space | None, list[tuple[Row, bool]]]:
    """Space and candidates, as far as they can be read from a copy of the file."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "study"
        shutil.copyfile(file, copy)
        if file.with_name(f"{file.name}-wal").exists():
            shutil.copyfile(f"{file}-wal", f"{copy}-wal")
        with closing(sqlite3.connect(copy, isolation_level=None)) as database:
            database.text_factory = lambda text: text.decode(errors="replace")
            database.execute("PRAGMA writable_schema=ON")  # also reads a truncated file
            try:
                STUDY.check(database, file)
                space = _readable_space(database)
                return space, [_checked(entry, space) for entry in _readable(database)]
            except sqlite3.Error as error:
                raise StudyError(f"study {file}: nothing of it can be read: {error}") from error


def _readable_space(database: sqlite3.Connection) -> Space | None:
    try:
        return _space(database)
    except (sqlite3.Error, ValueError, TypeError):
        return None


def _readable(database: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """Candidates up to the first damage, from the end back to the last, then one by one between."""
    first, last = -1, None
    try:
        for row in database.execute(_query(database)):
            first = row[0]
            yield row
        return
    except sqlite3.Error as error:
        if "no such" in str(error):  # the table or a column is missing
            raise
    try:
        query = _query(database, "number > ? ORDER BY number DESC")
        for row in database.execute(query, (first,)):
            last = row[0]
            yield row
    except sqlite3.Error:
        pass
    number, end = first + 1, first + 1 + _GAP if last is None else last
    while number < end:
        try:
            row = database.execute(_query(database, "number = ?"), (number,)).fetchone()
        except sqlite3.Error:
            row = None
        if row is not None:
            end = end if last is not None else number + 1 + _GAP
            yield row
        number += 1
