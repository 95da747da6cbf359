"""Profiles and pair tables: their sums as x moves, and the prediction of a gain."""

import math
from collections import namedtuple

import numpy as np
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from anyorder.strategies.delta.layout import (
    CALIBRATION,
    DEGREE,
    FEW,
    FLOATS,
    GAINS,
    INTEGERS,
    LINKED,
    NOT_LINKED,
    ORDERED,
    RING,
    SCALARS,
    STALE,
    SUM_SQUARES,
)

SURE = 1e-12  # a prediction is certain if its variance is below this share of the mean square gain
LARGE = 1e300
INT = np.int64  # integers of one type, so that no kernel is compiled twice

Views = namedtuple("Views", list(INTEGERS) + list(FLOATS))


@intrinsic
def pointer(context, address):
    """An address as a pointer."""
    signature = types.voidptr(address)

    def generate(_context, builder, _signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return signature, generate


@njit(cache=True)
def views(shape, integers, floats):
    """The named arrays; the order is that of `layout.INTEGERS` and `layout.FLOATS`.

    They are made from addresses, not by slicing, so that they have no reference counts: the caller
    keeps the buffers, and passing 25 arrays costs next to nothing.
    """
    n, slots, profiles, entries, width = shape[0], shape[1], shape[2], shape[3], shape[4]
    at = integers.ctypes.data
    x = carray(pointer(at), n, np.int32)
    values = carray(pointer(at + 4 * n), n, np.int32)
    kind = carray(pointer(at + 8 * n), n, np.int32)
    first_slot = carray(pointer(at + 12 * n), n + 1, np.int32)
    at += 16 * n + 4
    order = carray(pointer(at), (n, width), np.int32)
    candidates = carray(pointer(at + 4 * n * width), (n, width), np.int32)
    at += 8 * n * width
    known = carray(pointer(at), n, np.int32)
    oldest = carray(pointer(at + 4 * n), n, np.int32)
    at += 8 * n
    differing = carray(pointer(at), (n, profiles), np.int32)
    filled = carray(pointer(at + 4 * n * profiles), (n, profiles), np.int32)
    at += 8 * n * profiles
    code = carray(pointer(at), (n, profiles, entries), np.int32)
    at += 4 * n * profiles * entries
    context = carray(pointer(at), (n, n, profiles), np.int32)
    link = carray(pointer(at + 4 * n * n * profiles), (n, n), np.int32)
    at = floats.ctypes.data
    value = carray(pointer(at), (n, profiles, entries), np.float64)
    at += 8 * n * profiles * entries
    mean = carray(pointer(at), (slots, slots), np.float64)
    variance = carray(pointer(at + 8 * slots * slots), (slots, slots), np.float64)
    at += 16 * slots * slots
    shift = carray(pointer(at), (slots, profiles), np.float64)
    spread = carray(pointer(at + 8 * slots * profiles), (slots, profiles), np.float64)
    firm = carray(pointer(at + 16 * slots * profiles), (slots, profiles), np.float64)
    at += 24 * slots * profiles
    worth = carray(pointer(at), (n, width), np.float64)
    at += 8 * n * width
    squares = carray(pointer(at), n, np.float64)
    tries = carray(pointer(at + 8 * n), n, np.float64)
    scale = carray(pointer(at + 16 * n), n, np.float64)
    slope = carray(pointer(at + 24 * n), n, np.float64)
    at += 32 * n
    ring = carray(pointer(at), RING, np.float64)
    scalars = carray(pointer(at + 8 * RING), SCALARS, np.float64)
    return Views(
        x, values, kind, first_slot, order, candidates, known, oldest, differing, filled, code,
        context, link, value, mean, variance, shift, spread, firm, worth, squares, tries, scale,
        slope, ring, scalars,
    )  # fmt: skip


# --- random numbers (SplitMix64; `state` holds one number, drawn from the search's generator) -----


@njit(cache=True)
def uniform(state):
    """A float in [0, 1)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def below(state, count):
    """An integer in [0, count)."""
    return int(uniform(state) * count)


# --- profiles and pairs ---------------------------------------------------------------------------


@njit(cache=True)
def slot_in(kind, values, first_slot, a, b):
    """The slot of a change between two values of a variable of that kind."""
    if kind != FEW:
        return first_slot
    low, high = min(a, b), max(a, b)
    return first_slot + low * (2 * values - low - 1) // 2 + high - low - 1


@njit(cache=True)
def slot_of(v, i, a, b):
    """The slot of a change of i between two values."""
    return slot_in(v.kind[i], v.values[i], v.first_slot[i], a, b)


@njit(cache=True)
def mean_square(v):
    """Of all gains observed."""
    return v.scalars[SUM_SQUARES] / max(v.scalars[GAINS], 1.0)


@njit(cache=True)
def add_variable(v, j, now, sign):
    """Add to the sums of all profiles what j contributes if its value is `now`; or remove it."""
    first_slot, profiles, differing = v.first_slot, v.profiles, v.differing
    shift, spread, firm, mean, variance = v.shift, v.spread, v.firm, v.mean, v.variance
    link = v.link[j]
    kind, values, first, context = v.kind[j], v.values[j], v.first_slot[j], v.context[j]
    for i in range(len(profiles)):
        if i == j:
            continue
        for m in range(INT(profiles[i])):
            then = context[i, m]
            if then == now:
                continue
            differing[i, m] += sign
            t = slot_in(kind, values, first, then, now)
            up = sign if then < now else -sign
            for s in range(INT(first_slot[i]), INT(first_slot[i + 1])):
                shift[s, m] += up * mean[t, s]
                spread[s, m] += sign * variance[t, s]
                if link[i] == LINKED:
                    firm[s, m] += sign * variance[t, s]


@njit(cache=True)
def move_to(v, j, new):
    """Change x[j], and the sums of all profiles with it."""
    add_variable(v, j, INT(v.x[j]), INT(-1))
    add_variable(v, j, INT(new), INT(1))
    v.x[j] = new
    v.scalars[STALE] = 1.0


@njit(cache=True)
def recompute(v):
    """All sums, without the rounding errors that moves leave."""
    v.shift[:] = 0.0
    v.spread[:] = 0.0
    v.firm[:] = 0.0
    v.differing[:] = 0
    for j in range(len(v.x)):
        add_variable(v, j, INT(v.x[j]), INT(1))
    v.scalars[STALE] = 1.0


@njit(cache=True)
def add_pair(v, i, s, j, t, mean, variance):
    """Add to the sums of i what a difference in slot t of j contributes."""
    now, context, shift, spread = v.x[j], v.context, v.shift, v.spread
    linked = v.link[i, j] == LINKED
    kind, values, first = v.kind[j], v.values[j], v.first_slot[j]
    for m in range(INT(v.profiles[i])):
        then = context[j, i, m]
        if then != now and slot_in(kind, values, first, then, now) == t:
            shift[s, m] += mean if then < now else -mean
            spread[s, m] += variance
            if linked:
                v.firm[s, m] += variance


@njit(cache=True)
def different(v, i, m, variables, slots):
    """The variables that differ in profile m of i, and the slots they differ in; how many."""
    x, kind, values, first_slot, context = v.x, v.kind, v.values, v.first_slot, v.context
    count = 0
    for j in range(len(x)):
        then, now = context[j, i, m], x[j]
        if then != now and j != i:
            variables[count] = j
            slots[count] = slot_in(kind[j], values[j], first_slot[j], then, now)
            count += 1
    return count


@njit(cache=True)
def set_pair(v, i, s, j, t, mean, variance):
    """Set M and P of slot s of i and slot t of j."""
    up, wider = mean - v.mean[s, t], variance - v.variance[s, t]
    if up == 0.0 and wider == 0.0:
        return
    v.mean[s, t] = v.mean[t, s] = mean
    v.variance[s, t] = v.variance[t, s] = variance
    add_pair(v, i, s, j, t, up, wider)
    add_pair(v, j, t, i, s, up, wider)


@njit(cache=True)
def separate(v, i, j):
    """Settle that i and j do not interact."""
    for s in range(INT(v.first_slot[i]), INT(v.first_slot[i + 1])):
        for t in range(INT(v.first_slot[j]), INT(v.first_slot[j + 1])):
            set_pair(v, i, s, j, t, 0.0, 0.0)
    v.link[i, j] = v.link[j, i] = NOT_LINKED


@njit(cache=True)
def connect(v, i, j):
    """Settle that i and j interact; what they contribute to the sums is firm from now on."""
    v.link[i, j] = v.link[j, i] = LINKED
    for s in range(INT(v.first_slot[i]), INT(v.first_slot[i + 1])):
        for t in range(INT(v.first_slot[j]), INT(v.first_slot[j + 1])):
            add_firm(v, i, s, j, t, v.variance[s, t])
            add_firm(v, j, t, i, s, v.variance[s, t])


@njit(cache=True)
def add_firm(v, i, s, j, t, variance):
    """Add to the firm sums of i what a difference in slot t of j contributes."""
    now, kind, values, first = v.x[j], v.kind[j], v.values[j], v.first_slot[j]
    for m in range(INT(v.profiles[i])):
        then = v.context[j, i, m]
        if then != now and slot_in(kind, values, first, then, now) == t:
            v.firm[s, m] += variance


@njit(cache=True)
def find(v, i, m, value):
    """Where profile m of i has a value; -1 if nowhere."""
    for k in range(v.entries[i, m]):
        if v.code[i, m, k] == value:
            return k
    return -1


@njit(cache=True)
def level(v, i, m, value):
    """F in profile m at a value of i, and the variance of that; negative if nothing is known.

    Between known values of an ordered variable it is a Brownian bridge; an unknown category is
    drawn from the distribution of the known ones.
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


@njit(cache=True, inline="always")
def predict_few(
    x, values, first_slot, profiles, differing, entries, code, value, shift, spread, square, i, new
):
    """`predict` for a variable of few values, on plain arrays: the loop over all changes is hot.

    `square` is the mean square gain.
    """
    now = INT(x[i])
    s = slot_in(FEW, values[i], first_slot[i], now, new)
    best, gain, least = INT(-1), 0.0, LARGE
    for m in range(INT(profiles[i])):
        if spread[s, m] < least:
            here, there = np.nan, np.nan
            for k in range(entries[i, m]):
                if code[i, m, k] == now:
                    here = value[i, m, k]
                elif code[i, m, k] == new:
                    there = value[i, m, k]
            variance = max(spread[s, m], 0.0)
            if there == -np.inf and differing[i, m] > 0:  # it failed in another context
                variance += square
                there = here - math.sqrt(square)
            elif there == -np.inf:
                variance = 0.0
            if here > -np.inf and there == there and variance < least:
                best, least = m, variance
                gain = there - here + (shift[s, m] if now < new else -shift[s, m])
    return gain, least, best


@njit(cache=True)
def predict(v, i, new):
    """Gain of changing x[i] to `new`, its variance, and the profile they come from, -1 if none."""
    square = mean_square(v)
    if v.kind[i] == FEW:
        return predict_few(
            v.x, v.values, v.first_slot, v.profiles, v.differing, v.entries, v.code, v.value,
            v.shift, v.spread, square, i, new,
        )  # fmt: skip
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
        if there == -np.inf and v.differing[i, m] > 0:  # it failed in another context
            variance += square
            there = here - math.sqrt(square)
        elif there == -np.inf:
            variance = 0.0
        if variance < least:
            best, least = m, variance
            gain = there - here
    return gain, least, best


@njit(cache=True)
def promise(v, square, s, m, gain, variance):
    """Expected improvement of a change whose gain is predicted from profile m in slot s.

    Most pairs do not interact. With `expected` links among the variables that differ and of which
    nothing is known, their part of the variance is there with probability 1 - exp(-expected), and
    then so much larger.
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


@njit(cache=True)
def expected_improvement(gain, deviation):
    """The mean of max(g, 0) for a normal g."""
    if deviation <= 0.0 or gain == -np.inf:
        return max(gain, 0.0)
    u = gain / deviation
    if u > 8.0:
        return gain
    if u < -8.0:
        return 0.0
    density = 0.3989422804014327 * math.exp(-0.5 * u * u)
    return deviation * (density + u * 0.5 * math.erfc(-u * 0.7071067811865476))
