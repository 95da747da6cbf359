"""Changes of several variables: kicks, mutations and exchanges."""

import math

import numpy as np

from anyorder._internal.compiling import entry, inner
from anyorder.strategies.models.kernels.predicting import predict
from anyorder.strategies.models.kernels.tables import (
    INT,
    SURE,
    below,
    generator,
    mean_square,
    move_to,
    uniform,
)
from anyorder.strategies.models.kernels.views import views
from anyorder.strategies.models.layout import LINKED, MEASURED, ORDERED, VALUE

# Constants of the method.

KICK = 4.0  # the least number of changes of a random kick
FOLLOW = 0.5  # the chance that the next variable of a kick is linked with the last one
# a gentle kick makes at least n / 8 changes, each the best predicted of n / 8 random ones
GENTLE = 8
GENTLE_CHANGES = (4, 12)  # bounds of the least number of changes of a gentle kick
GENTLE_DRAWS = (2, 16)  # bounds of the number of random changes from which each is chosen
MOST_VALUE_DRAWS = 64  # draws of a variable that can change, before all are tried in turn


@inner()
def other_value(v, i, now, random):
    """Return a value of i other than `now`; for ordered ones, half of the time a random step."""
    count = v.values[i]
    if v.kind[i] == ORDERED and uniform(random) < 0.5:
        step = int(math.exp(uniform(random) * math.log(count)))
        new = now + (step if uniform(random) < 0.5 else -step)
        if 0 <= new < count:
            return new
    return (now + 1 + below(random, count - 1)) % count


@inner()
def next_variable(v, last, changed, random):
    """Return the next variable of a kick: one linked with the last one, or any that can change."""
    chosen, count = -1, 0
    if last >= 0 and uniform(random) < FOLLOW:
        for i in range(len(v.x)):
            if not changed[i] and v.link[i, last] == LINKED:
                count += 1
                if uniform(random) * count < 1.0:
                    chosen = i
    for _ in range(MOST_VALUE_DRAWS):
        if chosen >= 0 and v.values[chosen] > 1:
            return chosen
        chosen = below(random, len(v.x))
    for step in range(len(v.x)):  # few variables can change: take the next one after the last draw
        i = (chosen + step) % len(v.x)
        if v.values[i] > 1:
            return i
    return chosen


@inner()
def partner(v, point, i, random):
    """Return a variable of the same kind as i with another value; -1 if there is none.

    Half of the time, a variable that is linked with i, if there is one.
    """
    linked = uniform(random) < FOLLOW
    for attempt in range(2):
        chosen, count = -1, 0
        for j in range(len(point)):
            alike = v.kind[j] == v.kind[i] and v.values[j] == v.values[i] and point[j] != point[i]
            if alike and (attempt == 1 or (linked and v.link[i, j] == LINKED)):
                count += 1
                if uniform(random) * count < 1.0:
                    chosen = j
        if chosen >= 0:
            return chosen
    return -1


@entry()
def exchange(shape, integers, floats, seed, point):
    """Exchange the values of two variables, or move a step from one integer to another, in place.

    Return whether that was possible.
    """
    v = views(shape, integers, floats)
    random = generator(seed)
    i = next_variable(v, INT(-1), np.zeros(len(point), np.int32), random)
    j = partner(v, point, i, random)
    if j < 0:
        return False
    if v.kind[i] == ORDERED and uniform(random) < 0.5:
        step = int(math.exp(uniform(random) * math.log(v.values[i] / 2.0)))
        if point[i] + step < v.values[i] and point[j] >= step:
            point[i] += step
            point[j] -= step
            return True
    point[i], point[j] = point[j], point[i]
    return True


@entry()
def mutate(shape, integers, floats, seed, point, changes):
    """Change so many variables of `point`, in place, chosen as in a random kick."""
    v = views(shape, integers, floats)
    random = generator(seed)
    changed, last = np.zeros(len(point), np.int32), INT(-1)
    for _ in range(min(changes, max(len(point) // 2, 1))):
        last = next_variable(v, last, changed, random)
        point[last] = other_value(v, last, INT(point[last]), random)
        changed[last] = 1


@inner()
def gentlest(v, changed, random):
    """Return the change with the largest predicted gain among several random ones.

    Return the variable, -1 if all variables drawn have changed already, and its new value.
    """
    chosen, to, most = INT(-1), INT(0), -np.inf
    for _ in range(min(max(len(v.x) // GENTLE, GENTLE_DRAWS[0]), GENTLE_DRAWS[1])):
        i = next_variable(v, INT(-1), changed, random)
        if changed[i]:
            continue
        new = other_value(v, i, INT(v.x[i]), random)
        gain, _, profile = predict(v, i, new)
        if chosen < 0 or (profile >= 0 and gain > most):
            chosen, to, most = i, new, gain if profile >= 0 else -np.inf
    return chosen, to


@entry()
def kick(shape, integers, floats, seed, gentle):
    """Make several changes of x: random ones, or (`gentle`) changes predicted to lose little.

    The value of x becomes the predicted one. Return whether it is certain.
    """
    v = views(shape, integers, floats)
    random = generator(seed)
    n = len(v.x)
    rest = 1.0 - uniform(random)
    least = min(max(n / GENTLE, GENTLE_CHANGES[0]), GENTLE_CHANGES[1])
    count = int(min(least / math.sqrt(rest) if gentle else KICK / rest, n))
    count = max(min(count, n // 2), 1)
    changed = np.zeros(n, np.int32)
    last, certain = INT(-1), True
    for _ in range(count):
        if gentle:
            last, new = gentlest(v, changed, random)
            if last < 0:
                continue
        else:
            last = next_variable(v, last, changed, random)
            new = other_value(v, last, INT(v.x[last]), random)
        gain, variance, profile = predict(v, last, new)
        if profile < 0 or variance > SURE * mean_square(v) or not (gain > -np.inf):
            certain, gain = False, 0.0
        move_to(v, last, new)
        v.scalars[VALUE] += gain
        changed[last] = 1
    v.scalars[MEASURED] = 0.0
    return certain
