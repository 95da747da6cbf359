"""Measure the contribution of each operator and rule of the default by runs without it.

    python benchmarks/ablation.py run --seeds 10 --processes 16
    python benchmarks/ablation.py run --variants auto "no leap" --groups some conditional
    python benchmarks/ablation.py table
    python benchmarks/ablation.py compare --of "no leap" --with auto

A variant is the default with one attribute of a class, or one constant of a module, replaced. `run`
makes the runs that are missing in results/ablation.csv, and appends the best value of each run
after several numbers of evaluations (marks). Run s of a problem is on instance 5 + s % 5; constants
were set on instances 0 to 4. Known points are answered from the archive and not counted, except
with noise. With noise, the recorded value is the value without noise at the point of the best
measurement. `table` prints, for each variant and mark, the sum of z over problems divided by the
root of their number (negative: worse than the default), and the median difference in standard
deviations of a run. `compare` prints both for each problem.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import math
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from common import RESULTS, machine
from generated import FUNCTIONS, Drawn, transformed
from lists import PROBLEMS as LISTS
from small_budgets import PROBLEMS as SMALL
from small_budgets import problem as small

import anyorder as ao
from anyorder.archive import Archive
from anyorder.strategies.base import Answer
from anyorder.strategies.create import create

PATH = RESULTS / "ablation.csv"
FIELDS = ("problem", "seed", "variant", "evaluations", "best", "own_us")
MARKS = (25, 50, 100, 200, 300, 1_000, 3_000, 10_000)
# The sizes of batches, and the share of the evaluations after which single points are compared.
BATCHES = {8: 0.85, 32: 0.6}
ALSO = tuple(int(part * mark) for part in BATCHES.values() for mark in MARKS if mark >= 100)
SIZES = (64, 128, 256)
WHOLE = "auto"
# Groups on which most variants are measured, and those of small budgets.
SCALAR, SMALL_GROUPS = ("some", "everyday"), ("small", "conditional")
BEFORE = "auto, before the portfolio"  # commit 379897d


# --- problems -------------------------------------------------------------------------------------


def pipeline(rng: np.random.Generator) -> Drawn:
    """Draw a choice among four models, each with settings of its own, and a setting of all.

    Two models can be the best one; one of them is good only with the right settings.
    """
    sizes = {"a": (61, 31, 3), "b": (61, 11), "c": (50, 2, 3), "d": (20, 50, 51)}
    variables: dict[str, Any] = {
        "scale": ao.Categorical(range(3)), "model": ao.Categorical(list(sizes))
    }  # fmt: skip
    for model, levels in sizes.items():
        for k, count in enumerate(levels):
            kind = ao.Integer(0, count - 1) if count > 3 else ao.Categorical(range(count))
            variables[f"{model}{k}"] = _when(kind, model)
    space = ao.Space(variables)
    height = dict(zip(sizes, rng.permutation([1.0, 0.93, 0.8, 0.7]), strict=True))
    width = dict(zip(sizes, rng.uniform(0.1, 0.6, 4), strict=True))
    goals = {m: [int(rng.integers(c)) for c in levels] for m, levels in sizes.items()}
    scales = {m: rng.uniform(0, 0.1, 3) for m in sizes}

    def f(codes: Any) -> float:
        point = space.one(codes)
        model = str(point["model"])
        away = [
            (float(point[f"{model}{k}"] != goal) if count <= 3
             else (point[f"{model}{k}"] - goal) / count)
            for k, (goal, count) in enumerate(zip(goals[model], sizes[model], strict=True))
        ]  # fmt: skip
        near = np.exp(-float(np.sum(np.square(away))) / width[model] ** 2)
        return float(height[model] * (0.5 + 0.5 * near) - scales[model][point["scale"]])

    return space, f


def _when(kind: Any, model: str) -> Any:
    if isinstance(kind, ao.Integer):
        return ao.Integer(kind.low, kind.high, when={"model": model})
    return ao.Categorical(kind.values, when={"model": model})


def branches(rng: np.random.Generator) -> Drawn:
    """Draw switches that make groups of bits present, with pairs of bits that interact."""
    variables: dict[str, Any] = {f"s{k}": ao.Binary() for k in range(6)}
    for k in range(6):
        for j in range(8):
            variables[f"x{k}{j}"] = ao.Binary(when={f"s{k}": [True, 1]})
    space = ao.Space(variables)
    pairs, price = rng.normal(0, 1, (6, 8, 8)), rng.uniform(4, 12, 6)

    def f(codes: Any) -> float:
        total = 0.0
        for k in range(6):
            if codes[k]:
                spins = 2.0 * codes[6 + 8 * k : 14 + 8 * k] - 1.0
                total += float(spins @ pairs[k] @ spins) - price[k]
        return total

    return space, f


def chosen_and_bits(rng: np.random.Generator) -> Drawn:
    """Draw a subset of items beside 60 interacting bits, some of which interact with items."""
    variables: dict[str, Any] = {"items": ao.Subset(range(20), size=5)}
    variables |= {f"x{k}": ao.Binary() for k in range(60)}
    space = ao.Space(variables)
    pairs = np.triu(rng.normal(0, 1, (60, 60)) * (rng.random((60, 60)) < 0.1), 1)
    worth, joint = rng.normal(0, 2, 20), rng.normal(0, 1, (20, 60)) * (rng.random((20, 60)) < 0.05)

    def f(codes: Any) -> float:
        items, spins = np.flatnonzero(codes[:20]), 2.0 * codes[20:] - 1.0
        return float(spins @ pairs @ spins + worth[items].sum() + (joint[items] @ spins).sum())

    return space, f


def plateaus(rng: np.random.Generator, n: int = 60) -> Drawn:
    """Draw a function that counts the right values before the first wrong one, in random order."""
    order, goal = rng.permutation(n), rng.integers(0, 2, n)

    def f(x: Any) -> float:
        return float(np.argmin(np.append(x[order] == goal[order], False)))

    return ao.Space.binary(n), f


OWN: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "pipeline": pipeline, "branches": branches, "chosen and bits": chosen_and_bits,
    "plateaus": plateaus,
}  # fmt: skip
# By group: the evaluations of a run, and the problems.
GROUPS: dict[str, tuple[int, list[str]]] = {
    "rows": (
        10_000,
        [f"qubo:n={n},type={t}" for n in SIZES for t in range(6)]
        + [f"{f}:n={n},k={k}" for f in ("nk", "nkd") for n in SIZES for k in (1, 2, 4, 8)],
    ),
    "everyday": (3_000, [f"function:{name}" for name in FUNCTIONS]),
    "variants": (
        10_000,
        ["nk:n=64,k=4|exp", "qubo:n=128,type=0|power", "qubo:n=64,type=0|exp", "nk:n=64,k=2|power",
         "maxsat:n=100,ratio=4.3", "trap:blocks=12,k=5", "own:plateaus"]
        + [f"pbo:function={k},n=64" for k in (5, 6, 10, 14, 17, 23)],
    ),
    "noise": (
        3_000,
        ["nk:n=64,k=4|noise1", "nk:n=64,k=4|noise10", "qubo:n=64,type=0|noise1",
         "qubo:n=64,type=0|noise10"],
    ),
    # A part of the rows and variants, with which every variant is compared.
    "some": (
        10_000,
        ["qubo:n=64,type=0", "qubo:n=64,type=3", "qubo:n=128,type=1",
         "qubo:n=128,type=2", "nk:n=64,k=1", "nk:n=64,k=4", "nk:n=64,k=8", "nk:n=128,k=2",
         "nkd:n=64,k=2", "nk:n=64,k=4|exp", "qubo:n=128,type=0|power",
         "maxsat:n=100,ratio=4.3", "trap:blocks=12,k=5", "own:plateaus", "pbo:function=23,n=64"],
    ),
    "blocks": (10_000, ["function:blocks"]),
    "small": (300, [f"small:{name}" for name in SMALL]),
    "conditional": (300, ["own:pipeline", "own:branches"]),
    "lists": (1_000, ["own:chosen and bits", *(f"list:{name}" for name in LISTS)]),
}  # fmt: skip


def problem(name: str, instance: int) -> Drawn:
    """Return the space, and the function of codes that is maximised."""
    base, _, how = name.partition("|")
    family, _, rest = base.partition(":")
    if family == "function":
        return FUNCTIONS[rest](np.random.default_rng(instance))
    if family == "small":
        return small(rest, instance)
    if family == "own":
        return OWN[rest](np.random.default_rng(instance))
    if family == "list":
        chosen = LISTS[rest](instance)
        space = chosen.space
        return space, lambda codes: -chosen.value(chosen.values(space.one(codes)))
    if family == "pbo":
        base += f",instance={instance}"
    elif "seed" in ao.problems.registry[family].parameters:
        base += f",seed={instance}"
    drawn = ao.problems.get(base)
    return transformed((drawn.space, drawn), how, instance) if how else (drawn.space, drawn)


# --- variants -------------------------------------------------------------------------------------


class Variant(NamedTuple):
    """A strategy with some attributes replaced, each given by its owner, name and new value.

    `groups` are the groups of problems on which the variant is measured.
    """

    algorithm: str = WHOLE
    changes: tuple[tuple[Any, str, Any], ...] = ()
    batch: int = 1
    groups: tuple[str, ...] = SCALAR


def variants() -> dict[str, Variant]:
    """Return the default, other strategies, and the default without each operator and rule."""
    from anyorder.strategies.auto import climb, credit, furnish, portfolio, search
    from anyorder.strategies.auto.operators import (
        branch,
        explore,
        kick,
        leap,
        mix,
        move,
        mutate,
        restart,
        sample,
        shake,
    )
    from anyorder.strategies.models import landscape, quadratic
    from anyorder.strategies.plain.one_plus_one import FastOnePlusOneEA
    from anyorder.strategies.plain.p3 import P3

    every = tuple(GROUPS)
    found = {name: Variant(name, groups=every) for name in (WHOLE, "delta", "ils", "random")}
    for operator in (
        restart.Restart, kick.Kick, kick.GentleKick, leap.Jump, leap.Leap, mutate.Mutate,
        mutate.Exchange, mix.Mix, explore.Explore,
    ):  # fmt: skip
        name = getattr(operator, "name", "explore")
        found[f"no {name}"] = Variant(changes=((operator, "prior", 0.0),))
    conditional, lists = ("conditional",), ("lists",)
    found["no branch"] = Variant(changes=((branch.Branch, "prior", 0.0),), groups=conditional)
    for kind in (move.Scan, move.Move, sample.Sample, shake.Shake, shake.ListKick):
        found[f"no {kind.name}"] = Variant(changes=((kind, "prior", 0.0),), groups=lists)
    auto, whole = search.AutoSearch, portfolio.Portfolio
    rules: dict[str, tuple[tuple[str, ...], Any, str, Any]] = {
        "no P3": (SCALAR, auto, "explorers", (FastOnePlusOneEA,)),
        "no EA": (SCALAR, auto, "explorers", (P3,)),
        "explorers get no more when idle": (
            SCALAR, explore.Explore, "weight", lambda self, idle: 0.1
        ),
        "climbs are not interrupted": (
            (*SCALAR, *conditional), whole, "_interrupt", lambda self, ticket: None
        ),
        "absent values are any": (
            conditional, furnish.Furnisher, "furnish", lambda self, point: point
        ),
        "the process does not begin": (SMALL_GROUPS, search, "SMALL_BUDGET", 0),
        "one random point first": (SCALAR, portfolio, "FIRST_POINTS", 1),
        "shares stay as at first": ((*SCALAR, *lists), credit, "PRIOR_GAIN", 1e12),
        "credit of the whole run": ((*SCALAR, *lists), credit, "MEMORY", 1e12),
        "no distrust": (SCALAR, climb, "DISTRUST", 0),
        "no second readings": (
            ("noise",), climb.Climb, "_wants_reading", lambda self, best: False
        ),
        "the scale is f": (SCALAR, landscape, "FIRST_LOOK", math.inf),
        "the global model is never trusted": (SCALAR, quadratic, "TRUSTED", 0.0),
        "effects stay in the global model": (
            SCALAR, quadratic.Quadratic, "_hand_over", lambda self, square: None
        ),
        "gentle kicks as often if trusted": (SCALAR, kick, "GENTLE_IF_TRUSTED", 1.0),
        "pairs are never forgotten": (
            SCALAR, landscape.Landscape, "tidy",
            lambda self, *, clean: clean and self.gains.tidy(),
        ),
        "no quick fits": (SCALAR, quadratic.Quadratic, "refresh", lambda self: None),
        "one tabu search": (SCALAR, quadratic, "TABU_STARTS", 1),
        "fits at one rate": (SCALAR, quadratic, "GROWTH_POOR", quadratic.GROWTH_GOOD),
        "climbs may all be free": (SCALAR, portfolio, "FREE_CLIMBS", math.inf),
    }  # fmt: skip
    for name, (groups, *change) in rules.items():
        found[name] = Variant(changes=(tuple(change),), groups=groups)
    # What is level alone may stand in for something else that is level alone.
    together = [
        "credit of the whole run", "no distrust", "pairs are never forgotten",
        "gentle kicks as often if trusted", "no jump",
    ]  # fmt: skip
    found["these five together"] = Variant(
        changes=tuple(change for name in together for change in found[name].changes),
        groups=every,
    )
    found["the last four together"] = Variant(
        changes=tuple(change for name in together[1:] for change in found[name].changes),
        groups=("blocks",),
    )
    for batch in BATCHES:
        found[f"batches of {batch}"] = Variant(batch=batch, groups=("some",))
    found["batches of 8, one change at a time"] = Variant(
        changes=((climb, "CONFIDENT", math.inf),), batch=8, groups=("some",)
    )
    return found


VARIANTS = variants()


# --- runs -----------------------------------------------------------------------------------------


def run_one(job: tuple[str, int, str, int]) -> list[tuple[Any, ...]]:
    """Make one run; return its best value at each mark, and the strategy's time per evaluation."""
    *_, variant, _ = job
    with contextlib.ExitStack() as stack:
        for change in VARIANTS[variant].changes:
            stack.enter_context(mock.patch.object(*change))
        return best_values(job)


def best_values(job: tuple[str, int, str, int]) -> list[tuple[Any, ...]]:
    """Do what `run_one` does, with the library as it is now."""
    name, seed, variant, budget = job
    space, f = problem(name, 5 + seed % 5)
    algorithm, _, batch, _ = VARIANTS[variant]
    strategy = create(algorithm, space, seed, budget=budget)
    strategy.archive = archive = Archive(space)
    truth, noisy = getattr(f, "truth", f), "noise" in name
    best, at_best, own, count, idle, rows = -np.inf, -np.inf, 0.0, 0, 0, []
    while count < budget and idle < 2_000:
        start = time.thread_time()
        proposals = strategy.propose(min(batch, budget - count))
        own += time.thread_time() - start
        if not len(proposals.codes):
            break
        answers = []
        for ticket, codes in zip(*proposals, strict=True):
            (key,) = archive.packing.pack(codes[None])
            found = None if noisy else archive.lookup(key)
            value = float(f(codes)) if found is None else found[1]
            archive.add(key, value, known=found is not None)
            idle = 0 if found is None else idle + 1
            count += found is None
            if value > best:
                best, at_best = value, value if truth is f else float(truth(codes))
            answers.append(Answer(ticket, codes, value, known=found is not None))
            if found is None and (count in MARKS or count in ALSO):
                rows.append((name, seed, variant, count, at_best))
        start = time.thread_time()
        strategy.learn(answers)
        own += time.thread_time() - start
    # A run that ended early keeps its best value, which the table then compares.
    rows += [(name, seed, variant, m, at_best) for m in (*MARKS, *ALSO) if count < m <= budget]
    return [(*row, round(1e6 * own / max(count, 1), 1)) for row in rows]


def read(path: Path = PATH) -> list[dict[str, str]]:
    """Return all rows so far."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def jobs(given: argparse.Namespace, done: Counter[tuple[str, int, str]]) -> Iterator[Any]:
    """Yield the missing runs: the first run of every problem, then the second, and so on."""
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for group in given.groups:
            budget, names = GROUPS[group]
            for name in names:
                for variant in given.variants:
                    measured = group in VARIANTS[variant].groups
                    most = min(budget, given.budget)
                    if measured and done[name, seed, variant] < most:
                        done[name, seed, variant] = most
                        yield name, seed, variant, most


def run(given: argparse.Namespace) -> None:
    """Make the missing runs, and append their rows."""
    done: Counter[tuple[str, int, str]] = Counter()  # the evaluations of each run
    for r in read(given.out):
        key = r["problem"], int(r["seed"]), r["variant"]
        done[key] = max(done[key], int(r["evaluations"]))
    facts, end, count = machine(), time.monotonic() + given.seconds, 0
    new, context = not given.out.exists(), multiprocessing.get_context("spawn")
    with (
        given.out.open("a", encoding="utf-8", newline="") as file,
        context.Pool(given.processes) as pool,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([(*FIELDS, *facts)] * new)
        for rows in pool.imap_unordered(run_one, jobs(given, done)):
            writer.writerows([*row, *facts.values()] for row in rows)
            file.flush()
            count += 1
            if time.monotonic() > end:
                print("out of time: what is missing can be run later")
                pool.terminate()
                break
    print(f"{count} runs in {given.out}")


# --- tables ---------------------------------------------------------------------------------------

# For each problem and mark: for each variant, the best value of each seed.
Cells = dict[tuple[str, int], dict[str, dict[int, float]]]


def cells(path: Path) -> Cells:
    """Return the best values by problem, mark, variant and seed."""
    found: Cells = {}
    for row in read(path):
        cell = found.setdefault((row["problem"], int(row["evaluations"])), {})
        cell.setdefault(row["variant"], {})[int(row["seed"])] = float(row["best"])
    return found


def difference(one: dict[int, float], other: dict[int, float]) -> tuple[float, float] | None:
    """Return the mean difference in standard errors (z), and in standard deviations of a run.

    Runs of the same seed are on the same instance, so they are compared in pairs. Both numbers are
    cut at 4. Return None if there are fewer than two pairs.
    """
    gaps = np.array([one[seed] - other[seed] for seed in one.keys() & other.keys()])
    if len(gaps) < 2:
        return None
    gap, spread = float(gaps.mean()), float(gaps.std(ddof=1))
    if spread <= 1e-12 * abs(gap):
        return (0.0, 0.0) if gap == 0.0 else (4.0 * np.sign(gap), 4.0 * np.sign(gap))
    cut = np.clip([gap / spread * len(gaps) ** 0.5, gap / spread * 2**0.5], -4, 4)
    return float(cut[0]), float(cut[1])


def outcomes(of: Cells, variant: str, whole: str, names: list[str], mark: int) -> list[Any]:
    """Return problem, z and difference in deviations, for problems with two runs of both."""
    found = []
    for name in names:
        cell = of.get((name, mark), {})
        gap = difference(cell.get(variant, {}), cell.get(whole, {}))
        if gap is not None:
            found.append((name, *gap))
    return found


def summary(found: list[Any]) -> str:
    """Return the sum of z over the root of the number of problems, and the median difference."""
    if not found:
        return ""
    z, d = np.array([row[1:] for row in found]).T
    return f"{z.sum() / len(z) ** 0.5:+.1f}, {np.median(d):+.2f}"


def table(given: argparse.Namespace) -> None:
    """Print a comparison of each variant with the default, by mark, over all problems of groups."""
    of = cells(given.out)
    names = list(dict.fromkeys(name for group in given.groups for name in GROUPS[group][1]))
    shown = {v for cell in of.values() for v in cell}
    print("| variant |", " | ".join(f"{mark:,}" for mark in MARKS), "|")
    print("|", " --- |" * (len(MARKS) + 1))
    for variant in [v for v in VARIANTS if v in shown and v != given.of]:
        entries = [summary(outcomes(of, variant, given.of, names, mark)) for mark in MARKS]
        print(f"| {variant} |", " | ".join(entries), "|")


def compare(given: argparse.Namespace) -> None:
    """Print a comparison of two variants by problem: difference in deviations, and z."""
    of = cells(given.out)
    for group in given.groups:
        names = GROUPS[group][1]
        print(f"\n{group}: {given.of} less {given.beside}")
        for name in [*names, ""]:
            entries = []
            for mark in MARKS:
                found = outcomes(of, given.of, given.beside, [name] if name else names, mark)
                entries.append(
                    summary(found) if not name
                    else f"{found[0][2]:+.2f} ({found[0][1]:+.1f})" if found else ""
                )  # fmt: skip
            print(f"{name or 'all':32s}", "".join(f"{entry:>15s}" for entry in entries))


def batches(given: argparse.Namespace) -> None:
    """Print a comparison of N evaluations in batches with a share of N single ones."""
    of = cells(given.out)
    names = list(dict.fromkeys(name for group in given.groups for name in GROUPS[group][1]))
    for batch, part in BATCHES.items():
        for mark in (m for m in MARKS if int(part * m) in ALSO):
            gaps = {}
            for name in names:
                many = of.get((name, mark), {}).get(f"batches of {batch}", {})
                alone = of.get((name, int(part * mark)), {}).get(given.of, {})
                if (gap := difference(many, alone)) is not None:
                    gaps[name] = gap
            if gaps:
                behind = [f"{name} {z:+.1f}" for name, (z, _) in gaps.items() if z < -2]
                found = summary([(name, *gap) for name, gap in gaps.items()])
                print(f"{batch}: {mark:,} beside {int(part * mark):,} alone: {found}; {behind}")


def main() -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(variable, "1")  # one thread a process
    parser = argparse.ArgumentParser(description="What each rule of the default is worth.")
    parser.add_argument("action", choices=("run", "table", "compare", "batches"))
    parser.add_argument("--out", type=Path, default=PATH)
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--groups", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--seeds", type=int, default=10, help="runs of each problem")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--budget", type=int, default=10_000)
    parser.add_argument("--of", default=WHOLE)
    parser.add_argument("--with", dest="beside", default=BEFORE)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    given = parser.parse_args()
    actions = {"run": run, "table": table, "compare": compare, "batches": batches}
    actions[given.action](given)


if __name__ == "__main__":
    main()
