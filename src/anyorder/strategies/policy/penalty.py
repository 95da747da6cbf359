"""An adaptive weight of the KL penalty, by PPO's rule on the divergence of each generation.

The paper calls beta adaptive and gives no rule; this is the usual one (Schulman et al., "Proximal
policy optimization algorithms", 2017). After a generation, the mean divergence of the new
distributions from those of which its candidates were sampled is compared with a target: beta is
halved if it is below two thirds of the target, and doubled if it is above one and a half times the
target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.engines import Batch, Policy
from anyorder.strategies.policy.orders import sampling_keys

NEUTRAL = 10  # with so many doublings beta is that of the configuration; 0 to 20 are possible
_WIDTH = 1.5


class Penalty:
    """The weights of the penalty in some runs.

    Attributes
    ----------
    doublings
        `(runs,)`: beta is multiplied by 2 to the power of this number minus `NEUTRAL`.
    """

    def __init__(self, engine: Any, runs: int) -> None:
        self._engine, self._target = engine, engine.model.config.kl_target
        self.doublings: npt.NDArray[np.int64] = np.full(runs, NEUTRAL)

    def scale(self, batch: Batch, runs: Sequence[int] | npt.NDArray[np.int64]) -> Batch:
        """Return the batch on which these runs train.

        Weights are multiplied by the factor of beta and advantages divided by it, so that
        w (ratio A - beta KL) becomes w (ratio A - factor beta KL) on every engine.
        """
        factor = 2.0 ** (self.doublings[runs] - NEUTRAL)[:, None, None]
        return replace(batch, weights=batch.weights * factor, advantages=batch.advantages / factor)

    def follow(
        self, policy: Policy, batch: Batch, runs: Sequence[int] | npt.NDArray[np.int64]
    ) -> None:
        """Adapt the weights of these runs, whose policies have just trained on the batch."""
        found = self.divergences(policy, batch)
        change = (found > _WIDTH * self._target).astype(np.int64)
        change -= found < self._target / _WIDTH
        self.doublings[runs] = np.clip(self.doublings[runs] + change, 0, 2 * NEUTRAL)

    def divergences(self, policy: Policy, batch: Batch) -> npt.NDArray[np.float64]:
        """Return the mean divergences `(R,)` over candidates and their present variables."""
        model, points = self._engine.model, batch.points
        keys = [
            sampling_keys(model, seed, [(int(a), int(b)) for a, b in stamps])
            for seed, stamps in zip(batch.seeds, batch.stamps, strict=True)
        ]
        every = None if keys[0] is None else np.stack(keys)  # type: ignore[arg-type]
        new = np.asarray(self._engine.conditionals(policy, points, every), np.float64)
        old = np.asarray(batch.old, np.float64)
        terms = np.add.reduceat(old * np.log(old / new), model.value_start[:-1], axis=2)
        there = points >= 0
        return np.asarray((terms * there).sum(axis=(1, 2)) / np.maximum(there.sum(axis=(1, 2)), 1))

    def restart(self, runs: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """Return to the beta of the configuration."""
        self.doublings[runs] = NEUTRAL
