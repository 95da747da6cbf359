"""How a network should read an ordered variable: one-hot or as a thermometer.

Three ordinal problems over 24 integers from 0 to 9 are solved with 20 seeds each. The result is the
best value after 1,000 and 3,000 evaluations (higher is better, 0 is the optimum of each problem):

- target: the distance to a hidden point, variable by variable;
- chain: neighbours must be close to each other, and the first variable close to a hidden value;
- sums: sums of three variables must be close to hidden numbers, which is possible in many ways.

Writes every run to results/integer_encoding.csv.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from common import cores, write
from scipy import stats
from tqdm import tqdm

import anyorder as ao

N, TOP, SEEDS, MARKS = 24, 9, 20, (1_000, 3_000)
ENCODINGS = ("onehot", "thermometer")


def target(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    hidden = rng.integers(0, TOP + 1, N)
    return lambda x: -np.abs(x - hidden).sum(axis=1).astype(float)


def chain(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    steps, start = rng.integers(-2, 3, N - 1), rng.integers(3, 7)
    wanted = np.clip(start + np.concatenate([[0], np.cumsum(steps)]), 0, TOP)
    steps = np.diff(wanted)
    return lambda x: (
        -(np.abs(np.diff(x, axis=1) - steps).sum(axis=1) + np.abs(x[:, 0] - wanted[0])).astype(
            float
        )
    )


def sums(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    groups = np.stack([rng.choice(N, 3, replace=False) for _ in range(N)])
    wanted = rng.integers(0, TOP + 1, N)[groups].sum(axis=1)
    return lambda x: -np.abs(x[:, groups].sum(axis=2) - wanted).sum(axis=1).astype(float)


PROBLEMS = {"target": target, "chain": chain, "sums": sums}


def one_run(job: tuple[str, str, int]) -> dict[str, Any]:
    name, encoding, seed = job
    f = PROBLEMS[name](np.random.default_rng(seed))
    space = ao.Space([ao.Integer(0, TOP)] * N)
    config = ao.policy.Config(integer_encoding=encoding)
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
    row: dict[str, Any] = {"problem": name, "encoding": encoding, "seed": seed}
    return row | {f"best_{mark}": float(best[mark - 1]) for mark in MARKS}


def main() -> None:
    jobs = [(p, e, s) for p in PROBLEMS for e in ENCODINGS for s in range(SEEDS)]
    os.environ["ANYORDER_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(cores()) as pool:
        rows = list(tqdm(pool.map(one_run, jobs), total=len(jobs), unit="run", disable=None))
    path = write("integer_encoding.csv", rows)
    print(
        f"{'problem':<10}{'after':>8}" + "".join(f"{e:>16}" for e in ENCODINGS) + "   p (Wilcoxon)"
    )
    for problem in PROBLEMS:
        for mark in MARKS:
            values = [
                np.array([r[f"best_{mark}"] for r in rows
                          if r["problem"] == problem and r["encoding"] == encoding])
                for encoding in ENCODINGS
            ]  # fmt: skip
            p = stats.wilcoxon(*values).pvalue if not np.array_equal(*values) else 1.0
            means = "".join(f"{v.mean():>16.2f}" for v in values)
            print(f"{problem:<10}{mark:>8,}{means}   {p:.3g}")
    print(f"every run: {path}")


if __name__ == "__main__":
    main()
