"""The compiled loops of the engine `cpu`: one fused kernel per phase.

All compiled functions of separate networks are in this one file: Numba's cache on disk notices
changes of the file that a function is in, but not of the functions it calls. Their structured
arguments are in `kernel_arguments.py`. What makes the loops fast:

- The E epochs of a variable only change the parameters of that variable (eq. (8) is a sum over
  variables), so they run one after another with weights and moments in the core's own cache.
- Every hot loop runs along the inputs with unit stride, padded to whole vectors; candidates are
  unrolled by hand (by five in the forward pass, by ten in the backward pass), so that each loaded
  weight or input is used several times. Batches are padded to whole fives and rows of weights to
  pairs, which leaves no remainders.
- The gradient of a weight is never stored: Adam's step uses it at once.
- tanh is a rational function; there are no library calls in the hot loops.
- Functions with hot loops take arrays, not tuples of arrays, and call no function that takes an
  array: passing arrays on, slicing them and reading them from tuples costs atomic reference counts.
  They are inlined (forceinline), as passing a dozen arrays takes as long as a short loop. They
  declare that their arguments do not overlap, which saves a check before each loop.
- Arrays are copied by loops: the message of `a[:] = b` for other shapes takes seconds to compile.
- `groups` is None for models without groups. Numba compiles a version for None, from which it drops
  what is behind `if groups is not None`: masks cost nothing where there are none.
"""

from __future__ import annotations

import math

import numpy as np
from numba.core.compiler import Compiler

from anyorder._internal.compiling import cached
from anyorder.strategies.policy import masks
from anyorder.strategies.policy.rng import DROP_G, DROP_T, INIT, VALUE

# Fast-math flags. Only SUM allows sums to be reordered, none makes assumptions about NaN, and only
# STEP, which estimates reciprocals, assumes that there are no infinities.
SUM = {"reassoc", "contract", "nsz"}
FMA = {"contract", "nsz"}
STEP = {"contract", "nsz", "arcp", "afn", "ninf"}

f32 = np.float32
LANES = 16  # float32 numbers in the widest vectors; rows are padded to a multiple
ZERO, ONE = f32(0.0), f32(1.0)
LEAST = f32(masks.LEAST)
# It tells the compiler that `i & INDEX` is not negative, so that no code is generated for indices
# that count from the end. (The compiler knows this of loop variables with step one.)
INDEX = 2**48 - 1
# Typed numbers: Numba compiles a function again for an argument that is a literal, or a variable
# that starts as one.
FIRST, SINGLE = np.int64(0), np.int64(1)

# What is trained: eq. (8) with one of two KL divergences, or the squared error of a critic.
CATEGORICAL, BERNOULLI, SQUARES = range(3)


class NoAlias(Compiler):
    """Numba's own compiler, with the assumption that array arguments do not overlap."""

    def define_pipelines(self):
        """Set the flag, then compile as usual."""
        self.state.flags.noalias = True
        return super().define_pipelines()


def jit(**options):
    """Return a decorator that compiles without the GIL."""
    return cached(nogil=True, error_model="numpy", **options)


# --- random numbers ---------------------------------------------------------------------------

_MASK = np.uint64(0xFFFFFFFF)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_32 = np.uint64(32)


@jit()
def philox(c0, c1, c2, c3, k0, k1):
    """Return Philox4x32-10, as in `rng.philox`, of words held in uint64."""
    for _ in range(10):
        p0 = c0 * _M0
        p1 = c2 * _M1
        c0 = (p1 >> _32) ^ c1 ^ k0
        c1 = p1 & _MASK
        c2 = (p0 >> _32) ^ c3 ^ k1
        c3 = p0 & _MASK
        k0 = (k0 + _W0) & _MASK
        k1 = (k1 + _W1) & _MASK
    return c0, c1, c2, c3


@jit(pipeline_class=NoAlias)
def words(out, first_block, row, generation, tag, key0, key1):
    """Fill `out`, whose length is a multiple of four, with the words of a row."""
    c1, c2, c3 = np.uint64(row), np.uint64(generation), np.uint64(tag)
    k0, k1 = np.uint64(key0), np.uint64(key1)
    for b in range(len(out) // 4):
        a0, a1, a2, a3 = philox(np.uint64(first_block + b), c1, c2, c3, k0, k1)
        out[4 * b] = np.uint32(a0)
        out[4 * b + 1] = np.uint32(a1)
        out[4 * b + 2] = np.uint32(a2)
        out[4 * b + 3] = np.uint32(a3)


@jit()
def unit(word):
    """Return a word as a number in [0, 1), as `rng.uniform` does."""
    return f32(word >> np.uint32(8)) * f32(2.0**-24)


@jit()
def order_keys(keys, owner, n, purpose, rows, generations, key0, key1):
    """Fill in sort keys `(E, B, len(owner))` of orders: entry f is the key of variable `owner[f]`.

    The orders of candidate c, one for each epoch, are those of `rows[c]` and `generations[c]`.
    """
    scratch = np.empty((n + 3) // 4 * 4, np.uint32)
    for e in range(keys.shape[0]):
        for c in range(keys.shape[1]):
            words(scratch, FIRST, rows[c], generations[c], purpose + 256 * e, key0, key1)
            for f in range(len(owner)):
                keys[e, c, f] = scratch[owner[f]]


@jit()
def initial_theta(theta, i0, i1, plan, key0, key1, restart):
    """Draw the parameters of `SeparateNetworks.initial_theta` for variables i0 to i1."""
    for i in range(i0, i1):
        size = plan.theta_start[i + 1] - plan.theta_start[i]
        scratch = np.empty((size + 3) // 4 * 4, np.uint32)
        words(scratch, FIRST, i, restart, INIT, key0, key1)
        at = 0
        for layer in range(len(plan.widths)):
            if plan.outputs[i] == 0:
                break
            fan_in, fan_out = plan.widths[layer], _fan_out(plan, i, layer)
            bound = f32(1.0 / math.sqrt(fan_in)) if fan_in > 0 else ZERO
            for p in range(at, at + fan_out * (fan_in + 1)):
                draw = f32(2.0 * unit(scratch[p]) - 1.0)
                theta[plan.theta_start[i] + p] = draw * bound
            at += fan_out * (fan_in + 1)


# --- arithmetic of one layer ------------------------------------------------------------------


@jit(fastmath=FMA)
def tanh(x):
    """Return tanh to 4e-7 relative: a least-squares fit of x P(x^2) / Q(x^2) on [-9, 9]."""
    t = x * x
    t = t if t < f32(81.0) else f32(81.0)
    p = f32(1.3355364814060522e-08)
    p = p * t + f32(2.0609646526281722e-05)
    p = p * t + f32(0.003495624754577875)
    p = p * t + f32(0.13381057977676392)
    p = p * t + ONE
    q = f32(7.776862389619055e-07)
    q = q * t + f32(0.0003285693237558007)
    q = q * t + f32(0.025877123698592186)
    q = q * t + f32(0.4671437442302704)
    q = q * t + ONE
    y = x * p / q
    y = y if y > -ONE else -ONE
    return y if y < ONE else ONE


@jit(forceinline=True, fastmath=SUM, pipeline_class=NoAlias)
def dense(w, r, rows, b, y, below, batch, width, h, layer):
    """Compute h[layer] = y[below] w^T + biases for a batch; weights from row r on, biases in b.

    Two rows by five candidates at a time. An odd last row is followed by a row of zeros.
    """
    r, b, below, layer = r & INDEX, b & INDEX, below & INDEX, layer & INDEX
    for five in range(0, batch, 5):
        c = five & INDEX
        for pair in range(0, rows, 2):
            k = pair & INDEX
            a0 = a1 = a2 = a3 = a4 = ZERO
            b0 = b1 = b2 = b3 = b4 = ZERO
            for f in range(width):
                u, v = w[r + k, f], w[r + k + 1, f]
                y0, y1, y2 = y[below, c, f], y[below, c + 1, f], y[below, c + 2, f]
                y3, y4 = y[below, c + 3, f], y[below, c + 4, f]
                a0 += u * y0
                a1 += u * y1
                a2 += u * y2
                a3 += u * y3
                a4 += u * y4
                b0 += v * y0
                b1 += v * y1
                b2 += v * y2
                b3 += v * y3
                b4 += v * y4
            u, v = w[b, k], w[b, k + 1]
            h[layer, c, k], h[layer, c, k + 1] = a0 + u, b0 + v
            h[layer, c + 1, k], h[layer, c + 1, k + 1] = a1 + u, b1 + v
            h[layer, c + 2, k], h[layer, c + 2, k + 1] = a2 + u, b2 + v
            h[layer, c + 3, k], h[layer, c + 3, k + 1] = a3 + u, b3 + v
            h[layer, c + 4, k], h[layer, c + 4, k + 1] = a4 + u, b4 + v


@jit(forceinline=True, fastmath=SUM, pipeline_class=NoAlias)
def dense_one(theta, at, rows, y, below, width, h, layer):
    """Compute `dense` for candidate 0, with the layer's parameters in theta from `at` on."""
    at, width, below, layer = at & INDEX, width & INDEX, below & INDEX, layer & INDEX
    bias = (at + rows * width) & INDEX
    fours = rows // 4 * 4
    for four in range(0, fours, 4):
        k = four & INDEX
        r0 = (at + k * width) & INDEX
        r1, r2, r3 = r0 + width, r0 + 2 * width, r0 + 3 * width
        a0 = a1 = a2 = a3 = ZERO
        for f in range(width):
            u = y[below, 0, f]
            a0 += theta[r0 + f] * u
            a1 += theta[r1 + f] * u
            a2 += theta[r2 + f] * u
            a3 += theta[r3 + f] * u
        h[layer, 0, k], h[layer, 0, k + 1] = a0 + theta[bias + k], a1 + theta[bias + k + 1]
        h[layer, 0, k + 2], h[layer, 0, k + 3] = a2 + theta[bias + k + 2], a3 + theta[bias + k + 3]
    for k in range(fours, rows):
        r0 = (at + k * width) & INDEX
        a0 = ZERO
        for f in range(width):
            a0 += theta[r0 + f] * y[below, 0, f]
        h[layer, 0, k] = a0 + theta[bias + k]


@jit(forceinline=True, fastmath=FMA, pipeline_class=NoAlias)
def activate(h, layer, batch):
    """Apply tanh to a layer's outputs. Padding is tanh(0) = 0."""
    layer = layer & INDEX
    for c in range(batch):
        for k in range(h.shape[2]):
            h[layer, c, k] = tanh(h[layer, c, k])


@jit(forceinline=True, fastmath=STEP, pipeline_class=NoAlias)
def backpropagate(w, r, rows, delta, layer, h, batch, width):
    """Propagate back through a layer and tanh: delta[layer - 1] = (delta[layer] w) (1 - y^2).

    Five rows at a time: the slopes of rows after the last one are zero.
    """
    r, layer, below = r & INDEX, layer & INDEX, (layer - 1) & INDEX
    for c in range(batch):
        for five in range(0, rows, 5):
            k = five & INDEX
            d0, d1, d2 = delta[layer, c, k], delta[layer, c, k + 1], delta[layer, c, k + 2]
            d3, d4 = delta[layer, c, k + 3], delta[layer, c, k + 4]
            for f in range(width):
                g = (d0 * w[r + k, f] + d1 * w[r + k + 1, f]) + (
                    d2 * w[r + k + 2, f] + d3 * w[r + k + 3, f] + d4 * w[r + k + 4, f]
                )
                before = delta[below, c, f] if k > 0 else ZERO
                delta[below, c, f] = before + g * (ONE - h[below, c, f] * h[below, c, f])


@jit(forceinline=True, fastmath=STEP, pipeline_class=NoAlias)
def adam_ascent(w, m, v, r, rows, delta, layer, y, below, g, batch, width, adam):
    """Apply Adam to weights from row r on.

    Row k has the gradient sum_c delta[layer, c, k] y[below, c].

    m and v are decaying sums of the gradient and its square, not means. The factors for that,
    Adam's bias corrections and the learning rate are all in `slow` and `eps`, which saves
    operations.
    """
    beta1, beta2, slow, eps = adam
    r, layer, below = r & INDEX, layer & INDEX, below & INDEX
    for k in range(rows):
        if batch == 10:  # the default batch: no gradient is stored
            d0, d1, d2 = delta[layer, 0, k], delta[layer, 1, k], delta[layer, 2, k]
            d3, d4 = delta[layer, 3, k], delta[layer, 4, k]
            d5, d6, d7 = delta[layer, 5, k], delta[layer, 6, k], delta[layer, 7, k]
            d8, d9 = delta[layer, 8, k], delta[layer, 9, k]
            for f in range(width):
                # two chains of five: one chain of ten would take as long as the rest of the loop
                s = (
                    d0 * y[below, 0, f] + d1 * y[below, 1, f] + d2 * y[below, 2, f]
                    + d3 * y[below, 3, f] + d4 * y[below, 4, f]
                ) + (
                    d5 * y[below, 5, f] + d6 * y[below, 6, f] + d7 * y[below, 7, f]
                    + d8 * y[below, 8, f] + d9 * y[below, 9, f]
                )  # fmt: skip
                a = beta1 * m[r + k, f] + s
                b = beta2 * v[r + k, f] + s * s
                m[r + k, f] = a
                v[r + k, f] = b
                w[r + k, f] += a / (slow * math.sqrt(b) + eps)
            continue
        for f in range(width):
            g[f] = ZERO
        for five in range(0, batch, 5):
            c = five & INDEX
            d0, d1, d2 = delta[layer, c, k], delta[layer, c + 1, k], delta[layer, c + 2, k]
            d3, d4 = delta[layer, c + 3, k], delta[layer, c + 4, k]
            for f in range(width):
                g[f] += (d0 * y[below, c, f] + d1 * y[below, c + 1, f]) + (
                    d2 * y[below, c + 2, f] + d3 * y[below, c + 3, f] + d4 * y[below, c + 4, f]
                )
        for f in range(width):
            a = beta1 * m[r + k, f] + g[f]
            b = beta2 * v[r + k, f] + g[f] * g[f]
            m[r + k, f] = a
            v[r + k, f] = b
            w[r + k, f] += a / (slow * math.sqrt(b) + eps)


# --- one variable -----------------------------------------------------------------------------


@jit()
def _fan_out(plan, i, layer):
    """Return the number of outputs of a layer of variable i's network."""
    return plan.widths[layer + 1] if layer + 1 < len(plan.widths) else plan.outputs[i]


@jit(pipeline_class=NoAlias)
def load(plan, i, theta, rows_of, fans, scale):
    """Copy variable i's parameters (or moments, scaled) into the padded rows of a scratch."""
    at, widths, row_start = plan.theta_start[i] & INDEX, plan.widths, plan.row_start
    rows_of[:] = ZERO  # remove the previous variable's
    for layer in range(len(widths)):
        width, r, bias = widths[layer] & INDEX, row_start[layer] & INDEX, row_start[-1] + layer
        fans[layer] = _fan_out(plan, i, layer)
        for k in range(fans[layer]):
            for f in range(width):
                rows_of[r + k, f] = theta[at + f] * scale
            at = (at + width) & INDEX
        for k in range(fans[layer]):
            rows_of[bias, k] = theta[at + k] * scale
        at = (at + fans[layer]) & INDEX


@jit(pipeline_class=NoAlias)
def store(plan, i, theta, rows_of, fans, scale):
    """Copy the padded rows of a scratch back to variable i's parameters, as `load` reads them."""
    at, widths, row_start = plan.theta_start[i] & INDEX, plan.widths, plan.row_start
    for layer in range(len(widths)):
        width, r, bias = widths[layer] & INDEX, row_start[layer] & INDEX, row_start[-1] + layer
        for k in range(fans[layer]):
            for f in range(width):
                theta[at + f] = rows_of[r + k, f] * scale
            at = (at + width) & INDEX
        for k in range(fans[layer]):
            theta[at + k] = rows_of[bias, k] * scale
        at = (at + fans[layer]) & INDEX


@jit(forceinline=True, pipeline_class=NoAlias)
def show_earlier(x, active, batch, features, keys, e, hidden, first):
    """Set the inputs of the variable whose own start at `first`; hide variables after it.

    Equal keys are ordered by variable.
    """
    for a in range(batch):
        c = active[a]
        key = keys[e, c, first] if first < len(hidden) else np.uint32(0)
        for f in range(len(hidden)):
            other = keys[e, c, f]
            earlier = np.uint32(f) < np.uint32(first)  # half as fast with 64 bits
            # both are read: choosing between two addresses would not be vectorised
            shown, blank = features[c, f], hidden[f]
            x[0, a, f] = shown if (other < key) | ((other == key) & earlier) else blank


@jit(pipeline_class=NoAlias)
def show_all(x, active, batch, features, hidden, first, end):
    """Set the inputs of the variable that owns inputs first to end when it sees all others."""
    for a in range(batch):
        for f in range(len(hidden)):
            x[0, a, f] = features[active[a], f]
        for f in range(first, end):
            x[0, a, f] = hidden[f]


@jit()
def hide_by_graph(x, batch, graph, owner, hidden, i):
    """Hide variables that are not neighbours of i in the interaction graph."""
    for f in range(len(owner)):
        if graph[i, owner[f]] == 0:
            for a in range(batch):
                x[0, a, f] = hidden[f]


@jit()
def hide_dropped(x, a, owner, hidden, i, scratch, c, tag, stream):
    """Apply structural dropout to the inputs of variable i, row a, candidate c."""
    words(scratch, i * (len(scratch) // 4), c, stream.generation, tag, stream.key0, stream.key1)
    for f in range(len(owner)):
        if np.uint64(scratch[owner[f]]) < np.uint64(stream.threshold):
            x[0, a, f] = hidden[f]


@jit(inline="always")
def propagate(w, x, h, fans, pads, row_start, batch):
    """Propagate a batch through a variable's network, from x to the logits in h[-1]."""
    bias = row_start[-1]
    dense(w, FIRST, fans[0], bias, x, FIRST, batch, pads[0], h, FIRST)
    for layer in range(1, len(pads)):
        activate(h, layer - 1, batch)
        dense(
            w, row_start[layer], fans[layer], bias + layer, h, layer - 1, batch, pads[layer],
            h, layer,
        )  # fmt: skip


@jit(inline="always")
def softmax(h, last, a, raw, d):
    """Compute one candidate's probabilities from logits: sigmoid of one, or softmax of d."""
    if d == 2:
        one = ONE / (ONE + math.exp(-h[last, a, 0]))
        raw[0], raw[1] = ONE - one, one
    else:
        top = h[last, a, 0]
        for k in range(1, d):
            top = max(top, h[last, a, k])
        total = ZERO
        for k in range(d):
            raw[k] = math.exp(h[last, a, k] - top)
            total += raw[k]
        for k in range(d):
            raw[k] /= total


@jit(inline="always")
def clip_total(raw, d, floor):
    """Return the sum of the clipped probabilities."""
    total = ZERO
    for k in range(d):
        total += min(max(raw[k], floor), ONE - floor)
    return total


@jit()
def write_probabilities(probs, c, start, h, last, a, raw, d, floor):
    """Write the clipped and renormalised probabilities of one candidate and variable."""
    softmax(h, last, a, raw, d)
    total = clip_total(raw, d, floor)
    for k in range(d):
        probs[c, start + k] = min(max(raw[k], floor), ONE - floor) / total


@jit(inline="always")
def pick(probs, c, start, d, u):
    """Return the value that a uniform number gives under a distribution."""
    value = 0
    if d == 2:
        value = 1 if u < probs[c, start + 1] else 0
    else:
        below = probs[c, start]
        while value < d - 1 and u >= below:
            value += 1
            below += probs[c, start + value]
    return value


@jit()
def binary_terms(terms, active, count, data, i, start, beta, log):
    """Compute the factors of `binary_slopes` that are the same in all epochs."""
    points, old, advantages, weights = data.points, data.old, data.advantages, data.weights
    for a in range(count):
        c = active[a]
        share, one = weights[c, i] / f32(len(points)), old[c, start + 1]
        gain = advantages[c, i] / one if points[c, i] == 1 else -advantages[c, i] / old[c, start]
        terms[0, a], terms[1, a], terms[2, a] = gain * share, beta * share, one
        if log:
            gain = advantages[c, i]
            terms[0, a] = share * ((gain if points[c, i] == 1 else ZERO) + beta * one)
            terms[1, a] = share * (gain + beta)


@jit(forceinline=True)
def binary_slopes(delta, h, last, terms, count, floor, log):
    """Compute the objective's slope in the logit of two values, into `delta[last]`.

    `categorical_slopes` multiplied out: with q = pi(1), the slope of the ratio's term is
    +-A / pi_old(x) q (1 - q), that of the KL's is q - pi_old(1), and that of ln pi is A (x - q).
    """
    last = last & INDEX
    for a in range(count):
        q = ONE / (ONE + math.exp(-h[last, a, 0]))
        if log:
            slope = terms[0, a] - terms[1, a] * q
        else:
            slope = terms[0, a] * (q * (ONE - q)) - terms[1, a] * (q - terms[2, a])
        delta[last, a, 0] = slope if q > floor and q < ONE - floor else ZERO


@jit()
def categorical_slopes(delta, h, last, raw, active, count, data, i, plan, beta, kl, log):
    """Compute the slopes of a variable with d > 2 values: see `equations.gradient`."""
    points, old, advantages, weights = data.points, data.old, data.advantages, data.weights
    d, start, floor = plan.cards[i], plan.value_start[i], plan.floor[i]
    scale = ONE / f32(len(points))
    for a in range(count):
        c = active[a]
        softmax(h, last, a, raw, d)
        total = clip_total(raw, d, floor)
        mean = ZERO
        for k in range(d):
            new, before = min(max(raw[k], floor), ONE - floor) / total, old[c, start + k]
            if kl == BERNOULLI:
                slope = -beta * (new - before) / (new * (ONE - new))
            else:
                slope = beta * before / new
            if k == points[c, i]:
                slope += advantages[c, i] / (new if log else before)
            delta[last, a, k] = slope * (weights[c, i] * scale)
            mean += delta[last, a, k] * new
        inner = ZERO
        for k in range(d):
            inside = raw[k] > floor and raw[k] < ONE - floor
            delta[last, a, k] = (delta[last, a, k] - mean) / total if inside else ZERO
            inner += delta[last, a, k] * raw[k]
        for k in range(d):
            delta[last, a, k] = raw[k] * (delta[last, a, k] - inner)


@jit()
def square_slopes(delta, h, last, active, count, data, i):
    """Compute the slope of minus the squared error of an output; advantages are the targets."""
    advantages, weights, scale = data.advantages, data.weights, f32(2.0) / f32(len(data.points))
    for a in range(count):
        c = active[a]
        delta[last, a, 0] = scale * weights[c, i] * (advantages[c, i] - h[last, a, 0])


@jit()
def adam_step(schedule, rate, stretch, spread):
    """Return the constants of `adam_ascent`; the last two arguments include bias corrections."""
    # within float32: a gradient of 0 would be 0 / 0 with eps = 0, and inf * 0 with slow = inf
    eps = min(max(stretch / rate * schedule.eps, 1e-30), 1e30)
    slow = min(spread / rate, 1e30)
    return f32(schedule.beta1), f32(schedule.beta2), f32(slow), f32(eps)


# --- masks of groups: see `masks.py` ------------------------------------------------------------


@jit()
def write_plain(probs, c, start, raw, d):
    """Write probabilities over all values, before masks and clip, from the logits in `raw`."""
    if d == 2:
        one = ONE / (ONE + math.exp(-raw[0]))
        probs[c, start], probs[c, start + 1] = max(ONE - one, LEAST), max(one, LEAST)
        return
    top = raw[0]
    for k in range(1, d):
        top = max(top, raw[k])
    total = ZERO
    for k in range(d):
        probs[c, start + k] = math.exp(raw[k] - top)
        total += probs[c, start + k]
    for k in range(d):
        probs[c, start + k] = max(probs[c, start + k] / total, LEAST)


@jit()
def count_used(used, points, c, epoch, groups, i):
    """Count the occurrences of each value in a group before column i; return the columns left.

    Columns are ordered by their sort keys, and columns with equal keys by their number.
    """
    g, turns, e = groups.of[i], groups.turns, epoch % len(groups.turns)
    first, size, place = groups.first[g], groups.size[g], groups.place[g]
    own, left = turns[e, c, place + i - first], size
    used[:] = 0
    for k in range(size):
        other = turns[e, c, place + k]
        if other < own or (other == own and first + k < i):
            used[points[c, first + k]] += 1
            left -= 1
    return left


@jit()
def find_allowed(allowed, used, left, groups, g):
    """Find the values that the next column of group g may take, like `masks.find_allowed`."""
    least, most, needed = groups.least, groups.most, 0
    for v in range(len(used)):
        needed += max(least[g, v] - used[v], 0)
    for v in range(len(used)):
        after = needed - 1 if used[v] < least[g, v] else needed
        allowed[v] = used[v] < most[g, v] and after <= left - 1


@jit()
def masked_softmax(raw, allowed, d):
    """Turn logits into probabilities over the allowed values, in place; others become 0."""
    if d == 2:
        one = ONE / (ONE + math.exp(-raw[0]))
        raw[1] = one if allowed[0] and allowed[1] else (ONE if allowed[1] else ZERO)
        raw[0] = ONE - raw[1]
        return
    top = -f32(np.inf)
    for k in range(d):
        if allowed[k]:
            top = max(top, raw[k])
    total = ZERO
    for k in range(d):
        raw[k] = math.exp(raw[k] - top) if allowed[k] else ZERO
        total += raw[k]
    for k in range(d):
        raw[k] /= total


@jit()
def masked_total(raw, allowed, d, floor):
    """Return the sum of the clipped probabilities of the allowed values."""
    total = ZERO
    for k in range(d):
        if allowed[k]:
            total += min(max(raw[k], floor), ONE - floor)
    return total


@jit()
def draw_masked(raw, used, plan, groups, i, u):
    """Return the value that a uniform number gives for column i of a group with logits `raw`.

    `used[g]` counts the values of group g that have been drawn; this value is added to it.
    """
    d, floor, g = plan.cards[i], plan.floor[i], groups.of[i]
    allowed = np.empty(used.shape[1], np.bool_)
    find_allowed(allowed, used[g], groups.size[g] - used[g].sum(), groups, g)
    masked_softmax(raw, allowed, d)
    total = masked_total(raw, allowed, d, floor)
    value, below = 0, ZERO
    if d == 2:
        value = 1 if allowed[1] and u < min(max(raw[1], floor), ONE - floor) / total else 0
    else:
        for k in range(d):
            if allowed[k]:
                value = k
                below += min(max(raw[k], floor), ONE - floor) / total
                if u < below:
                    break
    used[g, value] += 1
    return value


@jit()
def masked_slopes(out, at, raw, data, c, i, plan, groups, beta, kl, log, epoch):
    """Compute the slopes in the logits of column i of a group, from `out[at]` on.

    See `equations.gradient`.

    The logits are in `raw`, which is changed. The old distribution is masked here, like the new
    one.
    """
    d, start, floor = plan.cards[i], plan.value_start[i], plan.floor[i]
    old, share = data.old, data.weights[c, i] / f32(len(data.points))
    slope, allowed = np.zeros(d, np.float32), np.empty(groups.most.shape[1], np.bool_)
    used = np.empty(len(allowed), np.int64)
    left = count_used(used, data.points, c, epoch, groups, i)
    find_allowed(allowed, used, left, groups, groups.of[i])
    masked_softmax(raw, allowed, d)
    total, kept, old_total = masked_total(raw, allowed, d, floor), ZERO, ZERO
    for k in range(d):
        if allowed[k]:
            kept += old[c, start + k]
    for k in range(d):
        if allowed[k]:
            old_total += min(max(old[c, start + k] / kept, floor), ONE - floor)
    mean = ZERO
    for k in range(d):
        if allowed[k]:
            new = min(max(raw[k], floor), ONE - floor) / total
            before = min(max(old[c, start + k] / kept, floor), ONE - floor) / old_total
            if new == ONE:  # no other value is left
                slope[k] = ZERO
            elif kl == BERNOULLI and d > 2:
                slope[k] = -beta * (new - before) / (new * (ONE - new))
            else:
                slope[k] = beta * before / new
            if k == data.points[c, i]:
                slope[k] += data.advantages[c, i] / (new if log else before)
            slope[k] *= share
            mean += slope[k] * new
    inner = ZERO
    for k in range(d):
        inside = raw[k] > floor and raw[k] < ONE - floor
        slope[k] = (slope[k] - mean) / total if inside else ZERO
        inner += slope[k] * raw[k]
    first = d - plan.outputs[i]  # for two values, the only logit is that of the value 1
    for k in range(first, d):
        out[at + k - first] = raw[k] * (slope[k] - inner)


@jit()
def group_slopes(delta, h, last, raw, active, count, data, i, plan, groups, beta, kl, log, epoch):
    """Compute the slopes of column i of a group for all candidates, into `delta[last]`."""
    for a in range(count):
        for k in range(plan.outputs[i]):
            raw[k] = h[last, a, k]
        masked_slopes(
            delta[last, a], FIRST, raw, data, active[a], i, plan, groups, beta, kl, log, epoch
        )


# --- sampling, conditionals, training ---------------------------------------------------------


@jit()
def sample(points, probs, orders, first, theta, plan, groups, stream, scratch, sweeps, c0, c1):
    """Draw candidates c0 to c1 of one run, each in its own order.

    After the first of several sweeps every variable is drawn again, given all others.
    """
    widths, hidden, owner, graph = plan.widths, plan.hidden_value, plan.owner, plan.graph
    x, h, raw, drops = scratch.x, scratch.h, scratch.row, scratch.words
    last, known, draws = len(widths) - 1, np.empty_like(hidden), np.empty_like(drops)
    for c in range(c0, c1):
        for f in range(len(known)):
            known[f] = hidden[f]
        if groups is not None:  # the compiler drops this where there are no groups
            used = np.zeros(groups.most.shape, np.int64)
        for turn in range(sweeps * len(plan.cards)):
            sweep, step = divmod(turn, len(plan.cards))
            if step == 0:
                tag = VALUE + 256 * sweep
                words(draws, FIRST, first + c, stream.generation, tag, stream.key0, stream.key1)
            i = orders[c, step]
            d, start, at = plan.cards[i], plan.value_start[i], plan.theta_start[i]
            if d == 1:
                points[c, i] = 0
                probs[c, start] = ONE
                continue
            for f in range(len(known)):
                x[0, 0, f] = known[f]
            if sweep > 0:
                for f in range(plan.feature_start[i], plan.feature_start[i + 1]):
                    x[0, 0, f] = hidden[f]
            if len(graph) > 0:
                hide_by_graph(x, SINGLE, graph, owner, hidden, i)
            if stream.threshold > 0:
                hide_dropped(x, FIRST, owner, hidden, i, drops, first + c, DROP_G, stream)
            dense_one(theta, at, _fan_out(plan, i, FIRST), x, FIRST, widths[0], h, FIRST)
            for layer in range(1, last + 1):
                at += widths[layer] * (widths[layer - 1] + 1)
                activate(h, layer - 1, SINGLE)
                rows = _fan_out(plan, i, layer)
                dense_one(theta, at, rows, h, layer - 1, widths[layer], h, layer)
            u = unit(draws[i])
            value = -1
            if groups is not None and groups.of[i] >= 0:
                for k in range(plan.outputs[i]):
                    raw[k] = h[last, 0, k]
                write_plain(probs, c, start, raw, d)
                value = draw_masked(raw, used, plan, groups, i, u)
            if value < 0:
                write_probabilities(probs, c, start, h, last, FIRST, raw, d, plan.floor[i])
                value = pick(probs, c, start, d, u)
            points[c, i] = value
            for f in range(plan.feature_start[i], plan.feature_start[i + 1]):
                known[f] = plan.codes[plan.code_base[f] + value]


@jit()
def conditionals(probs, features, keys, theta, plan, groups, scratch, loss, i0, i1):
    """Compute the distributions of variables i0 to i1 for every point.

    Without keys every variable sees all others.
    """
    count, hidden, last = len(features), plan.hidden_value, len(plan.pads) - 1
    x, h, active, fans = scratch.x, scratch.h, scratch.active, scratch.fans
    for c in range(count):
        active[c] = c
    for i in range(i0, i1):
        d, start = plan.cards[i], plan.value_start[i]
        if d == 1:
            probs[:, start] = ONE
            continue
        load(plan, i, theta, scratch.w, fans, ONE)
        first, end = plan.feature_start[i], plan.feature_start[i + 1]
        if len(keys) == 0:
            show_all(x, active, count, features, hidden, first, end)
        else:
            show_earlier(x, active, count, features, keys, FIRST, hidden, first)
        if len(plan.graph) > 0:
            hide_by_graph(x, count, plan.graph, plan.owner, hidden, i)
        propagate(scratch.w, x, h, fans, plan.pads, plan.row_start, (count + 4) // 5 * 5)
        for c in range(count):
            if loss == SQUARES:
                probs[c, start] = h[last, c, 0]
            else:
                write_probabilities(probs, c, start, h, last, c, scratch.row, d, plan.floor[i])
            if groups is not None and groups.of[i] >= 0:
                for k in range(plan.outputs[i]):
                    scratch.row[k] = h[last, c, k]
                write_plain(probs, c, start, scratch.row, d)


@jit()
def train(parameters, data, plan, groups, schedule, stream, scratch, i0, i1):
    """Train variables i0 to i1 of one run, all epochs."""
    # arrays are read from their tuples here, outside the loops: each read costs reference counts
    theta, moment1, moment2 = parameters.theta, parameters.m, parameters.v
    features, weights, keys = data.features, data.weights, data.keys
    w, m, v, x, h, row = scratch.w, scratch.m, scratch.v, scratch.x, scratch.h, scratch.row
    delta, ones, active, fans = scratch.delta, scratch.ones, scratch.active, scratch.fans
    pads, row_start, rates, graph = plan.pads, plan.row_start, plan.rates, plan.graph
    hidden, owner, drops = plan.hidden_value, plan.owner, scratch.words
    last, beta, terms = len(pads) - 1, f32(schedule.beta), scratch.terms
    beta1, beta2, loss, log = schedule.beta1, schedule.beta2, schedule.kl, schedule.log
    kept = len(moment1) > 0
    for i in range(i0, i1):
        count = FIRST
        for c in range(len(weights)):
            if weights[c, i] != ZERO:
                active[count] = c
                count += 1
        if plan.outputs[i] == 0 or count == 0:
            continue
        batch = (count + 4) // 5 * 5
        first, end = plan.feature_start[i], plan.feature_start[i + 1]
        d, start, floor = plan.cards[i], plan.value_start[i], plan.floor[i]
        load(plan, i, theta, w, fans, ONE)
        if kept:  # moments in the kernels are sums, not means
            load(plan, i, moment1, m, fans, f32(1.0 / (1.0 - beta1)))
            load(plan, i, moment2, v, fans, f32(1.0 / (1.0 - beta2)))
        else:
            m[:], v[:] = ZERO, ZERO
        grouped = False
        if groups is not None:  # the compiler drops this where there are no groups
            grouped = groups.of[i] >= 0
        if d == 2 and loss != SQUARES and not grouped:
            binary_terms(terms, active, count, data, i, start, beta, log)
        delta[last, :batch] = ZERO  # stays zero beyond the candidates and values of this variable
        power1, power2 = beta1**parameters.steps, beta2**parameters.steps
        for epoch in range(schedule.epochs):
            if len(keys) == 0:
                show_all(x, active, count, features, hidden, first, end)
            else:
                show_earlier(x, active, count, features, keys, epoch % len(keys), hidden, first)
            if len(graph) > 0:
                hide_by_graph(x, count, graph, owner, hidden, i)
            if stream.threshold > 0:
                for a in range(count):
                    tag = DROP_T + 256 * epoch
                    hide_dropped(x, a, owner, hidden, i, drops, active[a], tag, stream)
            propagate(w, x, h, fans, pads, row_start, batch)
            if groups is not None and grouped:
                group_slopes(
                    delta,
                    h,
                    last,
                    row,
                    active,
                    count,
                    data,
                    i,
                    plan,
                    groups,
                    beta,
                    loss,
                    log,
                    epoch,
                )
            elif loss == SQUARES:
                square_slopes(delta, h, last, active, count, data, i)
            elif d == 2:
                binary_slopes(delta, h, last, terms, count, floor, log)
            else:
                categorical_slopes(
                    delta, h, last, row, active, count, data, i, plan, beta, loss, log
                )
            power1 *= beta1
            power2 *= beta2
            stretch = (1.0 - power1) / (1.0 - beta1)
            spread = stretch * math.sqrt((1.0 - beta2) / (1.0 - power2))
            for layer in range(last, -1, -1):
                r, b, below = row_start[layer], row_start[-1] + layer, layer - 1
                rows, width, units = fans[layer], pads[layer], h.shape[2]
                if layer > 0:  # with the weights before their step
                    backpropagate(w, r, rows, delta, layer, h, batch, width)
                if rates[layer, 0] > 0.0:
                    adam = adam_step(schedule, rates[layer, 0], stretch, spread)
                    if layer > 0:
                        adam_ascent(
                            w, m, v, r, rows, delta, layer, h, below, row, batch, width, adam
                        )
                    else:
                        adam_ascent(
                            w, m, v, r, rows, delta, layer, x, FIRST, row, batch, width, adam
                        )
                if rates[layer, 1] > 0.0:  # biases are weights of inputs of 1
                    adam = adam_step(schedule, rates[layer, 1], stretch, spread)
                    adam_ascent(
                        w, m, v, b, SINGLE, ones, FIRST, delta, layer, row, batch, units, adam
                    )
        store(plan, i, theta, w, fans, ONE)
        if kept:
            store(plan, i, moment1, m, fans, f32(1.0 - beta1))
            store(plan, i, moment2, v, fans, f32(1.0 - beta2))
