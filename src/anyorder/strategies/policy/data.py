"""Data of earlier runs as generations: which points are ranked together, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

LEAST = 2  # generations; in fewer points it is mostly chance what distinguishes good ones
MOST = 2_000  # points; of more, a random sample of so many is used
PASSES = 3  # over all points, over the better half of them, over the better quarter


def groups(
    values: npt.NDArray[np.float64], size: int, seed: Sequence[int]
) -> Iterator[npt.NDArray[np.intp]]:
    """Yield groups of `size` points, by index, to train on each group as on a generation.

    The first pass uses all points, each later pass the better half of those before, in a random
    order. The policy thus first learns what distinguishes good points from bad ones, and then the
    best from the good ones, as in a run whose candidates improve.
    """
    if len(values) < LEAST * size:
        return
    rng = np.random.default_rng(seed)
    chosen = np.arange(len(values))
    if len(values) > MOST:
        chosen = np.sort(rng.choice(len(values), MOST, replace=False))
    order = chosen[np.argsort(-values[chosen], kind="stable")]
    for _ in range(PASSES):
        shuffled = rng.permutation(order)
        for k in range(len(shuffled) // size):
            yield shuffled[k * size : (k + 1) * size]
        order = order[: len(order) // 2]
