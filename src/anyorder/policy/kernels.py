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
- Hot leaf functions promise the compiler that what they write is not what they read, which saves a
  check before each loop that takes as long as the loop itself; and they take whole flat arrays with
  offsets, because a slice costs an atomic reference count.
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

# training orders and KL kinds, as numbers
KEYED, UNMASKED = 0, 1
CATEGORICAL, BERNOULLI = 0, 1


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
    weight_start: np.ndarray  # (L + 2,): a layer's rows in the scratch of weights; its size
    bias_start: np.ndarray  # (L + 2,): the same for biases
    top: int  # the most outputs a layer has, rounded up to whole vectors


class Schedule(NamedTuple):
    """The numbers of training that do not change during a run."""

    epochs: int
    masking: int
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
def order_keys(keys, owner, n, purpose, rows, generations, first_epoch, key0, key1):
    """Sort keys `(E, B, len(owner))` of orders: entry f is the key of variable `owner[f]`.

    Candidate c's orders are those of `rows[c]` and `generations[c]`, one for each epoch.
    """
    scratch = np.empty((n + 3) // 4 * 4, np.uint32)
    for e in range(keys.shape[0]):
        for c in range(keys.shape[1]):
            tag = purpose + 256 * (first_epoch + e)
            words(scratch, 0, rows[c], generations[c], tag, key0, key1)
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


# --- arithmetic of one layer: flat arrays and offsets -----------------------------------------


@_jit()
def tanh(x):
    """Tanh to 4e-7 relative: a least-squares fit of x P(x^2) / Q(x^2) on [-9, 9]."""
    x = min(max(x, f32(-9.0)), f32(9.0))
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
    return min(max(x * p / q, -ONE), ONE)


@_jit(fastmath=SUM, pipeline_class=NoAlias)
def dot_2x5(w, at, x, row, width, bias, b, out, to, step):
    """Two rows of weights times five candidates, plus biases.

    The rows start at `w[at]`, the candidates at `x[row]`, one `width` after another; candidate c's
    result goes to `out[to + c * step]`.
    """
    a0 = a1 = a2 = a3 = a4 = ZERO
    b0 = b1 = b2 = b3 = b4 = ZERO
    for f in range(width):
        u, v = w[at + f], w[at + width + f]
        x0, x1, x2 = x[row + f], x[row + width + f], x[row + 2 * width + f]
        x3, x4 = x[row + 3 * width + f], x[row + 4 * width + f]
        a0 += u * x0
        a1 += u * x1
        a2 += u * x2
        a3 += u * x3
        a4 += u * x4
        b0 += v * x0
        b1 += v * x1
        b2 += v * x2
        b3 += v * x3
        b4 += v * x4
    u, v = bias[b], bias[b + 1]
    out[to], out[to + 1] = a0 + u, b0 + v
    out[to + step], out[to + step + 1] = a1 + u, b1 + v
    out[to + 2 * step], out[to + 2 * step + 1] = a2 + u, b2 + v
    out[to + 3 * step], out[to + 3 * step + 1] = a3 + u, b3 + v
    out[to + 4 * step], out[to + 4 * step + 1] = a4 + u, b4 + v


@_jit(fastmath=SUM, pipeline_class=NoAlias)
def dot_4x1(w, at, x, row, width, bias, b, out, to):
    """Four rows of weights times one candidate, plus biases."""
    a0 = a1 = a2 = a3 = ZERO
    for f in range(width):
        y = x[row + f]
        a0 += w[at + f] * y
        a1 += w[at + width + f] * y
        a2 += w[at + 2 * width + f] * y
        a3 += w[at + 3 * width + f] * y
    out[to] = a0 + bias[b]
    out[to + 1] = a1 + bias[b + 1]
    out[to + 2] = a2 + bias[b + 2]
    out[to + 3] = a3 + bias[b + 3]


@_jit(fastmath=SUM, pipeline_class=NoAlias)
def dot(w, at, x, row, width):
    """A plain inner product."""
    a = ZERO
    for f in range(width):
        a += w[at + f] * x[row + f]
    return a


@_jit()
def dense_one(w, at, rows, x, row, width, bias, b, out, to):
    """A layer for one candidate."""
    k = 0
    while k + 4 <= rows:
        dot_4x1(w, at + k * width, x, row, width, bias, b + k, out, to + k)
        k += 4
    while k < rows:
        out[to + k] = dot(w, at + k * width, x, row, width) + bias[b + k]
        k += 1


@_jit()
def dense(w, at, rows, x, batch, width, bias, b, out, step):
    """A layer for a batch: candidate c's row of `out` is `step` long."""
    c = 0
    while c + 5 <= batch:
        k = 0
        while k + 2 <= rows:
            dot_2x5(w, at + k * width, x, c * width, width, bias, b + k, out, c * step + k, step)
            k += 2
        if k < rows:
            for d in range(c, c + 5):
                out[d * step + k] = dot(w, at + k * width, x, d * width, width) + bias[b + k]
        c += 5
    while c < batch:
        dense_one(w, at, rows, x, c * width, width, bias, b, out, c * step)
        c += 1


@_jit(fastmath=STEP, pipeline_class=NoAlias)
def add_5(g, to, delta, d, step, x, row, width):
    """Add five scaled rows of x to a row of g; the factors are delta[d], delta[d + step], ..."""
    d0, d1, d2 = delta[d], delta[d + step], delta[d + 2 * step]
    d3, d4 = delta[d + 3 * step], delta[d + 4 * step]
    for f in range(width):
        g[to + f] += (d0 * x[row + f] + d1 * x[row + width + f]) + (
            d2 * x[row + 2 * width + f] + d3 * x[row + 3 * width + f] + d4 * x[row + 4 * width + f]
        )


@_jit(fastmath=STEP, pipeline_class=NoAlias)
def add_1(g, to, factor, x, row, width):
    """Add one scaled row of x to a row of g."""
    for f in range(width):
        g[to + f] += factor * x[row + f]


@_jit()
def combine(g, to, delta, d, step, x, rows, width):
    """g = the sum of all rows of x, each times its factor."""
    for f in range(width):
        g[to + f] = ZERO
    k = 0
    while k + 5 <= rows:
        add_5(g, to, delta, d + k * step, step, x, k * width, width)
        k += 5
    while k < rows:
        add_1(g, to, delta[d + k * step], x, k * width, width)
        k += 1


@_jit(fastmath=STEP, pipeline_class=NoAlias)
def adam(w, m, v, at, g, width, rate, eps, decay):
    """One step of gradient ascent by Adam; `rate` and `eps` carry the bias corrections."""
    beta1, beta2, rest1, rest2 = decay
    for f in range(width):
        a = beta1 * m[at + f] + rest1 * g[f]
        b = beta2 * v[at + f] + (rest2 * g[f]) * g[f]
        m[at + f] = a
        v[at + f] = b
        w[at + f] += rate * a / (math.sqrt(b) + eps)


@_jit(fastmath=STEP, pipeline_class=NoAlias)
def adam_10(w, m, v, at, delta, k, step, x, width, rate, eps, decay):
    """`adam` with the gradient of exactly ten candidates made on the way."""
    d0, d1, d2 = delta[k], delta[k + step], delta[k + 2 * step]
    d3, d4, d5 = delta[k + 3 * step], delta[k + 4 * step], delta[k + 5 * step]
    d6, d7, d8 = delta[k + 6 * step], delta[k + 7 * step], delta[k + 8 * step]
    d9 = delta[k + 9 * step]
    beta1, beta2, rest1, rest2 = decay
    for f in range(width):
        # two chains of five: one of ten would be as long as the rest of the loop
        g = (
            d0 * x[f] + d1 * x[width + f] + d2 * x[2 * width + f]
            + d3 * x[3 * width + f] + d4 * x[4 * width + f]
        ) + (
            d5 * x[5 * width + f] + d6 * x[6 * width + f] + d7 * x[7 * width + f]
            + d8 * x[8 * width + f] + d9 * x[9 * width + f]
        )  # fmt: skip
        a = beta1 * m[at + f] + rest1 * g
        b = beta2 * v[at + f] + (rest2 * g) * g
        m[at + f] = a
        v[at + f] = b
        w[at + f] += rate * a / (math.sqrt(b) + eps)


# --- one variable -----------------------------------------------------------------------------


@_jit()
def _fan_out(plan, i, layer):
    """Number of outputs of a layer of variable i's network."""
    return plan.widths[layer + 1] if layer + 1 < len(plan.widths) else plan.outputs[i]


@_jit()
def copy_variable(plan, i, theta, weights, biases, out):
    """Copy variable i's parameters into padded rows, or, with `out`, back."""
    at = plan.theta_start[i]
    for layer in range(len(plan.widths)):
        width, rows = plan.widths[layer], _fan_out(plan, i, layer)
        for k in range(rows):
            start = plan.weight_start[layer] + k * plan.pads[layer]
            for f in range(width):
                if out:
                    theta[at + f] = weights[start + f]
                else:
                    weights[start + f] = theta[at + f]
            at += width
        for k in range(rows):
            if out:
                theta[at + k] = biases[plan.bias_start[layer] + k]
            else:
                biases[plan.bias_start[layer] + k] = theta[at + k]
        at += rows


@_jit(pipeline_class=NoAlias)
def see_before(x, row, features, c, keys, e, hidden, first, end):
    """Inputs of the variable that owns first to end: those before it, the others hidden.

    Equal keys are in the order of the variables, hence `<=` on the one side and `<` on the other.
    """
    if first == end:
        return
    key = keys[e, c, first]
    for f in range(first):
        x[row + f] = features[c, f] if keys[e, c, f] <= key else hidden[f]
    for f in range(first, end):
        x[row + f] = hidden[f]
    for f in range(end, len(hidden)):
        x[row + f] = features[c, f] if keys[e, c, f] < key else hidden[f]


@_jit()
def see_all(x, row, features, c, plan, i):
    """Inputs of variable i when it sees all the others."""
    for f in range(len(plan.owner)):
        x[row + f] = plan.hidden_value[f] if plan.owner[f] == i else features[c, f]


@_jit()
def hide_strangers(x, row, plan, i):
    """Hide what the interaction graph does not let i see."""
    if len(plan.graph) > 0:
        for f in range(len(plan.owner)):
            if plan.graph[i, plan.owner[f]] == 0:
                x[row + f] = plan.hidden_value[f]


@_jit()
def hide_dropped(x, row, plan, i, scratch, c, tag, stream):
    """Structural dropout of variable i's inputs."""
    if stream.threshold > 0:
        blocks = len(scratch) // 4
        words(scratch, i * blocks, c, stream.generation, tag, stream.key0, stream.key1)
        for f in range(len(plan.owner)):
            if np.uint64(scratch[plan.owner[f]]) < np.uint64(stream.threshold):
                x[row + f] = plan.hidden_value[f]


@_jit()
def propagate(plan, i, weights, biases, x, hidden, logits, batch):
    """The network of variable i for a batch: fills the hidden activations and the logits."""
    last = len(plan.widths) - 1
    for layer in range(last + 1):
        rows = _fan_out(plan, i, layer)
        source = x if layer == 0 else hidden[layer - 1]
        target = logits if layer == last else hidden[layer]
        step = plan.top if layer == last else plan.pads[layer + 1]
        dense(
            weights, plan.weight_start[layer], rows, source, batch, plan.pads[layer],
            biases, plan.bias_start[layer], target, step,
        )  # fmt: skip
        if layer < last:
            for c in range(batch):
                for k in range(rows):
                    target[c * step + k] = tanh(target[c * step + k])


@_jit()
def softmax(logits, at, raw, d):
    """Probabilities of one candidate from its logits: sigmoid of one, or softmax of d."""
    if d == 2:
        one = ONE / (ONE + math.exp(-logits[at]))
        raw[0], raw[1] = ONE - one, one
    else:
        top = logits[at]
        for k in range(1, d):
            top = max(top, logits[at + k])
        total = ZERO
        for k in range(d):
            raw[k] = math.exp(logits[at + k] - top)
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
def write_probabilities(probs, c, start, logits, at, raw, d, floor):
    """Clipped and renormalised probabilities of one candidate and variable."""
    softmax(logits, at, raw, d)
    total = clip_total(raw, d, floor)
    for k in range(d):
        probs[c, start + k] = min(max(raw[k], floor), ONE - floor) / total


@_jit()
def output_slope(
    delta, at, logits, raw, value, old, c, start, advantage, weight, d, floor, beta, kl
):
    """d objective / d logits of one candidate into `delta`: see `reference.gradient`."""
    softmax(logits, at, raw, d)
    total = clip_total(raw, d, floor)
    mean = ZERO
    for k in range(d):
        new = min(max(raw[k], floor), ONE - floor) / total
        before = old[c, start + k]
        if kl == BERNOULLI and d > 2:
            slope = -beta * (new - before) / (new * (ONE - new))
        else:
            slope = beta * before / new
        if k == value:
            slope += advantage / before
        delta[at + k] = slope * weight
        mean += delta[at + k] * new
    inner = ZERO
    for k in range(d):
        if raw[k] > floor and raw[k] < ONE - floor:
            delta[at + k] = (delta[at + k] - mean) / total
            inner += delta[at + k] * raw[k]
        else:
            delta[at + k] = ZERO
    for k in range(d):
        delta[at + k] = raw[k] * (delta[at + k] - inner)
    if d == 2:
        delta[at] = delta[at + 1]


# --- the three verbs --------------------------------------------------------------------------


@_jit()
def sample(points, probs, orders, first, theta, plan, stream, c0, c1):
    """Draw candidates c0 to c1 of one run, each in its own order."""
    n, features = len(plan.cards), len(plan.owner)
    last = len(plan.widths) - 1
    x, view = np.zeros(features, np.float32), np.zeros(features, np.float32)
    ping, pong = np.zeros(plan.top, np.float32), np.zeros(plan.top, np.float32)
    raw = np.empty(plan.top, np.float32)
    draws = np.empty((n + 3) // 4 * 4, np.uint32)
    scratch = np.empty((n + 3) // 4 * 4, np.uint32)
    masked = stream.threshold > 0 or len(plan.graph) > 0
    for c in range(c0, c1):
        x[:] = plan.hidden_value
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
                view[:] = x
                hide_strangers(view, 0, plan, i)
                hide_dropped(view, 0, plan, i, scratch, first + c, DROP_G, stream)
                source = view
            at = plan.theta_start[i]
            for layer in range(last + 1):
                width, rows = plan.widths[layer], _fan_out(plan, i, layer)
                target = ping if layer % 2 == 0 else pong
                dense_one(theta, at, rows, source, 0, width, theta, at + rows * width, target, 0)
                at += rows * (width + 1)
                if layer < last:
                    for k in range(rows):
                        target[k] = tanh(target[k])
                source = target
            write_probabilities(probs, c, start, source, 0, raw, d, plan.floor[i])
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
def conditionals(probs, features, keys, full, theta, plan, i0, i1):
    """The distributions of variables i0 to i1 for every point of one run."""
    batch, last = len(features), len(plan.widths) - 1
    weights = np.zeros(plan.weight_start[-1], np.float32)
    biases = np.zeros(plan.bias_start[-1], np.float32)
    x = np.zeros(batch * plan.pads[0], np.float32)
    hidden = np.zeros((last + 1, batch * plan.top), np.float32)
    logits, raw = np.zeros(batch * plan.top, np.float32), np.empty(plan.top, np.float32)
    for i in range(i0, i1):
        d, start = plan.cards[i], plan.value_start[i]
        if d == 1:
            probs[:, start] = ONE
            continue
        first, end = plan.feature_start[i], plan.feature_start[i + 1]
        copy_variable(plan, i, theta, weights, biases, False)
        for c in range(batch):
            row = c * plan.pads[0]
            if full:
                see_all(x, row, features, c, plan, i)
            else:
                see_before(x, row, features, c, keys, 0, plan.hidden_value, first, end)
            hide_strangers(x, row, plan, i)
        propagate(plan, i, weights, biases, x, hidden, logits, batch)
        for c in range(batch):
            at = c * plan.top
            write_probabilities(probs, c, start, logits, at, raw, d, plan.floor[i])


@_jit()
def train(
    theta, moment1, moment2, steps, plan, schedule, stream,
    points, features, old, advantages, weighting, keys, i0, i1,
):  # fmt: skip
    """All epochs of variables i0 to i1 of one run."""
    last, total, top = len(plan.widths) - 1, len(points), plan.top
    w, b = np.zeros(plan.weight_start[-1], np.float32), np.zeros(plan.bias_start[-1], np.float32)
    m, mb = np.zeros_like(w), np.zeros_like(b)
    v, vb = np.zeros_like(w), np.zeros_like(b)
    x = np.zeros(total * plan.pads[0], np.float32)
    hidden = np.zeros((last + 1, total * top), np.float32)
    logits, raw = np.zeros(total * top, np.float32), np.zeros(top, np.float32)
    delta = np.zeros(total * top, np.float32)  # d objective / d pre-activations, `top` a candidate
    below = np.zeros(total * top, np.float32)  # the same, of the layer below
    g, gb = np.zeros(max(plan.pads.max(), top), np.float32), np.zeros(top, np.float32)
    active = np.empty(total, np.int64)
    scratch = np.empty((len(plan.cards) + 3) // 4 * 4, np.uint32)
    beta = f32(schedule.beta)
    # 1 - beta2 from its double: taken from the rounded beta2 it would be off by 1e-5
    decay = (
        f32(schedule.beta1), f32(schedule.beta2),
        f32(1.0 - schedule.beta1), f32(1.0 - schedule.beta2),
    )  # fmt: skip
    kept = len(moment1) > 0
    for i in range(i0, i1):
        batch = 0
        for c in range(total):
            if weighting[c, i] != ZERO:
                active[batch] = c
                batch += 1
        if plan.outputs[i] == 0 or batch == 0:
            continue
        first, end = plan.feature_start[i], plan.feature_start[i + 1]
        d, start, floor = plan.cards[i], plan.value_start[i], plan.floor[i]
        copy_variable(plan, i, theta, w, b, False)
        m[:], v[:] = ZERO, ZERO
        mb[:], vb[:] = ZERO, ZERO
        if kept:
            copy_variable(plan, i, moment1, m, mb, False)
            copy_variable(plan, i, moment2, v, vb, False)
        power1, power2 = schedule.beta1**steps, schedule.beta2**steps
        for epoch in range(schedule.epochs):
            for a in range(batch):
                c, row = active[a], a * plan.pads[0]
                if schedule.masking == UNMASKED:
                    see_all(x, row, features, c, plan, i)
                else:
                    e = epoch % len(keys)
                    see_before(x, row, features, c, keys, e, plan.hidden_value, first, end)
                hide_strangers(x, row, plan, i)
                hide_dropped(x, row, plan, i, scratch, c, DROP_T + 256 * epoch, stream)
            propagate(plan, i, w, b, x, hidden, logits, batch)
            for a in range(batch):
                c = active[a]
                output_slope(
                    delta, a * top, logits, raw, points[c, i], old, c, start, advantages[c, i],
                    weighting[c, i] / f32(total), d, floor, beta, schedule.kl,
                )  # fmt: skip
            power1 *= schedule.beta1
            power2 *= schedule.beta2
            correction = math.sqrt(1.0 - power2)
            eps = f32(schedule.eps * correction)
            for layer in range(last, -1, -1):
                rows, width, at = _fan_out(plan, i, layer), plan.pads[layer], plan.weight_start[layer]
                source = x if layer == 0 else hidden[layer - 1]
                if layer > 0:  # back through the weights before their step, and the tanh below
                    for a in range(batch):
                        combine(below, a * top, delta, a * top, 1, w[at:], rows, width)
                        for f in range(width):
                            y = source[a * width + f]
                            below[a * top + f] *= ONE - y * y
                if plan.rates[layer] > 0.0:
                    rate = f32(plan.rates[layer] * correction / (1.0 - power1))
                    for k in range(rows):
                        if batch == 10:
                            adam_10(
                                w, m, v, at + k * width, delta, k, top, source, width,
                                rate, eps, decay,
                            )  # fmt: skip
                        else:
                            combine(g, 0, delta, k, top, source, batch, width)
                            adam(w, m, v, at + k * width, g, width, rate, eps, decay)
                        gb[k] = ZERO
                        for a in range(batch):
                            gb[k] += delta[a * top + k]
                    adam(b, mb, vb, plan.bias_start[layer], gb, rows, rate, eps, decay)
                delta, below = below, delta
        copy_variable(plan, i, theta, w, b, True)
        if kept:
            copy_variable(plan, i, moment1, m, mb, True)
            copy_variable(plan, i, moment2, v, vb, True)
