"""Figures of runs. One function extracts the data, another draws it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from anyorder._checks import require
from anyorder.history import History
from anyorder.plotting import heatmaps
from anyorder.strategies.delta.search import DeltaSearch
from anyorder.strategies.policy.search import PolicySearch

KINDS = ("convergence", "diversity", "probabilities", "influence", "all")  # of figures

# Okabe and Ito's colours, distinct for any colour vision; the first is the method's.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


@dataclass(frozen=True)
class Curve:
    """One run as it is drawn."""

    paid: npt.NDArray[np.int64]  # evaluations so far: a value that was known already adds none
    values: npt.NDArray[np.float64]
    best: npt.NDArray[np.float64]
    restarts: tuple[int, ...]
    detailed: bool  # a run of the method: evaluations and restarts are drawn as well
    maximized: bool = True


def curve(run: Any) -> Curve:
    """The curve of a result or history, or of the values of a maximising run in order."""
    run = getattr(run, "history", run)
    if isinstance(run, History):
        paid = np.cumsum(~run.cached, dtype=np.int64)
        restarts = tuple(int(paid[k - 1]) for k in run.restarts if k <= len(run))
        return Curve(paid, run.values, run.best, restarts, True, run.maximized)
    values = np.asarray(run, np.float64)
    count = np.arange(1, len(values) + 1)
    return Curve(count, values, np.maximum.accumulate(values), (), False)


def convergence(
    runs: Mapping[str, Any],
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
) -> Any:
    """Best value against evaluations; written to `path`, or returned as a Matplotlib figure."""
    figure, axes = _canvas()
    _draw_curves(axes, {label: curve(run) for label, run in runs.items()})
    return _finished(figure, axes, path, title)


@dataclass(frozen=True)
class Diversity:
    """Diversity of the candidates of each generation."""

    generations: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]


def diversity(history: History) -> Diversity:
    """The mean share of values that differ from those of the generation's best candidate."""
    free = history.space.cardinalities > 1
    score = history.values if history.maximized else -history.values
    score = np.where(np.isnan(score), -np.inf, score)
    # the best of each generation is the first of its entries in this order; equals by position
    order = np.lexsort((-score, history.generations))
    found, first = np.unique(history.generations[order], return_index=True)
    place = np.searchsorted(found, history.generations)
    differ = history.codes != history.codes[order[first]][place]
    share = differ[:, free].mean(axis=1) if free.any() else np.zeros(len(history))
    count = np.bincount(place, minlength=len(found))
    return Diversity(found, np.bincount(place, share, minlength=len(found)) / count)


def restarts(history: History) -> list[int]:
    """The first generations of the policies that were restarted."""
    known = [k for k in history.restarts if k <= len(history)]
    return [int(history.generations[k - 1]) + 1 for k in known]


def overview(
    history: History,
    strategy: Callable[[], PolicySearch | DeltaSearch | None],
    kind: str = "all",
    path: str | os.PathLike[str] | None = None,
    label: str = "anyorder",
) -> Any:
    """One of the `KINDS` of figures of a run; "all" has the four on one page.

    `strategy` is called only if the figure requires it.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}, expected one of {', '.join(KINDS)}")
    kinds = KINDS[:-1] if kind == "all" else (kind,)
    trained = strategy() if "influence" in kinds else None
    if kind == "influence" and trained is None:
        raise ValueError("there is no influence to draw: it was not learned, or not kept")
    figure, panels = _canvas(kind)
    for name, axes in zip(kinds, np.ravel(panels), strict=True):
        if name == "convergence":
            _draw_curves(axes, {label: curve(history)})
            axes.set_xlabel("evaluations")
        elif name == "diversity":
            _draw_diversity(axes, diversity(history))
            _mark(axes, restarts(history))
        elif name == "probabilities":
            heatmaps.draw_agreement(figure, axes, heatmaps.agreement(history), history.space)
            _mark(axes, restarts(history), COLOURS[4], 1.4)
        else:
            data = None if trained is None else heatmaps.influence(trained)
            heatmaps.draw_influence(figure, axes, data, history.space)
        if name in ("convergence", "diversity"):
            _style(axes, above=True)
        if kind == "all":
            axes.set_title(name, loc="left", fontsize=11)
    if kind == "all":
        figure.suptitle(label, fontsize=12)
    return _written(figure, path)


@dataclass(frozen=True)
class Band:
    """The mean over runs at each point of their grid, and its standard error."""

    grid: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]


class Curves(Protocol):
    """Several runs on one grid: `(R, G)` best values so far, such as `Runs`."""

    @property
    def grid(self) -> npt.NDArray[np.int64]:
        """Numbers of evaluations."""

    @property
    def curves(self) -> npt.NDArray[np.float64]:
        """The best values there."""


def band(runs: Curves) -> Band:
    """Mean and standard error of the curves that have a value there; NaN where none has.

    The error of a single run is 0.
    """
    count = (~np.isnan(runs.curves)).sum(axis=0)
    some = np.where(count > 0, count, np.nan)
    with np.errstate(invalid="ignore"):  # infinities are values, and have no error
        mean = np.nansum(runs.curves, axis=0) / some
        squares = np.nansum((runs.curves - mean) ** 2, axis=0)
        error = np.sqrt(squares / np.maximum(count - 1, 1) / some)
    return Band(runs.grid, mean, error)


def averages(
    runs: Mapping[str, Curves | Band],
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
) -> Any:
    """Mean best value against evaluations; written to `path`, or returned as a figure."""
    figure, axes = _canvas()
    bands = {
        label: batch if isinstance(batch, Band) else band(batch) for label, batch in runs.items()
    }
    for colour, (label, line) in zip(_colours(len(bands)), bands.items(), strict=True):
        low, high = line.mean - line.error, line.mean + line.error
        axes.plot(line.grid, line.mean, color=colour, linewidth=2.0, label=label)
        axes.fill_between(line.grid, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set_ylabel("mean best value (band: its standard error)")
    return _finished(figure, axes, path, title)


def _canvas(kind: str = "") -> tuple[Any, Any]:
    """A figure, and its axes: two by two of them for "all"."""
    figures = require("matplotlib.figure", "plot", "figures require Matplotlib")
    size, panels = {"all": ((13.0, 9.0), 2), "influence": ((7.5, 6.5), 1)}.get(
        kind, ((7.5, 4.5), 1)
    )
    figure = figures.Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(panels, panels)


def _finished(
    figure: Any, axes: Any, path: str | os.PathLike[str] | None, title: str | None
) -> Any:
    axes.set_xlabel("evaluations")
    if title is not None:
        axes.set_title(title, loc="left", fontsize=11)
    _style(axes)
    return _written(figure, path)


def _style(axes: Any, above: bool = False) -> None:
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if not axes.get_legend_handles_labels()[0]:
        return
    if above:  # where it cannot hide anything
        axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderpad=0,
                    ncols=2, fontsize=9)  # fmt: skip
    else:
        axes.legend(framealpha=0.85, edgecolor="none", loc="lower right")


def _written(figure: Any, path: str | os.PathLike[str] | None) -> Any:
    if path is None:
        return figure
    figure.savefig(path, dpi=150)
    return None


def _colours(count: int) -> list[str]:
    return [COLOURS[k % len(COLOURS)] for k in range(count)]


def _draw_curves(axes: Any, curves: Mapping[str, Curve]) -> None:
    for colour, (label, line) in zip(_colours(len(curves)), curves.items(), strict=True):
        _draw(axes, label, line, colour)
    _frame(axes, list(curves.values()))
    axes.set_ylabel("value (dots: each evaluation, line: best so far)")


def _draw(axes: Any, label: str, line: Curve, colour: str) -> None:
    if line.detailed:
        alpha, size = (0.35, 5.0) if line.paid[-1:].sum() < 2_000 else (0.2, 2.0)
        evaluated = np.diff(line.paid, prepend=0) > 0  # and not known already
        axes.plot(
            line.paid[evaluated], line.values[evaluated], ".", color=colour, alpha=alpha,
            markersize=size, rasterized=True, markeredgewidth=0,
        )  # fmt: skip
        _mark(axes, line.restarts, colour)
    axes.step(line.paid, line.best, where="post", color=colour, linewidth=2.0, label=label)
    axes.plot(line.paid[-1:], line.best[-1:], "o", color=colour, markersize=4)


def _mark(axes: Any, places: Sequence[int], colour: str = COLOURS[1], width: float = 0.9) -> None:
    """A line wherever the strategy was restarted."""
    for k, place in enumerate(places):
        name = "restarted" if k == 0 else None
        axes.axvline(place, color=colour, alpha=0.8, linewidth=width, linestyle=":", label=name)


def _draw_diversity(axes: Any, data: Diversity) -> None:
    few = len(data.generations) < 40
    axes.plot(
        data.generations, data.shares, "o-" if few else "-", color=COLOURS[0],
        linewidth=2.0 if few else 1.2, markersize=4,
    )  # fmt: skip
    axes.xaxis.get_major_locator().set_params(integer=True)
    if len(data.generations):
        axes.set_xlim(data.generations[0] - 0.5, data.generations[-1] + 1)
    axes.set_xlabel("generation")
    axes.set_ylabel("share of values unlike the generation's best")
    most = float(data.shares.max()) if len(data.shares) else 0.0
    axes.set_ylim(0.0, 1.1 * most if most > 0 else 1.0)


def _frame(axes: Any, curves: list[Curve]) -> None:
    """Limits that show the lines, and of the single evaluations all but the worst."""
    maximized = all(line.maximized for line in curves)
    shown = [line.best for line in curves]
    shown += [line.values for line in curves if line.detailed]
    finite = np.concatenate(shown)
    finite = finite[np.isfinite(finite)]
    if finite.size:
        low, high = finite.min(), finite.max()
        if maximized:
            low = np.quantile(finite, 0.002)
        else:
            high = np.quantile(finite, 0.998)
        low, high = (low, high) if low < high else (low - 0.5, high + 0.5)
        below, above = (0.03, 0.06) if maximized else (0.06, 0.03)
        axes.set_ylim(low - below * (high - low), high + above * (high - low))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlim(0, max(1, *(line.paid[-1] if len(line.paid) else 0 for line in curves)) * 1.01)
