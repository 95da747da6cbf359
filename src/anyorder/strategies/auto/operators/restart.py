"""Climb from a random point."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from anyorder.strategies.auto.operators.base import MORE_CHANGES, Operator
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes
from anyorder.strategies.models.checking import check_kept


class Restart(Operator):
    """A random point; while no point has a value, one near the point of the least violation."""

    name = "restart"
    prior = 0.05
    climbs = True
    moves = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._least: tuple[float, bytes] = (math.inf, b"")  # the least violation, and its point

    def note_violation(self, point: Codes, violation: float) -> None:
        """Keep the point with the least violation; NaN and inf are never less."""
        if violation < self._least[0]:
            self._least = violation, point.tobytes()

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        tools = self.tools
        if best.value > -math.inf or not self._least[1]:
            return self.first_new(lambda: tools.uniform(1)[0])
        least = np.frombuffer(self._least[1], np.int32)

        def near() -> Codes:
            changes = int(tools.rng.geometric(1 - MORE_CHANGES))
            found: Codes = tools.vary(least, 1, changes)[0]
            return found

        return self.first_new(near)

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {"least": self._least}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""
        check_kept(state["least"], self.tools.space.cardinalities)
        self._least = state["least"]
