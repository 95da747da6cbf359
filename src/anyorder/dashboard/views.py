"""What a reader has chosen to see of the studies, and which of it has not been sent yet."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from anyorder.charts.variables import variable_names
from anyorder.dashboard import parts
from anyorder.dashboard.contents import Contents
from anyorder.dashboard.following import Following
from anyorder.dashboard.points import shorten
from anyorder.dashboard.studies import Studies

_VARIABLES = 2_000  # the most variables that can be chosen from
_LIMIT = 190_000  # the most bytes of an update; what does not fit is in the next one
_PAUSE = 2.0  # seconds between figures at least: browsers take longer to draw them than we do
_REST = 20.0  # and figures are computed for at most a twentieth of the time


@dataclass(frozen=True)
class View:
    """What a reader has chosen to see.

    Attributes
    ----------
    studies
        The names of studies, of `Studies.names`; if empty, the study that was written last.
    variable
        The variable of the first study; None for the one that explains most.
    objective
        The objective that figures show, of several.
    influence
        Whether to ask the strategy which variables interact, which takes some time.
    """

    studies: tuple[str, ...] = ()
    variable: int | None = None
    objective: int = 0
    influence: bool = False


class Updates:
    """The updates for one reader: what has not been sent yet."""

    def __init__(self, studies: Studies, view: View) -> None:
        self._studies, self._view = studies, view
        self._sent: dict[str, int] = {}
        self._rest: Iterator[tuple[str, Any]] | None = None
        self._versions: Any = None
        self._due, self._spent = 0.0, 0.0

    def next(self) -> str | None:
        """Return the news as JSON, or None; call it again a second later.

        What is shown first is sent first. After figures took some time to make, they are not made
        again for twenty times as long.
        """
        with self._studies.lock:
            begun = time.thread_time()
            names = self._studies.choose(self._view.studies)
            followed = {name: self._studies.follow(name) for name in names}
            for one in followed.values():
                if one.contents is not None:
                    one.contents.choose(self._view.objective)
            versions = {name: one.version for name, one in followed.items()}
            first = self._versions is None
            if self._rest is None and versions != self._versions and _now() >= self._due:
                self._rest = figures(self._studies, self._view, followed)
                self._versions = versions
            fresh, done = self._new(_texts(self._studies, followed), first)
            self._spent += time.thread_time() - begun
            if done and self._rest is not None:
                self._due = _now() + max(_PAUSE, _REST * self._spent)
                self._rest = None
            if self._rest is None:
                self._spent = 0.0
        if not fresh:
            return None
        parts = ",".join(f"{json.dumps(key)}:{text}" for key, text in fresh.items())
        return f'{{"now":{time.time():.1f},"parts":{{{parts}}}}}'

    def _new(self, light: Iterator[tuple[str, Any]], first: bool) -> tuple[dict[str, str], bool]:
        """Return the parts that have changed, as JSON, and whether these are all of them."""
        fresh: dict[str, str] = {}
        for found in light:
            self._add(fresh, *found)
        rest = iter(()) if self._rest is None else self._rest
        for found in rest:
            if not self._add(fresh, *found):
                self._rest = chain([found], rest)
                return fresh, False
            if first and found[0] == "convergence":
                return fresh, False
        return fresh, True

    def _add(self, fresh: dict[str, str], key: str, part: Any) -> bool:
        """Add a part if it has changed; return whether there was room for it."""
        text = json.dumps(part, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        if self._sent.get(key) == hash(text):
            return True
        if fresh and _bytes(text) + sum(map(_bytes, fresh.values())) > _LIMIT:
            return False
        self._sent[key], fresh[key] = hash(text), text
        return True


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace"))


def _version(study: Following) -> Any:
    """Return what the figures of a study depend on: what has been read, and the objective."""
    return study.version, study.contents is not None and study.contents.objective


def _now() -> float:
    return time.monotonic()


def _texts(studies: Studies, followed: dict[str, Following]) -> Iterator[tuple[str, Any]]:
    """Yield names and contents of the parts that are quick to make."""
    yield "shown", [*followed]
    yield "studies", studies.overview()
    for k, study in enumerate(followed.values()):
        yield f"{k}/facts", parts.facts(study)
        yield f"{k}/running", parts.running(study)


def figures(
    studies: Studies, view: View, followed: dict[str, Following]
) -> Iterator[tuple[str, Any]]:
    """Yield names and contents of the parts that take some time to make."""
    versions = tuple((name, _version(one)) for name, one in followed.items())
    compared = partial(parts.compare, followed)
    yield from studies.make_once(("compared", *followed), versions, compared).items()
    for k, (name, study) in enumerate(followed.items()):
        one = study.contents is None or study.contents.archive.objectives is None
        left_out = {*parts.OF_SEVERAL} if one else set()
        left_out |= set() if view.influence else {"influence"}
        for kind in parts.FIGURES:
            if kind not in left_out:
                make = partial(parts.figure, study, kind)
                yield f"{k}/{kind}", studies.make_once((name, kind), _version(study), make)
        make = partial(parts.best_points, study)
        yield f"{k}/points", studies.make_once((name, "points"), _version(study), make)
    yield from _variables(studies, view, followed)


def _variables(
    studies: Studies, view: View, followed: dict[str, Following]
) -> Iterator[tuple[str, Any]]:
    """Yield the names of the first study's variables, and the figures of the chosen variable."""
    first = next((one for one in followed.values() if one.contents is not None), None)
    if first is None or first.contents is None:
        return
    names = variable_names(first.contents.history.space)
    chosen = view.variable
    if chosen is None or not 0 <= chosen < len(names):
        chosen = most_important(first.contents)
    several = first.contents.archive.objectives
    if several is not None:
        yield "objectives", {"names": [*several.names], "of": first.contents.objective}
    yield "variables", {"names": [shorten(name, 80) for name in names[:_VARIABLES]], "of": chosen}
    for k, (name, study) in enumerate(followed.items()):
        key, make = (name, "variable", names[chosen]), partial(parts.variable, study, names[chosen])
        found = studies.make_once(key, _version(study), make)
        for part, value in found.items():
            yield f"{k}/{part}", value


def most_important(contents: Contents) -> int:
    """Return the variable that explains most of the variance; the first one if that is unknown."""
    space = contents.history.space
    shares = np.nan_to_num(contents.shares())
    column = int(shares.argmax())
    ends = np.cumsum([len(variable.columns()) for variable in space.variables])
    return int(np.searchsorted(ends, column, side="right"))
