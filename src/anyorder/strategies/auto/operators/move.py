"""The move of a list of which the model expects most, or the next one in turn: one evaluation."""

from __future__ import annotations

from anyorder.strategies.auto.operators.base import ListOperator
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes


class Move(ListOperator):
    """The neighbour of the best point of which the model of lists expects most."""

    name = "list move"
    prior = 0.15

    def weight(self, idle: float) -> float:
        """Return 0 while the model predicts nothing."""
        return float(self.lists.predicts)

    def propose(self, best: Best) -> Codes | None:
        """Return the first neighbour in the order of the model that is new; None if none is."""
        is_new = self.tools.memory.is_new
        return next(filter(is_new, self.lists.rank(best.point)), None)


class Scan(ListOperator):
    """The next neighbour in a random, cyclic order, while scalars are still climbed.

    Climbs come to lists when no change of a scalar promises anything. Where there are many scalars
    that is late.
    """

    name = "list scan"
    prior = 0.2

    def weight(self, idle: float) -> float:
        """Return 0 where there are no scalars: climbs are scans there."""
        return float(len(self.tools.landscape.columns.free) > 0)

    def propose(self, best: Best) -> Codes | None:
        """Return the next neighbour that is new; None if none is."""
        is_new = self.tools.memory.is_new
        return next(filter(is_new, self.lists.scan(best.point)), None)
