"""The model of single changes: profiles of each variable, and a table of pairs.

*Profiles.* For each variable the values of f that were seen as it alone changed, in the last few
contexts; a context is the values of all other variables. *Pairs.* For each two changes the mean M
and variance P of how much one moves the gain of the other, and for each two variables whether they
are linked. The gain of a change is predicted from the profile whose context differs from the
present point by the least variance, corrected by M for what differs.
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

FITTED_TO = 1e-5  # of the root mean square gain: what a fit in 32 bits cannot tell from 0


class Prediction(NamedTuple):
    """The predicted gain of a change; `known` says whether it rests on anything."""

    gain: float
    variance: float
    known: bool


class GainModel:
    """What is known about the changes at and around a present point.

    Parameters
    ----------
    columns
        What it sees of points: its points have these columns.
    rng
        Draws the order in which changes are tried for the first time, and the first point.

    Attributes
    ----------
    arrays
        The named arrays of `layout`.
    scalars
        Its scalars, by the constants of `layout`.
    scalar
        Gives one of them as a float, for what is done at every evaluation.
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
        """Forget all gains; the present point, the order of changes and the counts are kept."""
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
        """Differences up to this are rounding, or noise."""
        return self.scalar(layout.TOLERANCE)

    @property
    def slack(self) -> float:
        """Differences of values up to this are rounding."""
        return self.scalar(layout.SLACK)

    @property
    def evaluations(self) -> int:
        """How many values were learned."""
        return int(self.scalar(layout.EVALUATIONS))

    def predict(self, variable: int, value: int) -> Prediction:
        """Return the gain of changing one variable of the present point."""
        gain, variance, known = self._kernels.predict_change(*self.buffers, variable, value)
        return Prediction(gain, variance, known)

    def advance(self, seed: int, free: int) -> tuple[int, int, int, int]:
        """Return the most promising change, after at most `free` moves that are sure to improve.

        Returns 1 if no change is worth an evaluation, else 0; the variable; its new value; and how
        many moves were made.
        """
        found: tuple[int, int, int, int] = self._kernels.advance(*self.buffers, seed, free)
        return found

    def arrive(self, f: float) -> None:
        """Take the measured value of the present point."""
        scalars = self.scalars
        scalars[layout.VALUE], scalars[layout.MEASURED] = f, 1.0
        scalars[layout.EVALUATIONS] += 1.0

    def average(self, f: float, readings: int) -> None:
        """Take the mean of all readings of the present point, which was measured again."""
        scalars = self.scalars
        scalars[layout.VALUE] += (f - scalars[layout.VALUE]) / readings
        scalars[layout.EVALUATIONS] += 1.0

    def exclude(self, variable: int, value: int, *, failed: bool = False) -> None:
        """Do not propose a change before the next move; if it failed, never again from here."""
        self._kernels.fail(*self.buffers, variable, value, failed)

    def go_to(self, point: Codes, value: float, *, measured: bool = True) -> None:
        """Make another point the present one."""
        if not point.flags.writeable:  # loops would be compiled again for read-only arrays
            point = point.copy()
        self._kernels.go_to(*self.buffers, point, value, float(measured))

    def kick(self, seed: int, *, gentle: bool) -> bool:
        """Change some variables of the present point; return whether its value is still certain.

        Random variables, or (`gentle`) those that are predicted to lose little.
        """
        certain: bool = self._kernels.kick(*self.buffers, seed, gentle)
        return certain

    def exchange(self, seed: int, point: Codes) -> bool:
        """Exchange the values of two variables of a point, in place; False if none can be."""
        done: bool = self._kernels.exchange(*self.buffers, seed, point)
        return done

    def mutate(self, seed: int, point: Codes, changes: int) -> None:
        """Change so many variables of a point, in place; linked ones more often together."""
        self._kernels.mutate(*self.buffers, seed, point, changes)

    def tidy(self) -> None:
        """Remove rounding errors, and raise the variances of links to what was measured."""
        self._kernels.tidy(*self.buffers)

    def add_noise(self, difference: float, repeats: int) -> None:
        """Take the mean difference of two values of one point, over all `repeats` so far."""
        scalars = self.scalars
        scalars[layout.NOISE] += (difference**2 / 2 - scalars[layout.NOISE]) / repeats

    def links(self) -> npt.NDArray[np.bool_]:
        """Return which variables are known to interact, `(n, n)`."""
        found: npt.NDArray[np.bool_] = self.arrays.link == layout.LINKED
        return found

    def effects(self) -> npt.NDArray[np.float64]:
        """Return how much a change of one variable moves the gain of another, `(n, n)`.

        The root mean square over their changes; of a variable of many values, which has no means,
        the deviation. What rounding may have left of 0 is 0.
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
        """Take over what `state` gave; ValueError if it does not fit."""
        check_model(state, self.arrays, self.sizes, self._cardinalities)
        self._integers[:], self._floats[:] = state["integers"], state["floats"]
