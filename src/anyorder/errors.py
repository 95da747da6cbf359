"""The ways in which evaluations end, and the errors of studies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anyorder._internal.checks import real, short

_VIOLATION = "violation "


class Infeasible(Exception):
    """Raise this in your function when a candidate violates a constraint that only it can check.

    The candidate ranks below every candidate that has a value, is remembered, and is not tried
    again. It costs an evaluation.

    Parameters
    ----------
    message
        The reason, which is stored with the candidate.
    violation
        The amount of the violation, above 0, if it is known: among candidates without a value,
        those with smaller violations rank higher.
    """

    def __init__(self, message: object = "", violation: float | None = None) -> None:
        super().__init__(*(() if message == "" else (message,)))
        self.violation = None if violation is None else real("violation", violation, 0, above=True)

    def reason(self, message: str) -> str:
        """Return the text that is stored with the candidate: the violation, then the message."""
        if self.violation is None:
            return message or "infeasible"
        return f"{_VIOLATION}{self.violation!r}{': ' if message else ''}{message}"


class StudyError(RuntimeError):
    """A study cannot be read, written or continued; the message says why."""


class StudyMismatch(ValueError):
    """A study was started with other settings."""


# The errors that damaged contents of a file may cause when they are used.
DAMAGE = (
    AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError,
)  # fmt: skip

# How an evaluation ended; archives and studies store the index.
STATUSES = (
    "ok",
    "failed",  # the function raised an exception, or returned NaN or None
    "timeout",
    "died",  # the worker process died
    "infeasible",  # the function raised Infeasible
    "rejected",  # the constraint rejected the point before it was evaluated
)
ON_FAILURE = ("raise", "worst", "skip")  # what to do about evaluations that are not "ok"
OK, FAILED, TIMEOUT, DIED, INFEASIBLE, REJECTED = range(len(STATUSES))


def violation_in(reason: str | None) -> float:
    """Return the violation in a text of `Infeasible.reason`; NaN if there is none."""
    if reason is None or not reason.startswith(_VIOLATION):
        return math.nan
    try:
        return float(reason.removeprefix(_VIOLATION).partition(":")[0])
    except ValueError:  # a message may begin in the same way
        return math.nan


def measure(result: Any) -> float:
    """Return the violation that a constraint's result means; errors name the result."""
    if isinstance(result, bool | np.bool_):
        return 0.0 if result else math.inf
    if result is None:
        raise TypeError("None (is a `return` missing?), expected a bool, a number, or several")
    if isinstance(result, tuple | list) or (isinstance(result, np.ndarray) and result.ndim):
        # several bools say how many of them are not satisfied
        return sum(min(measure(one), 1.0) if _is_bool(one) else measure(one) for one in result)
    try:
        if isinstance(result, str | bytes):
            raise TypeError
        number = float(result)
    except (TypeError, ValueError):
        raise TypeError(
            f"{short(result)}, expected a bool, a number, or several of those"
        ) from None
    if math.isnan(number):
        raise ValueError("NaN, expected a bool, a number, or several of those")
    return max(number, 0.0)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)
