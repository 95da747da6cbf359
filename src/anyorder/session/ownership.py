"""One process writes a study: the lock that makes sure of it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from anyorder.errors import StudyError


def owner_file(path: Path) -> Path:
    """The file beside a study whose lock its writer holds."""
    return path.with_name(path.name + "-owner")


def claim(path: Path) -> sqlite3.Connection:
    """Become the only writer: a lock that the system releases when this process ends."""
    file = owner_file(path)
    while True:
        try:
            file.touch()
            before = file.stat().st_ino
            owner = sqlite3.connect(file, isolation_level=None, timeout=0.0)
        except (OSError, sqlite3.Error) as error:
            raise StudyError(f"study {path}: its folder cannot be written: {error}") from error
        try:
            owner.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            owner.close()
            if "locked" in str(error):
                raise StudyError(f"study {path} is being written by another process") from None
            raise StudyError(f"study {path}: {error}") from error
        # Its last owner may have removed the file between the two.
        with contextlib.suppress(FileNotFoundError):
            if file.stat().st_ino == before:
                return owner
        owner.close()


def release(path: Path, owner: sqlite3.Connection) -> None:
    """Let others write, and remove the file of the lock."""
    file = owner_file(path)
    try:
        file.unlink(missing_ok=True)  # while it is ours
    except PermissionError:
        # Windows removes no open file: neither ours, nor that of the next owner a moment later.
        owner.close()
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)
    owner.close()
