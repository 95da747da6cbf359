"""Sampling from the shared network, and its conditional distributions: compiled loops."""

from __future__ import annotations

import numpy as np

from anyorder.strategies.policy.engines.kernels import (
    FIRST,
    ONE,
    SINGLE,
    SQUARES,
    ZERO,
    draw_masked,
    jit,
    pick,
    unit,
    words,
    write_plain,
)
from anyorder.strategies.policy.engines.shared_cpu.kernels.common import (
    EARLIER,
    LISTED,
    OTHERS,
    clipped,
    empty_context,
    normalise,
    sort_by_key,
    visible,
)
from anyorder.strategies.policy.engines.shared_cpu.kernels.products import (
    add_row,
    add_row_product,
    copy_row,
    inner,
    squash,
)
from anyorder.strategies.policy.rng import VALUE


@jit(inline="always")
def contribute(out, r, j, point, plan, w):
    """Add to out[r] the contribution of variable j's value to the first layer's pre-activations."""
    codes, code_base, hidden = plan.codes, plan.code_base, plan.hidden_value
    first, end = plan.feature_start[j], plan.feature_start[j + 1]
    for f in range(first, end if point >= 0 else first):
        seen = codes[code_base[f] + point] - hidden[f]
        add_row(out, r, w, f, w.shape[1], seen)


@jit()
def walk(points, probs, keys, c, row, plan, groups, stream, shared, own, kind, tag, sweeps, loss):
    """Compute the distributions of candidate c, variable by variable.

    If `sweeps` > 0, also draw its values.

    `kind` is the kind of the contexts, and `tag` the purpose of dropout, or -1 for none. After the
    first of several sweeps every variable is drawn again, given all others: Gibbs sampling.
    """
    w, turned, h, order, place = shared.w, shared.turned, own.h, own.order, own.place
    parts, acc, raw, draws = own.parts, own.acc, own.raw[0], own.draws
    n, width, last, heads = len(plan.cards), w.shape[1], len(plan.widths) - 1, plan.row_start[-2]
    bias = plan.row_start[-1]
    drawing = sweeps > 0
    if groups is not None:  # the compiler drops this where there are no groups
        used = np.zeros(groups.most.shape, np.int64)
    ordered = kind != OTHERS and len(keys) > 0
    place[:] = -1
    if ordered:
        sort_by_key(order, own.spare, keys[c])
        for t in range(n):
            place[order[t]] = t
    else:
        for t in range(n):
            order[t] = t
    empty_context(acc, plan, w)
    # acc[0]: an empty context; acc[1]: that of all values known so far
    copy_row(acc, 1, acc, 0, width)
    parts[:] = ZERO
    if not drawing:
        for j in range(n):
            contribute(parts, j, j, points[c, j], plan, w)
            if kind == OTHERS:
                add_row(acc, 1, parts, j, width, ONE)
    for sweep in range(max(1, sweeps)):
        if drawing:
            values = VALUE + 256 * sweep
            words(draws, FIRST, row, stream.generation, values, stream.key0, stream.key1)
        for t in range(n):
            i = order[t]
            d, start, value = plan.cards[i], plan.value_start[i], -1
            if plan.outputs[i] == 0:
                if drawing:
                    points[c, i] = 0
                probs[c, start] = ONE
                continue
            if kind == LISTED:
                visible(own.mask, FIRST, i, place, plan, own.drops, row, tag, stream)
                copy_row(h, 0, acc, 0, width)  # row k of h holds the units of layer k
                for j in range(n):
                    if own.mask[0, j] > ZERO:
                        add_row(h, 0, parts, j, width, ONE)
            else:
                copy_row(h, 0, acc, 1, width)
                if kind == OTHERS:
                    add_row(h, 0, parts, i, width, -ONE)
            squash(h, FIRST, SINGLE, width)
            for layer in range(1, last):
                copy_row(h, layer, w, bias + layer, width)
                depth = (plan.widths[layer] + 3) // 4 * 4
                below, matrix = layer - 1, (layer - 1) * width
                add_row_product(h, layer, h, below, turned, matrix, depth, width)
                squash(h, layer, SINGLE, width)
            for k in range(plan.outputs[i]):
                o = plan.head_start[i] + k
                raw[k] = inner(w, heads + o, h, last - 1, width)
                raw[k] += w[bias + last + o // width, o % width]
            masked = False
            if groups is not None:
                masked = groups.of[i] >= 0
                if masked:
                    write_plain(probs, c, start, raw, d)
                if masked and drawing:
                    value = draw_masked(raw, used, plan, groups, i, unit(draws[i]))
            if loss == SQUARES:
                probs[c, start] = raw[0]
            elif not masked:
                normalise(raw, d)
                total = ZERO
                for k in range(d):
                    total += clipped(raw[k], plan.floor[i])
                for k in range(d):
                    probs[c, start + k] = clipped(raw[k], plan.floor[i]) / total
            if drawing:
                if value < 0:
                    value = pick(probs, c, start, d, unit(draws[i]))
                points[c, i] = value
                add_row(acc, 1, parts, i, width, -ONE)
                parts[i] = ZERO
                contribute(parts, i, i, points[c, i], plan, w)
            if drawing or kind == EARLIER:
                add_row(acc, 1, parts, i, width, ONE)
