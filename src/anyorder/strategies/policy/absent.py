"""Absent variables: candidates of a space whose conditions decide which variables are present.

Engines draw all variables, in orders in which a variable may come before the one that its condition
depends on. Variables that turn out to be absent are then hidden: their code is -1, which engines
read as an input that is not visible, and they have no weight in training. The distributions of the
other variables are computed again without them, under the same order, so that training starts from
the distributions with which it compares.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anyorder.space import Space
from anyorder.space.digits import Digits
from anyorder.strategies.policy.engines.base import Codes, Draw, Engine, Floats, Policy
from anyorder.strategies.policy.orders import sampling_keys


def find_absent(space: Space, digits: Digits, points: Codes) -> npt.NDArray[np.bool_]:
    """Return which digits `(..., m)` of drawn points belong to variables that are absent."""
    codes = digits.join(points).reshape(-1, len(space))
    return ~space.present(codes)[:, digits.owner].reshape(points.shape)


def visible_digits(space: Space, digits: Digits, codes: Codes) -> Codes:
    """Return the digits that the model reads for points `(m, n)` it did not draw; -1 if absent."""
    points = digits.split(codes)
    if space.conditional:
        points[find_absent(space, digits, points)] = -1
    return points


def hide_absent(
    space: Space,
    digits: Digits,
    engine: Engine,
    policy: Policy,
    draw: Draw,
    points: Codes,
    old: Floats,
) -> tuple[Codes, Floats]:
    """Return what `engine.sample(policy, draw)` returned, with absent variables hidden."""
    gone = find_absent(space, digits, points)
    points = np.where(gone, -1, points).astype(np.int32)
    keys = draw.keys
    if keys is None and engine.model.config.generation_order != "gibbs":
        runs = zip(draw.seeds, draw.generations, draw.first, strict=True)
        keys = np.array([
            sampling_keys(engine.model, seed, [(generation, first + k) for k in range(draw.count)])
            for seed, generation, first in runs
        ])  # fmt: skip
    again = engine.conditionals(policy, points, keys)
    return points, np.where(gone.any(axis=2, keepdims=True), again, old)
