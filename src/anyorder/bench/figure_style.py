"""Styles of figures: colours, lines and markers of algorithms, axes, legends and labels."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anyorder._internal.checks import require
from anyorder.bench import results as measured
from anyorder.plotting.runs import COLOURS
from anyorder.strategies.policy.config import PRESETS

Path = str | os.PathLike[str] | None

# Okabe and Ito's colours, which are distinct for any colour vision. Blue is this library's. Black
# is replaced by grey, since it would be invisible on a dark background.
_OURS = (COLOURS[0], COLOURS[5])
_OTHERS = (COLOURS[1], COLOURS[2], COLOURS[3], COLOURS[4], "#808080")
_LINES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
_MARKERS = "os^DvPX<>*hpd8H"
_LONGEST = 40  # the most characters of a label


@dataclass(frozen=True)
class Style:
    """How an algorithm is drawn; a higher `order` is drawn on top."""

    colour: str
    line: Any
    marker: str
    width: float
    order: float
    ours: bool

    @property
    def plot(self) -> dict[str, Any]:
        """The arguments of Matplotlib's `plot`."""
        return {
            "color": self.colour, "linestyle": self.line, "marker": self.marker,
            "linewidth": self.width, "zorder": self.order, "markersize": 6 if self.ours else 4.5,
            "markeredgewidth": 0,
        }  # fmt: skip


def style(labels: Iterable[str], ours: Collection[str] | None = None) -> dict[str, Style]:
    """Choose the style of each algorithm, by label; `ours` as in `Results`.

    Algorithms of this library are thick, on top, and blue; the presets of the policy look the same
    in every figure. The others take colour, line and marker by their order; up to 20 of them are
    all different. If all algorithms are this library's, those that are no presets take colours of
    the others. To give an algorithm the same style in all figures, pass the styles of all
    algorithms.
    """
    all_labels = list(dict.fromkeys(labels))
    mine = measured.ours(all_labels) if ours is None else set(ours)
    rest = _OURS if set(all_labels) - mine else _OTHERS
    fixed = {name: k for k, name in enumerate(PRESETS)}
    styles: dict[str, Style] = {}
    others, more = 0, len(fixed)
    for label in all_labels:
        if label in mine:
            preset = measured.preset_of(label)
            # another label of a preset that was seen before
            k = more if preset is None else fixed.pop(preset, more)
            styles[label] = _look(_OURS if k < more else rest, k, 2.6, 4.0 - 0.01 * k, True)
            more += k == more
        else:
            styles[label] = _look(_OTHERS, others, 1.3, 3.0 - 0.01 * others, False)
            others += 1
    return styles


def _look(colours: tuple[str, ...], k: int, width: float, order: float, ours: bool) -> Style:
    line = _LINES[k // len(colours) % len(_LINES)]
    return Style(colours[k % len(colours)], line, _MARKERS[k % len(_MARKERS)], width, order, ours)


class Page:
    """A figure with its colours and its legend, which can be written to a file."""

    def __init__(self, dark: bool, size: tuple[float, float] = (8.6, 4.6)) -> None:
        figures = require("matplotlib.figure", "plot", "figures require Matplotlib")
        self.ink, self.ground = ("#d8d8d8", "#16181c") if dark else ("#222222", "#ffffff")
        self.figure = figures.Figure(figsize=size, layout="constrained", facecolor=self.ground)

    def dress(self, axes: Any, title: str | None, xlabel: str = "", ylabel: str = "") -> None:
        """Set the colours, the title and the labels of axes."""
        axes.set_facecolor(self.ground)
        axes.set_axisbelow(True)
        axes.grid(color="#808080", alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[:].set_color("#808080")
        axes.tick_params(colors=self.ink, labelsize=9)
        axes.tick_params(which="both", color="#808080")
        axes.set_xlabel(xlabel, color=self.ink)
        axes.set_ylabel(ylabel, color=self.ink)
        if title is not None:
            axes.set_title(title, loc="left", fontsize=11, color=self.ink)

    def count(self, axes: Any) -> None:
        """Write numbers of evaluations at a linear or logarithmic axis as 1, 10, 1,000."""

        def written(x: float, _: object) -> str:
            low, high = axes.get_xlim()
            return f"{x:,.10g}" if low <= x <= high else ""

        axes.xaxis.set_major_formatter(written)

    def legend(self, looks: Mapping[str, Style]) -> None:
        """Add a legend beside the axes."""
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], label=short_label(label), **s.plot) for label, s in looks.items()]
        self.figure.legend(
            handles=handles, loc="outside right upper", frameon=False, labelcolor=self.ink,
            fontsize=9, handlelength=3.2,
        )  # fmt: skip

    def save(self, path: Path) -> Any:
        """Write the figure to a file, or return it if there is no path."""
        if path is None:
            return self.figure
        self.figure.savefig(path, dpi=150)
        return None


def plain_label(label: str) -> str:
    """Return a label on one line, with dollars escaped: Matplotlib would read mathematics."""
    return " ".join(label.split()).replace("$", r"\$")


def short_label(label: str) -> str:
    """Return `plain_label`, shortened in the middle if long: labels differ at their ends."""
    text = " ".join(label.split())
    return plain_label(text if len(text) <= _LONGEST else f"{text[:20]}…{text[-19:]}")
