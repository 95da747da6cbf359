"""Typesetting of tables and their numbers, for a terminal, Markdown, LaTeX and notebooks.

`tables.py` makes their contents.
"""

from __future__ import annotations

import math
import textwrap
import unicodedata
from collections.abc import Callable, Sequence
from typing import ClassVar

from anyorder._internal.markup import cell, note, panel


class Printed:
    """The base class of tables of means and tables of measures."""

    title: str
    columns: tuple[str, ...]
    notes: tuple[str, ...]
    _feet: ClassVar[int] = 0  # rows of the summary, at the end

    def to_text(self, width: int | None = 100) -> str:
        """Return aligned columns for a terminal, wrapped at `width`; the best has a *."""
        body = self._body(Text(), plain, aligned=True)
        widths = [max(map(len, column)) for column in zip(*body, strict=True)]
        lines = [plain(self.title), ""]
        marked = any("*" in cell for row in body[1:] for cell in row[1:])
        start = 1
        while start < len(widths) or start == 1:
            stop, room = start, (width or sum(widths) * 3) - widths[0]
            while stop < len(widths) and (stop == start or room >= widths[stop] + 2):
                room -= widths[stop] + 2
                stop += 1
            for k, row in enumerate(body):
                cells = [row[0].ljust(widths[0])]
                cells += [row[c].rjust(widths[c]) for c in range(start, stop)]
                line = "  ".join(cells)
                rule = ["-" * len(line)] if k in (1, len(body) - self._feet) else []
                lines += [*rule, line.rstrip()]
            lines.append("")
            start = max(stop, start + 1)
        key = ["*: the best of its row."] if marked else []
        said = (note.replace("A star:", "†:") for note in self.notes)
        notes = [line for note in said for line in textwrap.wrap(plain(note), 100)]
        return "\n".join([*lines, *key, *notes]) + "\n"

    def to_markdown(self) -> str:
        """Return the table in Markdown, also aligned in its source; the best is bold."""
        body = self._body(_Markdown(), _markdown)
        widths = [max(3, *map(len, column)) for column in zip(*body, strict=True)]
        rule = ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])]
        lines = [f"**{_markdown(self.title)}**", ""]
        for k, row in enumerate(body):
            cells = [row[0].ljust(widths[0])]
            cells += [text.rjust(w) for text, w in zip(row[1:], widths[1:], strict=True)]
            lines += ["| " + " | ".join(cells) + " |"]
            lines += ["| " + " | ".join(rule) + " |"] if k == 0 else []
        return "\n".join([*lines, "", *map(_markdown, self.notes)]) + "\n"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: the table with the best in bold, and its notes."""
        head, *rows = self._body(_Html(), cell)
        lines = [["th", *head], *(["td", *row] for row in rows)]
        body = "".join(
            f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in cells)}</tr>"
            for tag, *cells in lines
        )
        return panel(self.title, f"<table>{body}</table>", *map(note, self.notes))

    def to_latex(self) -> str:
        r"""Return a `table` with a caption; it requires \usepackage{booktabs}. The best is bold."""
        body = self._body(_Latex(), _latex)
        lines = [" & ".join(row) + r" \\" for row in body]
        caption = " ".join(_latex(text) for text in (f"{self.title}.", *self.notes))
        head = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}"]
        head += [rf"\begin{{tabular}}{{l{'r' * len(self.columns)}}}", r"\toprule", lines[0]]
        last = len(lines) - self._feet
        feet = [r"\midrule", *lines[last:]] if self._feet else []
        middle = [r"\midrule", *lines[1:last], *feet]
        ends = [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        return "\n".join([*head, *middle, *ends]) + "\n"

    def _body(
        self, marks: Text, plain: Callable[[str], str], aligned: bool = False
    ) -> list[list[str]]:
        """Return all cells as text: the head, the rows, and the rows of the summary."""
        raise NotImplementedError


def digits(means: Sequence[float], whole: bool | None = None) -> tuple[float, int | None]:
    """Return the largest size of the numbers of a row, and their number of decimals.

    There are 5 digits of the largest number, 4 if it is less than 1: 1227.2, 63.980, .7603. The
    decimals are None if the numbers need an exponent, and 0 if they are `whole`; by default this is
    found out from the numbers.
    """
    finite = [abs(m) for m in means if math.isfinite(m)]
    size = max(finite, default=0.0)
    if whole is None:
        whole = all(m == round(m) for m in finite)
    if whole and size < 1e9:
        return size, 0
    if size >= 1e9 or 0 < size < 1e-6:
        return size, None
    return size, max(0, (4 if size >= 1 else 3) - math.floor(math.log10(size or 1.0)))


def form(
    means: Sequence[float], spread: float = 0.0, whole: bool | None = None
) -> Callable[[float], str]:
    """Return a function that writes the numbers of a row with their `digits`.

    If a spread is given, there are as many decimals as show two digits of it, unless the spread is
    only rounding.
    """
    size, decimals = digits(means, whole)
    if decimals is None:
        return lambda x: f"{x:.4e}"
    if spread > 1e-9 * size:
        decimals = max(decimals, 1 - math.floor(math.log10(spread)))

    def written(x: float) -> str:
        text = f"{x:.{decimals}f}"
        return text.replace("0.", ".", 1) if size < 1 and abs(x) < 1 and decimals else text

    return written


class Text:
    """The mark-up of numbers, of the best ones, and of significant ones; here for plain text."""

    plus_minus = "±"

    def number(self, text: str) -> str:
        """Return a number with its mark-up."""
        return text

    def best(self, text: str, best: bool) -> str:
        """Return a number, marked if it is the best of its row."""
        return f"*{text}" if best else text

    def star(self, star: bool) -> str:
        """Return the mark of a significant entry, or a space of the same width."""
        return "†" if star else " "


class _Markdown(Text):
    def best(self, text: str, best: bool) -> str:
        return f"**{text}**" if best else text

    def star(self, star: bool) -> str:
        return r"\*" if star else ""


class _Html(Text):
    def best(self, text: str, best: bool) -> str:
        return f"<strong>{text}</strong>" if best else text

    def star(self, star: bool) -> str:
        return "*" if star else ""


class _Latex(Text):
    plus_minus = r"$\pm$"

    def number(self, text: str) -> str:
        return "$-$" + text[1:] if text.startswith("-") else text

    def best(self, text: str, best: bool) -> str:
        return rf"\textbf{{{text}}}" if best else text

    def star(self, star: bool) -> str:
        return r"$^{*}$" if star else ""


def plain(text: str) -> str:
    """Return the text on one line."""
    return " ".join(text.split())


def _markdown(text: str) -> str:
    return "".join("\\" + c if c in r"\`*_|<[]" else c for c in plain(text))


_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "≥": r"$\geq$",
    **{c: "\\" + c for c in "&%$#_{}"},
    # at the start of a row LaTeX would read it as an argument of the \\ before
    "[": "{[}", "*": "{*}",
}  # fmt: skip


def _latex(text: str) -> str:
    """Return the text as LaTeX; Greek letters become commands."""
    written = []
    for c in plain(text):
        words = unicodedata.name(c, "").split()
        if words[:3] == ["GREEK", "SMALL", "LETTER"] and len(words) == 4:
            written.append(f"$\\{words[3].replace('LAMDA', 'LAMBDA').lower()}$")
        else:
            written.append(_LATEX.get(c, c))
    return "".join(written)
