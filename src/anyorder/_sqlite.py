"""SQLite files: opened, checked, written in transactions, with errors that say what to do.

A `Format` says what kind of file it is. `Database` is a connection to one, for the process that
writes it; `reading` opens one to read, while it is being written or not. Files are in WAL mode, so
readers and a writer do not wait for each other.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyorder._version import __version__
from anyorder.errors import StudyError

TIMEOUT = 60.0  # seconds to wait for another process's transaction
_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes
    ----------
    name
        What errors call it: "study".
    application
        SQLite's application id, four letters as an integer.
    version
        Of its tables.
    readable
        Older versions that can be read as well.
    tables
        The statements that create them, separated by semicolons.
    rescue
        What to do about a damaged file; ends an error message.
    """

    name: str
    application: int
    version: int
    tables: str
    rescue: str = ""
    readable: tuple[int, ...] = ()

    def check(self, connection: sqlite3.Connection, path: Path) -> int:
        """Refuse a database of another kind, or of an unknown version; returns its version."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != self.application:
            raise StudyError(f"{path} is not a {self.name} of anyorder; it was left unchanged")
        known = (*self.readable, self.version)
        if version not in known:
            listed = " and ".join(map(str, known))
            raise StudyError(
                f"{self.name} {path} has format {version}; this is anyorder {__version__}, which "
                f"reads format{'s' if len(known) > 1 else ''} {listed}"
            )
        return int(version)

    def create(self, connection: sqlite3.Connection) -> None:
        """Create the tables; within a transaction."""
        for statement in self.tables.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id={self.application}")
        connection.execute(f"PRAGMA user_version={self.version}")

    def exists(self, path: Path) -> bool:
        """Whether there is a file with something in it; one that is not SQLite's is refused."""
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait
                raise StudyError(f"{self.name} {path}: expected a regular file")
            with path.open("rb") as file:
                head = file.read(len(_MAGIC))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StudyError(f"{self.name} {path}: {error.strerror}") from error
        if head and head != _MAGIC:
            raise StudyError(f"{path} is not a {self.name} of anyorder; it was left unchanged")
        return bool(head)

    @contextlib.contextmanager
    def errors(self, path: Path | None) -> Iterator[None]:
        """Turn the errors of SQLite, and of the JSON in a file, into a StudyError."""
        try:
            yield
        except (sqlite3.Error, json.JSONDecodeError, UnicodeDecodeError) as error:
            text = str(error)
            hint = ""
            if "full" in text or "disk I/O" in text:
                hint = (
                    "; everything written before is safe: free some space, then repeat the call "
                    "to continue"
                )
            elif "readonly" in text or "read-only" in text:
                hint = "; the file or its folder cannot be written"
            elif any(word in text for word in ("malformed", "not a database", "no such", "decode")):
                hint = f"; the file is damaged{self.rescue}"
            raise StudyError(f"{self.name} {path}: {text}{hint}") from error


class Database:
    """A connection that writes, to a file that is created if there is none.

    Parameters
    ----------
    path
        The file; None for a database in memory.
    form
        What kind it is.
    existing
        Whether the file must be there already. It is then opened without writing to it where it
        cannot be written.
    sync_every
        Seconds between transactions that wait until the disk has them. A power cut may cost what
        was written since the last one; the end of the process costs nothing. 0: all of them wait.

    Attributes
    ----------
    connection
        In autocommit mode.
    fresh
        Whether the tables were created now.
    """

    def __init__(
        self, path: Path | None, form: Format, *, existing: bool = False, sync_every: float = 0.0
    ) -> None:
        self.path, self.form = path, form
        self._sync_every, self._synced = sync_every, time.monotonic()
        if path is not None:
            if not path.parent.is_dir():
                raise StudyError(f"{form.name} {path}: there is no such folder")
            # refuse other files before anything is written beside them
            if not form.exists(path) and existing:
                raise StudyError(f"there is no {form.name} {path}")
        with self.errors():
            self.connection = sqlite3.connect(
                ":memory:" if path is None else _uri(path, existing),
                uri=path is not None, isolation_level=None, timeout=TIMEOUT,
            )  # fmt: skip
            try:
                self.fresh = self._prepare()
            except BaseException:
                self.connection.close()
                raise

    def _prepare(self) -> bool:
        if self.path is not None and not self._is_empty():
            self.form.check(self.connection, self.path)
            return False
        if self.path is not None:
            self._write_ahead()
        with self.transaction():
            fresh = self._is_empty()  # another process may have been first
            if fresh:
                self.form.create(self.connection)
        return fresh

    def _write_ahead(self) -> None:
        """Change the mode of a new file; SQLite does not wait if another process is doing so."""
        end = time.monotonic() + TIMEOUT
        while True:
            try:
                self.connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.01)
            else:
                return

    def _is_empty(self) -> bool:
        # in this order: another process may create the tables in between
        (tables,) = self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = self.connection.execute("PRAGMA application_id").fetchone()
        return not application and not tables

    @property
    def sync_due(self) -> bool:
        """Whether the next transaction waits for the disk."""
        return time.monotonic() - self._synced >= self._sync_every

    def errors(self) -> contextlib.AbstractContextManager[None]:
        """`Format.errors` for this file."""
        return self.form.errors(self.path)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; when it ends, the file has it, and every so often the disk."""
        with self.errors():
            due = self.sync_due
            self.connection.execute(f"PRAGMA synchronous={'FULL' if due else 'NORMAL'}")
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")
            if due:
                self._synced = time.monotonic()

    def read(self, query: str, parameters: Iterable[Any] = ()) -> list[Any]:
        """All rows of a query."""
        with self.errors():
            return self.connection.execute(query, tuple(parameters)).fetchall()

    def damage(self) -> str | None:
        """What SQLite's quick check finds, or None."""
        ((found,),) = self.read("PRAGMA quick_check(1)")
        return None if found == "ok" else str(found)

    def close(self) -> None:
        """Close it; again does no harm."""
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()


@contextlib.contextmanager
def reading(path: str | os.PathLike[str], form: Format) -> Iterator[sqlite3.Connection]:
    """A connection that reads, while the file is being written or not; nothing is changed."""
    file = Path(path).absolute()
    if not form.exists(file):
        raise StudyError(f"there is no {form.name} {file}")
    with form.errors(file):
        connection = sqlite3.connect(
            _uri(file, existing=True), uri=True, isolation_level=None, timeout=TIMEOUT
        )
        try:
            connection.execute("PRAGMA query_only=ON")
            form.check(connection, file)
            yield connection
        finally:
            connection.close()


def _uri(path: Path, existing: bool) -> str:
    if not existing:
        return path.as_uri()
    # Only a process that may write can remove what sharing with a writer leaves beside the file;
    # where this one may not, there is no writer.
    writable = all(os.access(place, os.W_OK) for place in (path, path.parent))
    return f"{path.as_uri()}?{'mode=rw' if writable else 'immutable=1'}"


def is_database(path: Path) -> bool:
    """Whether a file is one of SQLite's."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def storable(text: str) -> str:
    r"""The text with what UTF-8 cannot encode as escapes, such as "\udce9" for a lone surrogate."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
