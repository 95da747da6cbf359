"""MIMIC: a chain of variables, each drawn given the one before it.

De Bonet, Isbell and Viola, "MIMIC: finding optima by estimating probability densities", NIPS 9
(1997). Restricted replacement: Harik, "Finding multimodal solutions using restricted tournament
selection", ICGA (1995).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from anyorder._checks import integer
from anyorder.space import Space
from anyorder.strategies.baseline import Codes, Index, Seed, real
from anyorder.strategies.univariate import Generational, part

Floats = NDArray[np.float64]

# All pairs of values of all variables are counted.
_MOST_VALUES = 1 << 12


class Modelled(Generational):
    """A population, and new points from a network of its best that take the place of others.

    A subclass writes `_fit`, `_insert`. The first `population` points are uniform; from then on
    `replacement` of that number make a generation, drawn from the network that `_fit` makes of the
    part `selection` of the population that is best, the first told of equals.
    """

    def __init__(
        self, space: Space, seed: Seed, population: int, selection: float, replacement: float
    ) -> None:
        super().__init__(space, seed)
        if self._cardinalities.sum() > _MOST_VALUES:
            raise ValueError(
                f"space has variables of {self._cardinalities.sum()} values in all, "
                f"expected at most {_MOST_VALUES}"
            )
        self.population = integer("population", population, 4)
        self.selection = real("selection", selection, 0, 1)
        self.replacement = real("replacement", replacement, 0, 1)
        self._points: Codes = np.empty((0, len(space)), dtype=np.int32)
        self._values: Floats = np.empty(0)
        self._selected: Codes | None = None
        self._order: Sequence[int] = ()
        self._parents: Sequence[Sequence[int]] = ()

    def _wanted(self) -> int:
        return self.population if not len(self._points) else part(self.replacement, self.population)

    def _propose(self, n: int) -> Codes:
        if self._selected is None:
            return self._uniform(n)
        return draw(self._selected, self._order, self._parents, n, self._rng)

    def _update(self, codes: Codes, values: Floats) -> None:
        if not len(self._points):
            self._points, self._values = codes, values
        else:
            self._insert(codes, values)
        best = np.argsort(-self._values, kind="stable")[: part(self.selection, self.population)]
        self._selected = self._points[best]
        self._order, self._parents = self._fit(self._selected)

    @abstractmethod
    def _insert(self, codes: Codes, values: Floats) -> None:
        """Let a generation into the population, which keeps its size."""

    @abstractmethod
    def _fit(self, rows: Codes) -> tuple[Sequence[int], Sequence[Sequence[int]]]:
        """An order of the variables, and the parents of each, which come before it."""


class MIMIC(Modelled):
    """Mutual-information-maximising input clustering: a Markov chain over the variables.

    The chain starts with the variable of least entropy among the selected points and goes on to
    the one of least entropy given the last, and so on. Candidates are drawn along it, with the
    frequencies of the selected points. A new point is compared with the nearest, by Hamming
    distance, of `window` members of the population drawn at random, and takes its place if it is
    better. Nothing is smoothed: a value that no selected point has is gone unless it comes back
    with another point of the population.

    Parameters
    ----------
    space, seed : as for every baseline.
    population : 100, as the paper's comparison ran it.
    selection : which part makes the chain: the best half, as De Bonet and others keep the points
        better than their median.
    replacement : the size of a generation after the first, as a part of the population; .5, and
    window : 2, are what the code that the comparison used (github.com/e5120/EDAs) sets for it; the
        paper itself says no more than "default hyperparameter settings".
    """

    def __init__(
        self,
        space: Space,
        seed: Seed = None,
        population: int = 100,
        *,
        selection: float = 0.5,
        replacement: float = 0.5,
        window: int = 2,
    ) -> None:
        super().__init__(space, seed, population, selection, replacement)
        self.window = integer("window", window, 1)

    @property
    def chain(self) -> list[int]:
        """The present order of the variables, by index; empty before the first generation."""
        return list(self._order)

    def _insert(self, codes: Codes, values: Floats) -> None:
        # In turn: a point that has just come in may be met by the next.
        met = self._rng.integers(self.population, size=(len(codes), self.window))
        for point, value, members in zip(codes, values, met, strict=True):
            nearest = members[(self._points[members] != point).sum(axis=1).argmin()]
            if value > self._values[nearest]:
                self._points[nearest], self._values[nearest] = point, value

    def _fit(self, rows: Codes) -> tuple[list[int], list[list[int]]]:
        chain = learn_chain(rows, self._cardinalities)
        parents: list[list[int]] = [[] for _ in chain]
        for before, after in pairwise(chain):
            parents[after] = [before]
        return chain, parents


def learn_chain(rows: Codes, cardinalities: NDArray[np.int64]) -> list[int]:
    """The variables in MIMIC's order: each has the least entropy given the one before it."""
    joint = -pair_sums(rows, cardinalities)  # entropies of pairs, times the rows, less a constant
    alone = joint.diagonal()
    chain = [int(alone.argmin())]
    left = np.ones(len(alone), dtype=np.bool_)
    for _ in range(1, len(alone)):
        last = chain[-1]
        left[last] = False
        # Less the entropy of the last, which all have in common.
        chain.append(int(np.where(left, joint[last], np.inf).argmin()))
    return chain


def pair_sums(rows: Codes, cardinalities: NDArray[np.int64]) -> Floats:
    """Sums of c log c over the counts c of all pairs of values, for each pair of variables.

    On the diagonal it is the sum of a variable alone. The entropy of a pair is the logarithm of
    the number of rows, less this divided by it.
    """
    values, first = one_hot(rows, cardinalities)
    terms = count_log_count(values.T @ values, len(rows))
    by_row: Floats = np.add.reduceat(terms, first, axis=0)
    sums: Floats = np.add.reduceat(by_row, first, axis=1)
    return sums


def one_hot(rows: Codes, cardinalities: NDArray[np.int64]) -> tuple[NDArray[np.float32], Index]:
    """A column for each value of each variable, and the first column of each variable."""
    first = np.cumsum(cardinalities) - cardinalities
    # Products of these are counts, exact in float32 up to 16 million rows.
    values = np.zeros((len(rows), int(cardinalities.sum())), dtype=np.float32)
    values[np.arange(len(rows))[:, None], first + rows] = 1
    return values, first


def count_log_count(counts: NDArray[np.float32], most: int) -> Floats:
    """The numbers c log c for counts c up to `most`, from a table."""
    c = np.arange(most + 1, dtype=np.float64)
    terms: Floats = (c * np.log(np.maximum(c, 1)))[counts.astype(np.intp)]
    return terms


def draw(
    rows: Codes, order: Sequence[int], parents: Sequence[Sequence[int]], n: int, rng: Generator
) -> Codes:
    """N points from the network whose conditional chances are the frequencies of the rows.

    A variable takes its value in one of the rows that agree with the point in all its parents,
    drawn at random; where no row does, in any. So there are no tables to make.
    """
    points = np.empty((n, rows.shape[1]), dtype=np.int32)
    chances = rng.random((len(order), n))
    for i, chance in zip(order, chances, strict=True):
        if not parents[i]:
            points[:, i] = rows[(chance * len(rows)).astype(np.intp), i]
            continue
        have, want = np.zeros(len(rows), dtype=np.int64), np.zeros(n, dtype=np.int64)
        for j in parents[i]:
            radix = int(rows[:, j].max()) + 1  # drawn values are values of rows
            have, want = have * radix + rows[:, j], want * radix + points[:, j]
        sorting = np.argsort(have, kind="stable")
        start = np.searchsorted(have, want, side="left", sorter=sorting)
        stop = np.searchsorted(have, want, side="right", sorter=sorting)
        unseen = start == stop
        start[unseen], stop[unseen] = 0, len(rows)
        points[:, i] = rows[sorting[start + (chance * (stop - start)).astype(np.intp)], i]
    return points
