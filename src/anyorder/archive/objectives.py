"""Several objectives: their names, and whether higher or lower values of each are better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import ProgramError, did_you_mean, flag, is_several, number, short

Floats = npt.NDArray[np.float64]
Values = tuple[float, ...]  # the values of one evaluation, in the units of the function

_DIRECTIONS = {"max": "max", "min": "min", "maximize": "max", "minimize": "min"}
_EXAMPLE = "expected a direction for each objective, such as ('max', 'min')"


@dataclass(frozen=True)
class Objectives:
    """The objectives of a function that has several.

    Attributes
    ----------
    names
        The names of the objectives; value_0, value_1, ... if the function returns a tuple.
    directions
        "max" or "min" for each.
    keyed
        Whether the function returns a dict with these names.
    reference
        The worst values of interest, one for each objective; None if they were not given.
    """

    names: tuple[str, ...]
    directions: tuple[str, ...]
    keyed: bool = False
    reference: Values | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        return ", ".join(f"{d} {n}" for d, n in zip(self.directions, self.names, strict=True))

    @cached_property
    def signs(self) -> Floats:
        """1 for objectives that are maximised, -1 for those that are minimised."""
        return np.array([1.0 if direction == "max" else -1.0 for direction in self.directions])

    @property
    def expected(self) -> str:
        """What the function has to return, as text for messages."""
        if self.keyed:
            return f"a dict with a number for each of {', '.join(map(repr, self.names))}"
        return f"{len(self)} numbers, one for each objective ({', '.join(self.directions)})"

    @property
    def unnamed(self) -> Objectives:
        """The same objectives, with values in a tuple instead of a dict."""
        return Objectives(self.names, self.directions)

    # --- values of the user's function ------------------------------------------------------------

    def values_of(self, what: str, returned: Any) -> Values:
        """Return the values that the user's function gave for one point; `what` begins messages.

        Raises a ProgramError unless there is one value for each objective, and a ValueError, for a
        failed evaluation, if a value is no finite number.
        """
        if returned is None:
            raise ValueError(f"{what} is None, expected {self.expected}")
        if self.keyed:
            listed = self._by_name(what, returned)
        else:
            if isinstance(returned, str | bytes | Mapping | Set) or not _has_length(returned):
                raise ProgramError(f"{what} is {short(returned)}, expected {self.expected}")
            listed = list(returned)
        if len(listed) != len(self):
            raise ProgramError(
                f"{what} is {short(returned)}, which has {len(listed)} values, "
                f"expected {self.expected}"
            )
        found = tuple(
            number(f"{name} in {what}", one) for name, one in zip(self.names, listed, strict=True)
        )
        for name, one in zip(self.names, found, strict=True):
            if not math.isfinite(one):
                shown = "NaN or None" if math.isnan(one) else f"{one:g}"
                raise ValueError(f"{name} in {what} is {shown}, expected a finite number")
        return found

    def _by_name(self, what: str, returned: Any) -> list[Any]:
        if not isinstance(returned, Mapping):
            raise ProgramError(f"{what} is {short(returned)}, expected {self.expected}")
        for name in self.names:
            if name not in returned:
                hint = did_you_mean(name, [str(key) for key in returned])
                raise ProgramError(
                    f"{what} is {short(dict(returned))}, which has no {name!r}{hint}, "
                    f"expected {self.expected}"
                )
        return [returned[name] for name in self.names]

    def rows_of(self, returned: Any, count: int, *, failed: bool = True) -> list[Values]:
        """Return the values of each point that a vectorised function or a caller of `tell` gave.

        If one of its values is no finite number, the evaluation has failed, and the row is all NaN;
        ValueError if no evaluation may have `failed`.
        """
        if isinstance(returned, Mapping) and self.keyed and count and _has_columns(returned):
            found = self._by_name("what f returned", returned)
            columns = [list(one) if _has_length(one) else [one] for one in found]
            for name, column in zip(self.names, columns, strict=True):
                if len(column) != count:
                    raise ProgramError(
                        f"{len(column)} values of {name!r}, expected {count}: one for each "
                        "candidate"
                    )
            returned = list(zip(*columns, strict=True))
            return self.unnamed.rows_of(returned, count, failed=failed)
        lone = not _has_length(returned) or (count == 1 and not _has_rows(returned))
        listed = [returned] if lone else list(returned)
        if len(listed) != count:
            raise ProgramError(
                f"{len(listed)} rows of values, expected {count}: one for each candidate"
            )
        rows = []
        for k, row in enumerate(listed):
            try:
                rows.append(self.values_of(f"row {k} of the values", row))
            except ProgramError:
                raise
            except ValueError:
                if not failed:
                    raise
                rows.append((math.nan,) * len(self))
        return rows

    # --- files ------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return what a study stores of the objectives."""
        return {
            "names": list(self.names),
            "directions": list(self.directions),
            "keyed": self.keyed,
            "reference": None if self.reference is None else list(self.reference),
        }

    @classmethod
    def from_json(cls, document: Any) -> Objectives | None:
        """Return the objectives stored in a study; None if it has a single one."""
        if document is None:
            return None
        names, directions = document["names"], document["directions"]
        keyed = flag("keyed", document["keyed"])
        given = dict(zip(names, directions, strict=True)) if keyed else None
        return read_objectives(
            None if given else tuple(directions), given, document["reference"], "objectives"
        )


def _has_length(value: Any) -> bool:
    """Return whether a value may hold several: an array of NumPy may be a number."""
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0


def _has_columns(returned: Mapping[Any, Any]) -> bool:
    """Return whether the values of a dict are columns of numbers, not the numbers of one point."""
    return any(is_several(column) or _is_list(column) for column in returned.values())


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0


def _has_rows(returned: Any) -> bool:
    """Return whether a sequence holds rows of values, not the values of one point."""
    if isinstance(returned, Mapping) or not len(returned):
        return False
    first = next(iter(returned))
    failed = first is None and len(returned) == 1
    return failed or isinstance(first, Mapping) or _is_list(first)


# --- what users give ------------------------------------------------------------------------------


def read_objectives(
    directions: Any, objectives: Any, reference: Any = None, what: str = ""
) -> Objectives | None:
    """Return the checked objectives that a user gives; None if neither argument is given.

    Parameters
    ----------
    directions
        "max" or "min" for each value of the tuple that the function returns.
    objectives
        Names with directions, for a function that returns a dict.
    reference
        The worst values of interest.
    what
        The name of the argument in messages; another one if it was read from a file.
    """
    if directions is None and objectives is None:
        if reference is not None:
            raise TypeError(
                f"reference is {short(reference)}, which several objectives have: "
                "pass directions= or objectives="
            )
        return None
    if directions is not None and objectives is not None:
        raise TypeError(
            "directions and objectives are given, expected one of them: directions for a function "
            "that returns a tuple, objectives for one that returns a dict"
        )
    if objectives is not None:
        what = what or "objectives"
        if not isinstance(objectives, Mapping):
            raise TypeError(
                f"{what} is {short(objectives)}, expected a dict such as "
                "{'accuracy': 'max', 'size': 'min'}"
            )
        names = tuple(objectives)
        for name in names:
            if not isinstance(name, str) or not name:
                raise TypeError(f"{what} has the name {short(name)}, expected a string")
        listed = [
            _direction(f"{what}[{name!r}]", direction) for name, direction in objectives.items()
        ]
    else:
        what = what or "directions"
        if isinstance(directions, str | bytes) or not isinstance(directions, Sequence):
            raise TypeError(f"{what} is {short(directions)}, {_EXAMPLE}")
        listed = [_direction(f"{what}[{k}]", one) for k, one in enumerate(directions)]
        names = tuple(f"value_{k}" for k in range(len(listed)))
    if len(names) < 2:
        given = directions if objectives is None else objectives
        raise ValueError(
            f"{what} is {short(given)}, expected two or more: one objective is for "
            "maximize or minimize, with a function that returns a number"
        )
    keyed = objectives is not None
    found = Objectives(names, tuple(listed), keyed)
    return Objectives(names, tuple(listed), keyed, read_reference(found, reference))


def _direction(what: str, value: Any) -> str:
    if not isinstance(value, str) or value not in _DIRECTIONS:
        hint = did_you_mean(value, ("max", "min")) if isinstance(value, str) else ""
        raise ValueError(f"{what} is {short(value)}{hint}, expected 'max' or 'min'")
    return _DIRECTIONS[value]


def read_reference(objectives: Objectives, given: Any) -> Values | None:
    """Return a checked reference point: a tuple, or a dict if the objectives have names."""
    if given is None:
        return None
    if isinstance(given, Mapping) and objectives.keyed:
        for name in given:
            if name not in objectives.names:
                hint = did_you_mean(str(name), objectives.names)
                raise ValueError(f"reference has {name!r}{hint}, expected {objectives.expected}")
    try:
        return objectives.values_of("reference", given)
    except ValueError as error:
        # named objectives accept values by position as well
        if objectives.keyed and isinstance(given, Sequence) and len(given) == len(objectives):
            return objectives.unnamed.values_of("reference", given)
        raise ValueError(str(error)) from None
