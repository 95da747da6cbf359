"""The front of studies and results with several objectives, as values for JSON and as text."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from anyorder.archive import Archive
from anyorder.archive.front import Front
from anyorder.archive.history import History
from anyorder.archive.knowledge import Known
from anyorder.archive.objectives import Objectives
from anyorder.result import Result
from anyorder.run.study.reading import read_answers
from anyorder.space import Space

_SHOWN = 30  # the most points that are listed
_LONGEST = 120  # the most characters of a point in the list


def front_of_study(
    database: sqlite3.Connection, space: Space, settings: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the front of a study; None if it has one objective."""
    objectives = Objectives.from_json(settings.get("objectives"))
    if objectives is None:
        return None
    archive = Archive(
        space, settings["direction"], deterministic=settings["deterministic"],
        objectives=objectives,
    )  # fmt: skip
    known = Known.from_json(space, settings)
    if known.data is not None:
        known.data.add_to(archive)
    read_answers(database, archive)
    return {
        **_facts(Front(archive), History(archive)),
        "reference": objectives.reference,
        "improved_after": archive.improved,
    }


def front_of_result(result: Result) -> dict[str, Any]:
    """Return the front of a run."""
    return _facts(result.front, result.history)


def _facts(front: Front, history: History) -> dict[str, Any]:
    volume: float | None = None
    with contextlib.suppress(ImportError):  # of three objectives or more: moocore is optional
        volumes = history.hypervolume()
        volume = float(volumes[-1]) if len(volumes) else 0.0
    plain = [
        {**row, "point": row["point"] if isinstance(row["point"], dict) else row["point"].tolist()}
        for row in front.rows()
    ]
    return {
        "objectives": dict(zip(front.names, front.directions, strict=True)),
        "front": plain,
        "hypervolume": volume,
    }


def summary(now: Mapping[str, Any]) -> str:
    """Return the size and the hypervolume of a front as one line of text."""
    size = len(now["front"])
    if not size:
        return "none yet"
    points = f"{size} point{'s' * (size != 1)}"
    if now["hypervolume"] is None:
        return f"{points} (their hypervolume requires moocore: pip install 'anyorder[objectives]')"
    measured = "" if now.get("reference", True) else " (from the worst values)"
    return f"{points}, hypervolume {now['hypervolume']:.6g}{measured}"


def lines(now: Mapping[str, Any], show: Callable[[Any], str] = json.dumps) -> list[str]:
    """Return the points of a front with their values, one on each line."""
    rows = now["front"]
    if not rows:
        return []
    names = list(now["objectives"])
    cells = [[f"{name} ({now['objectives'][name]})" for name in names]]
    cells += [[f"{row[name]:.10g}" for name in names] for row in _spread(rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    points = ["point", *(show(row["point"]) for row in _spread(rows))]
    texts = [
        "  ".join([*(cell.rjust(w) for cell, w in zip(row, widths, strict=True)), _cut(point)])
        for row, point in zip(cells, points, strict=True)
    ]
    title = "front:" if len(rows) <= _SHOWN else f"front, {_SHOWN} of {len(rows)} points:"
    return ["", title, *(f"  {text}" for text in texts)]


def _spread(rows: Sequence[Any]) -> list[Any]:
    """Return the points, or if there are many, some of them from one end to the other, evenly."""
    if len(rows) <= _SHOWN:
        return list(rows)
    return [rows[round(k * (len(rows) - 1) / (_SHOWN - 1))] for k in range(_SHOWN)]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... (--json has all of it)"
