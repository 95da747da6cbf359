"""The interface of the drivers of `solve_many`: the task, the log, and the ledger that fills it.

A driver is a function that takes an engine, an objective, a task and a progress bar, and returns a
log. `host.py` is the driver for engines with NumPy arrays, and uses the ledger; `device.py` does
its bookkeeping in kernels.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from anyorder.policy.many.objective import Codes, Evaluated, Ints, Values
from anyorder.run.options import Stopping
from anyorder.run.stopping import ask_rules
from anyorder.space import Space
from anyorder.space.digits import Digits
from anyorder.strategies.policy.advantage import advantages
from anyorder.strategies.policy.collapse import agreement, generations_in_a_row
from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.engines import Batch, Draw


@dataclass(frozen=True)
class Task:
    """What the runs have in common, and the seed of each.

    Attributes
    ----------
    digits
        The variables of the model: those of the space, with wide ones split into digits.
    sign
        1 to maximise, -1 to minimise: candidates are ranked by the sign times the value.
    stopping
        The rules that stop a run before its budget.
    start
        The time at which the call began, on the clock of `time.monotonic`.
    """

    space: Space
    digits: Digits
    config: Config
    seeds: tuple[int, ...]
    budget: int
    sign: float
    stopping: Stopping
    start: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class RunProgress:
    """The progress of one run, as `stopping.Progress` has it."""

    direction: str
    evaluations: int
    failures: int
    best_value: float | None
    unimproved: int
    seconds: float
    converged: bool


@dataclass(frozen=True)
class Log:
    """What a driver returns about R runs; it is filled in place.

    Attributes
    ----------
    values
        `(R, budget)`: the values in order of evaluation; NaN after a run stopped.
    best_codes, best_values
        `(R, n)` and `(R,)`: each run's first best point, and its value. A run without an evaluation
        has the worst infinity, and codes of -1.
    evaluations
        `(R,)`: the number of finished evaluations.
    restarts
        For each run, the numbers of evaluations after which its policy was restarted.
    stop_reasons
        "budget", "failed", the reason of a stopping rule, or "interrupted" until another one is
        known.
    errors
        The error that made a run fail, else None.
    """

    values: Values
    best_codes: Codes
    best_values: Values
    evaluations: Ints
    restarts: list[list[int]]
    stop_reasons: list[str]
    errors: list[str | None]

    @classmethod
    def start(cls, task: Task) -> Log:
        """Return an empty log, in the state before the first evaluation."""
        runs = len(task.seeds)
        return cls(
            values=np.full((runs, task.budget), np.nan),
            best_codes=np.full((runs, len(task.space)), -1, np.int32),
            best_values=np.full(runs, -task.sign * np.inf),
            evaluations=np.zeros(runs, np.int64),
            restarts=[[] for _ in range(runs)],
            stop_reasons=["interrupted"] * runs,
            errors=[None] * runs,
        )

    @classmethod
    def join(cls, logs: Sequence[Log]) -> Log:
        """Return the joint log of several batches of runs."""
        return cls(
            values=np.concatenate([log.values for log in logs]),
            best_codes=np.concatenate([log.best_codes for log in logs]),
            best_values=np.concatenate([log.best_values for log in logs]),
            evaluations=np.concatenate([log.evaluations for log in logs]),
            restarts=[entry for log in logs for entry in log.restarts],
            stop_reasons=[entry for log in logs for entry in log.stop_reasons],
            errors=[entry for log in logs for entry in log.errors],
        )


class Ledger:
    """The bookkeeping of runs in lockstep: what `PolicySearch` does, for many runs at once.

    All active runs are in the same generation; their ages, restarts and ends are independent.

    Attributes
    ----------
    active
        The numbers of the active runs, in increasing order. They are the rows of every array that a
        driver works on.
    told
        The number of evaluations of each active run so far.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.log = Log.start(task)
        runs = len(task.seeds)
        self.active: Ints = np.arange(runs)
        self.told = 0
        self._age = np.zeros(runs, np.int64)  # trainings since the last restart of a policy
        # generations in a row in which almost all points were equal
        self._collapsed = np.zeros(runs, np.int64)
        self._restarting = np.zeros(runs, np.bool_)  # whether to restart after this generation
        self._best = np.full(runs, -np.inf)  # the sign times the best value
        self._improved = np.zeros(runs, np.int64)  # evaluations until the last improvement
        rules = task.stopping.rules
        self._rules = [copy.deepcopy(rules) for _ in range(runs)] if rules else []
        self._free = task.digits.cardinalities > 1

    @property
    def seeds(self) -> list[int]:
        """The seeds of the active runs."""
        return [self.task.seeds[r] for r in self.active]

    @property
    def generation(self) -> int:
        """The number of trainings of each active run; all batches but the last are populations."""
        return self.told // self.task.config.population

    def draw(self) -> Draw:
        """Return the request for the next batch: a generation, or what the budget leaves of one."""
        config, runs = self.task.config, len(self.active)
        return Draw(
            seeds=self.seeds,
            generations=[self.generation] * runs,
            first=[0] * runs,
            drop=self._drops(config.drop_generation),
            count=min(config.population, self.task.budget - self.told),
        )

    def take(self, points: Codes, codes: Codes, evaluated: Evaluated) -> Ints:
        """Record a batch and which runs stop; return the rows that remain, to be trained on.

        `points` are points of the model, and `codes` the same points in the codes of the space.

        `active` then holds the runs of the remaining rows.
        """
        log, task, active = self.log, self.task, self.active
        count = points.shape[1]
        finished = (~np.isnan(evaluated.values)).sum(axis=1)
        whole = finished == count
        log.values[active, self.told : self.told + count] = evaluated.values
        self._record_best(codes, evaluated.values, finished)
        self._record_collapse(points, evaluated.values, whole)
        log.evaluations[active] += finished
        for row in np.flatnonzero(~whole):
            error, place = evaluated.errors[row], self.told + finished[row] + 1
            if error is not None:  # otherwise it was interrupted
                log.stop_reasons[active[row]] = "failed"
                log.errors[active[row]] = f"{error} (at evaluation {place})"
        self.told += count
        stops = ~whole | (self.told >= task.budget)
        for row in np.flatnonzero(whole):
            reason = self._rule_reason(int(active[row])) or ("budget" if stops[row] else None)
            if reason is not None:
                stops[row], log.stop_reasons[active[row]] = True, reason
        rows = np.flatnonzero(~stops)
        self.active = active[rows]
        return rows

    def _rule_reason(self, run: int) -> str | None:
        """Return the reason of a stopping rule to end a run, or None."""
        if not self._rules:
            return None
        log, task = self.log, self.task
        progress = RunProgress(
            direction="maximize" if task.sign > 0 else "minimize",
            evaluations=int(log.evaluations[run]),
            failures=0,
            best_value=float(log.best_values[run]),
            unimproved=int(log.evaluations[run] - self._improved[run]),
            seconds=time.monotonic() - task.start,
            converged=bool(self._collapsed[run] >= task.config.restart_patience),
        )
        return ask_rules(self._rules[run], progress)

    def batch(self, points: Codes, old: npt.NDArray[np.floating], values: Values) -> Batch:
        """Return the batch to train the active runs on: the generation last recorded by `take`."""
        task, shape = self.task, points.shape
        config, generation = task.config, self.generation - 1
        advantage = advantages(task.sign * values, config.utility, config.ties)
        stamps = np.empty((*shape[:2], 2), np.int64)
        stamps[..., 0], stamps[..., 1] = generation, np.arange(shape[1])
        return Batch(
            seeds=self.seeds,
            generations=[generation] * shape[0],
            points=points,
            old=old,
            advantages=np.broadcast_to(advantage[:, :, None], shape),
            weights=(points >= 0).astype(np.float64),
            drop=self._drops(config.drop_training),
            stamps=stamps,
        )

    def finish_training(self) -> Ints:
        """Record that the active runs have been trained; return the rows to restart."""
        self._age[self.active] += 1
        rows = np.flatnonzero(self._restarting[self.active])
        self._age[self.active[rows]] = 0
        return rows

    def _drops(self, probability: float) -> list[float]:
        decay = self.task.config.drop_decay
        return [probability * decay ** int(age) for age in self._age[self.active]]

    def _record_best(self, points: Codes, values: Values, finished: Ints) -> None:
        signed = np.where(np.isnan(values), -np.inf, self.task.sign * values)
        place = signed.argmax(axis=1)  # of equally good points the first
        best = signed[np.arange(len(signed)), place]
        first = (self.log.evaluations[self.active] == 0) & (finished > 0)  # the value may be -inf
        better = np.flatnonzero(first | (best > self._best[self.active]))
        runs = self.active[better]
        self._best[runs] = best[better]
        self._improved[runs] = self.log.evaluations[runs] + place[better] + 1
        self.log.best_values[runs] = self.task.sign * best[better]
        self.log.best_codes[runs] = points[better, place[better]]

    def _record_collapse(self, points: Codes, values: Values, whole: npt.NDArray[np.bool_]) -> None:
        """Record which runs to restart after the training of this generation."""
        config, rows = self.task.config, np.flatnonzero(whole)
        limit = config.restart_agreement
        self._restarting[:] = False
        if limit is None or points.shape[1] < config.population:
            return
        runs = self.active[rows]
        share = agreement(points[rows], self.task.sign * values[rows], self._free)
        self._collapsed[runs] = generations_in_a_row(self._collapsed[runs], share, limit)
        for r in runs[self._collapsed[runs] >= config.restart_patience]:
            self.log.restarts[r].append(self.told + points.shape[1])
            self._restarting[r] = True
            self._collapsed[r] = 0
