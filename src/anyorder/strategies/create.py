"""Strategies by name: `tabu`, `policy:paper`, `boa+population=500`."""

from __future__ import annotations

import ast
import inspect
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from anyorder._internal.checks import known_names, short, unknown
from anyorder.space import Space
from anyorder.strategies.base import Strategy
from anyorder.strategies.models import layout
from anyorder.strategies.registry import REGISTRY, find

# A name, a strategy, or a callable that makes one from a space and a seed, such as a class or an
# `anyorder.policy.Policy`.
Algorithm = str | Strategy | Callable[..., Strategy]

SEVERAL = "pareto"  # what "auto" means for several objectives

_log = logging.getLogger("anyorder")
_SETTING = re.compile(r"\+(?=[A-Za-z_]\w*=)")  # so that 1e+3 stays one word


class Name(NamedTuple):
    """The parts of an algorithm's name: `policy:paper+beta=2`."""

    name: str
    preset: str
    settings: dict[str, Any]


def split(text: str) -> Name:
    """Return the parts of a name; values of settings are Python literals or plain words."""
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
    """Return the parts of a strategy's name; raise a ValueError if there is no such strategy."""
    parts = split(text)
    if find(parts.name) is None:
        raise unknown("algorithm", text, REGISTRY)
    return parts


def default(space: Space, several: bool = False) -> str:
    """Return the name of the default algorithm: "auto", or for several objectives "pareto".

    In spaces of thousands of variables, for which their tables are too large, it is "ils" or
    "nsga2".
    """
    name, plain = (SEVERAL, "nsga2") if several else ("auto", "ils")
    if layout.fits(space):
        return name
    _log.warning(
        "%d variables are too many for the algorithm %r: using %r", len(space), name, plain
    )
    return plain


def create(
    algorithm: Algorithm | None,
    space: Space,
    seed: int,
    *,
    budget: int | None = None,
    several: bool = False,
) -> Strategy:
    """Return the strategy that a name, a class or another callable means, or the strategy given.

    Parameters
    ----------
    algorithm
        A name with settings; a class, or another callable, that is called with a space and `seed=`;
        or a strategy. None: see `default`.
    space, seed
        The space to search, and the seed of the strategy's random numbers.
    budget
        The end of the schedule of strategies that have one, such as annealing, unless their
        settings say otherwise.
    several
        Whether there are several objectives. "auto" then means "pareto", and a strategy that does
        not support them is refused.
    """
    if algorithm is None:
        algorithm = default(space, several)
    if isinstance(algorithm, str):
        name, preset, settings = resolve_name(algorithm)
        name = SEVERAL if several and name == "auto" else name
        made = create_named(name, preset, settings, space, seed, budget)
    else:
        if makes_strategies(algorithm):
            algorithm = algorithm(space, seed=seed)  # type: ignore[operator]
        made = _check(algorithm, space)
    if several and not getattr(made, "several", False):
        able = [name for name, kind in REGISTRY.items() if getattr(kind, "several", False)]
        raise ValueError(
            f"algorithm is {made.name!r}, which has one objective; several are for "
            f"{', '.join(able[:-1])} and {able[-1]}"
        )
    return made


def makes_strategies(algorithm: Any) -> bool:
    """Return whether a value is a callable that makes strategies, such as a class."""
    return isinstance(algorithm, type) or (
        callable(algorithm) and not isinstance(algorithm, Strategy)
    )


def create_named(
    name: str,
    preset: str,
    settings: Mapping[str, Any],
    space: Space,
    seed: int,
    budget: int | None = None,
) -> Strategy:
    """Return a registered strategy, with its settings checked."""
    given = arguments_of(name, preset, settings)
    cls = REGISTRY[name]
    schedule = {"budget": budget} if budget is not None and "budget" in _parameters(cls) else {}
    maker: Callable[..., Any] = cls
    return _check(maker(space, seed=seed, **{**schedule, **given}), space)


def arguments_of(name: str, preset: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a registered strategy for some settings; raise if one is unknown.

    They are the settings themselves, unless the class has a method `arguments(preset, settings)`.
    """
    cls = REGISTRY[name]
    if (arguments := getattr(cls, "arguments", None)) is not None:
        return dict(arguments(preset, settings))
    if preset:
        raise ValueError(f"algorithm is '{name}:{preset}', but {name} has no presets")
    known = _parameters(cls)
    if settings and not known:
        raise ValueError(f"unknown setting {next(iter(settings))!r} of {name}, expected none")
    known_names(f"setting of {name}", settings, known)
    return dict(settings)


def _check(strategy: Any, space: Space) -> Strategy:
    if not isinstance(strategy, Strategy):
        missing = [name for name in _MEMBERS if not hasattr(strategy, name)]
        lacks = f": it lacks {', '.join(missing)}" if len(missing) < len(_MEMBERS) else ""
        raise TypeError(f"algorithm is {short(strategy)}, expected a name or a strategy{lacks}")
    if getattr(strategy, "space", space) != space:
        raise ValueError(f"algorithm is {short(strategy)}, which searches another space")
    return strategy


_MEMBERS = tuple(sorted(getattr(Strategy, "__protocol_attrs__", None) or (
    "name", "batch", "generation", "restarts", "converged", "archive", "influence_unit",
    "propose", "learn", "give_up", "state", "restore", "settings", "facts", "influence",
)))  # fmt: skip


def _parameters(cls: Callable[..., Any]) -> list[str]:
    return [key for key in inspect.signature(cls).parameters if key not in ("space", "seed")]


def recreate(name: str, settings: Mapping[str, Any], space: Space, seed: int) -> Strategy:
    """Return the strategy with this name and these `settings()`; ValueError if it is unknown."""
    if find(name) is None:
        raise ValueError(f"{name!r} is a strategy of your own: pass algorithm= to continue it")
    return create_named(name, "", settings, space, seed)


def describe(name: str, settings: Mapping[str, Any]) -> str:
    """Return the name with its settings, as `algorithm=` accepts it.

    A class with a method `describe(settings)` decides which settings are worth showing.
    """
    if (own := getattr(find(name), "describe", None)) is not None:
        return str(own(settings))
    given = {key: value for key, value in settings.items() if value is not None}
    return name + "".join(f"+{key}={value}" for key, value in given.items())
