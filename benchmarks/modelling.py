"""How to model a decision: a knapsack as one `Subset` and as a `Binary` for each item.

    python benchmarks/modelling.py run --instances 10
    python benchmarks/modelling.py table

There are 80 items and one capacity, and the same constraint in both models: the amount by which the
weight exceeds the capacity. `run` appends the best values after 200 evaluations of `auto` to
results/modelling.csv, without repeating runs. `table` prints means over instances with their
standard errors, and the paired t-test.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from typing import Any

import numpy as np
from common import RESULTS

import anyorder as ao

PATH = RESULTS / "modelling.csv"
FIELDS = ("instance", "model", "evaluations", "best")
ITEMS, BUDGET = 80, 200


def functions(instance: int) -> tuple[Callable[[list[int]], float], Callable[[list[int]], float]]:
    """Return what a choice of items is worth, and by how much it exceeds the capacity."""
    rng = np.random.default_rng(instance)
    weights = rng.integers(5, 100, ITEMS)
    worth = weights + rng.integers(0, 40, ITEMS)
    capacity = 0.35 * weights.sum()
    return (
        lambda chosen: float(worth[chosen].sum()),
        lambda chosen: float(weights[chosen].sum() - capacity),
    )


def solve(instance: int, model: str) -> float:
    value, exceeded = functions(instance)
    if model == "subset":
        space = ao.Space({"load": ao.Subset(range(ITEMS))})

        def chosen(point: Any) -> list[int]:
            return list(point["load"])
    else:
        space = ao.Space({f"item {k}": ao.Binary() for k in range(ITEMS)})

        def chosen(point: Any) -> list[int]:
            return [k for k in range(ITEMS) if point[f"item {k}"]]

    result = ao.maximize(
        lambda point: value(chosen(point)), space, BUDGET, seed=instance, progress=False,
        constraint=lambda point: exceeded(chosen(point)),
    )  # fmt: skip
    return result.best_value


def read() -> dict[tuple[int, str], float]:
    if not PATH.exists():
        return {}
    with PATH.open(encoding="utf-8") as file:
        return {(int(r["instance"]), r["model"]): float(r["best"]) for r in csv.DictReader(file)}


def run(instances: int) -> None:
    done = read()
    new = not PATH.exists()
    with PATH.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(FIELDS)
        for instance in range(instances):
            for model in ("subset", "binary"):
                if (instance, model) not in done:
                    writer.writerow((instance, model, BUDGET, solve(instance, model)))
                    file.flush()


def table() -> None:
    from scipy.stats import ttest_rel

    done = read()
    instances = sorted({k for k, model in done if (k, "subset") in done and (k, "binary") in done})
    columns = {m: np.array([done[k, m] for k in instances]) for m in ("subset", "binary")}
    print(f"| {BUDGET} evaluations, {len(instances)} instances | mean best value |\n| --- | --- |")
    for model, values in columns.items():
        error = values.std(ddof=1) / len(values) ** 0.5
        print(f"| {model} | {values.mean():,.0f} ({error:,.0f}) |")
    difference = columns["subset"] - columns["binary"]
    error = difference.std(ddof=1) / len(difference) ** 0.5
    p = ttest_rel(columns["subset"], columns["binary"]).pvalue
    print(f"\nDifference {difference.mean():+.1f} ({error:.1f}), paired t-test p = {p:.2g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run").add_argument("--instances", type=int, default=10)
    commands.add_parser("table")
    options = parser.parse_args()
    run(options.instances) if options.command == "run" else table()


if __name__ == "__main__":
    main()
