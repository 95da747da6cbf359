"""The part that sampling and training share: the arrangement of parameters, contexts, outputs."""

from __future__ import annotations

import math

import numpy as np

from anyorder.strategies.policy.engines.kernels import (
    BERNOULLI,
    FIRST,
    ONE,
    ZERO,
    f32,
    jit,
    unit,
    words,
)
from anyorder.strategies.policy.engines.shared_cpu.kernels.products import add_row, copy_row
from anyorder.strategies.policy.rng import INIT

EARLIER, OTHERS, LISTED = range(3)  # contexts: prefixes of an order, all others, or any mask


# --- parameters -------------------------------------------------------------------------------


@jit()
def initial_theta(theta, plan, key0, key1, restart):
    """Draw the parameters of `SharedNetwork.initial_theta`."""
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
    """Copy padded rows back to parameters, as `load` reads them."""
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
    """Transpose the weights between the first layer and the heads: inputs x outputs."""
    for layer in range(1, len(plan.widths) - 1):
        r, t = plan.row_start[layer], (layer - 1) * w.shape[1]
        for k in range(plan.widths[layer + 1]):
            for f in range(plan.widths[layer]):
                turned[t + f, k] = w[r + k, f]


# --- contexts ---------------------------------------------------------------------------------


@jit()
def sort_by_key(order, spare, keys):
    """Sort stably by 32-bit keys, with a radix sort."""
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


@jit()
def empty_context(base, plan, w):
    """Set base[0] to the first layer's pre-activations where every variable is hidden."""
    width = w.shape[1]
    copy_row(base, 0, w, plan.row_start[-1], width)
    for f in range(len(plan.owner)):
        if plan.hidden_value[f] != ZERO:
            add_row(base, 0, w, f, width, plan.hidden_value[f])


@jit()
def visible(mask, s, i, place, plan, drops, c, tag, stream):
    """Set mask[s] to 1 for the variables that variable i sees, by its place (-1: no order)."""
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
def normalise(raw, d):
    """Replace logits by probabilities: sigmoid of raw[0] if d is 2, otherwise softmax."""
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
    """Return a probability within the clip."""
    return min(max(p, floor), ONE - floor)


@jit()
def binary_slope(logit, value, gain, share, old_zero, old_one, floor, beta, log):
    """Return the objective's slope in the logit of two values: see `kernels.binary_slopes`."""
    q = ONE / (ONE + math.exp(-logit))
    inside = q > floor and q < ONE - floor
    if log:
        rise = gain * ((ONE if value == 1 else ZERO) - q) - beta * (q - old_one)
        return share * rise if inside else ZERO
    gain = gain / old_one if value == 1 else -gain / old_zero
    return share * (gain * (q * (ONE - q)) - beta * (q - old_one)) if inside else ZERO


@jit()
def categorical_slopes(
    slope, c, at, raw, d, value, gain, share, old, start, floor, beta, loss, log
):
    """Compute the slopes in the d logits of `raw`, which it changes: see `equations.gradient`."""
    normalise(raw, d)
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
            rise += gain / (new if log else before)
        slope[c, at + k] = rise * share
        mean += slope[c, at + k] * new
    inner_sum = ZERO
    for k in range(d):
        inside = raw[k] > floor and raw[k] < ONE - floor
        slope[c, at + k] = (slope[c, at + k] - mean) / total if inside else ZERO
        inner_sum += slope[c, at + k] * raw[k]
    for k in range(d):
        slope[c, at + k] = raw[k] * (slope[c, at + k] - inner_sum)
