"""Change several variables of the best point, and climb from there."""

from __future__ import annotations

from anyorder.strategies.auto.operators.base import ScalarOperator, Tools
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes


class Kick(ScalarOperator):
    """Random variables change, the next one linked with the last half of the time.

    4 / U of them, U uniform. Where pairs explain much, climbs are cheap, and find more from afar.
    """

    name = "kick"
    prior = 0.4
    climbs = True

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        return kicked(best, self.tools, gentle=False)


class GentleKick(ScalarOperator):
    """Changes that are predicted to lose little.

    Where pairs explain little, a climb after a random kick spends most of its evaluations on
    repairing the damage; a gentle kick starts from a higher value at a similar distance.
    """

    name = "gentle kick"
    prior = 0.4
    climbs = True

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        return kicked(best, self.tools, gentle=True)


def kicked(best: Best, tools: Tools, *, gentle: bool) -> Codes:
    """Return the best point after a kick, which the landscape has then gone to."""
    tools.landscape.go_to(best.point, best.value)
    tools.landscape.kick(gentle=gentle)
    return tools.landscape.point.copy()
