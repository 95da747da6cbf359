"""From values to advantages: ranks within a generation, and a utility of the rank, eq. (5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def ranks(values: Floats, ties: str) -> Floats:
    """Return the ranks rk(x): the number of better candidates, 0 for the best.

    NaN is a failure. All failures share the last rank, however many there are, so that none is ever
    reinforced.

    Candidates are along the last axis; axes before it are runs.

    `ties`: "strict" counts the strictly better candidates, so that equal ones share the better
    rank; "average" gives them their mean rank; "sort" ranks them by their place, earlier ones
    first.
    """
    failed = np.isnan(values)
    mine, other = values[..., :, None], values[..., None, :]
    mine_failed, other_failed = failed[..., :, None], failed[..., None, :]
    better = (other > mine) | (mine_failed & ~other_failed)
    result: Floats = better.sum(axis=-1).astype(float)
    equal = (other == mine) | (mine_failed & other_failed)
    if ties == "sort":
        result += np.tril(equal, -1).sum(axis=-1)  # add the equal candidates that come earlier
    elif ties == "average":
        result += (equal.sum(axis=-1) - 1) / 2
    return np.where(failed, values.shape[-1] - 1.0, result)


def advantages(values: Floats, utility: Sequence[float], ties: str) -> Floats:
    """Return A(x) = U(rk(x) / (lambda - 1)), eq. (5), with U given by its values at equal steps.

    A single candidate cannot be compared with others: its advantage is 0.
    """
    count = values.shape[-1]
    if count == 1:
        return np.zeros(values.shape)
    where = ranks(values, ties) / (count - 1)
    return np.asarray(np.interp(where, np.linspace(0.0, 1.0, len(utility)), utility))
