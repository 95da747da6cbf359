"""Step 3 of Algorithm 1 for one trained hidden layer of at most 24 units, in registers.

One program holds the network of one variable of one run, with its moments, in registers through
all epochs. What makes it fast, and what the code below must not lose:

*Exact products of the matrix units.* Inputs are small whole numbers (-1, 0, +1), which 16 bits
hold exactly. A weight is the sum of two float16 numbers up to 2^-22 of itself, a slope that of
three bfloat16 ones up to 2^-24: two and three products with sums in float32 are as good as float32.

*No layout changes.* The slopes' product makes the weights' gradient as units x inputs in the matrix
units' result layout. Those registers are what they read as a left factor, so the weights never
leave their registers on the way into the forward product.

*Folding.* That layout comes in 16 rows, and the default is 20 units. Each warp holds L lots of T
features. The first 16 units are a tile for every lot; the others share one tile W_M, whose rows
are cut into FOLD parts, one for each lot: two of 8 units, or four of 4. Products with every lot are
made for W_M, and of each the lot's part is kept.

*Each warp its features.* The batch index of the products is the warp. Partial sums are exchanged
once (`sum_last`, whose `split` makes the compiler spread units and candidates over the threads),
slopes once.

Units 16 to 31 are the units of W_M, FOLD times over all along: their slopes are what W_M's rows
need. `rest.py` has the parameters after the first layer's weights.

A second hidden layer that is never trained (the published code has one) goes between the first and
the outputs, as a matrix in parts of 16 bits as well.
"""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.bookkeeping import NEVER_SEEN
from anyorder.strategies.policy.engines.cuda.common import (
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
from anyorder.strategies.policy.engines.cuda.output_layers import (
    columns_of,
    gradients_of,
    load_rest,
    logits_of,
    rate_of,
    rest_at,
    rest_step,
    scaled,
    slopes_below,
    sum_last,
)

# What inputs are held in. (Triton's interpreter multiplies matrices of float32 only.)
_INPUT = tl.constexpr(tl.float32 if INTERPRETED.value else tl.bfloat16)
# Weights are held times this, so that the lower of their two parts is no subnormal float16.
_SCALE = tl.constexpr(64.0)

MOST_UNITS = 24
MOST_FOLDED = 20  # units where four lots share a tile
MOST_FROZEN = 32  # units of the layer that is not trained
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
def _opaque(x):
    """x; the compiler does not see where it comes from. (It finds a `join` there, and then lays out
    factors of the next products for data of 8 bits, which the matrix units' loads are not for.)
    """
    if INTERPRETED:
        return x
    else:
        return tl.inline_asm_elementwise(
            "mov.b32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=False, pack=1
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
def _sum_of_parts(y, FOLD: tl.constexpr, W: tl.constexpr, N: tl.constexpr):
    """The FOLD parts of 16 rows summed, and the sum in the place of each."""
    y = tl.reshape(y, (W, FOLD, 16 // FOLD, N))
    y = tl.broadcast_to(tl.sum(y, 1)[:, None], (W, FOLD, 16 // FOLD, N))
    return tl.reshape(y, (W, 16, N))


@triton.jit
def _frozen_up(a, w):
    """Activations times a matrix in two parts, which is held times `_SCALE`."""
    high, low = _two_parts(a)
    return tl.dot(high, w[0], acc=tl.dot(low, w[0], acc=tl.dot(high, w[1]))) * (1.0 / _SCALE)


@triton.jit
def _frozen_down(delta, w):
    """Slopes, which may be of any size, times a matrix in three parts."""
    a, b, c = _three_parts(delta)
    small = tl.dot(b, w[1], acc=tl.dot(c, w[0], acc=tl.dot(a, w[2])))
    return tl.dot(a, w[0], acc=tl.dot(b, w[0], acc=tl.dot(a, w[1], acc=small)))


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
def _lots(first, L: tl.constexpr, T: tl.constexpr):
    """The features of each lot, on the last axis; `first` is that of each warp."""
    out = ()
    for k in tl.static_range(L):
        out = out + (first + k * T + tl.arange(0, T),)
    return out


@triton.jit
def _load_tiles(at, row, lots, f_m, u_m, k_m, width, F, scale, L: tl.constexpr):
    """The tiles of the first layer: one for every lot, and the folded one."""
    out = ()
    for k in tl.static_range(L):
        inside = (row < width) & (lots[k] < F)
        out = out + (tl.load(at + row * F + lots[k], mask=inside, other=0.0) * scale,)
    return out + (tl.load(at + u_m * F + f_m, mask=k_m, other=0.0) * scale,)


@triton.jit
def _store_tiles(at, tiles, row, lots, f_m, u_m, k_m, width, F, scale, L: tl.constexpr):
    for k in tl.static_range(L):
        inside = (row < width) & (lots[k] < F)
        tl.store(at + row * F + lots[k], tiles[k] * scale, mask=inside)
    tl.store(at + u_m * F + f_m, tiles[L] * scale, mask=k_m)


@triton.jit
def _load_ranks(rank, candidate, lots, L: tl.constexpr):
    out = ()
    for k in tl.static_range(L):
        out = out + (tl.load(rank + candidate + lots[k]),)
    return out


@triton.jit
def _times(x, L: tl.constexpr):
    out = ()
    for _ in tl.static_range(L):
        out = out + (x,)
    return out


@triton.jit
def _all_masked(ranks, mine, x, hidden, L: tl.constexpr):
    out = ()
    for k in tl.static_range(L):
        out = out + (_masked(ranks[k], mine, x[k], hidden),)
    return out


@triton.jit
def _by_warps(x, W: tl.constexpr, C: tl.constexpr, T: tl.constexpr, L: tl.constexpr):
    """Inputs as the products take them: warps first, and candidates on one axis."""
    out = ()
    for k in tl.static_range(L):
        out = out + (tl.reshape(tl.permute(x[k], (1, 2, 0, 3)), (W, C, T)),)
    return out


@triton.jit
def _all_dropped(ranks, owner, lots, c, i, seed, generation, epoch, drops, n, F, L: tl.constexpr):
    out = ()
    for k in tl.static_range(L):
        dropped = _dropped(ranks[k], owner, lots[k], c, i, seed, generation, epoch, drops, n, F)
        out = out + (dropped,)
    return out


@triton.jit
def _sums(w, x, part, FOLD: tl.constexpr, L: tl.constexpr, W: tl.constexpr, C: tl.constexpr):
    """What each warp's features add to the units: (W, 32, C)."""
    z = tl.zeros((W, 16, C), tl.float32)
    zero = z
    y = z
    high_m, low_m = _two_parts(w[L])
    turned = ()  # all of them first: each goes through shared memory, and they wait only once
    for k in tl.static_range(L):
        turned = turned + (tl.trans(_to_half(x[k]), (0, 2, 1)),)
    for k in tl.static_range(L):
        high, low = _two_parts(w[k])
        z = _forward(high, low, turned[k], z)
        y = tl.where(part == k, _forward(high_m, low_m, turned[k], zero), y)
    return _stacked(z, _sum_of_parts(y, FOLD, W, C), W, 16, C)


@triton.jit
def _step(w, m, v, delta, x, part, beta1, beta2, rate, eps, FULL: tl.constexpr, L: tl.constexpr,
          W: tl.constexpr, C: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """Adam on the first layer's weights; `delta` (C, 32)."""
    if W >= 4 and not FULL:  # cut into parts once, not by every warp
        p1, p2, p3 = _three_parts(delta)
        d_1 = tl.broadcast_to(tl.trans(p1)[None], (W, 32, C))
        d_2 = tl.broadcast_to(tl.trans(p2)[None], (W, 32, C))
        d_3 = tl.broadcast_to(tl.trans(p3)[None], (W, 32, C))
    else:
        d_1, d_2, d_3 = _three_parts(tl.broadcast_to(tl.trans(delta)[None], (W, 32, C)))
    w_, m_, v_ = (), (), ()
    g_m = tl.zeros((W, 16, T), tl.float32)
    for k in tl.static_range(L):
        g, folded = _halves(_backward(d_1, d_2, d_3, x[k]), W, 16, T)
        g_m = tl.where(part == k, folded, g_m)
        a, b, c = adam(w[k], m[k], v[k], g, beta1, beta2, rate, eps, True)
        w_, m_, v_ = w_ + (a,), m_ + (b,), v_ + (c,)
    a, b, c = adam(w[L], m[L], v[L], g_m, beta1, beta2, rate, eps, True)
    return w_ + (a,), m_ + (b,), v_ + (c,)


@triton.jit
def train(theta, m_of, v_of, runs, points_of, old_of, advantages, weights, ranks, coefficients,
          variables, begins, value_start, feature_start, floors, owner, code_base, codes, graph,
          n, F, V, B, E, P, again, rank_run, rank_step, a_run, a_candidate, a_variable, w_run,
          w_candidate, w_variable, hidden, beta, beta1, beta2, rest1, rest2,
          HIDDEN: tl.constexpr, FROZEN: tl.constexpr, W: tl.constexpr, L: tl.constexpr,
          T: tl.constexpr, FOLD: tl.constexpr, C: tl.constexpr, D: tl.constexpr, FP: tl.constexpr,
          ORDERED: tl.constexpr, GRAPH: tl.constexpr, DROP: tl.constexpr,
          BERNOULLI: tl.constexpr, KEPT: tl.constexpr):  # fmt: skip
    """All epochs of one variable of one run.

    W warps of L lots of T inputs, C places for B candidates, D logits: 1 for a binary variable.
    FROZEN is the width of a second hidden layer that is not trained, or 0. `hidden` is what every
    hidden input reads. Without ORDERED it sees all others at every epoch. FP is the length of a row
    of ranks.
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
    LAST: tl.constexpr = FROZEN if FROZEN else HIDDEN
    PART: tl.constexpr = 16 // FOLD
    # The largest tiles with several outputs: registers are short, and what needs fewer is faster.
    FULL: tl.constexpr = D > 1 and W * T >= 256
    # Whether place 31 has no unit that counts and is used, and how many columns a tile of the rest
    # has (`rest_at`): what is fastest.
    FREE: tl.constexpr = FROZEN < 32 if FROZEN else L < FOLD or HIDDEN < 16 + PART
    SPARE: tl.constexpr = FREE and (FROZEN > 0 or not FULL)
    Q: tl.constexpr = 1 if SPARE or FROZEN or (D == 1 and W >= 4) else 4 if D == 1 else 8
    K: tl.constexpr = ((D if SPARE else 2 * D) + Q) // Q
    warp = tl.arange(0, W)[:, None, None]
    row = tl.arange(0, 16)[None, :, None]
    part, u_m = row // PART, 16 + row % PART
    lots = _lots(warp * (L * T), L, T)
    f_m = warp * (L * T) + part * T + tl.arange(0, T)[None, None, :]
    k_m = (u_m < HIDDEN) & (part < L) & (f_m < F)
    at = r.to(tl.int64) * P + tl.load(begins + i)
    w = _load_tiles(theta + at, row, lots, f_m, u_m, k_m, HIDDEN, F, _SCALE, L)
    place = tl.arange(0, 32)
    unit = tl.where(place < 16, place, 16 + place % PART)
    once = place < 16 + PART
    at_1 = at + HIDDEN * F
    at_2 = at_1 + HIDDEN
    last, once_2 = unit, once
    if FROZEN:
        last, once_2 = place, place < 32
        o_f = place[None, :] * HIDDEN + unit[:, None]
        k_f = (place < FROZEN)[None, :] & (unit < HIDDEN)[:, None]
        frozen = tl.load(theta + at_2 + o_f, mask=k_f, other=0.0)  # (first's units, second's)
        up = _two_parts(tl.where(once[:, None], frozen * _SCALE, 0.0))
        down = _three_parts(tl.trans(frozen))
        at_b = at_2 + FROZEN * HIDDEN
        bias_f = tl.load(theta + at_b + place, mask=place < FROZEN, other=0.0)
        at_2 += FROZEN * (HIDDEN + 1)
    index, known, kind = rest_at(at_1, at_2, unit, last, HIDDEN, LAST, D, Q, K, SPARE)
    rest = load_rest(theta, index, known, 1.0, K)
    if KEPT:
        s1, s2 = 1.0 / rest1, 1.0 / rest2
        m = _load_tiles(m_of + at, row, lots, f_m, u_m, k_m, HIDDEN, F, s1, L)
        v = _load_tiles(v_of + at, row, lots, f_m, u_m, k_m, HIDDEN, F, s2, L)
        m_r = load_rest(m_of, index, known, s1, K)
        v_r = load_rest(v_of, index, known, s2, K)
    else:
        m, v = scaled(w, 0.0, L + 1), scaled(w, 0.0, L + 1)
        m_r, v_r = scaled(rest, 0.0, K), scaled(rest, 0.0, K)

    # The candidates. Those that a warp reads at once are the first axis of all inputs, so that the
    # compiler gives each warp its own; `_by_warps` puts the axes in order.
    AT_ONCE: tl.constexpr = 256 // T
    TIMES: tl.constexpr = C // AT_ONCE
    c4 = tl.arange(0, AT_ONCE)[:, None, None, None]
    c4 = c4 + AT_ONCE * tl.arange(0, TIMES)[None, None, :, None]
    lots = _lots(tl.arange(0, W)[None, :, None, None] * (L * T), L, T)
    there = c < B
    points = points_of + r.to(tl.int64) * B * n
    full = ()
    for k in tl.static_range(L):
        f = lots[k]
        lot = _inputs(points, owner, code_base, codes, hidden, graph, f, c4, i, n, F, B, GRAPH)
        if not ORDERED:  # all but itself
            lot = tl.where(tl.load(owner + f, mask=f < F, other=-1) == i, hidden, lot).to(_INPUT)
        full = full + (lot,)
    blank = (tl.zeros((AT_ONCE, W, TIMES, T), tl.float32) + hidden).to(_INPUT)
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

    seed, generation = field(runs, r, SEED), field(runs, r, GENERATION)
    drops = field(runs, r, DROPS_T)
    rank = ranks + r.to(tl.int64) * rank_run
    at_mine = tl.minimum(c4, B - 1) * FP + tl.load(feature_start + i)
    RATES: tl.constexpr = 6 if FROZEN else 4
    coefficient = coefficients + field(runs, r, STEPS) * (RATES + 1)
    rate_1, rate_b, rate_2, rate_c = 0.0, 0.0, 0.0, 0.0
    candidate = tl.minimum(c4, B - 1) * FP
    if ORDERED:  # ranks are fetched an epoch ahead
        mine = tl.load(rank + at_mine) & 0x7FFF
        theirs = _load_ranks(rank, candidate, lots, L)
    for epoch in range(E):
        rate_1 = tl.load(coefficient)
        rate_b = tl.load(coefficient + 1)
        rate_2 = tl.load(coefficient + RATES - 2)
        rate_c = tl.load(coefficient + RATES - 1)
        eps = tl.load(coefficient + RATES)
        coefficient += RATES + 1
        x = full
        if ORDERED:
            own = tl.broadcast_to(mine, (AT_ONCE, W, TIMES, T))
            if DROP:
                if drops > 0:
                    theirs = _all_dropped(
                        theirs, owner, lots, c4, i, seed, generation, epoch, drops, n, F, L
                    )
            x = _all_masked(theirs, own, full, blank, L)
            rank += tl.where(epoch + 1 < E, rank_step, 0)
            mine = tl.load(rank + at_mine) & 0x7FFF
            theirs = _load_ranks(rank, candidate, lots, L)
        elif DROP:
            if drops > 0:
                seen = tl.zeros((AT_ONCE, W, TIMES, T), tl.int16)
                late = _all_dropped(
                    _times(seen, L), owner, lots, c4, i, seed, generation, epoch, drops, n, F, L
                )
                x = _all_masked(late, seen, full, blank, L)
        x = _by_warps(x, W, C, T, L)

        # forward
        columns = columns_of(rest, Q, K)
        z = tl.permute(_sums(w, x, part, FOLD, L, W, C), (2, 1, 0))
        a = tanh(sum_last(z, C, 32, W) * (1.0 / _SCALE) + columns[0][None, :])
        h = a
        if FROZEN:
            h = tanh(_frozen_up(a, up) + bias_f[None, :])
        if SPARE:
            h = tl.where((place == 31)[None, :], 1.0, h)
        logits = logits_of(h, columns, once_2, D, SPARE)
        if D == 1:
            slopes = (binary_slope(logits[0], terms, floor),)
        else:
            slopes = tuple_slopes(logits, value, olds, advantage, weight, floor, beta, BERNOULLI, D)
        delta = slopes_below(slopes, columns, D, SPARE) * (1.0 - h * h)
        if FROZEN:
            delta = _frozen_down(delta, down) * (1.0 - a * a)

        # backward, and Adam
        g = gradients_of(delta, slopes, h, D, Q, K, C, SPARE)
        rest, m_r, v_r = rest_step(
            rest, m_r, v_r, g, kind, beta1, beta2, rate_b, rate_2, rate_c, eps, K
        )
        w, m, v = _step(
            w, m, v, _opaque(delta), x, part, beta1, beta2, rate_1 * _SCALE, eps, FULL, L, W, C, T
        )

    lots = _lots(warp * (L * T), L, T)
    f_m = warp * (L * T) + part * T + tl.arange(0, T)[None, None, :]
    k_m = (u_m < HIDDEN) & (part < L) & (f_m < again)
    _store_tiles(theta + at, w, row, lots, f_m, u_m, k_m, HIDDEN, again, 1.0 / _SCALE, L)
    if KEPT:  # a layer with no rate is frozen, and so are its moments
        if rate_1 > 0:
            _store_tiles(m_of + at, m, row, lots, f_m, u_m, k_m, HIDDEN, again, rest1, L)
            _store_tiles(v_of + at, v, row, lots, f_m, u_m, k_m, HIDDEN, again, rest2, L)
    for k in tl.static_range(K):
        of_output = place == (31 if SPARE else 0)
        if Q == 1:
            one, one_2, bias = once, once_2, of_output
        else:
            one, one_2, bias = once[:, None], once_2[:, None], of_output[:, None]
        mine = known[k] & tl.where(kind[k] == 0, one, tl.where(kind[k] == 1, one_2, bias))
        tl.store(theta + index[k], rest[k], mask=mine)
        if KEPT:
            mine = mine & (rate_of(kind[k], rate_b, rate_2, rate_c) > 0)
            tl.store(m_of + index[k], m_r[k] * rest1, mask=mine)
            tl.store(v_of + index[k], v_r[k] * rest2, mask=mine)
