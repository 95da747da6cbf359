"""Step 3 of Algorithm 1 for one hidden layer of at most 23 units and at most 512 inputs.

One program holds the network of one variable of one run, with its moments, in registers through
all epochs. What makes it fast, and what the code below must not lose:

*Exact products of the matrix units.* Inputs are small whole numbers (-1, 0, +1), which 16 bits
hold exactly. A weight is the sum of two float16 numbers up to 2^-22 of itself, a slope that of
three bfloat16 ones up to 2^-24: two and three products with sums in float32 are as good as float32.

*No layout changes.* The slopes' product makes the weights' gradient as units x inputs in the matrix
units' result layout. Those registers are what they read as a left factor, so the weights never
leave their registers on the way into the forward product.

*Folding.* That layout comes in 16 rows, and the default is 20 units. Each warp holds two lots of
features, A and B: the first 16 units are two tiles, W_A and W_B, and the other 8 one tile, W_M,
whose upper half of rows reads A and whose lower half reads B. Both products are made for W_M and
half of each is kept.

*Each warp its features.* The batch index of the products is the warp. Partial sums are exchanged
once (`_sum_of_warps`, whose `split` makes the compiler spread units and candidates over the
threads), slopes once.

Units 24 to 31 repeat 16 to 23 all along: their slopes are W_M's lower half. Unit HIDDEN, one past
the last, has a bias of 20, so that it is 1 exactly and its weight is the output's bias. Outputs are
a tuple with a vector for each logit: as a third axis they would cost layout changes.
"""

import triton
import triton.language as tl

from .common import (
    DROP_T,
    DROPS_T,
    GENERATION,
    GOING,
    INTERPRETED,
    SEED,
    STATUS,
    STEPS,
    adam,
    below,
    binary_slope,
    binary_terms,
    field,
    tanh,
    tuple_slopes,
    word_of,
)
from .small import NEVER_SEEN

# What inputs are held in. (Triton's interpreter multiplies matrices of float32 only.)
_INPUT = tl.constexpr(tl.float32 if INTERPRETED.value else tl.bfloat16)
# Weights are held times this, so that the lower of their two parts is no subnormal float16.
_SCALE = tl.constexpr(64.0)

MOST_UNITS = 23
MOST_INPUTS = 512
# Above this the weights could outgrow 65504 / _SCALE within 100,000 steps in one direction.
MOST_RATE = 0.01


@triton.jit
def _masked(rank, mine, x, hidden):
    """x where the 16-bit rank less `mine` has no top bit, else `hidden`; two at a time."""
    if INTERPRETED:
        late = (rank.to(tl.int32) - mine.to(tl.int32)) & 0x8000
        return tl.where(late == 0, x, hidden)
    else:
        return tl.inline_asm_elementwise(
            """{
            .reg .b32 d;
            sub.u32 d, $1, $2;
            prmt.b32 d, d, 0, 0xBB99;
            lop3.b32 $0, d, $4, $3, 0xCA;
            }""",
            "=r,r,r,r,r",
            [rank, mine, x, hidden],
            dtype=tl.bfloat16,
            is_pure=True,
            pack=2,
        )


@triton.jit
def _to_half(x):
    """bfloat16 -1, 0, +1 as float16: the same sign, and the exponent's bits they share."""
    if INTERPRETED:
        return x
    else:
        return tl.inline_asm_elementwise(
            "and.b32 $0, $1, 0xBC00BC00;", "=r,r", [x], dtype=tl.float16, is_pure=True, pack=2
        )


@triton.jit
def _two_parts(w):
    """w as a sum of two float16."""
    if INTERPRETED:
        return w, tl.zeros_like(w)
    else:
        return tl.inline_asm_elementwise(
            """{
            .reg .f16 h0, h1;
            .reg .f32 f0, f1;
            cvt.rn.f16x2.f32 $0, $3, $2;
            mov.b32 {h0, h1}, $0;
            cvt.f32.f16 f0, h0;
            cvt.f32.f16 f1, h1;
            sub.f32 f0, $2, f0;
            sub.f32 f1, $3, f1;
            cvt.rn.f16x2.f32 $1, f1, f0;
            }""",
            "=r,=r,f,f",
            [w],
            dtype=(tl.float16, tl.float16),
            is_pure=True,
            pack=2,
        )


@triton.jit
def _top_bits(x):
    """The upper 16 bits, as a bfloat16, and what is left."""
    bits = x.to(tl.int32, bitcast=True)
    top = (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
    return top, x - (bits & -65536).to(tl.float32, bitcast=True)


@triton.jit
def _three_parts(x):
    """x as a sum of three bfloat16, exactly."""
    if INTERPRETED:
        return x, tl.zeros_like(x), tl.zeros_like(x)
    else:
        a, rest = _top_bits(x)
        b, rest = _top_bits(rest)
        c, rest = _top_bits(rest)
        return a, b, c


@triton.jit
def _forward(high, low, x, acc):
    return tl.dot(high, x, acc=tl.dot(low, x, acc=acc))


@triton.jit
def _backward(a, b, c, x):
    return tl.dot(a, x, acc=tl.dot(b, x, acc=tl.dot(c, x)))


@triton.jit
def _halves(x, W: tl.constexpr, H: tl.constexpr, N: tl.constexpr):
    """The upper and the lower half of the rows of (W, 2 H, N)."""
    return tl.split(tl.permute(tl.reshape(x, (W, 2, H, N)), (0, 2, 3, 1)))


@triton.jit
def _stacked(upper, lower, W: tl.constexpr, H: tl.constexpr, N: tl.constexpr):
    """The inverse of `_halves`."""
    return tl.reshape(tl.permute(tl.join(upper, lower), (0, 3, 1, 2)), (W, 2 * H, N))


@triton.jit
def _sum_of_warps(z, W: tl.constexpr, C: tl.constexpr):
    """(W, 32, C) summed over the warps: (C, 32)."""
    z = tl.permute(z, (2, 1, 0))
    if W >= 8:
        a, b = tl.split(tl.reshape(z, (C, 32, 4, 2)))
        z = a + b
    if W >= 4:
        a, b = tl.split(tl.reshape(z, (C, 32, 2, 2)))
        z = a + b
    if W >= 2:
        a, b = tl.split(tl.reshape(z, (C, 32, 2)))
        z = a + b
    return tl.reshape(z, (C, 32))


@triton.jit
def _load_rows(at, rows, mask, D: tl.constexpr):
    """A tuple of D vectors of parameters; `rows` says where each of them is."""
    out = ()
    for k in tl.static_range(D):
        out = out + (tl.load(at + rows[k], mask=mask, other=0.0),)
    return out


@triton.jit
def _store_rows(at, rows, values, scale, mask, D: tl.constexpr):
    for k in tl.static_range(D):
        tl.store(at + rows[k], values[k] * scale, mask=mask)


@triton.jit
def _scaled(values, scale, D: tl.constexpr):
    out = ()
    for k in tl.static_range(D):
        out = out + (values[k] * scale,)
    return out


@triton.jit
def _logits(a, w, once, D: tl.constexpr):
    out = ()
    for k in tl.static_range(D):
        out = out + (tl.sum(a * tl.where(once, w[k], 0.0)[None, :], 1),)
    return out


@triton.jit
def _back(slopes, w, D: tl.constexpr):
    out = slopes[0][:, None] * w[0][None, :]
    for k in tl.static_range(1, D):
        out += slopes[k][:, None] * w[k][None, :]
    return out


@triton.jit
def _gradients(delta, slopes, a, D: tl.constexpr):
    """Sums over candidates: of the biases, and a tuple of the outputs' weights. Two at a time."""
    g_1, g = tl.reduce((delta, slopes[0][:, None] * a), 0, _add_pairs)
    out = (g,)
    for k in tl.static_range(1, D, 2):
        if k + 1 < D:
            g, h = tl.reduce((slopes[k][:, None] * a, slopes[k + 1][:, None] * a), 0, _add_pairs)
            out = out + (g, h)
        else:
            out = out + (tl.sum(slopes[k][:, None] * a, 0),)
    return g_1, out


@triton.jit
def _adam_rows(w, m, v, g, beta1, beta2, rate, eps, D: tl.constexpr):
    w_, m_, v_ = (), (), ()
    for k in tl.static_range(D):
        x, y, z = adam(w[k], m[k], v[k], g[k], beta1, beta2, rate, eps)
        w_, m_, v_ = w_ + (x,), m_ + (y,), v_ + (z,)
    return w_, m_, v_


@triton.jit
def _add_pairs(a, b, c, d):
    return a + c, b + d


@triton.jit
def _inputs(points, owner, code_base, codes, hidden, graph, f, c, i, n, F, B,
            GRAPH: tl.constexpr):  # fmt: skip
    """What variable i could see of each candidate: inputs for good hidden read as hidden."""
    inside = (c < B) & (f < F)
    own = tl.load(owner + f, mask=f < F, other=0)
    code = tl.load(points + c * n + own, mask=inside, other=-1)
    base = tl.load(code_base + f, mask=f < F, other=0)
    seen = inside & (code >= 0)
    if GRAPH:
        seen = seen & (tl.load(graph + i * n + own, mask=f < F, other=0) != 0)
    x = tl.load(codes + base + code, mask=seen, other=0.0)
    return tl.where(seen, x, tl.where(inside, hidden, 0.0)).to(_INPUT)


@triton.jit
def _dropped(rank, owner, f, c, i, seed, generation, epoch, drops, n, F):
    """Structural dropout: inputs that are hidden come never."""
    own = tl.load(owner + f, mask=f < F, other=0)
    purpose = DROP_T + 256 * epoch
    word = word_of(seed, c, generation, purpose, i * ((n + 3) // 4 * 4) + own + 0 * c)
    hide = below(word, drops) & (f < F)
    return tl.where(hide, NEVER_SEEN, rank.to(tl.int32) & 0xFFFF).to(tl.int16)


@triton.jit
def train(theta, m_of, v_of, runs, points_of, old_of, advantages, weights, ranks, coefficients,
          variables, begins, value_start, feature_start, floors, owner, code_base, codes, graph,
          n, F, V, B, E, P, again, rank_run, rank_step, a_run, a_candidate, a_variable, w_run,
          w_candidate, w_variable, hidden, beta, beta1, beta2, rest1, rest2,
          HIDDEN: tl.constexpr, W: tl.constexpr, T: tl.constexpr, C: tl.constexpr,
          D: tl.constexpr, ORDERED: tl.constexpr, GRAPH: tl.constexpr, DROP: tl.constexpr,
          BERNOULLI: tl.constexpr, KEPT: tl.constexpr):  # fmt: skip
    """All epochs of one variable of one run.

    W warps of 2 T inputs, C places for B candidates, D logits: 1 for a binary variable.
    `hidden` is what every hidden input reads. Without ORDERED it sees all others at every epoch.
    `again` is F once more: with it the compiler works out where to store the weights when they are
    stored, and does not keep that in registers through the epochs.
    """
    i = tl.load(variables + tl.program_id(0))
    r = tl.program_id(1)
    if field(runs, r, STATUS) != GOING:
        return
    c = tl.arange(0, C)
    weight = tl.load(
        weights + r * w_run + c * w_candidate + i * w_variable, mask=c < B, other=0.0
    ).to(tl.float32)
    if tl.max(tl.abs(weight), 0) == 0.0:
        return

    # the network
    warp = tl.arange(0, W)[:, None, None]
    row = tl.arange(0, 16)[None, :, None]
    upper = row < 8
    f_a = warp * (2 * T) + tl.arange(0, T)[None, None, :]
    f_b = f_a + T
    f_m = tl.where(upper, f_a, f_b)
    u_m = 16 + row % 8
    at = r.to(tl.int64) * P + tl.load(begins + i)
    o_a, o_b, o_m = row * F + f_a, row * F + f_b, u_m * F + f_m
    k_a, k_b = (row < HIDDEN) & (f_a < F), (row < HIDDEN) & (f_b < F)
    k_m = (u_m < HIDDEN) & (f_m < F)
    w_a = tl.load(theta + at + o_a, mask=k_a, other=0.0) * _SCALE
    w_b = tl.load(theta + at + o_b, mask=k_b, other=0.0) * _SCALE
    w_m = tl.load(theta + at + o_m, mask=k_m, other=0.0) * _SCALE
    unit = tl.arange(0, 32)
    once = unit < 24
    unit = tl.where(once, unit, unit - 8)
    at_1 = at + HIDDEN * F
    at_2 = at_1 + HIDDEN
    bias = tl.load(theta + at_1 + unit, mask=unit < HIDDEN, other=0.0)
    bias = tl.where(unit == HIDDEN, 20.0, bias)
    # the output's weights, and its biases as those of unit HIDDEN
    is_bias = unit == HIDDEN
    k_2 = unit <= HIDDEN
    rows = ()
    for k in tl.static_range(D):
        rows = rows + (tl.where(is_bias, HIDDEN * D + k, k * HIDDEN + unit),)
    w_2 = _load_rows(theta + at_2, rows, k_2, D)
    if KEPT:
        s1, s2 = 1.0 / rest1, 1.0 / rest2
        m_a, v_a = (
            s1 * tl.load(m_of + at + o_a, mask=k_a, other=0.0),
            s2 * tl.load(v_of + at + o_a, mask=k_a, other=0.0),
        )
        m_b, v_b = (
            s1 * tl.load(m_of + at + o_b, mask=k_b, other=0.0),
            s2 * tl.load(v_of + at + o_b, mask=k_b, other=0.0),
        )
        m_m, v_m = (
            s1 * tl.load(m_of + at + o_m, mask=k_m, other=0.0),
            s2 * tl.load(v_of + at + o_m, mask=k_m, other=0.0),
        )
        m_1 = s1 * tl.load(m_of + at_1 + unit, mask=unit < HIDDEN, other=0.0)
        v_1 = s2 * tl.load(v_of + at_1 + unit, mask=unit < HIDDEN, other=0.0)
        m_2 = _scaled(_load_rows(m_of + at_2, rows, k_2, D), s1, D)
        v_2 = _scaled(_load_rows(v_of + at_2, rows, k_2, D), s2, D)
    else:
        m_a, v_a = tl.zeros_like(w_a), tl.zeros_like(w_a)
        m_b, v_b = tl.zeros_like(w_b), tl.zeros_like(w_b)
        m_m, v_m = tl.zeros_like(w_m), tl.zeros_like(w_m)
        m_1, v_1 = tl.zeros_like(bias), tl.zeros_like(bias)
        m_2, v_2 = _scaled(w_2, 0.0, D), _scaled(w_2, 0.0, D)

    # the candidates
    c3 = c[None, :, None]
    there = c < B
    points = points_of + r.to(tl.int64) * B * n
    full_a = _inputs(points, owner, code_base, codes, hidden, graph, f_a, c3, i, n, F, B, GRAPH)
    full_b = _inputs(points, owner, code_base, codes, hidden, graph, f_b, c3, i, n, F, B, GRAPH)
    if not ORDERED:  # all but itself
        full_a = tl.where(tl.load(owner + f_a, mask=f_a < F, other=-1) == i, hidden, full_a)
        full_b = tl.where(tl.load(owner + f_b, mask=f_b < F, other=-1) == i, hidden, full_b)
        full_a, full_b = full_a.to(_INPUT), full_b.to(_INPUT)
    blank = (tl.zeros((W, C, T), tl.float32) + hidden).to(_INPUT)
    value = tl.load(points + c * n + i, mask=there, other=0)
    advantage = tl.load(
        advantages + r * a_run + c * a_candidate + i * a_variable, mask=there, other=0.0
    ).to(tl.float32)
    old = old_of + (r * B + c).to(tl.int64) * V + tl.load(value_start + i)
    chosen_old = tl.load(old + value, mask=there, other=1.0)
    advantage = advantage / chosen_old
    weight = weight / B
    floor = tl.load(floors + i)
    olds = ()
    for k in tl.static_range(2 if D == 1 else D):
        olds = olds + (tl.load(old + k, mask=there, other=0.5),)
    if D == 1:
        terms = binary_terms(value, olds[0], olds[1], advantage, weight, beta)

    FP: tl.constexpr = 2 * W * T
    seed, generation = field(runs, r, SEED), field(runs, r, GENERATION)
    drops = field(runs, r, DROPS_T)
    rank = ranks + r.to(tl.int64) * rank_run
    at_mine = c * FP + tl.load(feature_start + i)
    coefficient = coefficients + field(runs, r, STEPS) * 5
    rate_1, rate_b, rate_2, rate_c = 0.0, 0.0, 0.0, 0.0
    candidate = tl.minimum(c3, B - 1) * FP
    if ORDERED:  # ranks are fetched an epoch ahead
        mine = tl.load(rank + at_mine, mask=there, other=0) & 0x7FFF
        rank_a = tl.load(rank + candidate + f_a)
        rank_b = tl.load(rank + candidate + f_b)
    for epoch in range(E):
        rate_1 = tl.load(coefficient)
        rate_b = tl.load(coefficient + 1)
        rate_2 = tl.load(coefficient + 2)
        rate_c = tl.load(coefficient + 3)
        eps = tl.load(coefficient + 4)
        coefficient += 5
        x_a, x_b = full_a, full_b
        if ORDERED:
            own = tl.broadcast_to(mine[None, :, None], (W, C, T))
            if DROP:
                if drops > 0:
                    rank_a = _dropped(
                        rank_a, owner, f_a, c3, i, seed, generation, epoch, drops, n, F
                    )
                    rank_b = _dropped(
                        rank_b, owner, f_b, c3, i, seed, generation, epoch, drops, n, F
                    )
            x_a = _masked(rank_a, own, full_a, blank)
            x_b = _masked(rank_b, own, full_b, blank)
            rank += tl.where(epoch + 1 < E, rank_step, 0)
            mine = tl.load(rank + at_mine, mask=there, other=0) & 0x7FFF
            rank_a = tl.load(rank + candidate + f_a)
            rank_b = tl.load(rank + candidate + f_b)
        elif DROP:
            if drops > 0:
                seen = tl.zeros((W, C, T), tl.int16)
                own = seen
                late = _dropped(seen, owner, f_a, c3, i, seed, generation, epoch, drops, n, F)
                x_a = _masked(late, own, full_a, blank)
                late = _dropped(seen, owner, f_b, c3, i, seed, generation, epoch, drops, n, F)
                x_b = _masked(late, own, full_b, blank)

        # forward
        t_a = tl.trans(_to_half(x_a), (0, 2, 1))
        t_b = tl.trans(_to_half(x_b), (0, 2, 1))
        high, low = _two_parts(w_a)
        z = _forward(high, low, t_a, tl.zeros((W, 16, C), tl.float32))
        high, low = _two_parts(w_b)
        z = _forward(high, low, t_b, z)
        high, low = _two_parts(w_m)
        zero = tl.zeros((W, 16, C), tl.float32)
        y = tl.where(upper, _forward(high, low, t_a, zero), _forward(high, low, t_b, zero))
        y_a, y_b = _halves(y, W, 8, C)
        y = y_a + y_b
        z = _stacked(z, _stacked(y, y, W, 8, C), W, 16, C)
        a = tanh(_sum_of_warps(z, W, C) * (1.0 / _SCALE) + bias[None, :])  # (C, 32)
        logits = _logits(a, w_2, once, D)
        if D == 1:
            slopes = (binary_slope(logits[0], terms, floor),)
        else:
            slopes = tuple_slopes(logits, value, olds, advantage, weight, floor, beta, BERNOULLI, D)
        delta = _back(slopes, w_2, D) * (1.0 - a * a)

        # backward, and Adam
        g_1, g_2 = _gradients(delta, slopes, a, D)
        bias, m_1, v_1 = adam(bias, m_1, v_1, g_1, beta1, beta2, rate_b, eps)
        rate = tl.where(is_bias, rate_c, rate_2)
        w_2, m_2, v_2 = _adam_rows(w_2, m_2, v_2, g_2, beta1, beta2, rate, eps, D)
        p1, p2, p3 = _three_parts(delta)
        d_1 = tl.broadcast_to(tl.trans(p1)[None], (W, 32, C))
        d_2 = tl.broadcast_to(tl.trans(p2)[None], (W, 32, C))
        d_3 = tl.broadcast_to(tl.trans(p3)[None], (W, 32, C))
        rate = rate_1 * _SCALE
        g, g_up = _halves(_backward(d_1, d_2, d_3, x_a), W, 16, T)
        w_a, m_a, v_a = adam(w_a, m_a, v_a, g, beta1, beta2, rate, eps)
        g, g_low = _halves(_backward(d_1, d_2, d_3, x_b), W, 16, T)
        w_b, m_b, v_b = adam(w_b, m_b, v_b, g, beta1, beta2, rate, eps)
        g = tl.where(upper, g_up, g_low)
        w_m, m_m, v_m = adam(w_m, m_m, v_m, g, beta1, beta2, rate, eps)

    f_a = warp * (2 * T) + tl.arange(0, T)[None, None, :]
    f_b = f_a + T
    f_m = tl.where(upper, f_a, f_b)
    o_a, o_b, o_m = row * again + f_a, row * again + f_b, u_m * again + f_m
    k_a, k_b = (row < HIDDEN) & (f_a < again), (row < HIDDEN) & (f_b < again)
    k_m = (u_m < HIDDEN) & (f_m < again)
    tl.store(theta + at + o_a, w_a * (1.0 / _SCALE), mask=k_a)
    tl.store(theta + at + o_b, w_b * (1.0 / _SCALE), mask=k_b)
    tl.store(theta + at + o_m, w_m * (1.0 / _SCALE), mask=k_m)
    tl.store(theta + at_1 + unit, bias, mask=(unit < HIDDEN) & once)
    _store_rows(theta + at_2, rows, w_2, 1.0, k_2 & once, D)
    if KEPT:  # a layer with no rate is frozen, and so are its moments
        if rate_1 > 0:
            tl.store(m_of + at + o_a, m_a * rest1, mask=k_a)
            tl.store(v_of + at + o_a, v_a * rest2, mask=k_a)
            tl.store(m_of + at + o_b, m_b * rest1, mask=k_b)
            tl.store(v_of + at + o_b, v_b * rest2, mask=k_b)
            tl.store(m_of + at + o_m, m_m * rest1, mask=k_m)
            tl.store(v_of + at + o_m, v_m * rest2, mask=k_m)
        if rate_b > 0:
            tl.store(m_of + at_1 + unit, m_1 * rest1, mask=(unit < HIDDEN) & once)
            tl.store(v_of + at_1 + unit, v_1 * rest2, mask=(unit < HIDDEN) & once)
        k_2 = k_2 & once & (tl.where(is_bias, rate_c, rate_2) > 0)
        _store_rows(m_of + at_2, rows, m_2, rest1, k_2, D)
        _store_rows(v_of + at_2, rows, v_2, rest2, k_2, D)
