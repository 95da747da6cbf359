"""Step 1 of Algorithm 1: sampling candidates, one variable after another, in one kernel.

A program samples one candidate. The values sampled so far are the vector of inputs x, which the
network of the next variable in the order reads. Gibbs sampling goes through the order several
times.
"""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    DROP_G,
    DROPS_G,
    ENDED,
    FIRST,
    GENERATION,
    ORDER_G,
    SEED,
    STATUS,
    VALUE,
    below,
    field,
    product,
    sigmoid,
    tanh,
    uniform,
    word_of,
    words,
)
from anyorder.strategies.policy.engines.cuda.kernels.objective import (
    clipped_probabilities,
    raw_probabilities,
)
from anyorder.strategies.policy.engines.cuda.kernels.orders import count_smaller


@triton.jit
def _visible(x, hidden, graph, owner, i, seed, row, generation, drops, n, F,
             GRAPH: tl.constexpr, DROP: tl.constexpr, FP: tl.constexpr):  # fmt: skip
    """Return the inputs x that variable i sees."""
    f = tl.arange(0, FP)
    if GRAPH:
        x = tl.where(tl.load(graph + i * n + owner, mask=f < F, other=0) != 0, x, hidden)
    if DROP:
        if drops > 0:
            word = word_of(seed, row, generation, DROP_G, i * ((n + 3) // 4 * 4) + owner)
            x = tl.where(below(word, drops), hidden, x)
    return x


@triton.jit
def _layer(at, x, inputs, outputs, u, FP: tl.constexpr):
    """Return the pre-activations u of the layer at `at` (weights, then biases) of one input."""
    f = tl.arange(0, FP)
    there = (u >= 0) & (u < outputs)
    inside = there[:, None] & (f < inputs)[None, :]
    weights = tl.load(at + u[:, None] * inputs + f[None, :], mask=inside, other=0.0)
    biases = tl.load(at + outputs * inputs + u, mask=there, other=0.0)
    return tl.sum(product(weights, x[None, :]), 1) + biases


@triton.jit
def _fetch(order, k, read, parameters, copy, tables, F: tl.constexpr,
           WIDTH: tl.constexpr, OP: tl.constexpr, HP: tl.constexpr, FP: tl.constexpr):  # fmt: skip
    """Return the network of the k-th variable of the order: one hidden layer, in one piece.

    Of the first layer, only the weights of inputs where `read` is not 0 are read.
    """
    i = tl.load(order + k)
    count = tl.load(tables.outputs + i)
    at = parameters + tl.load(tables.begins + i)
    f, u, o = tl.arange(0, FP), tl.arange(0, HP), tl.arange(0, OP)
    out = o
    if OP > 1:
        out = o - (count == 1).to(tl.int32)
    # a constant has no network; the values read instead are not used
    inside = (read[:, None] != 0) & (u < WIDTH)[None, :]
    at_1 = copy + i.to(tl.int64) * (F * WIDTH)
    w_1 = tl.load(at_1 + f[:, None] * WIDTH + u[None, :], mask=inside, other=0.0)
    b_1 = tl.load(at + WIDTH * F + u, mask=u < WIDTH, other=0.0)
    at += WIDTH * (F + 1)
    valid = (out >= 0) & (out < count)
    inside = valid[:, None] & (u < WIDTH)[None, :]
    w_2 = tl.load(at + out[:, None] * WIDTH + u[None, :], mask=inside, other=0.0)
    b_2 = tl.load(at + count * WIDTH + out, mask=valid, other=0.0)
    return w_1, b_1, w_2, b_2


@triton.jit
def sample(points, probs, scratch, theta, copy, places, runs, tables, sizes, sweeps,
           F: tl.constexpr, WIDTH: tl.constexpr, ONE_EACH: tl.constexpr, FIXED: tl.constexpr,
           GIVEN: tl.constexpr, PER_CANDIDATE: tl.constexpr, GIBBS: tl.constexpr,
           GRAPH: tl.constexpr,
           DROP: tl.constexpr, DEPTH: tl.constexpr, FP: tl.constexpr, HP: tl.constexpr,
           NP: tl.constexpr, OP: tl.constexpr, UNITS: tl.constexpr, WHOLE: tl.constexpr,
           AHEAD: tl.constexpr, ZERO: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Sample candidates of every run; store them and their distributions.

    `scratch`, 4-byte words, (candidates, 2 NP + 2 HP): the order, the uniform numbers, and the
    activations of two layers if there are several. OP is 1 if all variables are binary.
    WHOLE: there is one hidden layer, of WIDTH, its weights are in `copy`
    (`initial.transpose_first_layer`), and it is read in one piece; AHEAD: before it is needed.
    GIVEN: variable i of a candidate is at place `places[i]` of its order, (R, B, n).
    ONE_EACH: input f is that of variable f, -1 or +1.
    ZERO: hidden inputs are 0, so that without AHEAD their weights, half of all, need not be read.
    GIBBS: there are `sweeps` sweeps, and from the second on a variable is drawn given all others.
    """
    c, r = tl.program_id(0), tl.program_id(1)
    B = tl.num_programs(0)
    if field(runs, r, STATUS) >= ENDED:
        return
    seed, generation = field(runs, r, SEED), field(runs, r, GENERATION)
    drops, row = field(runs, r, DROPS_G), field(runs, r, FIRST) + c
    n = sizes.n
    candidate = (r * B + c).to(tl.int64)
    own = scratch + candidate * (2 * NP + 2 * HP)
    order = own.to(tl.pointer_type(tl.int32))
    draws = own + NP
    acts = own + 2 * NP

    all_i = tl.arange(0, NP)
    tl.store(draws + all_i, uniform(words(seed, row, generation, VALUE, 0, NP // 4)))
    if FIXED:
        tl.store(order + all_i, all_i)
    elif GIVEN:
        place = tl.load(places + candidate * n + all_i, mask=all_i < n, other=0)
        tl.store(order + place, all_i, mask=all_i < n)
    else:
        order_row = row
        if not PER_CANDIDATE:
            order_row = row * 0
        mine = words(seed, order_row, generation, ORDER_G, 0, NP // 4).to(tl.uint32, bitcast=True)
        keys = order.to(tl.pointer_type(tl.uint32))
        tl.store(keys + all_i, mine)
        tl.debug_barrier()
        rank = count_smaller(mine, all_i, keys, n, True, NP, BLOCK)
        tl.debug_barrier()
        tl.store(order + rank, all_i, mask=all_i < n)
    tl.debug_barrier()

    f = tl.arange(0, FP)
    owner = tl.load(tables.owner + f, mask=f < F, other=-1)
    base = tl.load(tables.code_base + f, mask=f < F, other=0)
    hidden = tl.load(tables.hidden_value + f, mask=f < F, other=0.0)
    x = hidden
    o = tl.arange(0, OP)
    parameters = theta + r.to(tl.int64) * sizes.parameters
    first_layers = copy + r.to(tl.int64) * n * F * WIDTH
    if AHEAD:
        w_1, b_1, w_2, b_2 = _fetch(
            order, 0, f < F, parameters, first_layers, tables, F, WIDTH, OP, HP, FP
        )
    for step in range(sweeps * n):
        k, after = step, tl.minimum(step + 1, n - 1)
        if GIBBS:
            k, after = step % n, (step + 1) % n
            if (k == 0) & (step > 0):  # the uniform numbers of the next sweep
                tl.debug_barrier()
                purpose = VALUE + 256 * (step // n)
                number = uniform(words(seed, row, generation, purpose, 0, NP // 4))
                tl.store(draws + all_i, number)
                tl.debug_barrier()
        i = tl.load(order + k)
        count = tl.load(tables.outputs + i)
        if AHEAD:
            w_n, c_n, v_n, d_n = _fetch(
                order, after, f < F, parameters, first_layers, tables, F, WIDTH, OP, HP, FP
            )  # fmt: skip
        elif WHOLE:
            w_1, b_1, w_2, b_2 = _fetch(
                order, k, x if ZERO else f < F, parameters, first_layers, tables, F, WIDTH, OP, HP,
                FP,
            )  # fmt: skip
        value = tl.zeros((), tl.int32)
        at_values = probs + candidate * sizes.row_length + tl.load(tables.value_start + i)
        if count == 0:
            tl.store(at_values, 1.0)
        else:
            others = x
            if GIBBS:  # in the first sweep its own inputs are hidden anyway
                others = tl.where(owner == i, hidden, x)
            seen = _visible(
                others,
                hidden,
                tables.graph,
                owner,
                i,
                seed,
                row,
                generation,
                drops,
                n,
                F,
                GRAPH,
                DROP,
                FP,
            )
            at = parameters + tl.load(tables.begins + i)
            # the only logit is that of the value 1; the logit of the value 0 is 0
            shift = 0
            if OP > 1:
                shift = (count == 1).to(tl.int32)
            out = o - shift
            valid = (out >= 0) & (out < count)
            logits = tl.zeros((OP,), tl.float32)
            if WHOLE:
                a = tanh(tl.sum(product(w_1, seen[:, None]), 0) + b_1)
                logits = tl.sum(product(w_2, a[None, :]), 1) + b_2
            elif DEPTH == 0:
                logits = tl.where(valid, _layer(at, seen, F, count, out, FP), 0.0)
            elif DEPTH == 1:
                last = at + WIDTH * (F + 1)
                for first in range(0, WIDTH, UNITS):
                    u = first + tl.arange(0, UNITS)
                    a = tanh(_layer(at, seen, F, WIDTH, u, FP))
                    inside = valid[:, None] & (u < WIDTH)[None, :]
                    w = tl.load(last + out[:, None] * WIDTH + u[None, :], mask=inside, other=0.0)
                    logits += tl.sum(product(w, a[None, :]), 1)
                logits += tl.load(last + count * WIDTH + out, mask=valid, other=0.0)
            else:
                inputs = F
                for layer in tl.static_range(DEPTH):
                    units = tl.load(tables.widths + layer + 1)
                    to = acts + (layer % 2) * HP
                    for first in range(0, units, UNITS):
                        u = first + tl.arange(0, UNITS)
                        if layer == 0:
                            z = _layer(at, seen, F, units, u, FP)
                        else:
                            h = tl.arange(0, HP)
                            a = tl.load(acts + (1 - layer % 2) * HP + h, mask=h < inputs, other=0.0)
                            z = _layer(at, a, inputs, units, u, HP)
                        tl.store(to + u, tanh(z), mask=u < units)
                    tl.debug_barrier()
                    at += units * (inputs + 1)
                    inputs = units
                h = tl.arange(0, HP)
                a = tl.load(acts + ((DEPTH - 1) % 2) * HP + h, mask=h < inputs, other=0.0)
                logits = tl.where(valid, _layer(at, a, inputs, count, out, HP), 0.0)
                tl.debug_barrier()  # before the next variable's activations overwrite them
            floor = tl.load(tables.floors + i)
            u = tl.load(draws + i)
            if OP == 1:
                one = tl.minimum(tl.maximum(sigmoid(tl.sum(logits, 0)), floor), 1.0 - floor)
                tl.store(at_values, 1.0 - one)
                tl.store(at_values + 1, one)
                value = (u < one).to(tl.int32)
            else:
                of_values = o < count + shift
                pi = tl.sum(
                    clipped_probabilities(
                        raw_probabilities(logits[None, :], of_values[None, :]),
                        of_values[None, :],
                        floor,
                    )[0],
                    0,
                )
                tl.store(at_values + o, pi, mask=of_values)
                passed = (o < count + shift - 1) & (tl.cumsum(pi, 0) <= u)
                value = tl.sum(passed.to(tl.int32), 0)
                if shift == 1:  # two values: x = 1 when u < pi(1), in every engine
                    one = tl.sum(tl.where(o == 1, pi, 0.0), 0)
                    value = (u < one).to(tl.int32)
            if ONE_EACH:
                x = tl.where(f == i, 2.0 * value - 1.0, x)
            else:
                code = tl.load(tables.codes + base + value, mask=owner == i, other=0.0)
                x = tl.where(owner == i, code, x)
        tl.store(points + candidate * n + i, value)
        if AHEAD:
            w_1, b_1, w_2, b_2 = w_n, c_n, v_n, d_n
