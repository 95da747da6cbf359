"""The state of a run, which its loop, stopping rules, replay and display share."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from anyorder.archive.archive import Archive
from anyorder.archive.candidate import Candidate, Queues
from anyorder.archive.hypervolume import hypervolume
from anyorder.errors import OK
from anyorder.proposer import Proposer
from anyorder.run.evaluation.interrupts import Interrupts
from anyorder.run.evaluation.jobs import Jobs
from anyorder.run.options import Evaluation, Stopping
from anyorder.run.study.writing import Study
from anyorder.strategies.base import Strategy


@dataclass
class State:
    """What a run has done, and what is under way.

    Attributes
    ----------
    proposer, evaluation, stopping, study
        The parts of the run that `Session` was given.
    jobs, interrupts
        The running jobs, and the count of Ctrl-C.
    start
        The time at which the run began, on the clock of `time.monotonic`.
    seconds_before
        The seconds that a study had taken before it was resumed.
    evaluations, failures
        The number of evaluations, and of those that failed.
    resumed_at
        The number of evaluations that a study already had when it was resumed.
    drawn, told, placed
        The numbers of candidates that were proposed, of answers that were learned, and of answers
        that have a place but are not learned yet.
    idle
        The number of answers in a row that were not evaluations.
    batch
        The candidates that the strategy waits for, in batch mode.
    ready, running
        The candidates to evaluate, and the candidates of each job.
    same
        For each point that is being evaluated, the other candidates that wait for its value.
    learning, evaluating
        The seconds that one training, and one evaluation, take.
    finished, called_off
        Whether the strategy has no more proposals, and whether the callback has ended the run.
    nothing_left
        Whether a search for unknown points has found none.
    replaying
        Whether a study is being resumed and its answers are not all learned yet.
    unverified
        Whether a stored point has to be measured again.
    error
        The error that ends the run once all other answers are written.
    """

    proposer: Proposer
    evaluation: Evaluation
    stopping: Stopping
    study: Study | None
    jobs: Jobs
    interrupts: Interrupts
    start: float = field(default_factory=time.monotonic)
    seconds_before: float = 0.0
    evaluations: int = 0
    failures: int = 0
    resumed_at: int = 0
    drawn: int = 0
    told: int = 0
    placed: int = 0
    idle: int = 0
    batch: list[Candidate] = field(default_factory=list)
    ready: deque[Candidate] = field(default_factory=deque)
    running: dict[int, list[Candidate]] = field(default_factory=dict)
    same: Queues = field(default_factory=dict)
    learning: float = 0.0
    evaluating: float = 0.0
    finished: bool = False
    called_off: bool = False
    nothing_left: bool = False
    replaying: bool = False
    unverified: bool = False
    error: Exception | None = None
    # With several objectives: the evaluation at which the front last changed, and the hypervolume.
    _measured: tuple[int, float | None] = (-1, None)
    archive: Archive = field(init=False)
    strategy: Strategy = field(init=False)

    def __post_init__(self) -> None:
        self.archive, self.strategy = self.proposer.archive, self.proposer.strategy

    # --- what stopping rules see: `stopping.Progress` -------------------------------------------

    @property
    def direction(self) -> str:
        """Return which values are better."""
        return self.archive.direction

    @property
    def objectives(self) -> int:
        """Return how many objectives there are."""
        return 1 if self.archive.objectives is None else len(self.archive.objectives)

    @property
    def best_value(self) -> float | None:
        """Return the best value so far; None before there is one.

        With several objectives and a reference point, return the hypervolume.
        """
        if self.archive.objectives is not None:
            return self._hypervolume()
        sign, best = self.archive.sign, self.archive.best_value
        # the worst infinity may be a value, or mean that there is none
        known = best != -sign * math.inf or self.archive.best is not None
        values = [best] if known else []
        if self.evaluation.deterministic:  # of a noisy one the mean counts, which the archive has
            values += [candidate.value for candidate in self.batch if candidate.status == OK]
        return max(values, key=lambda value: sign * value, default=None)

    def _hypervolume(self) -> float | None:
        """Return the hypervolume, if there is a reference point."""
        objectives = self.archive.objectives
        if objectives is None or objectives.reference is None or not self.archive.has_value:
            return None
        # of a noisy function every answer may change the front
        archive = self.archive
        now = archive.improved if archive.deterministic else len(archive)
        if self._measured[0] != now:
            reference = np.array(objectives.reference) * objectives.signs
            found = hypervolume(self.archive.front_values, reference)
            self._measured = now, found
        return self._measured[1]

    @property
    def unimproved(self) -> int:
        """Return the number of evaluations learned since the last improvement."""
        return self.archive.evaluations - self.archive.improved

    @property
    def seconds(self) -> float:
        """Return the seconds that the run has taken."""
        return time.monotonic() - self.start

    @property
    def converged(self) -> bool:
        """Return whether the strategy has settled on one point."""
        return self.strategy.converged

    @property
    def out(self) -> list[Candidate]:
        """Return the candidates that are being evaluated."""
        return [candidate for job in self.running.values() for candidate in job]

    @property
    def room(self) -> float:
        """Return how many more candidates may be sent out within the budget."""
        budget, out = self.stopping.budget, sum(map(len, self.running.values()))
        return math.inf if budget is None else budget - self.evaluations - out

    @property
    def deadline(self) -> float | None:
        """Return the time at which a time limit ends the run, on the clock of `time.monotonic`."""
        limit = self.stopping.time_limit
        return None if limit is None else self.start + limit
