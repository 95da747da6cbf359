"""Reading of small text formats; every error names the file, the line and what was expected."""

from __future__ import annotations

import math
import os
from typing import NoReturn


class Line:
    """A line of a file, split into words."""

    def __init__(self, path: str, number: int, words: list[str]) -> None:
        self.words = words
        self._where = f"{path}, line {number}"

    def __len__(self) -> int:
        return len(self.words)

    def refuse(self, reason: str) -> NoReturn:
        """Raise a ValueError about this line."""
        raise ValueError(f"{self._where}: {reason}")

    def expect(self, count: int, what: str) -> None:
        """Raise a ValueError unless there are `count` words."""
        if len(self.words) != count:
            self.refuse(f"{len(self.words)} entries ({' '.join(self.words)!r}), expected {what}")

    def integer(self, place: int, low: int, high: int | None = None) -> int:
        """Return the integer at a place; raise a ValueError if it is out of bounds."""
        word = self._word(place)
        try:
            value = int(word)
        except ValueError:
            self.refuse(f"{word!r}, expected an integer")
        if value < low or (high is not None and value > high):
            self.refuse(f"{value}, expected {low} to {'any' if high is None else high}")
        return value

    def number(self, place: int) -> float:
        """Return the finite number at a place."""
        word = self._word(place)
        try:
            value = float(word)
        except ValueError:
            self.refuse(f"{word!r}, expected a number")
        if not math.isfinite(value):
            self.refuse(f"{word!r}, expected a finite number")
        return value

    def _word(self, place: int) -> str:
        if place >= len(self.words):
            self.refuse(f"{len(self.words)} entries, expected at least {place + 1}")
        return self.words[place]


class Lines:
    """The lines of a text file that are not empty, to be read one after another."""

    def __init__(self, path: str | os.PathLike[str], comment: str | None = None) -> None:
        self.path = os.fspath(path)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read().splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is no text: {error}") from None
        split = ((number, line.split()) for number, line in enumerate(text, 1))
        self._lines = [
            Line(self.path, number, words)
            for number, words in split
            if words and not (comment and words[0].startswith(comment))
        ]
        self._at = 0

    def next(self, what: str) -> Line:
        """Return the next line; raise a ValueError if the file ends."""
        if self._at == len(self._lines):
            raise ValueError(f"{self.path} ends, expected {what}")
        self._at += 1
        return self._lines[self._at - 1]

    def rest(self) -> list[Line]:
        """Return all remaining lines."""
        left, self._at = self._lines[self._at :], len(self._lines)
        return left

    def end(self) -> None:
        """Raise a ValueError if any line remains."""
        for line in self.rest():
            line.refuse(f"{' '.join(line.words)!r} after the end of the data")
