"""When there is nothing left to evaluate: one rule for all strategies.

A run is exhausted when every point is known, when its strategy has finished, or when a long row of
candidates were known or rejected. In a small space such a row does not end the run: points that are
still unknown are proposed instead. Without a cache no point counts as known, so that a strategy
that has finished is followed by random points until the budget is spent.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from anyorder.proposer import IDLE_BATCHES, IDLE_CANDIDATES
from anyorder.space.neighbours import Neighbourhood

if TYPE_CHECKING:
    from anyorder.run.state import State
    from anyorder.space import Space
    from anyorder.strategies.base import Codes

logger = logging.getLogger("anyorder")

_FEW = 1_000  # spaces with at most so many points are searched for unknown ones


def is_exhausted(state: State) -> bool:
    """Return whether no further candidate can be expected to be new."""
    if state.finished or _all_known(state):
        return True
    return is_idle(state) and (state.nothing_left or not _has_few_points(state))


def is_idle(state: State) -> bool:
    """Return whether a long row of candidates were known or rejected."""
    return state.idle >= max(IDLE_CANDIDATES, IDLE_BATCHES * state.strategy.batch)


def unknown_points(state: State, busy: Collection[bytes]) -> list[Codes]:
    """Return all allowed points that are neither known nor in `busy`.

    Return none if the space has too many points to try them all.
    """
    space, archive = state.archive.space, state.archive
    feasibility = state.proposer.feasibility
    found: list[Codes] = []
    if not _has_few_points(state):
        return found
    codes = np.unique(space.canonical(_combinations(space)), axis=0)
    for key, row in zip(archive.packing.pack(codes), codes, strict=True):
        if key in busy or archive.lookup(key) is not None:
            continue
        if feasibility is None or not feasibility.violation(row):
            found.append(row)
    return found


def random_points(state: State, count: int) -> list[Codes]:
    """Return points to propose after a strategy has finished, if points may be evaluated again."""
    space = state.archive.space
    if _is_cached(state):
        return []
    rng = np.random.default_rng([state.proposer.seed, state.told])
    return list(space.canonical(Neighbourhood(space).sample(count, rng)))


def explain_exhaustion(state: State) -> None:
    """Log the reason why a run is exhausted."""
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


def _has_few_points(state: State) -> bool:
    return state.archive.space.size <= _FEW


def _combinations(space: Space) -> Codes:
    """Return all combinations of values and of lists; the space has few."""
    groups = {group.first: group for group in space.groups}
    found = np.zeros((1, 0), np.int32)
    while (column := found.shape[1]) < len(space):
        group = groups.get(column)
        values = np.arange(space.cardinalities[column], dtype=np.int32)[:, None]
        block = values if group is None else group.lists
        before = np.repeat(found, len(block), axis=0)
        found = np.concatenate([before, np.tile(block, (len(found), 1))], axis=1)
    return found
