"""The contents of a study, as facts and as text, even while it is being written."""

from __future__ import annotations

import contextlib
import json
import math
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.archive import Archive
from anyorder.archive.knowledge import Known
from anyorder.cli.common import align
from anyorder.cli.front import front_of_study, lines, summary
from anyorder.errors import STATUSES
from anyorder.run.study.ownership import being_written
from anyorder.run.study.reading import (
    check_complete,
    open_study,
    read_answers,
    read_notes,
    read_settings,
    translate_errors,
)
from anyorder.space import Space
from anyorder.space.packing import Packing
from anyorder.strategies.create import describe

_POINT = 256  # the most characters of a point, or of a message, in text
_BEST, _MESSAGES = 10, 10  # the most points and messages that are listed
_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?")


def facts(path: str) -> dict[str, Any]:
    """Return the contents of a study as values for JSON."""
    file = Path(path).absolute()
    writing = being_written(file)  # first: if the run has ended by now, all of it can be read
    with open_study(file) as database, translate_errors(file):
        written = _last_written(file)
        database.execute("BEGIN")  # so that everything is read as of one moment
        settings = read_settings(database)
        check_complete(database)
        space = Space.from_dict(settings["space"])
        maximized, budget = settings["direction"] == "maximize", settings["budget"]
        counts = database.execute(
            "SELECT status, coalesce(paid, 0), count(*), coalesce(sum(seconds), 0.0) "
            "FROM candidates GROUP BY 1, 2"
        ).fetchall()
        paid = sum(count for _, is_paid, count, _ in counts if is_paid)
        seconds = sum(spent for _, is_paid, _, spent in counts if is_paid)
        failed: Counter[str] = Counter()  # by status
        for status, is_paid, count, _ in counts:
            if is_paid and status:
                failed[STATUSES[status]] += count
        (generation,) = database.execute("SELECT max(generation) FROM candidates").fetchone()
        (restarts,) = database.execute("SELECT count(*) FROM restarts").fetchone()
        kept = database.execute("SELECT counters FROM state").fetchone()
        counters = {} if kept is None else dict(json.loads(kept[0]))
        front = front_of_study(database, space, settings)
        best: _Best | None = None
        points: list[dict[str, Any]] = []
        if front is not None:
            pass  # there is no best point
        elif settings["deterministic"]:
            best, points = _best(database, maximized), _best_points(database, space, maximized)
        else:
            best, points = _noisy(database, space, settings)
        elapsed, left = _times(counters, paid, budget)
        return {
            "study": str(file),
            "being_written": writing,
            "last_written": written,
            "direction": settings["direction"],
            "variables": len(space.variables),
            "kinds": dict(Counter(type(variable).__name__.lower() for variable in space.variables)),
            "log10_points": math.log10(space.points),
            "budget": budget,
            "evaluations": paid,
            "failures": dict(failed),
            "cached": sum(k for status, is_paid, k, _ in counts
                          if not is_paid and status is not None and STATUSES[status] != "rejected"),
            "rejected": sum(k for status, _, k, _ in counts
                            if status is not None and STATUSES[status] == "rejected"),
            "unanswered": sum(k for status, _, k, _ in counts if status is None),
            "best_value": None if best is None else best[1],
            "best": None if best is None else _show(space, best[0]),
            "best_count": None if best is None else best[3],
            "best_error": None if best is None else best[4],
            "best_notes": None if best is None else _best_notes(database, best[0]),
            "best_points": points,
            "failure_messages": _failures(database, space),
            **(front or {}),
            "seconds": elapsed,
            "seconds_left": left,
            **({} if front else {"improved_after": None if best is None else best[2]}),
            "seconds_each": seconds / paid if paid else None,
            "generation": generation,
            "restarts": restarts,
            "facts": dict(counters.get("facts", {})),
            "algorithm": settings["algorithm"],
            "seed": settings["seed"],
            "settings": settings["config"],
            **{name: settings[name] for name in
               ("asynchronous", "on_failure", "cache", "deterministic", "constraint")},
            "library": settings.get("library"),
        }  # fmt: skip


# A point, its value, the number of evaluations at which it was seen, how many measurements the
# value is the mean of, and its standard error.
_Best = tuple[bytes, float, int, int, float | None]


def _best(database: sqlite3.Connection, maximized: bool) -> _Best | None:
    """Return the best point of a deterministic run."""
    order = "DESC" if maximized else "ASC"
    query = "SELECT point, value, place FROM candidates WHERE value IS NOT NULL ORDER BY value"
    row = database.execute(f"{query} {order}, place LIMIT 1").fetchone()
    if row is None:
        return None
    point, value, place = row
    (after,) = database.execute(
        "SELECT count(*) FROM candidates WHERE paid AND place <= ?", (place,)
    ).fetchone()
    return point, value, after, 1, None


def _noisy(
    database: sqlite3.Connection, space: Space, settings: Mapping[str, Any]
) -> tuple[_Best | None, list[dict[str, Any]]]:
    """Return the best point of a noisy run, as in its `Result`, and the most promising points."""
    archive = Archive(space, settings["direction"], deterministic=False)
    known = Known.from_json(space, settings)
    if known.data is not None:
        known.data.add_to(archive)
    read_answers(database, archive)
    answer = archive.answer()
    if answer.point < 0:
        return None, []
    paid = ~archive.column("known")
    first = int((archive.column("point") == answer.point).argmax())
    others = [one for one in archive.ranking(_BEST) if one.point != answer.point]
    points = [
        {"value": one.value, "count": one.count, "error": one.error,
         "point": _show(space, archive.key_of(one.point))}
        for one in [answer, *others[: _BEST - 1]]
    ]  # fmt: skip
    seen = int(paid[: first + 1].sum())
    return (archive.key_of(answer.point), answer.value, seen, answer.count, answer.error), points


def _best_notes(database: sqlite3.Connection, point: bytes) -> dict[str, Any] | None:
    """Return the last notes on a point; None if there are none, and for numbers JSON lacks."""
    where = "number IN (SELECT number FROM candidates WHERE point = ?)"
    notes = read_notes(database, where, (point,))
    if not notes:
        return None
    found: dict[str, Any] = json.loads(notes[max(notes)], parse_constant=lambda name: None)
    return found


def _best_points(
    database: sqlite3.Connection, space: Space, maximized: bool
) -> list[dict[str, Any]]:
    """Return the best points of a deterministic run with their values."""
    order, better = ("DESC", "max") if maximized else ("ASC", "min")
    found = database.execute(
        f"SELECT point, {better}(value) AS found FROM candidates WHERE paid AND value IS NOT NULL "
        f"GROUP BY point ORDER BY found {order}, min(place) LIMIT {_BEST}"
    )
    return [
        {"value": value, "count": 1, "error": None, "point": _show(space, point)}
        for point, value in found
    ]


def _failures(database: sqlite3.Connection, space: Space) -> list[dict[str, Any]]:
    """Return the messages of failures, most frequent first, each with a count and a point.

    Messages that differ only in numbers are counted as one.
    """
    groups: dict[tuple[int, str], dict[str, Any]] = {}
    for status, error, point in database.execute(
        "SELECT status, error, point FROM candidates WHERE paid AND status != 0 ORDER BY number"
    ):
        text = " ".join((error or "").split())
        group = groups.get((status, _NUMBER.sub("#", text)))
        if group is None:
            group = {"status": STATUSES[status], "message": text, "count": 0, "point": point}
            groups[status, _NUMBER.sub("#", text)] = group
        group["count"] += 1
    listed = sorted(groups.values(), key=lambda group: -group["count"])[:_MESSAGES]
    return [{**group, "point": _show(space, group["point"])} for group in listed]


def _times(
    counters: Mapping[str, Any], paid: int, budget: int | None
) -> tuple[float | None, float | None]:
    """Return the elapsed time of a run when its state was last stored, and the time left."""
    elapsed, done = counters.get("seconds"), counters.get("evaluations", 0)
    if elapsed is None or budget is None or not done:
        return elapsed, None
    return elapsed, max(0, budget - paid) * elapsed / done


def _show(space: Space, packed: bytes) -> Any:
    """Return a point in a form that JSON can hold."""
    point = space.one(Packing(space).unpack([packed])[0])
    return point.tolist() if isinstance(point, np.ndarray) else point


def _last_written(file: Path) -> float:
    """Return the time at which the file was last written, in seconds since 1970."""
    times = [file.stat().st_mtime]
    with contextlib.suppress(OSError):
        log = file.with_name(file.name + "-wal").stat()
        times += [log.st_mtime] * (log.st_size > 0)  # opening the file creates an empty log
    return max(times)


def as_text(now: dict[str, Any], rate: float | None = None, verbose: bool = False) -> str:
    """Return the facts as text.

    Parameters
    ----------
    now
        The facts that `facts` returned.
    rate
        The observed number of evaluations per second.
    verbose
        Whether to show what the strategy says about its search.
    """
    writing = {True: "being written", False: "not being written", None: "maybe being written"}
    kinds = ", ".join(f"{count} {kind}" for kind, count in now["kinds"].items())
    paid, failures = now["evaluations"], now["failures"]
    out = "out" if now["being_written"] else "drawn and not evaluated"
    failed = ", ".join(f"{count} {status}" for status, count in failures.items())
    rows = {
        "study": f"{now['study']}, {writing[now['being_written']]}, last "
                 f"{_ago(time.time() - now['last_written'])} ago",
        "problem": f"{now['direction']}; {kinds}; {_size(now['log10_points'])} points",
        "evaluations": f"{_share(paid, now['budget'])}, {now['unanswered']} candidates are {out}",
        "time": _time(now),
        "failures": f"{sum(failures.values())} ({failed})" if failures else "none",
        "skipped": f"{now['cached']} known already, {now['rejected']} rejected",
        "best value": "none yet" if now["best"] is None else f"{now['best_value']}",
        "generation": "none yet" if now["generation"] is None else
                      f"{now['generation']}, restarted {now['restarts']} times",
        "algorithm": describe(now["algorithm"], now["settings"]),
        "settings": _settings(now),
        "best point": _point(now["best"]),
        "its notes": _point(now["best_notes"]),
    }  # fmt: skip
    if now["best_notes"] is None:
        del rows["its notes"]
    told = dict(now["facts"])
    if "in_words" in told:
        rows["search"] = str(told.pop("in_words"))
    if "front" in now:
        ways = ", ".join(f"{way} {name}" for name, way in now["objectives"].items())
        rows["problem"] = rows["problem"].replace(now["direction"], ways, 1)
        del rows["best point"], rows["best value"]
        after = now["improved_after"]
        changed = f", changed after {after} evaluations, {paid - after} ago" if now["front"] else ""
        rows["front"] = summary(now) + changed
    facts = _facts(told) if verbose else {}
    rows |= {f"fact {key}" if key in rows else key: text for key, text in facts.items()}
    if now["best"] is not None:
        after = now["improved_after"]
        rows["best value"] += _spread(now["best_count"], now["best_error"])
        rows["best value"] += f", found after {after} evaluations, {paid - after} ago"
    if now["seconds_each"] is not None:
        each = now["seconds_each"]
        rows["speed"] = f"{each:.3g} s an evaluation"
        rows["speed"] += f", {1 / each:.3g} a second and worker" if each > 0 else ""
        rows["speed"] += f"; {rate:.3g} a second now" if rate is not None else ""
    listed = lines(now, _point) if "front" in now else _best_lines(now)
    return "\n".join([align(rows), *_failure_lines(now), *listed])


def _share(paid: int, budget: int | None) -> str:
    if budget is None:
        return f"{paid}, without a budget"
    return f"{paid} of {budget} ({100 * paid / budget:.0f} %)"


def _time(now: dict[str, Any]) -> str:
    elapsed, left = now["seconds"], now["seconds_left"]
    if elapsed is None:
        return "not known yet"
    return _ago(elapsed) + (f", about {_ago(left)} left" if left else "")


def _spread(count: int, error: float | None) -> str:
    """Return the standard error of a mean as text; empty for a deterministic function."""
    times = f"{count} times" if count > 1 else "once"
    return "" if error is None else f" +- {error:.2g} (measured {times})"


def _failure_lines(now: dict[str, Any]) -> list[str]:
    """Return the failures by message, with a point for each."""
    lines = ["", "failures:"] if now["failure_messages"] else []
    for group in now["failure_messages"]:
        text = group["message"] or "no message"
        text = text if len(text) <= _POINT else f"{text[:_POINT]}..."
        times = f"{group['count']} times" if group["count"] > 1 else "once"
        lines.append(f"  {times}, {group['status']}: {text}; at {_point(group['point'])}")
    return lines


def _best_lines(now: dict[str, Any]) -> list[str]:
    """Return the best points with their values, one on each line; empty if there is only one."""
    best = now["best_points"]
    values = [f"{one['value']:.10g}" for one in best]
    width = max(map(len, values), default=0)
    lines = [
        f"  {text:>{width}}{_spread(one['count'], one['error'])}  {_point(one['point'])}"
        for text, one in zip(values, best, strict=True)
    ]
    return ["", "best points:", *lines] if len(lines) > 1 else []


def _facts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return a strategy's facts as rows of text; a fact of several parts has a row for each."""
    plain = {key: value for key, value in facts.items() if not isinstance(value, dict)}
    rows = {"facts": plain} if plain else {}
    rows |= {key: value for key, value in facts.items() if isinstance(value, dict)}
    return {
        key.replace("_", " "): ", ".join(map(_fact, row, row.values())) for key, row in rows.items()
    }


def _fact(name: str, value: Any) -> str:
    said = ("no", "yes")[value] if isinstance(value, bool) else value
    return f"{name.replace('_', ' ')} {said}"


def _settings(now: dict[str, Any]) -> str:
    parts = [f"seed {now['seed']}"]
    parts += ["asynchronous"] if now["asynchronous"] else []
    parts += [f"failures: {now['on_failure']}"] if now["on_failure"] != "raise" else []
    parts += ["noisy"] if not now["deterministic"] else []
    parts += ["no cache"] if not now["cache"] else []
    parts += ["with a constraint"] if now["constraint"] else []
    return ", ".join([*parts, f"anyorder {now['library']}"])


def _point(point: Any) -> str:
    if point is None:
        return "none yet"
    if isinstance(point, list):
        text = ("" if all(0 <= value <= 9 for value in point) else " ").join(map(str, point))
    else:
        text = json.dumps(point)
    return text if len(text) <= _POINT else f"{text[:_POINT]}... (--json has all of it)"


def _size(log10: float) -> str:
    return f"{round(10**log10):,}" if log10 < 9 else f"about 10^{log10:.0f}"


def _ago(seconds: float) -> str:
    for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"
