"""Short forms for driving strategies in tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anyorder.space import Space
from anyorder.strategies import Answer, Proposals, Search
from anyorder.strategies.state import CHECKSUM, checksum_of

Codes = NDArray[np.int32]


def ask(strategy: Search, count: int = 1) -> Codes:
    """The points of the next proposals."""
    return strategy.propose(count).codes


def tell(strategy: Search, points: ArrayLike, values: Sequence[float], tickets: Any = None) -> None:
    """Answers; without tickets, those of points that the strategy did not propose."""
    codes = np.asarray(points, dtype=np.int32)
    tickets = [None] * len(codes) if tickets is None else tickets
    answers = zip(tickets, codes, values, strict=True)
    strategy.learn([Answer(ticket, point, float(value)) for ticket, point, value in answers])


def answer(
    strategy: Search, proposals: Proposals, values: Sequence[float], rows: Any = None
) -> None:
    """Answers of proposals, or of some of their rows in that order."""
    rows = range(len(proposals.codes)) if rows is None else rows
    tell(strategy, proposals.codes[list(rows)], values, [proposals.tickets[i] for i in rows])


def step(strategy: Search, value: Callable[[Codes], Any]) -> tuple[Codes, Any]:
    """One proposal and its answer."""
    proposals = strategy.propose(1)
    found = value(proposals.codes[0])
    answer(strategy, proposals, [found])
    return proposals.codes[0], found


def signed(state: dict[str, Any]) -> dict[str, Any]:
    """The state with the checksum that fits."""
    header = json.loads(str(state["header"]))
    header.pop(CHECKSUM, None)
    rest = {name: array for name, array in state.items() if name != "header"}
    header[CHECKSUM] = checksum_of(header, rest)
    return {"header": np.array(json.dumps(header)), **rest}


def neighbours(space: Space, codes: Codes) -> set[tuple[int, ...]]:
    """All points that differ from this one in one variable."""
    found = set()
    for i, values in enumerate(space.cardinalities.tolist()):
        for value in range(values):
            if value != codes[i]:
                found.add((*codes[:i].tolist(), value, *codes[i + 1 :].tolist()))
    return found
