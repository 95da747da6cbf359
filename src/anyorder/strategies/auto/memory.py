"""What has been evaluated, or is being evaluated, so that no point is proposed twice.

Values and failures are in the archive of the run. A strategy that is used without one keeps its
own. Beside it there are only the points that wait for an answer, and those that were given up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from anyorder.archive import Archive
from anyorder.errors import OK
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes

FAILED = math.nan  # the value of a point that has none: it failed, was refused, or was given up


class Memory:
    """Look-up of points by their codes.

    Parameters
    ----------
    space
        The space of the points.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._own = Archive(space)  # used until a session gives one
        self.archive: Archive = self._own
        self._pending: dict[bytes, int] = {}  # how many proposals of a point wait
        self._given_up: set[bytes] = set()
        self._last = b"", b""  # the last point that was looked up, and its key

    def use(self, archive: Archive | None) -> None:
        """Read the archive of a session from now on; None: its own."""
        self.archive = self._own if archive is None else archive

    def key(self, point: Codes) -> bytes:
        """Return what points are looked up by, the same whatever absent variables are."""
        codes = point.tobytes()
        if codes != self._last[0]:
            rows = point[None]
            if self._space.redundant:
                rows = self._space.canonical(rows)
            self._last = codes, self.archive.packing.pack(rows)[0]
        return self._last[1]

    def value(self, key: bytes) -> float | None:
        """Return the value of a point, NaN if it failed, and None if it is new."""
        if key in self._given_up:
            return FAILED
        found = self.archive.lookup(key)
        if found is None:
            return FAILED if self.archive.was_refused(key) else None
        status, value = found
        if status != OK or not math.isfinite(value):
            return FAILED
        if not self.archive.deterministic:
            value = self.archive.mean(key)
        return self.archive.sign * value

    def is_new(self, point: Codes) -> bool:
        """Return whether a point is neither known nor being evaluated."""
        key = self.key(point)
        return key not in self._pending and self.value(key) is None

    def is_pending(self, key: bytes) -> bool:
        """Return whether a point is being evaluated."""
        return key in self._pending

    def expect(self, key: bytes) -> None:
        """Take note of a proposal."""
        self._pending[key] = self._pending.get(key, 0) + 1

    def answer(self, key: bytes, answer: Answer | None, *, proposed: bool) -> None:
        """Take note of an answer; None: there will be none for this proposal."""
        if proposed:
            others = self._pending.pop(key) - 1
            if others:
                self._pending[key] = others
        if answer is None:
            self._given_up.add(key)
        elif self.archive is self._own:
            value = answer.value if answer.status == OK else math.nan
            self._own.add(key, value, answer.status)

    def count(self) -> int:
        """Return an upper bound on the number of points that are not new."""
        return len(self.archive) + len(self._pending) + len(self._given_up)

    def state(self) -> dict[str, Any]:
        """Return the state, without what waits for answers and the archive of a session."""
        own = dict(self._own.state()) if len(self._own) else {}
        return {"own": own, "given_up": self._given_up}

    def restore(self, state: Mapping[str, Any], waiting: Iterable[bytes]) -> None:
        """Take over what `state` gave, and the keys of the points that wait for an answer."""
        if state["own"]:
            own = Archive(self._space)
            own.restore({name: np.asarray(array) for name, array in state["own"].items()})
            self._own, self.archive = own, own if self.archive is self._own else self.archive
        self._pending, self._given_up = {}, set(state["given_up"])
        for key in waiting:
            self.expect(key)
