"""The studies of a file or a folder, and the progress of each of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from anyorder.dashboard.following import Following
from anyorder.errors import DAMAGE, StudyError
from anyorder.run.study.ownership import being_written
from anyorder.run.study.reading import open_study, read_settings, translate_errors

MOST_STUDIES = 4  # the most studies side by side
_LISTED = 200  # the most studies of a folder that are listed
_SUFFIXES = {".db", ".sqlite", ".sqlite3", ".study"}
_LOOK = 5.0  # seconds between two searches of a folder for studies

Part = dict[str, Any]


class _Row(NamedTuple):
    """A study's row of the overview, when the study was written then, and when this was checked."""

    part: Part
    moment: tuple[float, bool | None]
    looked: float


class Studies:
    """The studies in one file, in several files, or in a folder.

    Raises a StudyError if there are none, or if a file is no study.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._folder = paths[0] if len(paths) == 1 and paths[0].is_dir() else None
        self._files = {} if self._folder else {path.name: path for path in paths}
        if len(self._files) < len(paths) and self._folder is None:  # files of several folders
            self._files = {str(path): path for path in paths}
        self._followed: dict[str, Following] = {}
        self._rows: dict[str, _Row] = {}  # the rows of the overview
        self._looked = -_LOOK
        self._made: dict[tuple[str, ...], tuple[Any, Part]] = {}
        self.lock = threading.RLock()
        for path in self._files.values():
            with open_study(path):
                pass
        if not self.names():
            raise StudyError(f"folder {self._folder} has no study of anyorder")

    @property
    def title(self) -> str:
        """The title of the page."""
        if self._folder is not None:
            return self._folder.resolve().name or str(self._folder)
        return ", ".join(self._files)

    def names(self) -> list[str]:
        """Return the names of the studies; in a folder, their paths within it."""
        if self._folder is not None and time.monotonic() - self._looked >= _LOOK:
            self._looked = time.monotonic()
            found = sorted(
                path for pattern in ("*", "*/*") for path in self._folder.glob(pattern)
                if path.suffix in _SUFFIXES and (path in self._files.values() or _is_study(path))
            )  # fmt: skip
            self._files = {path.relative_to(self._folder).as_posix(): path for path in found}
        return list(self._files)

    def choose(self, names: Iterable[str]) -> list[str]:
        """Return the given names that exist; without names, the name of the study written last."""
        known = self.names()
        if names := tuple(names):
            return [name for name in dict.fromkeys(names) if name in self._followed or
                    name in known][:MOST_STUDIES]  # fmt: skip
        return sorted(known, key=lambda name: _last_written(self._files[name]))[-1:]

    def follow(self, name: str) -> Following:
        """Return a study with its new entries read; the studies of the last few views are kept."""
        study = self._followed.pop(name, None) or Following(self._files[name].absolute())
        self._followed[name] = study
        for old in [*self._followed][: -2 * MOST_STUDIES]:
            del self._followed[old]
        study.read()
        return study

    def overview(self) -> list[Part]:
        """Return a row for each study; no rows if there is only one study."""
        if len(self.names()) < 2:
            return []
        return [self._row(name, self._files[name]) for name in self.names()[:_LISTED]]

    def _row(self, name: str, path: Path) -> Part:
        now, had = time.monotonic(), self._rows.get(name)
        if had is not None and now - had.looked < _LOOK:
            return had.part
        moment = _last_written(path), being_written(path)
        part = had.part if had is not None and had.moment == moment else None
        if part is None:
            part = {"name": name, **_summary(path, moment[1])}
        self._rows[name] = _Row(part, moment, now)
        return part

    def make_once(self, key: tuple[str, ...], version: Any, make: Callable[[], Part]) -> Part:
        """Return a part for this version of its studies; it is made once for all readers."""
        had = self._made.pop(key, None)
        if had is None or had[0] != version:
            had = version, make()
        self._made[key] = had
        for old in [*self._made][:-200]:
            del self._made[old]
        return had[1]


def _last_written(path: Path) -> float:
    """Return the time at which a study was last written; 0 if it does not exist any more."""
    times = [0.0]
    for file in (path, path.with_name(path.name + "-wal")):
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return max(times)


def _is_study(path: Path) -> bool:
    """Return whether a file is a study, possibly a damaged one."""
    try:
        with open_study(path):
            return True
    except StudyError as error:
        return error.__cause__ is not None
    except OSError:
        return False


def _summary(path: Path, writing: bool | None) -> Part:
    """Return the progress of a study."""
    try:
        with open_study(path) as database, translate_errors(path):
            settings = read_settings(database)
            better = "max" if settings["direction"] == "maximize" else "min"
            paid, failed, best = database.execute(
                f"SELECT count(*), coalesce(sum(status != 0), 0), {better}(value) "
                "FROM candidates WHERE paid"
            ).fetchone()
    except (StudyError, OSError, *DAMAGE) as error:
        return {"problem": str(error)}
    budget = settings["budget"]
    done = "finished" if budget is not None and paid >= budget else "not running"
    if settings.get("objectives") is not None:
        best = None  # there is a front instead of a best value
    return {
        "state": "running" if writing else done, "evaluations": paid, "budget": budget,
        "failures": failed, "best": None if best is None else f"{best:.8g}",
    }  # fmt: skip
