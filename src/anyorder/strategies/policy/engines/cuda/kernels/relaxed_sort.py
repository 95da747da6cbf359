"""Learned orders: noise, sorts, relaxed sorts and their gradient, and Adam on the scores.

`policy/learned_order.py` has the formulas, in NumPy. For the perturbed scores s of a candidate,

    P[a, j] = exp((n - 1 - 2 a) s_j - A_j - z_a),    A_j = sum over k of |s_j - s_k|,

says which variable is at place a; z_a normalises row a. With the sums E[a, i] of P[b, i] over the
places b < a, j sees i to the degree M[i, j], the sum of E[b, i] P[b, j] over b. P is computed
wherever it is needed and never stored. Its exponents are small differences of large numbers: they
are in float64, everything else is float32, and products are computed by the matrix units with
factors in parts.

A program computes a candidate, or a part of it, and no sum depends on the number of runs. (Sums of
PyTorch and cuBLAS do: a run would not be the same alone and in a batch.)
"""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    ENDED,
    FIRST,
    GENERATION,
    LOG2E,
    ORDER_G,
    RUNNING,
    SEED,
    STATUS,
    STEPS,
    exp2,
    field,
    words,
)
from anyorder.strategies.policy.engines.cuda.kernels.orders import ALWAYS_SEEN, TOP


@triton.jit
def order_uniforms(uniforms, runs, n, PURPOSE: tl.constexpr, PER_CANDIDATE: tl.constexpr,
                   NP: tl.constexpr):  # fmt: skip
    """Draw the numbers (epochs, R, B, n) in (0, 1), float64, whose Gumbel noise perturbs scores."""
    epoch, c, r = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if field(runs, r, STATUS) >= ENDED:
        return
    row = c
    if PURPOSE == ORDER_G:
        row = c + field(runs, r, FIRST)
    if not PER_CANDIDATE:
        row = row * 0
    word = words(
        field(runs, r, SEED), row, field(runs, r, GENERATION), PURPOSE + 256 * epoch, 0, NP // 4
    )
    at = (epoch * tl.num_programs(2) + r).to(tl.int64) * tl.num_programs(1) + c
    i = tl.arange(0, NP)
    u = (word.to(tl.uint32, bitcast=True).to(tl.float64) + 0.5) * 2.3283064365386963e-10  # 2^-32
    tl.store(uniforms + at * n + i, u, mask=i < n)


@triton.jit
def sort(relaxed, scores, noise, places, ranks, runs, owner, n, F, RELAXED: tl.constexpr,
         FP: tl.constexpr, NP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Sort the scores of one candidate, the largest first, equal scores by index.

    Store `places` (R, B, n), of the variables. With RELAXED also store `ranks` (R, B, FP), of the
    inputs and as training reads them (`orders.py`), and s, A and z.
    """
    c, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) >= ENDED:
        return
    row = (r * tl.num_programs(0) + c).to(tl.int64)
    noisy, distances = relaxed.noisy + row * n, relaxed.distances + row * n
    i = tl.arange(0, NP)
    mine = tl.load(scores + r.to(tl.int64) * n + i, mask=i < n, other=0.0)
    mine = mine + tl.load(noise + row * n + i, mask=i < n, other=0.0)
    tl.store(noisy + i, mine, mask=i < n)
    tl.debug_barrier()
    earlier = tl.zeros((BLOCK, NP), tl.int32)
    distance = tl.zeros((BLOCK, NP), tl.float64)
    for first in range(0, n, BLOCK):
        j = first + tl.arange(0, BLOCK)
        there = (j < n)[:, None]
        other = tl.load(noisy + j, mask=j < n, other=0.0)[:, None]
        tied = (other == mine[None, :]) & (j[:, None] < i[None, :])
        earlier += (there & ((other > mine[None, :]) | tied)).to(tl.int32)
        distance += tl.where(there, tl.abs(other - mine[None, :]), 0.0)
    tl.store(places + row * n + i, tl.sum(earlier, 0), mask=i < n)
    if RELAXED:
        tl.store(distances + i, tl.sum(distance, 0), mask=i < n)
        tl.debug_barrier()
        f = tl.arange(0, FP)
        own = tl.load(owner + f, mask=f < F, other=0)
        rank = tl.load(places + row * n + own, mask=f < F, other=0)
        rank = tl.where(f < F, rank + TOP, ALWAYS_SEEN)
        tl.store(ranks + row * FP + f, rank.to(tl.int16))
        # from here on, i is a place
        top = tl.full((NP,), -float("inf"), tl.float64)
        for first in range(0, n, BLOCK):
            j = first + tl.arange(0, BLOCK)
            top = tl.maximum(top, tl.max(_logits(noisy, distances, i[None, :], j[:, None], n), 0))
        total = tl.zeros((BLOCK, NP), tl.float32)
        for first in range(0, n, BLOCK):
            j = first + tl.arange(0, BLOCK)
            logits = _logits(noisy, distances, i[None, :], j[:, None], n)
            total += exp2((logits - top[None, :]).to(tl.float32) * LOG2E)
        z = top + tl.log(tl.sum(total, 0)).to(tl.float64)
        tl.store(relaxed.normal + row * n + i, z, mask=i < n)


@triton.jit
def _logits(noisy, distances, a, j, n):
    """Return logits of variables j at places a; one of these is a column and the other a row."""
    s = tl.load(noisy + j, mask=j < n, other=0.0)
    distance = tl.load(distances + j, mask=j < n, other=float("inf"))
    return (n - 1 - 2 * a).to(tl.float64) * s - distance


@triton.jit
def _at_place(relaxed, row, a, j, n):
    """Return P of variables j at places a, one a column and the other a row; 0 beyond n."""
    logits = _logits(relaxed.noisy + row * n, relaxed.distances + row * n, a, j, n)
    z = tl.load(relaxed.normal + row * n + a, mask=a < n, other=float("inf"))
    return exp2((logits - z).to(tl.float32) * LOG2E)


@triton.jit
def sums_before(relaxed, runs, n, J: tl.constexpr, A: tl.constexpr):
    """Store E of J variables of a candidate, and the sums over all places."""
    c, r = tl.program_id(1), tl.program_id(2)
    if field(runs, r, STATUS) != RUNNING:
        return
    row = (r * tl.num_programs(1) + c).to(tl.int64)
    j = tl.program_id(0) * J + tl.arange(0, J)
    total = tl.zeros((J,), tl.float32)
    for first in range(0, n, A):
        a = first + tl.arange(0, A)[:, None]
        p = _at_place(relaxed, row, a, j[None, :], n)
        to = relaxed.before + row * n * n + a * n + j[None, :]
        inside = (a < n) & (j < n)[None, :]
        tl.store(to, total[None, :] + (tl.cumsum(p, 0) - p), mask=inside)
        total += tl.sum(p, 0)
    tl.store(relaxed.columns + row * n + j, total, mask=j < n)


@triton.jit
def degrees(relaxed, runs, outputs, n, N: tl.constexpr, K: tl.constexpr):
    """Store a tile of M, as (R, B, j, i); 0 if i = j, and for variables j without a network."""
    c, r = tl.program_id(1), tl.program_id(2)
    if field(runs, r, STATUS) != RUNNING:
        return
    row = (r * tl.num_programs(1) + c).to(tl.int64)
    across = tl.cdiv(n, N)
    j = (tl.program_id(0) // across) * N + tl.arange(0, N)
    i = (tl.program_id(0) % across) * N + tl.arange(0, N)
    total = tl.zeros((N, N), tl.float32)
    for first in range(0, n, K):
        b = first + tl.arange(0, K)
        inside = (b < n)[:, None] & (i < n)[None, :]
        at = relaxed.before + row * n * n + b[:, None] * n + i[None, :]
        before = tl.load(at, mask=inside, other=0.0)
        p = _at_place(relaxed, row, b[None, :], j[:, None], n)
        total += tl.dot(p, before, input_precision="tf32x3")
    none = tl.load(outputs + j, mask=j < n, other=0) == 0
    total = tl.where((j[:, None] == i[None, :]) | none[:, None], 0.0, total)
    to = relaxed.degrees + row * n * n + j[:, None] * n + i[None, :]
    tl.store(to, total, mask=(j < n)[:, None] & (i < n)[None, :])


@triton.jit
def place_slopes(relaxed, runs, n, N: tl.constexpr, K: tl.constexpr):
    """Replace a tile of the derivatives with respect to M by those with respect to P."""
    c, r = tl.program_id(1), tl.program_id(2)
    if field(runs, r, STATUS) != RUNNING:
        return
    row = (r * tl.num_programs(1) + c).to(tl.int64)
    across = tl.cdiv(n, N)
    a = (tl.program_id(0) // across) * N + tl.arange(0, N)
    i = (tl.program_id(0) % across) * N + tl.arange(0, N)
    slopes = relaxed.degrees + row * n * n
    total = tl.zeros((N, N), tl.float32)
    for first in range(0, n, K):
        j = first + tl.arange(0, K)
        inside = (a < n)[:, None] & (j < n)[None, :]
        at = relaxed.before + row * n * n + a[:, None] * n + j[None, :]
        before = tl.load(at, mask=inside, other=0.0)
        column = tl.load(relaxed.columns + row * n + j, mask=j < n, other=0.0)
        after = column[None, :] - before - _at_place(relaxed, row, a[:, None], j[None, :], n)
        inside = (j < n)[:, None] & (i < n)[None, :]
        seen = tl.load(slopes + j[:, None] * n + i[None, :], mask=inside, other=0.0)
        seeing = tl.load(slopes + i[None, :] * n + j[:, None], mask=inside, other=0.0)
        total += tl.dot(after, seen, input_precision="tf32x3")
        total += tl.dot(before, seeing, input_precision="tf32x3")
    to = relaxed.slopes + row * n * n + a[:, None] * n + i[None, :]
    tl.store(to, total, mask=(a < n)[:, None] & (i < n)[None, :])


@triton.jit
def score_slopes(relaxed, runs, n, NP: tl.constexpr, BLOCK: tl.constexpr):
    """Store the gradient by the perturbed scores of one candidate, given the gradient by P."""
    c, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    row = (r * tl.num_programs(0) + c).to(tl.int64)
    i = tl.arange(0, NP)
    linear = tl.zeros((NP,), tl.float32)
    distance = tl.zeros((NP,), tl.float32)  # by A
    for first in range(0, n, BLOCK):
        a = first + tl.arange(0, BLOCK)[:, None]
        p = _at_place(relaxed, row, a, i[None, :], n)
        at = relaxed.slopes + row * n * n + a * n + i[None, :]
        slope = tl.load(at, mask=(a < n) & (i < n)[None, :], other=0.0)
        slope = p * (slope - tl.sum(slope * p, 1)[:, None])
        linear += tl.sum((n - 1 - 2 * a).to(tl.float32) * slope, 0)
        distance -= tl.sum(slope, 0)
    kept = relaxed.columns + row * n  # no longer needed
    tl.store(kept + i, distance, mask=i < n)
    tl.debug_barrier()
    mine = tl.load(relaxed.noisy + row * n + i, mask=i < n, other=0.0)[None, :]
    total = tl.zeros((BLOCK, NP), tl.float32)
    for first in range(0, n, BLOCK):
        j = first + tl.arange(0, BLOCK)
        other = tl.load(relaxed.noisy + row * n + j, mask=j < n, other=0.0)[:, None]
        pair = distance[None, :] + tl.load(kept + j, mask=j < n, other=0.0)[:, None]
        pair = tl.where((j < n)[:, None], pair, 0.0)
        total += tl.where(mine > other, pair, tl.where(mine < other, -pair, 0.0))
    tl.store(relaxed.gradients + row * n + i, linear + tl.sum(total, 0), mask=i < n)


@triton.jit
def step_scores(scores, m_of, v_of, gradients, runs, corrections, constants, n, B,
                NP: tl.constexpr):  # fmt: skip
    """Take one step of Adam on the scores of a run, in float64 (`equations.adam_step`).

    `corrections` are 1 - beta^t of both betas, by step. `constants`: 1 - beta of both, the rate and
    eps; in memory, as scalars would be rounded to float32.
    """
    r = tl.program_id(0)
    if field(runs, r, STATUS) != RUNNING:
        return
    i = tl.arange(0, NP)
    at = r.to(tl.int64) * n + i
    g = tl.zeros((NP,), tl.float64)
    for c in range(B):
        row = (r * B + c).to(tl.int64)
        g += tl.load(gradients + row * n + i, mask=i < n, other=0.0).to(tl.float64)
    m = tl.load(m_of + at, mask=i < n, other=0.0)
    v = tl.load(v_of + at, mask=i < n, other=0.0)
    m += tl.load(constants) * (g - m)
    v += tl.load(constants + 1) * (g * g - v)
    correction = corrections + field(runs, r, STEPS) * 2
    root = tl.sqrt(v / tl.load(correction + 1)) + tl.load(constants + 3)
    w = tl.load(scores + at, mask=i < n, other=0.0)
    w += tl.load(constants + 2) * (m / tl.load(correction)) / root
    tl.store(scores + at, w, mask=i < n)
    tl.store(m_of + at, m, mask=i < n)
    tl.store(v_of + at, v, mask=i < n)
