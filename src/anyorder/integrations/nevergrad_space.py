"""The variables of a Nevergrad parametrization, with conversions of candidates and points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
from nevergrad.common.errors import UnsupportedParameterOperationError
from nevergrad.parametrization import parameter as p
from nevergrad.parametrization._datalayers import BoundLayer, Exponent
from nevergrad.parametrization.choice import BaseChoice
from nevergrad.parametrization.container import Container
from nevergrad.parametrization.data import Data

from anyorder.space import Space
from anyorder.space.variables import Binary, Categorical, Integer, Variable

_MOST_VALUES = 2**31 - 1
_ROUNDING = 1e-12  # the tolerance that Nevergrad has for the bounds of integers
Entries = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Chosen:
    """A condition that at least one of some variables has a value."""

    names: tuple[str, ...]
    value: int

    def __call__(self, point: Mapping[str, Any]) -> bool:
        """Return whether it holds."""
        return any(point.get(name) == self.value for name in self.names)

    def condition(self) -> Any:
        """Return whether the condition holds at a point."""
        return {self.names[0]: self.value} if len(self.names) == 1 else self


class Leaf:
    """A part of a parametrization whose values are searched; the base class of all kinds.

    Attributes
    ----------
    reference
        The part itself.
    path
        The keys that lead to the part.
    names
        The names of its variables, one for each coordinate.
    when
        The condition under which it is present, or None.
    """

    path: tuple[Any, ...]
    names: tuple[str, ...]
    when: Chosen | None

    def __init__(self, parameter: p.Parameter, count: int) -> None:
        self.reference, self.count = parameter, count

    def variable(self, k: int, when: Any) -> Variable:
        """Return the variable of coordinate k."""
        raise NotImplementedError

    def find(self, candidate: p.Parameter) -> p.Parameter:
        """Return the same part of a candidate."""
        for key in self.path:
            candidate = candidate[key]
        return candidate

    def write(self, parameter: p.Parameter, entries: Entries) -> None:
        """Set the values of the part in a candidate."""
        raise NotImplementedError

    def read(self, parameter: p.Parameter) -> Entries | None:
        """Return the entries that are nearest to the part of a candidate; None if none are near."""
        raise NotImplementedError


class Options(Leaf):
    """The chosen option of each repetition of a `Choice` or `TransitionChoice`."""

    def __init__(self, parameter: BaseChoice) -> None:
        super().__init__(parameter, parameter._repetitions or 1)
        self._ordered = isinstance(parameter, p.TransitionChoice) and parameter._ref is None

    def variable(self, k: int, when: Any) -> Variable:
        """Return the variable of repetition k."""
        size = len(self.reference)
        if size == 2:
            return Binary(when=when)
        kind = Integer(0, size - 1, when=when) if self._ordered else None
        return kind or Categorical(range(size), when=when)

    def write(self, parameter: p.Parameter, entries: Entries) -> None:
        """Choose these options, instead of drawing them from their weights."""
        parameter.indices.value = entries

    def read(self, parameter: p.Parameter) -> Entries:
        """Return the chosen options."""
        return np.asarray(parameter.indices.value, np.int64)


class Whole(Leaf):
    """Integers with two bounds."""

    def __init__(self, parameter: Data, low: Entries, high: Entries) -> None:
        super().__init__(parameter, low.size)
        self._low, self._high = low.ravel(), high.ravel()
        self._log = bool(Exponent.filter_from(parameter)) and bool((low > 0).all())

    def variable(self, k: int, when: Any) -> Variable:
        """Return the variable of number k."""
        low, high = int(self._low[k]), int(self._high[k])
        if (low, high) == (0, 1):
            return Binary(when=when)
        return Integer(low, high, log=self._log, when=when)

    def write(self, parameter: p.Parameter, entries: Entries) -> None:
        """Set the integers."""
        shape = np.shape(self.reference.value)
        parameter.value = entries.astype(float).reshape(shape) if shape else float(entries[0])

    def read(self, parameter: p.Parameter) -> Entries:
        """Return the integers."""
        value = np.ravel(parameter.value).astype(np.int64)
        return np.clip(value, self._low, self._high)


class Grid(Leaf):
    """Numbers with two bounds: values are equally spaced in the space where the bounds apply."""

    def __init__(self, parameter: Data, layer: BoundLayer, levels: int) -> None:
        self._layer = layer._layer_index
        super().__init__(parameter, np.size(parameter._layers[self._layer]._layered_get_value()))
        # these transforms reach their bounds only at infinity
        infinite = getattr(layer, "_method", "") in ("arctan", "tanh", "gaussian")
        middles = (np.arange(levels) + 0.5) / levels
        self._shares = middles if infinite else np.linspace(0, 1, levels)

    def variable(self, k: int, when: Any) -> Variable:
        """Return the variable of number k."""
        return Integer(0, len(self._shares) - 1, when=when)

    def write(self, parameter: p.Parameter, entries: Entries) -> None:
        """Set the numbers."""
        layer = parameter._layers[self._layer]
        shape = np.shape(layer._layered_get_value())
        del parameter.value  # the cached value
        layer.set_normalized_value(self._shares[entries].reshape(shape))

    def read(self, parameter: p.Parameter) -> Entries:
        """Return the nearest entries."""
        return _nearest(self._shares, parameter._layers[self._layer].get_normalized_value())


class Quantiles(Leaf):
    """Numbers without bounds: quantiles of the normal distribution in the standardised space."""

    def __init__(self, parameter: Data, levels: int) -> None:
        super().__init__(parameter, parameter.dimension)
        normal = NormalDist()
        self._values = np.array([normal.inv_cdf((k + 0.5) / levels) for k in range(levels)])

    def variable(self, k: int, when: Any) -> Variable:
        """Return the variable of number k."""
        return Integer(0, len(self._values) - 1, when=when)

    def write(self, parameter: p.Parameter, entries: Entries) -> None:
        """Set the numbers."""
        parameter.set_standardized_data(self._values[entries], reference=self.reference)

    def read(self, parameter: p.Parameter) -> Entries | None:
        """Return the nearest entries; None beyond the outermost quantiles."""
        data = parameter.get_standardized_data(reference=self.reference)
        outermost = 2 * self._values[-1] - self._values[-2]
        return None if (np.abs(data) > outermost).any() else _nearest(self._values, data)


def _nearest(values: npt.NDArray[Any], data: npt.NDArray[Any]) -> Entries:
    """Return, for each number, the index of the nearest of the sorted values."""
    return np.searchsorted((values[1:] + values[:-1]) / 2, np.ravel(data))


def _leaf(parameter: Data, levels: int) -> Leaf:
    """Return the leaf for an array or a scalar."""
    bounded = [
        layer
        for layer in BoundLayer.filter_from(parameter)
        if all(bound is not None for bound in layer.bounds)
    ]
    if not bounded:
        return Quantiles(parameter, levels)
    bounds = parameter.bounds
    if parameter.integer and all(bound is not None for bound in bounds):
        shape = np.shape(parameter.value) or (1,)
        low, high = (np.broadcast_to(bound, shape) for bound in bounds)
        low, high = np.ceil(low - _ROUNDING), np.floor(high + _ROUNDING)
        if (low <= high).all() and (high - low < _MOST_VALUES).all():
            return Whole(parameter, low.astype(np.int64), high.astype(np.int64))
    return Grid(parameter, bounded[-1], levels)


class Variables:
    """The variables of a parametrization.

    Parameters
    ----------
    parametrization
        Any nesting of `Choice`, `TransitionChoice`, `Array`, `Scalar`, `Log`, `Tuple`, `Dict`,
        `Instrumentation` and constants.
    levels
        The number of values of a continuous coordinate that are used.

    Attributes
    ----------
    space
        The space of points, which are dicts.
    continuous
        Whether there are continuous coordinates.
    """

    def __init__(self, parametrization: p.Parameter, levels: int) -> None:
        self._leaves: list[Leaf] = []
        self._variables: dict[str, Variable] = {}
        self._add(parametrization, (), None, levels)
        self.space = Space(self._variables)
        self.continuous = any(isinstance(leaf, Grid | Quantiles) for leaf in self._leaves)

    def _add(
        self, parameter: p.Parameter, path: tuple[Any, ...], when: Chosen | None, levels: int
    ) -> None:
        """Add the variables of a part of the parametrization."""
        if isinstance(parameter, BaseChoice):
            leaf: Leaf = Options(parameter)
            self._add_leaf(leaf, path, when)
            for key, option in parameter.choices._content.items():
                self._add(option, (*path, "choices", key), Chosen(leaf.names, key), levels)
        elif isinstance(parameter, Container):
            for key, part in parameter._content.items():
                self._add(part, (*path, key), when, levels)
        elif isinstance(parameter, Data) and parameter.dimension:
            self._add_leaf(_leaf(parameter, levels), path, when)
        elif parameter.dimension:
            raise UnsupportedParameterOperationError(
                f"{parameter.name} is a {type(parameter).__name__}, expected choices, arrays, "
                "scalars, tuples, dicts and constants"
            )

    def _add_leaf(self, leaf: Leaf, path: tuple[Any, ...], when: Chosen | None) -> None:
        first, label = len(self._variables), ".".join(map(str, path))
        leaf.path, leaf.when = path, when
        leaf.names = tuple(f"{label}#{first + k}" for k in range(leaf.count))
        condition = None if when is None else when.condition()
        for k, name in enumerate(leaf.names):
            self._variables[name] = leaf.variable(k, condition)
        self._leaves.append(leaf)

    def write(self, candidate: p.Parameter, point: Mapping[str, Any]) -> None:
        """Give a candidate the values of a point; absent parts keep their values."""
        for leaf in self._leaves:
            if leaf.names[0] in point:
                entries = np.array([point[name] for name in leaf.names], np.int64)
                leaf.write(leaf.find(candidate), entries)

    def read(self, candidate: p.Parameter) -> dict[str, int] | None:
        """Return the point that is nearest to a candidate; None if none is near."""
        point: dict[str, int] = {}
        for leaf in self._leaves:
            if leaf.when is None or leaf.when(point):
                entries = leaf.read(leaf.find(candidate))
                if entries is None:
                    return None
                point.update(zip(leaf.names, entries.tolist(), strict=True))
        return point
