"""The engine `cpu`: threads over the compiled loops of `kernels.py`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from . import kernels
from .base import Batch, Codes, Draw, Floats, Policy
from .layout import Layout
from .rng import ORDER_G, ORDER_T, drop_threshold, split_seed

# Under this much work (multiply-adds) a second thread costs more than it saves.
_WORTH_A_THREAD = 200_000


def default_threads() -> int:
    """Threads to use: ANYORDER_NUM_THREADS, or every core this process may run on."""
    setting = os.environ.get("ANYORDER_NUM_THREADS", "")
    if setting:
        if not setting.isdigit() or int(setting) < 1:
            raise ValueError(f"ANYORDER_NUM_THREADS must be a positive integer, got {setting!r}")
        return int(setting)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class CpuEngine:
    """The engine `cpu`: float32, compiled by Numba, parallel over variables or candidates."""

    name = "cpu"

    def __init__(self, layout: Layout, threads: int | None = None) -> None:
        self.layout = layout
        self.threads = default_threads() if threads is None else threads
        config = layout.config
        graph = np.zeros((0, 0), np.uint8) if layout.graph is None else layout.graph
        pads = _whole_vectors(layout.widths)
        rows = np.append(layout.widths[1:], max(2, layout.outputs.max()))
        self._plan = kernels.Plan(
            layout.cards,
            layout.outputs,
            layout.value_start,
            layout.feature_start,
            layout.owner,
            layout.codes,
            layout.code_base,
            layout.code_stride,
            layout.hidden_value,
            layout.widths,
            layout.rates,
            layout.theta_start,
            layout.floor.astype(np.float32),
            np.ascontiguousarray(graph, np.uint8),
            pads,
            np.concatenate([[0], np.cumsum(rows * pads)]),
            np.concatenate([[0], np.cumsum(rows)]),
            int(_whole_vectors(rows.max())),
        )
        self._schedule = kernels.Schedule(
            config.epochs,
            kernels.UNMASKED if config.training_order == "none" else kernels.KEYED,
            kernels.BERNOULLI if config.kl == "bernoulli" else kernels.CATEGORICAL,
            config.beta,
            config.adam_beta1,
            config.adam_beta2,
            layout.adam_eps,
        )

    def fresh(self, seeds: Sequence[int], restarts: Sequence[int]) -> Policy:
        """A policy with initial parameters for each run."""
        theta = np.empty((len(seeds), self.layout.parameters), np.float32)
        for r, (seed, restart) in enumerate(zip(seeds, restarts, strict=True)):
            key0, key1 = split_seed(seed)

            def fill(i0: int, i1: int, r: int = r, restart: int = restart) -> None:
                kernels.initial_theta(theta[r], i0, i1, self._plan, key0, key1, restart)  # noqa: B023

            self._split(fill, self.layout.n, self.layout.parameters)
        size = theta.shape[1] if self.layout.config.adam == "kept" else 0
        zeros = np.zeros((len(theta), size), np.float32)
        return Policy(theta, zeros, zeros.copy(), np.zeros(len(theta), np.int64))

    def sample(self, policy: Policy, draw: Draw) -> tuple[Codes, Floats]:
        """Candidates and the distributions they were drawn from."""
        layout, runs, count = self.layout, len(draw.seeds), draw.count
        points = np.empty((runs, count, layout.n), np.int32)
        probs = np.empty((runs, count, layout.values), np.float32)
        for r in range(runs):
            stream = self._stream(draw.seeds[r], draw.generations[r], draw.drop[r])
            rows = np.arange(draw.first[r], draw.first[r] + count)
            generations = np.full(count, draw.generations[r], np.int64)
            keys = self._generation_keys(stream, rows, generations, np.arange(layout.n))
            orders = np.argsort(keys[0], axis=1, kind="stable")

            def task(c0: int, c1: int, r: int = r) -> None:
                kernels.sample(
                    points[r], probs[r], orders, draw.first[r],  # noqa: B023
                    policy.theta[r], self._plan, stream, c0, c1,  # noqa: B023
                )  # fmt: skip

            self._split(task, count, layout.parameters * count)
        return points, probs

    def conditionals(
        self, policy: Policy, points: Codes, keys: npt.NDArray[np.uint32] | None = None
    ) -> Floats:
        """The distribution of every variable given those before it, or all others."""
        layout = self.layout
        probs = np.empty((*points.shape[:2], layout.values), np.float32)
        features = layout.features_of(points)
        if keys is None:
            expanded = np.zeros((*points.shape[:2], 0), np.uint32)
        else:
            expanded = np.ascontiguousarray(keys[..., layout.owner], np.uint32)
        for r in range(len(points)):

            def task(i0: int, i1: int, r: int = r) -> None:
                kernels.conditionals(
                    probs[r], features[r], expanded[r][None], keys is None,
                    policy.theta[r], self._plan, i0, i1,
                )  # fmt: skip

            self._split(task, layout.n, layout.parameters * points.shape[1])
        return probs

    def train(self, policy: Policy, batch: Batch) -> None:
        """E epochs of Adam on eq. (8) for every variable."""
        layout, config = self.layout, self.layout.config
        features = layout.features_of(batch.points)
        old = np.ascontiguousarray(batch.old, np.float32)
        advantages = np.ascontiguousarray(batch.advantages, np.float32)
        weights = np.ascontiguousarray(batch.weights, np.float32)
        candidates = batch.points.shape[1]
        for r in range(len(batch.seeds)):
            stream = self._stream(batch.seeds[r], batch.generations[r], batch.drop[r])
            keys = self._training_keys(stream, batch, r)
            steps = int(policy.steps[r])

            def task(i0: int, i1: int, r: int = r) -> None:
                kernels.train(
                    policy.theta[r], policy.m[r], policy.v[r], steps,  # noqa: B023
                    self._plan, self._schedule, stream,  # noqa: B023
                    batch.points[r], features[r], old[r], advantages[r], weights[r],
                    keys, i0, i1,  # noqa: B023
                )  # fmt: skip

            self._split(task, layout.n, layout.parameters * candidates * config.epochs)
            if config.adam == "kept":
                policy.steps[r] += config.epochs

    def _stream(self, seed: int, generation: int, drop: float) -> kernels.Stream:
        return kernels.Stream(*split_seed(seed), int(generation), drop_threshold(drop))

    def _generation_keys(
        self,
        stream: kernels.Stream,
        rows: npt.NDArray[np.int64],
        generations: npt.NDArray[np.int64],
        owner: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.uint32]:
        config = self.layout.config
        keys = np.empty((1, len(rows), len(owner)), np.uint32)
        if config.generation_order == "fixed":
            keys[:] = owner
        else:
            rows = np.zeros_like(rows) if config.order_per == "population" else rows
            kernels.order_keys(
                keys, owner, self.layout.n, ORDER_G, rows, generations, 0,
                stream.key0, stream.key1,
            )  # fmt: skip
        return keys

    def _training_keys(
        self, stream: kernels.Stream, batch: Batch, r: int
    ) -> npt.NDArray[np.uint32]:
        layout, config = self.layout, self.layout.config
        candidates = batch.points.shape[1]
        if config.training_order == "generation":
            rows, generations = batch.stamps[r, :, 1].copy(), batch.stamps[r, :, 0].copy()
            return self._generation_keys(stream, rows, generations, layout.owner)
        if config.training_order != "random":
            keys = np.empty((1, candidates, layout.features), np.uint32)
            keys[:] = layout.owner
            return keys
        keys = np.empty((config.epochs, candidates, layout.features), np.uint32)
        shared = config.order_per == "population"
        rows = np.zeros(candidates, np.int64) if shared else np.arange(candidates)
        generations = np.full(candidates, stream.generation, np.int64)

        def task(e0: int, e1: int) -> None:
            kernels.order_keys(
                keys[e0:e1], layout.owner, layout.n, ORDER_T, rows, generations, e0,
                stream.key0, stream.key1,
            )  # fmt: skip

        self._split(task, config.epochs, keys.size * 10)
        return keys

    def _split(self, task: Callable[[int, int], None], count: int, work: int) -> None:
        """Run `task(start, end)` over `count` items in as many threads as the work is worth."""
        parts = min(self.threads, count, 1 + work // _WORTH_A_THREAD)
        bounds = [count * k // parts for k in range(parts + 1)] if parts > 1 else [0, count]
        futures = [
            _pool(self.threads).submit(task, start, end)
            for start, end in zip(bounds[1:-1], bounds[2:], strict=True)
        ]
        task(bounds[0], bounds[1])
        for future in futures:
            future.result()


def _whole_vectors(width: Any) -> Any:
    return -(-width // kernels.LANES) * kernels.LANES


_pools: dict[int, ThreadPoolExecutor] = {}


def _pool(threads: int) -> ThreadPoolExecutor:
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads - 1, "anyorder")
    return _pools[threads]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # threads do not survive a fork
