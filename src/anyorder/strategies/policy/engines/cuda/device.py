"""The part that engines on a GPU share: arrays on the device, the array `runs`, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from anyorder.strategies.policy.engines.base import Batch, Codes, Draw, Floats, Policy
from anyorder.strategies.policy.engines.cuda.kernels import arguments, common
from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import SeparateNetworks, SharedNetwork
from anyorder.strategies.policy.rng import UIntArray, drop_threshold

Tensor = Any

# The least eps of Adam: `common.reciprocals` multiplies two of them, and squares of smaller
# gradients underflow in float32.
_LEAST_EPS = 1e-18


class DeviceEngine:
    """The part of an engine that does not depend on the kind of network.

    Its methods on tensors never wait for the device; `policy/many/device.py` uses them.
    """

    name = "cuda"
    dtype: np.dtype[Any] = np.dtype(np.float32)

    def __init__(self, model: Model[SeparateNetworks] | Model[SharedNetwork]) -> None:
        self.device = torch.device("cpu" if common.INTERPRETED.value else "cuda")
        self._model = model
        self._coefficient_table: Tensor = None

    def memory_of(self, runs: int, budget: int) -> int:
        """Return approximately how many bytes `runs` runs take on the device."""
        raise NotImplementedError

    def initialize(
        self, theta: Tensor, runs: Tensor, only_restarting: bool = False, first: int = 0
    ) -> None:
        """Initialize the parameters of all runs, or of the runs with the status RESTARTING.

        They are those of `fresh` with `first` added to each run's restarts.
        """
        raise NotImplementedError

    def draw(
        self, theta: Tensor, runs: Tensor, points: Tensor, probs: Tensor, drop: bool,
        given: Tensor = None,
    ) -> None:  # fmt: skip
        """Draw candidates (R, count, n) and their distributions (R, count, V), as `sample` does.

        `given`, (R, count, n), are places of the variables in the orders, which replace random
        orders.
        """
        raise NotImplementedError

    def orders(self, runs: Tensor, count: int, stamps: Tensor = None, into: Any = None) -> Any:
        """Return the orders under which `learn` trains, which follow from seeds and generations."""
        raise NotImplementedError

    def given_orders(self, keys: UIntArray) -> Any:
        """Return the training orders of sort keys (R, B, n); they are the same in all epochs."""
        raise NotImplementedError

    def learn(
        self, policy: Policy, runs: Tensor, points: Tensor, old: Tensor, advantages: Tensor,
        weights: Tensor, orders: Any, drop: bool, most_steps: int = 0,
    ) -> None:  # fmt: skip
        """Do what `train` does; advantages and weights may be expanded views."""
        raise NotImplementedError

    # --- the protocol, on NumPy arrays ----------------------------------------------------------

    def fresh(self, seeds: Sequence[int], restarts: Sequence[int]) -> Policy:
        """Return a policy with initial parameters for each run."""
        runs = self.rows(seeds)
        runs[:, common.RESTARTS.value] = self.put(np.array(restarts, np.int64))
        theta = torch.empty((len(seeds), self._model.parameters), device=self.device)
        kept = self._model.parameters if self._model.config.adam == "kept" else 0
        m = torch.zeros((len(seeds), kept), device=self.device)
        self.initialize(theta, runs)
        return Policy(theta, m, torch.zeros_like(m), np.zeros(len(seeds), np.int64))

    def sample(self, policy: Policy, draw: Draw) -> tuple[Codes, Floats]:
        """Return sampled candidates, and the distributions from which they were drawn."""
        runs = self.rows(draw.seeds, draw.generations)
        runs[:, common.FIRST.value] = self.put(np.array(draw.first, np.int64))
        runs[:, common.DROPS_G.value] = self._thresholds(draw.drop)
        shape = (len(draw.seeds), draw.count)
        points = torch.empty((*shape, self._model.n), dtype=torch.int32, device=self.device)
        probs = torch.empty((*shape, self._model.values), device=self.device)
        places = None if draw.keys is None else self.put(places_of(draw.keys))
        self.draw(policy.theta, runs, points, probs, any(p > 0 for p in draw.drop), places)
        return host(points), host(probs)

    def train(self, policy: Policy, batch: Batch) -> None:
        """Train E epochs of Adam on eq. (8)."""
        runs = self.rows(batch.seeds, batch.generations)
        runs[:, common.DROPS_T.value] = self._thresholds(batch.drop)
        runs[:, common.STEPS.value] = self.put(policy.steps.astype(np.int64))
        count, stamps = batch.points.shape[1], self.put(batch.stamps.astype(np.int64))
        if batch.keys is None:
            orders = self.orders(runs, count, stamps)
        else:
            orders = self.given_orders(batch.keys)
        self.learn(
            policy,
            runs,
            self.put(np.ascontiguousarray(batch.points, np.int32)),
            self.put(np.ascontiguousarray(batch.old, np.float32)),
            self.put(np.ascontiguousarray(batch.advantages, np.float32)),
            self.put(np.ascontiguousarray(batch.weights, np.float32)),
            orders,
            any(p > 0 for p in batch.drop),
            most_steps=int(policy.steps.max(initial=0)),
        )
        if self._model.config.adam == "kept":
            policy.steps += self._model.config.epochs

    def restart(self, policy: Policy, runs: Tensor, first: int = 0) -> None:
        """Initialize parameters and moments of the runs with the status RESTARTING."""
        if self._model.config.adam == "kept":
            restarting = runs[:, common.STATUS.value] == common.RESTARTING.value
            policy.m.masked_fill_(restarting[:, None], 0.0)
            policy.v.masked_fill_(restarting[:, None], 0.0)
        self.initialize(policy.theta, runs, only_restarting=True, first=first)

    def export(self, policy: Policy) -> dict[str, npt.NDArray[Any]]:
        """Return the policy as arrays to store."""
        theta, m, v = (host(x) for x in (policy.theta, policy.m, policy.v))
        return Policy(theta, m, v, policy.steps).export()

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Policy:
        """Return the policy in the arrays that `export` returned."""
        policy = Policy.load(arrays, self.dtype)
        theta, m, v = (self.put(x) for x in (policy.theta, policy.m, policy.v))
        return Policy(theta, m, v, policy.steps)

    def rows(self, seeds: Sequence[int], generations: Sequence[int] | None = None) -> Tensor:
        """Return the array `runs` for the kernels: see `common.py`."""
        rows = np.zeros((len(seeds), common.FIELDS.value), np.int64)
        rows[:, common.SEED.value] = np.array(seeds, np.uint64).view(np.int64)
        if generations is not None:
            rows[:, common.GENERATION.value] = generations
        return self.put(rows)

    def runs_that_fit(self, runs: int, budget: int) -> int:
        """Return how many of `runs` runs fit onto the device; MemoryError if not even one does."""
        if self.device.type != "cuda":
            return runs
        free, total = torch.cuda.mem_get_info()
        room = int(0.85 * (free + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()))
        one = self.memory_of(1, budget)
        if one > room:
            raise MemoryError(
                f"one run of {self._model.n} variables and hidden layers "
                f"{self._model.config.hidden} takes about {one / 2**30:.1f} GiB on the GPU, which "
                f"has {room / 2**30:.1f} of {total / 2**30:.1f} free; no run fits. Smaller hidden "
                "layers, a smaller population and fewer epochs need less, and engine='cpu' has the "
                "machine's memory."
            )
        return min(runs, room // one, 65535)

    def _training(self, most_steps: int) -> arguments.Training:
        """Return the constants of training for moments that took at most `most_steps` steps."""
        config = self._model.config
        beta1, beta2 = config.adam_beta1, config.adam_beta2
        return arguments.Training(
            self._coefficients(most_steps), config.epochs, config.beta,
            beta1, beta2, 1.0 - beta1, 1.0 - beta2,
        )  # fmt: skip

    def _coefficients(self, most_steps: int) -> Tensor:
        """Return the coefficients of Adam at every step: each layer's two rates, and eps.

        With M = m / (1 - beta1), V = v / (1 - beta2) and k = sqrt((1 - beta2^t) / (1 - beta2)), a
        step is rate * k (1 - beta1) / (1 - beta1^t) * M / (sqrt(V) + k eps).
        """
        config, network = self._model.config, self._model.network
        need = most_steps + config.epochs
        if self._coefficient_table is None or len(self._coefficient_table) < need:
            beta1, beta2 = config.adam_beta1, config.adam_beta2
            t = np.arange(1, 2 * need if most_steps else need + 1, dtype=np.float64)
            k = np.sqrt(-np.expm1(t * np.log(beta2)) / (1 - beta2)) if beta2 else np.ones_like(t)
            scale = k * (1 - beta1) / (-np.expm1(t * np.log(beta1)) if beta1 else 1.0)
            eps = np.maximum(k * network.adam_eps, _LEAST_EPS)
            table = [*(scale * rate for rate in network.rates.ravel()), eps]
            self._coefficient_table = self.put(np.stack(table, axis=1).astype(np.float32))
        return self._coefficient_table

    def _thresholds(self, drop: Sequence[float]) -> Tensor:
        return self.put(np.array([drop_threshold(p) for p in drop], np.int64))

    def put(self, array: npt.NDArray[Any]) -> Tensor:
        """Copy an array to the device and return the tensor."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


def host(tensor: Tensor) -> npt.NDArray[Any]:
    """Copy a tensor to the host and return the array."""
    array: npt.NDArray[Any] = tensor.detach().cpu().numpy()
    return array


def not_empty(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array, or one zero: a kernel needs a valid pointer."""
    return array if len(array) else np.zeros(1, array.dtype)


def places_of(keys: UIntArray) -> npt.NDArray[np.int32]:
    """Return the places of variables in the orders of sort keys `(..., n)`; ties by index."""
    order = np.argsort(keys, axis=-1, kind="stable")
    return np.argsort(order, axis=-1, kind="stable").astype(np.int32)
