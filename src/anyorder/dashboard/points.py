"""Tables of points: the best, those being evaluated, and the last that failed."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.charts.top import MOST, best_rows
from anyorder.charts.variables import variable_names
from anyorder.dashboard.contents import Contents
from anyorder.errors import STATUSES

Floats = npt.NDArray[np.float64]

_LATEST = 10  # the most failures, and running evaluations, that are listed
_ROOM = 90_000  # the most bytes of a table
_NOTES = 20  # the most columns of notes
_POINT, _MESSAGE = 600, 300  # the most characters of a point, and of a message, that are only shown


def best(contents: Contents) -> dict[str, Any]:
    """Return the table of the best points, as many as there is room for.

    `record` names the columns of the evaluation, including notes, and `variables` those of the
    point. Cells are JSON texts, so that they can be copied exactly; the cell of an absent variable
    is empty.
    """
    history, space = contents.history, contents.history.space
    names = variable_names(space)
    several = contents.archive.objectives
    values = ("value",) if several is None else several.names
    rows: list[dict[str, Any]] = []
    repeated: dict[int, list[str]] = {}
    if several is None and not contents.archive.deterministic:
        first, means, counts = _means(contents)
        repeated = {
            row: [as_text(mean), str(count)]
            for row, mean, count in zip(
                first.tolist(), means.tolist(), counts.tolist(), strict=True
            )
        }
    room = _ROOM - sum(map(_bytes, names))
    some = best_of(contents).tolist()
    noted = [json.loads(contents.archive.notes.get(row, "{}")) for row in some]
    heads = [*dict.fromkeys(key for one in noted for key in one)][:_NOTES]
    for row, notes in zip(some, noted, strict=True):
        cells = _cells(contents, history.codes_at(np.array([row]))[0], names)
        number = contents.number(row)
        record = [as_text(value) for value in np.ravel(contents.archive.values[row]).tolist()]
        record += ["" if number < 0 else str(number), f"{history.seconds[row]:.3g}"]
        record += repeated.get(row, [])
        record += [as_text(notes[key]) if key in notes else "" for key in heads]
        room -= sum(map(_bytes, cells)) + sum(map(_bytes, record))
        if room < 0:
            break
        rows.append({"record": record, "point": cells})
    if not rows:
        if len(some):
            return {"note": "The points are too long for a page: `anyorder show STUDY --output "
                            "FILE.csv` writes all of them."}  # fmt: skip
        return {"note": "No evaluation has a value yet."}
    return {
        "record": [*values, "candidate", "seconds",
                   *(("mean", "evaluations") if repeated else ()), *heads], "variables": names,
        "named": space.named, "rows": rows,
    }  # fmt: skip


def best_of(contents: Contents) -> npt.NDArray[np.intp]:
    """Return the entries of the best points, best first.

    With several objectives they are those of the front, in the order of the objective that the
    history shows; for a noisy function they are the first entries of the points with the best
    means.
    """
    history, archive = contents.history, contents.archive
    if archive.objectives is None and archive.deterministic:
        return best_rows(history)
    if archive.objectives is None:
        first, means, _ = _means(contents)
        return first[np.argsort(means if archive.sign < 0 else -means, kind="stable")][:MOST]
    ids = archive.column("point")
    rows = np.flatnonzero(np.isin(ids, archive.front) & (archive.column("status") == 0))
    _, first = np.unique(ids[rows], return_index=True)
    rows = rows[first]
    sign = 1 if history.maximized else -1
    return rows[np.argsort(-sign * history.values[rows], kind="stable")][:MOST]


def _means(contents: Contents) -> tuple[npt.NDArray[np.intp], Floats, npt.NDArray[np.intp]]:
    """Return the first entry of each point, the mean of its values, and their number."""
    history, archive = contents.history, contents.archive
    rows = np.flatnonzero(~np.isnan(history.values) & ~history.cached)
    _, first, which = np.unique(
        archive.column("point")[rows], return_index=True, return_inverse=True
    )
    count = np.bincount(which, minlength=len(first))
    with np.errstate(invalid="ignore", over="ignore"):
        means = np.bincount(which, history.values[rows], minlength=len(first)) / count
    return rows[first], means, count


def running(contents: Contents) -> list[dict[str, Any]]:
    """Return the evaluations that are running, and since when; the oldest first."""
    found = sorted(contents.open.values(), key=lambda one: (math.isnan(one.started), one.started))
    packing = contents.archive.packing
    return [
        {
            "number": one.number,
            "since": None if math.isnan(one.started) else round(one.started, 2),
            "point": point_text(contents, packing.unpack([one.point])[0]),
        }
        for one in found[:_LATEST]
    ]


def failures(contents: Contents) -> list[dict[str, Any]]:
    """Return the last failures, the latest first."""
    history = contents.history
    rows = np.flatnonzero((history.statuses != 0) & ~history.cached)[::-1][:_LATEST]
    errors = history.errors
    return [
        {
            "number": contents.number(row),
            "status": STATUSES[history.statuses[row]],
            "message": shorten(errors.get(row) or "no message", _MESSAGE),
            "point": point_text(contents, history.codes_at(np.array([row]))[0]),
        }
        for row in rows.tolist()
    ]


def point_text(contents: Contents, codes: npt.NDArray[np.int32]) -> str:
    """Return a point as a short line of text."""
    point = contents.history.space.one(codes)
    text = as_text(point.tolist() if isinstance(point, np.ndarray) else point)
    return shorten(text, _POINT)


def as_text(value: Any) -> str:
    """Return a value as JSON, or as text if JSON cannot hold it."""
    return json.dumps(value, default=str, ensure_ascii=False)


def shorten(text: str, longest: int) -> str:
    """Return the beginning of a long text; characters that cannot be printed are escaped."""
    shown = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: longest + 1]
    )
    return shown if len(shown) <= longest else f"{shown[:longest]}…"


def _cells(contents: Contents, codes: npt.NDArray[np.int32], names: list[str]) -> list[str]:
    point = contents.history.space.one(codes)
    if isinstance(point, np.ndarray):
        return [str(value) for value in point.tolist()]
    return [as_text(point[name]) if name in point else "" for name in names]


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace")) + 3
