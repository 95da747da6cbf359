"""Ways to evaluate the candidates of many runs at once.

The kind of an objective is its class, which drivers may check: a driver that keeps its candidates
on a device can pass them to a `Torch` function, or compute the values of `Problems` there, without
calling `values`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder import problems as _problems
from anyorder._internal.checks import SEVERAL, number, value_of
from anyorder.problems import Problem
from anyorder.space import Space

Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Evaluated:
    """The values of a batch.

    Attributes
    ----------
    values
        `(A, count)`: the values; NaN from where a run failed or was interrupted.
    errors
        For each run the reason why it failed ("type: message"), or None.
    interrupted
        Whether Ctrl-C came meanwhile, so that `values` are only those that were finished. An
        objective that cannot tell which were finished raises KeyboardInterrupt instead.
    """

    values: Values
    errors: list[str | None]
    interrupted: bool = False


class Objective(ABC):
    """The function, or the problems, that the runs optimise."""

    def __init__(self, space: Space) -> None:
        self.space = space

    @abstractmethod
    def values(self, points: Codes, active: Ints) -> Evaluated:
        """Return the values of codes `(A, count, n)`; their rows belong to the runs in `active`.

        The failure of one run is part of the result; a failure that cannot be attributed to a run
        is raised.
        """

    def part(self, runs: range) -> Objective:
        """Return the objective of some of the runs, which are then numbered from 0."""
        return self

    def _decode(self, points: Codes) -> npt.NDArray[np.int64]:
        """Return the values in a nameless space, in the shape of the codes."""
        matrix = np.asarray(self.space.decode(points.reshape(-1, points.shape[-1])))
        return matrix.reshape(points.shape)

    def _check(self, values: Values, points: Codes) -> Evaluated:
        """Return the values, checked; a run with a NaN has failed from there on."""
        evaluated = Evaluated(values, [None] * len(values))
        failed = np.isnan(values)
        for row in np.flatnonzero(failed.any(axis=1)):
            first = int(failed[row].argmax())
            values[row, first:] = np.nan
            evaluated.errors[row] = f"ValueError: {no_number(self.space, points[row, first])}"
        return evaluated


class Pointwise(Objective):
    """A function of one point: a dict for a named space, else an integer vector."""

    def __init__(self, function: Callable[..., Any], space: Space) -> None:
        super().__init__(space)
        self.function = function

    def values(self, points: Codes, active: Ints) -> Evaluated:
        """Evaluate one point after the other, one run after the other."""
        return one_by_one([self.function] * len(points), self.space, points)


class Vectorized(Objective):
    """A function of integers `(A, count, n)` that gives numbers `(A, count)`."""

    def __init__(self, function: Callable[..., Any], space: Space) -> None:
        super().__init__(space)
        self.function = function

    def values(self, points: Codes, active: Ints) -> Evaluated:
        """Evaluate all points in one call; exceptions of the function are raised."""
        result = self.function(self._argument(points))
        return self._check(matrix(result, points.shape[:2]), points)

    def _argument(self, points: Codes) -> Any:
        return self._decode(points)


class Torch(Vectorized):
    """A function of an int64 tensor, here on the CPU, that gives a tensor or an array."""

    def _argument(self, points: Codes) -> Any:
        import torch

        return torch.from_numpy(self._decode(points))


class Problems(Objective):
    """A problem for each run, all in one nameless space."""

    def __init__(self, problems: Sequence[Problem], space: Space) -> None:
        super().__init__(space)
        self.problems = tuple(problems)
        self._active: Ints = np.empty(0, np.int64)
        self._together: Callable[[Any], Any] | None = None

    def part(self, runs: range) -> Problems:
        """Return the problems of some of the runs."""
        return Problems(self.problems[runs.start : runs.stop], self.space)

    def values(self, points: Codes, active: Ints) -> Evaluated:
        """Evaluate all points in one call.

        If that fails, they are evaluated one by one, so that only the run at fault fails.
        """
        mine = [self.problems[r] for r in active]
        try:
            if self._together is None or not np.array_equal(active, self._active):
                self._together, self._active = _problems.together(mine), active.copy()
            values = matrix(self._together(self._decode(points)), points.shape[:2])
        except Exception:  # problems of other packages may raise anything; the error is found below
            return one_by_one(mine, self.space, points)
        return self._check(values, points)


def one_by_one(functions: Sequence[Callable[..., Any]], space: Space, points: Codes) -> Evaluated:
    """Evaluate each point by itself, with a function for each run."""
    values = np.full(points.shape[:2], np.nan)
    errors: list[str | None] = [None] * len(points)
    try:
        for row, function in enumerate(functions):
            try:
                for k, point in enumerate(space.decode(points[row])):
                    values[row, k] = value_of("what f returned", function(point))
                    if math.isnan(values[row, k]):
                        errors[row] = f"ValueError: {no_number(space, points[row, k])}"
                        break
            except Exception as error:  # the function may have changed its argument
                where = space.brief(points[row, k])
                errors[row] = f"{type(error).__name__}: {error} while evaluating {where}"
    except KeyboardInterrupt:
        return Evaluated(values, errors, interrupted=True)
    return Evaluated(values, errors)


def matrix(result: Any, shape: tuple[int, ...]) -> Values:
    """Return what a vectorised function gave, as floats; None becomes NaN."""
    if hasattr(result, "detach"):  # a tensor, on any device
        if result.is_complex():
            raise TypeError(f"f returned {result.dtype}, expected numbers")
        result = result.detach().cpu().double().numpy()
    elif isinstance(result, tuple | list):
        result = [one.detach().cpu().numpy() if hasattr(one, "detach") else one for one in result]
    try:
        array = np.asarray(result)
    except ValueError as error:
        raise ValueError(f"f returned no array of shape {shape}, as expected: {error}") from None
    if array.shape != shape:
        raise ValueError(wrong_shape(array.shape, shape))
    if array.dtype.kind == "O":
        numbers = [number("what f returned", value) for value in array.flat]
        return np.array(numbers, np.float64).reshape(shape)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"f returned {array.dtype}, expected numbers")
    return array.astype(np.float64)


def wrong_shape(found: tuple[int, ...], expected: tuple[int, ...]) -> str:
    """Return the message for values whose shape is not one number for each candidate."""
    hint = f" ({SEVERAL})" if len(found) > len(expected) else ""
    return f"f returned shape {found}, expected {expected}: a number for each{hint}"


def no_number(space: Space, codes: Codes) -> str:
    """Return the message for a point whose value is no number."""
    return f"f returned NaN or None for {space.brief(codes)}, expected a number"
