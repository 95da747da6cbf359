"""Simulated annealing.

Kirkpatrick, Gelatt and Vecchi, "Optimization by simulated annealing", Science 220 (1983). For the
scale of the temperatures see White, "Concepts of scale in simulated annealing", ICCD (1984).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from anyorder._internal.checks import integer, real
from anyorder.errors import OK
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Search, Seed, is_data, score


class SimulatedAnnealing(Search):
    """Single changes; a worse point is accepted with probability exp(-loss / temperature).

    The first `sample` answers are those of a random point and of single changes of it. The standard
    deviation s of their values sets the scale of the temperature. Infinite values and failures are
    left out; if fewer than two values remain, sampling continues until there are two. The
    temperature then decreases geometrically from `hot` * s to `cold` * s, which it reaches after
    `budget` evaluations and keeps from then on. Annealing starts from the best sampled point. A
    change draws one of the variables with more than one value, and one of its other values,
    uniformly at random; if there are many ordered values, near and far ones are equally likely. A
    point that is not worse is always accepted; if s is 0, no other point is.

    `propose(k)` returns k neighbours of the current point. Every answer is accepted or rejected as
    if it were a neighbour, in the order in which answers come; data of earlier runs are only
    accepted if they are not worse. Answers that were already known do not lower the temperature.

    Parameters
    ----------
    space, seed
        See `Search`.
    budget
        The number of evaluations for which the temperatures are planned; set it to the budget of
        the run. A shorter run ends at a high temperature, and a longer one stays at the lowest. The
        default of 10,000 is the longest run in the tables of this library.
    sample
        The number of answers that set the scale. With 20 its standard error is about 16 %, and a
        factor of two matters little.
    hot, cold
        The first and the last temperature, in units of s. At s a typical loss is accepted with
        probability 1/e, at a tenth of it only small ones are. Among values from 0.5 to 2 and from
        0.02 to 0.2, this pair was never far behind the best on QUBO and NK landscapes.

    Attributes
    ----------
    generation
        The number of answers.
    """

    name = "annealing"
    STATE: ClassVar[tuple[str, ...]] = (
        "_evaluations", "_sampled", "_scale", "_point", "_start", "_value",
    )  # fmt: skip

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
        self.hot = real("hot", hot, 0, above=True)
        self.cold = real("cold", cold, 0, self.hot, above=True)
        self._evaluations = 0
        self._sampled: list[float] = []  # values, until the scale is known
        self._scale: float | None = None
        self._point: Codes | None = None  # the point whose neighbours are proposed
        self._start: Codes | None = None  # the best point of the sample
        self._value = -np.inf

    @property
    def temperature(self) -> float:
        """The temperature at which the next answer is judged; infinite during sampling."""
        if self._scale is None:
            return math.inf
        spent = (self._evaluations - self.sample) / max(1, self.budget - self.sample)
        return self._scale * self.hot * float((self.cold / self.hot) ** min(1.0, max(0.0, spent)))

    def facts(self) -> dict[str, Any]:
        """Return the temperature; None during sampling, when it is infinite."""
        now = self.temperature
        return {"temperature": now if math.isfinite(now) else None}

    def _propose(self, count: int) -> Codes:
        if not len(self._free):
            return self._uniform(count)
        if self._point is None:
            self._point = self._uniform(1)[0]
            return np.concatenate([self._point[None], self._mutate(self._point, count - 1)])
        return self._mutate(self._point, count)

    def _learn(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            value = score(answer)
            self.generation += 1
            self._evaluations += not answer.known
            if self._scale is None:
                self._gauge(answer, value)
            elif value >= self._value or (
                not is_data(answer) and self._accepts(self._value - value)
            ):
                self._point, self._value = answer.codes.copy(), value

    def _gauge(self, answer: Answer, value: float) -> None:
        if value >= self._value:
            self._start, self._value = answer.codes.copy(), value
        if answer.status == OK and math.isfinite(value):
            self._sampled.append(value)
        if self.generation >= self.sample:
            self._point = self._start
            if len(self._sampled) > 1:
                self._scale = float(np.std(self._sampled))

    def _accepts(self, loss: float) -> bool:
        # Compare an exponential variate with loss / temperature; the temperature may be 0.
        return -math.log1p(-self._rng.random()) * self.temperature > loss
