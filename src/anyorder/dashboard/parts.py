"""Parts of the page about a study: facts, tables and figures.

If there is nothing to draw, or a file cannot be read, a part is a sentence: `{"note": ...}`.
"""

from __future__ import annotations

import html
import logging
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from anyorder.archive import DATA
from anyorder.archive.history import History
from anyorder.charts import runs, variables
from anyorder.charts.base import Figure, is_note
from anyorder.charts.front import front
from anyorder.dashboard import points
from anyorder.dashboard.contents import Contents
from anyorder.dashboard.following import Following
from anyorder.errors import STATUSES, StudyError
from anyorder.run.study.replay import load_strategy
from anyorder.strategies.create import describe
from anyorder.strategies.registry import find

Part = dict[str, Any]

_RECENT = 200  # the speed of a run is measured over so many evaluations
logger = logging.getLogger("anyorder")


def facts(study: Following) -> Part:
    """Return the progress of a run, as rows of text."""
    contents = study.contents
    if contents is None:
        return {"note": study.problem or "It has not been read yet."}
    history, settings = contents.history, contents.settings
    paid = int((~history.cached).sum())
    budget = settings["budget"]
    rows = {"state": _state(study, budget, paid)}
    rows["evaluations"] = f"{paid:,}" + ("" if budget is None else f" of {budget:,}")
    rows |= _best(contents)
    ends = np.bincount(history.statuses[~history.cached], minlength=len(STATUSES)).tolist()
    failed = ", ".join(
        f"{count:,} {word}" for count, word in zip(ends[1:], STATUSES[1:], strict=True) if count
    )
    rows["failures"] = failed or "none"
    rows["time"] = _time(study, contents, paid)
    skipped = history.cached & (history.generations != DATA)
    if skipped.any():
        rejected = int((history.statuses[skipped] == STATUSES.index("rejected")).sum())
        known = int(skipped.sum()) - rejected
        rows["not evaluated"] = f"{known:,} known already, {rejected:,} rejected"
    if contents.before:
        rows["known before"] = f"{contents.before:,} points"
    rows["search"] = f"{settings['direction']}, {len(history.space.variables):,} variables, " + (
        describe(settings["algorithm"], settings["config"])
        if find(settings["algorithm"]) is not None
        else settings["algorithm"]
    )
    rows["search"] += f", seed {settings['seed']}"
    return {
        "rows": [[name, points.shorten(text, 900)] for name, text in rows.items()],
        "share": None if budget is None else round(min(1.0, paid / budget), 4),
    }


def _best(contents: Contents) -> dict[str, str]:
    archive = contents.archive
    after = f"found after {archive.improved:,} evaluations"
    if archive.objectives is not None:
        count = len(archive.front)
        rows = {"front": f"{count:,} points, the last {after}" if count else "none yet"}
        ends = archive.front_values.max(axis=0) * archive.objectives.signs if count else ()
        names = zip(archive.objectives.names, archive.objectives.directions, ends, strict=False)
        return rows | {f"best {name} ({way})": f"{end:.10g}" for name, way, end in names}
    best = archive.best
    if best is None:
        return {"best value": "none yet"}
    value = f"{archive.best_value:.10g}, {after}"
    return {"best value": value, "best point": points.point_text(contents, best)}


def _state(study: Following, budget: int | None, paid: int) -> str:
    if study.writing:
        return "running"
    if budget is not None and paid >= budget:
        return "finished"
    return "not running" if study.writing is False else "not known to be running"


def _time(study: Following, contents: Contents, paid: int) -> str:
    recent = contents.latest(_RECENT)
    text = "not known yet" if contents.elapsed is None else duration(contents.elapsed)
    if len(recent) > 1 and recent[-1] > recent[0]:
        each = float(recent[-1] - recent[0]) / (len(recent) - 1)
        text += f", {_round(1 / each)} evaluations a second" if each < 1 else f", {each:.3g} s each"
        budget = contents.settings["budget"]
        if study.writing and budget is not None:
            text += f", about {duration(max(0, budget - paid) * each)} left"
    return text


def _round(number: float) -> str:
    return f"{number:.3g}" if number < 100 else f"{number:,.0f}"


def duration(seconds: float) -> str:
    """Return a duration as text, such as "3 minutes"."""
    for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{max(0.0, seconds):.3g} s"


def running(study: Following) -> Part:
    """Return the evaluations that are running, and the last failures."""
    contents = study.contents
    if contents is None:
        return {"running": [], "failures": [], "open": 0, "alive": False}
    return {
        "running": points.running(contents), "failures": points.failures(contents),
        "open": len(contents.open), "alive": study.writing is not False,
    }  # fmt: skip


def _influence(study: Following, contents: Contents) -> Figure:
    return runs.influence(load_strategy(str(study.path)), contents.history.space)


def _parallel(study: Following, contents: Contents) -> Figure:
    history = contents.history
    return variables.parallel(history, points.best_of(contents), contents.shares())


# Figures of one study each, in the order in which a reader sees them.
OF_SEVERAL = ("front", "hypervolume")  # only for several objectives
FIGURES: Mapping[str, Callable[[Following, Contents], Figure]] = {
    "front": lambda study, contents: front(History(contents.archive)),
    "hypervolume": lambda study, contents: runs.convergence(
        {study.path.name: History(contents.archive)}
    ),
    "workers": lambda study, contents: runs.workers(contents.evaluations(1_000)),
    "importance": lambda study, contents: runs.importance(contents.history, contents.shares()),
    "influence": _influence,
    "parallel": _parallel,
}


def figure(study: Following, name: str) -> Part:
    """Return a figure of a study, one of `FIGURES`."""
    return _draw(study, lambda contents: FIGURES[name](study, contents))


def variable(study: Following, name: str) -> dict[str, Part]:
    """Return the figures of a variable: its values over time, and against the result."""
    return {
        "over": _draw(study, lambda c: variables.values_over_time(c.history, _find(c, name))),
        "against": _draw(
            study, lambda c: variables.values_against_result(c.history, _find(c, name))
        ),
    }


def _find(contents: Contents, name: str) -> int:
    names = variables.variable_names(contents.history.space)
    if name not in names:
        raise StudyError("This study has no variable of that name.")
    return names.index(name)


def best_points(study: Following) -> Part:
    """Return the table of the best points."""
    return _guard(study, points.best)


def compare(studies: Mapping[str, Following]) -> dict[str, Part]:
    """Return the figures that show all studies at once: best values over evaluations and time."""
    known = {name: one for name, one in studies.items() if one.contents is not None}
    if not known:
        said = "; ".join(filter(None, (one.problem for one in studies.values())))
        return {key: {"note": said or "There is no study."} for key in ("convergence", "time")}

    def convergence(contents: Contents) -> Figure:
        return runs.convergence({n: s.contents.history for n, s in known.items() if s.contents})

    def over_time(contents: Contents) -> Figure:
        return runs.over_time(
            {n: (s.contents.history, s.contents.ended) for n, s in known.items() if s.contents}
        )

    first = next(iter(known.values()))
    return {"convergence": _draw(first, convergence), "time": _draw(first, over_time)}


def _draw(study: Following, make: Callable[[Contents], Figure]) -> Part:
    return _guard(study, lambda contents: _as_part(make(contents)))


def _as_part(made: Figure) -> Part:
    if is_note(made):
        return {"note": html.unescape(made["layout"]["annotations"][0]["text"])}
    return {"figure": made}


def _guard(study: Following, make: Callable[[Contents], Part]) -> Part:
    """Return a part, or a note on why there is none: an error in it must not stop the page."""
    if study.contents is None:
        return {"note": study.problem or "It has not been read yet."}
    try:
        return make(study.contents)
    except StudyError as error:
        return {"note": str(error)}
    except Exception as error:
        logger.debug("a part of the page failed", exc_info=True)
        return {"note": f"This cannot be shown: {type(error).__name__}: {error}"}
