"""Counters of a portfolio."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


class Progress:
    """How far a run is, and what its present climb has cost.

    Attributes
    ----------
    asked, answers
        How many points were proposed, and how many answers have come.
    began
        Whether the first random points have been proposed.
    owner, cost, record
        Whose climb is under way, the evaluations that it took, and the best value when it began.
    free_climbs
        How many climbs in a row cost nothing.
    improved
        After how many answers the models last improved the best value.
    found_by
        The operator that found the best point.
    """

    def __init__(self) -> None:
        self.asked = self.answers = self.cost = self.free_climbs = self.improved = 0
        self.began = False
        self.owner = self.found_by = "restart"
        self.record = -math.inf

    def restore(self, values: Mapping[str, Any]) -> None:
        """Take over what `vars` gave."""
        for name, own in vars(self).items():
            if type(values[name]) is not type(own) and not isinstance(own, int | float):
                raise ValueError(f"the state's {name!r} is {values[name]!r}: it is damaged")
            setattr(self, name, values[name])
