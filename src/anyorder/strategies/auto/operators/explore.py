"""What another strategy proposes, which does without the models: one evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from anyorder.errors import FAILED
from anyorder.strategies.auto.operators.base import Operator, Tools
from anyorder.strategies.auto.request import Best
from anyorder.strategies.base import Answer, Codes, Search

MOST_KNOWN = 300  # proposals in a row whose answers are known already


class Explore(Operator):
    """A strategy of its own in a part of the budget, such as P3 where single changes mislead.

    Its prior is multiplied by the square of the part of the run since the models last found
    anything. So it gets little while they work, and keeps its share while only explorers find
    anything.

    Parameters
    ----------
    tools
        See `Operator`.
    strategy
        The strategy; it gets the answers to what it proposes.
    """

    prior = 0.3

    def __init__(self, tools: Tools, strategy: Search) -> None:
        super().__init__(tools)
        self._strategy = strategy
        self.name = strategy.name  # type: ignore[misc]
        self._open: dict[bytes, int] = {}  # tickets of points that are being evaluated
        self._spent = 0

    def weight(self, idle: float) -> float:
        """Return the factor of the prior at present."""
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
        """Take the value of a point that it proposed."""
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
        """Let the strategy learn an answer that no operator asked for."""
        self._strategy.learn([answer._replace(ticket=None, known=True)])

    def facts(self) -> dict[str, Any]:
        """Return how many evaluations it spent."""
        return {self.name: self._spent}

    def state(self) -> dict[str, Any]:
        """Return the state, which `restore` takes over."""
        return {"strategy": dict(self._strategy.state()), "open": self._open, "spent": self._spent}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        self._strategy.restore(state["strategy"])
        self._open, self._spent = state["open"], int(state["spent"])


class Opening(Explore):
    """A strategy that makes the first points, and none after the first climb has begun."""

    prior = 0.0
