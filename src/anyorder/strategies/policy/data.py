"""Data of others as generations: which points are ranked against each other, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

LEAST = 2  # generations: of fewer points, what sets the good ones apart is mostly chance
MOST = 2_000  # points; of more, a random sample of so many
PASSES = 3  # over all points, over the better half of them, over the better quarter


def groups(
    values: npt.NDArray[np.float64], size: int, seed: Sequence[int]
) -> Iterator[npt.NDArray[np.intp]]:
    """Yield groups of `size` points, by index, each to be trained on like a generation.

    The first pass has all points, each later one the better half of the one before, in a random
    order: the policy first learns what sets good points apart from bad ones, and then what sets the
    best apart from the good, as in a run whose candidates improve.
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
