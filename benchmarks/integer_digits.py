"""From how many values on an integer should be drawn digit by digit, and what that costs.

quality   The three ordinal problems of integer_encoding.py over 24 integers with 32 and 64 values
          instead of 10, with one input per value (a thermometer) and with digits; 10 seeds, best
          value after 500 and 1,000 evaluations (higher is better, 0 is the optimum).
speed     Ten integers with 10 to a billion values, 200 evaluations on one core: its CPU seconds
          with digits, and with one input per value as far as memory and patience allow.

Writes every run to results/integer_digits.csv and results/integer_digits_speed.csv. With names of
parts as arguments, only these are run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import write
from scipy import stats
from tqdm import tqdm

import anyorder as ao

N, SEEDS, MARKS, VALUES = 24, 10, (500, 1_000), (32, 64)
CODINGS = {"thermometer": 2**31, "digits": 2}  # digits_above
SIZES = (10, 100, 1_000, 10**6, 10**9)

Objective = Callable[[np.ndarray], np.ndarray]


def target(rng: np.random.Generator, values: int) -> Objective:
    hidden = rng.integers(0, values, N)
    return lambda x: -np.abs(x - hidden).sum(axis=1).astype(float)


def chain(rng: np.random.Generator, values: int) -> Objective:
    unit = values // 10
    steps = rng.integers(-2 * unit, 2 * unit + 1, N - 1)
    start = rng.integers(3 * unit, 7 * unit)
    wanted = np.clip(start + np.concatenate([[0], np.cumsum(steps)]), 0, values - 1)
    steps = np.diff(wanted)
    return lambda x: (
        -(np.abs(np.diff(x, axis=1) - steps).sum(axis=1) + np.abs(x[:, 0] - wanted[0])).astype(
            float
        )
    )


def sums(rng: np.random.Generator, values: int) -> Objective:
    groups = np.stack([rng.choice(N, 3, replace=False) for _ in range(N)])
    wanted = rng.integers(0, values, N)[groups].sum(axis=1)
    return lambda x: -np.abs(x[:, groups].sum(axis=2) - wanted).sum(axis=1).astype(float)


PROBLEMS = {"target": target, "chain": chain, "sums": sums}


def one_run(name: str, values: int, coding: str, seed: int) -> dict[str, Any]:
    f = PROBLEMS[name](np.random.default_rng(seed), values)
    space = ao.Space([ao.Integer(0, values - 1)] * N)
    config = ao.policy.Config(digits_above=CODINGS[coding])
    result = ao.maximize(
        f,
        space,
        MARKS[-1],
        seed=seed,
        algorithm=ao.policy.Policy(config),
        vectorized=True,
        progress=False,
        cache=False,
    )
    best = result.history.best
    row: dict[str, Any] = {"problem": name, "values": values, "coding": coding, "seed": seed}
    return row | {f"best_{mark}": float(best[mark - 1]) for mark in MARKS}


def quality() -> None:
    rows: list[dict[str, Any]] = []
    jobs = [(v, s, p, c) for v in VALUES for s in range(SEEDS) for p in PROBLEMS for c in CODINGS]
    for values, seed, problem, coding in tqdm(jobs, unit="run", disable=None):
        rows.append(one_run(problem, values, coding, seed))
        path = write("integer_digits.csv", rows)
    for values in VALUES:
        for problem in PROBLEMS:
            found = [
                [
                    r
                    for r in rows
                    if (r["values"], r["problem"], r["coding"]) == (values, problem, c)
                ]
                for c in CODINGS
            ]
            for mark in MARKS:
                one, other = ([r[f"best_{mark}"] for r in part] for part in found)
                p = stats.wilcoxon(one, other).pvalue if one != other else 1.0
                means = "".join(f"{np.mean(v):>12.1f}" for v in (one, other))
                print(f"{values:>5} {problem:<8}{mark:>6,}{means}   p {p:.2g}")
    print(f"every run: {path}")


def one_search(values: int, coding: str) -> None:
    space = ao.Space([ao.Integer(1, values)] * 10)
    config = ao.policy.Config(digits_above=CODINGS[coding])
    ao.maximize(
        lambda x: float(x.sum()),
        space,
        200,
        seed=0,
        algorithm=ao.policy.Policy(config),
        progress=False,
    )


def speed() -> None:
    rows: list[dict[str, Any]] = []
    one_search(10, "digits")  # compiles, or loads what is compiled
    for values in SIZES:
        for coding in CODINGS if values <= 1_000 else ("digits",):
            start = time.process_time()
            one_search(values, coding)
            seconds = time.process_time() - start
            rows.append({"values": values, "coding": coding, "seconds": round(seconds, 3)})
            print(f"{values:>12,} {coding:<12}{seconds:8.2f} s")
    print(f"every run: {write('integer_digits_speed.csv', rows)}")


PARTS = {"quality": quality, "speed": speed}


def main() -> None:
    os.environ.setdefault("ANYORDER_NUM_THREADS", "1")
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()
