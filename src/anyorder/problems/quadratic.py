"""Quadratic functions of bits: from terms, from a matrix, or from files of the OR-Library."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anyorder._internal.checks import integer
from anyorder.problems.base import Graph, Kernel, Problem
from anyorder.problems.text_format import Lines
from anyorder.space import Space

# The most bits of a problem in a file. Matrices are dense: 30,000 bits take 7 GB. The largest graph
# of the G-set has 20,000 vertices.
LARGEST = 30_000


class Qubo(Problem):
    """f(x) = constant + sum of h_i s_i - sum of w_ij s_i s_j, with spins s = 2x - 1 of bits x.

    `qubo` draws random instances; `qubo_matrix` and `read_qubo` make instances from a matrix.

    Parameters
    ----------
    n : number of bits.
    pairs : (t, 2), the variables of each term.
    weights : (t,), the energies; those of equal pairs are added.
    linear : (n,), the h_i, or None if all are 0.
    constant : a number added to every value.
    upper_bound : a value that no point exceeds, if one is known.
    """

    def __init__(
        self,
        n: int,
        pairs: ArrayLike,
        weights: ArrayLike,
        *,
        linear: ArrayLike | None = None,
        constant: float = 0.0,
        name: str = "qubo(terms)",
        seed: int | None = None,
        upper_bound: float | None = None,
        best_known: float | None = None,
        source: str | None = None,
    ) -> None:
        n = integer("n", n, 1)
        super().__init__(name, Space.binary(n), seed=seed, best_known=best_known, source=source)
        self.upper_bound = upper_bound
        self.pairs, self.weights = _check_terms(n, np.asarray(pairs), np.asarray(weights))
        self.linear = _check_linear(n, linear)
        self.constant = float(constant)
        if not np.isfinite(self.constant):
            raise ValueError(f"constant is {constant!r}, expected a finite number")
        matrix = np.zeros((n, n))
        np.add.at(matrix, (self.pairs[:, 0], self.pairs[:, 1]), self.weights)
        matrix += matrix.T
        self._graph: Graph = matrix != 0
        # Single precision is twice as fast, and exact for integers as long as no sum can pass
        # 2**24.
        whole = bool((self.weights == np.rint(self.weights)).all())
        exact = whole and np.abs(self.weights).sum() * 2 < 1 << 24
        self._matrix = matrix.astype(np.float32 if exact else np.float64)

    def interaction_graph(self) -> Graph:
        """Return a graph with an edge for each pair with a weight other than zero."""
        return self._graph.copy()

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        spins = points.astype(self._matrix.dtype)
        spins *= 2
        spins -= 1
        # The matrix holds every pair twice, hence the factor 1/2.
        energies = np.einsum("mi,mi->m", spins @ self._matrix, spins)
        values: NDArray[np.float64] = self.constant - 0.5 * energies.astype(np.float64)
        if self.linear is not None:
            values += spins.astype(np.float64) @ self.linear
        return values

    @classmethod
    def _kernel(cls, problems: Sequence[Self], runs: NDArray[np.intp], device: Any) -> Kernel:
        import torch

        # Always double precision: single precision may be TF32 on an accelerator, which rounds
        # integers.
        matrices = torch.as_tensor(
            np.stack([p._matrix.astype(np.float64) for p in problems]), device=device
        )
        # The runs of an instance are neighbours, so that a matrix is stored once and multiplies all
        # points of its instance at once; instances with fewer runs repeat theirs up to the largest
        # number.
        count = len(problems)
        most = int(np.bincount(runs).max())
        order = np.stack([np.resize(np.flatnonzero(runs == i), most) for i in range(count)]).ravel()
        sides = torch.as_tensor(order, device=device)
        back = torch.as_tensor(np.unique(order, return_index=True)[1], device=device)

        linear = None
        if any(p.linear is not None for p in problems):
            terms = [
                np.zeros(p._matrix.shape[0]) if p.linear is None else p.linear for p in problems
            ]
            linear = torch.as_tensor(np.stack(terms)[:, None], device=device)
        constants = torch.as_tensor(np.array([[p.constant] for p in problems]), device=device)

        def kernel(points: Any) -> Any:
            spins = (points.double() * 2 - 1).index_select(0, sides)
            spins = spins.unflatten(0, (count, most)).flatten(1, 2)
            values = constants - 0.5 * ((spins @ matrices) * spins).sum(-1)
            if linear is not None:
                values = values + (spins * linear).sum(-1)
            values = values.unflatten(1, (most, points.shape[1]))
            return values.flatten(0, 1).index_select(0, back)

        return kernel


def qubo_matrix(matrix: ArrayLike, *, name: str = "qubo(matrix)") -> Qubo:
    """Make f(x) = x^T Q x of bits, to be maximised, for a square matrix Q.

    If the problem is to be minimised, pass -Q.
    """
    q = np.asarray(matrix, dtype=np.float64)
    if q.ndim != 2 or q.shape[0] != q.shape[1] or not q.size:
        raise ValueError(f"matrix of shape {q.shape}, expected (n, n)")
    if not np.isfinite(q).all():
        raise ValueError("the matrix holds a value that is not finite, expected finite numbers")
    # x = (1 + s) / 2: x_i x_j is (1 + s_i + s_j + s_i s_j) / 4, and x_i^2 = x_i
    both = np.triu(q + q.T, 1)
    diagonal = np.diag(q)
    linear = diagonal / 2 + (both.sum(axis=0) + both.sum(axis=1)) / 4
    i, j = np.nonzero(both)
    return Qubo(
        len(q),
        np.stack([i, j], axis=1),
        -both[i, j] / 4,
        linear=linear,
        constant=float(diagonal.sum() / 2 + both.sum() / 4),
        name=name,
    )


def read_qubo(path: str | os.PathLike[str], index: int = 0) -> Qubo:
    """Read problem number `index` from a file in the OR-Library's format (J. E. Beasley's bqp).

    The file begins with the number of problems. Each problem is a line "n m" and m lines "i j q",
    with variables numbered from 1: f(x) = sum of q_ij x_i x_j over all ordered pairs, so that an
    entry off the diagonal counts twice. A file with one problem may omit the number of problems.
    """
    lines = Lines(path)
    first = lines.next("the number of problems, or n and m")
    count = 1
    if len(first) == 1:
        count = first.integer(0, 1)
        first = lines.next("n and m")
    integer("index", index, 0, count - 1)
    for k in range(count):
        header = first if k == 0 else lines.next("n and m")
        n, m = header.integer(0, 1, LARGEST), header.integer(1, 0)
        header.expect(2, "n and m")
        matrix = np.zeros((n, n)) if k == index else None
        for _ in range(m):
            line = lines.next(f"one of {m} entries i j q")
            line.expect(3, "i j q")
            i, j, q = line.integer(0, 1, n) - 1, line.integer(1, 1, n) - 1, line.number(2)
            if matrix is not None:
                matrix[i, j] += q
                if i != j:
                    matrix[j, i] += q
        if matrix is not None:
            found = matrix
    lines.end()
    try:
        with np.errstate(over="ignore"):  # reported below
            return qubo_matrix(found, name=f"qubo(file {os.path.basename(path)}, {index})")
    except ValueError:
        raise ValueError(f"{os.fspath(path)}: sums of its entries are not finite") from None


def _check_linear(n: int, linear: ArrayLike | None) -> NDArray[np.float64] | None:
    if linear is None:
        return None
    h = np.array(linear, dtype=np.float64)
    if h.shape != (n,):
        raise ValueError(f"linear of shape {h.shape}, expected ({n},)")
    if not np.isfinite(h).all():
        raise ValueError("linear holds a value that is not finite, expected finite numbers")
    return h


def _check_terms(
    n: int, pairs: NDArray[Any], weights: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    if pairs.ndim != 2 or pairs.shape[1] != 2 or weights.shape != (len(pairs),):
        raise ValueError(
            f"pairs of shape {pairs.shape} and weights of shape {weights.shape}, "
            "expected (t, 2) and (t,)"
        )
    if pairs.dtype.kind not in "iu":
        raise TypeError(f"pairs of type {pairs.dtype}, expected integers")
    wrong = (pairs < 0).any(1) | (pairs >= n).any(1) | (pairs[:, 0] == pairs[:, 1])
    if wrong.any():
        t = int(wrong.argmax())
        raise ValueError(f"pairs[{t}] is {pairs[t]}, expected two variables of 0 to {n - 1}")
    weights = weights.astype(np.float64)
    if not np.isfinite(weights).all():
        raise ValueError("weights hold a value that is not finite, expected finite numbers")
    return pairs.astype(np.int64), weights
