"""What runs leave: the incumbent, every evaluation, and why they stopped."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from anyorder._checks import require
from anyorder.errors import STATUSES
from anyorder.history import History, columns
from anyorder.optimizer import Optimizer
from anyorder.plotting.runs import averages, overview
from anyorder.space import Space
from anyorder.strategies.create import settings_of
from anyorder.strategies.delta.search import DeltaSearch
from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.search import PolicySearch


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of `maximize` or `minimize`.

    Attributes
    ----------
    best, best_value
        The best point found, as the function saw it, and its value.
    evaluations, failures
        How many evaluations there were, and how many of those gave no value.
    stop_reason
        "budget", "target", "callback", "time", "patience", "collapsed", "interrupted",
        "exhausted": the strategy had nothing new to propose (see `maximize`), or "failed": not one
        evaluation gave a value.
    seed
        That of the strategy.
    seconds
        Wall time of this call, the function's included.
    study
        The file it is kept in, or None.
    optimizer
        Strategy and archive at the end of the run.
    """

    best: Any
    best_value: float
    evaluations: int
    failures: int
    stop_reason: str
    seed: int
    seconds: float
    study: Path | None = None
    optimizer: Optimizer = field(repr=False, kw_only=True)

    @cached_property
    def history(self) -> History:
        """Every candidate that was answered."""
        return History(self.optimizer.archive)

    @property
    def algorithm(self) -> str:
        """The name of the strategy."""
        return self.optimizer.strategy.name

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the strategy, as JSON values."""
        return settings_of(self.optimizer.strategy)

    @property
    def config(self) -> Config | None:
        """The settings of the policy; None for other strategies."""
        return self.optimizer.config

    @property
    def engine(self) -> str | None:
        """The engine of the policy; None for other strategies."""
        return self.optimizer.engine

    @property
    def facts(self) -> dict[str, Any]:
        """What the strategy says about its search, such as the diversity of the policy."""
        return self.optimizer.facts()

    def __repr__(self) -> str:
        failed = f", {self.failures} failed" if self.failures else ""
        return (
            f"<Result: best value {self.best_value:.6g} after {self.evaluations} evaluations"
            f"{failed}, stopped by {self.stop_reason}>"
        )

    def plot(self, path: str | os.PathLike[str] | None = None, kind: str = "convergence") -> Any:
        """Draw a figure; write it to `path` (PNG, PDF, SVG) or return the Matplotlib figure.

        Parameters
        ----------
        path
            Where to write it; None returns it.
        kind
            "convergence": the best value against evaluations. "diversity": how much candidates
            differ from their generation's best. "probabilities": how often candidates have the
            best point's value, for each variable over time. "influence": how much each variable
            moves when another changes, as the strategy has learned it (`Optimizer.influence`).
            "all": these four.
        """
        label = f"{self.algorithm}, seed {self.seed}"
        strategy = self.optimizer.strategy
        learned = strategy if isinstance(strategy, PolicySearch | DeltaSearch) else None
        return overview(self.history, lambda: learned, kind, path, label)

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each entry of the history.

        Columns are the variables (x0, x1, ... where they have no names), then value, generation,
        status, cached, seconds and error. A variable that has one of those names gets an
        underscore after its own. Absent variables are missing values.
        """
        pandas = require("pandas", "pandas", "tables require pandas")
        history = self.history
        space, codes = history.space, history.codes
        present = space.present(codes)
        table: dict[str, Any] = {}
        if space.named:
            for k, (name, variable) in enumerate(zip(columns(space), space.columns, strict=True)):
                table[name] = [variable.values[code] for code in codes[:, k].tolist()]
                if variable.when is not None:
                    table[name] = [
                        value if here else None
                        for value, here in zip(table[name], present[:, k].tolist(), strict=True)
                    ]
        else:
            table = dict(zip(columns(space), np.asarray(history.points).T, strict=True))
        table["value"] = history.values
        table["generation"] = history.generations
        table["status"] = [STATUSES[status] for status in history.statuses]
        table["cached"] = history.cached
        table["seconds"] = history.seconds
        errors = history.errors
        table["error"] = [errors.get(k) for k in range(len(history))]
        return pandas.DataFrame(table)


@dataclass(frozen=True, eq=False)
class Run:
    """One run of `solve_many`.

    Attributes
    ----------
    best, best_value
        The best point found, as the function saw it, and its value; None and the worst infinity if
        not one evaluation was finished.
    values
        What the function gave, `(evaluations,)`.
    curve
        The best value so far at the grid of the `Runs`.
    restarts
        The numbers of evaluations after which the policy was restarted.
    seed, problem
        What it takes to run it again; `problem` is a name, or None for a function.
    stop_reason, error
        "budget", "target", "interrupted", or "failed", and then what went wrong.
    evaluations
        How many were finished.
    """

    best: Any
    best_value: float
    values: npt.NDArray[np.float64] = field(repr=False)
    curve: npt.NDArray[np.float64] = field(repr=False)
    restarts: tuple[int, ...]
    seed: int
    problem: str | None
    stop_reason: str
    error: str | None
    evaluations: int


@dataclass(frozen=True, eq=False)
class Runs(Sequence[Run]):
    """The outcome of `solve_many`: a sequence of its R runs, and arrays over all of them.

    The runs of a problem are neighbours: with 10 runs of each, run 25 is of the third problem.

    Attributes
    ----------
    seeds, problems
        Of each run; `problems` are names, or None for a function.
    grid
        `(G,)` numbers of evaluations.
    curves
        `(R, G)`: the best value so far. A run that has reached the target keeps its last best, so
        that means over runs stay what they mean; one that failed or was interrupted is NaN from
        there on.
    best_values, best_codes
        `(R,)` and `(R, n)`: the best value of each run, and its point as indices of its values.
    values
        `(R, budget)`: every evaluation, in order; NaN where a run had stopped.
    evaluations
        `(R,)`: how many were finished.
    restarts
        For each run, after how many evaluations its policy was restarted.
    stop_reasons, errors
        Of each run, see `Run`.
    direction, space, config, engine
        What all runs had in common.
    seconds
        Wall time of all together, the function's included.
    """

    seeds: tuple[int, ...]
    problems: tuple[str, ...] | None
    grid: npt.NDArray[np.int64]
    curves: npt.NDArray[np.float64]
    best_values: npt.NDArray[np.float64]
    best_codes: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    evaluations: npt.NDArray[np.int64]
    restarts: tuple[tuple[int, ...], ...]
    stop_reasons: tuple[str, ...]
    errors: tuple[str | None, ...]
    direction: str
    space: Space
    config: Config
    engine: str
    seconds: float

    def __len__(self) -> int:
        return len(self.seeds)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> list[Run]: ...
    def __getitem__(self, index: int | slice) -> Run | list[Run]:
        chosen = range(len(self))[index]  # IndexError where there is no such run
        return self._run(chosen) if isinstance(chosen, int) else [self._run(r) for r in chosen]

    def _run(self, r: int) -> Run:
        done = int(self.evaluations[r])
        return Run(
            best=self.space.one(self.best_codes[r]) if done else None,
            best_value=float(self.best_values[r]),
            values=self.values[r, :done],
            curve=self.curves[r],
            restarts=self.restarts[r],
            seed=self.seeds[r],
            problem=None if self.problems is None else self.problems[r],
            stop_reason=self.stop_reasons[r],
            error=self.errors[r],
            evaluations=done,
        )

    def __repr__(self) -> str:
        failed = self.stop_reasons.count("failed")
        best = self.best_values[[reason != "failed" for reason in self.stop_reasons]]
        text = f"{len(self)} runs"
        if len(best):
            text += f", mean best {best.mean():.6g}"
        if len(best) > 1 and np.isfinite(best).all():
            text += f" +- {best.std(ddof=1) / math.sqrt(len(best)):.2g}"
        text += f", {failed} failed" if failed else ""
        return f"<Runs: {text}, {self.evaluations.sum()} evaluations in {self.seconds:.3g} s>"

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the mean curve and its standard error; write it or return the figure."""
        return averages({f"anyorder, {len(self)} runs": self}, path)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a row for each run and grid point: problem, seed, evaluations, best.

        `problem` is empty for a function. The numbers are written so that they read back exactly.
        """
        with open(path, "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["problem", "seed", "evaluations", "best"])
            for run in self:
                for place, best in zip(self.grid.tolist(), run.curve.tolist(), strict=True):
                    table.writerow([run.problem or "", run.seed, place, repr(best)])
