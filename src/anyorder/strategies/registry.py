"""Strategies by name, as `algorithm=` and the command line take them."""

from __future__ import annotations

import re
from typing import Any

from anyorder._internal.checks import function, short
from anyorder._internal.entry_points import load_entry_points
from anyorder.strategies.auto.search import AutoSearch, DeltaSearch
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

GROUP = "anyorder.strategies"  # the group of entry points that other packages use
_NAME = re.compile(r"[A-Za-z0-9_.-]+")

# Each class is called with a space, a seed and its own settings.
REGISTRY: dict[str, type[Any]] = {
    kind.name: kind
    for kind in (
        AutoSearch, DeltaSearch, PolicySearch, RandomSearch, RLS, OnePlusOneEA, FastOnePlusOneEA,
        HillClimber, IteratedLocalSearch, SimulatedAnnealing, TabuSearch, UMDA, PBIL, CGA, MIMIC,
        BOA, P3, GPSearch, NSGA2, ParetoSearch,
    )
}  # fmt: skip


def register(name: str, cls: type[Any]) -> None:
    """Register a strategy for `algorithm=`, the command line, campaigns and studies.

    Other packages register strategies by an entry point, so that they need not be imported:

        [project.entry-points."anyorder.strategies"]
        mine = "my_package:MyStrategy"

    Parameters
    ----------
    name
        The name of the strategy, equal to its class attribute `name`.
    cls
        A class that follows the protocol `Strategy`, called as `cls(space, seed=seed, **settings)`.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"name is {short(name)}, expected letters, digits and '-', '_', '.'")
    function("cls", cls)
    own = getattr(cls, "name", None)
    if own != name:
        raise ValueError(f"{cls.__name__}.name is {short(own)}, expected {name!r} as registered")
    if name in REGISTRY:
        raise ValueError(f"strategy {name!r} is registered already, expected a new name")
    REGISTRY[name] = cls


def _add(name: str, cls: Any) -> None:
    if REGISTRY.get(name) is not cls:  # an earlier call may have registered it
        register(name, cls)


def find(name: str) -> type[Any] | None:
    """Return the strategy of that name, also of another package; None if there is none."""
    if name not in REGISTRY:
        load_entry_points(GROUP, _add)
    return REGISTRY.get(name)


def names() -> list[str]:
    """Return the names of all strategies; those of other packages come last."""
    load_entry_points(GROUP, _add)
    return list(REGISTRY)
