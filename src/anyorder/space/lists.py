"""Permutations, sequences and subsets: variables whose values are lists.

In a permutation or sequence, column p is the item in place p; every item occurs once, or as often
as its count says. A subset has a column for each item, which is 1 if the item is chosen. The
operations on such columns are in `groups.py`.
"""

from __future__ import annotations

import math
from collections import abc
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from anyorder._internal.checks import integer, short
from anyorder.space.groups import Arrangement, ListGroup, Selection
from anyorder.space.variables import INTS, Binary, Categorical, Kind, Variable

_MOST_ITEMS = 20_000


def _items(items: Any) -> tuple[Any, ...]:
    """Return items as values of a variable: at least one, hashable and different."""
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise TypeError(f"items is {short(items)}, expected a list of items")
    found = Categorical(items).values if (items := list(items)) else ()
    if not found:
        raise ValueError("items is empty, expected at least one item")
    if len(found) > _MOST_ITEMS:
        raise ValueError(f"there are {len(found)} items, expected at most {_MOST_ITEMS}")
    return found


class List(Kind):
    """A variable whose values are lists; the base class of all kinds.

    Attributes
    ----------
    items
        The items of which lists consist.
    when
        None: every point has the list.
    """

    _fields: ClassVar[tuple[str, ...]] = ("items",)
    _options: ClassVar[dict[str, Any]] = {}

    items: tuple[Any, ...]
    when: Any = None
    since: ClassVar[int] = 3
    _accepted: ClassVar[tuple[type, ...]] = (abc.Sequence, np.ndarray)  # the types of its values

    def __len__(self) -> int:
        """Return the number of columns, one for each item."""
        return len(self.items)

    def _positions(self, value: Any) -> list[int]:
        """Return the positions of the items of a list."""
        own = f"{short(value)} is not a value of {self!r}"
        accepted = isinstance(value, self._accepted) and not isinstance(value, str | bytes)
        if not accepted:
            raise ValueError(f"{own}, expected a list")
        codes = []
        for item in value:
            code = self._index._find(item)
            if code is None:
                raise ValueError(f"{own}: {short(item)} is not one of its items")
            codes.append(code)
        return codes

    def columns(self) -> list[Variable]:
        """Return the variable of each column."""
        raise NotImplementedError

    def codes(self, value: Any) -> list[int]:
        """Return the codes of a list; raise a ValueError if it is no value of the variable."""
        raise NotImplementedError

    def value(self, codes: abc.Sequence[int]) -> list[Any]:
        """Return the list with these codes."""
        raise NotImplementedError

    def points(self) -> int:
        """Return the number of values."""
        raise NotImplementedError

    def group(self, first: int) -> ListGroup:
        """Return the columns of the list in the codes of a space."""
        raise NotImplementedError

    def lacks(self, value: Any) -> bool:
        """Return whether a value means "absent", which no value of a list does."""
        return False

    _index: Categorical


class _Order(List):
    """All items in some order, each as often as its count says."""

    counts: tuple[int, ...]

    def __len__(self) -> int:
        return sum(self.counts)

    def codes(self, value: Any) -> list[int]:
        """Return the codes of a list; raise a ValueError if it lacks or repeats an item."""
        codes = self._positions(value)
        own = f"{short(value)} is not a value of {self!r}"
        found = np.bincount(np.array(codes, np.intp), minlength=len(self.items)).tolist()
        for item, count, expected in zip(self.items, found, self.counts, strict=True):
            if count > expected:
                often = "more than once" if expected == 1 else f"{count} times, expected {expected}"
                raise ValueError(f"{own}: {short(item)} is there {often}")
        if len(codes) != len(self):
            raise ValueError(f"{own}: it has {len(codes)} items, expected all {len(self)}")
        return codes

    def value(self, codes: abc.Sequence[int]) -> list[Any]:
        """Return the list with these codes."""
        return [self.items[code] for code in codes]

    def points(self) -> int:
        """Return the number of values."""
        same = math.prod(math.factorial(count) for count in self.counts)
        return math.factorial(len(self)) // same

    def columns(self) -> list[Variable]:
        """Return the variable of each column: the item in that place."""
        return [self._index] * len(self)

    def group(self, first: int) -> ListGroup:
        """Return the columns of the list in the codes of a space."""
        counts = np.array(self.counts, np.int64)
        return Arrangement(first, len(self), counts, counts)


@dataclass(frozen=True, init=False, repr=False)
class Permutation(_Order):
    """A variable whose value is a list of all items, in any order.

    Parameters
    ----------
    items : iterable of hashable
        The items; at least one, and all different.

    Examples
    --------
    >>> Permutation(["wash", "dry", "fold"])
    Permutation(['wash', 'dry', 'fold'])
    """

    items: tuple[Any, ...]
    key: ClassVar[str] = "permutation"
    _index: Categorical = field(init=False, compare=False, hash=False)

    def __init__(self, items: Iterable[Any]) -> None:
        found = _items(items)
        self.__dict__.update(items=found, counts=(1,) * len(found), _index=Categorical(found))


@dataclass(frozen=True, init=False, repr=False)
class Sequence(_Order):
    """A variable whose value is a list of items in any order, each as often as its count says.

    In problem files it is `{ sequence = ["a", "b"], counts = [2, 3] }`.

    Parameters
    ----------
    items : iterable of hashable
        The items; at least one, and all different.
    counts : iterable of int
        How often the list contains each item; at least once.

    Examples
    --------
    The operations of two jobs, in the order in which they are started:

    >>> Sequence(["job 1", "job 2"], [2, 3])
    Sequence(['job 1', 'job 2'], [2, 3])
    """

    items: tuple[Any, ...]
    counts: tuple[int, ...]
    key: ClassVar[str] = "sequence"
    _fields: ClassVar[tuple[str, ...]] = ("items", "counts")
    _index: Categorical = field(init=False, compare=False, hash=False)

    def __init__(self, items: Iterable[Any], counts: Iterable[Any]) -> None:
        found = _items(items)
        if isinstance(counts, str | bytes | Mapping) or not isinstance(counts, Iterable):
            raise TypeError(f"counts is {short(counts)}, expected a list of numbers")
        numbers = tuple(integer(f"counts[{k}]", count, 1) for k, count in enumerate(counts))
        if len(numbers) != len(found):
            expected = f"expected one for each of {len(found)} items"
            raise ValueError(f"counts is {short(list(numbers))}, {expected}")
        if sum(numbers) > _MOST_ITEMS:
            raise ValueError(f"counts add up to {sum(numbers)}, expected at most {_MOST_ITEMS}")
        self.__dict__.update(items=found, counts=numbers, _index=Categorical(found))


@dataclass(frozen=True, init=False, repr=False)
class Subset(List):
    """A variable whose value is a list of some of its items, in the order in which they are given.

    Parameters
    ----------
    items : iterable of hashable
        The items; at least one, and all different.
    size : int, pair of int, or None
        The number of chosen items: an exact number, or the least and the largest number. None
        allows any number, including 0.

    Examples
    --------
    >>> Subset(["a", "b", "c"], size=(1, 2))
    Subset(['a', 'b', 'c'], size=(1, 2))
    """

    items: tuple[Any, ...]
    size: int | tuple[int, int] | None
    key: ClassVar[str] = "subset"
    _options: ClassVar[dict[str, Any]] = {"size": None}
    _accepted: ClassVar[tuple[type, ...]] = (abc.Sequence, np.ndarray, Set)
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

    def codes(self, value: Any) -> list[int]:
        """Return the codes of a list; raise a ValueError if it is no such subset of the items."""
        codes = self._positions(value)
        chosen = set(codes)
        if len(chosen) < len(codes):
            twice = next(self.items[code] for code in codes if codes.count(code) > 1)
            own = f"{short(value)} is not a value of {self!r}"
            raise ValueError(f"{own}: {short(twice)} is there more than once")
        if not self._least <= len(chosen) <= self._most:
            several = f"{self._least} to {self._most}"
            expected = self._least if self._least == self._most else several
            own = f"{short(value)} is not a value of {self!r}"
            raise ValueError(f"{own}: it has {len(chosen)} items, expected {expected}")
        return [int(code in chosen) for code in range(len(self))]

    def value(self, codes: abc.Sequence[int]) -> list[Any]:
        """Return the list with these codes."""
        return [item for item, code in zip(self.items, codes, strict=True) if code]

    def points(self) -> int:
        """Return the number of values."""
        n, total = len(self), 0
        count = math.comb(n, self._least)
        for k in range(self._least, self._most + 1):
            total += count
            # each from the one before, since `comb` takes far longer
            count = count * (n - k) // (k + 1)
        return total

    def columns(self) -> list[Variable]:
        """Return the variable of each column, which says whether the item is chosen."""
        return [Binary()] * len(self)

    def group(self, first: int) -> ListGroup:
        """Return the columns of the list in the codes of a space."""
        m = len(self)
        least = np.array([m - self._most, self._least], np.int64)
        most = np.array([m - self._least, self._most], np.int64)
        return Selection(first, m, least, most)


LISTS: tuple[type[List], ...] = (Permutation, Sequence, Subset)


class Layout(NamedTuple):
    """The places of the variables of a space in its codes.

    Attributes
    ----------
    columns, labels
        The variable of each column, and its label.
    firsts
        The first column of each variable.
    groups
        The columns of each list.
    """

    columns: tuple[Variable, ...]
    labels: tuple[str, ...] | None
    firsts: tuple[int, ...]
    groups: tuple[ListGroup, ...]


def lay_out(names: abc.Sequence[str] | None, variables: abc.Sequence[Variable | List]) -> Layout:
    """Return the columns of variables; raise a ValueError if labels are not distinct."""
    columns: list[Variable] = []
    labels: list[str] = []
    firsts, groups = [], []
    for name, variable in zip(names or [""] * len(variables), variables, strict=True):
        own, group = variable.columns(), variable.group(len(columns))
        firsts.append(len(columns))
        columns += own
        labels += [name] if group is None else [f"{name}[{k}]" for k in range(len(own))]
        groups += [] if group is None else [group]
    if names is None:
        return Layout(tuple(columns), None, tuple(firsts), ())
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise ValueError(f"{twice!r} is the name of a variable and of a place in a list")
    return Layout(tuple(columns), tuple(labels), tuple(firsts), tuple(groups))
