"""NSGA-II, the elitist genetic algorithm for several objectives.

Deb, Pratap, Agarwal and Meyarivan, "A fast and elitist multiobjective genetic algorithm: NSGA-II",
IEEE Transactions on Evolutionary Computation 6 (2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anyorder._internal.checks import integer, real
from anyorder.archive.hypervolume import dominates
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Search, Seed, score

Floats = NDArray[np.float64]

_ATTEMPTS = 10  # attempts to make a child that is not known


class NSGA2(Search):
    """Nondominated sorting genetic algorithm II.

    A generation is any `population` answers. The next parents are chosen from them and the current
    parents: the points of the best fronts, and of the first front that does not fit completely,
    those with the largest crowding distance. Parents of children win binary tournaments by front
    and crowding. Children take each variable from either parent, or a part of each list, and change
    variables with probability 1/n. A child that is known is made again. Points without a value rank
    below all others, by their violation.

    With one objective it is a genetic algorithm whose parents are the best points so far.

    Parameters
    ----------
    space, seed
        See `Search`.
    population
        The number of parents, and of answers in a generation.
    crossover
        The share of children with two parents.

    Attributes
    ----------
    generation
        The number of complete generations.
    """

    name = "nsga2"
    several = True
    STATE: ClassVar[tuple[str, ...]] = ("batch", "_codes", "_values", "_new_codes", "_new_values")

    def __init__(
        self, space: Space, seed: Seed = None, population: int = 50, *, crossover: float = 0.9
    ) -> None:
        super().__init__(space, seed)
        self.population = self.batch = integer("population", population, 2)
        self.crossover = real("crossover", crossover, 0, 1)
        self._codes, self._values = self._none(), np.empty((0, 1))  # the parents
        self._new_codes, self._new_values = self._none(), np.empty((0, 1))
        # of the parents; computed when needed
        self._order: tuple[NDArray[np.int64], Floats] | None = None

    def _propose(self, count: int) -> Codes:
        if not len(self._codes):
            return self._uniform(count)
        children = self._children(count)
        archive = self.archive
        if archive is None:
            return children
        for _ in range(_ATTEMPTS):
            keys = archive.packing.pack(self.space.canonical(children))
            known = [k for k, key in enumerate(keys) if archive.lookup(key) is not None]
            if not known:
                break
            children[known] = self._children(len(known))
        return children

    def _children(self, count: int) -> Codes:
        """Return `count` children of the parents."""
        rng, near = self._rng, self._neighbourhood
        one, other = self._codes[self._tournament(count)], self._codes[self._tournament(count)]
        from_other = rng.random(one.shape) < 0.5
        for group in near.groups:  # part of a list, or nothing
            ends = np.sort(rng.integers(group.size + 1, size=(count, 2)), axis=1)
            place = np.arange(group.size)
            from_other[:, group.columns] = (place >= ends[:, :1]) & (place < ends[:, 1:])
        from_other &= rng.random((count, 1)) < self.crossover
        have_one, have_other = near.present(one), near.present(other)
        from_other = np.where(have_one & have_other, from_other, have_other)
        children = np.where(from_other, other, one).astype(np.int32)
        children = near.complete(children, have_one | have_other, rng)
        changes = rng.random(children.shape) < 1 / max(len(self._free), 1)
        changes[:, np.setdiff1d(np.arange(changes.shape[1]), self._free)] = False
        changes &= near.present(children)
        same = ~changes.any(axis=1) & (children == one).all(axis=1)
        for k in np.flatnonzero(same).tolist():
            changeable = near.changeable(children[k])
            if len(changeable):
                changes[k, changeable[rng.integers(len(changeable))]] = True
        # one variable at a time: a change may make others absent
        for column in np.flatnonzero(changes.any(axis=0)).tolist():
            rows = np.flatnonzero(changes[:, column] & near.present(children)[:, column])
            if len(rows):
                children = self._vary(children, rows, np.full(len(rows), column, np.intp))
        return children.astype(np.int32)

    def _tournament(self, count: int) -> NDArray[np.intp]:
        """Return the places of the parents that win binary tournaments."""
        if self._order is None:
            self._order = fronts(self._values), crowding(self._values)
        rank, distance = self._order
        pairs = self._rng.integers(len(rank), size=(count, 2))
        first, second = pairs.T
        better = (rank[first] < rank[second]) | (
            (rank[first] == rank[second]) & (distance[first] > distance[second])
        )
        return np.asarray(np.where(better, first, second), np.intp)

    def _learn(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            values = answer.values or (score(answer),)
            width = max(len(values), self._new_values.shape[1], self._values.shape[1])
            self._values = _widen(self._values, width)
            row = _widen(np.array([values], np.float64), width)
            self._new_codes = np.concatenate([self._new_codes, answer.codes[None].astype(np.int32)])
            self._new_values = np.concatenate([_widen(self._new_values, width), row])
            self.batch -= 1
            if not self.batch:
                self._select()

    def _select(self) -> None:
        """Choose the next parents: the best of the parents and the last generation."""
        codes = np.concatenate([self._codes, self._new_codes])
        values = np.concatenate([self._values, self._new_values])
        rank = fronts(values)
        distance = np.zeros(len(values))
        for front in range(int(rank.max()) + 1):
            distance[rank == front] = crowding(values[rank == front], alone=True)
        kept = np.lexsort((-distance, rank))[: self.population]
        self._codes, self._values = codes[kept], values[kept]
        self._new_codes, self._new_values = self._none(), np.empty((0, values.shape[1]))
        self.batch, self._order = self.population, None
        self.generation += 1


def _widen(values: Floats, width: int) -> Floats:
    """Return rows with `width` columns: a point without values has the same score in all."""
    if values.shape[1] == width:
        return values
    return np.repeat(values[:, :1], width, axis=1)


def fronts(values: Floats) -> NDArray[np.int64]:
    """Return the front of each row: 0 if no other row dominates it, and so on."""
    least = dominates(values[:, None], values)
    better = least & ~least.T
    rank, left, front = np.full(len(values), -1), np.ones(len(values), np.bool_), 0
    while left.any():
        best = left & ~better[left].any(axis=0)
        rank[best], left, front = front, left & ~best, front + 1
    return rank


def crowding(values: Floats, *, alone: bool = False) -> Floats:
    """Return each row's crowding distance within its front; with `alone` all are one front."""
    rank = np.zeros(len(values), np.int64) if alone else fronts(values)
    distance = np.zeros(len(values))
    for front in range(int(rank.max(initial=-1)) + 1):
        rows = np.flatnonzero(rank == front)
        for column in values[rows].T:
            order = np.argsort(column, kind="stable")
            found, ordered = rows[order], column[order]
            span = ordered[-1] - ordered[0] if np.isfinite(ordered[[0, -1]]).all() else np.inf
            distance[found[[0, -1]]] = np.inf
            if 0 < span < np.inf:
                distance[found[1:-1]] += (ordered[2:] - ordered[:-2]) / span
    return distance
