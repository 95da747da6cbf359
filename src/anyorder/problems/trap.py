"""Concatenated traps: blocks of bits that lead away from their optimum.

Deb and Goldberg, "Analyzing deception in trap functions", FOGA 2 (1993). Changes of single bits
lead to all zeros; only all bits of a block together lead to the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from anyorder._internal.checks import integer
from anyorder.problems.base import Graph, Kernel, Problem
from anyorder.space import Space


class Trap(Problem):
    """f(x) = sum over blocks of k bits with u ones of k if u = k, else k - 1 - u; see `trap`."""

    def __init__(self, blocks: int, k: int) -> None:
        self.blocks, self.k = integer("blocks", blocks, 1), integer("k", k, 1)
        n = self.blocks * self.k
        super().__init__(
            f"trap:blocks={blocks},k={k}",
            Space.binary(n),
            optimum=float(n),
            source="the point of all ones",
        )

    def interaction_graph(self) -> Graph:
        """Return a graph with an edge between bits that share a block."""
        block = np.arange(len(self.space)) // self.k
        graph: Graph = block[:, None] == block[None, :]
        np.fill_diagonal(graph, False)
        return graph

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        ones = points.reshape(len(points), self.blocks, self.k).sum(axis=-1, dtype=np.int64)
        values: NDArray[np.float64] = np.where(
            ones == self.k, float(self.k), self.k - 1.0 - ones
        ).sum(axis=-1)
        return values

    @classmethod
    def _kernel(
        cls, problems: Sequence[Self], runs: NDArray[np.intp], device: Any
    ) -> Kernel | None:
        k = problems[0].k
        if any(problem.k != k for problem in problems):
            return None

        def kernel(points: Any) -> Any:
            ones = points.long().unflatten(-1, (-1, k)).sum(-1)
            return ones.where(ones == k, k - 1 - ones).sum(-1).double()

        return kernel


def trap(blocks: int = 12, k: int = 5) -> Trap:
    """Make concatenated traps of k bits; the optimum is the number of bits, at all ones."""
    return Trap(blocks, k)
