"""The search space of Ray Tune as variables; conversions between entries and configurations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from ray.tune.search.sample import (
    Categorical,
    Domain,
    Float,
    Function,
    Integer,
    LogUniform,
    Normal,
    Quantized,
)
from ray.tune.search.variant_generator import parse_spec_vars

from anyorder import space as spaces
from anyorder._internal.checks import short
from anyorder.space import variables

Path = tuple[Any, ...]  # the keys that lead to a value
_MOST_VALUES = 2**31 - 1


class Parameter:
    """A domain, whose values are represented by whole numbers, the entries of points.

    Parameters
    ----------
    name
        The name in messages.
    domain
        `choice`, `randint`, `lograndint`, `uniform`, `loguniform`, or a quantised one of them.
    levels
        The number of values of a float without a step that are used.
    """

    def __init__(self, name: str, domain: Domain, levels: int) -> None:
        self.name, self._domain = name, domain
        sampler, step = domain.get_sampler(), None
        if isinstance(sampler, Quantized):
            sampler, step = sampler.sampler, sampler.q
        self._log = isinstance(sampler, LogUniform)
        self._values: Sequence[Any] = ()
        self._step: Any = None  # the values are multiples of it
        if isinstance(domain, Function) or isinstance(sampler, Normal):
            kind = "sample_from" if isinstance(domain, Function) else "randn"
            raise ValueError(f"{name} is {kind}, expected one of choice, randint, uniform, ...")
        if isinstance(domain, Categorical):
            self._values = list(domain.categories)
            if any(parse_spec_vars({"": value})[1] for value in self._values):
                raise ValueError(f"{name} is a choice of search spaces, expected one of values")
            self.variable = self._unordered(len(self._values))
            return
        low, high = domain.lower, domain.upper
        if isinstance(domain, Float) and step is None:
            self._values = _levels(float(low), float(high), levels, self._log)
            self.variable = variables.Integer(0, len(self._values) - 1)
            return
        if isinstance(domain, Integer) and step in (None, 1):  # the upper bound is exclusive
            high, step = high - 1, 1
        self._step = step
        first, last = _multiple(low / step, math.ceil), _multiple(high / step, math.floor)
        if not 0 <= last - first < _MOST_VALUES:
            values = max(0, last - first + 1)
            raise ValueError(f"{name} has {values} values, expected 1 to {_MOST_VALUES}")
        self.variable = variables.Integer(first, last, log=self._log and first > 0)

    @staticmethod
    def _unordered(count: int) -> variables.Variable:
        return variables.Binary() if count == 2 else variables.Categorical(range(count))

    def value(self, entry: int) -> Any:
        """Return the value that a configuration has for an entry."""
        if self._step is None:
            return self._values[entry]
        return self._domain.cast(entry * self._step)

    def entry(self, value: Any) -> int:
        """Return the entry that is nearest to a value in a configuration."""
        if isinstance(self._domain, Categorical):
            for k, known in enumerate(self._values):
                if known is value or (type(known) is type(value) and known == value):
                    return k
        elif isinstance(value, Real) and not isinstance(value, bool):
            low, high = self._domain.lower, self._domain.upper
            if low <= value <= high and self._step is None:
                return int(np.abs(np.asarray(self._values) - value).argmin())
            if low <= value <= high:
                values = self.variable.values
                nearest: int = min(max(round(value / self._step), values[0]), values[-1])
                return nearest
        text = self._domain.domain_str
        raise ValueError(f"{self.name} is {short(value)}, expected a value of {short(text)}")


def _levels(low: float, high: float, count: int, log: bool) -> list[float]:
    """Return equally spaced numbers; both ends are exact."""
    if low >= high:
        return [low]
    spaced = np.geomspace(low, high, count) if log else np.linspace(low, high, count)
    return [low, *spaced[1:-1].tolist(), high]


def _multiple(number: float, rounded: Any) -> int:
    nearest = round(number)
    return nearest if math.isclose(number, nearest) else int(rounded(number))


class Parameters:
    """All domains of a configuration, which may be nested.

    Attributes
    ----------
    space
        The space of the entries of all domains.
    """

    def __init__(self, config: Mapping[str, Any], levels: int) -> None:
        _, domains, grids = parse_spec_vars(dict(config))
        for path, _ in grids:
            raise ValueError(
                f"{_path_name(path)} is grid_search, expected a domain such as choice: the search "
                "chooses the values"
            )
        if not domains:
            raise ValueError(f"{short(dict(config))} has no domains, expected choice, uniform, ...")
        self._parameters = {
            path: Parameter(_path_name(path), domain, levels) for path, domain in domains
        }
        self._config = config
        self.space = spaces.Space([p.variable for p in self._parameters.values()])

    def values(self, point: Any) -> dict[Path, Any]:
        """Return the values of a point by their paths."""
        pairs = zip(self._parameters.items(), point.tolist(), strict=True)
        return {path: parameter.value(entry) for (path, parameter), entry in pairs}

    def read(self, config: Mapping[str, Any]) -> tuple[list[int], dict[Path, Any]]:
        """Return the nearest point to a configuration, and its values by their paths."""
        values = {path: _find(config, path) for path in self._parameters}
        entries = [
            p.entry(value)
            for p, value in zip(self._parameters.values(), values.values(), strict=True)
        ]
        return entries, values


def _path_name(path: Path) -> str:
    return "/".join(map(str, path))


def _find(config: Any, path: Path) -> Any:
    """Return the value at a path; keys may be joined by slashes."""
    if isinstance(config, Mapping) and _path_name(path) in config:
        return config[_path_name(path)]
    for key in path:
        try:
            config = config[key]
        except (KeyError, IndexError, TypeError):
            raise ValueError(
                f"a point lacks {_path_name(path)}, expected every parameter"
            ) from None
    return config
