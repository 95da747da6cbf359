"""Evaluate a local optimum of a sample of the model of lists: one evaluation.

The model has a distribution of the weight of each feature. A point that is best under a sample of
these weights (Thompson sampling, see `models/lists.py`) is good, or its value corrects weights that
were not known well.
"""

from __future__ import annotations

from anyorder.strategies.auto.operators.base import ListOperator
from anyorder.strategies.auto.operators.shake import shake
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes


class Sample(ListOperator):
    """Random moves of lists, then a climb on a sample of the model, which costs no evaluation."""

    name = "list leap"
    prior = 0.4

    def weight(self, idle: float) -> float:
        """Return 0 before the model is fitted."""
        return float(self.lists.fitted)

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        worth = self.lists.sample()
        return self.first_new(
            lambda: self.lists.climb(shake(best.point, self.tools, self.columns), worth)
        )
