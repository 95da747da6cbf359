"""A campaign as one HTML page with interactive tables and figures.

The page is a single file that requires no network and no server. Its parts are beside this module:
report.html, report.css, and scripts: report_stats.js (numbers), report_charts.js, report_tables.js
and report.js (the selection). They receive `data`; without JavaScript, the tables of the final
values are still shown.
"""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from anyorder.bench import distributions as special
from anyorder.bench import figures, stats, tables, typeset
from anyorder.bench.results import Cell, Floats, Results

LEVEL, ALPHA = 0.001, 0.05  # of the stars, and of the critical difference
_SCRIPTS = ("report_stats.js", "report_charts.js", "report_tables.js", "report.js")


def write(
    results: Results,
    path: str | os.PathLike[str],
    title: str | None = None,
    notes: Iterable[str] = (),
    *,
    versions: Mapping[str, str] | None = None,
) -> None:
    """Write the page; the same results give the same file.

    Parameters
    ----------
    title
        By default the name of the campaign.
    notes
        Sentences for the reader, each a paragraph of its own; text, not HTML.
    versions
        Package versions of the runs, by name.
    """
    if isinstance(notes, str):
        raise ValueError(f"notes is {notes!r}, expected a list of sentences")
    found = data(results)
    files = resources.files(__package__)
    page = Template(files.joinpath("report.html").read_text("utf-8")).substitute(
        title=html.escape(results.name if title is None else title),
        style=files.joinpath("report.css").read_text("utf-8"),
        script="\n".join(files.joinpath(name).read_text("utf-8") for name in _SCRIPTS),
        summary=_summary(results),
        notes="\n".join(f"<p>{html.escape(note)}</p>" for note in notes),
        campaign=_campaign(results, versions or {}),
        table=_table(results, found),
        measures=_measures(results, found),
        # "<" could end the script element; inside JSON it is as well written so
        data=json.dumps(found, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
    )
    Path(path).write_text(page, "utf-8")


def data(results: Results) -> dict[str, Any]:
    """The data of the page, for JSON: means and bands at the grid, not the runs.

    All are integers, which are short: `mean` in units of the last of a distribution's
    `decimals`, `share` in 1/10000, `rank` in halves because of ties; `below` and `above`, the
    distances of the ends of the 95 % interval from the mean, in 100 units, since only the mean is
    rounded again. `mean`, `share` and `grid` are differences from point to point. None: no value.
    """
    if not results.cells:
        raise ValueError(f"{results.name} has no finished runs, expected some")
    looks = figures.style(results.algorithms, results.ours)
    count = len(results.algorithms)
    return {
        "name": results.name,
        "level": LEVEL,
        "alpha": ALPHA,
        "algorithms": [{"label": label, **_look(looks[label])} for label in results.algorithms],
        "distributions": [_row(results, d) for d in results.distributions if results.row(d)],
        "quantiles": [
            round(special.studentised_range(1 - ALPHA, k), 6) for k in range(2, count + 1)
        ],
    }


def _look(style: figures.Style) -> dict[str, Any]:
    dashes = [] if style.line == "-" else [x * style.width for x in style.line[1]]
    return {
        "colour": style.colour, "dashes": [round(x, 2) for x in dashes], "marker": style.marker,
        "width": style.width, "ours": style.ours,
    }  # fmt: skip


def _row(results: Results, distribution: str) -> dict[str, Any]:
    """A distribution: its grid is that of its cells together, and they hold what they had."""
    row = results.row(distribution)
    grid = np.unique(np.concatenate([cell.grid for cell in row.values()]))
    curves = {label: _on(grid, cell) for label, cell in row.items()}
    means = {
        label: np.array([stats.mean(x) for x in columns.T]) for label, columns in curves.items()
    }
    known = np.array(list(means.values()))
    ranks = np.array([stats.ranks(column) for column in known.T]).T
    _, shares = stats.ecdf(results.only(distributions=[distribution]))
    decimals = _decimals(known)
    lows, highs = _intervals(curves)
    cells: dict[str, dict[str, Any]] = {}
    for k, (label, columns) in enumerate(curves.items()):
        with np.errstate(invalid="ignore"):
            sd = columns.std(axis=0, ddof=1) if len(columns) > 1 else np.full(len(grid), np.nan)
            below, above = means[label] - lows[label], highs[label] - means[label]
        cells[label] = {
            "runs": len(columns),
            "mean": _steps(_whole(means[label], decimals)),
            "below": _whole(below, decimals - 2),
            "above": _whole(above, decimals - 2),
            "sd": [float(f"{x:.4g}") if math.isfinite(x) else None for x in sd],
            "rank": _whole(2 * ranks[k], 0),
            "share": _steps(_whole(shares[label], 4)),
        }
    return {
        "label": distribution,
        "grid": np.diff(grid, prepend=0).tolist(),
        "decimals": decimals,
        "cells": [cells.get(label) for label in results.algorithms],
    }


def _on(grid: Any, cell: Cell) -> Floats:
    """The curves at the points of another grid; NaN before the cell's first and after its last."""
    place = np.searchsorted(cell.grid, grid, side="right") - 1
    values = np.where(np.isnan(cell.curves), -np.inf, cell.curves)[:, np.maximum(place, 0)]
    return np.where((place >= 0) & (grid <= cell.grid[-1]), values, np.nan)


def _at(cell: Cell, evaluations: int) -> Floats:
    values: Floats = _on(np.array([evaluations]), cell)[:, 0]
    return values


def _intervals(curves: Mapping[str, Floats]) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Ends of `stats.interval`; of as many runs at once, because drawing the resamples is slow."""
    lows: dict[str, Floats] = {}
    highs: dict[str, Floats] = {}
    for runs in {len(columns) for columns in curves.values()}:
        alike = [label for label, columns in curves.items() if len(columns) == runs]
        low, high = stats.interval(np.hstack([curves[label] for label in alike]))
        lows |= zip(alike, np.split(low, len(alike)), strict=True)
        highs |= zip(alike, np.split(high, len(alike)), strict=True)
    return lows, highs


def _decimals(means: Floats) -> int:
    """Decimals that keep 8 digits of the values, and 6 of the differences between them."""
    finite = means[np.isfinite(means)]
    size = float(np.abs(finite).max(initial=0.0))
    span = float(np.ptp(finite)) if len(finite) else 0.0
    if size == 0:
        return 0
    fine = min(size * 1e-7, span * 1e-6) if span > size * 1e-9 else size * 1e-7
    return min(300, -math.floor(math.log10(fine)))


def _whole(values: Floats, decimals: int) -> list[int | None]:
    scaled = values * 10.0**decimals
    return [round(x) if math.isfinite(x) else None for x in scaled.tolist()]


def _steps(values: list[int | None]) -> list[int | None]:
    """Differences from the last value that is there."""
    last, steps = 0, []
    for value in values:
        steps.append(None if value is None else value - last)
        last = last if value is None else value
    return steps


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
    """Tables of the campaign: distributions, algorithms, versions, failures."""
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
    """The table of the end of the runs, as the scripts make it."""
    labels = [item["label"] for item in found["algorithms"]]
    head = "".join(f'<th scope="col">{html.escape(label)}</th>' for label in labels)
    lines = [f'<thead><tr><th scope="col">distribution</th>{head}</tr></thead>', "<tbody>"]
    ranks = np.full((len(found["distributions"]), len(labels)), np.nan)
    for d, row in enumerate(found["distributions"]):
        end = sum(row["grid"])
        cells = {  # those whose runs went to the end
            a: cell for a, cell in enumerate(row["cells"]) if cell and cell["rank"][-1] is not None
        }
        values = {labels[a]: _at(results.cells[row["label"], labels[a]], end) for a in cells}
        stars = tables._stars(values, None, LEVEL)
        ranks[d, list(cells)] = [cell["rank"][-1] / 2 for cell in cells.values()]
        means = {a: stats.mean(values[labels[a]]) for a in cells}
        form, unit = typeset.form([*means.values()]), 10.0 ** (2 - row["decimals"])
        texts = ["<td>-</td>"] * len(labels)
        for a, cell in cells.items():
            text = form(means[a])
            text = f"<b>{text}</b>" if ranks[d, a] == np.nanmin(ranks[d]) else text
            star = "*" if labels[a] in stars else ""
            spread = ""
            if cell["below"][-1] is not None:
                below, above = unit * cell["below"][-1], unit * cell["above"][-1]
                ends = typeset.form([*means.values()], (below + above) / 2)
                low, high = ends(means[a] - below), ends(means[a] + above)
                spread = f"<small>[{low}, {high}]</small>"
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
    """The tables of `tables.measures`: of all algorithms, at the end of the runs."""
    shown = [row["label"] for row in found["distributions"]]
    # of different budgets on one distribution, ends are no match for each other
    fair = [d for d in shown if len({cell.grid[-1] for cell in results.row(d).values()}) == 1]
    if not fair:
        return "<p>The budgets of the algorithms differ on every distribution.</p>"
    few = "" if fair == shown else " Distributions on which budgets differ are left out."
    labels = [item["label"] for item in found["algorithms"]]
    parts = []
    for name in tables.MEASURES:
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
                number = "Infinity" if math.isinf(value) else f"{value:.6g}"  # as scripts read it
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
