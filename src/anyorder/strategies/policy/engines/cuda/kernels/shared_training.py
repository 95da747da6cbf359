"""The shared network: training, by prefix sums along an order.

As in the engine `cpu` (`shared_cpu/`), an epoch has two phases. `forward`, `middle` and `backward`
go through each candidate's order in blocks and store what the gradients of each variable need
(`SharedWork`); then `update_variables` and `update_layers` sum over candidates and take Adam's
step. Parameters in training are rows of P places (`SharedRows`), of which the unused ones are and
stay 0. The other constants are those of `shared.py`.
"""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    INTERPRETED,
    RUNNING,
    STATUS,
    STEPS,
    field,
    product,
    tanh,
)
from anyorder.strategies.policy.engines.cuda.kernels.general import step
from anyorder.strategies.policy.engines.cuda.kernels.objective import (
    binary_slope,
    binary_terms,
    categorical_slope,
)
from anyorder.strategies.policy.engines.cuda.kernels.shared import SCALE, add_product, heads, parts

# Products of rows that are stored as float32: three of tf32 parts.
PRECISION = tl.constexpr("ieee" if INTERPRETED.value else "tf32x3")
LARGEST = tl.constexpr(60000.0)  # of a slope in units of `unit`, which is stored as float16


@triton.jit
def _sums_of_others(x, AFTER: tl.constexpr, T: tl.constexpr, P: tl.constexpr):
    """For each of T rows the sum of the rows before it, or after it: a triangular product.

    The parts are bfloat16, which have the range of x, and together 17 bits.
    """
    s = tl.arange(0, T)
    if AFTER:
        ones = s[:, None] < s[None, :]
    else:
        ones = s[:, None] > s[None, :]
    zero = tl.zeros((T, P), tl.float32)
    if INTERPRETED:
        return tl.dot(ones.to(tl.float32), x, acc=zero, input_precision="ieee")
    else:
        high = x.to(tl.bfloat16)
        low = (x - high.to(tl.float32)).to(tl.bfloat16)
        ones = ones.to(tl.bfloat16)
        return tl.dot(ones, high, acc=tl.dot(ones, low, acc=zero))


@triton.jit
def empty_contexts(w, runs, work, tables, sizes, rows, P: tl.constexpr, T: tl.constexpr):
    """Pre-activations of the first layer where every variable is hidden."""
    r, u = tl.program_id(0), tl.arange(0, P)
    if field(runs, r, STATUS) != RUNNING:
        return
    own = w + r.to(tl.int64) * rows.total * P
    acc = tl.load(own + rows.biases * P + u)
    for first in range(0, sizes.features, T):
        f = first + tl.arange(0, T)
        there = f < sizes.features
        hidden = tl.load(tables.hidden_value + f, mask=there, other=0.0)
        part = tl.load(own + f[:, None] * P + u[None, :], mask=there[:, None], other=0.0)
        acc += tl.sum(product(hidden[:, None], part), 0)
    tl.store(work.contexts + r * P + u, acc)


@triton.jit
def _inputs(own, tables, i, value, there, u, MAXF: tl.constexpr, P: tl.constexpr,
            T: tl.constexpr):  # fmt: skip
    """What the values of variables i add to the first layer's pre-activations, (T, P)."""
    begin = tl.load(tables.feature_start + i, mask=there, other=0)
    count = tl.load(tables.feature_start + i + 1, mask=there, other=0) - begin
    total = tl.zeros((T, P), tl.float32)
    for k in tl.static_range(MAXF):
        f = begin + k
        shown = there & (k < count) & (value >= 0)
        base = tl.load(tables.code_base + f, mask=shown, other=0)
        code = tl.load(tables.codes + base + value, mask=shown, other=0.0)
        code -= tl.load(tables.hidden_value + f, mask=shown, other=0.0)
        total += code[:, None] * tl.load(own + f[:, None] * P + u[None, :])
    return total


@triton.jit(do_not_specialize=["epoch"])
def forward(w, runs, data, orders, epoch, epochs, work, tables, sizes, rows, beta, unit,
            BERNOULLI: tl.constexpr, DEPTH: tl.constexpr, H: tl.constexpr, TOP: tl.constexpr,
            MAXF: tl.constexpr, VP: tl.constexpr, P: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """From the first layer to the slopes of the last one's units, for one candidate in blocks of T
    variables along its order.
    """
    c, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    n, B = sizes.n, data.candidates
    u, s = tl.arange(0, P), tl.arange(0, T)
    own = w + r.to(tl.int64) * rows.total * P
    candidate = r.to(tl.int64) * B + c
    point = data.points + candidate * n
    order = orders + ((r.to(tl.int64) * epochs + epoch) * B + c) * n
    begin = candidate * n * P
    before = tl.load(work.contexts + r * P + u)  # the context before a block
    bias = tl.zeros((P,), tl.float32)
    second, b2 = parts(tl.zeros((P, P), tl.float32)), bias
    if DEPTH == 2:
        w2 = tl.load(own + (rows.second + u)[None, :] * P + u[:, None])
        second, b2 = parts(w2 * SCALE), tl.load(own + (rows.biases + 1) * P + u)
    following = tl.load(order + s, mask=s < n, other=0)  # of the order, read one block ahead
    for first in range(0, n, T):
        t = first + s
        there = t < n
        i = following
        following = tl.load(order + t + T, mask=t + T < n, other=0)
        value = tl.load(point + i, mask=there, other=-1)
        card, old, gain, weight, floor = _terms(
            c, r, candidate, i, value, there, data, tables, sizes
        )
        x = _inputs(own, tables, i, value, there, u, MAXF, P, T)
        top = tanh(before[None, :] + _sums_of_others(x, False, T, P))
        top = tl.where((u < H)[None, :], top, 0.0)
        before += tl.sum(x, 0)
        place = t[:, None] * P + u[None, :]
        tl.store(work.places + candidate * n + i, t, mask=there)
        if DEPTH == 2:
            tl.store(work.lows + begin + place, top, mask=there[:, None])
            z = add_product(tl.zeros((T, P), tl.float32), parts(top), second)
            top = tanh(z * (1.0 / SCALE) + b2[None, :])
            top = tl.where((u < TOP)[None, :], top, 0.0)
        tl.store(work.tops + begin + place, top, mask=there[:, None])
        fall = _output_slopes(
            top, candidate, i, value, there, card, old, gain, weight, floor, own, rows, work,
            tables, sizes, u, beta, BERNOULLI, VP, P, T,
        )  # fmt: skip
        fall = fall * (1.0 - top * top)
        bias += tl.sum(fall, 0)
        fall = tl.minimum(tl.maximum(fall * unit, -LARGEST), LARGEST)
        tl.store(work.falls + begin + place, fall, mask=there[:, None])
    tl.store(work.biases + (candidate * 2 + DEPTH - 1) * P + u, bias)


@triton.jit
def middle(runs, data, work, sizes, unit, P: tl.constexpr, T: tl.constexpr):
    """Gradients of the weights between the hidden layers, for one candidate."""
    c, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    u, s = tl.arange(0, P), tl.arange(0, T)
    candidate = r.to(tl.int64) * data.candidates + c
    begin = candidate * sizes.n * P
    acc = tl.zeros((P, P), tl.float32)
    for first in range(0, sizes.n, T):
        t = first + s
        place = begin + t[:, None] * P + u[None, :]
        there = (t < sizes.n)[:, None]
        fall = tl.load(work.falls + place, mask=there, other=0.0)
        low = tl.load(work.lows + place, mask=there, other=0.0)
        acc = tl.dot(tl.trans(fall), low, acc=acc, input_precision=PRECISION)
    to = work.middle + candidate * P * P + u[:, None] * P + u[None, :]
    tl.store(to, acc * (1.0 / unit))


@triton.jit
def backward(w, runs, data, work, sizes, rows, unit, DEPTH: tl.constexpr, P: tl.constexpr,
             T: tl.constexpr):  # fmt: skip
    """Slopes of each variable's contribution to the first layer, for one candidate in blocks of T
    variables, from the end of its order: a variable's is the sum over all that see it.
    """
    c, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    n, u, s = sizes.n, tl.arange(0, P), tl.arange(0, T)
    own = w + r.to(tl.int64) * rows.total * P
    candidate = r.to(tl.int64) * data.candidates + c
    begin = candidate * n * P
    after = tl.zeros((P,), tl.float32)  # the sum of slopes of the variables of later blocks
    second = work.falls
    if DEPTH == 2:
        w2 = tl.load(own + (rows.second + u)[:, None] * P + u[None, :])
        second = (w2 * SCALE).to(work.falls.dtype.element_ty)
    blocks = (n + T - 1) // T
    for step_back in range(blocks):
        t = (blocks - 1 - step_back) * T + s
        there = (t < n)[:, None]
        place = begin + t[:, None] * P + u[None, :]
        fall = tl.load(work.falls + place, mask=there, other=0.0)
        d = fall.to(tl.float32)
        if DEPTH == 2:
            d = tl.dot(fall, second, input_precision=PRECISION) * (1.0 / SCALE)
            low = tl.load(work.lows + place, mask=there, other=0.0).to(tl.float32)
            d = d * (1.0 - low * low)
        later = after[None, :] + _sums_of_others(d, True, T, P)
        tl.store(work.sums + place, later * (1.0 / unit), mask=there)
        after += tl.sum(d, 0)
    tl.store(work.biases + candidate * 2 * P + u, after * (1.0 / unit))


@triton.jit
def _terms(c, r, candidate, i, value, there, data, tables, sizes):
    """What the objective of variables i depends on besides their logits.

    These are their numbers of values, where their old distributions are, A / pi_old(x), weights and
    clips.
    """
    card = tl.load(tables.cards + i, mask=there, other=1)
    old = data.old + candidate * sizes.row_length
    old += tl.load(tables.value_start + i, mask=there, other=0)
    at_weight = data.weights + r * data.weight_run + c * data.weight_candidate
    at_gain = data.advantages + r * data.advantage_run + c * data.advantage_candidate
    weight = tl.load(at_weight + i * data.weight_variable, mask=there, other=0.0).to(tl.float32)
    gain = tl.load(at_gain + i * data.advantage_variable, mask=there, other=0.0).to(tl.float32)
    gain = gain / tl.load(old + value, mask=there & (value >= 0), other=1.0)
    floor = tl.load(tables.floors + i, mask=there, other=0.1)
    return card, old, gain, weight / data.candidates, floor


@triton.jit
def _output_slopes(top, candidate, i, value, there, card, old, gain, weight, floor, own, rows, work,
                   tables, sizes, u, beta, BERNOULLI: tl.constexpr, VP: tl.constexpr,
                   P: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """Slopes of the logits of T variables, which are stored; returns those of `top`."""
    stored = work.slopes + candidate * sizes.logits
    top_rows, biases = own + rows.heads * P, own + rows.tops * P
    if VP == 1:
        head, have = heads(i, there, card, 1, tables)
        w3 = tl.load(top_rows + tl.maximum(head, 0)[:, None] * P + u[None, :])
        logit = tl.sum(product(top, w3), 1) + tl.load(biases + head, mask=have, other=0.0)
        old_0 = tl.load(old, mask=have, other=0.5)
        old_1 = tl.load(old + 1, mask=have, other=0.5)
        terms = binary_terms(value, old_0, old_1, gain, weight, beta)
        slope = tl.where(have, binary_slope(logit, terms, floor), 0.0)
        tl.store(stored + head, slope, mask=have)
        return slope[:, None] * w3
    else:
        o = tl.arange(0, VP)[None, :]
        logits = tl.zeros((T, VP), tl.float32)
        for k in tl.static_range(VP):
            head, have = heads(i, there, card, k, tables)
            w3 = tl.load(top_rows + head[:, None] * P + u[None, :], mask=have[:, None], other=0.0)
            logit = tl.sum(product(top, w3), 1) + tl.load(biases + head, mask=have, other=0.0)
            logits = tl.where(o == k, logit[:, None], logits)
        valid = o < card[:, None]
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
            tl.store(stored + head, part, mask=have)
            w3 = tl.load(top_rows + head[:, None] * P + u[None, :], mask=have[:, None], other=0.0)
            fall += part[:, None] * w3
        return fall


@triton.jit(do_not_specialize=["epoch"])
def update_variables(parameters, runs, data, work, epoch, training, tables, sizes, rows,
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
    begin = r.to(tl.int64) * rows.total * P
    coefficient = training.coefficients + (field(runs, r, STEPS) + epoch) * (2 * DEPTH + 3)
    eps = tl.load(coefficient + 2 * DEPTH + 2)
    first = tl.load(tables.feature_start + j, mask=there, other=0)
    inputs = tl.load(tables.feature_start + j + 1, mask=there, other=0) - first
    for k in tl.static_range(MAXF):
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
            place = tl.load(work.places + candidate * n + j, mask=have, other=0)
            later = work.sums + candidate * n * P + place[:, None] * P + u[None, :]
            g += seen[:, None] * tl.load(later)
            if HIDDEN:
                total = tl.load(work.biases + candidate * 2 * P + u)
                g += hidden[:, None] * total[None, :]
        at_row = begin + f[:, None] * P + u[None, :]
        rate = tl.load(coefficient)
        step(parameters, at_row, have[:, None], g, epoch, rate, eps, training, KEPT)
    weight = tl.zeros((T,), tl.float32)
    for c in range(B):
        of_candidate = data.weights + r * data.weight_run + c * data.weight_candidate
        own = tl.load(of_candidate + j * data.weight_variable, mask=there, other=0.0)
        weight += tl.abs(own.to(tl.float32))
    head = tl.load(tables.head_start + j, mask=there, other=0)
    outputs = tl.load(tables.head_start + j + 1, mask=there, other=0) - head
    rate_w = tl.load(coefficient + 2 * DEPTH)
    rate_b = tl.load(coefficient + 2 * DEPTH + 1)
    for k in tl.static_range(MAXO):
        have = there & (k < outputs) & (weight > 0.0)
        g = tl.zeros((T, P), tl.float32)
        g_bias = tl.zeros((T,), tl.float32)
        for c in range(B):
            candidate = r.to(tl.int64) * B + c
            slope = tl.load(work.slopes + candidate * sizes.logits + head + k, mask=have, other=0.0)
            place = tl.load(work.places + candidate * n + j, mask=have, other=0)
            top = work.tops + candidate * n * P + place[:, None] * P + u[None, :]
            g += slope[:, None] * tl.load(top)
            g_bias += slope
        at_head = begin + (rows.heads + head + k)[:, None] * P + u[None, :]
        step(parameters, at_head, have[:, None], g, epoch, rate_w, eps, training, KEPT)
        at_bias = begin + rows.tops * P + head + k
        step(parameters, at_bias, have, g_bias, epoch, rate_b, eps, training, KEPT)


@triton.jit(do_not_specialize=["epoch"])
def update_layers(parameters, runs, data, work, epoch, training, rows, KEPT: tl.constexpr,
                  DEPTH: tl.constexpr, P: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """Adam's step on T rows of the second hidden layer, and on the hidden layers' biases."""
    r = tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    k, u = tl.program_id(0) * T + tl.arange(0, T), tl.arange(0, P)
    begin = r.to(tl.int64) * rows.total * P
    coefficient = training.coefficients + (field(runs, r, STEPS) + epoch) * (2 * DEPTH + 3)
    eps = tl.load(coefficient + 2 * DEPTH + 2)
    B = data.candidates
    for layer in tl.static_range(DEPTH):
        g_bias = tl.zeros((T,), tl.float32)
        for c in range(B):
            candidate = r.to(tl.int64) * B + c
            g_bias += tl.load(work.biases + (candidate * 2 + layer) * P + k)
        at_bias = begin + (rows.biases + layer) * P + k
        rate = tl.load(coefficient + 2 * layer + 1)
        step(parameters, at_bias, k < P, g_bias, epoch, rate, eps, training, KEPT)
    if DEPTH == 2:
        g = tl.zeros((T, P), tl.float32)
        for c in range(B):
            candidate = r.to(tl.int64) * B + c
            g += tl.load(work.middle + candidate * P * P + k[:, None] * P + u[None, :])
        at = begin + (rows.second + k)[:, None] * P + u[None, :]
        rate_2 = tl.load(coefficient + 2)
        step(parameters, at, (k < P)[:, None], g, epoch, rate_2, eps, training, KEPT)
