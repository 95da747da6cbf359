"""The best points of a run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anyorder.archive.history import History

MOST = 50


def best_rows(history: History, count: int = MOST) -> npt.NDArray[np.intp]:
    """Return the entries of the best different points, best first, one entry for each."""
    values = history.values if history.maximized else -history.values
    rows = np.flatnonzero(~np.isnan(values) & ~history.cached)
    order = rows[np.argsort(-values[rows], kind="stable")]
    codes = history.codes_at(order[: 40 * count])
    _, first = np.unique(codes, axis=0, return_index=True)
    if len(first) < count and len(order) > 40 * count:
        _, first = np.unique(history.codes_at(order), axis=0, return_index=True)
    found: npt.NDArray[np.intp] = order[np.sort(first)[:count]]
    return found
