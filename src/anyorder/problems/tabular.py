"""Tables: problems with a measured value for each configuration."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from anyorder._internal.checks import did_you_mean, integer, number, short
from anyorder.problems.base import Kernel, Problem
from anyorder.problems.text_format import Line
from anyorder.space import Space
from anyorder.space.variables import Binary, Categorical, Integer, Variable

_MOST_DENSE = 1 << 22  # the most cells of a space whose table is an array, 32 MiB
_MOST_BYTES = 1 << 28  # the most bytes of a file: Python objects take about ten times as much
_MOST_COLUMNS = 10_000


class Tabular(Problem):
    """f(x) = the entry of a table for a configuration.

    Points are codes, as in every problem: the positions of the values of each variable. `space` has
    no names; `configuration` returns the values of a point.

    Parameters
    ----------
    space : the variables of the table.
    table : a mapping of configurations to numbers, or pairs of both; a configuration is a dict of a
        named space, or the values of all variables in order. Or an array with an axis for each
        variable, and NaN where there is no entry. Pairs of a space with more than 4 million points
        are looked up on the host; other tables are looked up on the device of a tensor.
    missing : the value of configurations without an entry; with None, evaluating one is an error.
    source : who measured the values, for `Problem.source`.

    Examples
    --------
    >>> space = Space({"cache": Binary(), "depth": Integer(1, 2)})
    >>> table = {(False, 1): 3.0, (False, 2): 5.0, (True, 1): 4.0, (True, 2): 4.5}
    >>> problem = Tabular(space, table)
    >>> problem([0, 1]), problem.configuration([0, 1])
    (5.0, {'cache': False, 'depth': 2})
    """

    def __init__(
        self,
        space: Space,
        table: Mapping[Any, float] | Iterable[tuple[Any, float]] | NDArray[Any],
        *,
        missing: float | None = None,
        name: str = "table(values)",
        seed: int | None = None,
        source: str = "the highest entry of the table",
    ) -> None:
        self.labels = space
        self.missing = None if missing is None else _finite("missing", missing)
        # One of both is set: an array with all points, or a dict of entries by the bytes of their
        # codes.
        self._dense: NDArray[np.float64] | None = None
        self._entries: dict[bytes, float] = {}
        self._radix: NDArray[np.int64] = np.zeros(0, np.int64)
        if isinstance(table, np.ndarray):
            values = self._from_array(table)
        else:
            values = self._from_pairs(table)
        if not len(values):
            raise ValueError("table is empty, expected at least one entry")
        self.complete = len(values) == space.size
        best = float(values.max())
        if self.missing is not None and not self.complete:
            best = max(best, self.missing)
            if self._dense is not None:
                self._dense[np.isnan(self._dense)] = self.missing
        super().__init__(
            name,
            Space([_use_codes(v) for v in space.columns]),
            seed=seed,
            optimum=best,
            source=source,
        )

    def configuration(self, point: Any) -> dict[str, Any] | NDArray[np.int64]:
        """Return the values of a point: a dict, or a vector if the table's space has no names."""
        return self.labels.one(point)

    @property
    def on_device(self) -> bool:
        """Whether a tensor is evaluated on its device, without a copy on the host."""
        # A missing entry must be noticed, which requires waiting for the device.
        whole = self.complete or self.missing is not None
        return super().on_device and self._dense is not None and whole

    def _from_array(self, table: NDArray[Any]) -> NDArray[np.float64]:
        shape = tuple(self.labels.cardinalities.tolist())
        if table.shape != shape or table.dtype.kind not in "biuf":
            got = f"{table.dtype} of shape {table.shape}"
            raise ValueError(f"table is {got}, expected numbers of shape {shape}")
        self._dense = table.astype(np.float64).ravel()
        if np.isinf(self._dense).any():
            raise ValueError("table holds an infinite value, expected finite ones")
        self._radix = _radix(self.labels)
        return self._dense[~np.isnan(self._dense)]

    def _from_pairs(
        self, table: Mapping[Any, float] | Iterable[tuple[Any, float]]
    ) -> NDArray[np.float64]:
        if not isinstance(table, Iterable):
            raise TypeError(f"table is {short(table)}, expected a mapping, pairs or an array")
        pairs = list(table.items() if isinstance(table, Mapping) else table)
        for k, pair in enumerate(pairs):
            if not isinstance(pair, Sequence) or len(pair) != 2:
                expected = "expected a configuration and its value"
                raise TypeError(f"entry {k} of table is {short(pair)}, {expected}")
        codes = self.labels.encode([self._add_names(configuration) for configuration, _ in pairs])
        values = [_finite(f"value {k}", value) for k, (_, value) in enumerate(pairs)]
        for (configuration, _), row, value in zip(pairs, codes, values, strict=True):
            first = self._entries.setdefault(row.tobytes(), value)
            if first != value:
                raise ValueError(
                    f"{short(configuration)} is {first:g} and again {value:g} in the table, "
                    "expected one value for each configuration"
                )
        found = np.array(list(self._entries.values()), dtype=np.float64)
        if self.labels.size <= _MOST_DENSE:
            self._radix = _radix(self.labels)
            self._dense = np.full(self.labels.size, np.nan)
            self._dense[codes @ self._radix] = values
            self._entries = {}
        return found

    def _add_names(self, configuration: Any) -> Any:
        names = self.labels.names
        if names is None or isinstance(configuration, Mapping):
            return configuration
        if not isinstance(configuration, Sequence | np.ndarray) or len(configuration) != len(names):
            expected = f"expected a dict, or values of {short(list(names))}"
            raise ValueError(f"configuration {short(configuration)} in the table, {expected}")
        return dict(zip(names, configuration, strict=True))

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        values: NDArray[np.float64]
        if self._dense is not None:
            values = self._dense[points.astype(np.int64) @ self._radix]
        else:
            other = math.nan if self.missing is None else self.missing
            codes = np.ascontiguousarray(points, dtype=np.int32)
            values = np.array([self._entries.get(row.tobytes(), other) for row in codes])
        absent = np.isnan(values)
        if absent.any():
            asked = self.configuration(points[absent.argmax()])
            raise ValueError(
                f"{self.name} has no entry for {asked}, expected one that it has: missing=VALUE "
                "gives the others a value"
            )
        return values

    @classmethod
    def _kernel(
        cls, problems: Sequence[Self], runs: NDArray[np.intp], device: Any
    ) -> Kernel | None:
        if not all(problem.on_device for problem in problems):
            return super()._kernel(problems, runs, device)
        import torch

        tables = torch.as_tensor(np.stack([p._dense for p in problems if p._dense is not None]))
        tables, rows = tables.to(device), torch.as_tensor(runs, device=device)[:, None]
        radix = torch.as_tensor(problems[0]._radix, device=device)
        return lambda points: tables[rows, (points.long() * radix).sum(-1)]


def table(
    variables: int = 6,
    values: int = 4,
    seed: int = 0,
    file: str = "",
    value: str = "",
    direction: str = "maximize",
    missing: str | float = "",
) -> Tabular:
    """Read the table in a CSV file, see `read_table`; without a file make one up from `seed`.

    A made-up table has `variables` variables of `values` values. Each entry is the sum of the
    contributions of every value of a variable and of every pair of values of two variables, all
    drawn from the standard normal distribution. It is meant for tests and examples.
    """
    if file:
        try:
            other = None if missing == "" else float(missing)
        except ValueError:
            raise ValueError(f"missing is {missing!r}, expected a number") from None
        return read_table(file, value, direction, other)
    n, d = integer("variables", variables, 1), integer("values", values, 2)
    seed = integer("seed", seed, 0)
    if d**n > _MOST_DENSE:
        raise ValueError(f"{d} values for {n} variables, expected at most {_MOST_DENSE} entries")
    rng = np.random.default_rng(seed)
    entries = np.zeros((d,) * n)
    for i in range(n):
        entries += rng.normal(size=d).reshape([d if a == i else 1 for a in range(n)])
        for j in range(i):
            pairs = rng.normal(size=(d, d))
            entries += pairs.reshape([d if a in (i, j) else 1 for a in range(n)])
    name = f"table:variables={n},values={d},seed={seed}"
    return Tabular(Space.categorical(n, d), entries, name=name, seed=seed)


def read_table(
    path: str | os.PathLike[str],
    value: str = "",
    direction: str = "maximize",
    missing: float | None = None,
) -> Tabular:
    """Read the table in a CSV file: a header of names, then a line for each configuration.

    The column `value` (by default the last one) has the values. Every other column is a variable
    whose values are those in the column: in increasing order if all are integers, else as text in
    the order of their appearance. With direction "minimize" values are negated, since problems are
    maximised: the optimum is minus the lowest value in the file. `missing` is the value, after
    negation, of configurations that are not in the file; with None, evaluating one is an error.
    """
    if direction not in ("maximize", "minimize"):
        raise ValueError(f"direction is {direction!r}, expected 'maximize' or 'minimize'")
    where = os.fspath(path)
    header, lines = _read(where)
    column = _value_column(header, value)
    names = [name for name in header.words if name != column]
    place = header.words.index(column)
    sign = -1.0 if direction == "minimize" else 1.0
    seen: dict[tuple[str, ...], tuple[float, int]] = {}
    for k, line in lines:
        line.expect(len(header), f"{len(header)}, as in the header")
        if "" in line.words:
            line.refuse(f"column {header.words[line.words.index('')]!r} is empty, expected a value")
        key = tuple(line.words[:place] + line.words[place + 1 :])
        number, first = line.number(place), seen.get(key)
        if first is not None and first[0] != number:
            line.refuse(f"{number:g} for the configuration that is {first[0]:g} in line {first[1]}")
        seen.setdefault(key, (number, k))
    if not seen:
        raise ValueError(f"{where} ends, expected a line for each configuration after the header")
    variables, columns = zip(*(_variable(texts) for texts in zip(*seen, strict=True)), strict=True)
    space = Space(dict(zip(names, variables, strict=True)))
    values = [sign * number for number, _ in seen.values()]
    name = f"table:file={where},value={column},direction={direction}"
    return Tabular(
        space,
        zip(zip(*columns, strict=True), values, strict=True),
        missing=missing,
        name=name if missing is None else f"{name},missing={missing!r}",
        source=f"{'minus the lowest' if sign < 0 else 'the highest'} {column!r} of {where}",
    )


def _read(path: str) -> tuple[Line, list[tuple[int, Line]]]:
    """Return the header and all other lines, with their numbers."""
    size = os.path.getsize(path)
    if size > _MOST_BYTES:
        raise ValueError(f"{path} has {size} bytes, expected at most {_MOST_BYTES}")
    lines: list[tuple[int, Line]] = []
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            for row in reader:
                if row:
                    words = [word.strip() for word in row]
                    lines.append((reader.line_num, Line(path, reader.line_num, words)))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is no text: {error}") from None
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    if not lines:
        raise ValueError(f"{path} is empty, expected a header and lines of a table")
    return lines[0][1], lines[1:]


def _value_column(header: Line, value: str) -> str:
    names = header.words
    if not 2 <= len(names) <= _MOST_COLUMNS:
        header.refuse(f"{len(names)} columns, expected 2 to {_MOST_COLUMNS}, with commas between")
    if "" in names or len(set(names)) < len(names):
        twice = next(name for name in names if not name or names.count(name) > 1)
        header.refuse(f"column {twice!r}, expected a header of distinct names")
    if not value and _is_number(names[-1]):
        header.refuse(f"the last column is called {names[-1]!r}, expected a header of names")
    if value and value not in names:
        hint = did_you_mean(value, names)
        header.refuse(f"no column {value!r}{hint}, expected one of {', '.join(names[:20])}")
    return value or names[-1]


def _variable(texts: Sequence[str]) -> tuple[Variable, Sequence[Any]]:
    """Return the variable of a column, and the entries of the column as its values."""
    if all(len(text) < 19 and text.lstrip("-").isdecimal() for text in texts):
        numbers = [int(text) for text in texts]
        if list(map(str, numbers)) == list(texts):  # otherwise 01 and 1 would become one value
            return Categorical(sorted(set(numbers))), numbers
    return Categorical(list(dict.fromkeys(texts))), texts


def _use_codes(variable: Variable) -> Variable:
    """Return the same variable with its codes as values."""
    if isinstance(variable, Binary):
        return variable
    count = len(variable)
    return Integer(0, count - 1) if variable.ordered else Categorical(range(count))


def _radix(space: Space) -> NDArray[np.int64]:
    """Return the weight of each code in a point's position; the last variable varies fastest."""
    cards = space.cardinalities.astype(np.int64)
    return np.append(np.cumprod(cards[:0:-1])[::-1], 1).astype(np.int64)


def _finite(what: str, value: Any) -> float:
    found = number(what, value)
    if not math.isfinite(found):
        raise ValueError(f"{what} is {value!r}, expected a finite number")
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
