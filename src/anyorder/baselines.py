"""Strategies to compare with, and a function that runs one on a problem; all maximise.

    climber = anyorder.baselines.HillClimber(problem.space, seed=0)
    values = anyorder.baselines.run(climber, problem, budget=10_000)

The classes are those of `anyorder.strategies`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder._checks import integer
from anyorder.optimize import maximize
from anyorder.problems.base import Problem
from anyorder.strategies import (
    BOA,
    CGA,
    MIMIC,
    P3,
    PBIL,
    RLS,
    UMDA,
    FastOnePlusOneEA,
    HillClimber,
    IteratedLocalSearch,
    OnePlusOneEA,
    RandomSearch,
    Search,
    SimulatedAnnealing,
    TabuSearch,
)
from anyorder.strategies.registry import ALIASES, REGISTRY

__all__ = [
    "BOA",
    "CGA",
    "MIMIC",
    "P3",
    "PBIL",
    "RLS",
    "UMDA",
    "FastOnePlusOneEA",
    "HillClimber",
    "IteratedLocalSearch",
    "OnePlusOneEA",
    "RandomSearch",
    "SimulatedAnnealing",
    "TabuSearch",
    "registry",
    "run",
]

_LONG = {short: long for long, short in ALIASES.items()}
# The names after `baseline:` on the command line and in the records of campaigns.
registry: dict[str, type[Any]] = {
    _LONG.get(name, name): kind for name, kind in REGISTRY.items() if kind.__name__ in __all__
}


def run(
    strategy: Search, objective: Problem | Callable[[Any], float], budget: int
) -> NDArray[np.float64]:
    """Evaluate every proposal of a strategy, duplicates included.

    Parameters
    ----------
    strategy
        Any subclass of `Search`.
    objective
        A problem, which is evaluated a batch at a time, or a function of one candidate.
    budget
        How many evaluations to spend.

    Returns
    -------
    array
        The values in the order of evaluation; fewer than `budget` if the strategy finishes early.
    """
    budget = integer("budget", budget, 1)
    function = objective.evaluate if isinstance(objective, Problem) else objective
    result = maximize(
        function, strategy.space, budget, algorithm=strategy, cache=False, progress=False,
        vectorized=isinstance(objective, Problem),
    )  # fmt: skip
    return np.array(result.history.values)
