"""Change a variable on which others depend, and climb from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from anyorder.strategies.auto.operators.base import ScalarOperator
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes

MOST_VALUES = 16  # values that are tried of a variable on which the presence of others depends


class Branch(ScalarOperator):
    """A change that makes other variables present or absent, judged by a climb.

    After such a change, the variables that become present have values that were never tuned, or
    that were good with another rest of the point. So a single evaluation says little about the
    branch, and the best change would often be to undo it; the climb is not allowed to.
    """

    name = "branch"
    prior = 2.0
    climbs = True
    interrupts = True
    most = 2.0

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        columns, labels = self.tools.space.columns, self.tools.space.labels
        places = {name: j for j, name in enumerate(labels or ())}
        deciding: set[int] = set()
        for j, variable in enumerate(columns):
            if isinstance(variable.when, Mapping):
                deciding |= {places[name] for name in variable.when}
            elif variable.when is not None:  # a function, which may read any earlier variable
                deciding |= set(range(j))
        # each value is a branch; of a variable of many values, some are enough
        self._ways = [
            (i, value)
            for i in sorted(deciding & set(self.tools.landscape.columns.free.tolist()))
            for value in range(min(len(columns[i]), MOST_VALUES))
            if len(columns[i]) > 1
        ]
        self._visits = dict.fromkeys(self._ways, 0)

    def weight(self, idle: float) -> float:
        """Return 0 if no variable depends on another."""
        return float(len(self._ways) > 0)

    def propose(self, best: Best) -> Codes | None:
        """Return the best point in another branch; None if there is none.

        The branch is the one that was visited least often. The variables that it makes present have
        the best values known in one visit, so that the climb continues from the best point of the
        branch, and random values in the next.
        """
        space, found = self.tools.space, None
        here = space.present(best.point[None])[0]
        for i, value in self.tools.rng.permutation(self._ways).tolist():
            fewer = found is None or self._visits[i, value] < self._visits[found]
            if not here[i] or best.point[i] == value or not fewer:
                continue
            point = best.point.copy()
            point[i] = value
            if not np.array_equal(space.present(point[None])[0], here):
                found = i, value
        if found is None:
            return None
        point = best.point.copy()
        point[found[0]] = found[1]
        if self._visits[found] % 2:
            brought = space.present(point[None])[0] & ~here
            point = np.where(brought, self.tools.uniform(1)[0], point).astype(np.int32)
        self._visits[found] += 1
        self.held = found[0]
        return point

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {"visits": self._visits, "held": self.held}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""
        if state["visits"].keys() != self._visits.keys():
            raise ValueError("the state has branches of another space: it is damaged")
        self._visits, self.held = state["visits"], state["held"]
