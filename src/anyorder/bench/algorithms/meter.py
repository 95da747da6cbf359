"""The meter, which counts the evaluations of every algorithm alike, and the record of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import integer
from anyorder.problems.base import Problem

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Spent(BaseException):
    """Raised when the budget is spent. Not an Exception: libraries catch those and continue."""


@dataclass(frozen=True, eq=False)
class Trace:
    """The record of a run; higher values are better.

    Attributes
    ----------
    grid, curve
        `(G,)`: numbers of evaluations, and the best value found within each number.
    best, best_value
        The best point that was evaluated, the first of equally good ones, and its value.
    budget, evaluations
        The numbers of evaluations that were allowed and done. Duplicates count.
    seconds
        The duration of the run, evaluations included.
    configuration
        The settings of the algorithm, with defaults where it reports them.
    duplicates
        The number of evaluations of a point that had been evaluated before; None if not counted.
    """

    grid: Ints
    curve: Floats
    best: Codes
    best_value: float
    budget: int
    evaluations: int
    seconds: float
    configuration: Mapping[str, Any]
    duplicates: int | None = None


class Meter:
    """A problem that counts its evaluations; those beyond the budget raise `Spent`.

    Points are not stored, except the best one and a hash of each.

    Attributes
    ----------
    problem, budget
        The problem, and the number of evaluations allowed.
    free, cardinalities, ordered
        The variables that have more than one value, their numbers of values, and whether the
        values are ordered. `value` takes a point of these variables alone.
    done
        The number of evaluations so far.
    """

    def __init__(
        self,
        problem: Problem,
        budget: int,
        grid: npt.ArrayLike,
        each: Callable[[float], Any] | None = None,
    ) -> None:
        self.problem = problem
        self.budget = integer("budget", budget, 1)
        self.grid = check_grid(grid, self.budget)
        cardinalities = np.asarray(problem.space.cardinalities)
        self.free = np.flatnonzero(cardinalities > 1)
        if not len(self.free):
            raise ValueError(f"{problem.name} has one point only, expected at least two")
        self.cardinalities: list[int] = cardinalities[self.free].tolist()
        self.ordered: list[bool] = np.asarray(problem.space.ordered)[self.free].tolist()
        self.done = 0
        self._n = len(problem.space)
        self._each = each
        self._seen: set[int] = set()
        self._best: Codes | None = None
        self._best_value = -np.inf
        self._curve = np.empty(len(self.grid))
        self._passed = 0  # the number of grid points that have been passed

    @property
    def left(self) -> int:
        """The number of evaluations left."""
        return self.budget - self.done

    def value(self, point: npt.ArrayLike) -> float:
        """Evaluate one point of the free variables."""
        if not self.left:
            raise Spent
        codes = np.zeros(self._n, dtype=np.int32)
        codes[self.free] = point
        value = self.problem(codes.copy())  # the problem may change its argument
        self._record(codes, value)
        return value

    def evaluate(self, points: npt.ArrayLike) -> Floats:
        """Evaluate a batch of points of all variables."""
        codes = np.ascontiguousarray(points, dtype=np.int32)
        allowed = codes[: self.left]
        values = self.problem.evaluate(allowed.copy()) if len(allowed) else np.empty(0)
        for point, value in zip(allowed, values.tolist(), strict=True):
            self._record(point, value)
        if len(allowed) < len(codes):
            raise Spent
        return values

    def _record(self, point: Codes, value: float) -> None:
        if value != value:
            raise ValueError(
                f"{self.problem.name} is NaN at evaluation {self.done + 1}, expected a number"
            )
        self._seen.add(hash(point.tobytes()))
        if self._best is None or value > self._best_value:
            self._best, self._best_value = point.copy(), value
        self.done += 1
        if self.done == self.grid[self._passed]:
            self._curve[self._passed] = self._best_value
            # it stays at the last point: no later evaluation has its number
            self._passed = min(self._passed + 1, len(self.grid) - 1)
        if self._each is not None:
            self._each(value)

    def trace(self, seconds: float, configuration: Mapping[str, Any]) -> Trace:
        """Return the record of the run; the curve is flat after the last evaluation."""
        if self._best is None:
            raise RuntimeError("the algorithm stopped before its first evaluation")
        self._curve[self.grid > self.done] = self._best_value
        return Trace(
            self.grid, self._curve, self._best, self._best_value, self.budget, self.done,
            seconds, configuration, self.done - len(self._seen),
        )  # fmt: skip


def check_grid(grid: npt.ArrayLike, budget: int) -> Ints:
    """Return the grid as integers: increasing, from 1 to the budget."""
    given = np.asarray(grid)
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "iu":
        raise ValueError(f"grid is {grid!r}, expected a list of numbers of evaluations")
    if given[0] < 1 or given[-1] > budget or (np.diff(given.astype(np.int64)) <= 0).any():
        raise ValueError(
            f"grid is {given[0]}, ... {given[-1]}, expected increasing numbers from 1 to the "
            f"budget of {budget}"
        )
    return given.astype(np.int64)
