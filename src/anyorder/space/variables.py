"""The variables of a space: what values they have, and which code each value is."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number, Real
from typing import Any, ClassVar, overload

import numpy as np

from anyorder._checks import flag, integer, real, short

_MOST = 2**31 - 1  # values of one variable: codes are int32
_TOLERANCE = 1e-3  # of the distance to the next value: how far a float may be off its grid
INTS = (int, np.integer, np.bool_)


def plain(value: Any) -> Any:
    """NumPy scalars become Python ones, in tuples too."""
    if isinstance(value, np.generic):
        return value.item()
    return tuple(map(plain, value)) if type(value) is tuple else value


def _condition(when: Any) -> Any:
    """A condition as it is kept: None, a dict of its own, or a function."""
    if when is None or callable(when):
        return when
    if not isinstance(when, Mapping) or not all(isinstance(name, str) for name in when):
        expected = "expected a dict of names and values, or a function"
        raise TypeError(f"when is {short(when)}, {expected}")
    if not when:
        raise ValueError("when is empty, expected a variable and its value")
    return {name: plain(value) for name, value in when.items()}


def _key(value: Any) -> tuple[Any, ...]:
    """A key that tells 1, 1.0 and True apart, in tuples too."""
    if isinstance(value, Number) and value != value:
        raise ValueError(f"value {value} is not allowed, expected any value but NaN")
    return (type(value), *map(_key, value)) if isinstance(value, tuple) else (type(value), value)


def to_json(value: Any) -> Any:
    """A value as JSON can hold it: a tuple becomes a list, which no value can be."""
    if type(value) is tuple:
        return [to_json(v) for v in value]
    if value is None or type(value) in (bool, int, float, str):
        return value
    expected = "expected None, a bool, an int, a float, a str or a tuple of those"
    raise TypeError(f"value {short(value)} cannot be written to JSON, {expected}")


def from_json(value: Any) -> Any:
    """The inverse of `to_json`."""
    return tuple(map(from_json, value)) if isinstance(value, list) else value


class _Base:
    values: Any  # set through __dict__, like every attribute of these frozen classes
    when: Any
    ordered: ClassVar[bool] = False
    _fields: ClassVar[tuple[str, ...]] = ()  # what JSON keeps
    _options: ClassVar[dict[str, Any]] = {"when": None}  # what it keeps unless it is this

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        shown = [short(getattr(self, key)) for key in self._fields]
        shown += [f"{key}={short(value)}" for key, value in self._chosen().items()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def index(self, value: Any) -> int:
        """Code of `value`; ValueError if it is not one of the values."""
        code = self._find(value)
        if code is None:
            near = self._nearest(value)
            hint = f": the nearest {'is' if len(near) == 1 else 'are'} " if near else ""
            listed = " and ".join(map(repr, near))
            raise ValueError(f"{short(plain(value))} is not a value of {self!r}{hint}{listed}")
        return code

    def to_dict(self) -> dict[str, Any]:
        """What `document.read` reads."""
        fields = {key: to_json(getattr(self, key)) for key in self._fields}
        chosen = {key: to_json(value) for key, value in self._chosen().items() if key != "when"}
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

    def _chosen(self) -> dict[str, Any]:
        options = {key: getattr(self, key) for key in self._options}
        return {key: value for key, value in options.items() if value != self._options[key]}

    def _nearest(self, value: Any) -> list[Any]:
        """The values next to one that is not there, for an error message."""
        return []

    def _find(self, value: Any) -> int | None:
        known = isinstance(value, INTS) and self.values[0] <= value <= self.values[-1]
        return int(value) - int(self.values[0]) if known else None


# A new field for each class; functions and dicts have no part in hashes.
_WHEN: Any = field(default=None, kw_only=True, hash=False)


@dataclass(frozen=True, repr=False)
class Binary(_Base):
    """A variable that is False or True; 0 and 1 are understood too.

    Parameters
    ----------
    when : mapping, function or None
        Whether a point has this variable. A dict says which values of earlier variables it takes:
        `{"algo": "b"}`, `{"algo": ["b", "c"], "cache": True}`. A function gets a dict of the
        earlier variables that are present, and returns True or False; it cannot be stored in a
        study. None: always. All kinds of variables have it.
    """

    when: Any = _WHEN
    values = (False, True)

    def __post_init__(self) -> None:
        self.__dict__.update(when=_condition(self.when))


@dataclass(frozen=True, init=False, repr=False)
class Categorical(_Base):
    """A variable that takes one of several values in no particular order.

    Parameters
    ----------
    values : iterable of hashable
        At least one, all different; 1, 1.0 and True are different. Their order fixes the codes:
        give a list rather than a set, whose order changes from run to run.
    when : mapping, function or None
        A condition, as in `Binary`.
    """

    values: tuple[Hashable, ...]
    when: Any = _WHEN
    _fields = ("values",)
    _codes: dict[tuple[Any, ...], int] = field(init=False)

    def __init__(self, values: Iterable[Any], *, when: Any = None) -> None:
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise TypeError(f"values is {short(values)}, expected a list of values")
        given = tuple(map(plain, values))
        codes: dict[tuple[Any, ...], int] = {}
        for code, value in enumerate(given):
            try:
                first = codes.setdefault(_key(value), code)
            except TypeError:
                why = "is not hashable, expected one that is"
                raise TypeError(f"value {short(value)} {why}") from None
            if first != code:
                raise ValueError(f"value {short(value)} is repeated, expected distinct values")
        if not given:
            raise ValueError("values is empty, expected at least one value")
        self.__dict__.update(values=given, when=_condition(when), _codes=codes)

    def __repr__(self) -> str:
        condition = "" if self.when is None else f", when={short(self.when)}"
        return f"Categorical({short(list(self.values))}{condition})"

    def __hash__(self) -> int:
        return hash((len(self), self.values[0], self.values[-1]))  # cheap: spaces hash variables

    def _find(self, value: Any) -> int | None:
        value = plain(value)
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
    """An ordered variable: the integers from `low` to `high`, both included.

    Parameters
    ----------
    low, high : int
        The bounds.
    step : int
        The distance between values: `low`, `low + step`, ..., up to at most `high`.
    log : bool
        Whether the search follows the logarithm of the value: it treats the way from 1 to 10 like
        that from 100 to 1,000. The values are the same; `low` must be at least 1.
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

    def _find(self, value: Any) -> int | None:
        known = isinstance(value, INTS) and int(value) in self.values
        return self.values.index(int(value)) if known else None

    def _nearest(self, value: Any) -> list[Any]:
        if self.step == 1 or not isinstance(value, INTS):
            return []
        return _around(self.values, (int(value) - self.low) // self.step)


@dataclass(frozen=True, repr=False)
class Float(_Base):
    """An ordered variable: a grid of `levels` numbers from `low` to `high`, both included.

    It is a grid and nothing between: a search over it never proposes any other number. A point may
    give a value to within a thousandth of the distance to the next one.

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

    def __post_init__(self) -> None:
        low, high, log = real("low", self.low), real("high", self.high), flag("log", self.log)
        levels = integer("levels", self.levels, 2, _MOST)
        if not low < high or math.isinf(high - low):
            expected = "expected low < high, and a finite difference"
            raise ValueError(f"low is {low!r} and high is {high!r}, {expected}")
        if log and low <= 0:
            raise ValueError(f"low is {low!r}, expected a number above 0 with log=True")
        values = _Grid(low, high, levels, log)
        # values are closest, for their size, at the end that is larger
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
        """The code of the largest value that is not above this one, else 0; None for no number."""
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
    """Equally spaced numbers, or numbers of equal ratios, without storing them."""

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
    """The values of a code and its successor, as far as they exist."""
    last = len(values) - 1
    return [values[k] for k in sorted({min(max(0, code), last), min(max(0, code + 1), last)})]


Variable = Binary | Categorical | Integer | Float
