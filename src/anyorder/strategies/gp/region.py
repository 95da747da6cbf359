"""How far from the best point to look: farther after successes, nearer after failures.

The trust region follows Wan et al., "Think global and act local: Bayesian optimisation over
high-dimensional categorical and mixed search spaces", ICML 2021.
"""

from __future__ import annotations

WINS = 2  # improvements in a row before the trust region grows
FACTOR = 1.5  # by which it does, or shrinks
LEAST_RADIUS = 2.0  # it never gets smaller
PATIENCE = (4, 12)  # failures in a row before it shrinks: n / 8, within these bounds


class TrustRegion:
    """Its radius, in changes.

    Parameters
    ----------
    units
        The number of columns that can change.
    """

    def __init__(self, units: int) -> None:
        self.radius, self.most = max(units / 4, 4.0), max(float(units), 4.0)
        self._patience = max(PATIENCE[0], min(units / 8, PATIENCE[1]))
        self._wins = self._losses = 0

    def adapt(self, won: bool) -> None:
        """Grow after successes, and shrink after failures."""
        self._wins, self._losses = (self._wins + 1, 0) if won else (0, self._losses + 1)
        if self._wins >= WINS:
            self.radius, self._wins = min(self.radius * FACTOR, self.most), 0
        elif self._losses >= self._patience:
            self.radius, self._losses = max(self.radius / FACTOR, LEAST_RADIUS), 0

    def state(self) -> tuple[float, int, int]:
        """Return the state, which `restore` takes over."""
        return self.radius, self._wins, self._losses

    def restore(self, state: tuple[float, int, int]) -> None:
        """Take over what `state` gave."""
        self.radius, self._wins, self._losses = state
