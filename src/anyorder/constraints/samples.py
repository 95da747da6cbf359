"""Samples of a space, with many and with few of each value, to look for allowed points."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from anyorder.archive import Codes
from anyorder.space import Space

FEW = 16  # a variable with at most so many values is sampled with a share for each of them


def samples(space: Space, rng: Generator) -> Iterator[Codes]:
    """Yield the point of all first values, that of all last values, and random samples.

    Each sample has its own shares of the values.
    """
    cards = space.cardinalities.astype(np.int64)
    yield _with_lists(np.zeros(len(cards), np.int32), space, rng)
    yield _with_lists((cards - 1).astype(np.int32), space, rng)
    few = int(min(cards.max(), FEW))
    exists = np.arange(few) < cards[:, None]
    while True:
        power = 1 + 2 * int(rng.integers(2))
        weights = np.where(exists, rng.standard_exponential(few) ** power, 0.0)
        below = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)[:, :-1]
        drawn = rng.random(len(cards))
        point = (drawn[:, None] >= below).sum(axis=1)
        skewed = drawn ** math.exp(rng.normal())
        point = np.where(cards > FEW, (skewed * cards).astype(np.int64), point)
        yield _with_lists(np.minimum(point, cards - 1).astype(np.int32), space, rng)


def _with_lists(point: Codes, space: Space, rng: Generator) -> Codes:
    """Return the point with its lists replaced by random ones."""
    for group in space.groups:
        point[group.columns] = group.uniform(1, rng)[0]
    return point
