"""The landscape: a present point, and both models of f, on the scale where they predict best.

All values that go in and out are values of f. The landscape chooses the scale of the models, and
converts values to it and back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder.space import Space
from anyorder.strategies.base import Codes
from anyorder.strategies.models import layout
from anyorder.strategies.models.checking import check_points
from anyorder.strategies.models.columns import Columns
from anyorder.strategies.models.gains import GainModel
from anyorder.strategies.models.quadratic import Quadratic
from anyorder.strategies.models.scale import FIRST_LOOK, IDENTITY, LOOK_GROWTH, Transform, choose

# the model of gains predicts well if its squared error is below this share of the squared gains
PREDICTS = 0.7
SURPRISE = 100.0  # times the tolerance: the error of a certain prediction that was wrong


class Step(NamedTuple):
    """The most promising change of the present point.

    Attributes
    ----------
    optimum
        Whether no change is worth an evaluation; the variable and the code then mean nothing.
    variable, code
        The most promising change.
    moves
        The number of changes that were made before, as they were certain to improve the value.
    """

    optimum: bool
    variable: int
    code: int
    moves: int


class Landscape:
    """The present point, and models of the gains of its changes.

    Parameters
    ----------
    space
        The search space. ValueError if tables over pairs of its variables do not fit in 500 MB.
    rng
        The generator of the landscape and its models.

    Attributes
    ----------
    columns
        The columns that the models read.
    gains, quadratic
        The model of gains and the global model.
    """

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self._rng = rng
        self.columns = columns = Columns(space)
        self.gains = GainModel(columns, rng)
        self.quadratic = Quadratic(columns, self.gains)
        self._transform = IDENTITY
        self._n, self._cardinalities = len(columns), space.cardinalities
        self._lists = np.zeros(len(space), np.int32)  # a point with the lists of the present one
        # the number of observations at which the scale is considered next
        self._next_look = FIRST_LOOK * self._n if self.quadratic.can_replay else math.inf
        self._f = math.nan  # the value of the present point, if it was measured
        self._forgot = 0.0  # the number of gains when the means of pairs were last forgotten

    def seed(self) -> int:
        """Return a seed for a kernel."""
        raw: int = self._rng.bit_generator.random_raw()
        return raw >> 1  # fits an int64

    # --- the present point ------------------------------------------------------------------------

    @property
    def point(self) -> Codes:
        """The present point; in spaces without lists an array that the next move overwrites."""
        return self.columns.put(self.gains.point, self._lists)

    @property
    def measured(self) -> bool:
        """Whether the value of the present point was measured."""
        return self.gains.scalar(layout.MEASURED) > 0

    @property
    def value(self) -> float:
        """The value of the present point: measured, or predicted, or NaN if it is not known."""
        return self._f if self.gains.measured else self._transform.inverse(self.gains.value)

    def go_to(self, point: Codes, f: float = math.nan) -> None:
        """Make a point the present one; `f` is its value, or NaN if it was not measured."""
        self._f = f
        if not self.columns.whole:
            self._lists = point.copy()
        measured, seen = not math.isnan(f), self.columns.of(point)
        self.gains.go_to(seen, self._transform(f) if measured else math.nan, measured=measured)

    def measure(self, f: float) -> bool:
        """Set the measured value of the present point; return whether its prediction was wrong."""
        gains = self.gains
        value = self._transform(f)
        wrong = abs(value - gains.value) > SURPRISE * gains.tolerance
        self._f = f
        gains.arrive(value)
        return wrong

    def average(self, f: float, readings: int) -> None:
        """Learn a further measurement of the present point; its value becomes the mean of all."""
        self.gains.average(self._transform(f), readings)
        self._f = self._transform.inverse(self.gains.value)

    def above(self, one: float, other: float) -> bool:
        """Return whether `one` is above `other` by more than rounding errors."""
        return self._transform(one) > self._transform(other) + self.gains.slack

    # --- changes ----------------------------------------------------------------------------------

    def advance(self, free: int) -> Step:
        """Make up to `free` changes that are certain improvements; return the most promising next.

        See `Step`.
        """
        if not len(self.columns.free):
            return Step(True, 0, 0, 0)
        optimum, variable, code, moves = self.gains.advance(self.seed(), free)
        return Step(bool(optimum), int(self.columns.free[variable]), code, moves)

    def observe(self, variable: int, code: int, f: float, *, climb: bool = True) -> bool:
        """Learn the value of a neighbour of the present point, which was measured.

        With `climb`, move there if it is better. Return whether the present point has moved.
        """
        place = self.columns.place(variable)
        moved = self.quadratic.observe(self.seed(), place, code, self._transform(f), climb)
        if moved:
            self._f = f
        return moved

    def exclude(self, variable: int, code: int, *, failed: bool = False) -> None:
        """Exclude a change until the present point moves; if it failed, remember that as well."""
        self.gains.exclude(self.columns.place(variable), code, failed=failed)

    def learn_elsewhere(self, base: Codes, at: float, variable: int, code: int, f: float) -> None:
        """Learn the value f of a change of `base`, whose value is `at`; f is NaN if it failed."""
        present, kept, measured = self.gains.point.copy(), self._f, self.gains.measured
        lists = self._lists
        predicted = self.gains.value
        self.go_to(base, at)
        if math.isnan(f):
            self.exclude(variable, code, failed=True)
        else:
            self.observe(variable, code, f, climb=False)
        self._f, self._lists = kept, lists
        self.gains.go_to(present, predicted, measured=measured)

    def note(self, x: Codes, y: Codes, at_x: float, at_y: float) -> None:
        """Teach the global model the values of two points that differ in several variables."""
        x, y = self.columns.of(x), self.columns.of(y)
        self.quadratic.note_several(x, y, self._transform(at_x), self._transform(at_y))

    def add_confident(self, variable: int, code: int, deviations: float) -> bool:
        """Make a change if its predicted gain is more than so many standard deviations.

        Return whether it was made. The value of the present point is then a prediction.
        """
        gains = self.gains
        place = self.columns.place(variable)
        found = gains.predict(place, code)
        deviation = math.sqrt(gains.scalars.item(layout.CALIBRATION) * found.variance)
        if not found.known or found.gain <= max(deviations * deviation, gains.slack):
            return False
        together = gains.point.copy()
        together[place] = code
        gains.go_to(together, gains.value + found.gain, measured=False)
        return True

    # --- several changes --------------------------------------------------------------------------

    def kick(self, *, gentle: bool) -> None:
        """Change some variables of the present point; its value is NaN unless that is certain."""
        if not self.gains.kick(self.seed(), gentle=gentle):
            self.gains.scalars[layout.VALUE] = math.nan

    def mutate(self, point: Codes, changes: int) -> None:
        """Change so many variables of a point, in place; linked variables more often together."""
        seen = self.columns.of(point)
        self.gains.mutate(self.seed(), seen, changes)
        point[:] = self.columns.put(seen, point)

    def exchange(self, point: Codes) -> bool:
        """Exchange the values of two variables of a point, in place; return whether it could."""
        seen = self.columns.of(point)
        done = self.gains.exchange(self.seed(), seen)
        point[:] = self.columns.put(seen, point)
        return done

    def maximum(self, start: Codes) -> Codes | None:
        """Return a maximum of the global model that was not visited yet; None if there is none."""
        self.quadratic.refresh()
        found = self.quadratic.maximum(self.columns.of(start), self._rng)
        return None if found is None else self.columns.put(found, start)

    # --- trust ------------------------------------------------------------------------------------

    @property
    def predicts(self) -> bool:
        """Whether the model of gains predicts well."""
        scalar = self.gains.scalar
        return scalar(layout.ERROR) < PREDICTS * scalar(layout.ERROR_NONE)

    @property
    def trusted(self) -> bool:
        """Whether the global model predicts well enough to be used."""
        return self.quadratic.trusted

    @property
    def noisy(self) -> bool:
        """Whether values of one point are known to differ."""
        return self.gains.scalar(layout.NOISE) > 0

    @property
    def doubtful(self) -> bool:
        """Whether values of one point may differ.

        This is suspected if no two gains were ever equal, or many certain predictions were wrong.
        """
        scalar = self.gains.scalar
        wrong = scalar(layout.WRONG) > 0.5 * scalar(layout.CERTAIN)
        return wrong or (scalar(layout.COINCIDENCES) == 0 and scalar(layout.GAINS) > 0)

    def add_noise(self, one: float, other: float, repeats: int) -> None:
        """Learn two values of one point; `repeats` is the number of such pairs so far."""
        self.gains.add_noise(self._transform(one) - self._transform(other), repeats)

    # --- between climbs ---------------------------------------------------------------------------

    def tidy(self, *, clean: bool) -> None:
        """Forget the means of pairs if they do harm, and with `clean`, remove rounding errors."""
        scalar, gained = self.gains.scalar, self.gains.scalar(layout.GAINS)
        forget = (
            scalar(layout.WEIGHT) > 2 * self._n
            and scalar(layout.ERROR_PROFILE) < scalar(layout.ERROR)
            and gained - self._forgot > self._n
        )
        if forget:
            self._forgot = gained
        if forget or clean:
            self.gains.tidy(forget=bool(forget))

    def reconsider(self) -> None:
        """Choose the scale again if there are enough new observations.

        With noise the scale is kept, since no gains agree.
        """
        if self.quadratic.observations.count < self._next_look:
            return
        self._next_look = LOOK_GROWTH * self.quadratic.observations.count
        if not self.noisy:
            self.rescale(choose(self.quadratic.pairs(self._transform), self._transform))

    def rescale(self, new: Transform) -> None:
        """Change to another scale, on which the models learn all observations again."""
        old = self._transform
        if new == old:
            return
        present, value, measured = self.gains.point.copy(), self.value, self.measured
        evaluations = self.gains.evaluations
        self._transform = new
        self.quadratic.rescale(lambda level: new(old.inverse(level)))
        self.gains.go_to(present, new(value), measured=measured)
        scalars = self.gains.scalars
        scalars[layout.EVALUATIONS], scalars[layout.STALE] = evaluations, 1.0

    def keep_scale(self, transform: Transform) -> None:
        """Set the scale of models that were replaced from outside, and do not change it again."""
        self._transform, self._f, self._next_look = transform, math.nan, math.inf
        self._forgot = self.gains.scalar(layout.GAINS)

    def facts(self) -> dict[str, Any]:
        """Return the numbers of links, the error of the global model, the noise, and the scale."""
        gains, scalar = self.gains, self.gains.scalar
        free, spent = scalar(layout.FREE), max(scalar(layout.EVALUATIONS), 1.0)
        return {
            "links": int(gains.links().sum()) // 2,
            "not_linked": int((gains.arrays.link == layout.NOT_LINKED).sum()) // 2,
            "global_model_trusted": self.quadratic.trusted,
            "global_model_error": round(self.quadratic.error, 4),
            "free_moves": round(free / (free + spent), 4),
            "noise": scalar(layout.NOISE) ** 0.5,
            "transform": self._transform.describe(),
        }

    def effects(self) -> npt.NDArray[np.float64]:
        """Return how much a change of one variable alters the gain of another, `(n, n)`.

        The effects are those on the scale of the models.
        """
        effects = self.gains.effects()
        return effects if self.columns.whole else self.columns.square(effects)

    def links(self) -> npt.NDArray[np.bool_]:
        """Return whether each pair of variables is known to interact, `(n, n)`."""
        links = self.gains.links()
        return links if self.columns.whole else self.columns.square(links)

    # --- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {
            "gains": self.gains.state(), "quadratic": self.quadratic.state(),
            "transform": tuple(self._transform), "next_look": self._next_look, "f": self._f,
            "forgot": self._forgot, "lists": self._lists,
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned; ValueError if it does not fit."""
        check_points(state["lists"], self._cardinalities)
        self.gains.restore(state["gains"])
        self.quadratic.restore(state["quadratic"])
        self._transform = Transform(*state["transform"])
        self._next_look, self._f = float(state["next_look"]), float(state["f"])
        self._forgot, self._lists = float(state["forgot"]), state["lists"]
