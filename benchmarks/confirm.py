"""Noisy functions: the value that a run claims for its answer, and the true one, by `confirm`.

    python benchmarks/confirm.py run
    python benchmarks/confirm.py table

`run` appends missing runs to results/confirm.csv. A run is `auto` on a function with normal noise
of 1, 10 or 50 % of the spread: the best value that 2,000 evaluations without noise find, minus the
mean of 1,000 random points. Each row has the true value of the answer, the value that the run
claims, its standard error, and the number of measurements whose mean it is, for the default of
`confirm` (a tenth of the budget) and for 0. Numbers are in units of the spread.

`table` shows, over 50 seeds: the mean difference between claimed and true values (the bias) with
its standard error, in standard deviations of the noise, and the mean difference of the true values
with and without `confirm`, with its standard error, in per cent of the spread.
"""

from __future__ import annotations

import argparse
import csv
import math
import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread a process

from collections.abc import Callable  # noqa: E402
from itertools import product  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from common import RESULTS, machine  # noqa: E402
from generated import FUNCTIONS, Drawn  # noqa: E402

import anyorder as ao  # noqa: E402

PATH = RESULTS / "confirm.csv"
FIELDS = ("problem", "budget", "noise", "seed", "confirm", "true", "claimed", "error", "count")
NOISES, BUDGETS, SEEDS = (0.01, 0.1, 0.5), (400,), 50


def _built_in(problem: Any) -> Callable[[np.random.Generator], Drawn]:
    return lambda rng: (problem.space, problem)


PROBLEMS: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "nk": _built_in(ao.problems.nk(32, 4, 7)),
    "knapsack": FUNCTIONS["knapsack"],
    "schedule": FUNCTIONS["schedule"],
}


def spread_of(space: ao.Space, f: Callable[[Any], float]) -> tuple[float, float]:
    """The mean of random points, and what the best known value is above it."""
    rng = np.random.default_rng(0)
    mean = float(np.mean([f(rng.integers(space.cardinalities)) for _ in range(1_000)]))
    best = ao.maximize(f, space, 2_000, seed=12_345, progress=False).best_value
    return mean, best - mean


def run() -> None:
    """Append the runs that are missing."""
    done = set()
    if PATH.exists():
        with PATH.open(encoding="utf-8") as file:
            done = {tuple(row[name] for name in FIELDS[:5]) for row in csv.DictReader(file)}
    facts = machine()
    with PATH.open("a", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, [*FIELDS, *facts], lineterminator="\n")
        if not done:
            table.writeheader()
        made = {}
        for name, make in PROBLEMS.items():
            space, f = make(np.random.default_rng(0))
            made[name] = space, f, *spread_of(space, f)
        runs = product(BUDGETS, range(SEEDS), made, NOISES, ("default", "0"))
        for budget, seed, name, noise, confirm in runs:
            key = name, str(budget), str(noise), str(seed), confirm
            if key in done:
                continue
            found = _one(*made[name], *key)
            table.writerow({**dict(zip(FIELDS, key, strict=False)), **found, **facts})
            file.flush()


def _one(
    space: ao.Space, f: Callable[[Any], float], mean: float, spread: float,
    name: str, budget: str, noise: str, seed: str, confirm: str,
) -> dict[str, Any]:  # fmt: skip
    rng = np.random.default_rng([*name.encode(), int(seed), int(budget), round(float(noise) * 100)])
    result = ao.maximize(
        lambda x: (f(x) - mean) / spread + float(noise) * rng.normal(), space, int(budget),
        seed=int(seed), deterministic=False, progress=False,
        confirm=None if confirm == "default" else int(confirm),
    )  # fmt: skip
    true = (f(result.best) - mean) / spread
    error = "" if result.best_error is None else f"{result.best_error:.6g}"
    return {
        "true": f"{true:.6g}", "claimed": f"{result.best_value:.6g}", "error": error,
        "count": result.best_count,
    }  # fmt: skip


def table() -> None:
    """Print the bias, and the difference of the true values."""
    with PATH.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    true: dict[tuple[str, ...], float] = {}
    bias: dict[tuple[str, ...], list[float]] = {}
    once: dict[tuple[str, ...], list[bool]] = {}
    within: dict[str, list[bool]] = {}
    for row in rows:
        key = row["problem"], row["budget"], row["noise"], row["confirm"]
        true[(*key, row["seed"])] = float(row["true"])
        off = (float(row["claimed"]) - float(row["true"])) / float(row["noise"])
        bias.setdefault(key, []).append(off)
        once.setdefault(key, []).append(row["count"] == "1")
        if row["error"]:
            inside = abs(off) * float(row["noise"]) <= 2 * float(row["error"])
            within.setdefault(row["confirm"], []).append(inside)
    print("| problem | evaluations | noise | bias without | bias | true value, difference |")
    print("| --- | --- | --- | --- | --- | --- |")
    gains: dict[tuple[str, str], list[float]] = {}
    for problem, budget, noise, confirm in bias:
        if confirm != "default":
            continue
        key = problem, budget, noise
        seeds = [seed for *own, c, seed in true if tuple(own) == key and c == "default"]
        pairs = [(true.get((*key, "default", s)), true.get((*key, "0", s))) for s in seeds]
        gain = [100 * (a - b) for a, b in pairs if a is not None and b is not None]
        gains.setdefault((budget, noise), []).extend(gain)
        cells = [_mean(bias.get((*key, "0"), [])), _mean(bias[(*key, "default")]), _mean(gain)]
        print(f"| {' | '.join([*key[:2], f'{float(noise):.0%}', *cells])} |")
    for (budget, noise), gain in gains.items():
        both = [
            _mean(
                [off for key, some in bias.items() if key[1:] == (budget, noise, c) for off in some]
            )
            for c in ("0", "default")
        ]
        print(f"| all | {budget} | {float(noise):.0%} | {both[0]} | {both[1]} | {_mean(gain)} |")
    shares = {c: np.mean([v for key, some in once.items() if key[3] == c for v in some])
              for c in ("0", "default")}  # fmt: skip
    print(f"answers that were measured once: {shares['0']:.0%} without, {shares['default']:.0%}")
    print(f"claims within two standard errors: {np.mean(within['default']):.1%}")


def _mean(values: list[float]) -> str:
    if len(values) < 2:
        return ""
    return f"{np.mean(values):+.3f} +- {np.std(values, ddof=1) / math.sqrt(len(values)):.3f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "table"])
    {"run": run, "table": table}[parser.parse_args().command]()
