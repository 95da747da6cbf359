"""Counters of a portfolio."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


class Progress:
    """The progress of a run, and the cost of its present climb.

    Attributes
    ----------
    asked, answers
        The number of points proposed, and the number of answers received.
    began
        Whether the first climb has begun.
    owner, cost, record
        The operator whose climb is under way, the evaluations that the climb has taken, and the
        best value when it began.
    free_climbs
        The number of successive climbs that cost nothing.
    improved
        The number of answers when the best value was last improved, except by explorers.
    found_by
        The operator that found the best point.
    """

    def __init__(self) -> None:
        self.asked = self.answers = self.cost = self.free_climbs = self.improved = 0
        self.began = False
        self.owner = self.found_by = "restart"
        self.record = -math.inf

    def restore(self, values: Mapping[str, Any]) -> None:
        """Set the attributes to what `vars` returned."""
        for name, own in vars(self).items():
            if type(values[name]) is not type(own) and not isinstance(own, int | float):
                raise ValueError(f"the state's {name!r} is {values[name]!r}: it is damaged")
            setattr(self, name, values[name])
