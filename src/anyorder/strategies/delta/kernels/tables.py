"""Profiles and pair tables: their sums as x moves, and the prediction of a gain."""

import math
from collections import namedtuple

import numpy as np
from numba import njit

from anyorder.strategies.delta.layout import (
    FEW,
    FLOATS,
    GAINS,
    INTEGERS,
    NOT_LINKED,
    ORDERED,
    RING,
    SCALARS,
    SETTLED,
    STALE,
    SUM_SQUARES,
)

SURE = 1e-12  # a prediction is certain if its variance is below this share of the mean square gain
LARGE = 1e300

Views = namedtuple("Views", list(INTEGERS) + list(FLOATS))


@njit(cache=True)
def views(shape, integers, floats):
    """The named arrays; the order is that of `layout.INTEGERS` and `layout.FLOATS`."""
    n, slots, profiles, entries, width = shape[0], shape[1], shape[2], shape[3], shape[4]
    a = 4 * n + 1
    nw, np_, npe = n * width, n * profiles, n * profiles * entries
    b = a + 2 * nw
    c = b + 2 * n
    d = c + 2 * np_
    e = d + npe
    g = e + n * np_
    p = npe + 2 * slots * slots
    q = p + 2 * slots * profiles
    r = q + nw
    return Views(
        integers[:n],
        integers[n : 2 * n],
        integers[2 * n : 3 * n],
        integers[3 * n : a],
        integers[a : a + nw].reshape((n, width)),
        integers[a + nw : b].reshape((n, width)),
        integers[b : b + n],
        integers[b + n : c],
        integers[c : c + np_].reshape((n, profiles)),
        integers[c + np_ : d].reshape((n, profiles)),
        integers[d:e].reshape((n, profiles, entries)),
        integers[e:g].reshape((n, n, profiles)),
        integers[g : g + n * n].reshape((n, n)),
        floats[:npe].reshape((n, profiles, entries)),
        floats[npe : npe + slots * slots].reshape((slots, slots)),
        floats[npe + slots * slots : p].reshape((slots, slots)),
        floats[p : p + slots * profiles].reshape((slots, profiles)),
        floats[p + slots * profiles : q].reshape((slots, profiles)),
        floats[q:r].reshape((n, width)),
        floats[r : r + n],
        floats[r + n : r + 2 * n],
        floats[r + 2 * n : r + 3 * n],
        floats[r + 3 * n : r + 4 * n],
        floats[r + 4 * n : r + 4 * n + RING],
        floats[r + 4 * n + RING : r + 4 * n + RING + SCALARS],
    )


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
def slot_of(v, i, a, b):
    """The slot of a change of i between two values."""
    if v.kind[i] != FEW:
        return v.first_slot[i]
    low, high = min(a, b), max(a, b)
    return v.first_slot[i] + low * (2 * v.values[i] - low - 1) // 2 + high - low - 1


@njit(cache=True)
def mean_square(v):
    """Of all gains observed."""
    return v.scalars[SUM_SQUARES] / max(v.scalars[GAINS], 1.0)


@njit(cache=True)
def add_context(v, i, m, j, now, sign):
    """Add to the sums of profile m of i what j contributes if its value is `now`; or remove it."""
    then = v.context[j, i, m]
    if then == now:
        return
    v.differing[i, m] += sign
    t = slot_of(v, j, then, now)
    up = sign if then < now else -sign
    for s in range(v.first_slot[i], v.first_slot[i + 1]):
        v.shift[s, m] += up * v.mean[t, s]
        v.spread[s, m] += sign * v.variance[t, s]


@njit(cache=True)
def move_to(v, j, new):
    """Change x[j], and the sums of all profiles with it."""
    old = v.x[j]
    for i in range(len(v.x)):
        if i != j:
            for m in range(v.profiles[i]):
                add_context(v, i, m, j, old, -1)
                add_context(v, i, m, j, new, 1)
    v.x[j] = new
    v.scalars[STALE] = 1.0


@njit(cache=True)
def recompute(v):
    """All sums, without the rounding errors that moves leave."""
    v.shift[:] = 0.0
    v.spread[:] = 0.0
    v.differing[:] = 0
    for j in range(len(v.x)):
        for i in range(len(v.x)):
            if i != j:
                for m in range(v.profiles[i]):
                    add_context(v, i, m, j, v.x[j], 1)
    v.scalars[STALE] = 1.0


@njit(cache=True)
def add_pair(v, i, s, j, t, mean, variance):
    """Add to the sums of i what a difference in slot t of j contributes."""
    now = v.x[j]
    for m in range(v.profiles[i]):
        then = v.context[j, i, m]
        if then != now and slot_of(v, j, then, now) == t:
            v.shift[s, m] += mean if then < now else -mean
            v.spread[s, m] += variance


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
    v.link[i, j] = v.link[j, i] = NOT_LINKED
    v.scalars[SETTLED] += 1.0
    for s in range(v.first_slot[i], v.first_slot[i + 1]):
        for t in range(v.first_slot[j], v.first_slot[j + 1]):
            set_pair(v, i, s, j, t, 0.0, 0.0)


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


@njit(cache=True)
def predict(v, i, new):
    """Gain of changing x[i] to `new`, its variance, and the profile they come from, -1 if none."""
    now = v.x[i]
    s = slot_of(v, i, now, new)
    best, gain, least = -1, 0.0, LARGE
    for m in range(v.profiles[i]):
        if v.spread[s, m] >= least:
            continue
        here, doubt = level(v, i, m, now)
        if doubt < 0.0 or here == -np.inf:
            continue
        there, more = level(v, i, m, new)
        if more < 0.0:
            continue
        variance = max(v.spread[s, m], 0.0) + doubt + more
        if there == -np.inf:  # it failed in this context
            failed = v.differing[i, m] == 0
            variance = 0.0 if failed else variance + mean_square(v)
            there = -np.inf if failed else here - math.sqrt(mean_square(v))
        if variance < least:
            best, least = m, variance
            gain = there - here + (v.shift[s, m] if now < new else -v.shift[s, m])
    return gain, least, best


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
