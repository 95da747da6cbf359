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
        The strategy's ticket; None for a point that it did not propose.
    codes, key
        The point, and its key in the archive.
    generation
        The generation of the strategy when the point was proposed.
    number
        The number of the candidate among all candidates of a session.
    after
        The number of answers that the strategy had when the point was proposed.
    place
        The place of its answer among all answers of the session.
    status
        The status of its answer, an index of `anyorder.STATUSES`; None before there is one.
    violation
        The amount by which it violates the constraint, 0 if it does not; None if it was not
        checked.
    value, values
        The value, NaN if the evaluation failed; with several objectives the first of them, and all.
    known
        Whether nothing was evaluated: the value was known, or the constraint rejected the point.
    tries, seconds, error, notes
        The attempts at its evaluation, the duration, the error, and the notes as JSON.
    started, ended
        The times at which its evaluation was sent out and its answer came, in seconds since 1970;
        NaN before that.
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
