"""Subsets and permutations: variables whose value is a list.

A list takes several columns of codes, a *group*, in which each value may occur a bounded number of
times. Of a permutation of m items, column p is the item in place p, and every item occurs once. Of
a subset there is a column for each item, 1 where it is chosen, and the number of ones is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from anyorder._checks import integer, short
from anyorder.space.variables import INTS, Binary, Categorical, Variable, to_json

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
Index = NDArray[np.intp]

_MOST_ITEMS = 20_000
# Moves of a sequence, each with two places: exchange them; take the item from the first and insert
# it at the second; reverse the stretch between them.
EXCHANGE, INSERT, REVERSE = MOVES = range(3)


@dataclass(frozen=True, eq=False)
class Group:
    """The columns of a list in the codes of a space.

    Attributes
    ----------
    first, size
        Its columns are `first` to `first + size - 1`.
    least, most
        How often each value of its columns occurs at least and at most.
    sequence
        Whether the order of the columns means something, as in a permutation.
    """

    first: int
    size: int
    least: Counts
    most: Counts
    sequence: bool

    @property
    def columns(self) -> slice:
        """Where its codes are."""
        return slice(self.first, self.first + self.size)

    @property
    def fixed(self) -> bool:
        """Whether there is only one value."""
        return bool((self.most == 0).any()) or (self.sequence and self.size < 2)

    def valid(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Which rows of codes `(m, size)` keep the bounds."""
        if self.sequence:
            return np.asarray((np.sort(codes, axis=1) == np.arange(self.size)).all(axis=1))
        found = np.ones(len(codes), np.bool_)
        for value, (least, most) in enumerate(zip(self.least, self.most, strict=True)):
            count = np.count_nonzero(codes == value, axis=1)
            found &= (count >= least) & (count <= most)
        return found

    def uniform(self, count: int, rng: Generator) -> Codes:
        """Random rows `(count, size)`, all equally likely."""
        if self.sequence:
            return rng.permuted(np.tile(np.arange(self.size, dtype=np.int32), (count, 1)), axis=1)
        sizes = np.arange(self.least[1], self.most[1] + 1)
        m = self.size
        logs = np.array([-math.lgamma(k + 1) - math.lgamma(m - k + 1) for k in sizes.tolist()])
        weights = np.exp(logs - logs.max())
        ones = rng.choice(sizes, count, p=weights / weights.sum())
        return rng.permuted((np.arange(m) < ones[:, None]).astype(np.int32), axis=1)

    def repaired(
        self, codes: NDArray[Any], rng: Generator | None = None, kept: NDArray[Any] | None = None
    ) -> Codes:
        """Rows that keep the bounds, with as few changes as possible; valid ones as they are.

        Parameters
        ----------
        codes
            Rows `(m, size)`.
        rng
            Draws which columns change and what they become. Without it, the last ones change.
        kept
            Columns that change only if nothing else can: a mask `(size,)`.
        """
        codes = codes.astype(np.int32)
        for k in np.flatnonzero(~self.valid(codes)).tolist():
            self._repair(codes[k], rng, kept)
        return codes

    def move(self, row: Codes, column: int, rng: Generator) -> None:
        """Make a random move that involves a column of a valid row `(size,)`, in place.

        In a sequence: an exchange of two places, an insertion or a reversal. In a set: the item is
        exchanged for one that is chosen, or not; where the size may change, it is also added or
        removed.
        """
        if self.sequence:
            other = (column + 1 + int(rng.random() * (self.size - 1))) % self.size
            kind = int(rng.random() * len(MOVES))
            row[:] = row[
                moved(np.array([kind]), np.array([column]), np.array([other]), self.size)[0]
            ]
            return
        ones, chosen = np.count_nonzero(row), row[column]
        others = np.flatnonzero(row != chosen)
        can_flip = self.least[1] < ones if chosen else ones < self.most[1]
        if can_flip and (not len(others) or rng.random() < 0.5):
            row[column] = 1 - chosen
        elif len(others):
            other = others[int(rng.random() * len(others))]
            row[column], row[other] = row[other], row[column]

    def give(
        self, row: Codes, column: int, value: int, rng: Generator, goal: Codes | None = None
    ) -> None:
        """Give a column of a valid row a value, in place: the row stays valid.

        Another column that has the value is exchanged with it; in a sequence, the item is also
        inserted, half of the time; in a set, the value is also just set, where the size may change.
        With a `goal`, a row to come near to, nothing is inserted, and of a set the columns that
        differ from the goal are exchanged, if there are such.
        """
        old = row[column]
        others = np.flatnonzero(row == value)
        if old == value:
            return
        if self.sequence:
            insert = goal is None and rng.random() < 0.5
            kind = np.array([INSERT if insert else EXCHANGE])
            row[:] = row[moved(kind, others, np.array([column]), self.size)[0]]
            return
        can_flip = len(others) < self.most[value] and self.size - len(others) > self.least[old]
        if goal is not None and (goal[others] != value).any():
            others = others[goal[others] != value]
        if can_flip and (not len(others) or rng.random() < 0.5):
            row[column] = value
        elif len(others):
            other = others[int(rng.random() * len(others))]
            row[column], row[other] = value, old

    def _repair(self, row: Codes, rng: Generator | None, kept: NDArray[Any] | None) -> None:
        order = np.arange(self.size) if rng is None else rng.permutation(self.size)
        if kept is not None:
            order = np.concatenate([order[kept[order]], order[~kept[order]]])
        if self.sequence:
            # the first of equal items stays; the others become those that are missing
            _, first = np.unique(row[order], return_index=True)
            again = np.delete(order, first)
            missing = np.setdiff1d(np.arange(self.size), row)
            row[again] = missing if rng is None else rng.permutation(missing)
            return
        ones = np.count_nonzero(row)
        if ones > self.most[1]:
            chosen = order[row[order] == 1]
            row[chosen[self.most[1] :]] = 0
        else:
            others = order[row[order] == 0]
            row[others[len(others) - (self.least[1] - ones) :]] = 1


def moved(kinds: Index, first: Index, second: Index, size: int) -> Index:
    """The places that each move takes the items from: a row `(size,)` for each."""
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


def _items(items: Any) -> tuple[Any, ...]:
    """Items as values of a variable: different, hashable, at least one."""
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise TypeError(f"items is {short(items)}, expected a list of items")
    found = Categorical(items).values if (items := list(items)) else ()
    if not found:
        raise ValueError("items is empty, expected at least one item")
    if len(found) > _MOST_ITEMS:
        raise ValueError(f"there are {len(found)} items, expected at most {_MOST_ITEMS}")
    return found


class _List:
    """What lists have in common."""

    items: tuple[Any, ...]
    ordered: ClassVar[bool] = False
    when: ClassVar[None] = None
    _accepted: ClassVar[tuple[type, ...]] = (Sequence, np.ndarray)  # as a value

    def __len__(self) -> int:
        """The number of columns, one for each item."""
        return len(self.items)

    def _checked(self, value: Any) -> list[int]:
        """The positions of the items of a list, which must be different ones."""
        own = f"{short(value)} is not a value of {self!r}"
        accepted = isinstance(value, self._accepted) and not isinstance(value, str | bytes)
        if not accepted:
            raise ValueError(f"{own}, expected a list")
        codes: dict[int, None] = {}  # in the order of the items
        for item in value:
            code = self._index._find(item)
            if code is None:
                raise ValueError(f"{own}: {short(item)} is not one of its items")
            if code in codes:
                raise ValueError(f"{own}: {short(item)} is there more than once")
            codes[code] = None
        return list(codes)

    _index: Categorical


@dataclass(frozen=True, init=False, repr=False)
class Permutation(_List):
    """A variable whose value is a list of all items, in any order.

    Parameters
    ----------
    items : iterable of hashable
        At least one, all different.

    Examples
    --------
    >>> Permutation(["wash", "dry", "fold"])
    Permutation(['wash', 'dry', 'fold'])
    """

    items: tuple[Any, ...]
    _index: Categorical = field(init=False, compare=False, hash=False)

    def __init__(self, items: Iterable[Any]) -> None:
        found = _items(items)
        self.__dict__.update(items=found, _index=Categorical(found))

    def __repr__(self) -> str:
        return f"Permutation({short(list(self.items))})"

    def index(self, value: Any) -> list[int]:
        """The codes of a list; ValueError if it is not a permutation of the items."""
        codes = self._checked(value)
        if len(codes) != len(self):
            own = f"{short(value)} is not a value of {self!r}"
            raise ValueError(f"{own}: it has {len(codes)} items, expected all {len(self)}")
        return codes

    def value(self, codes: Sequence[int]) -> list[Any]:
        """The list of these codes."""
        return [self.items[code] for code in codes]

    def points(self) -> int:
        """The number of values."""
        return math.factorial(len(self))

    def columns(self) -> list[Variable]:
        """The variable of each column: the item in that place."""
        return [self._index] * len(self)

    def group(self, first: int) -> Group:
        """Its columns in the codes of a space."""
        ones = np.ones(len(self), np.int64)
        return Group(first, len(self), ones, ones, True)

    def to_dict(self) -> dict[str, Any]:
        """What `document.read` reads."""
        return {"type": "permutation", "items": to_json(self.items)}


@dataclass(frozen=True, init=False, repr=False)
class Subset(_List):
    """A variable whose value is a list of some of the items, in the order in which they are given.

    Parameters
    ----------
    items : iterable of hashable
        At least one, all different.
    size : int, pair of int, or None
        How many are chosen: exactly that many, or from the first number to the second, both
        included. None: any number, also none of them.

    Examples
    --------
    >>> Subset(["a", "b", "c"], size=(1, 2))
    Subset(['a', 'b', 'c'], size=(1, 2))
    """

    items: tuple[Any, ...]
    size: int | tuple[int, int] | None
    _accepted: ClassVar[tuple[type, ...]] = (Sequence, np.ndarray, Set)
    _index: Categorical = field(init=False, compare=False, hash=False)
    _least: int = field(init=False, compare=False)
    _most: int = field(init=False, compare=False)

    def __init__(self, items: Iterable[Any], size: Any = None) -> None:
        found = _items(items)
        if size is None:
            least, most = 0, len(found)
        elif isinstance(size, tuple | list):
            if len(size) != 2:
                raise ValueError(f"size is {short(size)}, expected a number or (low, high)")
            least, most = (integer("size", number, 0, len(found)) for number in size)
            if least > most:
                raise ValueError(f"size is {short(size)}, expected low <= high")
            size = (least, most)
        elif isinstance(size, INTS) and not isinstance(size, bool | np.bool_):
            size = least = most = integer("size", size, 0, len(found))
        else:
            raise TypeError(f"size is {short(size)}, expected a number or (low, high)")
        self.__dict__.update(items=found, size=size, _index=Categorical(found))
        self.__dict__.update(_least=least, _most=most)

    def __repr__(self) -> str:
        size = "" if self.size is None else f", size={self.size}"
        return f"Subset({short(list(self.items))}{size})"

    def index(self, value: Any) -> list[int]:
        """The codes of a list; ValueError if it is no such subset of the items."""
        chosen = set(self._checked(value))
        if not self._least <= len(chosen) <= self._most:
            several = f"{self._least} to {self._most}"
            expected = self._least if self._least == self._most else several
            own = f"{short(value)} is not a value of {self!r}"
            raise ValueError(f"{own}: it has {len(chosen)} items, expected {expected}")
        return [int(code in chosen) for code in range(len(self))]

    def value(self, codes: Sequence[int]) -> list[Any]:
        """The list of these codes."""
        return [item for item, code in zip(self.items, codes, strict=True) if code]

    def points(self) -> int:
        """The number of values."""
        return sum(math.comb(len(self), k) for k in range(self._least, self._most + 1))

    def columns(self) -> list[Variable]:
        """The variable of each column: whether the item is chosen."""
        return [Binary()] * len(self)

    def group(self, first: int) -> Group:
        """Its columns in the codes of a space."""
        m = len(self)
        least = np.array([m - self._most, self._least], np.int64)
        most = np.array([m - self._least, self._most], np.int64)
        return Group(first, m, least, most, False)

    def to_dict(self) -> dict[str, Any]:
        """What `document.read` reads."""
        size = {} if self.size is None else {"size": to_json(self.size)}
        return {"type": "subset", "items": to_json(self.items), **size}


List = Permutation | Subset


def expanded(
    names: Sequence[str], variables: Sequence[Variable | List]
) -> tuple[tuple[Variable, ...], tuple[str, ...], tuple[int, ...], tuple[Group, ...]]:
    """Columns, their labels, the first of each variable, and the groups of lists."""
    columns: list[Variable] = []
    labels: list[str] = []
    firsts, groups = [], []
    for name, variable in zip(names, variables, strict=True):
        firsts.append(len(columns))
        if isinstance(variable, List):
            groups.append(variable.group(len(columns)))
            labels += [f"{name}[{k}]" for k in range(len(variable))]
            columns += variable.columns()
        else:
            labels.append(name)
            columns.append(variable)
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise ValueError(f"{twice!r} is the name of a variable and of a place in a list")
    return tuple(columns), tuple(labels), tuple(firsts), tuple(groups)
