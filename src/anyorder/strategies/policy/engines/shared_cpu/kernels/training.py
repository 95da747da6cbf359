"""Training the shared network: compiled loops.

An epoch has two phases, each shared by threads:

    slopes   for candidates: forward and backward; keeps what the gradients of a variable need
    update   for variables: gradients, summed over candidates in their order, and Adam's step

No two threads write to the same place, so results do not depend on their number.
"""

from __future__ import annotations

import math

from anyorder.strategies.policy.engines.kernels import (
    FIRST,
    FMA,
    INDEX,
    ONE,
    STEP,
    ZERO,
    NoAlias,
    adam_step,
    f32,
    jit,
    masked_slopes,
)
from anyorder.strategies.policy.engines.shared_cpu.kernels.common import (
    EARLIER,
    LISTED,
    OTHERS,
    add_product,
    add_row,
    add_turned_product,
    contribute,
    copy_row,
    empty_context,
    inner,
    output_slopes,
    sort_by_key,
    squash,
    through_tanh,
    visible,
)
from anyorder.strategies.policy.rng import DROP_T

BLOCK = 64  # variables that go through the layers together: their units fit in the cache


@jit()
def slopes(data, epoch, plan, groups, schedule, stream, shared, own, kind, c0, c1):
    """Forward and backward for candidates c0 to c1, and what `update` needs of them."""
    w, parts, pre, acc, order, place = (
        shared.w, own.parts, own.pre, own.acc, own.order, own.place
    )  # fmt: skip
    n, width, keys = len(plan.cards), w.shape[1], data.keys
    beta, fours = f32(schedule.beta), (n + 3) // 4 * 4
    for c in range(c0, c1):
        sums, biases = shared.sums[c], shared.biases[c]
        shared.middle[c] = ZERO
        biases[:] = ZERO
        place[:] = -1
        if kind != OTHERS and len(keys) > 0:
            sort_by_key(order, own.spare, keys[epoch % len(keys), c])
            for t in range(n):
                place[order[t]] = t
        else:
            for t in range(n):
                order[t] = t
        empty_context(acc, plan, w)
        copy_row(acc, 1, acc, 0, width)
        if kind == EARLIER:
            for t in range(n):
                copy_row(pre, t, acc, 1, width)
                contribute(acc, 1, order[t], data.points[c, order[t]], plan, w)
        else:
            parts[:n] = ZERO
            for j in range(n):
                contribute(parts, j, j, data.points[c, j], plan, w)
        if kind == OTHERS:
            for j in range(n):
                add_row(acc, 1, parts, j, width, ONE)
            for j in range(n):
                copy_row(pre, j, acc, 1, width)
                add_row(pre, j, parts, j, width, -ONE)
        if kind == LISTED:
            sums[:] = ZERO
        acc[1] = ZERO  # from here on: the sum of slopes of the variables after this one
        for t0 in range((n - 1) // BLOCK * BLOCK, -1, -BLOCK):
            rows = min(BLOCK, n - t0)
            h0 = own.h[0]
            for s in range(rows):
                if kind == LISTED:
                    copy_row(h0, s, acc, 0, width)
                    tag = DROP_T + 256 * epoch
                    visible(own.mask, s, order[t0 + s], place, plan, own.drops, c, tag, stream)
                else:
                    copy_row(h0, s, pre, t0 + s, width)
            whole = (rows + 3) // 4 * 4
            if kind == LISTED:
                own.mask[rows:whole] = ZERO
                add_product(h0, own.mask, parts, whole, fours, width)
            through_block(c, t0, rows, data, epoch, plan, groups, beta, schedule.kl, shared, own)
            d0 = own.d[0]
            if kind == LISTED:
                add_turned_product(sums, own.mask, d0, fours, whole, width)
                continue
            for s in range(rows - 1, -1, -1):
                j = order[t0 + s]
                if kind == EARLIER:
                    copy_row(sums, j, acc, 1, width)
                else:
                    sums[j] = ZERO
                    add_row(sums, j, d0, s, width, -ONE)
                add_row(acc, 1, d0, s, width, ONE)
        if kind == OTHERS:
            for j in range(n):
                add_row(sums, j, acc, 1, width, ONE)


@jit()
def through_block(c, t0, rows, data, epoch, plan, groups, beta, loss, shared, own):
    """From the first layer's pre-activations of a block of variables to their slopes, and back."""
    w, tops, slope, raw = shared.w, shared.tops[c], shared.slopes[c], own.raw
    h, d, biases, middle = own.h, own.d, shared.biases[c], shared.middle[c]
    width, last, whole = w.shape[1], len(plan.widths) - 1, (rows + 3) // 4 * 4
    heads, bias = plan.row_start[-2], plan.row_start[-1]
    squash(h[0], rows, width)
    for layer in range(1, last):
        for s in range(whole):
            copy_row(h[layer], s, w, bias + layer, width)
        depth = (plan.widths[layer] + 3) // 4 * 4
        add_product(h[layer], h[layer - 1], shared.turned[layer - 1], whole, depth, width)
        squash(h[layer], rows, width)
    top, fall = h[last - 1], d[last - 1]
    fall[:whole] = ZERO
    for s in range(rows):
        i = own.order[t0 + s]
        copy_row(tops, i, top, s, width)
        if plan.outputs[i] == 0:
            continue
        first, outputs = plan.head_start[i], plan.outputs[i]
        for k in range(outputs):
            o = first + k
            raw[k] = inner(w, heads + o, top, s, width) + w[bias + last + o // width, o % width]
        masked = False
        if groups is not None:  # the compiler drops this where there are no groups
            masked = groups.of[i] >= 0
            if masked:
                masked_slopes(slope, first, raw, data, c, i, plan, groups, beta, loss, epoch)
        if not masked:
            output_slopes(slope, raw, c, i, data, plan, beta, loss)
        for k in range(outputs):
            add_row(fall, s, w, heads + first + k, width, slope[first + k])
    through_tanh(fall, top, rows, width)
    for layer in range(last - 1, 0, -1):
        outputs = (plan.widths[layer + 1] + 3) // 4 * 4
        r = plan.row_start[layer]
        d[layer - 1, :whole] = ZERO
        add_product(d[layer - 1], d[layer], w[r : r + outputs], whole, outputs, width)
        through_tanh(d[layer - 1], h[layer - 1], rows, width)
        if plan.rates[layer, 0] > 0.0:
            add_turned_product(middle[layer - 1], d[layer], h[layer - 1], outputs, whole, width)
    for layer in range(last):
        for s in range(rows):
            add_row(biases, layer, d[layer], s, width, ONE)


@jit(fastmath=STEP, pipeline_class=NoAlias)
def ascend(w, m, v, r, g, width, adam):
    """Adam's step on row r along the gradient g[0]: see `kernels.adam_ascent`."""
    beta1, beta2, slow, eps = adam
    r = r & INDEX
    for k in range(width):
        a = beta1 * m[r, k] + g[0, k]
        b = beta2 * v[r, k] + g[0, k] * g[0, k]
        m[r, k] = a
        v[r, k] = b
        w[r, k] += a / (slow * math.sqrt(b) + eps)


@jit(fastmath=FMA, pipeline_class=NoAlias)
def add_scaled(g, a, c, j, width, factor):
    """g[0] += factor * a[c, j]."""
    c, j = c & INDEX, j & INDEX
    for k in range(width):
        g[0, k] += factor * a[c, j, k]


@jit()
def update(data, step, plan, schedule, shared, row, i0, i1):
    """Adam's step number `step` on what belongs to variables i0 to i1; the last one's has the rest.

    A variable without weight keeps its head.
    """
    w, m, v, count, width = shared.w, shared.m, shared.v, len(data.points), shared.w.shape[1]
    last, heads, bias = len(plan.widths) - 1, plan.row_start[-2], plan.row_start[-1]
    beta1, beta2, rates = schedule.beta1, schedule.beta2, plan.rates
    stretch = (1.0 - beta1**step) / (1.0 - beta1)
    spread = stretch * math.sqrt((1.0 - beta2) / (1.0 - beta2**step))
    inputs = adam_step(schedule, max(rates[0, 0], 1e-300), stretch, spread)
    tops = adam_step(schedule, max(rates[last, 0], 1e-300), stretch, spread)
    top_biases = adam_step(schedule, max(rates[last, 1], 1e-300), stretch, spread)
    for i in range(i0, i1):
        for f in range(plan.feature_start[i], plan.feature_start[i + 1]):
            if rates[0, 0] == 0.0:
                break
            row[:] = ZERO
            hidden = plan.hidden_value[f]
            for c in range(count):
                point = data.points[c, i]
                if point >= 0:
                    seen = plan.codes[plan.code_base[f] + point] - hidden
                    add_scaled(row, shared.sums, c, i, width, seen)
                if hidden != ZERO:
                    add_scaled(row, shared.biases, c, 0, width, hidden)
            ascend(w, m, v, f, row, width, inputs)
        weight = False
        for c in range(count):
            weight = weight or data.weights[c, i] != ZERO
        if not weight:
            continue
        for o in range(plan.head_start[i], plan.head_start[i + 1]):
            if rates[last, 0] > 0.0:
                row[:] = ZERO
                for c in range(count):
                    add_scaled(row, shared.tops, c, i, width, shared.slopes[c, o])
                ascend(w, m, v, heads + o, row, width, tops)
            if rates[last, 1] > 0.0:
                g = ZERO
                for c in range(count):
                    g += shared.slopes[c, o]
                at, k = bias + last + o // width, o % width
                row[0, 0] = g
                ascend(w[at:, k:], m[at:, k:], v[at:, k:], 0, row, 1, top_biases)
    if i1 < len(plan.cards):
        return
    for layer in range(last):
        if layer > 0 and rates[layer, 0] > 0.0:
            adam = adam_step(schedule, rates[layer, 0], stretch, spread)
            for k in range(plan.widths[layer + 1]):
                row[:] = ZERO
                for c in range(count):
                    add_scaled(row, shared.middle[c], layer - 1, k, width, ONE)
                ascend(w, m, v, plan.row_start[layer] + k, row, width, adam)
                for f in range(plan.widths[layer]):
                    shared.turned[layer - 1, f, k] = w[plan.row_start[layer] + k, f]
        if rates[layer, 1] > 0.0:
            adam = adam_step(schedule, rates[layer, 1], stretch, spread)
            row[:] = ZERO
            for c in range(count):
                add_scaled(row, shared.biases, c, layer, width, ONE)
            ascend(w, m, v, bias + layer, row, width, adam)


@jit()
def all_epochs(data, steps, plan, groups, schedule, stream, shared, own, kind):
    """`slopes` and `update` for all candidates and variables, epoch after epoch."""
    count, n = data.points.shape
    for epoch in range(schedule.epochs):
        slopes(data, epoch, plan, groups, schedule, stream, shared, own, kind, FIRST, count)
        update(data, steps + epoch + 1, plan, schedule, shared, own.row, FIRST, n)
