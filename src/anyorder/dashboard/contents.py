"""What has been read of a study; only new entries are read and added."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder.archive import Archive
from anyorder.archive.history import History
from anyorder.archive.knowledge import Known
from anyorder.archive.objectives import Objectives, Values
from anyorder.charts.runs import Evaluations
from anyorder.charts.shares import shares_of_variance
from anyorder.errors import OK
from anyorder.run.study.reading import (
    Row,
    read_notes,
    read_restarts,
    read_rows,
    read_vectors,
    vector_of,
)
from anyorder.space import Space

Floats = npt.NDArray[np.float64]

_OPEN = "number IN (SELECT value FROM json_each(?))"


class Open(NamedTuple):
    """A candidate without an answer; `started` is NaN if it is not being evaluated yet."""

    number: int
    point: bytes
    started: float


class _OneObjective(History):
    """A history of several objectives, seen as that of one of them."""

    def __init__(self, archive: Archive, which: int) -> None:
        super().__init__(archive)
        assert archive.objectives is not None
        self.maximized = archive.objectives.directions[which] == "max"
        self.objectives, self._which = None, which

    @property
    def values(self) -> Floats:
        """The values of this objective."""
        return self._archive.values[: len(self), self._which]


class Contents:
    """What has been read of a study.

    Attributes
    ----------
    settings
        The settings with which the run was started.
    archive
        All answers, in the order in which they came.
    history
        The history; with several objectives that of one of them, see `choose`.
    open
        The candidates without an answer, by number.
    elapsed
        The seconds that the run had taken when its state was last stored; None before that.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.archive = Archive(
            Space.from_dict(settings["space"]), settings["direction"],
            deterministic=settings["deterministic"],
            objectives=Objectives.from_json(settings.get("objectives")),
        )  # fmt: skip
        known = Known.from_json(self.archive.space, settings)
        if known.data is not None:
            known.data.add_to(self.archive)
        self.before = len(self.archive)  # the number of answers that were known before the run
        self.objective = 0
        self.history = self._view()
        self.open: dict[int, Open] = {}
        self.elapsed: float | None = None
        self._shares: tuple[Any, Floats] | None = None
        self.last = -1  # the largest number of a candidate that has been read
        self._kept = -1  # the number of candidates in the last state that was read
        # numbers and times of the run's answers, in the order of the archive
        self._numbers: list[int] = []
        self._started: list[float] = []
        self._ended: list[float] = []

    @property
    def ended(self) -> Floats:
        """The time of each answer of the history, in seconds since 1970; NaN if not known."""
        return np.array([np.nan] * self.before + self._ended)

    def latest(self, most: int) -> Floats:
        """Return the times of the last `most` answers, in order."""
        ended = np.array(self._ended[-most:], np.float64)
        return np.sort(ended[np.isfinite(ended)])

    def evaluations(self, most: int | None = None) -> Evaluations:
        """Return the times of the last `most` evaluations, including those that are running."""
        size = len(self._numbers)
        first = 0 if most is None else max(0, size - most)
        paid = np.flatnonzero(~self.history.cached[self.before + first :]) + first
        running = [one for one in self.open.values() if one.started == one.started]
        none = [np.nan] * len(running)

        def together(column: list[Any], more: list[Any]) -> Floats:
            return np.array([column[k] for k in paid.tolist()] + more, np.float64)

        rows = paid + self.before
        return Evaluations(
            together(self._numbers, [one.number for one in running]).astype(np.int64),
            together(self._started, [one.started for one in running]),
            together(self._ended, none),
            np.append(self.history.statuses[rows], [-1] * len(running)).astype(np.int64),
            np.append(self.history.values[rows], none),
            time.time(),
        )

    def shares(self) -> Floats:
        """Return `shares_of_variance` of the present answers, which is computed once."""
        state = len(self.history), self.objective
        if self._shares is None or self._shares[0] != state:
            self._shares = state, shares_of_variance(self.history)
        return self._shares[1]

    def number(self, row: int) -> int:
        """Return the candidate's number of a row of the history; -1 if known before the run."""
        return -1 if row < self.before else self._numbers[row - self.before]

    def read(self, database: sqlite3.Connection) -> bool:
        """Read new entries; return whether there were any."""
        space, new = self.archive.space, self.last + 1
        numbers = json.dumps([*self.open])
        rows = [
            *read_rows(database, space, _OPEN, (numbers,)),
            *read_rows(database, space, "number >= ?", (new,)),
        ]
        times = _times(database, numbers, new)
        notes = read_notes(database, f"{_OPEN} OR number >= ?", (numbers, new))
        vectors = read_vectors(
            database, self.archive.objectives, f"{_OPEN} OR number >= ?", (numbers, new)
        )
        answered = sorted((row for row in rows if row.status is not None), key=_place)
        for row in answered:
            self._add(row, notes.get(row.number), vector_of(row, vectors))
            started, ended = times.get(row.number, (np.nan, np.nan))
            self._numbers.append(row.number)
            self._started.append(started)
            self._ended.append(ended)
        before = self.open
        self.open = {
            row.number: Open(row.number, row.point, times.get(row.number, (np.nan, np.nan))[0])
            for row in rows if row.status is None
        }  # fmt: skip
        self.last = max([self.last, *(row.number for row in rows)])
        restarts = [told + self.before for told in read_restarts(database)]
        changed = bool(answered) or self.open != before or restarts != self.archive.restarts
        self.archive.restarts = restarts
        self._read_state(database)
        self.history = self._view()
        return changed

    def choose(self, objective: int) -> None:
        """Let the history show one of several objectives; the first if there are not as many."""
        several = self.archive.objectives
        chosen = objective if several is not None and objective < len(several) else 0
        if chosen != self.objective:
            self.objective = chosen
            self.history = self._view()

    def _view(self) -> History:
        if self.archive.objectives is None:
            return History(self.archive)
        return _OneObjective(self.archive, self.objective)

    def _add(self, row: Row, notes: str | None, values: Values | None) -> None:
        self.archive.add(
            row.point, np.nan if row.value is None else float(row.value), row.status or OK,
            known=not row.paid, generation=row.generation, seconds=row.seconds or 0.0,
            error=row.error, values=values, notes=notes,
        )  # fmt: skip

    def _read_state(self, database: sqlite3.Connection) -> None:
        drawn = database.execute("SELECT drawn FROM state").fetchone()
        if drawn is not None and drawn[0] != self._kept:
            (counters,) = database.execute("SELECT counters FROM state").fetchone()
            self._kept, seconds = drawn[0], dict(json.loads(counters)).get("seconds")
            self.elapsed = None if seconds is None else float(seconds)


def _times(database: sqlite3.Connection, numbers: str, new: int) -> dict[int, tuple[float, float]]:
    """Return when open evaluations, and those from number `new` on, began and ended."""
    there = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'times'").fetchone()
    if there is None:
        return {}
    found = database.execute(
        f"SELECT number, started, ended FROM times WHERE {_OPEN} OR number >= ?", (numbers, new)
    )
    return {
        number: (float(started), np.nan if ended is None else float(ended))
        for number, started, ended in found
    }


def _place(row: Row) -> int:
    return -1 if row.place is None else row.place
