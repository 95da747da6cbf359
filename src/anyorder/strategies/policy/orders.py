"""Orders and masks, which determine the variables that each variable sees, in NumPy.

Engines with kernels of their own draw the same orders from the same random stream.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import Network
from anyorder.strategies.policy.rng import (
    ORDER_G,
    UIntArray,
    drop_threshold,
    words,
    words_of_rows,
)

Bools = npt.NDArray[np.bool_]


def order_keys(
    model: Model[Network], seed: int, purpose: int, generation: int, row: int, epoch: int = 0
) -> UIntArray:
    """Return sort keys of one candidate's order; i.i.d. uniform keys give a uniform permutation.

    For a learned order this is only the random part: `learned_order.py` adds the scores.
    """
    config = model.config
    kind = config.generation_order if purpose == ORDER_G else config.training_order
    if kind in ("fixed", "gibbs"):  # sweeps go through the variables in their order
        return np.arange(model.n, dtype=np.uint32)
    row = 0 if config.order_per == "population" else row
    return words(seed, purpose, generation, row, model.n, epoch=epoch)


def order_keys_of(
    model: Model[Network], seed: int, purpose: int, stamps: Iterable[tuple[int, int]],
    epoch: int = 0,
) -> UIntArray:  # fmt: skip
    """Return `order_keys` of several candidates, by generation and number: `(B, n)`."""
    generations, rows = np.array([*stamps], np.int64).reshape(-1, 2).T
    config = model.config
    kind = config.generation_order if purpose == ORDER_G else config.training_order
    if kind in ("fixed", "gibbs"):
        return np.tile(np.arange(model.n, dtype=np.uint32), (len(rows), 1))
    rows = np.zeros_like(rows) if config.order_per == "population" else rows
    return words_of_rows(seed, purpose, generations, rows, model.n, epoch=epoch)


def sampling_keys(
    model: Model[Network], seed: int, stamps: Iterable[tuple[int, int]]
) -> UIntArray | None:
    """Return sort keys `(B, n)` of candidates' sampling orders, by generation and number.

    Return None for Gibbs sampling, in which a variable sees all others.
    """
    if model.config.generation_order == "gibbs":
        return None
    return order_keys_of(model, seed, ORDER_G, stamps)


def before(keys: UIntArray, i: int) -> Bools:
    """Return the causal mask sigma(x)_{<i}: the variables before i; ties are by index."""
    earlier: Bools = keys < keys[i]
    earlier[:i] |= keys[:i] == keys[i]
    return earlier


def draw_dropped(
    model: Model[Network], seed: int, purpose: int, generation: int, row: int, i: int, p: float,
    epoch: int = 0,
) -> Bools:  # fmt: skip
    """Return the variables that structural dropout hides from i, even if they come before i."""
    blocks = -(-model.n // 4)
    word = words(seed, purpose, generation, row, model.n, epoch=epoch, first_block=i * blocks)
    return word < drop_threshold(p)
