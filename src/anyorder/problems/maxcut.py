"""MaxCut: split the vertices of a graph so that the edges between the two parts weigh the most."""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import ArrayLike

from anyorder._internal.checks import integer, number
from anyorder.problems.quadratic import LARGEST, Qubo
from anyorder.problems.text_format import Lines


class MaxCut(Qubo):
    """f(x) = sum of w_ij over the edges whose ends have different bits.

    Parameters
    ----------
    n : number of vertices.
    edges : (t, 2), the ends of each edge; weights of equal edges are added.
    weights : (t,), or None if all are 1.
    """

    def __init__(
        self,
        n: int,
        edges: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        name: str = "maxcut(edges)",
        seed: int | None = None,
    ) -> None:
        pairs = np.asarray(edges)
        w = np.ones(len(pairs)) if weights is None else np.asarray(weights, dtype=np.float64)
        # an edge is cut where s_i s_j = -1: w (1 - s_i s_j) / 2
        super().__init__(
            n,
            pairs,
            w / 2,
            constant=float(w.sum() / 2),
            name=name,
            seed=seed,
            upper_bound=float(np.maximum(w, 0).sum()),
        )


def maxcut(n: int = 128, density: float = 0.1, seed: int = 0, file: str = "") -> MaxCut:
    """Make MaxCut on a random graph (edges have probability `density`), or on a G-set file."""
    if file:
        return read_maxcut(file)
    n = integer("n", n, 2)
    seed = integer("seed", seed, 0)
    p = number("density", density)
    if not 0 <= p <= 1:
        raise ValueError(f"density is {density!r}, expected 0 to 1")
    i, j = np.triu_indices(n, 1)
    kept = np.random.default_rng(seed).random(len(i)) < p
    edges = np.stack([i[kept], j[kept]], axis=1)
    return MaxCut(n, edges, name=f"maxcut:n={n},density={p:g},seed={seed}", seed=seed)


def read_maxcut(path: str | os.PathLike[str]) -> MaxCut:
    """Read MaxCut from a file in the G-set's format: a line "n m", and m lines "i j w" or "i j".

    Vertices are numbered from 1; the weight is 1 if it is left out.
    """
    lines = Lines(path)
    header = lines.next("n and m")
    header.expect(2, "n and m")
    n, m = header.integer(0, 1, LARGEST), header.integer(1, 0)
    edges, weights = [], []
    for _ in range(m):
        line = lines.next(f"one of {m} edges i j w")
        if len(line) not in (2, 3):
            line.expect(3, "i j w")
        i, j = line.integer(0, 1, n), line.integer(1, 1, n)
        if i == j:
            line.refuse(f"an edge from {i} to itself, expected two vertices")
        edges.append((i - 1, j - 1))
        weights.append(line.number(2) if len(line) == 3 else 1.0)
    lines.end()
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    if not math.isfinite(sum(map(abs, weights))):
        raise ValueError(f"{lines.path}: the sum of its weights is not finite")
    return MaxCut(n, pairs, weights, name=f"maxcut:file={lines.path}")
