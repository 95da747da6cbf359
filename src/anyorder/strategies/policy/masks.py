"""Masks of values that a column of a group may no longer take, in NumPy.

The columns of a group (`anyorder.space.groups`) are drawn one after another in the order of the
candidate. A value is masked if it is used up, or if the remaining columns would not suffice for
what other values still need. Every candidate is therefore valid, and at least one value is always
allowed. A column is drawn from the softmax over the allowed values, which is then clipped.

In training a column is at another place of another order, where other values are masked. What
engines exchange of such a column, `old` in a `Batch`, is therefore its softmax over *all* values,
not clipped. Training masks it like the new distribution, under the order in which it trains: the
ratio and the KL divergence of eq. (8) compare distributions over the same values, and the ratio is
about 1 before the first step. Without an order in training (`training_order="none"`), masks are
those of the order in which the candidate was drawn. Dropout and a known graph hide inputs of
networks, and never change a mask.

Engines with kernels of their own compute the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anyorder.space.groups import Group
from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import Network
from anyorder.strategies.policy.rng import UIntArray

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.floating]

LEAST = 1e-30  # all exchanged entries are at least this, so that no sum over some values is zero


def find_allowed(group: Group, codes: npt.NDArray[np.integer], before: Bools) -> Bools:
    """Return the values `(B, D)` that the next column of a group may take.

    `codes` and `before`, `(B, size)`, are the codes of the group's columns, and whether these have
    been drawn; the codes of other columns do not matter.
    """
    used = ((codes[..., None] == np.arange(len(group.most))) & before[..., None]).sum(axis=1)
    left = group.size - before.sum(axis=1, keepdims=True)
    needed = np.maximum(group.least - used, 0).sum(axis=1, keepdims=True)
    # what is still needed after this column has taken the value must fit into the columns after it
    return np.asarray((used < group.most) & (needed - (used < group.least) <= left - 1))


def restrict(probs: Floats, some: Bools, floor: float) -> Floats:
    """Return distributions `(B, d)` over some of the values, clipped and renormalised."""
    kept = probs * some
    kept /= kept.sum(axis=1, keepdims=True)
    clipped = np.clip(kept, floor, 1.0 - floor) * some
    return np.asarray(clipped / clipped.sum(axis=1, keepdims=True))


def apply_masks(
    model: Model[Network], probs: Floats, points: npt.NDArray[np.integer], keys: UIntArray | None
) -> Floats:
    """Return the distributions `(B, V)` from which points `(B, n)` are drawn in their orders.

    `probs` is what `Engine.sample` and `Engine.conditionals` return. It is masked in the columns of
    groups, and unchanged elsewhere.
    """
    if keys is None:  # for Gibbs sampling, which has no groups
        return probs
    result, index = probs.copy(), np.arange(model.n)
    for group in model.groups:
        codes, own = points[:, group.columns], keys[:, group.columns]
        for i in index[group.columns]:
            key, place = keys[:, i, None], slice(*model.value_start[i : i + 2])
            before = (own < key) | ((own == key) & (index[group.columns] < i))
            some = find_allowed(group, codes, before)
            floor = float(model.coding.floor[i])
            result[:, place] = restrict(probs[:, place], some, floor)
    return result
