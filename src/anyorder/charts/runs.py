"""Figures of runs as dicts in Plotly's format; they show the data of the Matplotlib figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.archive.history import History
from anyorder.charts.base import (
    LINES,
    PIXELS,
    SHADES,
    Figure,
    axis,
    beyond,
    clean,
    escape,
    figure,
    named_axis,
    note,
    numbers,
    thin,
)
from anyorder.charts.shares import shares_of_variance
from anyorder.errors import STATUSES
from anyorder.plotting import heatmaps
from anyorder.plotting.runs import COLOURS, Curve, curve, diversity, restarts, view
from anyorder.space import Space, Subset
from anyorder.strategies.base import Strategy

_UNITS = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_MATRIX = 40  # the most variables that a matrix shows
_BARS = 400  # a timeline shows the last so many evaluations
_ENDS = {"ok": "#0072B2", "infeasible": "#E69F00"}  # other statuses are failures
_DASHES = ("solid", "dash", "dot", "dashdot")


def convergence(runs: Mapping[str, Any]) -> Figure:
    """Return the figure of best values against evaluations; `runs` as in `plotting.convergence`."""
    lines = {label: curve(run) for label, run in runs.items()}
    return _progress(lines, [line.paid for line in lines.values()], "evaluations")


def over_time(runs: Mapping[str, tuple[History, npt.NDArray[np.float64]]]) -> Figure:
    """Return the figure of best values against time, from histories and the times of their answers.

    Times are in seconds since 1970, NaN where they are not known.
    """
    lines: dict[str, Curve] = {}
    times: list[npt.NDArray[np.float64]] = []
    for label, (history, ended) in runs.items():
        known = np.flatnonzero(np.isfinite(ended))
        if not len(known):
            continue
        order = known[np.argsort(ended[known], kind="stable")]
        since = ended[order] - history.seconds[order]
        times.append(np.maximum(0.0, ended[order] - np.min(since)))
        if history.objectives is not None:
            volume = np.maximum.accumulate(history.hypervolume()[order])
            lines[label] = Curve(np.arange(1, len(order) + 1), volume, volume, (), False,
                                 what="hypervolume")  # fmt: skip
            continue
        sign = 1 if history.maximized else -1
        best = sign * np.fmax.accumulate(sign * history.values[order])
        lines[label] = Curve(np.arange(1, len(order) + 1), history.values[order], best, (),
                             True, history.maximized)  # fmt: skip
    if not lines:
        return note("When its evaluations ended was not recorded.")
    longest = max(float(t[-1]) for t in times)
    size, unit = next((entry for entry in _UNITS if longest >= 2 * entry[0]), _UNITS[-1])
    return _progress(lines, [t / size for t in times], f"{unit} since the start")


def _progress(lines: Mapping[str, Curve], places: Sequence[Any], title: str) -> Figure:
    if not any(np.isfinite(line.values).any() for line in lines.values()):
        return note("No evaluation has a value yet.")
    ends = view(list(lines.values()))
    # figures of several runs are not larger than those of one
    pixels = PIXELS // min(len(lines), 4)
    data: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    for k, ((label, line), x) in enumerate(zip(lines.items(), places, strict=True)):
        colour = LINES[k % len(LINES)]
        x = np.asarray(x, np.float64)
        if line.detailed:
            found = np.isfinite(line.values) & (np.diff(line.paid, prepend=0) > 0)
            inside = found & (line.values >= ends[0]) & (line.values <= ends[1])
            at, values = x[inside], line.values[inside]
            some = thin(at, values, pixels)
            few = len(at) < 2_000
            data.append({
                "type": "scatter", "mode": "markers", "x": numbers(at[some]),
                "y": numbers(values[some]), "name": "evaluations", "showlegend": False,
                "marker": {"color": colour, "size": 5 if few else 3},
                "opacity": 0.35 if few else 0.2, "hoverinfo": "x+y",
            })  # fmt: skip
            data += beyond(x[found], line.values[found], ends, colour, most=pixels)
        data += _best(label, x, line, colour, _DASHES[k // len(LINES) % 4], ends, pixels)
        shapes += _marks([x[place - 1] for place in line.restarts if 0 < place <= len(x)], colour)
    last = max((float(x[-1]) for x in places if len(x)), default=1.0)
    return figure(
        data, axis(title, (0.0, 1.01 * last or 1.0)),
        axis(" or ".join(sorted({line.what for line in lines.values()})), ends), shapes=shapes,
        showlegend=len(lines) > 1,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )  # fmt: skip


def _best(
    label: str, x: npt.NDArray[np.float64], line: Curve, colour: str, dash: str,
    ends: tuple[float, float], pixels: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the line of the best value so far: where it changes, and at its end."""
    there = np.flatnonzero(np.isfinite(line.best))
    if not len(there):
        return []
    changes = there[np.diff(line.best[there], prepend=math.nan) != 0]
    changes = np.unique([*changes.tolist(), there[-1]])
    changes = changes[thin(x[changes], line.best[changes], pixels)]
    drawn = np.clip(line.best[changes], *ends)
    end = there[-1:]
    name = escape(label)
    return [
        {"type": "scatter", "mode": "lines", "x": numbers(x[changes]), "y": numbers(drawn),
         "line": {"shape": "hv", "color": colour, "width": 2.5, "dash": dash}, "name": name,
         "hoverinfo": "text+name",
         "hovertext": [f"best {v:.6g}" for v in line.best[changes]]},
        {"type": "scatter", "mode": "markers", "x": numbers(x[end]),
         "y": numbers(np.clip(line.best[end], *ends)), "marker": {"color": colour, "size": 7},
         "name": name, "showlegend": False, "hoverinfo": "text",
         "hovertext": [f"best {line.best[end[0]]:.6g}"]},
        *beyond(x[end], line.best[end], ends, colour),
    ]  # fmt: skip


def _marks(places: Sequence[float], colour: str) -> list[dict[str, Any]]:
    """Return lines at the last 100 restarts of the strategy."""
    line = {"color": colour, "width": 1, "dash": "dot"}
    return [
        {"type": "line", "x0": clean(x), "x1": clean(x), "y0": 0, "y1": 1, "yref": "paper",
         "line": line, "opacity": 0.8}
        for x in map(float, places[-100:])
    ]  # fmt: skip


def generations(history: History) -> Figure:
    """Return the figure of how much candidates differ from the best of their generation."""
    data = diversity(history)
    if not len(data.generations):
        return note("There are no candidates yet.")
    some = thin(data.generations, data.shares)
    few = len(data.generations) < 40
    most = float(data.shares.max())
    trace = {
        "type": "scatter", "mode": "lines+markers" if few else "lines",
        "x": numbers(data.generations[some]), "y": numbers(data.shares[some], 4),
        "line": {"color": LINES[0], "width": 2 if few else 1.2},
    }  # fmt: skip
    return figure(
        [trace], axis("generation"),
        axis("share of values unlike the generation's best", (0.0, 1.1 * most or 1.0)),
        shapes=_marks(restarts(history), COLOURS[1]),
    )  # fmt: skip


def agreement(history: History) -> Figure:
    """Return the figure of how often candidates have the best point's values."""
    data = heatmaps.agreement(history)
    if data is None:
        return note("No candidate has a value yet.")
    width = (data.end - data.first) / data.shares.shape[1]
    names = names_of(history.space)
    trace = heat(data.shares, 1.0, "share of candidates with the best point's value")
    trace |= {"x0": data.first + width / 2, "dx": width}
    return figure([trace], axis("generation"),
                  named_axis("variable", names, autorange="reversed"))  # fmt: skip


def influence(strategy: Strategy | None, space: Space) -> Figure:
    """Return the figure of how much each variable moves when another one changes, or a note."""
    if (why := heatmaps.why_no_influence(strategy)) is not None or strategy is None:
        return note(f"{why}.")
    data = heatmaps.influence(strategy, space)
    if data is None:
        return note(f"{strategy.name} does not learn which variables interact.")
    if not data.moves.any():
        return note("No interaction has been found yet.")
    weight = data.moves.sum(axis=0) + data.moves.sum(axis=1)
    some = np.sort(np.argsort(-weight, kind="stable")[:_MATRIX])
    all_names = names_of(space)
    names = [all_names[k] for k in some]
    trace = heat(data.moves[np.ix_(some, some)], float(data.moves.max()), data.label)
    more = f" (the {_MATRIX} that interact most)" if len(some) < len(space) else ""
    return figure([trace], named_axis(f"variable that changes{more}", names),
                  named_axis("variable that moves", names, autorange="reversed"))  # fmt: skip


def heat(values: npt.NDArray[Any], most: float, title: str) -> dict[str, Any]:
    """Return the trace of a heat map; cells without data are grey."""
    return {
        "type": "heatmap", "z": [numbers(row, 3) for row in values], "zmin": 0,
        "zmax": clean(most) if most > 0 else 1, "colorscale": [list(shade) for shade in SHADES],
        "colorbar": {"title": {"text": escape(title, 80), "side": "right"}, "thickness": 12},
        "hoverongaps": False,
    }  # fmt: skip


def importance(history: History, shares: npt.NDArray[np.float64] | None = None) -> Figure:
    """Return the figure of the share of the variance that each variable explains.

    `shares` are those of the history, if they have been computed already.
    """
    shares = shares_of_variance(history) if shares is None else shares
    if np.isnan(shares).all():
        return note("Shares need at least ten different evaluations whose values differ.")
    names = names_of(history.space)
    order = np.argsort(-np.nan_to_num(shares), kind="stable")[:20][::-1]
    trace = {
        "type": "bar", "orientation": "h", "x": numbers(shares[order], 3),
        "y": list(range(len(order))), "marker": {"color": LINES[0]},
        "text": [f"{shares[k]:.0%}" for k in order], "textposition": "outside",
        "cliponaxis": False, "hoverinfo": "text",
        "hovertext": [f"{escape(names[k])}: {shares[k]:.1%}" for k in order],
    }  # fmt: skip
    more = f", the first 20 of {len(names)}" if len(names) > 20 else ""
    return figure(
        [trace],
        axis(f"share of the variance{more}", (0.0, max(0.05, 1.15 * float(np.nanmax(shares))))),
        named_axis("", [names[k] for k in order]) | {"range": [-0.6, len(order) - 0.4]},
    )  # fmt: skip


@dataclass(frozen=True)
class Evaluations:
    """The times at which evaluations began and ended, in seconds since 1970, and their statuses.

    For evaluations that are still running `now`, `ended` is NaN and the status is -1.
    """

    numbers: npt.NDArray[np.int64]
    started: npt.NDArray[np.float64]
    ended: npt.NDArray[np.float64]
    statuses: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    now: float


def workers(data: Evaluations) -> Figure:
    """Return a timeline with a bar for each evaluation; bars that overlap are in separate lanes."""
    known = np.flatnonzero(np.isfinite(data.started))
    if not len(known):
        return note("When evaluations began was not recorded.")
    order = known[np.lexsort((data.started[known], np.isnan(data.ended[known])))][-_BARS:]
    order = order[np.argsort(data.started[order], kind="stable")]
    start = data.started[order]
    stop = np.where(np.isnan(data.ended[order]), np.maximum(data.now, start), data.ended[order])
    lanes: list[float] = []  # the time from which each lane is free
    lane = np.zeros(len(order), np.int64)
    for k, (begin, end) in enumerate(zip(start, stop, strict=True)):
        free = [n for n, until in enumerate(lanes) if until <= begin + 1e-4]
        lane[k] = free[0] if free else len(lanes)
        lanes[lane[k] : lane[k] + 1] = [float(end)]
    since = float(start.min())
    longest = float(stop.max()) - since
    size, unit = next((entry for entry in _UNITS if longest >= 2 * entry[0]), _UNITS[-1])
    edge = 0.5 if len(order) < 100 else 0
    traces = []
    for status in sorted(set(data.statuses[order].tolist())):
        some = np.flatnonzero(data.statuses[order] == status)
        word = "running" if status < 0 else STATUSES[status]
        colour = "#009E73" if status < 0 else _ENDS.get(word, "#D55E00")
        said = [
            f"evaluation {data.numbers[order[k]]}, {word}, {stop[k] - start[k]:.3g} s"
            + ("" if math.isnan(data.values[order[k]]) else f", value {data.values[order[k]]:.6g}")
            for k in some
        ]
        traces.append({
            "type": "bar", "orientation": "h", "name": word, "hoverinfo": "text",
            "hovertext": said, "base": numbers((start[some] - since) / size),
            "x": numbers((stop[some] - start[some]) / size), "y": numbers(lane[some]),
            "width": 0.85, "marker": {"color": colour,
                       "line": {"color": "rgba(255,255,255,0.6)", "width": edge},
                       "pattern": {"shape": "" if status == 0 else "/" if status < 0 else "x",
                                   "solidity": 0.3}},
        })  # fmt: skip
    more = f", the last {_BARS} evaluations" if len(known) > _BARS else ""
    every = max(1, -(-len(lanes) // 16))
    return figure(
        traces, axis(f"{unit}{more}"),
        axis("at a time", (-0.6, len(lanes) - 0.4), tickvals=list(range(0, len(lanes), every)),
             ticktext=[str(k + 1) for k in range(0, len(lanes), every)]),
        barmode="overlay", showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )  # fmt: skip


def names_of(space: Space) -> list[str]:
    """Return the names of the columns; those of a subset are its items."""
    names = list(space.labels or (f"x{k}" for k in range(len(space))))
    first = 0
    for name, variable in zip(space.names or (), space.variables, strict=False):
        if isinstance(variable, Subset):
            names[first : first + len(variable)] = [f"{name}: {item}" for item in variable.items]
        first += len(variable.columns())
    return names
