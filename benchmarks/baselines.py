"""The baselines on QUBO 64 (types 0 and 3) and NK 64 K 4, compared with what the paper prints.

The table has the best value after 1,000 and 10,000 evaluations, as a mean over the runs, with the
standard error within instances (10 instances, with as many runs on each). The QUBO instances are
the paper's. The NK instances are our own draws, so differences of +-0.003 are to be expected there.
The paper's figures are shown if its tables are beside the repository, in ../shared/paper/tables.
Every run is written to results/baselines.csv, or to another file.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from common import cores, values_of, write
from tqdm import tqdm

import anyorder as ao


class ReverseBOA(ao.strategies.BOA):
    """BOA as the code that the paper's comparison names (github.com/e5120/EDAs) draws from it.

    It reads the table of a variable with two or more parents with these in reverse, so that the
    chances of one combination are used for another; bits only. Here to explain the paper's figures.
    """

    def _propose(self, n: int) -> Any:
        rows, rng = self._selected, self._rng
        if rows is None:
            return self._uniform(n)
        points = np.empty((n, rows.shape[1]), dtype=np.int32)
        for i in self._order:
            parents = list(self._parents[i])
            weights = 2 ** np.arange(len(parents))
            have, want = rows[:, parents] @ weights, points[:, parents[::-1]] @ weights
            for k in range(n):
                alike = np.flatnonzero(have == want[k])
                points[k, i] = rows[rng.choice(alike if len(alike) else len(rows)), i]
        return points


BUDGET, MARKS = 10_000, (1_000, 10_000)
PROBLEMS = {
    "QUBO 64 type 0": ("qubo:n=64,type=0,seed={}", ("QUBO", "64", "0")),
    "QUBO 64 type 3": ("qubo:n=64,type=3,seed={}", ("QUBO", "64", "3")),
    "NK 64 K 4": ("nk:n=64,k=4,seed={}", ("NK", "64", "4")),
}
ALGORITHMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "PBIL": (ao.strategies.PBIL, {}),
    "MIMIC": (ao.strategies.MIMIC, {}),
    "BOA": (ao.strategies.BOA, {}),
    "BOA, read in reverse": (ReverseBOA, {}),
    "BOA, population 500": (ao.strategies.BOA, {"population": 500}),
    "P3": (ao.strategies.P3, {}),
    "UMDA": (ao.strategies.UMDA, {}),
    "cGA": (ao.strategies.CGA, {}),
    "RLS": (ao.strategies.RLS, {}),
    "(1+1) EA": (ao.strategies.OnePlusOneEA, {}),
    "fast (1+1) EA": (ao.strategies.FastOnePlusOneEA, {}),
    "restart hill climbing": (ao.strategies.HillClimber, {}),
    "iterated local search": (ao.strategies.IteratedLocalSearch, {"kick": 4}),
    "simulated annealing": (ao.strategies.SimulatedAnnealing, {}),
    "tabu search": (ao.strategies.TabuSearch, {}),
}


def one_run(job: tuple[str, str, int]) -> dict[str, Any]:
    where, algorithm, run = job
    problem = ao.problems.get(PROBLEMS[where][0].format(run % 10))
    kind, settings = ALGORITHMS[algorithm]
    start = time.perf_counter()
    values = values_of(kind(problem.space, seed=1_000 + run, **settings), problem, BUDGET)
    best = {f"best_{mark}": round(float(values[:mark].max()), 5) for mark in MARKS}
    seconds = round(time.perf_counter() - start, 2)
    return {"problem": where, "algorithm": algorithm, "instance": run % 10, "seed": 1_000 + run,
            **best, "seconds": seconds}  # fmt: skip


def printed(mark: int) -> dict[tuple[str, ...], str]:
    """The paper's score of each (problem, n, k, method)."""
    path = Path(__file__).parents[1].parent / "shared" / "paper" / "tables" / f"global_{mark}.csv"
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (row["problem"], row["n"], row["k"], row["method"]): row["score"]
            for row in csv.DictReader(file)
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, help="of each algorithm, tens")
    parser.add_argument("--algorithm", action="append", choices=list(ALGORITHMS))
    parser.add_argument("--out", default="baselines.csv", help="in results/")
    options = parser.parse_args()
    algorithms = options.algorithm or list(ALGORITHMS)
    jobs = [(p, a, run) for p in PROBLEMS for a in algorithms for run in range(options.runs)]
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # one process a core
    with ProcessPoolExecutor(cores()) as pool:
        rows = list(tqdm(pool.map(one_run, jobs, chunksize=5), total=len(jobs), disable=None))
    write(options.out, rows)
    paper = {mark: printed(mark) for mark in MARKS}
    for where, (_, key) in PROBLEMS.items():
        print(where)
        for algorithm in algorithms:
            mine = [r for r in rows if (r["problem"], r["algorithm"]) == (where, algorithm)]
            cells = []
            for mark in MARKS:
                best = np.array([row[f"best_{mark}"] for row in mine]).reshape(-1, 10)
                error = (best.var(axis=0, ddof=1).mean() / best.size) ** 0.5
                theirs = paper[mark].get((*key, algorithm.split(",")[0]), "")
                cells.append(f"{best.mean():10.4f} ({error:.4f}) {theirs:>8}")
            seconds = np.mean([row["seconds"] for row in mine])
            print(f"  {algorithm:<24}{''.join(cells)}   {seconds:.2f} s a run")


if __name__ == "__main__":
    main()
