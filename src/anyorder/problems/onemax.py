"""OneMax: the number of ones, the simplest problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from anyorder._internal.checks import integer
from anyorder.problems.base import Graph, Kernel, Problem
from anyorder.space import Space


class OneMax(Problem):
    """f(x) = the number of ones among n bits; made by `onemax`."""

    def __init__(self, n: int) -> None:
        n = integer("n", n, 1)
        super().__init__(
            f"onemax:n={n}", Space.binary(n), optimum=float(n), source="the point of all ones"
        )

    def interaction_graph(self) -> Graph:
        """Return a graph without edges: bits do not interact."""
        return np.zeros((len(self.space), len(self.space)), dtype=np.bool_)

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        values: NDArray[np.float64] = points.sum(axis=-1, dtype=np.float64)
        return values

    @classmethod
    def _kernel(cls, problems: Sequence[Self], runs: NDArray[np.intp], device: Any) -> Kernel:
        return lambda points: points.double().sum(-1)


def onemax(n: int = 128) -> OneMax:
    """Make OneMax on n bits; the optimum is n."""
    return OneMax(n)
