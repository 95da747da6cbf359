"""The global model: f as a sum over variables and pairs, fitted to all gains that were observed.

It is refitted as the observations grow. While it predicts gains that it has not seen, its effects
replace those of the pair table that are uncertain, and its own maximum is worth a visit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.space import Space
from anyorder.strategies.base import Codes, Index
from anyorder.strategies.delta import layout
from anyorder.strategies.delta.model import Model
from anyorder.strategies.delta.transform import Floats, Pairs, Transform, pair_up

FIRST_FIT = 2  # times n: observations before the first fit
GROWTH, GROWTH_POOR = 1.2, 2.5  # factors from one fit to the next, while it is good and while not
GOOD = 0.95  # squared error relative to that of predicting 0 below which a fit is good
TRUSTED = 0.8  # the same, to be used at all
FIT_NOISE = 0.01  # residual that is tolerated, relative to the root mean square gain
ITERATIONS = 14  # of conjugate gradients
QUICK_ITERATIONS = 5  # the same for a fit that only takes in what was observed since the last one
QUICK_GROWTH = 1.02  # growth of the observations after which that is worthwhile
ROWS = 16  # features that an observation may change
MOST_FEATURES = 2048  # beyond this there is no global model
MOST_BYTES = 100_000_000  # for observations; the oldest are overwritten
STARTS = 3  # of tabu search, until its maximum is a new one
STEPS = (4, 8, 2)  # times n: length of tabu search from the best point, and from random ones
MOST_STEPS = 2000  # of one tabu search
REMEMBERED = 16  # maxima that were visited
EXACT = 2**22  # values of an integer up to which a feature in 32 bits tells them apart
RECENT, RECENT_N = 2048, 4  # the last observations that tell the scale: so many, or times n
REPLAYED = 1024  # observations that are learned again at a time


class Pairwise:
    """The global model.

    Parameters
    ----------
    space
        Where to search.
    model
        Its links are the model's prior, and its table of pairs takes over the fitted effects.
    """

    def __init__(self, space: Space, model: Model) -> None:
        self._model, self._kernels = model, model._kernels
        values = space.cardinalities.astype(np.int64)
        ordered = model.arrays.kind == layout.ORDERED
        many = np.where(ordered, layout.POWERS, layout.INDICATORS)
        self._kinds = np.where(values == 2, layout.SPIN, many).astype(np.int64)
        lengths = np.where(values == 2, 1, np.where(ordered, 2, values))
        self._first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self._values = values
        # One number where all are the same: to draw points takes a quarter of the time then.
        self._bounds = int(values[0]) if (values == values[0]).all() else values
        m = int(self._first[-1])
        self.enabled = m <= MOST_FEATURES
        self._m = m if self.enabled else 0
        # Whether the points of observations can be told from their features.
        self.can_replay = self.enabled and not (ordered & (values > EXACT)).any()
        self._capacity = max(MOST_BYTES // (4 * m + 8 * ROWS), 1)
        self.effects = np.zeros((self._m, self._m), np.float32)
        self.biases = np.zeros(self._m, np.float32)
        self._allocate(256 if self.enabled else 0)
        self._count = 0  # observations in all
        self._fitted = 0  # of them when the model was last fitted
        self._next_fit = FIRST_FIT * len(space)
        self.fits = 0
        # running means of squared errors: of this model, of the pairs, of predicting 0
        self._errors = (0.0, 0.0, 0.0)
        self._weight = 0
        self.trusted = False
        self._maxima = np.zeros((0, len(space)), np.int32)

    def _allocate(self, rows: int) -> None:
        self._rows = np.zeros((rows, ROWS), np.int32)
        self._steps = np.zeros((rows, ROWS), np.float32)
        self._phis = np.zeros((rows, self._m), np.float32)
        self._gains = np.zeros(rows, np.float32)
        # The variable and both its values, or minus the number of variables that change; and f at
        # both points, on the scale that is modelled.
        self._changes = np.zeros((rows, 3), np.int32)
        self._levels = np.zeros((rows, 2), np.float64)
        self._bind()

    def _bind(self) -> None:
        """Put together what a kernel needs to learn a gain: this is done at every evaluation."""
        self._tables = (
            *self._model.buffers, self._kinds, self._first, self._values, self.effects,
            self.biases, *self._observations(),
        )  # fmt: skip

    def _observations(self) -> tuple[npt.NDArray[Any], ...]:
        return (
            self._rows, self._steps, self._phis, self._gains, self._changes, self._levels,
        )  # fmt: skip

    @property
    def error(self) -> float:
        """Squared error relative to that of predicting 0, on gains before they were fitted."""
        own, _, zero = self._errors
        return own / zero if zero > 0 else 1.0

    def observe(self, seed: int, variable: int, value: int, f: float, climb: bool = True) -> bool:
        """Teach both models f at a neighbour; with `climb`, move there if it is better.

        Returns whether the present point moved.
        """
        scalar, place = self._model.scalar, -1
        gain = f - scalar(layout.VALUE)
        if self.enabled:
            if self._count == len(self._gains) < self._capacity:
                self._grow()
            place = self._count % len(self._gains)
            self._count += 1
        moved: bool
        moved, predicted = self._kernels.observe(
            *self._tables, place, seed, variable, value, f, climb
        )
        if self.fits and scalar(layout.KNOWN):
            self._track(gain, predicted, scalar(layout.PREDICTED))
        if self._count >= self._next_fit:
            self._update()
        return moved

    def note_several(self, x: Codes, y: Codes, value: float, f: float) -> None:
        """Write down the values of f at two points, unless too much changes between them."""
        if not self.enabled:
            return
        if self._count == len(self._gains) < self._capacity:
            self._grow()
        self._count += self._kernels.note_several(
            self._kinds, self._first, self._values, x, y, *self._observations(),
            self._count % len(self._gains), value, f,
        )  # fmt: skip

    def _track(self, gain: float, own: float, other: float) -> None:
        """Keep the record of both models: what this one and the other predicted of a gain."""
        self._weight += 1
        rate = 1 / min(self._weight, 2 * len(self._kinds))
        errors, others, zero = self._errors
        self._errors = (
            errors + rate * ((gain - own) ** 2 - errors),
            others + rate * ((gain - other) ** 2 - others),
            zero + rate * (gain * gain - zero),
        )

    def _grow(self) -> None:
        old = self._observations()
        self._allocate(min(2 * len(self._gains), self._capacity))
        for new, kept in zip(self._observations(), old, strict=True):
            new[: len(kept)] = kept

    def _update(self) -> None:
        """Refit, and say when to do so again."""
        model, scalars = self._model, self._model.scalars
        error, found, zero = self._errors
        good = self.fits == 0 or error < GOOD * zero
        self._next_fit = int(self._count * (GROWTH if good else GROWTH_POOR)) + 4
        square = scalars.item(layout.SUM_SQUARES) / max(scalars.item(layout.GAINS), 1.0)
        if not square > 0:
            return
        for repeat in range(2 if good else 1):
            self._fit(square, self.fits > 0 or repeat > 0, ITERATIONS)
        self.fits += 1
        enough = self._weight > len(self._kinds) / 2
        self.trusted = enough and error < TRUSTED * zero
        if self.trusted and error < found:
            self._kernels.import_effects(
                *model.buffers, self._kinds, self._first, self.effects, square,
                error / zero, model.tolerance**2,
            )  # fmt: skip
            model.tidy()

    def _fit(self, square: float, again: bool, iterations: int) -> None:
        """Fit to all gains, whose mean square is `square`, from the present effects on."""
        model = self._model
        noise = math.sqrt(FIT_NOISE**2 * square + 2 * model.scalars.item(layout.NOISE))
        scales = np.empty_like(self.effects)
        self._kernels.set_scales(
            *model.buffers, self._kinds, self._first, self.effects, square, again, scales
        )
        self._kernels.fit(
            self._rows, self._steps, self._phis, self._gains,
            min(self._count, len(self._gains)), self.effects, self.biases, scales,
            np.float32(math.sqrt(square / 2)), np.float32(noise), iterations,
        )  # fmt: skip
        self._fitted = self._count

    def refresh(self) -> None:
        """Take in what was observed since the last fit, if it is enough."""
        if self._count < QUICK_GROWTH * self._fitted:
            return
        scalars = self._model.scalars
        square = scalars.item(layout.SUM_SQUARES) / max(scalars.item(layout.GAINS), 1.0)
        if square > 0:
            self._fit(square, True, QUICK_ITERATIONS)

    # --- another scale --------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many observations there were."""
        return self._count

    def pairs(self, transform: Transform) -> Pairs:
        """Pairs of recent gains of the same change, in units of f.

        `transform` is the present one.
        """
        recent = min(self._count, len(self._gains), max(RECENT, RECENT_N * len(self._kinds)))
        which = np.arange(self._count - recent, self._count) % len(self._gains)
        levels = self._levels[which]
        if transform.sign:
            levels = _mapped(transform.inverse, levels)
        return pair_up(self._changes[which], levels)

    def rescale(self, change: Callable[[float], float]) -> None:
        """Learn all observations anew, in both models, after values have changed to this scale.

        The present point has no value after that.
        """
        kept = min(self._count, len(self._gains))
        changes, levels = self._changes[:kept], self._levels[:kept]
        levels[:] = _mapped(change, levels)
        self._gains[:kept] = (levels[:, 1] - levels[:, 0]) / np.sqrt(np.maximum(-changes[:, 0], 1))
        self.effects[:], self.biases[:] = 0.0, 0.0
        self.fits, self._fitted, self._next_fit = 0, 0, FIRST_FIT * len(self._kinds)
        self._errors, self._weight, self.trusted = (0.0, 0.0, 0.0), 0, False
        self._model.begin_again()
        oldest = self._count % len(self._gains) if self._count > kept else 0
        for start in range(0, kept, REPLAYED):
            some = (oldest + np.arange(start, min(start + REPLAYED, kept))) % kept
            some = some[changes[some, 0] >= 0]
            for point, k in zip(self._points(some), some.tolist(), strict=True):
                variable, _, new = changes[k].tolist()
                value, f = levels[k].tolist()
                self._model.go_to(point, value)
                self._kernels.observe(*self._tables, -1, 0, variable, new, f, False)
        if self._count >= self._next_fit:
            self._update()

    def _points(self, which: Index) -> Codes:
        """The points at which single changes were observed, from their features."""
        phis = self._phis[which]
        points = np.empty((len(which), len(self._kinds)), np.int32)
        for i, (kind, first) in enumerate(zip(self._kinds, self._first, strict=False)):
            if kind == layout.SPIN:
                points[:, i] = phis[:, first] > 0
            elif kind == layout.INDICATORS:
                points[:, i] = phis[:, first : self._first[i + 1]].argmax(axis=1)
            else:
                points[:, i] = np.rint((phis[:, first] + 1.0) * ((self._values[i] - 1) / 2))
        return points

    def maximum(self, best: Codes, rng: np.random.Generator) -> Codes | None:
        """A maximum of the model, found by tabu search, that is new; None if there is none."""
        n, visited = len(best), {best.tobytes(), *(row.tobytes() for row in self._maxima)}
        for k in range(STARTS):
            start = best if k == 0 else rng.integers(self._bounds, size=n, dtype=np.int32)
            steps = min(STEPS[k] * n, MOST_STEPS)
            seed = rng.bit_generator.random_raw() >> 1
            point: Codes = self._kernels.maximise(
                self._kinds, self._first, self._values, self.effects, self.biases, start, steps,
                seed,
            )  # fmt: skip
            if point.tobytes() not in visited:
                self._maxima = np.concatenate([self._maxima, point[None]])[-REMEMBERED:]
                return point
        return None

    _STATE = (
        "effects", "biases", "_rows", "_steps", "_phis", "_gains", "_changes", "_levels", "_count",
        "_fitted", "_next_fit", "fits", "_errors", "_weight", "trusted", "_maxima",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """All that changes."""
        return {name: getattr(self, name) for name in self._STATE}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; ValueError if it does not fit."""
        if np.shape(state["effects"]) != self.effects.shape:
            raise ValueError("the state's global model belongs to another space")
        for name in self._STATE:
            setattr(self, name, state[name])
        self._bind()


def _mapped(change: Callable[[float], float], levels: Floats) -> Floats:
    """Each value on another scale."""
    found = np.array([change(value) for value in levels.ravel().tolist()], np.float64)
    return found.reshape(levels.shape)
