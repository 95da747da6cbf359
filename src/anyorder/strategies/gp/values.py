"""The scale on which the Gaussian process models values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_LEAST_UNIT = 1e-9  # in units of the largest distance to the median


def squash(values: npt.ArrayLike) -> Floats:
    """Return values with mean 0 and deviation 1; values far below the median are drawn nearer.

    The unit is the root mean square distance of the upper half to the median. Beyond the larger of
    1 and the median distance of the lower half, distances grow logarithmically. Infinite values are
    replaced by the nearest finite ones.
    """
    y = np.asarray(values, np.float64)
    finite = y[np.isfinite(y)]
    if not len(finite):
        return np.zeros(len(y))
    y = np.clip(y, finite.min(), finite.max())
    largest = np.abs(y).max()
    y = y / largest if largest > 0 else y  # so that no difference overflows
    y = y - np.median(y)
    spread = np.abs(y).max()
    y = y / spread if spread > 0 else y
    upper, lower = y[y >= 0], -y[y < 0]
    unit = np.sqrt(np.mean(upper**2)) or y.std() or 1.0
    unit = max(unit, _LEAST_UNIT)
    y = y / unit
    bound = max(1.0, np.median(lower) / unit if len(lower) else 1.0)
    far = y < -bound
    y[far] = -bound * (1.0 + np.log(-y[far] / bound))
    y = y - y.mean()
    deviation = y.std()
    scaled: Floats = y / deviation if deviation > 0 else y
    return scaled
