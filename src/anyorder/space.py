"""The search space: names, values, and their translation to the codes the optimiser works on."""

from __future__ import annotations

import json
import math
import operator
import reprlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from numbers import Number
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

_FORMAT, _VERSION = "anyorder-space", 1
_MOST = 2**31 - 1  # values of one variable: codes are int32
_INTS = (int, np.integer, np.bool_)
_brief = reprlib.Repr()
_brief.maxlist = _brief.maxtuple = _brief.maxdict = 6
_brief.maxstring = _brief.maxother = _brief.maxlong = 60
_short = _brief.repr


def _integer(value: Any, what: str, least: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{what} is {_short(value)}, expected an int")
    if least is not None and value < least:
        raise ValueError(f"{what} is {_short(value)}, expected at least {least}")
    return operator.index(value)


def _plain(value: Any) -> Any:
    """NumPy scalars become Python ones, in tuples too."""
    if isinstance(value, np.generic):
        return value.item()
    return tuple(map(_plain, value)) if type(value) is tuple else value


def _key(value: Any) -> tuple[Any, ...]:
    """A key that tells 1, 1.0 and True apart, in tuples too."""
    if isinstance(value, Number) and value != value:
        raise ValueError(f"value {value} is not allowed, expected any value but NaN")
    return (type(value), *map(_key, value)) if isinstance(value, tuple) else (type(value), value)


def _to_json(value: Any) -> Any:
    if type(value) is tuple:
        return [_to_json(v) for v in value]
    if value is None or type(value) in (bool, int, float, str):
        return value
    expected = "expected None, a bool, an int, a float, a str or a tuple of those"
    raise TypeError(f"value {_short(value)} cannot be written to JSON, {expected}")


def _from_json(value: Any) -> Any:
    return tuple(map(_from_json, value)) if isinstance(value, list) else value


class _Base:
    values: Any  # set through __dict__, like every attribute of these frozen classes
    ordered: ClassVar[bool] = False
    _fields: ClassVar[tuple[str, ...]] = ()  # what JSON keeps

    def __len__(self) -> int:
        return len(self.values)

    def index(self, value: Any) -> int:
        """Code of `value`; ValueError if it is not one of the values."""
        code = self._find(value)
        if code is None:
            raise ValueError(f"{_short(_plain(value))} is not a value of {self!r}")
        return code

    def _find(self, value: Any) -> int | None:
        known = isinstance(value, _INTS) and self.values[0] <= value <= self.values[-1]
        return int(value) - int(self.values[0]) if known else None


@dataclass(frozen=True)
class Binary(_Base):
    """A variable that is False or True; 0 and 1 are understood too."""

    values = (False, True)


@dataclass(frozen=True, init=False, repr=False)
class Categorical(_Base):
    """A variable that takes one of several values in no particular order.

    Parameters
    ----------
    values : iterable of hashable
        At least one, all different; 1, 1.0 and True are different. Their order fixes the codes:
        give a list rather than a set, whose order changes from run to run.
    """

    values: tuple[Hashable, ...]
    _fields = ("values",)
    _codes: dict[tuple[Any, ...], int]

    def __init__(self, values: Iterable[Any]) -> None:
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise TypeError(f"values is {_short(values)}, expected a list of values")
        plain = tuple(map(_plain, values))
        codes: dict[tuple[Any, ...], int] = {}
        for code, value in enumerate(plain):
            try:
                first = codes.setdefault(_key(value), code)
            except TypeError:
                why = "is not hashable, expected one that is"
                raise TypeError(f"value {_short(value)} {why}") from None
            if first != code:
                raise ValueError(f"value {_short(value)} is repeated, expected distinct values")
        if not plain:
            raise ValueError("values is empty, expected at least one value")
        self.__dict__.update(values=plain, _codes=codes)

    def __repr__(self) -> str:
        return f"Categorical({_short(list(self.values))})"

    def __hash__(self) -> int:
        return hash((len(self), self.values[0], self.values[-1]))  # cheap: spaces hash variables

    def _find(self, value: Any) -> int | None:
        value = _plain(value)
        try:
            code = self._codes.get(_key(value))
            if code is None:  # 1.0 finds 1, unless True is a value too
                equal = [c for c, v in enumerate(self.values) if v == value]
                code = equal[0] if len(equal) == 1 else None
            return code
        except TypeError:  # not hashable
            return None


@dataclass(frozen=True, repr=False)
class Integer(_Base):
    """An ordered variable: the integers from `low` to `high`, both included."""

    low: int
    high: int
    ordered: ClassVar[bool] = True
    _fields = ("low", "high")

    def __post_init__(self) -> None:
        low, high = _integer(self.low, "low"), _integer(self.high, "high")
        if not 0 <= high - low < _MOST:
            expected = f"expected low <= high and at most {_MOST} values"
            raise ValueError(f"low is {_short(low)} and high is {_short(high)}, {expected}")
        self.__dict__.update(low=low, high=high, values=range(low, high + 1))

    def __repr__(self) -> str:
        return f"Integer({self.low}, {self.high})"


Variable = Binary | Categorical | Integer
_KINDS: dict[str, Any] = {"binary": Binary, "categorical": Categorical, "integer": Integer}


def _read(entry: Any) -> tuple[str | None, Variable, int]:
    """Name, variable and number of repeats of an entry of a document."""
    if not isinstance(entry, Mapping):
        raise TypeError("expected an object")
    fields = {key: _from_json(value) for key, value in entry.items()}
    kind, name = fields.pop("type", None), fields.pop("name", None)
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name is {_short(name)}, expected a str")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"type is {_short(kind)}, expected one of {', '.join(_KINDS)}")
    count = _integer(fields.pop("repeat", 1), "repeat", 1)
    return name, _KINDS[kind](**fields), count


@dataclass(frozen=True, init=False, repr=False)
class Space:
    """The variables of a problem.

    Parameters
    ----------
    variables : mapping of str to variable, or iterable of variables
        With names, points are dicts. Without, points are integer vectors, and every value must
        be an integer.

    Attributes
    ----------
    variables, names : tuple
        In order; `names` is None in a nameless space.
    cardinalities : int32 array
        Number of values of each variable.
    ordered : bool array
        Whether each variable is ordered.

    Examples
    --------
    >>> space = Space({"cache": Binary(), "depth": Integer(1, 8)})
    >>> space.encode([{"cache": True, "depth": 3}])
    array([[1, 2]], dtype=int32)
    """

    variables: tuple[Variable, ...]
    names: tuple[str, ...] | None
    cardinalities: NDArray[np.int32] = field(compare=False)
    ordered: NDArray[np.bool_] = field(compare=False)
    # Nameless: value = code + low, but for tables: columns, their values, what sorts the values.
    _low: NDArray[np.int64] = field(compare=False)
    _tables: list[tuple[list[int], NDArray[np.int64], NDArray[np.intp]]] = field(compare=False)

    @overload
    def __init__(self, variables: Mapping[str, Variable]) -> None: ...
    @overload
    def __init__(self, variables: Iterable[Variable]) -> None: ...
    def __init__(self, variables: Mapping[str, Variable] | Iterable[Variable]) -> None:
        if not isinstance(variables, Iterable):
            raise TypeError(f"variables is {_short(variables)}, expected a dict or a list")
        names = tuple(variables) if isinstance(variables, Mapping) else None
        found = tuple(variables.values() if isinstance(variables, Mapping) else variables)
        if not found:
            raise ValueError("variables is empty, expected at least one variable")
        for label, variable in zip(names or range(len(found)), found, strict=True):
            if names and not (isinstance(label, str) and label):
                raise ValueError(f"name {_short(label)} is not a non-empty str, as expected")
            if not isinstance(variable, Variable):
                expected = "expected a Binary, Categorical or Integer"
                raise TypeError(f"variable {label!r} is {_short(variable)}, {expected}")
        cardinalities = np.array([len(v) for v in found], dtype=np.int32)
        ordered = np.array([v.ordered for v in found], dtype=np.bool_)
        cardinalities.flags.writeable = ordered.flags.writeable = False
        self.__dict__.update(variables=found, names=names)
        self.__dict__.update(cardinalities=cardinalities, ordered=ordered)
        if names is None:
            self._tabulate()

    def _tabulate(self) -> None:
        groups: dict[Variable, list[int]] = {}
        for j, variable in enumerate(self.variables):
            groups.setdefault(variable, []).append(j)
        low, tables = np.empty(len(self), dtype=np.int64), []
        for variable, columns in groups.items():
            values: Any = variable.values
            if not isinstance(variable, Categorical):
                values = int(values[0]), int(values[-1])
            for value in values:
                if type(value) is not int or not -(2**63) <= value < 2**63:
                    expected = "expected 64-bit integers only: give the variables names"
                    raise ValueError(f"variable {columns[0]} has value {_short(value)}, {expected}")
            low[columns] = values[0]
            if isinstance(variable, Categorical) and any(b - a != 1 for a, b in pairwise(values)):
                table = np.array(values, dtype=np.int64)
                tables.append((columns, table, np.argsort(table)))
        self.__dict__.update(_low=low, _tables=tables)

    def _runs(self) -> list[tuple[str | None, Variable, int]]:
        pairs = zip(self.names or [None] * len(self), self.variables, strict=True)
        return [(*pair, len(list(run))) for pair, run in groupby(pairs)]

    def __len__(self) -> int:
        return len(self.variables)

    def __repr__(self) -> str:
        shown, runs = [], self._runs()
        for name, variable, count in runs[:8]:
            times = f" * {count}" if count > 1 else ""
            shown.append(f"{_short(name)}: {variable}" if name else f"[{variable}]{times}")
        shown += [f"... ({len(self)} variables)"] if len(runs) > 8 else []
        return f"Space({{{', '.join(shown)}}})" if self.names else f"Space({' + '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        names, variables = self.names, self.variables
        return Space, (dict(zip(names, variables, strict=True)) if names else variables,)

    @classmethod
    def binary(cls, n: int) -> Space:
        """`n` nameless binary variables."""
        return cls([Binary()] * _integer(n, "n", 1))

    @classmethod
    def categorical(cls, n: int, d: int) -> Space:
        """`n` nameless variables that each take the values 0 to `d` - 1 in no order."""
        return cls([Categorical(range(_integer(d, "d", 1)))] * _integer(n, "n", 1))

    @property
    def named(self) -> bool:
        """Whether the variables have names, and so points are dicts."""
        return self.names is not None

    @property
    def size(self) -> int:
        """Exact number of points."""
        return math.prod(map(len, self.variables))

    def encode(self, points: Iterable[Any]) -> NDArray[np.int32]:
        """Codes of a batch of points, one row each.

        `points` is a sequence of dicts (named) or an integer matrix or sequence of integer
        vectors (nameless). An error names the point by its position in the batch.
        """
        if isinstance(points, Mapping) or not isinstance(points, Iterable):
            raise TypeError(f"points is {_short(points)}, expected a sequence of points")
        if self.named or not hasattr(points, "__array__"):
            rows = [self._row(i, point) for i, point in enumerate(points)]
            return np.array(rows, dtype=np.int32).reshape(-1, len(self))
        matrix = self._matrix(points, "points")
        values = matrix.astype(np.int64)
        codes = (values - self._low).clip(0, self.cardinalities - 1)
        for columns, table, order in self._tables:
            ranks = np.searchsorted(table, values[:, columns], sorter=order)
            codes[:, columns] = order[ranks.clip(max=len(order) - 1)]
        for i in np.flatnonzero((self._values(codes) != matrix).any(axis=1)):
            self._row(int(i), matrix[i])  # raises
        return codes.astype(np.int32)

    def decode(self, codes: Any) -> list[dict[str, Any]] | NDArray[np.int64]:
        """Points of a matrix of codes: a list of dicts (named) or an int64 matrix (nameless)."""
        empty = np.shape(codes) == (0,)
        matrix = self._matrix(np.empty((0, len(self)), int) if empty else codes, "codes")
        for i, j in np.argwhere((matrix < 0) | (matrix >= self.cardinalities)):
            label, code = self.names[j] if self.names else int(j), int(matrix[i, j])
            expected = f"expected 0 to {self.cardinalities[j] - 1}"
            raise ValueError(f"point {i}, variable {label!r}: code is {code}, {expected}")
        if self.names is None:
            return self._values(matrix)
        tables = [variable.values for variable in self.variables]
        rows = ([t[c] for t, c in zip(tables, row, strict=True)] for row in matrix.tolist())
        return [dict(zip(self.names, row, strict=True)) for row in rows]

    def one(self, codes: Any) -> dict[str, Any] | NDArray[np.int64]:
        """The point of one vector of codes: a dict (named) or an int64 vector (nameless)."""
        return self.decode(np.asarray(codes)[None])[0]

    def _row(self, i: int, point: Any) -> list[int]:
        labels: Sequence[Any] = self.names or range(len(self))
        if self.names:
            if not isinstance(point, Mapping):
                raise TypeError(f"point {i} is {_short(point)}, expected a dict")
            if missing := [name for name in labels if name not in point]:
                raise ValueError(f"point {i} lacks {_short(missing)}, expected every variable")
            if len(point) > len(self):
                unknown = [name for name in point if name not in labels]
                known = f"expected only {_short(labels)}"
                raise ValueError(f"point {i} has unexpected {_short(unknown)}, {known}")
        else:
            point = np.asarray(point).tolist() if hasattr(point, "__array__") else point
            expected = f"expected a vector of {len(self)} integers"
            if not isinstance(point, Sequence):
                raise TypeError(f"point {i} is {_short(point)}, {expected}")
            if len(point) != len(self):
                raise ValueError(f"point {i} has length {len(point)}, {expected}")
        codes = []
        for label, variable in zip(labels, self.variables, strict=True):
            value = point[label]
            try:
                if not self.names and not isinstance(value, _INTS):
                    raise ValueError(f"{_short(_plain(value))} is not an integer")
                codes.append(variable.index(value))
            except ValueError as error:
                raise ValueError(f"point {i}, variable {label!r}: {error}") from None
        return codes

    def _matrix(self, values: Any, what: str) -> NDArray[Any]:
        array: NDArray[Any] = np.asarray(values)
        if array.dtype.kind not in "biu" or array.shape[1:] != (len(self),):
            got = f"{array.dtype} of shape {array.shape}"
            raise ValueError(f"{what} are {got}, expected integers of shape (m, {len(self)})")
        return array

    def _values(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        codes = codes.astype(np.int64)
        values = codes + self._low
        for columns, table, _ in self._tables:
            values[:, columns] = table[codes[:, columns]]
        return values

    def to_dict(self) -> dict[str, Any]:
        """JSON-able description that `from_dict` reads."""
        entries = []
        for name, variable, count in self._runs():
            entry: dict[str, Any] = {"name": name} if name else {}
            entry["type"] = type(variable).__name__.lower()
            entry |= {key: _to_json(getattr(variable, key)) for key in variable._fields}
            entries.append(entry | ({"repeat": count} if count > 1 else {}))
        return {"format": _FORMAT, "version": _VERSION, "variables": entries}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Space:
        """The space that `to_dict` described."""
        if not isinstance(document, Mapping) or document.get("format") != _FORMAT:
            raise ValueError(f"{_short(document)} is not a space, expected format {_FORMAT!r}")
        version, entries = document.get("version"), document.get("variables")
        if type(version) is not int or not 1 <= version <= _VERSION:
            expected = f"expected 1 to {_VERSION}: a newer anyorder may have written this"
            raise ValueError(f"version is {_short(version)}, {expected}")
        if not isinstance(entries, list) or not entries:
            raise ValueError(f"variables is {_short(entries)}, expected a non-empty list")
        names: list[str | None] = []
        variables: list[Variable] = []
        for j, entry in enumerate(entries):
            try:
                name, variable, count = _read(entry)
            except (TypeError, ValueError, RecursionError) as error:
                raise ValueError(f"entry {j} of variables, {_short(entry)}: {error}") from None
            names += [name] * count
            variables += [variable] * count
        labels = [name for name in names if name is not None]
        if not labels:
            return cls(variables)
        if len(labels) < len(names):
            raise ValueError(f"variable {names.index(None)} has no name, expected all or none to")
        named = dict(zip(labels, variables, strict=True))
        if len(named) < len(labels):
            twice = next(name for name in labels if labels.count(name) > 1)
            raise ValueError(f"name {_short(twice)} is repeated, expected distinct names")
        return cls(named)

    def to_json(self) -> str:
        """JSON text that `from_json` reads; TypeError if a value cannot be written exactly."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Space:
        """The space that `to_json` wrote."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{_short(text)} is not JSON: {error}") from None
        return cls.from_dict(document)
