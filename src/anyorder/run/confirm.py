"""The last evaluations of a noisy run, which measure promising points again.

The best of many noisy values is better than the true value of its point, since it was chosen for
its noise, too. A share of the budget is therefore reserved for the end. Most of it measures the
points that may be the best, each time the point with the highest upper bound of its mean
(`CONFIRM`). Then the point with the best lower bound is the answer, and the remaining evaluations
measure only that point (`CLAIM`). The mean of these last values is what the run claims: the choice
did not depend on them, so they are not biased by it.

Points are measured without the strategy, which learns their values as those of points that it has
not proposed. A study stores these evaluations with their generations, by which a replay recognises
them.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from anyorder.archive import CLAIM, CONFIRM, FREEDOM
from anyorder.archive.candidate import Candidate
from anyorder.errors import OK

if TYPE_CHECKING:
    from anyorder.run.options import Evaluation, Stopping
    from anyorder.run.state import State

SHARE = 0.1  # the share of the budget
_CLAIMED = 3  # one in so many of these evaluations measures the answer


def check_confirm(evaluation: Evaluation, stopping: Stopping, several: bool) -> None:
    """Raise a ValueError if there are no evaluations with which to measure points again."""
    asked, budget = evaluation.confirm, stopping.budget
    if asked and several:
        raise ValueError(f"confirm is {asked}, which is for one objective only: there is no answer")
    if asked and budget is None:
        raise ValueError(f"confirm is {asked}, and there is no budget, of which it is a part")
    if asked and budget is not None and asked >= budget:
        raise ValueError(f"confirm is {asked}, expected less than the budget, {budget}")


def kept_back(state: State) -> int:
    """Return how many evaluations are reserved for the end of a run; 0 for several objectives."""
    budget, asked = state.stopping.budget, state.evaluation.confirm
    if state.evaluation.deterministic or budget is None or state.archive.objectives is not None:
        return 0
    return round(SHARE * budget) if asked is None else asked


def next_kind(state: State) -> tuple[int | None, float]:
    """Return what comes next, and how many evaluations of that kind may be proposed.

    The kind is None for the strategy's candidates, `CONFIRM`, or `CLAIM`. No `CLAIM` may be
    proposed before everything else has been answered.
    """
    left, kept = state.room - len(state.ready), kept_back(state)
    if not kept:
        return None, math.inf
    claims = math.ceil(kept / _CLAIMED)
    if left > kept:
        return None, left - kept
    if left > claims:
        return CONFIRM, left - claims
    if all(candidate.generation == CLAIM for candidate in _open_candidates(state)):
        return CLAIM, left
    return CLAIM, 0


def draw(state: State, kind: int, count: int) -> list[Candidate]:
    """Return candidates that measure points again; an empty list if no point has a value."""
    archive = state.archive
    if archive.best is None:
        return []
    points = [_answer(state)] * count if kind == CLAIM else _find_promising(state, count)
    keys = [archive.key_of(point) for point in points]
    codes = archive.packing.unpack(keys)
    return [Candidate(None, row, key, kind) for row, key in zip(codes, keys, strict=True)]


def _open_candidates(state: State) -> list[Candidate]:
    """Return the candidates that wait for their own evaluations, or for others in their batch."""
    return [*state.ready, *state.out]


def _answer(state: State) -> int:
    """Return the point that is claimed as the answer; once chosen, it remains."""
    archive = state.archive
    for candidate in _open_candidates(state):
        if candidate.generation == CLAIM:
            return archive.number_of(candidate.key)
    return archive.answer().point


def _find_promising(state: State, count: int) -> list[int]:
    """Return the points with the highest upper bounds, counting open candidates as measured."""
    archive = state.archive
    counts, means = archive.measured()
    tries = counts.astype(float)
    for key, times in Counter(candidate.key for candidate in _open_candidates(state)).items():
        if (point := archive.number_of(key)) >= 0:
            tries[point] += times
    score = np.where(counts > 0, archive.sign * means, -np.inf)
    score[np.isnan(score) | _find_failed_again(state)] = -np.inf
    noise = archive.noise(FREEDOM)
    points = []
    for _ in range(count):
        if noise is None:  # measure the points with the best values once more
            bound = np.where(tries == tries[score > -np.inf].min(initial=np.inf), score, -np.inf)
        else:
            bound = score + noise / np.sqrt(np.maximum(tries, 1.0))
        points.append(int(bound.argmax()))
        tries[points[-1]] += 1
    return points


def _find_failed_again(state: State) -> npt.NDArray[np.bool_]:
    """Return which points failed when they were measured again: these are not measured any more."""
    archive = state.archive
    failed = (archive.column("generation") == CONFIRM) & (archive.column("status") != OK)
    result = np.zeros(len(archive.measured()[0]), np.bool_)
    result[archive.column("point")[failed]] = True
    return result
