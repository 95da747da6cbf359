"""The kernel that trains a network, and how the network is cut into tiles.

Shapes depend only on the space and the configuration, never on the number of runs, so that a run
gives the same result alone and in any batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import triton

from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import SeparateNetworks

# What `kernels/registers.py` can train.
MAX_UNITS = 24
MAX_FOLDED_UNITS = 20  # with four lots that share a tile
MAX_FROZEN_UNITS = 32  # units of a second layer that is not trained
MAX_VALUES = 8  # values of a variable
MAX_CANDIDATES = 32
# With a larger rate the weights could outgrow 65504 / SCALE in 100,000 steps in one direction.
MAX_RATE = 0.01

# How the first layer is cut into tiles: (warps, lots per warp, inputs per lot, lots that share a
# tile), and the largest number of units. Sorted by size; among those that fit into the registers,
# the fastest (`benchmarks/cuda.py tiles`).
_TILES = {
    (1, 2, 16, 2): MAX_UNITS,
    (1, 4, 16, 4): MAX_FOLDED_UNITS,
    (2, 2, 16, 2): MAX_UNITS,
    (2, 4, 16, 4): MAX_FOLDED_UNITS,
    (4, 2, 16, 2): MAX_UNITS,
    (4, 3, 16, 4): MAX_FOLDED_UNITS,
    (4, 2, 32, 2): MAX_UNITS,
    (8, 3, 16, 4): MAX_FOLDED_UNITS,
    (8, 2, 32, 2): MAX_UNITS,
    (8, 3, 32, 4): MAX_FOLDED_UNITS,
    (8, 4, 32, 4): MAX_FOLDED_UNITS,
}
# The most inputs for which registers hold both moments of a first layer; with more, the second
# moments are in memory.
HELD_INPUTS = 768


@dataclass(frozen=True)
class Group:
    """Variables with the same number of logits: 1 for two values, d for d > 2 values.

    Above `MAX_VALUES` the number is rounded up to a power of two, to compile fewer kernels.
    """

    logits: int
    variables: Any  # a tensor

    @property
    def places(self) -> int:
        """The number of logits, rounded up to a power of two."""
        return int(power_of_two(self.logits))


def register_shape(
    model: Model[SeparateNetworks], count: int, group: Group
) -> dict[str, int] | None:
    """Return the compile-time constants of `registers.train` for `count` candidates.

    Return None if it cannot train them.
    """
    coding, network = model.coding, model.network
    hidden, depth = set(coding.hidden_value.tolist()), len(network.widths) - 1
    fits = (
        depth in (1, 2)
        and coding.features > 0
        and len(hidden) == 1
        and hidden | set(coding.codes.tolist()) <= {-1.0, 0.0, 1.0}
        and float(network.rates.max()) <= MAX_RATE
        and count <= MAX_CANDIDATES
        and group.logits <= MAX_VALUES
    )
    if not fits:
        return None
    frozen = 0
    if depth == 2:
        if network.rates[1].any() or network.widths[2] > MAX_FROZEN_UNITS:
            return None
        frozen = int(network.widths[2])
    tiles = tiles_of(coding.features, int(network.widths[1]))
    if tiles is None:
        return None
    return {
        **tiles, "FROZEN": frozen, "C": max(16, power_of_two(count)), "FP": padded_inputs(model),
        "num_warps": tiles["W"],
    }  # fmt: skip


def general_shape(model: Model[SeparateNetworks], rows: int, group: Group) -> dict[str, int]:
    """Return the compile-time constants of `general.py` for `rows` places of candidates."""
    widest = max(*model.network.widths[1:].tolist(), group.places, 16)
    return {"C": rows, "T": 32, "U": 32, "HP": int(power_of_two(widest)), "num_warps": 4}


def first_layer_shape(model: Model[SeparateNetworks]) -> dict[str, int]:
    """Return the constants of `general.train` for the first layer.

    Its tiles are large if this layer is most of the work.
    """
    if model.coding.features <= HELD_INPUTS:
        return {"T_1": 32, "READY": False}
    return {"T_1": 64, "READY": True}


def tiles_of(inputs: int, units: int) -> dict[str, int] | None:
    """Return the smallest of `_TILES` that holds a first layer; None if none does."""
    for (warps, lots, size, fold), most_units in _TILES.items():
        if inputs <= warps * lots * size and units <= most_units:
            stored = warps * lots * size > HELD_INPUTS
            return {"W": warps, "L": lots, "T": size, "FOLD": fold, "STORED": stored}
    return None


def stored_size(shape: dict[str, int]) -> int:
    """Return how many second moments of a variable `registers.train` keeps in memory."""
    size = (shape["L"] + 1) * shape["W"] * 16 * shape["T"]
    return size if shape["STORED"] else 0


def padded_inputs(model: Model[SeparateNetworks]) -> int:
    """Return the length of a row of inputs or ranks."""
    return max(32, int(power_of_two(model.coding.features)))


def power_of_two(size: Any) -> Any:
    """Return the least power of two that is at least `size`, or at least each of its entries."""
    if isinstance(size, np.ndarray):
        return np.array([triton.next_power_of_2(max(1, int(entry))) for entry in size])
    return triton.next_power_of_2(max(1, int(size)))
