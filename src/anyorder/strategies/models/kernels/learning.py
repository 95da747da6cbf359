"""Learning from one gain: links, the Kalman step on the pair tables, and profiles."""

import math

from anyorder._internal.compiling import inner
from anyorder.strategies.models.kernels.tables import (
    INT,
    SURE,
    connect,
    different,
    find,
    mean_square,
    recompute,
    separate,
    set_pair,
)
from anyorder.strategies.models.layout import (
    CALIBRATED,
    CALIBRATION,
    CERTAIN,
    COINCIDENCES,
    COMPARED,
    DEGREE,
    DEGREE_LINKS,
    DEGREE_WEIGHT,
    DEPARTED,
    DEPARTURE,
    DEPARTURES,
    EQUAL,
    FEW,
    GAINS,
    LINKED,
    NOISE,
    NOT_LINKED,
    PRIOR,
    PRIOR_DEGREE,
    RING,
    RINGED,
    SLACK,
    SUM_FOURTH,
    SUM_SQUARES,
    TOLERANCE,
    TYPICAL,
    TYPICAL_GAINS,
    UNKNOWN,
    VALUE,
    WAITING,
    WRONG,
)

# Constants of the method.

ROUNDING = 1e-9  # differences below this share of the root mean square gain are rounding
NOISE_WIDTH = 2.0  # differences below so many standard deviations of the noise count as 0
# an equal gain makes a link less likely; below this factor, the pair counts as not linked
SOFT = 0.02
# limits of the number of gains of average size that each variable is assumed to have had at first:
# it is small if the gains of variables are very different
LEAST_TRIES, MOST_TRIES = 0.3, 10.0
NORMAL_FOURTH = 3.0  # fourth moment of normal numbers, relative to the square of the second one
# if a larger share of variables has had no effect, their effects may depend on other variables
IDLE = 0.5
# weight of `PRIOR_DEGREE` in the estimated number of links; a gain in a context that is completely
# different has weight 1
PRIOR_WEIGHT = 0.5
MOST_ERROR = 25.0  # ratios of squared error to variance are cut to this before they are averaged
LONGEST_MEMORY = 200.0  # predictions over which error bars are calibrated
TYPICAL_N = 4.0  # times n: recent gains from which the typical gain is estimated
ADAPTATION = 0.3  # rate at which variances of pairs with many values follow the squared errors


@inner()
def assumed_tries(v):
    """Return the number of gains of average size that each variable is assumed to have had.

    If the mean squares of the gains of variables have a gamma distribution of shape a, and the
    gains of each variable are normal, the fourth moment of all gains is 1 + 1 / a times that of
    normal numbers. The number is a: if it is large, variables are alike, and one gain says little
    about the scale of its variable.
    """
    square = mean_square(v)
    fourth = v.scalars[SUM_FOURTH] / (v.scalars[GAINS] * square * square + 1e-300)
    differences = fourth / NORMAL_FOURTH - 1.0  # 1 / a
    if differences * MOST_TRIES < 1.0:
        return MOST_TRIES
    if differences * LEAST_TRIES < 1.0:
        return 1.0 / differences
    return LEAST_TRIES  # also where the moments overflow


@inner()
def set_prior(v):
    """Set P of unknown pairs to products of the scales of their variables."""
    n, everywhere, total = len(v.x), mean_square(v), 0.0
    able, tried, idle, assumed = 0, 0, 0, assumed_tries(v)
    for i in range(n):
        able += v.values[i] > 1
        tried += v.tries[i] > 0.0
        idle += v.tries[i] > 0.0 and v.squares[i] == 0.0
    if tried == able and idle > IDLE * able:
        v.scalars[WAITING] = 1.0  # for good, although fewer of them are left as the search goes on
    waiting = idle > IDLE * tried or v.scalars[WAITING] > 0.0
    for i in range(n):
        squares = v.squares[i] / (everywhere + 1e-300)
        v.scale[i] = (squares + assumed) / (v.tries[i] + assumed)
        # if many variables have no effect, their effects may depend on other variables
        if waiting and v.squares[i] == 0.0:
            v.scale[i] = 1.0
        total += v.scale[i]
    for i in range(n):
        for j in range(i):
            if v.link[i, j] == UNKNOWN:
                prior = everywhere * v.scale[i] * v.scale[j] / total
                for s in range(INT(v.first_slot[i]), INT(v.first_slot[i + 1])):
                    for t in range(INT(v.first_slot[j]), INT(v.first_slot[j + 1])):
                        if v.mean[s, t] == 0.0 and (
                            v.variance[s, t] > 0.0 or v.scalars[PRIOR] == 0.0
                        ):
                            v.variance[s, t] = v.variance[t, s] = prior
    v.scalars[PRIOR] = 1.0
    recompute(v)


@inner()
def count_gain(v, i, new, gain, f):
    """Update scales and tolerance by a gain and, now and then, the prior variances."""
    n, now, scalars = len(v.x), v.x[i], v.scalars
    scalars[SUM_SQUARES] += gain * gain
    scalars[SUM_FOURTH] += gain**4
    scalars[GAINS] += 1.0
    v.squares[i] += gain * gain
    v.tries[i] += 1.0
    v.slope[i] += gain * gain / abs(new - now)
    rounding = ROUNDING * math.sqrt(mean_square(v)) + 1e-12 * abs(f)
    scalars[SLACK] = rounding
    if abs(gain) > rounding:
        scalars[TYPICAL_GAINS] += 1.0
        rate = 1.0 / min(scalars[TYPICAL_GAINS], TYPICAL_N * n)
        scalars[TYPICAL] += rate * (2.0 * math.log(abs(gain)) - scalars[TYPICAL])
    scalars[TOLERANCE] = rounding + NOISE_WIDTH * math.sqrt(scalars[NOISE])
    count = int(scalars[GAINS])
    early = count <= 2 * n and count % max(n // 4, 1) == 0
    if scalars[SUM_SQUARES] > 0.0 and (scalars[PRIOR] == 0.0 or early or count % n == 0):
        set_prior(v)


@inner()
def chance_kept(v, doubtful, loose):
    """Return the factor by which an equal gain lowers the probability of each possible link.

    By Bayes' rule: a gain is certainly equal without a link, and equal by accident with one.
    `doubtful` is the number of variables that differ and may be linked, `loose` the sum of their
    variances.
    """
    if doubtful == 1:
        return 0.0
    scalars = v.scalars
    accident = scalars[EQUAL] / (scalars[COMPARED] + 1e-9)
    none = math.exp(-scalars[DEGREE] * loose / (mean_square(v) + 1e-300))
    return accident / (none + (1.0 - none) * accident + 1e-300)


@inner()
def equal_gain(v, i, slot, m, variables, slots):
    """Learn from an equal gain in profile m: the variables that differ are not linked with i."""
    count, doubtful, loose = different(v, i, m, variables, slots), INT(0), 0.0
    for k in range(count):
        doubtful += v.variance[slot, slots[k]] > 0.0
        if v.link[i, variables[k]] != LINKED:
            loose += v.variance[slot, slots[k]]
    if doubtful == 0:
        return
    kept = chance_kept(v, doubtful, loose)
    v.scalars[COINCIDENCES] += 1.0
    for k in range(count):
        j, t = variables[k], slots[k]
        mean, variance = v.mean[slot, t], v.variance[slot, t]
        if variance <= 0.0 or v.link[i, j] == LINKED:
            continue
        if kept < SOFT:
            separate(v, i, j)
        else:
            set_pair(v, i, slot, j, t, kept * mean, kept * variance)


@inner()
def count_links(v, slot, m, equal):
    """Estimate the mean number of links of a variable from the share of equal gains.

    A gain is equal in another context with probability exp(-expected), where `expected` is the
    expected number of links among the variables that differ. Each gain is one step of expectation
    maximisation, unless a variable that differs is known to be linked.
    """
    scalars, square = v.scalars, mean_square(v)
    loose = v.spread[slot, m]
    if loose <= SURE * square or v.firm[slot, m] > SURE * square:
        return
    exposure = loose / square
    expected = scalars[DEGREE] * exposure
    if not equal:
        scalars[DEGREE_LINKS] += expected / -math.expm1(-expected)
    scalars[DEGREE_WEIGHT] += exposure
    links = scalars[DEGREE_LINKS] + PRIOR_WEIGHT * PRIOR_DEGREE
    scalars[DEGREE] = links / (scalars[DEGREE_WEIGHT] + PRIOR_WEIGHT)


@inner()
def count_accident(v, difference):
    """Count how often differences of gains are equal by chance: often, if f has few values."""
    scalars, ring, equal = v.scalars, v.ring, 0
    seen, tolerance = int(scalars[RINGED]), scalars[TOLERANCE]
    for h in range(min(seen, RING)):
        equal += abs(ring[h] - difference) <= tolerance
    scalars[COMPARED] += min(seen, RING)
    scalars[EQUAL] += equal
    v.ring[seen % RING] = difference
    scalars[RINGED] += 1.0


@inner()
def reopen(v, i, slot, count, variables, slots, error):
    """Make the effects of all variables that differ uncertain, after a wrong certain prediction."""
    for k in range(count):
        j, t = variables[k], slots[k]
        if v.link[i, j] == NOT_LINKED:
            v.link[i, j] = v.link[j, i] = UNKNOWN
        set_pair(v, i, slot, j, t, v.mean[slot, t], error * error / count)


@inner()
def link(v, i, slot, j, t, mean):
    """Settle that i and j interact; their other changes are assumed to have effects as large."""
    if v.link[i, j] == LINKED:
        return
    connect(v, i, j)
    for s1 in range(INT(v.first_slot[i]), INT(v.first_slot[i + 1])):
        for t1 in range(INT(v.first_slot[j]), INT(v.first_slot[j + 1])):
            if (s1 != slot or t1 != t) and v.variance[s1, t1] < mean * mean:
                set_pair(v, i, s1, j, t1, v.mean[s1, t1], mean * mean)


@inner()
def correct(v, i, slot, m, error, variables, slots):
    """Correct M and P of the variables that differ in profile m by a Kalman step.

    The step has no covariances.
    """
    scalars, tolerance, x = v.scalars, v.scalars[TOLERANCE], v.x
    everywhere, single, settled, squares = mean_square(v), 0, True, 0.0
    count = different(v, i, m, variables, slots)
    for k in range(count):
        if v.variance[slot, slots[k]] > tolerance * tolerance:
            single += 1
            settled = settled and v.link[i, variables[k]] == LINKED
        squares += v.mean[slot, slots[k]] ** 2
    spread = v.spread[slot, m]
    if spread <= SURE * everywhere:
        scalars[CERTAIN] += 1.0
        if abs(error) > 3.0 * tolerance and count > 0:
            scalars[WRONG] += 1.0
            reopen(v, i, slot, count, variables, slots, error)
            spread, single = v.spread[slot, m], count
    if settled and squares > SURE * everywhere:
        scalars[DEPARTURES] += 1.0
        scalars[DEPARTED] += min(error * error / squares, 4.0)
        scalars[DEPARTURE] = scalars[DEPARTED] / (scalars[DEPARTURES] + 2.0)
        if scalars[DEPARTURE] < 1e-12:
            scalars[DEPARTURE] = 0.0
    if spread <= SURE * everywhere:
        return
    spread += 2.0 * scalars[NOISE]
    ratio = min(error * error / spread, MOST_ERROR)
    scalars[CALIBRATED] = min(scalars[CALIBRATED] + 1.0, LONGEST_MEMORY)
    scalars[CALIBRATION] += (ratio - scalars[CALIBRATION]) / scalars[CALIBRATED]
    for k in range(count):
        j, t = variables[k], slots[k]
        mean, variance = v.mean[slot, t], v.variance[slot, t]
        if variance <= 0.0:
            continue
        few = v.kind[i] == FEW and v.kind[j] == FEW
        part = variance / spread
        if few:
            mean += (part if v.context[j, i, m] < x[j] else -part) * error
            variance *= 1.0 - part
        else:
            variance *= 1.0 + ADAPTATION * (ratio - 1.0)
        if single == 1:
            if abs(error if not few else mean) > 3.0 * tolerance:
                link(v, i, slot, j, t, error if not few else mean)
                if few and scalars[NOISE] == 0.0:
                    variance = 0.0
            elif v.link[i, j] == UNKNOWN and scalars[NOISE] == 0.0:
                separate(v, i, j)
                continue
        if v.link[i, j] == LINKED:
            variance = max(variance, scalars[DEPARTURE] * mean * mean)
        if variance < tolerance * tolerance and scalars[NOISE] == 0.0:
            variance = 0.0
        set_pair(v, i, slot, j, t, mean, variance)


@inner()
def remember(v, i, new, f):
    """Put the values of f at `new` and at the present point into the profile of this context."""
    profile = INT(-1)
    for m in range(INT(v.profiles[i])):
        if v.differing[i, m] == 0:
            profile = m
    if profile < 0:
        if v.profiles[i] < v.code.shape[1]:
            profile = INT(v.profiles[i])
            v.profiles[i] += 1
        else:
            profile = INT(v.oldest[i])
            v.oldest[i] = (profile + 1) % v.code.shape[1]
        for j in range(len(v.x)):
            v.context[j, i, profile] = v.x[j]
        v.differing[i, profile] = 0
        v.entries[i, profile] = 0
        for s in range(INT(v.first_slot[i]), INT(v.first_slot[i + 1])):
            v.shift[s, profile] = v.spread[s, profile] = v.firm[s, profile] = 0.0
    put(v, i, profile, INT(v.x[i]), v.scalars[VALUE])
    put(v, i, profile, new, f)


@inner()
def put(v, i, m, value, f):
    """Write an entry of a profile; if the profile is full, it replaces the lowest one."""
    k = find(v, i, m, value)
    if k < 0 and v.entries[i, m] < v.code.shape[2]:
        k = v.entries[i, m]
        v.entries[i, m] += 1
    elif k < 0:
        k = 0
        for h in range(1, v.code.shape[2]):
            if v.value[i, m, h] < v.value[i, m, k] and v.code[i, m, h] != v.x[i]:
                k = h
    v.code[i, m, k], v.value[i, m, k] = value, f
