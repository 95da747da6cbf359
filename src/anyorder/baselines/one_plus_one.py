"""The (1+1) evolutionary algorithm with standard mutation.

Droste, Jansen and Wegener, "On the analysis of the (1+1) evolutionary algorithm", Theoretical
Computer Science 276 (2002).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyorder.baselines.base import Baseline, Codes, Seed
from anyorder.space import Space


class OnePlusOneEA(Baseline):
    """One parent; an offspring that is not worse takes its place.

    Every variable changes with probability `rate` (default 1/n, n counting the variables that
    have more than one value) to one of its other values, all alike; at least one changes.
    `ask(n)` gives n offspring of the present parent, or n uniform points before the first `tell`.
    """

    def __init__(self, space: Space, seed: Seed = None, rate: float | None = None) -> None:
        super().__init__(space, seed)
        self._free = np.flatnonzero(self._cardinalities > 1)
        if rate is None:
            rate = 1 / max(1, len(self._free))
        if not isinstance(rate, int | float | np.number) or not 0 < rate <= 1:
            raise ValueError(f"rate is {rate!r}, expected a number above 0 and at most 1")
        self.rate = float(rate)
        self._parent: Codes | None = None
        self._parent_value = -np.inf
        # Chance that a change has happened by the j-th free variable, given that one happens:
        # drawing the first change from it is mutating again until something changes, without
        # the wait that a small rate would mean.
        with np.errstate(divide="ignore"):
            none = np.arange(1, len(self._free) + 1) * np.log1p(-self.rate)
        self._first = np.expm1(none) / np.expm1(none[-1:])

    def _propose(self, n: int) -> Codes:
        if self._parent is None:
            return self._uniform(n)
        offspring = np.tile(self._parent, (n, 1))
        if len(self._free):
            first = np.searchsorted(self._first, self._rng.random(n), side="right")[:, None]
            position = np.arange(len(self._free))
            later = (position > first) & (self._rng.random((n, len(self._free))) < self.rate)
            rows, columns = np.nonzero((position == first) | later)
            variables = self._free[columns]
            values = self._cardinalities[variables]
            steps = 1 + (self._rng.random(len(values)) * (values - 1)).astype(np.int64)
            offspring[rows, variables] = (offspring[rows, variables] + steps) % values
        return offspring

    def _learn(self, codes: Codes, values: NDArray[np.float64]) -> None:
        # As if told one by one: the last of the best.
        last = len(values) - 1 - int(values[::-1].argmax())
        if values[last] >= self._parent_value:
            self._parent, self._parent_value = codes[last].copy(), float(values[last])
