"""Problems by name, for the command line and for records: ``nk:n=128,k=4,seed=3``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from anyorder._internal.checks import known_names, unknown
from anyorder._internal.entry_points import load_entry_points
from anyorder.problems.base import Problem

GROUP = "anyorder.problems"  # the group of entry points that other packages use


class Entry(NamedTuple):
    """A registered problem: its factory, a one-line description, and parameters with defaults."""

    factory: Callable[..., Problem]
    description: str
    parameters: dict[str, Any]


registry: dict[str, Entry] = {}


def register(name: str, factory: Callable[..., Problem], description: str) -> None:
    """Register a problem by name; its parameters are those of the factory.

    Other packages register problems by an entry point, so that they need not be imported. The
    description is then the first line of the factory's docstring:

        [project.entry-points."anyorder.problems"]
        mine = "my_package:make_problem"
    """
    if name in registry:
        raise ValueError(f"problem {name!r} is registered already, expected a new name")
    parameters = {p.name: p.default for p in inspect.signature(factory).parameters.values()}
    registry[name] = Entry(factory, description, parameters)


def _add(name: str, factory: Callable[..., Problem]) -> None:
    """Register a problem of another package, unless the name is registered already."""
    if name not in registry or registry[name].factory is not factory:
        summary = (inspect.getdoc(factory) or "").partition("\n")[0]
        register(name, factory, summary)


def names() -> list[str]:
    """Return the names of all problems in order, including those of other packages."""
    load_entry_points(GROUP, _add)
    return sorted(registry)


def entry(name: str) -> Entry:
    """Return the problem registered under a name; raise a ValueError if there is none."""
    if name not in registry:
        load_entry_points(GROUP, _add)
    if name not in registry:
        raise unknown("problem", name, registry)
    return registry[name]


def make(name: str, /, **parameters: Any) -> Problem:
    """Make the registered problem of that name; parameters that are not given have defaults."""
    found = entry(name)
    known_names(f"parameter of {name}", parameters, found.parameters)
    return found.factory(**parameters)


def get(text: str) -> Problem:
    """Make the problem with a full name: ``nk``, or ``nk:n=128,k=4,seed=3``."""
    name, _, rest = text.partition(":")
    found = entry(name)
    parameters: dict[str, Any] = {}
    for item in rest.split(",") if rest else []:
        parameter, equals, value = (part.strip() for part in item.partition("="))
        if not equals or parameter in parameters:
            raise ValueError(f"{item!r} in {text!r}, expected parameter=value, each at most once")
        parameters[parameter] = _convert(parameter, value, found.parameters.get(parameter))
    return make(name, **parameters)


def _convert(parameter: str, value: str, default: Any) -> Any:
    """Return the text of a parameter, converted to the type of its default."""
    if not isinstance(default, int | float):
        return value
    try:
        return type(default)(value)
    except ValueError:
        kind = "an integer" if isinstance(default, int) else "a number"
        raise ValueError(f"{parameter} is {value!r}, expected {kind}") from None
