"""Profiles and pair tables, and the sums that are updated when x moves."""

import numpy as np

from anyorder._internal.compiling import inner
from anyorder.strategies.models.layout import (
    FEW,
    GAINS,
    LINKED,
    NOT_LINKED,
    STALE,
    SUM_SQUARES,
)

SURE = 1e-12  # a prediction is certain if its variance is below this share of the mean square gain
INT = np.int64  # integers of one type, so that no kernel is compiled twice


# --- random numbers (SplitMix64; `state` holds one number, drawn from the search's generator) -----


@inner()
def generator(seed):
    """Return the state of a generator with this seed."""
    state = np.empty(1, np.uint64)
    state[0] = seed
    return state


@inner()
def uniform(state):
    """Return a float in [0, 1)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inner()
def below(state, count):
    """Return an integer in [0, count)."""
    return int(uniform(state) * count)


# --- profiles and pairs ---------------------------------------------------------------------------


@inner()
def slot_in(kind, values, first_slot, a, b):
    """Return the slot of a change between two values of a variable of this kind."""
    if kind != FEW:
        return first_slot
    low, high = min(a, b), max(a, b)
    return first_slot + low * (2 * values - low - 1) // 2 + high - low - 1


@inner()
def slot_of(v, i, a, b):
    """Return the slot of a change of i between two values."""
    return slot_in(v.kind[i], v.values[i], v.first_slot[i], a, b)


@inner()
def mean_square(v):
    """Return the mean square of all gains observed."""
    return v.scalars[SUM_SQUARES] / max(v.scalars[GAINS], 1.0)


@inner()
def add_variable(v, j, now, sign):
    """Add the contribution of j with value `now` to the sums of all profiles, times `sign`."""
    first_slot, profiles, differing = v.first_slot, v.profiles, v.differing
    shift, spread, firm, mean, variance = v.shift, v.spread, v.firm, v.mean, v.variance
    link = v.link[j]
    kind, values, first, context = v.kind[j], v.values[j], v.first_slot[j], v.context[j]
    for i in range(len(profiles)):
        if i == j:
            continue
        for m in range(INT(profiles[i])):
            then = INT(context[i, m])
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


@inner()
def flip(v, j, new):
    """Do what two calls of `add_variable` do, for a change of a binary variable.

    One pass is enough, since a context that differed in j is then equal, and the reverse.
    """
    first_slot, profiles, differing, context = v.first_slot, v.profiles, v.differing, v.context[j]
    shift, spread, firm, link, t = v.shift, v.spread, v.firm, v.link[j], INT(v.first_slot[j])
    for i in range(len(profiles)):
        if i == j:
            continue
        count, linked = INT(profiles[i]), link[i] == LINKED
        for m in range(count):
            differing[i, m] += -1 if context[i, m] == new else 1
        for s in range(INT(first_slot[i]), INT(first_slot[i + 1])):
            further, wider = (v.mean[t, s] if new else -v.mean[t, s]), v.variance[t, s]
            if further == 0.0 and wider == 0.0:  # most pairs do not interact
                continue
            firmer = wider if linked else 0.0
            for m in range(count):
                less = context[i, m] == new
                shift[s, m] += further
                spread[s, m] += -wider if less else wider
                firm[s, m] += -firmer if less else firmer


@inner()
def add_binary(v, j):
    """Do what `add_variable` does, for a binary variable; skip pairs without effect.

    Contexts that are not in use are counted as well: a loop without branches is vectorised.
    """
    first_slot, profiles, context = v.first_slot, v.profiles, v.context[j]
    shift, spread, firm, link, t = v.shift, v.spread, v.firm, v.link[j], INT(v.first_slot[j])
    now, mean, variance = v.x[j], v.mean[t], v.variance[t]
    then, differing = context.reshape(context.size), v.differing.reshape(v.differing.size)
    for k in range(len(then)):
        differing[k] += then[k] != now
    for m in range(context.shape[1]):
        v.differing[j, m] -= context[j, m] != now
    for i in range(len(profiles)):
        if i == j:
            continue
        for s in range(INT(first_slot[i]), INT(first_slot[i + 1])):
            further, wider = (mean[s] if now else -mean[s]), variance[s]
            if further == 0.0 and wider == 0.0:
                continue
            firmer = wider if link[i] == LINKED else 0.0
            for m in range(INT(profiles[i])):  # no branches: they are hard to predict
                apart = context[i, m] != now
                shift[s, m] += further if apart else 0.0
                spread[s, m] += wider if apart else 0.0
                firm[s, m] += firmer if apart else 0.0


@inner()
def move_to(v, j, new):
    """Change x[j], and update the sums of all profiles."""
    if v.values[j] == 2:
        flip(v, j, INT(new))
    else:
        add_variable(v, j, INT(v.x[j]), INT(-1))
        add_variable(v, j, INT(new), INT(1))
    v.x[j] = new
    v.scalars[STALE] = 1.0


@inner()
def recompute(v):
    """Compute all sums again, without the rounding errors that moves leave."""
    v.shift[:] = 0.0
    v.spread[:] = 0.0
    v.firm[:] = 0.0
    v.differing[:] = 0
    for j in range(len(v.x)):
        if v.values[j] == 2:
            add_binary(v, j)
        else:
            add_variable(v, j, INT(v.x[j]), INT(1))
    for i in range(len(v.x)):
        v.differing[i, v.profiles[i] :] = 0
    v.scalars[STALE] = 1.0


@inner()
def add_pair(v, i, s, j, t, mean, variance):
    """Add the contribution of slot t of j to the sums of slot s of i."""
    now, context, shift, spread = INT(v.x[j]), v.context, v.shift, v.spread
    linked = v.link[i, j] == LINKED
    kind, values, first = v.kind[j], v.values[j], v.first_slot[j]
    for m in range(INT(v.profiles[i])):
        then = INT(context[j, i, m])
        if then != now and slot_in(kind, values, first, then, now) == t:
            shift[s, m] += mean if then < now else -mean
            spread[s, m] += variance
            if linked:
                v.firm[s, m] += variance


@inner()
def different(v, i, m, variables, slots):
    """Find the variables and slots that differ in profile m of i; return their number."""
    x, kind, values, first_slot, context = v.x, v.kind, v.values, v.first_slot, v.context
    count = 0
    for j in range(len(x)):
        then, now = INT(context[j, i, m]), INT(x[j])
        if then != now and j != i:
            variables[count] = j
            slots[count] = slot_in(kind[j], values[j], first_slot[j], then, now)
            count += 1
    return count


@inner()
def set_pair(v, i, s, j, t, mean, variance):
    """Set M and P of slot s of i and slot t of j."""
    up, wider = mean - v.mean[s, t], variance - v.variance[s, t]
    if up == 0.0 and wider == 0.0:
        return
    v.mean[s, t] = v.mean[t, s] = mean
    v.variance[s, t] = v.variance[t, s] = variance
    add_pair(v, i, s, j, t, up, wider)
    add_pair(v, j, t, i, s, up, wider)


@inner()
def separate(v, i, j):
    """Settle that i and j do not interact."""
    for s in range(INT(v.first_slot[i]), INT(v.first_slot[i + 1])):
        for t in range(INT(v.first_slot[j]), INT(v.first_slot[j + 1])):
            set_pair(v, i, s, j, t, 0.0, 0.0)
    v.link[i, j] = v.link[j, i] = NOT_LINKED


@inner()
def connect(v, i, j):
    """Settle that i and j interact; their variances count as `firm` from now on."""
    v.link[i, j] = v.link[j, i] = LINKED
    for s in range(INT(v.first_slot[i]), INT(v.first_slot[i + 1])):
        for t in range(INT(v.first_slot[j]), INT(v.first_slot[j + 1])):
            add_firm(v, i, s, j, t, v.variance[s, t])
            add_firm(v, j, t, i, s, v.variance[s, t])


@inner()
def add_firm(v, i, s, j, t, variance):
    """Add the variance of slot t of j to the `firm` sums of slot s of i."""
    now, kind, values, first = INT(v.x[j]), v.kind[j], v.values[j], v.first_slot[j]
    for m in range(INT(v.profiles[i])):
        then = INT(v.context[j, i, m])
        if then != now and slot_in(kind, values, first, then, now) == t:
            v.firm[s, m] += variance


@inner()
def find(v, i, m, value):
    """Return the entry of a value in profile m of i; -1 if it has none."""
    for k in range(v.entries[i, m]):
        if v.code[i, m, k] == value:
            return k
    return -1
