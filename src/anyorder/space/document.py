"""Spaces as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from anyorder._checks import integer, short
from anyorder.space.groups import List, Permutation, Subset
from anyorder.space.variables import Binary, Categorical, Float, Integer, Variable, from_json

_FORMAT, _VERSION = "anyorder-space", 3
_LISTS = {"permutation", "subset"}  # which version 2 does not have
_NEWER = {"step", "log", "when"}  # what version 1 does not have, nor the type "float"
_KINDS: dict[str, Any] = {
    "binary": Binary, "categorical": Categorical, "integer": Integer, "float": Float,
    "permutation": Permutation, "subset": Subset,
}  # fmt: skip


def write(runs: Iterable[tuple[str | None, Variable | List, int]]) -> dict[str, Any]:
    """The document of names and variables, each with how often it is repeated."""
    entries = []
    for name, variable, count in runs:
        entry: dict[str, Any] = {"name": name} if name else {}
        entry |= variable.to_dict()
        entries.append(entry | ({"repeat": count} if count > 1 else {}))
    version = 1  # the first that has all of it, so that others read what they can
    if any(entry["type"] in _LISTS for entry in entries):
        version = _VERSION
    elif any(entry["type"] == "float" or entry.keys() & _NEWER for entry in entries):
        version = 2
    return {"format": _FORMAT, "version": version, "variables": entries}


def read(document: Mapping[str, Any]) -> Any:
    """The variables of a document: a dict, or a list where they have no names."""
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
    """Name, variable and number of repeats of an entry of a document."""
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
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"type is {short(kind)}, expected one of {', '.join(_KINDS)}")
    count = integer("repeat", fields.pop("repeat", 1), 1)
    return name, _KINDS[kind](**fields), count
