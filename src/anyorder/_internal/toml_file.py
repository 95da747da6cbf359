"""TOML files that users write: every key is checked, and errors name the line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyorder._internal.checks import Check, did_you_mean, short

__all__ = ["Check", "TomlFile", "boolean", "of_type", "table", "tables", "text"]

Key = tuple[str | int, ...]  # the names that lead to a value, and integers to count [[sections]]


class TomlFile:
    """A TOML file; errors name the file and the line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        read = path.read_bytes()
        try:
            text = read.decode("utf-8").replace("\r\n", "\n")
            _refuse_depth(text)
            self._values = tomllib.loads(text)
        except UnicodeDecodeError as error:
            line = read.count(b"\n", 0, error.start) + 1
            raise ValueError(f"{path}: {error} (at line {line})") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        self._lines = _lines(text)
        self._top: Mapping[str, Check] = {}

    @contextmanager
    def at(self, *keys: str | int) -> Iterator[None]:
        """Add the line of this key to errors raised within the context."""
        try:
            yield
        except (TypeError, ValueError, ImportError, OSError, MemoryError) as error:
            known = [keys[:k] for k in range(len(keys), 0, -1) if keys[:k] in self._lines]
            line = f", line {self._lines[known[0]]}" if known else ""
            kind = ImportError if isinstance(error, ImportError) else ValueError
            reason = "not enough memory" if isinstance(error, MemoryError) else error
            raise kind(f"{self.path}{line}: {reason}") from None

    def one(self, keys: Key, check: Check) -> Any:
        """Return the value at a key, checked by `check`."""
        value: Any = self._values
        for key in keys:
            value = value[key]
        with self.at(*keys):
            return check(str(keys[-1]), value)

    def table(
        self, keys: Key, checks: Mapping[str, Check], required: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Return a checked section, {} if it is missing; without keys, the top of the file."""
        if not keys:
            self._top = checks
        values: Any = self._values
        for key in keys:
            values = values.get(key, {}) if isinstance(values, dict) else values[key]
        names = [str(key) for key in keys if isinstance(key, str)]
        section = f" in [{'.'.join(names)}]" if names else ""
        for key in values:
            with self.at(*keys, key):
                if key not in checks:
                    top = " (it belongs above the first [section])" if key in self._top else ""
                    hint = (
                        top or did_you_mean(key, checks) or f", expected one of {', '.join(checks)}"
                    )
                    raise ValueError(f"unknown key {key!r}{section}{hint}")
        with self.at(*keys):
            for key in required:
                if key not in values:
                    raise ValueError(f"{key!r} is missing{section}, and is required")
        return {key: self.one((*keys, key), checks[key]) for key in values}


# Parsing takes time and memory quadratic in the depth of a key, and recurses into brackets.
_DEEPEST = 100
_TOKEN = re.compile(
    r'''
    (?P<skip>"""[\s\S]*?(?:"""|\Z) | \'\'\'[\s\S]*?(?:\'\'\'|\Z) | \#[^\n]*)
    | (?P<part>"(?:[^"\\\n]|\\.)*"? | '[^'\n]*'? | [A-Za-z0-9_-]+)
    | (?P<dot>[ \t]*\.[ \t]*)
    | (?P<other>[\s\S])
    ''',
    re.VERBOSE,
)


def _refuse_depth(text: str) -> None:
    """Raise a ValueError if a key has too many parts, or brackets are nested too deeply."""
    parts, after_dot, brackets = 0, False, 0
    for found in _TOKEN.finditer(text):
        if found.lastgroup == "dot":
            after_dot = True
            continue
        parts = (parts + 1 if after_dot else 1) if found.lastgroup == "part" else 0
        after_dot = False
        brackets += (found[0] in "[{") - (found[0] in "]}")
        if max(parts, brackets) > _DEEPEST:
            what = f"has more than {_DEEPEST} parts" if parts else "is nested too deeply"
            line = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"{'a key' if parts else 'a value'} {what} (at line {line})")


def _lines(text: str) -> dict[Key, int]:
    """Return the line of each key that begins a line; tomllib does not report it."""
    found: dict[Key, int] = {}
    section: Key = ()
    counts: dict[Key, int] = {}
    name = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
    names = rf"({name}(?:\s*\.\s*{name})*)"
    for number, line in enumerate(text.splitlines(), 1):
        many = re.match(rf"\s*\[\[\s*{names}\s*\]\]\s*(?:#.*)?$", line)
        header = many or re.match(rf"\s*\[\s*{names}\s*\]\s*(?:#.*)?$", line)
        key = header or re.match(rf"\s*{names}\s*=", line)
        if key is None:
            continue
        keys: Key = tuple(part.strip("\"'") for part in re.findall(name, key[1]))
        if many:
            found.setdefault(keys, number)
            counts[keys] = counts.get(keys, -1) + 1
            keys = (*keys, counts[keys])
        section, keys = (keys, keys) if header else (section, section + keys)
        found.setdefault(keys, number)
    return found


# --- what values may be -------------------------------------------------------------------------


def of_type(kind: Any, expected: str, test: Callable[[Any], bool] = lambda value: True) -> Check:
    """Return a check that a value has a type, and that `test` is true of it."""

    def check(what: str, value: Any) -> Any:
        # in Python True is an int; here it is never meant as one
        right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not right or not test(value):
            raise ValueError(f"{what} is {short(value)}, expected {expected}")
        return value

    return check


text = of_type(str, "text that is not empty", bool)
boolean = of_type(bool, "true or false")
table = of_type(dict, "a [section]")
tables = of_type(
    list,
    "[[sections]], at least one",
    lambda value: bool(value) and all(isinstance(entry, dict) for entry in value),
)
