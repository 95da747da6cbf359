"""The lock which makes sure that only one process writes a study."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from anyorder.errors import StudyError

_MOUNTS = Path("/proc/self/mountinfo")  # Linux only


def refuse_other_names(path: Path, exists: bool) -> None:
    """Raise a StudyError if a study may have other names, in whose folders we hold no lock.

    Two processes could then write it, and what one of them has in its write-ahead log is not seen
    by the other.
    """
    file = path.resolve()
    if exists and file.stat().st_nlink > 1:
        raise StudyError(
            f"study {path} has {file.stat().st_nlink} names (hard links), and what is written "
            "under one is not seen under the others: remove the others, or copy it"
        )
    if _is_mounted(file):
        raise StudyError(
            f"study {path} is a mount of its own (a bind mount, or a container's volume), and what "
            "is written here is not seen under its other name: mount its folder instead"
        )


def _is_mounted(file: Path) -> bool:
    """Return whether a file, not its folder, is a mount point; False if that is not known."""
    try:
        lines = os.fsdecode(_MOUNTS.read_bytes()).splitlines()
    except OSError:
        return False
    escaped = str(file)
    for one in "\\ \t\n":  # the kernel writes them in octal
        escaped = escaped.replace(one, f"\\{ord(one):03o}")
    return any(line.split(" ")[4:5] == [escaped] for line in lines)


def owner_file(path: Path) -> Path:
    """Return the file beside a study whose lock its writer holds."""
    return path.with_name(path.name + "-owner")


def being_written(file: Path) -> bool | None:
    """Return whether a process is writing the study; None if that cannot be determined."""
    file = file.resolve()
    owner = owner_file(file)
    if not owner.exists():
        return False
    try:
        database = sqlite3.connect(f"{owner.as_uri()}?mode=ro", uri=True, timeout=0.0)
        with contextlib.closing(database):
            database.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.Error as error:
        return True if "locked" in str(error) else None
    return False  # the file was left behind by a process that was killed


def claim(path: Path) -> sqlite3.Connection:
    """Take the writer's lock, which the system releases when this process ends."""
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
        # The last owner may have removed the file after `touch`; then nobody would see this lock.
        with contextlib.suppress(FileNotFoundError):
            if file.stat().st_ino == before:
                return owner
        owner.close()


def release(path: Path, owner: sqlite3.Connection) -> None:
    """Release the lock, so that others may write, and remove its file."""
    file = owner_file(path)
    try:
        file.unlink(missing_ok=True)  # as long as it is ours
    except PermissionError:
        # Windows removes no open file: neither ours, nor that of the next owner a moment later.
        owner.close()
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)
    owner.close()
