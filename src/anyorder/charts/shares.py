"""The share of the variance of a run's values that each variable explains."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anyorder.archive.history import History

_LEVELS = 16  # the most levels of an ordered variable: neighbouring values share one
_FEWEST = 10  # the fewest evaluations for which shares are computed
_CELLS = 20_000_000  # the most values that are read: of larger runs a part of the evaluations


def shares_of_variance(history: History) -> npt.NDArray[np.float64]:
    """Return the share of the variance that each column of the space explains by its value.

    It is the variance between the values of a variable over the variance of all, among the points
    that have the variable, less what chance explains (epsilon squared; Kelley, PNAS 1935), from 0
    to 1. A share only counts what a variable explains alone, not what variables explain together.
    Outliers count as the nearest value within three interquartile ranges of the quartiles. The
    places of a permutation and the items of a subset are columns. A share is NaN if fewer than ten
    evaluations have values, or if all values are equal.

    The points are those that the run has chosen, which are not spread evenly: a variable that the
    search has settled early explains little of the rest.
    """
    values, paid = history.values, ~history.cached
    rows = np.flatnonzero(paid & ~np.isnan(values))
    space = history.space
    shares = np.full(len(space), np.nan)
    if len(rows) < _FEWEST:
        return shares
    finite = values[rows][np.isfinite(values[rows])]
    if len(finite) < _FEWEST:
        return shares
    most = max(_FEWEST, _CELLS // len(space))
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]
    scale = float(np.abs(np.quantile(finite, [0.25, 0.75])).max()) or float(np.abs(finite).max())
    with np.errstate(over="ignore"):
        y = values[rows] / (scale or 1.0)
    low, high = np.quantile(finite / (scale or 1.0), [0.25, 0.75])
    if high > low:
        y = np.clip(y, low - 3 * (high - low), high + 3 * (high - low))
    else:
        y = np.clip(y, *np.quantile(finite / (scale or 1.0), [0.01, 0.99]))
    codes = history.codes_at(rows)
    present = space.present(codes) if space.conditional else None
    for k in range(len(space)):
        here = slice(None) if present is None else present[:, k]
        shares[k] = _share(_levels(codes[here, k], bool(space.ordered[k])), y[here])
    return shares


def _levels(codes: npt.NDArray[np.int32], ordered: bool) -> npt.NDArray[np.int64]:
    """Return codes as few levels; those of an ordered variable have about as many points each."""
    if not ordered or int(codes.max(initial=0)) < _LEVELS:
        return codes.astype(np.int64)
    edges = np.unique(np.quantile(codes, np.linspace(0, 1, _LEVELS + 1)[1:-1], method="nearest"))
    return np.searchsorted(edges, codes, side="right")


def _share(levels: npt.NDArray[np.int64], y: npt.NDArray[np.float64]) -> float:
    count = np.bincount(levels)
    used, size = int((count > 0).sum()), len(y)
    if size < _FEWEST:
        return float("nan")
    off = y - y.mean()
    total = float(off @ off)
    if total <= 1e-18 * size:
        return float("nan")
    if used < 2 or used >= size:
        return 0.0
    sums = np.bincount(levels, off)
    within = total - float((sums**2 / np.maximum(count, 1)).sum())
    return float(np.clip(1 - within / total * (size - 1) / (size - used), 0.0, 1.0))
