"""The search space: names, values, and their translation to the codes the optimiser works on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from anyorder._checks import integer, short
from anyorder.space.conditions import Conditions, Draw
from anyorder.space.groups import Group
from anyorder.space.variables import (
    INTS,
    Binary,
    Categorical,
    Float,
    Integer,
    Variable,
    plain,
    read_variable,
)

_FORMAT, _VERSION = "anyorder-space", 2
_NEWER = {"step", "log", "when"}  # what version 1 does not have, nor the type "float"


def _is_missing(point: Any, label: Any, variable: Variable) -> bool:
    """Whether a point has no value of a variable; None may stand for none."""
    return label not in point or (point[label] is None and variable._find(None) is None)


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
    conditional : bool
        Whether some variables are present in some points only.

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
    _conditions: Conditions | None = field(compare=False)
    groups: ClassVar[tuple[Group, ...]] = ()
    # Nameless: value = code * step + low, but for tables: columns, their values, what sorts them.
    _low: NDArray[np.int64] = field(compare=False)
    _step: NDArray[np.int64] = field(compare=False)
    _tables: list[tuple[list[int], NDArray[np.int64], NDArray[np.intp]]] = field(compare=False)

    @overload
    def __init__(self, variables: Mapping[str, Variable]) -> None: ...
    @overload
    def __init__(self, variables: Iterable[Variable]) -> None: ...
    def __init__(self, variables: Mapping[str, Variable] | Iterable[Variable]) -> None:
        if not isinstance(variables, Iterable):
            raise TypeError(f"variables is {short(variables)}, expected a dict or a list")
        names = tuple(variables) if isinstance(variables, Mapping) else None
        found = tuple(variables.values() if isinstance(variables, Mapping) else variables)
        if not found:
            raise ValueError("variables is empty, expected at least one variable")
        for label, variable in zip(names or range(len(found)), found, strict=True):
            if names and not (isinstance(label, str) and label):
                raise ValueError(f"name {short(label)} is not a non-empty str, as expected")
            if not isinstance(variable, Variable):
                expected = "expected a Binary, Categorical, Integer or Float"
                raise TypeError(f"variable {label!r} is {short(variable)}, {expected}")
        conditions = None
        if any(variable.when is not None for variable in found):
            if names is None:
                raise ValueError("a condition requires names: give the variables names")
            conditions = Conditions(names, found)
            found = tuple(conditions.variables)
        cardinalities = np.array([len(v) for v in found], dtype=np.int32)
        ordered = np.array([v.ordered for v in found], dtype=np.bool_)
        cardinalities.flags.writeable = ordered.flags.writeable = False
        self.__dict__.update(variables=found, names=names, _conditions=conditions)
        self.__dict__.update(cardinalities=cardinalities, ordered=ordered)
        if names is None:
            self._tabulate()

    def _tabulate(self) -> None:
        groups: dict[Variable, list[int]] = {}
        for j, variable in enumerate(self.variables):
            groups.setdefault(variable, []).append(j)
        low, step, tables = np.empty(len(self), np.int64), np.ones(len(self), np.int64), []
        for variable, columns in groups.items():
            values: Any = variable.values
            if isinstance(variable, Binary | Integer):
                values = int(values[0]), int(values[-1])
            elif isinstance(variable, Float):
                values = (variable.low,)  # refused
            for value in values:
                if type(value) is not int or not -(2**63) <= value < 2**63:
                    expected = "expected 64-bit integers only: give the variables names"
                    raise ValueError(f"variable {columns[0]} has value {short(value)}, {expected}")
            low[columns] = values[0]
            if isinstance(variable, Integer) and len(variable) > 1:
                step[columns] = variable.step
            if isinstance(variable, Categorical) and any(b - a != 1 for a, b in pairwise(values)):
                table = np.array(values, dtype=np.int64)
                tables.append((columns, table, np.argsort(table)))
        self.__dict__.update(_low=low, _step=step, _tables=tables)

    def _runs(self) -> list[tuple[str | None, Variable, int]]:
        pairs = zip(self.names or [None] * len(self), self.variables, strict=True)
        return [(*pair, len(list(run))) for pair, run in groupby(pairs)]

    def __len__(self) -> int:
        return len(self.variables)

    def __repr__(self) -> str:
        shown, runs = [], self._runs()
        for name, variable, count in runs[:8]:
            times = f" * {count}" if count > 1 else ""
            shown.append(f"{short(name)}: {variable}" if name else f"[{variable}]{times}")
        shown += [f"... ({len(self)} variables)"] if len(runs) > 8 else []
        return f"Space({{{', '.join(shown)}}})" if self.names else f"Space({' + '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        names, variables = self.names, self.variables
        return Space, (dict(zip(names, variables, strict=True)) if names else variables,)

    @classmethod
    def binary(cls, n: int) -> Space:
        """`n` nameless binary variables."""
        return cls([Binary()] * integer("n", n, 1))

    @classmethod
    def categorical(cls, n: int, d: int) -> Space:
        """`n` nameless variables that each take the values 0 to `d` - 1 in no order."""
        return cls([Categorical(range(integer("d", d, 1)))] * integer("n", n, 1))

    @property
    def named(self) -> bool:
        """Whether the variables have names, and so points are dicts."""
        return self.names is not None

    @property
    def conditional(self) -> bool:
        """Whether some variables are present in some points only."""
        return self._conditions is not None

    @cached_property
    def size(self) -> int:
        """Exact number of combinations of values; with conditions there are fewer points."""
        return math.prod(map(len, self.variables))

    @cached_property
    def points(self) -> int:
        """Exact number of points; `size` if conditions have too many cases to count."""
        return self.size if self._conditions is None else self._conditions.points()

    def present(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Which variables `(m, n)` the points of valid codes `(m, n)` have."""
        if self._conditions is None:
            return np.ones(np.shape(codes), np.bool_)
        return self._conditions.settle(np.array(codes))

    def canonical(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Valid codes `(m, n)` with those of absent variables set to 0."""
        if self._conditions is None:
            return codes
        self._conditions.settle(codes := codes.copy())
        return codes

    def completed(
        self, codes: NDArray[np.int32], own: NDArray[np.bool_], draw: Draw
    ) -> NDArray[np.int32]:
        """The same, with new values for variables that are present and have none of their `own`.

        `draw(j, count)` gives that many codes of variable j.
        """
        if self._conditions is not None:
            self._conditions.settle(codes := codes.copy(), own, draw)
        return codes

    def encode(self, points: Iterable[Any]) -> NDArray[np.int32]:
        """Codes of a batch of points, one row each.

        `points` is a sequence of dicts (named) or an integer matrix or sequence of integer
        vectors (nameless). An error names the point by its position in the batch.
        """
        if isinstance(points, Mapping) or not isinstance(points, Iterable):
            raise TypeError(f"points is {short(points)}, expected a sequence of points")
        if self.named or not hasattr(points, "__array__"):
            rows = [self._row(i, point) for i, point in enumerate(points)]
            codes = np.array(rows, dtype=np.int32).reshape(-1, len(self))
            if self._conditions is None:
                return codes
            present = self._conditions.settle(known := codes.clip(0))
            for i, j in np.argwhere(present & (codes < 0)):
                name, expected = (self.names or ())[j], "expected every variable that is present"
                raise ValueError(f"point {i} lacks {name!r}, {expected}")
            return known
        matrix = self._matrix(points, "points")
        values = matrix.astype(np.int64)
        # of a value that is too small the unsigned difference is large, and not found below
        above = (values.view(np.uint64) - self._low.view(np.uint64)) // self._step.view(np.uint64)
        codes = np.minimum(above, (self.cardinalities - 1).astype(np.uint64)).astype(np.int64)
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
        points = [dict(zip(self.names, row, strict=True)) for row in rows]
        if self.conditional:
            for point, here in zip(points, self.present(matrix).tolist(), strict=True):
                for name, is_here in zip(self.names, here, strict=True):
                    if not is_here:
                        del point[name]
        return points

    def point(self, codes: NDArray[np.int32]) -> dict[str, Any] | NDArray[np.int64]:
        """`one` for codes that are known to be valid, without checking them again."""
        if self.conditional:
            return self.one(codes)
        if self.names is not None:
            row = codes.tolist()
            values = [v.values[c] for v, c in zip(self.variables, row, strict=True)]
            return dict(zip(self.names, values, strict=True))
        if not self._tables:
            return codes * self._step + self._low
        point: NDArray[np.int64] = self._values(codes[None])[0]
        return point

    def one(self, codes: Any) -> dict[str, Any] | NDArray[np.int64]:
        """The point of one vector of codes: a dict (named) or an int64 vector (nameless)."""
        return self.decode(np.asarray(codes)[None])[0]

    def brief(self, codes: NDArray[np.int32]) -> str:
        """The point of one vector of codes for a message; of many variables the first few."""
        point = self.point(codes)
        if isinstance(point, dict):
            words = [f"{short(name)}: {short(value)}" for name, value in point.items()]
            most, (left, right) = 6, "{}"
        else:
            words = list(map(str, point.tolist()))
            most, (left, right) = 32, "[]"
        more = [f"... ({len(words)} variables)"] if len(words) > most else []
        return f"{left}{', '.join(words[:most] + more)}{right}"

    def _row(self, i: int, point: Any) -> list[int]:
        labels: Sequence[Any] = self.names or range(len(self))
        if self.names:
            if not isinstance(point, Mapping):
                raise TypeError(f"point {i} is {short(point)}, expected a dict")
            if not self.conditional and (missing := [n for n in labels if n not in point]):
                raise ValueError(f"point {i} lacks {short(missing)}, expected every variable")
            if len(point) > len(self) or (self.conditional and not point.keys() <= set(labels)):
                unknown = [name for name in point if name not in labels]
                known = f"expected only {short(labels)}"
                raise ValueError(f"point {i} has unexpected {short(unknown)}, {known}")
        else:
            point = np.asarray(point).tolist() if hasattr(point, "__array__") else point
            expected = f"expected a vector of {len(self)} integers"
            if not isinstance(point, Sequence):
                raise TypeError(f"point {i} is {short(point)}, {expected}")
            if len(point) != len(self):
                raise ValueError(f"point {i} has length {len(point)}, {expected}")
        codes = []
        for label, variable in zip(labels, self.variables, strict=True):
            if self.conditional and _is_missing(point, label, variable):
                codes.append(-1)  # absent, which `encode` finds out
                continue
            value = point[label]
            try:
                if not self.names and not isinstance(value, INTS):
                    raise ValueError(f"{short(plain(value))} is not an integer")
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
        values = codes * self._step + self._low
        for columns, table, _ in self._tables:
            values[:, columns] = table[codes[:, columns]]
        return values

    def to_dict(self) -> dict[str, Any]:
        """JSON-able description that `from_dict` reads."""
        entries = []
        for name, variable, count in self._runs():
            entry: dict[str, Any] = {"name": name} if name else {}
            entry |= variable.to_dict()
            entries.append(entry | ({"repeat": count} if count > 1 else {}))
        newer = any(entry["type"] == "float" or entry.keys() & _NEWER for entry in entries)
        version = _VERSION if newer else 1  # so that others read what they can
        return {"format": _FORMAT, "version": version, "variables": entries}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Space:
        """The space that `to_dict` described."""
        if not isinstance(document, Mapping) or document.get("format") != _FORMAT:
            raise ValueError(f"{short(document)} is not a space, expected format {_FORMAT!r}")
        version, entries = document.get("version"), document.get("variables")
        if type(version) is not int or not 1 <= version <= _VERSION:
            expected = f"expected 1 to {_VERSION}: a newer anyorder may have written this"
            raise ValueError(f"version is {short(version)}, {expected}")
        if not isinstance(entries, list) or not entries:
            raise ValueError(f"variables is {short(entries)}, expected a non-empty list")
        names: list[str | None] = []
        variables: list[Variable] = []
        for j, entry in enumerate(entries):
            try:
                name, variable, count = read_variable(entry)
            except (TypeError, ValueError, RecursionError) as error:
                raise ValueError(f"entry {j} of variables, {short(entry)}: {error}") from None
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
            raise ValueError(f"name {short(twice)} is repeated, expected distinct names")
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
            raise ValueError(f"{short(text)} is not JSON: {error}") from None
        return cls.from_dict(document)
