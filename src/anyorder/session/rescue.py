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

from anyorder.errors import STATUSES, StudyError
from anyorder.result import RECORD, columns
from anyorder.session.reading import check_version, opened
from anyorder.space import Space
from anyorder.space.packing import Packing

_SELECT = (
    "SELECT number, place, point, value, generation, status, paid, seconds, error FROM candidates"
)
_GAP = 100_000  # consecutive numbers that may be unreadable before the search ends

Row = tuple[Any, ...]


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
    rows: list[Row] = []
    try:
        with opened(study) as database:
            space = _space(database)
            rows = database.execute(f"{_SELECT} ORDER BY number").fetchall()
    except (StudyError, TypeError, ValueError) as damage:
        if isinstance(damage, StudyError) and not isinstance(damage.__cause__, sqlite3.Error):
            raise  # no such file, not a study, of another version
        error = str(damage.__cause__ or damage)
        space, rows = _rescued(Path(study).absolute())
    sound = [row for row in rows if _is_sound(row, space)]
    if len(sound) < len(rows) and error is None:
        error = "some candidates have impossible values"
    answered = [row for row in sound if row[5] is not None]
    answered.sort(key=lambda row: (row[1], row[0]))
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*(["point"] if space is None else columns(space)), *RECORD])
        for row, values in zip(answered, _values([row[2] for row in answered], space), strict=True):
            table.writerow([*values, *_record(row)])
    expected = 1 + max((row[0] for row in sound), default=-1)
    return Found(len(answered), expected - len(sound), error)


def _values(points: list[bytes], space: Space | None) -> list[Any]:
    """A row of values for each point."""
    if space is None:
        return [[point.hex()] for point in points]
    decoded = space.decode(Packing(space).unpack(points))
    return [list(point.values()) if isinstance(point, dict) else point for point in decoded]


def _record(row: Row) -> list[Any]:
    *_, value, generation, status, paid, seconds, error = row
    return [value, generation, STATUSES[status], not paid, seconds, error]


def _is_sound(row: Row, space: Space | None) -> bool:
    """Whether the columns of a candidate have possible values."""
    number, place, point, value, generation, status, _, seconds, error = row
    if not (isinstance(number, int) and isinstance(generation, int) and isinstance(point, bytes)):
        return False
    if space is not None:
        try:
            codes = Packing(space).unpack([point])
        except ValueError:
            return False
        if codes.shape != (1, len(space)) or (codes >= space.cardinalities).any():
            return False
    if status is None:
        return True
    numbers = all(x is None or isinstance(x, int | float) for x in (value, seconds))
    return (
        isinstance(status, int)
        and 0 <= status < len(STATUSES)
        and isinstance(place, int)
        and numbers
        and isinstance(error, str | None)
    )


def _space(database: sqlite3.Connection) -> Space:
    (text,) = database.execute("SELECT value FROM settings WHERE name='space'").fetchone()
    return Space.from_json(text)


def _rescued(file: Path) -> tuple[Space | None, list[Row]]:
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
                check_version(database, file)
                return _readable_space(database), list(_readable(database))
            except sqlite3.Error as error:
                raise StudyError(f"study {file}: nothing of it can be read: {error}") from error


def _readable_space(database: sqlite3.Connection) -> Space | None:
    try:
        return _space(database)
    except (sqlite3.Error, ValueError, TypeError):
        return None


def _readable(database: sqlite3.Connection) -> Iterator[Row]:
    """Candidates up to the first damage, from the end back to the last, then one by one between."""
    first, last = -1, None
    try:
        for row in database.execute(f"{_SELECT} ORDER BY number"):
            first = row[0]
            yield row
        return
    except sqlite3.Error as error:
        if "no such" in str(error):  # the table or a column is missing
            raise
    try:
        query = f"{_SELECT} WHERE number > ? ORDER BY number DESC"
        for row in database.execute(query, (first,)):
            last = row[0]
            yield row
    except sqlite3.Error:
        pass
    number, end = first + 1, first + 1 + _GAP if last is None else last
    while number < end:
        try:
            row = database.execute(f"{_SELECT} WHERE number = ?", (number,)).fetchone()
        except sqlite3.Error:
            row = None
        if row is not None:
            end = end if last is not None else number + 1 + _GAP
            yield row
        number += 1
