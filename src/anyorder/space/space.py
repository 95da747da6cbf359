"""The search space: names, values, and their translation to the codes that strategies work on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from anyorder._internal import markup
from anyorder._internal.checks import integer, short
from anyorder.space import document
from anyorder.space.conditions import Conditions, Draw
from anyorder.space.groups import ListGroup
from anyorder.space.lists import List, lay_out
from anyorder.space.variables import INTS, Binary, Categorical, Variable, plain

_SHOWN = 50  # the most rows in the table that a notebook shows


@dataclass(frozen=True, init=False, repr=False)
class Space:
    """The variables of a problem.

    Codes have a column for each variable, or for each item of a list such as a `Permutation` or a
    `Subset`. The length of a space is its number of columns.

    Parameters
    ----------
    variables : mapping of str to variable, or iterable of variables
        A mapping gives the variables names, and points are dicts. Otherwise points are integer
        vectors, and every value must be an integer.

    Attributes
    ----------
    variables, names : tuple
        The variables and their names, in order; `names` is None in a nameless space.
    columns, labels : tuple
        The variable and the label of each column: "tour[0]" is the first place of a permutation
        "tour". In a space without lists they equal `variables` and `names`.
    groups : tuple of ListGroup
        The columns of each list.
    cardinalities : int32 array
        The number of values of each column.
    ordered : bool array
        Whether each column is ordered.
    conditional : bool
        Whether some variables are only present in some points.

    Examples
    --------
    >>> space = Space({"cache": Binary(), "depth": Integer(1, 8)})
    >>> space.encode([{"cache": True, "depth": 3}])
    array([[1, 2]], dtype=int32)
    """

    variables: tuple[Variable | List, ...]
    names: tuple[str, ...] | None
    columns: tuple[Variable, ...] = field(compare=False)
    labels: tuple[str, ...] | None = field(compare=False)
    groups: tuple[ListGroup, ...] = field(compare=False)
    cardinalities: NDArray[np.int32] = field(compare=False)
    ordered: NDArray[np.bool_] = field(compare=False)
    _firsts: tuple[int, ...] = field(compare=False)  # the first column of each variable
    _conditions: Conditions | None = field(compare=False)
    # Nameless spaces: value = code * step + low, except for tables: columns, their values, sorting
    # order.
    _low: NDArray[np.int64] = field(compare=False)
    _step: NDArray[np.int64] = field(compare=False)
    _tables: list[tuple[list[int], NDArray[np.int64], NDArray[np.intp]]] = field(compare=False)

    @overload
    def __init__(self, variables: Mapping[str, Variable | List]) -> None: ...
    @overload
    def __init__(self, variables: Iterable[Variable]) -> None: ...
    def __init__(self, variables: Mapping[str, Variable | List] | Iterable[Variable]) -> None:
        if not isinstance(variables, Iterable):
            raise TypeError(f"variables is {short(variables)}, expected a dict or a list")
        names = tuple(variables) if isinstance(variables, Mapping) else None
        found = tuple(variables.values() if isinstance(variables, Mapping) else variables)
        if not found:
            raise ValueError("variables is empty, expected at least one variable")
        for label, variable in zip(names or range(len(found)), found, strict=True):
            if names and not (isinstance(label, str) and label):
                raise ValueError(f"name {short(label)} is not a non-empty str, as expected")
            if not isinstance(variable, Variable | List):
                *kinds, last = (kind.__name__ for kind in document.KINDS.values())
                expected = f"a {', '.join(kinds)} or {last}"
                if isinstance(variable, list | tuple | range):
                    expected += f", such as anyorder.Categorical({short(variable)})"
                raise TypeError(f"variable {label!r} is {short(variable)}, expected {expected}")
            if isinstance(variable, List) and names is None:
                raise ValueError(f"variable {label} is a list: give the variables names")
        columns, labels, firsts, groups = lay_out(names, found)
        conditions = None
        if any(variable.when is not None for variable in columns):
            if labels is None:
                raise ValueError("a condition requires names: give the variables names")
            parts = zip(names or (), found, firsts, strict=True)
            lists = [entry for entry in parts if isinstance(entry[1], List)]
            conditions = Conditions(labels, columns, lists)
            columns = tuple(conditions.variables)
            found = tuple(
                variable if isinstance(variable, List) else columns[first]
                for variable, first in zip(found, firsts, strict=True)
            )
        cardinalities = np.array([len(v) for v in columns], dtype=np.int32)
        ordered = np.array([v.ordered for v in columns], dtype=np.bool_)
        cardinalities.flags.writeable = ordered.flags.writeable = False
        self.__dict__.update(variables=found, names=names, _conditions=conditions)
        self.__dict__.update(columns=columns, labels=labels, groups=groups, _firsts=firsts)
        self.__dict__.update(cardinalities=cardinalities, ordered=ordered)
        if names is None:
            self._tabulate()

    def _tabulate(self) -> None:
        kinds: dict[Variable, list[int]] = {}
        for j, variable in enumerate(self.columns):
            kinds.setdefault(variable, []).append(j)
        low, step, tables = np.empty(len(self), np.int64), np.ones(len(self), np.int64), []
        for variable, columns in kinds.items():
            values = variable.integers()
            known = isinstance(values, range)
            for value in (values[0], values[-1]) if known else values:
                if type(value) is not int or not -(2**63) <= value < 2**63:
                    expected = "expected 64-bit integers only: give the variables names"
                    raise ValueError(f"variable {columns[0]} has value {short(value)}, {expected}")
            low[columns] = values[0]
            if isinstance(values, range) and len(values) > 1:
                step[columns] = values.step
            elif any(b - a != 1 for a, b in pairwise(values)):
                table = np.array(values, dtype=np.int64)
                tables.append((columns, table, np.argsort(table)))
        self.__dict__.update(_low=low, _step=step, _tables=tables)

    def _runs(self) -> list[tuple[str | None, Variable | List, int]]:
        pairs = zip(self.names or [None] * len(self.variables), self.variables, strict=True)
        return [(*pair, len(list(run))) for pair, run in groupby(pairs)]

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        shown, runs = [], self._runs()
        for name, variable, count in runs[:8]:
            times = f" * {count}" if count > 1 else ""
            shown.append(f"{short(name)}: {variable}" if name else f"[{variable}]{times}")
        shown += [f"... ({len(self.variables)} variables)"] if len(runs) > 8 else []
        return f"Space({{{', '.join(shown)}}})" if self.names else f"Space({' + '.join(shown)})"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: a row for each variable, or several equal ones."""
        runs = self._runs()
        rows: list[tuple[Any, ...]] = []
        for name, variable, count in runs[:_SHOWN]:
            rows.append((name or f"{count} times", type(variable).__name__, variable))
        if len(runs) > _SHOWN:
            rows.append(("...", "", f"{len(self.variables)} variables"))
        points = self.points
        size = f"{points:,}" if points < 10**9 else f"10^{len(str(points)) - 1}"
        title = f"{len(self.variables)} variables, {size} points"
        return markup.panel(title, markup.table(rows, ["variable", "kind", "values"]))

    def __reduce__(self) -> tuple[Any, ...]:
        names, variables = self.names, self.variables
        return Space, (dict(zip(names, variables, strict=True)) if names else variables,)

    @classmethod
    def binary(cls, n: int) -> Space:
        """Return the space of `n` nameless binary variables."""
        return cls([Binary()] * integer("n", n, 1))

    @classmethod
    def categorical(cls, n: int, d: int) -> Space:
        """Return the space of `n` nameless, unordered variables with the values 0 to `d` - 1."""
        return cls([Categorical(range(integer("d", d, 1)))] * integer("n", n, 1))

    @property
    def named(self) -> bool:
        """Whether the variables have names, so that points are dicts."""
        return self.names is not None

    @cached_property
    def conditional(self) -> bool:
        """Whether some variables are only present in some points."""
        return self._conditions is not None

    @cached_property
    def redundant(self) -> bool:
        """Whether codes may need `canonical`, because of conditions or lists."""
        return self._conditions is not None or bool(self.groups)

    @cached_property
    def _plain(self) -> bool:
        """Whether codes equal values, as they do for binary variables."""
        return not self._tables and bool((self._step == 1).all() and (self._low == 0).all())

    @cached_property
    def _widths(self) -> tuple[int, ...]:
        """The number of columns of each variable."""
        ends = (*self._firsts[1:], len(self))
        return tuple(end - first for first, end in zip(self._firsts, ends, strict=True))

    @cached_property
    def size(self) -> int:
        """The exact number of combinations of values; with conditions there are fewer points."""
        return math.prod(variable.points() for variable in self.variables)

    @cached_property
    def points(self) -> int:
        """The exact number of points; `size` if conditions have too many cases to count them."""
        if self._conditions is None:
            return self.size
        if self.groups and any(callable(v.when) for v in self.columns):
            return self.size  # a condition may depend on a list in any way
        lists = [v for v in self.variables if isinstance(v, List)]
        combinations = math.prod(len(v) for part in lists for v in part.columns())
        return self._conditions.points() // combinations * math.prod(v.points() for v in lists)

    def present(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which variables are present, `(m, n)`, in the points of valid codes `(m, n)`."""
        if self._conditions is None:
            return np.ones(np.shape(codes), np.bool_)
        return self._conditions.settle(np.array(codes))

    def canonical(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the codes of points for any codes `(m, n)` that are in range.

        Absent variables are set to 0. Lists are made valid: items that are repeated, or too many,
        are replaced from the end.
        """
        if not self.redundant:
            return codes
        codes = codes.copy()
        for group in self.groups:
            codes[:, group.columns] = group.repair(codes[:, group.columns])
        if self._conditions is not None:
            self._conditions.settle(codes)
        return codes

    def complete(
        self, codes: NDArray[np.int32], own: NDArray[np.bool_], draw: Draw
    ) -> NDArray[np.int32]:
        """Return the codes with new values for present variables without a value of their `own`.

        `draw(j, count)` returns `count` codes of variable j.
        """
        if self._conditions is not None:
            self._conditions.settle(codes := codes.copy(), own, draw)
        return codes

    def encode(self, points: Iterable[Any]) -> NDArray[np.int32]:
        """Return the codes of a batch of points, one row each.

        `points` is a sequence of dicts for a named space, or else an integer matrix or a sequence
        of integer vectors. Errors name the point by its position in the batch.
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
                name, expected = (self.labels or ())[j], "expected every variable that is present"
                raise ValueError(f"point {i} lacks {name!r}, {expected}")
            return known
        matrix = self._matrix(points, "points")
        values = matrix.astype(np.int64)
        # if a value is too small, the unsigned difference is large, and not found below
        above = (values.view(np.uint64) - self._low.view(np.uint64)) // self._step.view(np.uint64)
        codes = np.minimum(above, (self.cardinalities - 1).astype(np.uint64)).astype(np.int64)
        for columns, table, order in self._tables:
            ranks = np.searchsorted(table, values[:, columns], sorter=order)
            codes[:, columns] = order[ranks.clip(max=len(order) - 1)]
        for i in np.flatnonzero((self._values(codes) != matrix).any(axis=1)):
            self._row(int(i), matrix[i])  # raises the error
        return codes.astype(np.int32)

    def decode(self, codes: Any) -> list[dict[str, Any]] | NDArray[np.int64]:
        """Return the points of a matrix of codes: a list of dicts, or an int64 matrix."""
        empty = np.shape(codes) == (0,)
        matrix = self._matrix(np.empty((0, len(self)), int) if empty else codes, "codes")
        if (wrong := (matrix < 0) | (matrix >= self.cardinalities)).any():
            i, j = np.argwhere(wrong)[0]
            label, code = self.labels[j] if self.labels else int(j), int(matrix[i, j])
            expected = f"expected 0 to {self.cardinalities[j] - 1}"
            raise ValueError(f"point {i}, variable {label!r}: code is {code}, {expected}")
        if self.names is None:
            return self._values(matrix)
        for group in self.groups:
            for i in np.flatnonzero(~group.valid(matrix[:, group.columns])).tolist():
                name = self.names[self._firsts.index(group.first)]
                found = short(matrix[i, group.columns].tolist())
                raise ValueError(f"point {i}, variable {name!r}: codes {found} are no value of it")
        points = [self._named_point(row) for row in matrix.tolist()]
        if self.conditional:
            for point, here in zip(points, self.present(matrix).tolist(), strict=True):
                for name, first in zip(self.names, self._firsts, strict=True):
                    if not here[first]:
                        del point[name]
        return points

    def _named_point(self, row: list[int]) -> dict[str, Any]:
        """Return the point of a row of codes, as if every variable were present."""
        names = self.names or ()
        if not self.groups:
            return {n: v.values[c] for n, v, c in zip(names, self.columns, row, strict=True)}
        point: dict[str, Any] = {}
        for name, variable, first, width in zip(
            names, self.variables, self._firsts, self._widths, strict=True
        ):
            point[name] = variable.value(row[first : first + width])
        return point

    def point(self, codes: NDArray[np.int32]) -> dict[str, Any] | NDArray[np.int64]:
        """Return the point of codes that are known to be valid; `one` checks them first."""
        if self.conditional:
            return self.one(codes)
        if self.names is not None:
            return self._named_point(codes.tolist())
        if self._plain:
            return codes.astype(np.int64)
        if not self._tables:
            return codes * self._step + self._low
        point: NDArray[np.int64] = self._values(codes[None])[0]
        return point

    def one(self, codes: Any) -> dict[str, Any] | NDArray[np.int64]:
        """Return the point of one vector of codes: a dict, or an int64 vector without names."""
        return self.decode(np.asarray(codes)[None])[0]

    def brief(self, codes: NDArray[np.int32]) -> str:
        """Return the point of one vector of codes for a message, shortened if it is long."""
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
            if len(point) > len(labels) or (self.conditional and not point.keys() <= set(labels)):
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
        codes: list[int] = []
        for label, variable in zip(labels, self.variables, strict=True):
            if self.conditional and (label not in point or variable.lacks(point[label])):
                codes += [-1] * len(variable.columns())
                continue  # it is absent, which `encode` detects
            value = point[label]
            try:
                if not self.names and not isinstance(value, INTS):
                    raise ValueError(f"{short(plain(value))} is not an integer")
                codes += variable.codes(value)
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
        """Return a description that JSON can hold and `from_dict` reads."""
        return document.write(self._runs())

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Space:
        """Return the space that a description from `to_dict` describes."""
        return cls(document.read(description))

    def to_json(self) -> str:
        """Return JSON text that `from_json` reads; TypeError if a value has no exact form."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Space:
        """Return the space in a JSON text from `to_json`."""
        try:
            description = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{short(text)} is not JSON: {error}") from None
        return cls.from_dict(description)
