"""Evaluate points of another strategy, which uses no model: one evaluation each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from anyorder.errors import FAILED
from anyorder.strategies.auto.operators.base import Operator, Tools
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Answer, Codes, Search

MOST_KNOWN = 300  # successive known points that an explorer may propose before it is passed over


class Explore(Operator):
    """Another strategy with a share of the budget, such as P3 where single changes mislead.

    The prior of an explorer is multiplied by the square of the part of the run since the best value
    was last improved by anything but explorers. So an explorer gets few evaluations while the
    models work, and keeps its share while only explorers find improvements.

    Parameters
    ----------
    tools
        See `Operator`.
    strategy
        The strategy; it learns the answers to its own points.
    """

    prior = 0.3

    def __init__(self, tools: Tools, strategy: Search) -> None:
        super().__init__(tools)
        self._strategy = strategy
        self.name = strategy.name  # type: ignore[misc]
        self._open: dict[bytes, int] = {}  # tickets of points that are being evaluated
        self._spent = 0

    def weight(self, idle: float) -> float:
        """Return the square of `idle`."""
        return idle * idle

    def propose(self, best: Best) -> Codes | None:
        """Return a new point; None if there is none."""
        memory = self.tools.memory
        for _ in range(MOST_KNOWN):
            tickets, codes = self._strategy.propose(1)
            if not len(codes):
                return None
            key = memory.key(codes[0])
            known = memory.value(key)
            if known is None and not memory.is_pending(key):
                self._open[codes[0].tobytes()] = tickets[0]
                return np.array(codes[0], np.int32)
            self._learn(tickets[0], codes[0], known)
        return None

    def answered(self, point: Codes, f: float | None) -> None:
        """Let the strategy learn the value of a point that it proposed."""
        self._spent += 1
        ticket = self._open.pop(point.tobytes(), None)
        if ticket is not None:
            self._learn(ticket, point, f)

    def _learn(self, ticket: int, point: Codes, f: float | None) -> None:
        answer = Answer(ticket, point, math.nan, FAILED)
        if f is not None and not math.isnan(f):
            answer = Answer(ticket, point, f)
        self._strategy.learn([answer])

    def note_data(self, answer: Answer) -> None:
        """Let the strategy learn an answer whose point no operator proposed."""
        self._strategy.learn([answer._replace(ticket=None, known=True)])

    def facts(self) -> dict[str, Any]:
        """Return the number of evaluations that the strategy has used."""
        return {self.name: self._spent}

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {"strategy": dict(self._strategy.state()), "open": self._open, "spent": self._spent}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""
        self._strategy.restore(state["strategy"])
        self._open, self._spent = state["open"], int(state["spent"])


class Opening(Explore):
    """A strategy that makes only the points before the first climb."""

    prior = 0.0
