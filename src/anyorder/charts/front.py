"""The values of several objectives: all evaluations, and the front."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from anyorder.archive.history import History
from anyorder.archive.hypervolume import NonDominated
from anyorder.charts.base import LINES, Figure, axis, escape, figure, limits, note, numbers, thin

_MOST_HOVERED = 400  # the most points of a front whose variables are shown on hovering


def front(history: History) -> Figure:
    """Return the figure of the values of all evaluations and of the front.

    With three objectives or more, the first two of them are drawn, with all points of the front.
    """
    objectives = history.objectives
    if objectives is None:
        return note("One objective has no front.")
    values, rows = measured(history)
    if not len(values):
        return note("No evaluation has a value yet.")
    best = front_rows(history)
    first, second = next(combinations(range(len(objectives)), 2))
    x, y = values[:, first], values[:, second]
    order = np.argsort(x, kind="stable")
    some = order[thin(x[order], y[order])]
    ends = values[np.isin(rows, best)]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "markers", "x": numbers(x[some]), "y": numbers(y[some]),
            "name": "evaluations", "marker": {"color": LINES[0], "size": 4}, "opacity": 0.3,
            "hoverinfo": "x+y",
        },
        {
            "type": "scatter", "mode": "lines+markers" if len(objectives) == 2 else "markers",
            "x": numbers(history.values[best, first]), "y": numbers(history.values[best, second]),
            "name": f"front of {len(best)}", "line": {"color": LINES[1], "shape": _shape(history)},
            "marker": {"color": LINES[1], "size": 7}, "hoverinfo": "x+y+text",
            "hovertext": [
                escape(history.space.brief(codes), 200)
                for codes in history.codes_at(best[:_MOST_HOVERED])
            ],
        },
    ]  # fmt: skip
    titles = [
        escape(f"{name} ({way})")
        for name, way in zip(objectives.names, objectives.directions, strict=True)
    ]
    return figure(
        data, axis(titles[first], limits(x, ends[:, first].tolist())),
        axis(titles[second], limits(y, ends[:, second].tolist())), showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )  # fmt: skip


def _shape(history: History) -> str:
    """Return the shape of a front's line: steps, as no value between two points is reached."""
    assert history.objectives is not None
    return "vh" if history.objectives.directions[0] == "max" else "hv"


def measured(history: History) -> tuple[Any, Any]:
    """Return the values of all entries that have values, and which entries these are."""
    values = np.asarray(history.values)
    rows = np.flatnonzero(~np.isnan(values).any(axis=1))
    return values[rows], rows


def front_rows(history: History) -> Any:
    """Return the entries on the front, sorted by the first objective."""
    assert history.objectives is not None
    values, rows = measured(history)
    found = NonDominated(len(history.objectives))
    for row, one in zip(rows.tolist(), values * history.objectives.signs, strict=True):
        found.add(row, one)
    items = np.array(found.items, np.intp)
    return items[np.argsort(history.values[items, 0], kind="stable")]
