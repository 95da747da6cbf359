"""Reading a study: its settings, its history, its last state; nothing in it is changed.

`study.py` says what is in the file, and writes it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._version import __version__
from anyorder.errors import StudyError
from anyorder.result import History
from anyorder.space import Space

VERSION = 1
APPLICATION = 0x616E796F  # "anyo", in the file's header


class Packing:
    """Points as bytes: bits where all variables are binary, else the smallest integers that do."""

    def __init__(self, space: Space) -> None:
        most = int(space.cardinalities.max())
        self._n, self._bits = len(space), most <= 2
        self._type = np.dtype(np.uint8 if most <= 256 else "<u2" if most <= 65536 else "<u4")

    def pack(self, codes: npt.NDArray[Any]) -> list[bytes]:
        """One entry for each row."""
        if self._bits:
            return [row.tobytes() for row in np.packbits(codes.astype(np.uint8), axis=1)]
        return [row.tobytes() for row in codes.astype(self._type)]

    def unpack(self, points: Iterable[bytes]) -> npt.NDArray[np.int32]:
        """The codes, a row for each."""
        joined = b"".join(points)
        if self._bits:
            rows = np.frombuffer(joined, np.uint8).reshape(-1, (self._n + 7) // 8)
            return np.unpackbits(rows, axis=1, count=self._n).astype(np.int32)
        return np.frombuffer(joined, self._type).reshape(-1, self._n).astype(np.int32)


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """A study to read, while it is being written or not; nothing in it is changed."""
    file = Path(path).absolute()
    if not is_study(file):
        raise StudyError(f"there is no study {file}")
    with clear(file):
        # Only who may write can clear away what sharing with a writer leaves beside the file; where
        # nobody can, there is no writer.
        writable = os.access(file.parent, os.W_OK) and os.access(file, os.W_OK)
        mode = "mode=rw" if writable else "immutable=1"
        database = sqlite3.connect(f"{file.as_uri()}?{mode}", uri=True, isolation_level=None)
        try:
            database.execute("PRAGMA query_only=ON")
            check_version(database, file)
            yield database
        finally:
            database.close()


def load(path: str | os.PathLike[str]) -> History:
    """The history of a study."""
    with opened(path) as database:
        settings = read_settings(database)
        space = Space.from_dict(settings["space"])
        return read_history(database, space, settings["direction"], read_restarts(database))


def read_restarts(database: sqlite3.Connection) -> tuple[int, ...]:
    """After how many answers the policy was started afresh, each time."""
    return tuple(told for (told,) in database.execute("SELECT told FROM restarts ORDER BY told"))


def read_settings(database: sqlite3.Connection) -> dict[str, Any]:
    """What a study was begun with."""
    return {
        name: json.loads(value)
        for name, value in database.execute("SELECT name, value FROM settings")
    }


def read_state(
    database: sqlite3.Connection, path: Path | None
) -> tuple[dict[str, npt.NDArray[Any]], int, int] | None:
    """The last state kept, after how many candidates and how many answers."""
    row = database.execute("SELECT arrays, drawn, told FROM state").fetchone()
    if row is None:
        return None
    try:
        with np.load(io.BytesIO(row[0]), allow_pickle=False) as arrays:
            return dict(arrays), row[1], row[2]
    except Exception as error:  # zipfile, zlib and NumPy each have their own
        raise StudyError(f"study {path}: its state is damaged: {error}") from error


def read_history(
    database: sqlite3.Connection, space: Space, direction: str, restarts: tuple[int, ...]
) -> History:
    """All answers of a study, in the order they were told."""
    packing = Packing(space)
    rows = database.execute(
        "SELECT point, value, generation, status, paid, seconds, error FROM candidates "
        "WHERE status IS NOT NULL ORDER BY place"
    )
    kept: list[tuple[Any, ...]] = rows.fetchall()
    points, values, generations, statuses, paid, seconds, errors = (
        zip(*kept, strict=True) if kept else ((),) * 7
    )
    return History(
        space=space,
        maximized=direction == "maximize",
        values=np.array(values, np.float64),  # None becomes NaN
        codes=packing.unpack(points),
        generations=np.array(generations, np.int64),
        restarts=restarts,
        statuses=np.array(statuses, np.uint8),
        cached=~np.array(paid, np.bool_),
        seconds=np.array(seconds, np.float64),
        errors={k: text for k, text in enumerate(errors) if text is not None},
    )


# --- the file -----------------------------------------------------------------------------------


@contextlib.contextmanager
def clear(path: Path | None) -> Iterator[None]:
    """Turns what SQLite says into what the user needs to know."""
    try:
        yield
    except (sqlite3.Error, json.JSONDecodeError, UnicodeDecodeError) as error:
        text = str(error)
        hint = ""
        if "full" in text or "disk I/O" in text:
            hint = "; what was written before is safe: make room, and the same call goes on"
        elif "readonly" in text or "read-only" in text:
            hint = "; the file or its folder cannot be written"
        elif any(word in text for word in ("malformed", "not a database", "no such", "decode")):
            hint = "; the file is damaged: `anyorder show --csv` saves what can still be read"
        raise StudyError(f"study {path}: {text}{hint}") from error


def is_study(path: Path) -> bool:
    """Whether there is a study; a file of another kind is refused."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StudyError(f"study {path}: {error.strerror}") from error
    if not head:  # made, and nothing written yet
        return False
    if not head.startswith(b"SQLite format 3\0"):
        raise StudyError(f"{path} is not a study of anyorder, and is left as it is")
    return True


def check_version(database: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that is not a study, or of another format."""
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise StudyError(f"{path} is not a study of anyorder, and is left as it is")
    if version != VERSION:
        raise StudyError(
            f"study {path} has format {version}; this is anyorder {__version__}, which reads "
            f"format {VERSION}"
        )
