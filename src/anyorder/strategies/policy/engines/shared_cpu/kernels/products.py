"""Products of matrices, and operations on rows.

A matrix is given by an array and its first row there. Views of arrays and tuples of arrays cost
atomic reference counts wherever they are made or passed on, and threads wait for each other at
these.
"""

from __future__ import annotations

from anyorder.strategies.policy.engines.kernels import (
    FMA,
    INDEX,
    ONE,
    SUM,
    ZERO,
    NoAlias,
    jit,
    tanh,
)


@jit(fastmath=FMA, pipeline_class=NoAlias)
def product(c, c0, a, a0, b, b0, start, z, rows, depth, width):
    """Compute C = a b, plus row z of `start` in each row; rows and depth are in whole fours.

    Four rows by four of the depth are done at a time: 16 multiply-adds, in chains without separate
    additions, for 8 loads and 4 stores.
    """
    z = z & INDEX
    for four in range(0, rows, 4):
        r, u = (c0 + four) & INDEX, (a0 + four) & INDEX
        for j in range(width):
            first = start[z, j]
            c[r, j], c[r + 1, j], c[r + 2, j], c[r + 3, j] = first, first, first, first
        for other in range(0, depth, 4):
            k, v = other & INDEX, (b0 + other) & INDEX
            p0, p1, p2, p3 = a[u, k], a[u, k + 1], a[u, k + 2], a[u, k + 3]
            q0, q1, q2, q3 = a[u + 1, k], a[u + 1, k + 1], a[u + 1, k + 2], a[u + 1, k + 3]
            s0, s1, s2, s3 = a[u + 2, k], a[u + 2, k + 1], a[u + 2, k + 2], a[u + 2, k + 3]
            t0, t1, t2, t3 = a[u + 3, k], a[u + 3, k + 1], a[u + 3, k + 2], a[u + 3, k + 3]
            for j in range(width):
                x0, x1, x2, x3 = b[v, j], b[v + 1, j], b[v + 2, j], b[v + 3, j]
                c[r, j] = c[r, j] + p0 * x0 + p1 * x1 + p2 * x2 + p3 * x3
                c[r + 1, j] = c[r + 1, j] + q0 * x0 + q1 * x1 + q2 * x2 + q3 * x3
                c[r + 2, j] = c[r + 2, j] + s0 * x0 + s1 * x1 + s2 * x2 + s3 * x3
                c[r + 3, j] = c[r + 3, j] + t0 * x0 + t1 * x1 + t2 * x2 + t3 * x3


@jit(fastmath=FMA, pipeline_class=NoAlias)
def add_turned_product(c, c0, a, a0, b, b0, rows, depth, width):
    """Compute C += a^T b; rows (of c) and depth in whole fours."""
    for four in range(0, rows, 4):
        i, r = four & INDEX, (c0 + four) & INDEX
        for other in range(0, depth, 4):
            u, v = (a0 + other) & INDEX, (b0 + other) & INDEX
            p0, q0, s0, t0 = a[u, i], a[u, i + 1], a[u, i + 2], a[u, i + 3]
            p1, q1, s1, t1 = a[u + 1, i], a[u + 1, i + 1], a[u + 1, i + 2], a[u + 1, i + 3]
            p2, q2, s2, t2 = a[u + 2, i], a[u + 2, i + 1], a[u + 2, i + 2], a[u + 2, i + 3]
            p3, q3, s3, t3 = a[u + 3, i], a[u + 3, i + 1], a[u + 3, i + 2], a[u + 3, i + 3]
            for j in range(width):
                x0, x1, x2, x3 = b[v, j], b[v + 1, j], b[v + 2, j], b[v + 3, j]
                c[r, j] = c[r, j] + p0 * x0 + p1 * x1 + p2 * x2 + p3 * x3
                c[r + 1, j] = c[r + 1, j] + q0 * x0 + q1 * x1 + q2 * x2 + q3 * x3
                c[r + 2, j] = c[r + 2, j] + s0 * x0 + s1 * x1 + s2 * x2 + s3 * x3
                c[r + 3, j] = c[r + 3, j] + t0 * x0 + t1 * x1 + t2 * x2 + t3 * x3


@jit(fastmath=FMA, pipeline_class=NoAlias)
def add_row_product(c, c0, a, a0, b, b0, depth, width):
    """Compute c[c0] += a[a0] b; depth in whole fours."""
    c0, a0 = c0 & INDEX, a0 & INDEX
    for other in range(0, depth, 4):
        k, v = other & INDEX, (b0 + other) & INDEX
        p0, p1, p2, p3 = a[a0, k], a[a0, k + 1], a[a0, k + 2], a[a0, k + 3]
        for j in range(width):
            c[c0, j] += (p0 * b[v, j] + p1 * b[v + 1, j]) + (p2 * b[v + 2, j] + p3 * b[v + 3, j])


@jit(fastmath=FMA, pipeline_class=NoAlias)
def squash(h, h0, rows, width):
    """Apply tanh in place. Padding is tanh(0) = 0."""
    for s in range(rows):
        r = (h0 + s) & INDEX
        for k in range(width):
            h[r, k] = tanh(h[r, k])


@jit(fastmath=FMA, pipeline_class=NoAlias)
def through_tanh(d, d0, h, h0, total, t, rows, width):
    """Multiply slopes d by the derivative of tanh, 1 - h^2, in place.

    Row t of `total` grows by their sum, which is a gradient of biases.
    """
    t = t & INDEX
    for s in range(rows):
        r, u = (d0 + s) & INDEX, (h0 + s) & INDEX
        for k in range(width):
            slope = d[r, k] * (ONE - h[u, k] * h[u, k])
            d[r, k] = slope
            total[t, k] += slope


@jit(forceinline=True, fastmath=FMA, pipeline_class=NoAlias)
def add_row(out, r, a, s, width, factor):
    """Compute out[r] += factor * a[s]."""
    r, s = r & INDEX, s & INDEX
    for k in range(width):
        out[r, k] += factor * a[s, k]


@jit(forceinline=True, fastmath=FMA, pipeline_class=NoAlias)
def set_row(out, r, a, s, width, factor):
    """Set out[r] to factor * a[s]."""
    r, s = r & INDEX, s & INDEX
    for k in range(width):
        out[r, k] = factor * a[s, k]


@jit(forceinline=True, fastmath=FMA, pipeline_class=NoAlias)
def copy_row(out, r, a, s, width):
    """Set out[r] to a[s]."""
    r, s = r & INDEX, s & INDEX
    for k in range(width):
        out[r, k] = a[s, k]


@jit(forceinline=True, fastmath=FMA, pipeline_class=NoAlias)
def clear_rows(out, r, rows, width):
    """Set rows r on to zero."""
    for s in range(rows):
        u = (r + s) & INDEX
        for k in range(width):
            out[u, k] = ZERO


@jit(forceinline=True, fastmath=SUM, pipeline_class=NoAlias)
def inner(a, r, b, s, width):
    """Return the inner product of a[r] and b[s]."""
    r, s = r & INDEX, s & INDEX
    total = ZERO
    for k in range(width):
        total += a[r, k] * b[s, k]
    return total
