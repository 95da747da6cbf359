"""Strategies that do without the model of delta search, each on its own in a part of the budget.

Where the model misleads, one of them may be better than the search as a whole. It shows, and the
strategy deserves more evaluations, if it is ahead of what the whole search had reached after as
many evaluations as the strategy has spent.
"""

from __future__ import annotations

import bisect
import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anyorder.errors import FAILED, OK
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Search
from anyorder.strategies.one_plus_one import FastOnePlusOneEA
from anyorder.strategies.p3 import P3

KINDS: tuple[type[Search], ...] = (P3, FastOnePlusOneEA)
MOST_KNOWN = 300  # proposals in a row whose answers are known already
NOBODY = -1


class Explorers:
    """P3 and an evolutionary algorithm, which take turns until one is ahead.

    Parameters
    ----------
    space
        Where to search. A strategy that refuses it is left out.
    rng
        Seeds them.
    """

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self._searches: list[Search] = []
        for kind, seed in zip(KINDS, rng.spawn(len(KINDS)), strict=True):
            with contextlib.suppress(ValueError):  # variables of too many values for P3
                self._searches.append(kind(space, seed))
        self._least = len(space)  # evaluations of one before it is compared
        self._spent = [0] * len(self._searches)
        self._records = [-math.inf] * len(self._searches)
        self._turn, self._ticket = NOBODY, -1  # whose trial is being evaluated
        # Of the whole search, each improvement of the best value: after how many answers.
        self._answers = 0
        self._curve: list[tuple[int, float]] = [(0, -math.inf)]

    @property
    def waiting(self) -> bool:
        """Whether a trial is being evaluated."""
        return self._turn != NOBODY

    def note(self, answers: Sequence[Answer]) -> None:
        """Take note of answers of the whole search."""
        for answer in answers:
            if answer.status == OK:
                self._answers += 1
                if answer.value > self._curve[-1][1]:
                    self._curve.append((self._answers, answer.value))

    def leader(self, slack: float) -> int:
        """The one that is ahead, by more than `slack`; `NOBODY` if none is."""
        leads = [self._lead(k) for k in range(len(self._searches))]
        most = max(leads)
        return leads.index(most) if most > slack else NOBODY

    def _lead(self, k: int) -> float:
        """How far one is ahead of what the whole search was after as many evaluations."""
        if self._spent[k] < self._least:
            return -math.inf
        after = bisect.bisect_right(self._curve, (self._spent[k], math.inf)) - 1
        return self._records[k] - self._curve[after][1]

    def propose(
        self, known: Mapping[bytes, float], failed: set[bytes], slack: float
    ) -> Codes | None:
        """The next trial of the leader, or of the one that has spent least; None if it has none.

        Points that are known or have failed are answered here and now.
        """
        self._turn = self.leader(slack)
        if self._turn == NOBODY:
            self._turn = self._spent.index(min(self._spent))
        for _ in range(MOST_KNOWN):
            proposals = self._searches[self._turn].propose(1)
            if not len(proposals.codes):
                break
            self._ticket = proposals.tickets[0]
            point: Codes = proposals.codes[0]
            key = point.tobytes()
            if key not in failed and key not in known:
                return point
            self.learn(point, known.get(key), spent=0)
        self._turn = NOBODY
        return None

    def learn(self, point: Codes, f: float | None, spent: int = 1) -> None:
        """The value of the trial; None if it failed."""
        k = self._turn
        answer = Answer(self._ticket, point, math.nan, FAILED)
        if f is not None:
            answer = Answer(self._ticket, point, f)
            self._records[k] = max(self._records[k], f)
        self._spent[k] += spent
        self._searches[k].learn([answer])
        if spent:
            self._turn = NOBODY

    def give_up(self) -> None:
        """The value of the trial will not be used."""
        if self.waiting:
            self._searches[self._turn].give_up([self._ticket])
            self._turn = NOBODY

    def facts(self) -> dict[str, int]:
        """Evaluations that each has spent."""
        names = [search.name for search in self._searches]
        return dict(zip(names, self._spent, strict=True))

    def state(self) -> dict[str, Any]:
        """All that changes."""
        return {
            "searches": [dict(search.state()) for search in self._searches],
            "spent": self._spent, "records": self._records, "turn": self._turn,
            "ticket": self._ticket, "answers": self._answers, "curve": np.array(self._curve),
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        for search, kept in zip(self._searches, state["searches"], strict=True):
            search.restore(kept)
        self._spent, self._records = list(state["spent"]), list(state["records"])
        self._turn, self._ticket = int(state["turn"]), int(state["ticket"])
        self._answers = int(state["answers"])
        self._curve = [(int(after), float(value)) for after, value in state["curve"]]
