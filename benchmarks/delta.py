"""Any strategy on any problems: best values after some numbers of evaluations, and its own time.

    python benchmarks/delta.py --strategies delta ils --problems nk:n=64,k=4 qubo:n=64,type=0 \
        --instances 5 6 7 8 9 --seeds 3 --marks 1000 10000 --out results/delta.csv
    python benchmarks/delta.py --everyday functions.py --problems mixed --marks 200 1000

A problem is named as in `anyorder.problems.get`, without its seed: that is the instance. With
`--everyday FILE` it is one of the functions FNS of that file, which have no instances. Every value
that a strategy asks for is paid for, also if it is known. One line per run is appended to the CSV:
the best values, and `own_us`, the CPU time per evaluation that was not spent in the problem.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import machine

import anyorder as ao
from anyorder.strategies.base import Answer
from anyorder.strategies.registry import REGISTRY

BASELINES: dict[str, Any] = {
    "random": ao.baselines.RandomSearch,
    "hill-climber": ao.baselines.HillClimber,
    "ils": ao.baselines.IteratedLocalSearch,
    "tabu": ao.baselines.TabuSearch,
    "one-plus-one": ao.baselines.OnePlusOneEA,
    "p3": ao.baselines.P3,
}


class AsStrategy:
    """A baseline with ask and tell, in the protocol of strategies."""

    def __init__(self, baseline: Any) -> None:
        self._baseline = baseline

    def propose(self, count: int) -> Any:
        """Ask."""
        codes = self._baseline.ask(count)
        return ao.strategies.base.Proposals(range(len(codes)), codes)

    def learn(self, answers: Sequence[Answer]) -> None:
        """Tell."""
        codes = np.array([answer.codes for answer in answers])
        self._baseline.tell(codes, np.array([answer.value for answer in answers]))


def make(name: str, space: ao.Space, seed: int) -> Any:
    if name in REGISTRY:
        return REGISTRY[name](space, seed=seed)
    return AsStrategy(BASELINES[name](space, seed=seed))


def run(
    strategy: Any, f: Callable[[Any], float], marks: Sequence[int], batch: int = 1
) -> tuple[list[float], float]:
    """The best value after each mark, and the strategy's own seconds."""
    best, found, own, evaluations = -np.inf, [], 0.0, 0
    clock = time.thread_time
    while evaluations < max(marks):
        start = clock()
        proposals = strategy.propose(batch)
        own += clock() - start
        if not len(proposals.codes):
            break
        answers = []
        for ticket, codes in zip(proposals.tickets, proposals.codes, strict=True):
            value = float(f(codes))
            answers.append(Answer(ticket, codes, value))
            best, evaluations = max(best, value), evaluations + 1
            found += [best] * (evaluations in marks)
        start = clock()
        strategy.learn(answers)
        own += clock() - start
    return found + [best] * (len(marks) - len(found)), own / max(evaluations, 1)


def everyday(path: Path, name: str) -> tuple[ao.Space, Callable[[Any], float]]:
    """A function of the file, on codes."""
    spec = importlib.util.spec_from_file_location("everyday", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kinds, f = module.FNS[name]()
    variables: list[Any] = []
    for kind, *sizes in kinds:
        if kind == "b":
            variables.append(ao.Binary())
        else:
            variables.append(ao.Categorical(range(sizes[0])) if kind == "c" else ao.Integer(*sizes))
    low = np.array([kind[1] if kind[0] == "i" else 0 for kind in kinds])
    return ao.Space(variables), lambda codes: f((codes + low).tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategies", nargs="+", default=["delta"])
    parser.add_argument("--problems", nargs="+", required=True)
    parser.add_argument("--instances", nargs="+", type=int, default=[0])
    parser.add_argument("--seeds", type=int, default=1, help="runs of each instance")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--marks", nargs="+", type=int, default=[1_000, 10_000])
    parser.add_argument("--batch", type=int, default=1, help="proposals at a time")
    parser.add_argument("--everyday", type=Path, help="a file of functions")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows, facts = [], machine()
    for problem in given.problems:
        for name in given.strategies:
            found, times = [], []
            for instance in given.instances:
                if given.everyday is not None:
                    space, f = everyday(given.everyday, problem)
                else:
                    family = ao.problems.registry[problem.partition(":")[0]]
                    drawn = "seed" in family.parameters
                    chosen = ao.problems.get(problem + f",seed={instance}" * drawn)
                    space, f = chosen.space, chosen
                for k in range(given.seeds):
                    seed = given.first_seed + 100 * instance + k
                    best, own = run(make(name, space, seed), f, given.marks, given.batch)
                    found.append(best)
                    times.append(own)
                    row = {"problem": problem, "strategy": name, "instance": instance, "seed": seed}
                    row |= {"batch": given.batch, "own_us": round(1e6 * own, 1)}
                    rows += [
                        {**row, "evaluations": mark, "best": value, **facts}
                        for mark, value in zip(given.marks, best, strict=True)
                    ]
            means = " ".join(f"{value:12.5g}" for value in np.mean(found, axis=0))
            print(f"{problem:<28}{name:<14}{means}  {1e6 * np.median(times):8.1f} us", flush=True)
    if given.out is not None:
        new = not given.out.exists()
        with given.out.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
