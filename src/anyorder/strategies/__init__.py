"""Search strategies: the protocol, a base class, and those of this library.

`names` lists them. `docs/strategies.md` shows how to write one.
"""

from anyorder.strategies.annealing import SimulatedAnnealing
from anyorder.strategies.auto import AutoSearch
from anyorder.strategies.base import Answer, Proposals, Search, Strategy, score
from anyorder.strategies.boa import BOA
from anyorder.strategies.delta.search import DeltaSearch
from anyorder.strategies.guided.search import GuidedSearch
from anyorder.strategies.local_search import HillClimber, IteratedLocalSearch
from anyorder.strategies.mimic import MIMIC
from anyorder.strategies.one_plus_one import RLS, FastOnePlusOneEA, OnePlusOneEA
from anyorder.strategies.p3 import P3
from anyorder.strategies.policy.search import PolicySearch
from anyorder.strategies.random_search import RandomSearch
from anyorder.strategies.registry import names
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
    "Answer",
    "AutoSearch",
    "DeltaSearch",
    "FastOnePlusOneEA",
    "GuidedSearch",
    "HillClimber",
    "IteratedLocalSearch",
    "OnePlusOneEA",
    "PolicySearch",
    "Proposals",
    "RandomSearch",
    "Search",
    "SimulatedAnnealing",
    "Strategy",
    "TabuSearch",
    "names",
    "score",
]
