"""Change a few variables of the best point, or exchange the values of two: one evaluation."""

from __future__ import annotations

from anyorder.strategies.auto.operators.base import MORE_CHANGES, ScalarOperator
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes


class Mutate(ScalarOperator):
    """At least two random changes; at least one while the model of gains predicts little."""

    name = "mutate"
    prior = 0.08

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        return self.first_new(lambda: self._mutate(best.point))

    def _mutate(self, best: Codes) -> Codes:
        tools, point = self.tools, best.copy()
        changes = int(tools.rng.geometric(1 - MORE_CHANGES)) + tools.landscape.predicts
        tools.landscape.mutate(point, changes)
        return point


class Exchange(ScalarOperator):
    """An exchange of the values of two variables of one kind, or a step from one to the other.

    Where the sum of some variables is limited, as in a knapsack, single changes are worse or not
    allowed, but exchanges can be improvements.
    """

    name = "exchange"
    prior = 0.08

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        return self.first_new(lambda: self._exchange(best.point))

    def _exchange(self, best: Codes) -> Codes | None:
        point = best.copy()
        return point if self.tools.landscape.exchange(point) else None
