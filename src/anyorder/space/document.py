"""Spaces as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from anyorder._internal.checks import integer, short
from anyorder.space.lists import LISTS, List
from anyorder.space.variables import SCALARS, Variable, from_json

_FORMAT = "anyorder-space"
_NEWER = {"step", "log", "when"}  # options that do not exist in version 1
KINDS: dict[str, Any] = {kind.__name__.lower(): kind for kind in (*SCALARS, *LISTS)}
_VERSION = max(kind.since for kind in KINDS.values())


def write(runs: Iterable[tuple[str | None, Variable | List, int]]) -> dict[str, Any]:
    """Return the document of names and variables, each with its number of repeats."""
    entries = []
    for name, variable, count in runs:
        entry: dict[str, Any] = {"name": name} if name else {}
        entry |= variable.to_dict()
        entries.append(entry | ({"repeat": count} if count > 1 else {}))
    # the first version that has all of it, so that older releases can read it if possible
    versions = [max(KINDS[e["type"]].since, 1 + bool(e.keys() & _NEWER)) for e in entries]
    version = max(versions, default=1)
    return {"format": _FORMAT, "version": version, "variables": entries}


def read(document: Mapping[str, Any]) -> Any:
    """Return the variables of a document: a dict, or a list if they have no names."""
    if not isinstance(document, Mapping) or document.get("format") != _FORMAT:
        raise ValueError(f"{short(document)} is not a space, expected format {_FORMAT!r}")
    version, entries = document.get("version"), document.get("variables")
    if type(version) is not int or not 1 <= version <= _VERSION:
        expected = f"expected 1 to {_VERSION}: a newer anyorder may have written this"
        raise ValueError(f"version is {short(version)}, {expected}")
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"variables is {short(entries)}, expected a non-empty list")
    names: list[str | None] = []
    variables: list[Variable | List] = []
    for j, entry in enumerate(entries):
        try:
            name, variable, count = _read_variable(entry)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"entry {j} of variables, {short(entry)}: {error}") from None
        names += [name] * count
        variables += [variable] * count
    labels = [name for name in names if name is not None]
    if not labels:
        return variables
    if len(labels) < len(names):
        raise ValueError(f"variable {names.index(None)} has no name, expected all or none to")
    named = dict(zip(labels, variables, strict=True))
    if len(named) < len(labels):
        twice = next(name for name in labels if labels.count(name) > 1)
        raise ValueError(f"name {short(twice)} is repeated, expected distinct names")
    return named


def _read_variable(entry: Any) -> tuple[str | None, Variable | List, int]:
    """Return name, variable and number of repeats in an entry of a document."""
    if not isinstance(entry, Mapping):
        raise TypeError("expected an object")
    fields = {key: from_json(value) for key, value in entry.items() if key != "when"}
    if isinstance(when := entry.get("when"), Mapping):
        fields["when"] = {
            name: [*map(from_json, value)] if isinstance(value, list) else value
            for name, value in when.items()
        }
    elif when is not None:
        raise TypeError(f"when is {short(when)}, expected an object")
    kind, name = fields.pop("type", None), fields.pop("name", None)
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name is {short(name)}, expected a str")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"type is {short(kind)}, expected one of {', '.join(KINDS)}")
    count = integer("repeat", fields.pop("repeat", 1), 1)
    return name, KINDS[kind](**fields), count
