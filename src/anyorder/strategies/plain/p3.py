"""P3, the parameter-less population pyramid: local optima exchange groups of variables.

Goldman and Punch, "Parameter-less population pyramid", GECCO (2014), and "Fast and efficient black
box optimization using the parameter-less population pyramid", Evolutionary Computation 23 (2015).
For mixing by a linkage tree see Thierens, "The linkage tree genetic algorithm", PPSN XI (2010); for
making a tree from nearest neighbours, Gronau and Moran, "Optimal implementations of UPGMA and other
common clustering algorithms", Information Processing Letters 104 (2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from anyorder.space import Space
from anyorder.space.changes import turn
from anyorder.space.digits import Digits
from anyorder.strategies.base import Answer, Codes, Index, Search, Seed, score
from anyorder.strategies.plain.mimic import pair_sums

Floats = NDArray[np.float64]

# The model counts all pairs of values of all variables.
_MOST_VALUES = 1 << 12
# Distances are rounded to so many decimals, so that equal distances are equal numbers.
_DECIMALS = 9


class P3(Search):
    """Parameter-less population pyramid: learns which variables interact, without any settings.

    A random point climbs by first improvement over single changes and joins the lowest level of a
    pyramid of points. It then climbs the pyramid. At each level the variables are clustered by
    their mutual information among the points of the level. Cluster by cluster, small ones first,
    the point copies the values of a random member that differs there, and keeps them if it does not
    become worse. If the level improved the point, it joins the next level, which is created if
    needed. No point is in the pyramid twice. After the last level the next climb starts.

    Each trial is one evaluation. P3 is strong if a few variables must change together, as in traps,
    and the budget allows dozens of hill climbs to learn from. If clusters carry little information,
    as in NK landscapes with random neighbours, it is hill climbing with restarts at some extra
    cost.

    `propose(k)` returns the next k trials from the current point, followed by random points if
    there are fewer trials. When no trial is left, the next proposal continues the climb, whether
    all trials were answered or not. The climb moves to the point of a trial's answer if it is
    better than the current point, or equal within the pyramid. Other points are ignored unless they
    are better than every point answered before: a climb starts from such a point at once.

    Parameters
    ----------
    space, seed
        See `Search`.

    Attributes
    ----------
    generation
        The number of climbs that have reached the top.
    """

    name = "p3"
    digits = True
    STATE: ClassVar[tuple[str, ...]] = (
        "_record", "_point", "_value", "_trials", "_order", "_untried", "_level", "_before",
        "_stored_levels", "_stored_clusters",
    )  # fmt: skip

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        if self._cardinalities.sum() > _MOST_VALUES:
            raise ValueError(
                f"space has variables of {self._cardinalities.sum()} values in all, "
                f"expected at most {_MOST_VALUES}"
            )
        self._changes = self._neighbourhood.changes
        # In the levels of a conditional space, absence is one more value.
        self._model_values = self._cardinalities + self.space.conditional
        self._levels: list[_Level] = []
        self._members: set[bytes] = set()  # the points of all levels
        self._record = -np.inf
        # The current climb: no point before its start is answered, level -1 before the pyramid.
        self._point: Codes | None = None
        self._value = -np.inf
        self._trials: set[int] = set()  # the tickets of trials that are not answered yet
        self._order = np.empty(0, dtype=np.int64)
        self._untried = self._order  # changes
        self._level = -1
        self._before = -np.inf  # the value of the point when it reached the level
        self._clusters: list[Index] = []  # the clusters to try there, the next one last

    @property
    def pyramid(self) -> list[Any]:
        """The points of each level, lowest level first, as the space decodes them."""
        digits = Digits(self.space)
        levels = [np.stack(level.points) for level in self._levels]
        points = [np.where(level < self._cardinalities, level, 0) for level in levels]
        return [self.space.decode(digits.join(level)) for level in points]

    def facts(self) -> dict[str, Any]:
        """Return the number of points in each level, lowest level first."""
        return {"levels": [len(level.points) for level in self._levels]}

    def give_up(self, tickets: Sequence[int]) -> None:
        """Forget trials that will not be answered."""
        self._trials.difference_update(tickets)

    def _propose(self, count: int) -> Codes:
        trials = self._next_trials(count)
        while self._point is not None and not len(trials):
            self._continue(self._point)
            trials = self._next_trials(count)
        if self._point is None:
            trials = self._uniform(count)
        self._trials.update(range(self._next_ticket, self._next_ticket + len(trials)))
        if len(trials) < count:
            trials = np.concatenate([trials, self._uniform(count - len(trials))])
        return trials

    def _learn(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            value, trial = score(answer), answer.ticket in self._trials
            if trial and answer.ticket is not None:
                self._trials.discard(answer.ticket)
            if trial and self._level >= 0 and value >= self._value:
                self._point, self._value = answer.codes.copy(), value
            elif value > self._record or (
                trial and self._level < 0 and (self._point is None or value > self._value)
            ):
                self._climb(answer.codes, value)
            self._record = max(self._record, value)

    def _next_trials(self, count: int) -> Codes:
        """Return up to `count` points to try next; none if the level, or the hill, is finished."""
        if self._point is None:
            return self._none()
        if self._level < 0:
            changes, self._untried = self._untried[:count], self._untried[count:]
            return self._neighbourhood.neighbours(self._point, changes, self._rng)
        trials: list[Codes] = []
        while self._clusters and len(trials) < count:
            cluster = self._clusters.pop()
            marked = self._neighbourhood.mark_absent(self._point[None])[0]
            values = self._levels[self._level].donate(marked, cluster, self._rng)
            if values is not None:
                trials.append(self._exchange(self._point, cluster, values))
        return np.array(trials, dtype=np.int32).reshape(-1, len(self._cardinalities))

    def _exchange(self, point: Codes, cluster: Index, values: Codes) -> Codes:
        """Return a point with a member's values in a cluster; values that it lacks are kept."""
        given = values < self._cardinalities[cluster]
        trial, own = point.copy(), self._neighbourhood.present(point[None])
        trial[cluster] = np.where(given, values, point[cluster])
        own[0, cluster] |= given
        kept = np.isin(np.arange(len(point)), cluster)
        found: Codes = self._neighbourhood.complete(trial[None], own, self._rng, kept)[0]
        return found

    def _climb(self, point: Codes, value: float) -> None:
        """Continue hill climbing from a point, or start a climb there."""
        step = None if self._point is None else self._changes.between(self._point, point)
        if step is None:
            self._order = self._untried = self._rng.permutation(len(self._changes))
        else:
            self._order, self._untried = turn(self._order, *step)
        self._untried = self._neighbourhood.distinct(point, self._untried)
        self._point, self._value, self._level = point.copy(), value, -1

    def _continue(self, point: Codes) -> None:
        """Go to the next level, joining it if the last one improved the point; end at the top."""
        better = self._level < 0 or self._value > self._before
        self._level += 1
        member = self._neighbourhood.mark_absent(point[None])[0]
        if better and member.tobytes() not in self._members:
            self._members.add(member.tobytes())
            if self._level == len(self._levels):
                self._levels.append(_Level(self._model_values, self._free))
            self._levels[self._level].add(member)
        if self._level == len(self._levels):
            self._point, self._value, self._level = None, -np.inf, -1
            self._trials.clear()
            self.generation += 1
        else:
            self._before = self._value
            self._clusters = self._levels[self._level].clusters(self._rng)

    # The parts of the state that are not plain arrays.

    @property
    def _stored_clusters(self) -> list[Index]:
        return _join(self._clusters)

    @_stored_clusters.setter
    def _stored_clusters(self, stored: list[Index]) -> None:
        self._clusters = _split(stored)

    @property
    def _stored_levels(self) -> list[list[Any]]:
        return [level.dump() for level in self._levels]

    @_stored_levels.setter
    def _stored_levels(self, stored: list[list[Any]]) -> None:
        levels = [_Level(self._model_values, self._free) for _ in stored]
        for level, kept in zip(levels, stored, strict=True):
            level.restore(*kept)
        self._levels = levels
        self._members = {point.tobytes() for level in levels for point in level.points}


class _Level:
    """Points, and the clusters of variables among them."""

    def __init__(self, cardinalities: NDArray[np.int64], free: Index) -> None:
        self.points: list[Codes] = []
        self._cardinalities, self._free = cardinalities, free
        self._columns: Codes = np.empty((0, 0), dtype=np.int32)  # (variables, clustered points)
        self._clusters: list[Index] = []

    def add(self, point: Codes) -> None:
        """Add a member; clusters are updated when they are needed."""
        self.points.append(point)

    def clusters(self, rng: Generator) -> list[Index]:
        """Return the clusters, largest first; clusters of the same size are in random order."""
        if len(self.points) != self._columns.shape[1]:
            self._columns = np.stack(self.points, axis=1)
            # The random order of the variables decides between equal distances.
            variables = rng.permutation(self._free)
            rows = self._columns[variables].T
            self._clusters = [
                variables[cluster]
                for cluster in linkage_tree(distances(rows, self._cardinalities[variables]))
            ]
        order = rng.permutation(len(self._clusters))
        return sorted((self._clusters[i] for i in order), key=len, reverse=True)

    def donate(self, point: Codes, cluster: Index, rng: Generator) -> Codes | None:
        """Return the cluster's values of a random member that differs there; None if all agree."""
        given = self._columns[cluster]
        differ = np.flatnonzero((given != point[cluster, None]).any(axis=0))
        if not len(differ):
            return None
        values: Codes = given[:, differ[rng.integers(len(differ))]]
        return values

    def dump(self) -> list[Any]:
        """Return the arguments of `restore`."""
        return [np.stack(self.points), self._columns.shape[1], _join(self._clusters)]

    def restore(self, points: Codes, clustered: int, clusters: list[Index]) -> None:
        """Set the members, the number of them that are clustered, and the clusters."""
        self.points = list(points)
        if clustered:
            self._columns = np.stack(self.points[:clustered], axis=1)
        self._clusters = _split(clusters)


def _join(clusters: Sequence[Index]) -> list[Index]:
    """Return clusters as two arrays: their members, one after the other, and their sizes."""
    members = np.concatenate([np.empty(0, dtype=np.intp), *clusters])
    return [members, np.array([len(cluster) for cluster in clusters], dtype=np.intp)]


def _split(stored: Sequence[Index]) -> list[Index]:
    """Return the clusters that `_join` joined."""
    members, sizes = stored
    return np.split(members, np.cumsum(sizes)[:-1]) if len(sizes) else []


def distances(rows: Codes, cardinalities: NDArray[np.int64]) -> Floats:
    """Return 2 - (H(i) + H(j)) / H(i, j) for all pairs of variables; H is the entropy of rows.

    It is 1 if two variables are independent, and 0 if each determines the other or neither varies.
    """
    if not rows.size:
        return np.empty((rows.shape[1], rows.shape[1]))
    joint = np.log(len(rows)) - pair_sums(rows, cardinalities) / len(rows)
    alone = joint.diagonal()
    ratio = np.full(joint.shape, 2.0)
    vary = joint.round(_DECIMALS) > 0
    np.divide(alone + alone[:, None], joint, out=ratio, where=vary)
    apart = (2 - ratio).round(_DECIMALS)
    symmetric: Floats = np.minimum(apart, apart.T)  # sums in another order differ by rounding
    return symmetric


def linkage_tree(distance: Floats) -> list[Index]:
    """Return the clusters of an average-linkage tree that are worth mixing, in no order.

    The root is left out, since it would copy a whole point, and so are clusters that were joined at
    distance 0, since their variables always have matching values.
    """
    distance = distance.copy()
    np.fill_diagonal(distance, np.inf)
    clusters = [[i] for i in range(len(distance))]
    kept: list[list[int]] = []
    a = 0
    for _ in range(len(distance) - 1):
        # Follow nearest neighbours until two clusters are nearest to each other. With average
        # linkage no other join can come between them, so the order of joins does not matter.
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
