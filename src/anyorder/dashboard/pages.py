"""The page: as one file that holds everything, or as the files of a server."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.charts import page
from anyorder.charts.variables import variable_names
from anyorder.dashboard import parts
from anyorder.dashboard.contents import Contents
from anyorder.dashboard.following import Following
from anyorder.dashboard.points import shorten
from anyorder.dashboard.studies import MOST_STUDIES, Studies
from anyorder.dashboard.views import View, figures, most_important
from anyorder.errors import StudyError

_VARIABLES = 100  # a file has the figures of at most so many variables
STYLES = ("page.css", "dashboard.css")
SCRIPTS = ("plotly.js", "page.js", "dashboard.js")


def read_part(name: str) -> str:
    """Return one of `STYLES` and `SCRIPTS`."""
    if name.startswith("dashboard."):
        return resources.files(__package__).joinpath(name).read_text("utf-8")
    return page.part(name)


def live_page(title: str) -> str:
    """Return the page that asks its server for data."""
    return page.head(title, page.link_parts(STYLES, SCRIPTS)) + _body() + "</body>\n</html>\n"


def write_report(
    paths: Sequence[Path], output: str | os.PathLike[str], title: str | None = None
) -> None:
    """Write the page of studies to a file that needs no server and no network.

    For a study with more than a hundred variables, it has the figures of the hundred that explain
    most of the variance.
    """
    studies = Studies(paths)
    names = studies.names()
    if len(names) > MOST_STUDIES:
        raise ValueError(f"there are {len(names)} studies, expected at most {MOST_STUDIES}")
    followed = {name: studies.follow(name) for name in names}
    for study in followed.values():
        if study.contents is None:
            raise StudyError(study.problem or f"study {study.path} cannot be read")
    found: dict[str, Any] = {"shown": names, "studies": studies.overview()}
    for k, study in enumerate(followed.values()):
        found |= {f"{k}/facts": parts.facts(study), f"{k}/running": parts.running(study)}
    view = View(tuple(names), influence=True)
    found |= dict(figures(studies, view, followed)) | _variables(followed)
    text = page.write_page(
        studies.title if title is None else title, _body(), {"now": time.time(), "parts": found},
        style=read_part("dashboard.css"), scripts=[read_part("dashboard.js")],
    )  # fmt: skip
    Path(output).write_text(text, "utf-8", errors="backslashreplace")


def _variables(followed: dict[str, Following]) -> dict[str, Any]:
    """Return the figures of all variables of the first study, or of those that explain most."""
    first = next(iter(followed.values())).contents
    if first is None:
        return {}
    names = variable_names(first.history.space)
    some = _first_variables(first)
    found: dict[str, Any] = {
        "variables": {
            "names": [shorten(names[which], 80) for which in some],
            "of": some.index(most_important(first)),
            "more": len(names) - len(some),
        }
    }
    for place, which in enumerate(some):
        for k, study in enumerate(followed.values()):
            for part, value in parts.variable(study, names[which]).items():
                found[f"{k}/{part}/{place}"] = value
    return found


def _first_variables(contents: Contents) -> list[int]:
    space = contents.history.space
    if len(space.variables) <= _VARIABLES:
        return list(range(len(space.variables)))
    shares = np.nan_to_num(contents.shares())
    starts = np.cumsum([0, *(len(variable.columns()) for variable in space.variables[:-1])])
    order = np.argsort(-np.maximum.reduceat(shares, starts), kind="stable")
    return [int(which) for which in np.sort(order[:_VARIABLES])]


def _body() -> str:
    return resources.files(__package__).joinpath("dashboard.html").read_text("utf-8")
