"""Training the shared network: compiled loops.

An epoch has two phases, and threads share the work of each:

    slopes   for candidates: forward and backward; stores what the gradients of a variable need
    update   for variables: gradients, summed over candidates in their order, and Adam's step; see
             `updating.py`

No two threads write to the same place, so results do not depend on their number.
"""

from __future__ import annotations

import numpy as np

from anyorder.strategies.policy.engines.kernels import (
    FIRST,
    FMA,
    INDEX,
    ONE,
    SQUARES,
    SUM,
    ZERO,
    NoAlias,
    f32,
    jit,
    masked_slopes,
)
from anyorder.strategies.policy.engines.shared_cpu.kernels.common import (
    EARLIER,
    LISTED,
    OTHERS,
    binary_slope,
    categorical_slopes,
    empty_context,
    sort_by_key,
    visible,
)
from anyorder.strategies.policy.engines.shared_cpu.kernels.products import (
    add_row,
    add_turned_product,
    clear_rows,
    copy_row,
    product,
    set_row,
    squash,
    through_tanh,
)
from anyorder.strategies.policy.engines.shared_cpu.kernels.updating import update
from anyorder.strategies.policy.rng import DROP_T

BLOCK = 64  # variables that go through the layers together: their units fit in the cache
RUNNING, ZEROS = np.int64(1), np.int64(2)  # rows of `Own.acc`


@jit()
def slopes(data, epoch, plan, groups, schedule, stream, shared, own, kind, c0, c1):
    """Go forward and backward for candidates c0 to c1, and store what `update` needs."""
    keys, order, place, places = data.keys, own.order, own.place, shared.places
    n = len(plan.cards)
    for c in range(c0, c1):
        place[:] = -1
        if kind != OTHERS and len(keys) > 0:
            sort_by_key(order, own.spare, keys[epoch % len(keys), c])
            for t in range(n):
                place[order[t]] = t
        else:
            for t in range(n):
                order[t] = t
        for t in range(n):
            places[c, order[t]] = t
        first_layer(c, data.features, plan, shared.w, own, kind)
        through_blocks(c, data, epoch, plan, groups, schedule, stream, shared, own, kind)


@jit()
def first_layer(c, features, plan, w, own, kind):
    """Compute the first layer's units in the contexts of candidate c; for masks, their base.

    `features` are those of the candidates minus those of hidden variables.
    """
    h, parts, acc, order, start = own.h, own.parts, own.acc, own.order, plan.feature_start
    n, width = len(order), w.shape[1]
    empty_context(acc, plan, w)
    copy_row(acc, RUNNING, acc, FIRST, width)
    if kind == EARLIER:
        for t0 in range(0, n, BLOCK):
            rows = min(BLOCK, n - t0)
            running_sums(h, acc, order, t0, rows, start, features, c, w, width)
            squash(h, t0, rows, width)
        return
    clear_rows(parts, FIRST, n, width)
    for j in range(n):
        for f in range(start[j], start[j + 1]):
            add_row(parts, j, w, f, width, features[c, f])
    if kind == OTHERS:
        for j in range(n):
            add_row(acc, RUNNING, parts, j, width, ONE)
        for j in range(n):
            copy_row(h, j, acc, RUNNING, width)
            add_row(h, j, parts, j, width, -ONE)
        squash(h, FIRST, n, width)


@jit(fastmath=FMA, pipeline_class=NoAlias)
def running_sums(h, acc, order, t0, rows, start, features, c, w, width):
    """Set h[t] to acc[RUNNING], which then grows by order[t]'s contribution, for a block."""
    for t in range(t0, t0 + rows):
        j, u = order[t], t & INDEX
        for k in range(width):
            h[u, k] = acc[RUNNING, k]
        for each in range(start[j], start[j + 1]):
            f = each & INDEX
            factor = features[c, f]
            for k in range(width):
                acc[RUNNING, k] += factor * w[f, k]


@jit()
def through_blocks(c, data, epoch, plan, groups, schedule, stream, shared, own, kind):
    """Go from the first layer's units of candidate c to the slopes of all logits, and back.

    The last variables go first: the slopes of a contribution are those of the variables after it.
    All arrays are taken out of their tuples here, once: see `products.py`.
    """
    points, old, advantages, weights = data.points, data.old, data.advantages, data.weights
    cards, outputs, value_start, floor = plan.cards, plan.outputs, plan.value_start, plan.floor
    head_start, row_start, widths, rates = (
        plan.head_start, plan.row_start, plan.widths, plan.rates
    )  # fmt: skip
    w, turned, tops, sums, slope = shared.w, shared.turned, shared.tops, shared.sums, shared.slopes
    middle, biases, h, d, acc = shared.middle, shared.biases, own.h, own.d, own.acc
    order, raw, mask, parts = own.order, own.raw, own.mask, own.parts
    n, count, width, last, beta, loss, log = (
        len(cards), len(points), w.shape[1], len(widths) - 1, f32(schedule.beta), schedule.kl,
        schedule.log,
    )  # fmt: skip
    fours, heads, bias = (n + 3) // 4 * 4, row_start[-2], row_start[-1]
    flat = w[bias + last :].reshape(-1)  # biases of the heads
    rows_of_c, bias_of_c, middle_of_c = c * fours, c * last, c * (last - 1) * width
    clear_rows(middle, middle_of_c, (last - 1) * width, width)
    clear_rows(biases, bias_of_c, last, width)
    # from here on it holds the slopes of all variables after this one
    clear_rows(acc, RUNNING, 1, width)
    if kind == LISTED:
        clear_rows(sums, rows_of_c, fours, width)
    for t0 in range((n - 1) // BLOCK * BLOCK, -1, -BLOCK):
        rows = min(BLOCK, n - t0)
        whole = (rows + 3) // 4 * 4
        if kind == LISTED:
            tag = DROP_T + 256 * epoch
            for s in range(rows):
                visible(mask, s, order[t0 + s], own.place, plan, own.drops, c, tag, stream)
            mask[rows:whole] = ZERO
            product(h, t0, mask, FIRST, parts, FIRST, acc, FIRST, whole, fours, width)
            squash(h, t0, whole, width)
        below, top = t0, rows_of_c + t0
        for layer in range(1, last):
            matrix, b, depth = (layer - 1) * width, bias + layer, (widths[layer] + 3) // 4 * 4
            if layer == last - 1:
                product(tops, top, h, below, turned, matrix, w, b, whole, depth, width)
                continue
            at = fours + (layer - 1) * BLOCK
            product(h, at, h, below, turned, matrix, w, b, whole, depth, width)
            squash(h, at, whole, width)
            below = at
        if last > 1:
            squash(tops, top, whole, width)
        else:
            for s in range(whole):
                copy_row(tops, top + s, h, t0 + s, width)
        fall = (last - 1) * BLOCK
        logits(raw, tops, top, w, heads, flat, order, t0, rows, head_start, width)
        for s in range(rows):
            i = order[t0 + s]
            if outputs[i] == 0:
                continue
            first, start, share = head_start[i], value_start[i], weights[c, i] / f32(count)
            value, gain = points[c, i], advantages[c, i]
            masked = False
            if groups is not None:  # the compiler drops this where there are no groups
                masked = groups.of[i] >= 0
                if masked:
                    masked_slopes(
                        slope[c], first, raw[s], data, c, i, plan, groups, beta, loss, log, epoch
                    )
            if masked:
                continue
            if loss == SQUARES:
                slope[c, first] = f32(2.0) * share * (gain - raw[s, 0])
            elif cards[i] == 2:
                slope[c, first] = binary_slope(
                    raw[s, 0],
                    value,
                    gain,
                    share,
                    old[c, start],
                    old[c, start + 1],
                    floor[i],
                    beta,
                    log,
                )
            else:
                categorical_slopes(
                    slope, c, first, raw[s], cards[i], value, gain, share, old, start, floor[i],
                    beta, loss, log,
                )  # fmt: skip
        slopes_below_heads(d, fall, w, heads, slope, c, order, t0, rows, head_start, width)
        clear_rows(d, fall + rows, whole - rows, width)
        through_tanh(d, fall, tops, top, biases, bias_of_c + last - 1, rows, width)
        for layer in range(last - 1, 0, -1):
            below = t0 if layer == 1 else fours + (layer - 2) * BLOCK
            above, fall = fall, fall - BLOCK
            depth = (widths[layer + 1] + 3) // 4 * 4
            product(d, fall, d, above, w, row_start[layer], acc, ZEROS, whole, depth, width)
            through_tanh(d, fall, h, below, biases, bias_of_c + layer - 1, rows, width)
            if rates[layer, 0] > 0.0:
                matrix = middle_of_c + (layer - 1) * width
                add_turned_product(middle, matrix, d, above, h, below, depth, whole, width)
        if kind == LISTED:
            add_turned_product(sums, rows_of_c, mask, FIRST, d, FIRST, fours, whole, width)
            continue
        if kind == EARLIER:
            add_from_the_end(sums, rows_of_c + t0, acc, d, whole, width)
        else:
            for s in range(rows):
                set_row(sums, rows_of_c + t0 + s, d, s, width, -ONE)
                add_row(acc, RUNNING, d, s, width, ONE)
    if kind == OTHERS:
        for j in range(n):
            add_row(sums, rows_of_c + j, acc, RUNNING, width, ONE)


# Scattered rows of weights are read in loops that do little else, so that the processor prefetches.


@jit(fastmath=SUM, pipeline_class=NoAlias)
def logits(raw, tops, top, w, heads, flat, order, t0, rows, head_start, width):
    """Set raw[s] to the logits of a block's variables, from units `tops`; `flat` has biases."""
    for s in range(rows):
        i, u = order[t0 + s], (top + s) & INDEX
        first = head_start[i]
        for o in range(first, head_start[i + 1]):
            r, total = (heads + o) & INDEX, ZERO
            for k in range(width):
                total += w[r, k] * tops[u, k]
            raw[s, o - first] = total + flat[o]


@jit(fastmath=FMA, pipeline_class=NoAlias)
def slopes_below_heads(d, d0, w, heads, slope, c, order, t0, rows, head_start, width):
    """Compute the slopes of a block's units in the last hidden layer."""
    for s in range(rows):
        i, u = order[t0 + s], (d0 + s) & INDEX
        first, end = head_start[i], head_start[i + 1]
        factor, r = slope[c, first] if first < end else ZERO, (heads + first) & INDEX
        for k in range(width):
            d[u, k] = factor * w[r, k]
        for o in range(first + 1, end):
            factor, r = slope[c, o], (heads + o) & INDEX
            for k in range(width):
                d[u, k] += factor * w[r, k]


@jit(fastmath=FMA, pipeline_class=NoAlias)
def add_from_the_end(sums, r, acc, d, rows, width):
    """Set sums[r + s] to acc[RUNNING], which then grows by d[s]; last rows first, in fours."""
    for four in range(rows - 4, -1, -4):
        s, u = four & INDEX, (r + four) & INDEX
        for k in range(width):
            after3 = acc[RUNNING, k]
            after2 = after3 + d[s + 3, k]
            after1 = after2 + d[s + 2, k]
            after0 = after1 + d[s + 1, k]
            sums[u + 3, k], sums[u + 2, k] = after3, after2
            sums[u + 1, k], sums[u, k] = after1, after0
            acc[RUNNING, k] = after0 + d[s, k]


@jit()
def all_epochs(data, steps, plan, groups, schedule, stream, shared, own, kind):
    """Run `slopes` and `update` for all candidates and variables, epoch after epoch."""
    count, n = data.points.shape
    for epoch in range(schedule.epochs):
        slopes(data, epoch, plan, groups, schedule, stream, shared, own, kind, FIRST, count)
        update(data, steps + epoch + 1, plan, schedule, shared, own.row, kind, FIRST, n)
