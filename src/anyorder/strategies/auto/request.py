"""The requests of a climb, and the best point of a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from anyorder._internal.checks import integer
from anyorder.strategies.base import Codes
from anyorder.strategies.models.checking import check_kept

POINT, CHANGE, READING, MOVE = 0, 1, 2, 3


class Best(NamedTuple):
    """The best point so far, and its value; -inf while no point has a value."""

    point: Codes
    value: float


class Request(NamedTuple):
    """A point to evaluate.

    Attributes
    ----------
    kind
        POINT: the present point; CHANGE: the present point after a change of one variable; READING:
        the present point once more; MOVE: the present point after a move of a list.
    key
        The codes of the point to evaluate, as bytes.
    base
        The codes of the present point, as bytes.
    at
        The value of the present point; NaN if it was not measured yet.
    variable
        The variable that a CHANGE changes, else -1.
    climb
        The number of the climb.
    """

    kind: int
    key: bytes
    base: bytes
    at: float
    variable: int
    climb: int

    @property
    def point(self) -> Codes:
        """The point to evaluate, as codes."""
        return _codes(self.key)

    @property
    def start(self) -> Codes:
        """The present point at the time of the request, as codes."""
        return _codes(self.base)

    def check(self, cardinalities: Any) -> Request:
        """Return the request; ValueError if its points cannot be points of this space."""
        for codes in (self.key, self.base):
            check_kept(codes, cardinalities)
        integer("variable", self.variable, 0 if self.kind == CHANGE else -1, len(cardinalities) - 1)
        return self


def _codes(key: bytes) -> Codes:
    """Return a writeable array: compiled loops would be compiled again for read-only arrays."""
    return np.frombuffer(bytearray(key), np.int32)
