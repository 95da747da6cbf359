"""Local optima that are remembered, and mixtures of two points.

What two good points have in common is kept; of what differs, variables that belong together are
copied together. They belong together if they are linked (Whitley, Chicano and Goldman, "Gray box
optimization for Mk landscapes", Evolutionary Computation 24, 2016, call that partition crossover),
or if they differ from the best point in the same local optima, as in linkage learning (Thierens and
Bosman, "Optimal mixing evolutionary algorithms", GECCO 2011).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.strategies.base import Codes, Index

SIZE = 64  # local optima that are remembered
BY_LINKS = 0.5  # share of mixtures that copy a component of the graph of links


class Pool:
    """The last local optima, each once.

    Parameters
    ----------
    n
        The number of variables.
    """

    def __init__(self, n: int) -> None:
        self._points = np.zeros((0, n), np.int32)
        self._added = 0

    def __len__(self) -> int:
        return len(self._points)

    def add(self, point: Codes) -> None:
        """Remember a point, in place of the oldest one if there are many."""
        if (self._points == point).all(axis=1).any():
            return
        if len(self._points) < SIZE:
            self._points = np.concatenate([self._points, point[None]])
        else:
            self._points[self._added % SIZE] = point
        self._added += 1

    def mixture(
        self, best: Codes, links: npt.NDArray[np.bool_], rng: np.random.Generator
    ) -> Codes | None:
        """The best point with some values of another one; None if no other differs enough.

        Parameters
        ----------
        best
            The point to change.
        links
            Which variables are known to interact, `(n, n)`.
        rng
            Draws the other point and what is copied.
        """
        differ = self._points != best
        donors = np.flatnonzero(np.count_nonzero(differ, axis=1) > 1)
        if not len(donors):
            return None
        donor = donors[int(rng.random() * len(donors))]
        copied = _together(differ, np.flatnonzero(differ[donor]), links, rng)
        point = best.copy()
        point[copied] = self._points[donor, copied]
        return point

    def state(self) -> dict[str, Any]:
        """All that changes."""
        return {"points": self._points, "added": self._added}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        self._points, self._added = np.asarray(state["points"], np.int32), int(state["added"])


def _together(
    differ: npt.NDArray[np.bool_],
    places: Index,
    links: npt.NDArray[np.bool_],
    rng: np.random.Generator,
) -> Index:
    """Some of `places` that belong together with a first one, but not all of them."""
    first = places[int(rng.random() * len(places))]
    if rng.random() < BY_LINKS:
        among = links[np.ix_(places, places)]
        reached = places == first
        while True:
            grown = reached | among[reached].any(axis=0)
            if np.array_equal(grown, reached):
                break
            reached = grown
        if 1 < np.count_nonzero(reached) < len(places):
            component: Index = places[reached]
            return component
    # In how many optima each one differs from the best point where the first does not, or not.
    distance = (differ[:, places] != differ[:, [first]]).sum(axis=0)
    size = min(int(1 / (1.0 - rng.random())) + 1, len(places) - 1)
    close = distance <= np.partition(distance, size - 1)[size - 1]
    if close.all():
        close = (rng.random(len(places)) < size / len(places)) | (places == first)
    chosen: Index = places[close]
    return chosen
