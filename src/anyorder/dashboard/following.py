"""A study followed while it is written: it may grow, be replaced or damaged, or vanish."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from anyorder.dashboard.contents import Contents
from anyorder.errors import DAMAGE, StudyError
from anyorder.run.study.ownership import being_written
from anyorder.run.study.reading import open_study, read_settings, translate_errors


class Following:
    """A study that is read again and again.

    Attributes
    ----------
    path
        The file.
    contents
        What has been read of the study; None if nothing has.
    problem
        The reason why the study cannot be read; None if it can.
    writing
        Whether a process is writing it; None if that is not known.
    version
        A number that changes whenever one of the above does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.contents: Contents | None = None
        self.problem: str | None = None
        self.writing: bool | None = None
        self.version = 0
        self._inode = -1

    def read(self) -> None:
        """Read the new entries of the study."""
        before = self.contents, self.problem, self.writing
        changed = False
        try:
            # first: if the run has ended by now, all of it is read
            self.writing = being_written(self.path)
            with open_study(self.path) as database, translate_errors(self.path):
                database.execute("BEGIN")  # so that everything is read as of one moment
                changed = self._read(database)
            self.problem = None
        except (StudyError, OSError, *DAMAGE) as error:
            self.contents, self.problem, self.writing = None, str(error), False
        self.version += changed or before != (self.contents, self.problem, self.writing)

    def _read(self, database: sqlite3.Connection) -> bool:
        settings, inode = read_settings(database), self.path.stat().st_ino
        (last,) = database.execute("SELECT max(number) FROM candidates").fetchone()
        had = self.contents
        if had is None or inode != self._inode or not _same(settings, had.settings, last, had.last):
            had = Contents(settings)
        changed = had.read(database) or had is not self.contents or settings != had.settings
        had.settings = settings
        self.contents, self._inode = had, inode
        return changed


def _same(settings: dict[str, Any], had: dict[str, Any], last: int | None, known: int) -> bool:
    """Return whether a file still holds the run that was read, possibly with a larger budget."""
    free = {"budget", "library"}
    kept = {key: value for key, value in settings.items() if key not in free}
    return kept == {k: v for k, v in had.items() if k not in free} and (last or 0) >= known
