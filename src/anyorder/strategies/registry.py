"""Strategies by name, as `algorithm=` and the command line take them."""

from __future__ import annotations

from typing import Any

from anyorder.strategies.annealing import SimulatedAnnealing
from anyorder.strategies.auto import AutoSearch
from anyorder.strategies.boa import BOA
from anyorder.strategies.delta.search import DeltaSearch
from anyorder.strategies.guided.search import GuidedSearch
from anyorder.strategies.local_search import HillClimber, IteratedLocalSearch
from anyorder.strategies.mimic import MIMIC
from anyorder.strategies.one_plus_one import RLS, FastOnePlusOneEA, OnePlusOneEA
from anyorder.strategies.p3 import P3
from anyorder.strategies.policy.search import PolicySearch
from anyorder.strategies.random_search import RandomSearch
from anyorder.strategies.tabu import TabuSearch
from anyorder.strategies.univariate import CGA, PBIL, UMDA

# Each is called with a space, a seed and its own settings.
REGISTRY: dict[str, type[Any]] = {
    kind.name: kind
    for kind in (
        AutoSearch, DeltaSearch, PolicySearch, RandomSearch, RLS, OnePlusOneEA, FastOnePlusOneEA,
        HillClimber, IteratedLocalSearch, SimulatedAnnealing, TabuSearch, UMDA, PBIL, CGA, MIMIC,
        BOA, P3, GuidedSearch,
    )
}  # fmt: skip
# Other names, which are accepted but not listed.
ALIASES = {"iterated-local-search": "ils"}


def names() -> list[str]:
    """The names of all strategies."""
    return list(REGISTRY)
