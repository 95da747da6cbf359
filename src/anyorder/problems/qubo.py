"""Quadratic problems in spins, and the PUBOi generator of those the paper measures on.

Tari, Verel and Omidvar, "PUBOi: a tunable benchmark with variable importance", EvoCOP 2022. An
instance is a sum of clauses, each one of four functions of four spins, whose variables come from
two classes: the first quarter is important, the rest is not. The draws below are those of the
published instances, term for term: NumPy's legacy generator, in exactly this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anyorder._checks import integer
from anyorder.problems.base import Graph, Kernel, Problem
from anyorder.space import Space

# Energies on the edges of a clause, one function a row, and the least energy of each function.
_PORTFOLIO = np.array([[-2, -2, 1, -2], [-2, -2, 1, -1], [-1, -1, 1, -2], [-1, -1, 1, -1]])
_LEAST = np.array([-5, -4, -3, -2])
_EDGES = ((0, 1), (1, 2), (2, 3), (0, 3))

# Degree d and factor alpha of the types that weigh the classes: as in the published files, and as
# the paper's text prints them.
_PARAMETERS = {"files": (8.0, 1.1125), "text": (10.0, 1.09)}

# Four variables of each class are needed: round(14 / 4) is the first quarter with four.
_LEAST_N = 14

# n = 64, parameters "files", a row a type, seeds 0 to 9.
_BEST_KNOWN_64 = (
    (224, 219, 211, 213, 212, 224, 200, 207, 221, 213),
    (154, 141, 151, 179, 160, 164, 146, 155, 157, 141),
    (160, 133, 153, 143, 150, 134, 146, 129, 141, 161),
    (469, 432, 436, 485, 428, 454, 452, 428, 454, 440),
    (343, 350, 372, 361, 340, 334, 334, 324, 346, 354),
    (301, 278, 338, 295, 358, 342, 330, 288, 360, 400),
)


class Clauses(NamedTuple):
    """The clauses of an instance, in the order they were drawn.

    `functions` (m,) are 0 to 3; `variables` (m, 4); `coefficients` (m, 4) are the energies on the
    edges (v0,v1), (v1,v2), (v2,v3), (v0,v3) after the random shift.
    """

    functions: NDArray[np.int64]
    variables: NDArray[np.int64]
    coefficients: NDArray[np.int64]


class Qubo(Problem):
    """f(x) = -sum of w_ij s_i s_j over the given pairs, with spins s = 2x - 1 of bits x.

    Parameters
    ----------
    n : number of bits.
    pairs : (t, 2) variables of each term.
    weights : (t,) energies; those of equal pairs add up.
    upper_bound : a value no point exceeds, where one is known.
    """

    def __init__(
        self,
        n: int,
        pairs: ArrayLike,
        weights: ArrayLike,
        *,
        name: str = "qubo(terms)",
        seed: int | None = None,
        upper_bound: float | None = None,
        best_known: float | None = None,
        source: str | None = None,
    ) -> None:
        n = integer("n", n, 1)
        super().__init__(name, Space.binary(n), seed=seed, best_known=best_known, source=source)
        self.upper_bound = upper_bound
        self.pairs, self.weights = _checked_terms(n, np.asarray(pairs), np.asarray(weights))
        matrix = np.zeros((n, n))
        np.add.at(matrix, (self.pairs[:, 0], self.pairs[:, 1]), self.weights)
        matrix += matrix.T
        self._graph: Graph = matrix != 0
        # Integers are exact in single precision, at twice the speed, while no sum can pass 2**24.
        whole = bool((self.weights == np.rint(self.weights)).all())
        exact = whole and np.abs(self.weights).sum() * 2 < 1 << 24
        self._matrix = matrix.astype(np.float32 if exact else np.float64)

    def interaction_graph(self) -> Graph:
        """Pairs of non-zero weight."""
        return self._graph.copy()

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        spins = points.astype(self._matrix.dtype)
        spins *= 2
        spins -= 1
        # The matrix holds every pair twice, hence the half.
        energies = np.einsum("mi,mi->m", spins @ self._matrix, spins)
        values: NDArray[np.float64] = -0.5 * energies.astype(np.float64)
        return values

    @classmethod
    def _kernel(cls, problems: Sequence[Self], runs: NDArray[np.intp], device: Any) -> Kernel:
        import torch

        # Double precision always: single may be TF32 on an accelerator, which rounds integers.
        matrices = torch.as_tensor(
            np.stack([p._matrix.astype(np.float64) for p in problems]), device=device
        )
        # The runs of an instance go side by side, so that a matrix is there once and multiplies
        # all its points at once; instances with fewer runs repeat theirs to as many as the most.
        count = len(problems)
        most = int(np.bincount(runs).max())
        order = np.stack([np.resize(np.flatnonzero(runs == i), most) for i in range(count)]).ravel()
        sides = torch.as_tensor(order, device=device)
        back = torch.as_tensor(np.unique(order, return_index=True)[1], device=device)

        def kernel(points: Any) -> Any:
            spins = (points.double() * 2 - 1).index_select(0, sides)
            spins = spins.unflatten(0, (count, most)).flatten(1, 2)
            energies = ((spins @ matrices) * spins).sum(-1)
            values = -0.5 * energies.unflatten(1, (most, points.shape[1]))
            return values.flatten(0, 1).index_select(0, back)

        return kernel


def qubo(n: int = 128, type: int = 0, seed: int = 0, parameters: str = "files") -> Qubo:
    """PUBOi instance on n >= 14 bits.

    Types 0 to 2 have 0.05 n(n-1)/2 clauses, 3 to 5 four times as many. In 0 and 3 both classes of
    variables are drawn alike; in 1 and 4 the important one d times as often; in 2 and 5 important
    variables moreover keep to themselves (factor alpha). `parameters` are those of the published
    "files" (d 8, alpha 1.1125), which the paper's scores come from, or of its "text" (10, 1.09).
    """
    n = integer("n", n, _LEAST_N)
    kind = integer("type", type, 0, 5)
    seed = integer("seed", seed, 0, 2**32 - 1)
    if parameters not in _PARAMETERS:
        raise ValueError(f"parameters is {parameters!r}, expected one of {sorted(_PARAMETERS)}")
    degree, factor = _PARAMETERS[parameters]
    if kind % 3 < 2:
        factor = 1.0
    if kind % 3 == 0:
        degree = 1.0
    clauses = puboi_clauses(n, 0.05 if kind < 3 else 0.2, degree, factor, seed)
    pairs, weights = sum_terms(clauses)
    known = n == 64 and parameters == "files" and seed < 10
    return Qubo(
        n,
        pairs,
        weights,
        name=f"qubo:n={n},type={kind},seed={seed},parameters={parameters}",
        seed=seed,
        upper_bound=-float(_LEAST[clauses.functions].sum()),
        best_known=float(_BEST_KNOWN_64[kind][seed]) if known else None,
        source="simulated annealing, 200 restarts" if known else None,
    )


def puboi_clauses(n: int, density: float, degree: float, factor: float, seed: int) -> Clauses:
    """Draw the clauses; `density` is their number over that of the pairs."""
    rng = np.random.RandomState(seed)
    important = round(0.25 * n)
    m = round(density * n * (n - 1) / 2)
    # Only the counts of the functions are kept of this draw, and the clauses are in their order.
    functions = np.sort(rng.choice(4, size=m, p=[0.25] * 4))
    cumulative = np.cumsum(_probabilities(degree, factor))
    variables = np.empty((m, 4), dtype=np.int64)
    for row in variables:
        # How many are not important: the first whose cumulative probability is not below u.
        i = int(np.searchsorted(cumulative, rng.random_sample()))
        if i < 4:
            row[: 4 - i] = rng.choice(important, size=4 - i, replace=False)
        if i > 0:
            row[4 - i :] = important + rng.choice(n - important, size=i, replace=False)
    # The shift hides the ground states of each clause. n signs are drawn though four matter.
    signs = np.array([np.where(rng.random_sample(n)[row] < 0.5, 1, -1) for row in variables])
    coefficients = _PORTFOLIO[functions]
    for edge, (a, b) in enumerate(_EDGES):
        coefficients[:, edge] *= signs[:, a] * signs[:, b]
    return Clauses(functions, variables, coefficients)


def sum_terms(clauses: Clauses) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (smaller index first) and weights, in order of first appearance, zero sums left out."""
    sums: dict[tuple[int, int], int] = {}
    for clause, coefficients in zip(
        clauses.variables.tolist(), clauses.coefficients.tolist(), strict=True
    ):
        for (a, b), w in zip(_EDGES, coefficients, strict=True):
            i, j = sorted((clause[a], clause[b]))
            sums[i, j] = sums.get((i, j), 0) + w
    terms = np.array([(i, j, w) for (i, j), w in sums.items() if w], dtype=np.int64).reshape(-1, 3)
    return terms[:, :2], terms[:, 2]


def _probabilities(degree: float, factor: float) -> list[float]:
    """Probability of 0, 1, 2, 3 not important variables in a clause; 4 is what is left."""
    p = degree / (degree + 1)
    q = factor * p
    return [comb(4, i) * (1 - q) ** i * q ** (3 - i) * p for i in range(4)]


def _checked_terms(
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
