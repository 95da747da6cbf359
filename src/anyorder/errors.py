"""How evaluations end, and what can go wrong with the file of a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anyorder._internal.checks import real, short

_VIOLATION = "violation "


class Infeasible(Exception):
    """Raise this in your function when a candidate breaks a constraint only it can discover.

    The candidate ranks below every one that has a value, is remembered, and is not tried again.
    It costs an evaluation like any other.

    Parameters
    ----------
    message
        Why; it is kept with the candidate.
    violation
        How much is violated, above 0, if that is known: of candidates without a value, those that
        violate less rank higher.
    """

    def __init__(self, message: object = "", violation: float | None = None) -> None:
        super().__init__(*(() if message == "" else (message,)))
        self.violation = None if violation is None else real("violation", violation, 0, above=True)

    def reason(self, message: str) -> str:
        """Return what is kept with the candidate: the message after the violation."""
        if self.violation is None:
            return message or "infeasible"
        return f"{_VIOLATION}{self.violation!r}{': ' if message else ''}{message}"


class StudyError(RuntimeError):
    """A study that cannot be read, written or continued; the message says why."""


class StudyMismatch(ValueError):
    """A study that was started with other settings."""


# What contents that were changed lead to when they are used.
DAMAGE = (
    AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError,
)  # fmt: skip

# How an evaluation ended; archives and studies hold the index.
STATUSES = (
    "ok",
    "failed",  # an exception, NaN or None
    "timeout",
    "died",  # the worker process did
    "infeasible",  # the function raised Infeasible
    "rejected",  # by the constraint, before it was evaluated
)
ON_FAILURE = ("raise", "worst", "skip")  # what to do about those that are not "ok"
OK, FAILED, TIMEOUT, DIED, INFEASIBLE, REJECTED = range(len(STATUSES))


def violation_in(reason: str | None) -> float:
    """Return the violation in what `Infeasible.reason` gave; NaN without one."""
    if reason is None or not reason.startswith(_VIOLATION):
        return math.nan
    try:
        return float(reason.removeprefix(_VIOLATION).partition(":")[0])
    except ValueError:  # a message that happens to begin like this
        return math.nan


def measure(result: Any) -> float:
    """Return by how much a constraint's result says it is violated; errors name the result."""
    if isinstance(result, bool | np.bool_):
        return 0.0 if result else math.inf
    if result is None:
        raise TypeError("None (is a `return` missing?), expected a bool, a number, or several")
    if isinstance(result, tuple | list) or (isinstance(result, np.ndarray) and result.ndim):
        # of several bools, it is known how many are not met
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
