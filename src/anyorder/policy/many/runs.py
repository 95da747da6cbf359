"""The outcome of `solve_many`: its runs, and arrays over all of them."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from anyorder._internal import markup
from anyorder.plotting.runs import averages
from anyorder.space import Space
from anyorder.strategies.policy.config import Config

_SHOWN = 10  # the most runs in the table of a notebook


@dataclass(frozen=True, eq=False)
class Run:
    """One run of `solve_many`.

    Attributes
    ----------
    best, best_value
        The best point found, as the function receives it, and its value; None and the worst
        infinity if no evaluation was finished.
    values
        The values of the function, `(evaluations,)`.
    curve
        The best value so far at each point of the grid of the `Runs`.
    restarts
        The numbers of evaluations after which the policy was restarted.
    seed, problem
        What is needed to repeat the run; `problem` is a name, or None for a function.
    stop_reason, error
        "budget", "target", the reason of a stopping rule, "interrupted", or "failed"; if it failed,
        the error, else None.
    evaluations
        The number of finished evaluations.
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

    The runs of a problem are neighbours: with 10 runs of each problem, run 25 is of the third one.

    Attributes
    ----------
    seeds, problems
        The seed and the problem of each run; `problems` are names, or None for a function.
    grid
        `(G,)`: numbers of evaluations.
    curves
        `(R, G)`: the best value so far. After a run has reached the target its curve stays
        constant, so that means over runs remain meaningful; after it failed or was interrupted its
        curve is NaN.
    best_values, best_codes
        `(R,)` and `(R, n)`: the best value of each run, and its point as indices of values.
    values
        `(R, budget)`: the values in order of evaluation; NaN after a run stopped.
    evaluations
        `(R,)`: the number of finished evaluations.
    restarts
        For each run, the numbers of evaluations after which its policy was restarted.
    stop_reasons, errors
        The stop reason and the error of each run, see `Run`.
    direction, space, config, engine
        What all runs have in common.
    seconds
        The wall time of all runs together, including the evaluations.
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

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: the runs, and the mean of their curves."""
        head = ["run", "problem", "seed", "best value", "evaluations", "stopped by", "error"]
        rows = [
            (r, run.problem, run.seed, run.best_value, run.evaluations, run.stop_reason, run.error)
            for r, run in enumerate(self[:_SHOWN])
        ]
        parts = [markup.table(rows, head)]
        if len(self) > _SHOWN:
            parts.append(markup.note(f"and {len(self) - _SHOWN} more"))
        try:
            parts.append(
                markup.picture(self.plot()._repr_png_(), "mean best value over evaluations")
            )
        except ImportError as error:
            parts.append(markup.note(str(error)))
        return markup.panel(repr(self)[1:-1], *parts)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the mean curve and its standard error; write or return the figure."""
        return averages({f"anyorder, {len(self)} runs": self}, path)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a row for each run and grid point: problem, seed, evaluations, best.

        `problem` is empty for a function. The numbers read back exactly.
        """
        with open(path, "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["problem", "seed", "evaluations", "best"])
            for run in self:
                for place, best in zip(self.grid.tolist(), run.curve.tolist(), strict=True):
                    table.writerow([run.problem or "", run.seed, place, repr(best)])
