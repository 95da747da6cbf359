"""The additive model of guided search: what the features of a point are worth.

    f(x)  ~  mean + sum of w[k] over the features k of x

Features are the codes of plain variables, and of lists one of several kinds:

    sequences   places   which item is where
                edges    which items are next to each other; the last is next to the first
                arrows   which item follows which, and which is where
    sets        single   which items are chosen
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

from anyorder.space.groups import Group
from anyorder.strategies.base import Codes, Index
from anyorder.strategies.changes import Changes
from anyorder.strategies.compiling import announce_compilation

Floats = npt.NDArray[np.float64]
Features = npt.NDArray[np.int64]

SEQUENCES, SETS = ("places", "edges", "arrows"), ("single", "pairs")
PENALTIES = (0.3, 3.0, 30.0)  # variance of the noise, relative to that of a weight
MOST_PAIRS = 250  # of chosen items in a point, else pairs are left out
MOST_TABLE = 1_000  # items of a list whose pairs have a table
MOST_FEATURES, MOST_ACTIVE = 1 << 21, 2_000  # of all points, and of one; beyond, no model is used
ITERATIONS, TOLERANCE = 30, 1e-4  # of conjugate gradients
HELD_BACK = 0.2  # share of the answers that kinds and penalties are compared by
BETTER = 0.98  # a kind that comes later must have so much of the error, or less
WIDTH = 0.2  # of the prior of a weight: so much of the deviation of the values, of all together
MOST_TRIED = 1 << 16  # changes that a climb tries
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
    cardinalities
        The number of values of each column.
    groups
        The columns of lists.
    changes
        The changes that climbs on the model make.
    wide
        Columns with many values, which are left out.

    Attributes
    ----------
    usable
        Whether its tables are of a reasonable size.
    kinds
        The features of sequences and of sets that are used.
    error
        The mean squared error of predictions, relative to the variance of the values.
    """

    def __init__(
        self,
        cardinalities: npt.NDArray[np.int64],
        groups: Sequence[Group],
        changes: Changes,
        wide: Sequence[int],
    ) -> None:
        from anyorder.strategies.guided import kernels  # imports Numba

        announce_compilation(kernels.climb, "guided search", 10)
        self._kernels: Any = kernels
        self._cards = cardinalities.astype(np.int64)
        self._plain = np.ones(len(cardinalities), np.bool_)
        self._plain[list(wide)] = False
        for group in groups:
            self._plain[group.columns] = False
        sizes = self._cards.copy()
        sizes[list(wide)] = 0
        self._first = np.cumsum(sizes) - sizes
        self._groups = groups
        at, lists = 0, []
        for group in groups:
            chosen = (0, 0) if group.sequence else (int(group.least[1]), int(group.most[1]))
            lists.append((group.first, group.size, at, *chosen, int(group.sequence)))
            at += group.size**2 if group.size <= MOST_TABLE else 0
        self._lists = np.array(lists, np.int64).reshape(-1, 6)  # as kernels read them
        self._tables_at = [entry[2] for entry in lists]
        self._base = int(sizes.sum())
        self._size = self._base + at + 2  # and a constant, and the padding
        active = sum(group.size if group.sequence else int(group.most[1]) for group in groups)
        self.usable = self._size <= MOST_FEATURES and active <= MOST_ACTIVE
        self._moves = _moves_of(changes, groups, wide, kernels.SKIPPED)
        self.kinds, self._penalty = self._choices()[0], PENALTIES[0]
        self.error = 1.0
        self.worth = np.zeros(self._size if self.usable else 2)

    def facts(self) -> dict[str, Any]:
        """The features that are used, and the error, if anything was fitted."""
        features = ["codes"] if self._plain.any() else []
        features += [self.kinds[0]] if any(group.sequence for group in self._groups) else []
        features += [self.kinds[1]] if any(not group.sequence for group in self._groups) else []
        return {"model": "+".join(features), "model_error": round(self.error, 4)}

    @property
    def form(self) -> list[float]:
        """Which features, the penalty and the error, as numbers."""
        return [
            SEQUENCES.index(self.kinds[0]),
            SETS.index(self.kinds[1]),
            self._penalty,
            self.error,
        ]

    @form.setter
    def form(self, form: Sequence[float]) -> None:
        self.kinds = SEQUENCES[int(form[0])], SETS[int(form[1])]
        self._penalty, self.error = float(form[2]), float(form[3])

    def _choices(self) -> list[tuple[str, str]]:
        """The kinds of features that there can be, simple ones first."""
        tabled = [group for group in self._groups if group.size <= MOST_TABLE]
        sequences = any(group.sequence and group.size > 2 for group in tabled)
        sets = [group for group in self._groups if not group.sequence]
        pairs = [int(group.most[1]) * (int(group.most[1]) - 1) // 2 for group in sets]
        paired = sets and all(g.size <= MOST_TABLE for g in sets) and max(pairs) <= MOST_PAIRS
        return list(
            product(SEQUENCES if sequences else SEQUENCES[:1], SETS if paired else SETS[:1])
        )

    # --- features -------------------------------------------------------------------------------

    def features(self, points: Codes, kinds: tuple[str, str] | None = None) -> Features:
        """The features of points `(m, n)`, a row for each, padded to one length."""
        kinds = kinds or self.kinds
        rows, padding = len(points), self._size - 1
        parts = [np.full((rows, 1), self._size - 2), (self._first + points)[:, self._plain]]
        for group, at in zip(self._groups, self._tables_at, strict=True):
            own, first = points[:, group.columns].astype(np.int64), self._first[group.columns]
            table, size = self._base + at, group.size
            if group.sequence:
                if kinds[0] != "edges" or size > MOST_TABLE:
                    parts.append(first + own)
                if kinds[0] != "places" and size <= MOST_TABLE:
                    after = np.roll(own, -1, axis=1)
                    if kinds[0] == "edges":
                        own, after = np.minimum(own, after), np.maximum(own, after)
                    parts.append(table + own * size + after)
                continue
            most = int(group.most[1])
            # the chosen items first, in increasing order
            order = np.argsort(1 - own, axis=1, kind="stable")[:, :most]
            chosen = np.take_along_axis(own, order, axis=1) == 1
            parts.append(np.where(chosen, first[order] + 1, padding))
            if kinds[1] == "pairs":
                a, b = np.triu_indices(most, 1)
                both = chosen[:, a] & chosen[:, b]
                parts.append(np.where(both, table + order[:, a] * size + order[:, b], padding))
        # In this order whatever the parts have: loops are compiled for each that there is.
        return np.ascontiguousarray(np.concatenate(parts, axis=1), np.int64)

    # --- regression -----------------------------------------------------------------------------

    def select(self, points: Codes, values: Floats) -> None:
        """Choose kinds and penalty: those that predict the last values from the others best."""
        values = _centred(values)
        kept = int(len(values) * (1 - HELD_BACK))
        last, best = values[kept:], np.inf
        for kinds in self._choices():
            rows = self.features(points, kinds)
            for penalty in PENALTIES:
                worth = np.zeros(self._size)
                self._regress(rows[:kept], values[:kept], worth, penalty)
                found = np.empty(len(last))
                self._kernels.predicted(rows[kept:], worth, found)
                error = float(np.mean((last - found) ** 2))
                if error < BETTER * best:
                    best, self.kinds, self._penalty = error, kinds, penalty
        spread = float(np.mean((last - last.mean()) ** 2))
        self.error = min(best / spread, 1.0) if spread > 0 else 1.0

    def fit(self, rows: Features, values: Floats) -> None:
        """The means of the weights, given the features of points and their values."""
        self.worth = np.zeros(self._size)
        self._regress(rows, _centred(values), self.worth, self._penalty)

    def sample(self, rows: Features, values: Floats, rng: Generator) -> Floats:
        """A sample of the weights."""
        values = _centred(values)
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
        self._kernels.regress(rows, values, worth, prior, penalty, ITERATIONS, TOLERANCE)

    # --- climbs ---------------------------------------------------------------------------------

    def gains(self, point: Codes, changes: Index) -> Floats:
        """What the model expects of changes of a point, which must be possible."""
        found = np.empty(len(changes))
        tables = self._tables(self.worth)
        self._kernels.gains(tables, self._lists, self._moves, point.copy(), changes, found)
        return found

    def climb(self, point: Codes, worth: Floats, order: Index) -> Codes:
        """A local optimum for these weights; changes are tried in this order, cyclically."""
        point = point.astype(np.int32)
        tables = self._tables(worth)
        self._kernels.climb(tables, self._lists, self._moves, point, order[:MOST_TRIED], LEAST_GAIN)
        return point

    def _tables(self, worth: Floats) -> Tables:
        """Weights as climbs read them; those of features that are not used are 0."""
        own, pairs = worth[: self._base].copy(), np.append(worth[self._base : -2], 0.0)
        for group, at in zip(self._groups, self._tables_at, strict=True):
            size = group.size
            if not group.sequence or size > MOST_TABLE:
                continue
            table = pairs[at : at + size * size].reshape(size, size)
            if self.kinds[0] == "edges":
                first = self._first[group.first]
                own[first : first + size * size] = 0.0
                table[:] = np.triu(table, 1) + np.triu(table, 1).T
            elif self.kinds[0] == "places":
                table[:] = 0.0
        sequences, sets = self.kinds
        return Tables(
            own, self._first, self._cards, pairs, sequences != "edges", sets == "pairs",
            sequences == "arrows",
        )  # fmt: skip


def _centred(values: Floats) -> Floats:
    """Values with mean 0, and so that their squares do not overflow."""
    values = values / max(float(np.abs(values).max()), 1e-300)
    found: Floats = values - values.mean()
    return found


def _moves_of(
    changes: Changes, groups: Sequence[Group], skipped: Sequence[int], mark: int
) -> Moves:
    """The changes as kernels read them; those of `skipped` columns are marked."""
    kind, first, second = changes.moves()
    group = np.full(len(changes), -1, np.int64)
    for k, entry in enumerate(groups):
        group[(first >= entry.first) & (first < entry.first + entry.size)] = k
    kind = np.where(np.isin(first, list(skipped)), mark, kind)
    return Moves(kind, first, second, changes.steps.astype(np.int64), group)
