"""What is known before a run: points with their values, in all forms in which users have them.

(points, values)   points as the function receives them, and a number for each
a DataFrame        a column for each variable, and one called "value"
a CSV file         the same, as `anyorder show --output` and `Result.to_pandas` write it
a History          the history of an earlier run, or of a study (`anyorder.load`); or a Result
"""

from __future__ import annotations

import base64
import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import did_you_mean, numbers, short
from anyorder._internal.sqlite import is_database
from anyorder.archive import DATA, Archive, Codes
from anyorder.archive.history import History, columns
from anyorder.archive.objectives import Floats, Objectives, Values
from anyorder.errors import FAILED, OK, REJECTED, STATUSES
from anyorder.space import Space
from anyorder.space.packing import Packing
from anyorder.space.variables import Variable

_EXPECTED = (
    "expected (points, values), a DataFrame, a History, a Result, or the path of a CSV file or "
    "of a study"
)


class Data(NamedTuple):
    """Points that were measured before a run."""

    codes: Codes
    values: npt.NDArray[np.float64]  # (rows, k) with k objectives; NaN where the status is not "ok"
    statuses: npt.NDArray[np.uint8]

    def value(self, row: int) -> tuple[float, Values | None]:
        """Return the value in a row, and with several objectives the first of them and all."""
        found = self.values[row].tolist()
        if isinstance(found, float):
            return found, None
        return found[0], tuple(found) if self.statuses[row] == OK else None

    def add_to(self, archive: Archive) -> None:
        """Add the data to an archive; they do not count as evaluations."""
        for row, key in enumerate(archive.packing.pack(self.codes)):
            value, values = self.value(row)
            status = int(self.statuses[row])
            archive.add(key, value, status, known=True, generation=DATA, values=values)

    def to_json(self, space: Space) -> dict[str, Any]:
        """Return what a study stores of the data."""
        return {
            "points": pack(space, self.codes),
            "values": [None if np.isnan(value).any() else value.tolist() for value in self.values],
            "statuses": self.statuses.tolist(),
        }

    @classmethod
    def from_json(
        cls, space: Space, document: Mapping[str, Any], objectives: Objectives | None = None
    ) -> Data:
        """Return the data stored in a study; ValueError or TypeError if they are damaged."""
        codes = unpack(space, document["points"])
        values = _read_values(document["values"], len(codes), objectives)
        statuses = np.array(document["statuses"], np.uint8)
        missing = np.isnan(values.reshape(len(codes), -1)).any(axis=1)
        if statuses.shape != missing.shape or ((statuses == OK) == missing).any():
            raise ValueError("its data are damaged")
        return cls(codes, values, statuses)


class Known(NamedTuple):
    """What is known before a run: points to evaluate first, and data."""

    start: Codes | None
    data: Data | None

    def to_json(self, space: Space) -> dict[str, Any]:
        """Return what a study stores of what was known before the run."""
        return {
            "start": None if self.start is None else pack(space, self.start),
            "data": None if self.data is None else self.data.to_json(space),
        }

    @classmethod
    def from_json(cls, space: Space, settings: Mapping[str, Any]) -> Known:
        """Return what a study stores as known before it; early studies have neither entry."""
        objectives = Objectives.from_json(settings.get("objectives"))
        start, data = settings.get("start"), settings.get("data")
        return cls(
            None if start is None else unpack(space, start),
            None if data is None else Data.from_json(space, data, objectives),
        )


def pack(space: Space, codes: Codes) -> str:
    """Return points as text."""
    return base64.b64encode(b"".join(Packing(space).pack(codes))).decode()


def unpack(space: Space, text: str) -> Codes:
    """Return the points that `pack` packed; raise a ValueError if they are not in the space."""
    packing, packed = Packing(space), base64.b64decode(text, validate=True)
    if len(packed) % packing.width:
        raise ValueError("points are truncated")
    codes = packing.unpack(packed)
    if (codes >= space.cardinalities).any():
        raise ValueError("there are points outside the space")
    return codes


def is_study(data: Any) -> bool:
    """Return whether `data` is the path of a study, or of another SQLite file."""
    if not isinstance(data, str | os.PathLike) or not Path(data).is_file():
        return False
    return is_database(Path(data))


def as_batch(points: Any, space: Space) -> Any:
    """Return a batch of points unchanged, and a single point (dict or integers) as a batch."""
    single = isinstance(points, Mapping)
    if not space.named and isinstance(points, Sequence | np.ndarray):
        single = len(points) > 0 and all(np.isscalar(entry) for entry in points)
    return [points] if single else points


def read_points(what: str, points: Any, space: Space) -> Codes:
    """Return one or many points as codes; errors begin with `what`."""
    try:
        return space.encode(as_batch(points, space))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what}: {error}") from None


def _read_values(values: Any, count: int, objectives: Objectives | None) -> Floats:
    """Return a value, or a row of values, for each point; NaN where an evaluation failed."""
    if objectives is None:
        return numbers(values, count, nan=True)
    rows = objectives.unnamed.rows_of(values, count)
    return np.array(rows, np.float64).reshape(count, len(objectives))


def read_data(data: Any, space: Space, objectives: Objectives | None = None) -> Data:
    """Return data in any of the forms above as `Data`; errors say in one line what is wrong."""
    if isinstance(data, Data):
        return data
    history = getattr(data, "history", data)  # a Result has one
    if isinstance(history, History):
        return _of_history(history, space, objectives)
    if is_study(data):
        raise ValueError(f"data is {str(data)!r}, a study: pass anyorder.load({str(data)!r})")
    if isinstance(data, str | os.PathLike):
        return _of_table(_read_csv(data), space, f"data file {os.fspath(data)}", objectives)
    if hasattr(data, "columns") and hasattr(data, "to_dict"):
        table = {str(name): list(column) for name, column in data.to_dict("list").items()}
        return _of_table(table, space, "data", objectives)
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise TypeError(f"data is {short(data)}, {_EXPECTED}")
    points, values = data
    codes = read_points("data", points, space)
    try:
        if objectives is None:
            found = numbers(values, len(codes), nan=True)
        else:
            rows = objectives.rows_of(values, len(codes))
            found = np.array(rows, np.float64).reshape(len(codes), len(objectives))
    except (TypeError, ValueError) as error:
        raise type(error)(f"data: {error}") from None
    return Data(codes, found, _statuses(found))


def _statuses(values: Floats) -> npt.NDArray[np.uint8]:
    missing = np.isnan(values.reshape(len(values), -1)).any(axis=1)
    return np.where(missing, FAILED, OK).astype(np.uint8)


def _of_history(history: History, space: Space, objectives: Objectives | None) -> Data:
    """Return what was evaluated in an earlier run, and the data which that run was given."""
    had = history.objectives
    if (had and had.names) != (objectives and objectives.names):
        raise ValueError(
            f"data has {'one objective' if had is None else f'the objectives {had}'}, and this run "
            f"has {'one' if objectives is None else f'{objectives}'}: pass (points, values)"
        )
    measured = ~history.cached | (history.generations == DATA)
    rows = np.flatnonzero(measured & (history.statuses != REJECTED))
    points: Any = history.points
    points = [points[k] for k in rows] if isinstance(points, list) else points[rows]
    return Data(read_points("data", points, space), history.values[rows], history.statuses[rows])


# --- tables -------------------------------------------------------------------------------------


def _read_csv(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    where = os.fspath(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file, strict=True) if row]
    except FileNotFoundError:
        raise ValueError(f"data is {where!r}, and there is no such file") from None
    except OSError as error:  # a folder, or a file that may not be read
        raise ValueError(f"data is {where!r}, which cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"data file {where} is no CSV table: {error}") from None
    if not rows:
        raise ValueError(f"data file {where} is empty, expected a header and lines")
    header = [name.strip() for name in rows[0]]
    for k, row in enumerate(rows[1:], 1):
        if len(row) != len(header):
            raise ValueError(
                f"data file {where}, row {k}: {len(row)} entries, expected {len(header)}"
            )
    return {name: [row[j].strip() for row in rows[1:]] for j, name in enumerate(header)}


def _of_table(
    table: Mapping[str, Sequence[Any]], space: Space, what: str, objectives: Objectives | None
) -> Data:
    names = columns(space)
    measured = ("value",) if objectives is None else objectives.names
    for name in (*names, *measured):
        if name not in table:
            hint = did_you_mean(name, table) or f": it has {short([*table])}"
            if len(table) == 1:
                hint = f": it has one, {short(*table)}, expected commas between columns"
            raise ValueError(f"{what} has no column {name!r}{hint}")
    rows = [k for k in range(len(table[measured[0]])) if _is_measured(table, k)]
    codes = np.empty((len(rows), len(space)), np.int32)
    for j, (name, variable) in enumerate(zip(names, space.columns, strict=True)):
        try:
            texts = variable.texts()
        except ValueError as error:
            raise ValueError(f"column {name!r}: {error}") from None
        for i, k in enumerate(rows):
            try:
                codes[i, j] = _code(variable, texts, table[name][k])
            except ValueError as error:
                raise ValueError(f"{what}, row {k + 1}, column {name!r}: {error}") from None
    for group in space.groups:
        for i in np.flatnonzero(~group.valid(codes[:, group.columns])).tolist():
            place = names[group.first].rpartition("[")[0]
            raise ValueError(f"{what}, row {rows[i] + 1}: {place!r} is no value of its variable")
    if space.conditional:
        present = space.present(codes.clip(0))
        for i, j in np.argwhere(present & (codes < 0)).tolist():
            missing = f"row {rows[i] + 1}, column {names[j]!r}: there is no value"
            raise ValueError(f"{what}, {missing}, expected one of every variable that is present")
        codes = space.canonical(codes.clip(0))
    found = [[_value(what, k, table[name][k]) for name in measured] for k in rows]
    values = np.array(found, np.float64).reshape(len(rows), len(measured))
    bad = ~np.isfinite(values) if objectives else np.isnan(values)
    failed = np.asarray(bad.any(axis=1))
    values[failed] = np.nan
    values = values if objectives else values[:, 0]
    statuses = np.where(failed, FAILED, OK).astype(np.uint8)
    if "status" in table:
        told = [str(table["status"][k]) for k in rows]
        known = [STATUSES.index(word) if word in STATUSES else OK for word in told]
        statuses = np.where(failed & (np.array(known, np.uint8) != OK), known, statuses)
    return Data(codes, values, statuses.astype(np.uint8))


def _is_measured(table: Mapping[str, Sequence[Any]], k: int) -> bool:
    """Return whether a row is an evaluation, as every row is unless the table says otherwise."""
    cached = "cached" in table and str(table["cached"][k]) == "True"
    before = "generation" in table and str(table["generation"][k]) == str(DATA)
    rejected = "status" in table and str(table["status"][k]) == STATUSES[REJECTED]
    return not rejected and (before or not cached)


def _code(variable: Variable, texts: Mapping[str, int], value: Any) -> int:
    """Return the code of a value, or of its text; -1 where an inactive variable has none."""
    try:
        return variable.index(value)
    except ValueError:
        if (code := texts.get(str(value))) is not None:
            return code
        if variable.when is not None and (value is None or str(value) in ("", "nan")):
            return -1
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        for other in _as_numbers(number):
            try:
                return variable.index(other)
            except ValueError:
                continue
        raise


def _as_numbers(number: float) -> Iterable[float]:
    if math.isfinite(number):
        yield number
        if number == int(number):
            yield int(number)


def _value(what: str, k: int, value: Any) -> float:
    """Return the value in a row; NaN, a failed evaluation, if the entry is empty."""
    if value is None or value == "":
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{what}, row {k + 1}: the value is {short(value)}, expected a number"
        ) from None
