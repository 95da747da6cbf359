"""The driver for objectives on the GPU: all data stay there until all runs have ended.

A generation is seven kernels and those of the objective, and a few more with a critic. They are
launched one after another, and the host looks at no number in between: what each run needs (its
generation, age, status) is in arrays on the device that the kernels read and write. For problems,
the launches of a generation are recorded once, as a CUDA graph, and replayed. A user's function is
called every time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from anyorder.policy.many.base import Log, Task
from anyorder.policy.many.device_critic import DeviceCritic
from anyorder.policy.many.objective import (
    Objective,
    Problems,
    Torch,
    matrix,
    no_number,
    wrong_shape,
)
from anyorder.problems import together
from anyorder.run.stopping import Target
from anyorder.strategies.policy.engines import Policy
from anyorder.strategies.policy.engines.cuda import CudaEngine, DeviceOrder, SharedCudaEngine
from anyorder.strategies.policy.engines.cuda.kernels import common, generation
from anyorder.strategies.policy.rng import drop_threshold

_REASONS = {0: "budget", 1: "failed", 2: "target"}  # by the status minus ENDED
_IN_FLIGHT = 16  # generations between two checks whether any run is still active


def runs_here(engine: Any, objective: Objective, task: Task) -> bool:
    """Return whether this driver supports the objective and the task; `host.py` supports all."""
    if not isinstance(engine, CudaEngine | SharedCudaEngine):
        return False
    if task.digits.split_any or task.space.conditional or task.config.kl_target is not None:
        return False
    if set(map(type, task.stopping.rules)) - {Target}:
        return False  # other rules are asked after every generation
    if isinstance(objective, Problems):
        return all(problem.on_device for problem in objective.problems)
    return isinstance(objective, Torch)


def run_device(engine: Any, objective: Objective, task: Task, bar: Any) -> Log:
    """Do all runs in one batch on the device; after Ctrl-C return what there is."""
    return _Batch(engine, objective, task).run(bar)


class _Batch:
    """Runs in lockstep on the device."""

    def __init__(
        self, engine: CudaEngine | SharedCudaEngine, objective: Objective, task: Task
    ) -> None:
        self.engine, self.task = engine, task
        config, model = task.config, engine.model
        self.size, self.count = len(task.seeds), config.population
        self.generations = task.budget // self.count
        ages = np.arange(self.generations + 1)
        drops = [
            [drop_threshold(p * config.drop_decay ** int(age)) for age in ages]
            for p in (config.drop_generation, config.drop_training)
        ]
        put, device = engine.put, engine.device
        self.thresholds = put(np.array(drops, np.int64))
        self.runs = engine.rows(task.seeds)
        self.runs[:, common.DROPS_G.value] = self.thresholds[0, 0]
        self.runs[:, common.DROPS_T.value] = self.thresholds[1, 0]
        self.policy: Policy = engine.fresh(task.seeds, [0] * self.size)
        self.critic: DeviceCritic | None = None
        if config.critic is not None:
            self.critic = DeviceCritic(model, task.seeds, self.count)
        self.told = torch.zeros((), dtype=torch.int64, device=device)
        self.best = torch.full((self.size,), -np.inf, dtype=torch.float64, device=device)
        goal = task.stopping.target
        target = math.inf if goal is None else task.sign * goal
        self.target = torch.full((1,), target, dtype=torch.float64, device=device)
        self.best_points = torch.full((self.size, model.n), -1, dtype=torch.int32, device=device)
        self.collapsed = torch.zeros(self.size, dtype=torch.int32, device=device)
        self.log = torch.full((self.size, task.budget), np.nan, dtype=torch.float64, device=device)
        shape = (self.size, max(1, self.generations))
        self.restarted = torch.zeros(shape, dtype=torch.int8, device=device)
        self.ends = torch.zeros(self.size, dtype=torch.int64, device=device)
        self.advantages = torch.zeros((self.size, self.count), device=device)
        self.free = put((model.cards > 1).astype(np.int8))
        self.utility = put(self._utilities())
        self.weights = torch.ones((1, 1, 1), device=device).expand(self.size, self.count, model.n)
        self.patience, self.agreeing = config.restart_patience, self._least_agreement()
        # A run that has ended draws nothing and keeps its last candidates. There is one batch for
        # whole populations, and one for what the budget leaves at the end.
        self.batches = {
            count: (
                torch.zeros((self.size, count, model.n), dtype=torch.int32, device=device),
                torch.ones((self.size, count, model.values), device=device),
            )
            for count in (self.count, task.budget % self.count)
            if count
        }
        self.evaluate = _evaluator(engine, objective)
        self.order: DeviceOrder | None = None
        self.orders: Any = None  # learned orders change in every epoch
        if isinstance(engine, CudaEngine) and config.generation_order == "learned":
            self.order = DeviceOrder(engine.model)
        else:
            self._draw_orders()
        self.scores = None if self.order is None else self.order.fresh(self.size)
        self.side: Any = torch.cuda.Stream() if device.type == "cuda" else None
        self.recorded = isinstance(objective, Problems) and device.type == "cuda"

    def run(self, bar: Any) -> Log:
        """Run until the end, or until Ctrl-C, and return the log."""
        rest = self.task.budget % self.count
        trained = self.generations - (rest == 0)
        try:
            self._run_generations(trained, bar)
            if rest or self.generations:
                self._generation(rest or self.count, trains=False)
                bar.update(self.size * (rest or self.count))
        except KeyboardInterrupt:
            pass  # the log says which runs have not finished
        return self._log()

    def _run_generations(self, generations: int, bar: Any) -> None:
        """Run the generations that are followed by training."""
        replay: Callable[[], None] | None = None
        for g in range(generations):
            if replay is not None:
                replay()
            else:
                self._generation(self.count, trains=True)
                if self.recorded and g + 1 < generations:
                    replay = self._record()
            bar.update(self.size * self.count)
            if g % _IN_FLIGHT == _IN_FLIGHT - 1:
                active = int((self.runs[:, common.STATUS.value] < common.ENDED.value).sum())
                bar.set_postfix_str(f"{active} runs active", refresh=False)
                if not active:
                    return

    def _record(self) -> Callable[[], None]:
        """Return a function that replays a generation, recorded as a CUDA graph.

        A generation must have run before, so that every kernel is compiled.
        """
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._generation(self.count, trains=True)
        replay: Callable[[], None] = graph.replay
        return replay

    def _generation(self, count: int, trains: bool) -> None:
        engine, task, config = self.engine, self.task, self.task.config
        model = engine.model
        points, old = self.batches[count]
        if trains:
            self._fork()
        places = None
        if self.order is not None and self.scores is not None:
            places = self.order.places(self.scores, self.runs, count)
        engine.draw(self.policy.theta, self.runs, points, old, config.drop_generation > 0, places)
        values = self.evaluate(points)
        whole = count == config.population
        generation.record[(self.size,)](
            self.runs, self.best, self.best_points, self.collapsed, self.log, self.restarted,
            self.ends, self.advantages, values, points, self.utility, self.free, self.told,
            model.n, count, task.budget, self.agreeing, self.patience,
            self.target, task.sign, WHOLE=whole,
            RESTART=config.restart_agreement is not None and bool((model.cards > 1).any()),
            TARGET=task.stopping.target is not None, TIES=config.ties,
            CP=max(2, 1 << (count - 1).bit_length()), BLOCK=64,
        )  # fmt: skip
        if not trains:
            return
        self._join()
        most_steps = self.generations * config.epochs
        gain = self.advantages[:, :, None].expand(self.size, count, model.n)
        if self.critic is not None:
            gain = self.critic.advantages(
                self.runs, points, task.sign * values, self.weights, self.orders, most_steps
            )
        if self.order is not None and self.scores is not None:
            self.order.learn(
                self.policy, self.scores, self.runs, points, old, gain, self.weights, most_steps
            )
        else:
            engine.learn(
                self.policy, self.runs, points, old, gain, self.weights, self.orders,
                config.drop_training > 0, most_steps=most_steps,
            )  # fmt: skip
        if config.restart_agreement is not None:
            engine.restart(self.policy, self.runs)
            if self.critic is not None:
                self.critic.restart(self.runs)
            if self.order is not None and self.scores is not None:
                self.order.restart(self.scores, self.runs)
        generation.advance[(-(-self.size // 128),)](
            self.runs, self.told, self.thresholds, self.generations, self.size, count,
            config.epochs if config.adam == "kept" else 0, BLOCK=128,
        )  # fmt: skip

    def _fork(self) -> None:
        """Draw the training orders concurrently with sampling and evaluation."""
        if self.orders is None:
            return
        if self.side is not None:
            self.side.wait_stream(torch.cuda.current_stream())
        with nullcontext() if self.side is None else torch.cuda.stream(self.side):
            self._draw_orders()

    def _join(self) -> None:
        if self.side is not None and self.orders is not None:
            torch.cuda.current_stream().wait_stream(self.side)

    def _draw_orders(self) -> None:
        """Draw orders into the same memory every time, since its address is recorded."""
        stamps = self._stamps(self.count)
        self.orders = self.engine.orders(self.runs, self.count, stamps, self.orders)
        if self.critic is not None:
            self.critic.draw_orders(self.runs, stamps)

    def _stamps(self, count: int) -> Any:
        if self.task.config.training_order != "generation" and self.critic is None:
            return None
        index = torch.arange(count, device=self.engine.device).expand(self.size, count)
        generation = self.runs[:, common.GENERATION.value, None].expand(self.size, count)
        return torch.stack([generation, index], dim=2)

    def _utilities(self) -> Any:
        """Return the utilities at ranks 0, 1/2, 1, ...: all values that a rank can have."""
        config, size = self.task.config, self.count
        table = np.zeros(2 * size - 1)
        if size > 1:
            knots = np.linspace(0.0, 1.0, len(config.utility))
            where = np.arange(2 * size - 1) / 2 / (size - 1)
            table = np.interp(where, knots, config.utility)
        return table.astype(np.float32)

    def _least_agreement(self) -> int:
        """Return how many values must equal the best one's in a collapsed population."""
        limit, free = self.task.config.restart_agreement, int((self.engine.model.cards > 1).sum())
        of = self.count * free
        if limit is None or not of:
            return of
        shares = np.arange(of + 1) / of
        return int(np.searchsorted(shares, limit, "left"))

    def _log(self) -> Log:
        """Return the log, copied from the device."""
        log, ended = Log.start(self.task), common.ENDED.value
        status = self.runs[:, common.STATUS.value].cpu().numpy()
        restarted, ends = self.restarted.cpu().numpy(), self.ends.cpu().numpy()
        log.values[:] = self.log.cpu().numpy()
        log.best_codes[:] = self.best_points.cpu().numpy()
        log.best_values[:] = self.task.sign * self.best.cpu().numpy()
        log.evaluations[:] = (~np.isnan(log.values)).sum(axis=1)
        for r in range(self.size):
            log.restarts[r] = [int(g + 1) * self.count for g in np.flatnonzero(restarted[r])]
            if status[r] < ended:
                continue
            log.stop_reasons[r] = _REASONS[int(status[r] - ended)]
            if log.stop_reasons[r] == "failed":
                place = int(ends[r])
                last = place >= self.generations * self.count
                points, _ = self.batches[self.task.budget % self.count if last else self.count]
                text = no_number(self.task.space, points[r, place % self.count].cpu().numpy())
                log.errors[r] = f"ValueError: {text} (at evaluation {place + 1})"
        return log


def _evaluator(engine: Any, objective: Objective) -> Callable[[Any], Any]:
    """Return a function that computes values (R, count) of codes (R, count, n) on the device."""
    if isinstance(objective, Problems):
        return together(objective.problems)
    assert isinstance(objective, Torch)
    function, model = objective.function, engine.model
    # the value of every code of every variable, as the function receives it
    codes = np.zeros((int(model.cards.max()), model.n), np.int32)
    for code in range(len(codes)):
        codes[code] = np.minimum(code, model.cards - 1)
    decoded = torch.from_numpy(np.ascontiguousarray(objective.space.decode(codes))).to(
        engine.device
    )
    columns = torch.arange(model.n, device=engine.device)

    def evaluate(points: Any) -> Any:
        result = function(decoded[points.long(), columns])
        if not isinstance(result, torch.Tensor):
            result = torch.from_numpy(matrix(result, tuple(points.shape[:2])))
        if tuple(result.shape) != tuple(points.shape[:2]):
            raise ValueError(wrong_shape(tuple(result.shape), tuple(points.shape[:2])))
        if result.is_complex():
            raise TypeError(f"f returned {result.dtype}, expected numbers")
        return result.detach().to(engine.device, torch.float64).contiguous()

    return evaluate
