"""The dependences between variables that a policy has learned."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anyorder.space.digits import Digits
from anyorder.strategies.policy.engines.base import Draw, Engine, Policy
from anyorder.strategies.policy.orders import order_keys_of
from anyorder.strategies.policy.rng import ORDER_G


def influence(
    engine: Engine, policy: Policy, digits: Digits, draw: Draw
) -> npt.NDArray[np.float64]:
    """Return `PolicySearch.influence` of one run, over the candidates of a request.

    Entry [i, j] is 0 if i = j, if i never sees j, and if either has only one value.
    """
    model, count = engine.model, draw.count
    kind = model.config.generation_order
    (codes,), _ = engine.sample(policy, draw)
    (seed,), (generation,) = draw.seeds, draw.generations
    if draw.keys is None:
        keys = order_keys_of(model, seed, ORDER_G, [(generation, k) for k in range(count)])
    else:
        keys = draw.keys[0]
    ranks = 1 + np.argsort(np.argsort(keys, axis=1, kind="stable"), axis=1).astype(np.uint32)
    free = np.flatnonzero(model.cards > 1)
    moves = np.zeros((model.n, model.n))
    for some in np.array_split(free, -(-len(free) // 16)) if len(free) else ():
        # axes: which variable changes, before and after, candidate, variable
        points_of = np.tile(codes, (len(some), 2, 1, 1))
        orders = np.tile(ranks, (len(some), 2, 1, 1))
        for k, j in enumerate(some):
            # go through all other values in turn
            step = 1 + np.arange(count) % (model.cards[j] - 1)
            points_of[k, 1, :, j] = (codes[:, j] + step) % model.cards[j]
            if kind != "fixed":
                orders[k, :, :, j] = 0
        probs = engine.conditionals(
            policy,
            points_of.reshape(1, -1, model.n),
            None if kind == "gibbs" else orders.reshape(1, -1, model.n),
        ).reshape(len(some), 2, count, -1)
        distance = np.abs(np.diff(probs.astype(np.float64), axis=1)).mean(axis=(1, 2)) / 2
        moves[:, some] = np.add.reduceat(distance, model.value_start[:-1], axis=1).T
    if model.graph is not None:
        moves *= model.graph
    if digits.split_any:  # for two variables take the digits that move each other most
        first = np.searchsorted(digits.owner, np.arange(digits.owner[-1] + 1))
        moves = np.maximum.reduceat(np.maximum.reduceat(moves, first, axis=0), first, axis=1)
    np.fill_diagonal(moves, 0.0)
    return moves
