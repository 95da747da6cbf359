"""Learned orders: compared with random and fixed ones, and what they learn of a planted chain.

    python benchmarks/orders.py nk      NK 32 K 4, 1,000 evaluations, 10 runs, on the CPU
    python benchmarks/orders.py chain   rank correlations of scores and places in a chain, 12 runs
    python benchmarks/orders.py time    a generation of 10 candidates, 50 epochs, n = 32 to 256

Results are in results/orders_nk.csv, orders_chain.csv and orders_time.csv.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from common import write

import anyorder as ao
from anyorder.strategies.base import Answer
from anyorder.strategies.policy.search import PolicySearch

LEARNED = {"generation_order": "learned", "training_order": "learned"}
ORDERS: dict[str, dict[str, Any]] = {
    "random": {},
    "fixed": {"generation_order": "fixed", "training_order": "fixed"},
    "learned": LEARNED,
}
LENGTH = 12  # of a chain

Point = npt.NDArray[np.integer]


def nk(runs: int, budget: int) -> None:
    """Best values after part of the budget and at its end."""
    rows = []
    for name, settings in ORDERS.items():
        for seed in range(runs):
            start = time.process_time()
            result = ao.maximize(
                ao.problems.nk(32, 4, seed=seed),
                budget=budget,
                seed=seed,
                algorithm=ao.policy.Policy(
                    ao.policy.PRESETS["default"].replace(**settings), engine="cpu"
                ),
                cache=False,
                progress=False,
            )
            best = np.maximum.accumulate(result.history.values)
            row = {"order": name, "seed": seed, "cpu_s": round(time.process_time() - start, 1)}
            row |= {f"best_{k}": round(float(best[k - 1]), 5) for k in (budget // 2, budget)}
            print(row, flush=True)
            rows.append(row)
    write("orders_nk.csv", rows)


def links(x: Point, flips: Point) -> list[bool]:
    """Which variables are what the one before them in the chain says."""
    return [bool(b == a ^ flip) for (a, b), flip in zip(itertools.pairwise(x), flips, strict=True)]


def leading(held: list[bool]) -> int:
    """How many hold before the first that does not."""
    return len(list(itertools.takewhile(bool, held)))


# In "leading" a link counts if all before it hold, so that causes are decided first; in "links" all
# count. "targets" is the control: no links, but targets whose weight falls along the chain.
KINDS: dict[str, Callable[[Point, Point], float]] = {
    "leading": lambda x, flips: leading(links(x, flips)),
    "links": lambda x, flips: sum(links(x, flips)),
    "targets": lambda x, flips: float((x[1:] == flips) @ 0.75 ** np.arange(LENGTH - 1)),
}


def correlation(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    """Spearman's."""
    ranks = [np.argsort(np.argsort(values)) for values in (a, b)]
    return float(np.corrcoef(*ranks)[0, 1])


def chain(runs: int, budget: int) -> None:
    """A chain over variables in a random arrangement: -1 is a score that falls along it."""
    rows = []
    for (kind, value), seed in itertools.product(KINDS.items(), range(runs)):
        rng = np.random.default_rng(seed)
        places, flips = rng.permutation(LENGTH), rng.integers(0, 2, LENGTH - 1)
        config = ao.policy.PRESETS["default"].replace(restart_agreement=None, **LEARNED)
        search = PolicySearch(ao.Space.binary(LENGTH), seed, config, "cpu")
        row: dict[str, Any] = {"problem": kind, "seed": seed}
        while search.generation < budget // search.batch:
            drawn = search.propose(search.batch)
            values = [float(value(codes[places], flips)) for codes in drawn.codes]
            search.learn([Answer(*each) for each in zip(drawn.tickets, drawn.codes, values,
                                                        strict=True)])  # fmt: skip
            if search.generation * search.batch in (budget // 4, budget // 2, budget):
                found = correlation(search.order_scores[places], np.arange(LENGTH))
                row[f"correlation_{search.generation * search.batch}"] = round(found, 3)
        row["last_mean"] = round(float(np.mean(values)), 3)
        print(row, flush=True)
        rows.append(row)
    write("orders_chain.csv", rows)


def seconds() -> None:
    """Processor time of a generation."""
    rows = []
    for n, (name, settings) in itertools.product((32, 64, 128, 256), ORDERS.items()):
        config, taken = ao.policy.PRESETS["default"].replace(**settings), []
        search = PolicySearch(ao.Space.binary(n), 0, config, "cpu")
        for _ in range(3):
            start = time.process_time()
            drawn = search.propose(search.batch)
            values = drawn.codes.sum(axis=1).astype(float)
            search.learn([Answer(*each) for each in zip(drawn.tickets, drawn.codes, values,
                                                        strict=True)])  # fmt: skip
            taken.append(time.process_time() - start)
        rows.append({"n": n, "order": name, "cpu_seconds": round(min(taken), 4)})
        print(rows[-1], flush=True)
    write("orders_time.csv", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["nk", "chain", "time"])
    parser.add_argument("--runs", type=int)
    parser.add_argument("--budget", type=int)
    given = parser.parse_args()
    if given.what == "nk":
        nk(given.runs or 10, given.budget or 1_000)
    elif given.what == "time":
        seconds()
    else:
        chain(given.runs or 12, given.budget or 800)


if __name__ == "__main__":
    main()
