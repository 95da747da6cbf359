"""The shared network: Adam's steps, see `shared_training.py`."""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    RUNNING,
    STATUS,
    STEPS,
    field,
    step,
)
from anyorder.strategies.policy.engines.cuda.kernels.shared_training import SHARE


@triton.jit(do_not_specialize=["epoch"])
def update_variables(parameters, runs, data, work, epoch, training, tables, sizes, rows, unit,
                     HIDDEN: tl.constexpr, HALF: tl.constexpr, KEPT: tl.constexpr,
                     DEPTH: tl.constexpr, WIDE: tl.constexpr, MAXF: tl.constexpr,
                     MAXO: tl.constexpr, P: tl.constexpr, S: tl.constexpr, T: tl.constexpr,
                     U: tl.constexpr):  # fmt: skip
    """Take Adam's step on input weights and heads of those of T variables that have weights.

    U candidates are read at a time, enough to hide the latency of memory.
    """
    r = tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    j, u = tl.program_id(0) * T + tl.arange(0, T), tl.arange(0, P)
    n, B = sizes.n, data.candidates
    there = j < n
    begin, before = r.to(tl.int64) * rows.total * P, r.to(tl.int64) * B
    coefficient = training.coefficients + (field(runs, r, STEPS) + epoch) * (2 * DEPTH + 3)
    eps = tl.load(coefficient + 2 * DEPTH + 2)
    first = tl.load(tables.feature_start + j, mask=there, other=0)
    inputs = tl.load(tables.feature_start + j + 1, mask=there, other=0) - first
    for k in range(MAXF):
        f = first + k
        have = there & (k < inputs)
        inside, stored = have[:, None] & (u < WIDE)[None, :], have[:, None] & (u < S)[None, :]
        g = tl.zeros((T, P), tl.float32)
        for c in tl.range(0, B, loop_unroll_factor=U):
            seen = tl.load(work.deltas + (before + c) * sizes.features + f, mask=have, other=0.0)
            place = tl.load(work.places + (before + c) * n + j, mask=have, other=0)
            later = work.sums + ((before + c) * n + place)[:, None] * S + u[None, :]
            g += seen[:, None] * tl.load(later, mask=stored, other=0.0)
        g *= 1.0 / (unit * SHARE)
        if HIDDEN:
            hidden = tl.load(tables.hidden_value + f, mask=have, other=0.0)
            total = tl.zeros((P,), tl.float32)
            for c in tl.range(0, B, loop_unroll_factor=U):
                total += tl.load(work.biases + (before + c) * 2 * P + u)
            g += hidden[:, None] * total[None, :]
        at_row = begin + f[:, None] * P + u[None, :]
        rate = tl.load(coefficient)
        step(parameters, at_row, inside, g, epoch, rate, eps, training, KEPT, work.weights, HALF)
    weight = tl.zeros((T,), tl.float32)
    for c in tl.range(0, B, loop_unroll_factor=U):
        of_candidate = data.weights + r * data.weight_run + c * data.weight_candidate
        own = tl.load(of_candidate + j * data.weight_variable, mask=there, other=0.0)
        weight += tl.abs(own.to(tl.float32))
    head = tl.load(tables.head_start + j, mask=there, other=0)
    outputs = tl.load(tables.head_start + j + 1, mask=there, other=0) - head
    rate_w = tl.load(coefficient + 2 * DEPTH)
    rate_b = tl.load(coefficient + 2 * DEPTH + 1)
    for k in range(MAXO):
        have = there & (k < outputs) & (weight > 0.0)
        inside, stored = have[:, None] & (u < WIDE)[None, :], have[:, None] & (u < S)[None, :]
        g = tl.zeros((T, P), tl.float32)
        g_bias = tl.zeros((T,), tl.float32)
        for c in tl.range(0, B, loop_unroll_factor=U):
            at_slope = work.slopes + (before + c) * sizes.logits + head + k
            slope = tl.load(at_slope, mask=have, other=0.0)
            place = tl.load(work.places + (before + c) * n + j, mask=have, other=0)
            top = work.tops + ((before + c) * n + place)[:, None] * S + u[None, :]
            g += slope[:, None] * tl.load(top, mask=stored, other=0.0)
            g_bias += slope
        at_head = begin + (rows.heads + head + k)[:, None] * P + u[None, :]
        step(parameters, at_head, inside, g, epoch, rate_w, eps, training, KEPT, work.weights, HALF)
        at_bias = begin + rows.tops * P + head + k
        step(parameters, at_bias, have, g_bias, epoch, rate_b, eps, training, KEPT)


@triton.jit(do_not_specialize=["epoch"])
def update_layers(parameters, runs, data, work, epoch, training, rows, MIDDLE: tl.constexpr,
                  HALF: tl.constexpr, KEPT: tl.constexpr, DEPTH: tl.constexpr, H: tl.constexpr,
                  TOP: tl.constexpr, P: tl.constexpr, T: tl.constexpr,
                  U: tl.constexpr):  # fmt: skip
    """Take Adam's step on the hidden layers' biases and, with MIDDLE, T rows of the second one."""
    r = tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    k, u = tl.program_id(0) * T + tl.arange(0, T), tl.arange(0, P)
    begin, before = r.to(tl.int64) * rows.total * P, r.to(tl.int64) * data.candidates
    coefficient = training.coefficients + (field(runs, r, STEPS) + epoch) * (2 * DEPTH + 3)
    eps = tl.load(coefficient + 2 * DEPTH + 2)
    for layer in tl.static_range(1 + MIDDLE):
        g_bias = tl.zeros((T,), tl.float32)
        for c in tl.range(0, data.candidates, loop_unroll_factor=U):
            g_bias += tl.load(work.biases + ((before + c) * 2 + layer) * P + k)
        at_bias = begin + (rows.biases + layer) * P + k
        rate = tl.load(coefficient + 2 * layer + 1)
        wide = H if layer == 0 else TOP
        step(parameters, at_bias, k < wide, g_bias, epoch, rate, eps, training, KEPT)
    if MIDDLE:
        g = tl.zeros((T, P), tl.float32)
        for c in tl.range(0, data.candidates, loop_unroll_factor=U):
            g += tl.load(work.middle + (before + c) * P * P + k[:, None] * P + u[None, :])
        at = begin + (rows.second + k)[:, None] * P + u[None, :]
        inside = (k < TOP)[:, None] & (u < H)[None, :]
        rate = tl.load(coefficient + 2)
        step(parameters, at, inside, g, epoch, rate, eps, training, KEPT, work.weights, HALF)
