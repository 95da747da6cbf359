"""An NK landscape of 128 bits: the default, the policy of the paper, and three plain strategies.

An NK landscape is a random function in which each bit interacts with K = 4 others; its optimum is
not known. All algorithms get the same 10,000 evaluations of the same function. Run by `make demo`;
it prints a table and writes a figure.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import anyorder as ao
from anyorder.plotting import convergence

ALGORITHMS = {
    "auto, the default": "auto",
    "policy, the paper's": "policy",
    "random search": "random",
    "(1+1) EA": "one-plus-one",
    "restart hill climbing": "hill-climber",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=128)
    parser.add_argument("--budget", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/demo.png"))
    parser.add_argument("--quick", action="store_true", help="a small run, to see that it works")
    options = parser.parse_args()
    if options.quick:
        options.n, options.budget = 24, 300

    problem = ao.problems.nk(n=options.n, k=4, seed=0)
    print(f"{problem.name}: {problem.space.size:.3g} points, {options.budget:,} evaluations each")
    print("The first run on a machine compiles for half a minute; that is not part of the times.")
    for algorithm in ("auto", "policy"):
        ao.maximize(problem, budget=options.n * 4, algorithm=algorithm, seed=0)
    marks = [mark for mark in (1_000, 3_000, 10_000) if mark < options.budget] + [options.budget]
    print(
        f"\n{'best value after':<24}" + "".join(f"{mark:>10,}" for mark in marks) + f"{'time':>10}"
    )
    runs = {}
    for name, algorithm in ALGORITHMS.items():
        # cache=False: points that are proposed again are evaluated again and cost budget
        result = ao.maximize(
            problem, budget=options.budget, algorithm=algorithm, seed=options.seed, cache=False
        )
        best = result.history.best
        row = "".join(f"{best[mark - 1]:>10.4f}" for mark in marks)
        print(f"{name:<24}{row}{result.seconds:>8.1f} s", flush=True)
        # the default is drawn in detail, the others as lines
        runs[name] = result if algorithm == "auto" else result.history.values

    print("\nOne run of each proves little: benchmarks/ has comparisons.")
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
