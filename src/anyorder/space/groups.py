"""Groups: columns of codes that share values, each of which occurs a bounded number of times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Group:
    """A stretch of columns of one set of D values, in which value v occurs `least[v]` to `most[v]`
    times.

    Attributes
    ----------
    first, size
        Its first column, and the number of columns.
    least, most
        `(D,)`: how often each value occurs at least and at most.
    sequence
        Whether the order of the columns means something.
    """

    first: int
    size: int
    least: NDArray[np.int64]
    most: NDArray[np.int64]
    sequence: bool

    @property
    def columns(self) -> slice:
        """Where its codes are in a row of codes."""
        return slice(self.first, self.first + self.size)

    def valid(self, codes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which rows `(r, size)` of its codes keep to the bounds: `(r,)`."""
        counts = (codes[:, :, None] == np.arange(len(self.least))).sum(axis=1)
        return np.asarray(((counts >= self.least) & (counts <= self.most)).all(axis=1))
