"""The model of lists: an additive model of f, with a weight for each feature of a point.

    f(x)  ~  mean + sum of w[k] over the features k of x

The features are the codes of scalars and, for lists, one of several kinds:

    arrangements  places   the place of each item
                  edges    the pairs of items that are neighbours, with the last next to the first
                  arrows   the item that follows each item, and the place of each item
    selections    single   the chosen items
                  pairs    the chosen items, and the pairs of them

The kinds are those that best predict the latest values from the earlier ones. The weights have a
normal prior, and so a normal distribution given the answers. A *sample* of it (Thompson, "On the
likelihood that one unknown probability exceeds another in view of the evidence of two samples",
Biometrika 25, 1933) is computed like the mean: by a regression towards a sample of the prior, on
values with added noise. A point that is best under a sample is worth an evaluation: it is good, or
its value corrects weights that were not known well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from anyorder._internal.compiling import announce_compilation
from anyorder.space.changes import Changes
from anyorder.space.groups import Arrangement, ListGroup, Selection
from anyorder.space.neighbours import Neighbourhood
from anyorder.strategies.base import Codes, Index

Floats = npt.NDArray[np.float64]
Features = npt.NDArray[np.int64]

FAMILIES: tuple[type[ListGroup], ...] = (Arrangement, Selection)  # in the order of the kernels
# the penalties that are compared: the variance of the noise, relative to that of a weight
PENALTIES = (0.3, 3.0, 30.0)
MOST_LIST_FEATURES = 1 << 21  # with more features of all points, there is no model of lists
MOST_ACTIVE = 2_000  # with more features of one point, there is no model of lists
LIST_ITERATIONS = 30  # iterations of conjugate gradients in a fit of the model of lists
LIST_TOLERANCE = 1e-4  # a fit ends when the squared gradient is at most this share of the first one
HELD_BACK = 0.2  # share of the answers, the latest, by which kinds and penalties are compared
BETTER = 0.98  # a kind or penalty replaces an earlier one if it lowers the error by this factor
# standard deviation of the sum of all weights of a point in a sample of the prior, relative to that
# of the values
WIDTH = 0.2
MOST_CLIMBED = 1 << 16  # the changes that a climb on the model of lists tries
LEAST_GAIN = 1e-12  # the least gain of a change in a climb on the model of lists


class Tables(NamedTuple):
    """The tables of a model that climbs read."""

    worth: Floats  # the weights of the codes of all columns
    first: Features  # the place of the first code of each column in `worth`
    cards: Features
    pairs: Floats  # the weights of pairs, of all lists
    by_place: bool
    by_pair: bool
    directed: bool


class Moves(NamedTuple):
    """The changes, in the form in which kernels read them."""

    kind: Features
    first: Features
    second: Features
    step: Features
    group: Features


class AdditiveModel:
    """A regression on the features of points.

    Parameters
    ----------
    near
        The neighbourhood, which has the columns of points.
    changes
        The changes that climbs on the model may make.

    Attributes
    ----------
    usable
        Whether the tables are small enough.
    kinds
        The kind of features for each kind of list.
    error
        The mean squared error of predictions, relative to the variance of the values.
    worth
        The means of the weights.
    """

    def __init__(self, near: Neighbourhood, changes: Changes) -> None:
        from anyorder.strategies.models import list_kernels as kernels  # imports Numba

        announce_compilation(kernels.climb, "the model of lists", 10)
        self._kernels: Any = kernels
        wide = list(near.scales)  # columns of many values, which are left out of the model
        self._groups = near.groups
        self._cards = near.cardinalities.astype(np.int64)
        self._plain = np.ones(len(self._cards), np.bool_)
        self._plain[wide] = False
        for group in self._groups:
            self._plain[group.columns] = False
        sizes = self._cards.copy()
        sizes[wide] = 0
        self._first = np.cumsum(sizes) - sizes
        self._base = at = int(sizes.sum())
        self._tables_at = []  # the first place of the table of pairs of each list
        for group in self._groups:
            self._tables_at.append(at)
            at += group.side**2 if group.paired else 0
        self._size = at + 2  # with the constant and the padding
        self._lists = np.array([
            (group.first, group.size, at - self._base if group.paired else -1, group.side,
             *group.sizes, FAMILIES.index(type(group)))
            for group, at in zip(self._groups, self._tables_at, strict=True)
        ], np.int64).reshape(-1, 7)  # the columns are those of the kernels  # fmt: skip
        active = sum(group.sizes[1] for group in self._groups)
        self.usable = self._size <= MOST_LIST_FEATURES and active <= MOST_ACTIVE
        self._moves = _moves_of(changes, self._groups, wide, kernels.SKIPPED)
        self.kinds, self._penalty = self._choices()[0], PENALTIES[0]
        self.error = 1.0
        self.worth = np.zeros(self._size if self.usable else 2)

    def facts(self) -> dict[str, Any]:
        """Return the kinds of features that are used, and the error."""
        features = ["codes"] if self._plain.any() else []
        for family, kind in zip(FAMILIES, self.kinds, strict=True):
            features += [kind] if any(isinstance(group, family) for group in self._groups) else []
        return {"model": "+".join(features), "model_error": round(self.error, 4)}

    @property
    def form(self) -> list[float]:
        """The kinds of features, the penalty and the error, as numbers."""
        chosen = zip(FAMILIES, self.kinds, strict=True)
        numbers = [family.forms.index(kind) for family, kind in chosen]
        return [*numbers, self._penalty, self.error]

    @form.setter
    def form(self, form: Sequence[float]) -> None:
        numbers = zip(FAMILIES, form, strict=False)
        self.kinds = tuple(family.forms[int(number)] for family, number in numbers)
        self._penalty, self.error = float(form[-2]), float(form[-1])

    def _choices(self) -> list[tuple[str, ...]]:
        """Return the possible combinations of kinds of features, simple ones first."""
        paired = {type(group) for group in self._groups if group.paired}
        return list(product(*(f.forms if f in paired else f.forms[:1] for f in FAMILIES)))

    # --- features -------------------------------------------------------------------------------

    def features(self, points: Codes, kinds: tuple[str, ...] | None = None) -> Features:
        """Return the features of points `(m, n)`, one row for each point, padded to one length."""
        kinds = kinds or self.kinds
        padding = self._size - 1
        parts = [np.full((len(points), 1), self._size - 2), (self._first + points)[:, self._plain]]
        for group, at in zip(self._groups, self._tables_at, strict=True):
            form = kinds[FAMILIES.index(type(group))]
            found = group.features(points[:, group.columns].astype(np.int64), form)
            for first, part in zip((self._first[group.first], at), found, strict=True):
                if part is not None:
                    parts.append(np.where(part < 0, padding, first + part))
        # always in C order: kernels are compiled again for any other
        return np.ascontiguousarray(np.concatenate(parts, axis=1), np.int64)

    # --- regression -----------------------------------------------------------------------------

    def select(self, points: Codes, values: Floats) -> None:
        """Choose the kinds and the penalty that best predict the latest values from the others."""
        values = _centre(values)
        kept = int(len(values) * (1 - HELD_BACK))
        last, best = values[kept:], np.inf
        for kinds in self._choices():
            rows = self.features(points, kinds)
            for penalty in PENALTIES:
                worth = np.zeros(self._size)
                self._regress(rows[:kept], values[:kept], worth, penalty)
                found = np.empty(len(last))
                self._kernels.predict(rows[kept:], worth, found)
                error = float(np.mean((last - found) ** 2))
                if error < BETTER * best:
                    best, self.kinds, self._penalty = error, kinds, penalty
        spread = float(np.mean((last - last.mean()) ** 2))
        self.error = min(best / spread, 1.0) if spread > 0 else 1.0

    def fit(self, rows: Features, values: Floats) -> None:
        """Compute the means of the weights, given the features of points and their values."""
        self.worth = np.zeros(self._size)
        self._regress(rows, _centre(values), self.worth, self._penalty)

    def sample(self, rows: Features, values: Floats, rng: Generator) -> Floats:
        """Return a sample of the weights, given the features of points and their values.

        The result of a regression on values with noise, towards a sample of the prior, has the
        distribution of the weights.
        """
        values = _centre(values)
        width = WIDTH * float(values.std()) / math.sqrt(rows.shape[1])
        prior = width * rng.standard_normal(self._size)
        prior[-2:] = 0.0
        noise = math.sqrt(self._penalty) * width * rng.standard_normal(len(values))
        worth = self.worth.copy()
        self._regress(rows, values + noise, worth, self._penalty, prior)
        return worth

    def _regress(
        self,
        rows: Features,
        values: Floats,
        worth: Floats,
        penalty: float,
        prior: Floats | None = None,
    ) -> None:
        prior = np.zeros(self._size) if prior is None else prior
        self._kernels.regress(rows, values, worth, prior, penalty, LIST_ITERATIONS, LIST_TOLERANCE)

    # --- climbs ---------------------------------------------------------------------------------

    def gains(self, point: Codes, changes: Index) -> Floats:
        """Return the predicted gains of changes of a point, which must be possible."""
        found = np.empty(len(changes))
        tables = self._tables(self.worth)
        self._kernels.gains(tables, self._lists, self._moves, point.copy(), changes, found)
        return found

    def climb(self, point: Codes, worth: Floats, order: Index) -> Codes:
        """Return a local optimum for these weights, by changes in this cyclic order."""
        point = point.astype(np.int32)
        tables = self._tables(worth)
        self._kernels.climb(
            tables, self._lists, self._moves, point, order[:MOST_CLIMBED], LEAST_GAIN
        )
        return point

    def _tables(self, worth: Floats) -> Tables:
        """Return the tables of these weights; weights of features that are not used become 0."""
        own, pairs = worth[: self._base].copy(), np.append(worth[self._base : -2], 0.0)
        for group, start in zip(self._groups, self._tables_at, strict=True):
            if group.paired:
                first, at, side = self._first[group.first], start - self._base, group.side
                group.prepare(
                    own[first : first + group.size * group.values],
                    pairs[at : at + side**2].reshape(side, side),
                    self.kinds[FAMILIES.index(type(group))],
                )
        sequences, sets = self.kinds
        return Tables(
            own, self._first, self._cards, pairs, sequences != "edges", sets == "pairs",
            sequences == "arrows",
        )  # fmt: skip


def _centre(values: Floats) -> Floats:
    """Return values of mean 0, scaled so that their squares do not overflow."""
    values = values / max(float(np.abs(values).max()), 1e-300)
    found: Floats = values - values.mean()
    return found


def _moves_of(
    changes: Changes, groups: Sequence[ListGroup], skipped: Sequence[int], mark: int
) -> Moves:
    """Return the changes for kernels; changes of `skipped` columns have the kind `mark`."""
    kind, first, second = changes.moves()
    group = np.full(len(changes), -1, np.int64)
    for k, entry in enumerate(groups):
        group[(first >= entry.first) & (first < entry.first + entry.size)] = k
    kind = np.where(np.isin(first, list(skipped)), mark, kind)
    return Moves(kind, first, second, changes.steps.astype(np.int64), group)
