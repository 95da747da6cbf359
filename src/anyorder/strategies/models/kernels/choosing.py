"""The choice of the next change, changes that need no evaluation, and learning from an answer."""

import math

import numpy as np

from anyorder._internal.compiling import entry, inner
from anyorder.strategies.models.kernels.fitting import note
from anyorder.strategies.models.kernels.learning import (
    correct,
    count_accident,
    count_gain,
    count_links,
    equal_gain,
    remember,
)
from anyorder.strategies.models.kernels.predicting import (
    expected_improvement,
    predict,
    predict_few,
    promise,
)
from anyorder.strategies.models.kernels.tables import (
    INT,
    SURE,
    find,
    generator,
    mean_square,
    move_to,
    recompute,
    slot_of,
)
from anyorder.strategies.models.kernels.varying import other_value
from anyorder.strategies.models.kernels.views import views
from anyorder.strategies.models.layout import (
    CALIBRATION,
    DEPARTURE,
    ERROR,
    ERROR_NONE,
    ERROR_PROFILE,
    EVALUATIONS,
    FEW,
    FREE,
    KNOWN,
    LINKED,
    MEASURED,
    NOT_LINKED,
    ORDERED,
    PREDICTED,
    SLACK,
    STALE,
    TOLERANCE,
    TYPICAL,
    TYPICAL_GAINS,
    VALUE,
    WAITING,
    WEIGHT,
)

# Constants of the method.

UNTRIED = 1e200  # worth of a change that was never tried: more than any other worth
# a change is worth an evaluation if its expected improvement is more than this share of the root
# mean square gain
ENOUGH = 1e-3
# a change of a variable of many values is worth an evaluation if its expected improvement is more
# than this share of a typical gain (the mean square gain may be dominated by distant, bad values)
ENOUGH_MANY = 0.02
FIRST_TRIES = 2  # changes of a variable of many values that are tried before anything is known
# The results of `advance`.
FOUND, OPTIMUM = 0, 1


@inner()
def draw_candidates(v, i, random):
    """Draw the values of a variable of many values that are considered next.

    An integer has the next values, values halfway to the nearest known ones, and random ones; a
    category has the two best known values and random ones.
    """
    now, last, width = v.x[i], v.values[i] - 1, v.candidates.shape[1]
    for k in range(width):
        v.candidates[i, k] = other_value(v, i, INT(now), random)
    closest = -1  # the profile of the most similar context
    for m in range(INT(v.profiles[i])):
        if closest < 0 or v.spread[v.first_slot[i], m] < v.spread[v.first_slot[i], closest]:
            closest = m
    if v.kind[i] == ORDERED:
        low, high = -1, last + 1
        if closest >= 0:
            for k in range(v.entries[i, closest]):
                known = v.code[i, closest, k]
                if low < known < now:
                    low = known
                elif now < known < high:
                    high = known
        v.candidates[i, 0] = max(now - 1, 0)
        v.candidates[i, 1] = min(now + 1, last)
        v.candidates[i, 2] = (low + now) // 2 if now - low > 1 else now
        v.candidates[i, 3] = (high + now) // 2
    elif closest >= 0:
        first = second = -1  # the two best known values except the present one
        for k in range(v.entries[i, closest]):
            if v.code[i, closest, k] == now:
                continue
            if first < 0 or v.value[i, closest, k] > v.value[i, closest, first]:
                first, second = k, first
            elif second < 0 or v.value[i, closest, k] > v.value[i, closest, second]:
                second = k
        if first >= 0:
            v.candidates[i, 0] = v.code[i, closest, first]
        if second >= 0:
            v.candidates[i, 1] = v.code[i, closest, second]


@inner()
def worth_of(v, i, k, new):
    """Return the expected improvement of a change of many values; -1 if it is too small."""
    gain, variance, profile = predict(v, i, new)
    if profile < 0:
        if v.profiles[i] == 0:
            fresh = v.candidates.shape[1] - 1 - k
            return UNTRIED * (1.0 + 1e-6 * v.order[i, k]) if fresh < FIRST_TRIES else -1.0
        variance = mean_square(v) * v.scale[i]
        gain = -0.5 * math.sqrt(variance)
        worth = expected_improvement(gain, math.sqrt(v.scalars[CALIBRATION] * variance))
    else:
        worth = promise(v, mean_square(v), INT(v.first_slot[i]), profile, gain, variance)
    typical = math.exp(0.5 * v.scalars[TYPICAL]) if v.scalars[TYPICAL_GAINS] > 0.0 else 0.0
    return worth if worth > ENOUGH_MANY * typical + v.scalars[SLACK] else -1.0


@inner()
def rank_variable(v, i, random):
    """Compute the worth of the changes considered of a variable of many values."""
    draw_candidates(v, i, random)
    for k in range(v.worth.shape[1]):
        new = INT(v.candidates[i, k])
        v.worth[i, k] = worth_of(v, i, k, new) if new != v.x[i] else -1.0


@inner()
def rank(v, random):
    """Compute the worth of all changes considered; at least UNTRIED if a change was never tried."""
    x, kind, values, worth, square = v.x, v.kind, v.values, v.worth, mean_square(v)
    worth[:] = -1.0
    enough = ENOUGH * math.sqrt(square) + v.scalars[SLACK]
    for i in range(len(x)):
        if values[i] < 2:  # the variable is held
            continue
        if kind[i] != FEW:
            rank_variable(v, i, random)
            continue
        for new in range(INT(values[i])):
            if new != x[i]:
                gain, variance, profile = predict_few(v, square, i, INT(new))
                if profile < 0:
                    worth[i, new] = UNTRIED * (1.0 + 1e-6 * v.order[i, new])
                else:
                    slot = slot_of(v, i, INT(x[i]), INT(new))
                    found = promise(v, square, slot, profile, gain, variance)
                    if found > enough:
                        worth[i, new] = found
    v.scalars[STALE] = 0.0


@entry()
def advance(shape, integers, floats, seed, free):
    """Make up to `free` changes that are certain improvements; return the most promising next.

    Return FOUND or OPTIMUM, the variable, its new value, and the number of changes made.
    """
    v = views(shape, integers, floats)
    scalars, moves = v.scalars, 0
    random = generator(seed)
    while True:
        if scalars[STALE] > 0.0:
            rank(v, random)
        best_i, best_k, most = INT(0), INT(0), -1.0
        for i in range(len(v.x)):
            for k in range(v.worth.shape[1]):
                if v.worth[i, k] > most:
                    best_i, best_k, most = i, k, v.worth[i, k]
        if most <= 0.0:
            return OPTIMUM, 0, 0, moves
        new = best_k if v.kind[best_i] == FEW else INT(v.candidates[best_i, best_k])
        gain, variance, profile = predict(v, best_i, new)
        certain = profile >= 0 and variance <= SURE * mean_square(v)
        if moves >= free or not certain or gain <= scalars[SLACK]:
            return FOUND, best_i, new, moves
        move_to(v, best_i, new)
        scalars[VALUE] += gain
        scalars[MEASURED] = 0.0
        scalars[FREE] += 1.0
        moves += 1


@inner()
def take_off(v, i, new, random):
    """Exclude a change until x moves."""
    if v.kind[i] == FEW:
        v.worth[i, new] = -1.0
        return
    if random[0] > 0:
        rank_variable(v, i, random)
    for k in range(v.worth.shape[1]):
        if v.candidates[i, k] == new:
            v.worth[i, k] = -1.0


@inner()
def track_errors(v, i, new, gain, predicted, profile):
    """Update the running means of squared errors over the last 2n gains."""
    scalars = v.scalars
    here, there = find(v, i, profile, INT(v.x[i])), find(v, i, profile, new)
    if here < 0 or there < 0:
        return
    plain = v.value[i, profile, there] - v.value[i, profile, here]
    if not (abs(plain) < np.inf):
        return
    rate = 1.0 / min(scalars[WEIGHT] + 1.0, 2.0 * len(v.x))
    scalars[WEIGHT] += 1.0
    scalars[ERROR] += rate * ((gain - predicted) ** 2 - scalars[ERROR])
    scalars[ERROR_PROFILE] += rate * ((gain - plain) ** 2 - scalars[ERROR_PROFILE])
    scalars[ERROR_NONE] += rate * (gain * gain - scalars[ERROR_NONE])


@inner()
def learn_gain(v, i, new, f):
    """Learn the value f of x with the value `new` of variable i."""
    scalars, now = v.scalars, INT(v.x[i])
    gain = f - scalars[VALUE]
    slot, sign = slot_of(v, i, now, new), (1.0 if now < new else -1.0)
    count_gain(v, i, new, gain, f)
    predicted, _, best = predict(v, i, new)
    scalars[PREDICTED], scalars[KNOWN] = predicted, (1.0 if best >= 0 else 0.0)
    if best < 0:
        return
    track_errors(v, i, new, gain, predicted, best)
    if scalars[WAITING] > 0.0 and v.squares[i] == 0.0:
        return  # if the effect of i depends on other variables, gains of 0 say nothing about links
    exact = False
    variables, slots = np.empty(len(v.x), np.int64), np.empty(len(v.x), np.int64)
    for m in range(INT(v.profiles[i])):
        here, there = find(v, i, m, now), find(v, i, m, new)
        if here < 0 or there < 0:
            continue
        difference = gain - (v.value[i, m, there] - v.value[i, m, here])
        if not (abs(difference) < np.inf):
            continue
        exact = exact or m == best
        if m == best:
            equal = abs(difference) <= scalars[TOLERANCE]
            count_links(v, slot, m, equal)
        if abs(difference) <= scalars[TOLERANCE]:
            equal_gain(v, i, slot, m, variables, slots)
        elif m == best:
            count_accident(v, abs(difference))
    if exact:
        here, there = find(v, i, best, now), find(v, i, best, new)
        plain = v.value[i, best, there] - v.value[i, best, here]
        error = sign * (gain - plain) - v.shift[slot, best]
        correct(v, i, slot, best, error, variables, slots)


@entry()
def observe(
    shape, integers, floats, kinds, first, values, J, h, rows, steps, phis, gains, changes, levels,
    k, seed, i, new, f, climb,
):  # fmt: skip
    """Learn the value f of a neighbour of x; move there if `climb` and it is better.

    The gain becomes observation k of the global model, if k is not negative. Return whether x
    moved, and the gain that the global model predicted.
    """
    v = views(shape, integers, floats)
    scalars, predicted = v.scalars, 0.0
    if k >= 0:
        predicted = note(
            kinds, first, values, v.x, J, h, rows, steps, phis, gains, changes, levels, k, i, new,
            scalars[VALUE], f,
        )  # fmt: skip
    scalars[EVALUATIONS] += 1.0
    learn_gain(v, i, new, f)
    remember(v, i, new, f)
    if climb and f > scalars[VALUE] + scalars[SLACK]:
        move_to(v, i, new)
        scalars[VALUE], scalars[MEASURED] = f, 1.0
        return True, predicted
    take_off(v, i, new, generator(seed))
    return False, predicted


@entry()
def fail(shape, integers, floats, i, new, remembered):
    """Exclude a change until x moves; if it failed (`remembered`), write that into the profile."""
    v = views(shape, integers, floats)
    if remembered:
        remember(v, i, new, -np.inf)
    take_off(v, i, new, generator(0))


@entry()
def predict_change(shape, integers, floats, i, new):
    """Return the gain of a change, its variance, and whether anything is known about it."""
    v = views(shape, integers, floats)
    gain, variance, profile = predict(v, i, new)
    return gain, variance, profile >= 0


@entry()
def go_to(shape, integers, floats, point, value, measured):
    """Make a point the present one."""
    v = views(shape, integers, floats)
    changes = 0
    for j in range(len(point)):
        changes += point[j] != v.x[j]
    if 4 * changes > len(point):
        for j in range(len(point)):
            v.x[j] = point[j]
        recompute(v)
    elif changes:
        for j in range(len(point)):
            if point[j] != v.x[j]:
                move_to(v, j, INT(point[j]))
    v.scalars[VALUE], v.scalars[MEASURED] = value, measured


@entry()
def tidy(shape, integers, floats, forget):
    """Raise the variances of links as far as gains are not additive; remove rounding errors.

    If the means of the pairs do more harm than good (`forget`), they become variance.
    """
    v = views(shape, integers, floats)
    slots = len(v.mean)
    owner = np.empty(slots, dtype=np.int64)
    for i in range(len(v.x)):
        owner[v.first_slot[i] : v.first_slot[i + 1]] = i
    for s in range(slots):
        for t in range(slots):
            state = v.link[owner[s], owner[t]]
            square = v.mean[s, t] ** 2
            if forget and state != NOT_LINKED:
                v.variance[s, t] += square
                v.mean[s, t] = 0.0
            elif state == LINKED:
                v.variance[s, t] = max(v.variance[s, t], v.scalars[DEPARTURE] * square)
    recompute(v)
