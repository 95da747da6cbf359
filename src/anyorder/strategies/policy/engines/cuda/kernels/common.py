"""The array `runs`, arithmetic and the random stream.

With TRITON_INTERPRET=1 the kernels run in Python on the CPU, and plain expressions replace the
lines of PTX.
"""

import os

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") == "1")

# Columns of the array `runs`, int64, which has one row per run.
SEED = tl.constexpr(0)
GENERATION = tl.constexpr(1)  # trainings so far
FIRST = tl.constexpr(2)  # candidates already sampled from this generation's policy
DROPS_G = tl.constexpr(3)  # words below this drop an input in sampling,
DROPS_T = tl.constexpr(4)  # and in training
STEPS = tl.constexpr(5)  # Adam steps taken with these moments
RESTARTS = tl.constexpr(6)
AGE = tl.constexpr(7)  # trainings since the last restart
STATUS = tl.constexpr(8)
FIELDS = tl.constexpr(9)

# Status of a run
RUNNING = tl.constexpr(0)
RESTARTING = tl.constexpr(1)  # gets initial parameters: not trained
ENDED = tl.constexpr(2)  # by the budget; + 1: it failed; + 2: it reached the target

# Purposes of `policy/rng.py`
INIT = tl.constexpr(0)
ORDER_G = tl.constexpr(1)
VALUE = tl.constexpr(2)
DROP_G = tl.constexpr(3)
ORDER_T = tl.constexpr(4)
DROP_T = tl.constexpr(5)

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def field(runs, r, name: tl.constexpr):
    """Return one entry of a run's row."""
    return tl.load(runs + r * FIELDS + name)


# --- arithmetic: one instruction each, errors of one or two units in the last place ---------------


@triton.jit
def exp2(x):
    """Return 2 to the x."""
    if INTERPRETED:
        return tl.exp2(x)
    else:
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def reciprocal(x):
    """Return 1 / x."""
    if INTERPRETED:
        return 1.0 / x
    else:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def reciprocals(x):
    """Return 1 / x, two at a time, from 1 / (x y).

    Every thread must have an even number of entries, and the products of pairs must be normal
    numbers.
    """
    if INTERPRETED:
        return 1.0 / x
    else:
        return tl.inline_asm_elementwise(
            """{
            .reg .f32 r;
            mul.ftz.f32 r, $2, $3;
            rcp.approx.ftz.f32 r, r;
            mul.ftz.f32 $0, r, $3;
            mul.ftz.f32 $1, r, $2;
            }""",
            "=&f,=f,f,f",
            [x],
            dtype=tl.float32,
            is_pure=True,
            pack=2,
        )


@triton.jit
def square_root(x):
    """Return the square root of x."""
    if INTERPRETED:
        return tl.sqrt(x)
    else:
        return tl.inline_asm_elementwise(
            "sqrt.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def tanh(x):
    """Return tanh(x); its absolute error is that of float32."""
    return 1.0 - 2.0 * reciprocal(1.0 + exp2(x * (2.0 * LOG2E)))


@triton.jit
def sigmoid(x):
    """Return 1 / (1 + exp(-x))."""
    return reciprocal(1.0 + exp2(x * -LOG2E))


@triton.jit
def product(a, b):
    """Return a b, for sums over threads.

    If the compiler fused the product with the first addition, two threads that add each other's
    terms would get sums that differ in the last bit.
    """
    return tl.fma(a, b, 0.0)


@triton.jit
def adam(w, m, v, g, beta1, beta2, rate, eps, PAIRS: tl.constexpr = False):
    """Return parameters and moments after one step of gradient ascent.

    The moments are m / (1 - beta1) and v / (1 - beta2), which saves two operations; `rate` and
    `eps` (`CudaEngine._coefficients`) contain the factors. PAIRS: every thread has an even number
    of parameters.
    """
    m = beta1 * m + g
    v = beta2 * v + g * g
    root = square_root(v) + eps
    return w + rate * (m * (reciprocals(root) if PAIRS else reciprocal(root))), m, v


@triton.jit
def step(parameters, at, inside, g, epoch, rate, eps, training, KEPT: tl.constexpr, copies=None,
         COPIED: tl.constexpr = False):  # fmt: skip
    """Apply Adam to parameters in memory; without KEPT the moments are zero before epoch 0.

    COPIED: `copies` get the parameters, too, in their precision.
    """
    if rate > 0:  # otherwise the layer is frozen
        m = tl.load(parameters.m + at, mask=inside, other=0.0) / training.rest1
        v = tl.load(parameters.v + at, mask=inside, other=0.0) / training.rest2
        if not KEPT:
            m = tl.where(epoch > 0, m, 0.0)
            v = tl.where(epoch > 0, v, 0.0)
        w = tl.load(parameters.theta + at, mask=inside, other=0.0)
        w, m, v = adam(w, m, v, g, training.beta1, training.beta2, rate, eps)
        tl.store(parameters.theta + at, w, mask=inside)
        tl.store(parameters.m + at, m * training.rest1, mask=inside)
        tl.store(parameters.v + at, v * training.rest2, mask=inside)
        if COPIED:
            tl.store(copies + at, w, mask=inside)


# --- the random stream ----------------------------------------------------------------------------


@triton.jit
def words(seed, row, generation, purpose, first_block, BLOCKS: tl.constexpr):
    """Return 4 * BLOCKS consecutive words of a row, from block `first_block` on."""
    block = first_block + tl.arange(0, BLOCKS)
    same = block * 0
    w0, w1, w2, w3 = tl.philox(
        seed, block, same + row.to(tl.int32), same + generation.to(tl.int32), same + purpose
    )
    return tl.reshape(tl.join(tl.join(w0, w2), tl.join(w1, w3)), (4 * BLOCKS,))


@triton.jit
def word_of(seed, row, generation, purpose, word):
    """Return the words numbered `word`, a tensor, of the rows `row`."""
    zero = word * 0
    w0, w1, w2, w3 = tl.philox(
        seed,
        word // 4,
        zero + row.to(tl.int32),
        zero + generation.to(tl.int32),
        zero + purpose,
    )
    lane = word % 4
    return tl.where(lane == 0, w0, tl.where(lane == 1, w1, tl.where(lane == 2, w2, w3)))


@triton.jit
def uniform(word):
    """Convert a word to a number in [0, 1)."""
    return (word.to(tl.uint32, bitcast=True) >> 8).to(tl.float32) * 5.9604644775390625e-08


@triton.jit
def below(word, threshold):
    """Return whether word < threshold, a 33-bit number."""
    return word.to(tl.uint32, bitcast=True).to(tl.int64) < threshold
