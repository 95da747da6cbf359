"""Values of variables that a point does not have: the best that each ever had.

Conditions take variables away, and bring them back. A change that brings some is then judged by
their best values, and not by any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from anyorder.space import Space
from anyorder.strategies.base import Codes
from anyorder.strategies.models.checking import check_points


class Furnisher:
    """Of each variable, the value in the best point that had it.

    Parameters
    ----------
    space
        That of the points; without conditions nothing is kept.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._values = np.full(len(space), -1, np.int32)
        self._records = np.full(len(space), -math.inf)

    def keep(self, point: Codes, f: float) -> None:
        """Note the values of variables that are present, if no better point had them."""
        if self._space.conditional:
            better = self._space.present(point[None])[0] & (f > self._records)
            self._values[better], self._records[better] = point[better], f

    def furnish(self, point: Codes) -> Codes:
        """Return the same point with the best values that absent variables ever had."""
        if not self._space.conditional:
            return point
        absent = ~self._space.present(point[None])[0] & (self._values >= 0)
        return np.where(absent, self._values, point).astype(np.int32)

    def state(self) -> dict[str, Any]:
        """Return the state, which `restore` takes over."""
        return {"values": self._values, "records": self._records}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; ValueError if it does not fit."""
        values, records = state["values"], state["records"]
        if values.dtype != np.int32 or (values.shape, records.shape) != (self._records.shape,) * 2:
            raise ValueError("the state has values of other variables: it is damaged")
        check_points(np.maximum(values, 0), self._space.cardinalities)
        self._values, self._records = values, records
