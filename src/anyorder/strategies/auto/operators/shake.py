"""Change lists at random: for one evaluation, or to start a climb."""

from __future__ import annotations

import numpy as np

from anyorder.strategies.auto.operators.base import ListOperator, Tools
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes, Index


class Shake(ListOperator):
    """A few random moves of lists, for one evaluation."""

    name = "list mutate"
    prior = 0.1

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        return self.first_new(lambda: shake(best.point, self.tools, self.columns))


class ListKick(ListOperator):
    """A few random moves of lists, to start a climb over scalars and lists."""

    name = "list kick"
    prior = 0.4
    climbs = True
    moves = True

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        return self.first_new(lambda: shake(best.point, self.tools, self.columns))


def shake(point: Codes, tools: Tools, columns: Index, least: float = 1.0) -> Codes:
    """Return a point after random moves of lists: k or more moves with probability `least` / k.

    The number of moves is at most half the number of `columns` of its lists.
    """
    most = max(1.0, len(columns) / 2)
    count = int(min(least / (1 - tools.rng.random()), most))
    chosen = tools.rng.choice(columns, count, replace=False)
    return tools.change(point, np.asarray(chosen))
