"""`DeviceOrder`: the learned orders of many runs, trained on the device together with the networks.

`policy/learned_order.py` explains what is computed. An epoch is about ten launches, and none waits
for the host: the sort, the relaxed sort, the networks' derivatives under it, its gradient, the step
of the networks under the orders themselves, and the step of the scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from anyorder.strategies.policy.engines.base import Batch, Policy
from anyorder.strategies.policy.engines.cuda.device import Tensor, host, not_empty
from anyorder.strategies.policy.engines.cuda.engine import CudaEngine, Orders
from anyorder.strategies.policy.engines.cuda.kernels import arguments, common, general, relaxed_sort
from anyorder.strategies.policy.engines.cuda.shapes import (
    general_shape,
    padded_inputs,
    power_of_two,
)
from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import SeparateNetworks

_TILE, _DEPTH = 64, 32  # of the products of matrices


@dataclass(frozen=True)
class Scores:
    """Scores of R runs and Adam's moments of them, (R, n), float64."""

    theta: Tensor
    m: Tensor
    v: Tensor


class PartlySeeing(CudaEngine):
    """The engine of networks that see other variables to a degree."""

    def degree_slopes(
        self, theta: Tensor, runs: Tensor, points: Tensor, inputs: Tensor, old: Tensor,
        advantages: Tensor, weights: Tensor, degrees: Tensor,
    ) -> None:  # fmt: skip
        """Replace degrees of visibility (R, B, n, n) by the derivatives of eq. (8).

        Entry [j, i] of a candidate is the degree to which j sees i; `inputs` are `ready_inputs`.
        """
        model = self.model
        _, count, n = points.shape
        data = arguments.Data(
            points, inputs, old, advantages, weights, count, *advantages.stride(),
            *weights.stride(),
        )  # fmt: skip
        parameters = arguments.Parameters(theta, theta, theta, theta)
        ranks = arguments.Ranks(degrees, count * n * n, 0)
        most = int(np.diff(model.coding.feature_start).max(initial=0))
        for group in self._groups:
            self._train_in_memory(
                group, parameters, runs, data, ranks, self._training(0),
                SEEN=general.PARTLY.value, GRAPH=model.graph is not None, DROP=False, KEPT=True,
                BERNOULLI=model.config.kl == "bernoulli",
                LOG=model.config.objective == "log", SQUARES=False, MOST=most,
                T_1=min(64, self._inputs), READY=True,
                **general_shape(model, max(16, power_of_two(count)), group),
            )  # fmt: skip


class DeviceOrder:
    """The order of a model whose configuration learns it."""

    def __init__(self, model: Model[SeparateNetworks]) -> None:
        self.model = model
        config = model.config
        # The scores change in each epoch, and the orders with them: so one epoch is done at a time.
        self.engine = PartlySeeing(replace(model, config=config.replace(epochs=1, adam="kept")))
        coding, put = model.coding, self.engine.put
        self._owner = put(not_empty(coding.owner).astype(np.int32))
        self._outputs = put(coding.outputs.astype(np.int32))
        self._inputs = padded_inputs(model)
        self._padded = max(16, int(power_of_two(model.n)))
        # What kernels hold for all variables at once: BLOCK rows of n.
        self._rows = {
            "NP": self._padded, "BLOCK": max(1, min(16, 2048 // self._padded)),
            "num_warps": min(16, max(4, self._padded // 256)),
        }  # fmt: skip
        constants = [1.0 - config.adam_beta1, 1.0 - config.adam_beta2]
        constants += [config.order_rate, model.network.adam_eps]
        self._constants = put(np.array(constants))
        self._corrections = put(np.empty((0, 2)))
        self._scratch: arguments.Relaxed | None = None

    # --- on tensors -----------------------------------------------------------------------------

    def fresh(self, runs: int) -> Scores:
        """Return initial scores, under which all orders are equally likely."""
        zeros = [
            torch.zeros((runs, self.model.n), dtype=torch.float64, device=self.engine.device)
            for _ in range(3)
        ]
        return Scores(*zeros)

    def restart(self, scores: Scores, runs: Tensor) -> None:
        """Initialize the scores of the runs with the status RESTARTING."""
        restarting = runs[:, common.STATUS.value] == common.RESTARTING.value
        for each in (scores.theta, scores.m, scores.v):
            each.masked_fill_(restarting[:, None], 0.0)

    def places(self, scores: Scores, runs: Tensor, count: int) -> Tensor:
        """Return the places (R, count, n) of the variables in the orders of the next candidates."""
        size = len(runs)
        noise = self._noise(runs, count, 1, common.ORDER_G.value)
        places = torch.empty((size, count, self.model.n), dtype=torch.int32, device=noise.device)
        self._sort(self._get_scratch(size, count), scores, noise[0], places, places, runs, False)
        return places

    def learn(
        self, policy: Policy, scores: Scores, runs: Tensor, points: Tensor, old: Tensor,
        advantages: Tensor, weights: Tensor, most_steps: int,
    ) -> None:  # fmt: skip
        """Train the networks and the scores, all epochs, in place.

        `most_steps` is the largest number of steps of kept moments, including those of this call.
        """
        engine, config = self.engine, self.model.config
        size, count, n = points.shape
        if config.adam == "anew":  # use moments of this generation only
            m, v = torch.zeros_like(policy.theta), torch.zeros_like(policy.theta)
            policy = Policy(policy.theta, m, v, policy.steps)
            scores = Scores(scores.theta, *(torch.zeros_like(scores.theta) for _ in range(2)))
            most_steps = 0
        most_steps += config.epochs
        corrections = self._corrections_of(most_steps)
        relaxed = self._get_scratch(size, count)
        places = torch.empty((size, count, n), dtype=torch.int32, device=engine.device)
        ranks = torch.empty((size, count, self._inputs), dtype=torch.int16, device=engine.device)
        orders = Orders(ranks, ranks, count * self._inputs, 0)
        inputs = engine.ready_inputs(points)
        noise = self._noise(runs, count, config.epochs, common.ORDER_T.value)
        steps = runs[:, common.STEPS.value]
        data = (points, old, advantages, weights)
        for epoch in range(config.epochs):
            self._sort(relaxed, scores, noise[epoch], places, ranks, runs, True)
            self._relax(relaxed, runs, count)
            engine.degree_slopes(
                policy.theta, runs, points, inputs, old, advantages, weights, relaxed.degrees
            )
            self._differentiate(relaxed, runs, count)
            engine.learn(policy, runs, *data, orders, drop=False, most_steps=most_steps)
            relaxed_sort.step_scores[(size,)](
                scores.theta, scores.m, scores.v, relaxed.gradients, runs, corrections,
                self._constants, n, count, NP=self._padded,
            )  # fmt: skip
            steps += 1
        steps -= config.epochs  # the caller adds these when it counts the generation

    # --- on NumPy arrays ------------------------------------------------------------------------

    def train(self, policy: Policy, scores: Policy, batch: Batch) -> None:
        """Do what `learn` does, with scores in NumPy."""
        engine, config = self.engine, self.model.config
        runs = engine.rows(batch.seeds, batch.generations)
        runs[:, common.STEPS.value] = engine.put(policy.steps.astype(np.int64))
        kept = config.adam == "kept"
        there = self.fresh(len(runs))
        for to, array in zip((there.theta, there.m, there.v), _arrays(scores, kept), strict=False):
            to.copy_(engine.put(array))
        old, advantages, weights = (
            engine.put(np.asarray(array, np.float32))
            for array in (batch.old, batch.advantages, batch.weights)
        )
        self.learn(
            policy, there, runs, engine.put(np.asarray(batch.points, np.int32)), old, advantages,
            weights, most_steps=int(policy.steps.max(initial=0)),
        )  # fmt: skip
        trained = (there.theta, there.m, there.v)
        for array, tensor in zip(_arrays(scores, kept), trained, strict=False):
            array[:] = host(tensor)
        if kept:
            policy.steps += config.epochs
            scores.steps += config.epochs

    # --- launches -------------------------------------------------------------------------------

    def _noise(self, runs: Tensor, count: int, epochs: int, purpose: int) -> Tensor:
        """Return Gumbel noise (epochs, R, count, n), float64."""
        size, n, config = len(runs), self.model.n, self.model.config
        shape = (epochs, size, count, n)
        x = torch.zeros(shape, dtype=torch.float64, device=self.engine.device)
        relaxed_sort.order_uniforms[(epochs, count, size)](
            x, runs, n, PURPOSE=purpose, PER_CANDIDATE=config.order_per == "candidate",
            NP=self._padded,
        )  # fmt: skip
        return x.neg_().log1p_().neg_().log_().neg_()

    def _sort(
        self, relaxed: arguments.Relaxed, scores: Scores, noise: Tensor, places: Tensor,
        ranks: Tensor, runs: Tensor, relaxes: bool,
    ) -> None:  # fmt: skip
        size, count, _ = places.shape
        relaxed_sort.sort[(count, size)](
            relaxed, scores.theta, noise, places, ranks, runs, self._owner, self.model.n,
            self.model.coding.features, RELAXED=relaxes, FP=self._inputs, **self._rows,
        )  # fmt: skip

    def _relax(self, relaxed: arguments.Relaxed, runs: Tensor, count: int) -> None:
        """Compute the degrees of visibility under relaxed orders."""
        n, size, across = self.model.n, len(runs), -(-self.model.n // _TILE)
        relaxed_sort.sums_before[(across, count, size)](relaxed, runs, n, J=_TILE, A=_DEPTH)
        relaxed_sort.degrees[(across**2, count, size)](
            relaxed, runs, self._outputs, n, N=_TILE, K=_DEPTH
        )

    def _differentiate(self, relaxed: arguments.Relaxed, runs: Tensor, count: int) -> None:
        """Compute the gradients of the perturbed scores from the derivatives by the degrees."""
        n, size, across = self.model.n, len(runs), -(-self.model.n // _TILE)
        relaxed_sort.place_slopes[(across**2, count, size)](relaxed, runs, n, N=_TILE, K=_DEPTH)
        relaxed_sort.score_slopes[(count, size)](relaxed, runs, n, **self._rows)

    def _get_scratch(self, runs: int, count: int) -> arguments.Relaxed:
        """Return scratch memory for so many runs and candidates, which is kept."""
        kept, n = self._scratch, self.model.n
        if kept is None or kept.noisy.shape[0] < runs or kept.noisy.shape[1] < count:
            vectors = {
                name: torch.zeros((runs, count, n), dtype=dtype, device=self.engine.device)
                for name, dtype in (
                    ("noisy", torch.float64), ("distances", torch.float64),
                    ("normal", torch.float64), ("columns", torch.float32),
                    ("gradients", torch.float32),
                )
            }  # fmt: skip
            matrices = {
                name: torch.zeros((runs, count, n, n), device=self.engine.device)
                for name in ("before", "degrees", "slopes")
            }
            self._scratch = kept = arguments.Relaxed(**vectors, **matrices)
        return kept

    def _corrections_of(self, steps: int) -> Tensor:
        """Return 1 - beta^t for both betas, for at least `steps` steps."""
        if len(self._corrections) < steps:
            t = np.arange(1, 2 * steps + 1)
            betas = (self.model.config.adam_beta1, self.model.config.adam_beta2)
            self._corrections = self.engine.put(np.stack([1.0 - b**t for b in betas], axis=1))
        return self._corrections


def _arrays(scores: Policy, kept: bool) -> tuple[Tensor, ...]:
    """Return the arrays that outlive a generation."""
    return (scores.theta, scores.m, scores.v) if kept else (scores.theta,)
