"""Tables of results: a row for each distribution, a column for each algorithm.

`table` makes the table of means, `measures` those of running times, areas over the curve, or tests.
Both return tables that can be typeset (`typeset.py`): `to_text` for a terminal, `to_markdown`,
`to_latex`, and `to_csv` with every number at full precision.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from anyorder.bench import stats
from anyorder.bench.results import Floats, Results
from anyorder.bench.typeset import Printed, Text, form

SPREADS = ("none", "sd", "error", "interval")
MEASURES = ("running-time", "area", "mann-whitney")
_LISTED = 20  # the most failures that the notes list


@dataclass(frozen=True)
class Entry:
    """The values of an algorithm on a distribution; `star` marks a significant difference."""

    summary: stats.Summary
    rank: float
    of: int
    best: bool
    star: bool


@dataclass(frozen=True)
class Table(Printed):
    """A table of means, before it is typeset.

    Attributes
    ----------
    title
        A title of one line.
    columns, rows
        The labels of algorithms and of distributions.
    entries
        The entries by row and column; None where there are no runs.
    mean_ranks, wins
        For each column: the mean of its ranks, and the number of rows in which it has the highest
        mean.
    spread
        What is printed after a mean: one of `SPREADS`.
    notes
        Explanations for the reader, as sentences.
    failed
        The failed runs, as in `Results`.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    entries: tuple[tuple[Entry | None, ...], ...]
    mean_ranks: tuple[float, ...]
    wins: tuple[int, ...]
    spread: str
    notes: tuple[str, ...]
    failed: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)
    _feet: ClassVar[int] = 2

    def to_csv(self) -> str:
        """Return one line per entry with full precision, for other programs."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        fields = stats.Summary._fields
        marks = ["rank", "of", "best", "star"]
        writer.writerow(["distribution", "algorithm", *fields, *marks, "failed", "because"])
        for row, entries in zip(self.rows, self.entries, strict=True):
            for column, entry in zip(self.columns, entries, strict=True):
                reasons = self.failed.get((row, column), {})
                if entry is None and not reasons:
                    continue
                found: list[object] = [0] + [""] * (len(fields) - 1 + len(marks))
                if entry is not None:
                    found = [*entry.summary, f"{entry.rank:g}", entry.of]
                    found += [int(entry.best), int(entry.star)]
                writer.writerow([row, column, *found, sum(reasons.values()), "; ".join(reasons)])
        return out.getvalue()

    def _body(
        self, marks: Text, plain: Callable[[str], str], aligned: bool = False
    ) -> list[list[str]]:
        """Return all cells as text: the head, the rows, and two rows with a summary."""
        body = [["distribution", *map(plain, self.columns)]]
        pieces = [[_pieces(row, self.spread, e, marks) for e in row] for row in self.entries]
        if aligned:  # align means with means, and ranks with ranks
            for column in zip(*pieces, strict=True):
                parts = list(zip(*filter(None, column), strict=True))
                for k, widest in enumerate([max(map(len, part)) for part in parts]):
                    for cell in filter(None, column):
                        cell[k] = cell[k].rjust(widest)
        for label, cells in zip(self.rows, pieces, strict=True):
            body.append([plain(label), *(" ".join(cell) or "-" for cell in cells)])
        least = min((r for r in self.mean_ranks if not math.isnan(r)), default=math.nan)
        ranks = [
            "-" if math.isnan(r) else marks.best(f"{r:.2f}", r == least) for r in self.mean_ranks
        ]
        most = max(self.wins, default=0)
        wins = [marks.best(str(w), w == most > 0) for w in self.wins]
        return [*body, ["mean rank", *ranks], ["wins", *wins]]


def table(
    results: Results,
    evaluations: int | None = None,
    *,
    spread: str = "none",
    reference: str | None = None,
    level: float = 0.001,
) -> Table:
    """Return the means of all algorithms after a number of evaluations, by default at the end.

    Parameters
    ----------
    spread
        "sd", the standard "error", or the 95 % bootstrap "interval" of the mean, or "none".
    reference
        An algorithm of interest. Without one, the best algorithm of a row has a star if it is
        significantly better than the best other one. With one, the rule of the paper's tables is
        used: the reference has a star where it is significantly better than the best other
        algorithm, and any algorithm that is significantly better than the reference has a star.
    level
        The level of significance of Welch's t-test, two-sided; the paper's is 0.001. It is not
        corrected for the number of tests; `stats.versus` corrects for it.
    """
    if spread not in SPREADS:
        raise ValueError(f"spread is {spread!r}, expected one of {', '.join(SPREADS)}")
    if reference is not None and reference not in results.algorithms:
        raise ValueError(f"reference is {reference!r}, expected one of {results.algorithms}")
    if spread == "interval":
        stats.scipy_stats()  # or the error that says what to install
    ranks = stats.rank_table(results, evaluations)
    entries = []
    for d, distribution in enumerate(results.distributions):
        values = stats.final(results, distribution, evaluations)
        found = {label: stats.summary(x) for label, x in values.items()}
        stars = _stars(values, reference, level)
        top = max((s.mean for s in found.values()), default=math.nan)
        entries.append(
            tuple(
                Entry(s, float(ranks[d, a]), len(found), s.mean == top, label in stars)
                if (s := found.get(label))
                else None
                for a, label in enumerate(results.algorithms)
            )
        )
    wins = np.array([[e is not None and e.best for e in row] for row in entries], int)
    at = "at the end" if evaluations is None else f"after {evaluations} evaluations"
    return Table(
        f"{results.name}: mean best value {at}", results.algorithms, results.distributions,
        tuple(entries), tuple(stats.mean_ranks(ranks).tolist()),
        tuple(wins.sum(axis=0).tolist()) if len(entries) else (0,) * len(results.algorithms),
        spread, _notes(results, spread, reference, level), results.failed,
    )  # fmt: skip


@dataclass(frozen=True)
class Measures(Printed):
    """A table of one measure for each algorithm on each distribution; see `measures`.

    Attributes
    ----------
    title, columns, rows, notes
        The title, the labels and the notes, as in `Table`.
    name
        The name of the measure: one of `MEASURES`.
    values
        The numbers by row and column; NaN where there is none. Lower is better, except for
        p-values.
    targets
        The target of each row, for running times.
    signs
        For p-values, by row and column: "+" for better than the reference, "-" for worse, or "=".
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    name: str
    values: tuple[tuple[float, ...], ...]
    notes: tuple[str, ...]
    targets: tuple[float, ...] = ()
    signs: tuple[tuple[str, ...], ...] = ()

    def to_csv(self) -> str:
        """Return one line for each number, with all digits."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        extra = (["target"] if self.targets else []) + (["sign"] if self.signs else [])
        writer.writerow(["distribution", "algorithm", self.name, *extra])
        for d, (row, values) in enumerate(zip(self.rows, self.values, strict=True)):
            for a, (column, value) in enumerate(zip(self.columns, values, strict=True)):
                if not math.isnan(value):
                    more = [self.targets[d]] if self.targets else []
                    sign = [self.signs[d][a]] if self.signs else []
                    writer.writerow([row, column, value, *more, *sign])
        return out.getvalue()

    def label(self, row: int) -> str:
        """Return the label of a row: its distribution, and its target if it has one."""
        if not self.targets or math.isnan(self.targets[row]):
            return self.rows[row]
        return f"{self.rows[row]} ≥ {form(self.targets[row : row + 1])(self.targets[row])}"

    def text(self, value: float) -> str:
        """Return the printed form of a number."""
        if math.isnan(value):
            return "-"
        forms = {"running-time": "{:.0f}", "area": "{:.3f}", "mann-whitney": "{:.2g}"}
        return "never" if math.isinf(value) else forms[self.name].format(value)

    def is_best(self, row: int, value: float) -> bool:
        """Return whether a value is the lowest of its row; p-values are not compared."""
        finite = [v for v in self.values[row] if math.isfinite(v)]
        return not self.signs and value == min(finite, default=None)

    def _body(
        self, marks: Text, plain: Callable[[str], str], aligned: bool = False
    ) -> list[list[str]]:
        body = [["distribution", *map(plain, self.columns)]]
        for d, values in enumerate(self.values):
            cells = [marks.best(self.text(v), self.is_best(d, v)) for v in values]
            if self.signs:
                signs = map(marks.number, self.signs[d])
                cells = [f"{c} {s}".rstrip() for c, s in zip(cells, signs, strict=True)]
            body.append([plain(self.label(d)), *cells])
        return body


def measures(
    results: Results, name: str, evaluations: int | None = None, *, reference: str | None = None
) -> Measures:
    """Return a table of one of `MEASURES`, which its notes explain.

    Parameters
    ----------
    evaluations
        The number of evaluations, for tests only: they use the end of the runs by default. The
        other measures are over all evaluations.
    reference
        The algorithm that the others are tested against; by default the first of the policy's, or
        else the first.
    """
    if name not in MEASURES:
        raise ValueError(f"name is {name!r}, expected one of {', '.join(MEASURES)}")
    if name != "mann-whitney" and evaluations is not None:
        raise ValueError(f"evaluations is {evaluations}, expected none: {name} is over all")
    if name != "mann-whitney" and reference is not None:
        raise ValueError(f"reference is {reference!r}, expected none: {name} has no tests")
    targets: tuple[float, ...] = ()
    signs: tuple[tuple[str, ...], ...] = ()
    if name == "running-time":
        title = "expected running time"
        found, values = stats.running_times(results)
        targets = tuple(found.tolist())
        notes = [
            "Evaluations of all runs until the target (after ≥) or their end, over the number of "
            "runs that reach it, at points of the grid; less is better. The target is the "
            "highest mean of an algorithm at the end of the runs; never: no run reaches it."
        ]
    elif name == "area":
        title = "area over the curve"
        values = stats.areas(results)
        notes = [
            "Mean over runs of the part, 0 to 1, that lies above the convergence curve, of the box "
            "over all evaluations and from the worst algorithm's median start to the best value of "
            "any run; less is better. A coarser grid makes it larger."
        ]
    else:
        first = [a for a in results.algorithms if a in results.ours] or [*results.algorithms, ""]
        against = first[0] if reference is None else reference
        values = stats.versus(results, against, evaluations)
        at = "at the end" if evaluations is None else f"after {evaluations} evaluations"
        title = f"p-values against {against} {at}"
        signs = tuple(
            _signs(stats.final(results, d, evaluations), against, results.algorithms)
            for d in results.distributions
        )
        notes = [
            "Mann-Whitney test, two-sided, with Holm's correction over the whole table. +: its "
            f"runs are better than those of {against} more often than worse; -: less often; "
            "=: as often."
        ]
    return Measures(
        f"{results.name}: {title}", results.algorithms, results.distributions, name,
        tuple(map(tuple, values.tolist())), (*notes, *_missing(results)), targets, signs,
    )  # fmt: skip


def _signs(
    values: Mapping[str, Floats], reference: str, algorithms: Sequence[str]
) -> tuple[str, ...]:
    signs = []
    for label in algorithms:
        tested = label != reference and {label, reference} <= values.keys()
        more = stats.superiority(values[label], values[reference]) if tested else math.nan
        signs.append("" if not tested else "+" if more > 0.5 else "-" if more < 0.5 else "=")
    return tuple(signs)


def _stars(values: dict[str, Floats], reference: str | None, level: float) -> set[str]:
    if not stats.can_test():
        return set()
    means = {label: stats.mean(x) for label, x in values.items()}
    order = sorted(means, key=lambda label: -means[label])
    if len(order) < 2 or (reference is not None and reference not in means):
        return set()
    mine = order[0] if reference is None else reference
    rival = next(label for label in order if label != mine)
    pairs = [(mine, rival)]
    if reference is not None:
        pairs += [(label, mine) for label in order if label != mine]
    return {
        a for a, b in pairs if means[a] > means[b] and stats.welch(values[a], values[b]) < level
    }


def _notes(results: Results, spread: str, reference: str | None, level: float) -> tuple[str, ...]:
    runs = sorted({len(cell.curves) for cell in results.cells.values()})
    counts = "no" if not runs else str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    notes = [f"Means over {counts} runs, more is better; r/m is rank r of m algorithms."]
    after = {"sd": "the standard deviation", "error": "the standard error of the mean"}
    if spread in after:
        notes.append(f"The value after ± is {after[spread]}.")
    elif spread == "interval":
        notes.append("Brackets contain the 95 % confidence interval of the mean (bootstrap, BCa).")
    rule = "is significantly better than"
    test = f"(Welch's t-test, p < {level:g})"
    if not stats.can_test():
        notes.append(f"No stars: {stats.MISSING}.")
    elif reference is None:
        notes.append(f"A star: the algorithm {rule} the best other {test}.")
    else:
        other = f"an algorithm {rule} {reference}"
        notes.append(f"A star: {reference} {rule} the best other, or {other} {test}.")
    return (*notes, *_missing(results, "; they are left out of the mean rank"))


def _missing(results: Results, more: str = "") -> list[str]:
    """Return notes on cells without runs, and on failed runs."""
    notes = []
    if len(results.cells) < len(results.algorithms) * len(results.distributions):
        notes.append(f"A dash: no finished runs{more}.")
    failed = [
        (count, algorithm, distribution, " ".join(reason.split()))
        for (distribution, algorithm), reasons in results.failed.items()
        for reason, count in reasons.items()
    ]
    if failed:
        failed.sort(key=lambda item: -item[0])
        notes.append(f"{sum(item[0] for item in failed)} runs failed and are not counted:")
        for count, algorithm, distribution, reason in failed[:_LISTED]:
            short = reason if len(reason) <= 100 else f"{reason[:97]}..."
            notes.append(f"{count} of {algorithm} on {distribution}: {short}.")
        left = sum(item[0] for item in failed[_LISTED:])
        notes += [f"{left} others."] if left else []
    return notes


def _pieces(
    row: Sequence[Entry | None], spread: str, entry: Entry | None, marks: Text
) -> list[str]:
    """Return mean, spread and rank as text; empty texts where there are no runs."""
    if entry is None:
        return []
    s, means = entry.summary, [e.summary.mean for e in row if e is not None]
    spreads = {"sd": s.sd, "error": s.error, "interval": (s.high - s.low) / 2}

    def number(x: float, beside: float = 0.0) -> str:
        return marks.number(form(means, beside)(x))

    text = marks.best(number(s.mean), entry.best) + marks.star(entry.star)
    rank = f"{entry.rank:g}/{entry.of}"
    if spread == "none":
        return [text, rank]
    if s.runs < 2:  # one run has no spread
        return [text, "", rank]
    size = spreads[spread]
    if spread == "interval":
        return [text, f"[{number(s.low, size)}, {number(s.high, size)}]", rank]
    return [text, f"{marks.plus_minus} {number(size, size)}", rank]
