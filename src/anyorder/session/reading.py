"""Reading a study: its settings, its history, its last state. Nothing in the file is changed.

`study.py` describes the file, and writes it.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import sqlite3
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder._version import __version__
from anyorder.archive import Archive
from anyorder.errors import STATUSES, StudyError, StudyMismatch
from anyorder.history import History
from anyorder.space import Space

VERSION = 2
READABLE = (1, 2)
APPLICATION = 0x616E796F  # "anyo", in the file's header

_COLUMNS = "number, after, generation, point, place, status, value, paid, tries, seconds, error"


class Row(NamedTuple):
    """A candidate as it is stored; see `study.py`."""

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
        """What is stored beside it, to notice changed bytes."""
        return zlib.crc32(repr(tuple(self)).encode("utf-8", "surrogatepass"))


class Kept(NamedTuple):
    """A state of the search that a study keeps: after how many candidates and answers."""

    arrays: dict[str, npt.NDArray[Any]]
    drawn: int
    told: int
    counters: dict[str, Any]


# --- the file -----------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """A study to read, whether it is being written or not."""
    file = Path(path).absolute()
    if not is_study(file):
        raise StudyError(f"there is no study {file}")
    with translated(file):
        # Reading a file that another process writes leaves two files beside it, which only someone
        # with write permission can remove; where nobody has it, nobody writes.
        writable = os.access(file.parent, os.W_OK) and os.access(file, os.W_OK)
        mode = "mode=rw" if writable else "immutable=1"
        database = sqlite3.connect(f"{file.as_uri()}?{mode}", uri=True, isolation_level=None)
        try:
            database.execute("PRAGMA query_only=ON")
            check_version(database, file)
            yield database
        finally:
            database.close()


@contextlib.contextmanager
def translated(path: Path | None) -> Iterator[None]:
    """Turn SQLite's errors, and what damaged contents lead to, into a StudyError with advice."""
    try:
        yield
    except (sqlite3.Error, json.JSONDecodeError, UnicodeDecodeError) as error:
        text = str(error)
        hint = ""
        if "full" in text or "disk I/O" in text:
            hint = "; what was written before is safe: free some space and run the same call again"
        elif "readonly" in text or "read-only" in text:
            hint = "; the file or its folder cannot be written"
        elif any(word in text for word in ("malformed", "not a database", "no such", "decode")):
            hint = "; the file is damaged: `anyorder show --csv` saves what can still be read"
        raise StudyError(f"study {path}: {text}{hint}") from error
    except StudyMismatch:
        raise
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise damaged(path, error) from error


def damaged(path: Path | None, reason: object) -> StudyError:
    """The error for contents that anyorder has not written."""
    text = f"{type(reason).__name__}: {reason}" if isinstance(reason, Exception) else str(reason)
    return StudyError(
        f"study {path} is damaged: {text}; `anyorder show --csv` saves what can still be read"
    )


def is_study(path: Path) -> bool:
    """Whether there is a study; a file of another kind is refused."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise StudyError(f"study {path}: expected a regular file")
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StudyError(f"study {path}: {error.strerror}") from error
    if not head:  # created, and nothing written yet
        return False
    if not head.startswith(b"SQLite format 3\0"):
        raise StudyError(f"{path} is not a study of anyorder; it was left unchanged")
    return True


def check_version(database: sqlite3.Connection, path: Path) -> int:
    """Refuse a database that is not a study, or of an unknown format; returns the format."""
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise StudyError(f"{path} is not a study of anyorder; it was left unchanged")
    if version not in READABLE:
        raise StudyError(
            f"study {path} has format {version}; this is anyorder {__version__}, which reads "
            f"formats {' and '.join(map(str, READABLE))}"
        )
    return int(version)


# --- its contents -------------------------------------------------------------------------------


def read_settings(database: sqlite3.Connection) -> dict[str, Any]:
    """What the run was started with."""
    settings: dict[str, Any] = {
        name: json.loads(value)
        for name, value in database.execute("SELECT name, value FROM settings")
    }
    settings.setdefault("algorithm", "policy")  # format 1 knew no other
    return settings


def read_rows(
    database: sqlite3.Connection, where: str = "1", parameters: tuple[Any, ...] = ()
) -> Iterator[Row]:
    """Candidates, with their checksums verified."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    sums = ", checksum" if version > 1 else ", NULL"
    query = f"SELECT {_COLUMNS}{sums} FROM candidates WHERE {where}"
    for *columns, checksum in database.execute(query, parameters):
        row = Row(*columns)
        if checksum is not None and checksum != row.checksum:
            raise ValueError(f"candidate {row.number} has been changed since it was written")
        yield row


def read_answers(database: sqlite3.Connection, archive: Archive, before: int | None = None) -> None:
    """Fill an archive with the answers of a study, those before a place, in order."""
    limit = "" if before is None else f" AND place < {int(before)}"
    for row in read_rows(database, f"status IS NOT NULL{limit} ORDER BY place"):
        add_row(archive, row)
    query = "SELECT told FROM restarts ORDER BY told"
    archive.restarts += [
        told for (told,) in database.execute(query) if before is None or told <= before
    ]


def add_row(archive: Archive, row: Row) -> None:
    """Add an answered candidate to an archive."""
    status = row.status
    if not isinstance(status, int) or not 0 <= status < len(STATUSES):
        raise ValueError(f"candidate {row.number} has status {status!r}")
    if not isinstance(row.point, bytes):
        raise ValueError(f"candidate {row.number} has point {row.point!r}")
    archive.add(
        row.point,
        math.nan if row.value is None else float(row.value),
        status,
        known=not row.paid,
        generation=row.generation,
        seconds=row.seconds or 0.0,
        error=row.error,
    )


def check_complete(database: sqlite3.Connection) -> None:
    """Raise ValueError if candidates have been removed."""
    count, last, answered, last_place = database.execute(
        "SELECT count(*), max(number), count(place), max(place) FROM candidates"
    ).fetchone()
    if count and last != count - 1:
        raise ValueError(f"{last + 1 - count} of {last + 1} candidates are missing")
    (asynchronous,) = database.execute(
        "SELECT value FROM settings WHERE name='asynchronous'"
    ).fetchone()
    if asynchronous == "true" and answered and last_place != answered - 1:
        raise ValueError(f"{last_place + 1 - answered} of {last_place + 1} answers are missing")


def read_state(database: sqlite3.Connection) -> Kept | None:
    """The last state that was kept; None if there is none in today's format."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version < VERSION:
        return None  # replaying gives the same
    row = database.execute("SELECT arrays, drawn, told, counters FROM state").fetchone()
    if row is None:
        return None
    try:
        with np.load(io.BytesIO(row[0]), allow_pickle=False) as arrays:
            return Kept(dict(arrays), int(row[1]), int(row[2]), dict(json.loads(row[3])))
    except Exception as error:  # zipfile, zlib and NumPy each have their own
        raise ValueError(f"its state cannot be read: {error}") from error


def load(path: str | os.PathLike[str]) -> History:
    """The history of a study."""
    with opened(path) as database:
        settings = read_settings(database)
        archive = Archive(
            Space.from_dict(settings["space"]), settings["direction"],
            deterministic=settings["deterministic"],
        )  # fmt: skip
        read_answers(database, archive)
        return History(archive)
