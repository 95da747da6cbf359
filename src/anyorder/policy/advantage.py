"""From values to advantages: ranks within a generation, and a utility of the rank, eq. (5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def ranks(values: Floats, ties: str) -> Floats:
    """rk(x): how many candidates are better; 0 is the best. NaN (a failure) is below -inf.

    `ties`: "strict" counts the strictly better ones, so equals share the better rank; "average"
    gives equals their mean rank; "sort" ranks equals by their place, the earlier the better.
    """
    failed = np.isnan(values)
    # 0 for the worst distinct value, counting up; failures are equal to one another
    _, level = np.unique(np.where(failed, -np.inf, values), return_inverse=True)
    level = np.where(failed, 0, level + 1)
    if ties == "sort":
        result = np.empty(len(values))
        result[np.argsort(-level, kind="stable")] = np.arange(len(values))
        return result
    better: Floats = (level[None, :] > level[:, None]).sum(axis=1).astype(float)
    if ties == "average":
        better += ((level[None, :] == level[:, None]).sum(axis=1) - 1) / 2
    return better


def advantages(values: Floats, utility: Sequence[float], ties: str) -> Floats:
    """A(x) = U(rk(x) / (lambda - 1)), eq. (5), with U given by its values at equal steps.

    One candidate alone has nothing to be compared with: its advantage is 0.
    """
    if len(values) == 1:
        return np.zeros(1)
    where = ranks(values, ties) / (len(values) - 1)
    return np.interp(where, np.linspace(0.0, 1.0, len(utility)), utility)
