"""Tools for all charts: figures as plain dicts in Plotly's format, escaped, with readable axes.

A figure is `{"data": [...], "layout": {...}}` with lists, numbers, text and None, which JSON can
hold.
Plotly itself is not imported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.plotting.runs import COLOURS, limits

Figure = dict[str, Any]
Floats = npt.NDArray[np.float64]

# Black is invisible on a dark page; grey is visible on dark and light ones.
LINES = tuple("#808080" if colour == "#000000" else colour for colour in COLOURS)
# Matplotlib's markers, by Plotly's names.
MARKERS = {
    "o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down",
    "P": "cross", "X": "x", "<": "triangle-left", ">": "triangle-right", "*": "star",
    "h": "hexagon", "p": "pentagon", "d": "diamond-tall", "8": "octagon", "H": "hexagon2",
}  # fmt: skip
# From white through our blue to nearly black, in order of lightness, as in the Matplotlib figures.
SHADES = ([0, "#FFFFFF"], [1 / 3, "#A6CBE3"], [2 / 3, "#0072B2"], [1, "#001A2E"])
# Settings for all pages: nothing is sent anywhere, and there is no logo or link.
CONFIG = {
    "displaylogo": False, "showSendToCloud": False, "showLink": False,
    "showEditInChartStudio": False, "responsive": True, "displayModeBar": False,
}  # fmt: skip

LONGEST = 40  # the most characters of a name or a value
PIXELS = 600  # thinned curves have so many columns
LARGEST = 1e300  # larger values are drawn as this one
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}


def escape(text: object, longest: int = LONGEST) -> str:
    """Return text that Plotly shows unchanged: Plotly reads some HTML, and TeX between dollars.

    Long text is cut in the middle, and characters that cannot be printed are escaped.
    """
    words = " ".join(str(text).split())
    if len(words) > longest:
        half = longest // 2
        words = f"{words[:half]}…{words[half + 1 - longest :]}"
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
    return "".join(_ENTITIES.get(c, c) for c in "".join(shown))


def figure(
    data: Sequence[Mapping[str, Any]], x: Mapping[str, Any], y: Mapping[str, Any], **layout: Any
) -> Figure:
    """Return a figure with these traces and axes, on the background of its page."""
    clear = "rgba(0,0,0,0)"
    plain = {"automargin": True, "zeroline": False, "gridcolor": "rgba(128,128,128,0.25)",
             "linecolor": "#808080"}  # fmt: skip
    return {
        "data": [dict(trace) for trace in data],
        "layout": {
            "paper_bgcolor": clear, "plot_bgcolor": clear, "hovermode": "closest",
            "font": {"size": 12}, "margin": {"l": 60, "r": 16, "t": 28, "b": 44},
            "showlegend": False, "xaxis": {**plain, **x}, "yaxis": {**plain, **y}, **layout,
        },
    }  # fmt: skip


def note(text: str) -> Figure:
    """Return a figure without axes that says why there is nothing to draw."""
    hidden = {"visible": False}
    said = {"text": escape(text, 400), "showarrow": False, "xref": "paper", "yref": "paper",
            "x": 0.5, "y": 0.5}  # fmt: skip
    return figure([], hidden, hidden, annotations=[said])


def is_note(made: Figure) -> bool:
    """Return whether a figure only says why there is nothing to draw, as made by `note`."""
    return not made["data"]


def axis(title: str, ends: tuple[float, float] | None = None, **more: Any) -> dict[str, Any]:
    """Return a linear axis with plain numbers, 10,000 rather than 10k."""
    made: dict[str, Any] = {"title": {"text": title}, "tickformat": ",~r", **more}
    if ends is not None:
        size = max(map(abs, ends))
        if size >= 1e9 or 0 < size < 1e-4:
            made |= {"tickformat": "~g", "exponentformat": "e"}
        made["range"] = [clean(ends[0]), clean(ends[1])]
    return made


def log_axis(title: str, low: float, high: float) -> dict[str, Any]:
    """Return a logarithmic axis with ticks at 1, 10, 100, 1,000; on a short one at 1, 2, 5, too."""
    leads = (1,) if high / low > 300 else (1, 2, 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [m * 10.0**p for p in powers for m in leads if low <= m * 10.0**p <= high * (1 + 1e-9)]
    ends = [math.log10(low), math.log10(high)] if high > low else None
    return {"title": {"text": title}, "type": "log", "range": ends, "tickvals": ticks,
            "ticktext": [f"{tick:,.10g}" for tick in ticks]}  # fmt: skip


def named_axis(title: str, names: Sequence[object], **more: Any) -> dict[str, Any]:
    """Return an axis whose positions 0, 1, 2, ... have names; if there are many, some are shown.

    Names are never read as numbers or dates.
    """
    step = max(1, -(-len(names) // 40))
    places = list(range(0, len(names), step))
    texts = [escape(names[k], 18) for k in places]
    return {"title": {"text": title}, "tickvals": places, "ticktext": texts, **more}


def clean(value: float, digits: int = 6) -> float | None:
    """Return a number rounded to some digits, as JSON can hold it: None for NaN."""
    if math.isnan(value):
        return None
    return float(f"{min(max(value, -LARGEST), LARGEST):.{digits}g}")


def numbers(values: npt.ArrayLike, digits: int = 6) -> list[float | int | None]:
    """Return numbers rounded to some digits, as JSON can hold them: None for NaN."""
    found = np.asarray(values)
    if found.dtype.kind in "iub":
        return [int(x) for x in found.tolist()]
    short = (clean(x, digits) for x in found.astype(np.float64).tolist())
    return [x if x is None or x % 1 or abs(x) > 1e15 else int(x) for x in short]


def thin(x: npt.ArrayLike, y: npt.ArrayLike, pixels: int = PIXELS) -> npt.NDArray[np.intp]:
    """Return the points of a curve that suffice to draw it as it looks with all points.

    They are the first, last, lowest and highest point in each of `pixels` columns; x must not
    decrease. A curve of few points keeps all of them.
    """
    across, height = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(across) <= 4 * pixels:
        return np.arange(len(across))
    width = across[-1] - across[0]
    column = np.zeros(len(across), np.int64)
    if width > 0:
        column = np.minimum((across - across[0]) / width * pixels, pixels - 1).astype(np.int64)
    kept = [np.flatnonzero(np.diff(column, prepend=-1)),
            np.flatnonzero(np.diff(column, append=pixels))]  # fmt: skip
    for key in (np.nan_to_num(height, nan=np.inf, posinf=LARGEST, neginf=-LARGEST),
                -np.nan_to_num(height, nan=-np.inf, posinf=LARGEST, neginf=-LARGEST)):  # fmt: skip
        order = np.lexsort((key, column))
        kept.append(order[np.flatnonzero(np.diff(column[order], prepend=-1))])
    return np.unique(np.concatenate(kept))


def beyond(
    x: Floats,
    y: Floats,
    ends: tuple[float, float],
    colour: str,
    texts: Sequence[str] | None = None,
    most: int = PIXELS,
) -> list[dict[str, Any]]:
    """Return traces that mark, at the edge, points beyond the ends of the vertical axis."""
    traces = []
    for symbol, out, edge in (("triangle-up", y > ends[1], ends[1]),
                              ("triangle-down", y < ends[0], ends[0])):  # fmt: skip
        places = np.flatnonzero(out)
        if len(places) > most:  # at most as many as there are columns
            places = places[np.unique(np.linspace(0, len(places) - 1, most).astype(np.intp))]
        if len(places):
            said = [texts[k] if texts else f"{y[k]:.6g}" for k in places.tolist()]
            traces.append({
                "type": "scatter", "mode": "markers", "x": numbers(x[places]),
                "y": [clean(edge)] * len(places), "cliponaxis": False, "showlegend": False,
                "marker": {"symbol": f"{symbol}-open", "size": 8, "color": colour},
                "name": "beyond the axis", "hoverinfo": "text",
                "hovertext": [f"beyond the axis: {text}" for text in said],
            })  # fmt: skip
    return traces


__all__ = ["Figure", "limits"]
