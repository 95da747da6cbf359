"""Copy variables that belong together from another local optimum: one evaluation.

The values that the best point and the local optimum have in common are kept. Variables that differ
belong together if they are linked (Whitley, Chicano and Goldman, "Gray box optimization for Mk
landscapes", Evolutionary Computation 24, 2016, call this partition crossover), or if they differ
from the best point in the same local optima, as in linkage learning (Thierens and Bosman, "Optimal
mixing evolutionary algorithms", GECCO 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.strategies.auto.operators.base import ScalarOperator
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes, Index
from anyorder.strategies.models.checking import check_points

SIZE = 64  # the latest local optima, from which mixtures copy values
BY_LINKS = 0.5  # share of mixtures that copy variables which are connected by links


class Mix(ScalarOperator):
    """A mixture of the best point and one of the last local optima."""

    name = "mix"
    prior = 0.08

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._points = np.zeros((0, len(self.tools.space)), np.int32)
        self._added = 0

    def weight(self, idle: float) -> float:
        """Return 0 until there are two local optima."""
        return float(len(self._points) > 1)

    def note_optimum(self, point: Codes) -> None:
        """Remember a local optimum, in place of the oldest if `SIZE` are remembered."""
        if (self._points == point).all(axis=1).any():
            return
        if len(self._points) < SIZE:
            self._points = np.concatenate([self._points, point[None]])
        else:
            self._points[self._added % SIZE] = point
        self._added += 1

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        differ = self._points != best.point
        donors = np.flatnonzero(np.count_nonzero(differ, axis=1) > 1)
        if not len(donors):
            return None
        return self.first_new(lambda: self._mix(best.point, differ, donors))

    def _mix(self, best: Codes, differ: npt.NDArray[np.bool_], donors: Index) -> Codes:
        """Return the best point with some values of one of `donors`.

        Donors are local optima that differ from the best point in more than one variable; `differ`
        says in which variables each local optimum differs from it.
        """
        rng = self.tools.rng
        donor = donors[int(rng.random() * len(donors))]
        copied = _choose_together(
            differ, np.flatnonzero(differ[donor]), self.tools.landscape.links, rng
        )
        for group in self.tools.space.groups:  # lists are copied as a whole
            if ((copied >= group.first) & (copied < group.first + group.size)).any():
                copied = np.union1d(copied, np.arange(len(best))[group.columns])
        point = best.copy()
        point[copied] = self._points[donor, copied]
        return point

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {"points": self._points, "added": self._added}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""
        check_points(state["points"], self.tools.space.cardinalities)
        self._points, self._added = np.asarray(state["points"], np.int32), int(state["added"])


def _choose_together(
    differ: npt.NDArray[np.bool_],
    places: Index,
    links: Callable[[], npt.NDArray[np.bool_]],
    rng: np.random.Generator,
) -> Index:
    """Return a random place and places that belong together with it, but not all of `places`."""
    first = places[int(rng.random() * len(places))]
    if rng.random() < BY_LINKS:
        among = links()[places[:, None], places]
        reached = places == first
        while True:
            grown = reached | among[reached].any(axis=0)
            if np.count_nonzero(grown) == np.count_nonzero(reached):
                break
            reached = grown
        if 1 < np.count_nonzero(reached) < len(places):
            component: Index = places[reached]
            return component
    # the number of local optima in which only one of the first place and each place differs
    distance = (differ[:, places] != differ[:, [first]]).sum(axis=0)
    size = min(int(1 / (1.0 - rng.random())) + 1, len(places) - 1)
    close = distance <= np.partition(distance, size - 1)[size - 1]
    if close.all():
        close = (rng.random(len(places)) < size / len(places)) | (places == first)
    chosen: Index = places[close]
    return chosen
