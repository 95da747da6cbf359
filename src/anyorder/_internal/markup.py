"""HTML that notebooks show: all text is escaped, and there are no scripts."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_LONGEST = 120  # the most characters that a cell shows


def cell(value: Any) -> str:
    """Return a value as the escaped text of a cell; None is shown as a dash."""
    if value is None:
        return "&ndash;"
    text = f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    # remove characters that move or hide text
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def table(rows: Iterable[Sequence[Any]], head: Sequence[str] = ()) -> str:
    """Return a table; without `head`, the first cell of each row is a header."""
    lines = []
    if head:
        lines.append("<tr>" + "".join(f"<th>{cell(name)}</th>" for name in head) + "</tr>")
    for first, *others in rows:
        tag = "td" if head else "th"
        cells = "".join(f"<td>{cell(value)}</td>" for value in others)
        lines.append(f'<tr><{tag} style="text-align: left">{cell(first)}</{tag}>{cells}</tr>')
    return "<table>" + "".join(lines) + "</table>"


def picture(png: bytes, text: str) -> str:
    """Return an image embedded in the page; `text` is shown where the image cannot be."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img style="max-width: 100%" alt="{cell(text)}" src="data:image/png;base64,{data}">'


def panel(title: str, *parts: str) -> str:
    """Return a headline with its contents below."""
    return f"<div><p><strong>{cell(title)}</strong></p>{''.join(parts)}</div>"


def note(text: str) -> str:
    """Return a line of text."""
    return f"<p>{cell(text)}</p>"
