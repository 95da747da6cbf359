"""The fit of the global model to all gains, by conjugate gradients.

The model is f(x) = h.phi(x) + phi(x).J.phi(x)/2. The vector phi has the features of all variables:
-1 or 1 for a binary variable, an indicator for each value of a category, and z and z^2 for an
integer of many values, with z from -1 to 1. A change of one variable alters at most two features,
so its gain is a product of two rows of J with phi; `rows` has the two features, `steps` how much
they change.
"""

import math

import numpy as np

from anyorder._internal.compiling import entry, inner
from anyorder.strategies.models.kernels.tables import INT, slot_of
from anyorder.strategies.models.kernels.views import views
from anyorder.strategies.models.layout import FEW, INDICATORS, LINKED, NOT_LINKED, NOTHING, SPIN

CLOSE = 1e-10  # a fit ends when the squared gradient has fallen to this share of the first one
# share of the prior variance that a pair without effect in the last fit keeps: close to an L1 norm
SPARSITY = 0.02
# factor of the prior scale for pairs of binary variables, whose feature changes by 2
SPIN_SCALE = 0.7071067811865476
BLOCK = 8  # rows of a matrix that are made symmetric at a time


@inner()
def all_spins(kinds):
    """Return whether all variables are binary."""
    others = 0
    for i in range(len(kinds)):
        others += kinds[i] != SPIN
    return others == 0


@entry()
def features(kinds, first, values, x, phi):
    """Compute the features of a point into `phi`."""
    phi[:] = 0.0
    for i in range(len(x)):
        k = first[i]
        if kinds[i] == SPIN:
            phi[k] = 2.0 * x[i] - 1.0
        elif kinds[i] == INDICATORS:
            phi[k + x[i]] = 1.0
        elif kinds[i] != NOTHING:
            z = 2.0 * x[i] / (values[i] - 1.0) - 1.0
            phi[k], phi[k + 1] = z, z * z


@inner()
def rows_of(kinds, first, values, i, now, new):
    """Return the two features that a change of variable i alters, each followed by its step."""
    k = first[i]
    if kinds[i] == SPIN:
        return k, 2.0 * (new - now), k, 0.0
    if kinds[i] == INDICATORS:
        return k + new, 1.0, k + now, -1.0
    scale = 2.0 / (values[i] - 1.0)
    a, b = now * scale - 1.0, new * scale - 1.0
    return k, b - a, k + 1, b * b - a * a


@inner(fastmath=True)
def gain_of(J, h, phi, row1, step1, row2, step2):
    """Return the gain of a change that the model predicts."""
    total = step1 * h[row1] + step2 * h[row2]
    one, two = np.float32(0.0), np.float32(0.0)
    for k in range(len(phi)):
        one += J[row1, k] * phi[k]
    if step2 != 0.0:
        for k in range(len(phi)):
            two += J[row2, k] * phi[k]
    return total + step1 * one + step2 * two


@inner()
def note(
    kinds, first, values, x, J, h, rows, steps, phis, gains, changes, levels, k, i, new, value, f,
):  # fmt: skip
    """Write observation k, a change from `value` to f; return the gain that the model predicts."""
    row1, step1, row2, step2 = rows_of(kinds, first, values, i, x[i], new)
    steps[k] = 0.0
    rows[k, 0], rows[k, 1] = row1, row2
    steps[k, 0], steps[k, 1] = step1, step2
    gains[k] = f - value
    changes[k, 0], changes[k, 1], changes[k, 2] = i, x[i], new
    levels[k, 0], levels[k, 1] = value, f
    features(kinds, first, values, x, phis[k])
    return gain_of(J, h, phis[k], row1, step1, row2, step2)


@entry()
def note_several(
    kinds, first, values, x, y, rows, steps, phis, gains, changes, levels, k, value, f,
):  # fmt: skip
    """Write observation k, the values of f at x (`value`) and y (`f`); return whether it counts.

    It does not count if too many features change, or a variable without features.

    With the features phi of x and psi of y, the gain is (psi - phi).(h + J (phi + psi) / 2). It is
    divided by the root of the number of variables that change, with which its error grows.
    """
    phi, psi = phis[k], np.empty(phis.shape[1], np.float32)
    features(kinds, first, values, x, phi)
    features(kinds, first, values, y, psi)
    changed, count = 0, 0
    for i in range(len(x)):
        if kinds[i] == NOTHING and x[i] != y[i]:
            return False
        changed += x[i] != y[i]
    for a in range(len(phi)):
        count += phi[a] != psi[a]
    if count > rows.shape[1] or changed == 0:
        return False
    scale = 1.0 / math.sqrt(changed)
    steps[k] = 0.0
    count = 0
    for a in range(len(phi)):
        if phi[a] != psi[a]:
            rows[k, count], steps[k, count] = a, scale * (psi[a] - phi[a])
            count += 1
        phi[a] = 0.5 * (phi[a] + psi[a])
    gains[k] = scale * (f - value)
    changes[k, 0], changes[k, 1], changes[k, 2] = -changed, 0, 0
    levels[k, 0], levels[k, 1] = value, f
    return True


@entry(fastmath=True)
def apply(rows, steps, phis, count, J, h, out):
    """Compute the gains that J and h predict, into `out`.

    Parts of the arrays have no names: each name would be counted as a reference, which takes longer
    than the product of two short rows.
    """
    for e in range(count):
        total = np.float32(0.0)
        for side in range(rows.shape[1]):
            step = steps[e, side]
            if step == 0.0:  # the rest of the row is empty
                break
            row, product = rows[e, side], np.float32(0.0)
            for k in range(phis.shape[1]):
                product += J[row, k] * phis[e, k]
            total += step * (h[row] + product)
        out[e] = total


@inner(fastmath=True)
def apply_transposed(rows, steps, phis, count, weights, J, h):
    """Compute the gradient with respect to J, which is symmetric, and h."""
    J[:] = 0.0
    h[:] = 0.0
    for e in range(count):
        for side in range(rows.shape[1]):
            if steps[e, side] == 0.0:
                break
            w, row = np.float32(weights[e] * steps[e, side]), rows[e, side]
            h[row] += w
            for k in range(phis.shape[1]):
                J[row, k] += w * phis[e, k]
    symmetrise(J)


@inner()
def symmetrise(J):
    """Replace J by J + J.T, with 0 on the diagonal.

    A few rows are replaced at a time, since whole columns of a large J miss the cache.
    """
    m = len(J)
    for top in range(0, m, BLOCK):
        bottom = min(top + BLOCK, m)
        for b in range(bottom):
            for a in range(max(top, b + 1), bottom):
                J[a, b] = J[b, a] = J[a, b] + J[b, a]
    for a in range(m):
        J[a, a] = 0.0


@entry(fastmath=True)
def fit(rows, steps, phis, gains, count, J, h, scales, scale_h, noise, iterations):
    """Fit J and h to the gains: ridge regression with prior deviations `scales` and `scale_h`.

    `scales` is (m, m), 0 where J is 0. J and h are changed in place.
    """
    m = len(h)
    residual = np.empty(count, np.float32)
    gradient, gradient_h = np.empty((m, m), np.float32), np.empty(m, np.float32)
    u, uh = np.empty((m, m), np.float32), np.empty(m, np.float32)
    for a in range(m):
        uh[a] = h[a] / scale_h
        for b in range(m):
            u[a, b] = J[a, b] / scales[a, b] if scales[a, b] > 0.0 else 0.0
            J[a, b] = u[a, b] * scales[a, b]
    weight = np.float32(1.0 / (noise * noise))
    apply(rows, steps, phis, count, J, h, residual)
    for e in range(count):
        residual[e] = (gains[e] - residual[e]) * weight
    apply_transposed(rows, steps, phis, count, residual, gradient, gradient_h)
    r, rh = np.empty((m, m), np.float32), np.empty(m, np.float32)
    squares, squares_h = np.empty((m, m), np.float32), np.empty(m, np.float32)
    change = np.empty(m, np.float32)
    for a in range(m):
        rh[a] = gradient_h[a] * scale_h - uh[a]
        squares_h[a] = rh[a] * rh[a]
        for b in range(m):
            r[a, b] = gradient[a, b] * scales[a, b] - u[a, b]
            squares[a, b] = r[a, b] * r[a, b]
    p, ph = r.copy(), rh.copy()
    square = 0.5 * np.sum(squares) + np.sum(squares_h)
    start = square
    for iteration in range(iterations):
        curvature = scale_direction(p, ph, scales, scale_h, J, h)
        apply(rows, steps, phis, count, J, h, residual)
        for e in range(count):
            curvature += weight * residual[e] * residual[e]
            residual[e] *= weight
        if curvature <= 0.0 or square <= CLOSE * start or square <= 0.0:
            break
        length = np.float32(square / curvature)
        if iteration == iterations - 1:  # the residual is not needed after the last step
            change[:] = 0.0
            step_along_h(uh, ph, rh, change, length)
            for a in range(m):
                for b in range(m):
                    u[a, b] += length * p[a, b]
            break
        apply_transposed(rows, steps, phis, count, residual, gradient, gradient_h)
        before = square
        square = step_along(u, r, p, gradient, scales, length)
        for a in range(m):
            change[a] = length * (gradient_h[a] * scale_h + ph[a])
        step_along_h(uh, ph, rh, change, length)
        for a in range(m):
            squares_h[a] = rh[a] * rh[a]
        square += np.sum(squares_h)
        turn = np.float32(square / before)
        for a in range(m):
            ph[a] = rh[a] + turn * ph[a]
            for b in range(m):
                p[a, b] = r[a, b] + turn * p[a, b]
    for a in range(m):
        h[a] = uh[a] * scale_h
        for b in range(m):
            J[a, b] = u[a, b] * scales[a, b]


@inner()
def step_along_h(uh, ph, rh, change, length):
    """Do what `step_along` does, but for h, whose residual falls by `change`.

    Without `fastmath`, so that all processors round a product before they add it.
    """
    for a in range(len(uh)):
        uh[a] += length * ph[a]
        rh[a] -= change[a]


@inner(fastmath=True)
def scale_direction(p, ph, scales, scale_h, J, h):
    """Put the direction, in the units of the model, into J and h; return its squared length."""
    square, square_h = np.float32(0.0), np.float32(0.0)
    for a in range(len(h)):
        h[a] = ph[a] * scale_h
        square_h += ph[a] * ph[a]
        for b in range(len(h)):
            J[a, b] = p[a, b] * scales[a, b]
            square += p[a, b] * p[a, b]
    return 0.5 * square + square_h


@inner(fastmath=True)
def step_along(u, r, p, gradient, scales, length):
    """Take a step of conjugate gradients; return the squared length of the new residual."""
    square = np.float32(0.0)
    for a in range(len(u)):
        for b in range(len(u)):
            u[a, b] += length * p[a, b]
            r[a, b] -= length * (gradient[a, b] * scales[a, b] + p[a, b])
            square += r[a, b] * r[a, b]
    return 0.5 * square


@inner()
def prior_scale(mean_square, scale_i, scale_j, total):
    """Return the prior standard deviation of the effect of a pair of variables of these scales.

    `total` is the sum of the scales of all variables.
    """
    return math.sqrt(mean_square * scale_i * scale_j / total)


@inner()
def pair_scale(state, prior, effect, fitted):
    """Return the prior standard deviation of a pair.

    `effect` is the effect in the last fit, if the model was `fitted` before.
    """
    scale = math.sqrt(prior * (effect + SPARSITY * prior)) if fitted else prior
    scale = max(prior, effect) if state == LINKED else scale
    return 0.0 if state == NOT_LINKED else scale


@entry()
def set_scales(shape, integers, floats, kinds, first, J, mean_square, fitted, scales):
    """Set prior standard deviations of J by the variables' scales, the last fit and the links."""
    v = views(shape, integers, floats)
    n, total = len(v.x), 0.0
    for i in range(n):
        total += v.scale[i]
    spins = all_spins(kinds)
    for i in range(n):
        if spins:  # with one feature for each variable, this loop is vectorised
            for j in range(n):
                prior = prior_scale(mean_square, v.scale[i], v.scale[j], total) * SPIN_SCALE
                effect = math.sqrt(np.float64(J[i, j] ** 2))
                scales[i, j] = pair_scale(v.link[i, j], prior, effect, fitted)
            scales[i, i] = 0.0
            continue
        for j in range(n):
            scale = 0.0
            if i != j and v.link[i, j] != NOT_LINKED:
                prior = prior_scale(mean_square, v.scale[i], v.scale[j], total)
                if kinds[i] == SPIN and kinds[j] == SPIN:
                    prior *= SPIN_SCALE
                square = 0.0
                for a in range(first[i], first[i + 1]):
                    for b in range(first[j], first[j + 1]):
                        square += J[a, b] ** 2
                count = (first[i + 1] - first[i]) * (first[j + 1] - first[j])
                scale = pair_scale(v.link[i, j], prior, math.sqrt(square / max(count, 1)), fitted)
            for a in range(first[i], first[i + 1]):
                for b in range(first[j], first[j + 1]):
                    scales[a, b] = scale


@inner()
def effect_of(kinds, first, J, i, a1, b1, j, a2, b2):
    """Return the effect of a change of j on the gain of a change of i: a second difference."""
    p, q = first[i], first[j]
    if kinds[i] == SPIN and kinds[j] == SPIN:
        return 4.0 * J[p, q]
    if kinds[i] == SPIN:
        return 2.0 * (J[p, q + b2] - J[p, q + a2])
    if kinds[j] == SPIN:
        return 2.0 * (J[p + b1, q] - J[p + a1, q])
    return J[p + b1, q + b2] - J[p + a1, q + b2] - J[p + b1, q + a2] + J[p + a1, q + a2]


@entry()
def import_effects(shape, integers, floats, kinds, first, J, mean_square, share, least):
    """Replace M by the effects of the global model where M is not certain.

    `share` is the squared error of the model, relative to that of predicting 0; variances up to
    `least` count as 0.
    """
    v = views(shape, integers, floats)
    n, total = len(v.x), 0.0
    for i in range(n):
        total += v.scale[i]
    for i in range(n):
        for j in range(i):
            if v.link[i, j] == NOT_LINKED or v.kind[i] != FEW or v.kind[j] != FEW:
                continue
            variance = mean_square * v.scale[i] * v.scale[j] / total * min(1.0, share)
            for b1 in range(INT(v.values[i])):
                for a1 in range(b1):
                    s = slot_of(v, i, a1, b1)
                    for b2 in range(INT(v.values[j])):
                        for a2 in range(b2):
                            t = slot_of(v, j, a2, b2)
                            if v.variance[s, t] > least or v.link[i, j] != LINKED:
                                mean = effect_of(kinds, first, J, i, a1, b1, j, a2, b2)
                                v.mean[s, t] = v.mean[t, s] = mean
                                v.variance[s, t] = v.variance[t, s] = variance
