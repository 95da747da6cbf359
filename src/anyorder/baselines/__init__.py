"""Methods to measure against, with the same ask and tell as the optimiser; all maximise.

    climber = anyorder.baselines.HillClimber(problem.space, seed=0)
    values = anyorder.baselines.run(climber, problem, budget=10_000)

A new one is a subclass of `Baseline` in a file of its own.
"""

from anyorder.baselines.base import AskTell, Baseline, run
from anyorder.baselines.hill_climber import HillClimber
from anyorder.baselines.one_plus_one import OnePlusOneEA
from anyorder.baselines.random_search import RandomSearch

__all__ = ["AskTell", "Baseline", "HillClimber", "OnePlusOneEA", "RandomSearch", "run"]
