"""A local optimum of a sample of the model of lists: one evaluation.

The model has a distribution of what each feature is worth. What is best under a sample of it
(Thompson sampling, see `models/lists.py`) is good, or teaches something about what was not known
to be bad.
"""

from __future__ import annotations

from anyorder.strategies.auto.operators.base import ListOperator
from anyorder.strategies.auto.operators.shake import shaken
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes


class Sample(ListOperator):
    """Random moves of the lists of the best point, and a climb on a sample, which costs nothing."""

    name = "list leap"
    prior = 0.4

    def weight(self, idle: float) -> float:
        """Return 0 before there is a model."""
        return float(self.lists.fitted)

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        worth = self.lists.sample()
        return self.first_new(
            lambda: self.lists.climb(shaken(best.point, self.tools, self.columns), worth)
        )
