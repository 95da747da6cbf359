"""What a study holds, as facts and as text, while it is being written as well."""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.cli.common import aligned
from anyorder.errors import STATUSES
from anyorder.optimizer import Optimizer
from anyorder.session.reading import opened, read_settings, read_state, translated
from anyorder.space import Space
from anyorder.space.packing import Packing
from anyorder.strategies.create import recreate
from anyorder.strategies.delta.search import DeltaSearch
from anyorder.strategies.policy.config import PRESETS, Config
from anyorder.strategies.policy.search import PolicySearch

_POINT = 256  # letters of a point that text shows


def facts(path: str) -> dict[str, Any]:
    """What a study holds."""
    file = Path(path).absolute()
    writing = being_written(file)  # first: what is read after the end is all there is
    with opened(file) as database, translated(file):
        written = _last_written(file)
        database.execute("BEGIN")  # one moment of a run that goes on
        settings = read_settings(database)
        space, config = Space.from_dict(settings["space"]), settings["config"]
        maximized, budget = settings["direction"] == "maximize", settings["budget"]
        counts = database.execute(
            "SELECT status, coalesce(paid, 0), count(*), coalesce(sum(seconds), 0.0) "
            "FROM candidates GROUP BY 1, 2"
        ).fetchall()
        paid = sum(count for _, is_paid, count, _ in counts if is_paid)
        seconds = sum(spent for _, is_paid, _, spent in counts if is_paid)
        failed: Counter[str] = Counter()
        for status, is_paid, count, _ in counts:
            if is_paid and status:
                failed[STATUSES[status]] += count
        (generation,) = database.execute("SELECT max(generation) FROM candidates").fetchone()
        (restarts,) = database.execute("SELECT count(*) FROM restarts").fetchone()
        kept = database.execute("SELECT counters FROM state").fetchone()
        facts_kept = {} if kept is None else dict(json.loads(kept[0]).get("facts", {}))
        best = _best(database, maximized, settings["deterministic"])
        point = None if best is None else space.one(Packing(space).unpack([best[0]])[0])
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
            "best": point.tolist() if isinstance(point, np.ndarray) else point,
            "improved_after": None if best is None else best[2],
            "seconds_each": seconds / paid if paid else None,
            "generation": generation,
            "restarts": restarts,
            "facts": facts_kept,
            "algorithm": settings["algorithm"],
            "seed": settings["seed"],
            "engine": settings["engine"],
            "preset": _preset(settings["algorithm"], config),
            "config": config,
            **{name: settings[name] for name in
               ("asynchronous", "on_failure", "cache", "deterministic", "constraint")},
            "library": settings.get("library"),
        }  # fmt: skip


def _preset(algorithm: str, config: dict[str, Any]) -> str | None:
    """The preset that a study has; it may lack settings that are newer than it."""
    presets = {name: preset.to_dict() for name, preset in PRESETS.items()}
    same = (name for name, preset in presets.items() if {**preset, **config} == preset)
    return next(same, None) if algorithm == "policy" else None


def being_written(file: Path) -> bool | None:
    """Whether a process holds the study; None where that cannot be seen."""
    file = file.resolve()
    owner = file.with_name(file.name + "-owner")
    if not owner.exists():
        return False
    try:
        database = sqlite3.connect(f"{owner.as_uri()}?mode=ro", uri=True, timeout=0.0)
        with contextlib.closing(database):
            database.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.Error as error:
        return True if "locked" in str(error) else None
    return False  # left behind by a process that was killed


def _best(
    database: sqlite3.Connection, maximized: bool, deterministic: bool
) -> tuple[bytes, float, int] | None:
    """The best point, its value, and after how many evaluations the best value was seen.

    Of a noisy run it is the point with the best mean, as in its `Result`.
    """
    order = "DESC" if maximized else "ASC"
    query = "SELECT point, value, place FROM candidates WHERE value IS NOT NULL ORDER BY value"
    row = database.execute(f"{query} {order}, place LIMIT 1").fetchone()
    if row is None:
        return None
    point, value, place = row
    (after,) = database.execute(
        "SELECT count(*) FROM candidates WHERE paid AND place <= ?", (place,)
    ).fetchone()
    if not deterministic:
        mean = database.execute(
            "SELECT point, avg(value) AS mean FROM candidates WHERE paid AND value IS NOT NULL "
            f"GROUP BY point HAVING mean IS NOT NULL ORDER BY mean {order} LIMIT 1"
        ).fetchone()
        point, value = mean or (point, value)
    return point, value, after


def _last_written(file: Path) -> float:
    """When, in seconds since 1970."""
    times = [file.stat().st_mtime]
    with contextlib.suppress(OSError):
        log = file.with_name(file.name + "-wal").stat()
        times += [log.st_mtime] * (log.st_size > 0)  # opening the file makes an empty one
    return max(times)


def kept_strategy(study: str) -> PolicySearch | DeltaSearch | None:
    """A strategy that learns which variables interact, as a study last kept it; or None."""
    file = Path(study).absolute()
    with opened(file) as database, translated(file):
        settings, kept = read_settings(database), read_state(database)
        if kept is None or settings["algorithm"] not in ("policy", "delta", "auto"):
            return None
        space, seed = Space.from_dict(settings["space"]), settings["seed"]
        strategy = recreate(
            settings["algorithm"], settings["config"], space, seed, graph=settings["graph"]
        )
        optimizer = Optimizer._of(space, seed, strategy, settings["direction"], True)
        optimizer._restore_search(kept.arrays)
    return strategy if isinstance(strategy, PolicySearch | DeltaSearch) else None


def as_text(now: dict[str, Any], rate: float | None = None) -> str:
    """The facts as text; `rate` is the observed number of evaluations per second."""
    writing = {True: "being written", False: "not being written", None: "maybe being written"}
    kinds = ", ".join(f"{count} {kind}" for kind, count in now["kinds"].items())
    paid, failures = now["evaluations"], now["failures"]
    out = "out" if now["being_written"] else "drawn and not evaluated"
    failed = ", ".join(f"{count} {status}" for status, count in failures.items())
    rows = {
        "study": f"{now['study']}, {writing[now['being_written']]}, last "
                 f"{_ago(time.time() - now['last_written'])} ago",
        "problem": f"{now['direction']}; {kinds}; {_size(now['log10_points'])} points",
        "evaluations": f"{paid} of {now['budget']} ({100 * paid / now['budget']:.0f} %), "
                       f"{now['unanswered']} candidates are {out}",
        "failures": f"{sum(failures.values())} ({failed})" if failures else "none",
        "skipped": f"{now['cached']} known already, {now['rejected']} rejected",
        "best value": "none yet" if now["best"] is None else f"{now['best_value']}",
        "generation": "none yet" if now["generation"] is None else
                      f"{now['generation']}, restarted {now['restarts']} times",
        "algorithm": _algorithm(now),
        "settings": _settings(now),
        "best point": _point(now["best"]),
    }  # fmt: skip
    facts = _facts(now["facts"])
    rows |= {f"fact {key}" if key in rows else key: text for key, text in facts.items()}
    if now["best"] is not None:
        after = now["improved_after"]
        rows["best value"] += f", found after {after} evaluations, {paid - after} ago"
    if now["seconds_each"] is not None:
        each = now["seconds_each"]
        rows["speed"] = f"{each:.3g} s an evaluation"
        rows["speed"] += f", {1 / each:.3g} a second and worker" if each > 0 else ""
        rows["speed"] += f"; {rate:.3g} a second now" if rate is not None else ""
    return aligned(rows)


def _algorithm(now: dict[str, Any]) -> str:
    name, config = now["algorithm"], now["config"]
    if name == "policy":
        usual = Config().to_dict()
        changed = {k: v for k, v in config.items() if v != usual.get(k)}
        name += ":" + (now["preset"] or "default")
        config = {} if now["preset"] else changed
    given = {key: value for key, value in config.items() if value is not None}
    parts = [name + "".join(f"+{key}={value}" for key, value in given.items())]
    parts += [f"engine {now['engine']}"] if now["engine"] else []
    return ", ".join(parts)


def _facts(facts: Mapping[str, Any]) -> dict[str, str]:
    """What a strategy says of itself: a row, and one for each fact that has several parts."""
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
