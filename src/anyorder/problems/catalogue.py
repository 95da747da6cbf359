"""Problems by name, for the command line and for records: ``nk:n=128,k=4,seed=3``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from anyorder._checks import known_names, unknown
from anyorder.problems.base import Problem


class Entry(NamedTuple):
    """A registered problem: its factory, a one-line description, parameters and defaults."""

    factory: Callable[..., Problem]
    description: str
    parameters: dict[str, Any]


registry: dict[str, Entry] = {}


def register(name: str, factory: Callable[..., Problem], description: str) -> None:
    """Register a problem by name; its parameters are those of the factory."""
    if name in registry:
        raise ValueError(f"problem {name!r} is registered already, expected a new name")
    parameters = {p.name: p.default for p in inspect.signature(factory).parameters.values()}
    registry[name] = Entry(factory, description, parameters)


def make(name: str, /, **parameters: Any) -> Problem:
    """The registered problem of that name; parameters not given keep their defaults."""
    entry = _entry(name)
    known_names(f"parameter of {name}", parameters, entry.parameters)
    return entry.factory(**parameters)


def get(text: str) -> Problem:
    """The problem of a full name: ``nk``, or ``nk:n=128,k=4,seed=3``."""
    name, _, rest = text.partition(":")
    entry = _entry(name)
    parameters: dict[str, Any] = {}
    for item in rest.split(",") if rest else []:
        parameter, equals, value = (part.strip() for part in item.partition("="))
        if not equals or parameter in parameters:
            raise ValueError(f"{item!r} in {text!r}, expected parameter=value, each at most once")
        parameters[parameter] = _converted(parameter, value, entry.parameters.get(parameter))
    return make(name, **parameters)


def _entry(name: str) -> Entry:
    if name not in registry:
        raise unknown("problem", name, registry)
    return registry[name]


def _converted(parameter: str, value: str, default: Any) -> Any:
    """The text in the type of the parameter's default."""
    if not isinstance(default, int | float):
        return value
    try:
        return type(default)(value)
    except ValueError:
        kind = "an integer" if isinstance(default, int) else "a number"
        raise ValueError(f"{parameter} is {value!r}, expected {kind}") from None
