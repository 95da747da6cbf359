"""What a run leaves: the incumbent, every evaluation, and why it stopped."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .config import Config
from .space import Space


@dataclass(frozen=True, eq=False)
class History:
    """Every evaluation of a run, in order.

    Attributes
    ----------
    values
        What the function gave, `(evaluations,)`.
    codes
        The points as indices of their values, `(evaluations, n)`; `points` gives them as the
        function saw them.
    generations
        How often the policy had trained when each was asked for.
    restarts
        The numbers of evaluations after which the policy was started afresh.
    """

    space: Space = field(repr=False)
    maximized: bool
    values: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    generations: npt.NDArray[np.int64]
    restarts: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def points(self) -> Any:
        """All points: a list of dicts, or a matrix."""
        return self.space.decode(self.codes)

    @property
    def best(self) -> npt.NDArray[np.float64]:
        """The best value so far, after each evaluation."""
        best = np.maximum if self.maximized else np.minimum
        return np.asarray(best.accumulate(self.values))


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of `maximize` or `minimize`.

    Attributes
    ----------
    best, best_value
        The best point found, as the function saw it, and its value.
    history
        Every evaluation.
    stop_reason
        "budget", "target", "callback" or "interrupted".
    seed, config, engine
        What it takes to run it again.
    seconds
        Wall time, the function's included.
    """

    best: Any
    best_value: float
    history: History
    stop_reason: str
    seed: int
    config: Config
    engine: str
    seconds: float

    def __repr__(self) -> str:
        return (
            f"<Result: best value {self.best_value:.6g} after {len(self.history)} evaluations, "
            f"{len(self.history.restarts)} restarts, stopped by {self.stop_reason}>"
        )

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the convergence; write it to `path` (PNG, PDF, SVG) or return the figure."""
        from .plots import convergence

        return convergence({self._label(): self}, path)

    def _label(self) -> str:
        return f"anyorder, seed {self.seed}"
