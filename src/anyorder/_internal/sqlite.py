"""SQLite files: opened, checked and written in transactions, with errors that say what to do.

A `Format` describes a kind of file. `Database` is the connection of the process that writes a file;
`reading` opens a file to read it, even while it is being written. Files are in WAL mode, so readers
and a writer do not wait for each other.

Such a file must never be opened except by SQLite: when a process closes any descriptor of a file,
the system drops all locks of the process on that file, including those of a writer in another
thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyorder._version import __version__
from anyorder.errors import StudyError

TIMEOUT = 60.0  # seconds to wait for another process's transaction
_SMALLEST = 512  # a database that is not empty has at least so many bytes
# A limit on what reading may cost, in steps of SQLite's virtual machine: reading a table takes a
# few hundred steps a row, but files made by others may contain something that takes far longer.
_STEPS, _STEPS_A_BYTE, _STEPS_AT_A_TIME = 10**8, 1_000, 10**6


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes
    ----------
    name
        What errors call it: "study".
    application
        The SQLite application id: four letters as an integer.
    version
        The version of the tables.
    tables
        The statements that create the tables, separated by semicolons.
    rescue
        What to do about a damaged file; it ends error messages.
    """

    name: str
    application: int
    version: int
    tables: str
    rescue: str = ""

    def check(self, connection: sqlite3.Connection, path: Path) -> None:
        """Raise unless the database is of this kind and version, and holds plain tables only.

        Views and triggers are programs that would run.
        """
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != self.application:
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not application and not tables:
                raise StudyError(
                    f"{self.name} {path} is empty: it has just been created, or what created it "
                    "was stopped"
                )
            raise self._foreign(path)
        if version != self.version:
            raise StudyError(
                f"{self.name} {path} has format {version}; this is anyorder {__version__}, which "
                f"reads format {self.version}"
            )
        (other,) = connection.execute(
            "SELECT min(name) FROM sqlite_master "
            "WHERE type NOT IN ('table', 'index') OR (type = 'table' AND NOT rootpage)"
        ).fetchone()
        if other is not None:
            raise StudyError(
                f"{self.name} {path} has {other!r}, which is a view, a trigger or a virtual table: "
                "expected tables only"
            )

    def create(self, connection: sqlite3.Connection) -> None:
        """Create the tables, within a transaction."""
        for statement in self.tables.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id={self.application}")
        connection.execute(f"PRAGMA user_version={self.version}")

    def exists(self, path: Path) -> bool:
        """Return whether the file exists and is not empty; raise if it is no SQLite file."""
        try:
            size, mode = path.stat().st_size, path.stat().st_mode
            if not stat.S_ISREG(mode):  # opening a pipe would wait
                raise StudyError(f"{self.name} {path}: expected a regular file")
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StudyError(f"{self.name} {path}: {error.strerror}") from error
        with self.errors(path):
            if size and not is_database(path):
                raise self._foreign(path)
        return bool(size)

    def _foreign(self, path: Path | None) -> StudyError:
        return StudyError(f"{path} is not a {self.name} of anyorder; it was left unchanged")

    @contextlib.contextmanager
    def errors(self, path: Path | None) -> Iterator[None]:
        """Convert errors of SQLite, and of JSON in the file, to a StudyError."""
        try:
            yield
        except (sqlite3.Error, json.JSONDecodeError, UnicodeDecodeError) as error:
            text = str(error)
            hint = ""
            if text == "interrupted":
                text = "reading it takes far longer than its size explains"
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
    """A connection that writes to a file; the file is created if there is none.

    Parameters
    ----------
    path
        The file; None for a database in memory.
    form
        The kind of file.
    existing
        Whether the file must exist already. If it cannot be written, it is opened to be read.
    sync_every
        The seconds after which a transaction waits again until its data are on the disk. A power
        cut may lose what was written since then; the end of the process loses nothing. With 0 every
        transaction waits.

    Attributes
    ----------
    connection
        The connection to SQLite, in autocommit mode.
    fresh
        Whether the tables have just been created.
    """

    def __init__(
        self, path: Path | None, form: Format, *, existing: bool = False, sync_every: float = 0.0
    ) -> None:
        self.path, self.form = path, form
        self._sync_every, self._synced = sync_every, time.monotonic()
        if path is not None:
            if not path.parent.is_dir():
                raise StudyError(f"{form.name} {path}: there is no such folder")
            # check what the file is before anything is written beside it
            if not form.exists(path) and existing:
                raise StudyError(f"there is no {form.name} {path}")
        with self.errors():
            if path is None:
                self.connection = sqlite3.connect(":memory:", isolation_level=None)
            elif existing:
                self.connection = _connect(path)
            else:
                self.connection = sqlite3.connect(
                    path.as_uri(), uri=True, isolation_level=None, timeout=TIMEOUT
                )
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
        """Switch a new file to WAL mode; SQLite does not wait if another process is doing so."""
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
        """Whether the next transaction has to wait for the disk."""
        return time.monotonic() - self._synced >= self._sync_every

    def errors(self) -> contextlib.AbstractContextManager[None]:
        """Convert errors as `Format.errors` does, for this file."""
        return self.form.errors(self.path)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction: either all of it is written, or nothing.

        When it ends, its changes are in the file. At intervals of `sync_every` they are also forced
        to the disk.
        """
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
        """Return all rows that a query gives."""
        with self.errors():
            return self.connection.execute(query, tuple(parameters)).fetchall()

    def damage(self) -> str | None:
        """Return what SQLite finds damaged in pages and indices, or None if nothing is."""
        ((found,),) = self.read("PRAGMA integrity_check(1)")
        return None if found == "ok" else str(found)

    def close(self) -> None:
        """Close the connection; closing it again has no effect."""
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()


@contextlib.contextmanager
def reading(path: str | os.PathLike[str], form: Format) -> Iterator[sqlite3.Connection]:
    """Open a connection that only reads, even while another process writes the file."""
    file = Path(path).absolute()
    if not form.exists(file):
        raise StudyError(f"there is no {form.name} {file}")
    with form.errors(file):
        connection = _connect(file)
        try:
            left = (_STEPS + _STEPS_A_BYTE * file.stat().st_size) // _STEPS_AT_A_TIME

            def count() -> bool:
                nonlocal left
                left -= 1
                return left < 0

            connection.set_progress_handler(count, _STEPS_AT_A_TIME)
            connection.execute("PRAGMA query_only=ON")
            connection.execute("PRAGMA trusted_schema=OFF")
            form.check(connection, file)
            yield connection
        finally:
            connection.close()


class _Connection(sqlite3.Connection):
    """A connection, possibly to a copy of the file, which is removed with it."""

    folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Close the connection, and remove the copy if there is one."""
        super().close()
        if self.folder is not None:
            self.folder.cleanup()


def _connect(path: Path) -> sqlite3.Connection:
    """Return a connection to an existing file that sees everything written to it.

    Where the file or its folder cannot be written, SQLite cannot create the files that readers
    share with a writer. If they exist, they are used. If they do not, there is no writer, and what
    the last one left in the write-ahead log is read from a copy.
    """
    log, shared = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    folder, mode = None, "mode=rw"
    if not all(os.access(place, os.W_OK) for place in (path, path.parent)):
        mode = "mode=ro"
        if not log.exists():
            mode = "immutable=1"
        elif not os.access(shared, os.R_OK):
            folder, mode = tempfile.TemporaryDirectory(), "mode=rw"
            copy = Path(folder.name) / path.name
            copy_apart(path, copy)
            copy_apart(log, copy.with_name(log.name))
            path = copy
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, isolation_level=None, timeout=TIMEOUT,
        factory=_Connection,
    )  # fmt: skip
    connection.folder = folder
    return connection


def copy_apart(source: Path, target: Path) -> None:
    """Copy a file in a separate process: reading it here would drop the locks of this one."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import shutil, sys; shutil.copyfile(*sys.argv[1:])",
         source, target], check=False, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise StudyError(f"{source} cannot be copied: {(done.stderr.splitlines() or ['?'])[-1]}")


def is_database(path: Path) -> bool:
    """Return whether a file is an SQLite file and not empty."""
    path = path.absolute()
    if path.stat().st_size < _SMALLEST:
        return False
    with contextlib.closing(_connect(path)) as connection:
        try:
            connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                return False
            raise
    return True


def checksum_of(*columns: Any) -> int:
    """Return a checksum of values, which is the same before and after they are stored."""
    return zlib.crc32(repr(columns).encode("utf-8", "surrogatepass"))


def storable(text: str) -> str:
    r"""Return the text with characters that UTF-8 cannot encode, such as surrogates, escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
