"""A point between its proposal and its answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]


@dataclass(slots=True)
class Candidate:
    """A point on its way from the strategy to its evaluation and back.

    Attributes
    ----------
    ticket
        The strategy's; None for a point that it did not propose.
    codes, key
        The point, and its key in the archive.
    generation
        The strategy's when it was proposed.
    number
        Of all candidates of a session.
    after
        How many answers the strategy had when it was proposed.
    place
        Of its answer among all answers of the session.
    status
        How it ended, an index of `anyorder.STATUSES`; None while that is open.
    violation
        How much it violates the constraint, 0 if it does not; None: not found out.
    value, values
        What it gave, NaN where it failed; of several objectives the first, and all.
    known
        Whether nothing was evaluated: the value was known, or the constraint rejected it.
    tries, seconds, error, notes
        Of its evaluation; notes as JSON.
    started, ended
        When its evaluation was sent out and when its answer came, in seconds since 1970; NaN where
        that has not happened.
    """

    ticket: int | None
    codes: Codes
    key: bytes
    generation: int
    number: int = -1
    after: int = 0
    place: int | None = None
    status: int | None = None
    value: float = math.nan
    values: tuple[float, ...] | None = None
    violation: float | None = None
    known: bool = False
    tries: int = 0
    seconds: float = 0.0
    error: str | None = None
    notes: str | None = None
    started: float = math.nan
    ended: float = math.nan


Queues = dict[bytes, list[Candidate]]  # by point
