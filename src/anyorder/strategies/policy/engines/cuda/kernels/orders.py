"""Training orders, as ranks of the variables."""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    ENDED,
    FIRST,
    GENERATION,
    ORDER_G,
    ORDER_T,
    SEED,
    STATUS,
    field,
    words,
)

# Kinds of training orders
RANDOM = tl.constexpr(0)
AS_SAMPLED = tl.constexpr(1)  # the order in which each candidate was sampled
FIXED = tl.constexpr(2)
SAMPLING = tl.constexpr(3)  # the order of new candidates

SIGN = tl.constexpr(-0x80000000)  # converts unsigned words to signed ones in the same order

# A rank is stored with the top bit of 16 set. Subtracting the rank of variable i leaves that bit
# unless the other variable comes before i. With these two values it is always left, or never.
TOP = tl.constexpr(0x8000)
NEVER_SEEN = tl.constexpr(0xFFFF)
ALWAYS_SEEN = tl.constexpr(0x7FFF)


@triton.jit
def training_ranks(ranks, keys, runs, stamps, tables, sizes, B, KIND: tl.constexpr,
                   PER_CANDIDATE: tl.constexpr, ALL: tl.constexpr,
                   FP: tl.constexpr, NP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Store the rank of every input's variable in each candidate's order, one order per epoch.

    i sees j if (key_j, j) < (key_i, i); the ranks have the same order, in 16 bits. ALL: every
    variable has inputs. `keys` is scratch memory, (R, epochs, B, NP).
    """
    epoch, c, r = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if field(runs, r, STATUS) >= ENDED:
        return
    n, F = sizes.n, sizes.features
    f = tl.arange(0, FP)
    own = tl.load(tables.owner + f, mask=f < F, other=0)
    rank = own
    if KIND != FIXED:
        seed = field(runs, r, SEED)
        generation, row, purpose = _order_words(runs, stamps, epoch, c, r, B, KIND, PER_CANDIDATE)
        all_keys = words(seed, row, generation, purpose, 0, NP // 4).to(tl.uint32, bitcast=True)
        own_keys = keys + ((r.to(tl.int64) * tl.num_programs(0) + epoch) * B + c) * NP
        j = tl.arange(0, NP)
        tl.store(own_keys + j, all_keys, mask=j < n)
        tl.debug_barrier()
        mine = tl.load(own_keys + own, mask=f < F, other=0)
        rank = count_smaller(mine, own, own_keys, n, False, FP, BLOCK)
        # equal keys are rare: without them the ranks of n variables add up to n (n - 1) / 2
        first = (f < F) & (own != tl.load(tables.owner + f - 1, mask=(f > 0) & (f < F), other=-1))
        if not ALL or tl.sum(tl.where(first, rank, 0), 0) != n * (n - 1) // 2:
            rank = count_smaller(mine, own, own_keys, n, True, FP, BLOCK)
    stored = tl.where(f < F, rank + TOP, ALWAYS_SEEN)
    at = ((r.to(tl.int64) * tl.num_programs(0) + epoch) * B + c) * FP
    tl.store(ranks + at + f, stored.to(tl.int16))


@triton.jit
def count_smaller(mine, own, keys, n, TIES: tl.constexpr, FP: tl.constexpr, BLOCK: tl.constexpr):
    """Count how many of the n keys in memory precede each of `mine`, the keys of `own`."""
    count = tl.zeros((BLOCK, FP), tl.int32)
    for first in range(0, n, BLOCK):
        j = first + tl.arange(0, BLOCK)
        key = tl.load(keys + j, mask=j < n, other=0xFFFFFFFF)[:, None]  # sorts after all others
        before = key < mine[None, :]
        if TIES:
            equal = (key == mine[None, :]) & (j[:, None] < own[None, :]) & (j < n)[:, None]
            before = before | equal
        count += before.to(tl.int32)
    return tl.sum(count, 0)


@triton.jit
def _order_words(runs, stamps, epoch, c, r, B, KIND: tl.constexpr, PER_CANDIDATE: tl.constexpr):
    """Return the generation, row and purpose of the words that are a candidate's sort keys."""
    generation, row, purpose = field(runs, r, GENERATION), c.to(tl.int64), ORDER_T + 256 * epoch
    if KIND == SAMPLING:
        row, purpose = field(runs, r, FIRST) + c, epoch * 0 + ORDER_G
    if KIND == AS_SAMPLED:
        stamp = stamps + (r * B + c) * 2
        generation, row, purpose = tl.load(stamp), tl.load(stamp + 1), epoch * 0 + ORDER_G
    if not PER_CANDIDATE:
        row = row * 0
    return generation, row, purpose


@triton.jit
def sorted_orders(orders, runs, stamps, n, B, KIND: tl.constexpr, PER_CANDIDATE: tl.constexpr,
                  NP: tl.constexpr):  # fmt: skip
    """Store orders (R, epochs, B, n): variables sorted by their keys, equal keys by number."""
    epoch, c, r = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if field(runs, r, STATUS) >= ENDED:
        return
    generation, row, purpose = _order_words(runs, stamps, epoch, c, r, B, KIND, PER_CANDIDATE)
    keys = words(field(runs, r, SEED), row, generation, purpose, 0, NP // 4)
    j = tl.arange(0, NP)
    at = orders + ((r.to(tl.int64) * tl.num_programs(0) + epoch) * B + c) * n
    if NP > 1024:
        order = _by_all_bits(keys, j, n)
    else:
        # Sorting 32 bits is faster: the upper bits of the keys, then the variable. Only if the
        # upper bits of two keys are equal, as in one of eight orders of 1,024 variables, all bits
        # are needed.
        short = (keys.to(tl.int32, bitcast=True) & -NP) + j ^ SIGN
        order = tl.sort(tl.where(j < n, short, 0x7FFFFFFF))
        tl.store(at + j, order, mask=j < n)
        tl.debug_barrier()
        following = tl.load(at + j + 1, mask=j + 1 < n, other=0)
        tl.debug_barrier()
        equal = (j + 1 < n) & (order & -NP == following & -NP)
        if tl.sum(equal.to(tl.int32), 0) > 0:
            order = _by_all_bits(keys, j, n)
    tl.store(at + j, order & (NP - 1), mask=j < n)


@triton.jit
def _by_all_bits(keys, j, n):
    """Return variables j < n, in the lower bits, sorted by their keys; the others are last."""
    keys = (keys.to(tl.uint32, bitcast=True).to(tl.int64) << 16) + j
    return tl.sort(tl.where(j < n, keys, 1 << 60)).to(tl.int32)


@triton.jit
def order_keys(keys, runs, stamps, n, B, KIND: tl.constexpr, PER_CANDIDATE: tl.constexpr,
               BLOCK: tl.constexpr):  # fmt: skip
    """Store sort keys (R, epochs, B, n) of orders too long for `sorted_orders`, as int64."""
    epoch, c, r = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if field(runs, r, STATUS) >= ENDED:
        return
    generation, row, purpose = _order_words(runs, stamps, epoch, c, r, B, KIND, PER_CANDIDATE)
    at = keys + ((r.to(tl.int64) * tl.num_programs(0) + epoch) * B + c) * n
    for first in range(0, n, BLOCK):
        word = words(field(runs, r, SEED), row, generation, purpose, first // 4, BLOCK // 4)
        j = first + tl.arange(0, BLOCK)
        tl.store(at + j, word.to(tl.uint32, bitcast=True).to(tl.int64), mask=j < n)
