"""The compiled loops of the model of lists: regression on sparse features, and climbs on the model.

They are all in this file, since Numba's cache on disk notices changes in the file of a function,
but not changes of functions in other files that it calls.
"""

from __future__ import annotations

import numpy as np

from anyorder._internal.compiling import entry, inner
from anyorder.space.groups import EXCHANGE, INSERT

SINGLE, SKIPPED = -1, -2  # kinds of changes that are not moves of a list
# A list is a row of these numbers: its first column and its number of columns, the first place and
# the number of rows of its table of pairs (-1: no table), the least and the most items, its kind.
FIRST, SIZE, PAIRS, SIDE, LEAST, MOST, KIND = range(7)
ARRANGEMENT, SELECTION = range(2)  # kinds of lists


# --- regression ---------------------------------------------------------------------------------


@entry(nogil=True)
def predict(rows, worth, out):
    """Compute the sum of the weights of the features in each row, into `out`."""
    for r in range(rows.shape[0]):
        total = 0.0
        for k in range(rows.shape[1]):
            total += worth[rows[r, k]]
        out[r] = total


@inner()
def spread(rows, weights, out):
    """Compute, for each feature, the sum of `weights` of the rows with it; 0 for padding."""
    out[:] = 0.0
    for r in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            out[rows[r, k]] += weights[r]
    out[-1] = 0.0


@inner()
def product(one, other):
    """Return the inner product of two arrays."""
    total = 0.0
    for k in range(len(one)):
        total += one[k] * other[k]
    return total


# These are loops, since operations on whole arrays take several times longer to compile.
@entry(nogil=True)
def regress(rows, values, worth, prior, penalty, iterations, tolerance):
    """Minimise |X w - values|^2 + penalty |w - prior|^2 by conjugate gradients.

    `worth` has the first weights, which are replaced by the result.
    """
    fitted, slope = np.empty(len(values)), np.empty(len(worth))
    predict(rows, worth, fitted)
    for r in range(len(values)):
        fitted[r] = values[r] - fitted[r]
    spread(rows, fitted, slope)
    for k in range(len(worth)):
        slope[k] -= penalty * (worth[k] - prior[k])
    slope[-1] = 0.0
    way = slope.copy()
    size = product(slope, slope)
    first, image = size, np.empty(len(worth))
    for _ in range(iterations):
        if size <= tolerance * first:
            break
        predict(rows, way, fitted)
        spread(rows, fitted, image)
        for k in range(len(worth)):
            image[k] += penalty * way[k]
        step = size / product(way, image)
        for k in range(len(worth)):
            worth[k] += step * way[k]
            slope[k] -= step * image[k]
        new = product(slope, slope)
        for k in range(len(worth)):
            way[k] = slope[k] + (new / size) * way[k]
        size = new


# --- climbs on the model ------------------------------------------------------------------------


@inner()
def _link(tables, group, row, a, b):
    """Return the weight of the pair of items at places a and b of an arrangement, in this order."""
    if group[PAIRS] < 0:
        return 0.0
    return tables.pairs[group[PAIRS] + row[group[FIRST] + a] * group[SIDE] + row[group[FIRST] + b]]


@inner()
def _worth_at(tables, group, place, item):
    return tables.worth[tables.first[group[FIRST] + place] + item]


@inner()
def _gain_of_move(tables, group, row, kind, a, b):
    """Return the predicted gain of a move of an arrangement."""
    size, first = group[SIZE], group[FIRST]
    low, high = min(a, b), max(a, b)
    before, after = (low - 1) % size, (high + 1) % size
    by_place = tables.by_place or group[PAIRS] < 0
    whole = low == 0 and high == size - 1
    gain = 0.0
    if kind == EXCHANGE:
        x, y = row[first + a], row[first + b]
        gain += _worth_at(tables, group, a, y) + _worth_at(tables, group, b, x)
        gain -= _worth_at(tables, group, a, x) + _worth_at(tables, group, b, y)
        for turn in range(2):
            sign = 1.0 if turn else -1.0
            gain += sign * _link(tables, group, row, low, low + 1)
            if not whole:
                gain += sign * _link(tables, group, row, before, low)
                gain += sign * _link(tables, group, row, high, after)
            elif size > 2:
                gain += sign * _link(tables, group, row, high, low)
            if high > low + 1:
                gain += sign * _link(tables, group, row, high - 1, high)
            row[first + a], row[first + b] = row[first + b], row[first + a]
        return gain
    if kind == INSERT:
        step = 1 if a < b else -1
        if by_place:
            item = row[first + a]
            gain += _worth_at(tables, group, b, item) - _worth_at(tables, group, a, item)
            for at in range(a, b, step):
                other = row[first + at + step]
                gain += _worth_at(tables, group, at, other) - _worth_at(
                    tables, group, at + step, other
                )
        if whole:
            return gain
        if a < b:
            gain += _link(tables, group, row, before, a + 1) - _link(tables, group, row, before, a)
            gain += _link(tables, group, row, b, a) - _link(tables, group, row, a, a + 1)
            gain += _link(tables, group, row, a, after) - _link(tables, group, row, b, after)
        else:
            gain += _link(tables, group, row, a - 1, after) - _link(tables, group, row, a, after)
            gain += _link(tables, group, row, a, b) - _link(tables, group, row, a - 1, a)
            gain += _link(tables, group, row, before, a) - _link(tables, group, row, before, b)
        return gain
    if by_place:
        for at in range(low, high + 1):
            item = row[first + low + high - at]
            gain += _worth_at(tables, group, at, item) - _worth_at(
                tables, group, at, row[first + at]
            )
    if tables.directed:
        for at in range(low, high):
            gain += _link(tables, group, row, at + 1, at) - _link(tables, group, row, at, at + 1)
        if whole:
            gain += _link(tables, group, row, low, high) - _link(tables, group, row, high, low)
            return gain
    if not whole:
        gain += _link(tables, group, row, before, high) - _link(tables, group, row, before, low)
        gain += _link(tables, group, row, low, after) - _link(tables, group, row, high, after)
    return gain


@inner()
def _move(group, row, kind, a, b):
    """Make a move of an arrangement, in place."""
    first = group[FIRST]
    if kind == EXCHANGE:
        row[first + a], row[first + b] = row[first + b], row[first + a]
    elif kind == INSERT:
        item, step = row[first + a], 1 if a < b else -1
        for at in range(a, b, step):
            row[first + at] = row[first + at + step]
        row[first + b] = item
    else:
        low, high = min(a, b), max(a, b)
        while low < high:
            row[first + low], row[first + high] = row[first + high], row[first + low]
            low += 1
            high -= 1


@inner()
def _worth_of(tables, group, row, item, without):
    """Return the predicted gain of choosing an item, without its pair with the item `without`."""
    total = tables.worth[tables.first[group[FIRST] + item] + 1]
    if tables.by_pair and group[PAIRS] >= 0:
        for other in range(group[SIZE]):
            if row[group[FIRST] + other] == 1 and other != item and other != without:
                low, high = min(item, other), max(item, other)
                total += tables.pairs[group[PAIRS] + low * group[SIDE] + high]
    return total


@inner()
def gain_of(tables, groups, moves, row, change):
    """Return the predicted gain of a change, which must be possible."""
    kind, a = moves.kind[change], moves.first[change]
    if kind == SINGLE:
        if moves.group[change] >= 0:
            group = groups[moves.group[change]]
            sign = -1.0 if row[a] == 1 else 1.0
            return sign * _worth_of(tables, group, row, a - group[FIRST], -1)
        new = (row[a] + moves.step[change]) % tables.cards[a]
        return tables.worth[tables.first[a] + new] - tables.worth[tables.first[a] + row[a]]
    group = groups[moves.group[change]]
    a, b = a - group[FIRST], moves.second[change] - group[FIRST]
    if group[KIND] == ARRANGEMENT:
        return _gain_of_move(tables, group, row, kind, a, b)
    out, put = (a, b) if row[group[FIRST] + a] == 1 else (b, a)
    return _worth_of(tables, group, row, put, out) - _worth_of(tables, group, row, out, -1)


@entry(nogil=True)
def possible(groups, moves, row, change):
    """Return whether a change of a list has an effect, and the list keeps a valid size.

    A move between two equal items has no effect, or that of a move between nearer places.
    """
    kind, number, a = moves.kind[change], moves.group[change], moves.first[change]
    if kind == SKIPPED:
        return False
    if kind != SINGLE:
        return row[a] != row[moves.second[change]]
    if number < 0:
        return True
    group = groups[number]
    ones = 0
    for at in range(group[FIRST], group[FIRST] + group[SIZE]):
        ones += row[at]
    return ones > group[LEAST] if row[a] == 1 else ones < group[MOST]


@entry(nogil=True)
def gains(tables, groups, moves, row, changes, out):
    """Compute the predicted gains of possible changes, 0 for changes that climbs skip."""
    for k in range(len(changes)):
        skipped = moves.kind[changes[k]] == SKIPPED
        out[k] = 0.0 if skipped else gain_of(tables, groups, moves, row, changes[k])


@entry(nogil=True)
def climb(tables, groups, moves, row, order, least):
    """Make changes that gain more than `least`, in cyclic order, until none does; in place."""
    at, failed, limit = 0, 0, 100 * len(order)
    while failed < len(order) and limit > 0:
        change = order[at]
        at = (at + 1) % len(order)
        failed += 1
        limit -= 1
        if not possible(groups, moves, row, change):
            continue
        if gain_of(tables, groups, moves, row, change) <= least:
            continue
        failed = 0
        kind, a = moves.kind[change], moves.first[change]
        if kind == SINGLE:
            row[a] = (row[a] + moves.step[change]) % tables.cards[a]
        else:
            group = groups[moves.group[change]]
            _move(group, row, kind, a - group[FIRST], moves.second[change] - group[FIRST])
