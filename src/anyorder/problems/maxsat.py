"""MaxSAT: satisfy clauses of a formula so that they weigh the most."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anyorder._internal.checks import integer, number
from anyorder.problems.base import Graph, Kernel, Problem
from anyorder.problems.text_format import Line, Lines
from anyorder.space import Space


class MaxSat(Problem):
    """f(x) = sum of the weights of satisfied clauses.

    Parameters
    ----------
    n : number of variables.
    clauses : lists of literals as in DIMACS files: v means that variable v (from 1) is 1, and -v
        that it is 0.
    weights : the weights of the clauses; None if all are 1.
    hard : the clauses that must be satisfied. A hard clause weighs one more than all soft ones
        together, so that no point that violates one is better than a point that violates none.
    """

    def __init__(
        self,
        n: int,
        clauses: Sequence[Sequence[int]],
        weights: ArrayLike | None = None,
        hard: ArrayLike | None = None,
        *,
        name: str = "maxsat(clauses)",
        seed: int | None = None,
    ) -> None:
        n = integer("n", n, 1)
        if not len(clauses):
            raise ValueError("clauses is empty, expected at least one")
        self.clauses = [_check_clause(k, clause, n) for k, clause in enumerate(clauses)]
        w = np.ones(len(clauses)) if weights is None else np.array(weights, dtype=np.float64)
        must = np.zeros(len(clauses), bool) if hard is None else np.asarray(hard, dtype=bool)
        for label, array in (("weights", w), ("hard", must)):
            if array.shape != (len(clauses),):
                raise ValueError(f"{label} of shape {array.shape}, expected ({len(clauses)},)")
        if not np.isfinite(w).all() or (w < 0).any():
            raise ValueError("weights hold a negative or infinite value, expected finite ones")
        w[must] = 1.0 + w[~must].sum()
        self.weights, self.hard = w, must
        super().__init__(name, Space.binary(n), seed=seed)
        self.upper_bound = float(w.sum())
        # A short clause repeats its first literal, which changes nothing.
        longest = max(map(len, self.clauses))
        literals = np.array([c + [c[0]] * (longest - len(c)) for c in self.clauses])
        self._variables, self._wanted = np.abs(literals) - 1, literals > 0

    def interaction_graph(self) -> Graph:
        """Return a graph with an edge between variables that share a clause."""
        graph = np.zeros((len(self.space), len(self.space)), dtype=np.bool_)
        for column in self._variables.T:
            graph[self._variables, column[:, None]] = True
        np.fill_diagonal(graph, False)
        return graph

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        x = points.astype(bool)
        satisfied = np.zeros((len(x), len(self.clauses)), dtype=bool)
        for variables, wanted in zip(self._variables.T, self._wanted.T, strict=True):
            satisfied |= x[:, variables] == wanted
        # summed over rows of 0 and 1, so that the result does not depend on the number of points
        values: NDArray[np.float64] = np.einsum("mc,c->m", satisfied, self.weights)
        return values

    @classmethod
    def _kernel(
        cls, problems: Sequence[Self], runs: NDArray[np.intp], device: Any
    ) -> Kernel | None:
        if len(problems) > 1:  # they have different numbers of clauses
            return None
        import torch

        own = problems[0]
        columns = [torch.as_tensor(v, device=device) for v in own._variables.T]
        wanted = [torch.as_tensor(w, device=device) for w in own._wanted.T]
        weights = torch.as_tensor(own.weights, device=device)

        def kernel(points: Any) -> Any:
            x = points.bool()
            satisfied = x[..., columns[0]] == wanted[0]
            for variables, value in zip(columns[1:], wanted[1:], strict=True):
                satisfied = satisfied | (x[..., variables] == value)
            return (satisfied * weights).sum(-1)

        return kernel


def maxsat(n: int = 100, ratio: float = 4.3, k: int = 3, seed: int = 0, file: str = "") -> MaxSat:
    """Make random k-SAT with round(ratio * n) clauses of weight 1, or read a DIMACS file."""
    if file:
        return read_maxsat(file)
    n = integer("n", n, 1)
    k = integer("k", k, 1, n)
    seed = integer("seed", seed, 0)
    count = round(number("ratio", ratio) * n)
    if count < 1:
        raise ValueError(f"ratio is {ratio!r}, expected one that gives a clause for n = {n}")
    rng = np.random.default_rng(seed)
    clauses = [
        [int(v + 1) * (1 if sign else -1) for v, sign in zip(row, rng.random(k) < 0.5, strict=True)]
        for row in (rng.choice(n, size=k, replace=False) for _ in range(count))
    ]
    return MaxSat(n, clauses, name=f"maxsat:n={n},ratio={ratio:g},k={k},seed={seed}", seed=seed)


def read_maxsat(path: str | os.PathLike[str]) -> MaxSat:
    """Read the formula of a DIMACS file.

    The first line is "p cnf", or "p wcnf" with or without a top weight. The newer weighted format
    has no such line, and its clauses begin with a weight or with h.

    Clauses with the top weight, and clauses that begin with h, are hard.
    """
    lines = Lines(path, comment="c")
    first = lines.next("a header or a clause")
    name = f"maxsat:file={os.fspath(path)}"
    if first.words[0] == "p":
        return _with_header(lines, first, name)
    clauses, weights, hard = [], [], []
    for line in [first, *lines.rest()]:
        hard.append(line.words[0] == "h")
        weights.append(0.0 if hard[-1] else _weight(line))
        clauses.append(_literals(line, 1, None))
    return MaxSat(max(abs(v) for c in clauses for v in c), clauses, weights, hard, name=name)


def _with_header(lines: Lines, header: Line, name: str) -> MaxSat:
    kind = header.words[1] if len(header) > 1 else ""
    if kind not in ("cnf", "wcnf") or len(header) not in ((4,) if kind == "cnf" else (4, 5)):
        header.refuse(f"{' '.join(header.words)!r}, expected 'p cnf n m' or 'p wcnf n m [top]'")
    n, m = header.integer(2, 1, 10_000_000), header.integer(3, 1)
    top = header.number(4) if len(header) == 5 else None
    clauses, weights, hard = [], [], []
    for _ in range(m):
        line = lines.next(f"one of {m} clauses")
        weight = _weight(line) if kind == "wcnf" else 1.0
        clauses.append(_literals(line, 1 if kind == "wcnf" else 0, n))
        hard.append(top is not None and weight >= top)
        weights.append(weight)
    lines.end()
    return MaxSat(n, clauses, weights, hard, name=name)


def _weight(line: Line) -> float:
    weight = line.number(0)
    if weight < 0:
        line.refuse(f"a weight of {weight:g}, expected none below 0")
    return weight


def _literals(line: Line, first: int, n: int | None) -> list[int]:
    if line.words[-1] != "0" or len(line) < first + 2:
        line.refuse(f"{' '.join(line.words)!r}, expected literals and a 0 at the end")
    literals = []
    for place in range(first, len(line) - 1):
        value = line.integer(place, -10_000_000, 10_000_000)
        if value == 0 or (n is not None and abs(value) > n):
            line.refuse(
                f"literal {value}, expected a variable from 1 to {n or 'any'}, or its minus"
            )
        literals.append(value)
    return literals


def _check_clause(k: int, clause: Sequence[int], n: int) -> list[int]:
    literals = [integer(f"clauses[{k}]", v, -n, n) for v in clause]
    if not literals or 0 in literals:
        raise ValueError(f"clauses[{k}] is {list(clause)}, expected literals other than 0")
    return literals
