"""The parts of an algorithm's name, its settings, and the package it comes from."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from anyorder._checks import known_names, require
from anyorder.strategies import create
from anyorder.strategies.registry import ALIASES, REGISTRY

Settings = dict[str, Any]


class Parts(NamedTuple):
    """An algorithm's library, its name there, its settings: `optuna`, `TPE`, {...}."""

    kind: str
    name: str
    settings: Settings


def split(text: str) -> Parts:
    """The parts of an algorithm's name.

    The strategies of this library are of the kinds "anyorder" (the policy, whose names are its
    presets) and "baseline" (all others), as in the records of earlier versions.
    """
    kind, name, settings = create.split(text)
    if kind == "policy":
        kind = "anyorder"
    elif kind in REGISTRY or kind in ALIASES:
        kind, name = "baseline", f"{kind}:{name}" if name else kind
    if kind == "baseline":
        name = ALIASES.get(name, name)
    return Parts(kind, name, settings)


def check_settings(settings: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise for the first setting that is not known."""
    known = list(known)
    if settings and not known:
        raise ValueError(f"unknown setting {next(iter(settings))!r}, expected none")
    known_names("setting", settings, known)


def complete(maker: Callable[..., Any], settings: Mapping[str, Any]) -> Settings:
    """Settings completed by the defaults in a signature, without the seed."""
    try:
        parameters = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError):  # compiled
        return dict(settings)
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    defaults.pop("seed", None)
    return {**plain(defaults), **settings}


def plain(value: Any) -> Any:
    """A value for JSON; objects that JSON does not have are represented by their names."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return getattr(value, "__name__", None) or getattr(value, "name", type(value).__name__)


def installed(package: str) -> bool:
    """Whether a package is installed; it is not imported."""
    return importlib.util.find_spec(package) is not None


def peer(package: str, purpose: str | None = None) -> Any:
    """Import another library, or say how to install it; `purpose` is what requires it."""
    extra = "cuda" if package == "torch" else "peers"
    return require(package, extra, f"{purpose or 'the algorithm'} requires {package}")
