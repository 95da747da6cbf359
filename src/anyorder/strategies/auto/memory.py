"""The points that are known or being evaluated, so that no point is proposed twice.

Values and failures are in the archive of the run; a strategy without a session keeps an archive of
its own. The memory itself keeps only the points that are being evaluated, and those given up.
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

FAILED = math.nan  # the value of a point that failed, was refused, or was given up


class Memory:
    """A look-up of points by their codes.

    Parameters
    ----------
    space
        The space of the points.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._own = Archive(space)  # used until a session provides one
        self.archive: Archive = self._own
        self._pending: dict[bytes, int] = {}  # by key: proposals without an answer
        self._given_up: set[bytes] = set()
        self._last = b"", b""  # the last point that was looked up, and its key

    def use(self, archive: Archive | None) -> None:
        """Read this archive from now on; None: the memory's own archive."""
        self.archive = self._own if archive is None else archive

    def key(self, point: Codes) -> bytes:
        """Return the key of a point, which does not depend on the codes of absent variables."""
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
        """Record that a point was proposed."""
        self._pending[key] = self._pending.get(key, 0) + 1

    def answer(self, key: bytes, answer: Answer | None, *, proposed: bool) -> None:
        """Record an answer; None if the answer to this proposal will never come."""
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
        """Return the state, without pending points and the archive of a session."""
        own = dict(self._own.state()) if len(self._own) else {}
        return {"own": own, "given_up": self._given_up}

    def restore(self, state: Mapping[str, Any], waiting: Iterable[bytes]) -> None:
        """Continue from what `state` returned, with the keys of the points without an answer."""
        if state["own"]:
            own = Archive(self._space)
            own.restore({name: np.asarray(array) for name, array in state["own"].items()})
            self._own, self.archive = own, own if self.archive is self._own else self.archive
        self._pending, self._given_up = {}, set(state["given_up"])
        for key in waiting:
            self.expect(key)
