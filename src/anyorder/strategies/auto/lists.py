"""The lists of a portfolio: the moves that were not tried yet, and the model of lists.

The moves of a list are exchanges, insertions and reversals, and additions and removals of an item
if the length may change. A *scan* tries all moves in a random, cyclic order, as hill climbing does.
The model (`models/lists.py`) is fitted to the latest answers, and again when there are more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.space.changes import Changes, turn
from anyorder.space.neighbours import Neighbourhood
from anyorder.strategies.base import Codes, Index
from anyorder.strategies.models.checking import check_points
from anyorder.strategies.models.lists import AdditiveModel, Features

FIRST_FIT_AT = 20  # answers before the first fit of the model of lists
REFIT_GROWTH = 1.15  # growth of the number of answers between two fits of the model of lists
LATEST = 4_000  # the model of lists is fitted to about so many of the latest answers
# the model of lists chooses moves if its mean squared error is below this share of the variance
MOVES_PREDICT = 0.9


class Lists:
    """The moves of the lists of points, in the order of a scan or of the model.

    Parameters
    ----------
    near
        The neighbourhood of a space with lists.
    rng
        The generator for orders and samples.

    Attributes
    ----------
    changes
        All moves, by number.
    model
        The model of lists.
    """

    def __init__(self, near: Neighbourhood, rng: np.random.Generator) -> None:
        self._near, self._rng = near, rng
        narrow, self._listed = np.ones_like(near.cardinalities), np.zeros(len(near.space), np.bool_)
        for group in near.groups:
            self._listed[group.columns] = True
            narrow[group.columns] = near.cardinalities[group.columns]
        self.changes = Changes(narrow, None, near.groups)
        self.model = AdditiveModel(near, self.changes)
        # the latest answers with a value
        self._points = np.zeros((0, len(near.space)), np.int32)
        self._values = np.zeros(0)
        self._answers = 0  # the number of all answers
        self._fitted = 0  # the number of answers when the model was last fitted
        self._fitted_rows = 0  # the number of answers to which the model was last fitted
        self._rows: Features | None = None  # features of the points
        # a scan: its point, all moves in cyclic order, and the moves that are left
        self._base = np.zeros(0, np.int32)
        self._order = self._untried = np.empty(0, np.int64)
        # a point, and its moves in increasing order of their predicted gains
        self._ranked_at, self._ranked = b"", np.empty(0, np.int64)

    # --- moves ------------------------------------------------------------------------------------

    def neighbours(self, point: Codes, changes: Index) -> Codes:
        """Return the points to which moves lead."""
        return self._near.settle(self.changes.apply(point, changes), point, self._rng)

    def scan(self, point: Codes) -> Iterator[Codes]:
        """Yield the neighbours of a point that the scan has not tried yet."""
        self._scan_from(point)
        while len(self._untried):
            change, self._untried = self._untried[:1], self._untried[1:]
            yield self.neighbours(point, change)[0]

    def _scan_from(self, point: Codes) -> None:
        """Continue the scan at a point: after the move that led there, if a move did."""
        if np.array_equal(point, self._base):
            return
        listed = self._listed
        if not len(self._base):
            self._order = self.changes.shuffle(self._rng)
        elif (point[listed] == self._base[listed]).all():
            if len(self._untried):
                place = int((self._order == self._untried[0]).argmax())
                self._order = np.roll(self._order, -place)
        else:
            step = self.changes.between(np.where(listed, self._base, point), point)
            if step is None:
                self._order = self.changes.shuffle(self._rng)
            else:
                self._order, rest = turn(self._order, *step)
                self._base, self._untried = point.copy(), self._select_distinct(point, rest)
                return
        self._base, self._untried = point.copy(), self._select_distinct(point, self._order)

    def _select_distinct(self, point: Codes, changes: Index) -> Index:
        """Return the changes that lead to different points; of equal ones, only the first."""
        return self.changes.distinct(point, changes)

    def rank(self, point: Codes) -> Iterator[Codes]:
        """Yield the neighbours of a point, the one with the highest predicted value first.

        Yield nothing while the model predicts nothing. Another call for the same point continues
        where the last one stopped.
        """
        if not self.predicts:
            return
        if point.tobytes() != self._ranked_at:
            changes = self.changes.distinct(point, self.changes.shuffle(self._rng))
            order = np.argsort(self.model.gains(point, changes), kind="stable")
            self._ranked_at, self._ranked = point.tobytes(), changes[order]
        while len(self._ranked):
            change, self._ranked = self._ranked[-1:], self._ranked[:-1]
            yield self.neighbours(point, change)[0]

    # --- the model --------------------------------------------------------------------------------

    @property
    def fitted(self) -> bool:
        """Whether the model has been fitted."""
        return self._fitted_rows > 0

    @property
    def predicts(self) -> bool:
        """Whether the model predicts values to which it was not fitted."""
        return self.fitted and self.model.error < MOVES_PREDICT

    def sample(self) -> npt.NDArray[np.float64]:
        """Return a sample of the weights of features, given the answers."""
        return self.model.sample(self._features(), self._values, self._rng)

    def climb(self, point: Codes, worth: npt.NDArray[np.float64]) -> Codes:
        """Return a local optimum of the model with these weights, by moves in a random order."""
        order = self._rng.permutation(len(self.changes))
        found = self.model.climb(point, worth, order)
        settled: Codes = self._near.settle(found[None], point, self._rng)[0]
        return settled

    def learn(self, point: Codes, f: float) -> None:
        """Learn the value of a point, and fit the model again if there are enough new values."""
        self._answers += 1
        self._points = np.concatenate([self._points, point[None].astype(np.int32)])
        self._values = np.append(self._values, f)
        if len(self._values) > LATEST * 1.25:  # rarely, as all features are then computed again
            self._points, self._values = self._points[-LATEST:], self._values[-LATEST:]
            self._rows, self._fitted, self._fitted_rows = None, 0, 0
        due = max(FIRST_FIT_AT, int(self._fitted * REFIT_GROWTH) + 1)
        if self._answers >= due and len(self._values) >= FIRST_FIT_AT and self.model.usable:
            self._fitted, self._fitted_rows = self._answers, len(self._values)
            self.model.select(self._points, self._values)
            self._rows, self._ranked_at = None, b""
            self.model.fit(self._features(), self._values)

    def revalue(self, values_of: Callable[[Codes], npt.NDArray[np.float64]]) -> None:
        """Replace the values of all points, and fit the model to them."""
        self._ranked_at = b""
        if len(self._points):
            self._values = values_of(self._points)
        if self._fitted_rows:
            self._fitted_rows = len(self._values)
            self.model.fit(self._features(), self._values)

    def _features(self) -> Features:
        """Return the features of the latest answers."""
        if self._rows is None:
            self._rows = self.model.features(self._points)
        elif len(self._rows) < len(self._points):
            more = self.model.features(self._points[len(self._rows) :])
            self._rows = np.concatenate([self._rows, more])
        return self._rows

    # --- state ------------------------------------------------------------------------------------

    _STATE = (
        "_points", "_values", "_answers", "_fitted", "_fitted_rows", "_base", "_order", "_untried",
        "_ranked_at", "_ranked",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return the state; the model follows from the answers and its form."""
        return {**{name: getattr(self, name) for name in self._STATE}, "form": self.model.form}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned, with the model fitted as it was."""
        self._check(state)
        for name in self._STATE:
            setattr(self, name, state[name])
        self.model.form, self._rows = state["form"], None
        if self._fitted_rows:
            count = self._fitted_rows
            self.model.fit(self._features()[:count], self._values[:count])

    def _check(self, state: Mapping[str, Any]) -> None:
        """Raise a ValueError if compiled loops could not use a state."""
        near, points, values = self._near, state["_points"], np.asarray(state["_values"])
        check_points(points, near.cardinalities)
        base = np.asarray(state["_base"])
        if len(base):
            check_points(base, near.cardinalities)
            points = np.vstack([points, base])
        form = state["form"]
        lists = [state["_order"], state["_untried"], state["_ranked"]]
        sound = {
            "_points": all(g.valid(points[:, g.columns]).all() for g in near.groups),
            "_values": values.shape == (len(state["_points"]),) and np.isfinite(values).all(),
            "_order": all(
                (np.asarray(each) >= 0).all() and (np.asarray(each) < len(self.changes)).all()
                for each in lists
            ),
            "_fitted_rows": 0 <= state["_fitted_rows"] <= len(values),
            "form": min(form[:2]) >= 0 and 0 < form[2] < math.inf and form[3] >= 0,
        }
        for name, good in sound.items():
            if not good:
                raise ValueError(f"the state's {name!r} has impossible values: it is damaged")
