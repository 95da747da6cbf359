"""The additive model of lists: what the features of a point are worth.

    f(x)  ~  mean + sum of w[k] over the features k of x

Features are the codes of plain variables, and of lists one of several kinds:

    arrangements  places   which item is where
                  edges    which items are next to each other; the last is next to the first
                  arrows   which item follows which, and which is where
    selections    single   which items are chosen
                  pairs    and which are chosen together

The kinds are chosen by the error of predicting the latest values from the earlier ones. The weights
have a normal prior, and so a normal distribution given the answers. A *sample* of it (Thompson,
"On the likelihood that one unknown probability exceeds another in view of the evidence of two
samples", Biometrika 25, 1933) is computed like the mean, by regression on values with noise towards
a sample of the prior. What is best under a sample is worth an evaluation: it is good, or it teaches
something about what was not known to be bad.
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

FAMILIES: tuple[type[ListGroup], ...] = (Arrangement, Selection)  # as kernels number them
PENALTIES = (0.3, 3.0, 30.0)  # variance of the noise, relative to that of a weight
MOST_LIST_FEATURES = 1 << 21  # of all points: beyond, no model is used
MOST_ACTIVE = 2_000  # features of one point: beyond, no model is used
LIST_ITERATIONS = 30  # of conjugate gradients
LIST_TOLERANCE = 1e-4  # of the first residual: where they end
HELD_BACK = 0.2  # share of the answers that kinds and penalties are compared by
BETTER = 0.98  # a kind replaces an earlier one if its error is at most this share of it
WIDTH = 0.2  # deviation of the prior of all weights together, in deviations of the values
MOST_CLIMBED = 1 << 16  # changes that a climb tries
LEAST_GAIN = 1e-12  # of a change in a climb; values are at most 1


class Tables(NamedTuple):
    """What climbs read of a model."""

    worth: Floats  # of the codes of all columns
    first: Features  # the place of the first code of each column
    cards: Features
    pairs: Floats  # of all lists
    by_place: bool
    by_pair: bool
    directed: bool


class Moves(NamedTuple):
    """The changes, as kernels read them."""

    kind: Features
    first: Features
    second: Features
    step: Features
    group: Features


class AdditiveModel:
    """What features are worth, given points and their values.

    Parameters
    ----------
    near
        The neighbourhood: the columns.
    changes
        What climbs on the model may change.

    Attributes
    ----------
    usable
        Whether its tables are of a reasonable size.
    kinds
        The features that are used, of each kind of list.
    error
        The mean squared error of predictions, relative to the variance of the values.
    """

    def __init__(self, near: Neighbourhood, changes: Changes) -> None:
        from anyorder.strategies.models import list_kernels as kernels  # imports Numba

        announce_compilation(kernels.climb, "the model of lists", 10)
        self._kernels: Any = kernels
        wide = list(near.scales)  # columns with many values, which are left out
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
        self._tables_at = []  # where the table of pairs of each list begins
        for group in self._groups:
            self._tables_at.append(at)
            at += group.side**2 if group.paired else 0
        self._size = at + 2  # and a constant, and the padding
        self._lists = np.array([
            (group.first, group.size, at - self._base if group.paired else -1, group.side,
             *group.sizes, FAMILIES.index(type(group)))
            for group, at in zip(self._groups, self._tables_at, strict=True)
        ], np.int64).reshape(-1, 7)  # as kernels read them  # fmt: skip
        active = sum(group.sizes[1] for group in self._groups)
        self.usable = self._size <= MOST_LIST_FEATURES and active <= MOST_ACTIVE
        self._moves = _moves_of(changes, self._groups, wide, kernels.SKIPPED)
        self.kinds, self._penalty = self._choices()[0], PENALTIES[0]
        self.error = 1.0
        self.worth = np.zeros(self._size if self.usable else 2)

    def facts(self) -> dict[str, Any]:
        """Return the features that are used, and the error, if anything was fitted."""
        features = ["codes"] if self._plain.any() else []
        for family, kind in zip(FAMILIES, self.kinds, strict=True):
            features += [kind] if any(isinstance(group, family) for group in self._groups) else []
        return {"model": "+".join(features), "model_error": round(self.error, 4)}

    @property
    def form(self) -> list[float]:
        """Which features, the penalty and the error, as numbers."""
        chosen = zip(FAMILIES, self.kinds, strict=True)
        numbers = [family.forms.index(kind) for family, kind in chosen]
        return [*numbers, self._penalty, self.error]

    @form.setter
    def form(self, form: Sequence[float]) -> None:
        numbers = zip(FAMILIES, form, strict=False)
        self.kinds = tuple(family.forms[int(number)] for family, number in numbers)
        self._penalty, self.error = float(form[-2]), float(form[-1])

    def _choices(self) -> list[tuple[str, ...]]:
        """Return the kinds of features that there can be, simple ones first."""
        paired = {type(group) for group in self._groups if group.paired}
        return list(product(*(f.forms if f in paired else f.forms[:1] for f in FAMILIES)))

    # --- features -------------------------------------------------------------------------------

    def features(self, points: Codes, kinds: tuple[str, ...] | None = None) -> Features:
        """Return the features of points `(m, n)`, a row for each, padded to one length."""
        kinds = kinds or self.kinds
        padding = self._size - 1
        parts = [np.full((len(points), 1), self._size - 2), (self._first + points)[:, self._plain]]
        for group, at in zip(self._groups, self._tables_at, strict=True):
            form = kinds[FAMILIES.index(type(group))]
            found = group.features(points[:, group.columns].astype(np.int64), form)
            for first, part in zip((self._first[group.first], at), found, strict=True):
                if part is not None:
                    parts.append(np.where(part < 0, padding, first + part))
        # In this order whatever the parts have: loops are compiled for each that there is.
        return np.ascontiguousarray(np.concatenate(parts, axis=1), np.int64)

    # --- regression -----------------------------------------------------------------------------

    def select(self, points: Codes, values: Floats) -> None:
        """Choose kinds and penalty: those that predict the last values from the others best."""
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
        """Draw the weights from their distribution.

        A regression on perturbed values, from a random prior, has the posterior's distribution.
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
        """Return what the model expects of changes of a point, which must be possible."""
        found = np.empty(len(changes))
        tables = self._tables(self.worth)
        self._kernels.gains(tables, self._lists, self._moves, point.copy(), changes, found)
        return found

    def climb(self, point: Codes, worth: Floats, order: Index) -> Codes:
        """Return a local optimum for these weights; changes are tried in this order, cyclically."""
        point = point.astype(np.int32)
        tables = self._tables(worth)
        self._kernels.climb(
            tables, self._lists, self._moves, point, order[:MOST_CLIMBED], LEAST_GAIN
        )
        return point

    def _tables(self, worth: Floats) -> Tables:
        """Return weights as climbs read them; those of features that are not used are 0."""
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
    """Centre values, and scale them so that their squares do not overflow."""
    values = values / max(float(np.abs(values).max()), 1e-300)
    found: Floats = values - values.mean()
    return found


def _moves_of(
    changes: Changes, groups: Sequence[ListGroup], skipped: Sequence[int], mark: int
) -> Moves:
    """Return the changes as kernels read them; those of `skipped` columns are marked."""
    kind, first, second = changes.moves()
    group = np.full(len(changes), -1, np.int64)
    for k, entry in enumerate(groups):
        group[(first >= entry.first) & (first < entry.first + entry.size)] = k
    kind = np.where(np.isin(first, list(skipped)), mark, kind)
    return Moves(kind, first, second, changes.steps.astype(np.int64), group)
