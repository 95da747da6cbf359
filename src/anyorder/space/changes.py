"""All small changes of a point, with numbers: what local search tries one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from anyorder.space.digits import Scale
from anyorder.space.groups import Codes, Index, ListGroup, Moves, powers

# Local search tries all changes in turn, and holds them in memory.
_MOST_CHANGES = 1 << 24


class Changes:
    """The small changes of a space, with numbers.

    Change c adds steps[c] to the code of variables[c], modulo its number of values. A number
    therefore means the same change at every point, and 0 to len - 1 give all neighbours of a point.

    A wide variable has small and large steps, 1, 2, 4, ... along its scale in both directions,
    instead of a change to every value. Single columns of a list change only if it is `resizable`;
    the `moves` of lists come after all other changes.

    Parameters
    ----------
    cardinalities
        The number of values of each variable.
    scales
        The scales of wide variables, by index.
    groups
        The columns of lists.
    """

    def __init__(
        self,
        cardinalities: NDArray[np.int64],
        scales: Mapping[int, Scale] | None = None,
        groups: Sequence[ListGroup] = (),
    ) -> None:
        self._cardinalities, self._scales = cardinalities, scales or {}
        others = cardinalities - 1
        far = {j: powers(scale.length // 2) for j, scale in self._scales.items()}
        for j, steps in far.items():
            others[j] = 2 * len(steps)
        for group in groups:
            others[group.columns] *= group.resizable
        total = int(others.sum()) + sum(len(group.moves[0]) for group in groups)
        if total > _MOST_CHANGES:
            raise ValueError(f"space has {total} single changes, expected at most {_MOST_CHANGES}")
        self._offsets = np.cumsum(others) - others
        self._others = others
        self.variables = np.repeat(np.arange(len(others)), others)
        self.steps = np.arange(len(self.variables)) - self._offsets[self.variables] + 1
        for j, steps in far.items():
            self.steps[self._of(j)] = np.concatenate([steps, -steps])
        self._singles = len(self.variables)
        # for each list the numbers of its first move and of the first one after it
        self._lists: list[tuple[int, int, ListGroup]] = []
        for group in groups:
            start, first = len(self.variables), group.moves[1]
            self._lists.append((start, start + len(first), group))
            self.variables = np.concatenate([self.variables, group.first + first])
            self.steps = np.concatenate([self.steps, np.zeros(len(first), np.int64)])

    def __len__(self) -> int:
        return len(self.variables)

    def shuffle(self, rng: Generator) -> Index:
        """Return all changes in a random order in which to try them.

        Steps of wide variables alternate with the other changes, large steps first: values are
        found from coarse to fine, and small steps do not use up the evaluations. The many moves of
        lists alternate with the changes of other variables.
        """
        order: Index = rng.permutation(len(self))
        if self._scales:
            order = self._coarse_first(order, rng)
        return self._alternate(order) if self._lists else order

    def _coarse_first(self, order: Index, rng: Generator) -> Index:
        """Order the changes so that each round has one per variable, or two steps of one size."""
        turn = np.zeros(len(self))
        for j in range(len(self._others)):
            own = self._of(j)
            if j in self._scales:
                tried = np.argsort(-np.abs(self.steps[own]), kind="stable")
            else:
                tried = rng.permutation(int(self._others[j]))
            turn[own][tried] = np.arange(len(tried))
        for j in self._scales:
            turn[self._of(j)] //= 2
        found: Index = order[np.argsort(turn[order], kind="stable")]
        return found

    def _alternate(self, order: Index) -> Index:
        """Return an order in which every column, in a list or not, has about the same share.

        Changes of one variable or list stay in their order. The k-th change of a list of m columns
        has the place of the (k / m)-th change of a variable.
        """
        owner = self.variables.copy()  # the variable, or the first column of the list
        columns = np.ones(len(self._others))  # the number of columns of each owner
        for _, _, group in self._lists:
            first, size = group.first, group.size
            owner[(owner >= first) & (owner < first + size)] = first
            columns[first] = size
        owners = owner[order]
        by_owner = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=len(columns))
        rank = np.empty(len(order))
        rank[by_owner] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        found: Index = order[np.argsort(rank / columns[owners], kind="stable")]
        return found

    def targets(self, point: Codes, changes: Index) -> Index:
        """Return the code that each change gives to its variable."""
        variables = self.variables[changes]
        codes: Index = (point[variables] + self.steps[changes]) % self._cardinalities[variables]
        for j, scale in self._scales.items():
            here = np.flatnonzero((variables == j) & (changes < self._singles))
            old = np.full(len(here), point[j], np.int64)
            codes[here] = scale.move(old, self.steps[changes[here]])
        for here, group, moves in self._moves_in(changes):
            rows = group.apply(point[group.columns], moves)
            codes[here] = rows[np.arange(len(here)), moves[1]]
        return codes

    def distinct(self, point: Codes, changes: Index, changeable: Index | None = None) -> Index:
        """Return the changes that lead to a neighbour which no earlier change leads to.

        A step of a wide variable repeats a neighbour if it would leave the scale, and among the
        small values of a logarithmic variable. Changes of variables that are not `changeable` are
        left out, and so are moves of lists that change nothing or give no value of the variable.
        """
        if changeable is not None:
            changes = changes[np.isin(self.variables[changes], changeable)]
        for k in range(len(self._lists)):
            changes = changes[self._possible(point, changes, k)]
        if not self._scales:
            return changes
        single = changes < self._singles
        pairs = np.stack([self.variables[changes], self.targets(point, changes)])
        pairs[:, ~single] = -1 - changes[~single]  # moves all differ
        kept: Index = np.sort(np.unique(pairs, axis=1, return_index=True)[1])
        return changes[kept]

    def moves(self) -> Moves:
        """Return the kind of each change, -1 or a move of a list, and its two places."""
        kinds, second = np.full(len(self), -1), self.variables.copy()
        for start, end, group in self._lists:
            kinds[start:end], second[start:end] = group.moves[0], group.first + group.moves[2]
        return kinds, self.variables, second

    def apply(self, point: Codes, changes: Index) -> Codes:
        """Return the neighbours of a point, one per row."""
        neighbours = np.tile(point, (len(changes), 1))
        single = np.flatnonzero(changes < self._singles)
        chosen = changes[single]
        neighbours[single, self.variables[chosen]] = self.targets(point, chosen)
        for here, group, moves in self._moves_in(changes):
            neighbours[here, group.columns] = group.apply(point[group.columns], moves)
        return neighbours

    def between(self, old: Codes, new: Codes) -> tuple[int, int] | None:
        """Return the change from old to new and the change back; None if they are no neighbours."""
        different = np.flatnonzero(old != new)
        for start, _, group in self._lists:
            low, high = group.first, group.first + group.size
            if len(different) > 1 and low <= different[0] and different[-1] < high:
                for ways in group.match(old[low:high], new[low:high]):
                    there, back = (self._number(start, group, move) for move in ways)
                    if there is not None and back is not None:
                        return there, back
                return None
        if len(different) != 1:
            return None
        i = int(different[0])
        if i in self._scales:
            found = (
                self._find_matching(old, i, int(new[i])),
                self._find_matching(new, i, int(old[i])),
            )
            return None if None in found else found  # type: ignore[return-value]
        values, offset = int(self._cardinalities[i]), int(self._offsets[i])
        step = int(new[i] - old[i]) % values
        return offset + step - 1, offset + values - step - 1

    def _moves_in(self, changes: Index) -> Iterator[tuple[Index, ListGroup, Moves]]:
        """Yield lists with their moves among some changes, and where these are."""
        for start, end, group in self._lists:
            here = np.flatnonzero((changes >= start) & (changes < end))
            kinds, first, second = (part[changes[here] - start] for part in group.moves)
            yield here, group, (kinds, first, second)

    def _possible(self, point: Codes, changes: Index, k: int) -> NDArray[np.bool_]:
        """Return which changes are not of list k, or give a list that no earlier one gives."""
        start, end, group = self._lists[k]
        row, kept = point[group.columns], np.ones(len(changes), np.bool_)
        here = np.flatnonzero((changes >= start) & (changes < end))
        kinds, first, second = (part[changes[here] - start] for part in group.moves)
        kept[here] = group.distinct(row, (kinds, first, second))
        if group.resizable:
            columns = self.variables[changes] - group.first
            inside = (columns >= 0) & (columns < group.size)
            flips = np.flatnonzero((changes < self._singles) & inside)
            kept[flips] = group.can_flip(row, columns[flips])
        return kept

    def _number(self, start: int, group: ListGroup, move: tuple[int, int, int]) -> int | None:
        """Return the number of a move of a list."""
        same = [part == number for part, number in zip(group.moves, move, strict=True)]
        found = np.flatnonzero(same[0] & same[1] & same[2])
        return start + int(found[0]) if len(found) else None

    def _of(self, variable: int) -> slice:
        first = int(self._offsets[variable])
        return slice(first, first + int(self._others[variable]))

    def _find_matching(self, point: Codes, variable: int, code: int) -> int | None:
        """Return the first change of a variable that gives it this code."""
        own = np.arange(len(self))[self._of(variable)]
        found = own[self.targets(point, own) == code]
        return int(found[0]) if len(found) else None


def turn(order: Index, change: int, back: int) -> tuple[Index, Index]:
    """Return a cyclic order that begins after `change`; and the same without `back`.

    `back` would undo the change. First improvement continues with this order after a move, so that
    what it has just tried comes last.
    """
    place = int((order == change).argmax()) + 1
    order = np.concatenate([order[place:], order[:place]])
    return order, order[order != back]
