"""What can go wrong with an evaluation, and with the record of a run."""

from __future__ import annotations


class Infeasible(Exception):
    """Raise this in your function when a candidate breaks a constraint only it can discover.

    The candidate ranks below every one that has a value, is remembered, and is not tried again.
    """


class StudyError(RuntimeError):
    """A study that cannot be read, written or continued; the message says why."""


# How an evaluation ended, in the order of the codes that a study and a History keep.
STATUSES = (
    "ok",
    "failed",  # an exception, NaN or None
    "timeout",
    "died",  # the worker did
    "infeasible",  # the function said so
    "rejected",  # by the constraint, before it was paid for
)
OK, FAILED, TIMEOUT, DIED, INFEASIBLE, REJECTED = range(len(STATUSES))
