"""Make the move of a list with the highest prediction, or the next one in turn: one evaluation."""

from __future__ import annotations

from anyorder.strategies.auto.operators.base import ListOperator
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes


class Move(ListOperator):
    """The neighbour of the best point for which the model of lists predicts the highest value."""

    name = "list move"
    prior = 0.15

    def weight(self, idle: float) -> float:
        """Return 0 while the model predicts nothing."""
        return float(self.lists.predicts)

    def propose(self, best: Best) -> Codes | None:
        """Return the new neighbour with the highest prediction; None if no neighbour is new."""
        is_new = self.tools.memory.is_new
        return next(filter(is_new, self.lists.rank(best.point)), None)


class Scan(ListOperator):
    """The next neighbour in a random, cyclic order, while climbs still change scalars.

    A climb makes moves of lists only when no change of a scalar is worth an evaluation, which is
    late if there are many scalars.
    """

    name = "list scan"
    prior = 0.2

    def weight(self, idle: float) -> float:
        """Return 0 if there are no scalars: climbs then scan the lists themselves."""
        return float(len(self.tools.landscape.columns.free) > 0)

    def propose(self, best: Best) -> Codes | None:
        """Return the next new neighbour; None if no neighbour is new."""
        is_new = self.tools.memory.is_new
        return next(filter(is_new, self.lists.scan(best.point)), None)
