"""Several objectives: the default, NSGA-II of this library, and the algorithms of Optuna and pymoo.

    python benchmarks/objectives.py run --instances 0 10
    python benchmarks/objectives.py table
    python benchmarks/objectives.py cost

Problems are two-objective NK landscapes (n 64, K 2 and 4), knapsacks (100 items, two knapsacks; the
greedy repair of Zitzler and Thiele, 1999, removes items that do not fit), feature selection (the
error of ridge classification in three folds, and the number of features; breast_cancer, and 600
rows of digits), a tour of 30 cities with two distances, and a mixed space with conditions. There
are ten instances of each, and one run on each instance. All objectives are minimised. Algorithms
may look up evaluated points: only new points count as evaluations. The reference of the hypervolume
is the worst value of each objective among 1,000 random points.

pymoo has the operators that its documentation recommends: two-point crossover and bit flips for
binary variables, order crossover and inversion for tours, simulated binary crossover and polynomial
mutation with rounding for numbers, and for mixed variables those of `MixedVariableGA` in NSGA-II;
100 points, or 100 directions with 15 neighbours. Optuna has its samplers with their defaults; a
tour is the order of 30 numbers. `run` appends missing runs to results/objectives.csv.gz. Constants
of the default were set on instances 0 and 1; `table` shows both halves separately.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS

import anyorder as ao
from anyorder.archive.hypervolume import NonDominated, hypervolume

PATH, COST = RESULTS / "objectives.csv.gz", RESULTS / "objectives_cost.csv"
FIELDS = ("problem", "instance", "method", "evaluations", "hypervolume", "front", "seconds")
MARKS = (1_000, 5_000)
METHODS = (
    "pareto", "nsga2", "pymoo NSGA-II", "pymoo MOEA/D", "pymoo SMS-EMOA", "Optuna NSGA-II",
    "Optuna TPE",
)  # fmt: skip
LARGEST = {"Optuna NSGA-II": 1_000, "Optuna TPE": 1_000}  # budgets of those that take long
MOST_REPEATS = 200_000  # evaluations of known points before a run is given up
HALVES = {"0-4, of which 0 and 1 were used in tuning": range(5), "5-9": range(5, 10)}
Point = Any


class Enough(Exception):
    """The budget is spent."""


@dataclass(frozen=True)
class Task:
    """What is minimised: a function of a point of this library, and the kind of its variables."""

    kind: str  # "binary", "tour" or "mixed"
    space: ao.Space
    f: Callable[[Point], tuple[float, float]]


# --- problems -------------------------------------------------------------------------------------


def nk(instance: int, k: int) -> Task:
    one, other = (ao.problems.nk(64, k, 1_000 * j + instance) for j in (1, 2))
    return Task("binary", one.space, lambda x: (-float(one(x)), -float(other(x))))


def knapsack(instance: int) -> Task:
    rng = np.random.default_rng(instance)
    profits, weights = rng.integers(10, 101, size=(2, 2, 100))
    capacity = weights.sum(axis=1) / 2
    order = np.argsort((profits / weights).max(axis=0))  # the worst items first

    def f(x: Any) -> tuple[float, float]:
        taken = np.asarray(x, bool).copy()
        load = weights @ taken
        for item in order:
            if (load <= capacity).all():
                break
            if taken[item]:
                taken[item] = False
                load = load - weights[:, item]
        gain = profits @ taken
        return -float(gain[0]), -float(gain[1])

    return Task("binary", ao.Space.binary(100), f)


def features(instance: int, data: str, rows: int) -> Task:
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    rng = np.random.default_rng(instance)
    chosen = rng.permutation(len(y))[:rows]
    X, y = X[chosen], y[chosen]
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    targets = 2.0 * (y[:, None] == np.unique(y)) - 1.0
    fold = np.arange(len(y)) % 3
    parts = []
    for k in range(3):
        a, t = X[fold != k], targets[fold != k]
        mean = t.mean(axis=0)
        parts.append((a.T @ a, a.T @ (t - mean), mean, X[fold == k], y[fold == k]))
    classes = np.unique(y)

    def f(x: Any) -> tuple[float, float]:
        taken = np.flatnonzero(x)
        wrong = 0
        for gram, cross, mean, held, truth in parts:
            scores = np.broadcast_to(mean, (len(truth), len(mean)))
            if len(taken):
                inner = gram[np.ix_(taken, taken)] + np.eye(len(taken))
                scores = mean + held[:, taken] @ np.linalg.solve(inner, cross[taken])
            wrong += int((classes[scores.argmax(axis=1)] != truth).sum())
        return wrong / len(y), float(len(taken))

    return Task("binary", ao.Space.binary(X.shape[1]), f)


def tour(instance: int) -> Task:
    rng = np.random.default_rng(instance)
    places = rng.random((2, 30, 2))
    distances = np.sqrt(((places[:, :, None] - places[:, None]) ** 2).sum(axis=-1))
    space = ao.Space({"tour": ao.Permutation(range(30))})

    def f(point: Any) -> tuple[float, float]:
        here = np.array(point["tour"])
        both = distances[:, here, np.roll(here, -1)].sum(axis=1)
        return float(both[0]), float(both[1])

    return Task("tour", space, f)


KINDS, OWN, LEVELS, BITS, SHARED = ("a", "b", "c"), 4, 20, 12, 3


def mixed(instance: int) -> Task:
    """Return error and cost of a method with settings of its own, shared settings and switches."""
    rng = np.random.default_rng(instance)
    best, price = rng.random((3, OWN)), rng.random((3, OWN))
    base, fixed = 0.3 * rng.random(3), rng.random(3)
    gains, pairs = rng.normal(0, 0.1, BITS), np.triu(rng.normal(0, 0.06, (BITS, BITS)), 1)
    costs = rng.random(BITS) / 4
    common, own = rng.random(SHARED), rng.random(SHARED)
    variables: dict[str, Any] = {"kind": ao.Categorical(list(KINDS))}
    for kind in KINDS:
        for j in range(OWN):
            variables[f"{kind}{j}"] = ao.Integer(0, LEVELS, when={"kind": kind})
    variables |= {f"bit{j}": ao.Binary() for j in range(BITS)}
    variables |= {f"shared{j}": ao.Integer(0, 50) for j in range(SHARED)}

    def f(point: Any) -> tuple[float, float]:
        k = KINDS.index(point["kind"])
        mine = np.array([point[f"{point['kind']}{j}"] for j in range(OWN)]) / LEVELS
        bits = np.array([point[f"bit{j}"] for j in range(BITS)], float)
        shared = np.array([point[f"shared{j}"] for j in range(SHARED)]) / 50
        error = base[k] + ((mine - best[k]) ** 2).sum() + ((shared - common) ** 2).sum()
        error -= gains @ bits + bits @ pairs @ bits
        cost = fixed[k] + price[k] @ mine + own @ shared + costs @ bits
        return float(error), float(cost)

    return Task("mixed", ao.Space(variables), f)


PROBLEMS: dict[str, Callable[[int], Task]] = {
    "NK 64, K 2": lambda i: nk(i, 2),
    "NK 64, K 4": lambda i: nk(i, 4),
    "knapsack": knapsack,
    "features, breast_cancer": lambda i: features(i, "breast_cancer", 569),
    "features, digits": lambda i: features(i, "digits", 600),
    "tour": tour,
    "mixed": mixed,
}


class Recorder:
    """The function, which counts new points and remembers values, as its users call it."""

    def __init__(self, task: Task, budget: int) -> None:
        self.task, self.budget = task, budget
        self.known: dict[bytes, tuple[float, float]] = {}
        self.values: list[tuple[float, float]] = []
        self.repeats = 0
        self.inside = 0.0

    def __call__(self, point: Point) -> tuple[float, float]:
        """Return the values of a point."""
        codes = self.task.space.encode([point])
        key = self.task.space.canonical(codes).tobytes()
        if key in self.known:
            self.repeats += 1
            if self.repeats > MOST_REPEATS:
                raise Enough
            return self.known[key]
        if len(self.values) >= self.budget:
            raise Enough
        start = time.process_time()
        found = self.task.f(point)
        self.inside += time.process_time() - start
        self.known[key] = found
        self.values.append(found)
        return found


# --- methods --------------------------------------------------------------------------------------


def ours(algorithm: str, recorder: Recorder, seed: int) -> None:
    ao.optimize(
        recorder, recorder.task.space, recorder.budget, directions=("min", "min"),
        algorithm=algorithm, seed=seed, progress=False,
    )  # fmt: skip


def with_optuna(sampler: str, recorder: Recorder, seed: int) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space, kind = recorder.task.space, recorder.task.kind

    def objective(trial: Any) -> tuple[float, float]:
        if kind == "binary":
            n = len(space)
            return recorder(np.array([trial.suggest_int(f"x{j}", 0, 1) for j in range(n)]))
        if kind == "tour":
            keys = [trial.suggest_float(f"x{j}", 0, 1) for j in range(30)]
            return recorder({"tour": np.argsort(keys).tolist()})
        point: dict[str, Any] = {"kind": trial.suggest_categorical("kind", KINDS)}
        for j in range(OWN):
            name = f"{point['kind']}{j}"
            point[name] = trial.suggest_int(name, 0, LEVELS)
        for j in range(BITS):
            point[f"bit{j}"] = trial.suggest_categorical(f"bit{j}", [False, True])
        for j in range(SHARED):
            point[f"shared{j}"] = trial.suggest_int(f"shared{j}", 0, 50)
        return recorder(point)

    kinds = {"NSGA-II": optuna.samplers.NSGAIISampler, "TPE": optuna.samplers.TPESampler}
    study = optuna.create_study(
        directions=["minimize", "minimize"], sampler=kinds[sampler](seed=seed)
    )
    study.optimize(objective, n_trials=MOST_REPEATS, catch=())


def with_pymoo(name: str, recorder: Recorder, seed: int) -> None:
    from pymoo.algorithms.moo.moead import MOEAD
    from pymoo.algorithms.moo.nsga2 import NSGA2, RankAndCrowdingSurvival
    from pymoo.algorithms.moo.sms import SMSEMOA
    from pymoo.core.mixed import MixedVariableGA
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.core.variable import Binary, Choice, Integer
    from pymoo.operators.crossover.ox import OrderCrossover
    from pymoo.operators.crossover.pntx import TwoPointCrossover
    from pymoo.operators.crossover.sbx import SBX
    from pymoo.operators.mutation.bitflip import BitflipMutation
    from pymoo.operators.mutation.inversion import InversionMutation
    from pymoo.operators.mutation.pm import PM
    from pymoo.operators.repair.rounding import RoundingRepair
    from pymoo.operators.sampling.rnd import (
        BinaryRandomSampling,
        IntegerRandomSampling,
        PermutationRandomSampling,
    )
    from pymoo.optimize import minimize
    from pymoo.util.ref_dirs import get_reference_directions

    task = recorder.task
    names = list(task.space.names or ())
    high = task.space.cardinalities - 1

    def named(codes: Any) -> dict[str, Any]:
        """Return the point of numbers for all variables; of those that it has not, none."""
        point: dict[str, Any] = {"kind": KINDS[int(codes[0])]}
        for name, code in zip(names[1:], codes[1:], strict=True):
            if name.startswith(("bit", "shared")) or name[0] == point["kind"]:
                point[name] = bool(code) if name.startswith("bit") else int(code)
        return point

    decode: Callable[[Any], Point]
    options: dict[str, Any]
    variables: dict[str, Any] = {"n_var": len(task.space), "xl": 0, "xu": 1}
    if task.kind == "binary":
        decode = lambda x: np.asarray(x, int)  # noqa: E731
        options = {"sampling": BinaryRandomSampling(), "crossover": TwoPointCrossover(),
                   "mutation": BitflipMutation()}  # fmt: skip
        variables["vtype"] = bool
    elif task.kind == "tour":
        decode = lambda x: {"tour": [int(item) for item in x]}  # noqa: E731
        options = {"sampling": PermutationRandomSampling(), "crossover": OrderCrossover(),
                   "mutation": InversionMutation()}  # fmt: skip
        variables |= {"n_var": 30, "xu": 29, "vtype": int}
    elif name == "NSGA-II":
        decode = lambda x: named([KINDS.index(x["kind"]), *(x[n] for n in names[1:])])  # noqa: E731
        options = {}
        variables = {"vars": {
            "kind": Choice(options=list(KINDS)),
            **{n: Binary() if n.startswith("bit") else Integer(bounds=(0, int(top)))
               for n, top in zip(names[1:], high[1:], strict=True)},
        }}  # fmt: skip
    else:
        decode = named
        options = {
            "sampling": IntegerRandomSampling(),
            "crossover": SBX(prob=1.0, eta=3.0, vtype=float, repair=RoundingRepair()),
            "mutation": PM(prob=1.0, eta=3.0, vtype=float, repair=RoundingRepair()),
        }
        variables |= {"xu": high, "vtype": int}

    class Problem(ElementwiseProblem):
        def __init__(self) -> None:
            super().__init__(n_obj=2, **variables)

        def _evaluate(self, x: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            out["F"] = recorder(decode(x))

    algorithm: Any
    if name == "MOEA/D":
        directions = get_reference_directions("uniform", 2, n_partitions=99)
        algorithm = MOEAD(directions, n_neighbors=15, prob_neighbor_mating=0.7, **options)
    elif name == "SMS-EMOA":
        algorithm = SMSEMOA(pop_size=100, **options)
    elif task.kind == "mixed":
        algorithm = MixedVariableGA(pop_size=100, survival=RankAndCrowdingSurvival())
    else:
        algorithm = NSGA2(pop_size=100, eliminate_duplicates=True, **options)
    minimize(Problem(), algorithm, ("n_gen", MOST_REPEATS), seed=seed, verbose=False)


# --- runs -----------------------------------------------------------------------------------------


def reference(task: Task, instance: int) -> np.ndarray:
    """Return the worst values of 1,000 random points, and the lengths to the best of them."""
    rng = np.random.default_rng([7, instance])
    strategy = ao.strategies.RandomSearch(task.space, rng)
    _, codes = strategy.propose(1_000)
    values = np.array([task.f(point) for point in task.space.decode(codes)])
    return np.stack([values.max(axis=0), np.ptp(values, axis=0)])


def run(problem: str, instance: int, method: str, most: int) -> Iterator[dict[str, Any]]:
    task = PROBLEMS[problem](instance)
    recorder = Recorder(task, min(LARGEST.get(method, most), most))
    library, _, name = method.partition(" ")
    start = time.process_time()
    try:
        if library == "pymoo":
            with_pymoo(name, recorder, instance)
        elif library == "Optuna":
            with_optuna(name, recorder, instance)
        else:
            ours(method, recorder, instance)
    except Enough:
        pass
    seconds = time.process_time() - start - recorder.inside
    worst, length = reference(task, instance)
    values = (worst - np.array(recorder.values)) / length
    for mark in MARKS:
        if mark <= recorder.budget and (len(values) >= mark or mark == recorder.budget):
            found = values[:mark]
            front = NonDominated(2)
            for k, row in enumerate(found):
                front.add(k, row)
            yield {
                "problem": problem, "instance": instance, "method": method, "evaluations": mark,
                "hypervolume": repr(hypervolume(found, np.zeros(2))), "front": len(front),
                "seconds": round(seconds, 3) if mark == recorder.budget else "",
            }  # fmt: skip


def read(path: Path = PATH) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(rows: list[dict[str, Any]], path: Path = PATH) -> None:
    # no time in the header, so that the same rows are the same file
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        lines = [",".join(FIELDS)]
        lines += [",".join(f'"{row[k]}"' if "," in str(row[k]) else str(row[k]) for k in FIELDS)
                  for row in rows]  # fmt: skip
        file.write(("\n".join(lines) + "\n").encode())


def run_all(
    methods: list[str], instances: range, problems: list[str], most: int, path: Path
) -> None:
    rows: list[dict[str, Any]] = list(read(path))
    done = {(r["problem"], int(r["instance"]), r["method"], int(r["evaluations"])) for r in rows}
    for instance in instances:
        for problem in problems:
            for method in methods:
                known = (problem, instance, method)
                if (*known, min(LARGEST.get(method, most), most)) not in done:
                    rows = [
                        row
                        for row in rows
                        if (row["problem"], int(row["instance"]), row["method"]) != known
                    ]
                    rows += run(problem, instance, method, most)
                    write(rows, path)
                    print(problem, instance, method, rows[-1]["hypervolume"],
                          rows[-1]["seconds"], flush=True)  # fmt: skip


# --- table ----------------------------------------------------------------------------------------


def significance(own: np.ndarray, other: np.ndarray) -> str:
    """Return "+", "-" or "=": a paired t-test over instances at 5 %."""
    from scipy import stats

    difference = own - other
    if len(difference) < 2:
        return "?"
    if np.ptp(difference) == 0:
        return "=" if not difference[0] else "+-"[int(difference[0] < 0)]
    p = stats.ttest_1samp(difference, 0.0).pvalue
    return "=" if p >= 0.05 else "+-"[int(difference.mean() < 0)]


def table(method: str, path: Path) -> None:
    found = {
        (r["problem"], r["method"], int(r["evaluations"]), int(r["instance"])):
        float(r["hypervolume"]) for r in read(path)
    }  # fmt: skip
    peers = [m for m in METHODS if m != method]
    for title, instances in {"all": range(10), **HALVES}.items():
        print(f"\nInstances {title}: mean hypervolume, and how far `{method}` is above each; "
              "in brackets on how many instances\n")  # fmt: skip
        print("| | evaluations |", " | ".join([f"`{method}`", *peers]), "|")
        print("| --- " * (len(peers) + 3) + "|")
        counts = {"+": 0, "=": 0, "-": 0, "?": 0}
        for problem in PROBLEMS:
            for mark in MARKS:
                own = {i: found[problem, method, mark, i] for i in instances
                       if (problem, method, mark, i) in found}  # fmt: skip
                cells = [f"{np.mean(list(own.values())):.4f} ({len(own)})" if own else ""]
                for peer in peers:
                    both = [i for i in own if (problem, peer, mark, i) in found]
                    if not both:
                        cells.append("")
                        continue
                    a = np.array([own[i] for i in both])
                    b = np.array([found[problem, peer, mark, i] for i in both])
                    sign = significance(a, b)
                    counts[sign] += 1
                    percent = 100 * (a.mean() / b.mean() - 1)
                    cells.append(f"{percent:+.1f} % {sign} ({len(both)})")
                print(f"| {problem} | {mark:,} |", " | ".join(cells), "|")
        total = sum(counts.values())
        print(f"\n{counts['+']} of {total} pairs significantly above, {counts['-']} significantly "
              f"below, {counts['?']} with one instance only")  # fmt: skip


def cost(problems: list[str], most: int) -> None:
    """Append the own time of the default with one objective, the first, and with both."""
    with open(COST, "a", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        if not file.tell():
            table.writerow(["problem", "evaluations", "auto_seconds", "pareto_seconds"])
        for problem in problems:
            spent = []
            for algorithm in ("auto", "pareto"):
                task = PROBLEMS[problem](0)
                for budget in (50, most):  # the first compiles
                    recorder = Recorder(task, budget)
                    start = time.process_time()
                    if algorithm == "pareto":
                        ours(algorithm, recorder, 0)
                    else:
                        ao.minimize(lambda point, f=recorder: f(point)[0], task.space, budget,
                                    seed=0, progress=False)  # fmt: skip
                    seconds = time.process_time() - start - recorder.inside
                spent.append(round(seconds, 3))
            table.writerow([problem, most, *spent])
            file.flush()
            print(problem, *spent, f"{spent[1] / spent[0]:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    runs.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    runs.add_argument("--evaluations", type=int, default=MARKS[-1], choices=MARKS)
    runs.add_argument("--instances", nargs=2, type=int, default=[0, 10], metavar=("FIRST", "END"))
    costs = commands.add_parser("cost")
    costs.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    costs.add_argument("--evaluations", type=int, default=MARKS[0])
    tables = commands.add_parser("table")
    tables.add_argument("--method", default="pareto")
    for command in (runs, tables):
        command.add_argument("--path", type=Path, default=PATH)
    given = parser.parse_args()
    if given.command == "cost":
        cost(given.problems, given.evaluations)
    elif given.command == "run":
        instances = range(*given.instances)
        run_all(given.methods, instances, given.problems, given.evaluations, given.path)
    else:
        table(given.method, given.path)


if __name__ == "__main__":
    main()
