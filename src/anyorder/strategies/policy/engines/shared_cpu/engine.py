"""`SharedCpuEngine`: threads over the compiled loops."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.engines import kernels
from anyorder.strategies.policy.engines.base import Batch, Codes, Draw, Floats, Policy
from anyorder.strategies.policy.engines.cpu import (
    WORTH_A_THREAD,
    aligned_zeros,
    default_threads,
    round_up,
    sampling_keys,
    schedule_of,
    share,
    stream_of,
    training_keys,
    with_turns,
)
from anyorder.strategies.policy.engines.kernel_arguments import (
    Data,
    Stream,
    coding_fields,
    groups_of,
)
from anyorder.strategies.policy.engines.memory import runs_in_memory
from anyorder.strategies.policy.engines.shared_cpu.arguments import Own, Shared, SharedPlan
from anyorder.strategies.policy.engines.shared_cpu.kernels import (
    common,
    sampling,
    training,
    updating,
)
from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import SharedNetwork
from anyorder.strategies.policy.rng import DROP_G, UIntArray, split_seed


class SharedCpuEngine:
    """The engine `cpu` for the shared network: float32, compiled by Numba.

    Threads share the runs, or the candidates and variables of a single run. Results do not depend
    on the number of threads.
    """

    name = "cpu"
    dtype: np.dtype[Any] = np.dtype(np.float32)

    def __init__(self, model: Model[SharedNetwork], threads: int | None = None) -> None:
        self.model = model
        self.threads = default_threads() if threads is None else threads
        network = model.network
        self._pad = int(round_up(network.widths[1:].max(), kernels.LANES))
        rows = [inputs if k == 0 else outputs for k, (inputs, outputs) in enumerate(network.shapes)]
        self._plan = SharedPlan(
            **coding_fields(model),
            head_start=network.head_start,
            widths=network.widths,
            rates=network.rates,
            row_start=np.concatenate([[0], np.cumsum(round_up(np.array(rows), 4))]),
        )
        logits = int(network.head_start[-1])
        self._rows = int(self._plan.row_start[-1]) + len(network.widths) - 1
        self._rows += -(-logits // self._pad)
        self._logits = logits
        self._groups = groups_of(model)
        self._schedule = schedule_of(model)
        self._local = threading.local()

    def runs_that_fit(self, runs: int, budget: int) -> int:
        """Return how many of `runs` runs fit in memory together; MemoryError if none does."""
        model, batch = self.model, self.model.config.population
        inner = (len(model.network.widths) - 2) * self._pad
        floats = 3 * self._rows + inner + batch * (2 * model.n + inner + 8) + 3 * model.n
        return runs_in_memory(model, self.dtype.itemsize, 4 * floats * self._pad, runs)

    def fresh(self, seeds: Sequence[int], restarts: Sequence[int]) -> Policy:
        """Return a policy with initial parameters for each run."""
        theta = np.empty((len(seeds), self.model.parameters), np.float32)
        for r, seed in enumerate(seeds):
            common.initial_theta(theta[r], self._plan, *split_seed(seed), restarts[r])
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
        points = np.zeros((runs, count, model.n), np.int32)
        probs = np.empty((runs, count, model.values), np.float32)
        streams = [stream_of(draw.seeds[r], draw.generations[r], draw.drop[r]) for r in range(runs)]
        gibbs = model.config.generation_order == "gibbs"
        sweeps = model.config.gibbs_sweeps if gibbs else 1
        nested = common.OTHERS if gibbs else common.EARLIER
        kinds = [self._kind(nested, stream) for stream in streams]

        def keys_of(r: int) -> UIntArray:
            if gibbs:
                return np.empty((0, model.n), np.uint32)
            return sampling_keys(model, streams[r], draw, r)

        def walk(r: int, c: int, keys: UIntArray, shared: Shared) -> None:
            sampling.walk(
                points[r], probs[r], keys, c, draw.first[r] + c, self._plan, self._groups,
                streams[r], shared, self._own(), kinds[r], DROP_G, sweeps, self._schedule.kl,
            )  # fmt: skip

        self._walk_all(policy, runs, count, keys_of, walk)
        return points, self.conditionals(policy, points) if gibbs else probs

    def conditionals(self, policy: Policy, points: Codes, keys: UIntArray | None = None) -> Floats:
        """Return the distribution of every variable given the ones before it, or all others."""
        runs, count, n = points.shape
        probs = np.empty((runs, count, self.model.values), np.float32)
        stream = stream_of(0, 0, 0.0)
        kind = self._kind(common.OTHERS if keys is None else common.EARLIER, stream)
        codes = np.ascontiguousarray(points, np.int32)

        def keys_of(r: int) -> UIntArray:
            if keys is None:
                return np.empty((0, n), np.uint32)
            return np.ascontiguousarray(keys[r], np.uint32)

        def walk(r: int, c: int, keys: UIntArray, shared: Shared) -> None:
            sampling.walk(
                codes[r], probs[r], keys, c, c, self._plan, self._groups, stream, shared,
                self._own(), kind, -1, 0, self._schedule.kl,
            )  # fmt: skip

        self._walk_all(policy, runs, count, keys_of, walk)
        return probs

    def _walk_all(self, policy: Policy, runs: int, count: int, keys_of: Any, walk: Any) -> None:
        """Call `walk` for every candidate of every run; threads share the candidates of a run."""
        for r in range(runs):
            self._walk_run(policy, r, count, keys_of(r), walk)

    def _walk_run(self, policy: Policy, r: int, count: int, keys: UIntArray, walk: Any) -> None:
        shared = self._memory(0)
        self._load(policy, r, shared)

        def task(_: int, c0: int, c1: int) -> None:
            for c in range(c0, c1):
                walk(r, c, keys, shared)

        share(self.threads, task, 1, count, self.model.network.multiply_adds * count)

    def train(self, policy: Policy, batch: Batch) -> None:
        """Train E epochs of Adam on eq. (8)."""
        for r in range(len(batch.points)):
            self._train_run(policy, batch, r)
        if self.model.config.adam == "kept":
            policy.steps += self.model.config.epochs

    def _train_run(self, policy: Policy, batch: Batch, r: int) -> None:
        config, network, plan, schedule = (
            self.model.config, self.model.network, self._plan, self._schedule
        )  # fmt: skip
        count, n = batch.points.shape[1:]
        coding, points = self.model.coding, np.ascontiguousarray(batch.points[r], np.int32)
        stream = stream_of(batch.seeds[r], batch.generations[r], batch.drop[r])
        ordered = config.training_order != "none"
        kind = self._kind(common.EARLIER if ordered else common.OTHERS, stream)
        groups = with_turns(self._groups, self.model, stream, batch, r)
        data = Data(
            points=points,
            features=coding.features_of(points) - coding.hidden_value,
            old=np.ascontiguousarray(batch.old[r], np.float32),
            advantages=np.ascontiguousarray(batch.advantages[r], np.float32),
            weights=np.ascontiguousarray(batch.weights[r], np.float32),
            keys=training_keys(self.model, stream, batch, r, np.arange(n)),
        )
        shared, steps = self._memory(count), int(policy.steps[r])
        self._load(policy, r, shared)

        def run_epoch(epoch: int) -> None:
            def slopes(_: int, c0: int, c1: int) -> None:
                own = self._own()
                training.slopes(
                    data, epoch, plan, groups, schedule, stream, shared, own, kind, c0, c1
                )

            def update(_: int, i0: int, i1: int) -> None:
                row, step = self._own().row, steps + epoch + 1
                updating.update(data, step, plan, schedule, shared, row, kind, i0, i1)

            share(self.threads, slopes, 1, count, work)
            share(self.threads, update, 1, n, network.parameters * count)

        work = 3 * network.multiply_adds * count
        if work < WORTH_A_THREAD:  # calls would take longer than the work in them
            own = self._own()
            training.all_epochs(data, steps, plan, groups, schedule, stream, shared, own, kind)
        else:
            for epoch in range(config.epochs):
                run_epoch(epoch)
        self._store(policy, r, shared)

    # --- contexts and memory --------------------------------------------------------------------

    def _kind(self, kind: int, stream: Stream) -> int:
        """Return the kind of contexts; dropout and a known graph need masks."""
        return common.LISTED if stream.threshold > 0 or self.model.graph is not None else kind

    def _load(self, policy: Policy, r: int, shared: Shared) -> None:
        config = self.model.config
        common.load(self._plan, policy.theta[r], shared.w, np.float32(1.0))
        common.turn(self._plan, shared.w, shared.turned)
        if config.adam == "kept":  # moments in the kernels are sums, not means
            scales = 1.0 / (1.0 - config.adam_beta1), 1.0 / (1.0 - config.adam_beta2)
            common.load(self._plan, policy.m[r], shared.m, np.float32(scales[0]))
            common.load(self._plan, policy.v[r], shared.v, np.float32(scales[1]))
        else:
            shared.m[:], shared.v[:] = 0.0, 0.0

    def _store(self, policy: Policy, r: int, shared: Shared) -> None:
        config = self.model.config
        common.store(self._plan, policy.theta[r], shared.w, np.float32(1.0))
        if config.adam == "kept":
            common.store(self._plan, policy.m[r], shared.m, np.float32(1.0 - config.adam_beta1))
            common.store(self._plan, policy.v[r], shared.v, np.float32(1.0 - config.adam_beta2))

    def _memory(self, batch: int) -> Shared:
        """Return the memory of this thread's run, for batches up to this size, which is kept."""
        if getattr(self._local, "batch", -1) < batch:
            middle, pad = len(self._plan.widths) - 2, self._pad
            n, rows = int(round_up(self.model.n, 4)), self._rows
            self._local.batch = batch
            self._local.shared = Shared(
                w=aligned_zeros(0, rows, pad),
                m=aligned_zeros(1, rows, pad),
                v=aligned_zeros(2, rows, pad),
                turned=aligned_zeros(3, middle * pad, pad),
                places=np.zeros((batch, n), np.int64),
                tops=aligned_zeros(4, batch * n, pad),
                sums=aligned_zeros(5, batch * n, pad),
                slopes=aligned_zeros(6, batch, self._logits),
                middle=aligned_zeros(7, batch * middle * pad, pad),
                biases=aligned_zeros(8, batch * (middle + 1), pad),
            )
        shared: Shared = self._local.shared
        return shared

    def _own(self) -> Own:
        """Return the memory of this thread, which is kept."""
        if not hasattr(self._local, "own"):
            n, layers, pad = int(round_up(self.model.n, 4)), len(self._plan.widths) - 1, self._pad
            masks = training.BLOCK if self._may_need_masks() else 1
            self._local.own = Own(
                h=aligned_zeros(9, n + (layers - 1) * training.BLOCK, pad),
                d=aligned_zeros(10, layers * training.BLOCK, pad),
                parts=aligned_zeros(11, n, pad),
                acc=aligned_zeros(12, 3, pad),
                mask=aligned_zeros(13, masks, n),
                raw=aligned_zeros(
                    14, training.BLOCK, max(2, int(self._plan.outputs.max(initial=0)))
                ),
                row=aligned_zeros(15, 1, pad),
                order=np.zeros(self.model.n, np.int64),
                spare=np.zeros(self.model.n, np.int64),
                place=np.zeros(self.model.n, np.int64),
                draws=np.zeros(n, np.uint32),
                drops=np.zeros(n, np.uint32),
            )
        own: Own = self._local.own
        return own

    def _may_need_masks(self) -> bool:
        return self.model.graph is not None or self.model.config.drop_training > 0
