"""Values for the absent variables of a point: those of the best points with these variables.

Conditions make variables absent and present again. A change that makes variables present is then
judged by good values of them, not by arbitrary ones.
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
    """The value of each variable in the best point in which it was present.

    Parameters
    ----------
    space
        The space of the points; if it has no conditions, nothing is kept.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._values = np.full(len(space), -1, np.int32)
        self._records = np.full(len(space), -math.inf)

    def keep(self, point: Codes, f: float) -> None:
        """Keep the values of the variables that are present, unless a better point had them."""
        if self._space.conditional:
            better = self._space.present(point[None])[0] & (f > self._records)
            self._values[better], self._records[better] = point[better], f

    def furnish(self, point: Codes) -> Codes:
        """Return the point with the kept values in place of those of absent variables."""
        if not self._space.conditional:
            return point
        absent = ~self._space.present(point[None])[0] & (self._values >= 0)
        return np.where(absent, self._values, point).astype(np.int32)

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {"values": self._values, "records": self._records}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned; ValueError if it does not fit."""
        values, records = state["values"], state["records"]
        if values.dtype != np.int32 or (values.shape, records.shape) != (self._records.shape,) * 2:
            raise ValueError("the state has values of other variables: it is damaged")
        check_points(np.maximum(values, 0), self._space.cardinalities)
        self._values, self._records = values, records
