"""Tiles of the first layer's weights: products, masks, loads and stores for `registers.py`."""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    DROP_T,
    INTERPRETED,
    adam,
    below,
    word_of,
)
from anyorder.strategies.policy.engines.cuda.kernels.orders import (
    NEVER_SEEN,
)

# The type of the inputs. (Triton's interpreter multiplies matrices of float32 only.)
INPUT = tl.constexpr(tl.float32 if INTERPRETED.value else tl.bfloat16)
# Weights are stored multiplied by this, so that the lower of their two parts is no subnormal
# float16.
SCALE = tl.constexpr(64.0)


@triton.jit
def masked(rank, mine, x, hidden):
    """Return x where the top bit of the 16-bit difference rank - mine is 0, otherwise `hidden`."""
    if INTERPRETED:
        late = (rank.to(tl.int32) - mine.to(tl.int32)) & 0x8000
        return tl.where(late == 0, x, hidden)
    else:
        return tl.inline_asm_elementwise(
            """{
            .reg .b32 d;
            sub.u32 d, $1, $2;
            prmt.b32 d, d, 0, 0xBB99;
            lop3.b32 $0, d, $4, $3, 0xCA;
            }""",
            "=r,r,r,r,r",
            [rank, mine, x, hidden],
            dtype=tl.bfloat16,
            is_pure=True,
            pack=2,
        )


@triton.jit
def to_half(x):
    """Convert bfloat16 -1, 0, +1 to float16: the sign and the common bits of the exponent."""
    if INTERPRETED:
        return x
    else:
        return tl.inline_asm_elementwise(
            "and.b32 $0, $1, 0xBC00BC00;", "=r,r", [x], dtype=tl.float16, is_pure=True, pack=2
        )


@triton.jit
def two_parts(w):
    """Return two float16 whose sum is approximately w."""
    if INTERPRETED:
        return w, tl.zeros_like(w)
    else:
        return tl.inline_asm_elementwise(
            """{
            .reg .f16 h0, h1;
            .reg .f32 f0, f1;
            cvt.rn.f16x2.f32 $0, $3, $2;
            mov.b32 {h0, h1}, $0;
            cvt.f32.f16 f0, h0;
            cvt.f32.f16 f1, h1;
            sub.f32 f0, $2, f0;
            sub.f32 f1, $3, f1;
            cvt.rn.f16x2.f32 $1, f1, f0;
            }""",
            "=r,=r,f,f",
            [w],
            dtype=(tl.float16, tl.float16),
            is_pure=True,
            pack=2,
        )


@triton.jit
def opaque(x):
    """Return x, with its origin hidden from the compiler.

    The compiler would find a `join`, and choose a layout for 8-bit data for the factors of the next
    products, which the matrix loads do not support.
    """
    if INTERPRETED:
        return x
    else:
        return tl.inline_asm_elementwise(
            "mov.b32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=False, pack=1
        )


@triton.jit
def top_bits(x):
    """Return the upper 16 bits as a bfloat16, and the remainder."""
    bits = x.to(tl.int32, bitcast=True)
    top = (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
    return top, x - (bits & -65536).to(tl.float32, bitcast=True)


@triton.jit
def three_parts(x):
    """Return three bfloat16 whose sum is exactly x."""
    if INTERPRETED:
        return x, tl.zeros_like(x), tl.zeros_like(x)
    else:
        a, rest = top_bits(x)
        b, rest = top_bits(rest)
        c, rest = top_bits(rest)
        return a, b, c


@triton.jit
def forward_product(high, low, x, acc):
    """Return the product of weights in two parts and inputs, added to `acc`."""
    return tl.dot(high, x, acc=tl.dot(low, x, acc=acc))


@triton.jit
def backward_product(a, b, c, x):
    """Return the product of slopes in three parts and inputs."""
    return tl.dot(a, x, acc=tl.dot(b, x, acc=tl.dot(c, x)))


@triton.jit
def halves(x, W: tl.constexpr, H: tl.constexpr, N: tl.constexpr):
    """Return the upper and the lower half of the rows of (W, 2 H, N)."""
    return tl.split(tl.permute(tl.reshape(x, (W, 2, H, N)), (0, 2, 3, 1)))


@triton.jit
def stacked(upper, lower, W: tl.constexpr, H: tl.constexpr, N: tl.constexpr):
    """Return the halves that `halves` returned, joined."""
    return tl.reshape(tl.permute(tl.join(upper, lower), (0, 3, 1, 2)), (W, 2 * H, N))


@triton.jit
def sum_of_parts(y, FOLD: tl.constexpr, W: tl.constexpr, N: tl.constexpr):
    """Return the sum of the FOLD parts of 16 rows, in the place of each part."""
    y = tl.reshape(y, (W, FOLD, 16 // FOLD, N))
    y = tl.broadcast_to(tl.sum(y, 1)[:, None], (W, FOLD, 16 // FOLD, N))
    return tl.reshape(y, (W, 16, N))


@triton.jit
def frozen_forward(a, w):
    """Return activations times a matrix in two parts, which is stored multiplied by `SCALE`."""
    high, low = two_parts(a)
    return tl.dot(high, w[0], acc=tl.dot(low, w[0], acc=tl.dot(high, w[1]))) * (1.0 / SCALE)


@triton.jit
def frozen_backward(delta, w):
    """Return slopes, which may be of any size, times a matrix in three parts."""
    a, b, c = three_parts(delta)
    small = tl.dot(b, w[1], acc=tl.dot(c, w[0], acc=tl.dot(a, w[2])))
    return tl.dot(a, w[0], acc=tl.dot(b, w[0], acc=tl.dot(a, w[1], acc=small)))


@triton.jit
def inputs_of_lot(points, tables, hidden, f, c, i, n, F, B, GRAPH: tl.constexpr):
    """Return the inputs of one lot before masking; those that i never sees are hidden."""
    inside = (c < B) & (f < F)
    own = tl.load(tables.owner + f, mask=f < F, other=0)
    code = tl.load(points + c * n + own, mask=inside, other=-1)
    base = tl.load(tables.code_base + f, mask=f < F, other=0)
    seen = inside & (code >= 0)
    if GRAPH:
        seen = seen & (tl.load(tables.graph + i * n + own, mask=f < F, other=0) != 0)
    x = tl.load(tables.codes + base + code, mask=seen, other=0.0)
    return tl.where(seen, x, tl.where(inside, hidden, 0.0)).to(INPUT)


@triton.jit
def dropped(rank, owner, f, c, i, seed, generation, epoch, drops, n, F):
    """Return ranks in which inputs that structural dropout drops are never visible."""
    own = tl.load(owner + f, mask=f < F, other=0)
    purpose = DROP_T + 256 * epoch
    word = word_of(seed, c, generation, purpose, i * ((n + 3) // 4 * 4) + own + 0 * c)
    hide = below(word, drops) & (f < F)
    return tl.where(hide, NEVER_SEEN, rank.to(tl.int32) & 0xFFFF).to(tl.int16)


@triton.jit
def lots_of(first, L: tl.constexpr, T: tl.constexpr):
    """Return the inputs of each lot, on the last axis; `first` is the first input of each warp."""
    out = ()
    for k in tl.static_range(L):
        out = out + (first + k * T + tl.arange(0, T),)
    return out


@triton.jit
def load_tiles(at, row, lots, f_m, u_m, k_m, width, F, scale, L: tl.constexpr):
    """Return the tiles of the first layer: one for every lot, and the folded one."""
    out = ()
    for k in tl.static_range(L):
        inside = (row < width) & (lots[k] < F)
        out = out + (tl.load(at + row * F + lots[k], mask=inside, other=0.0) * scale,)
    return out + (tl.load(at + u_m * F + f_m, mask=k_m, other=0.0) * scale,)


@triton.jit
def store_tiles(at, tiles, row, lots, f_m, u_m, k_m, width, F, scale, L: tl.constexpr):
    """Store the tiles that `load_tiles` returns."""
    for k in tl.static_range(L):
        inside = (row < width) & (lots[k] < F)
        tl.store(at + row * F + lots[k], tiles[k] * scale, mask=inside)
    tl.store(at + u_m * F + f_m, tiles[L] * scale, mask=k_m)


@triton.jit
def load_ranks(rank, candidate, lots, L: tl.constexpr):
    """Return the ranks of the inputs of every lot."""
    out = ()
    for k in tl.static_range(L):
        out = out + (tl.load(rank + candidate + lots[k]),)
    return out


@triton.jit
def repeated(x, L: tl.constexpr):
    """Return a tuple with L times the same tensor."""
    out = ()
    for _ in tl.static_range(L):
        out = out + (x,)
    return out


@triton.jit
def all_masked(ranks, mine, x, hidden, L: tl.constexpr):
    """Return the result of `masked` for every lot."""
    out = ()
    for k in tl.static_range(L):
        out = out + (masked(ranks[k], mine, x[k], hidden),)
    return out


@triton.jit
def by_warps(x, W: tl.constexpr, C: tl.constexpr, T: tl.constexpr, L: tl.constexpr):
    """Return inputs in the arrangement of the products: warps first, candidates on one axis."""
    out = ()
    for k in tl.static_range(L):
        out = out + (tl.reshape(tl.permute(x[k], (1, 2, 0, 3)), (W, C, T)),)
    return out


@triton.jit
def all_dropped(ranks, owner, lots, c, i, seed, generation, epoch, drops, n, F, L: tl.constexpr):
    """Return the result of `dropped` for every lot."""
    out = ()
    for k in tl.static_range(L):
        rank = dropped(ranks[k], owner, lots[k], c, i, seed, generation, epoch, drops, n, F)
        out = out + (rank,)
    return out


@triton.jit
def first_layer_sums(
    w, x, part, FOLD: tl.constexpr, L: tl.constexpr, W: tl.constexpr, C: tl.constexpr
):
    """Return the contribution of each warp's inputs to the units: (W, 32, C)."""
    z = tl.zeros((W, 16, C), tl.float32)
    zero = z
    y = z
    high_m, low_m = two_parts(w[L])
    turned = ()  # all of them first: each uses shared memory, and in this way they synchronise once
    for k in tl.static_range(L):
        turned = turned + (tl.trans(to_half(x[k]), (0, 2, 1)),)
    for k in tl.static_range(L):
        high, low = two_parts(w[k])
        z = forward_product(high, low, turned[k], z)
        y = tl.where(part == k, forward_product(high_m, low_m, turned[k], zero), y)
    return stacked(z, sum_of_parts(y, FOLD, W, C), W, 16, C)


@triton.jit
def first_layer_step(w, m, v, delta, x, part, beta1, beta2, rate, eps, FULL: tl.constexpr,
                     STORED: tl.constexpr, L: tl.constexpr, W: tl.constexpr, C: tl.constexpr,
                     T: tl.constexpr):  # fmt: skip
    """Take a step of Adam on the first layer's weights; `delta` is (C, 32).

    With STORED the second moments are in memory at `v`, and only weights and first moments are
    returned.
    """
    if W >= 4 and not FULL:  # cut into parts once, not by every warp
        p1, p2, p3 = three_parts(delta)
        d_1 = tl.broadcast_to(tl.trans(p1)[None], (W, 32, C))
        d_2 = tl.broadcast_to(tl.trans(p2)[None], (W, 32, C))
        d_3 = tl.broadcast_to(tl.trans(p3)[None], (W, 32, C))
    else:
        d_1, d_2, d_3 = three_parts(tl.broadcast_to(tl.trans(delta)[None], (W, 32, C)))
    w_, m_, v_ = (), (), ()
    g_m = tl.zeros((W, 16, T), tl.float32)
    for k in tl.static_range(L):
        g, folded = halves(backward_product(d_1, d_2, d_3, x[k]), W, 16, T)
        g_m = tl.where(part == k, folded, g_m)
        if STORED:
            a, b, c = adam(w[k], m[k], stored_tile(v, k, W, T), g, beta1, beta2, rate, eps, True)
            store_tile(v, k, c, W, T)
        else:
            a, b, c = adam(w[k], m[k], v[k], g, beta1, beta2, rate, eps, True)
            v_ = v_ + (c,)
        w_, m_ = w_ + (a,), m_ + (b,)
    if STORED:
        a, b, c = adam(w[L], m[L], stored_tile(v, L, W, T), g_m, beta1, beta2, rate, eps, True)
        store_tile(v, L, c, W, T)
        return w_ + (a,), m_ + (b,)
    else:
        a, b, c = adam(w[L], m[L], v[L], g_m, beta1, beta2, rate, eps, True)
        return w_ + (a,), m_ + (b,), v_ + (c,)


# --- tiles in memory ------------------------------------------------------------------------------
#
# Each thread should have the same entries of a tile that it has in the result layout of the matrix
# units, so that no layout is converted. In that layout, lane 4 a + b of a warp has the entries in
# rows a and a + 8 and in columns 8 k + 2 b and 8 k + 2 b + 1. Of an array (T / 8, W, 128) the
# compiler gives each thread four consecutive numbers and each warp its own rows of 128, which are
# the entries of one k.


@triton.jit
def _places(W: tl.constexpr, T: tl.constexpr):
    """Return the places in memory of the entries of a tile, (T / 8, W, 128)."""
    first = tl.arange(0, T // 8)[:, None, None] * W + tl.arange(0, W)[None, :, None]
    return first * 128 + tl.arange(0, 128)[None, None, :]


@triton.jit
def stored_tile(at, k: tl.constexpr, W: tl.constexpr, T: tl.constexpr):
    """Return the k-th of the tiles at `at`, (W, 16, T)."""
    x = tl.load(at + k * (W * 16 * T) + _places(W, T))
    x = tl.reshape(x, (T // 8, W, 8, 4, 2, 2))
    return tl.reshape(tl.permute(x, (1, 4, 2, 0, 3, 5)), (W, 16, T))


@triton.jit
def store_tile(at, k: tl.constexpr, x, W: tl.constexpr, T: tl.constexpr):
    """Store a tile as `stored_tile` reads it."""
    x = tl.permute(tl.reshape(x, (W, 2, 8, T // 8, 4, 2)), (3, 0, 2, 4, 1, 5))
    tl.store(at + k * (W * 16 * T) + _places(W, T), tl.reshape(x, (T // 8, W, 128)))


@triton.jit
def stored_tiles(at, L: tl.constexpr, W: tl.constexpr, T: tl.constexpr):
    """Return the tiles of all lots, and the folded one."""
    out = ()
    for k in tl.static_range(L + 1):
        out = out + (stored_tile(at, k, W, T),)
    return out
