"""Initial parameters, and the copy of the first layer that sampling reads."""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    ENDED,
    INIT,
    RESTARTING,
    RESTARTS,
    SEED,
    STATUS,
    field,
    uniform,
    word_of,
)


@triton.jit
def initialize(theta, runs, tables, sizes, ONLY_RESTARTING: tl.constexpr, FIRST: tl.constexpr,
               DEPTH: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Draw initial parameters, uniform in +-1/sqrt(fan in), of all runs or of those that restart.

    They are those of restart number FIRST + the run's restarts so far.
    """
    i, r = tl.program_id(0), tl.program_id(2)
    if ONLY_RESTARTING:
        if field(runs, r, STATUS) != RESTARTING:
            return
    count = tl.load(tables.outputs + i)
    if count == 0:
        return
    w = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    bound = tl.zeros((BLOCK,), tl.float32)
    first = 0
    for layer in tl.static_range(DEPTH + 1):
        inputs = tl.load(tables.widths + layer)
        outputs = count
        if layer < DEPTH:
            outputs = tl.load(tables.widths + layer + 1)
        fan = 1.0 / tl.sqrt(tl.maximum(inputs, 1).to(tl.float64))
        fan = tl.where(inputs > 0, fan, 0.0).to(tl.float32)
        bound = tl.where(w >= first, fan, bound)
        first += outputs * (inputs + 1)
    word = word_of(field(runs, r, SEED), i, field(runs, r, RESTARTS) + FIRST, INIT, w)
    at = theta + r.to(tl.int64) * sizes.parameters + tl.load(tables.begins + i)
    tl.store(at + w, (2.0 * uniform(word) - 1.0) * bound, mask=w < first)


@triton.jit
def transpose_first_layer(copy, theta, runs, tables, sizes, F: tl.constexpr,
                          WIDTH: tl.constexpr, HP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Store the first layer's weights as inputs x units, (R, n, F, WIDTH).

    The weights of an input are then contiguous, and in sampling each thread has a unit.
    """
    i, r = tl.program_id(0), tl.program_id(1)
    if field(runs, r, STATUS) >= ENDED:
        return
    at = theta + r.to(tl.int64) * sizes.parameters + tl.load(tables.begins + i)
    to = copy + (r.to(tl.int64) * sizes.n + i) * F * WIDTH
    u = tl.arange(0, HP)
    for first in range(0, F, BLOCK):
        f = first + tl.arange(0, BLOCK)
        inside = (u < WIDTH)[:, None] & (f < F)[None, :]
        w = tl.load(at + u[:, None] * F + f[None, :], mask=inside, other=0.0)
        inside = (f < F)[:, None] & (u < WIDTH)[None, :]
        tl.store(to + f[:, None] * WIDTH + u[None, :], tl.trans(w), mask=inside)
