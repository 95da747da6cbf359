"""The shared network: training, by running sums along an order.

As in the engine `cpu` (`shared_cpu/`), an epoch has two phases. First `sweep` goes through each
candidate's order in blocks, from its end, and stores what the gradients of each variable need
(`SharedWork`). `full_contexts` computes what it begins with, and `middle` the gradients of a second
hidden layer. Then the kernels of `shared_update.py` sum over candidates and take Adam's step.
During training, parameters are rows of P places (`SharedRows`); unused places are 0 and stay so.
Rows of activations and slopes have S places, since these take most of the memory traffic.

With HALF, factors of all products are rounded to float16, like the stored activations; sums are
float32. The other constants are those of `shared.py`.
"""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    INTERPRETED,
    RUNNING,
    STATUS,
    field,
    product,
    tanh,
)
from anyorder.strategies.policy.engines.cuda.kernels.objective import (
    binary_slope,
    binary_terms,
    categorical_slope,
)
from anyorder.strategies.policy.engines.cuda.kernels.shared import SCALE, add_product, heads, parts

# Products of rows that are stored as float32: three of tf32 parts.
PRECISION = tl.constexpr("ieee" if INTERPRETED.value else "tf32x3")
LARGEST = tl.constexpr(60000.0)  # the largest slope in units of `unit`, as float16
SHARE = tl.constexpr(1.0 / 64.0)  # of such a unit: sums over variables are stored in these
TERMS = tl.constexpr(4)  # terms of the objective for each variable


# --- products -------------------------------------------------------------------------------------


@triton.jit
def _add_sums(to, ones, x, HALF: tl.constexpr):
    """Return `to` + ones x, where the entries of `ones` are 0 and 1: sums of rows of x.

    The parts are bfloat16, which have the range of x, and together the 24 bits of x: a context is
    the difference of two sums, in which rounding errors weigh more.
    """
    if INTERPRETED:
        return tl.dot(ones, x.to(tl.float32), acc=to, input_precision="ieee")
    elif HALF:
        return tl.dot(ones.to(tl.float16), x, acc=to)
    else:
        high = x.to(tl.bfloat16)
        rest = x - high.to(tl.float32)
        low = rest.to(tl.bfloat16)
        lowest = (rest - low.to(tl.float32)).to(tl.bfloat16)
        ones = ones.to(tl.bfloat16)
        return tl.dot(ones, high, acc=tl.dot(ones, low, acc=tl.dot(ones, lowest, acc=to)))


@triton.jit
def _sum_of_rows(x, P: tl.constexpr, T: tl.constexpr, HALF: tl.constexpr):
    """Return the sum of x, (T, P), over its first axis, as a product.

    After another product the entries of a column are in many threads, which would have to exchange
    them all. The result has 16 equal rows, the fewest that are possible.
    """
    ones = tl.full((16, T), 1.0, tl.float32)
    return tl.max(_add_sums(tl.zeros((16, P), tl.float32), ones, x, HALF), 0)


@triton.jit
def _factor(w, HALF: tl.constexpr):
    """Return weights as the second factor of `_times`."""
    if HALF or INTERPRETED:
        return w, w
    else:
        return parts(w * SCALE)


@triton.jit
def _times(a, b, zero, HALF: tl.constexpr):
    """Return a b, with `zero` as the initial sum."""
    if INTERPRETED:
        return tl.dot(a.to(tl.float32), b[0].to(tl.float32), acc=zero, input_precision="ieee")
    elif HALF:
        return tl.dot(a, b[0], acc=zero)
    else:
        return add_product(zero, parts(a), b) * (1.0 / SCALE)


@triton.jit
def _tanh(x, HALF: tl.constexpr):
    """Return tanh(x); with HALF to 11 bits, the precision of float16, by a single instruction."""
    if HALF and not INTERPRETED:
        return tl.inline_asm_elementwise(
            "tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        return tanh(x)


@triton.jit
def _round(x, like):
    """Return x in the type of `like`, without infinities."""
    if like.dtype.element_ty == tl.float16 and not INTERPRETED:
        return tl.inline_asm_elementwise(
            "cvt.rn.satfinite.f16x2.f32 $0, $2, $1;", "=r,f,f", [x], dtype=tl.float16,
            is_pure=True, pack=2,
        )  # fmt: skip
    else:
        return tl.minimum(tl.maximum(x, -LARGEST), LARGEST).to(like.dtype.element_ty)


# --- before the epochs ----------------------------------------------------------------------------


@triton.jit
def prepare(runs, data, work, tables, sizes, beta, unit, LOG: tl.constexpr,
            MAXF: tl.constexpr, VP: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """Store what is the same in all epochs, for T variables of a candidate.

    These are the differences between their inputs and hidden inputs, and what the objective depends
    on besides logits: if VP is 1 the three of `binary_terms`, otherwise A / pi_old(x) and the
    weight; then the clip. Both are scaled so that slopes are in units of `unit`.
    """
    c, r = tl.program_id(1), tl.program_id(2)
    if field(runs, r, STATUS) != RUNNING:
        return
    n, i = sizes.n, tl.program_id(0) * T + tl.arange(0, T)
    there = i < n
    candidate = r.to(tl.int64) * data.candidates + c
    value = tl.load(data.points + candidate * n + i, mask=there, other=-1)
    begin = tl.load(tables.feature_start + i, mask=there, other=0)
    count = tl.load(tables.feature_start + i + 1, mask=there, other=0) - begin
    for k in range(MAXF):
        have, f = there & (k < count), begin + k
        base = tl.load(tables.code_base + f, mask=have, other=0)
        code = tl.load(tables.codes + base + value, mask=have & (value >= 0), other=0.0)
        code -= tl.load(tables.hidden_value + f, mask=have, other=0.0)
        at = work.deltas + candidate * sizes.features + f
        tl.store(at, tl.where(value >= 0, code, 0.0), mask=have)
    at_weight = data.weights + r * data.weight_run + c * data.weight_candidate
    at_gain = data.advantages + r * data.advantage_run + c * data.advantage_candidate
    weight = tl.load(at_weight + i * data.weight_variable, mask=there, other=0.0).to(tl.float32)
    gain = tl.load(at_gain + i * data.advantage_variable, mask=there, other=0.0).to(tl.float32)
    weight *= unit / data.candidates
    old = data.old + candidate * sizes.row_length
    old += tl.load(tables.value_start + i, mask=there, other=0)
    if not LOG:
        gain = gain / tl.load(old + value, mask=there & (value >= 0), other=1.0)
    at = work.terms + (candidate * n + i) * TERMS
    if VP == 1:
        two = tl.load(tables.cards + i, mask=there, other=1) == 2
        old_0 = tl.load(old, mask=two, other=0.5)
        old_1 = tl.load(old + 1, mask=two, other=0.5)
        terms = binary_terms(value, old_0, old_1, gain, weight, beta, LOG)
        tl.store(at, terms[0], mask=there)
        tl.store(at + 1, terms[1], mask=there)
        tl.store(at + 2, terms[2], mask=there)
    else:
        tl.store(at, gain, mask=there)
        tl.store(at + 1, weight, mask=there)
    tl.store(at + 3, tl.load(tables.floors + i, mask=there, other=0.1), mask=there)


# --- an epoch -------------------------------------------------------------------------------------


@triton.jit
def full_contexts(runs, data, work, tables, sizes, rows, P: tl.constexpr, C: tl.constexpr,
                  K: tl.constexpr, U: tl.constexpr):  # fmt: skip
    """Store the pre-activations of the first layer for contexts in which every variable is visible.

    This is for C candidates and U units; `sweep` begins with them.
    """
    r = tl.program_id(2)
    if field(runs, r, STATUS) != RUNNING:
        return
    c, u = tl.program_id(0) * C + tl.arange(0, C), tl.program_id(1) * U + tl.arange(0, U)
    run, real = r.to(tl.int64), (c < data.candidates)[:, None]
    weights, candidate = work.weights + run * rows.total * P, run * data.candidates + c
    acc = tl.zeros((C, U), tl.float32)
    for first in range(0, sizes.features, K):
        f = first + tl.arange(0, K)
        there = f < sizes.features
        w = tl.load(weights + f[:, None] * P + u[None, :], mask=there[:, None], other=0.0)
        at = work.deltas + (candidate * sizes.features)[:, None] + f[None, :]
        code = tl.load(at, mask=real & there[None, :], other=0.0)
        code += tl.load(tables.hidden_value + f, mask=there, other=0.0)[None, :]
        if INTERPRETED:
            w = w.to(tl.float32)
        acc = tl.dot(code.to(w.dtype), w, acc=acc, input_precision=PRECISION)
    acc += tl.load(work.w + (run * rows.total + rows.biases) * P + u)[None, :]
    tl.store(work.contexts + (candidate * P)[:, None] + u[None, :], acc, mask=real)


@triton.jit
def _rows_of(starts, i, there, ONE_EACH: tl.constexpr):
    """Return the first row of inputs or heads of variables i, and how many there are."""
    if ONE_EACH:
        return i, there.to(tl.int32)
    else:
        begin = tl.load(starts + i, mask=there, other=0)
        return begin, tl.load(starts + i + 1, mask=there, other=0) - begin


@triton.jit
def _inputs(weights, deltas, i, there, tables, u, ONE_EACH: tl.constexpr, MAXF: tl.constexpr,
            P: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """Return the contributions of variables i to the first layer's pre-activations, (T, P)."""
    begin, count = _rows_of(tables.feature_start, i, there, ONE_EACH)
    total = tl.zeros((T, P), tl.float32)
    for k in range(MAXF):
        have = k < count
        f = tl.where(have, begin + k, 0)
        row = tl.load(weights + f[:, None] * P + u[None, :], mask=have[:, None], other=0.0)
        total += tl.load(deltas + f)[:, None] * row
    return total.to(weights.dtype.element_ty)


@triton.jit(do_not_specialize=["epoch"])
def sweep(runs, data, orders, epoch, epochs, work, tables, sizes, rows, beta, unit,
          HALF: tl.constexpr, BERNOULLI: tl.constexpr, LOG: tl.constexpr, MIDDLE: tl.constexpr,
          ONE_EACH: tl.constexpr, DEPTH: tl.constexpr, MAXF: tl.constexpr, VP: tl.constexpr,
          P: tl.constexpr, S: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """Store units and slopes of one candidate, T variables at a time from the end of its order.

    A variable's context is the full one minus the contributions of the variable and all later ones.
    The slope of its own contribution is a sum over all later ones. Both sums run in the same
    direction, so that a block goes through the network and back while it is on the chip. MIDDLE:
    also store what `middle` needs. ONE_EACH: a variable has one input and one head, both with the
    variable's number.
    """
    c, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    n, u, s = sizes.n, tl.arange(0, P), tl.arange(0, T)
    run = r.to(tl.int64)
    own, weights = work.w + run * rows.total * P, work.weights + run * rows.total * P
    candidate = run * data.candidates + c
    order = orders + ((run * epochs + epoch) * data.candidates + c) * n
    deltas = work.deltas + candidate * sizes.features
    not_earlier = (s[:, None] <= s[None, :]).to(tl.float32)
    zero = tl.zeros((T, P), tl.float32)
    context = tl.load(work.contexts + candidate * P + u)  # after the block
    after = tl.zeros((P,), tl.float32)  # the sum of slopes of the variables of later blocks
    forward, back = _factor(zero, HALF), _factor(zero, HALF)
    if DEPTH == 2:
        w2 = tl.load(weights + (rows.second + u)[:, None] * P + u[None, :])
        forward, back = _factor(tl.trans(w2), HALF), _factor(w2, HALF)
    first = (n - 1) // T * T
    following = tl.load(order + first + s, mask=first + s < n, other=0)  # read one block ahead
    for begin in range(first, -1, -T):
        t, i = begin + s, following
        there = t < n
        following = tl.load(order + t - T, mask=t >= T, other=0)
        place = (candidate * n + t)[:, None] * S + u[None, :]
        inside = there[:, None] & (u < S)[None, :]
        tl.store(work.places + candidate * n + i, t, mask=there)
        x = _inputs(weights, deltas, i, there, tables, u, ONE_EACH, MAXF, P, T)
        low = context[None, :] - _add_sums(zero, not_earlier, x, HALF)
        low = _tanh(low, HALF).to(work.tops.dtype.element_ty)
        context -= tl.sum(x.to(tl.float32), 0)
        top = low
        if DEPTH == 2:
            b2 = tl.load(own + (rows.biases + 1) * P + u)  # here, as registers are few
            top = _tanh(_times(low, forward, zero, HALF) + b2[None, :], HALF).to(low.dtype)
        tl.store(work.tops + place, top, mask=inside)
        top = top.to(tl.float32)
        if VP == 1:
            fall = _binary_falls(
                top, candidate, i, there, weights, own, rows, work, tables, sizes, u, unit,
                ONE_EACH, P,
            )  # fmt: skip
        else:
            fall = _categorical_falls(
                top, candidate, i, there, data, weights, own, rows, work, tables, sizes, u, beta,
                unit, BERNOULLI, LOG, VP, P, T,
            )  # fmt: skip
        d = _round(fall * (1.0 - top * top), work.sums)
        if MIDDLE:
            tl.store(work.lows + place, low, mask=inside)
            tl.store(work.falls + place, d, mask=inside)
        if DEPTH == 2:
            low = low.to(tl.float32)
            d = _round(_times(d, back, zero, HALF) * (1.0 - low * low), work.sums)
        # minus its own slope: a second matrix would take memory that another program could use
        sums = _add_sums(zero, not_earlier, d, HALF) - d.to(tl.float32) + after[None, :]
        after += _sum_of_rows(d, P, T, HALF)
        tl.store(work.sums + place, _round(sums * SHARE, work.sums), mask=inside)
    tl.store(work.biases + candidate * 2 * P + u, after * (1.0 / unit))


@triton.jit
def _binary_falls(top, candidate, i, there, weights, own, rows, work, tables, sizes, u, unit,
                  ONE_EACH: tl.constexpr, P: tl.constexpr):  # fmt: skip
    """Store the logits' slopes of variables of at most two values; return those of `top`."""
    head, count = _rows_of(tables.head_start, i, there, ONE_EACH)
    have = count > 0
    at = weights + (rows.heads + head)[:, None] * P + u[None, :]
    w3 = tl.load(at, mask=have[:, None], other=0.0).to(tl.float32)
    bias = tl.load(own + rows.tops * P + head, mask=have, other=0.0)
    at = work.terms + (candidate * sizes.n + i) * TERMS
    floor = tl.load(at + 3, mask=there, other=0.1)
    terms = (
        tl.load(at, mask=have, other=0.0),
        tl.load(at + 1, mask=have, other=0.0),
        tl.load(at + 2, mask=have, other=0.0),
    )
    slope = binary_slope(tl.sum(product(top, w3), 1) + bias, terms, floor)
    at = work.slopes + candidate * sizes.logits + head
    tl.store(at, slope * (1.0 / unit), mask=have)
    return slope[:, None] * w3


@triton.jit
def _categorical_falls(top, candidate, i, there, data, weights, own, rows, work, tables, sizes, u,
                       beta, unit, BERNOULLI: tl.constexpr, LOG: tl.constexpr, VP: tl.constexpr,
                       P: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """Do what `_binary_falls` does for any numbers of values, up to VP."""
    stored = work.slopes + candidate * sizes.logits
    top_rows, biases = weights + rows.heads * P, own + rows.tops * P
    at = work.terms + (candidate * sizes.n + i) * TERMS
    o = tl.arange(0, VP)[None, :]
    value = tl.load(data.points + candidate * sizes.n + i, mask=there, other=-1)
    card = tl.load(tables.cards + i, mask=there, other=1)
    gain = tl.load(at, mask=there, other=0.0)
    weight = tl.load(at + 1, mask=there, other=0.0)
    floor = tl.load(at + 3, mask=there, other=0.1)
    logits = tl.zeros((T, VP), tl.float32)
    for k in range(VP):
        head, have = heads(i, there, card, k, tables)
        w3 = tl.load(top_rows + head[:, None] * P + u[None, :], mask=have[:, None], other=0.0)
        w3 = w3.to(tl.float32)
        logit = tl.sum(product(top, w3), 1) + tl.load(biases + head, mask=have, other=0.0)
        logits = tl.where(o == k, logit[:, None], logits)
    valid = o < card[:, None]
    old = data.old + candidate * sizes.row_length
    old += tl.load(tables.value_start + i, mask=there, other=0)
    olds = tl.load(old[:, None] + o, mask=valid & there[:, None], other=0.5)
    penalty = beta + tl.zeros((T,), tl.float32)
    if BERNOULLI:  # for two values there is one divergence, not one for each value
        penalty = tl.where(card == 2, 0.5 * beta, penalty)
    slope = categorical_slope(
        logits, valid, (value[:, None] == o) & there[:, None], olds, gain[:, None],
        weight[:, None], floor[:, None], penalty[:, None], BERNOULLI, LOG,
    )  # fmt: skip
    fall = tl.zeros((T, P), tl.float32)
    for k in range(VP):
        head, have = heads(i, there, card, k, tables)
        part = tl.sum(tl.where(o == k, slope, 0.0), 1)
        tl.store(stored + head, part * (1.0 / unit), mask=have)
        w3 = tl.load(top_rows + head[:, None] * P + u[None, :], mask=have[:, None], other=0.0)
        fall += part[:, None] * w3.to(tl.float32)
    return fall


@triton.jit
def middle(runs, data, work, sizes, unit, P: tl.constexpr, S: tl.constexpr,
           T: tl.constexpr):  # fmt: skip
    """Store one candidate's gradients of weights and biases between the hidden layers.

    The biases are those of the latter layer.
    """
    c, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    u, s = tl.arange(0, P), tl.arange(0, T)
    candidate = r.to(tl.int64) * data.candidates + c
    begin = candidate * sizes.n * S
    acc = tl.zeros((P, P), tl.float32)
    bias, ones = tl.zeros((P, 16), tl.float32), tl.full((T, 16), 1.0, work.falls.dtype.element_ty)
    for first in range(0, sizes.n, T):
        t = first + s
        place = begin + t[:, None] * S + u[None, :]
        there = (t < sizes.n)[:, None] & (u < S)[None, :]
        fall = tl.load(work.falls + place, mask=there, other=0.0)
        low = tl.load(work.lows + place, mask=there, other=0.0)
        if INTERPRETED:
            fall, low = fall.to(tl.float32), low.to(tl.float32)
        acc = tl.dot(tl.trans(fall), low, acc=acc, input_precision=PRECISION)
        bias = tl.dot(tl.trans(fall), ones.to(fall.dtype), acc=bias, input_precision=PRECISION)
    to = work.middle + candidate * P * P + u[:, None] * P + u[None, :]
    tl.store(to, acc * (1.0 / unit))
    at = work.biases + (candidate * 2 + 1) * P + u
    tl.store(at, tl.sum(bias, 1) * (1.0 / (16 * unit)))
