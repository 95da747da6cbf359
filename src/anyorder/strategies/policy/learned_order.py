"""Learned orders: the paper's appendix on orders from a Plackett-Luce distribution.

Every variable has a score. An order sorts the scores plus Gumbel noise, the largest first, which
samples the Plackett-Luce distribution whose weights are the exponentials of the scores. Candidates
are sampled in such orders, and each epoch of training draws new ones. In each epoch the networks
take their step on eq. (8) under these orders, and the scores take theirs on the same objective with
the sort relaxed (A. Grover et al., "Stochastic optimization of sorting networks via continuous
relaxations", ICLR 2019, temperature 1). In the relaxed sort, variable j sees i to the degree

    M[i, j] = sum over places a < b of P[a, i] P[b, j],    M[i, i] = 0,

where row a of P, which says which variable is at place a, is a softmax instead of an argmax. An
input that is seen to the degree M lies that far between its hidden value and its own value.

The gradient is written in NumPy rather than left to automatic differentiation: it is a dozen lines
beside those of the networks, which the library has anyway, and the policy needs no PyTorch. The
tests compare it with finite differences, and with PyTorch if that is installed. With the engine
`cuda`, kernels compute the same in float32 (`engines/cuda/kernels/relaxed_sort.py`).

An epoch takes O(population n^3) for the relaxed sort, which is more than the networks take if there
are several hundred variables or more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.engines import Batch, Draw, Model, Policy, create
from anyorder.strategies.policy.engines.memory import memory_here
from anyorder.strategies.policy.equations import adam_step, logit_slopes
from anyorder.strategies.policy.networks import Network
from anyorder.strategies.policy.orders import order_keys_of
from anyorder.strategies.policy.rng import ORDER_G, ORDER_T, UIntArray

Floats = npt.NDArray[np.float64]

_ARRAYS = 10  # arrays of the size of all relaxed orders of a generation


class LearnedOrder:
    """The order of a model whose configuration learns it, computed beside an engine given by name.

    The scores of R runs are a `Policy` whose parameters are `(R, n)`. They start at 0, where all
    orders are equally likely, and are set to 0 again when the policy is restarted.
    """

    def __init__(self, model: Model[Network], engine: str) -> None:
        self.model = model
        self._device: Any = None
        if engine == "cuda":  # only then is PyTorch certainly installed
            from anyorder.strategies.policy.engines.cuda import DeviceOrder

            self._device = DeviceOrder(model)  # type: ignore[arg-type]
            return
        size = max(model.n, model.coding.features)
        need, have = _ARRAYS * 8.0 * model.config.population * model.n * size, memory_here()
        if need > 0.9 * have:
            raise MemoryError(
                f"the learned order of {model.n} variables takes {need / 2**30:.1f} GiB to train, "
                f"and this machine has {have / 2**30:.1f}; random orders take nothing of that"
            )
        # The scores change in each epoch, and the orders with them: so one epoch is done at a time.
        each = replace(model, config=model.config.replace(epochs=1, adam="kept"))
        self._engine = create(engine, each)

    def fresh(self, seeds: Sequence[int], restarts: Sequence[int]) -> Policy:
        """Return initial scores for each run."""
        return Policy.start(np.zeros((len(seeds), self.model.n)), self.model.config.adam)

    def keys(self, scores: Floats, seed: int, stamps: Iterable[tuple[int, int]]) -> UIntArray:
        """Return sort keys `(B, n)` of orders of a run's candidates, by generation and number."""
        return ranks(scores + gumbel(order_keys_of(self.model, seed, ORDER_G, stamps)))

    def draw_orders(self, scores: Policy, draw: Draw) -> Draw:
        """Return the request with the orders of its candidates."""
        keys = [
            self.keys(scores.theta[r], draw.seeds[r], [
                (draw.generations[r], draw.first[r] + k) for k in range(draw.count)
            ])
            for r in range(len(draw.seeds))
        ]  # fmt: skip
        return replace(draw, keys=np.stack(keys))

    def train(self, policy: Policy, scores: Policy, batch: Batch) -> None:
        """Train the networks and the scores for E epochs, both in place."""
        if self._device is not None:
            self._device.train(policy, scores, batch)
            return
        for r in range(len(batch.points)):
            self._train_run(_row(policy, r), _row(scores, r), _only(batch, r))

    def _train_run(self, policy: Policy, scores: Policy, batch: Batch) -> None:
        config = self.model.config
        if config.adam == "anew":  # use moments of this generation only
            policy, scores = (Policy.start(each.theta, "kept") for each in (policy, scores))
        (seed,), (generation,), count = batch.seeds, batch.generations, batch.points.shape[1]
        stamps = [(generation, c) for c in range(count)]
        for epoch in range(config.epochs):
            words = order_keys_of(self.model, seed, ORDER_T, stamps, epoch)
            noisy = scores.theta[0] + gumbel(words)
            slope = score_gradient(self.model, policy.theta[0], noisy, batch, 0)
            self._engine.train(policy, replace(batch, keys=ranks(noisy)[None]))
            scores.steps += 1
            adam_step(
                scores.theta[0], scores.m[0], scores.v[0], slope, int(scores.steps[0]),
                config.order_rate, config.adam_beta1, config.adam_beta2,
                self.model.network.adam_eps,
            )  # fmt: skip


def _row(policy: Policy, r: int) -> Policy:
    """Return run r of a policy, as views."""
    one = slice(r, r + 1)
    return Policy(policy.theta[one], policy.m[one], policy.v[one], policy.steps[one])


def _only(batch: Batch, r: int) -> Batch:
    """Return run r of a batch."""
    one = slice(r, r + 1)
    return Batch(
        batch.seeds[one], batch.generations[one], batch.points[one], batch.old[one],
        batch.advantages[one], batch.weights[one], batch.drop[one], batch.stamps[one],
    )  # fmt: skip


def gumbel(words: UIntArray) -> Floats:
    """Return words converted to standard Gumbel noise: the smaller a word, the larger its noise.

    With equal scores the order is therefore the random order of the same words.
    """
    return np.asarray(-np.log(-np.log1p(-(words + 0.5) * 2.0**-32)))


def ranks(noisy: Floats) -> UIntArray:
    """Return places `(..., n)` of the variables in descending order; ties are by index."""
    order = np.argsort(-noisy, axis=-1, kind="stable")
    return np.argsort(order, axis=-1, kind="stable").astype(np.uint32)


class RelaxedSort:
    """Relaxed orders of perturbed scores `(B, n)`.

    Attributes
    ----------
    before
        `(B, n, n)`: M, the degree to which i comes before j.
    """

    def __init__(self, noisy: Floats) -> None:
        n = noisy.shape[-1]
        gaps = noisy[:, :, None] - noisy[:, None, :]
        self._signs = np.sign(gaps)
        self._factors = n + 1.0 - 2.0 * np.arange(1, n + 1)
        logits = self._factors[:, None] * noisy[:, None, :] - np.abs(gaps).sum(axis=2)[:, None, :]
        power = np.exp(logits - logits.max(axis=2, keepdims=True))
        self._places = power / power.sum(axis=2, keepdims=True)  # P: place, variable
        self._after = _sums_above(self._places)  # sums over the places after a
        self.before = _product("bai,baj->bij", self._places, self._after)
        self.before[:, np.arange(n), np.arange(n)] = 0.0

    def backward(self, slopes: Floats) -> Floats:
        """Return the gradient `(B, n)` by the perturbed scores, given the gradient by `before`."""
        n = slopes.shape[-1]
        slopes = slopes * (1.0 - np.eye(n))
        earlier = _product("bai,bij->baj", self._places, slopes)
        slope = _product("baj,bij->bai", self._after, slopes)
        slope += _sums_above(earlier[:, ::-1])[:, ::-1]  # sums over the places before b
        slope = self._places * (slope - (slope * self._places).sum(axis=2, keepdims=True))
        distances = -slope.sum(axis=1)  # the gradient by the sums of distances to all others
        pairs = distances[:, :, None] + distances[:, None, :]
        return np.asarray(self._factors @ slope + (pairs * self._signs).sum(axis=2))


def score_gradient(
    model: Model[Network], theta: npt.NDArray[np.floating], noisy: Floats, batch: Batch, r: int
) -> Floats:
    """Return the gradient `(n,)` of run r's relaxed objective with respect to its scores."""
    coding, config = model.coding, model.config
    points, count = batch.points[r], batch.points.shape[1]
    sort = RelaxedSort(noisy)
    contrast = coding.features_of(points).astype(np.float64) - coding.hidden_value
    sources = np.unique(coding.owner)  # the variables that have inputs
    slopes = np.zeros_like(sort.before)  # by candidate, variable that is seen, variable that sees
    for outputs in np.unique(coding.outputs[coding.outputs > 0]):
        members = np.flatnonzero(coding.outputs == outputs)
        seen = sort.before[:, :, members].transpose(2, 0, 1)
        if model.graph is not None:
            seen = seen * model.graph[members][:, None, :]
        x = coding.hidden_value + seen[..., coding.owner] * contrast
        layers = _stack(model.network, theta, members)
        activations = _forward(layers, x)
        places = coding.value_start[members][:, None] + np.arange(coding.cards[members[0]])
        flat = len(members) * count
        slope = logit_slopes(
            activations[-1].reshape(flat, -1),
            np.maximum(points[:, members], 0).T.reshape(flat),
            batch.old[r][:, places].astype(np.float64).transpose(1, 0, 2).reshape(flat, -1),
            batch.advantages[r][:, members].T.reshape(flat),
            batch.weights[r][:, members].T.reshape(flat) / count,
            float(coding.floor[members[0]]),
            config.beta,
            config.kl,
            log=config.objective == "log",
        ).reshape(activations[-1].shape)
        for (weights, _), entered in zip(layers[:0:-1], activations[-2:0:-1], strict=True):
            slope = _product("gbo,goi->gbi", slope, weights) * (1.0 - entered**2)
        # by showing more of each input
        moved = _product("gbo,goi->gbi", slope, layers[0][0]) * contrast
        moved = np.add.reduceat(moved, coding.feature_start[sources], axis=2)
        if model.graph is not None:
            moved *= model.graph[members][:, None, sources]
        slopes[np.ix_(np.arange(count), sources, members)] = moved.transpose(1, 2, 0)
    return np.asarray(sort.backward(slopes).sum(axis=0))


def _product(axes: str, a: npt.NDArray[np.floating], b: Floats) -> Floats:
    """Return products of matrices, in an order of summation that is always the same.

    The products of BLAS, which `@` uses, depend on its number of threads.
    """
    return np.asarray(np.einsum(axes, a, b, optimize=False))


def _sums_above(rows: Floats) -> Floats:
    """Return, for each row of `(B, n, n)`, the sum of all rows after it."""
    sums = np.zeros_like(rows)
    sums[:, :-1] = np.cumsum(rows[:, :0:-1], axis=1)[:, ::-1]
    return sums


def _stack(
    network: Network, theta: npt.NDArray[np.floating], members: npt.NDArray[np.intp]
) -> list[tuple[Floats, Floats]]:
    """Return the weights `(g, out, in)` and biases `(g, 1, out)` of some networks, by layer."""
    each = [network.layers(theta, int(i)) for i in members]
    return [
        (
            np.stack([layers[k][0] for layers in each], dtype=np.float64),
            np.stack([layers[k][1] for layers in each], dtype=np.float64)[:, None, :],
        )
        for k in range(len(each[0]))
    ]


def _forward(layers: Sequence[tuple[Floats, Floats]], x: Floats) -> list[Floats]:
    """Return the activations `(g, B, width)` of every layer; the last entry is the logits."""
    activations = [x]
    for k, (weights, biases) in enumerate(layers):
        z = _product("gbi,goi->gbo", activations[-1], weights) + biases
        activations.append(np.tanh(z) if k < len(layers) - 1 else z)
    return activations
