"""Hill climbing and iterated local search on the 42 distributions of the paper.

The result is the best value after 1,000 and 10,000 evaluations, for 50, 30 and 10 runs with n 64,
128 and 256, over 10 instances each. If ../shared/spec/local_search.csv is beside the repository,
results that were measured independently with as many runs are shown, with the difference in
standard errors. The QUBO instances are the same, and the NK instances are other draws. Writes every
run to results/local_search_rows.csv.
"""

from __future__ import annotations

import argparse
import csv
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import cores, values_of, write
from tqdm import tqdm

import anyorder as ao

MARKS = {"1k": 1_000, "10k": 10_000}
RUNS = {64: 50, 128: 30, 256: 10}
ALGORITHMS = {
    "hc": ao.strategies.HillClimber,
    "ils4": partial(ao.strategies.IteratedLocalSearch, kick=4),
}
NAMES = {"QUBO": "qubo:n={},type={},seed={}", "NK": "nk:n={},k={},seed={}",
         "NK3": "nkd:n={},k={},d=3,seed={}"}  # fmt: skip
ROWS = [(p, n, k) for n in RUNS for p, ks in
        (("QUBO", range(6)), ("NK", (1, 2, 4, 8)), ("NK3", (1, 2, 4, 8))) for k in ks]  # fmt: skip


def one_run(job: tuple[str, int, int, str, int]) -> dict[str, Any]:
    family, n, k, algorithm, run = job
    problem = ao.problems.get(NAMES[family].format(n, k, run % 10))
    search = ALGORITHMS[algorithm](problem.space, seed=2_000 + run)
    values = values_of(search, problem, max(MARKS.values()))
    best = {f"best_{mark}": round(float(values[:mark].max()), 5) for mark in MARKS.values()}
    return {"problem": family, "n": n, "k": k, "algorithm": algorithm, "run": run, **best}


def measured() -> dict[tuple[str, int, int], dict[str, str]]:
    """The independent measurements, a row of columns such as hc_1k for each distribution."""
    path = Path(__file__).parents[1].parent / "shared" / "spec" / "local_search.csv"
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {(r["problem"], int(r["n"]), int(r["k"])): r for r in csv.DictReader(file)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    jobs = [(*row, a, run) for row in ROWS for a in ALGORITHMS for run in range(RUNS[row[1]])]
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # one process a core
    with ProcessPoolExecutor(cores()) as pool:
        rows = list(tqdm(pool.map(one_run, jobs, chunksize=5), total=len(jobs), disable=None))
    write("local_search_rows.csv", rows)
    theirs, scores = measured(), []
    for family, n, k in ROWS:
        line = f"{family:<5}{n:>4}{k:>3}"
        for algorithm in ALGORITHMS:
            mine = [
                r
                for r in rows
                if (r["problem"], r["n"], r["k"], r["algorithm"]) == (family, n, k, algorithm)
            ]
            for name, mark in MARKS.items():
                best = np.array([row[f"best_{mark}"] for row in mine])
                line += f"{best.mean():>10.4g}"
                other = theirs.get((family, n, k), {}).get(f"{algorithm}_{name}")
                if other is not None:
                    # their runs scatter as ours do
                    error = float(best.std(ddof=1)) * (2 / len(best)) ** 0.5
                    scores.append((best.mean() - float(other)) / max(error, 1e-12))
                    line += f" {other:>7} {scores[-1]:+5.1f}"
        print(line)
    if scores:
        far = sum(abs(score) > 3 for score in scores)
        print(f"{len(scores)} differences in standard errors: mean {np.mean(scores):+.2f}, "
              f"standard deviation {np.std(scores):.2f}, {far} beyond 3")  # fmt: skip


if __name__ == "__main__":
    main()
