"""Bookkeeping of many runs: values, ranks, incumbents, restarts and the end of a run."""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    AGE,
    DROPS_G,
    DROPS_T,
    ENDED,
    FIELDS,
    GENERATION,
    RESTARTING,
    RESTARTS,
    RUNNING,
    STATUS,
    STEPS,
    field,
)


@triton.jit
def record(runs, best, best_points, collapsed, log, restarted, ends, advantages, values, points,
         utility, free, told, n, B, budget, limit, patience, target, sign,
         WHOLE: tl.constexpr, RESTART: tl.constexpr, TARGET: tl.constexpr, TIES: tl.constexpr,
         CP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Record the values of a batch of every run: log, incumbent, advantages, restart and end.

    A population with at least `limit` values that agree with its best candidate's has collapsed
    (`policy/collapse.py`). `utility[2 k]` is U at rank k. WHOLE: the batch is a population. `ends`
    are the numbers of evaluations that ended runs have finished. `target` is in memory, since a
    scalar would be rounded to float32.
    """
    r = tl.program_id(0)
    if field(runs, r, STATUS) >= ENDED:
        return
    c = tl.arange(0, CP)
    there = c < B
    at = tl.load(told)
    value = sign * tl.load(values + r * B + c, mask=there, other=0.0)
    # candidates after the first NaN count as not evaluated
    finished = tl.min(tl.where(there & (value != value), c, B), 0)
    done = c < finished
    tl.store(log + r.to(tl.int64) * budget + at + c, sign * value, mask=done)

    ranked = tl.where(done, value, -float("inf"))
    top = tl.max(ranked, 0)
    place = tl.min(tl.where(done & (ranked == top), c, CP - 1), 0)
    place = tl.where(finished > 0, place, 0)  # without any value: the first candidate
    old = tl.load(best + r)
    tl.debug_barrier()  # before they are written, every warp must have read status and best value
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

    status = tl.zeros((), tl.int64) + RUNNING
    row = runs + r * FIELDS
    if RESTART and WHOLE:
        whole = finished == B
        count = tl.load(collapsed + r)
        count = tl.where(whole, tl.where(tl.sum(agreeing, 0) >= limit, count + 1, 0), count)
        restarting = count >= patience
        tl.store(collapsed + r, tl.where(restarting, 0, count))
        tl.store(row + RESTARTS, tl.load(row + RESTARTS) + restarting.to(tl.int64))
        tl.store(restarted + r.to(tl.int64) * (budget // B) + at // B, restarting.to(tl.int8))
        status = tl.where(restarting, RESTARTING, status)
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
def advance(runs, told, thresholds, generations, R, B, E, BLOCK: tl.constexpr):
    """Begin the next generation.

    `thresholds`, (2, generations + 1), are those of p_G and p_T by age.
    """
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = runs + r * FIELDS
    there = r < R
    going = there & (tl.load(row + STATUS, mask=there, other=ENDED) < ENDED)
    restarting = tl.load(row + STATUS, mask=there, other=0) == RESTARTING
    age = tl.where(restarting, 0, tl.load(row + AGE, mask=there, other=0) + 1)
    steps = tl.where(restarting, 0, tl.load(row + STEPS, mask=there, other=0) + E)
    tl.store(row + AGE, age, mask=going)
    tl.store(row + STEPS, steps, mask=going)
    tl.store(row + GENERATION, tl.load(row + GENERATION, mask=there, other=0) + 1, mask=going)
    tl.store(row + DROPS_G, tl.load(thresholds + age, mask=going, other=0), mask=going)
    at = thresholds + generations + 1 + age
    tl.store(row + DROPS_T, tl.load(at, mask=going, other=0), mask=going)
    if tl.program_id(0) == 0:
        tl.store(told, tl.load(told) + B)
