"""Figures of one variable and of the best points: values over time, and values against results."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.archive.history import History
from anyorder.charts.base import (
    LINES,
    Figure,
    axis,
    clean,
    escape,
    figure,
    named_axis,
    note,
    numbers,
)
from anyorder.charts.runs import heat, names_of
from anyorder.charts.shares import shares_of_variance
from anyorder.plotting.runs import limits
from anyorder.space import Space, Subset
from anyorder.space.lists import List

_WINDOWS, _ROWS = 60, 24  # the most cells of a picture over time
_BLOCK = 4_096  # so many entries are unpacked at a time
_AXES = 12  # the most variables on parallel coordinates
ABSENT = "absent"

Codes = npt.NDArray[np.int32]


def variable_names(space: Space) -> list[str]:
    """Return the names of the variables; a list counts as one."""
    return list(space.names or (f"x{k}" for k in range(len(space.variables))))


def values_over_time(history: History, which: int) -> Figure:
    """Return the figure that shows when each value of a variable was tried.

    For a subset it shows how often each item was chosen, for a permutation which item was at each
    place on average.
    """
    rows = np.flatnonzero(~history.cached)
    if not len(rows):
        return note("Nothing has been evaluated yet.")
    space, kind = history.space, history.space.variables[which]
    own, here = _codes_of(history, rows, which)
    window = np.arange(len(rows)) * min(len(rows), _WINDOWS) // len(rows)
    if not isinstance(kind, List):
        names, level = _rows(space, _first(space, which), own[:, 0])
        if not here.all():
            names, level = [*names, ABSENT], np.where(here, level, len(names))
        cells = _table(window, level, len(names))
        trace = heat(cells / cells.sum(axis=0), 1.0, "share of candidates")
    else:
        names = [str(item) for item in kind.items]
        if isinstance(kind, Subset):
            trace = heat(_means(window, own == 1, here), 1.0, "share of candidates that have it")
        else:
            place = _places(own, len(names))
            trace = heat(_means(window, place, here), float(own.shape[1]), "mean place")
    each = len(rows) / (int(window[-1]) + 1)
    trace |= {"x0": each / 2, "dx": each}
    return figure([trace], axis("evaluations"), named_axis("", names))


def values_against_result(history: History, which: int) -> Figure:
    """Return the figure of the results of each value of a variable: quartiles and extremes.

    For a subset it shows results with and without each item, for a permutation those of each item
    at each place.
    """
    rows = np.flatnonzero(~history.cached & np.isfinite(history.values))
    if not len(rows):
        return note("No evaluation has a value yet.")
    space, kind, y = history.space, history.space.variables[which], history.values[rows]
    own, here = _codes_of(history, rows, which)
    if isinstance(kind, List) and not isinstance(kind, Subset):
        return _by_place(own[here], y[here], [str(item) for item in kind.items])
    groups: list[tuple[str, npt.NDArray[np.float64]]]
    if isinstance(kind, List):
        pairs = [(str(item), own[:, k] == 1) for k, item in enumerate(kind.items)][:_ROWS]
        groups = [(f"{word} {item}", y[here & (has == want)]) for item, has in pairs
                  for word, want in (("with", True), ("without", False))]  # fmt: skip
    else:
        names, level = _rows(space, _first(space, which), own[:, 0])
        groups = [(name, y[here & (level == k)]) for k, name in enumerate(names)]
    groups += [(ABSENT, y[~here])] if not here.all() else []
    best = float(y.max() if history.maximized else y.min())
    ends = limits(y, [best])
    shown = [np.quantile(np.clip(part, *ends), [0, 0.25, 0.5, 0.75, 1]) if len(part) else None
             for _, part in groups]  # fmt: skip
    there = [k for k, part in enumerate(shown) if part is not None]
    parts = np.array([shown[k] for k in there])
    trace = {
        "type": "box", "x": there, "lowerfence": numbers(parts[:, 0]), "q1": numbers(parts[:, 1]),
        "median": numbers(parts[:, 2]), "q3": numbers(parts[:, 3]),
        "upperfence": numbers(parts[:, 4]), "line": {"color": LINES[0], "width": 1.5},
        "fillcolor": "rgba(0,114,178,0.25)", "hoverinfo": "y",
    }  # fmt: skip
    counts = {
        "type": "scatter", "mode": "text", "x": there, "y": [clean(ends[1])] * len(there),
        "text": [f"{len(groups[k][1]):,}" for k in there], "hoverinfo": "skip", "cliponaxis": False,
        "textfont": {"size": 9},
    }  # fmt: skip
    few = [counts] if len(there) <= _ROWS else []
    return figure([trace, *few], named_axis("", [name for name, _ in groups], tickangle=-30),
                  axis("value (above: evaluations)" if few else "value", ends))  # fmt: skip


def _by_place(own: Codes, y: npt.NDArray[np.float64], names: list[str]) -> Figure:
    """Return the mean result of each item in each place."""
    if not len(y):
        return note("No point with a value has it.")
    ends = limits(y)
    y = np.clip(y, *ends)
    cells = np.full((len(names), own.shape[1]), np.nan)
    for place in range(own.shape[1]):
        count = np.bincount(own[:, place], minlength=len(names))[: len(names)]
        total = np.bincount(own[:, place], y, minlength=len(names))[: len(names)]
        cells[:, place] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    trace = heat(cells, 1.0, "mean value")
    trace |= {"zmin": clean(float(np.nanmin(cells))), "zmax": clean(float(np.nanmax(cells)))}
    return figure([trace], axis("place"), named_axis("item", names))


def _first(space: Space, which: int) -> int:
    """Return the number of a variable's first column."""
    return sum(len(variable.columns()) for variable in space.variables[:which])


def _codes_of(
    history: History, rows: npt.NDArray[np.intp], which: int
) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """Return the codes of a variable in entries of a history, and where it is present.

    A few entries are unpacked at a time: all columns of all entries may be gigabytes.
    """
    space = history.space
    first = _first(space, which)
    own = np.empty((len(rows), len(space.variables[which].columns())), np.int32)
    here = np.ones(len(rows), np.bool_)
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        codes = history.codes_at(rows[part])
        own[part] = codes[:, first : first + own.shape[1]]
        if space.conditional:
            here[part] = space.present(codes)[:, first]
    return own, here


def _places(own: Codes, items: int) -> npt.NDArray[np.float64]:
    """Return the mean place of each item in each row; NaN where it is absent."""
    places = np.zeros((len(own), items))
    count = np.zeros((len(own), items))
    for place in range(own.shape[1]):
        np.add.at(places, (np.arange(len(own)), own[:, place]), place)
        np.add.at(count, (np.arange(len(own)), own[:, place]), 1)
    return np.where(count > 0, places / np.maximum(count, 1), np.nan)


def _rows(
    space: Space, column: int, codes: npt.NDArray[np.int32]
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the names of the rows of a variable, and the row of each code.

    A row is a value, or a range of values if an ordered variable has many. If an unordered variable
    has many values, the most frequent ones have a row each, and the others share one.
    """
    variable = space.columns[column]
    count = len(variable)
    if count <= _ROWS:
        return [str(value) for value in variable.values], codes.astype(np.int64)
    if space.ordered[column]:
        edges = [count * k // _ROWS for k in range(_ROWS + 1)]
        names = [
            str(variable.values[a]) if b - a == 1
            else f"{variable.values[a]} to {variable.values[b - 1]}"
            for a, b in pairwise(edges)
        ]  # fmt: skip
        return names, np.searchsorted(edges[1:-1], codes, side="right")
    found, counts = np.unique(codes, return_counts=True)
    often = np.sort(found[np.argsort(-counts, kind="stable")[: _ROWS - 1]])
    rows = np.searchsorted(often, codes)
    hit = often[np.minimum(rows, len(often) - 1)] == codes
    return [*(str(variable.values[k]) for k in often), "others"], np.where(hit, rows, len(often))


def _table(
    window: npt.NDArray[np.int64], level: npt.NDArray[np.int64], rows: int
) -> npt.NDArray[np.int64]:
    """Return the number of entries in each row of each window."""
    width = int(window[-1]) + 1
    return np.bincount(level * width + window, minlength=rows * width).reshape(rows, width)


def _means(
    window: npt.NDArray[np.int64], values: npt.NDArray[Any], here: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Return the means of columns over each window, of the rows that are `here`, or NaN."""
    means = np.full((values.shape[1], int(window[-1]) + 1), np.nan)
    for k in range(means.shape[1]):
        if len(some := values[(window == k) & here]):
            means[:, k] = np.nanmean(some, axis=0)
    return means


def parallel(
    history: History, rows: npt.NDArray[np.intp], shares: npt.NDArray[np.float64] | None = None
) -> Figure:
    """Return parallel coordinates: each point is a line across the variables that matter most.

    Every axis goes from the first value of its variable to the last; a line has a gap where its
    point lacks the variable. The last axis is the value.

    Parameters
    ----------
    rows
        Entries of the history, best first.
    shares
        What `shares_of_variance` returns for the history, if it has been computed already.
    """
    if not len(rows):
        return note("No evaluation has a value yet.")
    space, codes, y = history.space, history.codes[rows], history.values[rows]
    shares = np.nan_to_num(shares_of_variance(history) if shares is None else shares)
    some = np.sort(np.argsort(-shares, kind="stable")[:_AXES])
    all_names = names_of(space)
    heights = codes[:, some] / np.maximum(1, space.cardinalities[some] - 1)
    if space.conditional:
        heights = np.where(space.present(codes)[:, some], heights, np.nan)
    low, high = (float(x) for x in np.clip([y.min(), y.max()], -1e300, 1e300))
    last = np.clip((y / 2 - low / 2) / (high / 2 - low / 2), 0, 1) if high > low else y * 0 + 0.5
    heights = np.column_stack([heights, last])
    names = [*(all_names[k] for k in some), "value"]
    places = list(range(len(names)))
    data = []
    for k in range(len(rows))[::-1]:  # the best point is drawn on top
        values = [*_texts(space, codes[k], some), f"{y[k]:.6g}"]
        data.append({
            "type": "scatter", "mode": "lines+markers", "x": places, "y": numbers(heights[k], 4),
            "line": {"color": _shade(k / max(1, len(rows) - 1)), "width": 2.5 if k == 0 else 1.2},
            "marker": {"size": 5}, "name": f"rank {k + 1}", "hoverinfo": "text",
            "hovertext": [f"rank {k + 1}, {escape(n)}: {escape(v)}"
                          for n, v in zip(names, values, strict=True)],
        })  # fmt: skip
    more = (
        f"the {_AXES} variables that explain most, and the value" if len(some) < len(space) else ""
    )
    ends = [
        (column.values[0], column.values[-1]) for column in map(space.columns.__getitem__, some)
    ]
    return figure(
        data, named_axis(more, names, range=[-0.4, len(names) - 0.6], tickangle=-30),
        axis("", (-0.09, 1.09), showticklabels=False, showgrid=False),
        annotations=_ends([*ends, (f"{low:.4g}", f"{high:.4g}")]),
        dragmode="select", selectdirection="any", newselection={"line": {"color": "#808080"}},
    )  # fmt: skip


def _ends(pairs: list[tuple[Any, Any]]) -> list[dict[str, Any]]:
    """Return the annotations at the lower and the upper ends of axes."""
    return [
        {"x": place, "y": y, "yanchor": anchor, "text": escape(value, 9), "showarrow": False,
         "font": {"size": 10}, "captureevents": False, "yshift": shift}
        for place, pair in enumerate(pairs)
        for value, y, anchor, shift in zip(pair, (0, 1), ("top", "bottom"), (-3, 3), strict=True)
    ]  # fmt: skip


def _texts(space: Space, codes: Codes, some: npt.NDArray[np.intp]) -> list[str]:
    return [str(space.columns[k].values[codes[k]]) for k in some.tolist()]


def _shade(share: float) -> str:
    """Return a colour from our blue for 0 to orange for 1, which is from dark to light in grey."""
    ends = ((0, 0x72, 0xB2), (0xE6, 0x9F, 0))
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(*ends, strict=True))
