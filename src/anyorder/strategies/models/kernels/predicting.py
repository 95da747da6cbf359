"""The gain of a change that profiles and pair tables predict, and its expected improvement."""

import math

import numpy as np

from anyorder._internal.compiling import inner
from anyorder.strategies.models.kernels.tables import INT, find, mean_square, slot_in
from anyorder.strategies.models.layout import CALIBRATION, DEGREE, FEW, ORDERED

LARGE = 1e300  # the variance of a gain of which nothing is known


@inner()
def level(v, i, m, value):
    """Return f at a value of i in profile m, and its variance, negative if nothing is known.

    Between known values of an ordered variable, f is a Brownian bridge; at an unknown category, it
    has the distribution of the values at known ones.
    """
    k = find(v, i, m, value)
    if k >= 0:
        return v.value[i, m, k], 0.0
    if v.kind[i] == FEW:
        return 0.0, -1.0
    if v.kind[i] == ORDERED:
        low, high, at_low, at_high = -1, -1, 0.0, 0.0
        for k in range(v.entries[i, m]):
            known, f = v.code[i, m, k], v.value[i, m, k]
            if f == -np.inf:
                continue
            if known < value and (low < 0 or known > low):
                low, at_low = known, f
            elif known > value and (high < 0 or known < high):
                high, at_high = known, f
        prior = 4.0 * mean_square(v) * v.scale[i] / v.values[i]
        step = (v.slope[i] + prior) / (v.tries[i] + 1.0)
        if low >= 0 and high >= 0:
            part = (value - low) / (high - low)
            return at_low + part * (at_high - at_low), step * part * (high - value)
        if low >= 0:
            return at_low, step * (value - low)
        if high >= 0:
            return at_high, step * (high - value)
        return 0.0, -1.0
    total, count = 0.0, 0
    for k in range(v.entries[i, m]):
        if v.value[i, m, k] > -np.inf:
            total += v.value[i, m, k]
            count += 1
    if count == 0:
        return 0.0, -1.0
    total /= count
    squares = mean_square(v) * v.scale[i]
    for k in range(v.entries[i, m]):
        if v.value[i, m, k] > -np.inf:
            squares += (v.value[i, m, k] - total) ** 2
    return total, squares / count


@inner(inline="always")
def predict_few(v, square, i, new):
    """Do what `predict` does, for a variable of few values; `square` is the mean square gain.

    The function is inlined into its callers, since it takes most time of the loop over all changes.
    """
    entries, code, value, shift, spread = v.entries, v.code, v.value, v.shift, v.spread
    now = INT(v.x[i])
    s = slot_in(FEW, v.values[i], v.first_slot[i], now, new)
    best, gain, least = INT(-1), 0.0, LARGE
    for m in range(INT(v.profiles[i])):
        if spread[s, m] < least:
            here, there = np.nan, np.nan
            for k in range(entries[i, m]):
                if code[i, m, k] == now:
                    here = value[i, m, k]
                elif code[i, m, k] == new:
                    there = value[i, m, k]
            variance = max(spread[s, m], 0.0)
            if there == -np.inf and v.differing[i, m] > 0:  # the change failed in another context
                variance += square
                there = here - math.sqrt(square)
            elif there == -np.inf:
                variance = 0.0
            if here > -np.inf and there == there and variance < least:
                best, least = m, variance
                gain = there - here + (shift[s, m] if now < new else -shift[s, m])
    return gain, least, best


@inner()
def predict(v, i, new):
    """Return the gain of changing x[i] to `new`, its variance, and its profile, or -1 if none."""
    square = mean_square(v)
    if v.kind[i] == FEW:
        return predict_few(v, square, i, new)
    now, s = INT(v.x[i]), INT(v.first_slot[i])
    best, gain, least = INT(-1), 0.0, LARGE
    for m in range(INT(v.profiles[i])):
        if v.spread[s, m] >= least:
            continue
        here, doubt = level(v, i, m, now)
        there, more = level(v, i, m, new)
        if doubt < 0.0 or more < 0.0 or here == -np.inf:
            continue
        variance = max(v.spread[s, m], 0.0) + doubt + more
        if there == -np.inf and v.differing[i, m] > 0:  # the change failed in another context
            variance += square
            there = here - math.sqrt(square)
        elif there == -np.inf:
            variance = 0.0
        if variance < least:
            best, least = m, variance
            gain = there - here
    return gain, least, best


@inner()
def promise(v, square, s, m, gain, variance):
    """Return the expected improvement of a change, predicted from profile m in slot s.

    Most pairs do not interact. Let `expected` be the expected number of links among the variables
    that differ and are not known to be linked. With probability exp(-expected), their part of the
    variance is absent; otherwise it is larger, so that its mean is the same.
    """
    calibration = v.scalars[CALIBRATION]
    loose = min(max(v.spread[s, m] - v.firm[s, m], 0.0), variance)
    expected = v.scalars[DEGREE] * loose / (square + 1e-300)
    if expected <= 0.0 or expected > 5.0:
        return expected_improvement(gain, math.sqrt(calibration * variance))
    some, rest = -math.expm1(-expected), max(variance - loose, 0.0)
    with_links = expected_improvement(gain, math.sqrt(calibration * (rest + loose / some)))
    without = expected_improvement(gain, math.sqrt(calibration * rest))
    return some * with_links + (1.0 - some) * without


@inner()
def expected_improvement(gain, deviation):
    """Return the mean of max(g, 0) for a normal g with mean `gain`."""
    if deviation <= 0.0 or gain == -np.inf:
        return max(gain, 0.0)
    u = gain / deviation
    if u > 8.0:
        return gain
    if u < -8.0:
        return 0.0
    density = 0.3989422804014327 * math.exp(-0.5 * u * u)
    return deviation * (density + u * 0.5 * math.erfc(-u * 0.7071067811865476))
