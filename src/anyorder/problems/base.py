"""What every problem has, and the check of its points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anyorder.space import Space

Graph = NDArray[np.bool_]

# Values are computed this many variables at a time: memory stays bounded for any batch, and a
# block stays in cache.
_BLOCK = 1 << 17


class Problem(ABC):
    """A function of integer vectors, to be maximised, and what is known about it.

    A subclass writes `_values`, and `interaction_graph` where it has one.

    Attributes
    ----------
    name : how `anyorder.problems.get` finds it again, e.g. ``nk:n=128,k=4,seed=3``.
    space : the nameless space of its points.
    seed : what the instance was drawn with, or None.
    optimum : the maximum, where it is known exactly.
    best_known : the best value anyone has reported, never below a known optimum.
    source : where `best_known` comes from.
    """

    direction: Literal["maximize"] = "maximize"

    def __init__(
        self,
        name: str,
        space: Space,
        *,
        seed: int | None = None,
        optimum: float | None = None,
        best_known: float | None = None,
        source: str | None = None,
    ) -> None:
        self.name = name
        self.space = space
        self.seed = seed
        self.optimum = optimum
        self.best_known = optimum if best_known is None else best_known
        self.source = source
        self._limits = np.asarray(space.cardinalities)
        self._lowest_limit = int(self._limits.min())

    def __call__(self, point: ArrayLike) -> float:
        """Value of one point, an integer vector."""
        x = np.asarray(point)
        if x.ndim != 1:
            raise ValueError(
                f"{self.name}: a point of shape {x.shape}, expected ({len(self.space)},); "
                "use evaluate for a batch"
            )
        return float(self._values(self._checked(x)[None])[0])

    def evaluate(self, points: ArrayLike) -> NDArray[np.float64]:
        """Values of a batch: integers of shape (..., n) give floats of shape (...)."""
        x = self._checked(np.asarray(points))
        rows = x.reshape(-1, x.shape[-1])
        values = np.empty(len(rows))
        step = max(1, _BLOCK // x.shape[-1])
        for start in range(0, len(rows), step):
            values[start : start + step] = self._values(rows[start : start + step])
        return values.reshape(x.shape[:-1])

    def interaction_graph(self) -> Graph | None:
        """Which variables interact: a symmetric n x n matrix, or None where it is not known.

        Two variables without an edge act additively, whatever the others are.
        """
        return None

    @abstractmethod
    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Values of checked points of shape (m, n) and any integer type."""

    def _checked(self, points: NDArray[Any]) -> NDArray[Any]:
        if points.ndim == 0 or points.shape[-1] != len(self.space):
            raise ValueError(
                f"{self.name}: points of shape {points.shape}, expected (..., {len(self.space)})"
            )
        if points.dtype.kind == "b":
            points = points.astype(np.int8)
        if points.dtype.kind not in "iu":
            raise TypeError(f"{self.name}: points of type {points.dtype}, expected integers")
        # Two passes without temporaries; the full comparison only where they leave a doubt.
        if points.size and (points.min() < 0 or points.max() >= self._lowest_limit):
            bad = np.argwhere((points < 0) | (points >= self._limits))
            if len(bad):
                where = tuple(bad[0])
                raise ValueError(
                    f"{self.name}: variable {where[-1]} is {points[where]}, "
                    f"expected 0 to {self._limits[where[-1]] - 1}"
                )
        return points

    def __repr__(self) -> str:
        return f"<problem {self.name}>"
