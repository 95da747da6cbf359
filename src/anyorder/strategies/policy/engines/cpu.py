"""The engine `cpu`: threads over the compiled loops of `kernels.py`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import cores
from anyorder.strategies.policy.coding import IntArray
from anyorder.strategies.policy.engines import kernels
from anyorder.strategies.policy.engines.base import Batch, Codes, Draw, Floats, Policy
from anyorder.strategies.policy.engines.kernel_arguments import (
    Data,
    Groups,
    Parameters,
    Plan,
    Schedule,
    Scratch,
    Stream,
    coding_fields,
    groups_of,
)
from anyorder.strategies.policy.engines.memory import runs_in_memory
from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import Network, SeparateNetworks
from anyorder.strategies.policy.rng import ORDER_G, ORDER_T, UIntArray, drop_threshold, split_seed

# With less work (multiply-adds) a second thread costs more than it saves.
WORTH_A_THREAD = 1_000_000

_Task = Callable[[int, int, int], None]


def default_threads() -> int:
    """Return the number of threads: ANYORDER_NUM_THREADS, or the cores this process may use."""
    setting = os.environ.get("ANYORDER_NUM_THREADS", "")
    if setting:
        if not (setting.isascii() and setting.isdigit()) or int(setting) < 1:
            raise ValueError(f"ANYORDER_NUM_THREADS is {setting!r}, expected a positive integer")
        return int(setting)
    return cores()


class CpuEngine:
    """The engine `cpu`: float32, compiled by Numba.

    Threads share the runs, or the variables of a single run (its candidates in sampling). Results
    do not depend on the number of threads.
    """

    name = "cpu"
    dtype: np.dtype[Any] = np.dtype(np.float32)

    def __init__(self, model: Model[SeparateNetworks], threads: int | None = None) -> None:
        self.model = model
        self.threads = default_threads() if threads is None else threads
        coding, network = model.coding, model.network
        rows = np.append(network.widths[1:], coding.outputs.max())
        self._plan = Plan(
            **coding_fields(model),
            widths=network.widths,
            rates=network.rates,
            theta_start=network.theta_start,
            pads=round_up(network.widths, kernels.LANES),
            row_start=np.concatenate([[0], np.cumsum(round_up(rows, 2))]),
        )
        self._groups = groups_of(model)
        self._schedule = schedule_of(model)
        # there is room for the logits and slopes of each value of a variable, rounded up to fives
        self._units = int(round_up(round_up(rows.max(), 5), kernels.LANES))
        self._local = threading.local()

    def runs_that_fit(self, runs: int, budget: int) -> int:
        """Return how many of `runs` runs fit in memory together; MemoryError if none does."""
        rows = int(self.model.network.widths[1:].sum() + self.model.coding.outputs.max())
        # weights and moments of one thread, with rows padded to the longest
        scratch = 3 * self.dtype.itemsize * rows * max(self.model.coding.features, rows)
        return runs_in_memory(self.model, self.dtype.itemsize, scratch, runs)

    def fresh(self, seeds: Sequence[int], restarts: Sequence[int]) -> Policy:
        """Return a policy with initial parameters for each run."""
        theta = np.empty((len(seeds), self.model.parameters), np.float32)

        def task(r: int, i0: int, i1: int) -> None:
            key = split_seed(seeds[r])
            kernels.initial_theta(theta[r], i0, i1, self._plan, *key, restarts[r])

        share(self.threads, task, len(seeds), self.model.n, theta.size * 10)
        return Policy.start(theta, self.model.config.adam)

    def export(self, policy: Policy) -> dict[str, npt.NDArray[Any]]:
        """Return the policy as arrays to store."""
        return policy.export()

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Policy:
        """Return the policy in the arrays that `export` returned."""
        return Policy.load(arrays, self.dtype)

    def sample(self, policy: Policy, draw: Draw) -> tuple[Codes, Floats]:
        """Return sampled candidates, and the distributions from which they were sampled."""
        model, runs, count = self.model, len(draw.seeds), draw.count
        points = np.empty((runs, count, model.n), np.int32)
        probs = np.empty((runs, count, model.values), np.float32)
        gibbs = model.config.generation_order == "gibbs"
        sweeps = model.config.gibbs_sweeps if gibbs else 1

        def task(r: int, c0: int, c1: int) -> None:
            stream = stream_of(draw.seeds[r], draw.generations[r], draw.drop[r])
            orders = np.argsort(sampling_keys(model, stream, draw, r), axis=1, kind="stable")
            kernels.sample(
                points[r], probs[r], orders, draw.first[r], policy.theta[r],
                self._plan, self._groups, stream, self._scratch(1), sweeps, c0, c1,
            )  # fmt: skip

        share(self.threads, task, runs, count, policy.theta.size * count * sweeps)
        return points, self.conditionals(policy, points) if gibbs else probs

    def conditionals(self, policy: Policy, points: Codes, keys: UIntArray | None = None) -> Floats:
        """Return the distribution of every variable given those before it, or all others."""
        coding = self.model.coding
        runs, count, _ = points.shape
        probs = np.empty((runs, count, coding.values), np.float32)
        features = coding.features_of(points)
        no_keys = np.empty((0, count, coding.features), np.uint32)

        def task(r: int, i0: int, i1: int) -> None:
            seen = no_keys if keys is None else np.take(keys[r : r + 1], coding.owner, axis=-1)
            kernels.conditionals(
                probs[r], features[r], seen.astype(np.uint32), policy.theta[r],
                self._plan, self._groups, self._scratch(count), self._schedule.kl, i0, i1,
            )  # fmt: skip

        share(self.threads, task, runs, coding.n, policy.theta.size * count)
        return probs

    def train(self, policy: Policy, batch: Batch) -> None:
        """Train E epochs of Adam on eq. (8) for every variable."""
        config = self.model.config
        runs, count, _ = batch.points.shape
        points = np.ascontiguousarray(batch.points, np.int32)
        features = self.model.coding.features_of(points)
        old = np.ascontiguousarray(batch.old, np.float32)
        advantages = np.ascontiguousarray(batch.advantages, np.float32)
        weights = np.ascontiguousarray(batch.weights, np.float32)
        streams = [
            stream_of(batch.seeds[r], batch.generations[r], batch.drop[r]) for r in range(runs)
        ]
        all_keys: dict[int, UIntArray] = {}
        if (
            runs < self.threads
        ):  # threads share the keys of a run, or each thread draws the keys of its runs
            all_keys = {r: self._keys(streams[r], batch, r) for r in range(runs)}

        def task(r: int, i0: int, i1: int) -> None:
            keys = all_keys[r] if all_keys else self._keys(streams[r], batch, r)
            groups = with_turns(self._groups, self.model, streams[r], batch, r)
            kernels.train(
                Parameters(policy.theta[r], policy.m[r], policy.v[r], int(policy.steps[r])),
                Data(points[r], features[r], old[r], advantages[r], weights[r], keys),
                self._plan, groups, self._schedule, streams[r], self._scratch(count), i0, i1,
            )  # fmt: skip

        share(self.threads, task, runs, self.model.n, policy.theta.size * count * config.epochs)
        if config.adam == "kept":
            policy.steps += config.epochs

    def _keys(self, stream: Stream, batch: Batch, r: int) -> UIntArray:
        return training_keys(self.model, stream, batch, r, self.model.coding.owner)

    def _scratch(self, batch: int) -> Scratch:
        """Return this thread's scratch memory for batches up to this size, which is kept."""
        if getattr(self._local, "batch", -1) < batch:
            layers, lot, units = len(self._plan.widths), int(round_up(batch, 5)), self._units
            length = max(int(self._plan.pads[0]), units)
            rows = (
                int(self._plan.row_start[-1]) + layers + 4
            )  # loops over fives of rows may go beyond the last row
            self._local.batch = batch
            self._local.scratch = Scratch(
                w=aligned_zeros(0, rows, length),
                m=aligned_zeros(1, rows, length),
                v=aligned_zeros(2, rows, length),
                x=aligned_zeros(3, 1, lot, length),
                h=aligned_zeros(4, layers, lot, units),
                delta=aligned_zeros(5, layers, lot, units),
                ones=np.ones((1, lot, 1), np.float32),
                row=aligned_zeros(6, length),
                terms=np.zeros((3, lot), np.float32),
                words=np.zeros(int(round_up(self.model.n, 4)), np.uint32),
                active=np.zeros(lot, np.int64),
                fans=np.zeros(layers, np.int64),
            )
        scratch: Scratch = self._local.scratch
        return scratch


def schedule_of(model: Model[Network]) -> Schedule:
    """Return the constants of training."""
    config = model.config
    kl = kernels.BERNOULLI if config.kl == "bernoulli" else kernels.CATEGORICAL
    return Schedule(
        epochs=config.epochs,
        kl=kernels.SQUARES if model.loss == "squares" else kl,
        log=config.objective == "log",
        beta=config.beta,
        beta1=config.adam_beta1,
        beta2=config.adam_beta2,
        eps=model.network.adam_eps,
    )


def sampling_keys(model: Model[Network], stream: Stream, draw: Draw, r: int) -> UIntArray:
    """Return sort keys `(B, n)` of the orders in which a run's candidates are sampled."""
    if draw.keys is not None:
        return np.ascontiguousarray(draw.keys[r], np.uint32)
    rows = np.arange(draw.first[r], draw.first[r] + draw.count)
    generations = np.full(draw.count, draw.generations[r], np.int64)
    keys: UIntArray = generation_keys(model, stream, rows, generations, np.arange(model.n))[0]
    return keys


def generation_keys(
    model: Model[Network], stream: Stream, rows: IntArray, generations: IntArray, owner: IntArray
) -> UIntArray:
    """Return sort keys `(1, len(rows), len(owner))` of generation orders."""
    config = model.config
    keys = np.empty((1, len(rows), len(owner)), np.uint32)
    if config.generation_order in ("fixed", "gibbs"):
        keys[:] = owner
        return keys
    if config.order_per == "population":
        rows = np.zeros_like(rows)
    kernels.order_keys(keys, owner, model.n, ORDER_G, rows, generations, stream.key0, stream.key1)
    return keys


def training_keys(
    model: Model[Network], stream: Stream, batch: Batch, r: int, owner: IntArray
) -> UIntArray:
    """Return sort keys `(E or 1, B, len(owner))` of training orders; `(0, ...)` without orders."""
    config, count = model.config, batch.points.shape[1]
    if config.training_order == "none":
        return np.empty((0, count, len(owner)), np.uint32)
    if batch.keys is not None:
        return np.take(batch.keys[r], owner, axis=-1)[None].astype(np.uint32)
    if config.training_order == "generation":
        rows, generations = batch.stamps[r, :, 1].copy(), batch.stamps[r, :, 0].copy()
        return generation_keys(model, stream, rows, generations, owner)
    if config.training_order == "fixed":
        return np.broadcast_to(np.uint32(owner), (1, count, len(owner))).copy()
    shared = config.order_per == "population"
    rows = np.zeros(count, np.int64) if shared else np.arange(count)
    generations = np.full(count, stream.generation, np.int64)
    keys = np.empty((config.epochs, count, len(owner)), np.uint32)
    kernels.order_keys(keys, owner, model.n, ORDER_T, rows, generations, stream.key0, stream.key1)
    return keys


def with_turns(
    groups: Groups | None, model: Model[Network], stream: Stream, batch: Batch, r: int
) -> Groups | None:
    """Return groups with the sort keys of the orders that masks follow in training.

    Without an order in training, it is the order in which the candidate was drawn.
    """
    if groups is None:
        return None
    columns = np.flatnonzero(model.group_of >= 0)
    turns = training_keys(model, stream, batch, r, columns)
    if not len(turns):
        rows, generations = batch.stamps[r, :, 1].copy(), batch.stamps[r, :, 0].copy()
        turns = generation_keys(model, stream, rows, generations, columns)
    return groups._replace(turns=turns)


def share(threads: int, task: _Task, runs: int, count: int, work: int) -> None:
    """Call `task(run, start, end)` for all items of all runs, in up to `threads` threads.

    `work` is the total number of multiply-adds of all calls.
    """
    number = min(threads, max(runs, count), 1 + work // WORTH_A_THREAD)
    if runs >= number:
        jobs = [
            [(r, 0, count) for r in range(runs * k // number, runs * (k + 1) // number)]
            for k in range(number)
        ]
    else:
        jobs = [
            [(r, count * k // number, count * (k + 1) // number) for r in range(runs)]
            for k in range(number)
        ]

    def run_all(calls: list[tuple[int, int, int]]) -> None:
        for call in calls:
            task(*call)

    futures = [_pool(threads).submit(run_all, calls) for calls in jobs[1:]]
    run_all(jobs[0])
    for future in futures:
        future.result()


def stream_of(seed: int, generation: int, drop: float) -> Stream:
    """Return the random stream of a run in one generation."""
    return Stream(*split_seed(seed), int(generation), drop_threshold(drop))


def round_up(size: Any, unit: int) -> Any:
    """Return the least multiple of `unit` that is not less than `size`."""
    return -(-size // unit) * unit


def aligned_zeros(place: int, *shape: int) -> npt.NDArray[np.float32]:
    """Return zeros that start at a cache line.

    Each `place` is offset by 5/16 of a page from the one before.

    A load waits for a recent store if the lower 12 bits of their addresses agree. With addresses
    left to chance, this makes training up to 1.6 times slower.
    """
    size = int(np.prod(shape))
    buffer = np.zeros(size + 1024, np.float32)
    start = (320 * place - buffer.ctypes.data // 4) % 1024
    return buffer[start : start + size].reshape(shape)


_pools: dict[int, ThreadPoolExecutor] = {}


def _pool(threads: int) -> ThreadPoolExecutor:
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads - 1, "anyorder")
    return _pools[threads]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # threads do not survive a fork
