"""The compiled loops of the Gaussian process.

All of them are plain loops. None calls BLAS, whose results depend on its number of threads.
Matrices are buffers that may be larger than the part in use; only lower triangles are read. The
entry of `weights` is w for nominal columns and columns of neighbours, and sqrt(6 w) for ordered
columns.
"""

from __future__ import annotations

import math

import numpy as np

from anyorder._internal.compiling import entry, inner
from anyorder.strategies.gp.columns import NEIGHBOURS, ORDERED, PAIR

_LARGE = 1e100  # more than any distance
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
# Sums may be reordered, so that they vectorise; infinities and NaN keep their meaning.
FAST = {"reassoc", "contract", "arcp"}


@inner(fastmath=FAST)
def apart(x, y):
    """Return the share of an item's two neighbours that are not its neighbours in another list.

    Both neighbours may be equal, as for an item that is alone: then only one of them may be in
    common with one neighbour in the other list. If both counted, x would have more in common with y
    than y with x, and the matrix of correlations would have negative eigenvalues.
    """
    a, b = x // PAIR, x % PAIR
    c, d = y // PAIR, y % PAIR
    common = 0.0
    if a == c:
        common = 1.0 if b == d else 0.5
    elif a == d:
        common = 1.0 if b == c else 0.5
    elif b in (c, d):
        common = 0.5
    return 1.0 - common


@inner(fastmath=FAST)
def distance(x, y):
    """Return how far apart two values of an ordered column are; an absent one is in the middle.

    If the correlation did not depend on y where x is absent, it would be no covariance: its matrix
    would have negative eigenvalues.
    """
    return abs((0.5 if x < 0.0 else x) - (0.5 if y < 0.0 else y))


@entry(fastmath=FAST, nogil=True)
def correlate(rows, others, weights, kinds, nominal, first, same, out):
    """Write the correlations of rows[first:] with others; up to the diagonal if both are `same`."""
    for a in range(first, rows.shape[0]):
        row = rows[a]
        for b in range(a + 1 if same else others.shape[0]):
            other = others[b]
            exponent = 0.0
            for i in range(nominal):
                exponent += weights[i] if row[i] != other[i] else 0.0
            product = 1.0
            for i in range(nominal, rows.shape[1]):
                x, y, w = row[i], other[i], weights[i]
                if x == y:
                    continue
                if kinds[i] == NEIGHBOURS:
                    exponent += w * apart(x, y)
                else:
                    if x < 0.0 or y < 0.0:
                        exponent += w * w / 6.0
                    t = w * distance(x, y)
                    exponent += t
                    product *= 1.0 + t + t * t / 3.0
                    if product > _LARGE:
                        exponent -= math.log(product)
                        product = 1.0
            out[a, b] = product * math.exp(-exponent)


@entry(fastmath=FAST, nogil=True)
def extend(correlations, noise, first, count, inverse):
    """Write rows `first` to `count` - 1 of the inverse of the Cholesky factor of a covariance.

    The covariance is correlations + 1 + noise I. Earlier rows must be there. A row depends on
    earlier rows only, so the result does not depend on how many rows are added at a time.
    """
    column, row = np.empty(count), np.empty(count)
    for k in range(first, count):
        for j in range(k):
            column[j] = correlations[k, j] + 1.0
        rest = correlations[k, k] + 1.0 + noise
        for i in range(k):
            total = 0.0
            for j in range(i + 1):
                total += inverse[i, j] * column[j]
            row[i] = total
        for i in range(k):
            rest -= row[i] * row[i]
        pivot = math.sqrt(max(rest, 0.5 * noise))  # it is at least noise, except for rounding
        for j in range(k):
            inverse[k, j] = 0.0
        for i in range(k):
            factor = row[i] / pivot
            for j in range(i + 1):
                inverse[k, j] -= factor * inverse[i, j]
        inverse[k, k] = 1.0 / pivot


@entry(fastmath=FAST, nogil=True)
def solve(inverse, count, values, out):
    """Write the solution of covariance x = values; return minus the log of the determinant."""
    half = np.zeros(count)
    total = 0.0
    for i in range(count):
        for j in range(i + 1):
            half[i] += inverse[i, j] * values[j]
        total += 2.0 * math.log(inverse[i, i])
    out[:count] = 0.0
    for i in range(count):
        for j in range(i + 1):
            out[j] += inverse[i, j] * half[i]
    return total


@entry(fastmath=FAST, nogil=True)
def slope(rows, weights, kinds, nominal, correlations, inverse, solution, variance, precision, out):
    """Write the derivatives of the likelihood by the log of each weight; return that by the noise.

    It is the log of w, even where the entry of `weights` is a root. `precision` is a buffer that
    receives the inverse of the covariance.
    """
    count = rows.shape[0]
    for i in range(count):
        precision[i, : i + 1] = 0.0
    for k in range(count):
        for i in range(k + 1):
            factor = inverse[k, i]
            for j in range(i + 1):
                precision[i, j] += factor * inverse[k, j]
    out[:] = 0.0
    trace = 0.0
    for a in range(count):
        row = rows[a]
        trace += 0.5 * (precision[a, a] - solution[a] * solution[a] / variance)
        for b in range(a):
            other = rows[b]
            share = precision[a, b] - solution[a] * solution[b] / variance
            share *= correlations[a, b]
            for i in range(nominal):
                out[i] -= share * weights[i] if row[i] != other[i] else 0.0
            for i in range(nominal, rows.shape[1]):
                x, y, w = row[i], other[i], weights[i]
                if x == y:
                    continue
                if kinds[i] == NEIGHBOURS:
                    out[i] -= share * w * apart(x, y)
                else:
                    if x < 0.0 or y < 0.0:
                        out[i] -= share * w * w / 6.0
                    t = w * distance(x, y)
                    slant = (1.0 + 2.0 * t / 3.0) / (1.0 + t + t * t / 3.0) - 1.0
                    out[i] += 0.5 * share * t * slant
    return trace


@entry(fastmath=FAST, nogil=True)
def neighbours(origin, own, points, rows, weights, kinds, nominal, solution, out, mean):
    """Write the correlations of points with rows, and their predicted means.

    `own` are the correlations of `origin`, from which the points differ in few columns.
    """
    count, known = rows.shape[0], solution.shape[0]
    # factors of the ordered column that changed last, and its index
    before, changed = np.empty(count), -1
    for c in range(points.shape[0]):
        for b in range(count):
            out[c, b] = own[b]
        for i in range(origin.shape[0]):
            old, new, w = origin[i], points[c, i], weights[i]
            if old == new:
                continue
            up, down = math.exp(w), math.exp(-w)
            if kinds[i] == ORDERED and i != changed:
                changed = i
                for b in range(count):
                    before[b] = 1.0 / matern(old, rows[b, i], w)
            for b in range(count):
                y = rows[b, i]
                if i < nominal:
                    if y == new:
                        out[c, b] *= up
                    elif y == old:
                        out[c, b] *= down
                elif kinds[i] == NEIGHBOURS:
                    out[c, b] *= math.exp(w * (apart(old, y) - apart(new, y)))
                else:
                    out[c, b] *= matern(new, y, w) * before[b]
        total = 0.0
        for b in range(known):
            total += (out[c, b] + 1.0) * solution[b]
        mean[c] = total


@inner(fastmath=FAST)
def matern(x, y, w):
    """Return the factor of an ordered column, where either value may be absent."""
    if x == y:
        return 1.0
    t = w * distance(x, y)
    presence = w * w / 6.0 if x < 0.0 or y < 0.0 else 0.0
    return (1.0 + t + t * t / 3.0) * math.exp(-t - presence)


@entry(fastmath=FAST, nogil=True)
def expect(correlations, chosen, count, inverse, mean, scale, best, deviation, out):
    """Write the deviation of the chosen points, and the log of the expected improvement."""
    column = np.empty(count)
    for k in range(chosen.shape[0]):
        c = chosen[k]
        for j in range(count):
            column[j] = correlations[c, j] + 1.0
        left = 2.0
        for i in range(count):
            total = 0.0
            for j in range(i + 1):
                total += inverse[i, j] * column[j]
            left -= total * total
        deviation[k] = scale * math.sqrt(max(left, 1e-10))
        z = (mean[c] - best) / deviation[k]
        if z > -25.0:
            density = math.exp(-0.5 * z * z - _LOG_ROOT_2PI)
            gain = math.log(density + z * 0.5 * math.erfc(-z / math.sqrt(2.0)))
        else:  # the difference of nearly equal numbers, by its series
            q = 1.0 / (z * z)
            gain = math.log(q * (1.0 - q * (3.0 - 15.0 * q))) - 0.5 * z * z - _LOG_ROOT_2PI
        out[k] = gain + math.log(deviation[k])
