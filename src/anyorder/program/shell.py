"""Shell scripts with `{name}` placeholders: values travel in environment variables.

A value never becomes part of the script. `{name}` is replaced by a reference to an environment
variable, `"$anyorder_name"`, and the shell does not parse the result of an expansion again. That
holds wherever the placeholder stands, so safety does not depend on reading the script correctly.

Reading it decides only how the reference is written, so that a value arrives as one word:

    context                                 {x} becomes                  an absent flag is
    outside quotes                          "$anyorder_x"                nothing, not even a word
    in double quotes, in a here-document    ${anyorder_x}                empty text
    in $(( ))                               ${anyorder_x}, numbers only  empty text
    in single quotes, after <<'EOF'         refused: nothing is expanded there

Arithmetic accepts numbers only because Bash evaluates text in it, which may run code. A script that
runs its text as code itself (`eval`, `sh -c`) runs a value as code as well.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from anyorder.program.templates import PLACEHOLDER, fill, placeholders

PREFIX = "anyorder_"
_PLAIN = re.compile(
    r"""
    (?P<escape>\\[^{}])
    | (?P<single>'[^']*'?)
    | (?P<document>(?<!<)<<(?!<)-?[ \t]*(?P<word>'[^'\n]*'|"[^"\n]*"|[^\s;&|<>()]+))
    | (?P<comment>(?<![^\s;&|()`])\#[^\n]*)
    | (?P<brace>\{\{|\}\}|\{[^{}]*\})
    | (?P<open>\$\(\(|\$\(|["(`])
    | (?P<close>\))
    | (?P<newline>\n)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(
    r"""(?P<escape>\\[^{}])|(?P<brace>\{\{|\}\}|\{[^{}]*\})|(?P<open>\$\(\(|\$\(|["`])""", re.DOTALL
)
_ARITHMETIC = re.compile(
    r"(?P<brace>\{\{|\}\}|\{[^{}]*\})|(?P<open>\$\(\(|\$\(|\()|(?P<close>\))", re.DOTALL
)


@dataclass(frozen=True)
class Script:
    """A script for the shell, ready to run.

    Attributes
    ----------
    text
        The script with references to environment variables for its placeholders.
    variables
        Placeholder to environment variable.
    numeric
        Placeholders in arithmetic, whose values must be numbers.
    """

    text: str
    variables: dict[str, str]
    numeric: frozenset[str]


def parse(template: str, flags: Collection[str] = ()) -> Script:
    """The script of a template; a ValueError where a placeholder cannot be expanded."""
    variables = _variables(placeholders(template))
    reader = _Reader(template, variables, frozenset(flags))
    text = reader.read()
    return Script(text, variables, frozenset(reader.numeric))


def _variables(names: list[str]) -> dict[str, str]:
    """An environment variable for each name; names that differ get different ones."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        base = PREFIX + re.sub(r"[^A-Za-z0-9_]", "_", name)
        unique, k = base, 2
        while unique in found.values():
            unique, k = f"{base}_{k}", k + 1
        found[name] = unique
    return found


class _Reader:
    """Replaces placeholders from left to right, and keeps track of the quotes around them."""

    def __init__(self, template: str, variables: dict[str, str], flags: frozenset[str]) -> None:
        self.template, self.variables, self.flags = template, variables, flags
        self.numeric: set[str] = set()
        self._place = 0
        self._openings: list[str] = []  # those that are not closed yet, innermost last
        self._documents: list[tuple[str, bool]] = []  # here-documents that begin at the next line

    @property
    def _inner(self) -> str:
        return self._openings[-1] if self._openings else ""

    def read(self) -> str:
        """The script with its references."""
        parts: list[str] = []
        while found := self._next():
            parts.append(self.template[self._place : found.start()])
            self._place = found.end()
            parts.append(self._token(found))
        return "".join([*parts, self.template[self._place :]])

    def _next(self) -> re.Match[str] | None:
        tokens = {'"': _QUOTED, "$((": _ARITHMETIC, "((": _ARITHMETIC}.get(self._inner, _PLAIN)
        return tokens.search(self.template, self._place)

    def _token(self, found: re.Match[str]) -> str:
        text, kind = found[0], found.lastgroup
        if kind == "brace":
            return self._reference(text, self._inner)
        if kind == "single":
            return self._verbatim(text, "single quotes")
        if kind == "comment":
            return self._expanded(text)
        if kind == "document" or kind == "word":
            word = found["word"]
            self._documents.append((word.strip("'\"").replace("\\", ""), word[0] in "'\"\\"))
        elif kind == "open":
            self._open(text)
        elif kind == "close":
            return self._close(text)
        elif kind == "newline":
            return text + "".join(self._document(*one) for one in self._pending())
        return text

    def _open(self, text: str) -> None:
        if text == self._inner and text in '"`':
            self._openings.pop()
        else:  # parentheses within arithmetic belong to it
            arithmetic = self._inner in ("$((", "((") and text == "("
            self._openings.append("((" if arithmetic else text)

    def _close(self, text: str) -> str:
        if self._inner == "$((" and self.template.startswith(")", self._place):
            self._openings.pop()
            self._place += 1
            return "))"
        if self._inner in ("(", "$(", "(("):
            self._openings.pop()
        return text

    def _pending(self) -> list[tuple[str, bool]]:
        pending, self._documents = self._documents, []
        return pending

    def _document(self, word: str, quoted: bool) -> str:
        """The here-document that begins here and ends with a line that is the word."""
        end = re.compile(rf"^\t*{re.escape(word)}$", re.MULTILINE).search(
            self.template, self._place
        )
        stop = len(self.template) if end is None else end.end()
        text, self._place = self.template[self._place : stop], stop
        if quoted:
            return self._verbatim(text, "a here-document whose delimiter is quoted")
        return self._expanded(text)

    def _verbatim(self, text: str, where: str) -> str:
        """A part in which the shell expands nothing."""
        for name in placeholders(text):
            raise ValueError(f"{{{name}}} is in {where}, where the shell expands nothing")
        return fill(text, {})

    def _expanded(self, text: str) -> str:
        """A part in which quotes have no meaning."""
        return PLACEHOLDER.sub(lambda found: self._reference(found[0], '"'), text)

    def _reference(self, brace: str, inner: str) -> str:
        if brace in ("{{", "}}"):
            return brace[0]
        name = brace[1:-1]
        variable, flag = self.variables[name], name in self.flags
        if inner in ("$((", "(("):
            self.numeric.add(name)
        if inner in ('"', "$((", "(("):
            return f"${{{variable}-}}" if flag else f"${{{variable}}}"
        return f'${{{variable}+"${variable}"}}' if flag else f'"${variable}"'
