"""Figures of runs. One function extracts the data, another draws it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import require
from anyorder.archive.history import History
from anyorder.archive.hypervolume import NonDominated
from anyorder.plotting import heatmaps
from anyorder.strategies.base import Strategy

# the kinds of figures
KINDS = ("convergence", "diversity", "probabilities", "influence", "all", "front")
OF_SEVERAL = ("front", "convergence")  # the figures for several objectives

# Okabe and Ito's colours, which are distinct for any colour vision; the first is the policy's.
_LARGEST = 1e300  # differences of smaller values do not overflow
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


@dataclass(frozen=True)
class Curve:
    """A run, as it is drawn."""

    paid: npt.NDArray[np.int64]  # evaluations so far; a known value adds none
    values: npt.NDArray[np.float64]
    best: npt.NDArray[np.float64]
    restarts: tuple[int, ...]
    detailed: bool  # a run of this library, whose evaluations and restarts are drawn as well
    maximized: bool = True
    what: str = "value"


def curve(run: Any) -> Curve:
    """Return the curve of a result, of a history, or of the values of a maximising run in order."""
    run = getattr(run, "history", run)
    if isinstance(run, History):
        paid = np.cumsum(~run.cached, dtype=np.int64)
        restarts = tuple(int(paid[k - 1]) for k in run.restarts if k <= len(run))
        if run.objectives is not None:
            volume = run.hypervolume()
            return Curve(paid, volume, volume, restarts, False, what="hypervolume")
        return Curve(paid, run.values, run.best, restarts, True, run.maximized)
    values = np.asarray(run, np.float64)
    count = np.arange(1, len(values) + 1)
    return Curve(count, values, np.maximum.accumulate(values), (), False)


def convergence(
    runs: Mapping[str, Any],
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
) -> Any:
    """Draw the best value against evaluations, to `path` or as a Matplotlib figure."""
    figure, axes = _canvas()
    _draw_curves(axes, {label: curve(run) for label, run in runs.items()})
    return _finish(figure, axes, path, title)


@dataclass(frozen=True)
class Diversity:
    """The diversity of the candidates in each generation."""

    generations: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]


def diversity(history: History) -> Diversity:
    """Return the mean share of values that differ from the best candidate's, by generation."""
    free = history.space.cardinalities > 1
    score = history.values if history.maximized else -history.values
    score = np.where(np.isnan(score), -np.inf, score)
    # the first of its entries in this order is the best of a generation; ties by position
    generations = heatmaps.generations_of(history)
    order = np.lexsort((-score, generations))
    found, first = np.unique(generations[order], return_index=True)
    place = np.searchsorted(found, generations)
    differ = history.codes != history.codes[order[first]][place]
    share = differ[:, free].mean(axis=1) if free.any() else np.zeros(len(history))
    count = np.bincount(place, minlength=len(found))
    return Diversity(found, np.bincount(place, share, minlength=len(found)) / count)


def restarts(history: History) -> list[int]:
    """Return the generations that began with a restart of the strategy."""
    known = [k for k in history.restarts if k <= len(history)]
    return [int(history.generations[k - 1]) + 1 for k in known]


def overview(
    history: History,
    strategy: Callable[[], Strategy | None],
    kind: str = "all",
    path: str | os.PathLike[str] | None = None,
    label: str = "anyorder",
) -> Any:
    """Draw one of the `KINDS` of figures of a run; "all" draws four of them on one page.

    `strategy` is called only if the figure needs it.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}, expected one of {', '.join(KINDS)}")
    if history.objectives is not None and kind not in OF_SEVERAL:
        expected = " or ".join(map(repr, OF_SEVERAL))
        raise ValueError(f"kind is {kind!r}, expected {expected} for several objectives")
    if history.objectives is None and kind == "front":
        raise ValueError("kind is 'front', which several objectives have: this run has one")
    kinds = KINDS[:4] if kind == "all" else (kind,)
    learned, why = None, None
    if "influence" in kinds:
        found = strategy()
        why = heatmaps.why_no_influence(found)
        if found is not None and why is None:
            learned = heatmaps.influence(found, history.space)
            why = f"{found.name} does not learn which variables interact"
    figure, panels = _canvas(kind)
    for name, axes in zip(kinds, np.ravel(panels), strict=True):
        if name == "convergence":
            _draw_curves(axes, {label: curve(history)})
            axes.set_xlabel("evaluations")
        elif name == "front":
            _draw_front(axes, history)
        elif name == "diversity":
            _draw_diversity(axes, diversity(history))
            _mark(axes, restarts(history))
        elif name == "probabilities":
            heatmaps.draw_agreement(figure, axes, heatmaps.agreement(history), history.space)
            _mark(axes, restarts(history), COLOURS[4], 1.4)
        else:
            heatmaps.draw_influence(figure, axes, learned, history.space, why or "")
        if name in ("convergence", "diversity", "front"):
            _style(axes, above=True)
        if kind == "all":
            axes.set_title(name, loc="left", fontsize=11)
    if kind == "all":
        figure.suptitle(label, fontsize=12)
    return _save(figure, path)


@dataclass(frozen=True)
class Band:
    """The mean over runs at each point of their grid, and its standard error."""

    grid: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]


class Curves(Protocol):
    """Several runs on one grid, such as `Runs`, with best values so far `(R, G)`."""

    @property
    def grid(self) -> npt.NDArray[np.int64]:
        """The numbers of evaluations."""

    @property
    def curves(self) -> npt.NDArray[np.float64]:
        """The best values at these numbers of evaluations."""


def band(runs: Curves) -> Band:
    """Return mean and standard error of the curves that have a value there; NaN if none has.

    The standard error of a single run is 0.
    """
    count = (~np.isnan(runs.curves)).sum(axis=0)
    some = np.where(count > 0, count, np.nan)
    with np.errstate(invalid="ignore"):  # infinities are values, but have no error
        mean = np.nansum(runs.curves, axis=0) / some
        squares = np.nansum((runs.curves - mean) ** 2, axis=0)
        error = np.sqrt(squares / np.maximum(count - 1, 1) / some)
    return Band(runs.grid, mean, error)


def averages(
    runs: Mapping[str, Curves | Band],
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
) -> Any:
    """Draw the mean best value against evaluations, to `path` or as a Matplotlib figure."""
    figure, axes = _canvas()
    bands = {
        label: batch if isinstance(batch, Band) else band(batch) for label, batch in runs.items()
    }
    for colour, (label, line) in zip(_colours(len(bands)), bands.items(), strict=True):
        low, high = line.mean - line.error, line.mean + line.error
        axes.plot(line.grid, line.mean, color=colour, linewidth=2.0, label=label)
        axes.fill_between(line.grid, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set_ylabel("mean best value (band: its standard error)")
    return _finish(figure, axes, path, title)


def _canvas(kind: str = "") -> tuple[Any, Any]:
    """Return a figure and its axes: two by two axes for "all"."""
    require("matplotlib.figure", "plot", "figures require Matplotlib")
    from anyorder.plotting.picture import Picture

    size, panels = {"all": ((13.0, 9.0), 2), "influence": ((7.5, 6.5), 1)}.get(
        kind, ((7.5, 4.5), 1)
    )
    figure = Picture(figsize=size, layout="constrained")
    return figure, figure.subplots(panels, panels)


def _finish(figure: Any, axes: Any, path: str | os.PathLike[str] | None, title: str | None) -> Any:
    axes.set_xlabel("evaluations")
    if title is not None:
        axes.set_title(title, loc="left", fontsize=11)
    _style(axes)
    return _save(figure, path)


def _style(axes: Any, above: bool = False) -> None:
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if not axes.get_legend_handles_labels()[0]:
        return
    if above:  # so that it does not hide anything
        axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderpad=0,
                    ncols=2, fontsize=9)  # fmt: skip
    else:
        axes.legend(framealpha=0.85, edgecolor="none", loc="lower right")


def _save(figure: Any, path: str | os.PathLike[str] | None) -> Any:
    if path is None:
        return figure
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ValueError(f"path is {str(path)!r}, and there is no such folder")
    figure.savefig(path, dpi=150)
    return None


def _colours(count: int) -> list[str]:
    return [COLOURS[k % len(COLOURS)] for k in range(count)]


def _draw_curves(axes: Any, curves: Mapping[str, Curve]) -> None:
    for colour, (label, line) in zip(_colours(len(curves)), curves.items(), strict=True):
        _draw(axes, label, line, colour)
    _frame(axes, curves, _colours(len(curves)))
    several = {line.what for line in curves.values()} - {"value"}
    axes.set_ylabel(next(iter(several), "value (dots: each evaluation, line: best so far)"))


def _draw_front(axes: Any, history: History) -> None:
    """Draw the values of two objectives: the first two if there are more."""
    objectives, values = history.objectives, history.values
    assert objectives is not None
    found = NonDominated(len(objectives))
    rows = np.flatnonzero(~np.isnan(values).any(axis=1))
    for row in rows.tolist():
        found.add(row, values[row] * objectives.signs)
    best = values[sorted(found.items, key=lambda row: float(values[row, 0]))]
    axes.plot(values[rows, 0], values[rows, 1], ".", color=COLOURS[0], alpha=0.3, markersize=4,
              markeredgewidth=0, rasterized=True, label="evaluations")  # fmt: skip
    where: Any = "pre" if objectives.directions[0] == "max" else "post"
    if len(objectives) == 2:
        axes.step(best[:, 0], best[:, 1], where=where, color=COLOURS[1], linewidth=1.2)
    axes.plot(best[:, 0], best[:, 1], "o", color=COLOURS[1], markersize=4,
              label=f"front of {len(best)}")  # fmt: skip
    for set_label, k in ((axes.set_xlabel, 0), (axes.set_ylabel, 1)):
        set_label(f"{objectives.names[k]} ({objectives.directions[k]})")
    if len(best):
        axes.set_xlim(*limits(values[rows, 0], best[:, 0].tolist()))
        axes.set_ylim(*limits(values[rows, 1], best[:, 1].tolist()))


def _draw(axes: Any, label: str, line: Curve, colour: str) -> None:
    if line.detailed:
        alpha, size = (0.35, 5.0) if line.paid[-1:].sum() < 2_000 else (0.2, 2.0)
        evaluated = np.diff(line.paid, prepend=0) > 0  # not known before
        axes.plot(
            line.paid[evaluated], line.values[evaluated], ".", color=colour, alpha=alpha,
            markersize=size, rasterized=True, markeredgewidth=0,
        )  # fmt: skip
        _mark(axes, line.restarts, colour)
    axes.step(line.paid, line.best, where="post", color=colour, linewidth=2.0, label=label)
    axes.plot(line.paid[-1:], line.best[-1:], "o", color=colour, markersize=4)


def _mark(axes: Any, places: Sequence[int], colour: str = COLOURS[1], width: float = 0.9) -> None:
    """Draw a line at each restart of the strategy."""
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


def limits(
    values: npt.ArrayLike, ends: Sequence[float] = (), share: float = 0.02
) -> tuple[float, float]:
    """Return the ends of an axis for values, such that outliers do not flatten the others.

    The axis goes from the 2nd to the 98th percentile with a margin, and farther to the values in
    `ends`, such as the best of a run, unless that would more than double the axis. Infinities and
    NaN do not count.
    """
    found = np.asarray(values, np.float64)
    found = np.clip(found[np.isfinite(found)], -_LARGEST, _LARGEST)
    ends = [min(max(end, -_LARGEST), _LARGEST) for end in ends if np.isfinite(end)]
    if not found.size:
        found = np.array(ends or [0.0])
    low, high = (float(x) for x in np.quantile(found, [share, 1 - share]))
    if low == high:
        low, high = float(found.min()), float(found.max())
    span = high - low
    wide = min([low, *ends]), max([high, *ends])
    low, high = (
        end if span == 0 or abs(end - near) <= span else near
        for end, near in zip(wide, (low, high), strict=True)
    )
    margin = 0.05 * (high - low) or max(0.5, 1e-9 * abs(high))
    return low - margin, high + margin


def view(lines: Sequence[Curve]) -> tuple[float, float]:
    """Return the ends of the vertical axis, chosen by the values after the first tenth of runs."""
    shown, ends = [np.empty(0)], []
    for line in lines:
        late = line.paid > 0.1 * line.paid[-1] if len(line.paid) > 10 else slice(None)
        shown += [line.best[late]] + ([line.values[late]] if line.detailed else [])
        ends += line.best[-1:].tolist()
    return limits(np.concatenate(shown), ends)


def _frame(axes: Any, lines: Mapping[str, Curve], colours: Sequence[str]) -> None:
    """Set the limits of the axes, and mark, at the edge, evaluations beyond them."""
    low, high = view(list(lines.values()))
    axes.set_ylim(low, high)
    for colour, line in zip(colours, lines.values(), strict=True):
        for marker, out, edge in (("^", line.values > high, high), ("v", line.values < low, low)):
            if line.detailed and out.any():
                axes.plot(line.paid[out], np.full(out.sum(), edge), marker, color=colour,
                          markersize=5, fillstyle="none", clip_on=False)  # fmt: skip
    axes.xaxis.get_major_locator().set_params(integer=True)
    ends = [line.paid[-1] for line in lines.values() if len(line.paid)]
    axes.set_xlim(0, max(1, *ends, 1) * 1.01)
