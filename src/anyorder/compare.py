"""Algorithms by name on one problem, at equal terms: the same seeds, the same budget.

`anyorder` (or `anyorder:PRESET`) and `baseline:NAME` with a name of `anyorder.baselines.registry`.
Every evaluation is counted, duplicates as well.
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import baselines
from ._checks import integer
from .config import PRESETS
from .loop import maximize
from .problems import Problem

Values = npt.NDArray[np.float64]


class Trace(NamedTuple):
    """One run: every value in order of evaluation, the best point and its value."""

    values: Values
    best: Any
    best_value: float
    seconds: float


def names() -> list[str]:
    """What `run_named` knows."""
    ours = ["anyorder", *(f"anyorder:{preset}" for preset in PRESETS)]
    return [*ours, *(f"baseline:{name}" for name in baselines.registry)]


def check_name(name: str) -> str:
    """The name, if there is such an algorithm."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown algorithm {name!r}{hint}; there are {', '.join(names())}")
    return name


def run_named(name: str, problem: Problem, budget: int, seed: int, engine: str = "auto") -> Trace:
    """One run of an algorithm on a problem, maximised."""
    kind, _, detail = check_name(name).partition(":")
    start = time.perf_counter()
    if kind == "anyorder":
        result = maximize(
            problem.evaluate, problem.space, budget, seed=seed, config=detail or "default",
            engine=engine, vectorized=True, progress=False, cache=False,
        )  # fmt: skip
        if result.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return Trace(result.history.values, result.best, result.best_value, result.seconds)
    maker = baselines.registry[detail]
    # a schedule must know where it ends
    takes_budget = "budget" in inspect.signature(maker).parameters
    settings: dict[str, Any] = {"budget": budget} if takes_budget else {}
    algorithm = maker(problem.space, seed=seed, **settings)
    values = baselines.run(algorithm, problem, budget)
    return Trace(values, algorithm.best, algorithm.best_value, time.perf_counter() - start)


@dataclass(frozen=True)
class Comparison:
    """Runs of several algorithms on one problem.

    Attributes
    ----------
    best
        `(algorithms, runs, budget)`: the best value so far.
    seconds
        Mean time of a run of each.
    """

    problem: str
    algorithms: tuple[str, ...]
    best: Values
    seconds: tuple[float, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Mean, standard deviation and rank of the final values, and a test against the leader.

        The rank is by the mean, 1 is the best. `p` is of a two-sided Mann-Whitney test against
        the algorithm of rank 1, None for itself; it is not corrected for the number of tests.
        """
        final = self.best[:, :, -1]
        means = final.mean(axis=1)
        leader = int(means.argmax())
        rows = []
        for a, name in enumerate(self.algorithms):
            spread = float(final[a].std(ddof=1)) if final.shape[1] > 1 else math.nan
            p = None if a == leader else mann_whitney(final[a], final[leader])
            rank = 1 + int((means > means[a]).sum())
            rows.append({"algorithm": name, "mean": float(means[a]), "sd": spread, "rank": rank,
                         "p": p, "seconds": self.seconds[a]})  # fmt: skip
        return rows

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the mean curves with their standard errors; write it or return the figure."""
        from .plots import Band, averages

        count, budget = self.best.shape[1:]
        grid = np.unique(np.linspace(1, budget, min(budget, 200)).astype(np.int64))
        taken = self.best[:, :, grid - 1]
        error = taken.std(axis=1, ddof=1 if count > 1 else 0) / math.sqrt(count)
        bands = {
            name: Band(grid, taken[a].mean(axis=0), error[a])
            for a, name in enumerate(self.algorithms)
        }
        return averages(bands, path, self.problem)


def compare(
    problem: Problem,
    algorithms: Sequence[str],
    runs: int,
    budget: int,
    seed: int = 0,
    engine: str = "auto",
    done: Callable[[], Any] = lambda: None,
) -> Comparison:
    """Run every algorithm with the seeds seed, seed + 1, ...; `done` is called after each run."""
    integer("runs", runs, 1)
    integer("budget", budget, 1)
    if not algorithms or len(set(algorithms)) < len(algorithms):
        raise ValueError(f"algorithms are {list(algorithms)}, expected one or more, each once")
    for name in algorithms:
        check_name(name)
    best = np.empty((len(algorithms), runs, budget))
    seconds = np.zeros(len(algorithms))
    for r in range(runs):
        for a, name in enumerate(algorithms):
            trace = run_named(name, problem, budget, seed + r, engine)
            best[a, r] = np.maximum.accumulate(trace.values)
            seconds[a] += trace.seconds / runs
            done()
    return Comparison(problem.name, tuple(algorithms), best, tuple(seconds.tolist()))


def mann_whitney(x: Values, y: Values) -> float:
    """Two-sided p-value that x and y are drawn alike: normal approximation, ties corrected."""
    both = np.concatenate([x, y])
    _, inverse, counts = np.unique(both, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    m, n = len(x), len(y)
    total = m + n
    u = ranks[:m].sum() - m * (m + 1) / 2
    ties = float((counts**3 - counts).sum())
    variance = m * n / 12 * (total + 1 - ties / max(1, total * (total - 1)))
    if variance <= 0:
        return 1.0
    z = max(0.0, abs(u - m * n / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))
