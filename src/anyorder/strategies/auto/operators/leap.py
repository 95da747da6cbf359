"""Evaluate a maximum of the global model: one evaluation."""

from __future__ import annotations

from anyorder.strategies.auto.operators.base import ScalarOperator
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes


class Leap(ScalarOperator):
    """A maximum of the global model, while the model is trusted."""

    name = "leap"
    prior = 0.3

    def weight(self, idle: float) -> float:
        """Return 0 while the model is not trusted."""
        return float(self.tools.landscape.trusted)

    def propose(self, best: Best) -> Codes | None:
        """Return a maximum that tabu search finds; None if it finds no new point."""
        point = self.tools.landscape.maximum(best.point)
        return point if point is not None and self.tools.memory.is_new(point) else None
