"""The engine `cpu`: threads over the compiled loops of `kernels.py`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._checks import cores
from anyorder.strategies.policy.engines import kernels
from anyorder.strategies.policy.engines.base import Batch, Codes, Draw, Floats, Policy
from anyorder.strategies.policy.engines.memory import runs_in_memory
from anyorder.strategies.policy.layout import IntArray, Layout
from anyorder.strategies.policy.rng import ORDER_G, ORDER_T, UIntArray, drop_threshold, split_seed

# Under this much work (multiply-adds) a second thread costs more than it saves.
_WORTH_A_THREAD = 1_000_000

_Task = Callable[[int, int, int], None]


def default_threads() -> int:
    """Threads to use: ANYORDER_NUM_THREADS, or every core this process may run on."""
    setting = os.environ.get("ANYORDER_NUM_THREADS", "")
    if setting:
        if not (setting.isascii() and setting.isdigit()) or int(setting) < 1:
            raise ValueError(f"ANYORDER_NUM_THREADS must be a positive integer, got {setting!r}")
        return int(setting)
    return cores()


class CpuEngine:
    """The engine `cpu`: float32, compiled by Numba.

    Several runs are shared out among the threads; a single run's variables (its candidates, when
    sampling) are. Neither changes a result.
    """

    name = "cpu"
    dtype: np.dtype[Any] = np.dtype(np.float32)

    def __init__(self, layout: Layout, threads: int | None = None) -> None:
        self.layout = layout
        self.threads = default_threads() if threads is None else threads
        config = layout.config
        graph = np.zeros((0, 0), np.uint8) if layout.graph is None else layout.graph
        pads = _whole(kernels.LANES, layout.widths)
        rows = np.append(layout.widths[1:], layout.outputs.max())
        self._plan = kernels.Plan(
            cards=layout.cards,
            outputs=layout.outputs,
            value_start=layout.value_start,
            feature_start=layout.feature_start,
            owner=layout.owner,
            codes=layout.codes,
            code_base=layout.code_base,
            hidden_value=layout.hidden_value,
            widths=layout.widths,
            rates=layout.rates,
            theta_start=layout.theta_start,
            floor=layout.floor.astype(np.float32),
            graph=np.ascontiguousarray(graph, np.uint8),
            pads=pads,
            row_start=np.concatenate([[0], np.cumsum(_whole(2, rows))]),
        )
        self._schedule = kernels.Schedule(
            epochs=config.epochs,
            kl=kernels.BERNOULLI if config.kl == "bernoulli" else kernels.CATEGORICAL,
            beta=config.beta,
            beta1=config.adam_beta1,
            beta2=config.adam_beta2,
            eps=layout.adam_eps,
        )
        # logits and their slopes want a place for each value of a variable, in whole fives
        self._units = int(_whole(kernels.LANES, _whole(5, rows.max())))
        self._local = threading.local()

    def runs_that_fit(self, runs: int, budget: int) -> int:
        """How many of so many runs the machine's memory holds; MemoryError if not even one."""
        return runs_in_memory(self.layout, self.dtype.itemsize, runs)

    def fresh(self, seeds: Sequence[int], restarts: Sequence[int]) -> Policy:
        """A policy with initial parameters for each run."""
        theta = np.empty((len(seeds), self.layout.parameters), np.float32)

        def task(r: int, i0: int, i1: int) -> None:
            key = split_seed(seeds[r])
            kernels.initial_theta(theta[r], i0, i1, self._plan, *key, restarts[r])

        self._share(task, len(seeds), self.layout.n, theta.size * 10)
        return Policy.start(theta, self.layout.config.adam)

    def export(self, policy: Policy) -> dict[str, npt.NDArray[Any]]:
        """The policy as arrays to store."""
        return policy.export()

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Policy:
        """The inverse of `export`."""
        return Policy.load(arrays, self.dtype)

    def sample(self, policy: Policy, draw: Draw) -> tuple[Codes, Floats]:
        """Candidates and the distributions they were drawn from."""
        layout, runs, count = self.layout, len(draw.seeds), draw.count
        points = np.empty((runs, count, layout.n), np.int32)
        probs = np.empty((runs, count, layout.values), np.float32)

        def task(r: int, c0: int, c1: int) -> None:
            stream = _stream(draw.seeds[r], draw.generations[r], draw.drop[r])
            rows = np.arange(draw.first[r], draw.first[r] + count)
            generations = np.full(count, draw.generations[r], np.int64)
            keys = self._generation_keys(stream, rows, generations, np.arange(layout.n))
            orders = np.argsort(keys[0], axis=1, kind="stable")
            kernels.sample(
                points[r], probs[r], orders, draw.first[r], policy.theta[r],
                self._plan, stream, self._scratch(1), c0, c1,
            )  # fmt: skip

        self._share(task, runs, count, policy.theta.size * count)
        return points, probs

    def conditionals(self, policy: Policy, points: Codes, keys: UIntArray | None = None) -> Floats:
        """The distribution of every variable given those before it, or all others."""
        layout = self.layout
        runs, count, _ = points.shape
        probs = np.empty((runs, count, layout.values), np.float32)
        features = layout.features_of(points)
        no_keys = np.empty((0, count, layout.features), np.uint32)

        def task(r: int, i0: int, i1: int) -> None:
            seen = no_keys if keys is None else np.take(keys[r : r + 1], layout.owner, axis=-1)
            kernels.conditionals(
                probs[r], features[r], seen.astype(np.uint32), policy.theta[r],
                self._plan, self._scratch(count), i0, i1,
            )  # fmt: skip

        self._share(task, runs, layout.n, policy.theta.size * count)
        return probs

    def train(self, policy: Policy, batch: Batch) -> None:
        """E epochs of Adam on eq. (8) for every variable."""
        layout, config = self.layout, self.layout.config
        runs, count, _ = batch.points.shape
        points = np.ascontiguousarray(batch.points, np.int32)
        features = layout.features_of(points)
        old = np.ascontiguousarray(batch.old, np.float32)
        advantages = np.ascontiguousarray(batch.advantages, np.float32)
        weights = np.ascontiguousarray(batch.weights, np.float32)
        streams = [
            _stream(batch.seeds[r], batch.generations[r], batch.drop[r]) for r in range(runs)
        ]
        all_keys: dict[int, UIntArray] = {}
        if runs < self.threads:  # the threads share a run's keys; else each makes its runs' own
            all_keys = {r: self._training_keys(streams[r], batch, r) for r in range(runs)}

        def task(r: int, i0: int, i1: int) -> None:
            keys = all_keys[r] if all_keys else self._training_keys(streams[r], batch, r)
            kernels.train(
                policy.theta[r], policy.m[r], policy.v[r], int(policy.steps[r]),
                self._plan, self._schedule, streams[r], self._scratch(count),
                points[r], features[r], old[r], advantages[r], weights[r], keys, i0, i1,
            )  # fmt: skip

        self._share(task, runs, layout.n, policy.theta.size * count * config.epochs)
        if config.adam == "kept":
            policy.steps += config.epochs

    def _generation_keys(
        self, stream: kernels.Stream, rows: IntArray, generations: IntArray, owner: IntArray
    ) -> UIntArray:
        config = self.layout.config
        keys = np.empty((1, len(rows), len(owner)), np.uint32)
        if config.generation_order == "fixed":
            keys[:] = owner
            return keys
        if config.order_per == "population":
            rows = np.zeros_like(rows)
        kernels.order_keys(
            keys, owner, self.layout.n, ORDER_G, rows, generations, stream.key0, stream.key1
        )
        return keys

    def _training_keys(self, stream: kernels.Stream, batch: Batch, r: int) -> UIntArray:
        layout, config = self.layout, self.layout.config
        count = batch.points.shape[1]
        if config.training_order == "none":
            return np.empty((0, count, layout.features), np.uint32)
        if config.training_order == "generation":
            rows, generations = batch.stamps[r, :, 1].copy(), batch.stamps[r, :, 0].copy()
            return self._generation_keys(stream, rows, generations, layout.owner)
        if config.training_order == "fixed":
            return np.broadcast_to(np.uint32(layout.owner), (1, count, layout.features)).copy()
        shared = config.order_per == "population"
        rows = np.zeros(count, np.int64) if shared else np.arange(count)
        generations = np.full(count, stream.generation, np.int64)
        keys = np.empty((config.epochs, count, layout.features), np.uint32)
        kernels.order_keys(
            keys, layout.owner, layout.n, ORDER_T, rows, generations, stream.key0, stream.key1
        )
        return keys

    def _scratch(self, batch: int) -> kernels.Scratch:
        """The scratch of this thread, for batches up to this size: every generation wants it."""
        if getattr(self._local, "batch", -1) < batch:
            layers, lot, units = len(self.layout.widths), int(_whole(5, batch)), self._units
            length = max(int(self._plan.pads[0]), units)
            rows = int(self._plan.row_start[-1]) + layers + 4  # the last five may reach past
            self._local.batch = batch
            self._local.scratch = kernels.Scratch(
                w=_zeros(0, rows, length),
                m=_zeros(1, rows, length),
                v=_zeros(2, rows, length),
                x=_zeros(3, 1, lot, length),
                h=_zeros(4, layers, lot, units),
                delta=_zeros(5, layers, lot, units),
                ones=np.ones((1, lot, 1), np.float32),
                row=_zeros(6, length),
                terms=np.zeros((3, lot), np.float32),
                words=np.zeros(int(_whole(4, self.layout.n)), np.uint32),
                active=np.zeros(lot, np.int64),
                fans=np.zeros(layers, np.int64),
            )
        scratch: kernels.Scratch = self._local.scratch
        return scratch

    def _share(self, task: _Task, runs: int, count: int, work: int) -> None:
        """Call `task(run, start, end)` for all items of all runs, in as many threads as pay."""
        threads = min(self.threads, max(runs, count), 1 + work // _WORTH_A_THREAD)
        if runs >= threads:
            jobs = [
                [(r, 0, count) for r in range(runs * k // threads, runs * (k + 1) // threads)]
                for k in range(threads)
            ]
        else:
            jobs = [
                [(r, count * k // threads, count * (k + 1) // threads) for r in range(runs)]
                for k in range(threads)
            ]

        def work_off(calls: list[tuple[int, int, int]]) -> None:
            for call in calls:
                task(*call)

        futures = [_pool(self.threads).submit(work_off, calls) for calls in jobs[1:]]
        work_off(jobs[0])
        for future in futures:
            future.result()


def _stream(seed: int, generation: int, drop: float) -> kernels.Stream:
    return kernels.Stream(*split_seed(seed), int(generation), drop_threshold(drop))


def _whole(unit: int, size: Any) -> Any:
    """`size` rounded up to a multiple of `unit`."""
    return -(-size // unit) * unit


def _zeros(place: int, *shape: int) -> npt.NDArray[np.float32]:
    """Zeros that start at a cache line, 5/16 of a page further on for each place.

    A load waits for a store of a little earlier if the two agree in the lower 12 bits of their
    addresses. Left to chance, that makes training up to 1.6 times slower.
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
