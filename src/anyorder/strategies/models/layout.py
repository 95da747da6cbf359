"""The layout of the model of gains in memory.

All numbers of the model are in two buffers, one of integers and one of floats. Each buffer is a row
of named arrays, in the order of `INTEGERS` and `FLOATS`. So a compiled function takes only three
arguments (the sizes and both buffers), and a state is two arrays. `views` returns the named arrays:
here for Python, in `kernels` for compiled code.

A *slot* is a row of the pair tables, which have a mean and a variance for each pair of slots. A
variable of few values has a slot for each pair of its values, so a binary variable has one. A
variable of many values has a single slot, which all its changes share.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder.space import Space
from anyorder.strategies.models.columns import Columns

# The kinds of variables in the model of gains: few values, or many, which are ordered or not.
FEW, ORDERED, CATEGORIES = 0, 1, 2

MOST_FEW_VALUES = 6  # a variable of more values has one slot for all pairs of its values
MOST_SLOTS = 2048  # with more slots, only binary variables have a slot for each pair of values
BINARY_PROFILES = 4  # contexts remembered for each variable, if all variables are binary
PROFILES = 8  # contexts remembered for each variable, if some variable has more than two values
ENTRIES = 16  # values remembered in one context of a variable of many values
CANDIDATES = 8  # changes of a variable of many values that are considered at a time
MOST_BYTES = 500_000_000  # the most bytes of the model of gains; larger spaces are refused
RING = 64  # recent differences of gains, from which the chance that two are equal is estimated

PRIOR_DEGREE = 6.0  # the number of links of a variable that is assumed at first

# The shape of each array by its name, in terms of `Sizes`; "n1" is n + 1.
INTEGERS: dict[str, tuple[str, ...]] = {
    "x": ("n",),  # the present point
    "values": ("n",),  # the number of values of each variable; 1 if the variable is held
    "kind": ("n",),  # FEW, ORDERED or CATEGORIES
    "first_slot": ("n1",),  # the first slot of each variable
    "order": ("n", "width"),  # random ranks: the order in which changes are tried first
    "candidates": ("n", "width"),  # values of a variable of many values that are considered
    "profiles": ("n",),  # the number of contexts that are remembered
    "oldest": ("n",),  # the context that is replaced next
    "differing": ("n", "profiles"),  # the number of variables in which a context differs from x
    "entries": ("n", "profiles"),  # the number of known values in a context
    "code": ("n", "profiles", "entries"),  # the known values
    "context": ("n", "n", "profiles"),  # [j, i, m]: the value of j in context m of i
    "link": ("n", "n"),  # UNKNOWN, LINKED or NOT_LINKED
}
FLOATS: dict[str, tuple[str, ...]] = {
    "value": ("n", "profiles", "entries"),  # the values of f for the values in `code`
    "mean": ("slots", "slots"),  # M: the mean effect of one change on the gain of another
    "variance": ("slots", "slots"),  # P: the variance of this effect
    "shift": ("slots", "profiles"),  # the sum of M over the variables that differ from x
    "spread": ("slots", "profiles"),  # the sum of P over the variables that differ from x
    "firm": ("slots", "profiles"),  # the part of `spread` that comes from links
    "worth": ("n", "width"),  # the expected improvement of each change
    "squares": ("n",),  # the sum of the squared gains of a variable
    "tries": ("n",),  # the number of gains of a variable
    "scale": ("n",),  # the mean square gain of a variable, relative to that of all
    "slope": ("n",),  # if ORDERED: the sum of squared gains divided by the sizes of the changes
    "ring": ("ring",),  # recent differences of gains
    "scalars": ("scalars",),  # single numbers, by the constants at the end of this file
}
SCALARS = 35  # single numbers of the model of gains, which are named at the end of `layout.py`


class Sizes(NamedTuple):
    """The lengths in the shapes of the arrays."""

    n: int
    slots: int
    profiles: int
    entries: int
    width: int

    def count(self, shapes: Mapping[str, tuple[str, ...]]) -> int:
        """Return the number of elements of all arrays together."""
        return sum(int(np.prod(self.shape(names), dtype=np.int64)) for names in shapes.values())

    def shape(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Return a shape in numbers."""
        lengths = {**self._asdict(), "n1": self.n + 1, "ring": RING, "scalars": SCALARS}
        return tuple(lengths[name] for name in names)


def kinds_of(columns: Columns) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return the kind of each variable, and its number of slots."""
    values = columns.cardinalities.astype(np.int64)
    for most in (MOST_FEW_VALUES, 2):
        few = values <= most
        slots = np.where(few, np.maximum(values * (values - 1) // 2, 1), 1)
        if slots.sum() <= MOST_SLOTS:
            break
    kinds = np.where(few, FEW, np.where(columns.ordered, ORDERED, CATEGORIES))
    return kinds.astype(np.int32), slots


def sizes_of(columns: Columns) -> Sizes:
    """Return the sizes for these columns; ValueError if the buffers would be too large."""
    kinds, slots = kinds_of(columns)
    counted = ~columns.numbers  # the numbers of lists have no profiles of their own
    values, few = columns.cardinalities[counted].astype(np.int64), kinds[counted] == FEW
    binary = bool((values <= 2).all())
    most_few = int(values[few].max(initial=2))
    sizes = Sizes(
        n=len(columns),
        slots=int(slots.sum()),
        profiles=BINARY_PROFILES if binary else PROFILES,
        entries=most_few if few.all() else ENTRIES,
        width=most_few if few.all() else max(most_few, CANDIDATES),
    )
    needed = 4 * sizes.count(INTEGERS) + 8 * sizes.count(FLOATS)
    if needed > MOST_BYTES:
        raise ValueError(
            f"delta needs {needed / 1e6:,.0f} MB for tables over pairs of {len(columns)} variables"
            f", expected at most {MOST_BYTES / 1e6:,.0f} MB: use another algorithm"
        )
    return sizes


def fits(space: Space) -> bool:
    """Return whether the buffers for a space are small enough."""
    try:
        sizes_of(Columns(space))
    except ValueError:
        return False
    return True


def views(
    sizes: Sizes, integers: npt.NDArray[np.int32], floats: npt.NDArray[np.float64]
) -> SimpleNamespace:
    """Return the named arrays, which are views of the buffers."""
    found: dict[str, Any] = {}
    for buffer, shapes in ((integers, INTEGERS), (floats, FLOATS)):
        start = 0
        for name, names in shapes.items():
            shape = sizes.shape(names)
            end = start + int(np.prod(shape, dtype=np.int64))
            found[name] = buffer[start:end].reshape(shape)
            start = end
    return SimpleNamespace(**found)


# --- the entries of `scalars` ---------------------------------------------------------------------

VALUE = 0  # the value of f at x: measured, or predicted
MEASURED = 1  # whether the value was measured
STALE = 2  # whether `worth` must be computed again
TOLERANCE = 3  # differences of gains up to this are rounding or noise
NOISE = 4  # the variance of one observation
SUM_SQUARES, GAINS = 5, 6  # the sum of the squares of all gains, and their number
CALIBRATION, CALIBRATED = 7, 8  # the running mean of squared error over variance; its weight
DEPARTURE, DEPARTURES, DEPARTED = 9, 10, 11  # the mean departure from additivity, a number, a sum
EQUAL, COMPARED, RINGED = 12, 13, 14  # differences equal by chance, compared, and put in the ring
SUM_FOURTH = 15  # the sum of the fourth powers of all gains
PRIOR = 16  # whether the pairs have their prior variances
CERTAIN, WRONG = 17, 18  # the number of certain predictions, and of those that were wrong
COINCIDENCES = 19  # the number of gains that were equal in another context
ERROR, ERROR_PROFILE = 20, 21  # mean squared errors of the model: with the means M, without them
ERROR_NONE, WEIGHT = 22, 23  # the mean squared error of predicting 0; the weight of all three
FREE = 24  # the number of changes that were made without an evaluation
PREDICTED, KNOWN = 25, 26  # the prediction of the last gain, and whether there was one
EVALUATIONS = 27  # the number of values learned
DEGREE, DEGREE_LINKS, DEGREE_WEIGHT = 28, 29, 30  # mean number of links, as a ratio of two sums
SLACK = 31  # differences of values up to this are rounding
WAITING = 32  # whether the effects of variables without effect may depend on other variables
TYPICAL, TYPICAL_GAINS = 33, 34  # the running mean of the logarithms of squared gains; its weight

# The state of a pair of variables.
UNKNOWN, LINKED, NOT_LINKED = 0, 1, 2

# The kinds of variables in the global model: one feature; one feature for each value; z and z^2; or
# no feature, for the number of a list.
SPIN, INDICATORS, POWERS, NOTHING = 0, 1, 2, 3
