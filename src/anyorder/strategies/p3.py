"""P3, the parameter-less population pyramid: local optima that exchange what belongs together.

Goldman and Punch, "Parameter-less population pyramid", GECCO (2014), and "Fast and efficient black
box optimization using the parameter-less population pyramid", Evolutionary Computation 23 (2015).
Mixing by a linkage tree: Thierens, "The linkage tree genetic algorithm", PPSN XI (2010). A tree
from nearest neighbours: Gronau and Moran, "Optimal implementations of UPGMA and other common
clustering algorithms", Information Processing Letters 104 (2007).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from anyorder.space import Space
from anyorder.strategies.baseline import Baseline, Codes, Index, Seed
from anyorder.strategies.changes import Changes
from anyorder.strategies.mimic import pair_sums

Floats = NDArray[np.float64]

# All pairs of values of all variables are counted.
_MOST_VALUES = 1 << 12
# Distances are rounded to so many decimals, so that equal ones are equal and zeros are zero.
_DECIMALS = 9


class P3(Baseline):
    """Parameter-less population pyramid: nothing to set, and it finds out which variables interact.

    A uniform point climbs by first improvement over single changes and joins the lowest level of a
    pyramid of points. Then it climbs the pyramid. At each level the variables are clustered by how
    much they tell of each other among the points there; cluster by cluster, the small ones first,
    the point takes the values of a random other that differs there, and keeps them if it is not
    worse for it. If the level made it better it joins the next one, which may be new. No point is
    in the pyramid twice. Beyond the last level all starts again.

    Each trial is one evaluation. It pays where few variables have to change together, as in traps,
    and there is budget for dozens of hill climbs to learn from. Where clusters tell little, as in
    NK landscapes with scattered neighbours, it is hill climbing with restarts, and some waste.

    `ask(n)` gives the next n trials from the present point, then uniform points where those run
    out. The climb goes on when `ask` finds none left, whether all were told or not. What is told of
    the trials of this climb moves it if it is better, or equal while in the pyramid, than the
    present point. Other points do not count unless they are better than every one told before:
    then a climb starts there at once.
    """

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        if self._cardinalities.sum() > _MOST_VALUES:
            raise ValueError(
                f"space has variables of {self._cardinalities.sum()} values in all, "
                f"expected at most {_MOST_VALUES}"
            )
        self._changes = Changes(space)
        self._levels: list[_Level] = []
        self._members: set[bytes] = set()  # of all levels
        self._record = -np.inf
        # The present climb: no point before its start is told, level -1 before the pyramid.
        self._point: Codes | None = None
        self._value = -np.inf
        self._asked: set[bytes] = set()
        self._order = np.empty(0, dtype=np.int64)
        self._untried = self._order  # changes
        self._level = -1
        self._before = -np.inf  # its value when it came to the level
        self._clusters: list[Index] = []  # still to be tried there, the next one last

    @property
    def pyramid(self) -> list[Any]:
        """The candidates of each level, the lowest first, as the space decodes them."""
        return [self.space.decode(np.stack(level.points)) for level in self._levels]

    def _propose(self, n: int) -> Codes:
        trials = self._trials(n)
        while self._point is not None and not len(trials):
            self._go_on(self._point)
            trials = self._trials(n)
        if self._point is None:
            trials = self._uniform(n)
        self._asked.update(trial.tobytes() for trial in trials)
        if len(trials) < n:
            trials = np.concatenate([trials, self._uniform(n - len(trials))])
        return trials

    def _learn(self, codes: Codes, values: Floats) -> None:
        for point, value in zip(codes, values.tolist(), strict=True):
            asked = point.tobytes() in self._asked
            if asked and self._level >= 0 and value >= self._value:
                self._point, self._value = point.copy(), value
            elif value > self._record or (
                asked and self._level < 0 and (self._point is None or value > self._value)
            ):
                self._climb(point, value)
            self._record = max(self._record, value)

    def _trials(self, n: int) -> Codes:
        """Up to n of the points to try next; none where the level, or the hill, is done."""
        if self._point is None:
            return np.empty((0, len(self.space)), dtype=np.int32)
        if self._level < 0:
            changes, self._untried = self._untried[:n], self._untried[n:]
            return self._changes.apply(self._point, changes)
        trials: list[Codes] = []
        while self._clusters and len(trials) < n:
            cluster = self._clusters.pop()
            given = self._levels[self._level].donate(self._point, cluster, self._rng)
            if given is not None:
                trials.append(self._point.copy())
                trials[-1][cluster] = given
        return np.array(trials, dtype=np.int32).reshape(-1, len(self.space))

    def _climb(self, point: Codes, value: float) -> None:
        """Hill climbing goes on from a point, or starts there."""
        step = None if self._point is None else self._changes.between(self._point, point)
        if step is None:
            self._order = self._untried = self._rng.permutation(len(self._changes))
        else:
            # Round the order, on behind the change that was made; not back by the other.
            place = int((self._order == step[0]).argmax()) + 1
            self._order = np.concatenate([self._order[place:], self._order[:place]])
            self._untried = self._order[self._order != step[1]]
        self._point, self._value, self._level = point.copy(), value, -1

    def _go_on(self, point: Codes) -> None:
        """To the next level, as a member if the last made it better; from the top, to nowhere."""
        better = self._level < 0 or self._value > self._before
        self._level += 1
        if better and point.tobytes() not in self._members:
            self._members.add(point.tobytes())
            if self._level == len(self._levels):
                self._levels.append(_Level(self._cardinalities, self._free))
            self._levels[self._level].add(point)
        if self._level == len(self._levels):
            self._point, self._value, self._level = None, -np.inf, -1
            self._asked.clear()
        else:
            self._before = self._value
            self._clusters = self._levels[self._level].clusters(self._rng)


class _Level:
    """Points, and the clusters of their variables."""

    def __init__(self, cardinalities: NDArray[np.int64], free: Index) -> None:
        self.points: list[Codes] = []
        self._cardinalities, self._free = cardinalities, free
        self._columns: Codes = np.empty((0, 0), dtype=np.int32)  # (variables, points)
        self._clusters: list[Index] = []

    def add(self, point: Codes) -> None:
        self.points.append(point)

    def clusters(self, rng: Generator) -> list[Index]:
        """The clusters, the large ones first, those of a size in random order."""
        if len(self.points) != self._columns.shape[1]:
            self._columns = np.stack(self.points, axis=1)
            # A random order of the variables, for which of equal distances comes first.
            variables = rng.permutation(self._free)
            rows = self._columns[variables].T
            self._clusters = [
                variables[cluster]
                for cluster in linkage_tree(distances(rows, self._cardinalities[variables]))
            ]
        order = rng.permutation(len(self._clusters))
        return sorted((self._clusters[i] for i in order), key=len, reverse=True)

    def donate(self, point: Codes, cluster: Index, rng: Generator) -> Codes | None:
        """The values of the cluster in a random one of the points that differ there, if any."""
        given = self._columns[cluster]
        differ = np.flatnonzero((given != point[cluster, None]).any(axis=0))
        if not len(differ):
            return None
        values: Codes = given[:, differ[rng.integers(len(differ))]]
        return values


def distances(rows: Codes, cardinalities: NDArray[np.int64]) -> Floats:
    """2 - (H(i) + H(j)) / H(i, j) for all pairs of variables; H is the entropy in the rows.

    So 1 where variables are independent and 0 where each determines the other, or neither varies.
    """
    if not rows.size:
        return np.empty((rows.shape[1], rows.shape[1]))
    joint = np.log(len(rows)) - pair_sums(rows, cardinalities) / len(rows)
    alone = joint.diagonal()
    ratio = np.full(joint.shape, 2.0)
    vary = joint.round(_DECIMALS) > 0
    np.divide(alone + alone[:, None], joint, out=ratio, where=vary)
    apart = (2 - ratio).round(_DECIMALS)
    symmetric: Floats = np.minimum(apart, apart.T)  # sums of the same in another order
    return symmetric


def linkage_tree(distance: Floats) -> list[Index]:
    """The clusters of a tree by average linkage that are worth mixing, by index, in no order.

    Left out are the root, which would copy a whole point, and what is joined at distance 0: such
    variables always go together.
    """
    distance = distance.copy()
    np.fill_diagonal(distance, np.inf)
    clusters = [[i] for i in range(len(distance))]
    kept: list[list[int]] = []
    a = 0
    for _ in range(len(distance) - 1):
        # From one to its nearest and on, until two are nearest to each other. With average
        # linkage nothing joined elsewhere comes between them, so the order does not matter.
        b = int(distance[a].argmin())
        while distance[b].min() < distance[a, b]:
            a, b = b, int(distance[b].argmin())
        if distance[a, b] > 0:
            kept += [clusters[a], clusters[b]]
        sizes = len(clusters[a]), len(clusters[b])
        joined = (sizes[0] * distance[a] + sizes[1] * distance[b]) / sum(sizes)
        joined[a] = np.inf
        distance[a] = distance[:, a] = joined
        distance[b] = distance[:, b] = np.inf
        clusters[a] = clusters[a] + clusters[b]
    return [np.array(cluster) for cluster in kept]
