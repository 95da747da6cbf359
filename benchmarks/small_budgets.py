"""Small budgets: 25 to 300 evaluations (1,000 on some problems) with the default, `gp` and others.

    python benchmarks/small_budgets.py run --algorithms auto gp ils random --instances 0 1 2
    python benchmarks/small_budgets.py run --problems long --evaluations 1000
    python benchmarks/small_budgets.py table --half kept
    python benchmarks/small_budgets.py means
    python benchmarks/small_budgets.py choice --seeds 20

`run` appends missing runs to results/small_budgets.csv: the best value of a run after each number
of evaluations, and the CPU time of the search per evaluation. Known points are not evaluated again.
`table` shows the difference to `auto` in standard deviations of a run: for each problem and
instance the difference of means is divided by the pooled deviation of both, clipped at 4, averaged
over instances and then over problems. It also shows on how many problems an algorithm is
significantly ahead of `auto` and behind it (Welch's test by instance, 5 %). Constants of `gp` were
set on instances 0 and 1; `--half kept` leaves these out.

The 18 problems are generated everyday functions (benchmarks/generated.py, and five more below),
QUBO, NK landscapes, MaxSAT and MaxCut. `choice` is a task with conditions that requires
scikit-learn: which regressor to use, and with which settings (results/model_choice.csv). `auto`
begins with the method of `gp` if the budget is small; `auto without gp` does not.
"""

from __future__ import annotations

import argparse
import csv
import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread a process

import importlib  # noqa: E402
import multiprocessing  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable, Iterator, Sequence  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from common import RESULTS, machine  # noqa: E402
from generated import FUNCTIONS, Drawn  # noqa: E402

import anyorder as ao  # noqa: E402
from anyorder.bench.stats import welch_blocked  # noqa: E402

PATH, CHOICE = RESULTS / "small_budgets.csv", RESULTS / "model_choice.csv"
FIELDS = ("problem", "instance", "seed", "algorithm", "budget", "evaluations", "best", "own_ms")
MARKS = (25, 50, 100, 200, 300, 1_000)
TUNED = 2  # instances that constants were set on
CLIP = 4.0


# --- problems -----------------------------------------------------------------------------------


def inventory(rng: np.random.Generator, products: int = 5, days: int = 90) -> Drawn:
    """When to order how much of which supplier, by express or not, in which batches."""
    demand = rng.poisson(rng.integers(3, 25, (products, 1)), (products, days))
    price, fixed = rng.uniform(1, 6, (products, 40)), rng.uniform(5, 120, (products, 40))
    lead = rng.integers(1, 15, (products, 40))

    def f(x: Any) -> float:
        cost, suppliers = 0.0, set()
        for k in range(products):
            level, upto, supplier, express, batch = x[5 * k : 5 * k + 5].tolist()
            wait = max(1, int(lead[k, supplier]) - 5 * express)
            stock = position = 60
            arriving: dict[int, int] = {}
            suppliers.add(supplier)
            for day in range(days):
                stock += arriving.pop(day, 0)
                sold = min(stock, int(demand[k, day]))
                cost += 9 * (int(demand[k, day]) - sold)
                stock, position = stock - sold, position - sold
                cost += 0.12 * stock
                if position <= level and upto > position:
                    order = -(-(upto - position) // (batch + 1)) * (batch + 1)
                    arriving[day + wait] = arriving.get(day + wait, 0) + order
                    position += order
                    cost += fixed[k, supplier] * (1.8 if express else 1.0)
                    cost += price[k, supplier] * order
        return -float(cost + 150 * len(suppliers))

    one: list[Any] = [
        ao.Integer(0, 999),
        ao.Integer(0, 999),
        ao.Categorical(range(40)),
        ao.Binary(),
    ]
    return ao.Space([*one, ao.Integer(0, 19)] * products), f


def func3c(rng: np.random.Generator, levels: int = 201) -> Drawn:
    """Three categories say which functions of two numbers are added (after Ru et al., 2020)."""
    shift = rng.uniform(-0.3, 0.3, 2)
    scale = rng.uniform(0.5, 2.0, (3, 5))

    def parts(a: float, b: float) -> list[float]:
        rosenbrock = (100 * (b - a * a) ** 2 + (1 - a) ** 2) / 300
        camel = (4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (-4 + 4 * b**2) * b**2
        beale = (1.5 - a + a * b) ** 2 + (2.25 - a + a * b**2) ** 2 + (2.625 - a + a * b**3) ** 2
        return [rosenbrock, camel / 10, beale / 50, (a * a + b * b) / 4, np.cos(5 * a) * b / 2]

    def f(x: Any) -> float:
        point = x.tolist()
        a, b = (2.0 * point[3 + k] / (levels - 1) - 1.0 + shift[k] for k in (0, 1))
        values = parts(a, b)
        return -float(sum(scale[k, point[k]] * values[point[k]] for k in range(3)))

    grids = [ao.Integer(0, levels - 1)] * 2
    return ao.Space([ao.Categorical(range(k)) for k in (3, 5, 4)] + grids), f


def ackley53(rng: np.random.Generator, levels: int = 201) -> Drawn:
    """Ackley's function of 50 bits and 3 numbers on grids, the optimum somewhere else."""
    bits, centre = rng.integers(0, 2, 50), rng.integers(levels // 4, 3 * levels // 4, 3)

    def f(x: Any) -> float:
        z = np.concatenate([x[:50] != bits, 2.0 * (x[50:] - centre) / (levels - 1)])
        first = -20 * np.exp(-0.2 * np.sqrt(np.mean(z * z)))
        return -float(first - np.exp(np.mean(np.cos(2 * np.pi * z))) + 20 + np.e)

    return ao.Space([ao.Binary()] * 50 + [ao.Integer(0, levels - 1)] * 3), f


def pipeline(rng: np.random.Generator) -> Drawn:
    """A conditional space: four methods with settings of their own, and three for all of them."""
    variables: dict[str, Any] = {
        "method": ao.Categorical(range(4)), "scale": ao.Categorical(range(3)),
        "size": ao.Integer(1, 100), "drop": ao.Binary(),
    }  # fmt: skip
    for k in range(4):
        when = {"method": k}
        variables[f"rate{k}"] = ao.Float(1e-4, 1.0, levels=301, log=True, when=when)
        variables[f"depth{k}"] = ao.Integer(1, 30, when=when)
        variables[f"kind{k}"] = ao.Categorical(range(3), when=when)
        variables[f"power{k}"] = ao.Integer(2, 6, when={f"kind{k}": [1, 2]})
    space = ao.Space(variables)
    worth, kinds = rng.uniform(0, 0.3, 4), rng.normal(0, 0.15, (4, 3))
    centre, width = rng.uniform(0.2, 0.8, (4, 3)), rng.uniform(0.1, 0.4, (4, 3))
    shared, scales = rng.uniform(0.2, 0.8, 4), rng.normal(0, 0.15, (4, 3))

    def f(x: Any) -> float:
        point = x.tolist()
        method, scale, size, drop = point[:4]
        rate, depth, kind, power = point[4 + 4 * method : 8 + 4 * method]
        places = np.array([rate / 300, depth / 29, power / 4 if kind else 0.5])
        fit = float(np.exp(-np.square((places - centre[method]) / width[method]) / 2).mean())
        total = worth[method] + kinds[method, kind] + scales[method, scale] + fit
        return float(total - 0.5 * (size / 99 - shared[method]) ** 2 - 0.1 * drop * (kind != 1))

    return space, f


def columns(rng: np.random.Generator, n: int = 60, rows: int = 240) -> Drawn:
    """Feature selection for the nearest neighbour: accuracy of leave-one-out less a price."""
    labels = rng.integers(0, 3, rows)
    centres = rng.normal(0, 1, (3, n)) * (rng.random(n) < 0.2)
    data = centres[labels] + rng.normal(0, 1, (rows, n)) @ (
        np.eye(n) + 0.5 * (rng.random((n, n)) < 0.03)
    )
    square = np.stack([(data[:, [j]] - data[:, j]) ** 2 for j in range(n)]).astype(np.float32)
    square = square.reshape(n, -1)

    def f(x: Any) -> float:
        chosen = np.flatnonzero(x)
        if not len(chosen):
            return 0.0
        apart = square[chosen].sum(axis=0).reshape(rows, rows)
        np.fill_diagonal(apart, np.inf)
        return float((labels[apart.argmin(axis=1)] == labels).mean() - 0.002 * len(chosen))

    return ao.Space([ao.Binary()] * n), f


OWN: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "inventory": inventory, "func3c": func3c, "ackley53": ackley53, "pipeline": pipeline,
    "columns": columns,
}  # fmt: skip
DRAWN = {**FUNCTIONS, **OWN}
LONG = ["qubo:n=64,type=0", "nk:n=64,k=2", "nk:n=64,k=4"]
PROBLEMS = [
    *DRAWN, *LONG, "nkd:n=32,k=2", "maxsat:n=60,ratio=4.3", "maxcut:n=64,density=0.1",
]  # fmt: skip
SETS = {"all": PROBLEMS, "long": LONG}


def problem(name: str, instance: int) -> Drawn:
    """The space and the function on codes, which is maximised."""
    if name in DRAWN:
        return DRAWN[name](np.random.default_rng(instance))
    chosen = ao.problems.get(f"{name},seed={instance}")
    return chosen.space, chosen


# --- runs ---------------------------------------------------------------------------------------


Key = tuple[str, int, int, str, int]


def run_one(key: Key) -> list[tuple[Any, ...]]:
    """One run: its best value after each mark, and the CPU time of the search per evaluation."""
    name, instance, seed, algorithm, budget = key
    space, f = problem(name, instance)
    spent = 0.0

    def measured(point: Any) -> float:
        nonlocal spent
        start = time.process_time()
        codes = space.encode([point])[0] if space.named else np.asarray(point)
        value = float(f(codes))
        spent += time.process_time() - start
        return value

    start = time.process_time()
    result = ao.maximize(
        measured, space, budget, algorithm=called(algorithm), seed=seed,
        progress=False,
    )  # fmt: skip
    own = 1e3 * (time.process_time() - start - spent) / budget
    values = result.history.values[~result.history.cached]
    best = np.maximum.accumulate(values)
    marks = [mark for mark in MARKS if mark <= budget]
    return [(*key, m, float(best[min(m, len(best)) - 1]), round(own, 3)) for m in marks]


def called(algorithm: str) -> str:
    """Return the algorithm as `maximize` takes it; with a large budget `auto` does without gp."""
    return "auto+budget=1000000" if algorithm == "auto without gp" else algorithm


def read(path: Any = PATH) -> list[dict[str, str]]:
    """All rows so far."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def jobs(given: argparse.Namespace) -> Iterator[Key]:
    done = {
        (r["problem"], int(r["instance"]), int(r["seed"]), r["algorithm"], int(r["budget"]))
        for r in read(given.to)
    }
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for instance in given.instances:
            for name in SETS.get(given.problems[0], given.problems):
                for algorithm in given.algorithms:
                    key = (name, instance, seed, algorithm, given.evaluations)
                    if key not in done:
                        yield key


def run(given: argparse.Namespace) -> None:
    """Run what is missing, and append it."""
    todo, facts, new = list(jobs(given)), machine(), not given.to.exists()
    for algorithm in given.algorithms:  # so that compiling is not measured
        for name in ("func3c", "pipeline", "nk:n=64,k=2"):
            run_one((name, 0, 0, algorithm, 25))
    end, count = time.monotonic() + given.seconds, 0
    with (
        given.to.open("a", newline="", encoding="utf-8") as file,
        multiprocessing.get_context("spawn").Pool(given.processes) as pool,
    ):
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow([*FIELDS, *facts])
        for rows in pool.imap_unordered(run_one, todo):
            writer.writerows([*row, *facts.values()] for row in rows)
            file.flush()
            count += 1
            if time.monotonic() > end:
                print("out of time: what is missing can be run later")
                pool.terminate()
                break
    print(f"{count} of {len(todo)} runs in {given.to}")


# --- tables -------------------------------------------------------------------------------------


Cells = dict[tuple[str, int], dict[str, dict[int, list[float]]]]


def cells(given: argparse.Namespace) -> tuple[Cells, dict[str, list[float]]]:
    """Values by problem and mark, algorithm and instance; and milliseconds by algorithm."""
    found: Cells = {}
    times: dict[str, list[float]] = {}
    for row in read(given.to):
        tuned = int(row["instance"]) < TUNED
        if int(row["budget"]) != given.evaluations:
            continue
        if given.half == "all" or tuned == (given.half == "tuned"):
            of = found.setdefault((row["problem"], int(row["evaluations"])), {})
            of = of.setdefault(row["algorithm"], {})
            of.setdefault(int(row["instance"]), []).append(float(row["best"]))
            times.setdefault(row["algorithm"], []).append(float(row["own_ms"]))
    return found, times


def ahead(base: dict[int, list[float]], other: dict[int, list[float]]) -> tuple[float, float]:
    """The mean difference in deviations of a run, and the p value of Welch's test."""
    shared = sorted(set(base) & set(other))
    differences = []
    for k in shared:
        a, b = np.array(base[k]), np.array(other[k])
        squares = [((v - v.mean()) ** 2).sum() for v in (a, b)]
        deviation = (sum(squares) / max(len(a) + len(b) - 2, 1)) ** 0.5
        gap = float(b.mean() - a.mean())
        if deviation > 0:
            differences.append(float(np.clip(gap / deviation, -CLIP, CLIP)))
        else:
            differences.append(CLIP * float(np.sign(gap)))
    p = welch_blocked([base[k] for k in shared], [other[k] for k in shared])
    return float(np.mean(differences)) if differences else np.nan, p


def table(given: argparse.Namespace) -> None:
    """Differences to the base, by the number of evaluations, and milliseconds an evaluation."""
    found, times = cells(given)
    marks = [mark for mark in MARKS if mark <= given.evaluations]
    print("| |", " | ".join(f"{mark:,}" for mark in marks), "| ms |")
    print("| --- |" + " --- |" * (len(marks) + 1))
    for algorithm in times:
        entries = []
        for mark in marks if algorithm != given.base else ():
            gaps, better, worse = [], 0, 0
            for (_, at), of in found.items():
                if at == mark and given.base in of and algorithm in of:
                    gap, p = ahead(of[given.base], of[algorithm])
                    gaps.append(gap)
                    better += p < 0.05 and gap > 0
                    worse += p < 0.05 and gap < 0
            entries.append(f"{np.mean(gaps):+.2f} ({better}:{worse})" if gaps else "")
        entries = entries or ["0"] * len(marks)
        print(f"| {algorithm} |", " | ".join(entries), f"| {np.mean(times[algorithm]):.2f} |")


def means(given: argparse.Namespace) -> None:
    """Differences to the base by problem."""
    found, times = cells(given)
    names = [name for name in times if name != given.base]
    print("| problem | evaluations |", " | ".join(names), "|")
    print("| --- | --- |" + " --- |" * len(names))
    for (name, mark), of in found.items():
        entries = []
        for algorithm in names:
            if algorithm in of and given.base in of:
                gap, p = ahead(of[given.base], of[algorithm])
                entries.append(f"{gap:+.2f}" + "*" * (p < 0.05))
            else:
                entries.append("")
        print(f"| {name} | {mark} |", " | ".join(entries), "|")


# --- a task with conditions ---------------------------------------------------------------------


def regressors() -> tuple[ao.Space, Callable[[Any], float]]:
    """Which regressor, and with which settings: mean R squared of four folds on friedman1."""
    sk = {
        name: importlib.import_module(f"sklearn.{name}")
        for name in ("datasets", "model_selection", "preprocessing", "pipeline", "svm",
                     "linear_model", "neighbors", "tree")
    }  # fmt: skip
    rows, target = sk["datasets"].make_friedman1(200, 8, noise=1.0, random_state=0)
    folds = sk["model_selection"].KFold(4, shuffle=True, random_state=0)
    scalers = {"std": "StandardScaler", "minmax": "MinMaxScaler"}

    def f(p: dict[str, Any]) -> float:
        own = {key: value for key, value in p.items() if key not in ("model", "scale")}
        if p["model"] == "svr":
            model = sk["svm"].SVR(max_iter=20_000, **own)
        elif p["model"] == "net":
            model = sk["linear_model"].ElasticNet(**own)
        elif p["model"] == "knn":
            model = sk["neighbors"].KNeighborsRegressor(**own)
        else:
            model = sk["tree"].DecisionTreeRegressor(random_state=0, **own)
        if p["scale"] in scalers:
            scaler = getattr(sk["preprocessing"], scalers[p["scale"]])()
            model = sk["pipeline"].make_pipeline(scaler, model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = sk["model_selection"].cross_val_score(
                model, rows, target, cv=folds, scoring="r2"
            )
        return float(scores.mean())

    svr, net = {"model": "svr"}, {"model": "net"}
    knn, tree = {"model": "knn"}, {"model": "tree"}
    space = ao.Space({
        "scale": ao.Categorical(["none", "std", "minmax"]),
        "model": ao.Categorical(["svr", "net", "knn", "tree"]),
        "C": ao.Float(1e-3, 1e3, levels=601, log=True, when=svr),
        "epsilon": ao.Float(1e-3, 1.0, levels=301, log=True, when=svr),
        "kernel": ao.Categorical(["linear", "rbf", "poly"], when=svr),
        "gamma": ao.Float(1e-4, 10, levels=501, log=True, when={"kernel": ["rbf", "poly"]}),
        "degree": ao.Integer(2, 5, when={"kernel": "poly"}),
        "alpha": ao.Float(1e-5, 10, levels=601, log=True, when=net),
        "l1_ratio": ao.Float(0, 1, when=net),
        "n_neighbors": ao.Integer(1, 50, when=knn),
        "weights": ao.Categorical(["uniform", "distance"], when=knn),
        "p": ao.Integer(1, 3, when=knn),
        "max_depth": ao.Integer(1, 20, when=tree),
        "min_samples_leaf": ao.Integer(1, 50, when=tree),
        "ccp_alpha": ao.Float(1e-5, 1, levels=501, log=True, when=tree),
    })  # fmt: skip
    return space, f


def choose_one(key: tuple[str, int, int]) -> list[tuple[Any, ...]]:
    """One run of the task: best values, and the evaluations of each model."""
    algorithm, seed, budget = key
    space, f = regressors()
    result = ao.maximize(f, space, budget, algorithm=algorithm, seed=seed, progress=False)
    new = ~result.history.cached
    best = np.maximum.accumulate(result.history.values[new])
    models = np.bincount(result.history.codes[new][:, 1], minlength=4).tolist()
    marks = [mark for mark in MARKS if mark <= budget]
    return [(algorithm, seed, m, float(best[min(m, len(best)) - 1]), *models) for m in marks]


def choice(given: argparse.Namespace) -> None:
    """Run the task with conditions, and append to its file."""
    facts, new = machine(), not CHOICE.exists()
    done = {(row["algorithm"], int(row["seed"])) for row in read(CHOICE)}
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    todo = [(a, s, 200) for s in seeds for a in given.algorithms if (a, s) not in done]
    with (
        CHOICE.open("a", newline="", encoding="utf-8") as file,
        multiprocessing.get_context("spawn").Pool(given.processes) as pool,
    ):
        writer = csv.writer(file, lineterminator="\n")
        if new:
            fields = ("algorithm", "seed", "evaluations", "best", "svr", "net", "knn", "tree")
            writer.writerow([*fields, *facts])
        for rows in pool.imap(choose_one, todo):
            writer.writerows([*row, *facts.values()] for row in rows)
            file.flush()
    for algorithm in dict.fromkeys(row["algorithm"] for row in read(CHOICE)):
        rows = [r for r in read(CHOICE) if r["algorithm"] == algorithm]
        line = [algorithm]
        for mark in (25, 50, 100, 200):
            values = [float(r["best"]) for r in rows if int(r["evaluations"]) == mark]
            line.append(f"{np.mean(values):.4f} (least {min(values):.4f}, {len(values)} runs)")
        print("; ".join(line))


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Small budgets.")
    parser.add_argument("action", choices=("run", "table", "means", "choice"))
    parser.add_argument("--algorithms", nargs="+", default=["auto", "gp", "ils", "random"])
    parser.add_argument("--problems", nargs="+", default=["all"])
    parser.add_argument("--instances", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--evaluations", type=int, default=300)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--to", type=Path, default=PATH, help="the file of runs")
    parser.add_argument("--half", choices=("all", "tuned", "kept"), default="all")
    parser.add_argument("--base", default="auto")
    given = parser.parse_args(arguments)
    {"run": run, "table": table, "means": means, "choice": choice}[given.action](given)


if __name__ == "__main__":
    main()
