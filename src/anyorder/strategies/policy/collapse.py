"""The rule that a population has collapsed: nearly all candidates of a generation are equal.

A policy that has collapsed samples its mode for the rest of the budget, so it is restarted. The
rule: a share of at least `Config.restart_agreement` of a generation's values agree with those of
its best candidate, in `Config.restart_patience` generations in a row.

The driver on the GPU counts in the same way in a kernel (`engines/cuda/kernels/generation.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def agreement(
    points: npt.NDArray[np.integer], values: npt.NDArray[np.float64], free: npt.NDArray[np.bool_]
) -> Any:
    """Return the share of a generation's values that agree with those of its best candidate.

    Parameters
    ----------
    points
        `(..., B, n)`: the codes of B candidates; axes before them are runs.
    values
        `(..., B)`: their values, higher is better; NaN, a failed evaluation, counts as -inf. The
        first of equally good candidates is the best one.
    free
        `(n,)`: True for variables with more than one value. Constants do not count.

    Returns
    -------
    A number from 1 / B, since the best candidate agrees with itself, to 1: a float for one run, an
    array `(...)` for many. It is 0 if no variable is free: a single point cannot collapse.
    """
    best = np.argmax(np.where(np.isnan(values), -np.inf, values), axis=-1)
    if not free.any():
        share = np.zeros(best.shape)
    else:
        chosen = np.take_along_axis(points, best[..., None, None], axis=-2)
        share = (points[..., free] == chosen[..., free]).mean(axis=(-2, -1))
    return share if share.ndim else float(share)


def generations_in_a_row(count: Any, agreement: Any, limit: float) -> Any:
    """Return the length of a series of collapsed generations after a further generation.

    Parameters
    ----------
    count
        The length before it: a number, or an array with an entry for each run.
    agreement
        The share that `agreement` returned, of the same shape.
    limit
        The least share in a collapsed generation, `Config.restart_agreement`.
    """
    longer = np.where(np.asarray(agreement) >= limit, np.asarray(count) + 1, 0)
    return longer if longer.ndim else int(longer)


def entropy(probs: npt.NDArray[np.floating], cards: npt.NDArray[np.int64]) -> float:
    """Return the mean entropy of distributions `(B, V)`, as a share of the largest possible one."""
    most = float(np.log(cards).sum())
    if not len(probs) or most == 0:
        return 1.0
    p = probs.astype(np.float64)
    return float(-(p * np.log(np.maximum(p, 1e-300))).sum() / (len(p) * most))
