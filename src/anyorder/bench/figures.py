"""Figures of results. One function extracts the data, another draws it.

Every figure is written to `path` (PNG, PDF or SVG by its suffix), or returned if there is no path.
`dark=True` uses a dark background. An algorithm has the same style in all figures that are given
the same `styles`. Algorithms of this library are blue, unless there are no others.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.bench import stats
from anyorder.bench.figure_style import Page, Path, Style, plain_label, short_label, style
from anyorder.bench.results import Floats, Ints, Results

__all__ = [
    "Band", "RankMap", "Style", "band", "bands", "convergence", "critical_difference", "distance",
    "ecdf", "rank_map", "ranks", "style",
]  # fmt: skip

_MOST = 1e300  # larger values are drawn as this one
_BANDS = {"bootstrap": "band: its 95 % interval", "error": "band: its standard error"}


@dataclass(frozen=True)
class Band:
    """A line with a band around it; NaN where there are no data."""

    grid: Ints
    mean: Floats
    low: Floats
    high: Floats


def band(grid: npt.ArrayLike, curves: npt.ArrayLike, interval: str = "bootstrap") -> Band:
    """Return the mean of curves `(runs, points)`, with a 95 % "bootstrap" or "error" band."""
    if interval not in _BANDS:
        raise ValueError(f"interval is {interval!r}, expected one of {', '.join(_BANDS)}")
    at, table = np.asarray(grid, np.int64), np.asarray(curves, np.float64)
    if table.ndim != 2 or table.shape[1:] != at.shape or not len(table):
        raise ValueError(f"curves have shape {table.shape}, expected (runs, {len(at)})")
    centre = stats.means(table)
    if interval == "bootstrap":
        return Band(at, centre, *stats.interval(table, resamples=1000))
    spread = stats.deviation(table) if len(table) > 1 else np.full(len(at), np.nan)
    error = spread / math.sqrt(len(table))
    with np.errstate(invalid="ignore", over="ignore"):  # infinities are values, but have no error
        return Band(at, centre, centre - error, centre + error)


def bands(results: Results, distribution: str, interval: str = "bootstrap") -> dict[str, Band]:
    """Return the convergence of every algorithm on a distribution."""
    row = results.row(distribution)
    return {label: band(cell.grid, cell.curves, interval) for label, cell in row.items()}


def _drawable(line: Band) -> Band:
    """Return a band without values that are too large for axes."""
    mean, low, high = (
        np.where(np.isfinite(x), np.clip(x, -_MOST, _MOST), x)
        for x in (line.mean, line.low, line.high)
    )
    return Band(line.grid, mean, low, high)


def convergence(
    results: Results,
    path: Path = None,
    *,
    interval: str = "bootstrap",
    log: bool = False,
    styles: Mapping[str, Style] | None = None,
    dark: bool = False,
) -> Any:
    """Draw the mean best value against evaluations, one panel for each distribution.

    The band is the 95 % bootstrap interval of the mean, or its standard "error". On a linear axis
    the view starts at the lowest mean after a twentieth of the budget, so that the ends of the
    curves can be told apart; with `log` everything is shown.
    """
    drawn = [d for d in results.distributions if results.row(d)]
    if not drawn:
        raise ValueError(f"{results.name} has no finished runs, expected some")
    columns = 2 if len(drawn) == 4 else min(3, len(drawn))
    rows = math.ceil(len(drawn) / columns)
    page = Page(dark, (4.4 * columns + 2.6, 3.2 * rows + 0.3))
    panels = page.figure.subplots(rows, columns, squeeze=False).ravel()
    looks = style(results.algorithms, results.ours) if styles is None else styles
    for k, (panel, distribution) in enumerate(zip(panels, drawn, strict=False)):
        found = bands(results, distribution, interval)
        lines = {label: _drawable(line) for label, line in found.items()}
        _draw_bands(panel, lines, looks)
        page.dress(
            panel, short_label(distribution), "evaluations" if k >= len(drawn) - columns else ""
        )
        _frame(panel, lines, log)
        page.count(panel)
    for panel in panels[len(drawn) :]:
        panel.remove()
    label = f"mean best value\n({_BANDS[interval]})"
    page.figure.supylabel(label, color=page.ink, fontsize=10, multialignment="center")
    page.legend(
        {a: looks[a] for a in results.algorithms if any(a in results.row(d) for d in drawn)}
    )
    return page.save(path)


def distance(
    curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]],
    path: Path = None,
    *,
    ylabel: str = "Hamming distance to the incumbent",
    title: str | None = None,
    interval: str = "bootstrap",
    styles: Mapping[str, Style] | None = None,
    dark: bool = False,
) -> Any:
    """Draw the distance of populations to the best point so far, against evaluations.

    `curves` has the evaluations `(points,)` and the distances `(runs, points)` of each label. The
    mean over runs is drawn with its band, see `band`.
    """
    page = Page(dark)
    axes = page.figure.subplots()
    looks = style(curves) if styles is None else styles
    lines = {label: band(grid, runs, interval) for label, (grid, runs) in curves.items()}
    _draw_bands(axes, lines, looks)
    above = None if title is None else plain_label(title)
    page.dress(axes, above, "evaluations", f"{ylabel}\n(mean; {_BANDS[interval]})")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, max((line.grid[-1] for line in lines.values()), default=1))
    page.count(axes)
    page.legend({label: looks[label] for label in curves})
    return page.save(path)


def ecdf(
    results: Results,
    path: Path = None,
    *,
    styles: Mapping[str, Style] | None = None,
    dark: bool = False,
) -> Any:
    """Draw the share of (run, target) pairs reached, with the data of `stats.ecdf`.

    Points of the grid are joined by straight lines: twenty step functions would be hard to tell
    apart.
    """
    grid, shares = stats.ecdf(results)
    page = Page(dark)
    axes = page.figure.subplots()
    looks = style(results.algorithms, results.ours) if styles is None else styles
    for k, (label, share) in enumerate(shares.items()):
        axes.plot(grid, share, markevery=_space_markers(k, len(shares)), **looks[label].plot)
    axes.set_xscale("log")
    axes.set_xlim(grid[0], grid[-1])
    page.count(axes)
    axes.set_ylim(0, 1)
    page.dress(
        axes, short_label(results.name), "evaluations", "share of (run, target) pairs reached"
    )
    page.legend({label: looks[label] for label in shares})
    return page.save(path)


@dataclass(frozen=True)
class RankMap:
    """Ranks by distribution and algorithm; algorithms are in order of mean rank, best first."""

    algorithms: tuple[str, ...]
    distributions: tuple[str, ...]
    ranks: Floats
    means: Floats


def ranks(results: Results, evaluations: int | None = None) -> RankMap:
    """Return the data that `rank_map` draws."""
    table = stats.rank_table(results, evaluations)
    means = stats.mean_ranks(table)
    order = np.argsort(means, kind="stable")
    names = tuple(results.algorithms[k] for k in order)
    return RankMap(names, results.distributions, table[:, order], means[order])


def rank_map(
    results: Results, path: Path = None, *, evaluations: int | None = None, dark: bool = False
) -> Any:
    """Draw ranks as a heat map, distributions by algorithms, with the mean ranks below."""
    data = ranks(results, evaluations)
    count, rows = len(data.algorithms), len(data.distributions)
    title = f"{short_label(results.name)}: rank by mean, 1 is the best"
    across, down = (
        list(map(short_label, labels)) for labels in (data.algorithms, data.distributions)
    )
    # inches around the map: labels to the left and below, the title above
    left, below = (0.08 * max(map(len, labels), default=0) for labels in (down, across))
    page = Page(dark, (max(2.6 + 0.48 * count, 0.3 + max(0.8, left) + 0.09 * len(title)),
                        max(2.2, 1.3 + 0.64 * below) + 0.36 * rows))  # fmt: skip
    axes = page.figure.subplots()
    shown = np.vstack([data.ranks, data.means])
    image = axes.imshow(shown, cmap="cividis_r", vmin=1, vmax=max(2, count), aspect="auto")
    for r, c in np.argwhere(~np.isnan(shown)):
        text = f"{shown[r, c]:.1f}" if r == rows else f"{shown[r, c]:g}"
        red, green, blue, _ = image.cmap(image.norm(shown[r, c]))
        light = 0.3 * red + 0.59 * green + 0.11 * blue > 0.5
        axes.text(c, r, text, ha="center", va="center", fontsize=8.5,
                  color="#111111" if light else "#ffffff")  # fmt: skip
    for r, c in np.argwhere(np.isnan(shown)):
        axes.text(c, r, "-", ha="center", va="center", color=page.ink)
    axes.axhline(rows - 0.5, color=page.ground, linewidth=3)
    axes.set_xticks(range(count), across, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(rows + 1), [*down, "mean rank"])
    page.dress(axes, title)
    for label, tick in zip(data.algorithms, axes.get_xticklabels(), strict=True):
        tick.set_fontweight("bold" if label in results.ours else "normal")
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return page.save(path)


def critical_difference(
    results: Results,
    path: Path = None,
    *,
    evaluations: int | None = None,
    alpha: float = 0.05,
    styles: Mapping[str, Style] | None = None,
    dark: bool = False,
) -> Any:
    """Draw mean ranks on a line; a bar joins those that do not differ significantly.

    Demšar, JMLR 2006.

    The data is `stats.critical`. Bars are drawn whatever the result of the Friedman test, whose
    p-value is in the title.
    """
    data = stats.critical(results, evaluations, alpha)
    looks = style(results.algorithms, results.ours) if styles is None else styles
    count, half = len(data.algorithms), (len(data.algorithms) + 1) // 2
    top = 0.9 + 0.28 * len(data.groups)  # labels start below the bars
    page = Page(dark, (9.0, 1.3 + 0.27 * (top + half)))
    axes = page.figure.subplots()
    for k, (label, rank) in enumerate(zip(data.algorithms, data.ranks, strict=True)):
        left = k < half
        y = -top - (k if left else count - 1 - k)
        edge = 1 - 0.02 * count if left else count + 0.02 * count
        look = looks[label]
        axes.plot([rank, rank, edge], [0, y, y], color=look.colour, linewidth=look.width * 0.7,
                  zorder=look.order)  # fmt: skip
        axes.text(edge, y, f" {short_label(label)}  {rank:.2f} ", ha="right" if left else "left",
                  va="center", fontsize=9, color=page.ink,
                  fontweight="bold" if look.ours else "normal")  # fmt: skip
    for g, (first, last) in enumerate(data.groups):
        ends = [data.ranks[first] - 0.04, data.ranks[last] + 0.04]
        axes.plot(
            ends,
            [-0.45 - 0.28 * g] * 2,
            color=page.ink,
            linewidth=3.5,
            zorder=5.0,
            solid_capstyle="butt",
        )
    axes.plot([1, 1 + data.difference], [1.6, 1.6], color=page.ink, marker="|", linewidth=1.2)
    axes.text(1 + data.difference / 2, 1.75, f"critical difference {data.difference:.2f}",
              ha="center", va="bottom", fontsize=9, color=page.ink)  # fmt: skip
    p = data.friedman.p
    said = f"p {'< 0.001' if p < 0.001 else f'= {p:.3f}'} (Friedman)"
    on = f"mean ranks on {len(data.distributions)} distributions"
    page.dress(axes, textwrap.fill(f"{short_label(results.name)}: {on}, {said}", 80))
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set_yticks([])
    axes.set_xlim(1 - 0.35 * count, count + 0.35 * count)
    axes.set_ylim(-top - half + 0.4, 2.8)
    axes.set_xticks([])
    axes.plot([1, count], [0, 0], color=page.ink, linewidth=1.0)
    for rank in range(1, count + 1):
        axes.plot([rank, rank], [0, 0.25], color=page.ink, linewidth=1.0)
        axes.text(rank, 0.35, str(rank), ha="center", va="bottom", fontsize=9, color=page.ink)
    return page.save(path)


def _draw_bands(axes: Any, lines: Mapping[str, Band], looks: Mapping[str, Style]) -> None:
    for k, (label, line) in enumerate(lines.items()):
        look = looks[label]
        if not np.isfinite(line.mean).any():  # Matplotlib cannot place markers without values
            continue
        axes.plot(line.grid, line.mean, markevery=_space_markers(k, len(lines)), **look.plot)
        axes.fill_between(
            line.grid, line.low, line.high, color=look.colour, alpha=0.15, linewidth=0,
            zorder=look.order - 2,
        )  # fmt: skip


def _space_markers(k: int, count: int) -> tuple[float, float]:
    """Return where a line has markers: a quarter of the diagonal apart, different for each line."""
    return 0.02 + 0.22 * k / count, 0.22


def _frame(axes: Any, lines: Mapping[str, Band], log: bool) -> None:
    end = max(int(line.grid[-1]) for line in lines.values())
    starts = []
    for line in lines.values():
        seen = np.isfinite(line.mean) & (log | (line.grid >= end / 20))
        starts += np.fmin(line.mean, line.low)[seen][:1].tolist()
    ends = [np.fmax(line.mean, line.high)[-1] for line in lines.values()]
    tops = [float(value) for value in ends if np.isfinite(value)]
    if starts and tops:
        low, high = min(starts), max(tops)
        margin = 0.05 * (high - low) or max(0.5, 1e-9 * abs(high))
        axes.set_ylim(low - margin, high + margin)
    if log:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, end)
