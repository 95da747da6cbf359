"""The paper's figures, with the paper's panels and the colours that its text names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.bench import figures, reproduce
from anyorder.bench.figure_style import Page, Style, plain_label, style
from anyorder.bench.items import DROPS, VARIANTS
from anyorder.bench.reproduce_all import Folder
from anyorder.bench.results import Floats, Results

_GREEN, _BLUE, _RED, _YELLOW = "#2ca02c", "#1f77b4", "#d62728", "#d4a800"
_PURPLE, _ORANGE, _BROWN, _GREY = "#9467bd", "#ff7f0e", "#8c564b", "#7f7f7f"
_REST = (_BLUE, _RED, _ORANGE, _PURPLE, _BROWN, _YELLOW, "#17becf", "#e377c2", _GREY)
# The policy with its usual settings is green in all of the paper's figures.
_COLOURS = {
    "authors": _GREEN, "(s,s)": _GREEN, "none": _GREEN, "lambda 10": _GREEN, "beta 1": _GREEN,
    "E 50": _GREEN, "graph unknown": _GREEN, "separate": _GREEN, "ratio": _GREEN,
    "graph known": _BLUE, "(d,s)": _BLUE, "(d,d)": _RED, "(s,d)": _YELLOW, "learned": _PURPLE,
    "univariate": _BLUE, "linear": _RED, "1 hidden layer": _GREEN, "4 hidden layers": _ORANGE,
    "2 hidden layers": _PURPLE, "univariate, tables": _BLUE, "linear, tables": _RED,
    "1 hidden layer, tables": _GREEN, "2 hidden layers, tables": _PURPLE,
    "4 hidden layers, tables": _ORANGE,
}  # fmt: skip


def styles(results: Results) -> dict[str, Style]:
    """Return the style of each label, in the paper's colours."""
    plain, rest = style(results.algorithms, results.ours), iter(_REST * 5)
    looks = {}
    for label, look in plain.items():
        mine = _COLOURS.get(label)
        line = (0, (5, 1.5)) if label.endswith(", tables") else "-"
        looks[label] = replace(
            look, colour=mine or next(rest), line=line, width=2.6 if mine == _GREEN else 1.6
        )
    return looks


def draw(name: str, folder: Folder, to: Path) -> list[Path]:
    """Draw a figure of the paper into a folder; return its files, none if there are no runs."""
    results, path = folder.results(name), to / f"{name}.png"
    if not results.cells:
        return []
    if name == "figure-dropout":
        return [
            dropout(results, row, to / f"{name}-{row.replace(' ', '-')}.png")
            for row in results.distributions
        ]
    figures.convergence(results, path, styles=styles(results))
    if name == "figure-epochs":
        return [path, minutes(results, to / "figure-minutes.png")]
    apart = folder.path / "figure-orders-distances.csv.gz"
    if name == "figure-orders" and apart.is_file():
        return [path, _distances(apart, to / "figure-orders-distances.png")]
    return [path]


def _distances(file: Path, path: Path) -> Path:
    from anyorder.bench import curves

    found = curves.read(file)
    figures.distance(
        {label: (cell.grid, cell.curves) for (_, label), cell in found.cells.items()}, path,
        title=found.distributions[0], styles=styles(found),
    )  # fmt: skip
    return path


def dropout(results: Results, row: str, path: Path) -> Path:
    """Draw a panel of 16 curves for each of six kinds of order; colours are pG, lines are pT."""
    page = Page(False, (13.5, 7.4))
    panels = page.figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    lines = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
    colours = (_GREEN, _BLUE, _RED, _ORANGE)
    looks, ends, starts = {}, [], []
    for panel, kind in zip(panels, VARIANTS, strict=True):
        for g, colour in zip(DROPS, colours, strict=True):
            for t, line in zip(DROPS, lines, strict=True):
                cell = results.cells.get((row, f"{kind} pG {g:g} pT {t:g}"))
                look = Style(colour, line, "", 2.6 if (g, t) == (0, 0) else 1.2, 2.0, False)
                looks[f"pG {g:g} pT {t:g}"] = look
                if cell is None:
                    continue
                mean = cell.curves.mean(axis=0)
                ends.append(mean[-1])
                starts.append(mean[len(mean) // 20])
                panel.plot(
                    cell.grid, mean, color=colour, linestyle=line, linewidth=look.width,
                    zorder=3 if look.width > 2 else 2,
                )  # fmt: skip
        page.dress(panel, kind, "evaluations" if panel in panels[3:] else "")
    panels[0].set_ylim(min(starts), max(ends) + 0.03 * (max(ends) - min(starts)))
    panels[0].set_xlim(0, reproduce.find("figure-dropout").budget)
    page.count(panels[0])  # and those of the other panels, which share the axis
    page.figure.supylabel(f"mean best value, {plain_label(row)}", color=page.ink, fontsize=10)
    page.legend(looks)
    page.save(path)
    return path


def minutes(results: Results, path: Path) -> Path:
    """Draw the minutes that 100 runs take against the number of epochs, and those of the paper."""
    # minutes on one V100, from the paper's text
    theirs = {1: 5, 5: 6, 10: 8, 20: 11, 50: 20, 100: 35}
    page = Page(False, (6.4, 4.2))
    axes = page.figure.subplots()
    axes.plot(list(theirs), list(theirs.values()), "o-", color=_GREY, label="paper, one V100")
    for row, colour in zip(results.distributions, (_GREEN, _BLUE), strict=False):
        ours = {
            int(label.partition(" ")[2]): float(cell.seconds.mean()) * 100 / 60
            for label, cell in results.row(row).items()
        }
        axes.plot(list(ours), list(ours.values()), "s-", color=colour, label=f"ours, {row}")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    page.dress(axes, "100 runs of 10,000 evaluations", "epochs E", "minutes")
    axes.legend(frameon=False, labelcolor=page.ink)
    page.save(path)
    return path


# --- figures that need no runs --------------------------------------------------------------------


def binomial(n: int, p: float) -> Floats:
    """Return P(k inputs are available), k < n, if each of n - 1 is dropped with p; no orders."""
    chances = [math.comb(n - 1, k) * p ** (n - 1 - k) * (1.0 - p) ** k for k in range(n)]
    return np.array(chances)


def with_orders(n: int, p: float) -> Floats:
    """Return `binomial` for dropout of the inputs before a variable in a uniform random order.

    It is the mean of the binomials over places in the order, which equals the paper's closed form
    with an incomplete beta function.
    """
    total = np.zeros(n)
    for place in range(1, n + 1):
        total[:place] += binomial(place, p)
    return total / n


def available(path: Path, n: int = 100) -> Path:
    """Draw the probability of k available inputs, with dropout only, and with orders as well."""
    page = Page(False, (10.5, 4.0))
    left, right = page.figure.subplots(1, 2)
    kinds: tuple[tuple[Any, str, Callable[[int, float], Floats]], ...] = (
        (left, "dropout only", binomial),
        (right, "dropout and orders", with_orders),
    )
    for axes, title, chances in kinds:
        for p, colour in zip((0.0, 0.25, 0.5, 0.75), (_GREEN, _BLUE, _RED, _ORANGE), strict=True):
            axes.plot(range(n), chances(n, p), color=colour, label=f"p = {p:g}")
        page.dress(axes, f"{title}, n = {n}", "available inputs k", "probability")
        axes.set_ylim(0, 0.15 if axes is left else 0.06)
        axes.legend(frameon=False, labelcolor=page.ink)
    page.save(path)
    return path


def diagram(path: Path) -> Path:
    """Draw how two candidates of three variables are generated, and what the model learns."""
    page = Page(False, (12.5, 5.6))
    left, right = page.figure.subplots(1, 2, width_ratios=(3, 2))
    # for each candidate: its order; the inputs of a network, its variable and the value; the point
    steps = (
        ((3, 1, 2), (("?", "?", "?"), ("?", "?", "1"), ("-1", "?", "1")), ("-1", "-1", "1")),
        ((2, 3, 1), (("?", "?", "?"), ("?", "1", "?"), ("?", "1", "1")), ("1", "1", "1")),
    )
    box = {"boxstyle": "round,pad=0.4", "facecolor": "#eef3fb", "edgecolor": _BLUE}
    done = {**box, "facecolor": "#edf7ed", "edgecolor": _GREEN}
    arrow = {"arrowstyle": "->", "color": _GREY, "shrinkA": 0, "shrinkB": 0}
    for k, (order, seen, point) in enumerate(steps):
        y = 0.72 - 0.46 * k
        names = ", ".join(f"$x_{v}$" for v in order)
        left.text(0.0, y + 0.18, f"candidate {k + 1}, its order is {names}", fontsize=11,
                  color=page.ink)  # fmt: skip
        for j, (variable, known) in enumerate(zip(order, seen, strict=True)):
            x = 0.115 + 0.255 * j
            left.text(x, y, f"sees ({', '.join(known)})\n$g_{variable}$ draws $x_{variable}$ = "
                      f"{point[variable - 1]}", fontsize=10, bbox=box, color=page.ink, ha="center",
                      va="center", linespacing=1.6)  # fmt: skip
            left.annotate("", (x + 0.15, y), (x + 0.112, y), arrowprops=arrow)
        left.text(0.9, y, f"x = ({', '.join(point)})\nrank {k} by f(x)\nA = {1 - 2 * k:+d}",
                  fontsize=10, bbox=done, color=page.ink, ha="center", va="center",
                  linespacing=1.6)  # fmt: skip
    left.text(0.0, 0.02, "?: hidden, since it is drawn later", fontsize=9, color=page.ink)
    trained = (
        "1. Every candidate gets a new order, such as $x_1$, $x_3$, $x_2$:",
        "    $g_1$ sees nothing, $g_3$ sees $x_1$, $g_2$ sees $x_1$ and $x_3$.",
        "2. The sum over candidates and variables is taken of",
        r"    $A \;\dfrac{\mathrm{probability\ now}}{\mathrm{probability\ when\ drawn}}"
        r" \;-\; \beta\;\mathrm{KL}$ of the two distributions.",
        "3. Adam moves every network one step upwards.",
    )
    for y, text in zip((0.82, 0.72, 0.56, 0.40, 0.22), trained, strict=True):
        right.text(0.0, y, text, fontsize=11, color=page.ink, va="center")
    titles = "Generation: a network for each variable", "Update: in each of E epochs"
    for axes, title in zip((left, right), titles, strict=True):
        page.dress(axes, title)
        axes.set_axis_off()
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
    page.save(path)
    return path


FREE: Mapping[str, Callable[[Path], Path]] = {
    "figure-available": available,
    "figure-diagram": diagram,
}

__all__ = ["FREE", "available", "binomial", "diagram", "draw", "dropout", "minutes", "styles",
           "with_orders"]  # fmt: skip
