"""Strategies to compare with, and a loop that runs one; all maximise.

    climber = anyorder.baselines.HillClimber(problem.space, seed=0)
    values = anyorder.baselines.run(climber, problem, budget=10_000)

The classes are those of `anyorder.strategies`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder._checks import integer, numbers
from anyorder.problems.base import Problem
from anyorder.strategies import (
    BOA,
    CGA,
    MIMIC,
    P3,
    PBIL,
    RLS,
    UMDA,
    Answer,
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
    _LONG.get(name, name): kind for name, kind in REGISTRY.items() if issubclass(kind, Search)
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
    values: list[float] = []
    while len(values) < budget:
        tickets, codes = strategy.propose(strategy.batch)
        if not len(codes):
            break
        # The batch is drawn in full, so that the budget does not change what is proposed.
        used = min(len(codes), budget - len(values))
        candidates = strategy.space.decode(codes[:used])
        if isinstance(objective, Problem):
            found = objective.evaluate(candidates)
        else:
            found = np.array([float(objective(candidate)) for candidate in candidates])
        found = numbers(found, used)
        answers = zip(tickets[:used], codes[:used], found.tolist(), strict=True)
        strategy.learn([Answer(ticket, point, value) for ticket, point, value in answers])
        strategy.give_up(tickets[used:])
        values += found.tolist()
    return np.array(values)
