"""A critic: advantages from estimated values instead of ranks (the paper's appendix on critics).

V(sigma(x)_{<i}) estimates f(x) from the variables that come before i in the order in which x was
sampled. The critic's networks are like the policy's, with one output each, which is not squashed.
In each generation they are first trained for E epochs on the squared error of the generation's
values; then the advantage of variable i of a candidate is alpha (f - V).

Like the policy, the critic is trained under new random orders in each epoch. Under the candidates'
own orders it would learn the values of its few candidates by heart, and leave no advantage.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from anyorder.strategies.base import FEASIBLE_ABOVE
from anyorder.strategies.policy.engines import Batch, Model, Policy, create
from anyorder.strategies.policy.engines.base import Codes
from anyorder.strategies.policy.model import make_critic_model
from anyorder.strategies.policy.networks import Network
from anyorder.strategies.policy.orders import order_keys_of
from anyorder.strategies.policy.rng import ORDER_G

Floats = npt.NDArray[np.float64]

TWIN = 2**31  # added to the restarts, so that a critic does not start like the policy
LARGEST_GAIN = 1e6  # of an advantage, see `config.py`
LARGEST_VALUE = 1e12  # its square, and Adam's sum of squares, are within float32


class Critic:
    """The critic of a policy's model, computed by an engine given by its name."""

    def __init__(self, model: Model[Network], engine: str) -> None:
        alpha = model.config.critic
        if alpha is None:
            raise ValueError("critic is None, expected the weight of its advantages")
        self.alpha = alpha
        self.engine = create(engine, make_critic_model(model))

    def fresh(self, seeds: Sequence[int], restarts: Sequence[int]) -> Policy:
        """Return initial parameters for the critic of each run."""
        return self.engine.fresh(seeds, [TWIN + count for count in restarts])

    def advantages(
        self,
        policy: Policy,
        seeds: Sequence[int],
        generations: Sequence[int],
        points: Codes,
        values: Floats,
        stamps: npt.NDArray[np.int64],
    ) -> Floats:
        """Train the critic on a generation, and return the advantages `(R, B, n)`.

        Parameters
        ----------
        points, values, stamps
            `(R, B, n)`, `(R, B)`, higher is better, and `(R, B, 2)`: see `Batch`. A value that is
            not finite, or is the score of a violated constraint, counts as the worst of its
            generation.
        """
        runs, count, n = points.shape
        targets = np.broadcast_to(_finite(values)[:, :, None], points.shape)
        batch = Batch(
            seeds=seeds,
            generations=generations,
            points=points,
            old=np.zeros((runs, count, n)),
            advantages=targets,
            weights=(points >= 0).astype(np.float64),
            drop=[0.0] * runs,
            stamps=stamps,
        )
        self.engine.train(policy, batch)
        keys = [
            order_keys_of(self.engine.model, seed, ORDER_G, own)
            for seed, own in zip(seeds, stamps, strict=True)
        ]
        estimates = self.engine.conditionals(policy, points, np.array(keys, np.uint32))
        gain = self.alpha * (targets - estimates.astype(np.float64))
        return np.clip(gain, -LARGEST_GAIN, LARGEST_GAIN)


def _finite(values: Floats) -> Floats:
    """Return values in which failed and rejected candidates have the worst value, or 0."""
    good = np.isfinite(values) & (values > FEASIBLE_ABOVE)
    worst = np.where(good, values, np.inf).min(axis=1, keepdims=True)
    worst[~np.isfinite(worst)] = 0.0
    return np.clip(np.where(good, values, worst), -LARGEST_VALUE, LARGEST_VALUE)
