"""Structured arguments of the kernels: named tuples of tensors and numbers.

Triton passes them as one kernel parameter per field; a field that a kernel does not use costs
nothing there. Tensors are on the device.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Tensor = Any


class Tables(NamedTuple):
    """The model: `coding.Coding` and `networks.SeparateNetworks`."""

    begins: Tensor  # (n,) where the parameters of a variable start
    value_start: Tensor
    feature_start: Tensor
    outputs: Tensor
    floors: Tensor
    owner: Tensor
    code_base: Tensor
    codes: Tensor
    hidden_value: Tensor
    widths: Tensor
    graph: Tensor


class Sizes(NamedTuple):
    """The sizes of the model."""

    n: int
    features: int
    # of a row of probabilities: V values in total (`tl.tuple` has a `values` of its own)
    row_length: int
    parameters: int


class Parameters(NamedTuple):
    """Parameters and Adam's moments of all runs, (R, parameters)."""

    theta: Tensor
    m: Tensor
    v: Tensor
    tiles: Tensor  # scratch memory of `registers.train` with STORED


class Data(NamedTuple):
    """What all runs train on: `base.Batch`. Advantages and weights may be expanded views."""

    points: Tensor  # (R, B, n)
    inputs: Tensor  # (R, B, F padded), before masking, if `general.train` is READY
    old: Tensor  # (R, B, V)
    advantages: Tensor  # (R, B, n)
    weights: Tensor  # (R, B, n)
    candidates: int  # B
    advantage_run: int  # strides
    advantage_candidate: int
    advantage_variable: int
    weight_run: int
    weight_candidate: int
    weight_variable: int


class Ranks(NamedTuple):
    """Training orders: `engine.Orders`."""

    ranks: Tensor
    run_stride: int
    epoch_stride: int


class Relaxed(NamedTuple):
    """Relaxed sorts of all candidates: `relaxed_sort.py`. Matrices are (R, B, n, n)."""

    noisy: Tensor  # (R, B, n), float64: perturbed scores s
    distances: Tensor  # (R, B, n), float64: A
    normal: Tensor  # (R, B, n), float64: z, by place
    before: Tensor  # E: place, variable
    columns: Tensor  # (R, B, n): sums of P over all places
    degrees: Tensor  # M, then the derivatives by it: variable that sees, variable that is seen
    slopes: Tensor  # derivatives by P: place, variable
    gradients: Tensor  # (R, B, n): derivatives by s


class Training(NamedTuple):
    """Constants of training."""

    coefficients: Tensor  # of Adam, by step: the rates of every layer, and eps
    epochs: int
    beta: float
    beta1: float
    beta2: float
    rest1: float  # 1 - beta1
    rest2: float
