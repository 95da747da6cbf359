"""How evaluations end, and what can go wrong with the file of a run."""

from __future__ import annotations


class Infeasible(Exception):
    """Raise this in your function when a candidate breaks a constraint only it can discover.

    The candidate ranks below every one that has a value, is remembered, and is not tried again.
    """


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
