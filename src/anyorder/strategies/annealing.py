"""Simulated annealing.

Kirkpatrick, Gelatt and Vecchi, "Optimization by simulated annealing", Science 220 (1983). The
scale of the temperatures: White, "Concepts of scale in simulated annealing", ICCD (1984).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from anyorder._checks import integer
from anyorder.space import Space
from anyorder.strategies.baseline import Baseline, Codes, Seed, real


class SimulatedAnnealing(Baseline):
    """One change at a time; a worse point is accepted with chance exp(-loss / temperature).

    The first `sample` evaluations are a uniform point and single changes of it. The standard
    deviation s of their values says what a change is worth here (infinite ones are left out, and
    where fewer than two remain it goes on until there are two). From then on the temperature falls
    geometrically from `hot` * s to `cold` * s, which it has when `budget` evaluations were told,
    and stays there. Annealing starts from the best point so far, and a change draws one of the
    variables with more than one value, then one of its other values, all alike. A point that is
    not worse is always accepted; where s is 0 no other is.

    `ask(n)` gives n neighbours of the present point. Whatever is told is accepted or not as if
    it were one, in the order of telling.

    Parameters
    ----------
    space, seed : as for every baseline.
    budget : the evaluations the cooling is laid out for. Give what you will spend: with less it
        ends hot, and what comes after is spent cold. The default of 10,000 is the longest run of
        this library's tables.
    sample : evaluations that set the scale; 20 give it to about 16 %, and a factor of two
        matters little.
    hot, cold : first and last temperature, in units of s. At s a usual loss is accepted one time
        in three, at a tenth of it hardly ever, only the small ones are. Of 0.5 to 2 and 0.02 to
        0.2 on QUBO and NK landscapes this pair was never far behind.
    """

    def __init__(
        self,
        space: Space,
        seed: Seed = None,
        budget: int = 10_000,
        *,
        sample: int = 20,
        hot: float = 1.0,
        cold: float = 0.1,
    ) -> None:
        super().__init__(space, seed)
        self.budget = integer("budget", budget, 1)
        self.sample = integer("sample", sample, 2)
        self.hot = real("hot", hot, 0)
        self.cold = real("cold", cold, 0, self.hot)
        self._told = 0
        self._sampled: list[float] = []  # until the scale is known
        self._scale: float | None = None
        self._point: Codes | None = None  # whose neighbours are asked
        self._start: Codes | None = None  # the best of the sample
        self._value = -np.inf

    @property
    def temperature(self) -> float:
        """What the next told value is judged by; infinite before the scale is known."""
        if self._scale is None:
            return math.inf
        spent = min(1.0, (self._told - self.sample) / max(1, self.budget - self.sample))
        return self._scale * self.hot * float((self.cold / self.hot) ** spent)

    def _propose(self, n: int) -> Codes:
        if not len(self._free):
            return self._uniform(n)
        if self._point is None:
            self._point = self._uniform(1)[0]
            return np.concatenate([self._point[None], self._varied(self._point, n - 1)])
        return self._varied(self._point, n)

    def _learn(self, codes: Codes, values: NDArray[np.float64]) -> None:
        for point, value in zip(codes, values.tolist(), strict=True):
            self._told += 1
            if self._scale is None:
                self._gauge(point, value)
            elif value >= self._value or self._accepts(self._value - value):
                self._point, self._value = point.copy(), value

    def _gauge(self, point: Codes, value: float) -> None:
        if value >= self._value:
            self._start, self._value = point.copy(), value
        if math.isfinite(value):
            self._sampled.append(value)
        if self._told >= self.sample:
            self._point = self._start
            if len(self._sampled) > 1:
                self._scale = float(np.std(self._sampled))

    def _accepts(self, loss: float) -> bool:
        # An exponential variate exceeds loss / temperature; multiplied, for that may be 0.
        return -math.log1p(-self._rng.random()) * self.temperature > loss
