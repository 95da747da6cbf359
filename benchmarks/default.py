"""Compare the default algorithm with others: raw runs, and tables of wins.

    python benchmarks/default.py run --suite rows --seeds 10 --processes 16
    python benchmarks/default.py run --suite functions variants --instances 0 1 2 3 4 --seeds 2
    python benchmarks/default.py run --suite everyday --everyday FILE --instances 0 --seeds 20
    python benchmarks/default.py run --to OUT/default.csv.gz --strategies auto --seconds 240
    python benchmarks/default.py table --suite rows
    python benchmarks/default.py means --suite functions
    python benchmarks/default.py wins
    python benchmarks/default.py gap
    python benchmarks/default.py figure
    python benchmarks/default.py cost

`run` makes the runs that are missing in results/default.csv.gz, and appends them: the first run of
every problem, then the second, and so on, so that an early end leaves a few runs of each. On
another machine it writes to another file (`--to`), which benchmarks/merge.py adds. Every proposal
is evaluated and counted, even if its point is known. With noise, the recorded value is the value
without noise at the point of the best measurement. `auto@8` is `auto` that proposes eight points at
a time. `cost` measures the processor time of `auto` per evaluation on this machine, and writes it
to results/default_cost.csv. The suites:

    rows       the 42 distributions of the paper (`wins` also compares with the campaigns in
               results/reproduction)
    functions  generated everyday functions (benchmarks/generated.py)
    variants   MaxSAT, MaxCut, noise and monotone transforms
    pbo        the functions of IOHprofiler
    everyday   the functions of a file
    figure     four of the rows
    workers    six of the rows
    half       QUBO with 64 variables, up to 5,000 evaluations
"""

from __future__ import annotations

import argparse
import csv
import functools
import gzip
import importlib.util
import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, machine, write
from generated import FUNCTIONS, Drawn, transformed

import anyorder as ao
from anyorder.bench.stats import welch, welch_blocked
from anyorder.strategies.base import Answer
from anyorder.strategies.create import create

PATH = RESULTS / "default.csv.gz"
FIELDS = ("problem", "instance", "seed", "strategy", "evaluations", "best", "own_us")
SIZES = (64, 128, 256)
SUITES = {
    "rows": [f"qubo:n={n},type={t}" for n in SIZES for t in range(6)]
    + [f"{family}:n={n},k={k}" for family in ("nk", "nkd") for n in SIZES for k in (1, 2, 4, 8)],
    "functions": [f"function:{name}" for name in FUNCTIONS],
    "variants": [
        "maxsat:n=100,ratio=4.3", "maxcut:n=128,density=0.1",
        "qubo:n=128,type=0|exp", "qubo:n=128,type=0|power", "nk:n=64,k=4|exp",
        "nk:n=64,k=4|power", "qubo:n=64,type=0|noise1", "qubo:n=64,type=0|noise10",
        "nk:n=64,k=4|noise1", "nk:n=64,k=4|noise10",
    ],
    "pbo": [f"pbo:function={number},n=64" for number in range(1, 26)],
    "everyday": [
        f"everyday:{name}"
        for name in ("knapsack", "schedule", "mixed", "feat_cancer", "feat_digits")
    ],
}  # fmt: skip
# The rows of the figure, with more marks; their runs differ from those of `rows` in their seeds.
SUITES["figure"] = [
    f"{name} " for name in ("qubo:n=64,type=0", "nk:n=128,k=4", "qubo:n=256,type=1", "nkd:n=64,k=2")
]
# Six rows, for several points at a time: their evaluations are compared with 4/5 as many.
SUITES["workers"] = [
    f"{name}  "
    for name in ("qubo:n=64,type=0", "qubo:n=128,type=3", "qubo:n=256,type=1", "nk:n=64,k=8",
                 "nk:n=128,k=4", "nkd:n=64,k=2")
]  # fmt: skip
# QUBO with 64 variables, half-way.
SUITES["half"] = [f"qubo:n=64,type={t}   " for t in range(6)]
DENSE = tuple(sorted({round(10 ** (1 + k / 8)) for k in range(25)} | {200}))
MARKS = {
    "everyday": tuple(mark for mark in DENSE if mark <= 1_000), "figure": DENSE,
    "workers": (800, 1_000, 8_000, 10_000), "half": (5_000,),
}  # fmt: skip
DEFAULT_MARKS = (25, 50, 100, 200, 300, 1_000, 3_000, 10_000)
COLOURS = {  # in the order of drawing
    "policy": "#cc79a7", "one-plus-one": "#e69f00", "hill-climber": "#56b4e9", "ils": "#009e73",
    "auto": "#d55e00",
}  # fmt: skip
EARLIER = "auto, previous version"  # commit 379897d, before the portfolio
LOCAL = ("hill-climber", "ils", "tabu", "one-plus-one", "fast-one-plus-one")
# Constants were set on instances 0 to 4.
HALVES = {"all": range(10**9), "tuned": range(5), "kept": range(5, 10**9)}
MANY = 5  # runs on an instance
Key = tuple[str, int, int, str]


def problem(name: str, instance: int, everyday: Path | None) -> Drawn:
    """Return the space, and the function of codes that is maximised."""
    base, _, how = name.strip().partition("|")
    family, _, rest = base.partition(":")
    if family == "pbo":
        base += f",instance={instance + 1}"
    if family == "function":
        drawn = FUNCTIONS[rest](np.random.default_rng(instance))
    elif family == "everyday":
        drawn = everyday_function(everyday, rest)
    else:
        has_seed = "seed" in ao.problems.registry[family].parameters
        chosen = ao.problems.get(base + f",seed={instance}" * has_seed)
        drawn = chosen.space, chosen
    return transformed(drawn, how, instance) if how else drawn


@functools.cache
def everyday_function(path: Path | None, name: str) -> Drawn:
    """Return a function of a file that defines `FNS`."""
    if path is None:
        raise SystemExit("give the file of everyday functions with --everyday")
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
    return ao.Space(variables), lambda codes: float(f((codes + low).tolist()))


def run_one(job: tuple[Key, Sequence[int], Path | None]) -> list[tuple[Any, ...]]:
    """Make one run; return its best value at each mark, and the strategy's time per evaluation."""
    key, marks, everyday = job
    name, instance, seed, label = key
    algorithm, _, batch = label.partition("@")
    space, f = problem(name, instance, everyday)
    try:
        strategy = create(algorithm, space, seed=seed)
    except ValueError as refusal:  # such as P3 where variables have too many values
        print(f"{algorithm} on {name}: {refusal}")
        return []
    truth = getattr(f, "truth", f)
    best, at_best, found, own, evaluation = -np.inf, -np.inf, [], 0.0, 0
    while evaluation < max(marks):
        start = time.thread_time()
        proposals = strategy.propose(int(batch or 1))
        own += time.thread_time() - start
        if not len(proposals.codes):
            break
        answers = []
        for ticket, codes in zip(proposals.tickets, proposals.codes, strict=True):
            value = float(f(codes))
            evaluation += 1
            if value > best:
                best, at_best = value, value if truth is f else float(truth(codes))
            found += [at_best] * (evaluation in marks)
            answers.append(Answer(ticket, codes, value))
        start = time.thread_time()
        strategy.learn(answers)
        own += time.thread_time() - start
    found += [at_best] * (len(marks) - len(found))
    us = round(1e6 * own / max(marks), 1)
    return [(*key, mark, value, us) for mark, value in zip(marks, found, strict=True)]


def cost(given: argparse.Namespace) -> None:
    """Measure the processor time of `auto` per evaluation, over 10,000 of NK with K = 4."""
    rows = []
    for n in (64, 256, 1024):
        name = f"nk:n={n},k=4"
        run_one(((name, 0, 0, "auto"), (500,), None))  # compiles
        own = [run_one(((name, k, 0, "auto"), (10_000,), None))[0][-1] for k in given.instances[:3]]
        rows.append({"n": n, "runs": len(own), "median_us": sorted(own)[len(own) // 2]})
        print(rows[-1], flush=True)
    write("default_cost.csv", rows)


def read(path: Path = PATH) -> list[dict[str, str]]:
    """Return all rows so far."""
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def keys(rows: Iterable[dict[str, str]]) -> set[Key]:
    """Return the keys of the runs in some rows."""
    return {(r["problem"], int(r["instance"]), int(r["seed"]), r["strategy"]) for r in rows}


def jobs(given: argparse.Namespace, done: set[Key]) -> Iterator[tuple[Key, Any, Path | None]]:
    for k in range(given.seeds):
        for instance in given.instances:
            for suite in given.suite:
                for name in SUITES[suite]:
                    for algorithm in given.strategies:
                        key = (name, instance, given.first_seed + k, algorithm)
                        if key not in done:
                            yield key, MARKS.get(suite, DEFAULT_MARKS), given.everyday


def run(given: argparse.Namespace) -> None:
    """Make the missing runs, and append their rows."""
    done = keys(read()) | keys(read(given.to))
    facts, end = machine(), time.monotonic() + given.seconds
    # Here, so that processes find the compiled loops on disk.
    run_one((("nk:n=64,k=4", 0, 0, "auto"), (2_000,), None))
    if not given.to.exists():
        append(given.to, [(*FIELDS, *facts)])
    count = 0
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        for rows in pool.imap_unordered(run_one, jobs(given, done)):
            append(given.to, [(*row, *facts.values()) for row in rows])
            count += 1
            if time.monotonic() > end:
                print("out of time: what is missing can be run later")
                pool.terminate()
                break
    print(f"{count} runs in {given.to}")


def append(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    """Append rows as a gzip stream of their own, which stays valid if the next one is cut short."""
    with gzip.open(path, "at", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def table(given: argparse.Namespace) -> None:
    """Print the means by problem and algorithm; + and - if Welch's test finds a difference."""
    cells: dict[tuple[str, int], dict[str, list[float]]] = {}
    for row in read():
        if row["problem"] in {name for suite in given.suite for name in SUITES[suite]} and (
            int(row["instance"]) in HALVES[given.half] or given.suite == ["everyday"]
        ):
            cell = cells.setdefault((row["problem"], int(row["evaluations"])), {})
            cell.setdefault(row["strategy"], []).append(float(row["best"]))
    names = sorted({name for cell in cells.values() for name in cell}, key=lambda s: s != "auto")
    print("| problem | evaluations |", " | ".join(names), "|\n|", " --- |" * (len(names) + 2))
    counts = {name: [0, 0] for name in names}
    for (name, mark), cell in sorted(cells.items(), key=lambda item: (item[0][1], item[0][0])):
        entries = []
        for algorithm in names:
            values = cell.get(algorithm, [])
            text = f"{np.mean(values):.5g}" if values else ""
            if algorithm != "auto" and len(values) > 1 and welch(cell["auto"], values) < 0.05:
                better = bool(np.mean(values) > np.mean(cell["auto"]))
                counts[algorithm][better] += 1
                text += " +" if better else " -"
            entries.append(text)
        print(f"| {name} | {mark:,} |", " | ".join(entries), "|")
    for algorithm, (worse, better) in counts.items():
        print(f"{algorithm}: significantly worse than auto {worse} times, better {better} times")


def means(given: argparse.Namespace) -> None:
    """Print means with their standard errors, as in the documentation; the best one is bold."""
    values: dict[tuple[str, int, str], list[float]] = {}
    for row in read():
        if int(row["instance"]) in HALVES[given.half] or given.suite == ["everyday"]:
            key = (row["problem"], int(row["evaluations"]), row["strategy"])
            values.setdefault(key, []).append(float(row["best"]))
    marks = (200, 1_000) if given.suite == ["everyday"] else (1_000, 10_000)
    print("| | evaluations |", " | ".join(f"`{name}`" for name in given.strategies), "|")
    print("|", " | ".join(["---"] * (2 + len(given.strategies))), "|")
    for name in (name for suite in given.suite for name in SUITES[suite]):
        for mark in marks:
            found = {
                s: values[name, mark, s] for s in given.strategies if (name, mark, s) in values
            }
            best = max((float(np.mean(of)) for of in found.values()), default=0.0)
            entries = []
            for algorithm in given.strategies:
                of = found.get(algorithm, [np.nan])
                mean, error = float(np.mean(of)), float(np.std(of, ddof=1)) / len(of) ** 0.5
                digits = sum(abs(mean) < limit for limit in (1, 2, 20, 1000))
                text = f"{mean:,.{digits}f} ({error:,.{digits}f})" if algorithm in found else ""
                entries.append(f"**{text}**" if mean == best else text)
            label = name.partition(":")[2] if name.startswith(("function:", "everyday:")) else name
            print(f"| {label.replace('|', ', ')} | {mark:,} |", " | ".join(entries), "|")


def campaigns() -> Iterator[tuple[str, int, str, int, float]]:
    """Yield distribution, instance, algorithm, evaluations and best value of the campaigns.

    Their results are in results/reproduction.
    """
    for name in ("table-10000.baselines", "table-10000.presets"):
        with gzip.open(RESULTS / "reproduction" / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                best = -np.inf
                for mark in range(100, 10_001, 100):  # empty where nothing improved
                    best = float(row[str(mark)] or best)
                    if mark in (1_000, 10_000):
                        instance = int(row["instance"])
                        yield row["distribution"], instance, row["algorithm"], mark, best


def runs_on_rows() -> Iterator[tuple[str, int, str, int, float]]:
    """Yield what `campaigns` yields, for the runs of this script and for the campaigns."""
    families = {"qubo": "QUBO", "nk": "NK", "nkd": "NK3"}
    for row in read():
        if row["problem"] in SUITES["rows"]:
            family, _, rest = row["problem"].partition(":")
            values = dict(item.split("=") for item in rest.split(","))
            name = f"{families[family]} {values['n']} {values.get('type', values.get('k'))}"
            mark, best = int(row["evaluations"]), float(row["best"])
            yield name, int(row["instance"]), row["strategy"], mark, best
    yield from campaigns()


def compared(one: dict[int, list[float]], other: dict[int, list[float]], blocked: bool) -> int:
    """Return 1 if `one` is significantly above `other`, -1 if it is below, else 0.

    By instance: within instances, or if there is one run of some, a t-test of the differences.
    """
    shared = sorted(set(one) & set(other))
    x, y = [one[k] for k in shared], [other[k] for k in shared]
    gaps = [np.mean(a) - np.mean(b) for a, b in zip(x, y, strict=True)]
    if not blocked:
        p = welch(np.concatenate(x), np.concatenate(y))
    elif min(map(len, x + y)) > 1:
        p = welch_blocked(x, y)
    else:
        from scipy.stats import ttest_1samp

        p = float(ttest_1samp(gaps, 0.0).pvalue)
    return (1 if np.mean(gaps) > 0 else -1) * (p < 0.05)


def span(numbers: Sequence[int]) -> str:
    """Return the least and the largest number as text; only one number if all are equal."""
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def wins(given: argparse.Namespace) -> None:
    """Print the numbers of rows, of 42, on which `--of` is significantly above and below others."""
    marks = (1_000, 10_000)
    cells: dict[tuple[str, int], dict[str, dict[int, list[float]]]] = {}
    for name, instance, algorithm, mark, best in runs_on_rows():
        if instance in HALVES[given.half] and mark in marks:
            of = cells.setdefault((name, mark), {}).setdefault(algorithm, {})
            of.setdefault(instance, []).append(best)
    every = {name for cell in cells.values() for name in cell}
    rivals = sorted(name for name in every if not name.startswith("auto"))
    if given.earlier:
        rivals.append(EARLIER)
    subject = given.of
    cells = {key: cell for key, cell in cells.items() if subject in cell}
    for blocked in (True, False):
        print("\nby instance" if blocked else "\nall instances together (Welch's test)")
        print("| | 1,000: above | below | 10,000: above | below |\n| --- | --- | --- | --- | --- |")
        outcomes = {
            (key, rival): compared(cell[subject], cell[rival], blocked)
            for key, cell in cells.items()
            for rival in rivals
            if rival in cell
        }
        for rival in rivals:
            found = [
                sum(value == sign for (key, name), value in outcomes.items()
                    if name == rival and key[1] == mark)
                for mark in marks for sign in (1, -1)
            ]  # fmt: skip
            runs = [sum(map(len, cell[rival].values())) for cell in cells.values()]
            print(f"| {rival}, {span(runs)} runs |", " | ".join(map(str, found)), "|")
        others = [name for name in rivals if name != EARLIER]
        # With few runs a difference is hard to tell from chance, whoever is better.
        most = [
            name for name in others
            if all(len(own) >= MANY for cell in cells.values() for own in cell[name].values())
        ]  # fmt: skip
        for mark in marks:
            rows = [key for key in cells if key[1] == mark]
            runs = [sum(map(len, cells[key][subject].values())) for key in rows]
            for what, names in ((f"all with {MANY} runs an instance", most), ("all", others)):
                worst = {key: min(outcomes[key, name] for name in names) for key in rows}
                print(
                    f"{mark}: significantly above {what} on {list(worst.values()).count(1)} rows, "
                    f"below one of them on {list(worst.values()).count(-1)}; {span(runs)} runs"
                )
                if given.rows and blocked:
                    print("  not above:", ", ".join(k[0] for k in rows if worst[k] < 1))


def gap(given: argparse.Namespace) -> None:
    """Print the gaps of strategies to the best value of any run, on QUBO with 64 variables."""
    best: dict[tuple[str, str], float] = {}
    runs: dict[tuple[str, str, int], list[tuple[str, float]]] = {}
    names = {name.strip() for name in SUITES["half"]}
    for row in read():
        problem, instance, value = row["problem"].strip(), row["instance"], float(row["best"])
        if problem in names:
            best[problem, instance] = max(best.get((problem, instance), -np.inf), value)
            if row["problem"] in SUITES["rows"] + SUITES["half"]:
                key = problem, row["strategy"], int(row["evaluations"])
                runs.setdefault(key, []).append((instance, value))
    print("| mean gap, per cent | evaluations |", " | ".join(sorted(names)), "| all |")
    print("|", " | ".join(["---"] * (3 + len(names))), "|")
    for algorithm in given.strategies:
        for mark in (5_000, 10_000):
            gaps = [
                float(np.mean([100 * (1 - value / best[name, k]) for k, value in found]))
                for name in sorted(names)
                if (found := runs.get((name, algorithm, mark)))
            ]
            if len(gaps) == len(names):
                texts = " | ".join(f"{each:.3f}" for each in [*gaps, float(np.mean(gaps))])
                print(f"| `{algorithm}` | {mark:,} | {texts} |")


def figure(given: argparse.Namespace) -> None:
    """Draw the mean best value over evaluations, on rows of the paper and everyday functions."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    means: dict[str, dict[str, dict[int, list[float]]]] = {}
    for row in read():
        if row["problem"] in SUITES["figure"] + SUITES["everyday"]:
            of = means.setdefault(row["problem"], {}).setdefault(row["strategy"], {})
            of.setdefault(int(row["evaluations"]), []).append(float(row["best"]))
    panels = [name for name in SUITES["figure"] + SUITES["everyday"] if name in means]
    columns = 3
    rows = -(-len(panels) // columns)
    drawn, axes = plt.subplots(rows, columns, figsize=(11, 3 * rows), constrained_layout=True)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    for axis, name in zip(axes.flat, panels, strict=False):
        shown: list[float] = []
        for algorithm, colour in COLOURS.items():
            earlier = algorithm == "auto" and algorithm not in means[name]
            label = EARLIER if earlier else algorithm
            curve = means[name].get(label)
            if curve is None:
                continue
            marks = sorted(curve)
            values = [float(np.mean(curve[mark])) for mark in marks]
            wide = 2.2 if algorithm == "auto" else 1.2
            axis.plot(marks, values, color=colour, linewidth=wide, label=label)
            shown += values[marks.index(100) :]
        room = 0.04 * (max(shown) - min(shown))
        axis.set_ylim(min(shown) - room, max(shown) + room)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlim(left=100)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.set_title(name.strip().removeprefix("everyday:"), fontsize=10)
    axes.flat[0].legend(fontsize=8, frameon=False)
    drawn.supxlabel("evaluations", fontsize=10)
    drawn.supylabel("mean best value", fontsize=10)
    drawn.savefig(given.out, dpi=130)
    print(given.out)


def main() -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(variable, "1")  # one thread a process
    parser = argparse.ArgumentParser(description="The default algorithm beside others.")
    parser.add_argument(
        "action", choices=("run", "table", "means", "wins", "gap", "figure", "cost")
    )
    parser.add_argument("--to", type=Path, default=PATH, help="where runs are written")
    parser.add_argument("--out", type=Path, default=RESULTS.parent / "docs" / "default.png")
    parser.add_argument("--suite", nargs="+", choices=list(SUITES), default=["rows"])
    parser.add_argument("--strategies", nargs="+", default=["auto", *LOCAL])
    parser.add_argument("--instances", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--seeds", type=int, default=10, help="runs of each instance")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--of", default="auto", help=f"whose wins: auto, or '{EARLIER}'")
    parser.add_argument("--earlier", action="store_true", help="also beside the version before")
    parser.add_argument("--rows", action="store_true", help="name the rows that are not won")
    parser.add_argument("--half", choices=("all", "tuned", "kept"), default="all")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--everyday", type=Path, help="a file of functions")
    given = parser.parse_args()
    actions = {
        "run": run, "table": table, "means": means, "wins": wins, "gap": gap, "figure": figure,
        "cost": cost,
    }  # fmt: skip
    actions[given.action](given)


if __name__ == "__main__":
    main()
