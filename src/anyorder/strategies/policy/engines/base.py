"""What an engine is: the arrays it exchanges and the verbs it has.

An engine holds no state of a run. It is made for one `Layout`; a `Policy` (the parameters of a
batch of runs) goes in, and every call names the runs' seeds and generations, from which all
randomness follows (`rng.py`). Arrays lead with the run: R runs, B candidates, n variables, V = the
numbers of values added up. One run alone gives what it gives inside a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.layout import Layout

Floats = npt.NDArray[np.floating]
Codes = npt.NDArray[np.int32]
Array = Any  # NumPy's, or a tensor on the engine's device


@dataclass
class Policy:
    """The parameters of R runs, in the engine's precision and on its device.

    Attributes
    ----------
    theta
        `(R, layout.parameters)`.
    m, v
        Adam's moments, of theta's shape; with `adam="anew"` they are `(R, 0)`.
    steps
        `(R,)`: Adam steps taken with these moments.
    """

    theta: Array
    m: Array
    v: Array
    steps: npt.NDArray[np.int64]

    @staticmethod
    def start(theta: Floats, adam: str) -> Policy:
        """A policy that has not trained yet; `adam` is the configuration's."""
        zeros = np.zeros((len(theta), theta.shape[1] if adam == "kept" else 0), theta.dtype)
        return Policy(theta, zeros, zeros.copy(), np.zeros(len(theta), np.int64))

    def export(self) -> dict[str, npt.NDArray[Any]]:
        """The policy as arrays to store, if it is in NumPy; else its engine does it."""
        return {
            "theta": self.theta.copy(),
            "adam_m": self.m.copy(),
            "adam_v": self.v.copy(),
            "adam_steps": self.steps.copy(),
        }

    @staticmethod
    def load(arrays: Mapping[str, npt.NDArray[Any]], dtype: npt.DTypeLike) -> Policy:
        """The inverse of `export`, in the given precision.

        Raises ValueError for numbers that training cannot have produced.
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
        `(R,)`: how many were drawn from this generation's policy before.
    drop
        `(R,)`: the probability p_G of structural dropout.
    """

    seeds: Sequence[int]
    generations: Sequence[int]
    first: Sequence[int]
    drop: Sequence[float]
    count: int


@dataclass(frozen=True)
class Batch:
    """What a generation is trained on.

    The loss of variable i is a mean over the B candidates of `weights[., ., i]` times its term of
    the objective; a weight of 0 takes the term out and costs no arithmetic, and a variable with no
    weight at all keeps its parameters.

    Attributes
    ----------
    seeds, generations
        `(R,)`, see `rng.py`.
    points
        `(R, B, n)` codes. A code of -1 is a variable that the candidate does not have: all networks
        read its inputs as hidden; give it a weight of 0.
    old
        `(R, B, V)`: the distributions that each candidate was drawn from.
    advantages, weights
        `(R, B, n)`.
    drop
        `(R,)`: the probability p_T of structural dropout.
    stamps
        `(R, B, 2)`: the generation each candidate was drawn in, and its number in it: with
        `training_order="generation"` its order is drawn again from these.
    """

    seeds: Sequence[int]
    generations: Sequence[int]
    points: Codes
    old: Floats
    advantages: Floats
    weights: Floats
    drop: Sequence[float]
    stamps: npt.NDArray[np.int64]


class Engine(Protocol):
    """The policy's arithmetic. Three verbs, a way to start, and a way to be stored.

    Attributes
    ----------
    dtype
        The precision of parameters and probabilities.
    """

    name: str
    layout: Layout
    dtype: np.dtype[Any]

    def runs_that_fit(self, runs: int, budget: int) -> int:
        """How many of so many runs its memory holds together; MemoryError if not even one."""

    def fresh(self, seeds: Sequence[int], restarts: Sequence[int]) -> Policy:
        """A policy with initial parameters for each run."""

    def export(self, policy: Policy) -> dict[str, npt.NDArray[Any]]:
        """`Policy.export`, from wherever the policy is, in the layout's arrangement."""

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Policy:
        """The inverse of `export`."""

    def sample(self, policy: Policy, draw: Draw) -> tuple[Codes, Floats]:
        """Candidates `(R, B, n)` and the distributions they were drawn from `(R, B, V)`."""

    def conditionals(
        self, policy: Policy, points: Codes, keys: npt.NDArray[np.uint32] | None = None
    ) -> Floats:
        """The distribution `(R, B, V)` of every variable of every point, given part of the others.

        With sort keys `(R, B, n)` variable i sees the variables that come before it (smaller key,
        or the same key and a smaller index; the ranks of a permutation will do). Without keys it
        sees all the others. The known interaction graph holds in both cases; dropout does not.
        """

    def train(self, policy: Policy, batch: Batch) -> None:
        """E epochs on a batch; changes the policy in place."""
