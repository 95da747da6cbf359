"""The shared network: prefix sums along an order, one program per candidate.

As in the engine `cpu` (`shared_cpu/`), an epoch has two phases. `slopes` goes through a candidate's
order in blocks, forward and backward, and stores what the gradients of each variable need; then
`update_variables` and `update_layers` sum over candidates and take Adam's step. One or two hidden
layers; rows have P places, a power of two.
"""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    ENDED,
    FIRST,
    GENERATION,
    INIT,
    ORDER_G,
    ORDER_T,
    RESTARTING,
    RESTARTS,
    RUNNING,
    SEED,
    STATUS,
    STEPS,
    VALUE,
    field,
    product,
    tanh,
    uniform,
    word_of,
    words,
)
from anyorder.strategies.policy.engines.cuda.kernels.general import step
from anyorder.strategies.policy.engines.cuda.kernels.objective import (
    categorical_slope,
    clipped_probabilities,
    raw_probabilities,
)
from anyorder.strategies.policy.engines.cuda.kernels.orders import AS_SAMPLED

SAMPLING = tl.constexpr(3)  # a kind of order, besides those of `orders.py`: that of new candidates
# Tensor cores with three products of tf32 parts, which is about float32.
PRECISION = tl.constexpr("tf32x3")


@triton.jit
def initialize(theta, runs, sizes, offsets, widths, ONLY_RESTARTING: tl.constexpr,
               LAYERS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Initial parameters, uniform in +-1/sqrt(fan in), of all runs or of those that restart."""
    r = tl.program_id(1)
    if ONLY_RESTARTING:
        if field(runs, r, STATUS) != RESTARTING:
            return
    w = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bound = tl.zeros((BLOCK,), tl.float32)
    for layer in tl.static_range(LAYERS):
        inputs = tl.load(widths + layer)
        fan = 1.0 / tl.sqrt(tl.maximum(inputs, 1).to(tl.float64))
        fan = tl.where(inputs > 0, fan, 0.0).to(tl.float32)
        bound = tl.where(w >= tl.load(offsets + 2 * layer), fan, bound)
    word = word_of(field(runs, r, SEED), r * 0, field(runs, r, RESTARTS), INIT, w)
    at = theta + r.to(tl.int64) * sizes.parameters
    tl.store(at + w, (2.0 * uniform(word) - 1.0) * bound, mask=w < sizes.parameters)


@triton.jit
def order_keys(keys, runs, stamps, n, B, KIND: tl.constexpr, PER_CANDIDATE: tl.constexpr,
               BLOCK: tl.constexpr):  # fmt: skip
    """Sort keys (R, epochs, B, n) of orders, as int64."""
    epoch, c, r = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if field(runs, r, STATUS) >= ENDED:
        return
    generation, row, purpose = field(runs, r, GENERATION), c.to(tl.int64), ORDER_T + 256 * epoch
    if KIND == SAMPLING:
        row, purpose = field(runs, r, FIRST) + c, epoch * 0 + ORDER_G
    if KIND == AS_SAMPLED:
        stamp = stamps + (r * B + c) * 2
        generation, row, purpose = tl.load(stamp), tl.load(stamp + 1), epoch * 0 + ORDER_G
    if not PER_CANDIDATE:
        row = row * 0
    at = keys + ((r.to(tl.int64) * tl.num_programs(0) + epoch) * B + c) * n
    for first in range(0, n, BLOCK):
        word = words(field(runs, r, SEED), row, generation, purpose, first // 4, BLOCK // 4)
        j = first + tl.arange(0, BLOCK)
        tl.store(at + j, word.to(tl.uint32, bitcast=True).to(tl.int64), mask=j < n)


@triton.jit
def _contributions(w1, tables, i, value, there, u, H, MAXF: tl.constexpr, P: tl.constexpr,
                   T: tl.constexpr):  # fmt: skip
    """What the values of variables i add to the first layer's pre-activations, (T, P)."""
    begin = tl.load(tables.feature_start + i, mask=there, other=0)
    count = tl.load(tables.feature_start + i + 1, mask=there, other=0) - begin
    total = tl.zeros((T, P), tl.float32)
    for k in range(MAXF):
        shown = there & (k < count) & (value >= 0)
        f = begin + k
        base = tl.load(tables.code_base + f, mask=shown, other=0)
        seen = tl.load(tables.codes + base + value, mask=shown, other=0.0)
        seen -= tl.load(tables.hidden_value + f, mask=shown, other=0.0)
        inside = shown[:, None] & (u < H)[None, :]
        total += seen[:, None] * tl.load(w1 + f[:, None] * H + u[None, :], mask=inside, other=0.0)
    return total


@triton.jit
def _empty_context(w1, b1, tables, F, u, H, HIDDEN: tl.constexpr, P: tl.constexpr,
                   T: tl.constexpr):  # fmt: skip
    """Pre-activations of the first layer where every variable is hidden."""
    base = tl.load(b1 + u, mask=u < H, other=0.0)
    if HIDDEN:
        for first in range(0, F, T):
            f = first + tl.arange(0, T)
            hidden = tl.load(tables.hidden_value + f, mask=f < F, other=0.0)
            inside = (f < F)[:, None] & (u < H)[None, :]
            w = tl.load(w1 + f[:, None] * H + u[None, :], mask=inside, other=0.0)
            base += tl.sum(product(hidden[:, None], w), 0)
    return base


@triton.jit
def _heads(i, there, card, k, tables):
    """The rows of the heads of values k of variables i, and which there are."""
    two = (card == 2).to(tl.int32)  # its one logit is that of the value 1
    row = tl.load(tables.head_start + i, mask=there, other=0) + k - two
    return row, there & (card > 1) & (k >= two) & (k < card)


@triton.jit
def walk(points, probs, theta, runs, orders, tables, sizes, offsets, widths, B, DRAW: tl.constexpr,
         OTHERS: tl.constexpr, HIDDEN: tl.constexpr, DEPTH: tl.constexpr, MAXF: tl.constexpr,
         VP: tl.constexpr, P: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """The distributions of a candidate's variables in its order; with DRAW also their values.

    OTHERS: a variable sees all others.
    """
    c, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) >= ENDED:
        return
    n = sizes.n
    u, one, o = tl.arange(0, P), tl.arange(0, 1), tl.arange(0, VP)[None, :]
    at = theta + r.to(tl.int64) * sizes.parameters
    w1, b1 = at, at + tl.load(offsets + 1)
    H = tl.load(widths + 1)
    top_width = tl.load(widths + DEPTH)
    w3, b3 = at + tl.load(offsets + 2 * DEPTH), at + tl.load(offsets + 2 * DEPTH + 1)
    seed, generation, row = field(runs, r, SEED), field(runs, r, GENERATION), field(runs, r, FIRST)
    candidate = r.to(tl.int64) * B + c
    point, order = points + candidate * n, orders + candidate * n
    acc = _empty_context(w1, b1, tables, sizes.features, u, H, HIDDEN, P, T)
    if DEPTH == 2:
        square = (u < top_width)[:, None] & (u < H)[None, :]
        w2 = tl.load(
            at + tl.load(offsets + 2) + u[:, None] * H + u[None, :], mask=square, other=0.0
        )
        b2 = tl.load(at + tl.load(offsets + 3) + u, mask=u < top_width, other=0.0)
    if OTHERS:
        for first in range(0, n, T):
            j = first + tl.arange(0, T)
            known = tl.load(point + j, mask=j < n, other=-1)
            acc += tl.sum(_contributions(w1, tables, j, known, j < n, u, H, MAXF, P, T), 0)
    for t in range(n):
        i = tl.load(order + t) + one
        there = i >= 0
        card = tl.load(tables.cards + i)
        pre = acc
        if not DRAW:
            value = tl.load(point + i)
            own = tl.sum(_contributions(w1, tables, i, value, there, u, H, MAXF, P, 1), 0)
            if OTHERS:
                pre = acc - own
        h = tl.where(u < H, tanh(pre), 0.0)
        if DEPTH == 2:
            h = tl.where(u < top_width, tanh(tl.sum(product(w2, h[None, :]), 1) + b2), 0.0)
        logits = tl.zeros((1, VP), tl.float32)
        for k in tl.static_range(VP):
            head, have = _heads(i, there, card, k, tables)
            inside = have[:, None] & (u < top_width)[None, :]
            w = tl.load(w3 + head[:, None] * top_width + u[None, :], mask=inside, other=0.0)
            z = tl.sum(product(w, h[None, :]), 1) + tl.load(b3 + head, mask=have, other=0.0)
            logits = tl.where(o == k, z[:, None], logits)
        valid = o < card[:, None]
        floor = tl.load(tables.floors + i)[:, None]
        pi = clipped_probabilities(raw_probabilities(logits, valid), valid, floor)[0]
        to = probs + candidate * sizes.row_length + tl.load(tables.value_start + i)
        tl.store(to[:, None] + o, pi, mask=valid)
        if DRAW:
            draw = uniform(word_of(seed, row + c, generation, VALUE, i))
            up = (o < card[:, None] - 1) & (draw[:, None] >= tl.cumsum(pi, 1))
            value = tl.sum(up.to(tl.int32), 1)
            p_one = tl.sum(tl.where(o == 1, pi, 0.0), 1)
            value = tl.where(card == 2, (draw < p_one).to(tl.int32), value)
            tl.store(point + i, value)
            own = tl.sum(_contributions(w1, tables, i, value, there, u, H, MAXF, P, 1), 0)
        if not OTHERS:
            acc += own


@triton.jit(do_not_specialize=["epoch", "epochs"])
def slopes(theta, runs, data, orders, epoch, epochs, work, tables, sizes, offsets, widths, beta,
           HIDDEN: tl.constexpr, BERNOULLI: tl.constexpr, DEPTH: tl.constexpr, MAXF: tl.constexpr,
           VP: tl.constexpr, P: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """Forward and backward of one candidate, in blocks of T variables; see `SharedWork`."""
    c, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    n, B = sizes.n, data.candidates
    u, s, o = tl.arange(0, P), tl.arange(0, T), tl.arange(0, VP)[None, :]
    at = theta + r.to(tl.int64) * sizes.parameters
    w1, b1 = at, at + tl.load(offsets + 1)
    H = tl.load(widths + 1)
    top_width = tl.load(widths + DEPTH)
    w3, b3 = at + tl.load(offsets + 2 * DEPTH), at + tl.load(offsets + 2 * DEPTH + 1)
    w2 = at
    b2 = tl.zeros((P,), tl.float32)
    if DEPTH == 2:
        w2 = at + tl.load(offsets + 2)
        b2 = tl.load(at + tl.load(offsets + 3) + u, mask=u < top_width, other=0.0)
    candidate = r.to(tl.int64) * B + c
    point = data.points + candidate * n
    order = orders + ((r.to(tl.int64) * epochs + epoch) * B + c) * n
    old = data.old + candidate * sizes.row_length
    weight_of = data.weights + r * data.weight_run + c * data.weight_candidate
    gain_of = data.advantages + r * data.advantage_run + c * data.advantage_candidate
    blocks = (n + T - 1) // T
    prefix = work.prefixes + candidate * blocks * P + u
    acc = _empty_context(w1, b1, tables, sizes.features, u, H, HIDDEN, P, T)
    for b in range(blocks):
        tl.store(prefix + b * P, acc)
        t = b * T + s
        there = t < n
        i = tl.load(order + t, mask=there, other=0)
        value = tl.load(point + i, mask=there, other=-1)
        acc += tl.sum(_contributions(w1, tables, i, value, there, u, H, MAXF, P, T), 0)
    tl.debug_barrier()
    after = tl.zeros((P,), tl.float32)  # the sum of slopes of the variables of later blocks
    bias2 = tl.zeros((P,), tl.float32)
    middle = tl.zeros((P, P), tl.float32)
    for step_back in range(blocks):
        b = blocks - 1 - step_back
        t = b * T + s
        there = t < n
        i = tl.load(order + t, mask=there, other=0)
        value = tl.load(point + i, mask=there, other=-1)
        x = _contributions(w1, tables, i, value, there, u, H, MAXF, P, T)
        pre = tl.load(prefix + b * P)[None, :] + (tl.cumsum(x, 0) - x)
        h1 = tl.where((u < H)[None, :], tanh(pre), 0.0)
        top = h1
        if DEPTH == 2:
            inside = (u < H)[:, None] & (u < top_width)[None, :]
            w = tl.load(w2 + u[None, :] * H + u[:, None], mask=inside, other=0.0)
            z = tl.dot(h1, w, input_precision=PRECISION) + b2[None, :]
            top = tl.where((u < top_width)[None, :], tanh(z), 0.0)
        place = (candidate * n + i)[:, None] * P + u[None, :]
        tl.store(work.tops + place, top, mask=there[:, None])

        # at the outputs
        card = tl.load(tables.cards + i, mask=there, other=2)
        logits = tl.zeros((T, VP), tl.float32)
        for k in tl.static_range(VP):
            head, have = _heads(i, there, card, k, tables)
            inside = have[:, None] & (u < top_width)[None, :]
            w = tl.load(w3 + head[:, None] * top_width + u[None, :], mask=inside, other=0.0)
            z = tl.sum(product(top, w), 1) + tl.load(b3 + head, mask=have, other=0.0)
            logits = tl.where(o == k, z[:, None], logits)
        valid = o < card[:, None]
        start = tl.load(tables.value_start + i, mask=there, other=0)
        olds = tl.load(old + start[:, None] + o, mask=valid & there[:, None], other=0.5)
        weight = tl.load(weight_of + i * data.weight_variable, mask=there, other=0.0)
        gain = tl.load(gain_of + i * data.advantage_variable, mask=there, other=0.0)
        chosen = (value[:, None] == o) & there[:, None]
        before = tl.sum(tl.where(chosen, olds, 0.0), 1)
        gain = gain.to(tl.float32) / tl.where(before > 0.0, before, 1.0)
        penalty = beta + tl.zeros((T,), tl.float32)
        if BERNOULLI:  # of two values there is one divergence, not one for each
            penalty = tl.where(card == 2, 0.5 * beta, penalty)
        slope = categorical_slope(
            logits, valid, chosen, olds, gain[:, None], (weight.to(tl.float32) / B)[:, None],
            tl.load(tables.floors + i, mask=there, other=0.1)[:, None], penalty[:, None], BERNOULLI,
        )  # fmt: skip
        fall = tl.zeros((T, P), tl.float32)
        for k in tl.static_range(VP):
            head, have = _heads(i, there, card, k, tables)
            part = tl.sum(tl.where(o == k, slope, 0.0), 1)
            tl.store(work.slopes + candidate * sizes.logits + head, part, mask=have)
            inside = have[:, None] & (u < top_width)[None, :]
            w = tl.load(w3 + head[:, None] * top_width + u[None, :], mask=inside, other=0.0)
            fall += part[:, None] * w
        d = fall * (1.0 - top * top)

        # back to the first layer
        if DEPTH == 2:
            bias2 += tl.sum(d, 0)
            inside = (u < top_width)[:, None] & (u < H)[None, :]
            w = tl.load(w2 + u[:, None] * H + u[None, :], mask=inside, other=0.0)
            middle += tl.dot(tl.trans(d), h1, input_precision=PRECISION)
            d = tl.dot(d, w, input_precision=PRECISION) * (1.0 - h1 * h1)
        total = tl.sum(d, 0)
        sums = after[None, :] + (tl.cumsum(d, 0, reverse=True) - d)
        tl.store(work.sums + place, sums, mask=there[:, None])
        after += total
    tl.store(work.biases + candidate * 2 * P + u, after)
    if DEPTH == 2:
        tl.store(work.biases + (candidate * 2 + 1) * P + u, bias2)
        to = work.middle + candidate * P * P + u[:, None] * P + u[None, :]
        tl.store(to, middle)


@triton.jit(do_not_specialize=["epoch"])
def update_variables(parameters, runs, data, work, epoch, training, tables, sizes, offsets, widths,
                     HIDDEN: tl.constexpr, KEPT: tl.constexpr, DEPTH: tl.constexpr,
                     MAXF: tl.constexpr, MAXO: tl.constexpr, P: tl.constexpr,
                     T: tl.constexpr):  # fmt: skip
    """Adam's step on the inputs' weights and the heads of T variables; no weight, no step."""
    r = tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    j, u = tl.program_id(0) * T + tl.arange(0, T), tl.arange(0, P)
    n, B = sizes.n, data.candidates
    there = j < n
    begin = r.to(tl.int64) * sizes.parameters
    step_of = field(runs, r, STEPS) + epoch
    coefficient = training.coefficients + step_of * (2 * DEPTH + 3)
    eps = tl.load(coefficient + 2 * DEPTH + 2)
    H, top_width = tl.load(widths + 1), tl.load(widths + DEPTH)
    first = tl.load(tables.feature_start + j, mask=there, other=0)
    inputs = tl.load(tables.feature_start + j + 1, mask=there, other=0) - first
    for k in range(MAXF):
        f = first + k
        have = there & (k < inputs)
        base = tl.load(tables.code_base + f, mask=have, other=0)
        hidden = tl.load(tables.hidden_value + f, mask=have, other=0.0)
        g = tl.zeros((T, P), tl.float32)
        for c in range(B):
            candidate = r.to(tl.int64) * B + c
            value = tl.load(data.points + candidate * n + j, mask=have, other=-1)
            code = tl.load(tables.codes + base + value, mask=have & (value >= 0), other=0.0)
            seen = tl.where(value >= 0, code - hidden, 0.0)
            rows = work.sums + (candidate * n + j)[:, None] * P + u[None, :]
            g += seen[:, None] * tl.load(rows, mask=have[:, None], other=0.0)
            if HIDDEN:
                total = tl.load(work.biases + candidate * 2 * P + u)
                g += hidden[:, None] * total[None, :]
        inside = have[:, None] & (u < H)[None, :]
        at = begin + f[:, None] * H + u[None, :]
        step(parameters, at, inside, g, epoch, tl.load(coefficient), eps, training, KEPT)
    weight = tl.zeros((T,), tl.float32)
    for c in range(B):
        at = data.weights + r * data.weight_run + c * data.weight_candidate
        at = at + j * data.weight_variable
        weight += tl.abs(tl.load(at, mask=there, other=0.0).to(tl.float32))
    head = tl.load(tables.head_start + j, mask=there, other=0)
    outputs = tl.load(tables.head_start + j + 1, mask=there, other=0) - head
    rate_w = tl.load(coefficient + 2 * DEPTH)
    rate_b = tl.load(coefficient + 2 * DEPTH + 1)
    for k in range(MAXO):
        have = there & (k < outputs) & (weight > 0.0)
        g = tl.zeros((T, P), tl.float32)
        g_bias = tl.zeros((T,), tl.float32)
        for c in range(B):
            candidate = r.to(tl.int64) * B + c
            slope = tl.load(work.slopes + candidate * sizes.logits + head + k, mask=have, other=0.0)
            rows = work.tops + (candidate * n + j)[:, None] * P + u[None, :]
            g += slope[:, None] * tl.load(rows, mask=have[:, None], other=0.0)
            g_bias += slope
        inside = have[:, None] & (u < top_width)[None, :]
        at = begin + tl.load(offsets + 2 * DEPTH) + (head + k)[:, None] * top_width + u[None, :]
        step(parameters, at, inside, g, epoch, rate_w, eps, training, KEPT)
        at = begin + tl.load(offsets + 2 * DEPTH + 1) + head + k
        step(parameters, at, have, g_bias, epoch, rate_b, eps, training, KEPT)


@triton.jit(do_not_specialize=["epoch"])
def update_layers(parameters, runs, data, work, epoch, training, sizes, offsets, widths,
                  KEPT: tl.constexpr, DEPTH: tl.constexpr, P: tl.constexpr,
                  T: tl.constexpr):  # fmt: skip
    """Adam's step on T rows of the second hidden layer, and on the hidden layers' biases."""
    r = tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    k, u = tl.program_id(0) * T + tl.arange(0, T), tl.arange(0, P)
    begin = r.to(tl.int64) * sizes.parameters
    coefficient = training.coefficients + (field(runs, r, STEPS) + epoch) * (2 * DEPTH + 3)
    eps = tl.load(coefficient + 2 * DEPTH + 2)
    H, top_width, B = tl.load(widths + 1), tl.load(widths + DEPTH), data.candidates
    for layer in tl.static_range(DEPTH):
        width = tl.load(widths + layer + 1)
        g = tl.zeros((T,), tl.float32)
        for c in range(B):
            candidate = r.to(tl.int64) * B + c
            g += tl.load(work.biases + (candidate * 2 + layer) * P + k, mask=k < P, other=0.0)
        at = begin + tl.load(offsets + 2 * layer + 1) + k
        rate = tl.load(coefficient + 2 * layer + 1)
        step(parameters, at, k < width, g, epoch, rate, eps, training, KEPT)
    if DEPTH == 2:
        g = tl.zeros((T, P), tl.float32)
        for c in range(B):
            candidate = r.to(tl.int64) * B + c
            g += tl.load(work.middle + candidate * P * P + k[:, None] * P + u[None, :])
        at = begin + tl.load(offsets + 2) + k[:, None] * H + u[None, :]
        inside = (k < top_width)[:, None] & (u < H)[None, :]
        step(parameters, at, inside, g, epoch, tl.load(coefficient + 2), eps, training, KEPT)
