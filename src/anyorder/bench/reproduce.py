"""The tables and figures of the paper as campaigns, with the printed values for comparison.

`paper/*.csv` are the paper's tables as printed, including misprints: problem, n, k, method, rank,
score. The figures have no printed numbers to compare with.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np

from anyorder import problems
from anyorder._internal.checks import did_you_mean, unknown
from anyorder.bench import curves
from anyorder.bench.campaign import Campaign, Distribution, distribution
from anyorder.bench.distances import measure
from anyorder.bench.figures import convergence, distance, style
from anyorder.bench.items import ALPHA, ITEMS, RIVAL, RIVAL_SOON, ROWS, Item
from anyorder.bench.results import Cell, Floats, Ints, Results

__all__ = [
    "HEAD", "ITEMS", "RIVAL", "ROWS", "Item", "beside", "campaign", "errors", "figures", "find",
    "method", "printed", "warnings",
]  # fmt: skip

_PAPER_INSTANCES, _PAPER_RUNS = 10, 10  # of a distribution, and on each instance


def campaign(
    name: str,
    rows: tuple[str, ...] | None = None,
    instances: int = 10,
    runs: int = 10,
    methods: tuple[str, ...] | None = None,
) -> Campaign:
    """Return the runs behind an item, as a campaign.

    `rows` are names of distributions, or first words that select all names which begin with them
    ("QUBO", "NK 64"); None selects all. `methods` are labels, including those of `rivals`; None
    selects all methods but the rivals.
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


def method(item: str, label: str, row: str) -> str:
    """Return the algorithm that a label of an item stands for in one of its rows."""
    found = find(item)
    return _method(found, {**found.methods, **found.rivals}[label], row)


def _method(item: Item, method: str, row: str) -> str:
    soon = method == RIVAL_SOON
    if not soon and method != RIVAL:
        return method.replace(ALPHA, "0.001" if row.startswith("QUBO") else "10")
    table = item.printed[0] if item.printed else "global_1000" if soon else "global_10000"
    (best,) = (line["best_other_name"] for line in _lines(table)
               if _row(line) == row and line["method"] == "best_other")  # fmt: skip
    return f"nevergrad:{best}"


def find(name: str) -> Item:
    """Return the item of that name; raise a ValueError if there is none."""
    if name not in ITEMS:
        raise unknown("item", name, ITEMS)
    return ITEMS[name]


def _distribution(row: str, instances: int, runs: int, budget: int) -> Distribution:
    problem = ROWS[row]
    if problem == "nasbench":  # there is only one instance
        instances, runs = 1, instances * runs
    return distribution(problem, row, instances, runs, budget)


def printed(table: str) -> dict[tuple[str, str], float]:
    """Return the printed scores by row and method."""
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
    """Draw an item into a folder: its curves, and its distances if the paper draws them.

    Distances require that every run is repeated, so they are stored beside the figure, as curves.
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
    """Return measured beside printed scores: a row for each cell, with the columns of `HEAD`.

    They are the mean score and its standard error, the printed score, and the difference in
    standard errors, assuming that the paper's 100 runs on 10 instances vary as the measured runs
    do: see `errors`. Unknown values are empty.
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


_FEW = 5  # with fewer instances or runs a standard error is a guess


def warnings(name: str, results: Results) -> list[str]:
    """Return sentences that a reader of the numbers of `beside` must know."""
    found = []
    few = [len(np.unique(cell.instances)) for cell in results.cells.values()]
    runs = [len(cell.seeds) for cell in results.cells.values()]
    if few and min(few) < _FEW and find(name).printed:
        found.append(
            f"Warning: some cells have {min(few)} of the paper's 10 instances and {min(runs)} of "
            "its 100 runs, so differences in standard errors say little."
        )
    if "BOA" in results.algorithms:
        found.append(
            "Note: the code behind the paper's BOA reads tables with the parents in reverse; "
            '--methods "BOA, as published" does the same, BOA does not.'
        )
    return found


def errors(scores: Floats, instances: Ints, same: bool) -> tuple[float, float]:
    """Return the standard errors of a mean and of its difference to the paper's, or NaN.

    If the instances are the `same` as the paper's, and all of them, only the variation within an
    instance counts, provided that there are several runs on each. Otherwise an instance is one
    sample, however many runs it has; from a single instance the variation between them cannot be
    estimated.
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
