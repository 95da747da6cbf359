"""Points as the Gaussian process sees them: columns of numbers, each with a kind and a weight.

An unordered variable is a nominal column, and so is each item of a subset. An ordered variable is
its place between 0 and 1, on a logarithmic scale if it is searched on one. If a variable is absent,
its column is -1. A permutation has three kinds of columns, each with one weight for all items:
which item is at a place, where an item is, and which two items are next to it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anyorder.space import Space
from anyorder.space.groups import Arrangement
from anyorder.space.variables import Integer
from anyorder.strategies.base import Codes

Floats = npt.NDArray[np.float64]

# Kinds of columns; nominal ones come first in the features of a point.
NOMINAL, ORDERED, NEIGHBOURS = range(3)
PAIR = 65536.0  # the neighbours a < b of an item are the number a * PAIR + b
ABSENT = -1.0  # the value of a column if its variable is absent
_EDGES = 4  # so many items get another neighbour by a reversal, the smallest change of a tour


class Columns:
    """The columns of a space.

    Attributes
    ----------
    kinds
        The kind of each column, nominal ones first.
    nominal
        The number of nominal columns.
    owner
        `(m,)`: the index of the weight of each column.
    share
        `(m,)`: the share of the weight that each column has.
    labels
        The variable, or the part of it, that each weight belongs to.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        listed = np.full(len(space), -1)
        for k, group in enumerate(space.groups):
            if isinstance(group, Arrangement):
                listed[group.columns] = k
        kinds: list[int] = []
        owner: list[int] = []
        share: list[float] = []
        step: list[float] = []
        self.labels: list[str] = []
        self._codes: list[int] = []  # the columns of codes that are columns here
        names = space.labels or [f"x[{j}]" for j in range(len(space))]
        for j in np.flatnonzero((space.cardinalities > 1) & (listed < 0)).tolist():
            self._codes.append(j)
            kinds.append(ORDERED if space.ordered[j] and space.cardinalities[j] > 2 else NOMINAL)
            owner.append(len(self.labels))
            share.append(1.0)
            step.append(1.0)
            self.labels.append(str(names[j]))
        self._lists = [
            group for group in space.groups if isinstance(group, Arrangement) and not group.fixed
        ]
        for group in self._lists:
            name = str(names[group.first]).partition("[")[0]
            for what, kind in (("places", NOMINAL), ("order", ORDERED), ("neighbours", NEIGHBOURS)):
                kinds += [kind] * group.size
                owner += [len(self.labels)] * group.size
                share += [1 / 3] * group.size
                step += [1 / _EDGES if kind == NEIGHBOURS else 0.0] * group.size
                self.labels.append(f"{name}: {what}")
        self._order = np.argsort(np.array(kinds, np.int64), kind="stable")
        self.kinds = np.array(kinds, np.int64)[self._order]
        self.nominal = int(np.count_nonzero(self.kinds == NOMINAL))
        self.owner = np.array(owner, np.int64)[self._order]
        units = len(self._codes) + sum(group.size for group in self._lists)
        self.share = np.array(share)[self._order] / max(units, 1)
        self._step = np.array(step)[self._order]
        self._scale = np.ones(len(self._codes))
        self._logs: list[tuple[int, float, float, float]] = []
        for k, j in enumerate(self._codes):
            variable = space.columns[j]
            if kinds[k] == ORDERED:
                self._scale[k] = 1.0 / (len(variable) - 1)
                if isinstance(variable, Integer) and variable.log:
                    low, high = float(variable.values[0]), float(variable.values[-1])
                    self._logs.append((k, low, float(variable.step), np.log(high / low)))

    def __len__(self) -> int:
        return len(self.kinds)

    def of(self, codes: Codes, present: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Return the columns `(k, m)` of canonical codes `(k, n)`.

        `present` says which variables are present, if the caller knows it.
        """
        parts = [codes[:, self._codes] * self._scale]
        for k, low, step, width in self._logs:
            parts[0][:, k] = np.log1p(codes[:, self._codes[k]] * (step / low)) / width
        if self._space.conditional:
            present = self._space.present(codes) if present is None else present
            parts[0][~present[:, self._codes]] = ABSENT
        for group in self._lists:
            items = codes[:, group.columns]
            places = np.argsort(items, axis=1, kind="stable")
            near = [np.take_along_axis(items, (places + by) % group.size, axis=1) for by in (-1, 1)]
            pairs = np.minimum(*near) * PAIR + np.maximum(*near)
            parts += [items.astype(np.float64), places / max(group.size - 1, 1), pairs]
        return np.ascontiguousarray(np.concatenate(parts, axis=1)[:, self._order])

    def distances(self, columns: Floats, other: Floats) -> Floats:
        """Return by how many changes points `(k, m)` differ from another point.

        Variables that only one of the two has do not count.
        """
        differ = (columns != other) & (columns >= 0) & (other >= 0)
        found: Floats = (differ * self._step).sum(axis=1)
        return found
