"""What a portfolio knows of the lists of a point: moves that are not tried yet, and a model.

Moves of a list are exchanges, insertions and reversals, and changes of single items where the list
may get longer or shorter. A *scan* goes through all of them in a random, cyclic order, as hill
climbing does. The model is `models/lists.py`, fitted to the latest answers as they come.
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

FIRST_FIT_AT = 20  # answers before the first fit
REFIT_GROWTH = 1.15  # of the number of answers, from one fit to the next
LATEST = 4_000  # answers that the model is fitted to: the latest
MOVES_PREDICT = 0.9  # moves follow the model if its error is below this share of the variance


class Lists:
    """Moves of the lists of points, in the order of a scan or of the model.

    Parameters
    ----------
    near
        The neighbourhood; its space has lists.
    rng
        Draws orders and samples.

    Attributes
    ----------
    changes
        All moves, by number.
    """

    def __init__(self, near: Neighbourhood, rng: np.random.Generator) -> None:
        self._near, self._rng = near, rng
        narrow, self._listed = np.ones_like(near.cardinalities), np.zeros(len(near.space), np.bool_)
        for group in near.groups:
            self._listed[group.columns] = True
            narrow[group.columns] = near.cardinalities[group.columns]
        self.changes = Changes(narrow, None, near.groups)
        self.model = AdditiveModel(near, self.changes)
        # The latest answers that have a value.
        self._points = np.zeros((0, len(near.space)), np.int32)
        self._values = np.zeros(0)
        self._answers = 0  # in all
        self._fitted = 0  # answers when the model was last fitted
        self._fitted_rows = 0  # and how many of them it was fitted to
        self._rows: Features | None = None  # features of the points
        # A scan: where it is, all moves in cyclic order, and those that are left.
        self._base = np.zeros(0, np.int32)
        self._order = self._untried = np.empty(0, np.int64)
        # Moves of a point by what the model expects of them, the best one last.
        self._ranked_at, self._ranked = b"", np.empty(0, np.int64)

    # --- moves ------------------------------------------------------------------------------------

    def neighbours(self, point: Codes, changes: Index) -> Codes:
        """Return the points that moves lead to."""
        return self._near.settle(self.changes.apply(point, changes), point, self._rng)

    def scan(self, point: Codes) -> Iterator[Codes]:
        """Yield the neighbours that the scan has not come to since the point was another one."""
        self._scan_from(point)
        while len(self._untried):
            change, self._untried = self._untried[:1], self._untried[1:]
            yield self.neighbours(point, change)[0]

    def _scan_from(self, point: Codes) -> None:
        """Go on with the scan at a point: behind the move that led there, if one did."""
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
                self._base, self._untried = point.copy(), self._near_distinct(point, rest)
                return
        self._base, self._untried = point.copy(), self._near_distinct(point, self._order)

    def _near_distinct(self, point: Codes, changes: Index) -> Index:
        return self.changes.distinct(point, changes)

    def rank(self, point: Codes) -> Iterator[Codes]:
        """Yield the neighbours by what the model expects of them; none while it predicts nothing.

        Those that were given for the same point are not given again.
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
        """Whether there is a model."""
        return self._fitted_rows > 0

    @property
    def predicts(self) -> bool:
        """Whether the model predicts values that it was not fitted to."""
        return self.fitted and self.model.error < MOVES_PREDICT

    def sample(self) -> npt.NDArray[np.float64]:
        """Return a sample of what features are worth, given the answers."""
        return self.model.sample(self._features(), self._values, self._rng)

    def climb(self, point: Codes, worth: npt.NDArray[np.float64]) -> Codes:
        """Return a local optimum for these weights, by moves in a random order."""
        order = self._rng.permutation(len(self.changes))
        found = self.model.climb(point, worth, order)
        settled: Codes = self._near.settle(found[None], point, self._rng)[0]
        return settled

    def learn(self, point: Codes, f: float) -> None:
        """Take note of a value, and fit the model whenever there are enough new ones."""
        self._answers += 1
        self._points = np.concatenate([self._points, point[None].astype(np.int32)])
        self._values = np.append(self._values, f)
        if len(self._values) > LATEST * 1.25:  # now and then: features are then computed anew
            self._points, self._values = self._points[-LATEST:], self._values[-LATEST:]
            self._rows, self._fitted, self._fitted_rows = None, 0, 0
        due = max(FIRST_FIT_AT, int(self._fitted * REFIT_GROWTH) + 1)
        if self._answers >= due and len(self._values) >= FIRST_FIT_AT and self.model.usable:
            self._fitted, self._fitted_rows = self._answers, len(self._values)
            self.model.select(self._points, self._values)
            self._rows, self._ranked_at = None, b""
            self.model.fit(self._features(), self._values)

    def revalue(self, values_of: Callable[[Codes], npt.NDArray[np.float64]]) -> None:
        """Fit the model to other values of the same points."""
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
        """Return the state; what the model knows follows from the answers and its form."""
        return {**{name: getattr(self, name) for name in self._STATE}, "form": self.model.form}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, and fit the model as it was."""
        self._check(state)
        for name in self._STATE:
            setattr(self, name, state[name])
        self.model.form, self._rows = state["form"], None
        if self._fitted_rows:
            count = self._fitted_rows
            self.model.fit(self._features()[:count], self._values[:count])

    def _check(self, state: Mapping[str, Any]) -> None:
        """Raise a ValueError if compiled loops could not use this."""
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
