"""The tables of docs/results.md about the default, from the runs in results/.

`python benchmarks/default_tables.py` writes them into the page.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import textwrap
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import default
import lists
import numpy as np
import small_budgets
from common import RESULTS

MARKS = (1_000, 10_000)
WIDTH = 128  # of a line of text
NAMES = {
    "text": "policy, `paper`", "authors": "policy, `paper-code`", "PBIL": "`pbil`",
    "(1+1) EA": "`one-plus-one`", "hill climbing": "`hill-climber`",
    default.EARLIER: default.EARLIER,
}  # fmt: skip
Cells = dict[tuple[str, int], dict[str, dict[int, list[float]]]]


def table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("| " + " | ".join(["---"] * (lines[0].count("|") - 1)) + " |")
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


# --- the 42 rows ----------------------------------------------------------------------------------


def cells_of_rows(half: str = "all") -> Cells:
    """Best values by row and mark, algorithm and instance; only where the default was run."""
    found: Cells = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for name, instance, algorithm, mark, best in default.runs_on_rows():
        if mark in MARKS and instance in default.HALVES[half]:
            found[name, mark][algorithm][instance].append(best)
    return {key: cell for key, cell in found.items() if "auto" in cell}


def outcome(cell: dict[str, dict[int, list[float]]], rival: str) -> int:
    """Whether the default is significantly above (1) or below (-1), by instance."""
    shared = cell["auto"].keys() & cell[rival].keys()
    return default.compared(cell["auto"], cell[rival], True) if len(shared) > 1 else 0


def wins() -> str:
    """On how many rows the default is above and below each other, and by how much in the median."""
    of = cells_of_rows()
    rivals = sorted({name for cell in of.values() for name in cell} - {"auto", default.EARLIER})
    rows = []
    for rival in [*rivals, default.EARLIER]:
        texts: list[Any] = []
        for mark in MARKS:
            cells = [cell for (_, at), cell in of.items() if at == mark and rival in cell]
            signs = [outcome(cell, rival) for cell in cells]
            middle = float(np.median([gap(cell, rival) for cell in cells])) if cells else 0.0
            texts += [signs.count(1), signs.count(-1), f"{middle:+.2f} %"]
        rows.append([NAMES.get(rival, f"`{rival}`"), *texts])
    header = ["", "1,000: above", "below", "difference", "10,000: above", "below", "difference"]
    return table(header, rows)


def gap(cell: dict[str, dict[int, list[float]]], rival: str) -> float:
    """How far the default is above, in per cent of the rival's mean, over shared instances."""
    shared = cell["auto"].keys() & cell[rival].keys()
    ours, theirs = (
        float(np.mean([np.mean(cell[name][k]) for k in shared])) for name in ("auto", rival)
    )
    return 100 * (ours - theirs) / abs(theirs)


def halves() -> str:
    """Rows on which the default is above all others at once, and below one of them."""
    rows = []
    for half, text in {
        "all": "all instances", "tuned": "0 to 4, with which constants were set",
        "kept": "5 to 9, which were not used",
    }.items():  # fmt: skip
        of, ours = cells_of_rows(half), ("auto", default.EARLIER)
        texts: list[int] = []
        for mark in MARKS:
            worst = [
                min(outcome(cell, rival) for rival in cell if rival not in ours)
                for (_, at), cell in of.items() if at == mark
            ]  # fmt: skip
            texts += [worst.count(1), worst.count(-1)]
        runs = [sum(map(len, cell["auto"].values())) for cell in of.values()]
        rows.append([text, default.span(runs) if runs else 0, *texts])
    header = ["instances", "runs of each row", "1,000: above all", "below one",
              "10,000: above all", "below one"]  # fmt: skip
    return table(header, rows)


def before() -> str:
    """The default beside its previous version, over all rows together."""
    of: Cells = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for row in default.read():
        if row["problem"] in default.SUITES["rows"]:
            cell = of[row["problem"], int(row["evaluations"])]
            cell[row["strategy"]][int(row["instance"])].append(float(row["best"]))
    rows = []
    for mark in (200, *MARKS):
        cells = [cell for (_, at), cell in of.items() if at == mark and "auto" in cell]
        gaps, errors, shares = [], [], []
        for cell in cells:
            old = cell[default.EARLIER]
            deviation = float(np.mean([np.var(values, ddof=1) for values in old.values()])) ** 0.5
            differences = [
                value - float(np.mean(old[k])) for k, values in cell["auto"].items()
                for value in values
            ]  # fmt: skip
            if deviation > 0:
                gaps.append(float(np.mean(differences)) / deviation)
                errors.append(1 / len(differences) + 1 / sum(map(len, old.values())))
            shares.append(gap(cell, default.EARLIER))
        if gaps:
            error = sum(errors) ** 0.5 / len(gaps)
            rows.append([
                f"{mark:,}", len(cells), f"{np.mean(gaps):+.2f} ± {error:.2f}",
                f"{np.mean(shares):+.2f} %",
            ])  # fmt: skip
    return table(
        ["evaluations", "rows", "mean difference in deviations of a run", "in per cent"], rows
    )


# --- everyday functions, variants, PBO ------------------------------------------------------------


def behind(suite: str, mark: int, least: float) -> tuple[int, int, list[list[Any]]]:
    """How many problems were run, on how many the default is best, and where it is behind.

    On the instances that it was run on.
    """
    values: dict[str, dict[str, dict[int, list[float]]]] = defaultdict(lambda: defaultdict(dict))
    for row in default.read():
        if row["problem"] in default.SUITES[suite] and int(row["evaluations"]) == mark:
            cell = values[row["problem"]][row["strategy"]]
            cell.setdefault(int(row["instance"]), []).append(float(row["best"]))
    rows, best = [], 0
    names = [name for name in default.SUITES[suite] if "auto" in values[name]]
    for name in names:
        cell = values[name]
        means = {
            rival: float(np.mean([np.mean(found[k]) for k in cell["auto"]]))
            for rival, found in cell.items() if cell["auto"].keys() <= found.keys()
        }  # fmt: skip
        own = means.pop("auto")
        before = means.pop(default.EARLIER, None)
        first = max(means, key=lambda rival: means[rival])
        best += own >= means[first]
        loss = 100 * (means[first] - own) / max(abs(means[first]), 1e-300)
        if loss >= least:
            runs = sum(map(len, cell["auto"].values()))
            rows.append([
                name.replace("|", ", "), runs, f"{own:.5g}", f"{means[first]:.5g} (`{first}`)",
                f"{loss:.1f} %", "" if before is None else f"{before:.5g}",
            ])  # fmt: skip
    return len(names), best, rows


def losses() -> str:
    """Where the default is behind the best of the others by 1 % or more, after 10,000."""
    parts = []
    for suite, text in {
        "functions": "everyday functions", "variants": "MaxSAT, MaxCut, transforms and noise",
        "pbo": "problems of IOHprofiler with 64 bits",
    }.items():  # fmt: skip
        for mark in MARKS:
            count, best, rows = behind(suite, mark, 1.0)
            if not count:
                continue
            parts.append(f"{count} {text}, {mark:,} evaluations: best or level on {best}.")
            if rows:
                header = [
                    "behind by 1 % or more",
                    "runs",
                    "`auto`",
                    "best of the others",
                    "loss",
                    "before",
                ]
                parts.append("\n" + table(header, rows) + "\n")
    return "\n".join(parts).strip()


# --- small budgets --------------------------------------------------------------------------------


def small() -> str:
    """Differences to the version before the portfolio, in deviations of a run."""
    found: small_budgets.Cells = {}
    spent: dict[str, list[float]] = defaultdict(list)
    for row in small_budgets.read():
        if int(row["budget"]) == 300 and int(row["instance"]) >= small_budgets.TUNED:
            of = found.setdefault((row["problem"], int(row["evaluations"])), {})
            of.setdefault(row["algorithm"], {}).setdefault(int(row["instance"]), []).append(
                float(row["best"])
            )
            spent[row["algorithm"]].append(float(row["own_ms"]))
    marks = [25, 50, 100, 200, 300]
    rows = []
    for algorithm in [name for name in spent if name != lists.EARLIER]:
        texts = []
        for mark in marks:
            both = [
                (of[lists.EARLIER], of[algorithm]) for (_, at), of in found.items()
                if at == mark and algorithm in of and lists.EARLIER in of
            ]  # fmt: skip
            pairs = [small_budgets.ahead(*two) for two in both if two[0].keys() & two[1].keys()]
            better = sum(p < 0.05 and d > 0 for d, p in pairs)
            worse = sum(p < 0.05 and d < 0 for d, p in pairs)
            texts.append(
                f"{np.mean([d for d, _ in pairs]):+.2f} ({better}:{worse})" if pairs else ""
            )
        rows.append([f"`{algorithm}`", len(spent[algorithm]) // len(marks), *texts,
                     f"{np.mean(spent[algorithm]):.1f}"])  # fmt: skip
    return table(["", "runs", *map(str, marks), "ms"], rows)


def choice() -> str:
    """The choice of a regressor: mean R squared, and the evaluations of the model tried most."""
    values: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    shares: dict[str, list[float]] = defaultdict(list)
    with (RESULTS / "model_choice.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            values[row["algorithm"]][int(row["evaluations"])].append(float(row["best"]))
            if row["evaluations"] == "200":
                counts = [int(row[name]) for name in ("svr", "net", "knn", "tree")]
                shares[row["algorithm"]].append(max(counts) / sum(counts))
    marks = (25, 50, 100, 200)
    rows = []
    for name, of in values.items():
        means = [f"{np.mean(of[mark]):.4f}" for mark in marks]
        share = f"{100 * max(shares[name]):.0f} %"
        rows.append([f"`{name}`", len(of[200]), *means, f"{min(of[200]):.4f}", share])
    return table(
        ["", "runs", *map(str, marks), "least after 200", "most evaluations of one model"], rows
    )


def lists_table() -> str:
    """What benchmarks/lists.py prints, and who is significantly ahead of the default or behind."""
    from scipy.stats import ttest_1samp

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        lists.table(argparse.Namespace(to=lists.PATH))
    of: dict[tuple[str, int], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in lists.read(lists.PATH):
        cell = of[row["problem"], int(row["evaluations"])]
        cell[row["algorithm"]][int(row["instance"])] = float(row["best"])
    found: dict[bool, list[str]] = {True: [], False: []}
    for (name, mark), cell in of.items():
        for rival in cell if "auto" in cell else ():
            shared = sorted(cell["auto"].keys() & cell[rival].keys())
            gaps = [cell[rival][k] - cell["auto"][k] for k in shared]  # all minimise
            if np.ptp(gaps) > 0 and ttest_1samp(gaps, 0.0).pvalue < 0.05:
                found[bool(np.mean(gaps) < 0)].append(f"{rival} on {name} at {mark:,}")
    lines = [printed.getvalue().strip(), ""]
    for ahead, text in ((True, "ahead of"), (False, "behind")):
        who = "; ".join(found[ahead]) or "none"
        said = f"Significantly {text} `auto` (t-test of the differences, p < .05): {who}."
        lines.append(textwrap.fill(said, WIDTH, break_on_hyphens=False) + "\n")
    return "\n".join(lines).strip()
