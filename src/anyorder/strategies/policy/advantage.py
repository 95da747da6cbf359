"""From values to advantages: ranks within a generation, and a utility of the rank, eq. (5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def ranks(values: Floats, ties: str) -> Floats:
    """Return rk(x), how many candidates are better; 0 is the best.

    NaN is a failure: all of them share the last rank, however many there are, so that none is
    ever reinforced.

    Candidates are along the last axis; axes before it are runs.

    `ties`: "strict" counts the strictly better ones, so equals share the better rank; "average"
    gives equals their mean rank; "sort" ranks equals by their place, the earlier the better.
    """
    failed = np.isnan(values)
    mine, other = values[..., :, None], values[..., None, :]
    mine_failed, other_failed = failed[..., :, None], failed[..., None, :]
    better = (other > mine) | (mine_failed & ~other_failed)
    result: Floats = better.sum(axis=-1).astype(float)
    equal = (other == mine) | (mine_failed & other_failed)
    if ties == "sort":
        result += np.tril(equal, -1).sum(axis=-1)  # the equals that come earlier
    elif ties == "average":
        result += (equal.sum(axis=-1) - 1) / 2
    return np.where(failed, values.shape[-1] - 1.0, result)


def advantages(values: Floats, utility: Sequence[float], ties: str) -> Floats:
    """Return A(x) = U(rk(x) / (lambda - 1)), eq. (5), with U given by its values at equal steps.

    One candidate alone has nothing to be compared with: its advantage is 0.
    """
    count = values.shape[-1]
    if count == 1:
        return np.zeros(values.shape)
    where = ranks(values, ties) / (count - 1)
    return np.asarray(np.interp(where, np.linspace(0.0, 1.0, len(utility)), utility))
