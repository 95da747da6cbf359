"""What sampling and training share: products, the arrangement of parameters, contexts, outputs."""

from __future__ import annotations

import math

import numpy as np

from anyorder.strategies.policy.engines.kernels import (
    BERNOULLI,
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
    tanh,
    unit,
    words,
)
from anyorder.strategies.policy.rng import INIT

EARLIER, OTHERS, LISTED = range(3)  # contexts: prefixes of an order, all others, or any mask


# --- matrix products --------------------------------------------------------------------------


@jit(fastmath=FMA, pipeline_class=NoAlias)
def add_product(c, a, b, rows, depth, width):
    """C += a b, for rows and depth in whole fours."""
    for four in range(0, rows, 4):
        r = four & INDEX
        for other in range(0, depth, 4):
            k = other & INDEX
            p0, p1, p2, p3 = a[r, k], a[r, k + 1], a[r, k + 2], a[r, k + 3]
            q0, q1, q2, q3 = a[r + 1, k], a[r + 1, k + 1], a[r + 1, k + 2], a[r + 1, k + 3]
            s0, s1, s2, s3 = a[r + 2, k], a[r + 2, k + 1], a[r + 2, k + 2], a[r + 2, k + 3]
            t0, t1, t2, t3 = a[r + 3, k], a[r + 3, k + 1], a[r + 3, k + 2], a[r + 3, k + 3]
            for j in range(width):
                b0, b1, b2, b3 = b[k, j], b[k + 1, j], b[k + 2, j], b[k + 3, j]
                c[r, j] += (p0 * b0 + p1 * b1) + (p2 * b2 + p3 * b3)
                c[r + 1, j] += (q0 * b0 + q1 * b1) + (q2 * b2 + q3 * b3)
                c[r + 2, j] += (s0 * b0 + s1 * b1) + (s2 * b2 + s3 * b3)
                c[r + 3, j] += (t0 * b0 + t1 * b1) + (t2 * b2 + t3 * b3)


@jit(fastmath=FMA, pipeline_class=NoAlias)
def add_turned_product(c, a, b, rows, depth, width):
    """C += a^T b, for rows and depth in whole fours."""
    for four in range(0, rows, 4):
        r = four & INDEX
        for other in range(0, depth, 4):
            k = other & INDEX
            p0, q0, s0, t0 = a[k, r], a[k, r + 1], a[k, r + 2], a[k, r + 3]
            p1, q1, s1, t1 = a[k + 1, r], a[k + 1, r + 1], a[k + 1, r + 2], a[k + 1, r + 3]
            p2, q2, s2, t2 = a[k + 2, r], a[k + 2, r + 1], a[k + 2, r + 2], a[k + 2, r + 3]
            p3, q3, s3, t3 = a[k + 3, r], a[k + 3, r + 1], a[k + 3, r + 2], a[k + 3, r + 3]
            for j in range(width):
                b0, b1, b2, b3 = b[k, j], b[k + 1, j], b[k + 2, j], b[k + 3, j]
                c[r, j] += (p0 * b0 + p1 * b1) + (p2 * b2 + p3 * b3)
                c[r + 1, j] += (q0 * b0 + q1 * b1) + (q2 * b2 + q3 * b3)
                c[r + 2, j] += (s0 * b0 + s1 * b1) + (s2 * b2 + s3 * b3)
                c[r + 3, j] += (t0 * b0 + t1 * b1) + (t2 * b2 + t3 * b3)


@jit(fastmath=FMA, pipeline_class=NoAlias)
def add_row_product(c, a, b, depth, width):
    """c[0] += a[0] b, for a depth in whole fours."""
    for other in range(0, depth, 4):
        k = other & INDEX
        p0, p1, p2, p3 = a[0, k], a[0, k + 1], a[0, k + 2], a[0, k + 3]
        for j in range(width):
            c[0, j] += (p0 * b[k, j] + p1 * b[k + 1, j]) + (p2 * b[k + 2, j] + p3 * b[k + 3, j])


@jit(fastmath=FMA, pipeline_class=NoAlias)
def squash(h, rows, width):
    """Tanh in place. Padding is tanh(0) = 0."""
    for r in range(rows):
        for k in range(width):
            h[r, k] = tanh(h[r, k])


@jit(fastmath=FMA, pipeline_class=NoAlias)
def through_tanh(d, h, rows, width):
    """Slopes of pre-activations from those of h = tanh(pre-activations), in place."""
    for r in range(rows):
        for k in range(width):
            d[r, k] *= ONE - h[r, k] * h[r, k]


@jit(forceinline=True, fastmath=FMA, pipeline_class=NoAlias)
def add_row(out, r, a, s, width, factor):
    """out[r] += factor * a[s]."""
    r, s = r & INDEX, s & INDEX
    for k in range(width):
        out[r, k] += factor * a[s, k]


@jit(forceinline=True, fastmath=FMA, pipeline_class=NoAlias)
def copy_row(out, r, a, s, width):
    """out[r] = a[s]."""
    r, s = r & INDEX, s & INDEX
    for k in range(width):
        out[r, k] = a[s, k]


@jit(forceinline=True, fastmath=SUM, pipeline_class=NoAlias)
def inner(a, r, b, s, width):
    """a[r] . b[s]."""
    r, s = r & INDEX, s & INDEX
    total = ZERO
    for k in range(width):
        total += a[r, k] * b[s, k]
    return total


# --- parameters -------------------------------------------------------------------------------


@jit()
def initial_theta(theta, plan, key0, key1, restart):
    """`SharedNetwork.initial_theta`."""
    scratch = np.empty((len(theta) + 3) // 4 * 4, np.uint32)
    words(scratch, FIRST, FIRST, restart, INIT, key0, key1)
    at, widths = 0, plan.widths
    for layer in range(len(widths)):
        fan_in = widths[layer]
        fan_out = widths[layer + 1] if layer + 1 < len(widths) else plan.head_start[-1]
        bound = f32(1.0 / math.sqrt(fan_in)) if fan_in > 0 else ZERO
        for p in range(at, at + fan_out * (fan_in + 1)):
            theta[p] = f32(2.0 * unit(scratch[p]) - 1.0) * bound
        at += fan_out * (fan_in + 1)


@jit()
def load(plan, theta, rows_of, scale):
    """Copy parameters (or moments, scaled) into padded rows: see `SharedPlan.row_start`."""
    at, widths, heads = 0, plan.widths, plan.head_start[-1]
    for layer in range(len(widths)):
        outputs = widths[layer + 1] if layer + 1 < len(widths) else heads
        width = outputs if layer == 0 else widths[layer]
        r = plan.row_start[layer]
        for k in range(widths[0] if layer == 0 else outputs):
            for f in range(width):
                rows_of[r + k, f] = theta[at + f] * scale
            at += width
        b, width = plan.row_start[-1] + layer, rows_of.shape[1]
        for k in range(outputs):  # those of the heads may take several rows
            rows_of[b + k // width, k % width] = theta[at + k] * scale
        at += outputs


@jit()
def store(plan, theta, rows_of, scale):
    """The inverse of `load`."""
    at, widths, heads = 0, plan.widths, plan.head_start[-1]
    for layer in range(len(widths)):
        outputs = widths[layer + 1] if layer + 1 < len(widths) else heads
        width = outputs if layer == 0 else widths[layer]
        r = plan.row_start[layer]
        for k in range(widths[0] if layer == 0 else outputs):
            for f in range(width):
                theta[at + f] = rows_of[r + k, f] * scale
            at += width
        b, width = plan.row_start[-1] + layer, rows_of.shape[1]
        for k in range(outputs):
            theta[at + k] = rows_of[b + k // width, k % width] * scale
        at += outputs


@jit()
def turn(plan, w, turned):
    """The weights of the layers between the first and the heads, inputs x outputs."""
    for layer in range(1, len(plan.widths) - 1):
        r = plan.row_start[layer]
        for k in range(plan.widths[layer + 1]):
            for f in range(plan.widths[layer]):
                turned[layer - 1, f, k] = w[r + k, f]


# --- contexts ---------------------------------------------------------------------------------


@jit()
def sort_by_key(order, spare, keys):
    """The stable order of 32-bit keys: a radix sort."""
    n = len(keys)
    count = np.empty(257, np.int64)
    for j in range(n):
        order[j] = j
    for shift in (0, 8, 16, 24):
        count[:] = 0
        for j in range(n):
            count[((keys[j] >> np.uint32(shift)) & np.uint32(255)) + 1] += 1
        for b in range(256):
            count[b + 1] += count[b]
        for t in range(n):
            j = order[t]
            b = (keys[j] >> np.uint32(shift)) & np.uint32(255)
            spare[count[b]] = j
            count[b] += 1
        for t in range(n):
            order[t] = spare[t]


@jit(inline="always")
def contribute(out, r, j, point, plan, w):
    """out[r] += what the value of variable j adds to the first layer's pre-activations."""
    codes, code_base, hidden = plan.codes, plan.code_base, plan.hidden_value
    first, end = plan.feature_start[j], plan.feature_start[j + 1]
    for f in range(first, end if point >= 0 else first):
        seen = codes[code_base[f] + point] - hidden[f]
        add_row(out, r, w, f, w.shape[1], seen)


@jit()
def empty_context(base, plan, w):
    """base[0]: pre-activations of the first layer where every variable is hidden."""
    width = w.shape[1]
    copy_row(base, 0, w, plan.row_start[-1], width)
    for f in range(len(plan.owner)):
        if plan.hidden_value[f] != ZERO:
            add_row(base, 0, w, f, width, plan.hidden_value[f])


@jit()
def visible(mask, s, i, place, plan, drops, c, tag, stream):
    """mask[s]: 1 for variables that variable i sees, by its place in the order (-1: no order)."""
    n, graph = len(plan.cards), plan.graph
    dropping = stream.threshold > 0 and tag >= 0
    if dropping:
        words(drops, i * (len(drops) // 4), c, stream.generation, tag, stream.key0, stream.key1)
    for j in range(n):
        seen = j != i if place[i] < 0 else place[j] < place[i]
        if len(graph) > 0 and graph[i, j] == 0:
            seen = False
        if dropping and np.uint64(drops[j]) < np.uint64(stream.threshold):
            seen = False
        mask[s, j] = ONE if seen else ZERO


# --- outputs ----------------------------------------------------------------------------------


@jit()
def squashed(raw, d):
    """Probabilities from logits, in place: sigmoid of raw[0] if d is 2, or softmax of d logits."""
    if d == 2:
        one = ONE / (ONE + math.exp(-raw[0]))
        raw[0], raw[1] = ONE - one, one
        return
    top = raw[0]
    for k in range(1, d):
        top = max(top, raw[k])
    total = ZERO
    for k in range(d):
        raw[k] = math.exp(raw[k] - top)
        total += raw[k]
    for k in range(d):
        raw[k] /= total


@jit()
def clipped(p, floor):
    """A probability within the clip."""
    return min(max(p, floor), ONE - floor)


@jit(inline="always")
def output_slopes(slope, raw, c, i, data, plan, beta, loss):
    """Slopes of the objective in variable i's logits, from the logits in `raw`, which it changes.

    The formulas are those of `equations.gradient`, and of `kernels.binary_slopes` for two values.
    """
    share = data.weights[c, i] / f32(len(data.points))
    at, start, floor = plan.head_start[i], plan.value_start[i], plan.floor[i]
    if loss == SQUARES:
        slope[at] = f32(2.0) * share * (data.advantages[c, i] - raw[0])
        return
    d, value, gain, old = plan.cards[i], data.points[c, i], data.advantages[c, i], data.old
    squashed(raw, d)
    if d == 2:
        q, one = raw[1], old[c, start + 1]
        gain = gain / one if value == 1 else -gain / old[c, start]
        inside = q > floor and q < ONE - floor
        slope[at] = share * (gain * (q * (ONE - q)) - beta * (q - one)) if inside else ZERO
        return
    total = ZERO
    for k in range(d):
        total += clipped(raw[k], floor)
    mean = ZERO
    for k in range(d):
        new, before = clipped(raw[k], floor) / total, old[c, start + k]
        if loss == BERNOULLI:
            rise = -beta * (new - before) / (new * (ONE - new))
        else:
            rise = beta * before / new
        if k == value:
            rise += gain / before
        slope[at + k] = rise * share
        mean += slope[at + k] * new
    inner_sum = ZERO
    for k in range(d):
        inside = raw[k] > floor and raw[k] < ONE - floor
        slope[at + k] = (slope[at + k] - mean) / total if inside else ZERO
        inner_sum += slope[at + k] * raw[k]
    for k in range(d):
        slope[at + k] = raw[k] * (slope[at + k] - inner_sum)
