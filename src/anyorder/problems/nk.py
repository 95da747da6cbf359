"""NK landscapes whose variables have any number of values.

Kauffman and Weinberger, "The NK model of rugged fitness landscapes and its application to
maturation of the immune response", Journal of Theoretical Biology 141 (1989).

    f(x) = (1/n) * sum_i tables[i][index_i(x)]
    index_i(x) = sum_p x[neighbours[i][p]] * d**(k - p)      p = 0..k

The first variable of a list is thus the most significant digit of the table's index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anyorder._internal.checks import integer
from anyorder.problems.base import Graph, Kernel, Problem
from anyorder.space import Space

# One gibibyte of contributions: more means a mistake in k, not an instance.
_MOST_CONTRIBUTIONS = 1 << 27


class NK(Problem):
    """An NK landscape given by neighbour lists and tables; `nk` and `nkd` draw random ones.

    Parameters
    ----------
    neighbours : (n, k + 1) distinct variables; list i contains i itself, at any place.
    tables : (n, d**(k + 1)) contributions of each locus, in the order of the index.
    d : number of values of a variable.
    """

    def __init__(
        self,
        neighbours: ArrayLike,
        tables: ArrayLike,
        d: int = 2,
        *,
        name: str = "nk(tables)",
        seed: int | None = None,
    ) -> None:
        self.d = integer("d", d, 2)
        self.neighbours = _check_neighbours(np.asarray(neighbours))
        self.n, self.k = self.neighbours.shape[0], self.neighbours.shape[1] - 1
        size = _table_size(self.n, self.k, self.d)
        self.tables: NDArray[np.float64] = np.array(tables, dtype=np.float64, order="C")
        if self.tables.shape != (self.n, size):
            raise ValueError(
                f"tables of shape {self.tables.shape}, expected (n, d**(k+1)) = {(self.n, size)}"
            )
        if not np.isfinite(self.tables).all():
            raise ValueError("tables hold a value that is not finite, expected finite numbers")
        super().__init__(name, Space.categorical(self.n, self.d), seed=seed)
        self._digits = np.ascontiguousarray(self.neighbours.T)
        self._first_entry = np.arange(0, self.n * size, size, dtype=np.int32)[:, None]

    def interaction_graph(self) -> Graph:
        """Return a graph with an edge between variables that share a table."""
        graph = np.zeros((self.n, self.n), dtype=np.bool_)
        for digit in self._digits:
            graph[self.neighbours, digit[:, None]] = True
        np.fill_diagonal(graph, False)
        return graph

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        # Variables are in rows, so that taking neighbours copies whole rows instead of gathering.
        x = np.ascontiguousarray(points.T, dtype=np.int32)
        index = x.take(self._digits[0], axis=0)
        for digit in self._digits[1:]:
            index *= self.d
            index += x.take(digit, axis=0)
        index += self._first_entry
        # Points are in rows again, so that each is summed in the same way in every batch.
        contributions = np.ascontiguousarray(self.tables.take(index).T)
        values: NDArray[np.float64] = contributions.sum(axis=-1) / self.n
        return values

    @classmethod
    def _kernel(
        cls, problems: Sequence[Self], runs: NDArray[np.intp], device: Any
    ) -> Kernel | None:
        import torch

        n, k, d = problems[0].n, problems[0].k, problems[0].d
        if any(problem.k != k for problem in problems):
            return None
        # All tables are in one array, and each locus of each run has the index at which its own
        # begins. Tables are large, so there is one copy for each instance; there are lists of
        # neighbours for each run.
        tables = torch.as_tensor(
            np.concatenate([p.tables.ravel() for p in problems]), device=device
        )
        begins = (runs[:, None, None] * n + np.arange(n)) * d ** (k + 1)
        first_entry = torch.as_tensor(begins, device=device)
        digits = np.stack([p._digits.ravel() for p in problems])[runs, None]
        neighbours = torch.as_tensor(digits, device=device)
        powers = torch.as_tensor(d ** np.arange(k, -1, -1)[:, None], device=device)

        def kernel(points: Any) -> Any:
            taken = points.long().gather(2, neighbours.expand(-1, points.shape[1], -1))
            index = (taken.unflatten(2, (k + 1, n)) * powers).sum(2) + first_entry
            return _total(tables.take(index)) / n

        return kernel


def _total(x: Any) -> Any:
    """Return the sum of a tensor over its last axis, added by halves.

    The sum of a device may add up in another order if the batch is larger. This one does not, so
    that the value of a point does not depend on the rest of the batch.
    """
    while x.shape[-1] > 1:
        half, odd = divmod(x.shape[-1], 2)
        rest = x[..., 2 * half :]
        x = x[..., :half] + x[..., half : 2 * half]
        if odd:
            x[..., :1] += rest
    return x[..., 0]


def nk(n: int = 128, k: int = 4, seed: int = 0) -> NK:
    """Make a random NK landscape on n bits, where each locus depends on k random others.

    It is drawn from ``numpy.random.default_rng(seed)``: for each locus in turn, itself and then
    ``choice(n - 1, k, replace=False)`` of the others in increasing order; then all tables at
    once, uniform in [0, 1).
    """
    return _random(n, k, 2, seed, f"nk:n={n},k={k},seed={seed}")


def nkd(n: int = 128, k: int = 4, d: int = 3, seed: int = 0) -> NK:
    """Make a random NK landscape on n variables of d values.

    It is drawn as by `nk`, and equals it for d = 2.
    """
    return _random(n, k, d, seed, f"nkd:n={n},k={k},d={d},seed={seed}")


def _random(n: int, k: int, d: int, seed: int, name: str) -> NK:
    n = integer("n", n, 1)
    k = integer("k", k, 0, n - 1)
    d = integer("d", d, 2)
    seed = integer("seed", seed, 0)
    size = _table_size(n, k, d)
    rng = np.random.default_rng(seed)
    neighbours = np.empty((n, k + 1), dtype=np.int64)
    for i in range(n):
        others = rng.choice(n - 1, size=k, replace=False) if k else np.empty(0, dtype=np.int64)
        neighbours[i, 0] = i
        neighbours[i, 1:] = others + (others >= i)
    return NK(neighbours, rng.random((n, size)), d, name=name, seed=seed)


def _table_size(n: int, k: int, d: int) -> int:
    size: int = d ** (k + 1)
    if n * size > _MOST_CONTRIBUTIONS:
        raise ValueError(
            f"n={n}, k={k}, d={d} needs {n * size} contributions, "
            f"expected at most {_MOST_CONTRIBUTIONS}"
        )
    return size


def _check_neighbours(neighbours: NDArray[Any]) -> NDArray[np.int64]:
    if neighbours.ndim != 2 or neighbours.size == 0:
        raise ValueError(f"neighbours of shape {neighbours.shape}, expected (n, k + 1)")
    if neighbours.dtype.kind not in "iu":
        raise TypeError(f"neighbours of type {neighbours.dtype}, expected integers")
    n = len(neighbours)
    for i, listed in enumerate(neighbours.tolist()):
        if min(listed) < 0 or max(listed) >= n:
            raise ValueError(f"neighbours[{i}] is {listed}, expected variables 0 to {n - 1}")
        if len(set(listed)) < len(listed) or i not in listed:
            raise ValueError(f"neighbours[{i}] is {listed}, expected {i} and distinct others")
    return neighbours.astype(np.int64)
