"""The protocol of an engine, and the arrays it exchanges.

An engine computes one `Model` and holds no state of a run. The parameters of a batch of runs are
passed in as a `Policy`. Every call gets the seeds and generations of the runs, which determine all
random numbers (`rng.py`). The first axis of every array is the run: R runs, B candidates, n
variables, V values in total. A run gives the same result alone and in a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import Network

Floats = npt.NDArray[np.floating]
Codes = npt.NDArray[np.int32]
Array = Any  # a NumPy array, or a tensor on the engine's device


@dataclass
class Policy:
    """The parameters of R runs, in the engine's precision and on its device.

    Attributes
    ----------
    theta
        `(R, parameters)`: the parameters.
    m, v
        Adam's moments, with the shape of theta; with `adam="anew"` they are `(R, 0)`.
    steps
        `(R,)`: the number of Adam steps taken with these moments.
    """

    theta: Array
    m: Array
    v: Array
    steps: npt.NDArray[np.int64]

    @staticmethod
    def start(theta: Floats, adam: str) -> Policy:
        """Return a policy that has not been trained; `adam` is the setting of the configuration."""
        zeros = np.zeros((len(theta), theta.shape[1] if adam == "kept" else 0), theta.dtype)
        return Policy(theta, zeros, zeros.copy(), np.zeros(len(theta), np.int64))

    def export(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays to store; only for NumPy policies, while `Engine.export` takes any."""
        return {
            "theta": self.theta.copy(),
            "adam_m": self.m.copy(),
            "adam_v": self.v.copy(),
            "adam_steps": self.steps.copy(),
        }

    @staticmethod
    def load(arrays: Mapping[str, npt.NDArray[Any]], dtype: npt.DTypeLike) -> Policy:
        """Return the policy in the arrays that `export` returned, in the given precision.

        Raises a ValueError for numbers that training cannot have produced.
        """
        for name in ("theta", "adam_m", "adam_v"):
            if not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} has entries that are NaN or infinite, expected none")
        for name in ("adam_v", "adam_steps"):
            if (arrays[name] < 0).any():
                raise ValueError(f"{name} has negative entries, expected none")
        theta, m, v = (arrays[name].astype(dtype) for name in ("theta", "adam_m", "adam_v"))
        return Policy(theta, m, v, arrays["adam_steps"].astype(np.int64))


@dataclass(frozen=True)
class Draw:
    """A request for `count` candidates of each run.

    Attributes
    ----------
    seeds, generations
        `(R,)`, see `rng.py`.
    first
        `(R,)`: the number of candidates already sampled from this generation's policy.
    drop
        `(R,)`: the probability p_G of structural dropout.
    keys
        `(R, B, n)`: sort keys of the orders with `generation_order="learned"`; otherwise None, and
        the engine draws them.
    """

    seeds: Sequence[int]
    generations: Sequence[int]
    first: Sequence[int]
    drop: Sequence[float]
    count: int
    keys: npt.NDArray[np.uint32] | None = None


@dataclass(frozen=True)
class Batch:
    """The candidates that a generation trains on.

    The loss of variable i is a mean over the B candidates of `weights[:, :, i]` times its term of
    the objective. A term with weight 0 is skipped, and a variable without any weight keeps its
    parameters.

    Attributes
    ----------
    seeds, generations
        `(R,)`, see `rng.py`.
    points
        `(R, B, n)`: codes. A code of -1 means that the candidate does not have the variable: its
        inputs are hidden from all networks, and its weight must be 0. Columns of groups hold codes
        that the bounds of their group allow.
    old
        `(R, B, V)`: the distributions from which each candidate was sampled; those of columns of
        groups are before masks.
    advantages, weights
        `(R, B, n)`.
    drop
        `(R,)`: the probability p_T of structural dropout.
    stamps
        `(R, B, 2)`: the generation in which each candidate was sampled, and its number in it. With
        `training_order="generation"` they determine its order.
    keys
        `(R, B, n)`: sort keys of the orders of all epochs with `training_order="learned"`;
        otherwise None, and the engine draws them.
    """

    seeds: Sequence[int]
    generations: Sequence[int]
    points: Codes
    old: Floats
    advantages: Floats
    weights: Floats
    drop: Sequence[float]
    stamps: npt.NDArray[np.int64]
    keys: npt.NDArray[np.uint32] | None = None


class Engine(Protocol):
    """The arithmetic of a policy.

    Attributes
    ----------
    dtype
        The precision of parameters and probabilities.
    """

    name: str
    dtype: np.dtype[Any]

    @property
    def model(self) -> Model[Network]:
        """The model that the engine computes."""

    def runs_that_fit(self, runs: int, budget: int) -> int:
        """Return how many of `runs` runs fit in memory together; MemoryError if none does."""

    def fresh(self, seeds: Sequence[int], restarts: Sequence[int]) -> Policy:
        """Return a policy with initial parameters for each run."""

    def export(self, policy: Policy) -> dict[str, npt.NDArray[Any]]:
        """Return the policy as NumPy arrays, in the arrangement of the network."""

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Policy:
        """Return the policy in the arrays that `export` returned."""

    def sample(self, policy: Policy, draw: Draw) -> tuple[Codes, Floats]:
        """Sample candidates `(R, B, n)`; return them and their distributions `(R, B, V)`.

        The distributions of columns of groups are the softmax over all values, neither masked nor
        clipped: `masks.apply_masks` returns those from which values were drawn.
        """

    def conditionals(
        self, policy: Policy, points: Codes, keys: npt.NDArray[np.uint32] | None = None
    ) -> Floats:
        """Return the distribution `(R, B, V)` of every variable given some of the others.

        With sort keys `(R, B, n)` variable i sees the variables before it: those with a smaller
        key, or with the same key and a smaller index (ranks of a permutation are also keys).
        Without keys it sees all others. The interaction graph applies in both cases; dropout and
        masks of groups do not.
        """

    def train(self, policy: Policy, batch: Batch) -> None:
        """Train E epochs on a batch; the policy is changed in place."""
