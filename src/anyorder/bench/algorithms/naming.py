"""The parts of an algorithm's name, and what is said about a wrong one."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from anyorder._checks import did_you_mean

Settings = dict[str, Any]
_SETTING = re.compile(r"\+(?=[A-Za-z_]\w*=)")  # so that 1e+3 is one word


class Parts(NamedTuple):
    """`baseline:boa+population=500`: its kind, its name, its settings."""

    kind: str
    name: str
    settings: Settings


def split(text: str) -> Parts:
    """The parts of an algorithm's name; values are Python literals or plain words."""
    if not isinstance(text, str):
        raise TypeError(f"algorithm is {text!r}, expected a name")
    head, *given = _SETTING.split(text.strip())
    kind, _, name = head.partition(":")
    settings: Settings = {}
    for item in given:
        key, _, value = item.partition("=")
        if key in settings:
            raise ValueError(f"{text!r} sets {key} twice, expected once")
        try:
            settings[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[key] = value
    return Parts(kind, name, settings)


def unknown(what: str, given: str, known: Iterable[str], *, most: int = 40) -> ValueError:
    """The error for a name that there is not; many known ones are not all listed."""
    known = list(known)
    hint = did_you_mean(given, known)
    listed = f"; there are {', '.join(known)}" if len(known) <= most else ""
    if not known:
        listed = "; there are none"
    return ValueError(f"unknown {what} {given!r}{hint}{listed}")


def check_settings(settings: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise for the first setting that is not known."""
    known = list(known)
    for name in settings:
        if name not in known:
            raise unknown("setting", name, known)


def whole(maker: Callable[..., Any], settings: Mapping[str, Any]) -> Settings:
    """Settings with the defaults of what was not set, as far as it says them; no seed."""
    try:
        parameters = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError):  # compiled
        return dict(settings)
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    defaults.pop("seed", None)
    return {**plain(defaults), **settings}


def plain(value: Any) -> Any:
    """A value as JSON has it; what JSON does not have, by its name."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return getattr(value, "__name__", None) or getattr(value, "name", type(value).__name__)


def installed(package: str) -> bool:
    """Whether it is there, without importing it."""
    return importlib.util.find_spec(package) is not None


def require(package: str, why: str = "") -> Any:
    """The package, or an error that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        extra = package if package == "torch" else "'anyorder[peers]'"
        state = f"does not import ({error})"
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            state = "is not installed"
        reason = f", and {why}" if why else ""
        message = f"{package} {state}{reason}: pip install {extra}"
        raise ImportError(message, name=package) from error
