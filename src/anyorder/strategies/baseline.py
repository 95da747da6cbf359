"""What every baseline has: ask, tell, the incumbent; and the loop that runs one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.random import BitGenerator, Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from anyorder._checks import integer, numbers
from anyorder.problems.base import Problem
from anyorder.space import Space

Codes = NDArray[np.int32]
Index = NDArray[np.intp]
Seed = int | SeedSequence | BitGenerator | Generator | None


class Baseline(ABC):
    """Ask and tell over codes, maximising; a subclass writes `_propose` and `_learn`.

    `tell` takes what was asked, in whole or in part and in any order, and other points as well:
    all count for `best`. An error in `tell` leaves everything as it was.

    Parameters
    ----------
    space : where to search.
    seed : whatever `numpy.random.default_rng` takes.
    """

    default_ask: ClassVar[int] = 1

    def __init__(self, space: Space, seed: Seed = None) -> None:
        if not isinstance(space, Space):
            raise TypeError(f"space is {space!r}, expected a Space")
        self.space = space
        self._rng = np.random.default_rng(seed)
        # int64: sums of a code and a step must not overflow.
        self._cardinalities = space.cardinalities.astype(np.int64)
        self._free = np.flatnonzero(self._cardinalities > 1)  # the variables that can change
        self._best: Codes | None = None
        self._best_value = -np.inf

    @property
    def best(self) -> Any:
        """The best candidate told so far, the first of equals; None before any."""
        return None if self._best is None else self.space.decode(self._best[None])[0]

    @property
    def best_value(self) -> float:
        """Its value; -inf before any."""
        return self._best_value

    def ask(self, n: int | None = None) -> Any:
        """The next n candidates, as the space decodes them: a matrix, or a list of dicts."""
        count = self.default_ask if n is None else integer("n", n, 1)
        return self.space.decode(self._propose(count))

    def tell(self, candidates: Any, values: ArrayLike) -> None:
        """Report the values of candidates, one number each; -inf is a value, NaN is not."""
        codes = self.space.encode(candidates)
        told = numbers(values, len(codes))
        if not len(codes):
            return
        top = int(told.argmax())
        if self._best is None or told[top] > self._best_value:
            self._best, self._best_value = codes[top].copy(), float(told[top])
        self._learn(codes, told)

    @abstractmethod
    def _propose(self, n: int) -> Codes:
        """The next n points, (n, variables)."""

    @abstractmethod
    def _learn(self, codes: Codes, values: NDArray[np.float64]) -> None:
        """Take note of at least one point and its value."""

    def _uniform(self, n: int) -> Codes:
        shape = (n, len(self._cardinalities))
        return self._rng.integers(self._cardinalities, size=shape, dtype=np.int32)

    def _vary(self, points: Codes, rows: Index, variables: Index) -> Codes:
        """Change points[rows, variables], in place, to other values, all alike."""
        values = self._cardinalities[variables]
        steps = 1 + (self._rng.random(len(values)) * (values - 1)).astype(np.int64)
        points[rows, variables] = (points[rows, variables] + steps) % values
        return points

    def _varied(self, point: Codes, n: int, changes: int = 1) -> Codes:
        """N copies of a point, each with so many variables changed, or all that can."""
        points = np.tile(point, (n, 1))
        changes = min(changes, len(self._free))
        if changes == 1:
            variables = self._rng.choice(self._free, n)
        else:
            drawn = [self._rng.choice(self._free, changes, replace=False) for _ in range(n)]
            variables = np.concatenate(drawn)
        return self._vary(points, np.repeat(np.arange(n), changes), variables)


def real(what: str, value: object, low: float, high: float = np.inf) -> float:
    """The value as a float above `low` and at most `high`; `what` names it in the error."""
    if not isinstance(value, int | float | np.number) or not low < value <= high or value == np.inf:
        most = f" and at most {high:g}" if high < np.inf else ""
        raise ValueError(f"{what} is {value!r}, expected a number above {low:g}{most}")
    return float(value)


class AskTell(Protocol):
    """What `run` needs: any baseline, or the optimiser."""

    def ask(self) -> Any:
        """Give the next candidates."""

    def tell(self, candidates: Any, values: NDArray[np.float64], /) -> Any:
        """Take their values."""


def run(
    algorithm: AskTell, objective: Problem | Callable[[Any], float], budget: int
) -> NDArray[np.float64]:
    """Spend exactly `budget` evaluations; returns all values in order of evaluation.

    A problem is evaluated a batch at a time, a function candidate by candidate.
    """
    budget = integer("budget", budget, 1)
    values = np.empty(budget)
    done = 0
    while done < budget:
        candidates = algorithm.ask()[: budget - done]
        if isinstance(objective, Problem):
            told = objective.evaluate(candidates)
        else:
            told = np.array([float(objective(candidate)) for candidate in candidates])
        algorithm.tell(candidates, told)
        values[done : done + len(told)] = told
        done += len(told)
    return values
