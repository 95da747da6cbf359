"""How the model of single changes lies in memory.

Everything the model knows is in two flat buffers, one of integers and one of floats, cut into named
arrays in the order of `INTEGERS` and `FLOATS`. So a compiled function takes three arguments, a
state is two arrays, and `views` (here for Python, in `kernels` for compiled code) gives the names.

A *slot* is a change whose interactions have entries of their own in the pair tables. A variable of
few values has one for each unordered pair of values, so that a binary variable has exactly one; a
variable of many values has one in all.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder.space import Space
from anyorder.strategies.models.columns import Columns

# What a variable is to the model.
FEW, ORDERED, CATEGORIES = 0, 1, 2

MOST_FEW_VALUES = 6  # up to here each pair of values is a slot
MOST_SLOTS = 2048  # beyond this only binary variables have slots for their pairs of values
BINARY_PROFILES = 4  # contexts remembered for each variable, if all are binary
PROFILES = 8  # the same where some variable has more values
ENTRIES = 16  # values remembered in one context of a variable of many values
CANDIDATES = 8  # changes of a variable of many values that are considered at a time
MOST_BYTES = 500_000_000  # the two buffers together
RING = 64  # recent differences of gains, to tell how often two are equal by chance

PRIOR_DEGREE = 6.0  # links of a variable, before anything is known

# Name: shape, in terms of `Sizes`; n + 1 as "n1".
INTEGERS: dict[str, tuple[str, ...]] = {
    "x": ("n",),  # the present point
    "values": ("n",),  # number of values of each variable that may change to them; 1 of held ones
    "kind": ("n",),  # FEW, ORDERED or CATEGORIES
    "first_slot": ("n1",),  # of each variable
    "order": ("n", "width"),  # random ranks: in which order changes are tried for the first time
    "candidates": ("n", "width"),  # the values a variable of many values may change to next
    "profiles": ("n",),  # how many contexts are remembered
    "oldest": ("n",),  # which of them is replaced next
    "differing": ("n", "profiles"),  # in how many variables a context differs from x
    "entries": ("n", "profiles"),  # how many values are known in a context
    "code": ("n", "profiles", "entries"),  # which they are
    "context": ("n", "n", "profiles"),  # [j, i, m]: the value of j in context m of i
    "link": ("n", "n"),  # UNKNOWN, LINKED or NOT_LINKED
}
FLOATS: dict[str, tuple[str, ...]] = {
    "value": ("n", "profiles", "entries"),  # of f, for the values in `code`
    "mean": ("slots", "slots"),  # M: how much one change moves the gain of another
    "variance": ("slots", "slots"),  # P: how uncertain that is
    "shift": ("slots", "profiles"),  # sum of M over what differs between context and x
    "spread": ("slots", "profiles"),  # sum of P over the same
    "firm": ("slots", "profiles"),  # the part of it that comes from links
    "worth": ("n", "width"),  # expected improvement of each change
    "squares": ("n",),  # sum of squared gains of a variable
    "tries": ("n",),  # how many there were
    "scale": ("n",),  # mean square gain of a variable relative to all
    "slope": ("n",),  # of ORDERED: sum of squared gain per step
    "ring": ("ring",),
    "scalars": ("scalars",),  # see the constants of `kernels`
}
SCALARS = 34  # numbers of the model that kernels share, by the names at the end of this file


class Sizes(NamedTuple):
    """The lengths that the shapes above are made of."""

    n: int
    slots: int
    profiles: int
    entries: int
    width: int

    def count(self, shapes: Mapping[str, tuple[str, ...]]) -> int:
        """Return how many numbers the arrays hold."""
        return sum(int(np.prod(self.shape(names), dtype=np.int64)) for names in shapes.values())

    def shape(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Return a shape in numbers."""
        lengths = {**self._asdict(), "n1": self.n + 1, "ring": RING, "scalars": SCALARS}
        return tuple(lengths[name] for name in names)


def kinds_of(columns: Columns) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return what each variable is to the model, and how many slots it has."""
    values = columns.cardinalities.astype(np.int64)
    for most in (MOST_FEW_VALUES, 2):
        few = values <= most
        slots = np.where(few, np.maximum(values * (values - 1) // 2, 1), 1)
        if slots.sum() <= MOST_SLOTS:
            break
    kinds = np.where(few, FEW, np.where(columns.ordered, ORDERED, CATEGORIES))
    return kinds.astype(np.int32), slots


def sizes_of(columns: Columns) -> Sizes:
    """Return the sizes for what models see; ValueError if the tables would not fit."""
    kinds, slots = kinds_of(columns)
    counted = ~columns.numbers  # those of lists have no profiles of their own
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
    """Return whether the tables for a space fit."""
    try:
        sizes_of(Columns(space))
    except ValueError:
        return False
    return True


def views(
    sizes: Sizes, integers: npt.NDArray[np.int32], floats: npt.NDArray[np.float64]
) -> SimpleNamespace:
    """Return the named arrays, all of them views of the buffers."""
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

VALUE = 0  # of f at x: measured, or predicted
MEASURED = 1  # whether it was measured
STALE = 2  # whether `worth` must be computed anew
TOLERANCE = 3  # differences of gains up to here are rounding, or noise
NOISE = 4  # variance of one observation
SUM_SQUARES, GAINS = 5, 6  # of all gains observed, and how many
CALIBRATION, CALIBRATED = 7, 8  # running mean of squared error over variance, and its weight
DEPARTURE, DEPARTURES, DEPARTED = 9, 10, 11  # q: from additivity; how many, and their sum
EQUAL, COMPARED, RINGED = 12, 13, 14  # equal differences by chance, of how many; seen by the ring
SUM_FOURTH = 15  # sum of the fourth powers of all gains
PRIOR = 16  # whether the pairs have their prior variances
CERTAIN, WRONG = 17, 18  # predictions without doubt, and those that were wrong
COINCIDENCES = 19  # gains that were the same in another context
ERROR, ERROR_NONE, WEIGHT = 20, 21, 22  # mean squared errors of the model, and of predicting 0
FREE = 23  # moves that were not paid for
PREDICTED, KNOWN = 24, 25  # of the last gain: what was predicted, if anything was
EVALUATIONS = 26  # values learned
SLACK = 27  # differences of values up to here are rounding
DEGREE, DEGREE_LINKS, DEGREE_WEIGHT = 28, 29, 30  # links of a variable: estimate, and its sums
WAITING = 31  # whether variables without effect may be waiting for others
TYPICAL, TYPICAL_GAINS = 32, 33  # running mean of the logarithms of squared gains; of how many

# The state of a pair of variables.
UNKNOWN, LINKED, NOT_LINKED = 0, 1, 2

# What a variable is to the global model: one feature, one for each value, or z and z^2.
# NOTHING: it has no feature, as the number of a list.
SPIN, INDICATORS, POWERS, NOTHING = 0, 1, 2, 3
