"""The tables and figures of the paper as campaigns, with the printed values for comparison.

`paper/*.csv` are the paper's tables as printed, including misprints: problem, n, k, method, rank,
score. The figures have no printed numbers to compare with.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

import numpy as np

from anyorder import problems
from anyorder._checks import did_you_mean, unknown
from anyorder.bench import curves
from anyorder.bench.campaign import Campaign, Distribution, distribution
from anyorder.bench.distances import measure
from anyorder.bench.figures import convergence, distance, style
from anyorder.bench.results import Cell, Floats, Ints, Results

_FAMILIES = {
    "QUBO": ("qubo:n={n},type={k}", (0, 1, 2, 3, 4, 5)),
    "NK": ("nk:n={n},k={k}", (1, 2, 4, 8)),
    "NK3": ("nkd:n={n},k={k},d=3", (1, 2, 4, 8)),
}
# The 42 distributions of the paper's tables by the name of their row, and those of its figures.
ROWS = {
    f"{family} {n} {k}": problem.format(n=n, k=k)
    for n in (64, 128, 256)
    for family, (problem, ks) in _FAMILIES.items()
    for k in ks
} | {"NK 1024 8": "nk:n=1024,k=8", "NAS-Bench-101": "nasbench"}

RIVAL = "nevergrad:the best other"

_QUBO, _NK = "QUBO 128 5", "NK 128 4"
_PAPER_INSTANCES, _PAPER_RUNS = 10, 10  # of a distribution, and on each
_ORDERS = {
    "(d,d)": "generation_order=fixed+training_order=fixed",
    "(d,s)": "generation_order=fixed+training_order=random",
    "(s,d)": "generation_order=random+training_order=generation",
    "(s,s)": "",
}


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper.

    Attributes
    ----------
    title
        One line about it.
    rows
        Its distributions, names of `ROWS`.
    methods
        Labels and algorithms to run.
    rivals
        Labels and algorithms that are run on request. `RIVAL` is the best other algorithm of a row
        according to the paper.
    budget, mark
        Evaluations of a run, and the number of evaluations that the table shows.
    printed
        The paper's table, and the method in it that corresponds to each label.
    distances
        Whether the distance of the population to the incumbent is drawn, too.
    """

    title: str
    rows: tuple[str, ...] = ()
    methods: Mapping[str, str] = field(default_factory=dict)
    rivals: Mapping[str, str] = field(default_factory=dict)
    budget: int = 10_000
    mark: int = 10_000
    printed: tuple[str, Mapping[str, str]] | None = None
    distances: bool = False


def _ours(**variants: str) -> dict[str, str]:
    """Variants of the published code, which the paper's numbers come from."""
    return {label: "anyorder:authors" + (f"+{text}" if text else "") for label, text in
            variants.items()}  # fmt: skip


_TABLE_ROWS = tuple(name for name in ROWS if name not in ("NK 1024 8", "NAS-Bench-101"))
_READINGS = {"authors": "anyorder:authors", "text": "anyorder:text"}
_RIVALS = {
    "PBIL": "baseline:pbil",
    "MIMIC": "baseline:mimic",
    "BOA": "baseline:boa",
    "(1+1) EA": "baseline:one-plus-one",
    "hill climbing": "baseline:hill-climber",
}
# How the published code reads, and one step from there to `authors`: docs/reproduction.md.
_OTHER_READINGS = {
    "published code": "anyorder:authors+kl=bernoulli+unchosen_input=-1+loss_runs=100",
    "loss of 100 runs": "anyorder:authors+loss_runs=100",
}
_PRINTED = {
    **dict.fromkeys([*_READINGS, *_OTHER_READINGS], "sigma_sigma"),
    **{name: name for name in ("PBIL", "MIMIC", "BOA")},
}
# not the same algorithms: what is best after 1,000 evaluations is so seldom after 10,000
_BEST, _BEST_SOON = "best other", "best other at 1000"
_DROPS = (0.0, 0.25, 0.5, 0.75)
# The weight of a critic's advantages, which the paper has tuned: 0.001 for QUBO, else 10.
_ALPHA = "ALPHA"
# Two layers of 100 as in the text, of which the second is frozen as in the published code for
# separate networks: with both trained, NK 256 8 has not begun to learn after 10,000 evaluations.
# Chosen among several by its results, see docs/reproduction.md.
_SHARED = "anyorder:authors+network=shared+hidden=(100,100)"

ITEMS: dict[str, Item] = {
    "table-10000": Item(
        "scores after 10,000 evaluations, all distributions", _TABLE_ROWS, _READINGS,
        {**_RIVALS, **_OTHER_READINGS, _BEST: RIVAL},
        printed=("global_10000", {**_PRINTED, _BEST: "best_other"}),
    ),
    "table-1000": Item(
        "scores after 1,000 evaluations, all distributions", _TABLE_ROWS, _READINGS,
        {**_RIVALS, **_OTHER_READINGS, _BEST_SOON: RIVAL}, mark=1_000,
        printed=("global_1000", {**_PRINTED, _BEST_SOON: "best_other"}),
    ),
    "table-fast": Item(
        "the curriculum for small budgets, scores after 1,000 evaluations", _TABLE_ROWS,
        {"fast": "anyorder:authors+population=5+epochs=100+drop_generation=1.0+drop_training=1.0"
                 "+drop_decay=0.999"},
        budget=1_000, mark=1_000, printed=("fast_1000", {"fast": "fast_sigma_sigma"}),
    ),
    "table-critic": Item(
        "with a critic", _TABLE_ROWS, {"critic": f"anyorder:authors+critic={_ALPHA}"},
        {"ranks": "anyorder:authors", "critic, text": f"anyorder:text+critic={_ALPHA}"},
        printed=("critic", {**dict.fromkeys(["critic", "critic, text"], "sigma_sigma_critic"),
                            "ranks": "sigma_sigma"}),
    ),
    "table-shared": Item(
        "shared parameters", _TABLE_ROWS, {"shared": _SHARED},
        {"separate": "anyorder:authors", "shared, text": "anyorder:text+network=shared"},
        printed=("share_params", {**dict.fromkeys(["shared", "shared, text"],
                                                  "sigma_sigma_share_params"),
                                  "separate": "sigma_sigma"}),
    ),
    "figure-orders": Item(
        "fixed, random and learned orders: scores and distances", ("NK 256 4",),
        {label: "anyorder:authors" + (f"+{text}" if text else "")
         for label, text in _ORDERS.items()},
        # on request: at n = 256 a generation takes a CPU 14 s
        {"learned": "anyorder:authors+generation_order=learned+training_order=learned"},
        distances=True,
    ),
    "figure-lambda": Item(
        "population size", (_QUBO, _NK),
        _ours(**{f"lambda {k}": f"population={k}" for k in (5, 10, 20, 50, 100)}),
    ),
    "figure-beta": Item(
        "KL penalty", (_QUBO, "NK 256 4"),
        _ours(**{f"beta {b:g}": f"beta={b}" for b in (0.0, 0.1, 1.0, 5.0, 10.0, 100.0)}),
    ),
    "figure-epochs": Item(
        "training epochs", (_QUBO, _NK),
        _ours(**{f"E {e}": f"epochs={e}" for e in (1, 5, 10, 20, 50, 100)}),
    ),
    "figure-mechanism": Item(
        "networks", (_QUBO, "NK3 128 8"),
        {
            "univariate": "anyorder:text+network=univariate",
            "linear": "anyorder:text+hidden=()",
            "1 hidden layer": "anyorder:text",
            "2 hidden layers": "anyorder:text+hidden=(20,20)",
            "4 hidden layers": "anyorder:text+hidden=(20,20,20,20)",
        },
    ),
    "figure-dropout": Item(
        "structural dropout, for each kind of order", ("NK 256 4", "QUBO 256 5"),
        {
            f"{label} pG {g:g} pT {t:g}": "+".join(
                part for part in ("anyorder:authors", text, f"drop_generation={g}",
                                  f"drop_training={t}") if part
            )
            for label, text in {
                **_ORDERS,
                "(d,p)": "generation_order=fixed+training_order=none",
                "(s,p)": "generation_order=random+training_order=none",
            }.items()
            for g in _DROPS
            for t in _DROPS
        },
    ),
    "figure-graph": Item(
        "a known interaction graph", (_QUBO, "NK 256 4"),
        {"graph unknown": "anyorder:authors", "graph known": "anyorder:authors+graph=known"},
    ),
    "figure-rho": Item(
        "curricula", (_QUBO, _NK),
        _ours(**{
            f"rho {rho:g}": f"drop_generation=1.0+drop_training=1.0+drop_decay={rho}"
            for rho in (0.9, 0.98, 0.99, 0.993, 0.995, 0.999)
        }, none=""),
    ),
    "figure-gibbs": Item(
        "Gibbs sampling", (_QUBO, _NK),
        _ours(**{
            f"G {g}": f"generation_order=gibbs+training_order=none+gibbs_sweeps={g}"
            for g in (1, 2, 5, 10, 20)
        }, **{"(s,s)": ""}),
    ),
    "figure-large": Item(
        "1,024 variables: shared parameters and separate networks", ("NK 1024 8",),
        {"shared": _SHARED, "separate": "anyorder:authors"},
        {**_RIVALS, "shared, default": "anyorder:+network=shared"},
    ),
    "nasbench": Item("NAS-Bench-101", ("NAS-Bench-101",), _READINGS, _RIVALS),
}  # fmt: skip


def campaign(
    name: str,
    rows: tuple[str, ...] | None = None,
    instances: int = 10,
    runs: int = 10,
    methods: tuple[str, ...] | None = None,
) -> Campaign:
    """The runs behind an item.

    `rows` are names of its distributions, or first words that select all names that begin with
    them ("QUBO", "NK 64"); None selects all. `methods` are labels, including those of `rivals`;
    None selects all others.
    """
    item = find(name)
    known = {**item.methods, **item.rivals}
    begun = {one: [row for row in item.rows if f"{row} ".startswith(f"{one} ")]
             for one in rows or item.rows}  # fmt: skip
    wrong = {one: item.rows for one, found in begun.items() if not found}
    wrong |= {one: tuple(known) for one in methods or () if one not in known}
    for what, asked, there in (("rows", rows, item.rows), ("methods", methods, known)):
        if asked is not None and not asked:
            raise ValueError(f"no {what} of {name} are chosen, expected some of {', '.join(there)}")
    if wrong:
        one, there = next(iter(wrong.items()))
        hint = did_you_mean(one, there)
        raise ValueError(f"{one!r} is not in {name}{hint}, expected one of {', '.join(there)}")
    specs = [
        spec
        for row in dict.fromkeys(row for found in begun.values() for row in found)
        for label in methods or item.methods
        for spec in _distribution(row, instances, runs, item.budget).specs(
            label, _method(item, known[label], row)
        )
    ]
    return Campaign(name, tuple(specs), None, None)


def _method(item: Item, method: str, row: str) -> str:
    if method != RIVAL or item.printed is None:
        return method.replace(_ALPHA, "0.001" if row.startswith("QUBO") else "10")
    (best,) = (line["best_other_name"] for line in _lines(item.printed[0])
               if _row(line) == row and line["method"] == "best_other")  # fmt: skip
    return f"nevergrad:{best}"


def find(name: str) -> Item:
    """The item of that name."""
    if name not in ITEMS:
        raise unknown("item", name, ITEMS)
    return ITEMS[name]


def _distribution(row: str, instances: int, runs: int, budget: int) -> Distribution:
    problem = ROWS[row]
    if problem == "nasbench":  # there is only one instance
        instances, runs = 1, instances * runs
    return distribution(problem, row, instances, runs, budget)


def printed(table: str) -> dict[tuple[str, str], float]:
    """The printed score of each row and method."""
    return {
        (_row(line), line["method"]): float(line["score"])
        for line in _lines(table)
        if line["score"]
    }


def _lines(table: str) -> list[dict[str, str]]:
    file = resources.files(__package__) / "paper" / f"{table}.csv"
    return list(csv.DictReader(file.read_text("utf-8").splitlines()))


def _row(line: Mapping[str, str]) -> str:
    return f"{line['problem']} {line['n']} {line['k']}"


def figures(name: str, results: Results, folder: Path, engine: str = "auto") -> list[Path]:
    """Draw an item into a folder: its curves, and where the paper does, its distances.

    Distances require every run to be repeated, so they are stored beside the figure, as curves.
    """
    item = find(name)
    scores = folder / f"{name}.png"
    convergence(results, scores)
    if not item.distances:
        return [scores]
    found: dict[tuple[str, str], Cell] = {}
    row = results.distributions[0]
    methods = {**item.methods, **item.rivals}
    for label, cell in results.row(row).items():
        instances = {k: problems.get(f"{ROWS[row]},seed={k}") for k in set(cell.instances.tolist())}
        evaluations, means = measure(
            methods[label], [instances[k] for k in cell.instances.tolist()], item.budget,
            cell.seeds.tolist(), engine,
        )  # fmt: skip
        found[row, label] = replace(cell, curves=means[:, np.searchsorted(evaluations, cell.grid)])
    kept = folder / f"{name}-distances.csv.gz"
    curves.write(Results(name, results.algorithms, (row,), found), kept)
    apart = folder / f"{name}-distances.png"
    distance({label: (cell.grid, cell.curves) for (_, label), cell in found.items()}, apart,
             title=row, styles=style(results.algorithms, results.ours))  # fmt: skip
    return [scores, apart, kept]


HEAD = ("distribution", "method", "runs", "ours", "error", "paper", "difference")


def beside(name: str, results: Results) -> list[dict[str, str]]:
    """Measured and printed scores, a row for each cell, with the columns of `HEAD`.

    The mean score and its standard error, the printed score, and the difference in standard errors,
    assuming that the paper's 100 runs on 10 instances vary as those measured do: see `errors`.
    Unknown values are empty.
    """
    item = find(name)
    table, names = item.printed or ("", {})
    paper = printed(table) if table else {}
    lines = []
    for row in results.distributions:
        for label, cell in results.row(row).items():
            scores = cell.at(item.mark)
            mean = float(scores.mean())
            ours, both = errors(scores, cell.instances, row.startswith("QUBO"))
            theirs = paper.get((row, names.get(label, "")))
            apart = "" if theirs is None or not both > 0 else f"{(mean - theirs) / both:+.1f}"
            shown = (row, label, str(len(scores)), _digits(mean, mean), _digits(ours, mean),
                     "" if theirs is None else _digits(theirs, mean), apart)  # fmt: skip
            lines.append(dict(zip(HEAD, shown, strict=True)))
    return lines


def errors(scores: Floats, instances: Ints, same: bool) -> tuple[float, float]:
    """Standard errors of a mean and of its difference to the paper's, NaN where unknown.

    On the `same` instances as the paper's, all of them, only the variation within an instance
    counts, if there are several runs on each. Otherwise an instance is one sample, however many
    runs it has; the variation between instances cannot be estimated from one.
    """
    groups = [scores[instances == k] for k in np.unique(instances)]
    within = len(groups) == _PAPER_INSTANCES and same and all(len(group) > 1 for group in groups)
    if within or len(groups) == 1:
        squares = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
        freedom = len(scores) - len(groups)
        count, paper = len(scores), _PAPER_INSTANCES * _PAPER_RUNS
    else:
        means = np.array([group.mean() for group in groups])
        squares, freedom = float(((means - means.mean()) ** 2).sum()), len(means) - 1
        count, paper = len(means), _PAPER_INSTANCES
    sd = math.sqrt(squares / freedom) if freedom else math.nan
    both = math.nan if len(groups) == 1 else sd * math.sqrt(1 / count + 1 / paper)
    return sd / math.sqrt(count), both


def _digits(value: float, mean: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.4f}" if abs(mean) < 10 else f"{value:.1f}"
