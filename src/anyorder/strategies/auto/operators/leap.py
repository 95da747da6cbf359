"""Go to a maximum of the global model: one evaluation, or a climb from there."""

from __future__ import annotations

from anyorder.strategies.auto.operators.base import ScalarOperator, Tools
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
        return maximum(best, self.tools)


class Jump(ScalarOperator):
    """A climb from a maximum of the global model, whatever the value of the maximum is."""

    name = "jump"
    prior = 0.2
    climbs = True

    def weight(self, idle: float) -> float:
        """Return 0 while the model is not trusted."""
        return float(self.tools.landscape.trusted)

    def propose(self, best: Best) -> Codes | None:
        """Return a maximum that tabu search finds; None if it finds no new point."""
        return maximum(best, self.tools)


def maximum(best: Best, tools: Tools) -> Codes | None:
    """Return a maximum of the global model; None if there is none, or if its value is known."""
    point = tools.landscape.maximum(best.point)
    return point if point is not None and tools.memory.is_new(point) else None
