"""The rest of a network in `registers.py`: all parameters but the first layer's weights.

These are the biases of the first layer, and the weights and biases of the output layer. Units are
an axis of 32 places, and candidates an axis of C. Outputs are a tuple of one vector per logit: a
third axis would cost layout conversions. The parameters are vectors, of which every warp has a
copy, or columns of tiles, of which every thread has one entry (`rest_indices`). With SPARE, no unit
uses place 31: its activation is 1 and its weights are the biases of the outputs, which then need no
separate sums over candidates.
"""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import adam, product


@triton.jit
def sum_last(z, P: tl.constexpr, Q: tl.constexpr, N: tl.constexpr):
    """Return the sum of (P, Q, N) over its last axis; with `split` one thread holds the axis."""
    if N == 1:
        return tl.reshape(z, (P, Q))
    else:
        a, b = tl.split(tl.reshape(z, (P, Q, N // 2, 2)))
        return sum_last(a + b, P, Q, N // 2)


@triton.jit
def rest_indices(at_1, at_2, unit, last, HIDDEN: tl.constexpr, LAST: tl.constexpr, D: tl.constexpr,
             Q: tl.constexpr, K: tl.constexpr, SPARE: tl.constexpr):  # fmt: skip
    """Return the indices of the other parameters, a mask of those that exist, and their kinds.

    Column 0 holds the biases of the trained units. Each output has a column of weights; its bias is
    in place 31 of that column with SPARE, otherwise in every place of the next column. There are K
    tiles of Q columns, or K vectors if Q is 1.
    """
    index, there, kind = (), (), ()
    for k in tl.static_range(K):
        if Q == 1:
            u, last_u, place = unit, last, tl.arange(0, 32)
            column = tl.full((32,), k, tl.int32)
        else:
            u, last_u, place = unit[:, None], last[:, None], tl.arange(0, 32)[:, None]
            column = k * Q + tl.arange(0, Q)[None, :]
        if SPARE:
            output, bias = column - 1, place == 31
        else:
            output, bias = (column - 1) // 2, column % 2 == 0
        at = tl.where(bias, at_2 + LAST * D + output, at_2 + output * LAST + last_u)
        index = index + (tl.where(column == 0, at_1 + u, at),)
        inside = tl.where(column == 0, u < HIDDEN, (last_u < LAST) | bias)
        there = there + (inside & (output < D),)
        kind = kind + (tl.where(column == 0, 0, tl.where(bias, 2, 1)),)
    return index, there, kind


@triton.jit
def load_rest(start, at, there, scale, K: tl.constexpr):
    """Return the parameters, or their moments, in K tensors."""
    out = ()
    for k in tl.static_range(K):
        out = out + (tl.load(start + at[k], mask=there[k], other=0.0) * scale,)
    return out


@triton.jit
def scale_all(values, scale, K: tl.constexpr):
    """Return each of K tensors times a number."""
    out = ()
    for k in tl.static_range(K):
        out = out + (values[k] * scale,)
    return out


@triton.jit
def _four_columns(tile):
    a, b = tl.split(tl.reshape(tile, (32, 2, 2)))
    c_0, c_2 = tl.split(a)
    c_1, c_3 = tl.split(b)
    return c_0, c_1, c_2, c_3


@triton.jit
def columns_of(tiles, Q: tl.constexpr, K: tl.constexpr):
    """Return the columns of all tiles, as vectors."""
    out = ()
    for k in tl.static_range(K):
        if Q == 1:
            out = out + (tiles[k],)
        elif Q == 4:
            out = out + _four_columns(tiles[k])
        else:
            a, b = tl.split(tl.reshape(tiles[k], (32, 4, 2)))
            c_0, c_2, c_4, c_6 = _four_columns(a)
            c_1, c_3, c_5, c_7 = _four_columns(b)
            out = out + (c_0, c_1, c_2, c_3, c_4, c_5, c_6, c_7)
    return out


@triton.jit
def _tile_of(x, k: tl.constexpr, Q: tl.constexpr, C: tl.constexpr):
    """Return Q of the columns x, each (C, 32), from column k on, as one tensor (32, Q, C)."""
    a = tl.join(tl.join(x[k], x[k + 1]), tl.join(x[k + 2], x[k + 3]))
    if Q == 4:
        return tl.reshape(tl.permute(a, (1, 3, 2, 0)), (32, 4, C))
    else:
        b = tl.join(tl.join(x[k + 4], x[k + 5]), tl.join(x[k + 6], x[k + 7]))
        return tl.reshape(tl.permute(tl.join(a, b), (1, 4, 3, 2, 0)), (32, 8, C))


@triton.jit
def logits_of(a, columns, once, D: tl.constexpr, SPARE: tl.constexpr):
    """Return logits from activations; `once` is set so that each unit is counted once.

    With SPARE the bias is a weight.
    """
    out = ()
    for k in tl.static_range(D):
        if SPARE:
            w = tl.where(once | (tl.arange(0, 32) == 31), columns[k + 1], 0.0)[None, :]
            out = out + (tl.sum(product(a, w), 1),)
        else:
            w = tl.where(once, columns[2 * k + 1], 0.0)[None, :]
            bias = tl.where(tl.arange(0, 32) == 0, columns[2 * k + 2], 0.0)[None, :]
            out = out + (tl.sum(a * w + bias, 1),)
    return out


@triton.jit
def slopes_below(slopes, columns, D: tl.constexpr, SPARE: tl.constexpr):
    """Return the slopes propagated back through the weights of the outputs."""
    STEP: tl.constexpr = 1 if SPARE else 2
    out = slopes[0][:, None] * columns[1][None, :]
    for k in tl.static_range(1, D):
        out += slopes[k][:, None] * columns[STEP * k + 1][None, :]
    return out


@triton.jit
def rest_gradients(delta, slopes, a, D: tl.constexpr, Q: tl.constexpr, K: tl.constexpr,
               C: tl.constexpr, SPARE: tl.constexpr):  # fmt: skip
    """Return gradients, which are sums over candidates, in the arrangement of `rest_indices`."""
    x = (delta,)
    for k in tl.static_range(D):
        s = tl.broadcast_to(slopes[k][:, None], a.shape)
        x = x + (s * a,)
        if not SPARE:
            x = x + (s,)
    if Q == 1:
        return _sums_over_candidates(x, 0, K)
    else:
        for _ in tl.static_range(2 * D + 1, K * Q):
            x = x + (tl.zeros_like(delta),)
        out = ()
        for k in tl.static_range(K):
            out = out + (sum_last(_tile_of(x, k * Q, Q, C), 32, Q, C),)
        return out


@triton.jit
def _sums_over_candidates(x, k: tl.constexpr, K: tl.constexpr):
    """Return sums of the entries of x, from number k on.

    A sum synchronises the warps, so several are computed in one.
    """
    if k == K:
        return ()
    elif K - k == 1:
        return (tl.sum(x[k], 0),)
    elif K - k == 2:
        return tl.reduce((x[k], x[k + 1]), 0, _add_2)
    elif K - k == 3:
        return tl.reduce((x[k], x[k + 1], x[k + 2]), 0, _add_3)
    else:
        out = tl.reduce((x[k], x[k + 1], x[k + 2], x[k + 3]), 0, _add_4)
        return out + _sums_over_candidates(x, k + 4, K)


@triton.jit
def _add_2(a0, a1, b0, b1):
    return a0 + b0, a1 + b1


@triton.jit
def _add_3(a0, a1, a2, b0, b1, b2):
    return a0 + b0, a1 + b1, a2 + b2


@triton.jit
def _add_4(a0, a1, a2, a3, b0, b1, b2, b3):
    return a0 + b0, a1 + b1, a2 + b2, a3 + b3


@triton.jit
def step_rest(w, m, v, g, kind, beta1, beta2, rate_b, rate_2, rate_c, eps, K: tl.constexpr):
    """Return the rest of the parameters and their moments after a step of Adam."""
    w_, m_, v_ = (), (), ()
    for k in tl.static_range(K):
        rate = rate_of(kind[k], rate_b, rate_2, rate_c)
        a, b, c = adam(w[k], m[k], v[k], g[k], beta1, beta2, rate, eps)
        w_, m_, v_ = w_ + (a,), m_ + (b,), v_ + (c,)
    return w_, m_, v_


@triton.jit
def rate_of(kind, rate_b, rate_2, rate_c):
    """Return the learning rate per kind: first biases, output weights, output biases."""
    return tl.where(kind == 0, rate_b, tl.where(kind == 1, rate_2, rate_c))
