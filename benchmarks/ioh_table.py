"""The 25 pseudo-Boolean problems of IOHprofiler: expected running times and final values.

    python benchmarks/ioh_table.py run --instances 1 2 3
    python benchmarks/ioh_table.py run --algorithms NGOpt DiscreteLenglerOnePlusOne  (nevergrad)
    python benchmarks/ioh_table.py table

Instances of 64 and 100 variables are solved in 10,000 evaluations by `auto`, `ils`, `one-plus-one`
and `p3`, as `anyorder.integrations.ioh` runs them, and by two algorithms of Nevergrad with the
parametrization that it recommends. Every evaluation counts, including those of known points. A run
ends at the optimum, if that is known. `run` appends missing runs to results/ioh_table.csv, instance
by instance.

`table` shows the mean best value, as a share of the way from the lowest value of any run on an
instance to the optimum, or to the best value of any run if no optimum is known; and the expected
running time to the optimum: the evaluations of all runs, divided by the number of runs that reached
it.
"""

from __future__ import annotations

import argparse
import csv
import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread a process

import time  # noqa: E402
import warnings  # noqa: E402
from collections import defaultdict  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from common import RESULTS, machine  # noqa: E402

import anyorder as ao  # noqa: E402
from anyorder.integrations.ioh import Algorithm  # noqa: E402

PATH = RESULTS / "ioh_table.csv"
FIELDS = (
    "function", "n", "instance", "algorithm", "evaluations", "best", "optimum", "seconds",
)  # fmt: skip
OURS = ("auto", "ils", "one-plus-one", "p3")
NEVERGRAD = ("DiscreteLenglerOnePlusOne", "NGOpt")
SIZES, INSTANCES, BUDGET = (64, 100), range(1, 11), 10_000
Key = tuple[int, int, int, str]


def spend(problem: Any, algorithm: str, seed: int, optimum: float | None) -> None:
    """Spend the budget on a problem of ioh."""
    if algorithm in OURS:
        Algorithm(algorithm, BUDGET, seed=seed, target=optimum)(problem)
        return
    import nevergrad as ng

    n = problem.meta_data.n_variables
    choice = ng.p.TransitionChoice(range(2), repetitions=n, ordered=False)
    choice.random_state = np.random.RandomState(seed)
    optimizer = ng.optimizers.registry[algorithm](choice, budget=BUDGET, num_workers=1)
    while problem.state.evaluations < BUDGET and problem.state.current_best.y != optimum:
        candidate = optimizer.ask()
        optimizer.tell(candidate, -problem([int(bit) for bit in candidate.value]))


def measure(key: Key) -> dict[str, Any]:
    """One run."""
    import ioh

    function, n, instance, algorithm = key
    optimum = ao.problems.get(f"pbo:function={function},n={n},instance={instance}").optimum
    problem = ioh.get_problem(function, instance, n, ioh.ProblemClass.PBO)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spend(problem, algorithm, instance, optimum)
    return {
        "function": function, "n": n, "instance": instance, "algorithm": algorithm,
        "evaluations": problem.state.evaluations, "best": problem.state.current_best.y,
        "optimum": "" if optimum is None else optimum,
        "seconds": round(time.process_time() - start, 3),
    }  # fmt: skip


def read() -> list[dict[str, str]]:
    """The rows that are there."""
    if not PATH.exists():
        return []
    with PATH.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(algorithms: list[str], instances: list[int], sizes: list[int]) -> None:
    """Append what is missing."""
    done = {(int(r["function"]), int(r["n"]), int(r["instance"]), r["algorithm"]) for r in read()}
    facts = machine()
    for instance in instances:
        for n in sizes:
            for function in range(1, 26):
                for algorithm in algorithms:
                    key = function, n, instance, algorithm
                    if key in done:
                        continue
                    row = {**measure(key), **facts}
                    fresh = not PATH.exists()
                    with PATH.open("a", newline="", encoding="utf-8") as file:
                        writer = csv.DictWriter(file, [*FIELDS, *facts], lineterminator="\n")
                        if fresh:
                            writer.writeheader()
                        writer.writerow(row)


def share(values: dict[str, float], optimum: float | None, low: float, high: float) -> dict:
    """Best values as shares of the way from the lowest to the optimum, or to the highest."""
    top = high if optimum is None else optimum
    return {name: (v - low) / (top - low) if top > low else 1.0 for name, v in values.items()}


def table() -> None:
    """A row for each problem and size."""
    import ioh

    names = ioh.ProblemClass.PBO.problems
    cells: dict[tuple[int, int], dict[int, dict[str, dict[str, str]]]] = defaultdict(dict)
    for row in read():
        key = int(row["function"]), int(row["n"])
        cells[key].setdefault(int(row["instance"]), {})[row["algorithm"]] = row
    every = [
        a for a in (*OURS, *NEVERGRAD) if any(a in c for i in cells.values() for c in i.values())
    ]
    print(f"| problem | n | instances | {' | '.join(every)} |")
    print("| --- " * (3 + len(every)) + "|")
    for (function, n), instances in sorted(cells.items(), key=lambda one: (one[0][1], one[0][0])):
        whole = {k: rows for k, rows in instances.items() if len(rows) == len(every)}
        shares: dict[str, list[float]] = defaultdict(list)
        reached: dict[str, int] = defaultdict(int)
        spent: dict[str, int] = defaultdict(int)
        for rows in whole.values():
            values = {name: float(row["best"]) for name, row in rows.items()}
            text = next(iter(rows.values()))["optimum"]
            optimum = float(text) if text else None
            found = share(values, optimum, min(values.values()), max(values.values()))
            for name, row in rows.items():
                shares[name].append(found[name])
                reached[name] += optimum is not None and values[name] == optimum
                spent[name] += int(row["evaluations"])
        if not whole:
            continue
        texts = []
        for name in every:
            text = f"{np.mean(shares[name]):.3f}"
            if reached[name]:
                text += f", {spent[name] / reached[name]:,.0f}"
            texts.append(text)
        print(f"| {names[function]} | {n} | {len(whole)} | {' | '.join(texts)} |")


def main() -> None:
    """Run, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="action", required=True)
    one = commands.add_parser("run")
    one.add_argument("--algorithms", nargs="+", default=list(OURS), choices=[*OURS, *NEVERGRAD])
    one.add_argument("--instances", type=int, nargs="+", default=list(INSTANCES))
    one.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    commands.add_parser("table")
    given = parser.parse_args()
    if given.action == "run":
        run(given.algorithms, given.instances, given.sizes)
    else:
        table()


if __name__ == "__main__":
    main()
