"""The PUBOi generator of quadratic problems, on which the paper measures.

Tari, Verel and Omidvar, "PUBOi: a tunable benchmark with variable importance", EvoCOP 2022. An
instance is a sum of clauses. Each clause is one of four functions of four spins, whose variables
come from two classes: the first quarter is important, the rest is not. The draws below reproduce
the published instances, term for term: NumPy's legacy generator is called in exactly this order.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyorder._internal.checks import integer
from anyorder.problems.quadratic import Qubo

# Energies on the edges of a clause, one row for each function, and the minimum of each function.
_PORTFOLIO = np.array([[-2, -2, 1, -2], [-2, -2, 1, -1], [-1, -1, 1, -2], [-1, -1, 1, -1]])
_LEAST = np.array([-5, -4, -3, -2])
_EDGES = ((0, 1), (1, 2), (2, 3), (0, 3))

# Degree d and factor alpha, for the types that distinguish the classes: as in the published files,
# and as printed in the paper's text.
_PARAMETERS = {"files": (8.0, 1.1125), "text": (10.0, 1.09)}

# Each class needs four variables: n = 14 is the smallest for which the first quarter has four.
_LEAST_N = 14

# For n = 64 and parameters "files": a row for each type, seeds 0 to 9.
_BEST_KNOWN_64 = (
    (224, 219, 211, 213, 212, 224, 200, 207, 221, 213),
    (154, 141, 151, 179, 160, 164, 146, 155, 157, 141),
    (160, 133, 153, 143, 150, 134, 146, 129, 141, 161),
    (469, 432, 436, 485, 428, 454, 452, 428, 454, 440),
    (343, 350, 372, 361, 340, 334, 334, 324, 346, 354),
    (301, 278, 338, 295, 358, 342, 330, 288, 360, 400),
)


class Clauses(NamedTuple):
    """The clauses of an instance, in the order in which they were drawn.

    `functions` (m,) are 0 to 3; `variables` are (m, 4); `coefficients` (m, 4) are the energies on
    the edges (v0,v1), (v1,v2), (v2,v3), (v0,v3) after the random shift.
    """

    functions: NDArray[np.int64]
    variables: NDArray[np.int64]
    coefficients: NDArray[np.int64]


def qubo(n: int = 128, type: int = 0, seed: int = 0, parameters: str = "files") -> Qubo:
    """Make a PUBOi instance on n >= 14 bits.

    Types 0 to 2 have 0.05 n(n-1)/2 clauses, types 3 to 5 four times as many. In types 0 and 3 both
    classes of variables are drawn alike; in 1 and 4 important variables are drawn d times as often;
    in 2 and 5 important variables also tend to share clauses (factor alpha). `parameters` are those
    of the published "files" (d 8, alpha 1.1125), from which the paper's scores come, or of its
    "text" (10, 1.09).
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
    """Draw the clauses; `density` is their number divided by the number of pairs."""
    rng = np.random.RandomState(seed)
    important = round(0.25 * n)
    m = round(density * n * (n - 1) / 2)
    # Of this draw only the counts of the functions are used; the clauses are in the functions'
    # order.
    functions = np.sort(rng.choice(4, size=m, p=[0.25] * 4))
    cumulative = np.cumsum(_probabilities(degree, factor))
    variables = np.empty((m, 4), dtype=np.int64)
    for row in variables:
        # How many variables are not important: the first number whose cumulative probability is at
        # least u.
        i = int(np.searchsorted(cumulative, rng.random_sample()))
        if i < 4:
            row[: 4 - i] = rng.choice(important, size=4 - i, replace=False)
        if i > 0:
            row[4 - i :] = important + rng.choice(n - important, size=i, replace=False)
    # The shift hides the ground states of each clause. Of the n signs that are drawn, four are
    # used.
    signs = np.array([np.where(rng.random_sample(n)[row] < 0.5, 1, -1) for row in variables])
    coefficients = _PORTFOLIO[functions]
    for edge, (a, b) in enumerate(_EDGES):
        coefficients[:, edge] *= signs[:, a] * signs[:, b]
    return Clauses(functions, variables, coefficients)


def sum_terms(clauses: Clauses) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sum the terms of each pair of variables, and return the pairs and their non-zero weights.

    Pairs have the smaller index first, and are in the order of their first appearance.
    """
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
    """Return the probabilities that 0, 1, 2, 3 variables of a clause are not important.

    The probability of 4 is the remainder.
    """
    p = degree / (degree + 1)
    q = factor * p
    return [comb(4, i) * (1 - q) ** i * q ** (3 - i) * p for i in range(4)]
