"""The variables of a space: their values, and the code of each value."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number, Real
from typing import Any, ClassVar, overload

import numpy as np

from anyorder._internal.checks import flag, integer, real, short

_MOST = 2**31 - 1  # the most values of a variable, since codes are int32
_TOLERANCE = 1e-3  # how far a float may be from its grid, in units of the distance between values
INTS = (int, np.integer, np.bool_)


def plain(value: Any) -> Any:
    """Return a value with NumPy scalars replaced by Python's, also within tuples."""
    if isinstance(value, np.generic):
        return value.item()
    return tuple(map(plain, value)) if type(value) is tuple else value


def _condition(when: Any) -> Any:
    """Return a condition as it is stored: None, a new dict, or a function."""
    if when is None or callable(when):
        return when
    if not isinstance(when, Mapping) or not all(isinstance(name, str) for name in when):
        expected = "expected a dict of names and values, or a function"
        raise TypeError(f"when is {short(when)}, {expected}")
    if not when:
        raise ValueError("when is empty, expected a variable and its value")
    return {name: plain(value) for name, value in when.items()}


def _key(value: Any) -> tuple[Any, ...]:
    """Return a key that distinguishes 1, 1.0 and True, also within tuples."""
    if isinstance(value, Number) and value != value:
        raise ValueError(f"value {value} is not allowed, expected any value but NaN")
    return (type(value), *map(_key, value)) if isinstance(value, tuple) else (type(value), value)


def to_json(value: Any) -> Any:
    """Return a value as JSON can hold it: a tuple becomes a list, which itself is never a value."""
    if type(value) is tuple:
        return [to_json(v) for v in value]
    if value is None or type(value) in (bool, int, float, str):
        return value
    expected = "expected None, a bool, an int, a float, a str or a tuple of those"
    raise TypeError(f"value {short(value)} cannot be written to JSON, {expected}")


def from_json(value: Any) -> Any:
    """Return the value that `to_json` converted."""
    return tuple(map(from_json, value)) if isinstance(value, list) else value


class Kind:
    """The base class of all kinds of variables, including lists (`lists.py`).

    Attributes
    ----------
    when
        The condition of the variable, or None.
    since
        The first version of JSON documents that has this kind of variable.
    key
        In problem files, the key of the list of values: `{ key = [...] }`. Empty if the kind has no
        such list.
    """

    when: Any
    since: ClassVar[int] = 1
    key: ClassVar[str] = ""
    _fields: ClassVar[tuple[str, ...]] = ()  # the arguments that JSON stores
    _options: ClassVar[dict[str, Any]] = {"when": None}  # those stored unless they have this value

    @classmethod
    def settings(cls) -> tuple[str, ...]:
        """Return the names of the arguments of the class."""
        return (*cls._fields, *cls._options)

    def __repr__(self) -> str:
        given = [getattr(self, key) for key in self._fields]
        shown = [short(list(value) if type(value) is tuple else value) for value in given]
        shown += [f"{key}={short(value)}" for key, value in self._options_given().items()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that `document.read` reads."""
        fields = {key: to_json(getattr(self, key)) for key in self._fields}
        chosen = {
            key: to_json(value) for key, value in self._options_given().items() if key != "when"
        }
        if callable(self.when):
            raise TypeError(
                f"when is {short(self.when)}, a function, which cannot be written to JSON: files "
                'and studies require a dict, such as {"algo": "b"}'
            )
        if self.when is not None:
            chosen["when"] = {
                name: [to_json(v) for v in value] if isinstance(value, list) else to_json(value)
                for name, value in self.when.items()
            }
        return {"type": type(self).__name__.lower(), **fields, **chosen}

    def _options_given(self) -> dict[str, Any]:
        options = {key: getattr(self, key) for key in self._options}
        return {key: value for key, value in options.items() if value != self._options[key]}


class Variable(Kind):
    """A variable with a single value; the base class of all such kinds.

    Codes number the values. Spaces use `columns`, `codes`, `value`, `points` and `group` of these
    variables and of lists alike.

    Attributes
    ----------
    values
        All values, in the order of their codes.
    ordered
        Whether the order of the values means something.
    """

    values: Any  # set through __dict__, like every attribute of these frozen classes
    ordered: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.values)

    def columns(self) -> list[Variable]:
        """Return the variable of each of its columns: itself."""
        return [self]

    def codes(self, value: Any) -> list[int]:
        """Return the code of a value in each column."""
        return [self.index(value)]

    def value(self, codes: Sequence[int]) -> Any:
        """Return the value with these codes."""
        return self.values[codes[0]]

    def points(self) -> int:
        """Return the number of values."""
        return len(self)

    def group(self, first: int) -> None:
        """Return None: its column does not belong to a list."""

    def lacks(self, value: Any) -> bool:
        """Return whether a value means "absent": None does, unless it is one of the values."""
        return value is None and self._find(None) is None

    @property
    def logarithmic(self) -> bool:
        """Whether searches follow the logarithm of the value instead of the code."""
        return False

    def integers(self) -> Sequence[int]:
        """Return the values as integers; callers check whether they are any."""
        found: Sequence[int] = self.values
        return found

    def texts(self) -> dict[str, int]:
        """Return codes by the texts of values in tables, besides those that `index` accepts."""
        return {}

    def index(self, value: Any) -> int:
        """Return the code of `value`; raise a ValueError if it is not one of the values."""
        code = self._find(value)
        if code is None:
            near = self._nearest(value)
            hint = f": the nearest {'is' if len(near) == 1 else 'are'} " if near else ""
            listed = " and ".join(map(repr, near))
            raise ValueError(f"{short(plain(value))} is not a value of {self!r}{hint}{listed}")
        return code

    def _nearest(self, value: Any) -> list[Any]:
        """Return the values next to a value that does not exist, for an error message."""
        return []

    def _find(self, value: Any) -> int | None:
        known = isinstance(value, INTS) and self.values[0] <= value <= self.values[-1]
        return int(value) - int(self.values[0]) if known else None


# A separate field for each class; functions and dicts cannot be hashed, and are left out.
_WHEN: Any = field(default=None, kw_only=True, hash=False)


@dataclass(frozen=True, repr=False)
class Binary(Variable):
    """A variable that is False or True; 0 and 1 are accepted too.

    Parameters
    ----------
    when : mapping, function or None
        Whether a point has this variable. A dict says which values earlier variables must have:
        `{"algo": "b"}`, `{"algo": ["b", "c"], "cache": True}`. A function receives a dict of the
        earlier variables that are present, and returns True or False; it cannot be stored in a
        study. None means always. All kinds of variables have this argument.
    """

    when: Any = _WHEN
    values = (False, True)

    def __post_init__(self) -> None:
        self.__dict__.update(when=_condition(self.when))

    def integers(self) -> Sequence[int]:
        """Return 0 and 1."""
        return range(2)

    def texts(self) -> dict[str, int]:
        """Return the words that mean True and False in tables."""
        return {"False": 0, "True": 1, "false": 0, "true": 1, "FALSE": 0, "TRUE": 1}


@dataclass(frozen=True, init=False, repr=False)
class _Listed(Variable):
    """A variable whose values are listed one by one."""

    values: tuple[Hashable, ...]
    when: Any = _WHEN
    _fields: ClassVar[tuple[str, ...]] = ("values",)
    _codes: dict[Any, int] = field(init=False)

    def __init__(self, values: Iterable[Any], *, when: Any = None) -> None:
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise TypeError(f"values is {short(values)}, expected a list of values")
        given = tuple(map(plain, values))
        codes: dict[Any, int] = {}
        equal: dict[Any, Any] = {}
        for code, value in enumerate(given):
            try:
                first = codes.setdefault(_key(value), code)
            except TypeError:
                why = "is not hashable, expected one that is"
                raise TypeError(f"value {short(value)} {why}") from None
            if first != code:
                raise ValueError(f"value {short(value)} is repeated, expected distinct values")
            if equal.setdefault(value, value) is not value:
                raise ValueError(
                    f"values has {short(equal[value])} and {short(value)}, which are equal in "
                    "Python: expected values that differ, such as 'one' and 'true'"
                )
        if not given:
            raise ValueError("values is empty, expected at least one value")
        self.__dict__.update(values=given, when=_condition(when), _codes=codes)

    def __hash__(self) -> int:
        return hash((len(self), self.values[0], self.values[-1]))  # cheap: spaces hash variables

    def texts(self) -> dict[str, int]:
        """Return codes by values as text; raise a ValueError if two values look the same."""
        texts: dict[str, int] = {}
        for code, value in enumerate(self.values):
            if texts.setdefault(str(value), code) != code:
                raise ValueError(
                    f"{value!r} and {self.values[texts[str(value)]]!r} look the same in a table: "
                    "pass data=(points, values)"
                )
        if "None" in texts:  # CSV files and DataFrames may contain None in these forms
            texts = {"": texts["None"], "nan": texts["None"]} | texts
        return texts

    def _find(self, value: Any) -> int | None:
        value = plain(value)
        try:
            code = self._codes.get(_key(value))
            if code is None:  # so that 1.0 finds 1
                code = next((c for c, v in enumerate(self.values) if v == value), None)
            return code
        except (TypeError, ValueError):  # it cannot be hashed, or is NaN
            return None


@dataclass(frozen=True, init=False, repr=False)
class Categorical(_Listed):
    """A variable that takes one of several values without an order.

    Parameters
    ----------
    values : iterable of hashable
        The values; at least one, and no two that Python considers equal, as 1, 1.0 and True. Their
        order fixes the codes: pass a list, not a set, whose order changes from run to run.
    when : mapping, function or None
        A condition, as in `Binary`.
    """

    key: ClassVar[str] = "values"
    __hash__ = _Listed.__hash__


@dataclass(frozen=True, init=False, repr=False)
class Ordinal(_Listed):
    """An ordered variable with any values, in the order in which they are given.

    The search treats it like an `Integer`: neighbouring values are assumed to be similar. In
    problem files it is `{ ordered = ["s", "m", "l"] }`.

    Parameters
    ----------
    values : iterable of hashable
        The values; at least one, all different, from one end to the other. 1, 1.0 and True are
        equal.
    when : mapping, function or None
        A condition, as in `Binary`.

    Examples
    --------
    >>> Ordinal(["s", "m", "l"])
    Ordinal(['s', 'm', 'l'])
    """

    key: ClassVar[str] = "ordered"
    ordered: ClassVar[bool] = True
    since: ClassVar[int] = 3
    __hash__ = _Listed.__hash__


@dataclass(frozen=True, repr=False)
class Integer(Variable):
    """An ordered variable with the integers from `low` to `high`, both included.

    Parameters
    ----------
    low, high : int
        The bounds.
    step : int
        The distance between values: `low`, `low + step`, ..., up to at most `high`.
    log : bool
        Whether the search follows the logarithm of the value, so that it treats the way from 1 to
        10 like the way from 100 to 1,000. The values are the same; `low` must be at least 1.
    when : mapping, function or None
        A condition, as in `Binary`.
    """

    low: int
    high: int
    step: int = field(default=1, kw_only=True)
    log: bool = field(default=False, kw_only=True)
    when: Any = _WHEN
    ordered: ClassVar[bool] = True
    _fields = ("low", "high")
    _options: ClassVar[dict[str, Any]] = {"step": 1, "log": False, "when": None}

    def __post_init__(self) -> None:
        low, high = integer("low", self.low), integer("high", self.high)
        step, log = integer("step", self.step, 1), flag("log", self.log)
        if not 0 <= high - low < _MOST * step:
            expected = f"expected low <= high and at most {_MOST} values"
            raise ValueError(f"low is {short(low)} and high is {short(high)}, {expected}")
        if log and low < 1:
            raise ValueError(f"low is {short(low)}, expected at least 1 with log=True")
        self.__dict__.update(low=low, high=high, step=step, log=log, when=_condition(self.when))
        self.__dict__.update(values=range(low, high + 1, step))

    @property
    def logarithmic(self) -> bool:
        """Whether `log` was chosen and there are several values."""
        return self.log and len(self) > 1

    def _find(self, value: Any) -> int | None:
        known = isinstance(value, INTS) and int(value) in self.values
        return self.values.index(int(value)) if known else None

    def _nearest(self, value: Any) -> list[Any]:
        if self.step == 1 or not isinstance(value, INTS):
            return []
        return _around(self.values, (int(value) - self.low) // self.step)


@dataclass(frozen=True, repr=False)
class Float(Variable):
    """An ordered variable with a grid of `levels` numbers from `low` to `high`, both included.

    Only values of the grid are used: a search never proposes any other number. A point may differ
    from its value by up to a thousandth of the distance to the next one.

    Parameters
    ----------
    low, high : float
        The first and the last value.
    levels : int
        The number of values. The cost of a search grows with its logarithm.
    log : bool
        Whether the ratio of neighbouring values is constant, instead of their difference; `low`
        must be above 0.
    when : mapping, function or None
        A condition, as in `Binary`.
    """

    low: float
    high: float
    levels: int = field(default=101, kw_only=True)
    log: bool = field(default=False, kw_only=True)
    when: Any = _WHEN
    ordered: ClassVar[bool] = True
    _fields = ("low", "high")
    _options: ClassVar[dict[str, Any]] = {"levels": 101, "log": False, "when": None}
    since: ClassVar[int] = 2

    def __post_init__(self) -> None:
        low, high, log = real("low", self.low), real("high", self.high), flag("log", self.log)
        levels = integer("levels", self.levels, 2, _MOST)
        if not low < high or math.isinf(high - low):
            expected = "expected low < high, and a finite difference"
            raise ValueError(f"low is {low!r} and high is {high!r}, {expected}")
        if log and low <= 0:
            raise ValueError(f"low is {low!r}, expected a number above 0 with log=True")
        values = _Grid(low, high, levels, log)
        # relative to their size, values are closest at the larger end
        if not values[0] < values[1] or not values[levels - 2] < values[levels - 1]:
            raise ValueError(f"levels is {levels}, expected so few that the values differ")
        self.__dict__.update(low=low, high=high, levels=levels, log=log, values=values)
        self.__dict__.update(when=_condition(self.when))

    def _find(self, value: Any) -> int | None:
        below = self._below(value)
        if below is None:
            return None
        # rounding can confuse neighbours
        near = range(max(0, below - 1), min(self.levels, below + 3))
        code = min(near, key=lambda k: abs(self.values[k] - float(value)))
        other = code + 1 if code + 1 < self.levels else code - 1
        step = abs(self.values[other] - self.values[code])
        return code if abs(self.values[code] - float(value)) <= _TOLERANCE * step else None

    def _below(self, value: Any) -> int | None:
        """Return the code of the largest value up to `value`, else 0; None if it is no number."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or value != value:
            return None
        scale = math.log if self.log else float
        inside = min(max(self.low, float(value)), self.high)
        share = (scale(inside) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return min(math.floor(share * (self.levels - 1)), self.levels - 1)

    def _nearest(self, value: Any) -> list[Any]:
        below = self._below(value)
        if below is None:
            return []
        return [self.low] if value < self.low else _around(self.values, below)


@dataclass(frozen=True)
class _Grid(Sequence[float]):
    """Numbers at equal distances, or with equal ratios, which are not stored."""

    low: float
    high: float
    levels: int
    log: bool

    def __len__(self) -> int:
        return self.levels

    @overload
    def __getitem__(self, k: int) -> float: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[float]: ...
    def __getitem__(self, k: int | slice) -> float | Sequence[float]:
        if isinstance(k, slice):
            return [self[j] for j in range(self.levels)[k]]
        k, last = range(self.levels)[k], self.levels - 1
        if k in (0, last):
            return self.high if k else self.low
        if self.log:
            value = math.exp((math.log(self.low) * (last - k) + math.log(self.high) * k) / last)
        else:
            value = self.low * ((last - k) / last) + self.high * (k / last)
        return float(f"{value:.15g}")  # 0.3, not 0.30000000000000004


def _around(values: Sequence[Any], code: int) -> list[Any]:
    """Return the values of a code and of its successor, as far as they exist."""
    last = len(values) - 1
    return [values[k] for k in sorted({min(max(0, code), last), min(max(0, code + 1), last)})]


SCALARS: tuple[type[Variable], ...] = (Binary, Categorical, Integer, Float, Ordinal)
