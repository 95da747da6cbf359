"""Every answer of a run, in arrays that grow, with constant-time look-up of points.

The archive is the memory of a run. The cache, the means of repeated noisy values and the incumbent
come from it; `Result.history` is a view of it, and a study is its durable form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.errors import OK, STATUSES
from anyorder.space import Space
from anyorder.space.packing import Packing

Codes = npt.NDArray[np.int32]

DATA = -1  # the generation of what was known before the run
_FIRST_SIZE = 64
# A row is an answer, a point is a distinct point. Together with its key and its slot in the
# look-up table an evaluation of 64 bits takes about 65 bytes, twice that just after growing.
_ROW: dict[str, np.dtype[Any]] = {
    "point": np.dtype(np.int32),
    "value": np.dtype(np.float64),
    "status": np.dtype(np.uint8),
    "known": np.dtype(np.bool_),
    "generation": np.dtype(np.int64),
    "seconds": np.dtype(np.float64),
}
_POINT: dict[str, np.dtype[Any]] = {
    "first": np.dtype(np.int32),  # the row of its first evaluation; -1 before any
    "count": np.dtype(np.int32),  # evaluations that gave a value
    "mean": np.dtype(np.float64),  # of those values
}


class Archive:
    """The answers of a run, in the order in which they were told.

    Parameters
    ----------
    space
        That of the points.
    direction
        "maximize" or "minimize": which values are better.
    deterministic
        False: repeated values of a point are averaged, and the incumbent is the point with the
        best mean.

    Attributes
    ----------
    evaluations, failures
        How many answers were evaluations, and how many of those gave no value. The others were
        known, or rejected by the constraint.
    distinct
        How many points have been evaluated.
    improved
        After how many evaluations the best value was last improved.
    restarts
        After how many answers the strategy started again, each time.
    errors
        What went wrong, by row.
    """

    def __init__(
        self, space: Space, direction: str = "maximize", *, deterministic: bool = True
    ) -> None:
        self.space, self.direction, self.deterministic = space, direction, deterministic
        self.packing = Packing(space)
        self.sign = 1.0 if direction == "maximize" else -1.0
        self.evaluations = self.failures = self.distinct = self.improved = 0
        self.restarts: list[int] = []
        self.errors: dict[int, str] = {}
        self._rows = {name: np.empty(_FIRST_SIZE, dtype) for name, dtype in _ROW.items()}
        self._points = {name: np.empty(_FIRST_SIZE, dtype) for name, dtype in _POINT.items()}
        self._size = 0
        self._keys = bytearray()
        self._known_points = 0  # of self._points
        self._table = np.full(2 * _FIRST_SIZE, -1, np.int32)  # open addressing, linear probing
        self._best = -1  # a point
        self._record = -np.inf  # the best score ever told
        self._stale = False  # whether the best mean may have become worse

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<Archive: {len(self)} answers, {self.evaluations} evaluations>"

    # --- reading --------------------------------------------------------------------------------

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The value of each row, NaN where there is none."""
        return self.column("value")

    @property
    def scores(self) -> npt.NDArray[np.float64]:
        """The same, so that more is better."""
        return self.sign * self.column("value")

    @property
    def codes(self) -> Codes:
        """The points of all rows, `(len, n)`."""
        return self.codes_of(self.column("point"))

    def column(self, name: str) -> npt.NDArray[Any]:
        """A column of all rows: point, value, status, known, generation or seconds."""
        view: npt.NDArray[Any] = self._rows[name][: self._size]
        view.flags.writeable = False
        return view

    def codes_of(self, points: npt.NDArray[np.integer]) -> Codes:
        """The codes of points, by their numbers."""
        width = self.packing.width
        keys = np.frombuffer(bytes(self._keys), np.uint8).reshape(-1, width)
        return self.packing.unpack(keys[points].tobytes())

    def lookup(self, key: bytes) -> tuple[int, float] | None:
        """Status and value of a point when it was first evaluated; None if it never was."""
        point = self._find(key)
        if point < 0:
            return None
        row = self._points["first"].item(point)
        if row < 0:
            return None
        return self._rows["status"].item(row), self._rows["value"].item(row)

    def error(self, key: bytes) -> str | None:
        """What went wrong when a point was first evaluated, if anything did."""
        point = self._find(key)
        return None if point < 0 else self.errors.get(self._points["first"].item(point))

    def mean(self, key: bytes) -> float:
        """The mean of a point's values; NaN if it has none."""
        point = self._find(key)
        if point < 0 or not self._points["count"][point]:
            return np.nan
        return float(self._points["mean"][point])

    @property
    def best(self) -> Codes | None:
        """The incumbent, the first of equals; None before any value."""
        self._refresh()
        return None if self._best < 0 else self.codes_of(np.array([self._best]))[0]

    @property
    def best_value(self) -> float:
        """Its value, or the mean of its values; the worst infinity before any."""
        self._refresh()
        return self.sign * -np.inf if self._best < 0 else self._points["mean"].item(self._best)

    # --- writing --------------------------------------------------------------------------------

    def add(
        self,
        key: bytes,
        value: float,
        status: int = OK,
        *,
        known: bool = False,
        generation: int = 0,
        seconds: float = 0.0,
        error: str | None = None,
    ) -> None:
        """Append an answer; `key` is the point as `packing` packs it.

        `known` says that nothing was evaluated: the value was known, or the point was rejected. The
        generation `DATA` marks what was measured before the run.
        """
        row, rows = self._size, self._rows
        if row == len(rows["value"]):
            self._rows = rows = {name: _grown(column) for name, column in rows.items()}
        point = self._find(key)
        if point < 0:
            point = self._insert(key)
        rows["point"][row] = point
        rows["value"][row] = value
        rows["status"][row] = status
        rows["known"][row] = known
        rows["generation"][row] = generation
        rows["seconds"][row] = seconds
        self._size = row + 1
        if error is not None:
            self.errors[row] = error
        measured = not known or generation == DATA
        if not known:
            self.evaluations += 1
            self.failures += status != OK
        if measured and self._points["first"].item(point) < 0:
            self._points["first"][point] = row
            self.distinct += 1
        if status == OK:
            self._count(point, value, measured)

    def _count(self, point: int, value: float, measured: bool) -> None:
        """Update the mean of a point, and the incumbent."""
        counts, means = self._points["count"], self._points["mean"]
        count = counts.item(point)
        if not count:
            counts[point], means[point] = 1, value
        elif measured and not self.deterministic:
            counts[point] = count + 1
            mean = means.item(point)
            if value != mean:  # equal values have exactly this mean
                # not sum / count: the sum of large values overflows
                value = mean * (count / (count + 1)) + value / (count + 1)
                means[point] = value
            self._stale = self._stale or point == self._best
        score = self.sign * value
        if score > self._record:
            self._record, self.improved = score, self.evaluations
        if self._stale:
            return  # the incumbent is looked for when it is wanted
        if self._best < 0 or score > self.sign * means.item(self._best):
            if not count or not self.deterministic:
                self._best = point
            elif score > self.sign * means.item(point):  # evaluated again, and better
                means[point], self._best = value, point

    def _refresh(self) -> None:
        """Find the incumbent again after its mean has changed."""
        if self._stale:
            # the mean of infinities of both signs is NaN
            means = self.sign * self._points["mean"][: self._known_points]
            have = (self._points["count"][: self._known_points] > 0) & ~np.isnan(means)
            first = int(np.where(have, means, -np.inf).argmax())
            self._best, self._stale = first if have[first] else int(have.argmax()), False
            if not have.any():
                self._best = -1

    # --- the look-up table ----------------------------------------------------------------------

    def _find(self, key: bytes) -> int:
        """The number of a point, or -1."""
        keys, table, width = self._keys, self._table, len(key)
        mask = len(table) - 1
        slot = hash(key) & mask
        while (point := table.item(slot)) >= 0:
            if keys[point * width : (point + 1) * width] == key:
                return point
            slot = (slot + 1) & mask
        return -1

    def _insert(self, key: bytes) -> int:
        if len(key) != self.packing.width:
            raise ValueError(f"a point has {len(key)} bytes, expected {self.packing.width}")
        point = self._known_points
        if point == len(self._points["first"]):
            self._points = {name: _grown(column) for name, column in self._points.items()}
        self._points["first"][point], self._points["count"][point] = -1, 0
        self._points["mean"][point] = np.nan
        self._keys += key
        self._known_points = point + 1
        if 2 * self._known_points > len(self._table):
            self._table = np.full(2 * len(self._table), -1, np.int32)
            width = len(key)
            for k in range(self._known_points):
                self._place(bytes(self._keys[k * width : (k + 1) * width]), k)
        else:
            self._place(key, point)
        return point

    def _place(self, key: bytes, point: int) -> None:
        mask = len(self._table) - 1
        slot = hash(key) & mask
        while self._table.item(slot) >= 0:
            slot = (slot + 1) & mask
        self._table[slot] = point

    # --- state ----------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        # hashes of bytes differ from process to process
        return {"space": self.space, "direction": self.direction,
                "deterministic": self.deterministic, "state": self.state()}  # fmt: skip

    def __setstate__(self, kept: Mapping[str, Any]) -> None:
        self.__init__(  # type: ignore[misc]
            kept["space"], kept["direction"], deterministic=kept["deterministic"]
        )
        self.restore(kept["state"])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """All answers, as arrays."""
        width = self.packing.width
        keys = np.frombuffer(bytes(self._keys), np.uint8).reshape(-1, width)
        rows = np.array(list(self.errors), np.int64)
        return {
            **{name: self.column(name).copy() for name in _ROW if name != "point"},
            "points": keys[self.column("point")],
            "restarts": np.array(self.restarts, np.int64),
            "error_rows": rows,
            "error_texts": np.array([self.errors[k] for k in rows], np.str_),
        }

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add the answers that `state` holds; ValueError if they do not fit."""
        try:
            points = _typed(state, "points", np.dtype(np.uint8), 2)
            columns = {name: _typed(state, name, dtype) for name, dtype in _ROW.items()
                       if name != "point"}  # fmt: skip
            if any(len(column) != len(points) for column in columns.values()):
                raise ValueError("columns differ in length")
            if points.shape[1] != self.packing.width:
                raise ValueError("its points are of another space")
            if (self.packing.unpack(points.tobytes()) >= self.space.cardinalities).any():
                raise ValueError("there are points outside the space")
            status = columns["status"]
            if (status >= len(STATUSES)).any():
                raise ValueError("there are unknown statuses")
            if ((status == OK) == np.isnan(columns["value"])).any():
                raise ValueError("statuses and values do not agree")
            restarts = _typed(state, "restarts", np.dtype(np.int64)).tolist()
            rows = _typed(state, "error_rows", np.dtype(np.int64)).tolist()
            if any(not 0 <= told <= len(points) for told in (*restarts, *rows)):
                raise ValueError("there are restarts or errors of rows that do not exist")
            texts = np.asarray(state["error_texts"], np.str_).tolist()
            errors = dict(zip(rows, texts, strict=True))
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"the archive of the state is damaged: {error}") from error
        listed = {name: column.tolist() for name, column in columns.items()}
        for k, point in enumerate(points):
            self.add(
                point.tobytes(), listed["value"][k], listed["status"][k], known=listed["known"][k],
                generation=listed["generation"][k], seconds=listed["seconds"][k],
                error=errors.get(k),
            )  # fmt: skip
        self.restarts += restarts


def _typed(
    state: Mapping[str, npt.NDArray[Any]], name: str, dtype: np.dtype[Any], ndim: int = 1
) -> npt.NDArray[Any]:
    array = np.asarray(state[name])
    if array.dtype != dtype or array.ndim != ndim:
        raise ValueError(f"{name!r} holds {array.dtype} of shape {array.shape}")
    return array


def _grown(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    grown = np.empty(2 * len(column), column.dtype)
    grown[: len(column)] = column
    return grown
