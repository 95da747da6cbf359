"""Change a variable that others depend on, and climb there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from anyorder.strategies.auto.operators.base import ScalarOperator
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Codes

MOST_VALUES = 16  # of a variable that others depend on, which are visited


class Branch(ScalarOperator):
    """A change that makes other variables present, judged by a climb.

    Right after such a change the variables that it brings have values that were never tuned, or
    those that they had when they were present last. One evaluation says little about the branch,
    and the change back would be the best one of all: the climb does not make it.
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
            elif variable.when is not None:  # a function, which may ask for any earlier one
                deciding |= set(range(j))
        # Values of a variable of many are as many branches; some of them will do.
        self._ways = [
            (i, value)
            for i in sorted(deciding & set(self.tools.landscape.columns.free.tolist()))
            for value in range(min(len(columns[i]), MOST_VALUES))
            if len(columns[i]) > 1
        ]
        self._visits = dict.fromkeys(self._ways, 0)

    def weight(self, idle: float) -> float:
        """Return 0 where no variable depends on another one."""
        return float(len(self._ways) > 0)

    def propose(self, best: Best) -> Codes | None:
        """Return the best point with another value of a variable that others depend on.

        The one that was visited least often. By turns, what it brings has the best values known,
        so that the climb goes on from the best point of the branch, or any values.
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
        """Return the state, which `restore` takes over."""
        return {"visits": self._visits, "held": self.held}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        if state["visits"].keys() != self._visits.keys():
            raise ValueError("the state has branches of another space: it is damaged")
        self._visits, self.held = state["visits"], state["held"]
