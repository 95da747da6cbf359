"""The derivative of the objective, eq. (8) or a critic's, with respect to a variable's outputs."""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    LOG2E,
    exp2,
    product,
    reciprocal,
    sigmoid,
)


@triton.jit
def square_slope(estimate, target, weight):
    """Return d objective / d output of a critic: the objective is minus the mean squared error."""
    return 2.0 * weight * (target - estimate)


@triton.jit
def binary_terms(value, old0, old1, advantage, weight, beta, LOG: tl.constexpr):
    """Return the factors of `binary_slope` that all epochs share; `advantage` is A / pi_old(x).

    With LOG, ln pi replaces the ratio, and `advantage` is A. The derivative is then A (x - p), a
    sum of the same form as that of the KL.
    """
    if LOG:
        gain1 = tl.where(value == 1, advantage, 0.0) + beta * old1
        gain0 = tl.where(value == 1, 0.0, advantage) + beta * old0
        return 0.0 * weight, weight * gain1, weight * gain0
    sign = tl.where(value == 1, 1.0, -1.0)
    return sign * advantage * weight, beta * weight * old1, beta * weight * old0


@triton.jit
def binary_slope(logit, terms, floor):
    """Return d objective / d logit of a variable with two values.

    With p = sigmoid(logit) inside the clip, the derivative of eq. (8) is
    +-A / pi_old(x) * p (1 - p) + beta * (pi_old(1) (1 - p) - pi_old(0) p), + for the value 1.
    """
    p = sigmoid(logit)
    q = 1.0 - p
    slope = terms[0] * p * q + (terms[1] * q - terms[2] * p)
    return tl.where((p > floor) & (p < 1.0 - floor), slope, 0.0)


@triton.jit
def raw_probabilities(logits, valid):
    """Return the softmax of the valid entries over the last axis."""
    z = tl.where(valid, logits, -float("inf"))
    power = tl.where(valid, exp2((z - tl.max(z, 1)[:, None]) * LOG2E), 0.0)
    return power / tl.sum(power, 1)[:, None]


@triton.jit
def clipped_probabilities(raw, valid, floor):
    """Return pi, clipped and renormalised, and the sum before renormalisation."""
    clipped = tl.where(valid, tl.minimum(tl.maximum(raw, floor), 1.0 - floor), 0.0)
    total = tl.sum(clipped, 1)[:, None]
    return clipped / total, total


@triton.jit
def categorical_slope(
    logits,
    valid,
    chosen,
    old,
    advantage,
    weight,
    floor,
    beta,
    BERNOULLI: tl.constexpr,
    LOG: tl.constexpr,
):
    """Return d objective / d logits, (C, O); `advantage` is A / pi_old(x), or with LOG A itself."""
    raw = raw_probabilities(logits, valid)
    new, total = clipped_probabilities(raw, valid, floor)
    safe = tl.where(valid, new, 0.5)
    if BERNOULLI:
        slope = -beta * (safe - old) / (safe * (1.0 - safe))
    else:
        slope = beta * old / safe
    if LOG:
        advantage = advantage / safe
    slope = tl.where(valid, slope + tl.where(chosen, advantage, 0.0), 0.0) * weight
    slope = (slope - tl.sum(product(slope, new), 1)[:, None]) / total
    slope = tl.where((raw > floor) & (raw < 1.0 - floor), slope, 0.0)
    return raw * (slope - tl.sum(product(slope, raw), 1)[:, None])


@triton.jit
def tuple_slopes(
    logits, value, old, advantage, weight, floor, beta, BERNOULLI: tl.constexpr, LOG: tl.constexpr,
    D: tl.constexpr,
):  # fmt: skip
    """Return what `categorical_slope` does, from a tuple of D vectors of logits, as a tuple."""
    top = logits[0]
    for k in tl.static_range(1, D):
        top = tl.maximum(top, logits[k])
    powers, mass = (), tl.zeros_like(top)
    for k in tl.static_range(D):
        power = exp2((logits[k] - top) * LOG2E)
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
        gain = advantage
        if LOG:
            gain = advantage * reciprocal(new)
        slope = (slope + tl.where(value == k, gain, 0.0)) * weight
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
