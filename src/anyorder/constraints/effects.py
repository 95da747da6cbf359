"""A linear model of the effect of each value of each variable, fitted to the answers so far.

It decides between several ways to repair a point that a constraint rejects. It knows nothing about
how variables act together, which is left to strategies.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anyorder.archive import Archive, Codes
from anyorder.errors import OK

FIRST = 10  # the number of answers before the first fit
GROWTH = 1.25  # the growth of the number of answers from one fit to the next
MOST_ROWS = 1_000  # the model is fitted to the latest answers with a value
MOST_VALUES = 4_096  # the most values of all variables together
PENALTY = 1.0  # the weight of squared effects, in units of the variance of a value


class Effects:
    """The effects of single changes, which are fitted again now and then.

    They depend on the archive alone, so that a resumed run has the same effects.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        cards = archive.space.cardinalities.astype(np.int64)
        self._first = np.cumsum(cards) - cards
        self._total = int(cards.sum())
        # for each variable the columns of its values, padded with the first of them
        self._columns = self._first[:, None] + np.arange(min(cards.max(), MOST_VALUES))
        self._exists = np.arange(self._columns.shape[1]) < cards[:, None]
        self._columns = np.where(self._exists, self._columns, self._first[:, None])
        self._fitted, self._effects = 0, np.zeros(0)

    def changes(self, codes: Codes) -> tuple[Codes, npt.NDArray[np.float64]] | None:
        """Return the best other value of each variable, and its gain; None if nothing is known."""
        if not self._fit():
            return None
        here = self._effects[self._first + codes]
        other = np.where(self._exists, self._effects[self._columns], -np.inf)
        other[np.arange(len(codes)), codes] = -np.inf
        best = other.argmax(axis=1).astype(np.int32)
        return best, other[np.arange(len(codes)), best] - here

    def _fit(self) -> bool:
        size = FIRST
        if self._total > MOST_VALUES or len(self._archive) < size:
            return False
        while (larger := int(size * GROWTH) + 1) <= len(self._archive):
            size = larger
        if size != self._fitted:
            self._fitted, self._effects = size, self._solve(size)
        return len(self._effects) > 0

    def _solve(self, size: int) -> npt.NDArray[np.float64]:
        """Solve the ridge regression on one-hot codes, in the form that has fewer unknowns."""
        scores = self._archive.scores(size)
        good = (self._archive.column("status")[:size] == OK) & np.isfinite(scores)
        rows = np.flatnonzero(good)[-MOST_ROWS:]
        if len(rows) < 2:
            return np.zeros(0)
        codes = self._archive.codes_of(self._archive.column("point")[rows])
        ones = np.zeros((len(rows), self._total))
        ones[np.arange(len(rows))[:, None], self._first + codes] = 1.0
        ones -= ones.mean(axis=0)
        values = scores[rows] / max(float(np.abs(scores[rows]).max()), 1e-300)
        values -= values.mean()
        effects: npt.NDArray[np.floating]
        if len(rows) < self._total:
            kernel = ones @ ones.T + PENALTY * np.eye(len(rows))
            effects = ones.T @ np.linalg.solve(kernel, values)
        else:
            kernel = ones.T @ ones + PENALTY * np.eye(self._total)
            effects = np.linalg.solve(kernel, ones.T @ values)
        # rounded, so that rounding errors do not decide
        return np.asarray(np.round(effects, 9), np.float64)
