"""Strategies by name: `tabu`, `policy:paper`, `boa+population=500`."""

from __future__ import annotations

import ast
import inspect
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder._checks import known_names, short, unknown
from anyorder.space import Space
from anyorder.strategies.base import Strategy
from anyorder.strategies.delta import layout
from anyorder.strategies.policy.config import Config, resolve
from anyorder.strategies.policy.search import PolicySearch
from anyorder.strategies.registry import ALIASES, REGISTRY

Algorithm = str | Strategy | Callable[..., Strategy]

_log = logging.getLogger("anyorder")
_SETTING = re.compile(r"\+(?=[A-Za-z_]\w*=)")  # so that 1e+3 is one word
_MOST_VALUES = 2**31  # of a variable
_NOT_SETTINGS = ("self", "space", "seed", "engine", "graph", "restart")


class Name(NamedTuple):
    """The parts of an algorithm's name: `policy:paper+beta=2`."""

    name: str
    preset: str
    settings: dict[str, Any]


def split(text: str) -> Name:
    """The parts of a name; values of settings are Python literals or plain words."""
    if not isinstance(text, str):
        raise TypeError(f"algorithm is {short(text)}, expected a name or a strategy")
    head, *given = _SETTING.split(text.strip())
    name, _, preset = head.partition(":")
    settings: dict[str, Any] = {}
    for item in given:
        key, _, value = item.partition("=")
        if key in settings:
            raise ValueError(f"{text!r} sets {key} twice, expected once")
        try:
            settings[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            settings[key] = value
    return Name(name, preset, settings)


def resolve_name(text: str) -> Name:
    """The same with the names of earlier versions replaced; ValueError if there is no such name."""
    name, preset, settings = split(text)
    if name == "anyorder":  # its method, before there were others
        name = "policy"
    elif name == "baseline":
        name, preset = preset, ""
    name = ALIASES.get(name, name)
    if name not in REGISTRY:
        raise unknown("algorithm", text, REGISTRY)
    if preset and name != "policy":
        raise ValueError(f"algorithm is {text!r}, but only the policy has presets")
    return Name(name, preset, settings)


def default(
    space: Space,
    config: Config | str | None = None,
    engine: str = "auto",
    graph: npt.ArrayLike | None = None,
    restart: bool = True,
) -> str:
    """The algorithm if none is named: "auto", but the policy where settings of it are given.

    In spaces with subsets or permutations, "guided" stands for "auto", also where that is named.
    Spaces of thousands of variables, for which the tables of "auto" do not fit, get "ils".
    """
    if config is not None or engine != "auto" or graph is not None or not restart:
        return "policy"
    if space.groups:
        return "guided"
    if layout.fits(space):
        return "auto"
    _log.warning("%d variables are too many for the algorithm 'auto': using 'ils'", len(space))
    return "ils"


def create(
    algorithm: Algorithm | None,
    space: Space,
    seed: int,
    *,
    config: Config | str | None = None,
    engine: str = "auto",
    graph: npt.ArrayLike | None = None,
    budget: int | None = None,
    restart: bool = True,
) -> Strategy:
    """The strategy of that name, the instance of a class, or a strategy itself.

    Parameters
    ----------
    algorithm
        A name with its settings, a class that takes a space and a seed, or a strategy. None: see
        `default`.
    space, seed
        Where to search, and the seed of its random numbers.
    config, engine, graph, restart
        For the policy; see `PolicySearch`.
    budget
        For strategies with a schedule, such as annealing: when it ends, unless their settings say.
    """
    if algorithm is None:
        algorithm = default(space, config, engine, graph, restart)
    if isinstance(algorithm, str):
        name, preset, settings = resolve_name(algorithm)
        if name == "auto" and space.groups:
            name = "guided"
        if name == "policy":
            return _policy(space, seed, preset, settings, config, engine, graph, restart)
        strategy = named(name, settings, space, seed, budget)
    elif isinstance(algorithm, type):
        strategy = algorithm(space, seed=seed)
    else:
        strategy = algorithm  # type: ignore[assignment]
    _check(strategy, space)
    if isinstance(strategy, PolicySearch):
        return strategy
    for what, given in (("config", config), ("graph", graph)):
        if given is not None:
            raise ValueError(
                f"{what} is for the algorithm 'policy', and this is {strategy.name!r}; settings of "
                f"others are part of the name, such as 'boa+population=500'"
            )
    return strategy


def named(
    name: str, settings: Mapping[str, Any], space: Space, seed: int, budget: int | None = None
) -> Strategy:
    """The strategy of a name, other than the policy, with its settings checked."""
    maker: Callable[..., Strategy] = REGISTRY[ALIASES.get(name, name)]
    known = _parameters(maker)
    if settings and not known:
        raise ValueError(f"{name} has no settings, got {next(iter(settings))!r}")
    known_names(f"setting of {name}", settings, known)
    schedule = {"budget": budget} if budget is not None and "budget" in known else {}
    return maker(space, seed=seed, **{**schedule, **settings})


def _policy(
    space: Space,
    seed: int,
    preset: str,
    settings: Mapping[str, Any],
    config: Config | str | None,
    engine: str,
    graph: npt.ArrayLike | None,
    restart: bool,
) -> PolicySearch:
    settings = dict(settings)
    engine = str(settings.pop("engine", engine))
    if config is not None and preset:
        raise ValueError(f"config is {short(config)}, and the algorithm's name has {preset!r} too")
    chosen = resolve(config if config is not None else preset or "default").replace(**settings)
    return PolicySearch(space, seed, chosen, engine, graph, restart=restart)


def _check(strategy: Any, space: Space) -> None:
    if not isinstance(strategy, Strategy):
        missing = [name for name in _MEMBERS if not hasattr(strategy, name)]
        lacks = f": it lacks {', '.join(missing)}" if len(missing) < len(_MEMBERS) else ""
        raise TypeError(f"algorithm is {short(strategy)}, expected a name or a strategy{lacks}")
    if getattr(strategy, "space", space) != space:
        raise ValueError(f"algorithm is {short(strategy)}, which searches another space")


_MEMBERS = tuple(sorted(getattr(Strategy, "__protocol_attrs__", None) or (
    "name", "batch", "generation", "restarts", "converged", "archive",
    "propose", "learn", "give_up", "state", "restore", "facts",
)))  # fmt: skip


def _parameters(maker: Callable[..., Any]) -> list[str]:
    return [key for key in inspect.signature(maker).parameters if key not in _NOT_SETTINGS]


def settings_of(strategy: Strategy) -> dict[str, Any]:
    """The settings of a strategy, as JSON values: what its constructor was given."""
    if isinstance(strategy, PolicySearch):
        return strategy.config.to_dict()
    found = {}
    for key in _parameters(type(strategy)):
        value = getattr(strategy, key, None)
        value = value.item() if isinstance(value, np.generic) else value
        if value is None or isinstance(value, bool | int | float | str):
            found[key] = value
    return found


def recreate(
    name: str,
    settings: Mapping[str, Any],
    space: Space,
    seed: int,
    *,
    engine: str = "auto",
    graph: npt.ArrayLike | None = None,
    restart: bool = True,
) -> Strategy:
    """The strategy that `name` and `settings_of` describe; ValueError if it is not one of ours."""
    if name == "policy":
        # Older versions did not split integers.
        config = Config.from_dict({"digits_above": _MOST_VALUES, **settings})
        return PolicySearch(space, seed, config, engine, graph, restart=restart)
    if name not in REGISTRY:
        raise ValueError(f"{name!r} is a strategy of your own: pass algorithm= to continue it")
    return named(name, settings, space, seed)
