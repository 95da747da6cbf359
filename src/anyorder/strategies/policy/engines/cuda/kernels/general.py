"""The general kernels: any depth, width, number of values and of inputs.

A program computes one variable of one run, as in `registers.py`, but its parameters, moments and
activations stay in memory (usually in the cache) and are processed in tiles. Products are plain
float32.

With very many inputs (READY) the first layer has larger tiles, and its inputs before masking are
computed once for all variables and epochs (`ready_inputs`), which leaves two loads instead of a
chain of four. Products are then computed by the matrix units, from factors in parts, with the same
accuracy.
"""

import triton
import triton.language as tl

from anyorder.strategies.policy.engines.cuda.kernels.common import (
    DROP_T,
    DROPS_T,
    ENDED,
    GENERATION,
    RUNNING,
    SEED,
    STATUS,
    STEPS,
    below,
    field,
    sigmoid,
    step,
    tanh,
    word_of,
)
from anyorder.strategies.policy.engines.cuda.kernels.objective import (
    binary_slope,
    binary_terms,
    categorical_slope,
    clipped_probabilities,
    raw_probabilities,
    square_slope,
)

# Visible variables
EARLIER = tl.constexpr(0)  # variables with a smaller rank
OTHERS = tl.constexpr(1)
PARTLY = tl.constexpr(2)  # each variable to its own degree: `relaxed_sort.py`


@triton.jit
def ready_inputs(inputs, points, tables, sizes, FP: tl.constexpr, BLOCK: tl.constexpr):
    """Store the inputs (R, B, FP) of all candidates before masking, one program per candidate."""
    row = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)).to(tl.int64)
    for first in range(0, FP, BLOCK):
        f = first + tl.arange(0, BLOCK)
        inside = f < sizes.features
        own = tl.load(tables.owner + f, mask=inside, other=0)
        code = tl.load(points + row * sizes.n + own, mask=inside, other=-1)
        base = tl.load(tables.code_base + f, mask=inside, other=0)
        hidden = tl.load(tables.hidden_value + f, mask=inside, other=0.0)
        x = tl.load(tables.codes + base + code, mask=code >= 0, other=0.0)
        tl.store(inputs + row * FP + f, tl.where(code >= 0, x, hidden))


@triton.jit
def _inputs(points, rank, mine, tables, sizes, f, c, i, stream, epoch, B, SEEN: tl.constexpr,
            GRAPH: tl.constexpr, DROP: tl.constexpr, FP: tl.constexpr,
            READY: tl.constexpr):  # fmt: skip
    """Return the inputs (C, T) of variable i, columns f of candidates c; `mine` are ranks of i.

    `stream` is the seed, the generation and the threshold of dropout. With READY, `points` are the
    inputs before masking.
    """
    n, F = sizes.n, sizes.features
    there = c[:, None] < B
    inside = there & (f < F)[None, :]
    own = tl.load(tables.owner + f, mask=f < F, other=0)
    if READY:
        seen = inside
        x = tl.load(points + c[:, None] * FP + f[None, :], mask=inside, other=0.0)
    else:
        code = tl.load(points + c[:, None] * n + own[None, :], mask=inside, other=-1)
        seen = inside & (code >= 0)
    if SEEN == PARTLY:  # `rank` are the degrees
        at = rank + c[:, None].to(tl.int64) * (n * n) + own[None, :]
        nothing = tl.load(tables.hidden_value + f, mask=f < F, other=0.0)[None, :]
        x = nothing + tl.load(at, mask=inside, other=0.0) * (x - nothing)
    elif SEEN == OTHERS:
        seen = seen & (own != i)[None, :]
    else:
        other = tl.load(rank + c[:, None] * FP + f[None, :], mask=inside, other=0)
        seen = seen & ((other & 0x7FFF) < mine[:, None])
    if GRAPH:
        seen = seen & (tl.load(tables.graph + i * n + own, mask=f < F, other=0) != 0)[None, :]
    if DROP:
        if stream[2] > 0:
            column = i * ((n + 3) // 4 * 4) + own
            word = word_of(
                stream[0], c[:, None], stream[1], DROP_T + 256 * epoch,
                column[None, :] + 0 * c[:, None],
            )  # fmt: skip
            seen = seen & (below(word, stream[2]) == 0)
    if not READY:
        base = tl.load(tables.code_base + f, mask=f < F, other=0)
        x = tl.load(tables.codes + base[None, :] + code, mask=seen, other=0.0)
    hidden = tl.load(tables.hidden_value + f, mask=f < F, other=0.0)
    return tl.where(seen, x, tl.where(inside, hidden[None, :], 0.0))


@triton.jit
def _product(a, b, IN_PARTS: tl.constexpr = False):
    if IN_PARTS:
        return tl.dot(a, b, input_precision="tf32x3")
    else:
        return tl.dot(a, b, input_precision="ieee")


@triton.jit
def _forward(theta, at, acts, count, points, rank, mine, tables, sizes, c, i, stream, epoch, B,
             DEPTH: tl.constexpr, SEEN: tl.constexpr, GRAPH: tl.constexpr, DROP: tl.constexpr,
             FP: tl.constexpr, C: tl.constexpr, T: tl.constexpr, U: tl.constexpr,
             HP: tl.constexpr, T_1: tl.constexpr, READY: tl.constexpr):  # fmt: skip
    """Store the activations of every layer in `acts`, (DEPTH + 1, C, HP); logits come last.

    Tiles have T inputs, those of the first layer T_1.
    """
    inputs = sizes.features
    for layer in tl.static_range(DEPTH + 1):
        outputs = count
        if layer < DEPTH:
            outputs = tl.load(tables.widths + layer + 1)
        for first in range(0, outputs, U):
            u = first + tl.arange(0, U)
            z = tl.zeros((C, U), tl.float32)
            for start in range(0, inputs, T_1 if layer == 0 else T):
                f = start + tl.arange(0, T_1 if layer == 0 else T)
                if layer == 0:
                    x = _inputs(
                        points, rank, mine, tables, sizes, f, c, i, stream, epoch, B, SEEN, GRAPH,
                        DROP, FP, READY,
                    )  # fmt: skip
                else:
                    before = acts + (layer - 1) * C * HP + c[:, None] * HP + f[None, :]
                    x = tl.load(before, mask=(f < inputs)[None, :], other=0.0)
                inside = (f < inputs)[:, None] & (u < outputs)[None, :]
                w = tl.load(theta + at + u[None, :] * inputs + f[:, None], mask=inside, other=0.0)
                z += _product(x, w, READY)
            z += tl.load(theta + at + outputs * inputs + u, mask=u < outputs, other=0.0)[None, :]
            if layer < DEPTH:
                z = tanh(z)
            to = acts + layer * C * HP + c[:, None] * HP + u[None, :]
            tl.store(to, z, mask=(u < outputs)[None, :])
        tl.debug_barrier()
        at += outputs * (inputs + 1)
        inputs = outputs


@triton.jit
def train(parameters, runs, data, orders, training, tables, sizes, variables, scratch,
          DEPTH: tl.constexpr, SEEN: tl.constexpr, GRAPH: tl.constexpr, DROP: tl.constexpr,
          BERNOULLI: tl.constexpr, LOG: tl.constexpr, SQUARES: tl.constexpr,
          KEPT: tl.constexpr, FP: tl.constexpr, C: tl.constexpr, T: tl.constexpr,
          U: tl.constexpr, HP: tl.constexpr, OP: tl.constexpr, T_1: tl.constexpr,
          READY: tl.constexpr, MOST: tl.constexpr = 1):  # fmt: skip
    """Train one variable of one run, all epochs; `scratch` is (programs, 2 DEPTH + 2, C, HP).

    SQUARES: a critic, whose targets are `data.advantages`; it has one output. With PARTLY (and
    READY) nothing is trained: the degrees in `orders` are replaced by the derivatives with respect
    to them. MOST is the largest number of inputs of a variable.
    """
    i = tl.load(variables + tl.program_id(0))
    r = tl.program_id(1)
    if field(runs, r, STATUS) != RUNNING:
        return
    theta, F, B = parameters.theta, sizes.features, data.candidates
    c = tl.arange(0, C)
    there = c < B
    at_weight = data.weights + r * data.weight_run + c * data.weight_candidate
    at_weight = at_weight + i * data.weight_variable
    weight = tl.load(at_weight, mask=there, other=0.0).to(tl.float32)
    if SEEN != PARTLY:
        if tl.max(tl.abs(weight), 0) == 0.0:
            return
    weight = weight / B
    program = (r * tl.num_programs(0) + tl.program_id(0)).to(tl.int64)
    acts = scratch + program * (2 * DEPTH + 2) * C * HP
    deltas = acts + (DEPTH + 1) * C * HP
    points = data.points + r.to(tl.int64) * B * sizes.n
    value = tl.load(points + c * sizes.n + i, mask=there, other=0)
    if READY:
        points = data.inputs + r.to(tl.int64) * B * FP
    old = data.old + (r * B + c).to(tl.int64) * sizes.row_length + tl.load(tables.value_start + i)
    at_gain = data.advantages + r * data.advantage_run + c * data.advantage_candidate
    at_gain = at_gain + i * data.advantage_variable
    advantage = tl.load(at_gain, mask=there, other=0.0).to(tl.float32)
    if not (SQUARES or LOG):
        advantage = advantage / tl.load(old + value, mask=there, other=1.0)
    floor = tl.load(tables.floors + i)
    count = tl.load(tables.outputs + i)
    o = tl.arange(0, OP)
    stream = (field(runs, r, SEED), field(runs, r, GENERATION), field(runs, r, DROPS_T))
    begin = r.to(tl.int64) * sizes.parameters + tl.load(tables.begins + i)
    rank = orders.ranks + r.to(tl.int64) * orders.run_stride
    coefficient = training.coefficients
    if SEEN == PARTLY:
        rank += i * sizes.n
    else:
        coefficient += field(runs, r, STEPS) * (2 * DEPTH + 3)
    mine = tl.zeros((C,), tl.int32)
    for epoch in range(training.epochs):
        eps = tl.load(coefficient + 2 * DEPTH + 2)
        if SEEN == EARLIER:
            at_mine = c * FP + tl.load(tables.feature_start + i)
            mine = tl.load(rank + at_mine, mask=there, other=0).to(tl.int32) & 0x7FFF
        _forward(
            theta, begin, acts, count, points, rank, mine, tables, sizes, c, i, stream, epoch, B,
            DEPTH, SEEN, GRAPH, DROP, FP, C, T, U, HP, T_1, READY,
        )  # fmt: skip

        # at the outputs
        valid = (o < count)[None, :] & (c < C)[:, None]
        at_logits = acts + DEPTH * C * HP + c[:, None] * HP + o[None, :]
        logits = tl.load(at_logits, mask=valid, other=0.0)
        if SQUARES:
            slopes = square_slope(tl.sum(logits, 1), advantage, weight)[:, None]
        elif OP == 1:
            old0 = tl.load(old, mask=there, other=0.5)
            old1 = tl.load(old + 1, mask=there, other=0.5)
            terms = binary_terms(value, old0, old1, advantage, weight, training.beta, LOG)
            slopes = binary_slope(tl.sum(logits, 1), terms, floor)[:, None]
        else:
            olds = tl.load(old[:, None] + o[None, :], mask=valid & there[:, None], other=0.5)
            slopes = categorical_slope(
                logits, valid, value[:, None] == o[None, :], olds, advantage[:, None],
                weight[:, None], floor, training.beta, BERNOULLI, LOG,
            )  # fmt: skip
        at_slopes = deltas + DEPTH * C * HP + c[:, None] * HP + o[None, :]
        tl.store(at_slopes, slopes, mask=valid)
        tl.debug_barrier()

        # backpropagation: first the slopes below a layer, then the step of its parameters
        at = begin
        for layer in tl.static_range(DEPTH):
            below_width = F
            if layer > 0:
                below_width = tl.load(tables.widths + layer)
            at += tl.load(tables.widths + layer + 1) * (below_width + 1)
        for layer in tl.static_range(DEPTH, -1, -1):
            outputs = count
            if layer < DEPTH:
                outputs = tl.load(tables.widths + layer + 1)
            inputs = F
            if layer > 0:
                inputs = tl.load(tables.widths + layer)
            from_above = deltas + layer * C * HP + c[:, None] * HP
            if layer > 0:
                for first in range(0, inputs, T):
                    f = first + tl.arange(0, T)
                    total = tl.zeros((C, T), tl.float32)
                    for start in range(0, outputs, U):
                        u = start + tl.arange(0, U)
                        delta = tl.load(
                            from_above + u[None, :], mask=(u < outputs)[None, :], other=0.0
                        )
                        inside = (u < outputs)[:, None] & (f < inputs)[None, :]
                        at_w = theta + at + u[:, None] * inputs + f[None, :]
                        total += _product(delta, tl.load(at_w, mask=inside, other=0.0), READY)
                    place = (layer - 1) * C * HP + c[:, None] * HP + f[None, :]
                    inside = (f < inputs)[None, :] & (c < C)[:, None]
                    a = tl.load(acts + place, mask=inside, other=0.0)
                    tl.store(deltas + place, total * (1.0 - a * a), mask=inside)
                tl.debug_barrier()
            rate_w = tl.load(coefficient + 2 * layer)
            rate_b = tl.load(coefficient + 2 * layer + 1)
            if SEEN == PARTLY:
                if layer == 0:
                    _degree_slopes(
                        rank, theta + at, from_above, points, tables, sizes, c, i, B, outputs,
                        GRAPH, FP, C, T_1, U, MOST,
                    )  # fmt: skip
            elif (rate_w > 0) | (rate_b > 0):
                for start in range(0, outputs, U):
                    u = start + tl.arange(0, U)
                    delta = tl.load(from_above + u[None, :], mask=(u < outputs)[None, :], other=0.0)
                    for first in range(0, inputs, T_1 if layer == 0 else T):
                        f = first + tl.arange(0, T_1 if layer == 0 else T)
                        if layer == 0:
                            x = _inputs(
                                points, rank, mine, tables, sizes, f, c, i, stream, epoch, B, SEEN,
                                GRAPH, DROP, FP, READY,
                            )  # fmt: skip
                        else:
                            entered = acts + (layer - 1) * C * HP + c[:, None] * HP + f[None, :]
                            x = tl.load(entered, mask=(f < inputs)[None, :], other=0.0)
                        inside = (u < outputs)[:, None] & (f < inputs)[None, :]
                        step(
                            parameters, at + u[:, None] * inputs + f[None, :], inside,
                            _product(tl.trans(delta), x, READY), epoch, rate_w, eps,
                            training, KEPT,
                        )  # fmt: skip
                    step(
                        parameters, at + outputs * inputs + u, u < outputs, tl.sum(delta, 0),
                        epoch, rate_b, eps, training, KEPT,
                    )  # fmt: skip
            if layer > 0:
                at_inputs = F
                if layer > 1:
                    at_inputs = tl.load(tables.widths + layer - 1)
                at -= inputs * (at_inputs + 1)
        coefficient += 2 * DEPTH + 3
        rank += orders.epoch_stride
        tl.debug_barrier()


@triton.jit
def _degree_slopes(to, weights, from_above, x_of, tables, sizes, c, i, B, width,
                   GRAPH: tl.constexpr, FP: tl.constexpr, C: tl.constexpr, T: tl.constexpr,
                   U: tl.constexpr, MOST: tl.constexpr):  # fmt: skip
    """Store in `to` the derivatives by the degrees to which variable i sees the others.

    An input at degree M is M of the way from its hidden value to its own value.
    """
    n, F = sizes.n, sizes.features
    for first in range(0, n, T):
        j = first + tl.arange(0, T)
        start = tl.load(tables.feature_start + j, mask=j < n, other=0)
        end = tl.load(tables.feature_start + j + 1, mask=j < n - 1, other=0)
        end = tl.where(j < n - 1, end, F)
        total = tl.zeros((C, T), tl.float32)
        for k in range(MOST):
            f = start + k
            its = (f < end) & (j < n)
            slope = tl.zeros((C, T), tl.float32)
            for above in range(0, width, U):
                u = above + tl.arange(0, U)
                delta = tl.load(from_above + u[None, :], mask=(u < width)[None, :], other=0.0)
                inside = (u < width)[:, None] & its[None, :]
                w = tl.load(weights + u[:, None] * F + f[None, :], mask=inside, other=0.0)
                slope += _product(delta, w, True)
            inside = (c < B)[:, None] & its[None, :]
            x = tl.load(x_of + c[:, None] * FP + f[None, :], mask=inside, other=0.0)
            hidden = tl.load(tables.hidden_value + f, mask=its, other=0.0)
            total += slope * (x - hidden[None, :])
        seen = (j != i) & (j < n)
        if GRAPH:
            seen = seen & (tl.load(tables.graph + i * n + j, mask=j < n, other=0) != 0)
        at = to + c[:, None].to(tl.int64) * (n * n) + j[None, :]
        tl.store(at, tl.where(seen[None, :], total, 0.0), mask=(c < B)[:, None] & (j < n)[None, :])


@triton.jit
def conditionals(theta, probs, runs, points_of, ranks, scratch, tables, sizes, variables, total,
                 DEPTH: tl.constexpr, SEEN: tl.constexpr, GRAPH: tl.constexpr,
                 SQUARES: tl.constexpr, FP: tl.constexpr, C: tl.constexpr, T: tl.constexpr,
                 U: tl.constexpr, HP: tl.constexpr, OP: tl.constexpr):  # fmt: skip
    """Store the distribution of one variable for C of `total` candidates of one run.

    SQUARES: store the estimates of a critic, which are its outputs unchanged.
    """
    i = tl.load(variables + tl.program_id(0))
    r = tl.program_id(1)
    if field(runs, r, STATUS) >= ENDED:
        return
    first = tl.program_id(2) * C
    c = tl.arange(0, C)
    B = tl.minimum(C, total - first)
    there = c < B
    program = (tl.program_id(2) * tl.num_programs(1) + r) * tl.num_programs(0) + tl.program_id(0)
    acts = scratch + program.to(tl.int64) * (DEPTH + 1) * C * HP
    points = points_of + (r.to(tl.int64) * total + first) * sizes.n
    rank = ranks + (r.to(tl.int64) * total + first) * FP
    count = tl.load(tables.outputs + i)
    mine = tl.zeros((C,), tl.int32)
    if SEEN == EARLIER:
        at_mine = c * FP + tl.load(tables.feature_start + i)
        mine = tl.load(rank + at_mine, mask=there, other=0).to(tl.int32) & 0x7FFF
    begin = r.to(tl.int64) * sizes.parameters + tl.load(tables.begins + i)
    _forward(
        theta, begin, acts, count, points, rank, mine, tables, sizes, c, i, (0, 0, 0), 0, B, DEPTH,
        SEEN, GRAPH, False, FP, C, T, U, HP, T, False,
    )  # fmt: skip
    o = tl.arange(0, OP)
    valid = (o < count)[None, :] & (c < C)[:, None]
    logits = tl.load(acts + DEPTH * C * HP + c[:, None] * HP + o[None, :], mask=valid, other=0.0)
    floor = tl.load(tables.floors + i)
    row = r.to(tl.int64) * total + first + c
    to = probs + row * sizes.row_length + tl.load(tables.value_start + i)
    if SQUARES:
        tl.store(to, tl.sum(logits, 1), mask=there)
    elif OP == 1:
        one = tl.minimum(tl.maximum(sigmoid(tl.sum(logits, 1)), floor), 1.0 - floor)
        tl.store(to, 1.0 - one, mask=there)
        tl.store(to + 1, one, mask=there)
    else:
        pi = clipped_probabilities(raw_probabilities(logits, valid), valid, floor)[0]
        tl.store(to[:, None] + o[None, :], pi, mask=valid & there[:, None])
