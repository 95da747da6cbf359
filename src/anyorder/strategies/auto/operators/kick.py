"""Change several variables of the best point, and climb from there."""

from __future__ import annotations

from anyorder.strategies.auto.operators.base import ScalarOperator, Tools
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes

GENTLE_IF_TRUSTED = 0.3  # factor of the prior of gentle kicks while the global model is trusted


class Kick(ScalarOperator):
    """Random changes, half of the time of a variable that is linked with the last one.

    There are 4 / U changes, U uniform. Where pairs of variables explain much, climbs are cheap, and
    climbs from distant points find more.
    """

    name = "kick"
    prior = 0.4
    climbs = True

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        return kick(best, self.tools, gentle=False)


class GentleKick(ScalarOperator):
    """Changes that are predicted to lose little.

    Where pairs of variables explain little, a climb after a random kick spends most of its
    evaluations on repairing the damage; after a gentle kick it starts from a higher value at a
    similar distance.
    """

    name = "gentle kick"
    prior = 0.4
    climbs = True

    def weight(self, idle: float) -> float:
        """Return a smaller weight where pairs of variables explain much."""
        return GENTLE_IF_TRUSTED if self.tools.landscape.trusted else 1.0

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        return kick(best, self.tools, gentle=True)


def kick(best: Best, tools: Tools, *, gentle: bool) -> Codes:
    """Return the best point after a kick, which is then the present point of the landscape."""
    tools.landscape.go_to(best.point, best.value)
    tools.landscape.kick(gentle=gentle)
    return tools.landscape.point.copy()
