"""Subsets of 40 weights under constraints: the best value after 500 evaluations, and the time.

    python benchmarks/constraints.py --out results/constraints.csv

The weights are `numpy.random.default_rng(0).random(40)`. With at most 10 of them the optimum is
9.00, with exactly 5 of them 4.76. Each constraint is given as a number (the amount of the
violation) and as a bool. There is a line for each run: the best value, the number of calls of the
constraint, CPU seconds and seconds.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import machine

import anyorder as ao

WEIGHTS = np.random.default_rng(0).random(40)
CONSTRAINTS: dict[str, Any] = {
    "at most 10, number": lambda x: int(x.sum()) - 10,
    "at most 10, bool": lambda x: bool(x.sum() <= 10),
    "exactly 5, number": lambda x: abs(int(x.sum()) - 5),
    "exactly 5, bool": lambda x: bool(x.sum() == 5),
}


def run(algorithm: str, constraint: str, seed: int) -> dict[str, Any]:
    """One run."""
    start, cpu = time.perf_counter(), time.process_time()
    result = ao.maximize(
        lambda x: float(WEIGHTS @ x), ao.Space.binary(40), 500, seed=seed, algorithm=algorithm,
        constraint=CONSTRAINTS[constraint], progress=False,
    )  # fmt: skip
    feasibility = result.optimizer.feasibility
    return {
        "constraint": constraint, "algorithm": algorithm, "seed": seed,
        "evaluations": result.evaluations, "best": round(result.best_value, 4),
        "calls": feasibility.calls if feasibility is not None else 0,
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "seconds": round(time.perf_counter() - start, 2),
    }  # fmt: skip


def main() -> None:
    """Run all, and append to the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithms", nargs="+", default=["policy", "ils", "delta", "auto"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/constraints.csv"))
    given = parser.parse_args()
    for algorithm in given.algorithms:  # compiles
        run(algorithm, "at most 10, number", 0)
        for constraint in CONSTRAINTS:
            for seed in range(given.seeds):
                row = {**run(algorithm, constraint, seed), **machine()}
                fresh = not given.out.exists()
                with given.out.open("a", newline="", encoding="utf-8") as file:
                    table = csv.DictWriter(file, list(row), lineterminator="\n")
                    if fresh:
                        table.writeheader()
                    table.writerow(row)


if __name__ == "__main__":
    main()
