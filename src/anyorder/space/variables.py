"""The variables of a space: what values they have, and which code each value is."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Number
from typing import Any, ClassVar

import numpy as np

from anyorder._checks import integer, short

_MOST = 2**31 - 1  # values of one variable: codes are int32
INTS = (int, np.integer, np.bool_)


def plain(value: Any) -> Any:
    """NumPy scalars become Python ones, in tuples too."""
    if isinstance(value, np.generic):
        return value.item()
    return tuple(map(plain, value)) if type(value) is tuple else value


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
    ordered: ClassVar[bool] = False
    _fields: ClassVar[tuple[str, ...]] = ()  # what JSON keeps

    def __len__(self) -> int:
        return len(self.values)

    def index(self, value: Any) -> int:
        """Code of `value`; ValueError if it is not one of the values."""
        code = self._find(value)
        if code is None:
            raise ValueError(f"{short(plain(value))} is not a value of {self!r}")
        return code

    def _find(self, value: Any) -> int | None:
        known = isinstance(value, INTS) and self.values[0] <= value <= self.values[-1]
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
        self.__dict__.update(values=given, _codes=codes)

    def __repr__(self) -> str:
        return f"Categorical({short(list(self.values))})"

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
    """An ordered variable: the integers from `low` to `high`, both included."""

    low: int
    high: int
    ordered: ClassVar[bool] = True
    _fields = ("low", "high")

    def __post_init__(self) -> None:
        low, high = integer("low", self.low), integer("high", self.high)
        if not 0 <= high - low < _MOST:
            expected = f"expected low <= high and at most {_MOST} values"
            raise ValueError(f"low is {short(low)} and high is {short(high)}, {expected}")
        self.__dict__.update(low=low, high=high, values=range(low, high + 1))

    def __repr__(self) -> str:
        return f"Integer({self.low}, {self.high})"


Variable = Binary | Categorical | Integer
_KINDS: dict[str, Any] = {"binary": Binary, "categorical": Categorical, "integer": Integer}


def read_variable(entry: Any) -> tuple[str | None, Variable, int]:
    """Name, variable and number of repeats of an entry of a document."""
    if not isinstance(entry, Mapping):
        raise TypeError("expected an object")
    fields = {key: from_json(value) for key, value in entry.items()}
    kind, name = fields.pop("type", None), fields.pop("name", None)
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name is {short(name)}, expected a str")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"type is {short(kind)}, expected one of {', '.join(_KINDS)}")
    count = integer("repeat", fields.pop("repeat", 1), 1)
    return name, _KINDS[kind](**fields), count
