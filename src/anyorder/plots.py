"""Figures. What is drawn is extracted by one function and drawn by another."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .result import Result, Runs

# Okabe and Ito's colours, which people with any colour vision can tell apart; ours is the first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


@dataclass(frozen=True)
class Curve:
    """One run as it is drawn."""

    values: npt.NDArray[np.float64]
    best: npt.NDArray[np.float64]
    restarts: tuple[int, ...]
    detailed: bool  # a run of ours: its evaluations and restarts are shown as well


def curve(run: Result | npt.ArrayLike) -> Curve:
    """The curve of a result, or of the values of a maximising run in order of evaluation."""
    if isinstance(run, Result):
        history = run.history
        return Curve(history.values, history.best, history.restarts, True)
    values = np.asarray(run, np.float64)
    return Curve(values, np.maximum.accumulate(values), (), False)


def convergence(
    runs: Mapping[str, Result | npt.ArrayLike],
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
) -> Any:
    """Best value against evaluations; written to `path`, or returned as a Matplotlib figure."""
    figure, axes = _canvas()
    curves = {label: curve(run) for label, run in runs.items()}
    for colour, (label, line) in zip(_colours(len(curves)), curves.items(), strict=True):
        _draw(axes, label, line, colour)
    _frame(axes, list(curves.values()))
    axes.set_ylabel("value (dots: each evaluation, line: best so far)")
    return _finished(figure, axes, path, title)


@dataclass(frozen=True)
class Band:
    """The mean over runs at each point of their grid, and its standard error."""

    grid: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]


def band(runs: Runs) -> Band:
    """Mean and standard error of the curves that are still numbers there; NaN where none is.

    The error of a single run is 0: there is nothing to see it by.
    """
    count = (~np.isnan(runs.curves)).sum(axis=0)
    some = np.where(count > 0, count, np.nan)
    with np.errstate(invalid="ignore"):  # infinities are values, and have no error
        mean = np.nansum(runs.curves, axis=0) / some
        squares = np.nansum((runs.curves - mean) ** 2, axis=0)
        error = np.sqrt(squares / np.maximum(count - 1, 1) / some)
    return Band(runs.grid, mean, error)


def averages(
    runs: Mapping[str, Runs | Band],
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


def _canvas() -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "figures need Matplotlib: pip install 'anyorder[plot]'", name="matplotlib"
        ) from error
    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    return figure, figure.subplots()


def _finished(
    figure: Any, axes: Any, path: str | os.PathLike[str] | None, title: str | None
) -> Any:
    axes.set_xlabel("evaluations")
    if title is not None:
        axes.set_title(title, loc="left", fontsize=11)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(framealpha=0.85, edgecolor="none", loc="lower right")
    if path is None:
        return figure
    figure.savefig(path, dpi=150)
    return None


def _colours(count: int) -> list[str]:
    return [COLOURS[k % len(COLOURS)] for k in range(count)]


def _draw(axes: Any, label: str, line: Curve, colour: str) -> None:
    count = np.arange(1, len(line.best) + 1)
    if line.detailed:
        axes.plot(
            count, line.values, ".", color=colour, alpha=0.2, markersize=2.0, rasterized=True,
            markeredgewidth=0,
        )  # fmt: skip
        for k, told in enumerate(line.restarts):
            name = "policy started afresh" if k == 0 else None
            axes.axvline(told, color=colour, alpha=0.5, linewidth=0.8, linestyle=":", label=name)
    axes.step(count, line.best, where="post", color=colour, linewidth=2.0, label=label)
    axes.plot(count[-1:], line.best[-1:], "o", color=colour, markersize=4)


def _frame(axes: Any, curves: list[Curve]) -> None:
    """Limits that show the lines, and of the single evaluations all but the worst."""
    shown = [line.best for line in curves]
    shown += [line.values for line in curves if line.detailed]
    finite = np.concatenate(shown)
    finite = finite[np.isfinite(finite)]
    if finite.size:
        low, high = np.quantile(finite, 0.002), finite.max()
        low, high = (low, high) if low < high else (low - 0.5, high + 0.5)
        axes.set_ylim(low - 0.03 * (high - low), high + 0.06 * (high - low))
    axes.set_xlim(0, max(1, *(len(line.best) for line in curves)) * 1.01)
