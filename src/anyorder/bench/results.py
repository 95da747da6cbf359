"""What a campaign has measured: curves of runs, by distribution and algorithm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cell:
    """The finished runs of one algorithm on one distribution; more is better everywhere.

    Attributes
    ----------
    grid
        `(G,)` numbers of evaluations, increasing; the last is the budget.
    curves
        `(R, G)`: the best value so far of each run at the grid.
    instances, seeds
        `(R,)`: which instance of the distribution, and the seed of the run.
    seconds
        `(R,)`: how long each run took, evaluations included.
    failed
        How many runs failed besides, by reason.
    """

    grid: Ints
    curves: Floats
    instances: Ints
    seeds: Ints
    seconds: Floats
    failed: Mapping[str, int] = field(default_factory=dict)

    def at(self, evaluations: int) -> Floats:
        """`(R,)`: the best value of each run after so many evaluations, a point of the grid."""
        place = np.flatnonzero(self.grid == evaluations)
        if not len(place):
            raise ValueError(
                f"evaluations is {evaluations}, expected a point of the grid: "
                f"{self.grid[0]}, ... {self.grid[-1]}"
            )
        return self.curves[:, place[0]]


@dataclass(frozen=True, eq=False)
class Results:
    """All cells of a campaign that have a finished run.

    Attributes
    ----------
    name
        Of the campaign.
    algorithms, distributions
        Labels, in the order of the campaign.
    cells
        By distribution and algorithm; some may not be there.
    """

    name: str
    algorithms: tuple[str, ...]
    distributions: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]

    def row(self, distribution: str) -> dict[str, Cell]:
        """The cells of a distribution, by algorithm, in the order of the campaign."""
        return {
            algorithm: self.cells[distribution, algorithm]
            for algorithm in self.algorithms
            if (distribution, algorithm) in self.cells
        }

    def only(
        self,
        algorithms: Iterable[str] | None = None,
        distributions: Iterable[str] | None = None,
    ) -> Results:
        """A part of the results, in the order given; an unknown label is an error."""
        chosen = self.algorithms if algorithms is None else tuple(algorithms)
        rows = self.distributions if distributions is None else tuple(distributions)
        for label, known in [(a, self.algorithms) for a in chosen] + [
            (d, self.distributions) for d in rows
        ]:
            if label not in known:
                raise ValueError(f"{label!r} is not in {self.name}, expected one of {known}")
        cells = {
            key: cell for key, cell in self.cells.items() if key[0] in rows and key[1] in chosen
        }
        return Results(self.name, chosen, rows, cells)
