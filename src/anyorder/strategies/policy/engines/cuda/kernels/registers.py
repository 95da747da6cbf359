"""Step 3 of Algorithm 1 for one trained hidden layer of at most 24 units, in registers.

One program holds the network of one variable of one run, with Adam's moments, in registers through
all epochs. What makes it fast, and must be preserved:

*Exact products of the matrix units.* Inputs are -1, 0 or +1, which 16 bits represent exactly. A
weight is the sum of two float16 numbers up to a relative error of 2^-22, a slope the sum of three
bfloat16 numbers up to 2^-24. So two and three products with sums in float32 are as accurate as
float32.

*No layout conversions.* The gradient of the weights, a product of slopes and inputs, is units x
inputs in the result layout of the matrix units. The same registers are the layout of a left factor,
so the weights stay in their registers for the forward product.

*Folding.* That layout has 16 rows, and the default is 20 units. Each warp holds L lots of T inputs.
The first 16 units are one tile per lot; the other units share one tile W_M, whose rows are cut into
FOLD parts, one for each lot: two parts of 8 units, or four of 4. W_M is multiplied with every lot,
and the part of each product that belongs to the lot is kept.

*Inputs are distributed over the warps.* The batch index of the products is the warp. Once per epoch
the warps exchange partial sums (`sum_last`, whose `split` makes the compiler distribute units and
candidates over the threads), and once the slopes.

Units 16 to 31 are the units of W_M, repeated FOLD times, since the rows of W_M need their slopes.
`output_layers.py` has the parameters after the first layer's weights.

With more than 768 inputs the registers cannot hold both moments: the second moments of the first
layer's weights are in memory (STORED), where the first-level cache holds those of a program. Every
entry is read and written once per epoch.

A second hidden layer that is not trained (the paper's code has one) lies between the first layer
and the outputs; its weights are in 16-bit parts, too.
"""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    DROPS_T,
    GENERATION,
    RUNNING,
    SEED,
    STATUS,
    STEPS,
    field,
    tanh,
)
from anyorder.strategies.policy.engines.cuda.kernels.objective import (
    binary_slope,
    binary_terms,
    square_slope,
    tuple_slopes,
)
from anyorder.strategies.policy.engines.cuda.kernels.output_layers import (
    columns_of,
    load_rest,
    logits_of,
    rate_of,
    rest_gradients,
    rest_indices,
    scale_all,
    slopes_below,
    step_rest,
    sum_last,
)
from anyorder.strategies.policy.engines.cuda.kernels.tiles import (
    INPUT,
    SCALE,
    all_dropped,
    all_masked,
    by_warps,
    first_layer_step,
    first_layer_sums,
    frozen_backward,
    frozen_forward,
    inputs_of_lot,
    load_ranks,
    load_tiles,
    lots_of,
    opaque,
    repeated,
    store_tile,
    store_tiles,
    stored_tiles,
    three_parts,
    two_parts,
)


@triton.jit
def train(parameters, runs, data, orders, training, tables, sizes, variables, hidden, again,
          HIDDEN: tl.constexpr, FROZEN: tl.constexpr, W: tl.constexpr, L: tl.constexpr,
          T: tl.constexpr, FOLD: tl.constexpr, STORED: tl.constexpr, C: tl.constexpr,
          D: tl.constexpr, FP: tl.constexpr, ORDERED: tl.constexpr, GRAPH: tl.constexpr,
          DROP: tl.constexpr, BERNOULLI: tl.constexpr, LOG: tl.constexpr, SQUARES: tl.constexpr,
          KEPT: tl.constexpr):  # fmt: skip
    """Train one variable of one run, all epochs.

    W warps of L lots of T inputs, C places for B candidates, D logits: 1 for a binary variable.
    FROZEN is the width of a second hidden layer that is not trained, or 0. `hidden` is the value of
    hidden inputs. Without ORDERED all other variables are visible in every epoch. FP is the length
    of a row of ranks. `again` is F once more: with a second argument the compiler computes the
    addresses of the weights again when they are stored, instead of keeping them in registers
    through the epochs. SQUARES: a critic, whose targets are `data.advantages`; it has one output.
    """
    i = tl.load(variables + tl.program_id(0))
    r = tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    theta, m_of, v_of = parameters.theta, parameters.m, parameters.v
    owner, n, F, B, E = tables.owner, sizes.n, sizes.features, data.candidates, training.epochs
    beta1, beta2, rest1, rest2 = training.beta1, training.beta2, training.rest1, training.rest2
    c = tl.arange(0, C)
    at_weight = data.weights + r * data.weight_run + c * data.weight_candidate
    at_weight = at_weight + i * data.weight_variable
    weight = tl.load(at_weight, mask=c < B, other=0.0).to(tl.float32)
    if tl.max(tl.abs(weight), 0) == 0.0:
        return

    # the network
    LAST: tl.constexpr = FROZEN if FROZEN else HIDDEN
    PART: tl.constexpr = 16 // FOLD
    # The largest tiles with several outputs: registers are scarce, code that needs fewer is faster.
    FULL: tl.constexpr = D > 1 and W * T >= 256
    # Whether place 31 is free and used for biases, and the number of columns of a tile of the rest
    # (`rest_indices`): the fastest choice.
    FREE: tl.constexpr = FROZEN < 32 if FROZEN else L < FOLD or HIDDEN < 16 + PART
    SPARE: tl.constexpr = FREE and (FROZEN > 0 or not FULL)
    Q: tl.constexpr = 1 if SPARE or FROZEN or (D == 1 and W >= 4) else 4 if D == 1 else 8
    K: tl.constexpr = ((D if SPARE else 2 * D) + Q) // Q
    warp = tl.arange(0, W)[:, None, None]
    row = tl.arange(0, 16)[None, :, None]
    part, u_m = row // PART, 16 + row % PART
    lots = lots_of(warp * (L * T), L, T)
    f_m = warp * (L * T) + part * T + tl.arange(0, T)[None, None, :]
    k_m = (u_m < HIDDEN) & (part < L) & (f_m < F)
    at = r.to(tl.int64) * sizes.parameters + tl.load(tables.begins + i)
    w = load_tiles(theta + at, row, lots, f_m, u_m, k_m, HIDDEN, F, SCALE, L)
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
        up = two_parts(tl.where(once[:, None], frozen * SCALE, 0.0))
        down = three_parts(tl.trans(frozen))
        at_b = at_2 + FROZEN * HIDDEN
        bias_f = tl.load(theta + at_b + place, mask=place < FROZEN, other=0.0)
        at_2 += FROZEN * (HIDDEN + 1)
    index, known, kind = rest_indices(at_1, at_2, unit, last, HIDDEN, LAST, D, Q, K, SPARE)
    rest = load_rest(theta, index, known, 1.0, K)
    if KEPT:
        s1, s2 = 1.0 / rest1, 1.0 / rest2
        m = load_tiles(m_of + at, row, lots, f_m, u_m, k_m, HIDDEN, F, s1, L)
        v = load_tiles(v_of + at, row, lots, f_m, u_m, k_m, HIDDEN, F, s2, L)
        m_r = load_rest(m_of, index, known, s1, K)
        v_r = load_rest(v_of, index, known, s2, K)
    else:
        m, v = scale_all(w, 0.0, L + 1), scale_all(w, 0.0, L + 1)
        m_r, v_r = scale_all(rest, 0.0, K), scale_all(rest, 0.0, K)
    second = parameters.tiles
    if STORED:
        program = (r * tl.num_programs(0) + tl.program_id(0)).to(tl.int64)
        second += program * ((L + 1) * W * 16 * T)
        for k in tl.static_range(L + 1):
            store_tile(second, k, v[k], W, T)
        tl.debug_barrier()  # a thread may read what another one has written

    # The candidates. Those that a warp reads at once are the first axis of the inputs, so that the
    # compiler assigns each warp its own; `by_warps` permutes the axes.
    AT_ONCE: tl.constexpr = 256 // T
    TIMES: tl.constexpr = C // AT_ONCE
    c4 = tl.arange(0, AT_ONCE)[:, None, None, None]
    c4 = c4 + AT_ONCE * tl.arange(0, TIMES)[None, None, :, None]
    lots = lots_of(tl.arange(0, W)[None, :, None, None] * (L * T), L, T)
    there = c < B
    points = data.points + r.to(tl.int64) * B * n
    full = ()
    for k in tl.static_range(L):
        f = lots[k]
        lot = inputs_of_lot(points, tables, hidden, f, c4, i, n, F, B, GRAPH)
        if not ORDERED:  # all variables but itself
            lot = tl.where(tl.load(owner + f, mask=f < F, other=-1) == i, hidden, lot).to(INPUT)
        full = full + (lot,)
    blank = (tl.zeros((AT_ONCE, W, TIMES, T), tl.float32) + hidden).to(INPUT)
    value = tl.load(points + c * n + i, mask=there, other=0)
    at_gain = data.advantages + r * data.advantage_run + c * data.advantage_candidate
    at_gain = at_gain + i * data.advantage_variable
    advantage = tl.load(at_gain, mask=there, other=0.0).to(tl.float32)
    weight = weight / B
    if not SQUARES:
        at_old = (r * B + c).to(tl.int64) * sizes.row_length + tl.load(tables.value_start + i)
        old = data.old + at_old
        if not LOG:
            advantage = advantage / tl.load(old + value, mask=there, other=1.0)
        floor = tl.load(tables.floors + i)
        olds = ()
        for k in tl.static_range(2 if D == 1 else D):
            olds = olds + (tl.load(old + k, mask=there, other=0.5),)
        if D == 1:
            terms = binary_terms(value, olds[0], olds[1], advantage, weight, training.beta, LOG)

    seed, generation = field(runs, r, SEED), field(runs, r, GENERATION)
    drops = field(runs, r, DROPS_T)
    rank = orders.ranks + r.to(tl.int64) * orders.run_stride
    at_mine = tl.minimum(c4, B - 1) * FP + tl.load(tables.feature_start + i)
    RATES: tl.constexpr = 6 if FROZEN else 4
    coefficient = training.coefficients + field(runs, r, STEPS) * (RATES + 1)
    rate_1, rate_b, rate_2, rate_c = 0.0, 0.0, 0.0, 0.0
    candidate = tl.minimum(c4, B - 1) * FP
    if ORDERED:  # ranks are fetched an epoch ahead
        mine = tl.load(rank + at_mine) & 0x7FFF
        theirs = load_ranks(rank, candidate, lots, L)
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
                    theirs = all_dropped(
                        theirs, owner, lots, c4, i, seed, generation, epoch, drops, n, F, L
                    )
            x = all_masked(theirs, own, full, blank, L)
            rank += tl.where(epoch + 1 < E, orders.epoch_stride, 0)
            mine = tl.load(rank + at_mine) & 0x7FFF
            theirs = load_ranks(rank, candidate, lots, L)
        elif DROP:
            if drops > 0:
                seen = tl.zeros((AT_ONCE, W, TIMES, T), tl.int16)
                late = all_dropped(
                    repeated(seen, L), owner, lots, c4, i, seed, generation, epoch, drops, n, F, L
                )
                x = all_masked(late, seen, full, blank, L)
        x = by_warps(x, W, C, T, L)

        # forward
        columns = columns_of(rest, Q, K)
        z = tl.permute(first_layer_sums(w, x, part, FOLD, L, W, C), (2, 1, 0))
        a = tanh(sum_last(z, C, 32, W) * (1.0 / SCALE) + columns[0][None, :])
        h = a
        if FROZEN:
            h = tanh(frozen_forward(a, up) + bias_f[None, :])
        if SPARE:
            h = tl.where((place == 31)[None, :], 1.0, h)
        logits = logits_of(h, columns, once_2, D, SPARE)
        if SQUARES:
            slopes = (square_slope(logits[0], advantage, weight),)
        elif D == 1:
            slopes = (binary_slope(logits[0], terms, floor),)
        else:
            slopes = tuple_slopes(
                logits, value, olds, advantage, weight, floor, training.beta, BERNOULLI, LOG, D
            )
        delta = slopes_below(slopes, columns, D, SPARE) * (1.0 - h * h)
        if FROZEN:
            delta = frozen_backward(delta, down) * (1.0 - a * a)

        # backward, and Adam
        g = rest_gradients(delta, slopes, h, D, Q, K, C, SPARE)
        rest, m_r, v_r = step_rest(
            rest, m_r, v_r, g, kind, beta1, beta2, rate_b, rate_2, rate_c, eps, K
        )
        if STORED:
            w, m = first_layer_step(
                w, m, second, opaque(delta), x, part, beta1, beta2, rate_1 * SCALE, eps, FULL,
                STORED, L, W, C, T,
            )  # fmt: skip
            tl.debug_barrier()
        else:
            w, m, v = first_layer_step(
                w, m, v, opaque(delta), x, part, beta1, beta2, rate_1 * SCALE, eps, FULL,
                STORED, L, W, C, T,
            )  # fmt: skip

    lots = lots_of(warp * (L * T), L, T)
    f_m = warp * (L * T) + part * T + tl.arange(0, T)[None, None, :]
    k_m = (u_m < HIDDEN) & (part < L) & (f_m < again)
    store_tiles(theta + at, w, row, lots, f_m, u_m, k_m, HIDDEN, again, 1.0 / SCALE, L)
    if KEPT:  # the moments of a frozen layer do not change
        if rate_1 > 0:
            store_tiles(m_of + at, m, row, lots, f_m, u_m, k_m, HIDDEN, again, rest1, L)
            if STORED:
                v_now = stored_tiles(second, L, W, T)
                store_tiles(v_of + at, v_now, row, lots, f_m, u_m, k_m, HIDDEN, again, rest2, L)
            else:
                store_tiles(v_of + at, v, row, lots, f_m, u_m, k_m, HIDDEN, again, rest2, L)
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
