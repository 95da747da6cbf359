"""Conditions, which determine whether a variable is present.

A condition depends on variables that are defined earlier, so presence is decided from the first
variable to the last. The code of an absent variable is always 0: points that differ only in absent
variables are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder._internal.checks import did_you_mean, short

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
# values of a variable, as many as the second argument says
Draw = Callable[[int, int], NDArray[Any]]

_MOST_CASES = 1 << 14  # the most combinations that are counted one by one to count points
_FEW = 8  # up to so many values are compared one by one


class Conditions:
    """The conditions of a space.

    Parameters
    ----------
    names, variables
        The names and the variables of the columns of the space.
    lists
        The name, the variable and the first column of each list, which functions receive as a
        whole.

    Attributes
    ----------
    variables
        The same variables; conditions on single values became conditions on lists of values.
    columns
        The columns with a condition, in increasing order.
    """

    def __init__(
        self,
        names: Sequence[str],
        variables: Sequence[Any],
        lists: Sequence[tuple[str, Any, int]] = (),
    ) -> None:
        self.names, self.variables, self._lists = tuple(names), list(variables), lists
        self._listed = {k for _, part, first in lists for k in range(first, first + len(part))}
        self.columns = [j for j, variable in enumerate(variables) if variable.when is not None]
        # for a condition on values: the variables, and the codes that they may have
        self._allowed: dict[int, list[tuple[int, Ints]]] = {}
        places = {name: j for j, name in enumerate(names)}
        for j in self.columns:
            when = self.variables[j].when
            if not callable(when):
                self._allowed[j] = [self._resolve(j, places, name, when[name]) for name in when]
                listed = {
                    self.names[i]: [self.variables[i].values[code] for code in codes.tolist()]
                    for i, codes in self._allowed[j]
                }
                self.variables[j] = replace(self.variables[j], when=listed)
        self.settle(
            np.zeros((1, len(names)), np.int64)
        )  # so that a function that fails does so here

    def _resolve(
        self, j: int, places: Mapping[str, int], name: str, wanted: Any
    ) -> tuple[int, Ints]:
        """Return the variable that a condition names, and the codes of the values it gives."""
        own = f"the condition of {self.names[j]!r} names {name!r}"
        if any(name == listed for listed, _, _ in self._lists):
            raise ValueError(f"{own}, a list: expected a function, or another variable")
        if name not in places or places[name] in self._listed:
            raise ValueError(f"{own}{did_you_mean(name, places)}, expected an earlier variable")
        i = places[name]
        if i >= j:
            which = "itself" if i == j else "a later variable"
            raise ValueError(f"{own}, {which}: expected an earlier one, so that there is no cycle")
        variable = self.variables[i]
        several = isinstance(wanted, list | set | frozenset)
        # several values, unless the tuple itself is one of the values
        if isinstance(wanted, tuple):
            several = variable._find(wanted) is None
        values = list(wanted) if several else [wanted]
        if not values:
            raise ValueError(f"{own} without a value, expected at least one")
        try:
            codes = {variable.index(value) for value in values}
        except ValueError as error:
            raise ValueError(f"{own}: {error}") from None
        return i, np.array(sorted(codes), np.int64)

    def settle(
        self, codes: NDArray[Any], own: Bools | None = None, draw: Draw | None = None
    ) -> Bools:
        """Set the codes `(m, n)` of absent variables to 0, in place; return which are present.

        Variables that are present but have no value of their `own` get a value from `draw`.
        """
        present = np.ones(codes.shape, np.bool_)
        for j in self.columns:
            here = present[:, j] = self._present(j, codes, present)
            if own is not None and draw is not None:
                new = np.flatnonzero(here & ~own[:, j])
                if len(new):
                    codes[new, j] = draw(j, len(new))
            codes[~here, j] = 0
        return present

    def _present(self, j: int, codes: NDArray[Any], present: Bools) -> Bools:
        if j not in self._allowed:
            rows = range(len(codes))
            return np.array([self._ask(j, codes[r], present[r]) for r in rows], np.bool_)
        here = np.ones(len(codes), np.bool_)
        for i, allowed in self._allowed[j]:
            here &= present[:, i] & _any_of(codes[:, i], allowed)
        return here

    def _ask(self, j: int, codes: NDArray[Any], present: Bools) -> bool:
        """Return the result of a condition that is a function, for a point."""
        earlier = {
            self.names[i]: self.variables[i].values[codes[i]]
            for i in range(j)
            if present[i] and i not in self._listed
        }
        for name, part, first in self._lists:
            if first < j:
                earlier[name] = part.value(codes[first : first + len(part)].tolist())
        what = f"the condition of {self.names[j]!r}"
        try:
            answer = self.variables[j].when(dict(earlier))
        except Exception as error:
            raise ValueError(f"{what} raised {error!r} for {short(earlier)}") from error
        if not isinstance(answer, bool | np.bool_):
            raise TypeError(f"{what} returned {short(answer)}, expected True or False")
        return bool(answer)

    def points(self) -> int:
        """Return the number of points, or of all combinations if there are too many cases."""
        cards = [len(variable) for variable in self.variables]
        deciding = {i for pairs in self._allowed.values() for i, _ in pairs}
        for j in self.columns:
            if j not in self._allowed:
                deciding |= set(range(j))
        chosen = sorted(deciding)
        if math.prod(cards[i] for i in chosen) > _MOST_CASES:
            return math.prod(cards)
        cases = np.zeros((math.prod(cards[i] for i in chosen), len(cards)), np.int64)
        shape = [cards[i] for i in chosen]
        cases[:, chosen] = np.stack(np.unravel_index(np.arange(len(cases)), shape), axis=1)
        self.settle(cases)
        cases = np.unique(cases, axis=0)
        present = self.settle(cases)
        others = [i for i in range(len(cards)) if i not in deciding]
        return sum(math.prod(cards[i] for i in others if row[i]) for row in present.tolist())


def _any_of(codes: NDArray[Any], some: Ints) -> Bools:
    """Return which codes are among some.

    This is `np.isin`, which takes ten times as long for a few values.
    """
    if len(some) > _FEW:
        return np.isin(codes, some)
    found: Bools = codes == some[0]
    for code in some[1:]:
        found |= codes == code
    return found
