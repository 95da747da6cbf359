"""The whole method in plain NumPy, one variable at a time, to be read beside the paper.

The fast engines are tested against it: with the same random stream they give the same results, up
to rounding. Equation numbers are the paper's; (A) is its pseudo-code, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.engines.base import Batch, Codes, Draw, Floats, Policy
from anyorder.strategies.policy.engines.memory import runs_in_memory
from anyorder.strategies.policy.equations import (
    adam_step,
    critic_gradient,
    forward,
    gradient,
    probabilities,
    raw_probabilities,
)
from anyorder.strategies.policy.masks import LEAST, find_allowed, restrict
from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import SeparateNetworks, SharedNetwork
from anyorder.strategies.policy.orders import Bools, before, draw_dropped, order_keys
from anyorder.strategies.policy.rng import DROP_G, DROP_T, ORDER_G, ORDER_T, VALUE, uniform, words

Networks = SeparateNetworks | SharedNetwork

# --- the inputs of one variable ---------------------------------------------------------------


def inputs(model: Model[Networks], features: Floats, visible: Bools, i: int) -> Floats:
    """Return the inputs of network i; variables that are not visible are hidden."""
    if model.graph is not None:
        visible = visible & model.graph[i]
    return np.where(visible[..., model.coding.owner], features, model.coding.hidden_value)


# --- the engine -------------------------------------------------------------------------------


class ReferenceEngine:
    """The engine `reference`: slow, readable, in float64 or float32."""

    name = "reference"

    def __init__(self, model: Model[Networks], dtype: npt.DTypeLike = np.float64) -> None:
        self.model = model
        self.dtype: np.dtype[Any] = np.dtype(dtype)

    def runs_that_fit(self, runs: int, budget: int) -> int:
        """Return how many of `runs` runs fit in memory together; MemoryError if none does."""
        # of the run that is being trained
        moments = 2 * self.dtype.itemsize * self.model.parameters
        return runs_in_memory(self.model, self.dtype.itemsize, moments, runs)

    def fresh(self, seeds: Sequence[int], restarts: Sequence[int]) -> Policy:
        """Return a policy with initial parameters for each run."""
        theta = np.stack(
            [self.model.network.initial_theta(s, k) for s, k in zip(seeds, restarts, strict=True)]
        ).astype(self.dtype)
        return Policy.start(theta, self.model.config.adam)

    def export(self, policy: Policy) -> dict[str, npt.NDArray[Any]]:
        """Return the policy as arrays to store."""
        return policy.export()

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Policy:
        """Return the policy in the arrays that `export` returned."""
        return Policy.load(arrays, self.dtype)

    def sample(self, policy: Policy, draw: Draw) -> tuple[Codes, Floats]:
        """Do step 1 of (A): return candidates, and the distributions that they are drawn from."""
        model, coding, runs = self.model, self.model.coding, len(draw.seeds)
        sweeps = model.config.gibbs_sweeps if model.config.generation_order == "gibbs" else 1
        points = np.zeros((runs, draw.count, coding.n), np.int32)
        probs = np.ones((runs, draw.count, coding.values), self.dtype)
        for r in range(runs):
            seed, generation, p = draw.seeds[r], draw.generations[r], draw.drop[r]
            for c in range(draw.count):
                number = draw.first[r] + c
                if draw.keys is None:
                    keys = order_keys(model, seed, ORDER_G, generation, number)
                else:
                    keys = draw.keys[r, c]
                x, assigned = points[r, c], np.zeros(coding.n, bool)
                for sweep in range(sweeps):
                    u = uniform(words(seed, VALUE, generation, number, coding.n, epoch=sweep))
                    for i in map(int, np.argsort(keys, kind="stable")):
                        if coding.outputs[i] == 0:
                            continue
                        visible = assigned & (np.arange(coding.n) != i)
                        if p > 0:
                            visible &= ~draw_dropped(model, seed, DROP_G, generation, number, i, p)
                        logits = self._logits(policy.theta[r], x[None], visible[None], i)
                        place = slice(coding.value_start[i], coding.value_start[i + 1])
                        pi = probs[r, c, place] = self._exchange(logits, i)[0]
                        values = np.arange(len(pi))
                        if model.group_of[i] >= 0:
                            some = self._find_allowed(x[None], assigned[None], i)
                            pi = probabilities(logits, float(coding.floor[i]), some)[0]
                            values = np.flatnonzero(some)
                        # for the inverse of the cumulative distribution
                        below = np.cumsum(pi[values[:-1]])
                        # two values: x = 1 when u < pi(1), in every engine
                        two, k = len(pi) == 2, np.searchsorted(below, u[i], "right")
                        x[i] = u[i] < pi[1] if two else values[k]
                        assigned[i] = True
        if model.config.generation_order == "gibbs":
            probs = self.conditionals(policy, points)
        return points, probs

    def conditionals(
        self, policy: Policy, points: Codes, keys: npt.NDArray[np.uint32] | None = None
    ) -> Floats:
        """Return the distribution of every variable given the ones before it, or all others."""
        coding = self.model.coding
        probs = np.ones((*points.shape[:2], coding.values), self.dtype)
        for r in range(len(points)):
            for i in map(int, np.flatnonzero(coding.outputs)):
                if keys is None:
                    visible = np.broadcast_to(np.arange(coding.n) != i, points[r].shape)
                else:
                    visible = np.stack([before(row, i) for row in keys[r]])
                logits = self._logits(policy.theta[r], points[r], visible, i)
                place = slice(coding.value_start[i], coding.value_start[i + 1])
                probs[r, :, place] = self._exchange(logits, i)
        return probs

    def train(self, policy: Policy, batch: Batch) -> None:
        """Do step 3 of (A): E epochs of Adam on eq. (8), with a new sigma_T for each candidate."""
        kept = self.model.config.adam == "kept"
        for r, theta in enumerate(policy.theta):
            if kept:
                m, v, steps = policy.m[r], policy.v[r], int(policy.steps[r])
            else:
                m, v, steps = np.zeros_like(theta), np.zeros_like(theta), 0
            if isinstance(self.model.network, SharedNetwork):
                self._train_shared(self.model.network, theta, m, v, steps, batch, r)
            else:
                # Only the terms of variable i change the parameters of g_i, so all its E epochs can
                # be run before those of the next variable.
                for i in map(int, np.flatnonzero(self.model.coding.outputs)):
                    if np.any(batch.weights[r, :, i] != 0):
                        self._train_variable(self.model.network, i, theta, m, v, steps, batch, r)
            if kept:
                policy.steps[r] += self.model.config.epochs

    def _train_variable(
        self, network: SeparateNetworks, i: int, theta: Floats, m: Floats, v: Floats, steps: int,
        batch: Batch, r: int,
    ) -> None:  # fmt: skip
        layers, ms, vs = network.layers(theta, i), network.layers(m, i), network.layers(v, i)
        moving = np.argwhere(network.rates > 0).tolist()  # layers, and weights or biases
        for epoch in range(self.model.config.epochs):
            gradients = self._gradient(layers, batch, r, i, epoch)
            for k, part in moving:
                self._step(
                    layers[k][part], ms[k][part], vs[k][part], gradients[k][part],
                    steps + epoch + 1, float(network.rates[k, part]),
                )  # fmt: skip

    def _train_shared(
        self, network: SharedNetwork, theta: Floats, m: Floats, v: Floats, steps: int,
        batch: Batch, r: int,
    ) -> None:  # fmt: skip
        """Train shared layers: their gradient is the sum of those of all variables' networks."""
        active = np.any(batch.weights[r] != 0, axis=0) & (self.model.coding.outputs > 0)
        heads = np.repeat(active, np.diff(network.head_start))  # other heads keep their parameters
        layers, ms, vs = network.parts(theta), network.parts(m), network.parts(v)
        for epoch in range(self.model.config.epochs):
            total = np.zeros_like(theta)
            for i in map(int, np.flatnonzero(active)):
                found = self._gradient(network.layers(theta, i), batch, r, i, epoch)
                for whole, part in zip(network.layers(total, i), found, strict=True):
                    whole[0][...] += part[0]
                    whole[1][...] += part[1]
            gradients = network.parts(total)
            for k, part in np.argwhere(network.rates > 0):  # part: weights, biases
                rows = heads if k == len(layers) - 1 else slice(None)
                weights, m_k, v_k, slope = (
                    arrays[k][part][rows] for arrays in (layers, ms, vs, gradients)
                )
                rate = float(network.rates[k, part])
                self._step(weights, m_k, v_k, slope, steps + epoch + 1, rate)
                for arrays, changed in ((layers, weights), (ms, m_k), (vs, v_k)):
                    arrays[k][part][rows] = changed

    def _gradient(
        self, layers: Sequence[tuple[Floats, Floats]], batch: Batch, r: int, i: int, epoch: int
    ) -> list[tuple[Floats, Floats]]:
        """Return the gradient of variable i's objective in one epoch."""
        model, config = self.model, self.model.config
        # candidates without weight are left out, but the mean is over all candidates
        active = np.flatnonzero(batch.weights[r, :, i])
        weight = batch.weights[r, active, i] * (len(active) / batch.points.shape[1])
        features = model.coding.features_of(batch.points[r, active])
        old = batch.old[r, active, model.value_start[i] : model.value_start[i + 1]]
        old = old.astype(self.dtype)
        some = None
        if model.group_of[i] >= 0:
            earlier = np.stack([self._earlier(batch, r, int(c), i, epoch) for c in active])
            some = self._find_allowed(batch.points[r, active], earlier, i)
            old = restrict(old, some, float(model.coding.floor[i]))
        visible = np.array([self._training_view(batch, r, int(c), i, epoch) for c in active])
        x = inputs(model, features, visible, i).astype(self.dtype)
        advantage, weight = (
            array.astype(self.dtype) for array in (batch.advantages[r, active, i], weight)
        )
        if model.loss == "squares":
            return critic_gradient(layers, x, advantage, weight)
        return gradient(
            layers,
            x,
            batch.points[r, active, i],
            old,
            advantage,
            weight,
            float(model.coding.floor[i]),
            config.beta,
            config.kl,
            some,
            config.objective == "log",
        )

    def _step(
        self, parameter: Floats, m: Floats, v: Floats, slope: Floats, step: int, rate: float
    ) -> None:
        config = self.model.config
        adam_step(
            parameter, m, v, slope, step, rate,
            config.adam_beta1, config.adam_beta2, self.model.network.adam_eps,
        )  # fmt: skip

    def _earlier(self, batch: Batch, r: int, c: int, i: int, epoch: int) -> Bools:
        """Return the variables before i in the order of training or drawing of candidate c."""
        seed = batch.seeds[r]
        if batch.keys is not None:
            return before(batch.keys[r, c], i)
        if self.model.config.training_order in ("generation", "none"):
            stamp = batch.stamps[r, c]
            return before(order_keys(self.model, seed, ORDER_G, int(stamp[0]), int(stamp[1])), i)
        generation = batch.generations[r]
        return before(order_keys(self.model, seed, ORDER_T, generation, c, epoch), i)

    def _training_view(self, batch: Batch, r: int, c: int, i: int, epoch: int) -> Bools:
        if self.model.config.training_order == "none":
            visible: Bools = np.arange(self.model.n) != i
        else:
            visible = self._earlier(batch, r, c, i, epoch)
        seed, generation, p = batch.seeds[r], batch.generations[r], batch.drop[r]
        if p > 0:
            visible &= ~draw_dropped(self.model, seed, DROP_T, generation, c, i, p, epoch)
        return visible

    def _find_allowed(self, points: Codes, earlier: Bools, i: int) -> Bools:
        """Return the values that variable i of a group may take after these variables."""
        group = self.model.groups[self.model.group_of[i]]
        return find_allowed(group, points[:, group.columns], earlier[:, group.columns])

    def _logits(self, theta: Floats, points: Codes, visible: Bools, i: int) -> Floats:
        coding, network = self.model.coding, self.model.network
        x = inputs(self.model, coding.features_of(points), visible, i).astype(self.dtype)
        return forward(network.layers(theta, i), x)[-1]

    def _exchange(self, logits: Floats, i: int) -> Floats:
        """Return results of `sample` and `conditionals`: distributions, or a critic's estimates."""
        if self.model.loss == "squares":
            return logits
        if self.model.group_of[i] >= 0:  # those before masks: see `masks.py`
            return np.maximum(raw_probabilities(logits), LEAST)
        return probabilities(logits, float(self.model.coding.floor[i]))
