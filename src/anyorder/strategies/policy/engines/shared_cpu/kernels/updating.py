"""Gradients of the shared network and Adam's step: the second phase of an epoch."""

from __future__ import annotations

import math

import numpy as np

from anyorder.strategies.policy.engines.kernels import (
    FMA,
    INDEX,
    ONE,
    STEP,
    ZERO,
    NoAlias,
    adam_step,
    jit,
)
from anyorder.strategies.policy.engines.shared_cpu.kernels.common import LISTED
from anyorder.strategies.policy.engines.shared_cpu.kernels.products import add_row


@jit(fastmath=STEP, pipeline_class=NoAlias)
def ascend(w, m, v, r, g, width, adam):
    """Take Adam's step on row r along the gradient g[0]: see `kernels.adam_ascent`."""
    beta1, beta2, slow, eps = adam
    r = r & INDEX
    for k in range(width):
        a = beta1 * m[r, k] + g[0, k]
        b = beta2 * v[r, k] + g[0, k] * g[0, k]
        m[r, k] = a
        v[r, k] = b
        w[r, k] += a / (slow * math.sqrt(b) + eps)


@jit(fastmath=STEP)
def ascend_one(w, m, v, r, k, g, adam):
    """Take the same step as `ascend` on a single parameter."""
    beta1, beta2, slow, eps = adam
    m[r, k] = beta1 * m[r, k] + g
    v[r, k] = beta2 * v[r, k] + g * g
    w[r, k] += m[r, k] / (slow * math.sqrt(v[r, k]) + eps)


@jit(forceinline=True, fastmath=FMA, pipeline_class=NoAlias)
def gather(g, a, rows, factors, count, width):
    """Set g[0] to the sum over c of factors[c] * a[rows[c]], five candidates at a time.

    There are places for four more candidates after the last, with factors of zero.
    """
    for five in range(0, count, 5):
        c = five & INDEX
        r0, r1, r2 = rows[c] & INDEX, rows[c + 1] & INDEX, rows[c + 2] & INDEX
        r3, r4 = rows[c + 3] & INDEX, rows[c + 4] & INDEX
        f0, f1, f2, f3, f4 = (
            factors[c], factors[c + 1], factors[c + 2], factors[c + 3], factors[c + 4]
        )  # fmt: skip
        for k in range(width):
            before = g[0, k] if c > 0 else ZERO
            g[0, k] = (
                before + f0 * a[r0, k] + f1 * a[r1, k] + f2 * a[r2, k] + f3 * a[r3, k]
                + f4 * a[r4, k]
            )  # fmt: skip


@jit()
def update(data, step, plan, schedule, shared, row, kind, i0, i1):
    """Take Adam's step number `step` on the parameters of variables i0 to i1.

    The part with the last variable includes all other parameters.

    A variable without weight keeps its head.
    """
    w, m, v, count, width = shared.w, shared.m, shared.v, len(data.points), shared.w.shape[1]
    turned, tops, sums, slope = shared.turned, shared.tops, shared.sums, shared.slopes
    middle, biases, hidden_value = shared.middle, shared.biases, plan.hidden_value
    features, weights, feature_start = data.features, data.weights, plan.feature_start
    head_start, places, n = plan.head_start, shared.places, len(plan.cards)
    last, heads, bias = len(plan.widths) - 1, plan.row_start[-2], plan.row_start[-1]
    beta1, beta2, rates = schedule.beta1, schedule.beta2, plan.rates
    stretch = (1.0 - beta1**step) / (1.0 - beta1)
    spread = stretch * math.sqrt((1.0 - beta2) / (1.0 - beta2**step))
    inputs_adam = adam_step(schedule, max(rates[0, 0], 1e-300), stretch, spread)
    tops_adam = adam_step(schedule, max(rates[last, 0], 1e-300), stretch, spread)
    biases_adam = adam_step(schedule, max(rates[last, 1], 1e-300), stretch, spread)
    fours = (n + 3) // 4 * 4
    factors, rows = np.zeros(count + 4, np.float32), np.zeros(count + 4, np.int64)
    for i in range(i0, i1):
        for f in range(feature_start[i], feature_start[i + 1]):
            if rates[0, 0] == 0.0:
                break
            for c in range(count):
                factors[c] = features[c, f]
                rows[c] = c * fours + (i if kind == LISTED else places[c, i])
            gather(row, sums, rows, factors, count, width)
            if hidden_value[f] != ZERO:
                for c in range(count):
                    add_row(row, 0, biases, c * last, width, hidden_value[f])
            ascend(w, m, v, f, row, width, inputs_adam)
        weight = False
        for c in range(count):
            weight = weight or weights[c, i] != ZERO
        if not weight:
            continue
        for o in range(head_start[i], head_start[i + 1]):
            for c in range(count):
                factors[c], rows[c] = slope[c, o], c * fours + places[c, i]
            if rates[last, 0] > 0.0:
                gather(row, tops, rows, factors, count, width)
                ascend(w, m, v, heads + o, row, width, tops_adam)
            if rates[last, 1] > 0.0:
                g = ZERO
                for c in range(count):
                    g += factors[c]
                ascend_one(w, m, v, bias + last + o // width, o % width, g, biases_adam)
    if i1 < len(plan.cards):
        return
    factors[:count] = ONE
    for layer in range(last):
        if layer > 0 and rates[layer, 0] > 0.0:
            adam = adam_step(schedule, rates[layer, 0], stretch, spread)
            for k in range(plan.widths[layer + 1]):
                r, matrix = plan.row_start[layer] + k, (layer - 1) * width
                for c in range(count):
                    rows[c] = c * (last - 1) * width + matrix + k
                gather(row, middle, rows, factors, count, width)
                ascend(w, m, v, r, row, width, adam)
                for f in range(plan.widths[layer]):
                    turned[matrix + f, k] = w[r, f]
        if rates[layer, 1] > 0.0:
            adam = adam_step(schedule, rates[layer, 1], stretch, spread)
            for c in range(count):
                rows[c] = c * last + layer
            gather(row, biases, rows, factors, count, width)
            ascend(w, m, v, bias + layer, row, width, adam)
