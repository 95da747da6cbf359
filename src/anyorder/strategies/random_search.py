"""Random search: what any method must beat."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anyorder.strategies.baseline import Baseline, Codes


class RandomSearch(Baseline):
    """Independent uniform points, ten an `ask` unless told otherwise."""

    default_ask: ClassVar[int] = 10

    def _propose(self, n: int) -> Codes:
        return self._uniform(n)

    def _learn(self, codes: Codes, values: NDArray[np.float64]) -> None:
        pass
