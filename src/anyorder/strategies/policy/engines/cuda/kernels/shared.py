"""The shared network: initial parameters, and sampling.

`walk` samples up to 16 candidates of a run at once, or computes their distributions. There are one
or two hidden layers, of H and TOP units; rows have P places, a power of two. VP is 1 if no variable
has more than two values.
"""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    ENDED,
    FIRST,
    GENERATION,
    INIT,
    INTERPRETED,
    RESTARTING,
    RESTARTS,
    SEED,
    STATUS,
    VALUE,
    field,
    product,
    sigmoid,
    tanh,
    uniform,
    word_of,
)
from anyorder.strategies.policy.engines.cuda.kernels.objective import (
    clipped_probabilities,
    raw_probabilities,
)

# In products, weights between the hidden layers are multiplied by this, so that the lower of their
# two parts is no subnormal float16. They may grow to 4,000.
SCALE = tl.constexpr(16.0)


@triton.jit
def initialize(theta, runs, sizes, offsets, widths, ONLY_RESTARTING: tl.constexpr,
               FIRST: tl.constexpr, LAYERS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Draw parameters, uniform in +-1/sqrt(fan in), of all runs or of those that restart."""
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
    word = word_of(field(runs, r, SEED), r * 0, field(runs, r, RESTARTS) + FIRST, INIT, w)
    at = theta + r.to(tl.int64) * sizes.parameters
    tl.store(at + w, (2.0 * uniform(word) - 1.0) * bound, mask=w < sizes.parameters)


# --- products -------------------------------------------------------------------------------------


@triton.jit
def parts(x):
    """Split x, of entries up to 2^15, into a sum of two float16."""
    if INTERPRETED:  # the interpreter multiplies matrices of float32 only
        return x, x
    else:
        high = x.to(tl.float16)
        return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def add_product(c, a, b):
    """Return c + a b for matrices in parts; the product of the lower parts is left out."""
    if INTERPRETED:
        return tl.dot(a[0], b[0], acc=c, input_precision="ieee")
    else:
        return tl.dot(a[0], b[0], acc=tl.dot(a[0], b[1], acc=tl.dot(a[1], b[0], acc=c)))


# --- the layers' ends -----------------------------------------------------------------------------


@triton.jit
def _contributions(w1, tables, i, value, there, u, H: tl.constexpr, MAXF: tl.constexpr,
                   P: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """Return the contributions of values of variables i to the first layer, (T, P).

    Also return the contributions of these variables when they are hidden.
    """
    begin = tl.load(tables.feature_start + i, mask=there, other=0)
    count = tl.load(tables.feature_start + i + 1, mask=there, other=0) - begin
    total, unseen = tl.zeros((T, P), tl.float32), tl.zeros((T, P), tl.float32)
    for k in range(MAXF):
        have, f = there & (k < count), begin + k
        shown = have & (value >= 0)
        inside = have[:, None] & (u < H)[None, :]
        w = tl.load(w1 + f[:, None] * H + u[None, :], mask=inside, other=0.0)
        hidden = tl.load(tables.hidden_value + f, mask=have, other=0.0)
        base = tl.load(tables.code_base + f, mask=shown, other=0)
        code = tl.load(tables.codes + base + value, mask=shown, other=0.0)
        total += tl.where(shown, code - hidden, 0.0)[:, None] * w
        unseen += hidden[:, None] * w
    return total, unseen


@triton.jit
def heads(i, there, card, k, tables):
    """Return the rows of the heads of values k of variables i, and which of them exist."""
    two = (card == 2).to(tl.int32)  # the only logit is that of the value 1
    row = tl.load(tables.head_start + i, mask=there, other=0) + k - two
    return row, there & (card > 1) & (k >= two) & (k < card)


@triton.jit
def _logit(top, w3, b3, head, have, u, TOP: tl.constexpr):
    """Return the logits of one head of each row."""
    inside = have[:, None] & (u < TOP)[None, :]
    w = tl.load(w3 + head[:, None] * TOP + u[None, :], mask=inside, other=0.0)
    return tl.sum(product(top, w), 1) + tl.load(b3 + head, mask=have, other=0.0)


@triton.jit
def _ready(w1, w3, b3, i, real, tables, u, H: tl.constexpr, TOP: tl.constexpr, MAXF: tl.constexpr,
           P: tl.constexpr, C: tl.constexpr):  # fmt: skip
    """Return the data of variables i, with at most two values, that a step needs.

    They are the weights of their inputs, the difference between inputs and hidden inputs for both
    values, the weights and biases of their heads, clips, the places of their distributions, and
    which variables have two values.
    """
    have = tl.load(tables.cards + i, mask=real, other=1) == 2
    row, code_0 = tl.zeros((C, P), tl.float32), tl.zeros((C,), tl.float32)
    code_1 = code_0
    if MAXF == 1:
        f = tl.load(tables.feature_start + i, mask=have, other=0)
        inside = have[:, None] & (u < H)[None, :]
        row = tl.load(w1 + f[:, None] * H + u[None, :], mask=inside, other=0.0)
        base = tl.load(tables.code_base + f, mask=have, other=0)
        hidden = tl.load(tables.hidden_value + f, mask=have, other=0.0)
        code_0 = tl.load(tables.codes + base, mask=have, other=0.0) - hidden
        code_1 = tl.load(tables.codes + base + 1, mask=have, other=0.0) - hidden
    number = tl.load(tables.head_start + i, mask=have, other=0)
    inside = have[:, None] & (u < TOP)[None, :]
    head = tl.load(w3 + number[:, None] * TOP + u[None, :], mask=inside, other=0.0)
    bias = tl.load(b3 + number, mask=have, other=0.0)
    floor = tl.load(tables.floors + i, mask=real, other=0.1)
    start = tl.load(tables.value_start + i, mask=real, other=0)
    return row, (code_0, code_1), head, bias, floor, start, have


@triton.jit
def _of_value(value, row, codes):
    """Return the contributions of values of `_ready` variables to the first layer."""
    code = tl.where(value == 1, codes[1], tl.where(value == 0, codes[0], 0.0))
    return code[:, None] * row


@triton.jit
def _second_layer(at, offsets, u, H: tl.constexpr, TOP: tl.constexpr):
    """Return weights (inputs, outputs), times SCALE, and biases between the hidden layers."""
    inside = (u < H)[:, None] & (u < TOP)[None, :]
    w = tl.load(at + tl.load(offsets + 2) + u[None, :] * H + u[:, None], mask=inside, other=0.0)
    return w * SCALE, tl.load(at + tl.load(offsets + 3) + u, mask=u < TOP, other=0.0)


# --- sampling -------------------------------------------------------------------------------------


@triton.jit
def walk(points, probs, theta, runs, orders, tables, sizes, offsets, B, DRAW: tl.constexpr,
         OTHERS: tl.constexpr, HIDDEN: tl.constexpr, DEPTH: tl.constexpr, H: tl.constexpr,
         TOP: tl.constexpr, MAXF: tl.constexpr, VP: tl.constexpr, P: tl.constexpr,
         C: tl.constexpr):  # fmt: skip
    """Compute distributions of candidates' variables in their orders; with DRAW draw values.

    OTHERS: a variable sees all others.
    """
    r = tl.program_id(1)
    if field(runs, r, STATUS) >= ENDED:
        return
    n = sizes.n
    c, u = tl.program_id(0) * C + tl.arange(0, C), tl.arange(0, P)
    real = c < B
    at = theta + r.to(tl.int64) * sizes.parameters
    w1, b1 = at, at + tl.load(offsets + 1)
    w3, b3 = at + tl.load(offsets + 2 * DEPTH), at + tl.load(offsets + 2 * DEPTH + 1)
    seed, generation, row = field(runs, r, SEED), field(runs, r, GENERATION), field(runs, r, FIRST)
    candidate = r.to(tl.int64) * B + c
    point, order = points + candidate * n, orders + candidate * n
    empty = tl.load(b1 + u, mask=u < H, other=0.0)
    if HIDDEN:
        for first in range(0, n, C):
            j = first + tl.arange(0, C)
            empty += tl.sum(_contributions(w1, tables, j, j * 0, j < n, u, H, MAXF, P, C)[1], 0)
    acc = tl.zeros((C, P), tl.float32) + empty[None, :]
    second, b2 = parts(tl.zeros((P, P), tl.float32)), empty
    if DEPTH == 2:
        w2, b2 = _second_layer(at, offsets, u, H, TOP)
        second = parts(w2)
    if OTHERS:
        for j in range(n):
            i = tl.zeros((C,), tl.int32) + j
            value = tl.load(point + j, mask=real, other=-1)
            acc += _contributions(w1, tables, i, value, real, u, H, MAXF, P, C)[0]
    i = tl.load(order, mask=real, other=0)
    following = tl.load(order + tl.minimum(1, n - 1), mask=real, other=0)
    if VP == 1:
        ready = _ready(w1, w3, b3, i, real, tables, u, H, TOP, MAXF, P, C)
    for t in range(n):
        later = tl.load(order + tl.minimum(t + 2, n - 1), mask=real, other=0)
        if VP == 1:  # what the next step needs is read now, as memory takes about that long
            inputs, codes, head, bias, floor, start, have = ready
            ready = _ready(w1, w3, b3, following, real, tables, u, H, TOP, MAXF, P, C)
        else:
            floor = tl.load(tables.floors + i, mask=real, other=0.1)
            start = tl.load(tables.value_start + i, mask=real, other=0)
        own, pre = acc, acc
        if not DRAW:
            value = tl.load(point + i, mask=real, other=-1)
            if VP == 1:
                own = _of_value(value, inputs, codes)
            else:
                own = _contributions(w1, tables, i, value, real, u, H, MAXF, P, C)[0]
            if OTHERS:
                pre = acc - own
        top = tl.where((u < H)[None, :], tanh(pre), 0.0)
        if DEPTH == 2:
            z = add_product(tl.zeros((C, P), tl.float32), parts(top), second)
            z = z * (1.0 / SCALE) + b2[None, :]
            top = tl.where((u < TOP)[None, :], tanh(z), 0.0)
        to = probs + candidate * sizes.row_length + start
        draw = uniform(word_of(seed, row + c, generation, VALUE, i))
        if VP == 1:
            logit = tl.sum(product(top, head), 1) + bias
            one = tl.minimum(tl.maximum(sigmoid(logit), floor), 1.0 - floor)
            tl.store(to, tl.where(have, 1.0 - one, 1.0), mask=real)
            tl.store(to + 1, one, mask=have)
            drawn = (have & (draw < one)).to(tl.int32)
        else:
            card = tl.load(tables.cards + i, mask=real, other=1)
            o = tl.arange(0, VP)[None, :]
            logits = tl.zeros((C, VP), tl.float32)
            for k in range(VP):
                head, have = heads(i, real, card, k, tables)
                logit = _logit(top, w3, b3, head, have, u, TOP)
                logits = tl.where(o == k, logit[:, None], logits)
            valid = o < card[:, None]
            raw = raw_probabilities(logits, valid)
            pi = clipped_probabilities(raw, valid, floor[:, None])[0]
            tl.store(to[:, None] + o, pi, mask=valid & real[:, None])
            up = (o < card[:, None] - 1) & (draw[:, None] >= tl.cumsum(pi, 1))
            drawn = tl.sum(up.to(tl.int32), 1)
            one = tl.sum(tl.where(o == 1, pi, 0.0), 1)
            drawn = tl.where(card == 2, (draw < one).to(tl.int32), drawn)
        if DRAW:
            tl.store(point + i, drawn, mask=real)
            if VP == 1:
                own = _of_value(drawn, inputs, codes)
            else:
                own = _contributions(w1, tables, i, drawn, real, u, H, MAXF, P, C)[0]
        if not OTHERS:
            acc += own
        i, following = following, later
