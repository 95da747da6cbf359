"""MIMIC: a chain of variables, each drawn given its predecessor.

De Bonet, Isbell and Viola, "MIMIC: finding optima by estimating probability densities", NIPS 9
(1997). For restricted replacement see Harik, "Finding multimodal solutions using restricted
tournament selection", ICGA (1995).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from anyorder._internal.checks import integer, real
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Index, Seed
from anyorder.strategies.plain.univariate import Generational, best_last, part

Floats = NDArray[np.float64]

# The model counts all pairs of values of all variables.
_MOST_VALUES = 1 << 12


class Modelled(Generational):
    """A population, and a network fitted to its best points, from which new points are drawn.

    A subclass implements `_fit` and `_insert`. The first `population` points are random. Later
    generations have a share `replacement` of that size, and are drawn from the network that `_fit`
    makes of the best share `selection` of the population; of equal points the first count.

    Attributes
    ----------
    converged
        Whether all selected points are equal, so that the network only gives this point.
    """

    reverse_parents = False
    STATE: ClassVar[tuple[str, ...]] = ("_points", "_values", "_selected", "_order", "_parents")

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
        self.selection = real("selection", selection, 0, 1, above=True)
        self.replacement = real("replacement", replacement, 0, 1, above=True)
        # In the model of a conditional space, absence is one more value.
        self._model_values = self._cardinalities + self.space.conditional
        self._points: Codes = self._none()
        self._values: Floats = np.empty(0)
        self._selected: Codes | None = None
        self._order: list[int] = []
        self._parents: list[list[int]] = []
        self._begin()

    def _size(self) -> int:
        return self.population if not len(self._points) else part(self.replacement, self.population)

    def _propose(self, count: int) -> Codes:
        if self._selected is None:
            return self._uniform(count)
        points = draw(
            self._selected, self._order, self._parents, count, self._rng, self.reverse_parents
        )
        own = points < self._cardinalities
        return self._neighbourhood.complete(
            np.where(own, points, 0).astype(np.int32), own, self._rng
        )

    def _update(self, codes: Codes, values: Floats) -> None:
        if not len(self._points):
            self._points, self._values = codes, values
        else:
            self._insert(codes, values)
        best = np.argsort(-self._values, kind="stable")[: part(self.selection, self.population)]
        self._selected = self._neighbourhood.mark_absent(self._points[best])
        self.converged = bool((self._selected == self._selected[0]).all())
        self._order, self._parents = self._fit(self._selected)

    def _arrange(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        return best_last(answers)

    @abstractmethod
    def _insert(self, codes: Codes, values: Floats) -> None:
        """Add a generation to the population, which keeps its size."""

    @abstractmethod
    def _fit(self, rows: Codes) -> tuple[list[int], list[list[int]]]:
        """Return an order of the variables, and for each its parents, which precede it."""


class MIMIC(Modelled):
    """Mutual-information-maximising input clustering: a Markov chain over the variables.

    The chain starts with the variable of least entropy among the selected points. Its successor is
    the variable of least entropy given the first, and so on. Points are drawn along the chain with
    the frequencies of the selected points. Each new point is compared with the nearest, in Hamming
    distance, of `window` random members of the population, and replaces it if it is better.
    Frequencies are not smoothed: a value that no selected point has is lost unless another member
    of the population brings it back.

    Parameters
    ----------
    space, seed
        See `Search`.
    population
        The size of the population. The default of 100 is that of the paper's comparison.
    selection
        The share of the population to which the chain is fitted. The default is the best half; De
        Bonet et al. keep the points that are better than the median.
    replacement
        The size of a generation after the first, as a share of the population. The defaults of this
        and of `window` are those of the code that the comparison used (github.com/e5120/EDAs); the
        paper only says "default hyperparameter settings".
    window
        The number of members with which a new point is compared.
    """

    name = "mimic"

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
        """The current order of the variables, by index; empty in the first generation."""
        return list(self._order)

    def _insert(self, codes: Codes, values: Floats) -> None:
        # One by one: a point that was just added may be compared with the next one.
        met = self._rng.integers(self.population, size=(len(codes), self.window))
        for point, value, members in zip(codes, values, met, strict=True):
            nearest = members[(self._points[members] != point).sum(axis=1).argmin()]
            if value > self._values[nearest]:
                self._points[nearest], self._values[nearest] = point, value

    def _fit(self, rows: Codes) -> tuple[list[int], list[list[int]]]:
        chain = learn_chain(rows, self._model_values)
        parents: list[list[int]] = [[] for _ in chain]
        for before, after in pairwise(chain):
            parents[after] = [before]
        return chain, parents


def learn_chain(rows: Codes, cardinalities: NDArray[np.int64]) -> list[int]:
    """Return the variables in MIMIC's order: each has the least entropy given its predecessor."""
    joint = -pair_sums(
        rows, cardinalities
    )  # entropies of pairs, times the number of rows, up to a constant
    alone = joint.diagonal()
    chain = [int(alone.argmin())]
    left = np.ones(len(alone), dtype=np.bool_)
    for _ in range(1, len(alone)):
        last = chain[-1]
        left[last] = False
        # The entropy of the last variable is common to all candidates, and left out.
        chain.append(int(np.where(left, joint[last], np.inf).argmin()))
    return chain


def pair_sums(rows: Codes, cardinalities: NDArray[np.int64]) -> Floats:
    """Return sums of c log c over the counts c of all pairs of values, for each pair of variables.

    The diagonal has the sums of single variables. The entropy of a pair is log(m) - sum / m, where
    m is the number of rows.
    """
    values, first = one_hot(rows, cardinalities)
    terms = count_log_count(values.T @ values, len(rows))
    by_row: Floats = np.add.reduceat(terms, first, axis=0)
    sums: Floats = np.add.reduceat(by_row, first, axis=1)
    return sums


def one_hot(rows: Codes, cardinalities: NDArray[np.int64]) -> tuple[NDArray[np.float32], Index]:
    """Return a column for each value of each variable, and the first column of each variable."""
    first = np.cumsum(cardinalities) - cardinalities
    # Products of these columns are counts, exact in float32 up to 16 million rows.
    values = np.zeros((len(rows), int(cardinalities.sum())), dtype=np.float32)
    values[np.arange(len(rows))[:, None], first + rows] = 1
    return values, first


def count_log_count(counts: NDArray[np.float32], most: int) -> Floats:
    """Return c log c for counts c up to `most`, from a table."""
    c = np.arange(most + 1, dtype=np.float64)
    terms: Floats = (c * np.log(np.maximum(c, 1)))[counts.astype(np.intp)]
    return terms


def draw(
    rows: Codes, order: Sequence[int], parents: Sequence[Sequence[int]], count: int, rng: Generator,
    reverse: bool = False,
) -> Codes:  # fmt: skip
    """Draw points from a network whose conditional probabilities are frequencies in the rows.

    A variable takes its value from a random row among those that agree with the point in all of its
    parents, or among all rows if none agrees. No tables are needed. With `reverse` the first parent
    in the rows is compared with the last one in the point, and so on.
    """
    points = np.empty((count, rows.shape[1]), dtype=np.int32)
    chances = rng.random((len(order), count))
    for i, chance in zip(order, chances, strict=True):
        if not parents[i]:
            points[:, i] = rows[(chance * len(rows)).astype(np.intp), i]
            continue
        have, want = np.zeros(len(rows), dtype=np.int64), np.zeros(count, dtype=np.int64)
        read = parents[i][::-1] if reverse else parents[i]
        for j, k in zip(parents[i], read, strict=True):
            radix = int(rows[:, j].max()) + 1  # every drawn value occurs in some row
            have, want = have * radix + rows[:, j], want * radix + points[:, k]
        sorting = np.argsort(have, kind="stable")
        start = np.searchsorted(have, want, side="left", sorter=sorting)
        stop = np.searchsorted(have, want, side="right", sorter=sorting)
        unseen = start == stop
        start[unseen], stop[unseen] = 0, len(rows)
        points[:, i] = rows[sorting[start + (chance * (stop - start)).astype(np.intp)], i]
    return points
