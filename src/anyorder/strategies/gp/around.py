"""Points near another point: its single changes, or a random part of them if they are many."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from anyorder.space import Space
from anyorder.space.changes import Changes
from anyorder.space.neighbours import Neighbourhood
from anyorder.strategies.base import Codes

TRIED = 12  # the most single changes of a variable that are compared in a step
TRIED_MOVES = 128  # the most changes of a list
MOST_NEIGHBOURS = 1_000  # the most changes in all
COMPLETIONS = 8  # versions of a change that makes further variables present


class Around:
    """The points that are compared in a step of an ascent.

    Parameters
    ----------
    near
        The neighbourhood.
    """

    def __init__(self, near: Neighbourhood) -> None:
        self._near, self._space = near, near.space
        # Wide variables are changed by steps of all lengths instead.
        narrow, scales = near.cardinalities.copy(), near.scales
        narrow[list(scales)] = 1
        self._changes = Changes(narrow, None, near.groups)
        self._wide = [
            (scale, np.repeat([j for j in scales if scales[j] is scale], TRIED))
            for scale in dict.fromkeys(scales.values())
        ]
        self._deciding = _find_deciders(self._space)
        # The changes that are always tried, and the ranges from which some are drawn.
        owner = self._changes.variables.copy()
        moves = self._changes.steps == 0  # those of lists
        for k, group in enumerate(near.groups):
            columns = np.arange(group.first, group.first + group.size)
            owner[moves & np.isin(self._changes.variables, columns)] = len(self._space) + k
        edges = np.flatnonzero(np.diff(owner, prepend=-1, append=-1))
        first, count = edges[:-1], np.diff(edges)
        most = np.where(moves[first], TRIED_MOVES, TRIED)
        self._always = np.flatnonzero(np.repeat(count <= most, count))
        drawn = count > most
        self._drawn_first = np.repeat(first[drawn], most[drawn])
        self._drawn_count = np.repeat(count[drawn], most[drawn])

    def of(
        self, point: Codes, present: npt.NDArray[np.bool_], rng: np.random.Generator, branches: bool
    ) -> tuple[Codes, npt.NDArray[np.bool_] | None]:
        """Return single changes of a canonical point: all of small variables, some of others.

        In a space with conditions, also return which variables they have. A change that decides
        about the presence of other variables is returned several times, with different values of
        variables that the point did not have; without `branches`, it is only returned if it leaves
        all variables present that were.
        """
        chosen = self._always
        if len(self._drawn_first):
            places = rng.random(len(self._drawn_first)) * self._drawn_count
            chosen = np.union1d(chosen, self._drawn_first + places.astype(np.intp))
        if len(chosen) > MOST_NEIGHBOURS:
            chosen = np.sort(rng.choice(chosen, MOST_NEIGHBOURS, replace=False))
        changeable = np.flatnonzero(present) if self._space.conditional else None
        chosen = self._changes.distinct(point, chosen, changeable)
        parts, variables = [self._changes.apply(point, chosen)], [self._changes.variables[chosen]]
        for scale, columns in self._wide:
            columns = columns[present[columns]]
            sizes = (scale.length / 2) ** rng.random(len(columns))
            steps = rng.choice((-1, 1), len(columns)) * sizes.astype(np.int64)
            rows = np.tile(point, (len(columns), 1))
            rows[np.arange(len(columns)), columns] = scale.move(
                point[columns].astype(np.int64), steps
            )
            parts.append(rows)
            variables.append(columns)
        around = np.concatenate(parts)
        if not self._space.conditional:
            return around, None
        deciding = self._deciding[np.concatenate(variables)]
        presents = np.tile(present, (len(around), 1))
        if not deciding.any():
            return around, presents
        others = np.repeat(around[deciding], COMPLETIONS, axis=0)
        own = np.tile(present, (len(others), 1))
        others = self._near.complete(others, own, rng)
        around = np.concatenate([around[~deciding], others])
        presents = np.concatenate([presents[~deciding], self._space.present(others)])
        if branches:
            return around, presents
        same = (presents == present).all(axis=1)
        return around[same], presents[same]


def _find_deciders(space: Space) -> npt.NDArray[np.bool_]:
    """Return which columns of codes decide whether others are present."""
    labels = space.labels or ()
    found = np.zeros(len(space), np.bool_)
    for j, variable in enumerate(space.columns):
        if isinstance(variable.when, Mapping):
            found[[labels.index(name) for name in variable.when]] = True
        elif variable.when is not None:
            found[:j] = True
    return found
