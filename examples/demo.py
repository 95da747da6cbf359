"""The first minute: an NK landscape of 128 bits, ours beside three plain methods.

An NK landscape is a random function in which each bit interacts with K = 4 others; nobody knows its
optimum. All methods get the same 10,000 evaluations of the same function. Run by `make demo`; it
prints a table and writes a figure.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import anyorder as ao
from anyorder.plotting.runs import convergence


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=128)
    parser.add_argument("--budget", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/demo.png"))
    parser.add_argument("--quick", action="store_true", help="a small one, to see that it works")
    options = parser.parse_args()
    if options.quick:
        options.n, options.budget = 24, 300

    problem = ao.problems.nk(n=options.n, k=4, seed=0)
    print(f"{problem.name}: {problem.space.size:.3g} points, {options.budget:,} evaluations each")
    runs, seconds = {}, {}

    start = time.perf_counter()
    # cache=False: duplicates are paid for, as the other methods do
    result = ao.maximize(
        problem.evaluate, problem.space, options.budget, seed=options.seed, vectorized=True,
        cache=False,
    )  # fmt: skip
    runs["anyorder"], seconds["anyorder"] = result, time.perf_counter() - start

    baselines = {
        "random search": ao.baselines.RandomSearch,
        "(1+1) EA": ao.baselines.OnePlusOneEA,
        "restart hill climbing": ao.baselines.HillClimber,
    }
    for name, baseline in baselines.items():
        start = time.perf_counter()
        algorithm = baseline(problem.space, seed=options.seed)
        runs[name] = ao.baselines.run(algorithm, problem, options.budget)
        seconds[name] = time.perf_counter() - start

    marks = [mark for mark in (1_000, 3_000, 10_000) if mark < options.budget] + [options.budget]
    print(
        f"\n{'best value after':<24}" + "".join(f"{mark:>10,}" for mark in marks) + f"{'time':>10}"
    )
    for name, run in runs.items():
        values = run.history.values if isinstance(run, ao.Result) else run
        best = np.maximum.accumulate(values)
        row = "".join(f"{best[mark - 1]:>10.4f}" for mark in marks)
        print(f"{name:<24}{row}{seconds[name]:>8.1f} s")

    print("\nOne run of each says little; benchmarks/ has the comparisons.")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    title = f"NK landscape, n = {options.n}, K = 4: one run of each"
    try:
        convergence(runs, options.out, title)
    except ImportError as error:
        print(f"No figure: {error}")
    else:
        print(f"Figure: {options.out}")


if __name__ == "__main__":
    main()
