"""Methods to measure against, with the same ask and tell as the optimiser; all maximise.

    climber = anyorder.baselines.HillClimber(problem.space, seed=0)
    values = anyorder.baselines.run(climber, problem, budget=10_000)

A new one is a subclass of `Baseline` in a file of its own.
"""

from anyorder.baselines.annealing import SimulatedAnnealing
from anyorder.baselines.base import AskTell, Baseline, run
from anyorder.baselines.boa import BOA
from anyorder.baselines.hill_climber import HillClimber, IteratedLocalSearch
from anyorder.baselines.mimic import MIMIC
from anyorder.baselines.one_plus_one import RLS, FastOnePlusOneEA, OnePlusOneEA
from anyorder.baselines.p3 import P3
from anyorder.baselines.random_search import RandomSearch
from anyorder.baselines.tabu import TabuSearch
from anyorder.baselines.univariate import CGA, PBIL, UMDA

__all__ = [
    "BOA",
    "CGA",
    "MIMIC",
    "P3",
    "PBIL",
    "RLS",
    "UMDA",
    "AskTell",
    "Baseline",
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

# What the command line calls them.
registry: dict[str, type[Baseline]] = {
    "random": RandomSearch,
    "rls": RLS,
    "one-plus-one": OnePlusOneEA,
    "fast-one-plus-one": FastOnePlusOneEA,
    "hill-climber": HillClimber,
    "iterated-local-search": IteratedLocalSearch,
    "annealing": SimulatedAnnealing,
    "tabu": TabuSearch,
    "umda": UMDA,
    "pbil": PBIL,
    "cga": CGA,
    "mimic": MIMIC,
    "boa": BOA,
    "p3": P3,
}
