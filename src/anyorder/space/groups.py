"""The columns of lists in the codes of a space, with the operations of each kind of list.

A list takes several columns of codes, a *group*, in which the number of times that a value occurs
is bounded. There are two kinds:

    Arrangement   column p is the item in place p
    Selection     a column for each item, 1 where it is chosen; the number of ones is bounded

Everything that differs between kinds of lists is a method here: random lists, repair, random and
numbered moves, and the features of models. The *variables* (permutation, sequence, subset), with
their items and their form in points and files, are in `lists.py`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
Index = NDArray[np.intp]
Bools = NDArray[np.bool_]

# The kinds of moves of a list, each with two places: exchange their items; take the item from the
# first place and insert it at the second; reverse the part between the places.
EXCHANGE, INSERT, REVERSE = MOVES = range(3)
MOST_MOVES = 1 << 20  # the most moves of one kind; in longer lists only some distances are tried
MOST_TABLE = 1_000  # the most values whose pairs have a table in models
MOST_PAIRS = 250  # the most chosen items of a selection whose pairs models may have
_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it has an inverse modulo 2**64

Moves = tuple[Index, Index, Index]  # the kind of each move, and its two places


@dataclass(frozen=True, eq=False)
class Group:
    """Columns in which the number of times that each value occurs is bounded.

    This class knows the bounds, which is enough to draw lists column by column under masks
    (`strategies/policy/masks.py`). Its subclasses know what the columns mean.

    Attributes
    ----------
    first, size
        The first column, and their number.
    least, most
        How often each value must and may occur.
    """

    first: int
    size: int
    least: Counts
    most: Counts

    @property
    def columns(self) -> slice:
        """The columns of its codes."""
        return slice(self.first, self.first + self.size)

    def valid(self, codes: NDArray[np.integer]) -> Bools:
        """Return which rows of codes `(m, size)` respect the bounds."""
        found = np.ones(len(codes), np.bool_)
        for value, (least, most) in enumerate(zip(self.least, self.most, strict=True)):
            count = np.count_nonzero(codes == value, axis=1)
            found &= (count >= least) & (count <= most)
        return found

    @cached_property
    def lists(self) -> Codes:
        """All rows that keep the bounds, in order, `(lists, size)`: for groups that have few."""
        found, values = np.zeros((1, 0), np.int32), np.arange(len(self.least), dtype=np.int32)
        for left in reversed(range(self.size)):  # columns that come after this one
            before = np.repeat(found, len(values), axis=0)
            found = np.column_stack([before, np.tile(values, len(found))])
            counts = np.stack([np.count_nonzero(found == v, axis=1) for v in values], axis=1)
            missing = np.maximum(self.least - counts, 0).sum(axis=1)
            found = found[(counts <= self.most).all(axis=1) & (missing <= left)]
        return found


class ListGroup(Group, ABC):
    """The columns of a list, with the operations that every kind of list has.

    Attributes
    ----------
    forms
        The kinds of features that models may use for it, simple ones first.
    """

    forms: ClassVar[tuple[str, ...]]

    # --- what there is --------------------------------------------------------------------------

    @property
    @abstractmethod
    def fixed(self) -> bool:
        """Whether only one list is possible."""

    @property
    @abstractmethod
    def resizable(self) -> bool:
        """Whether single columns can change, so that the list becomes longer or shorter."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """The least and the largest number of items of a list."""

    @property
    @abstractmethod
    def passes(self) -> int:
        """How often a repair tries all columns in vain before it gives up."""

    @abstractmethod
    def uniform(self, count: int, rng: Generator) -> Codes:
        """Return random rows `(count, size)`, all lists equally likely."""

    # --- repair ---------------------------------------------------------------------------------

    def repair(
        self, codes: NDArray[np.integer], rng: Generator | None = None, kept: Bools | None = None
    ) -> Codes:
        """Return rows that respect the bounds, changed as little as possible; valid rows are kept.

        Parameters
        ----------
        codes
            Rows `(m, size)`.
        rng
            Draws which columns change, and their new values. Without it, the last columns change.
        kept
            Columns that change only if nothing else can, as a mask `(size,)`.
        """
        found: Codes = codes.astype(np.int32)
        for k in np.flatnonzero(~self.valid(found)).tolist():
            order = np.arange(self.size) if rng is None else rng.permutation(self.size)
            if kept is not None:
                order = np.concatenate([order[kept[order]], order[~kept[order]]])
            self._repair_row(found[k], order, rng)
        return found

    @abstractmethod
    def _repair_row(self, row: Codes, order: Index, rng: Generator | None) -> None:
        """Repair a row in place; columns later in this order change first."""

    # --- changes --------------------------------------------------------------------------------

    @abstractmethod
    def move(self, row: Codes, column: int, rng: Generator) -> None:
        """Make a random move that involves a column of a valid row, in place; the row changes.

        Only columns of a `fixed` list, and items that are all equal, have no such move.
        """

    def give(
        self, row: Codes, column: int, value: int, rng: Generator, goal: Codes | None = None
    ) -> None:
        """Give a column of a valid row a value, in place; the row stays valid.

        With a `goal`, a row to approach, columns that agree with the goal are kept as far as
        possible.
        """
        others = np.flatnonzero(row == value)
        if row[column] == value:
            return
        if goal is not None and (goal[others] != value).any():
            others = others[goal[others] != value]
        self._put(row, column, value, others, rng, alone=goal is not None)

    @abstractmethod
    def _put(
        self, row: Codes, column: int, value: int, others: Index, rng: Generator, *, alone: bool
    ) -> None:
        """Give a column another value, which `others` have; with `alone`, change few columns."""

    @property
    @abstractmethod
    def moves(self) -> Moves:
        """All moves that local search tries; they do not depend on the list."""

    def apply(self, row: Codes, moves: Moves) -> Codes:
        """Return the list after each move, one per row."""
        found: Codes = row[source_places(*moves, self.size)]
        return found

    @abstractmethod
    def distinct(self, row: Codes, moves: Moves) -> Bools:
        """Return which moves change a list to one that no earlier move gives."""

    def can_flip(self, row: Codes, columns: Index) -> Bools:
        """Return which columns of a list can change alone."""
        return np.zeros(len(columns), np.bool_)

    def match(self, old: Codes, new: Codes) -> list[tuple[tuple[int, int, int], ...]]:
        """Return candidates for the move from one list to another, each with the move back."""
        different = np.flatnonzero(old != new)
        low, high = int(different[0]), int(different[-1])
        return [
            (move, back) for move, back in self._between(low, high) if self._leads(old, move, new)
        ]

    def _leads(self, old: Codes, move: tuple[int, int, int], new: Codes) -> bool:
        kind, first, second = (np.array([number]) for number in move)
        return np.array_equal(self.apply(old, (kind, first, second))[0], new)

    def _between(
        self, low: int, high: int
    ) -> list[tuple[tuple[int, int, int], tuple[int, int, int]]]:
        """Return moves that change two places and nothing outside them, each with the move back."""
        return [((EXCHANGE, low, high), (EXCHANGE, low, high))]

    # --- features of models ---------------------------------------------------------------------

    @property
    def values(self) -> int:
        """The number of values of a column."""
        return len(self.most)

    @property
    @abstractmethod
    def side(self) -> int:
        """The number of elements that pairs are made of: items, or places."""

    @property
    @abstractmethod
    def paired(self) -> bool:
        """Whether models may have a table of pairs, `(side, side)`."""

    @abstractmethod
    def features(
        self, codes: NDArray[np.int64], form: str
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
        """Return the features of rows, as codes of columns and as pairs; None if there are none.

        Code v of column c has the number `c * values + v`, and the pair of a and b `a * side + b`.
        Rows with fewer features are filled up with -1.
        """

    def prepare(self, worth: NDArray[np.float64], pairs: NDArray[np.float64], form: str) -> None:
        """Adapt the worths of features for climbs, in place; `pairs` is `(side, side)`.

        The worth of codes and pairs that this form does not use becomes 0. A worth that does not
        depend on the order of a pair is stored for both orders.
        """


class Arrangement(ListGroup):
    """Column p is the item in place p. Item v occurs `most[v]` times, which equals `least[v]`.

    A move exchanges two places, takes an item from one place and inserts it at another, or reverses
    the part between two places.
    """

    forms = ("places", "edges", "arrows")

    @cached_property
    def _sorted(self) -> Codes:
        return np.repeat(np.arange(self.values, dtype=np.int32), self.most)

    @cached_property
    def _items(self) -> NDArray[np.uint64]:
        """A pseudo-random number for each item, always the same."""
        return np.random.default_rng(0).integers(2**63, size=self.values, dtype=np.uint64)

    @property
    def _repeats(self) -> bool:
        """Whether any item occurs more than once."""
        return self.values < self.size

    @property
    def fixed(self) -> bool:
        """Whether all items are equal."""
        return self.values < 2

    @property
    def resizable(self) -> bool:
        """False: a list always has all items."""
        return False

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of places, twice."""
        return self.size, self.size

    @property
    def passes(self) -> int:
        """Many: several items may have to move before fewer of them are in a wrong place."""
        return self.size

    def valid(self, codes: NDArray[np.integer]) -> Bools:
        """Return which rows have every item as often as they must."""
        return np.asarray((np.sort(codes, axis=1) == self._sorted).all(axis=1))

    def uniform(self, count: int, rng: Generator) -> Codes:
        """Return random rows; all orders are equally likely."""
        return rng.permuted(np.tile(self._sorted, (count, 1)), axis=1)

    def _repair_row(self, row: Codes, order: Index, rng: Generator | None) -> None:
        # the first occurrences of an item stay, as far as allowed; others become missing items
        by_item = np.argsort(row[order], kind="stable")
        counts = np.bincount(row, minlength=self.values)
        rank = np.empty(self.size, np.int64)  # the number of equal items before it
        rank[by_item] = np.arange(self.size) - np.repeat(np.cumsum(counts) - counts, counts)
        again = order[rank >= self.most[row[order]]]
        missing = np.repeat(np.arange(self.values), np.maximum(self.most - counts, 0))
        row[again] = missing if rng is None else rng.permutation(missing)

    def move(self, row: Codes, column: int, rng: Generator) -> None:
        """Make a random move of an item: between its place and the place of another item."""
        others = np.roll(np.arange(self.size), -column)[1:]
        if self._repeats:
            others = others[row[others] != row[column]]
        other = others[int(rng.random() * len(others))]
        self._make(row, int(rng.random() * len(MOVES)), column, int(other))

    def _put(
        self, row: Codes, column: int, value: int, others: Index, rng: Generator, *, alone: bool
    ) -> None:
        """Exchange a place with one that has the item, or, half of the time, insert the item there.

        An insertion moves the items in between, so it is not made if only few columns may change.
        """
        other = int(others[int(rng.random() * len(others)) if len(others) > 1 else 0])
        insert = not alone and rng.random() < 0.5
        self._make(row, INSERT if insert else EXCHANGE, other, column)

    def _make(self, row: Codes, kind: int, first: int, second: int) -> None:
        move = np.array([kind]), np.array([first]), np.array([second])
        row[:] = self.apply(row, move)[0]

    @cached_property
    def moves(self) -> Moves:
        """Exchanges, insertions both ways, and reversals; all differ if all items do."""
        if self.fixed:
            return _join([])
        low, high = _pairs(self.size)
        far, further = high - low > 1, high - low > 2  # nearer ones equal exchanges
        return _join([
            (EXCHANGE, low, high),
            (INSERT, low[far], high[far]),
            (INSERT, high[far], low[far]),
            (REVERSE, low[further], high[further]),
        ])  # fmt: skip

    def distinct(self, row: Codes, moves: Moves) -> Bools:
        """Return which moves change a list to one that no earlier move gives."""
        found = np.ones(len(moves[0]), np.bool_)
        if self._repeats:
            prints = self._fingerprints(row, moves)
            first = np.zeros(len(found), np.bool_)
            first[np.unique(prints, return_index=True)[1]] = True
            found = first & (prints != 0)
        return found

    def _fingerprints(self, row: Codes, moves: Moves) -> NDArray[np.uint64]:
        """Return a fingerprint of each move's result: 0 if the move leaves the list unchanged.

        It is the change, modulo 2**64, of a sum over the places: a random number for the item times
        a power of a number for the place. It follows from partial sums; applying all moves and
        comparing the lists would take far longer.
        """
        kinds, a, b = moves
        low, high = np.minimum(a, b), np.maximum(a, b)
        inverse = np.uint64(pow(int(_BASE), -1, 1 << 64))
        power = _powers_of(_BASE, 2 * self.size)
        items = self._items[row]

        def sums(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
            found = np.zeros(len(numbers) + 1, np.uint64)
            np.cumsum(numbers, out=found[1:])
            return found

        here = sums(items * power[: self.size])  # partial sums over the list
        back = sums(items * _powers_of(inverse, self.size))  # partial sums over the reversed list
        before = here[high + 1] - here[low]
        exchanged = items[high] * power[low] + items[low] * power[high]
        exchanged += here[high] - here[low + 1]
        # the items in between move by one place, down or up
        down = (here[high + 1] - here[low + 1]) * inverse + items[low] * power[high]
        up = (here[high] - here[low]) * _BASE + items[high] * power[low]
        reversed_ = (back[high + 1] - back[low]) * power[low + high + 1]
        inserted = np.where(a < b, down, up)
        after = np.where(
            kinds == EXCHANGE, exchanged, np.where(kinds == INSERT, inserted, reversed_)
        )
        return np.asarray(after - before)

    def _between(
        self, low: int, high: int
    ) -> list[tuple[tuple[int, int, int], tuple[int, int, int]]]:
        """Return an exchange, an insertion either way, or a reversal, each with the move back."""
        return [
            *super()._between(low, high),
            ((INSERT, low, high), (INSERT, high, low)),
            ((INSERT, high, low), (INSERT, low, high)),
            ((REVERSE, low, high), (REVERSE, low, high)),
        ]

    @property
    def side(self) -> int:
        """The number of different items."""
        return self.values

    @property
    def paired(self) -> bool:
        """Whether the order of items can matter beyond their places."""
        return self.size > 2 and self.side <= MOST_TABLE

    def features(
        self, codes: NDArray[np.int64], form: str
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
        """Return which item is where (`places`), which items are neighbours (`edges`), or both.

        The last place is a neighbour of the first.
        """
        if form == "places" or not self.paired:
            return np.arange(self.size) * self.values + codes, None
        after = np.roll(codes, -1, axis=1)
        if form == "edges":
            low, high = np.minimum(codes, after), np.maximum(codes, after)
            return None, low * self.side + high
        return np.arange(self.size) * self.values + codes, codes * self.side + after

    def prepare(self, worth: NDArray[np.float64], pairs: NDArray[np.float64], form: str) -> None:
        """Make the table of `edges` symmetric, and set the table of `places` to 0."""
        if form == "edges":
            worth[:] = 0.0
            pairs[:] = np.triu(pairs) + np.triu(pairs, 1).T
        elif form == "places":
            pairs[:] = 0.0


class Selection(ListGroup):
    """A column for each item, 1 where it is chosen.

    A move exchanges a chosen item for another one. If the number of chosen items may vary, single
    columns change, too.
    """

    forms = ("single", "pairs")

    @property
    def fixed(self) -> bool:
        """Whether all items must be chosen, or none may be."""
        return bool((self.most == 0).any())

    @property
    def resizable(self) -> bool:
        """Whether the number of chosen items may change."""
        return bool(self.least[1] < self.most[1])

    @property
    def sizes(self) -> tuple[int, int]:
        """The least and the largest number of chosen items."""
        return int(self.least[1]), int(self.most[1])

    @property
    def passes(self) -> int:
        """One: a set that no single change improves is a local optimum."""
        return 1

    def uniform(self, count: int, rng: Generator) -> Codes:
        """Return random rows; all sets are equally likely."""
        low, high = self.sizes
        sizes, m = np.arange(low, high + 1), self.size
        logs = np.array([-math.lgamma(k + 1) - math.lgamma(m - k + 1) for k in sizes.tolist()])
        weights = np.exp(logs - logs.max())
        ones = rng.choice(sizes, count, p=weights / weights.sum())
        return rng.permuted((np.arange(m) < ones[:, None]).astype(np.int32), axis=1)

    def _repair_row(self, row: Codes, order: Index, rng: Generator | None) -> None:
        ones, (low, high) = np.count_nonzero(row), self.sizes
        if ones > high:
            chosen = order[row[order] == 1]
            row[chosen[high:]] = 0
        else:
            others = order[row[order] == 0]
            row[others[len(others) - (low - ones) :]] = 1

    def move(self, row: Codes, column: int, rng: Generator) -> None:
        """Exchange an item for a chosen or an unchosen one, or add or remove it."""
        others = np.flatnonzero(row != row[column])
        self._put(row, column, 1 - int(row[column]), others, rng, alone=False)

    def _put(
        self, row: Codes, column: int, value: int, others: Index, rng: Generator, *, alone: bool
    ) -> None:
        """Add or remove an item: half of the time alone if possible, else by an exchange."""
        can_flip = bool(self.can_flip(row, np.array([column]))[0])
        if can_flip and (not len(others) or rng.random() < 0.5):
            row[column] = value
        elif len(others):
            other = others[int(rng.random() * len(others))]
            row[column], row[other] = value, row[column]

    @cached_property
    def moves(self) -> Moves:
        """Exchanges of any two items."""
        return _join([] if self.fixed else [(EXCHANGE, *_pairs(self.size))])

    def distinct(self, row: Codes, moves: Moves) -> Bools:
        """Return which exchanges involve exactly one chosen item."""
        return np.asarray(row[moves[1]] != row[moves[2]])

    def can_flip(self, row: Codes, columns: Index) -> Bools:
        """Return which items can be added or removed alone."""
        ones, (low, high) = np.count_nonzero(row), self.sizes
        return np.where(row[columns] == 1, ones > low, ones < high)

    @property
    def side(self) -> int:
        """The number of items."""
        return self.size

    @property
    def paired(self) -> bool:
        """Whether there are few enough pairs of chosen items."""
        most = self.sizes[1]
        return self.side <= MOST_TABLE and most * (most - 1) // 2 <= MOST_PAIRS

    def features(
        self, codes: NDArray[np.int64], form: str
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
        """Return which items are chosen, and with `pairs` also which are chosen together."""
        most = self.sizes[1]
        # the chosen items come first, in increasing order
        order = np.argsort(1 - codes, axis=1, kind="stable")[:, :most]
        chosen = np.take_along_axis(codes, order, axis=1) == 1
        single = np.where(chosen, 2 * order + 1, -1)
        if form != "pairs" or not self.paired:
            return single, None
        a, b = np.triu_indices(most, 1)
        both = chosen[:, a] & chosen[:, b]
        return single, np.where(both, order[:, a] * self.side + order[:, b], -1)


def source_places(kinds: Index, first: Index, second: Index, size: int) -> Index:
    """Return the place from which each move takes each item: a row `(size,)` for each move."""
    at = np.arange(size)
    a, b = first[:, None], second[:, None]
    low, high = np.minimum(a, b), np.maximum(a, b)
    inside = (at >= low) & (at <= high)
    step = np.where(a < b, 1, -1)
    inserted = np.where(at == b, a, np.where(inside, at + step, at))
    reversed_ = np.where(inside, low + high - at, at)
    exchanged = np.where(at == a, b, np.where(at == b, a, at))
    kind = kinds[:, None]
    found: Index = np.where(
        kind == EXCHANGE, exchanged, np.where(kind == INSERT, inserted, reversed_)
    )
    return found


def powers(most: int) -> NDArray[np.int64]:
    """Return 1, 2, 4, ... up to `most`."""
    found: NDArray[np.int64] = 2 ** np.arange(int(most).bit_length(), dtype=np.int64)
    return found


def _pairs(size: int) -> tuple[Index, Index]:
    """Return pairs of places, the smaller first; in long lists only 1, 2, 4, ... apart."""
    if size * (size - 1) // 2 <= MOST_MOVES:
        low, high = np.triu_indices(size, 1)
        return low, high
    steps = powers(size - 1)
    low = np.concatenate([np.arange(size - step) for step in steps.tolist()])
    high = low + np.repeat(steps, size - steps)
    return low, high


def _join(parts: Sequence[tuple[int, Index, Index]]) -> Moves:
    """Return the moves of several kinds together."""
    none = np.empty(0, np.intp)
    kinds = [np.full(len(first), kind) for kind, first, _ in parts]
    firsts, seconds = [first for _, first, _ in parts], [second for _, _, second in parts]
    return tuple(np.concatenate([none, *each]) for each in (kinds, firsts, seconds))  # type: ignore[return-value]


def _powers_of(base: np.uint64, count: int) -> NDArray[np.uint64]:
    """Return the first `count` powers of a number modulo 2**64, beginning with 1."""
    found: NDArray[np.uint64] = np.cumprod(np.full(count, base, np.uint64), dtype=np.uint64)
    return found
