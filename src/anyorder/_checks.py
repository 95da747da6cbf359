"""Checks: of what users pass (errors name the value and what was expected), of the machine."""

from __future__ import annotations

import difflib
import operator
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt


def integer(
    what: str, value: object, minimum: int | None = None, maximum: int | None = None
) -> int:
    """The value as an int within its bounds; `what` names it in the error."""
    expected = "an integer" if minimum is None else f"an integer of at least {minimum}"
    if maximum is not None:
        expected = f"an integer from {minimum} to {maximum}"
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what} is {value!r}, expected {expected}") from None
    if isinstance(value, bool):
        raise TypeError(f"{what} is {value!r}, expected {expected}")
    low, high = minimum is not None and number < minimum, maximum is not None and number > maximum
    if low or high:
        raise ValueError(f"{what} is {number}, expected {expected}")
    return number


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """For an error message about a name: which of the known ones it may have meant, or nothing."""
    spelled = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=0.5)
    return f" (did you mean {spelled[near[0]]!r}?)" if near else ""


def number(what: str, value: Any) -> float:
    """The value as a float; None, like NaN, is a failure and becomes NaN."""
    if value is None:
        return float("nan")
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except OverflowError:
        raise ValueError(f"{what} is too large for a float: {str(value)[:20]}...") from None
    except (TypeError, ValueError):
        raise TypeError(f"{what} is {value!r}, expected a number") from None


def numbers(values: Any, expected: int, *, nan: bool = False) -> npt.NDArray[np.float64]:
    """One number for each candidate, a lone one for one; NaN only where it is allowed."""
    listed = [values] if np.ndim(values) == 0 else values
    if len(listed) != expected:
        raise ValueError(f"{len(listed)} values, expected {expected}: one for each candidate")
    if isinstance(listed, np.ndarray) and listed.ndim == 1 and listed.dtype.kind in "biuf":
        result = listed.astype(np.float64)
    else:
        result = np.array([number(f"value {k}", value) for k, value in enumerate(listed)], float)
    if not nan and np.isnan(result).any():
        raise ValueError(
            f"value {int(np.isnan(result).argmax())} is NaN or None, expected a number"
        )
    return result


def graph(matrix: npt.ArrayLike, n: int) -> npt.NDArray[np.bool_]:
    """An interaction graph: n x n, True and False."""
    array = np.asarray(matrix)
    if array.shape != (n, n):
        raise ValueError(f"graph has shape {array.shape}, expected ({n}, {n})")
    if array.dtype.kind not in "biu" or not np.isin(array, (0, 1)).all():
        raise ValueError(f"graph has {array.dtype} values, expected only True and False (1 and 0)")
    return array.astype(np.bool_)


def cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
