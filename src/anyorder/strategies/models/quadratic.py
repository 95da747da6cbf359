"""The global model: f as a sum over variables and pairs of variables, fitted to all observed gains.

The model is fitted again as the observations grow. It is trusted while it predicts gains before it
is fitted to them. Then its effects replace uncertain means of the pair table, and its maximum is
worth an evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from anyorder.strategies.base import Codes, Index
from anyorder.strategies.models import layout
from anyorder.strategies.models.checking import check_points
from anyorder.strategies.models.columns import Columns
from anyorder.strategies.models.gains import GainModel
from anyorder.strategies.models.observations import Observations, map_values
from anyorder.strategies.models.scale import Floats, Pairs, Transform, pair_up

FIRST_FIT = 2  # times n: observations before the first fit of the global model
GROWTH_GOOD = 1.2  # growth of the observations between two fits of the global model, if it is good
GROWTH_POOR = 2.5  # growth of the observations between two fits, if the global model is not good
GOOD = 0.95  # largest squared error of a good global model, as a share of squared gains
TRUSTED = 0.8  # largest squared error of a trusted global model, as a share of squared gains
FIT_NOISE = 0.01  # residual that a fit tolerates, relative to the root mean square gain
ITERATIONS = 14  # iterations of conjugate gradients in a fit of the global model
QUICK_ITERATIONS = 5  # iterations of conjugate gradients in a quick fit, before a leap
QUICK_GROWTH = 1.02  # growth of the observations since the last fit that leads to a quick fit
MOST_FEATURES = 2048  # with more features there is no global model
TABU_STARTS = 3  # starts of tabu search to find a maximum that was not visited yet
TABU_STEPS = (4, 8, 2)  # times n: steps of tabu search from the best point and from two random ones
MOST_STEPS = 2000  # the most steps of one tabu search
REMEMBERED = 16  # the latest maxima of the global model, which leaps do not visit again
EXACT_VALUES = 2**22  # if an integer has more values, its feature in 32 bits does not determine it
# the scale is chosen by the last 2,048 or 4n observations, whichever are more
RECENT, RECENT_N = 2048, 4
REPLAYED = 1024  # observations that are converted at a time when all are learned again


class Quadratic:
    """The global model.

    Parameters
    ----------
    columns
        The columns of the points of the model.
    model
        The model of gains. Its links determine the prior of the fit, and its table of pairs
        receives the fitted effects.

    Attributes
    ----------
    enabled
        Whether there are few enough features.
    can_replay
        Whether all observations can be learned again on another scale.
    effects, biases
        The weights of pairs of features and of single features.
    fits
        The number of fits on the present scale.
    trusted
        Whether the model predicts well enough to be used.
    """

    def __init__(self, columns: Columns, model: GainModel) -> None:
        self._model, self._kernels = model, model._kernels
        values = columns.cardinalities.astype(np.int64)
        ordered = model.arrays.kind == layout.ORDERED
        many = np.where(ordered, layout.POWERS, layout.INDICATORS)
        many = np.where(columns.numbers, layout.NOTHING, many)
        self._kinds = np.where(values == 2, layout.SPIN, many).astype(np.int64)
        lengths = np.where(values == 2, 1, np.where(ordered, 2, values)) * ~columns.numbers
        self._first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self._cardinalities, self._values = values, columns.values.astype(np.int64)
        # a single number if all are equal: drawing points is then four times as fast
        self._bounds = int(values[0]) if (values == values[0]).all() else values
        m = int(self._first[-1])
        self.enabled = m <= MOST_FEATURES
        m = m if self.enabled else 0
        # whether the points of observations can be computed from their features
        self.can_replay = self.enabled and not (
            columns.numbers.any() or (ordered & (values > EXACT_VALUES)).any()
        )
        self.observations = Observations(m)
        self.effects = np.zeros((m, m), np.float32)
        self.biases = np.zeros(m, np.float32)
        self._bind()
        self._fitted = 0  # the number of observations when the model was last fitted
        self._next_fit = FIRST_FIT * len(columns)
        self.fits = 0
        self._record = Record(0.0, 0.0, 0.0, 0)
        self.trusted = False
        self._maxima = np.zeros((0, len(columns)), np.int32)

    def _bind(self) -> None:
        """Collect the arguments of the kernel that learns a gain at every evaluation."""
        self._tables = (
            *self._model.buffers, self._kinds, self._first, self._values, self.effects,
            self.biases, *self.observations.arrays,
        )  # fmt: skip

    @property
    def error(self) -> float:
        """The squared error relative to that of predicting 0, on gains before they were fitted."""
        own, _, zero, _ = self._record
        return own / zero if zero > 0 else 1.0

    def observe(self, seed: int, variable: int, value: int, f: float, climb: bool = True) -> bool:
        """Teach both models the value f of a neighbour of the present point.

        With `climb`, move there if it is better. Return whether the present point has moved.
        """
        scalar, place = self._model.scalar, -1
        gain = f - scalar(layout.VALUE)
        if self.enabled:
            if self.observations.make_room():
                self._bind()
            place = self.observations.place
            self.observations.count += 1
        moved: bool
        moved, predicted = self._kernels.observe(
            *self._tables, place, seed, variable, value, f, climb
        )
        if self.fits and scalar(layout.KNOWN):
            most = 2 * len(self._kinds)
            self._record = self._record.add(gain, predicted, scalar(layout.PREDICTED), most)
        if self.observations.count >= self._next_fit:
            self._update()
        return moved

    def note_several(self, x: Codes, y: Codes, value: float, f: float) -> None:
        """Add the values of f at two points as an observation, unless too many features differ."""
        if not self.enabled:
            return
        observations = self.observations
        if observations.make_room():
            self._bind()
        observations.count += self._kernels.note_several(
            self._kinds, self._first, self._values, x, y, *observations.arrays,
            observations.place, value, f,
        )  # fmt: skip

    def _update(self) -> None:
        """Fit the model, and set the number of observations for the next fit."""
        scalars = self._model.scalars
        error, found, zero, weight = self._record
        good = self.fits == 0 or error < GOOD * zero
        self._next_fit = int(self.observations.count * (GROWTH_GOOD if good else GROWTH_POOR)) + 4
        square = scalars.item(layout.SUM_SQUARES) / max(scalars.item(layout.GAINS), 1.0)
        if not square > 0:
            return
        for repeat in range(2 if good else 1):
            self._fit(square, self.fits > 0 or repeat > 0, ITERATIONS)
        self.fits += 1
        enough = weight > len(self._kinds) / 2
        self.trusted = enough and error < TRUSTED * zero
        if self.trusted and error < found:
            self._hand_over(square)

    def _hand_over(self, square: float) -> None:
        """Put effects into the table of pairs where the table is less certain; see `_fit`."""
        self._kernels.import_effects(
            *self._model.buffers, self._kinds, self._first, self.effects, square, self.error,
            self._model.tolerance**2,
        )  # fmt: skip
        self._model.tidy()

    def _fit(self, square: float, again: bool, iterations: int) -> None:
        """Fit the model to all gains, whose mean square is `square`, from the present effects."""
        model = self._model
        noise = math.sqrt(FIT_NOISE**2 * square + 2 * model.scalars.item(layout.NOISE))
        scales, observations = np.empty_like(self.effects), self.observations
        self._kernels.set_scales(
            *model.buffers, self._kinds, self._first, self.effects, square, again, scales
        )
        self._kernels.fit(
            *observations.arrays[:4], observations.kept, self.effects, self.biases, scales,
            np.float32(math.sqrt(square / 2)), np.float32(noise), iterations,
        )  # fmt: skip
        self._fitted = observations.count

    def refresh(self) -> None:
        """Fit the model quickly, if there are enough observations since the last fit."""
        if self.observations.count < QUICK_GROWTH * self._fitted:
            return
        scalars = self._model.scalars
        square = scalars.item(layout.SUM_SQUARES) / max(scalars.item(layout.GAINS), 1.0)
        if square > 0:
            self._fit(square, True, QUICK_ITERATIONS)

    # --- another scale --------------------------------------------------------------------------

    def pairs(self, transform: Transform) -> Pairs:
        """Return pairs of recent gains of the same change, in units of f.

        `transform` is the present scale.
        """
        observations = self.observations
        which = observations.latest(max(RECENT, RECENT_N * len(self._kinds)))
        levels = observations.levels[which]
        if transform.sign:
            levels = map_values(transform.inverse, levels)
        return pair_up(observations.changes[which], levels)

    def rescale(self, change: Callable[[float], float]) -> None:
        """Convert all values to another scale by `change`, and teach both models again.

        The present point is then another one, whose value means nothing.
        """
        observations = self.observations
        observations.rescale(change)
        self.effects[:], self.biases[:] = 0.0, 0.0
        self.fits, self._fitted, self._next_fit = 0, 0, FIRST_FIT * len(self._kinds)
        self._record, self.trusted = Record(0.0, 0.0, 0.0, 0), False
        self._model.begin_again()
        places = observations.latest(observations.kept)
        for start in range(0, len(places), REPLAYED):
            some = places[start : start + REPLAYED]
            some = some[observations.changes[some, 0] >= 0]
            for point, k in zip(self._points(some), some.tolist(), strict=True):
                variable, _, new = observations.changes[k].tolist()
                value, f = observations.levels[k].tolist()
                self._model.go_to(point, value)
                self._kernels.observe(*self._tables, -1, 0, variable, new, f, False)
        if observations.count >= self._next_fit:
            self._update()

    # --- another function -------------------------------------------------------------------------

    def blend(self, parts: Sequence[Quadratic], weights: Floats) -> None:
        """Become the model of a weighted sum of functions, given the model of each function."""
        first = parts[0]
        self.effects[:] = sum(a * part.effects for a, part in zip(weights, parts, strict=True))
        self.biases[:] = sum(a * part.biases for a, part in zip(weights, parts, strict=True))
        self.observations.blend([part.observations for part in parts], weights)
        self._bind()
        self._fitted, self._next_fit, self.fits = first._fitted, first._next_fit, first.fits
        errors = (weights**2) @ np.array([part._record[:3] for part in parts])
        own, pairs, zero = errors.tolist()
        self._record = Record(own, pairs, zero, first._record.weight)
        self.trusted = all(part.trusted for part in parts)
        self._maxima = self._maxima[:0]

    def _points(self, which: Index) -> Codes:
        """Return the points of observations of single changes, computed from their features."""
        phis = self.observations.phis[which]
        points = np.empty((len(which), len(self._kinds)), np.int32)
        for i, (kind, first) in enumerate(zip(self._kinds, self._first, strict=False)):
            if kind == layout.SPIN:
                points[:, i] = phis[:, first] > 0
            elif kind == layout.INDICATORS:
                points[:, i] = phis[:, first : self._first[i + 1]].argmax(axis=1)
            else:
                points[:, i] = np.rint((phis[:, first] + 1.0) * ((self._cardinalities[i] - 1) / 2))
        return points

    def maximum(self, best: Codes, rng: np.random.Generator) -> Codes | None:
        """Return a maximum of the model, by tabu search, that was not visited yet; or None."""
        held = self._values < self._cardinalities
        n, visited = len(best), {best.tobytes(), *(row.tobytes() for row in self._maxima)}
        for k in range(TABU_STARTS):
            start = best if k == 0 else rng.integers(self._bounds, size=n, dtype=np.int32)
            start = np.where(held, best, start).astype(np.int32)
            steps = min(TABU_STEPS[k] * n, MOST_STEPS)
            seed = rng.bit_generator.random_raw() >> 1  # kernels take signed integers
            point: Codes = self._kernels.maximise(
                self._kinds, self._first, self._values, self.effects, self.biases, start, steps,
                seed,
            )  # fmt: skip
            if point.tobytes() not in visited:
                self._maxima = np.concatenate([self._maxima, point[None]])[-REMEMBERED:]
                return point
        return None

    _STATE = (
        "effects", "biases", "_fitted", "_next_fit", "fits", "trusted", "_maxima",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        own = {name: getattr(self, name) for name in self._STATE}
        return {**own, "record": tuple(self._record), "observations": self.observations.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned; ValueError if it does not fit."""
        for name in ("effects", "biases"):
            own, given = getattr(self, name), np.asarray(state[name])
            if given.shape != own.shape or given.dtype != own.dtype:
                raise ValueError(f"the state's {name!r} has shape {given.shape}: it is damaged")
        check_points(state["_maxima"], self._cardinalities)
        self.observations.restore(state["observations"], self._cardinalities)
        for name in self._STATE:
            setattr(self, name, state[name])
        self._record = Record(*state["record"])
        self._bind()


class Record(NamedTuple):
    """Running means of squared errors on gains before they were learned.

    Attributes
    ----------
    own, pairs, zero
        The errors of the global model, of the model of gains, and of predicting 0.
    weight
        The number of gains.
    """

    own: float
    pairs: float
    zero: float
    weight: int

    def add(self, gain: float, own: float, pairs: float, most: int) -> Record:
        """Return the means with another gain, given both predictions.

        The means decay over `most` gains.
        """
        weight = self.weight + 1
        rate = 1 / min(weight, most)
        return Record(
            self.own + rate * ((gain - own) ** 2 - self.own),
            self.pairs + rate * ((gain - pairs) ** 2 - self.pairs),
            self.zero + rate * (gain * gain - self.zero),
            weight,
        )
