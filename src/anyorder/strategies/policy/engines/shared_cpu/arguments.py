"""Structured arguments of the compiled loops; see also `kernel_arguments.py`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.engines.kernel_arguments import Float32, Int64


class SharedPlan(NamedTuple):
    """A model's coding and network, and the arrangement of padded rows of parameters."""

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
    head_start: Int64
    widths: Int64
    rates: npt.NDArray[np.float64]
    # (L + 1,): the first row of each layer's weights. The first layer has a row for each input, the
    # others have a row for each output. The last entry is the first row of biases: one row for each
    # hidden layer, then the biases of the heads, as many in a row as fit.
    row_start: Int64


class Shared(NamedTuple):
    """The memory of one run, which its threads share. Rows have P places, in whole vectors.

    The padding of weights, units and slopes stays zero.
    """

    w: Float32  # (rows, P): parameters
    m: Float32  # Adam's moments, likewise, as sums
    v: Float32
    turned: Float32  # ((L - 2) P, P): weights between hidden layers, inputs x outputs
    places: Int64  # (B, n): the place of each variable in the order of each candidate
    # (B n, P): units of the last hidden layer in each variable's context, and slopes of its
    # contribution to the first layer. They are by place, since scattered reads cost less than
    # scattered writes; if contexts are masks, the slopes are by variable.
    tops: Float32
    sums: Float32
    slopes: Float32  # (B, logits): slopes of logits
    middle: Float32  # (B (L - 2) P, P): gradients of the weights between hidden layers
    biases: Float32  # (B (L - 1), P): gradients of the hidden layers' biases


class Own(NamedTuple):
    """The memory of one thread."""

    # (n + (L - 2) block, P): units of the first layer in the order of a candidate, then those of a
    # block of variables in each layer above
    h: Float32
    d: Float32  # ((L - 1) block, P): slopes of a block's pre-activations
    parts: Float32  # (n, P): the contribution of each variable's value to the first layer
    acc: Float32  # (3, P): the first layer of an empty context, a running sum, and zeros
    mask: Float32  # (block, n): which variables are visible; (1, n) if no mask is needed
    raw: Float32  # (block, most logits of a variable, or 2): logits
    row: Float32  # (1, P): a gradient
    order: Int64  # (n,)
    spare: Int64  # (n,)
    place: Int64  # (n,): the place of each variable in the order
    draws: npt.NDArray[np.uint32]  # (n,), in whole fours
    drops: npt.NDArray[np.uint32]  # (n,), in whole fours
