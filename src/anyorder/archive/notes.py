"""Notes: what evaluations report besides their values. They are kept, but not used by the search.

A function returns `value, {"size": 12, "log": "a.txt"}`, or `Measured(value, notes={...})`. Notes
are passed on as JSON text, so that the history, a study and a resumed run have the same ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import ProgramError, short

LARGEST = 16_384  # the most characters of the notes of one evaluation as JSON
_MOST_COLUMNS = 100  # the most columns of notes in a table
_EXPECTED = "expected a number, a string, True, False, None, or a list or dict of those"


class NotesError(ProgramError):
    """Notes that cannot be stored."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A value with notes on its evaluation, which a function may return in place of the value.

    Returning `value, {"size": 12}` is the same.

    Attributes
    ----------
    value
        The value as the function would return it without notes; None or NaN for a failed
        evaluation.
    notes
        What the evaluation reports besides, by name: numbers, strings, True, False, None, and lists
        and dicts of those, of at most 16,384 characters as JSON. Notes are stored with the
        evaluation and never used by the search.
    """

    value: Any
    notes: Mapping[str, Any] | None = None


def split(returned: Any) -> tuple[Any, str | None]:
    """Return the value, and the notes as JSON, of what a function returned for a point."""
    if isinstance(returned, Measured):
        return returned.value, to_json(returned.notes)
    if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], Mapping):
        return returned[0], to_json(returned[1])
    return returned, None


def split_all(returned: Any, size: int) -> tuple[Any, list[str | None]]:
    """Return the values and the notes of what a vectorised function returned for `size` points.

    It returns numbers, each possibly with notes, or `values, notes` with a list of dicts, one for
    each point.
    """
    if size == 1:
        value, noted = split(returned)
        if noted is not None:
            return value, [noted]
    values, notes = returned, None
    if isinstance(returned, Measured):
        values, notes = returned.value, returned.notes
    elif isinstance(returned, tuple) and len(returned) == 2 and _are_notes(returned[1]):
        values, notes = returned
    if notes is not None:
        return values, notes_of(notes, size)
    if isinstance(values, list | tuple):
        parts = [split(one) for one in values]
        return [value for value, _ in parts], [noted for _, noted in parts]
    return values, [None] * size


def notes_of(notes: Any, size: int) -> list[str | None]:
    """Return the notes of `size` points as JSON: a dict for each, or one dict for one point."""
    if notes is None:
        return [None] * size
    listed = [notes] if isinstance(notes, Mapping) else notes
    if not isinstance(listed, list | tuple) or len(listed) != size:
        raise NotesError(f"notes is {short(notes)}, expected {size} dicts: one for each point")
    return [to_json(one) for one in listed]


def _are_notes(notes: Any) -> bool:
    """Return whether `notes` is a list of dicts, with None where a point has no notes."""
    return (
        isinstance(notes, list)
        and any(isinstance(one, Mapping) for one in notes)
        and all(one is None or isinstance(one, Mapping) for one in notes)
    )


def to_json(notes: Any) -> str | None:
    """Return notes as they are stored, None if there are none; a NotesError names what is wrong."""
    if notes is None:
        return None
    if not isinstance(notes, Mapping):
        raise NotesError(f"notes is {short(notes)}, expected a dict such as {{'size': 12}}")
    text = _dump("notes", _plain("notes", notes, 0))
    if len(text) > LARGEST:
        sizes = {name: len(_dump(name, _plain(name, notes[name], 0))) for name in notes}
        name = max(sizes, key=lambda key: sizes[key])
        raise NotesError(
            f"notes are {len(text):,} characters as JSON, expected at most {LARGEST:,}: "
            f"notes[{short(name)}] has {sizes[name]:,} of them; keep it in a file, and its name in "
            "the notes"
        )
    return text if notes else None


def from_json(text: str) -> dict[str, Any]:
    """Return notes as users see them; raise a ValueError unless `to_json` made the text."""
    notes = json.loads(text)
    if not isinstance(notes, dict):
        raise ValueError(f"notes are {short(notes)}, expected an object")
    return notes


def pack_notes(notes: Mapping[int, str]) -> npt.NDArray[np.uint8]:
    """Return notes by row as an array, which is part of a state."""
    text = "\n".join(f"{row} {notes[row]}" for row in notes)  # JSON contains no line breaks
    return np.frombuffer(text.encode("ascii"), np.uint8)


def unpack_notes(packed: npt.NDArray[np.uint8], size: int) -> dict[int, str]:
    """Return the notes that `pack_notes` packed; raise a ValueError if a row does not exist."""
    notes = {}
    for line in packed.tobytes().decode("ascii").split("\n"):
        row, _, text = line.partition(" ")
        from_json(text)
        notes[int(row)] = text
    if any(not 0 <= row < size for row in notes):
        raise ValueError("there are notes of rows that do not exist")
    return notes


def table_of(
    notes: Mapping[int, Mapping[str, Any]], rows: Sequence[int], taken: Collection[str]
) -> dict[str, list[Any]]:
    """Return the columns that notes add to a table of `rows`: "notes.size" for the note "size".

    If there are more than a hundred names, there is one column, "notes". A column whose name is
    `taken` gets underscores.
    """
    names = dict.fromkeys(name for one in notes.values() for name in one)
    if len(names) > _MOST_COLUMNS:
        return {_free("notes", taken): [notes.get(row) for row in rows]}
    return {
        _free(f"notes.{name}", taken): [notes.get(row, {}).get(name) for row in rows]
        for name in names
    }


def cell(note: Any) -> Any:
    """Return a note as a cell of a CSV file."""
    return json.dumps(note) if isinstance(note, list | dict) else note


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


_DEEPEST = 50  # the most lists and dicts inside each other


def _plain(what: str, value: Any, depth: int) -> Any:
    """Return a copy of a value with JSON's types only; a NotesError names what has another type."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if depth > _DEEPEST:
        raise NotesError(f"{what[:80]}... is more than {_DEEPEST} lists and dicts deep")
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise NotesError(f"{what} has the name {short(name)}, expected a string")
        return {name: _plain(f"{what}[{name!r}]", one, depth + 1) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(f"{what}[{k}]", one, depth + 1) for k, one in enumerate(value)]
    raise NotesError(f"{what} is {short(value)}, {_EXPECTED}")


def _dump(what: str, value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:  # such as an integer of 5,000 digits
        raise NotesError(f"{what} cannot be written as JSON: {error}") from None
