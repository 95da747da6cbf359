"""Texts with `{name}` placeholders: the names that they use, and filling them in."""

from __future__ import annotations

import re
from collections.abc import Mapping

from anyorder._internal.checks import did_you_mean, short

PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def placeholders(template: str) -> list[str]:
    """Return the names in braces; raise a ValueError if braces do not pair."""
    names = []
    for found in PLACEHOLDER.finditer(template):
        if found[0] in ("{", "}"):
            raise ValueError(f"lone {found[0]} in {short(template)}, a brace is written twice")
        if found[1] is not None:
            names.append(found[1])
    return names


def fill(template: str, texts: Mapping[str, str]) -> str:
    """Return a template with its placeholders filled in; raise a ValueError if one is unknown."""
    for name in placeholders(template):
        if name not in texts:
            expected = "expected a variable, {point} or {scratch}; a brace is written twice"
            raise ValueError(f"unknown {{{name}}}{did_you_mean(name, texts)}, {expected}")
    return PLACEHOLDER.sub(
        lambda found: found[0][0] if found[1] is None else texts[found[1]], template
    )
