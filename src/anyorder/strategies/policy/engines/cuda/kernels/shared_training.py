"""The shared network: training, by running sums along an order.

As in the engine `cpu` (`shared_cpu/`), an epoch has two phases. First `contexts`, `outputs`,
`backward` and `middle` go through each candidate's order in blocks and store what the gradients of
each variable need (`SharedWork`); each has one product with weights, as several in one kernel take
too many registers. Then the kernels of `shared_update.py` sum over candidates and take Adam's step.
Parameters in training are rows of P places (`SharedRows`), of which the unused ones are and stay 0.

With HALF, factors of all products are rounded to float16, as the stored activations are; sums are
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
LARGEST = tl.constexpr(60000.0)  # of a slope in units of `unit`, as float16
SHARE = tl.constexpr(1.0 / 64.0)  # of such units, in which sums over variables are stored
TERMS = tl.constexpr(4)  # of the objective, for each variable


# --- products -------------------------------------------------------------------------------------


@triton.jit
def _add_sums(to, ones, x, HALF: tl.constexpr):
    """To + ones x, where the entries of `ones` are 0 and 1: sums of rows of x.

    The parts are bfloat16, which have the range of x, and together 17 bits.
    """
    if INTERPRETED:
        return tl.dot(ones, x.to(tl.float32), acc=to, input_precision="ieee")
    elif HALF:
        return tl.dot(ones.to(tl.float16), x, acc=to)
    else:
        high = x.to(tl.bfloat16)
        low = (x - high.to(tl.float32)).to(tl.bfloat16)
        ones = ones.to(tl.bfloat16)
        return tl.dot(ones, high, acc=tl.dot(ones, low, acc=to))


@triton.jit
def _factor(w, HALF: tl.constexpr):
    """Weights as the second factor of `_times`."""
    if HALF or INTERPRETED:
        return w, w
    else:
        return parts(w * SCALE)


@triton.jit
def _times(a, b, zero, HALF: tl.constexpr):
    """A b."""
    if INTERPRETED:
        return tl.dot(a.to(tl.float32), b[0].to(tl.float32), acc=zero, input_precision="ieee")
    elif HALF:
        return tl.dot(a, b[0], acc=zero)
    else:
        return add_product(zero, parts(a), b) * (1.0 / SCALE)


@triton.jit
def _tanh(x, HALF: tl.constexpr):
    """With HALF to 11 bits, as many as float16 has: one instruction instead of five."""
    if HALF and not INTERPRETED:
        return tl.inline_asm_elementwise(
            "tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        return tanh(x)


@triton.jit
def _rounded(x, like):
    """x as the numbers of `like`, none of them infinite."""
    if like.dtype.element_ty == tl.float16 and not INTERPRETED:
        return tl.inline_asm_elementwise(
            "cvt.rn.satfinite.f16x2.f32 $0, $2, $1;", "=r,f,f", [x], dtype=tl.float16,
            is_pure=True, pack=2,
        )  # fmt: skip
    else:
        return tl.minimum(tl.maximum(x, -LARGEST), LARGEST).to(like.dtype.element_ty)


# --- before the epochs ----------------------------------------------------------------------------


@triton.jit
def prepare(runs, data, work, tables, sizes, beta, unit, MAXF: tl.constexpr, VP: tl.constexpr,
            T: tl.constexpr):  # fmt: skip
    """What is the same in all epochs, for T variables of a candidate.

    These are the differences of their inputs to hidden ones, and what the objective depends on
    besides logits: if VP is 1 the three of `binary_terms`, else A / pi_old(x) and the weight; then
    the clip. Both are such that slopes are in units of `unit`.
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
    gain = gain / tl.load(old + value, mask=there & (value >= 0), other=1.0)
    at = work.terms + (candidate * n + i) * TERMS
    if VP == 1:
        two = tl.load(tables.cards + i, mask=there, other=1) == 2
        old_0 = tl.load(old, mask=two, other=0.5)
        old_1 = tl.load(old + 1, mask=two, other=0.5)
        terms = binary_terms(value, old_0, old_1, gain, weight, beta)
        tl.store(at, terms[0], mask=there)
        tl.store(at + 1, terms[1], mask=there)
        tl.store(at + 2, terms[2], mask=there)
    else:
        tl.store(at, gain, mask=there)
        tl.store(at + 1, weight, mask=there)
    tl.store(at + 3, tl.load(tables.floors + i, mask=there, other=0.1), mask=there)


# --- an epoch -------------------------------------------------------------------------------------


@triton.jit
def empty_contexts(runs, work, tables, sizes, rows, P: tl.constexpr, T: tl.constexpr):
    """Pre-activations of the first layer where every variable is hidden."""
    r, u = tl.program_id(0), tl.arange(0, P)
    if field(runs, r, STATUS) != RUNNING:
        return
    own = work.w + r.to(tl.int64) * rows.total * P
    acc = tl.load(own + rows.biases * P + u)
    for first in range(0, sizes.features, T):
        f = first + tl.arange(0, T)
        there = f < sizes.features
        hidden = tl.load(tables.hidden_value + f, mask=there, other=0.0)
        part = tl.load(own + f[:, None] * P + u[None, :], mask=there[:, None], other=0.0)
        acc += tl.sum(product(hidden[:, None], part), 0)
    tl.store(work.contexts + r * P + u, acc)


@triton.jit
def _inputs(weights, deltas, i, there, tables, u, MAXF: tl.constexpr, P: tl.constexpr,
            T: tl.constexpr):  # fmt: skip
    """What variables i add to the first layer's pre-activations, (T, P)."""
    begin = tl.load(tables.feature_start + i, mask=there, other=0)
    count = tl.load(tables.feature_start + i + 1, mask=there, other=0) - begin
    total = tl.zeros((T, P), tl.float32)
    for k in tl.static_range(MAXF):
        have = k < count
        f = tl.where(have, begin + k, 0)
        row = tl.load(weights + f[:, None] * P + u[None, :], mask=have[:, None], other=0.0)
        total += tl.load(deltas + f)[:, None] * row
    return total.to(weights.dtype.element_ty)


@triton.jit(do_not_specialize=["epoch"])
def contexts(runs, data, orders, epoch, epochs, work, tables, sizes, rows, HIDDEN: tl.constexpr,
             HALF: tl.constexpr, MAXF: tl.constexpr, P: tl.constexpr,
             T: tl.constexpr):  # fmt: skip
    """Units of the first layer, for one candidate in blocks of T variables along its order."""
    c, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    n, u, s = sizes.n, tl.arange(0, P), tl.arange(0, T)
    run = r.to(tl.int64)
    weights, candidate = work.weights + run * rows.total * P, run * data.candidates + c
    order = orders + ((run * epochs + epoch) * data.candidates + c) * n
    deltas = work.deltas + candidate * sizes.features
    earlier = (s[:, None] > s[None, :]).to(tl.float32)
    all_rows = tl.full((T, T), 1.0, tl.float32)
    if HIDDEN:
        empty = tl.load(work.contexts + run * P + u)
    else:
        empty = tl.load(work.w + (run * rows.total + rows.biases) * P + u)
    # The context before a block, in every row: its sum is a product, too, which is faster than
    # adding rows that are in different threads.
    before = tl.zeros((T, P), tl.float32) + empty[None, :]
    following = tl.load(order + s, mask=s < n, other=0)  # of the order, read one block ahead
    for first in range(0, n, T):
        t, i = first + s, following
        following = tl.load(order + t + T, mask=t + T < n, other=0)
        x = _inputs(weights, deltas, i, t < n, tables, u, MAXF, P, T)
        tl.store(work.places + candidate * n + i, t, mask=t < n)
        low = _tanh(_add_sums(before, earlier, x, HALF), HALF)
        before = _add_sums(before, all_rows, x, HALF)
        place = (candidate * n + t)[:, None] * P + u[None, :]
        low = low.to(work.lows.dtype.element_ty)
        tl.store(work.lows + place, low, mask=(t < n)[:, None])


@triton.jit(do_not_specialize=["epoch"])
def outputs(runs, data, orders, epoch, epochs, work, tables, sizes, rows, beta, unit,
            HALF: tl.constexpr, BERNOULLI: tl.constexpr, DEPTH: tl.constexpr, VP: tl.constexpr,
            P: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """From the first layer's units to the slopes of the last one's pre-activations, for T variables
    of a candidate.
    """
    c, r = tl.program_id(1), tl.program_id(2)
    if field(runs, r, STATUS) != RUNNING:
        return
    n, u, t = sizes.n, tl.arange(0, P), tl.program_id(0) * T + tl.arange(0, T)
    run, there = r.to(tl.int64), t < n
    own, weights = work.w + run * rows.total * P, work.weights + run * rows.total * P
    candidate = run * data.candidates + c
    i = tl.load(
        orders + ((run * epochs + epoch) * data.candidates + c) * n + t, mask=there, other=0
    )
    place = (candidate * n + t)[:, None] * P + u[None, :]
    top = tl.load(work.lows + place, mask=there[:, None], other=0.0)
    if DEPTH == 2:
        w2 = tl.load(weights + (rows.second + u)[None, :] * P + u[:, None])
        z = _times(top, _factor(w2, HALF), tl.zeros((T, P), tl.float32), HALF)
        top = _tanh(z + tl.load(own + (rows.biases + 1) * P + u)[None, :], HALF).to(top.dtype)
        tl.store(work.tops + place, top, mask=there[:, None])
    top = top.to(tl.float32)
    if VP == 1:
        fall = _binary_falls(
            top, candidate, i, there, weights, own, rows, work, tables, sizes, u, unit, P
        )
    else:
        fall = _categorical_falls(
            top, candidate, i, there, data, weights, own, rows, work, tables, sizes, u, beta, unit,
            BERNOULLI, VP, P, T,
        )  # fmt: skip
    fall = _rounded(fall * (1.0 - top * top), work.falls)
    tl.store(work.falls + place, fall, mask=there[:, None])


@triton.jit
def _binary_falls(top, candidate, i, there, weights, own, rows, work, tables, sizes, u, unit,
                  P: tl.constexpr):  # fmt: skip
    """Slopes of the logits of variables of two values or one, which are stored; returns those of
    `top`.
    """
    head = tl.load(tables.head_start + i, mask=there, other=0)
    have = tl.load(tables.head_start + i + 1, mask=there, other=0) > head
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
                       beta, unit, BERNOULLI: tl.constexpr, VP: tl.constexpr, P: tl.constexpr,
                       T: tl.constexpr):  # fmt: skip
    """The same for any numbers of values, up to VP."""
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
    for k in tl.static_range(VP):
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
    if BERNOULLI:  # of two values there is one divergence, not one for each
        penalty = tl.where(card == 2, 0.5 * beta, penalty)
    slope = categorical_slope(
        logits, valid, (value[:, None] == o) & there[:, None], olds, gain[:, None],
        weight[:, None], floor[:, None], penalty[:, None], BERNOULLI,
    )  # fmt: skip
    fall = tl.zeros((T, P), tl.float32)
    for k in tl.static_range(VP):
        head, have = heads(i, there, card, k, tables)
        part = tl.sum(tl.where(o == k, slope, 0.0), 1)
        tl.store(stored + head, part * (1.0 / unit), mask=have)
        w3 = tl.load(top_rows + head[:, None] * P + u[None, :], mask=have[:, None], other=0.0)
        fall += part[:, None] * w3.to(tl.float32)
    return fall


@triton.jit
def backward(runs, data, work, sizes, rows, unit, HALF: tl.constexpr, DEPTH: tl.constexpr,
             P: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """Slopes of each variable's contribution to the first layer, for one candidate in blocks of T
    variables, from the end of its order: a variable's is the sum over all that see it.
    """
    c, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    n, u, s = sizes.n, tl.arange(0, P), tl.arange(0, T)
    run = r.to(tl.int64)
    candidate = run * data.candidates + c
    later = (s[:, None] < s[None, :]).to(tl.float32)
    all_rows = tl.full((T, T), 1.0, tl.float32)
    zero = tl.zeros((T, P), tl.float32)
    after = zero  # the sum of slopes of the variables of later blocks, in every row
    second = _factor(zero, HALF)
    if DEPTH == 2:
        at = work.weights + (run * rows.total + rows.second + u)[:, None] * P + u[None, :]
        second = _factor(tl.load(at), HALF)
    # The slopes of a block are summed when those of the next one are computed: neither waits.
    d = zero.to(work.falls.dtype.element_ty)
    blocks = (n + T - 1) // T
    for step_back in range(blocks + 1):
        t = (blocks - step_back) * T + s
        place = (candidate * n + t)[:, None] * P + u[None, :]
        there = ((t >= T) & (t - T < n))[:, None]
        fall = tl.load(work.falls + place - T * P, mask=there, other=0.0)
        low = fall
        if DEPTH == 2:
            low = tl.load(work.lows + place - T * P, mask=there, other=0.0)
        sums = _add_sums(after, later, d, HALF)
        after = _add_sums(after, all_rows, d, HALF)
        tl.store(work.sums + place, _rounded(sums * SHARE, work.sums), mask=(t < n)[:, None])
        d = fall
        if DEPTH == 2:
            low = low.to(tl.float32)
            d = _rounded(_times(fall, second, zero, HALF) * (1.0 - low * low), work.falls)
    at = work.biases + candidate * 2 * P + s[:, None] * 0 + u[None, :]
    tl.store(at, after * (1.0 / unit), mask=(s == 0)[:, None])


@triton.jit
def middle(runs, data, work, sizes, unit, P: tl.constexpr, T: tl.constexpr):
    """Gradients of the weights between the hidden layers, and of the latter's biases, for one
    candidate.
    """
    c, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    u, s = tl.arange(0, P), tl.arange(0, T)
    candidate = r.to(tl.int64) * data.candidates + c
    begin = candidate * sizes.n * P
    acc = tl.zeros((P, P), tl.float32)
    bias, ones = tl.zeros((P, 16), tl.float32), tl.full((T, 16), 1.0, work.falls.dtype.element_ty)
    for first in range(0, sizes.n, T):
        t = first + s
        place = begin + t[:, None] * P + u[None, :]
        there = (t < sizes.n)[:, None]
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
