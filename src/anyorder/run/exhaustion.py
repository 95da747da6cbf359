"""When there is nothing left to evaluate: one rule for all strategies.

A run is exhausted when every point is known, when its strategy has finished, or when candidate
after candidate was known or rejected. In a space of few points the last is not taken for an end:
points that are still unknown are proposed instead. Without a cache no point counts as known, so
a strategy that has finished is given random points until the budget is spent.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from anyorder.proposer import IDLE_BATCHES, IDLE_CANDIDATES

if TYPE_CHECKING:
    from anyorder.run.state import State
    from anyorder.strategies.base import Codes

logger = logging.getLogger("anyorder")

_FEW = 1_000  # points that are looked through for unknown ones


def is_exhausted(state: State) -> bool:
    """Return whether no candidate that comes can be expected to be new."""
    if state.finished or _all_known(state):
        return True
    return is_idle(state) and (state.nothing_left or not _has_few_points(state))


def is_idle(state: State) -> bool:
    """Return whether candidate after candidate was known or rejected."""
    return state.idle >= max(IDLE_CANDIDATES, IDLE_BATCHES * state.strategy.batch)


def unknown_points(state: State, busy: Collection[bytes]) -> list[Codes]:
    """Return all allowed points that are neither known nor among those that are busy.

    None where the space has more than a few points.
    """
    space, archive = state.archive.space, state.archive
    feasibility = state.proposer.feasibility
    found: list[Codes] = []
    if not _has_few_points(state):
        return found
    codes = np.stack(np.unravel_index(np.arange(_combinations(state)), space.cardinalities), axis=1)
    codes = np.unique(space.canonical(codes.astype(np.int32)), axis=0)
    for key, row in zip(archive.packing.pack(codes), codes, strict=True):
        if key in busy or archive.lookup(key) is not None:
            continue
        if feasibility is None or not feasibility.violation(row):
            found.append(row)
    return found


def random_points(state: State, count: int) -> list[Codes]:
    """Return points for a strategy that has finished, if points may be evaluated again."""
    space = state.archive.space
    if _is_cached(state) or space.groups:
        return []
    rng = np.random.default_rng([state.proposer.seed, state.told])
    codes = rng.integers(space.cardinalities, size=(count, len(space)), dtype=np.int32)
    return list(space.canonical(codes))


def explain_exhaustion(state: State) -> None:
    """Log what "exhausted" means in this case."""
    reason = f"each of the last {state.idle} candidates was known or rejected"
    feasibility = state.proposer.feasibility
    if _all_known(state):
        reason = "all points of the space are known"
    elif feasibility is not None and not feasibility.allowed:
        reason = feasibility.explain()
    elif state.finished:
        reason = f"{state.strategy.name} has finished"
    elif state.nothing_left:
        reason = "all points of the space are known or rejected"
    logger.warning("stopped after %d evaluations: %s", state.evaluations, reason)


def _is_cached(state: State) -> bool:
    return state.evaluation.cache and state.evaluation.deterministic


def _all_known(state: State) -> bool:
    return _is_cached(state) and state.archive.distinct >= state.archive.space.points


def _combinations(state: State) -> int:
    return math.prod(state.archive.space.cardinalities.tolist())


def _has_few_points(state: State) -> bool:
    return not state.archive.space.groups and _combinations(state) <= _FEW
