"""The global model: f as a sum over variables and pairs, fitted to all gains that were observed.

It is refitted as the observations grow. While it predicts gains that it has not seen, its effects
replace those of the pair table that are uncertain, and its own maximum is worth a visit.
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
from anyorder.strategies.models.observations import Observations, mapped
from anyorder.strategies.models.scale import Floats, Pairs, Transform, pair_up

FIRST_FIT = 2  # times n: observations before the first fit
GROWTH_GOOD = 1.2  # factor from one fit to the next, while it is good
GROWTH_POOR = 2.5  # and while it is not
GOOD = 0.95  # squared error relative to that of predicting 0 below which a fit is good
TRUSTED = 0.8  # the same, to be used at all
FIT_NOISE = 0.01  # residual that is tolerated, relative to the root mean square gain
ITERATIONS = 14  # of conjugate gradients
QUICK_ITERATIONS = 5  # the same for a fit that only takes in what was observed since the last one
QUICK_GROWTH = 1.02  # growth of the observations after which that is worthwhile
MOST_FEATURES = 2048  # beyond this there is no global model
TABU_STARTS = 3  # of tabu search, until its maximum is a new one
TABU_STEPS = (4, 8, 2)  # times n: length of tabu search from the best point, and from random ones
MOST_STEPS = 2000  # of one tabu search
REMEMBERED = 16  # maxima that were visited
EXACT_VALUES = 2**22  # values of an integer up to which a feature in 32 bits tells them apart
RECENT, RECENT_N = 2048, 4  # the last observations that tell the scale: so many, or times n
REPLAYED = 1024  # observations that are learned again at a time


class Quadratic:
    """The global model.

    Parameters
    ----------
    columns
        What it sees of points: its points have these columns.
    model
        Its links are the model's prior, and its table of pairs takes over the fitted effects.
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
        # One number where all are the same: to draw points takes a quarter of the time then.
        self._bounds = int(values[0]) if (values == values[0]).all() else values
        m = int(self._first[-1])
        self.enabled = m <= MOST_FEATURES
        m = m if self.enabled else 0
        # Whether the points of observations can be told from their features.
        self.can_replay = self.enabled and not (
            columns.numbers.any() or (ordered & (values > EXACT_VALUES)).any()
        )
        self.observations = Observations(m)
        self.effects = np.zeros((m, m), np.float32)
        self.biases = np.zeros(m, np.float32)
        self._bind()
        self._fitted = 0  # observations when the model was last fitted
        self._next_fit = FIRST_FIT * len(columns)
        self.fits = 0
        self._record = Record(0.0, 0.0, 0.0, 0)
        self.trusted = False
        self._maxima = np.zeros((0, len(columns)), np.int32)

    def _bind(self) -> None:
        """Put together what a kernel needs to learn a gain: this is done at every evaluation."""
        self._tables = (
            *self._model.buffers, self._kinds, self._first, self._values, self.effects,
            self.biases, *self.observations.arrays,
        )  # fmt: skip

    @property
    def error(self) -> float:
        """Squared error relative to that of predicting 0, on gains before they were fitted."""
        own, _, zero, _ = self._record
        return own / zero if zero > 0 else 1.0

    def observe(self, seed: int, variable: int, value: int, f: float, climb: bool = True) -> bool:
        """Teach both models f at a neighbour; with `climb`, move there if it is better.

        Returns whether the present point moved.
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
        """Write down the values of f at two points, unless too much changes between them."""
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
        """Refit, and say when to do so again."""
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
        """Put effects in the table of pairs, where it is less certain. `square`: see `_fit`."""
        self._kernels.import_effects(
            *self._model.buffers, self._kinds, self._first, self.effects, square, self.error,
            self._model.tolerance**2,
        )  # fmt: skip
        self._model.tidy()

    def _fit(self, square: float, again: bool, iterations: int) -> None:
        """Fit to all gains, whose mean square is `square`, from the present effects on."""
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
        """Take in what was observed since the last fit, if it is enough."""
        if self.observations.count < QUICK_GROWTH * self._fitted:
            return
        scalars = self._model.scalars
        square = scalars.item(layout.SUM_SQUARES) / max(scalars.item(layout.GAINS), 1.0)
        if square > 0:
            self._fit(square, True, QUICK_ITERATIONS)

    # --- another scale --------------------------------------------------------------------------

    def pairs(self, transform: Transform) -> Pairs:
        """Return pairs of recent gains of the same change, in units of f.

        `transform` is the present one.
        """
        observations = self.observations
        which = observations.latest(max(RECENT, RECENT_N * len(self._kinds)))
        levels = observations.levels[which]
        if transform.sign:
            levels = mapped(transform.inverse, levels)
        return pair_up(observations.changes[which], levels)

    def rescale(self, change: Callable[[float], float]) -> None:
        """Learn all observations anew, in both models, after values have changed to this scale.

        The present point has no value after that.
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
        """Take the place of a fit to a weighted sum of functions, from the fits to each."""
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
        """Return the points at which single changes were observed, from their features."""
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
        """Return a new maximum of the model, found by tabu search; None if there is none."""
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
        """Return the state, which `restore` takes over."""
        own = {name: getattr(self, name) for name in self._STATE}
        return {**own, "record": tuple(self._record), "observations": self.observations.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; ValueError if it does not fit."""
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
    """Running means of squared errors on gains before they were learned, and their weight.

    Of the global model, of the pairs, and of predicting 0.
    """

    own: float
    pairs: float
    zero: float
    weight: int

    def add(self, gain: float, own: float, pairs: float, most: int) -> Record:
        """Return the record with what both models predicted of a gain; `most`: its memory."""
        weight = self.weight + 1
        rate = 1 / min(weight, most)
        return Record(
            self.own + rate * ((gain - own) ** 2 - self.own),
            self.pairs + rate * ((gain - pairs) ** 2 - self.pairs),
            self.zero + rate * (gain * gain - self.zero),
            weight,
        )
