"""Algorithms by name on one problem, on equal terms: the same seeds, the same budget.

The names are those of `anyorder.bench.algorithms`: our strategies, and those of other libraries
that are installed. Every evaluation is counted, including duplicates.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import integer
from anyorder.bench import algorithms as known
from anyorder.bench.stats import mann_whitney
from anyorder.problems import Problem

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """Runs of several algorithms on one problem.

    Attributes
    ----------
    best
        `(algorithms, runs, budget)`: the best value so far.
    seconds
        The mean duration of a run of each algorithm.
    """

    problem: str
    algorithms: tuple[str, ...]
    best: Values
    seconds: tuple[float, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return mean, deviation and rank of the final values, and a test against the best.

        The rank is by the mean, 1 is the best. `p` is the p-value of a two-sided Mann-Whitney test
        against the algorithm of rank 1, None for itself; it is not corrected for multiple tests.
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
        """Draw the mean curves with their standard errors; write or return the figure."""
        from anyorder.plotting.runs import Band, averages

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
    """Run every algorithm with the seeds seed, seed + 1, ...; call `done` after each run."""
    integer("runs", runs, 1)
    integer("budget", budget, 1)
    if not algorithms or len(set(algorithms)) < len(algorithms):
        raise ValueError(f"algorithms are {list(algorithms)}, expected one or more, each once")
    for name in algorithms:
        known.check(name, problem)
    grid = np.arange(1, budget + 1)
    best = np.empty((len(algorithms), runs, budget))
    seconds = np.zeros(len(algorithms))
    for r in range(runs):
        for a, name in enumerate(algorithms):
            trace = known.run(name, problem, budget, seed + r, grid, engine=engine)
            best[a, r] = trace.curve
            seconds[a] += trace.seconds / runs
            done()
    return Comparison(problem.name, tuple(algorithms), best, tuple(seconds.tolist()))
