"""NK 64 K 4, 10 instances x 10 seeds: the three presets compared with plain methods.

The results are the best values after 500 to 10,000 evaluations, as means over the runs with
standard errors. Duplicates count as evaluations, as in the paper. Takes about 20 minutes on two
cores, or two with `--runs 10`. Writes the best value of every run after every 100 evaluations to
results/reproduce_core.csv; `--figure FILE` also draws the mean curves. `--algorithm "tabu search"`
adds another baseline by name.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, cores, values_of, write
from matplotlib.figure import Figure
from tqdm import tqdm

import anyorder as ao
from anyorder.plotting.runs import COLOURS

BUDGET, GRID = 10_000, range(100, 10_001, 100)
MARKS = (500, 1_000, 2_000, 3_000, 5_000, 10_000)
PRESETS = {"text": "paper", "authors": "paper-code"}  # by their labels in the results
BASELINES = {
    "random search": ao.strategies.RandomSearch,
    "(1+1) EA": ao.strategies.OnePlusOneEA,
    "restart hill climbing": ao.strategies.HillClimber,
    "iterated local search": partial(ao.strategies.IteratedLocalSearch, kick=4),
    "simulated annealing": ao.strategies.SimulatedAnnealing,
    "tabu search": ao.strategies.TabuSearch,
}


def one_run(job: tuple[str, int, int, int, int]) -> dict[str, Any]:
    algorithm, n, k, instance, seed = job
    problem = ao.problems.nk(n, k, instance)
    start = time.perf_counter()
    restarts = 0
    if algorithm in BASELINES:
        optimizer = BASELINES[algorithm](problem.space, seed=seed)
        best = np.maximum.accumulate(values_of(optimizer, problem, BUDGET))
    else:
        preset, *settings = algorithm.split("+")
        name = "+".join([f"policy:{PRESETS.get(preset, preset)}", *settings])
        result = ao.maximize(
            problem.evaluate,
            problem.space,
            BUDGET,
            seed=seed,
            algorithm=name,
            vectorized=True,
            progress=False,
            cache=False,
        )
        best, restarts = result.history.best, len(result.history.restarts)
    row: dict[str, Any] = {
        "algorithm": algorithm, "n": n, "k": k, "instance": instance, "seed": seed,
        "restarts": restarts, "seconds": round(time.perf_counter() - start, 2),
    }  # fmt: skip
    return row | {f"best_{mark}": round(float(best[mark - 1]), 5) for mark in GRID}


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of an earlier run."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {key: float(x) if key.startswith("best_") else x for key, x in row.items()}
            for row in csv.DictReader(file)
        ]


def mean_and_error(
    rows: list[dict[str, Any]], algorithm: str, marks: Iterable[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Mean best value at the marks and its standard error over the runs of an algorithm."""
    values = np.array(
        [[row[f"best_{mark}"] for mark in marks] for row in rows if row["algorithm"] == algorithm]
    )
    if len(values) == 1:
        return values[0], np.zeros(values.shape[1])
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def figure(rows: list[dict[str, Any]], algorithms: list[str], title: str, path: Path) -> None:
    """Mean curves with a band of two standard errors."""
    canvas = Figure(figsize=(7.5, 4.5), layout="constrained")
    axes = canvas.subplots()
    for colour, algorithm in zip(COLOURS, algorithms, strict=False):
        mean, error = mean_and_error(rows, algorithm, GRID)
        label = f"anyorder, {algorithm}" if algorithm not in BASELINES else algorithm
        style = "-" if algorithm not in BASELINES else "--"
        axes.plot(GRID, mean, style, color=colour, linewidth=2, label=label)
        axes.fill_between(GRID, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.15, lw=0)
    axes.set(xlabel="evaluations", ylabel="mean best value", xscale="log", xlim=(100, BUDGET))
    axes.set_title(title, loc="left", fontsize=11)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center right", fontsize=9)
    canvas.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=64)
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--runs", type=int, default=100, help="spread over 10 instances")
    parser.add_argument(
        "--algorithm", action="append", metavar="NAME",
        help="a baseline, or a preset with settings, like text+input_rate=12.8; may be repeated",
    )  # fmt: skip
    parser.add_argument("--out", default="reproduce_core.csv")
    parser.add_argument("--figure", type=Path, help="write the mean curves here")
    parser.add_argument("--redraw", action="store_true", help="run nothing: read the results file")
    options = parser.parse_args()
    algorithms = options.algorithm or ["default", "text", "authors", *list(BASELINES)[:3]]
    jobs = [
        (algorithm, options.n, options.k, run % 10, run // 10)
        for algorithm in algorithms
        for run in range(options.runs)
    ]
    if options.redraw:
        path = RESULTS / options.out
        rows = read(path)
    else:
        os.environ["ANYORDER_NUM_THREADS"] = "1"  # one process a core, one thread a process
        with ProcessPoolExecutor(cores()) as pool:
            rows = list(tqdm(pool.map(one_run, jobs), total=len(jobs), unit="run", disable=None))
        path = write(options.out, rows)

    print(f"NK {options.n} K {options.k}, {options.runs} runs: mean best value (standard error)")
    print(f"{'after':<24}" + "".join(f"{mark:>16,}" for mark in MARKS))
    for algorithm in algorithms:
        cells = [
            f"{mean:.4f} ({error:.4f})"
            for mean, error in zip(*mean_and_error(rows, algorithm, MARKS), strict=True)
        ]
        print(f"{algorithm:<24}" + "".join(f"{cell:>16}" for cell in cells))
    print(f"every run: {path}")
    if options.figure is not None:
        title = (
            f"NK landscapes, n = {options.n}, K = {options.k}: {options.runs} runs, 2 std. errors"
        )
        figure(rows, algorithms, title, options.figure)


if __name__ == "__main__":
    main()
