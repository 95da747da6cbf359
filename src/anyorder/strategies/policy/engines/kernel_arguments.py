"""Structured arguments of the compiled loops in `kernels.py`.

Numba compiles a function for the types of its arguments, and a named tuple's type includes its
fields, so that a change here is noticed by the cache of compiled functions on disk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import Network

Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]


def coding_fields(model: Model[Network]) -> dict[str, Any]:
    """Return the fields of a plan that do not depend on the kind of network."""
    coding = model.coding
    graph = np.zeros((0, 0), np.uint8) if model.graph is None else model.graph
    names = ("cards", "outputs", "value_start", "feature_start", "owner", "codes", "code_base",
             "hidden_value")  # fmt: skip
    return {
        **{name: getattr(coding, name) for name in names},
        "floor": coding.floor.astype(np.float32),
        "graph": np.ascontiguousarray(graph, np.uint8),
    }


class Groups(NamedTuple):
    """The groups of a model, G in all: columns that share a limited number of each value.

    Models without groups have None instead: loops are then compiled without any masks.
    """

    of: Int64  # (n,): the group of which a variable is a column, or -1
    first: Int64  # (G,): the first column of each group
    size: Int64  # (G,): the number of its columns
    place: Int64  # (G,): the place of its first column among the columns of all groups
    least: Int64  # (G, D): the least number of occurrences of each value
    most: Int64  # (G, D): and the largest
    turns: npt.NDArray[np.uint32]  # (E or 1, B, columns of groups): sort keys in training


def groups_of(model: Model[Network]) -> Groups | None:
    """Return the groups of a model, without the keys of training; None if there are none."""
    groups = model.groups
    if not groups:
        return None
    size = np.array([group.size for group in groups], np.int64)
    bounds = np.zeros((2, len(groups), max(len(group.most) for group in groups)), np.int64)
    for g, group in enumerate(groups):
        bounds[:, g, : len(group.most)] = group.least, group.most
    return Groups(
        of=model.group_of,
        first=np.array([group.first for group in groups], np.int64),
        size=size,
        place=np.cumsum(size) - size,
        least=bounds[0].copy(),
        most=bounds[1].copy(),
        turns=np.empty((0, 0, 0), np.uint32),
    )


class Plan(NamedTuple):
    """A model's coding and networks, and the arrangement of the padded scratch memory."""

    cards: Int64
    outputs: Int64
    value_start: Int64
    feature_start: Int64
    owner: Int64
    codes: Float32
    code_base: Int64
    hidden_value: Float32
    floor: Float32
    graph: npt.NDArray[np.uint8]  # (n, n), or (0, 0) if every variable may see all others
    widths: Int64
    rates: npt.NDArray[np.float64]
    theta_start: Int64
    pads: Int64  # widths, rounded up to whole vectors
    # (L + 1,): the first row of each layer's weights in the scratch memory; and the end
    row_start: Int64


class Parameters(NamedTuple):
    """Parameters of one run, and Adam's moments (empty if they are not kept)."""

    theta: Float32
    m: Float32
    v: Float32
    steps: int  # steps taken with these moments


class Data(NamedTuple):
    """What one run trains on: `base.Batch`."""

    points: npt.NDArray[np.int32]  # (B, n)
    features: Float32  # (B, F)
    old: Float32  # (B, V)
    advantages: Float32  # (B, n)
    weights: Float32  # (B, n)
    keys: npt.NDArray[np.uint32]  # (E or 1, B, F) sort keys; (0, B, F) if all others are visible


class Schedule(NamedTuple):
    """Constants of training."""

    epochs: int
    kl: int  # CATEGORICAL, BERNOULLI or SQUARES of `kernels.py`
    log: bool  # ln pi instead of the ratio
    beta: float
    beta1: float
    beta2: float
    eps: float


class Stream(NamedTuple):
    """The random stream of a run in one generation: see `rng.py`."""

    key0: int
    key1: int
    generation: int
    threshold: int  # a word below it drops an input


class Scratch(NamedTuple):
    """The memory of one thread.

    Rows have P places for inputs and H for hidden units, in whole vectors; a batch has B places for
    candidates, in whole fives. The padding of weights, units and slopes stays zero.
    """

    # (rows, P): the weights of a variable, layer by layer, then a row of biases for each
    w: Float32
    m: Float32  # Adam's moments, likewise
    v: Float32
    x: Float32  # (1, B, P): the inputs of the first layer
    h: Float32  # (layers, B, H): the outputs of each layer; the last are the logits
    delta: Float32  # (layers, B, H): d objective / d pre-activations of each layer
    ones: Float32  # (1, B, 1): the inputs of the biases
    row: Float32  # (max(P, H),)
    terms: Float32  # (3, B): see `kernels.binary_terms`
    words: npt.NDArray[np.uint32]  # (4 * ceil(n / 4),)
    active: Int64  # (B,): the candidates that train a variable
    fans: Int64  # (layers,): the number of outputs of each layer of its network
