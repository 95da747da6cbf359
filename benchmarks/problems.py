"""The time of a batch of 1,000 points of problems with 256 bits, on one core.

It is the minimum of many repetitions, in which all problems take turns: results/problems.csv. The
requirement is at most 10 ms for NK with K = 8 and for QUBO.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy comes in

import argparse
import time

import numpy as np
from common import write

import anyorder as ao

NAMES = ("nk:n=256,k=8", "nk:n=256,k=4", "nkd:n=256,k=4,d=3", "qubo:n=256,type=0",
         "qubo:n=256,type=3", "onemax:n=256", "maxcut:n=256", "maxsat:n=256")  # fmt: skip
POINTS, REPEATS = 1_000, 30


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    problems = {name: ao.problems.get(name) for name in NAMES}
    rng = np.random.default_rng(0)
    batches = {
        name: rng.integers(0, problem.space.cardinalities, (POINTS, 256))
        for name, problem in problems.items()
    }
    times: dict[str, list[float]] = {name: [] for name in NAMES}
    for _ in range(REPEATS):
        for name, problem in problems.items():
            start = time.perf_counter()
            problem.evaluate(batches[name])
            times[name].append(time.perf_counter() - start)
    rows = [
        {"problem": name, "points": POINTS, "least_ms": round(1e3 * min(taken), 3),
         "median_ms": round(1e3 * float(np.median(taken)), 3)}
        for name, taken in times.items()
    ]  # fmt: skip
    for row in rows:
        print(f"{row['problem']:<22}{row['least_ms']:>8} ms (median {row['median_ms']})")
    write("problems.csv", rows)


if __name__ == "__main__":
    main()
