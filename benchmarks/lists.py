"""Lists: the default, local strategies, plain local searches and pymoo's GA on five problems.

    python benchmarks/lists.py run
    python benchmarks/lists.py table

The problems are p-median (10 of 100 sites), a tour of 50 cities, a flow shop of 20 jobs on 10
machines, a job shop of 10 jobs on 5 machines, and a subset of 5 of 20 items beside 60 bits, with
interactions among the bits and between both. There are ten instances of each, 5,000 evaluations,
and one run on each instance. All problems are minimised. Algorithms may look up evaluated points:
only new points count as evaluations.

`run` appends missing runs to results/lists.csv; pymoo takes part if it is installed. Constants of
the default were set on instances 0 to 4; `table` shows these and the others separately.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import multiprocessing
import os
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, machine
from numpy.random import Generator

import anyorder as ao

PATH = RESULTS / "lists.csv"
FIELDS = ("problem", "instance", "algorithm", "evaluations", "best", "seconds")
MARKS = (200, 500, 1_000, 2_000, 5_000)
SLOW = {"policy": 1_000}  # evaluations of those that take long
OURS = ("auto", "ils", "hill-climber", "one-plus-one", "policy")
ALGORITHMS = (*OURS, "plain", "pymoo")
EARLIER = "auto, previous version"  # commit 379897d: guided search
INSTANCES = {"0-4, used in tuning": range(5), "5-9": range(5, 10)}
MOST_REPEATS = 200_000  # evaluations of known points before a run is given up

Values = Sequence[int]


@dataclass(frozen=True)
class Problem:
    """What is minimised, and how a plain local search looks at it.

    `size` is None for an order of `items`, in which each occurs `each` times. The `bits` come
    behind the list. `moves` are pairs of places of an order, or of a chosen and another item, or
    -1 and a bit; `apply` makes one of them.
    """

    items: int
    size: int | None
    value: Callable[[Values], float]
    moves: Callable[[Values], list[tuple[int, int]]]
    apply: Callable[[Values, tuple[int, int]], list[int]]
    kicks: int  # random moves of the best point after a climb; 0: a new random point
    each: int = 1
    bits: int = 0

    @property
    def space(self) -> ao.Space:
        """With a variable "list", and the bits."""
        items, chosen = range(self.items), None
        if self.size is not None:
            chosen = ao.Subset(items, self.size)
        elif self.each == 1:
            chosen = ao.Permutation(items)
        else:
            chosen = ao.Sequence(items, [self.each] * self.items)
        return ao.Space({"list": chosen} | {f"x{k}": ao.Binary() for k in range(self.bits)})

    def values(self, point: dict[str, Any]) -> list[int]:
        """The list and the bits of a point of the space."""
        return [*point["list"], *(int(point[f"x{k}"]) for k in range(self.bits))]

    def random(self, rng: Generator) -> list[int]:
        """Any point."""
        found = rng.permutation(np.repeat(np.arange(self.items), self.each))[: self.size].tolist()
        bits = rng.integers(2, size=self.bits).tolist()
        return [*found, *bits] if self.size is None else [*sorted(found), *bits]


# --- problems -----------------------------------------------------------------------------------


def _distances(seed: int, count: int) -> Any:
    places = np.random.default_rng(seed).random((count, 2))
    return np.linalg.norm(places[:, None] - places[None], axis=2)


def p_median(seed: int, items: int = 100, size: int = 10) -> Problem:
    """Sum of the distances of all points to the nearest chosen one; exchanges (Teitz and Bart)."""
    distances = _distances(seed, items)

    def moves(chosen: Values) -> list[tuple[int, int]]:
        others = sorted(set(range(items)) - set(chosen))
        return [(old, new) for old in chosen for new in others]

    def apply(chosen: Values, move: tuple[int, int]) -> list[int]:
        return sorted({*chosen, move[1]} - {move[0]})

    def value(chosen: Values) -> float:
        return float(distances[:, chosen].min(axis=1).sum())

    return Problem(items, size, value, moves, apply, 0)


def tour(seed: int, items: int = 50) -> Problem:
    """The length of a closed tour; 2-opt: reversals."""
    distances = _distances(seed, items)
    pairs = [(a, b) for a in range(items) for b in range(a + 1, items) if b - a < items - 1]

    def apply(places: Values, move: tuple[int, int]) -> list[int]:
        a, b = move
        return [*places[:a], *reversed(places[a : b + 1]), *places[b + 1 :]]

    def value(places: Values) -> float:
        return float(distances[places, np.roll(places, 1)].sum())

    return Problem(items, None, value, lambda _: pairs, apply, 0)


def flow_shop(seed: int, items: int = 20, machines: int = 10) -> Problem:
    """When the last job leaves the last machine; insertions, and some of them after a climb."""
    times = np.random.default_rng(seed).integers(1, 100, (items, machines)).tolist()
    pairs = [(a, b) for a in range(items) for b in range(items) if a != b and a != b + 1]

    def apply(jobs: Values, move: tuple[int, int]) -> list[int]:
        rest = [*jobs]
        rest.insert(move[1], rest.pop(move[0]))
        return rest

    def value(jobs: Values) -> float:
        ends = [0] * machines
        for job in jobs:
            end = 0
            for k, duration in enumerate(times[job]):
                end = max(end, ends[k]) + duration
                ends[k] = end
        return float(ends[-1])

    return Problem(items, None, value, lambda _: pairs, apply, 4)


def job_shop(seed: int, items: int = 10, machines: int = 5) -> Problem:
    """When the last operation ends; each job visits all machines, in an order of its own."""
    rng = np.random.default_rng(seed)
    times = rng.integers(1, 100, (items, machines)).tolist()
    ways = [rng.permutation(machines).tolist() for _ in range(items)]
    length = items * machines
    pairs = [(a, b) for a in range(length) for b in range(length) if a != b and a != b + 1]

    def apply(jobs: Values, move: tuple[int, int]) -> list[int]:
        rest = [*jobs]
        rest.insert(move[1], rest.pop(move[0]))
        return rest

    def value(jobs: Values) -> float:
        done, ends, free = [0] * items, [0] * items, [0] * machines
        for job in jobs:
            at = ways[job][done[job]]
            ends[job] = free[at] = max(ends[job], free[at]) + times[job][done[job]]
            done[job] += 1
        return float(max(ends))

    return Problem(items, None, value, lambda _: pairs, apply, 4, each=machines)


def chosen_and_bits(seed: int, items: int = 20, size: int = 5, bits: int = 60) -> Problem:
    """What items are worth beside pairs of bits, some of which change what items are worth."""
    rng = np.random.default_rng(seed)
    pairs = np.triu(rng.normal(0, 1, (bits, bits)) * (rng.random((bits, bits)) < 0.1), 1)
    worth = rng.normal(0, 2, items)
    joint = rng.normal(0, 1, (items, bits)) * (rng.random((items, bits)) < 0.05)

    def moves(point: Values) -> list[tuple[int, int]]:
        chosen = point[:size]
        others = sorted(set(range(items)) - set(chosen))
        return [(old, new) for old in chosen for new in others] + [(-1, k) for k in range(bits)]

    def apply(point: Values, move: tuple[int, int]) -> list[int]:
        found, flipped = [*point], size + move[1]
        if move[0] < 0:
            found[flipped] = 1 - found[flipped]
            return found
        return [*sorted({*point[:size], move[1]} - {move[0]}), *point[size:]]

    def value(point: Values) -> float:
        chosen, spins = list(point[:size]), 2.0 * np.asarray(point[size:]) - 1.0
        return -float(spins @ pairs @ spins + worth[chosen].sum() + (joint[chosen] @ spins).sum())

    return Problem(items, size, value, moves, apply, 4, bits=bits)


PROBLEMS = {
    "p-median": p_median, "tour": tour, "flow shop": flow_shop, "job shop": job_shop,
    "subset and bits": chosen_and_bits,
}  # fmt: skip


# --- algorithms ---------------------------------------------------------------------------------


class Spent(Exception):
    """The budget is used up."""


@dataclass
class Meter:
    """Evaluates points, and keeps the best value after each new one."""

    problem: Problem
    budget: int
    known: dict[Hashable, float] = field(default_factory=dict)
    best: list[float] = field(default_factory=list)
    calls: int = 0

    def __call__(self, values: Values) -> float:
        """The value of a point; `Spent` if it is new and the budget is used up."""
        key, self.calls = tuple(values), self.calls + 1
        if key not in self.known:
            if len(self.best) == self.budget:
                raise Spent
            self.known[key] = value = self.problem.value(values)
            self.best.append(min([value, *self.best[-1:]]))
        elif self.calls > self.budget + MOST_REPEATS:
            raise Spent
        return self.known[key]


def local_search(problem: Problem, value: Meter, seed: int) -> None:
    """First improvement in random order; from a local optimum, on from a new point."""
    rng = np.random.default_rng(seed)
    best = here = problem.random(rng)
    best_value = here_value = value(here)
    while True:
        improved = True
        while improved:
            improved = False
            moves = problem.moves(here)
            for k in rng.permutation(len(moves)).tolist():
                there = problem.apply(here, moves[k])
                if (found := value(there)) < here_value:
                    here, here_value, improved = there, found, True
                    if problem.size is not None:
                        break  # other moves are possible
        if here_value <= best_value:
            best, best_value = here, here_value
        here = best if problem.kicks else problem.random(rng)
        for _ in range(problem.kicks):
            moves = problem.moves(here)
            here = problem.apply(here, moves[int(rng.integers(len(moves)))])
        here_value = value(here)


def genetic(problem: Problem, value: Meter, seed: int) -> None:
    """The GA of pymoo with the operators of its documentation's examples."""
    from pymoo.algorithms.soo.nonconvex.ga import GA
    from pymoo.core.crossover import Crossover
    from pymoo.core.mutation import Mutation
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.core.sampling import Sampling
    from pymoo.operators.crossover.ox import OrderCrossover
    from pymoo.operators.mutation.inversion import InversionMutation
    from pymoo.operators.sampling.rnd import PermutationRandomSampling
    from pymoo.optimize import minimize

    size, items, each, bits = problem.size, problem.items, problem.each, problem.bits
    length = items * each

    class Function(ElementwiseProblem):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(n_var=length + bits, n_obj=1, xl=0, xu=length, vtype=int)

        def _evaluate(self, x: Any, out: dict[str, Any], *_: Any, **__: Any) -> None:
            if size is None:  # a permutation of operations, each of which is of a job
                out["F"] = value((x // each).tolist())
            else:
                out["F"] = value(
                    [*np.flatnonzero(x[:items]).tolist(), *x[items:].astype(int).tolist()]
                )

    class Some(Sampling):  # type: ignore[misc]
        def _do(self, problem: Any, count: int, *_: Any, random_state: Any, **__: Any) -> Any:
            ranks = random_state.permuted(np.tile(np.arange(items), (count, 1)), axis=1)
            return np.hstack([ranks < size, random_state.random((count, bits)) < 0.5])

    class Common(Crossover):  # type: ignore[misc]
        """What both parents have, and a random half of what one has; of bits that of either."""

        def __init__(self) -> None:
            super().__init__(2, 1)

        def _do(self, problem: Any, x: Any, *_: Any, random_state: Any, **__: Any) -> Any:
            child = np.where(random_state.random(x[0].shape) < 0.5, x[0], x[1])
            child[:, :items] = x[0, :, :items] & x[1, :, :items]
            for k, row in enumerate(child):
                left = random_state.permutation(np.flatnonzero(x[0, k, :items] ^ x[1, k, :items]))
                row[left[: size - np.count_nonzero(row[:items])]] = True
            return child[None]

    class Exchange(Mutation):  # type: ignore[misc]
        def _do(self, problem: Any, x: Any, *_: Any, random_state: Any, **__: Any) -> Any:
            for row in x:
                old = random_state.choice(np.flatnonzero(row[:items]))
                new = random_state.choice(np.flatnonzero(~row[:items]))
                row[old], row[new] = False, True
                row[items:] ^= random_state.random(bits) < 1 / max(bits, 1)
            return x

    if size is None:
        parts = PermutationRandomSampling(), OrderCrossover(), InversionMutation()
    else:
        parts = Some(), Common(), Exchange()
    algorithm = GA(
        pop_size=20 if size is None else 100,
        sampling=parts[0],
        crossover=parts[1],
        mutation=parts[2],
        eliminate_duplicates=True,
    )
    minimize(Function(), algorithm, ("n_gen", 10**9), seed=seed)


def run_one(job: tuple[str, int, str, int]) -> list[tuple[Any, ...]]:
    """One run: its best value after each mark, and its seconds of CPU time."""
    name, instance, algorithm, evaluations = job
    problem = PROBLEMS[name](instance)
    value = Meter(problem, min(evaluations, SLOW.get(algorithm, max(MARKS))))
    start = time.process_time()
    try:
        if algorithm == "plain":
            local_search(problem, value, instance)
        elif algorithm == "pymoo":
            genetic(problem, value, instance)
        else:
            options: dict[str, Any] = {"seed": instance, "algorithm": algorithm, "progress": False}
            ao.minimize(lambda p: value(problem.values(p)), problem.space, value.budget, **options)
    except Spent:
        pass
    seconds = round(time.process_time() - start, 2)
    marks = [mark for mark in MARKS if mark <= value.budget]
    return [(*job[:3], m, value.best[min(m, len(value.best)) - 1], seconds) for m in marks]


# --- files and tables ---------------------------------------------------------------------------


def read(path: Path) -> list[dict[str, str]]:
    """All rows so far."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def run(given: argparse.Namespace) -> None:
    """Run what is missing, and append it."""
    done = {(row["problem"], int(row["instance"]), row["algorithm"]) for row in read(given.to)}
    facts, has_pymoo = machine(), importlib.util.find_spec("pymoo") is not None
    facts["pymoo"] = metadata.version("pymoo") if has_pymoo else ""
    jobs = [
        (name, instance, algorithm, given.evaluations)
        for instance in given.instances
        for algorithm in given.algorithms
        if algorithm != "pymoo" or has_pymoo
        for name in PROBLEMS
        if (name, instance, algorithm) not in done
    ]
    new, end = not given.to.exists(), time.monotonic() + given.seconds
    with (
        given.to.open("a", encoding="utf-8", newline="") as file,
        multiprocessing.get_context("spawn").Pool(given.processes) as pool,
    ):
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow([*FIELDS, *facts])
        for rows in pool.imap_unordered(run_one, jobs):
            writer.writerows([*row, *facts.values()] for row in rows)
            file.flush()
            if time.monotonic() > end:
                print("out of time: what is missing can be run later")
                pool.terminate()
                break


def table(given: argparse.Namespace) -> None:
    """Means of each algorithm, on the instances that all have run; the lowest in bold.

    After the last mark also standard errors of the mean, and seconds of CPU time of a run.
    """
    values: dict[tuple[str, str], dict[int, dict[int, float]]] = {}
    seconds: dict[tuple[str, str], list[float]] = {}
    for row in read(given.to):
        key, instance = (row["problem"], row["algorithm"]), int(row["instance"])
        of = values.setdefault(key, {}).setdefault(instance, {})
        of[int(row["evaluations"])] = float(row["best"])
        seconds.setdefault(key, []).append(float(row["seconds"]))
    for name, half in product(PROBLEMS, INSTANCES):
        shown = [algorithm for algorithm in (*ALGORITHMS, EARLIER) if (name, algorithm) in values]
        instances = set(INSTANCES[half]).intersection(*(values[name, a] for a in shown))
        if not shown or not instances:
            continue
        print(f"\n{name}, instances {half} ({len(instances)} runs)\n")
        print("| |", " | ".join(f"{mark:,}" for mark in MARKS), "| s |")
        print("| --- |" + " --- |" * (len(MARKS) + 1))
        found = {
            (algorithm, mark): [values[name, algorithm][i][mark] for i in sorted(instances)]
            for algorithm in shown
            for mark in MARKS
            if all(mark in values[name, algorithm][i] for i in instances)
        }
        shared = {mark for _, mark in found}
        lowest = {m: min(np.mean(v) for (_, n), v in found.items() if n == m) for m in shared}
        for algorithm in shown:
            cells = []
            for mark in MARKS:
                some = found.get((algorithm, mark), [])
                text = f"{np.mean(some):.5g}" if some else ""
                if mark == max(MARKS) and len(some) > 1:
                    text += f" ± {np.std(some, ddof=1) / len(some) ** 0.5:.2g}"
                bold = some and np.mean(some) == lowest[mark]
                cells.append(f"**{text}**" if bold else text)
            cells.append(f"{np.mean(seconds[name, algorithm]):.1f}")
            print(f"| {algorithm} |", " | ".join(cells), "|")


def main() -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(variable, "1")  # one thread a process
    parser = argparse.ArgumentParser(description="Lists: the default beside others.")
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=ALGORITHMS)
    parser.add_argument("--instances", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--evaluations", type=int, default=max(MARKS))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--to", type=Path, default=PATH, help="the file of runs")
    given = parser.parse_args()
    {"run": run, "table": table}[given.action](given)


if __name__ == "__main__":
    main()
