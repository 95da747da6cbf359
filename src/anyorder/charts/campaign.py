"""Figures of a campaign in Plotly's format, without numbers: the page inserts the chosen ones.

A report shows any of its algorithms on any of its distributions after any number of evaluations.
This module therefore makes the traces of an algorithm and the axes of each figure; the page holds
the numbers once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anyorder.charts.base import MARKERS, Figure, axis, escape, figure, log_axis

_SHARES = "share of (run, target) pairs reached"
_MARKS = 8  # the most markers on a curve
_LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}


def traces(
    label: str, colour: str, dashes: Sequence[float], marker: str, width: float
) -> dict[str, dict[str, Any]]:
    """Return the traces of an algorithm: its curve, the band around it, marks `beyond` the axis.

    `dashes` are lengths of strokes and gaps in pixels, empty for a solid line; `marker` is one of
    Matplotlib's. The last trace marks, at the edge, a curve that ends beyond the axis.
    """
    name = escape(label)
    dash = ",".join(f"{length:g}px" for length in dashes) or "solid"
    symbol = MARKERS[marker]
    common = {"type": "scatter", "legendgroup": name, "name": name}
    return {
        "curve": {
            **common, "mode": "lines+markers", "hovertemplate": "%{text}",
            "line": {"color": colour, "width": width, "dash": dash},
            "marker": {"symbol": symbol, "color": colour, "size": 5 + width,
                       "maxdisplayed": _MARKS},
        },
        "band": {
            **common, "mode": "lines", "fill": "toself", "fillcolor": _faint(colour),
            "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False,
        },
        "beyond": {
            **common, "mode": "markers", "hovertemplate": "beyond the axis: %{text}",
            "marker": {"symbol": "triangle-down-open", "color": colour, "size": 10},
            "cliponaxis": False, "showlegend": False,
        },
    }  # fmt: skip


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"


def convergence() -> Figure:
    """Return the figure of mean best values; `axes` makes the axes of each distribution."""
    return figure([], {}, {}, hovermode="x unified", showlegend=True, legend=_LEGEND)


def axes(start: int, budget: int, ends: tuple[float, float]) -> dict[str, dict[str, Any]]:
    """Return the axes of convergence: `x` from 0 to the budget, `log` from `start` on, and `y`.

    `ends` are the lowest and the highest value, which determine how numbers are written.
    """
    y = axis("mean best value", ends)
    del y["range"]  # depends on what is chosen
    return {
        "x": axis("evaluations", (0.0, 1.01 * budget), hoverformat=",d", type="linear"),
        "log": {**log_axis("evaluations", start, budget), "hoverformat": ",d"},
        "y": y,
    }


def ecdf(start: int, end: int) -> Figure:
    """Return the figure of the share of targets that have been reached."""
    return figure(
        [], {**log_axis("evaluations", start, end), "hoverformat": ",d"},
        axis(_SHARES, (0.0, 1.0)), hovermode="x unified", showlegend=True, legend=_LEGEND,
    )  # fmt: skip


def critical() -> Figure:
    """Return the figure of mean ranks; bars overlap where ranks do not differ significantly.

    Its only trace is the mark of one algorithm.
    """
    dot = {
        "mode": "markers+text", "textposition": "top center", "cliponaxis": False,
        "showlegend": False, "hoverinfo": "skip", "hovertemplate": "",
        "error_x": {"type": "constant", "thickness": 2, "width": 5},
    }  # fmt: skip
    return figure([dot], axis("mean rank, 1 is the best", rangemode="normal"), {"title": {}})
