"""Tabu search on the global model, whose maxima are worth an evaluation."""

import numpy as np

from anyorder._internal.compiling import entry, inner
from anyorder.strategies.models.kernels.fitting import all_spins, features, rows_of
from anyorder.strategies.models.kernels.tables import below, generator, uniform
from anyorder.strategies.models.layout import INDICATORS, SPIN

LEVELS = 6  # values of an integer of many values that a step of tabu search considers
TENURE = 10  # a variable that tabu search changed is tabu for n / 20 steps, and up to so many more
NEVER = np.float32(-1e30)  # the gain of a change that is not allowed
INDICES = np.int64(0x7FFFFFFF)  # the bits of an index


@inner()
def round_down(number):
    """Return the largest float of 32 bits that is not above a float of 64 bits."""
    near = np.float32(number)
    return np.nextafter(near, np.float32(-np.inf)) if near > number else near


@inner()
def as_integer(number):
    """Return an integer of 32 bits; integers have the order of the numbers, none of them -0."""
    bits = np.float32(number).view(np.int32)
    return np.int64(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@inner()
def best_spin(gains, free, step, bar):
    """Return the spin of the largest gain among those that are free or gain more than `bar`.

    Return the first of several, and -1 if there is none. Gain and index are put into one integer,
    since a loop that finds the largest integer is vectorised, and one for floats is not.
    """
    never = as_integer(NEVER) << 32
    most = never | INDICES
    for i in range(len(gains)):
        gain = gains[i] + np.float32(0.0)  # 0 for -0
        gain = gain if (free[i] <= step) | (gain > bar) else NEVER
        most = max(most, (as_integer(gain) << 32) | (INDICES - i))
    return INDICES - (most & INDICES) if most > never | INDICES else np.int64(-1)


@inner(fastmath=True)
def maximise_spins(J, h, x, steps, seed):
    """Do what `maximise` does, for binary variables, by simple loops that are vectorised."""
    n = len(x)
    random = generator(seed)
    best, spins = x.copy(), np.empty(n, np.float32)
    for i in range(n):
        spins[i] = 2 * x[i] - 1
    gains = h.copy()  # at first the factor of each spin
    for i in range(n):
        for k in range(n):
            gains[k] += spins[i] * J[i, k]
    for i in range(n):
        gains[i] *= np.float32(-2.0) * spins[i]
    free = np.zeros(n, np.int32)  # the step from which each variable may change again
    gained, most = 0.0, 0.0
    for step in range(steps):
        bar = round_down(most + 1e-7 - gained)
        chosen = best_spin(gains, free, np.int32(step), bar)
        if chosen < 0:
            continue
        free[chosen] = step + 1 + n // 20 + int(uniform(random) * TENURE)
        gain, factor = gains[chosen], np.float32(4.0) * spins[chosen]
        for k in range(n):
            gains[k] += factor * spins[k] * J[chosen, k]
        gains[chosen], spins[chosen] = -gain, -spins[chosen]
        gained += gain
        if gained > most + 1e-6 * abs(most):
            most = gained
            for i in range(n):
                best[i] = spins[i] > 0.0
    return best


@entry(fastmath=True)
def maximise(kinds, first, values, J, h, x, steps, seed):
    """Search the global model from x by tabu search; return the best point visited."""
    n, m = len(x), len(h)
    held = 0
    for i in range(n):
        held += values[i] < 2
    if held == 0 and all_spins(kinds):
        return maximise_spins(J, h, x, steps, seed)
    random = generator(seed)
    point, best = x.copy(), x.copy()
    phi = np.empty(m, np.float32)
    features(kinds, first, values, point, phi)
    field = h.copy()
    for k in range(m):
        if phi[k] != 0.0:
            for a in range(m):
                field[a] += phi[k] * J[k, a]
    free = np.zeros(n, np.int32)  # the step from which each variable may change again
    gained, most = 0.0, 0.0
    for step in range(steps):
        chosen, value, gain = -1, 0, -1e30
        for i in range(n):
            if values[i] < 2:  # the variable is held
                continue
            k = first[i]
            tabu = free[i] > step
            bar = max(gain, most + 1e-7 - gained) if tabu else gain
            if kinds[i] == SPIN:
                g = -2.0 * phi[k] * field[k]
                if g > bar:
                    chosen, value, gain = i, 1 - point[i], g
            elif kinds[i] == INDICATORS:
                here = field[k + point[i]]
                for new in range(values[i]):
                    g = field[k + new] - here
                    if new != point[i] and g > bar:
                        chosen, value, gain, bar = i, new, g, g
            else:
                for _ in range(LEVELS):
                    new = below(random, values[i])
                    row1, step1, row2, step2 = rows_of(kinds, first, values, i, point[i], new)
                    g = step1 * field[row1] + step2 * field[row2]
                    if new != point[i] and g > bar:
                        chosen, value, gain, bar = i, new, g, g
        if chosen < 0:
            continue
        row1, step1, row2, step2 = rows_of(kinds, first, values, chosen, point[chosen], value)
        for k in range(m):
            field[k] += np.float32(step1) * J[row1, k] + np.float32(step2) * J[row2, k]
        phi[first[chosen]] += np.float32(step1 if kinds[chosen] == SPIN else 0.0)
        point[chosen] = value
        gained += gain
        free[chosen] = step + 1 + n // 20 + int(uniform(random) * TENURE)
        if gained > most + 1e-6 * abs(most):
            most = gained
            for i in range(n):
                best[i] = point[i]
    return best
