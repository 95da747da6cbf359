"""A campaign as one HTML page with interactive tables and figures.

The page is a single file that requires no network and no server (`anyorder.charts.page`). Its parts
are beside this module: report.html, report.css, and the scripts report_numbers.js (computes what
depends on the chosen algorithms), report_tables.js and report.js (the choice, and figures), which
receive `data`. Without JavaScript the tables of final values are still shown. Tests are computed
here.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from anyorder.bench import figures, stats, tables, typeset
from anyorder.bench.results import Cell, Floats, Results
from anyorder.charts import campaign
from anyorder.charts.page import write_page

LEVEL, ALPHA = 0.001, 0.05  # of the stars, and of the critical difference
# the page says below which of these a Friedman p-value is
LEVELS = (0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_SCRIPTS = ("report_numbers.js", "report_tables.js", "report.js")
_FEW = "This needs two algorithms at least, and two distributions on which all of them have runs."
# Cividis, from its light to its dark end.
_SHADES = (
    (254, 232, 56), (222, 201, 88), (188, 174, 108), (155, 148, 118), (125, 124, 120),
    (97, 101, 111), (67, 78, 108), (26, 56, 111), (0, 34, 78),
)  # fmt: skip


def write(
    results: Results,
    path: str | os.PathLike[str],
    title: str | None = None,
    notes: Iterable[str] = (),
    *,
    versions: Mapping[str, str] | None = None,
) -> None:
    """Write the page to a file; the same results give the same file.

    Parameters
    ----------
    title
        The title; by default the name of the campaign.
    notes
        Sentences for the reader, each a paragraph of its own, as text, not HTML.
    versions
        The package versions of the runs, by name.
    """
    if isinstance(notes, str):
        raise ValueError(f"notes is {notes!r}, expected a list of sentences")
    found = data(results)
    said = [*notes] if stats.can_test() else [*notes, f"{_sentence(stats.MISSING)}."]
    files = resources.files(__package__)
    title = results.name if title is None else title
    body = Template(files.joinpath("report.html").read_text("utf-8")).substitute(
        title=html.escape(title),
        summary=_summary(results),
        notes="\n".join(f"<p>{html.escape(note)}</p>" for note in said),
        campaign=_campaign(results, versions or {}),
        table=_table(results, found),
        measures=_measures(results, found),
    )
    text = json.dumps(found, separators=(",", ":"), allow_nan=False).encode("ascii")
    page = write_page(
        title, body, base64.b64encode(gzip.compress(text, mtime=0)).decode("ascii"),
        style=files.joinpath("report.css").read_text("utf-8"),
        scripts=[files.joinpath(name).read_text("utf-8") for name in _SCRIPTS],
    )  # fmt: skip
    Path(path).write_text(page, "utf-8")


def data(results: Results) -> dict[str, Any]:
    """Return the data of the page for JSON: means, intervals and tests at the grid, not the runs.

    Means have as many decimals as `_decimals` says, other numbers fewer; None is no value. `better`
    holds, for each pair of algorithms by their numbers, a digit for each point of the grid: 1 where
    their means differ significantly. `tests` holds quantiles by the number of algorithms, from two
    on. Without SciPy, `tests` and the intervals are None.
    """
    if not results.cells:
        raise ValueError(f"{results.name} has no finished runs, expected some")
    looks = figures.style(results.algorithms, results.ours)
    rows = [_row(results, d) for d in results.distributions if results.row(d)]
    ends = [n for row in rows for n in (row["grid"][0], row["grid"][-1])]
    (dot,), layout = campaign.critical().values()
    missing = None if stats.can_test() else f"{_sentence(stats.MISSING)}."
    return {
        "algorithms": [
            {"label": label, "ours": looks[label].ours, **_traces(label, looks[label])}
            for label in results.algorithms
        ],
        "distributions": rows,
        "charts": {
            "convergence": campaign.convergence(),
            "ecdf": campaign.ecdf(min(ends), max(ends)),
            "critical": {"dot": dot, "layout": layout, "few": _FEW, "missing": missing},
        },
        "shades": _SHADES,
        "tests": None if missing else _quantiles(len(results.algorithms)),
    }


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _traces(label: str, style: figures.Style) -> dict[str, Any]:
    dashes = [] if style.line == "-" else [round(x * style.width, 2) for x in style.line[1]]
    return campaign.traces(label, style.colour, dashes, style.marker, style.width)


def _quantiles(count: int) -> dict[str, Any]:
    """Return the quantiles by which Nemenyi's and Friedman's tests of up to `count` are decided."""
    sizes = range(2, count + 1)
    chi2 = stats.scipy_stats().chi2
    return {
        "alpha": ALPHA,
        "ranges": [round(stats.studentised_range(k, ALPHA), 6) for k in sizes],
        "friedman": {
            "levels": LEVELS,
            "quantiles": [[round(float(chi2.isf(p, k - 1)), 6) for p in LEVELS] for k in sizes],
        },
    }


def _row(results: Results, distribution: str) -> dict[str, Any]:
    """Return the data of a distribution, on the union of the grids of its cells."""
    row = results.row(distribution)
    grid = np.unique(np.concatenate([cell.grid for cell in row.values()]))
    curves = {label: _resample(grid, cell) for label, cell in row.items()}
    known = np.array([[stats.mean(x) for x in columns.T] for columns in curves.values()])
    ranks = np.array([stats.ranks(column) for column in known.T]).T
    _, shares = stats.ecdf(results.only(distributions=[distribution]))
    lows, highs = _intervals(curves)
    spread = np.array([
        stats.deviation(x) if len(x) > 1 else np.full(len(grid), np.nan) for x in curves.values()
    ])  # fmt: skip
    cells: dict[str, dict[str, Any]] = {}
    for k, label in enumerate(curves):
        decimals = max(_decimals(known), _decimals(known[k]))  # other values may be far away
        cells[label] = {
            "runs": len(curves[label]),
            "mean": _round(known[k], decimals),
            "low": _round(lows[label], decimals - 2),
            "high": _round(highs[label], decimals - 2),
            "sd": [float(f"{x:.3g}") if math.isfinite(x) else None for x in spread[k]],
            "rank": _round(ranks[k], 1),
            "share": _round(shares[label], 4),
            "view": _view(grid, known[k], lows[label], highs[label]),
        }
    places = [results.algorithms.index(label) for label in curves]
    last = [float(mean[np.isfinite(mean)][-1]) for mean in known if np.isfinite(mean).any()]
    finite = known[np.isfinite(known)]
    whole = bool((finite == np.round(finite)).all())
    size, digits = typeset.digits(last, whole)
    return {
        "label": distribution,
        "grid": grid.tolist(),
        "digits": {"size": size, "decimals": digits},
        "whole": whole,
        "cells": [cells.get(label) for label in results.algorithms],
        "better": _better(known, spread, [len(x) for x in curves.values()], places),
        **campaign.axes(int(grid[0]), int(grid[-1]), (min(last, default=0), max(last, default=1))),
    }


def _better(means: Floats, spread: Floats, runs: list[int], places: list[int]) -> dict[str, str]:
    """Return, for each pair of algorithms, where Welch's test says that their means differ."""
    if not stats.can_test():
        return {}
    found = stats.welch_pairs(means, spread, runs) < LEVEL
    return {
        f"{places[i]}-{places[j]}": "".join("01"[x] for x in found[i, j].astype(int))
        for i in range(len(places))
        for j in range(i + 1, len(places))
    }


def _view(grid: Any, mean: Floats, low: Floats, high: Floats) -> dict[str, list[float]] | None:
    """Return the ends of the vertical axis of a curve: `late` in the run, and for the `whole`.

    The late axis goes from the 2nd percentile after the first tenth of the run to the top of the
    band.
    """
    band = np.where(np.isfinite([low, high]), [low, high], mean).clip(-1e299, 1e299)
    there = np.isfinite(mean)
    if not there.any():
        return None
    late = there & (grid > 0.1 * grid[-1])
    after = band[:, late if late.any() else there]
    top = float(band[1, there].max())
    return {
        "late": [float(np.quantile(after, 0.02)), top],
        "whole": [float(band[0, there].min()), top],
    }


def _round(values: Floats, decimals: int) -> list[float | None]:
    return [round(x, decimals) if math.isfinite(x) else None for x in values.tolist()]


def _resample(grid: Any, cell: Cell) -> Floats:
    """Return curves at the points of another grid; NaN before the first and after the last."""
    place = np.searchsorted(cell.grid, grid, side="right") - 1
    values = np.where(np.isnan(cell.curves), -np.inf, cell.curves)[:, np.maximum(place, 0)]
    return np.where((place >= 0) & (grid <= cell.grid[-1]), values, np.nan)


def _values_at(cell: Cell, evaluations: int) -> Floats:
    values: Floats = _resample(np.array([evaluations]), cell)[:, 0]
    return values


def _intervals(curves: Mapping[str, Floats]) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the ends of `stats.interval`; curves with as many runs are resampled at once."""
    lows: dict[str, Floats] = {}
    highs: dict[str, Floats] = {}
    if not stats.can_test():
        none = {label: np.full(columns.shape[1], np.nan) for label, columns in curves.items()}
        return none, none
    for runs in {len(columns) for columns in curves.values()}:
        alike = [label for label, columns in curves.items() if len(columns) == runs]
        low, high = stats.interval(np.hstack([curves[label] for label in alike]))
        lows |= zip(alike, np.split(low, len(alike)), strict=True)
        highs |= zip(alike, np.split(high, len(alike)), strict=True)
    return lows, highs


def _decimals(means: Floats) -> int:
    """Return the decimals that keep 8 digits of the values, and 6 of their differences."""
    finite = means[np.isfinite(means)]
    size = float(np.abs(finite).max(initial=0.0))
    if size == 0:
        return 0
    span = min(2 * float(np.ptp(finite / 2)), sys.float_info.max)
    fine = min(size * 1e-7, span * 1e-6) if span > size * 1e-9 else size * 1e-7
    return min(300, -math.floor(math.log10(fine)))


def _range(values: Iterable[int]) -> str:
    found = sorted(set(values))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def _summary(results: Results) -> str:
    cells = results.cells.values()
    runs = sum(len(cell.curves) for cell in cells)
    failed = sum(sum(reasons.values()) for reasons in results.failed.values())
    parts = [
        f"{len(results.algorithms)} algorithms",
        f"{len(results.distributions)} distributions",
        f"{_range(int(cell.grid[-1]) for cell in cells)} evaluations a run",
        f"{_range(len(cell.curves) for cell in cells)} runs of each on each, {runs:,} in all",
        *([f"{failed:,} more failed, see what was run"] if failed else []),
    ]
    return html.escape("; ".join(parts) + ".")


def _campaign(results: Results, versions: Mapping[str, str]) -> str:
    """Return HTML tables of the campaign: distributions, algorithms, versions, failures."""
    rows = []
    for distribution in results.distributions:
        cells = list(results.row(distribution).values())
        if not cells:
            rows.append([distribution, "none finished", "", "", ""])
            continue
        rows.append(
            [
                distribution,
                _range(len(cell.curves) for cell in cells),
                _range(len(np.unique(cell.instances)) for cell in cells),
                _range(int(cell.grid[-1]) for cell in cells),
                _range(len(cell.grid) for cell in cells),
            ]
        )
    parts = [_grid(["distribution", "runs", "instances", "budget", "points of the grid"], rows)]
    rows, failures = [], []
    for label in results.algorithms:
        found = {d: results.cells[d, label] for d in results.distributions
                 if (d, label) in results.cells}  # fmt: skip
        seconds = np.concatenate([cell.seconds for cell in found.values()] or [np.empty(0)])
        mean = f"{seconds.mean():.3g}" if len(seconds) else ""
        rows.append([label, f"{len(seconds):,}", str(len(found)), mean])
        failures += [
            [label, d, reason, f"{count:,}"]
            for d in results.distributions
            for reason, count in results.failed.get((d, label), {}).items()
        ]
    parts.append(_grid(["algorithm", "runs", "distributions", "seconds a run"], rows))
    if failures:
        parts.append(_grid(["failed", "on", "because", "runs"], failures))
    if versions:
        parts.append(_grid(["made with", "version"], [[*item] for item in versions.items()]))
    return "\n".join(parts)


def _grid(head: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    body = "\n".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(head, 'th')}</thead>\n<tbody>{body}</tbody></table>"


def _table(results: Results, found: dict[str, Any]) -> str:
    """Return the HTML table of the final values, as the scripts would make it."""
    labels = [item["label"] for item in found["algorithms"]]
    head = "".join(f'<th scope="col">{html.escape(label)}</th>' for label in labels)
    lines = [f'<thead><tr><th scope="col">distribution</th>{head}</tr></thead>', "<tbody>"]
    ranks = np.full((len(found["distributions"]), len(labels)), np.nan)
    for d, row in enumerate(found["distributions"]):
        end = row["grid"][-1]
        cells = {  # only of runs that went to the end of the grid
            a: cell for a, cell in enumerate(row["cells"]) if cell and cell["rank"][-1] is not None
        }
        values = {labels[a]: _values_at(results.cells[row["label"], labels[a]], end) for a in cells}
        stars = tables._stars(values, None, LEVEL)
        ranks[d, list(cells)] = [cell["rank"][-1] for cell in cells.values()]
        means = {a: stats.mean(values[labels[a]]) for a in cells}
        form = typeset.form([*means.values()], whole=row["whole"])
        texts = ["<td>-</td>"] * len(labels)
        for a, cell in cells.items():
            text = form(means[a])
            text = f"<b>{text}</b>" if ranks[d, a] == np.nanmin(ranks[d]) else text
            star = "*" if labels[a] in stars else ""
            spread = ""
            if cell["low"][-1] is not None:
                low, high = cell["low"][-1], cell["high"][-1]
                ends = typeset.form([*means.values()], (high - low) / 2, row["whole"])
                spread = f"<small>[{ends(low)}, {ends(high)}]</small>"
            rank = f"<small>{ranks[d, a]:g}/{len(cells)}</small>"
            texts[a] = f"<td>{text}{star} {rank} {spread}</td>"
        lines.append(f'<tr><th scope="row">{html.escape(row["label"])}</th>{"".join(texts)}</tr>')
    wins = (ranks == np.nanmin(ranks, axis=1, keepdims=True)).sum(axis=0)
    feet = {
        "mean rank": ["-" if math.isnan(r) else f"{r:.2f}" for r in stats.mean_ranks(ranks)],
        "wins": [str(w) for w in wins],
    }
    lines.append("</tbody><tfoot>")
    for name, cells_ in feet.items():
        lines.append(f'<tr><th scope="row">{name}</th><td>{"</td><td>".join(cells_)}</td></tr>')
    return "\n".join([*lines, "</tfoot>"])


def _measures(results: Results, found: dict[str, Any]) -> str:
    """Return the HTML tables of `tables.measures`, for all algorithms at the end of the runs."""
    shown = [row["label"] for row in found["distributions"]]
    # final values after different budgets on one distribution cannot be compared
    fair = [d for d in shown if len({cell.grid[-1] for cell in results.row(d).values()}) == 1]
    if not fair:
        return "<p>The budgets of the algorithms differ on every distribution.</p>"
    few = "" if fair == shown else " Distributions on which budgets differ are left out."
    labels = [item["label"] for item in found["algorithms"]]
    parts = []
    for name in tables.MEASURES:
        if name == "mann-whitney" and not stats.can_test():
            continue  # a note on the page says so
        made = tables.measures(results.only(distributions=fair), name)
        head = "".join(
            f'<th scope="col" data-algorithm="{a}"><button type="button">{html.escape(label)}'
            "</button></th>"
            for a, label in enumerate(labels)
        )
        lines = []
        for d, values in enumerate(made.values):
            cells = [f'<th scope="row">{html.escape(made.label(d))}</th>']
            for a, value in enumerate(values):
                text = made.text(value)
                text = f"<b>{text}</b>" if made.is_best(d, value) else text
                sign = f" {made.signs[d][a]}" if made.signs and made.signs[d][a] else ""
                # in a form that scripts read
                number = "Infinity" if math.isinf(value) else f"{value:.6g}"
                key = "" if math.isnan(value) else f' data-value="{number}"'
                cells.append(f'<td data-algorithm="{a}"{key}>{text}{sign}</td>')
            place = shown.index(fair[d])
            lines.append(f'<tr data-distribution="{place}">{"".join(cells)}</tr>')
        title = made.title.removeprefix(f"{results.name}: ")
        title = html.escape(title[0].upper() + title[1:])
        body = "\n".join(lines)
        parts.append(
            f"<h3>{title}</h3>\n<p>{html.escape(made.notes[0])}{few}</p>\n"
            f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">'
            '<table class="measure">\n'
            '<thead><tr><th scope="col"><button type="button">distribution</button></th>'
            f"{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
        )
    return "\n".join(parts)
