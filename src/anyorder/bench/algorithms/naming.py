"""The parts of an algorithm's name, its settings, and the package it comes from."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from anyorder._internal.checks import known_names, require, unknown
from anyorder.strategies import create
from anyorder.strategies.registry import find, names

Settings = dict[str, Any]
STRATEGY = "strategy"  # the kind of a strategy that is given by its name alone


class Parts(NamedTuple):
    """The parts of an algorithm's name: its library, its name there, and its settings."""

    kind: str
    name: str
    settings: Settings


def split(text: str) -> Parts:
    """Split an algorithm's name into its parts.

    The strategies of this library are of two kinds: "policy", whose names are the presets, and
    "strategy", a word which the text does not contain.
    """
    kind, name, settings = create.split(text)
    if kind == STRATEGY:
        raise unknown("algorithm", text, names())
    if kind != "policy" and find(kind) is not None:
        kind, name = STRATEGY, f"{kind}:{name}" if name else kind
    return Parts(kind, name, settings)


def check_settings(settings: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise a ValueError for the first setting that is not known."""
    known = list(known)
    if settings and not known:
        raise ValueError(f"unknown setting {next(iter(settings))!r}, expected none")
    known_names("setting", settings, known)


def complete(maker: Callable[..., Any], settings: Mapping[str, Any]) -> Settings:
    """Return the settings with the defaults of the maker's signature, without the seed."""
    try:
        parameters = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError):  # the signature of compiled code is unknown
        return dict(settings)
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    defaults.pop("seed", None)
    return {**plain(defaults), **settings}


def plain(value: Any) -> Any:
    """Return a value that JSON has; other objects are replaced by their names."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return getattr(value, "__name__", None) or getattr(value, "name", type(value).__name__)


def is_installed(package: str) -> bool:
    """Return whether a package is installed, without importing it."""
    return importlib.util.find_spec(package) is not None


def peer(package: str, purpose: str | None = None) -> Any:
    """Import another library, or say how to install it; `purpose` says what requires it."""
    extra = "cuda" if package == "torch" else "peers"
    return require(package, extra, f"{purpose or 'the algorithm'} requires {package}")
