"""The critic of runs on a device: `policy/critic.py` on tensors, without waiting for the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from anyorder.strategies.base import FEASIBLE_ABOVE
from anyorder.strategies.policy.critic import LARGEST_GAIN, LARGEST_VALUE, TWIN, Critic
from anyorder.strategies.policy.engines import Model
from anyorder.strategies.policy.networks import Network

Tensor = Any


class DeviceCritic:
    """The critics of all runs, in populations of `count`; for the array `runs` see `common.py`."""

    def __init__(self, model: Model[Network], seeds: Sequence[int], count: int) -> None:
        critic = Critic(model, "cuda")
        self.alpha = critic.alpha
        self.engine: Any = critic.engine
        self.policy = critic.fresh(seeds, [0] * len(seeds))
        self._count = count
        self._random = self.engine.model.config.training_order == "random"
        self._sampled: Any = None

    def draw_orders(self, runs: Tensor, stamps: Tensor) -> None:
        """Draw the orders in which the candidates of this generation are sampled."""
        self._sampled = self.engine.orders(runs, self._count, stamps, self._sampled, "generation")

    def advantages(
        self, runs: Tensor, points: Tensor, values: Tensor, weights: Tensor, orders: Any,
        most_steps: int,
    ) -> Tensor:  # fmt: skip
        """Train the critics on a generation, and return the advantages (R, count, n).

        `values`, (R, count), are float64, and higher is better. `orders` are the orders under which
        the policy is trained.
        """
        targets = finite(values)[:, :, None]
        estimates = torch.ones(points.shape, device=points.device)
        wanted = targets.float()
        self.engine.learn(
            self.policy, runs, points, estimates, wanted.expand(points.shape), weights,
            orders if self._random else self._sampled, drop=False, most_steps=most_steps,
        )  # fmt: skip
        self.engine.estimate(self.policy.theta, runs, points, estimates, self._sampled.ranks)
        gain = self.alpha * (targets - estimates.double())
        return gain.clamp_(-LARGEST_GAIN, LARGEST_GAIN).float()

    def restart(self, runs: Tensor) -> None:
        """Initialize the critics of the runs with the status RESTARTING."""
        self.engine.restart(self.policy, runs, TWIN)


def finite(values: Tensor) -> Tensor:
    """Return values in which failed and rejected candidates have the worst value, or 0.

    (`where` would copy a number to the device, which cannot be recorded; `masked_fill` does not.)
    """
    good = values.isfinite() & (values > FEASIBLE_ABOVE)
    worst = values.masked_fill(~good, torch.inf).amin(dim=1, keepdim=True)
    worst = worst.masked_fill(worst.isinf(), 0.0)
    return torch.where(good, values, worst).clamp(-LARGEST_VALUE, LARGEST_VALUE)
