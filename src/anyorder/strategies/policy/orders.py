"""Orders and masks: who sees whom, in NumPy. Engines with their own kernels draw the same."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.layout import Layout
from anyorder.strategies.policy.rng import ORDER_G, UIntArray, drop_threshold, words

Bools = npt.NDArray[np.bool_]


def order_keys(
    layout: Layout, seed: int, purpose: int, generation: int, row: int, epoch: int = 0
) -> UIntArray:
    """Sort keys of one candidate's order: uniform i.i.d. keys are a uniform permutation."""
    config = layout.config
    kind = config.generation_order if purpose == ORDER_G else config.training_order
    if kind == "fixed":
        return np.arange(layout.n, dtype=np.uint32)
    row = 0 if config.order_per == "population" else row
    return words(seed, purpose, generation, row, layout.n, epoch=epoch)


def before(keys: UIntArray, i: int) -> Bools:
    """The causal mask sigma(x)_{<i}: which variables come before i; equal keys go by index."""
    index = np.arange(len(keys))
    return np.asarray((keys < keys[i]) | ((keys == keys[i]) & (index < i)))


def dropped(
    layout: Layout, seed: int, purpose: int, generation: int, row: int, i: int, p: float,
    epoch: int = 0,
) -> Bools:  # fmt: skip
    """Structural dropout: which variables are hidden from i though they come before it."""
    blocks = -(-layout.n // 4)
    word = words(seed, purpose, generation, row, layout.n, epoch=epoch, first_block=i * blocks)
    return word < drop_threshold(p)
