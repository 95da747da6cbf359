"""NK 64 K 4, 10 instances x 10 seeds: the three presets beside plain methods.

The best value so far after 500 to 10,000 evaluations, mean over the runs and its standard error.
Duplicates are paid for, as in the paper. Takes about 20 minutes on two cores; `--runs 10` two.
Writes every run to results/reproduce_core.csv.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from common import cores, write
from tqdm import tqdm

import anyorder as ao
from anyorder.cli import parse_config

MARKS = (500, 1_000, 2_000, 3_000, 5_000, 10_000)
BASELINES = {
    "random search": ao.baselines.RandomSearch,
    "(1+1) EA": ao.baselines.OnePlusOneEA,
    "restart hill climbing": ao.baselines.HillClimber,
}


def one_run(job: tuple[str, int, int, int, int]) -> dict[str, Any]:
    algorithm, n, k, instance, seed = job
    problem = ao.problems.nk(n, k, instance)
    start = time.perf_counter()
    restarts = 0
    if algorithm in BASELINES:
        optimizer = BASELINES[algorithm](problem.space, seed=seed)
        best = np.maximum.accumulate(ao.baselines.run(optimizer, problem, MARKS[-1]))
    else:
        preset, *settings = algorithm.split("+")
        result = ao.maximize(
            problem.evaluate, problem.space, MARKS[-1], seed=seed,
            config=parse_config(preset, settings),
            vectorized=True, progress=False,
        )  # fmt: skip
        best, restarts = result.history.best, len(result.history.restarts)
    row: dict[str, Any] = {
        "algorithm": algorithm, "n": n, "k": k, "instance": instance, "seed": seed,
        "restarts": restarts, "seconds": round(time.perf_counter() - start, 2),
    }  # fmt: skip
    return row | {f"best_{mark}": round(float(best[mark - 1]), 6) for mark in MARKS}


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
    options = parser.parse_args()
    algorithms = options.algorithm or [*ao.PRESETS, *BASELINES]
    jobs = [
        (algorithm, options.n, options.k, run % 10, run // 10)
        for algorithm in algorithms
        for run in range(options.runs)
    ]
    os.environ["ANYORDER_NUM_THREADS"] = "1"  # one process a core, one thread a process
    with ProcessPoolExecutor(cores()) as pool:
        rows = list(tqdm(pool.map(one_run, jobs), total=len(jobs), unit="run", disable=None))
    path = write(options.out, rows)

    print(f"NK {options.n} K {options.k}, {options.runs} runs: mean best value (standard error)")
    print(f"{'after':<24}" + "".join(f"{mark:>16,}" for mark in MARKS))
    for algorithm in algorithms:
        of = [row for row in rows if row["algorithm"] == algorithm]
        cells = []
        for mark in MARKS:
            values = np.array([row[f"best_{mark}"] for row in of])
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
            cells.append(f"{values.mean():.4f} ({error:.4f})")
        print(f"{algorithm:<24}" + "".join(f"{cell:>16}" for cell in cells))
    print(f"every run: {path}")


if __name__ == "__main__":
    main()
