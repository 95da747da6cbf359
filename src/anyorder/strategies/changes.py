"""All small changes of a point: the neighbourhood of local search.

A change gives one variable another of its values, or moves the items of a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from anyorder.space.digits import Scale
from anyorder.space.groups import EXCHANGE, INSERT, REVERSE, Group, moved
from anyorder.strategies.base import Codes, Index

# Local search tries all of them in turn, and holds them in memory.
_MOST_CHANGES = 1 << 24
_MOST_MOVES = 1 << 20  # of a list of one kind; of longer lists only some distances are tried


class Changes:
    """The small changes of a space, by number.

    Change c adds steps[c] to the code of variables[c], modulo its number of values. A number
    therefore means the same at every point, and 0 to len - 1 give all neighbours of any point.

    A wide variable has steps near and far, 1, 2, 4, ... along its scale in both directions,
    instead of a change to every value. The columns of a list are not changed alone: there follow
    exchanges of two places, and in a sequence insertions and reversals.

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
        groups: Sequence[Group] = (),
    ) -> None:
        self._cardinalities, self._scales = cardinalities, scales or {}
        others = cardinalities - 1
        far = {j: _powers(scale.length // 2) for j, scale in self._scales.items()}
        for j, powers in far.items():
            others[j] = 2 * len(powers)
        for group in groups:
            others[group.columns] *= _can_resize(group)
        moves = [_Moves(group) for group in groups]
        total = int(others.sum()) + sum(map(len, moves))
        if total > _MOST_CHANGES:
            raise ValueError(f"space has {total} single changes, expected at most {_MOST_CHANGES}")
        self._offsets = np.cumsum(others) - others
        self._others = others
        self.variables = np.repeat(np.arange(len(others)), others)
        self.steps = np.arange(len(self.variables)) - self._offsets[self.variables] + 1
        for j, powers in far.items():
            self.steps[self._of(j)] = np.concatenate([powers, -powers])
        self._singles = len(self.variables)
        # each list with the number of its first move
        self._moves: list[tuple[int, _Moves]] = []
        for own in moves:
            self._moves.append((len(self.variables), own))
            self.variables = np.concatenate([self.variables, own.group.first + own.first])
            self.steps = np.concatenate([self.steps, np.zeros(len(own), np.int64)])

    def __len__(self) -> int:
        return len(self.variables)

    def shuffled(self, rng: Generator) -> Index:
        """All changes in a random order to try them in.

        Steps of wide variables come in turns with the other changes, far ones first: the value is
        found from coarse to fine, and small steps do not use up the evaluations. The many moves of
        lists come in turns with the changes of other variables.
        """
        order: Index = rng.permutation(len(self))
        if self._scales:
            order = self._coarse_first(order, rng)
        return self._in_turns(order) if self._moves else order

    def _coarse_first(self, order: Index, rng: Generator) -> Index:
        """An order in which each variable has a change, or two steps of one size, in each turn."""
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

    def _in_turns(self, order: Index) -> Index:
        """An order in which every column, be it of a list or not, has about the same share.

        Changes of one variable or list stay in their order; the k-th of a list of m columns comes
        where the (k / m)-th of a variable does.
        """
        owner = self.variables.copy()  # the variable, or the first column of the list
        columns = np.ones(len(self._others))  # of each owner
        for _, moves in self._moves:
            first, size = moves.group.first, moves.group.size
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
        """The code that each change gives to its variable."""
        variables = self.variables[changes]
        codes: Index = (point[variables] + self.steps[changes]) % self._cardinalities[variables]
        for j, scale in self._scales.items():
            here = np.flatnonzero((variables == j) & (changes < self._singles))
            old = np.full(len(here), point[j], np.int64)
            codes[here] = scale.moved(old, self.steps[changes[here]])
        for first, own in self._moves:
            here = np.flatnonzero((changes >= first) & (changes < first + len(own)))
            rows = own.apply(point[own.group.columns], changes[here] - first)
            codes[here] = rows[np.arange(len(here)), own.first[changes[here] - first]]
        return codes

    def distinct(self, point: Codes, changes: Index, changeable: Index | None = None) -> Index:
        """These changes without those that give the same neighbour as an earlier one.

        Steps of a wide variable do where they would leave its scale, and among the small values of
        a logarithmic one. Changes of variables that are not `changeable` are left out, too, and
        those of lists that would change nothing or give no value of the variable.
        """
        if changeable is not None:
            changes = changes[np.isin(self.variables[changes], changeable)]
        for first, own in self._moves:
            if not own.group.sequence:
                changes = self._possible(point, changes, first, own)
        if not self._scales:
            return changes
        single = changes < self._singles
        pairs = np.stack([self.variables[changes], self.targets(point, changes)])
        pairs[:, ~single] = -1 - changes[~single]  # moves differ
        kept: Index = np.sort(np.unique(pairs, axis=1, return_index=True)[1])
        return changes[kept]

    def moves(self) -> tuple[Index, Index, Index]:
        """What each change is, -1 or a move of a list, and the two columns that it is given."""
        kinds, second = np.full(len(self), -1), self.variables.copy()
        for first, own in self._moves:
            here = slice(first, first + len(own))
            kinds[here], second[here] = own.kinds, own.group.first + own.second
        return kinds, self.variables, second

    def apply(self, point: Codes, changes: Index) -> Codes:
        """The neighbours of a point, one per row."""
        neighbours = np.tile(point, (len(changes), 1))
        rows = np.arange(len(changes))
        if not self._moves:
            neighbours[rows, self.variables[changes]] = self.targets(point, changes)
            return neighbours
        single = np.flatnonzero(changes < self._singles)
        chosen = changes[single]
        neighbours[single, self.variables[chosen]] = self.targets(point, chosen)
        for first, own in self._moves:
            here = np.flatnonzero((changes >= first) & (changes < first + len(own)))
            columns = own.group.columns
            neighbours[here, columns] = own.apply(point[columns], changes[here] - first)
        return neighbours

    def between(self, old: Codes, new: Codes) -> tuple[int, int] | None:
        """The change from old to new and the one back; None if they are not neighbours."""
        different = np.flatnonzero(old != new)
        for first, own in self._moves:
            low, high = own.group.first, own.group.first + own.group.size
            if len(different) > 1 and low <= different[0] and different[-1] < high:
                ways = own.between(old[low:high], new[low:high])
                return None if ways is None else (first + ways[0], first + ways[1])
        if len(different) != 1:
            return None
        i = int(different[0])
        if i in self._scales:
            found = self._matching(old, i, int(new[i])), self._matching(new, i, int(old[i]))
            return None if None in found else found  # type: ignore[return-value]
        values, offset = int(self._cardinalities[i]), int(self._offsets[i])
        step = int(new[i] - old[i]) % values
        return offset + step - 1, offset + values - step - 1

    def _possible(self, point: Codes, changes: Index, first: int, own: _Moves) -> Index:
        """Changes without those of a set that change nothing, or make it too small or too large."""
        group, kept = own.group, np.ones(len(changes), np.bool_)
        here = np.flatnonzero((changes >= first) & (changes < first + len(own)))
        moves = changes[here] - first
        row = point[group.columns]
        kept[here] = row[own.first[moves]] != row[own.second[moves]]
        columns = self.variables[changes] - group.first
        inside = (columns >= 0) & (columns < group.size)
        flips = np.flatnonzero((changes < self._singles) & inside)
        ones = np.count_nonzero(row)
        chosen = row[columns[flips]] == 1
        kept[flips] = np.where(chosen, ones > group.least[1], ones < group.most[1])
        return changes[kept]

    def _of(self, variable: int) -> slice:
        first = int(self._offsets[variable])
        return slice(first, first + int(self._others[variable]))

    def _matching(self, point: Codes, variable: int, code: int) -> int | None:
        """The first change of a variable that gives it this code."""
        own = np.arange(len(self))[self._of(variable)]
        found = own[self.targets(point, own) == code]
        return int(found[0]) if len(found) else None


class _Moves:
    """The moves of a list: exchanges of two places, and in a sequence insertions and reversals.

    Attributes
    ----------
    kinds, first, second
        What each does with which two places of the list.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        low, high = _pairs(group.size)
        parts = [(EXCHANGE, low, high)]
        if group.sequence:
            # neighbouring places: the same as an exchange
            apart = high - low > 1
            parts += [(INSERT, low[apart], high[apart]), (INSERT, high[apart], low[apart])]
            apart = high - low > 2
            parts.append((REVERSE, low[apart], high[apart]))
        if group.fixed:
            parts = [(EXCHANGE, low[:0], high[:0])]
        self.kinds = np.concatenate([np.full(len(a), kind) for kind, a, _ in parts])
        self.first = np.concatenate([a for _, a, _ in parts])
        self.second = np.concatenate([b for _, _, b in parts])

    def __len__(self) -> int:
        return len(self.kinds)

    def apply(self, row: Codes, moves: Index) -> Codes:
        """The list after each of these moves, one per row."""
        size, kinds = self.group.size, self.kinds[moves]
        taken = moved(kinds, self.first[moves], self.second[moves], size)
        found: Codes = row[taken]
        return found

    def between(self, old: Codes, new: Codes) -> tuple[int, int] | None:
        """The move from old to new and the one back; None if there is none."""
        different = np.flatnonzero(old != new)
        low, high = int(different[0]), int(different[-1])
        tried = [(EXCHANGE, low, high, EXCHANGE, low, high)]
        if self.group.sequence:
            tried += [
                (INSERT, low, high, INSERT, high, low),
                (INSERT, high, low, INSERT, low, high),
                (REVERSE, low, high, REVERSE, low, high),
            ]
        for kind, a, b, *back in tried:
            taken = moved(np.array([kind]), np.array([a]), np.array([b]), self.group.size)[0]
            if np.array_equal(old[taken], new):
                ways = self._number(kind, a, b), self._number(*back)
                return None if None in ways else ways  # type: ignore[return-value]
        return None

    def _number(self, kind: int, first: int, second: int) -> int | None:
        found = np.flatnonzero(
            (self.kinds == kind) & (self.first == first) & (self.second == second)
        )
        return int(found[0]) if len(found) else None


def _can_resize(group: Group) -> bool:
    """Whether single columns can change: in sets of several sizes."""
    return not group.sequence and bool(group.least[1] < group.most[1])


def _pairs(size: int) -> tuple[Index, Index]:
    """Pairs of places, the smaller one first; of long lists only those 1, 2, 4, ... apart."""
    if size * (size - 1) // 2 <= _MOST_MOVES:
        low, high = np.triu_indices(size, 1)
        return low, high
    steps = _powers(size - 1)
    low = np.concatenate([np.arange(size - step) for step in steps.tolist()])
    high = low + np.repeat(steps, size - steps)
    return low, high


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
