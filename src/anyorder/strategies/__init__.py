"""Methods to measure against, with the same ask and tell as the optimiser; all maximise.

    climber = anyorder.baselines.HillClimber(problem.space, seed=0)
    values = anyorder.baselines.run(climber, problem, budget=10_000)

A new one is a subclass of `Baseline` in a file of its own.
"""

from anyorder.strategies.annealing import SimulatedAnnealing
from anyorder.strategies.baseline import AskTell, Baseline, run
from anyorder.strategies.boa import BOA
from anyorder.strategies.local_search import HillClimber, IteratedLocalSearch
from anyorder.strategies.mimic import MIMIC
from anyorder.strategies.one_plus_one import RLS, FastOnePlusOneEA, OnePlusOneEA
from anyorder.strategies.p3 import P3
from anyorder.strategies.random_search import RandomSearch
from anyorder.strategies.tabu import TabuSearch
from anyorder.strategies.univariate import CGA, PBIL, UMDA

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
