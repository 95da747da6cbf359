"""Go to a maximum of the global model: by one evaluation, or to climb from there."""

from __future__ import annotations

from anyorder.strategies.auto.operators.base import ScalarOperator, Tools
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes


class Leap(ScalarOperator):
    """A maximum of the global model, which is fitted to all that was observed; while trusted."""

    name = "leap"
    prior = 0.3

    def weight(self, idle: float) -> float:
        """Return 0 while the model is not trusted."""
        return float(self.tools.landscape.trusted)

    def propose(self, best: Best) -> Codes | None:
        """Return the first maximum that tabu search finds, if it is new."""
        return maximum(best, self.tools)


class Jump(ScalarOperator):
    """The same, to climb from there whatever its value is."""

    name = "jump"
    prior = 0.2
    climbs = True

    def weight(self, idle: float) -> float:
        """Return 0 while the model is not trusted."""
        return float(self.tools.landscape.trusted)

    def propose(self, best: Best) -> Codes | None:
        """Return the first maximum that tabu search finds, if it is new."""
        return maximum(best, self.tools)


def maximum(best: Best, tools: Tools) -> Codes | None:
    """Return a maximum of the global model, unless it is known; None if there is none."""
    point = tools.landscape.maximum(best.point)
    return point if point is not None and tools.memory.is_new(point) else None
