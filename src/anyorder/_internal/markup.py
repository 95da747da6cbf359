"""HTML of what notebooks show: everything is escaped, and nothing runs."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_LONGEST = 120  # characters of a cell


def cell(value: Any) -> str:
    """Return a value as the escaped text of a cell; None is a dash."""
    if value is None:
        return "&ndash;"
    text = f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    # characters that move or hide text
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def table(rows: Iterable[Sequence[Any]], head: Sequence[str] = ()) -> str:
    """Return a table; without a head, the first cell of each row is its head."""
    lines = []
    if head:
        lines.append("<tr>" + "".join(f"<th>{cell(name)}</th>" for name in head) + "</tr>")
    for first, *others in rows:
        tag = "td" if head else "th"
        cells = "".join(f"<td>{cell(value)}</td>" for value in others)
        lines.append(f'<tr><{tag} style="text-align: left">{cell(first)}</{tag}>{cells}</tr>')
    return "<table>" + "".join(lines) + "</table>"


def picture(png: bytes, text: str) -> str:
    """Return an image that is part of the page; `text` stands for it where it is not shown."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img style="max-width: 100%" alt="{cell(text)}" src="data:image/png;base64,{data}">'


def panel(title: str, *parts: str) -> str:
    """Return a headline and what is below it."""
    return f"<div><p><strong>{cell(title)}</strong></p>{''.join(parts)}</div>"


def note(text: str) -> str:
    """Return a line of text."""
    return f"<p>{cell(text)}</p>"
