"""All changes of one variable to another of its values: the neighbourhood of local search."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from anyorder.space.digits import Scale
from anyorder.strategies.base import Codes, Index

# Local search tries all of them in turn, and holds them in memory.
_MOST_CHANGES = 1 << 24


class Changes:
    """The single changes of a space, by number.

    Change c adds steps[c] to the code of variables[c], modulo its number of values. A number
    therefore means the same at every point, and 0 to len - 1 give all neighbours of any point.

    A wide variable has steps near and far, 1, 2, 4, ... along its scale in both directions,
    instead of a change to every value.

    Parameters
    ----------
    cardinalities
        The number of values of each variable.
    scales
        The scales of wide variables, by index.
    """

    def __init__(
        self, cardinalities: NDArray[np.int64], scales: Mapping[int, Scale] | None = None
    ) -> None:
        self._cardinalities, self._scales = cardinalities, scales or {}
        others = cardinalities - 1
        far = {j: _powers(scale.length // 2) for j, scale in self._scales.items()}
        for j, powers in far.items():
            others[j] = 2 * len(powers)
        if others.sum() > _MOST_CHANGES:
            raise ValueError(
                f"space has {others.sum()} single changes, expected at most {_MOST_CHANGES}"
            )
        self._offsets = np.cumsum(others) - others
        self._others = others
        self.variables = np.repeat(np.arange(len(others)), others)
        self.steps = np.arange(len(self.variables)) - self._offsets[self.variables] + 1
        for j, powers in far.items():
            self.steps[self._of(j)] = np.concatenate([powers, -powers])

    def __len__(self) -> int:
        return len(self.variables)

    def shuffled(self, rng: Generator) -> Index:
        """All changes in a random order to try them in.

        Steps of wide variables come in turns with the other changes, far ones first: the value is
        found from coarse to fine, and small steps do not use up the evaluations.
        """
        order: Index = rng.permutation(len(self))
        if not self._scales:
            return order
        turn = np.empty(len(self))
        for j in range(len(self._others)):
            count = int(self._others[j])
            own = np.argsort(-np.abs(self.steps[self._of(j)]), kind="stable")
            turn[self._of(j)][own if j in self._scales else rng.permutation(count)] = np.arange(
                count
            )
        # pairs of steps of one size are in one turn
        for j in self._scales:
            turn[self._of(j)] //= 2
        return order[np.argsort(turn[order], kind="stable")]

    def targets(self, point: Codes, changes: Index) -> Index:
        """The code that each change gives to its variable."""
        variables = self.variables[changes]
        codes: Index = (point[variables] + self.steps[changes]) % self._cardinalities[variables]
        for j, scale in self._scales.items():
            here = np.flatnonzero(variables == j)
            old = np.full(len(here), point[j], np.int64)
            codes[here] = scale.moved(old, self.steps[changes[here]])
        return codes

    def distinct(self, point: Codes, changes: Index, changeable: Index | None = None) -> Index:
        """These changes without those that give the same neighbour as an earlier one.

        Steps of a wide variable do where they would leave its scale, and among the small values of
        a logarithmic one. Changes of variables that are not `changeable` are left out, too.
        """
        if changeable is not None:
            changes = changes[np.isin(self.variables[changes], changeable)]
        if not self._scales:
            return changes
        pairs = np.stack([self.variables[changes], self.targets(point, changes)])
        first: Index = np.sort(np.unique(pairs, axis=1, return_index=True)[1])
        return changes[first]

    def apply(self, point: Codes, changes: Index) -> Codes:
        """The neighbours of a point, one per row."""
        neighbours = np.tile(point, (len(changes), 1))
        rows = np.arange(len(changes))
        neighbours[rows, self.variables[changes]] = self.targets(point, changes)
        return neighbours

    def between(self, old: Codes, new: Codes) -> tuple[int, int] | None:
        """The change from old to new and the one back; None if they are not neighbours."""
        different = np.flatnonzero(old != new)
        if len(different) != 1:
            return None
        i = int(different[0])
        if i in self._scales:
            ways = self._matching(old, i, int(new[i])), self._matching(new, i, int(old[i]))
            return None if None in ways else ways  # type: ignore[return-value]
        values, offset = int(self._cardinalities[i]), int(self._offsets[i])
        step = int(new[i] - old[i]) % values
        return offset + step - 1, offset + values - step - 1

    def _of(self, variable: int) -> slice:
        first = int(self._offsets[variable])
        return slice(first, first + int(self._others[variable]))

    def _matching(self, point: Codes, variable: int, code: int) -> int | None:
        """The first change of a variable that gives it this code."""
        own = np.arange(len(self))[self._of(variable)]
        found = own[self.targets(point, own) == code]
        return int(found[0]) if len(found) else None


def _powers(most: int) -> NDArray[np.int64]:
    """1, 2, 4, ... up to `most`."""
    powers: NDArray[np.int64] = 2 ** np.arange(int(most).bit_length(), dtype=np.int64)
    return powers


def turned(order: Index, change: int, back: int) -> tuple[Index, Index]:
    """A cyclic order from behind `change` on; the same without `back`, the change that undoes it.

    First improvement continues there after a move: what it has just tried comes last.
    """
    place = int((order == change).argmax()) + 1
    order = np.concatenate([order[place:], order[:place]])
    return order, order[order != back]
