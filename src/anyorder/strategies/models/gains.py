"""The model of gains: profiles of each variable, and a table of pairs.

*Profiles.* A context is the values of all variables but one. For each variable, the model keeps the
values of f that were seen while only this variable changed, in the last few contexts. *Pairs.* For
each pair of changes, it keeps a mean M and a variance P of the effect that one has on the gain of
the other; for each pair of variables, it keeps whether they are linked. A gain is predicted from
the profile whose context differs from the present point by the least variance, corrected by the sum
of M over the variables that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder._internal.compiling import announce_compilation
from anyorder.strategies.base import Codes
from anyorder.strategies.models import layout
from anyorder.strategies.models.checking import check_model
from anyorder.strategies.models.columns import Columns

# effects below this share of the root mean square gain are rounding errors of a fit in 32 bits
FITTED_TO = 1e-5


class Prediction(NamedTuple):
    """The predicted gain of a change, and its variance; both mean nothing unless `known`."""

    gain: float
    variance: float
    known: bool


class GainModel:
    """A model of the gains of changing one variable of a present point.

    Parameters
    ----------
    columns
        The columns of the points of the model.
    rng
        The generator for the order in which changes are tried first, and for the first point.

    Attributes
    ----------
    arrays
        The named arrays of `layout`.
    scalars
        The numbers of the model, by the constants of `layout`.
    scalar
        `scalar(k)` returns one of these numbers as a float, which is faster than an index.
    point
        The present point; it is changed in place.
    """

    def __init__(self, columns: Columns, rng: np.random.Generator) -> None:
        from anyorder.strategies.models import kernels  # imports Numba

        announce_compilation(kernels.advance, "delta search", 30)
        self._kernels: Any = kernels
        self.sizes = sizes = layout.sizes_of(columns)
        kinds, slots = layout.kinds_of(columns)
        self._integers = np.zeros(sizes.count(layout.INTEGERS), np.int32)
        self._floats = np.zeros(sizes.count(layout.FLOATS), np.float64)
        self._shape = np.array(sizes, np.int64)
        self.buffers = self._shape, self._integers, self._floats
        self.arrays = arrays = layout.views(sizes, self._integers, self._floats)
        self.scalars: npt.NDArray[np.float64] = arrays.scalars
        self.scalar: Callable[[int], float] = arrays.scalars.item
        self.point: Codes = arrays.x
        self._cardinalities = columns.cardinalities
        arrays.values[:] = columns.values
        arrays.kind[:] = kinds
        arrays.first_slot[1:] = np.cumsum(slots)
        order = rng.permutation(sizes.n * sizes.width)
        arrays.order[:] = order.reshape(sizes.n, sizes.width)
        arrays.x[:] = rng.integers(columns.cardinalities)
        self.begin_again()

    def begin_again(self) -> None:
        """Forget all gains, but keep the present point, the order of changes and the counts."""
        arrays, scalars = self.arrays, self.scalars
        counts = scalars.item(layout.EVALUATIONS), scalars.item(layout.FREE)
        for name in ("profiles", "oldest", "differing", "entries", "code", "context", "link"):
            getattr(arrays, name)[:] = 0
        self._floats[:] = 0.0
        arrays.scale[:] = 1.0
        scalars[layout.EVALUATIONS], scalars[layout.FREE] = counts
        scalars[layout.CALIBRATION], scalars[layout.CALIBRATED] = 1.0, 4.0
        scalars[layout.STALE] = 1.0
        scalars[layout.DEGREE] = layout.PRIOR_DEGREE

    @property
    def value(self) -> float:
        """The value of the present point, measured or predicted."""
        return self.scalar(layout.VALUE)

    @property
    def measured(self) -> bool:
        """Whether the value of the present point was measured."""
        return self.scalar(layout.MEASURED) > 0

    @property
    def tolerance(self) -> float:
        """The largest difference of gains that counts as rounding or noise."""
        return self.scalar(layout.TOLERANCE)

    @property
    def slack(self) -> float:
        """The largest difference of values that counts as rounding."""
        return self.scalar(layout.SLACK)

    @property
    def evaluations(self) -> int:
        """The number of values learned."""
        return int(self.scalar(layout.EVALUATIONS))

    def predict(self, variable: int, value: int) -> Prediction:
        """Return the predicted gain of changing one variable of the present point."""
        gain, variance, known = self._kernels.predict_change(*self.buffers, variable, value)
        return Prediction(gain, variance, known)

    def advance(self, seed: int, free: int) -> tuple[int, int, int, int]:
        """Make up to `free` changes that are certain improvements; return the most promising next.

        Return 1 if no change is worth an evaluation, else 0; the variable; its new value; and the
        number of changes made.
        """
        found: tuple[int, int, int, int] = self._kernels.advance(*self.buffers, seed, free)
        return found

    def arrive(self, f: float) -> None:
        """Set the measured value of the present point."""
        scalars = self.scalars
        scalars[layout.VALUE], scalars[layout.MEASURED] = f, 1.0
        scalars[layout.EVALUATIONS] += 1.0

    def average(self, f: float, readings: int) -> None:
        """Learn a further measurement of the present point; its value becomes the mean of all."""
        scalars = self.scalars
        scalars[layout.VALUE] += (f - scalars[layout.VALUE]) / readings
        scalars[layout.EVALUATIONS] += 1.0

    def exclude(self, variable: int, value: int, *, failed: bool = False) -> None:
        """Exclude a change until the present point moves; if it failed, remember that as well."""
        self._kernels.fail(*self.buffers, variable, value, failed)

    def go_to(self, point: Codes, value: float, *, measured: bool = True) -> None:
        """Make another point the present one."""
        if not point.flags.writeable:  # kernels would be compiled again for read-only arrays
            point = point.copy()
        self._kernels.go_to(*self.buffers, point, value, float(measured))

    def kick(self, seed: int, *, gentle: bool) -> bool:
        """Change some variables of the present point; return whether its value is still certain.

        The changes are random, or (`gentle`) changes that are predicted to lose little.
        """
        certain: bool = self._kernels.kick(*self.buffers, seed, gentle)
        return certain

    def exchange(self, seed: int, point: Codes) -> bool:
        """Exchange the values of two variables of a point, in place; return whether it could."""
        done: bool = self._kernels.exchange(*self.buffers, seed, point)
        return done

    def mutate(self, seed: int, point: Codes, changes: int) -> None:
        """Change so many variables of a point, in place; linked variables more often together."""
        self._kernels.mutate(*self.buffers, seed, point, changes)

    def tidy(self, *, forget: bool = False) -> None:
        """Raise the variances of links as far as gains are not additive; remove rounding errors.

        With `forget`, the means of the pairs become variance.
        """
        self._kernels.tidy(*self.buffers, forget)

    def add_noise(self, difference: float, repeats: int) -> None:
        """Learn the difference of two values of one point; `repeats` counts such pairs so far."""
        scalars = self.scalars
        scalars[layout.NOISE] += (difference**2 / 2 - scalars[layout.NOISE]) / repeats

    def links(self) -> npt.NDArray[np.bool_]:
        """Return whether each pair of variables is known to interact, `(n, n)`."""
        found: npt.NDArray[np.bool_] = self.arrays.link == layout.LINKED
        return found

    def effects(self) -> npt.NDArray[np.float64]:
        """Return how much a change of one variable alters the gain of another, `(n, n)`.

        An effect is the root mean square over the changes of both variables; if one of them has
        many values, and so no means, it is the standard deviation. Effects that may be rounding
        errors are 0.
        """
        first, arrays = self.arrays.first_slot[:-1], self.arrays
        squares = arrays.mean**2
        counts = np.diff(self.arrays.first_slot)
        many = arrays.kind != layout.FEW
        table = np.add.reduceat(np.add.reduceat(squares, first, axis=0), first, axis=1)
        spread = arrays.variance[np.ix_(first, first)] * self.links()
        table = np.where(many[:, None] | many, spread, table / np.outer(counts, counts))
        found: npt.NDArray[np.float64] = np.sqrt(table) * ~np.eye(len(first), dtype=bool)
        gains = max(self.scalar(layout.GAINS), 1.0)
        found[found < FITTED_TO * np.sqrt(self.scalar(layout.SUM_SQUARES) / gains)] = 0.0
        return found

    def state(self) -> dict[str, Any]:
        """Return both buffers."""
        return {"integers": self._integers, "floats": self._floats}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned; ValueError if it does not fit."""
        check_model(state, self.arrays, self.sizes, self._cardinalities)
        self._integers[:], self._floats[:] = state["integers"], state["floats"]
