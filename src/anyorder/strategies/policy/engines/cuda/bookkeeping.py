"""The small kernels: fresh parameters, training orders, and what follows from the values."""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.common import (
    AFRESH,
    AGE,
    DROPS_G,
    DROPS_T,
    ENDED,
    FIELDS,
    GENERATION,
    GOING,
    INIT,
    ORDER_G,
    ORDER_T,
    RESTARTS,
    SEED,
    STATUS,
    STEPS,
    field,
    uniform,
    word_of,
    words,
)

# How `training_ranks` draws
RANDOM = tl.constexpr(0)
AGAIN = tl.constexpr(1)  # the order each candidate was generated in
FIXED = tl.constexpr(2)

# A rank is stored with the top bit of its 16 set. Subtracting a variable's own rank leaves that bit
# where the other one does not come before it. These two leave it, or not, whatever is subtracted.
TOP = tl.constexpr(0x8000)
NEVER_SEEN = tl.constexpr(0xFFFF)
ALWAYS_SEEN = tl.constexpr(0x7FFF)


@triton.jit
def start(theta, runs, begins, outputs_of, widths, n, P, ONLY_AFRESH: tl.constexpr,
          DEPTH: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Fresh parameters, uniform in +-1/sqrt(fan in): of all runs, or of those to start afresh."""
    i, r = tl.program_id(0), tl.program_id(2)
    if ONLY_AFRESH:
        if field(runs, r, STATUS) != AFRESH:
            return
    count = tl.load(outputs_of + i)
    if count == 0:
        return
    w = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    bound = tl.zeros((BLOCK,), tl.float32)
    first = 0
    for layer in tl.static_range(DEPTH + 1):
        inputs = tl.load(widths + layer)
        outputs = count
        if layer < DEPTH:
            outputs = tl.load(widths + layer + 1)
        fan = 1.0 / tl.sqrt(tl.maximum(inputs, 1).to(tl.float64))
        fan = tl.where(inputs > 0, fan, 0.0).to(tl.float32)
        bound = tl.where(w >= first, fan, bound)
        first += outputs * (inputs + 1)
    word = word_of(field(runs, r, SEED), i, field(runs, r, RESTARTS), INIT, w)
    at = theta + r.to(tl.int64) * P + tl.load(begins + i)
    tl.store(at + w, (2.0 * uniform(word) - 1.0) * bound, mask=w < first)


@triton.jit
def turned(copy, theta, runs, begins, n, P, F: tl.constexpr, WIDTH: tl.constexpr,
           HP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """The first layer's weights as inputs x units, (R, n, F, WIDTH).

    So the units of an input are neighbours, and a program that samples has one thread a unit.
    """
    i, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) >= ENDED:
        return
    at = theta + r.to(tl.int64) * P + tl.load(begins + i)
    to = copy + (r.to(tl.int64) * n + i) * F * WIDTH
    u = tl.arange(0, HP)
    for first in range(0, F, BLOCK):
        f = first + tl.arange(0, BLOCK)
        inside = (u < WIDTH)[:, None] & (f < F)[None, :]
        w = tl.load(at + u[:, None] * F + f[None, :], mask=inside, other=0.0)
        inside = (f < F)[:, None] & (u < WIDTH)[None, :]
        tl.store(to + f[:, None] * WIDTH + u[None, :], tl.trans(w), mask=inside)


@triton.jit
def training_ranks(ranks, keys, runs, stamps, owner, n, F, B, KIND: tl.constexpr,
                   PER_CANDIDATE: tl.constexpr, ALL: tl.constexpr,
                   FP: tl.constexpr, NP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """The place of every input's variable in each candidate's order, one order an epoch.

    i sees j iff (key_j, j) < (key_i, i); ranks say the same in 16 bits. ALL: every variable
    has inputs. `keys` is scratch, (R, epochs, B, NP).
    """
    epoch, c, r = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if field(runs, r, STATUS) >= ENDED:
        return
    f = tl.arange(0, FP)
    own = tl.load(owner + f, mask=f < F, other=0)
    rank = own
    if KIND != FIXED:
        seed = field(runs, r, SEED)
        if KIND == AGAIN:
            stamp = stamps + (r * B + c) * 2
            generation, row, purpose = tl.load(stamp), tl.load(stamp + 1), epoch * 0 + ORDER_G
        else:
            generation, row, purpose = field(runs, r, GENERATION), c, ORDER_T + 256 * epoch
        if not PER_CANDIDATE:
            row = row * 0
        all_keys = words(seed, row, generation, purpose, 0, NP // 4).to(tl.uint32, bitcast=True)
        own_keys = keys + ((r.to(tl.int64) * tl.num_programs(0) + epoch) * B + c) * NP
        j = tl.arange(0, NP)
        tl.store(own_keys + j, all_keys, mask=j < n)
        tl.debug_barrier()
        mine = tl.load(own_keys + own, mask=f < F, other=0)
        rank = count_smaller(mine, own, own_keys, n, False, FP, BLOCK)
        # equal keys are rare: without them the ranks of n variables add up to n (n - 1) / 2
        first = (f < F) & (own != tl.load(owner + f - 1, mask=(f > 0) & (f < F), other=-1))
        if not ALL or tl.sum(tl.where(first, rank, 0), 0) != n * (n - 1) // 2:
            rank = count_smaller(mine, own, own_keys, n, True, FP, BLOCK)
    stored = tl.where(f < F, rank + TOP, ALWAYS_SEEN)
    at = ((r.to(tl.int64) * tl.num_programs(0) + epoch) * B + c) * FP
    tl.store(ranks + at + f, stored.to(tl.int16))


@triton.jit
def count_smaller(mine, own, keys, n, TIES: tl.constexpr, FP: tl.constexpr, BLOCK: tl.constexpr):
    """How many of the n keys in memory come before each of `mine`, which are those of `own`."""
    count = tl.zeros((BLOCK, FP), tl.int32)
    for first in range(0, n, BLOCK):
        j = first + tl.arange(0, BLOCK)
        key = tl.load(keys + j, mask=j < n, other=0xFFFFFFFF)[:, None]  # before none
        before = key < mine[None, :]
        if TIES:
            equal = (key == mine[None, :]) & (j[:, None] < own[None, :]) & (j < n)[:, None]
            before = before | equal
        count += before.to(tl.int32)
    return tl.sum(count, 0)


@triton.jit
def tell(runs, best, best_points, collapsed, log, restarted, ends, advantages, values, points,
         utility, free, told, n, B, budget, limit, patience, target, sign,
         WHOLE: tl.constexpr, RESTART: tl.constexpr, TARGET: tl.constexpr, TIES: tl.constexpr,
         CP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """A batch of every run: its log, incumbent, advantages, restart and end.

    `limit` is the number of agreeing values that make a population collapsed, `utility[2 k]` is U
    at rank k, WHOLE says whether the batch is a population. `ends` are the evaluations that an
    ended run finished. `target` is in memory: a number would come as float32.
    """
    r = tl.program_id(0)
    if field(runs, r, STATUS) >= ENDED:
        return
    c = tl.arange(0, CP)
    there = c < B
    at = tl.load(told)
    value = sign * tl.load(values + r * B + c, mask=there, other=0.0)
    # what comes after a value that is none counts as not evaluated
    finished = tl.min(tl.where(there & (value != value), c, B), 0)
    done = c < finished
    tl.store(log + r.to(tl.int64) * budget + at + c, sign * value, mask=done)

    ranked = tl.where(done, value, -float("inf"))
    top = tl.max(ranked, 0)
    place = tl.min(tl.where(done & (ranked == top), c, CP - 1), 0)
    place = tl.where(finished > 0, place, 0)  # of none, the first: there may be no last one
    old = tl.load(best + r)
    tl.debug_barrier()  # every warp has read the status and the best value: they may be written
    better = (finished > 0) & ((top > old) | (at == 0))
    top = tl.where(better, top, old)
    tl.store(best + r, top)
    batch = points + r.to(tl.int64) * B * n
    agreeing = tl.zeros((CP,), tl.int32)
    for first in range(0, n, BLOCK):
        j = first + tl.arange(0, BLOCK)
        x = tl.load(batch + place * n + j, mask=j < n, other=0)
        if better:
            tl.store(best_points + r.to(tl.int64) * n + j, x, mask=j < n)
        if RESTART and WHOLE:
            counts = there[:, None] & (tl.load(free + j, mask=j < n, other=0) != 0)[None, :]
            others = tl.load(batch + c[:, None] * n + j[None, :], mask=counts, other=-1)
            agreeing += tl.sum((counts & (others == x[None, :])).to(tl.int32), 1)

    status = tl.zeros((), tl.int64) + GOING
    row = runs + r * FIELDS
    if RESTART and WHOLE:
        whole = finished == B
        count = tl.load(collapsed + r)
        count = tl.where(whole, tl.where(tl.sum(agreeing, 0) >= limit, count + 1, 0), count)
        afresh = count >= patience
        tl.store(collapsed + r, tl.where(afresh, 0, count))
        tl.store(row + RESTARTS, tl.load(row + RESTARTS) + afresh.to(tl.int64))
        tl.store(restarted + r.to(tl.int64) * (budget // B) + at // B, afresh.to(tl.int8))
        status = tl.where(afresh, AFRESH, status)
    reached = finished < 0
    if TARGET:
        reached = top >= tl.load(target)
    over = (finished < B) | reached | (at + B >= budget)
    how = ENDED + tl.where(finished < B, 1, tl.where(reached, 2, 0))
    if over:
        tl.store(ends + r, at + finished)
    tl.store(row + STATUS, tl.where(over, how, status))
    if WHOLE:
        inside = there[None, :] & there[:, None]
        higher = inside & (ranked[None, :] > ranked[:, None])
        equal = inside & (ranked[None, :] == ranked[:, None])
        rank2 = 2 * tl.sum(higher.to(tl.int32), 1)
        if TIES == "sort":
            rank2 += 2 * tl.sum((equal & (c[None, :] < c[:, None])).to(tl.int32), 1)
        if TIES == "average":
            rank2 += tl.sum((equal & (c[None, :] != c[:, None])).to(tl.int32), 1)
        tl.store(
            advantages + r * B + c, tl.load(utility + rank2, mask=there, other=0.0), mask=there
        )


@triton.jit
def turn(runs, told, thresholds, generations, R, B, E, BLOCK: tl.constexpr):
    """After training: the next generation. `thresholds`, (2, generations + 1): p_G, p_T by age."""
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = runs + r * FIELDS
    there = r < R
    going = there & (tl.load(row + STATUS, mask=there, other=ENDED) < ENDED)
    afresh = tl.load(row + STATUS, mask=there, other=0) == AFRESH
    age = tl.where(afresh, 0, tl.load(row + AGE, mask=there, other=0) + 1)
    steps = tl.where(afresh, 0, tl.load(row + STEPS, mask=there, other=0) + E)
    tl.store(row + AGE, age, mask=going)
    tl.store(row + STEPS, steps, mask=going)
    tl.store(row + GENERATION, tl.load(row + GENERATION, mask=there, other=0) + 1, mask=going)
    tl.store(row + DROPS_G, tl.load(thresholds + age, mask=going, other=0), mask=going)
    at = thresholds + generations + 1 + age
    tl.store(row + DROPS_T, tl.load(at, mask=going, other=0), mask=going)
    if tl.program_id(0) == 0:
        tl.store(told, tl.load(told) + B)
