"""The space of a search for hyperparameters, and a splitter that repeats its splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from anyorder._internal.checks import short
from anyorder.space import Space
from anyorder.space.variables import Categorical, Kind, Ordinal, plain


class Candidates:
    """The space of a search, with the parameters that each of its points means."""

    def __init__(self, space: Any) -> None:
        # values that anyorder only knows by their place in the list
        self._lists: dict[str, list[Any]] = {}
        if isinstance(space, Space) and space.named:
            self.space = space
            return
        if not isinstance(space, Mapping):
            expected = "expected a dict of variables or lists, or a Space with names"
            raise TypeError(f"space is {short(space)}, {expected}")
        self.space = Space({name: self._variable(name, given) for name, given in space.items()})

    def _variable(self, name: str, given: Any) -> Any:
        if isinstance(given, Kind):
            return given
        if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
            expected = "expected a variable of anyorder or a list of values"
            raise TypeError(f"space[{name!r}] is {short(given)}, {expected}")
        values = [plain(value) for value in given]
        try:
            return (Ordinal if _is_sorted(values) else Categorical)(values)
        except ValueError as error:
            raise ValueError(f"space[{name!r}]: {error}") from None
        except TypeError:  # values that are not hashable
            self._lists[name] = values
            return Categorical(range(len(values)))

    def params(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that a point means."""
        lists = self._lists
        return {k: lists[k][v] if k in lists else v for k, v in point.items()}


def _is_sorted(values: list[Any]) -> bool:
    """Return whether the values are increasing or decreasing numbers."""
    if len(values) < 3 or not all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in values
    ):
        return False
    pairs = list(pairwise(values))
    return all(a < b for a, b in pairs) or all(a > b for a, b in pairs)


class SameSplits:
    """A splitter that always gives the splits which another one gave at its first call."""

    def __init__(self, cv: Any) -> None:
        self._cv = cv
        self._splits: list[Any] | None = None

    @property
    def count(self) -> int:
        """Return the number of splits."""
        return len(self._splits or ())

    def split(self, *args: Any, **params: Any) -> Any:
        """Return the rows of training and test data of each split."""
        if self._splits is None:
            self._splits = list(self._cv.split(*args, **params))
        return self._splits
