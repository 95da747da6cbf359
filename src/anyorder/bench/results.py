"""The results of a campaign: curves of runs, by distribution and algorithm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.config import PRESETS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cell:
    """The finished runs of one algorithm on one distribution; higher values are better.

    Attributes
    ----------
    grid
        `(G,)`: numbers of evaluations, increasing; the last one is the budget.
    curves
        `(R, G)`: the best value so far of each run at each number of evaluations.
    instances, seeds
        `(R,)`: the instance of the distribution, and the seed, of each run.
    seconds
        `(R,)`: the duration of each run, evaluations included.
    """

    grid: Ints
    curves: Floats
    instances: Ints
    seeds: Ints
    seconds: Floats

    def at(self, evaluations: int) -> Floats:
        """Return the best value of each run, `(R,)`, after a number of evaluations in the grid."""
        place = np.flatnonzero(self.grid == evaluations)
        if not len(place):
            raise ValueError(
                f"evaluations is {evaluations}, expected a point of the grid: "
                f"{self.grid[0]}, ... {self.grid[-1]}"
            )
        return self.curves[:, place[0]]


@dataclass(frozen=True, eq=False)
class Results:
    """All cells of a campaign that have a finished run, and the failures.

    Attributes
    ----------
    name
        The name of the campaign.
    algorithms, distributions
        The labels, in the order of the campaign.
    cells
        The cells by distribution and algorithm; some may be missing.
    failed
        The number of failed runs by reason, by distribution and algorithm.
    ours
        The labels of the policy; by default those that begin with "policy" or stand for a preset.
    """

    name: str
    algorithms: tuple[str, ...]
    distributions: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]
    failed: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)
    ours: frozenset[str] = field(default=None)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        if self.ours is None:  # not given
            object.__setattr__(self, "ours", ours(self.algorithms))

    def row(self, distribution: str) -> dict[str, Cell]:
        """Return the cells of a distribution, by algorithm, in the order of the campaign."""
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
        """Return a part of the results, in the order given.

        Unknown labels, repeated labels, and an empty selection are errors.
        """
        chosen = self.algorithms if algorithms is None else tuple(algorithms)
        rows = self.distributions if distributions is None else tuple(distributions)
        for kind, some, labels, known in (
            ("algorithms", algorithms, chosen, self.algorithms),
            ("distributions", distributions, rows, self.distributions),
        ):
            if some is not None and not labels:
                raise ValueError(f"{kind} is {labels!r}, expected some of {known}")
            for k, label in enumerate(labels):
                if label not in known:
                    raise ValueError(f"{label!r} is not in {self.name}, expected one of {known}")
                if label in labels[:k]:
                    raise ValueError(f"{kind} is {labels!r}, expected {label!r} once")
        part = {(d, a) for d in rows for a in chosen}
        cells = {key: cell for key, cell in self.cells.items() if key in part}
        failed = {key: reasons for key, reasons in self.failed.items() if key in part}
        return Results(self.name, chosen, rows, cells, failed, self.ours & set(chosen))


# The labels of two presets in the measured data of the reproduction.
_READINGS = {"text": "paper", "authors": "paper-code"}


def preset_of(label: str) -> str | None:
    """Return the preset that a label stands for; None if it stands for none."""
    name = label.removeprefix("policy").lstrip(":") or "default"
    name = _READINGS.get(name, name)
    return name if name in PRESETS else None


def ours(labels: Iterable[str]) -> frozenset[str]:
    """Return the labels of the policy: "policy", with or without settings, or a preset."""
    return frozenset(
        label for label in labels
        if preset_of(label) is not None or re.fullmatch("policy([:+].*)?", label)
    )  # fmt: skip
