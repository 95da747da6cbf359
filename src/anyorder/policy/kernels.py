"""The compiled loops of the engine `cpu`: one fused kernel per phase.

All of it is here, in one file, because Numba's disk cache watches the file of the compiled function
only. What makes it fast:

- The E epochs of a variable touch that variable's parameters alone (eq. (8) is a sum over
  variables), so they run back to back with weights and moments in the core's own cache.
- Every hot loop runs along the inputs, unit stride, padded to whole vectors; candidates are unrolled
  by hand (by five going forward, by ten going back), so each loaded weight or input is used several
  times.
- The gradient of a weight is never stored: it goes straight into Adam.
- tanh is a rational function; there are no library calls in the loops that matter.
- Functions with hot loops hold all of a layer's loops, take whole arrays and indices (a slice costs
  an atomic reference count) and promise the compiler that what they write is not what they read
  (which saves a check before each loop that takes as long as the loop itself).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.core.compiler import Compiler

from .rng import DROP_G, DROP_T, INIT, VALUE

# No sum may be reordered unless it says so (SUM), nothing may be assumed about NaN, and infinities
# only do not occur where a reciprocal estimate is wanted (STEP).
SUM = {"reassoc", "contract", "nsz"}
STEP = {"contract", "nsz", "arcp", "afn", "ninf"}

f32 = np.float32
LANES = 16  # a vector of float32 on the widest machines; rows are padded to this
ZERO, ONE = f32(0.0), f32(1.0)

CATEGORICAL, BERNOULLI = 0, 1  # kinds of KL


class NoAlias(Compiler):
    """Numba's own compiler, told that array arguments do not overlap."""

    def define_pipelines(self):
        """Set the flag, then compile as usual."""
        self.state.flags.noalias = True
        return super().define_pipelines()


def _jit(**options):
    return njit(nogil=True, cache=True, error_model="numpy", **options)


class Plan(NamedTuple):
    """A `Layout` as the kernels read it, and where things lie in their padded scratch."""

    cards: np.ndarray
    outputs: np.ndarray
    value_start: np.ndarray
    feature_start: np.ndarray
    owner: np.ndarray
    codes: np.ndarray
    code_base: np.ndarray
    code_stride: np.ndarray
    hidden_value: np.ndarray
    widths: np.ndarray
    rates: np.ndarray
    theta_start: np.ndarray
    floor: np.ndarray
    graph: np.ndarray  # (n, n) uint8, or (0, 0): all may be seen
    pads: np.ndarray  # widths, rounded up to whole vectors
    row_start: np.ndarray  # (L + 2,): a layer's first row of weights in the scratch; their number


class Scratch(NamedTuple):
    """What one thread computes on. P is the longest row, in whole vectors; padding stays zero."""

    w: np.ndarray  # (rows, P): the weights of a variable, layer by layer, then a row of biases each
    m: np.ndarray  # Adam's moments, likewise
    v: np.ndarray
    y: np.ndarray  # (layers, batch, P): the inputs of each layer
    z: np.ndarray  # (batch, P): pre-activations; in the end the logits
    delta: (
        np.ndarray
    )  # (2, batch, P): d objective / d pre-activations, of a layer and the one below
    row: np.ndarray  # (P,)
    words: np.ndarray  # (4 * ceil(n / 4),) uint32
    active: np.ndarray  # (batch,) int64: the candidates that train a variable
    fans: np.ndarray  # (layers,) int64: the outputs of each layer of its network


class Schedule(NamedTuple):
    """The numbers of training that do not change during a run."""

    epochs: int
    kl: int
    beta: float
    beta1: float
    beta2: float
    eps: float


class Stream(NamedTuple):
    """Where a run's random numbers start: see `rng.py`."""

    key0: int
    key1: int
    generation: int
    threshold: int  # a word below it drops an input


# --- random numbers ---------------------------------------------------------------------------

_MASK = np.uint64(0xFFFFFFFF)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_32 = np.uint64(32)


@_jit()
def philox(c0, c1, c2, c3, k0, k1):
    """Philox4x32-10, as in `rng.philox`, on words held in uint64."""
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


@_jit(pipeline_class=NoAlias)
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


@_jit()
def unit(word):
    """A word as a number in [0, 1): `rng.uniform`."""
    return f32(word >> np.uint32(8)) * f32(2.0**-24)


@_jit()
def order_keys(keys, owner, n, purpose, rows, generations, key0, key1):
    """Sort keys `(E, B, len(owner))` of orders: entry f is the key of variable `owner[f]`.

    Candidate c's orders are those of `rows[c]` and `generations[c]`, one for each epoch.
    """
    scratch = np.empty((n + 3) // 4 * 4, np.uint32)
    for e in range(keys.shape[0]):
        for c in range(keys.shape[1]):
            words(scratch, 0, rows[c], generations[c], purpose + 256 * e, key0, key1)
            for f in range(len(owner)):
                keys[e, c, f] = scratch[owner[f]]


@_jit()
def initial_theta(theta, i0, i1, plan, key0, key1, restart):
    """`Layout.initial_theta` for variables i0 to i1."""
    for i in range(i0, i1):
        size = plan.theta_start[i + 1] - plan.theta_start[i]
        scratch = np.empty((size + 3) // 4 * 4, np.uint32)
        words(scratch, 0, i, restart, INIT, key0, key1)
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


@_jit()
def tanh(x):
    """Tanh to 4e-7 relative: a least-squares fit of x P(x^2) / Q(x^2) on [-9, 9]."""
    x = x if x > f32(-9.0) else f32(-9.0)
    x = x if x < f32(9.0) else f32(9.0)
    t = x * x
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


@_jit(fastmath=SUM, pipeline_class=NoAlias)
def dense(w, r, rows, b, y, layer, batch, width, z):
    """A layer for a batch: z = y w^T + biases, with weights in rows from r on, biases in row b."""
    fives, pairs = batch // 5 * 5, rows // 2 * 2
    for c in range(0, fives, 5):
        for k in range(0, pairs, 2):
            a0 = a1 = a2 = a3 = a4 = ZERO
            b0 = b1 = b2 = b3 = b4 = ZERO
            for f in range(width):
                u, v = w[r + k, f], w[r + k + 1, f]
                y0, y1, y2 = y[layer, c, f], y[layer, c + 1, f], y[layer, c + 2, f]
                y3, y4 = y[layer, c + 3, f], y[layer, c + 4, f]
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
            z[c, k], z[c, k + 1] = a0 + u, b0 + v
            z[c + 1, k], z[c + 1, k + 1] = a1 + u, b1 + v
            z[c + 2, k], z[c + 2, k + 1] = a2 + u, b2 + v
            z[c + 3, k], z[c + 3, k + 1] = a3 + u, b3 + v
            z[c + 4, k], z[c + 4, k + 1] = a4 + u, b4 + v
    for c in range(batch):  # what is left: the last row, the last candidates
        for k in range(pairs if c < fives else 0, rows):
            a0 = ZERO
            for f in range(width):
                a0 += w[r + k, f] * y[layer, c, f]
            z[c, k] = a0 + w[b, k]


@_jit(fastmath=SUM, pipeline_class=NoAlias)
def dense_one(theta, at, rows, width, x, z):
    """A layer for one candidate, straight from theta: the weights start at `at`."""
    w = theta[at : at + rows * width].reshape((rows, width))
    bias = theta[at + rows * width : at + rows * (width + 1)]
    fours = rows // 4 * 4
    for k in range(0, fours, 4):
        a0 = a1 = a2 = a3 = ZERO
        for f in range(width):
            u = x[f]
            a0 += w[k, f] * u
            a1 += w[k + 1, f] * u
            a2 += w[k + 2, f] * u
            a3 += w[k + 3, f] * u
        z[k], z[k + 1] = a0 + bias[k], a1 + bias[k + 1]
        z[k + 2], z[k + 3] = a2 + bias[k + 2], a3 + bias[k + 3]
    for k in range(fours, rows):
        a0 = ZERO
        for f in range(width):
            a0 += w[k, f] * x[f]
        z[k] = a0 + bias[k]


@_jit(pipeline_class=NoAlias)
def activate(z, y, layer, batch, width):
    """The inputs of a layer: tanh of the pre-activations below it. Padding is tanh(0) = 0."""
    for c in range(batch):
        for k in range(width):
            y[layer, c, k] = tanh(z[c, k])


@_jit(fastmath=STEP, pipeline_class=NoAlias)
def pull_back(w, r, rows, delta, side, y, layer, batch, width):
    """Through a layer and the tanh under it: delta[1 - side] = (delta[side] w) (1 - y^2)."""
    below = 1 - side
    for c in range(batch):
        for f in range(width):
            delta[below, c, f] = ZERO
        for k in range(rows):
            d = delta[side, c, k]
            for f in range(width):
                delta[below, c, f] += d * w[r + k, f]
        for f in range(width):
            delta[below, c, f] *= ONE - y[layer, c, f] * y[layer, c, f]


@_jit(fastmath=STEP, pipeline_class=NoAlias)
def ascend(w, m, v, r, rows, delta, side, y, layer, g, batch, width, rate, eps, decay):
    """Adam on a layer's weights; the gradient of row k is sum over c of delta[side, c, k] y[c].

    `rate` and `eps` carry Adam's bias corrections.
    """
    beta1, beta2, rest1, rest2 = decay
    fives = batch // 5 * 5
    for k in range(rows):
        for f in range(width):
            g[f] = ZERO
        for c in range(0, fives, 5):
            d0, d1, d2 = delta[side, c, k], delta[side, c + 1, k], delta[side, c + 2, k]
            d3, d4 = delta[side, c + 3, k], delta[side, c + 4, k]
            for f in range(width):
                g[f] += (d0 * y[layer, c, f] + d1 * y[layer, c + 1, f]) + (
                    d2 * y[layer, c + 2, f] + d3 * y[layer, c + 3, f] + d4 * y[layer, c + 4, f]
                )
        for c in range(fives, batch):
            d0 = delta[side, c, k]
            for f in range(width):
                g[f] += d0 * y[layer, c, f]
        for f in range(width):
            a = beta1 * m[r + k, f] + rest1 * g[f]
            b = beta2 * v[r + k, f] + (rest2 * g[f]) * g[f]
            m[r + k, f] = a
            v[r + k, f] = b
            w[r + k, f] += rate * a / (math.sqrt(b) + eps)


@_jit(fastmath=STEP, pipeline_class=NoAlias)
def ascend_10(w, m, v, r, rows, delta, side, y, layer, width, rate, eps, decay):
    """`ascend` for ten candidates: no gradient is ever stored."""
    beta1, beta2, rest1, rest2 = decay
    for k in range(rows):
        d0, d1, d2 = delta[side, 0, k], delta[side, 1, k], delta[side, 2, k]
        d3, d4, d5 = delta[side, 3, k], delta[side, 4, k], delta[side, 5, k]
        d6, d7, d8 = delta[side, 6, k], delta[side, 7, k], delta[side, 8, k]
        d9 = delta[side, 9, k]
        for f in range(width):
            # two chains of five: one of ten would take as long as the rest of the loop
            g = (
                d0 * y[layer, 0, f] + d1 * y[layer, 1, f] + d2 * y[layer, 2, f]
                + d3 * y[layer, 3, f] + d4 * y[layer, 4, f]
            ) + (
                d5 * y[layer, 5, f] + d6 * y[layer, 6, f] + d7 * y[layer, 7, f]
                + d8 * y[layer, 8, f] + d9 * y[layer, 9, f]
            )  # fmt: skip
            a = beta1 * m[r + k, f] + rest1 * g
            b = beta2 * v[r + k, f] + (rest2 * g) * g
            m[r + k, f] = a
            v[r + k, f] = b
            w[r + k, f] += rate * a / (math.sqrt(b) + eps)


@_jit(fastmath=STEP, pipeline_class=NoAlias)
def ascend_biases(w, m, v, b, rows, delta, side, g, batch, rate, eps, decay):
    """Adam on a layer's biases, row b; the gradient of bias k is sum over c of delta[side, c, k]."""
    beta1, beta2, rest1, rest2 = decay
    for k in range(rows):
        g[k] = ZERO
    for c in range(batch):
        for k in range(rows):
            g[k] += delta[side, c, k]
    for k in range(rows):
        m[b, k] = beta1 * m[b, k] + rest1 * g[k]
        v[b, k] = beta2 * v[b, k] + (rest2 * g[k]) * g[k]
        w[b, k] += rate * m[b, k] / (math.sqrt(v[b, k]) + eps)


# --- one variable -----------------------------------------------------------------------------


@_jit()
def _fan_out(plan, i, layer):
    """Number of outputs of a layer of variable i's network."""
    return plan.widths[layer + 1] if layer + 1 < len(plan.widths) else plan.outputs[i]


@_jit()
def load(plan, i, theta, rows_of, fans):
    """Copy variable i's parameters (or moments) into the padded rows of a scratch."""
    at, bias = plan.theta_start[i], plan.row_start[-1]
    for layer in range(len(plan.widths)):
        width, rows, r = plan.widths[layer], _fan_out(plan, i, layer), plan.row_start[layer]
        fans[layer] = rows
        for k in range(rows):
            for f in range(width):
                rows_of[r + k, f] = theta[at + f]
            at += width
        for k in range(rows):
            rows_of[bias + layer, k] = theta[at + k]
        at += rows


@_jit()
def store(plan, i, theta, rows_of):
    """The inverse of `load`."""
    at, bias = plan.theta_start[i], plan.row_start[-1]
    for layer in range(len(plan.widths)):
        width, rows, r = plan.widths[layer], _fan_out(plan, i, layer), plan.row_start[layer]
        for k in range(rows):
            for f in range(width):
                theta[at + f] = rows_of[r + k, f]
            at += width
        for k in range(rows):
            theta[at + k] = rows_of[bias + layer, k]
        at += rows


@_jit(pipeline_class=NoAlias)
def see_before(y, active, batch, features, keys, e, hidden, first):
    """Inputs of the variable whose own start at `first`: those before it, the others hidden.

    Equal keys are in the order of the variables.
    """
    for a in range(batch):
        c = active[a]
        key = keys[e, c, first] if first < len(hidden) else np.uint32(0)
        for f in range(len(hidden)):
            other = keys[e, c, f]
            seen = f32((other < key) | ((other == key) & (f < first)))
            y[0, a, f] = hidden[f] + seen * (features[c, f] - hidden[f])


@_jit(pipeline_class=NoAlias)
def see_all(y, active, batch, features, hidden, first, end):
    """Inputs of the variable that owns first to end when it sees all the others."""
    for a in range(batch):
        for f in range(len(hidden)):
            y[0, a, f] = features[active[a], f]
        for f in range(first, end):
            y[0, a, f] = hidden[f]


@_jit()
def hide_strangers(y, batch, graph, owner, hidden, i):
    """Hide what the interaction graph does not let i see."""
    if len(graph) > 0:
        for f in range(len(owner)):
            if graph[i, owner[f]] == 0:
                for a in range(batch):
                    y[0, a, f] = hidden[f]


@_jit()
def hide_dropped(y, a, owner, hidden, i, scratch, c, tag, stream):
    """Structural dropout of the inputs of variable i, row a, candidate c."""
    words(scratch, i * (len(scratch) // 4), c, stream.generation, tag, stream.key0, stream.key1)
    for f in range(len(owner)):
        if np.uint64(scratch[owner[f]]) < np.uint64(stream.threshold):
            y[0, a, f] = hidden[f]


@_jit()
def propagate(w, y, z, fans, pads, row_start, batch):
    """A variable's network for a batch: from y[0] to the logits in z; `fans` are its outputs."""
    last = len(pads) - 1
    for layer in range(last + 1):
        dense(
            w, row_start[layer], fans[layer], row_start[-1] + layer, y, layer, batch, pads[layer], z
        )
        if layer < last:
            activate(z, y, layer + 1, batch, fans[layer])


@_jit()
def softmax(logits, a, raw, d):
    """Probabilities of one candidate from its logits: sigmoid of one, or softmax of d."""
    if d == 2:
        one = ONE / (ONE + math.exp(-logits[a, 0]))
        raw[0], raw[1] = ONE - one, one
    else:
        top = logits[a, 0]
        for k in range(1, d):
            top = max(top, logits[a, k])
        total = ZERO
        for k in range(d):
            raw[k] = math.exp(logits[a, k] - top)
            total += raw[k]
        for k in range(d):
            raw[k] /= total


@_jit()
def clip_total(raw, d, floor):
    """Sum of the clipped probabilities."""
    total = ZERO
    for k in range(d):
        total += min(max(raw[k], floor), ONE - floor)
    return total


@_jit()
def write_probabilities(probs, c, start, logits, a, raw, d, floor):
    """Clipped and renormalised probabilities of one candidate and variable."""
    softmax(logits, a, raw, d)
    total = clip_total(raw, d, floor)
    for k in range(d):
        probs[c, start + k] = min(max(raw[k], floor), ONE - floor) / total


@_jit()
def slopes_2(delta, z, active, batch, points, i, old, start, advantages, weights, floor, beta):
    """d objective / d logit of a variable with two values into `delta[0]`.

    What `slopes` does, multiplied out: with q = pi(1), the slope of the ratio's term is
    +-A / pi_old(x) q (1 - q), that of the KL's is q - pi_old(1).
    """
    scale = ONE / f32(len(points))
    for a in range(batch):
        c = active[a]
        q = ONE / (ONE + math.exp(-z[a, 0]))
        one = old[c, start + 1]
        gain = advantages[c, i] / one if points[c, i] == 1 else -advantages[c, i] / old[c, start]
        slope = gain * (q * (ONE - q)) - beta * (q - one)
        inside = q > floor and q < ONE - floor
        delta[0, a, 0] = slope * (weights[c, i] * scale) if inside else ZERO


@_jit()
def slopes(delta, z, raw, active, batch, points, i, old, start, advantages, weights, d, floor,
           beta, kl):  # fmt: skip
    """d objective / d logits of a variable with d > 2 values: see `reference.gradient`."""
    scale = ONE / f32(len(points))
    for a in range(batch):
        c = active[a]
        softmax(z, a, raw, d)
        total = clip_total(raw, d, floor)
        mean = ZERO
        for k in range(d):
            new, before = min(max(raw[k], floor), ONE - floor) / total, old[c, start + k]
            if kl == BERNOULLI:
                slope = -beta * (new - before) / (new * (ONE - new))
            else:
                slope = beta * before / new
            if k == points[c, i]:
                slope += advantages[c, i] / before
            delta[0, a, k] = slope * (weights[c, i] * scale)
            mean += delta[0, a, k] * new
        inner = ZERO
        for k in range(d):
            inside = raw[k] > floor and raw[k] < ONE - floor
            delta[0, a, k] = (delta[0, a, k] - mean) / total if inside else ZERO
            inner += delta[0, a, k] * raw[k]
        for k in range(d):
            delta[0, a, k] = raw[k] * (delta[0, a, k] - inner)


# --- the three verbs --------------------------------------------------------------------------


@_jit()
def sample(points, probs, orders, first, theta, plan, stream, scratch, c0, c1):
    """Draw candidates c0 to c1 of one run, each in its own order."""
    n, features, last = len(plan.cards), len(plan.owner), len(plan.widths) - 1
    x, view = np.zeros(features, np.float32), np.zeros((1, 1, features), np.float32)
    even, odd = np.zeros_like(scratch.row), np.zeros_like(scratch.row)
    raw = scratch.row
    draws = np.empty_like(scratch.words)
    masked, hidden = stream.threshold > 0 or len(plan.graph) > 0, plan.hidden_value
    for c in range(c0, c1):
        x[:] = hidden
        words(draws, 0, first + c, stream.generation, VALUE, stream.key0, stream.key1)
        for step in range(n):
            i = orders[c, step]
            d, start = plan.cards[i], plan.value_start[i]
            if d == 1:
                points[c, i] = 0
                probs[c, start] = ONE
                continue
            source = x
            if masked:
                view[0, 0, :] = x
                hide_strangers(view, 1, plan.graph, plan.owner, hidden, i)
                if stream.threshold > 0:
                    hide_dropped(
                        view, 0, plan.owner, hidden, i, scratch.words, first + c, DROP_G, stream
                    )
                source = view[0, 0]
            at = plan.theta_start[i]
            for layer in range(last + 1):
                width, rows = plan.widths[layer], _fan_out(plan, i, layer)
                target = even if layer % 2 == 0 else odd
                dense_one(theta, at, rows, width, source, target)
                at += rows * (width + 1)
                if layer < last:
                    for k in range(rows):
                        target[k] = tanh(target[k])
                source = target
            scratch.z[0, :] = source
            write_probabilities(probs, c, start, scratch.z, 0, raw, d, plan.floor[i])
            u = unit(draws[i])
            value = 0
            if d == 2:
                value = 1 if u < probs[c, start + 1] else 0
            else:
                below = probs[c, start]
                while value < d - 1 and u >= below:
                    value += 1
                    below += probs[c, start + value]
            points[c, i] = value
            for f in range(plan.feature_start[i], plan.feature_start[i + 1]):
                x[f] = plan.codes[plan.code_base[f] + value * plan.code_stride[f]]


@_jit()
def conditionals(probs, features, keys, theta, plan, scratch, i0, i1):
    """The distributions of variables i0 to i1 for every point of one run; no keys: all others."""
    batch, hidden = len(features), plan.hidden_value
    scratch.active[:] = np.arange(batch)
    for i in range(i0, i1):
        d, start = plan.cards[i], plan.value_start[i]
        if d == 1:
            probs[:, start] = ONE
            continue
        load(plan, i, theta, scratch.w, scratch.fans)
        first, end = plan.feature_start[i], plan.feature_start[i + 1]
        if len(keys) == 0:
            see_all(scratch.y, scratch.active, batch, features, hidden, first, end)
        else:
            see_before(scratch.y, scratch.active, batch, features, keys, 0, hidden, first)
        hide_strangers(scratch.y, batch, plan.graph, plan.owner, hidden, i)
        propagate(scratch.w, scratch.y, scratch.z, scratch.fans, plan.pads, plan.row_start, batch)
        for c in range(batch):
            write_probabilities(probs, c, start, scratch.z, c, scratch.row, d, plan.floor[i])


@_jit()
def train(
    theta, moment1, moment2, steps, plan, schedule, stream, scratch,
    points, features, old, advantages, weights, keys, i0, i1,
):  # fmt: skip
    """All epochs of variables i0 to i1 of one run; no keys: a variable sees all others."""
    # arrays are taken out of their tuples here, not in the loops: each time is a reference count
    w, m, v, y, z, row = scratch.w, scratch.m, scratch.v, scratch.y, scratch.z, scratch.row
    active, fans, drops, delta = scratch.active, scratch.fans, scratch.words, scratch.delta
    pads, row_start, rates, graph = plan.pads, plan.row_start, plan.rates, plan.graph
    hidden, owner = plan.hidden_value, plan.owner
    last, total, bias, beta = len(pads) - 1, len(points), row_start[-1], f32(schedule.beta)
    # 1 - beta2 from its double: taken from the rounded beta2 it would be off by 1e-5
    decay = (
        f32(schedule.beta1), f32(schedule.beta2),
        f32(1.0 - schedule.beta1), f32(1.0 - schedule.beta2),
    )  # fmt: skip
    kept = len(moment1) > 0
    for i in range(i0, i1):
        batch = 0
        for c in range(total):
            if weights[c, i] != ZERO:
                active[batch] = c
                batch += 1
        if plan.outputs[i] == 0 or batch == 0:
            continue
        first, end = plan.feature_start[i], plan.feature_start[i + 1]
        d, start, floor = plan.cards[i], plan.value_start[i], plan.floor[i]
        load(plan, i, theta, w, fans)
        if kept:
            load(plan, i, moment1, m, fans)
            load(plan, i, moment2, v, fans)
        else:
            m[:], v[:] = ZERO, ZERO
        power1, power2 = schedule.beta1**steps, schedule.beta2**steps
        for epoch in range(schedule.epochs):
            if len(keys) == 0:
                see_all(y, active, batch, features, hidden, first, end)
            else:
                see_before(y, active, batch, features, keys, epoch % len(keys), hidden, first)
            hide_strangers(y, batch, graph, owner, hidden, i)
            if stream.threshold > 0:
                for a in range(batch):
                    tag = DROP_T + 256 * epoch
                    hide_dropped(y, a, owner, hidden, i, drops, active[a], tag, stream)
            propagate(w, y, z, fans, pads, row_start, batch)
            if d == 2:
                slopes_2(
                    delta, z, active, batch, points, i, old, start, advantages, weights, floor, beta
                )
            else:
                slopes(
                    delta, z, row, active, batch, points, i, old, start, advantages, weights,
                    d, floor, beta, schedule.kl,
                )  # fmt: skip
            power1 *= schedule.beta1
            power2 *= schedule.beta2
            correction = math.sqrt(1.0 - power2)
            eps = f32(schedule.eps * correction)
            for layer in range(last, -1, -1):
                rows, width, r = fans[layer], pads[layer], row_start[layer]
                side = (last - layer) % 2
                if layer > 0:  # through the weights as they were before their step
                    pull_back(w, r, rows, delta, side, y, layer, batch, width)
                step = correction / (1.0 - power1)
                if rates[layer, 0] > 0.0:
                    rate = f32(rates[layer, 0] * step)
                    if batch == 10:
                        ascend_10(w, m, v, r, rows, delta, side, y, layer, width, rate, eps, decay)
                    else:
                        ascend(
                            w, m, v, r, rows, delta, side, y, layer, row, batch, width,
                            rate, eps, decay,
                        )  # fmt: skip
                if rates[layer, 1] > 0.0:
                    ascend_biases(
                        w, m, v, bias + layer, rows, delta, side, row, batch,
                        f32(rates[layer, 1] * step), eps, decay,
                    )  # fmt: skip
        store(plan, i, theta, w)
        if kept:
            store(plan, i, moment1, m)
            store(plan, i, moment2, v)
