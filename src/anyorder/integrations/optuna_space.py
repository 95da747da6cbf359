"""The parameters of an Optuna study as variables; conversions between entries and values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from anyorder.space import Space
from anyorder.space.variables import Binary, Categorical, Integer, Variable

MOST_VALUES = 2**31


class Parameter:
    """A parameter, whose values are represented by whole numbers, the entries of points.

    Parameters
    ----------
    distribution
        Optuna's distribution of the parameter. Categories are known by their index. Of floats only
        the values on a grid of `levels` are used, or on the grid of their step.
    """

    def __init__(self, distribution: BaseDistribution, levels: int) -> None:
        self.distribution = distribution
        low, high = 0.0, 0.0
        self._step: float | None = 1.0
        self._log = False
        if isinstance(distribution, CategoricalDistribution):
            high = len(distribution.choices) - 1.0
        else:
            low, high = float(distribution.low), float(distribution.high)
            self._step, self._log = distribution.step, distribution.log
        self._whole = isinstance(distribution, IntDistribution)
        if self._step is None:  # a grid
            if self._log:
                low, high = math.log(low), math.log(high)
            self._step = (high - low) / (levels - 1)
            self.size = levels if high > low else 1
        else:
            self._log = self._log and self._whole
            self.size = math.floor((high - low) / self._step + 1e-9) + 1
        self._low, self._high = low, high

    def variable(self) -> Variable:
        """Return the variable of this parameter."""
        if isinstance(self.distribution, CategoricalDistribution):
            return Binary() if self.size == 2 else Categorical(range(self.size))
        if self._log and self._whole:
            return Integer(round(self._low), round(self._high), log=True)
        return Integer(0, self.size - 1)

    def value(self, entry: int) -> float:
        """Return the internal representation of an entry."""
        if self._log and self._whole:
            return float(entry)
        step = self._step or 0.0
        value = min(self._low + entry * step, self._high)
        if self._log:
            low, high = math.exp(self._low), math.exp(self._high)
            bounds = self.distribution.low, self.distribution.high
            value = bounds[0] if value <= self._low else math.exp(value)
            value = bounds[1] if value >= high or entry == self.size - 1 else max(value, low)
            value = min(max(value, bounds[0]), bounds[1])
        return value

    def entry(self, value: float) -> int:
        """Return the entry that is nearest to an internal representation."""
        if self._log and self._whole:
            return round(value)
        number = math.log(value) if self._log else value
        entry = round((number - self._low) / (self._step or 1.0))
        return min(max(entry, 0), self.size - 1)

    def contains(self, value: float) -> bool:
        """Return whether the parameter can have this value, given in internal representation."""
        return bool(self.distribution._contains(value))


class Parameters:
    """The parameters of a study that are searched together."""

    def __init__(self, distributions: Mapping[str, BaseDistribution], levels: int) -> None:
        self.distributions = dict(distributions)
        self.by_name = {name: Parameter(d, levels) for name, d in distributions.items()}
        self.names = list(self.by_name)
        self.place = {name: k for k, name in enumerate(self.names)}
        self.space = Space([parameter.variable() for parameter in self.by_name.values()])

    def values(self, point: npt.NDArray[np.int64]) -> dict[str, float]:
        """Return the values of a point, in internal representation."""
        entries = zip(self.by_name.items(), point.tolist(), strict=True)
        return {name: parameter.value(entry) for (name, parameter), entry in entries}

    def entries(self, values: Mapping[str, float]) -> list[int | None]:
        """Return the point of values in internal representation, None for values out of range."""
        return [
            parameter.entry(values[name])
            if name in values and parameter.contains(values[name])
            else None
            for name, parameter in self.by_name.items()
        ]

    def external(self, values: Mapping[str, float]) -> dict[str, Any]:
        """Return the values as Optuna's users see them."""
        return {name: self.distributions[name].to_external_repr(v) for name, v in values.items()}
