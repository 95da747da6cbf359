"""The trust region: the distance from the best point up to which to search.

It follows Wan et al., "Think global and act local: Bayesian optimisation over high-dimensional
categorical and mixed search spaces", ICML 2021.
"""

from __future__ import annotations

WINS = 2  # so many improvements in a row make the trust region grow
FACTOR = 1.5  # the factor by which it grows or shrinks
LEAST_RADIUS = 2.0  # the smallest radius
PATIENCE = (4, 12)  # failures in a row after which it shrinks: n / 8, within these bounds


class TrustRegion:
    """A region around the best point, with its radius as a number of changes.

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
        """Grow after several successes, and shrink after several failures."""
        self._wins, self._losses = (self._wins + 1, 0) if won else (0, self._losses + 1)
        if self._wins >= WINS:
            self.radius, self._wins = min(self.radius * FACTOR, self.most), 0
        elif self._losses >= self._patience:
            self.radius, self._losses = max(self.radius / FACTOR, LEAST_RADIUS), 0

    def state(self) -> tuple[float, int, int]:
        """Return the state, for `restore`."""
        return self.radius, self._wins, self._losses

    def restore(self, state: tuple[float, int, int]) -> None:
        """Continue from what `state` returned."""
        self.radius, self._wins, self._losses = state
