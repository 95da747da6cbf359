"""All answers of a run, in arrays that grow, with look-up of points in constant time.

The archive is the memory of a run. The cache, the means of repeated noisy values and the incumbent
come from it; `Result.history` is a view of it, and a study is its durable form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.archive.hypervolume import NonDominated
from anyorder.archive.notes import from_json, pack_notes, unpack_notes
from anyorder.archive.objectives import Objectives, Values
from anyorder.errors import OK, STATUSES
from anyorder.space import Space
from anyorder.space.packing import Packing

Codes = npt.NDArray[np.int32]

# Generations of points that no strategy proposed: known before the run; measured again at its end
# to find the answer; and measured once more to say how good the answer is (`run/confirm.py`).
DATA, CONFIRM, CLAIM = -1, -2, -3
FREEDOM = 3  # with so many degrees of freedom the noise counts as known
_FIRST_SIZE = 64
# A row is an answer, and a point is a distinct point. With its key and its slot in the look-up
# table an evaluation of 64 bits takes about 200 bytes.
_ROW: dict[str, np.dtype[Any]] = {
    "point": np.dtype(np.int32),
    "value": np.dtype(np.float64),
    "status": np.dtype(np.uint8),
    "known": np.dtype(np.bool_),
    "generation": np.dtype(np.int64),
    "seconds": np.dtype(np.float64),
}
_POINT: dict[str, np.dtype[Any]] = {
    "first": np.dtype(np.int32),  # the row of the first evaluation of the point; -1 before any
    "count": np.dtype(np.int32),  # evaluations of the point that gave a value
    "mean": np.dtype(np.float64),  # the mean of these values
    "squares": np.dtype(np.float64),  # the sum of squared differences of the values from their mean
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of the value of a point: the mean of its measurements, and its standard error.

    `point` is -1 where there is no point, and the error is None where it is not known.
    """

    point: int
    value: float
    count: int
    error: float | None


class Archive:
    """The answers of a run, in the order in which they were told.

    Parameters
    ----------
    space
        The space of the points.
    direction
        "maximize" or "minimize": which values are better.
    deterministic
        If False, repeated values of a point are averaged, and the incumbent is the point with the
        best mean.
    objectives
        The objectives of a function that has several. The archive then has a front and no
        incumbent, and its column "value" holds the first objective.

    Attributes
    ----------
    evaluations, failures
        The number of answers that were evaluations, and of evaluations that gave no value. Other
        answers were known before, or were rejected by the constraint.
    distinct
        The number of points that have been evaluated.
    improved
        The number of evaluations until the best value, or the front, was last improved.
    restarts
        The number of answers before each restart of the strategy.
    errors
        What went wrong, by row.
    notes
        What evaluations reported besides their values, as JSON, by row.
    """

    def __init__(
        self,
        space: Space,
        direction: str = "maximize",
        *,
        deterministic: bool = True,
        objectives: Objectives | None = None,
    ) -> None:
        self.space, self.direction, self.deterministic = space, direction, deterministic
        self.packing, self.objectives = Packing(space), objectives
        self.sign = 1.0 if direction == "maximize" else -1.0
        self.evaluations = self.failures = self.distinct = self.improved = 0
        self.restarts: list[int] = []
        self.errors: dict[int, str] = {}
        self.notes: dict[int, str] = {}
        self._rows = {name: np.empty(_FIRST_SIZE, dtype) for name, dtype in _ROW.items()}
        self._points = {name: np.empty(_FIRST_SIZE, dtype) for name, dtype in _POINT.items()}
        self._size = 0
        self._keys = bytearray()
        self._known_points = 0  # the first so many entries of self._points are in use
        self._numbers: dict[bytes, int] = {}  # the numbers of points, by their keys
        self._best = -1  # the number of the incumbent
        self._record = -np.inf  # the best score ever told
        self._stale = False  # whether the best mean may have become worse
        # With several objectives: all values by row, their means by point, and the best points.
        count = 0 if objectives is None else len(objectives)
        self._vectors = np.empty((_FIRST_SIZE if count else 0, count))
        self._means = np.empty((_FIRST_SIZE if count else 0, count))
        self._front = NonDominated(count)
        # of noisy values: the best means ever told, as the front depends on when it is looked at
        self._records = self._front if deterministic else NonDominated(count)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<Archive: {len(self)} answers, {self.evaluations} evaluations>"

    # --- reading --------------------------------------------------------------------------------

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The value of each row, NaN where there is none; `(len, k)` for k objectives."""
        if self.objectives is None:
            return self.column("value")
        view = self._vectors[: self._size]
        view.flags.writeable = False
        return view

    def scores(self, size: int) -> npt.NDArray[np.float64]:
        """Return a number for each of the first rows, higher is better.

        It is the value, or a mean over several objectives. For that mean each objective is scaled
        to its worst and best value in these rows, so that later rows change nothing.
        """
        if self.objectives is None:
            return self.sign * self.column("value")[:size]
        values = self.values[:size] * self.objectives.signs
        good = ~np.isnan(values).any(axis=1)
        if not good.any():
            return np.full(len(values), np.nan)
        low, high = values[good].min(axis=0), values[good].max(axis=0)
        scaled = (values - low) / np.where(high > low, high - low, 1.0)
        return np.asarray(scaled.mean(axis=1))

    @property
    def front(self) -> npt.NDArray[np.intp]:
        """The numbers of the points on the front of several objectives."""
        self._refresh()
        return np.array(self._front.items, np.intp)

    def on_front(self, rng: np.random.Generator) -> Codes | None:
        """Return a random point of the front; None before there is any value."""
        front = self.front
        return self.codes_of(front[rng.integers(len(front), size=1)])[0] if len(front) else None

    @property
    def front_values(self) -> npt.NDArray[np.float64]:
        """The values, or their means, of the front, `(points, k)`; higher is better."""
        self._refresh()
        return self._front.values

    @property
    def has_value(self) -> bool:
        """Whether any answer has a value."""
        return len(self.front) > 0 if self.objectives is not None else self.best is not None

    def describe(self) -> str:
        """Return the progress of the run in words: its best value, or the size of its front."""
        if self.objectives is not None:
            size = len(self.front)
            return f"a front of {size} point{'s' * (size != 1)}"
        return f"best {self.best_value:.6g}" if self.best is not None else "best none"

    @property
    def codes(self) -> Codes:
        """The points of all rows, `(len, n)`."""
        return self.codes_of(self.column("point"))

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column of all rows: point, value, status, known, generation or seconds."""
        view: npt.NDArray[Any] = self._rows[name][: self._size]
        view.flags.writeable = False
        return view

    def codes_of(self, points: npt.NDArray[np.integer]) -> Codes:
        """Return the codes of points, given by their numbers."""
        width = self.packing.width
        keys = np.frombuffer(bytes(self._keys), np.uint8).reshape(-1, width)
        return self.packing.unpack(keys[points].tobytes())

    def lookup(self, key: bytes) -> tuple[int, float] | None:
        """Return status and value of the first evaluation of a point; None if there is none."""
        point = self._numbers.get(key, -1)
        if point < 0:
            return None
        row = self._points["first"].item(point)
        if row < 0:
            return None
        return self._rows["status"].item(row), self._rows["value"].item(row)

    def vector(self, key: bytes) -> Values:
        """Return all values of a point, or their means if they are noisy; NaN if it has none."""
        point = self._numbers.get(key, -1)
        if point < 0 or not self._points["count"][point]:
            return (np.nan,) * self._means.shape[1]
        return tuple(self._means[point].tolist())

    def was_refused(self, key: bytes) -> bool:
        """Return whether a point was answered without an evaluation: the constraint rejected it."""
        point = self._numbers.get(key, -1)
        return point >= 0 and self._points["first"].item(point) < 0

    def error(self, key: bytes) -> str | None:
        """Return what went wrong at the first evaluation of a point; None if nothing did."""
        point = self._numbers.get(key, -1)
        return None if point < 0 else self.errors.get(self._points["first"].item(point))

    def notes_of(self, point: int) -> dict[str, Any] | None:
        """Return the last notes of an evaluation of a point; None if there are none."""
        rows = [row for row in self.notes if self._rows["point"][row] == point]
        return from_json(self.notes[max(rows)]) if rows else None

    def mean(self, key: bytes) -> float:
        """Return the mean of a point's values; NaN if it has none."""
        point = self._numbers.get(key, -1)
        if point < 0 or not self._points["count"][point]:
            return np.nan
        return float(self._points["mean"][point])

    @property
    def best(self) -> Codes | None:
        """The incumbent; of equally good points the first. None before there is any value."""
        self._refresh()
        return None if self._best < 0 else self.codes_of(np.array([self._best]))[0]

    @property
    def best_value(self) -> float:
        """The value of the incumbent, or its mean; the worst infinity before there is any value."""
        self._refresh()
        return self.sign * -np.inf if self._best < 0 else self._points["mean"].item(self._best)

    def number_of(self, key: bytes) -> int:
        """Return the number of a point; -1 if it has no answer."""
        return self._numbers.get(key, -1)

    def key_of(self, point: int) -> bytes:
        """Return the key of a point, given by its number."""
        width = self.packing.width
        return bytes(self._keys[point * width : (point + 1) * width])

    def measured(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return how often each point gave a value, and the means of these values."""
        points, size = self._points, self._known_points
        return points["count"][:size], points["mean"][:size]

    def noise(self, least: int = 1) -> float | None:
        """Return the standard deviation of repeated values of a point, or None.

        Parameters
        ----------
        least
            The degrees of freedom that are required: None is returned with fewer. Every value of a
            point after its first counts as one.
        """
        counts, squares = self._points["count"], self._points["squares"]
        repeated = counts[: self._known_points] > 1
        repeated &= np.isfinite(squares[: self._known_points])
        freedom = int((counts[: self._known_points][repeated] - 1).sum())
        if freedom < least:
            return None
        return math.sqrt(squares[: self._known_points][repeated].sum() / freedom)

    def answer(self) -> Estimate:
        """Return the best point that a run has found, with its estimated value.

        In a noisy run this is the point whose value was last measured for the final answer. Before
        that, it is the point with the best lower bound of its mean, or with the best mean while
        nothing is known about the noise.
        """
        if self.deterministic:
            best = self.best_value
            return Estimate(self._best, best, int(self._best >= 0), None)
        found = self._final_estimate() or next(iter(self.ranking(1)), None)
        return found or Estimate(-1, self.sign * -np.inf, 0, None)

    def ranking(self, most: int) -> list[Estimate]:
        """Return the points of a noisy run by the lower bounds of their means, best first."""
        counts, means = self.measured()
        noise = self.noise(FREEDOM) or 0.0
        points = np.flatnonzero((counts > 0) & ~np.isnan(means))
        bounds = self.sign * means[points] - noise / np.sqrt(counts[points])
        order = points[np.argsort(-bounds, kind="stable")[:most]].tolist()
        return [self._estimate(point, means.item(point), counts.item(point)) for point in order]

    def _final_estimate(self) -> Estimate | None:
        """Return the mean of the final measurements of the answer, or None if there are none."""
        generations = self.column("generation")
        searched = np.flatnonzero((generations >= 0) & ~self.column("known"))
        first = int(searched[-1]) + 1 if len(searched) else 0
        claims = (generations[first:] == CLAIM) & (self.column("status")[first:] == OK)
        rows = first + np.flatnonzero(claims)
        if not len(rows):
            return None
        point = self._rows["point"].item(rows[-1])
        values = self._rows["value"][rows[self._rows["point"][rows] == point]]
        mean = float((values / len(values)).sum())  # the sum of large values overflows
        return self._estimate(point, mean, len(values))

    def _estimate(self, point: int, value: float, count: int) -> Estimate:
        noise = self.noise()
        return Estimate(point, value, count, None if noise is None else noise / math.sqrt(count))

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
        values: Values | None = None,
        notes: str | None = None,
    ) -> None:
        """Append an answer; `key` is the point as `packing` packs it.

        With several objectives `values` holds all of them, and `value` is the first.

        `known` says that nothing was evaluated: the value was known, or the point was rejected. The
        generation `DATA` marks what was measured before the run.
        """
        row, rows = self._size, self._rows
        if row == len(rows["value"]):
            self._rows = rows = {name: _grow(column) for name, column in rows.items()}
            self._vectors = _grow(self._vectors)
        point = self._numbers.get(key, -1)
        if point < 0:
            point = self._insert(key)
        rows["point"][row] = point
        rows["value"][row] = value
        rows["status"][row] = status
        rows["known"][row] = known
        rows["generation"][row] = generation
        rows["seconds"][row] = seconds
        if self.objectives is not None:
            self._vectors[row] = np.nan if values is None else values
        self._size = row + 1
        if error is not None:
            self.errors[row] = error
        if notes is not None:
            self.notes[row] = notes
        measured = not known or generation == DATA
        if not known:
            self.evaluations += 1
            self.improved += generation in (CONFIRM, CLAIM)  # moved on: these do not try to improve
            self.failures += status != OK
        if measured and self._points["first"].item(point) < 0:
            self._points["first"][point] = row
            self.distinct += 1
        if status == OK and self.objectives is not None:
            self._count_all(point, self._vectors[row], measured)
        elif status == OK:
            self._count(point, value, measured)

    def _count(self, point: int, value: float, measured: bool) -> None:
        """Update the mean of a point, and the incumbent."""
        counts, means = self._points["count"], self._points["mean"]
        count = counts.item(point)
        if not count:
            counts[point], means[point], self._points["squares"][point] = 1, value, 0.0
        elif measured and not self.deterministic:
            counts[point] = count + 1
            mean = means.item(point)
            if value != mean:  # equal values have exactly this mean
                # not sum / count: the sum of large values overflows
                told = value
                value = mean * (count / (count + 1)) + value / (count + 1)
                means[point] = value
                self._points["squares"][point] += (told - mean) * (told - value)
            self._stale = self._stale or point == self._best
        score = self.sign * value
        if score > self._record:
            self._record, self.improved = score, self.evaluations
        if self._stale:
            return  # the incumbent is searched for when it is needed
        if self._best < 0 or score > self.sign * means.item(self._best):
            if not count or not self.deterministic:
                self._best = point
            elif score > self.sign * means.item(point):  # evaluated again, and better now
                means[point], self._best = value, point

    def _count_all(self, point: int, values: npt.NDArray[np.float64], measured: bool) -> None:
        """Update the means of a point of several objectives, and the front."""
        assert self.objectives is not None
        counts, means = self._points["count"], self._means
        count = counts.item(point)
        if not count:
            counts[point], means[point] = 1, values
            if not self._stale and not self.deterministic:
                self._front.add(point, values * self.objectives.signs)
        elif measured and not self.deterministic:
            counts[point] = count + 1
            means[point] += (values - means[point]) / (count + 1)
            self._stale = True
        else:
            return
        if self._records.add(point, means[point] * self.objectives.signs):
            self.improved = self.evaluations

    def _refresh(self) -> None:
        """Search for the incumbent, or the front, again after its mean has changed."""
        if self._stale and self.objectives is not None:
            self._stale, self._front = False, NonDominated(len(self.objectives))
            means = self._means * self.objectives.signs
            for point in np.flatnonzero(self._points["count"][: self._known_points]).tolist():
                self._front.add(point, means[point])
        elif self._stale:
            # the mean of infinities of both signs is NaN
            means = self.sign * self._points["mean"][: self._known_points]
            have = (self._points["count"][: self._known_points] > 0) & ~np.isnan(means)
            first = int(np.where(have, means, -np.inf).argmax())
            self._best, self._stale = first if have[first] else int(have.argmax()), False
            if not have.any():
                self._best = -1

    def _insert(self, key: bytes) -> int:
        """Add a point, and return its number."""
        if len(key) != self.packing.width:
            raise ValueError(f"a point has {len(key)} bytes, expected {self.packing.width}")
        point = self._known_points
        if point == len(self._points["first"]):
            self._points = {name: _grow(column) for name, column in self._points.items()}
            self._means = _grow(self._means)
        self._points["first"][point], self._points["count"][point] = -1, 0
        self._points["mean"][point] = np.nan
        self._keys += key
        self._known_points = point + 1
        self._numbers[key] = point
        return point

    # --- state ----------------------------------------------------------------------------------

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all answers as arrays."""
        width = self.packing.width
        keys = np.frombuffer(bytes(self._keys), np.uint8).reshape(-1, width)
        rows = np.array(list(self.errors), np.int64)
        several = {} if self.objectives is None else {"vectors": self.values.copy()}
        return {
            **several,
            **{name: self.column(name).copy() for name in _ROW if name != "point"},
            "points": keys[self.column("point")],
            "restarts": np.array(self.restarts, np.int64),
            "error_rows": rows,
            "error_texts": np.array([self.errors[k] for k in rows], np.str_),
            **({"notes": pack_notes(self.notes)} if self.notes else {}),
        }

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add the answers in `state`; raise a ValueError if they do not fit."""
        try:
            points = _read_column(state, "points", np.dtype(np.uint8), 2)
            columns = {name: _read_column(state, name, dtype) for name, dtype in _ROW.items()
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
            vectors = self._read_vectors(state, status)
            restarts = _read_column(state, "restarts", np.dtype(np.int64)).tolist()
            rows = _read_column(state, "error_rows", np.dtype(np.int64)).tolist()
            if any(not 0 <= told <= len(points) for told in (*restarts, *rows)):
                raise ValueError("there are restarts or errors of rows that do not exist")
            texts = np.asarray(state["error_texts"], np.str_).tolist()
            errors = dict(zip(rows, texts, strict=True))
            notes = {}
            if "notes" in state:
                packed = _read_column(state, "notes", np.dtype(np.uint8))
                notes = unpack_notes(packed, len(points))
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"the archive of the state is damaged: {error}") from error
        listed = {name: column.tolist() for name, column in columns.items()}
        for k, point in enumerate(points):
            self.add(
                point.tobytes(), listed["value"][k], listed["status"][k], known=listed["known"][k],
                generation=listed["generation"][k], seconds=listed["seconds"][k],
                error=errors.get(k), values=vectors[k], notes=notes.get(k),
            )  # fmt: skip
        self.restarts += restarts

    def _read_vectors(
        self, state: Mapping[str, npt.NDArray[Any]], status: npt.NDArray[Any]
    ) -> list[Any]:
        """Return the values of several objectives by row; None for every row with one objective."""
        if self.objectives is None:
            return [None] * len(status)
        vectors = _read_column(state, "vectors", np.dtype(np.float64), 2)
        if vectors.shape != (len(status), len(self.objectives)):
            raise ValueError("its values are of other objectives")
        if ((status == OK) != np.isfinite(vectors).all(axis=1)).any():
            raise ValueError("statuses and values do not agree")
        return list(map(tuple, vectors.tolist()))


def _read_column(
    state: Mapping[str, npt.NDArray[Any]], name: str, dtype: np.dtype[Any], ndim: int = 1
) -> npt.NDArray[Any]:
    array = np.asarray(state[name])
    if array.dtype != dtype or array.ndim != ndim:
        raise ValueError(f"{name!r} holds {array.dtype} of shape {array.shape}")
    return array


def _grow(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    grown = np.empty((2 * len(column), *column.shape[1:]), column.dtype)
    grown[: len(column)] = column
    return grown
