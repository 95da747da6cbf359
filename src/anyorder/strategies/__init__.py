"""Search strategies: the protocol, a base class, and the strategies of this library.

`names` lists the strategies, and `register` adds one; `docs/strategies.md` shows how to write one.
"""

from anyorder.strategies.auto.search import AutoSearch, DeltaSearch
from anyorder.strategies.base import Answer, Proposals, Search, Strategy, score
from anyorder.strategies.gp.search import GPSearch
from anyorder.strategies.pareto.search import ParetoSearch
from anyorder.strategies.plain.annealing import SimulatedAnnealing
from anyorder.strategies.plain.boa import BOA
from anyorder.strategies.plain.local_search import HillClimber, IteratedLocalSearch
from anyorder.strategies.plain.mimic import MIMIC
from anyorder.strategies.plain.nsga2 import NSGA2
from anyorder.strategies.plain.one_plus_one import RLS, FastOnePlusOneEA, OnePlusOneEA
from anyorder.strategies.plain.p3 import P3
from anyorder.strategies.plain.random_search import RandomSearch
from anyorder.strategies.plain.tabu import TabuSearch
from anyorder.strategies.plain.univariate import CGA, PBIL, UMDA
from anyorder.strategies.policy.search import PolicySearch
from anyorder.strategies.registry import names, register

__all__ = [
    "BOA",
    "CGA",
    "MIMIC",
    "NSGA2",
    "P3",
    "PBIL",
    "RLS",
    "UMDA",
    "Answer",
    "AutoSearch",
    "DeltaSearch",
    "FastOnePlusOneEA",
    "GPSearch",
    "HillClimber",
    "IteratedLocalSearch",
    "OnePlusOneEA",
    "ParetoSearch",
    "PolicySearch",
    "Proposals",
    "RandomSearch",
    "Search",
    "SimulatedAnnealing",
    "Strategy",
    "TabuSearch",
    "names",
    "register",
    "score",
]
