"""What a climb asks for, and the best point that it is told of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from anyorder._internal.checks import integer
from anyorder.strategies.base import Codes
from anyorder.strategies.models.checking import check_kept

POINT, CHANGE, READING, MOVE = 0, 1, 2, 3


class Best(NamedTuple):
    """The best point so far, and its value, -inf before there is any."""

    point: Codes
    value: float


class Request(NamedTuple):
    """A point to evaluate.

    Attributes
    ----------
    kind
        POINT: the present point; CHANGE: a change of it; READING: the present point once more;
        MOVE: it after a move of a list.
    key
        The codes of the point, as bytes.
    base
        The codes of the present point.
    at
        The value of that; NaN if it was not measured yet.
    variable
        Which one a CHANGE changes, else -1.
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
        """The point, as codes."""
        return _codes(self.key)

    @property
    def start(self) -> Codes:
        """The present point at the time of the request, as codes."""
        return _codes(self.base)

    def check(self, cardinalities: Any) -> Request:
        """Return it if it can be one of this space; ValueError if not."""
        for codes in (self.key, self.base):
            check_kept(codes, cardinalities)
        integer("variable", self.variable, 0 if self.kind == CHANGE else -1, len(cardinalities) - 1)
        return self


def _codes(key: bytes) -> Codes:
    """Return codes that can be written to: loops would be compiled again for those that cannot."""
    return np.frombuffer(bytearray(key), np.int32)
