"""What the kernels share: arithmetic, the random stream, and eq. (8) at the outputs.

Under TRITON_INTERPRET=1 the kernels run in Python on the CPU; the few lines of PTX then have plain
stand-ins that compute the same.
"""

import os

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") == "1")

# A row of the array `runs`: what the kernels must know about one run, as int64.
SEED = tl.constexpr(0)
GENERATION = tl.constexpr(1)  # trainings so far
FIRST = tl.constexpr(2)  # candidates drawn from this generation's policy before
DROPS_G = tl.constexpr(3)  # words below this hide an input at generation,
DROPS_T = tl.constexpr(4)  # and at training
STEPS = tl.constexpr(5)  # Adam steps taken with these moments
RESTARTS = tl.constexpr(6)
AGE = tl.constexpr(7)  # trainings since the last restart
STATUS = tl.constexpr(8)
FIELDS = tl.constexpr(9)

# Its status
GOING = tl.constexpr(0)
AFRESH = tl.constexpr(1)  # goes on with fresh parameters: training the old ones would be in vain
ENDED = tl.constexpr(2)  # by the budget; + 1: it failed, + 2: it reached the target

# Purposes of `policy/rng.py`
INIT = tl.constexpr(0)
ORDER_G = tl.constexpr(1)
VALUE = tl.constexpr(2)
DROP_G = tl.constexpr(3)
ORDER_T = tl.constexpr(4)
DROP_T = tl.constexpr(5)

_LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def field(runs, r, name: tl.constexpr):
    """One entry of a run's row."""
    return tl.load(runs + r * FIELDS + name)


# --- arithmetic: one instruction each, errors of one or two units in the last place ---------------


@triton.jit
def exp2(x):
    """2 to the x."""
    if INTERPRETED:
        return tl.exp2(x)
    else:
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def reciprocal(x):
    """1 / x."""
    if INTERPRETED:
        return 1.0 / x
    else:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def reciprocals(x):
    """1 / x, two at a time, from 1 / (x y). Every thread must have an even number of them, and
    their products must be normal numbers.
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
    """The square root."""
    if INTERPRETED:
        return tl.sqrt(x)
    else:
        return tl.inline_asm_elementwise(
            "sqrt.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def tanh(x):
    """As accurate as float32 in absolute terms."""
    return 1.0 - 2.0 * reciprocal(1.0 + exp2(x * (2.0 * _LOG2E)))


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return reciprocal(1.0 + exp2(x * -_LOG2E))


@triton.jit
def product(a, b):
    """a b, for sums over threads. The compiler would fuse a product with the first addition, and
    each of two threads that add theirs would have a sum of its own, in the last bit.
    """
    return tl.fma(a, b, 0.0)


@triton.jit
def adam(w, m, v, g, beta1, beta2, rate, eps, PAIRS: tl.constexpr = False):
    """One step of ascent. The moments are kept as m / (1 - beta1) and v / (1 - beta2), which
    saves two operations; `rate` and `eps` (`CudaEngine._coefficients`) make up for it.
    PAIRS: every thread has an even number of parameters.
    """
    m = beta1 * m + g
    v = beta2 * v + g * g
    root = square_root(v) + eps
    return w + rate * (m * (reciprocals(root) if PAIRS else reciprocal(root))), m, v


# --- the random stream ----------------------------------------------------------------------------


@triton.jit
def words(seed, row, generation, purpose, first_block, BLOCKS: tl.constexpr):
    """4 * BLOCKS consecutive words of a row, from block `first_block` on."""
    block = first_block + tl.arange(0, BLOCKS)
    same = block * 0
    w0, w1, w2, w3 = tl.philox(
        seed, block, same + row.to(tl.int32), same + generation.to(tl.int32), same + purpose
    )
    return tl.reshape(tl.join(tl.join(w0, w2), tl.join(w1, w3)), (4 * BLOCKS,))


@triton.jit
def word_of(seed, row, generation, purpose, word):
    """The words numbered `word`, a tensor, of the rows `row`."""
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
    """A word as a number in [0, 1)."""
    return (word.to(tl.uint32, bitcast=True) >> 8).to(tl.float32) * 5.9604644775390625e-08


@triton.jit
def below(word, threshold):
    """word < threshold, a 33-bit number."""
    return word.to(tl.uint32, bitcast=True).to(tl.int64) < threshold


# --- eq. (8) at the outputs -----------------------------------------------------------------------


@triton.jit
def binary_terms(value, old0, old1, advantage, weight, beta):
    """What `binary_slope` needs to know of candidates; `advantage` is A / pi_old(x)."""
    sign = tl.where(value == 1, 1.0, -1.0)
    return sign * advantage * weight, beta * weight * old1, beta * weight * old0


@triton.jit
def binary_slope(logit, terms, floor):
    """d objective / d logit of a variable with two values.

    With p = sigmoid(logit) inside the clip, the derivative of eq. (8) is
    +-A / pi_old(x) * p (1 - p) + beta * (pi_old(1) (1 - p) - pi_old(0) p), + for the value 1.
    """
    p = sigmoid(logit)
    q = 1.0 - p
    slope = terms[0] * p * q + (terms[1] * q - terms[2] * p)
    return tl.where((p > floor) & (p < 1.0 - floor), slope, 0.0)


@triton.jit
def raw_probabilities(logits, valid):
    """Softmax over the last axis of the valid ones."""
    z = tl.where(valid, logits, -float("inf"))
    power = tl.where(valid, exp2((z - tl.max(z, 1)[:, None]) * _LOG2E), 0.0)
    return power / tl.sum(power, 1)[:, None]


@triton.jit
def clipped_probabilities(raw, valid, floor):
    """pi: clipped, then made to sum to 1 again; and what the sum was."""
    clipped = tl.where(valid, tl.minimum(tl.maximum(raw, floor), 1.0 - floor), 0.0)
    total = tl.sum(clipped, 1)[:, None]
    return clipped / total, total


@triton.jit
def categorical_slope(
    logits, valid, chosen, old, advantage, weight, floor, beta, BERNOULLI: tl.constexpr
):
    """d objective / d logits, (C, O); `advantage` is A / pi_old(x), at the chosen value only."""
    raw = raw_probabilities(logits, valid)
    new, total = clipped_probabilities(raw, valid, floor)
    safe = tl.where(valid, new, 0.5)
    if BERNOULLI:
        slope = -beta * (safe - old) / (safe * (1.0 - safe))
    else:
        slope = beta * old / safe
    slope = tl.where(valid, slope + tl.where(chosen, advantage, 0.0), 0.0) * weight
    slope = (slope - tl.sum(product(slope, new), 1)[:, None]) / total
    slope = tl.where((raw > floor) & (raw < 1.0 - floor), slope, 0.0)
    return raw * (slope - tl.sum(product(slope, raw), 1)[:, None])


@triton.jit
def tuple_slopes(
    logits, value, old, advantage, weight, floor, beta, BERNOULLI: tl.constexpr, D: tl.constexpr
):
    """The same from a tuple of D vectors of logits, as a tuple."""
    top = logits[0]
    for k in tl.static_range(1, D):
        top = tl.maximum(top, logits[k])
    powers, mass = (), tl.zeros_like(top)
    for k in tl.static_range(D):
        power = exp2((logits[k] - top) * _LOG2E)
        powers, mass = powers + (power,), mass + power
    raw, total = (), tl.zeros_like(top)
    mass = reciprocal(mass)
    for k in tl.static_range(D):
        p = powers[k] * mass
        raw, total = raw + (p,), total + tl.minimum(tl.maximum(p, floor), 1.0 - floor)
    slopes, mean = (), tl.zeros_like(top)
    total = reciprocal(total)
    for k in tl.static_range(D):
        new = tl.minimum(tl.maximum(raw[k], floor), 1.0 - floor) * total
        if BERNOULLI:
            slope = beta * (old[k] - new) * reciprocal(new * (1.0 - new))
        else:
            slope = beta * old[k] * reciprocal(new)
        slope = (slope + tl.where(value == k, advantage, 0.0)) * weight
        slopes, mean = slopes + (slope,), mean + slope * new
    inner, mean_raw = (), tl.zeros_like(top)
    for k in tl.static_range(D):
        inside = (raw[k] > floor) & (raw[k] < 1.0 - floor)
        slope = tl.where(inside, (slopes[k] - mean) * total, 0.0)
        inner, mean_raw = inner + (slope,), mean_raw + slope * raw[k]
    out = ()
    for k in tl.static_range(D):
        out = out + (raw[k] * (inner[k] - mean_raw),)
    return out
