"""Change a few variables of the best point, or exchange the values of two: one evaluation."""

from __future__ import annotations

from anyorder.strategies.auto.operators.base import MORE_CHANGES, ScalarOperator
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes


class Mutate(ScalarOperator):
    """At least two changes, or one where the model does not predict what one does."""

    name = "mutate"
    prior = 0.08

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        return self.first_new(lambda: self._mutant(best.point))

    def _mutant(self, best: Codes) -> Codes:
        tools, point = self.tools, best.copy()
        changes = int(tools.rng.geometric(1 - MORE_CHANGES)) + tools.landscape.predicts
        tools.landscape.mutate(point, changes)
        return point


class Exchange(ScalarOperator):
    """Two variables of one kind exchange their values, or a step goes from one to the other.

    Where the sum of some variables is limited, as in a knapsack, single changes are worse or not
    allowed, and exchanges lead on.
    """

    name = "exchange"
    prior = 0.08

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        return self.first_new(lambda: self._exchange(best.point))

    def _exchange(self, best: Codes) -> Codes | None:
        point = best.copy()
        return point if self.tools.landscape.exchange(point) else None
