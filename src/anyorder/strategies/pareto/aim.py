"""The choice of a place where the front is thin, and of the weights for a search there.

All objectives are maximised, and scaled so that they differ by 1 between the ends of the front.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ENDS = 0.15  # the share of aims at an end of the front, to extend it
LEAST = 0.02  # the least weight of an objective
FINE = 1e-9  # ranges of an objective below this share of its largest value count as 0


class Aim(NamedTuple):
    """The index of a point of the front at which to begin, and the weight of each objective."""

    place: int
    weights: Floats


def scales_of(values: Floats, reference: Floats | None) -> Floats:
    """Return factors that scale each objective to a range of 1 on the front.

    Only values better than the reference count, if there is one.
    """
    low, high = values.min(axis=0), values.max(axis=0)
    if reference is not None:
        low = np.where(reference < high, np.maximum(low, reference), low)
    span = high - low
    size = np.maximum(np.abs(high), np.abs(low))
    return 1.0 / np.where(span > FINE * size, span, np.where(size > 0, size, 1.0))


def choose(values: Floats, reference: Floats | None, rng: np.random.Generator) -> Aim:
    """Draw the next aim.

    Parameters
    ----------
    values
        The front, a row for each point.
    reference
        The worst values that are of interest, if they are known.
    rng
        The generator.
    """
    scaled = values * scales_of(values, reference)
    size, count = scaled.shape
    inside = np.arange(size)
    if reference is not None:
        better = np.flatnonzero((values > reference).all(axis=1))
        inside = better if len(better) else inside
    if len(inside) == 1 or rng.random() < ENDS or count > 2:
        if count > 2 and rng.random() >= ENDS:
            weights = rng.dirichlet(np.ones(count))
        else:
            weights = np.eye(count)[rng.integers(count)]
        weights = np.maximum(weights, LEAST)
        return Aim(_best(scaled, inside, weights, count > 2), weights / weights.sum())
    order = inside[np.argsort(scaled[inside, 0], kind="stable")]
    steps = np.abs(np.diff(scaled[order], axis=0))
    areas = steps[:, 0] * steps[:, 1]
    if not areas.sum() > 0:
        areas = np.ones(len(steps))
    gap = int(rng.choice(len(areas), p=areas / areas.sum()))
    weights = np.maximum(steps[gap, ::-1] / max(steps[gap].sum(), 1e-300), LEAST)
    weights /= weights.sum()
    return Aim(int(order[gap + rng.integers(2)]), weights)


def _best(scaled: Floats, inside: npt.NDArray[np.intp], weights: Floats, worst: bool) -> int:
    """Return the best place for weights: by the weighted sum, or (`worst`) by Chebyshev's norm.

    The norm also finds places where the front is not convex.
    """
    rows = scaled[inside]
    if worst:
        ideal = rows.max(axis=0)
        score = -(weights * (ideal - rows)).max(axis=1) + 1e-3 * (rows @ weights)
    else:
        score = rows @ weights
    return int(inside[int(score.argmax())])
