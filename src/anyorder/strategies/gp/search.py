"""Search with a Gaussian process, for 25 to a few hundred evaluations of a costly function.

After a few random points, every proposal maximises the expected improvement near the best point: by
steepest ascent over single changes, from the best point and from random changes of it, within a
trust region that grows after successes and shrinks after failures.

Jones, Schonlau and Welch, "Efficient global optimization of expensive black-box functions" (1998).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from anyorder.errors import OK
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Index, Search, Seed, score
from anyorder.strategies.gp.answers import Answers
from anyorder.strategies.gp.around import Around
from anyorder.strategies.gp.columns import Columns
from anyorder.strategies.gp.model import GP, Floats
from anyorder.strategies.gp.region import TrustRegion
from anyorder.strategies.gp.values import squash

FIRST_RANDOM = 10  # the number of random points at the beginning
# the least number of values to use the model while other points are still evaluated
LEAST_ANSWERS = 4
FIT_ITERATIONS = 15  # iterations of a fit
REFIT = 1.1  # the growth of the number of values from one fit to the next
MOST_POINTS = 250  # the most points of the model: the best half and the latest half
ASCENTS = 3  # ascents for a proposal
MOST_STEPS_UP = 20  # the most steps of an ascent
BRANCHES = 8  # so many branches, those with the best points, take turns in a space with conditions
NOISE_IF_TOLD = (-2.0, 2.0)  # the prior of log v if the function is said to be noisy
LOOKED_AT = 6  # so many of the best neighbours are tried: one of them must be new
LEAST_STEP = 1e-9  # the least step, in log improvement
LEAST_CHANCE = 0.01  # the least probability of success that is assumed of any point
RANDOM_ATTEMPTS = 50  # attempts to find a new point
SMALL = 1 << 16  # in a space of fewer combinations, all points are tried if no new one is found


class GPSearch(Search):
    """Expected improvement by a Gaussian process, near the best point.

    `propose(k)` returns k different points. Each is chosen as if the earlier ones, and those being
    evaluated, had the values that the model expects. Points that failed have no value; a second
    process learns where that happens. The model also learns from data of earlier runs.

    Parameters
    ----------
    space, seed
        See `Search`.

    Attributes
    ----------
    generation
        The number of times that the model was fitted.
    """

    name = "gp"
    STATE: ClassVar[tuple[str, ...]] = (
        "_answered", "_waiting", "_parameters", "_fitted", "_quality", "_works_parameters",
        "_works_fitted", "_best", "_best_value", "_trust", "_aside", "_turn",
    )  # fmt: skip

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        self._around = Around(self._neighbourhood)
        self._columns = Columns(space)
        self._model, self._works = GP(self._columns), GP(self._columns)
        self._answers = Answers(len(space))
        self._waiting: dict[int, bytes] = {}  # the proposed points, by ticket
        self._fitted = self._works_fitted = 0  # the number of answers when a model was last fitted
        self._best: Codes | None = None
        self._best_value = -np.inf
        self._region = TrustRegion(max(len(self._free), 1))
        # the tickets of proposals in other branches than the best one
        self._aside: set[int] = set()
        self._turn = 0  # the number of proposals by the model
        # Which of the points with a value the model has, and all points as columns.
        self._chosen: Index = np.empty(0, np.intp)
        self._rows: Floats = np.empty((0, len(self._columns)))
        self._stale = self._works_stale = True
        self._top = 0.0  # the value to improve, on the scale of the model

    # --- answers --------------------------------------------------------------------------------

    def give_up(self, tickets: Sequence[int]) -> None:
        """Forget proposals that will not be answered."""
        self._aside.difference_update(tickets)
        for ticket in tickets:
            if self._waiting.pop(ticket, None) is not None:
                self._stale = True

    def _learn(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            own = answer.ticket is not None and self._waiting.pop(answer.ticket, None) is not None
            point = np.ascontiguousarray(answer.codes, np.int32)
            value = score(answer)
            judged = own and (answer.ticket not in self._aside or value > self._best_value)
            if judged and len(self._answers.values) >= FIRST_RANDOM:
                self._region.adapt(value > self._best_value)
            self._aside.discard(-1 if answer.ticket is None else answer.ticket)
            if self._best is None or value > self._best_value:
                self._best, self._best_value = point.copy(), value
            self._answers.add(point, answer.value if answer.status == OK else None)
            self._stale = self._works_stale = True

    # --- proposals ------------------------------------------------------------------------------

    def _propose(self, count: int) -> Codes:
        taken = set(self._waiting.values())
        found = []
        for k in range(count):
            point, is_aside = self._next(taken)
            found.append(point)
            taken.add(point.tobytes())
            self._waiting[self._next_ticket + k] = point.tobytes()
            if is_aside:
                self._aside.add(self._next_ticket + k)
        return np.stack(found)

    def _next(self, taken: set[bytes]) -> tuple[Codes, bool]:
        """Return a new point, if there is one, and whether it is in another branch."""
        known = len(self._answers.values)
        early = known < LEAST_ANSWERS or known + len(self._waiting) < FIRST_RANDOM
        if early or not len(self._columns) or self._is_exhausted(taken):
            return self._any_new(taken), False
        self._update()
        self._turn += 1
        point, is_aside = None, False
        if self.space.conditional and self._turn % 2:
            point = self._elsewhere(taken)
            is_aside = point is not None
        if point is None:
            point = self._most_promising(self._best_point(), self._top, self._region.radius, taken)
        if point is None:
            point = self._any_new(taken)
        self._model.add_pending(self._columns.of(point[None])[0])
        return point, is_aside

    def _best_point(self) -> Codes:
        assert self._best is not None
        return self._best

    def _elsewhere(self, taken: set[bytes]) -> Codes | None:
        """Return a promising point of the branch that was tried least; None if there is only one.

        A branch is a set of variables that are present. The value of a branch is not known before
        its variables are tuned. A few branches with the best points so far therefore take turns,
        and each is searched as if there were no others.
        """
        pending = [np.frombuffer(key, np.int32) for key in taken]
        waiting = np.array(pending, np.int32).reshape(-1, len(self.space))
        points = np.concatenate([self._answers.points, waiting])
        patterns = self.space.present(np.concatenate([points, self._best_point()[None]]))
        _, which = np.unique(patterns, axis=0, return_inverse=True)
        which = which.reshape(-1)
        own, which = which[-1], which[:-1]
        counts = np.bincount(which, minlength=own + 1)
        scale = np.full(len(counts), -np.inf)
        values = np.where(np.isnan(self._answers.values), -np.inf, self._answers.values)
        np.maximum.at(scale, which[: len(values)], values)
        scale[own] = -np.inf
        others = np.argsort(-scale, kind="stable")[:BRANCHES]
        others = others[scale[others] > -np.inf]
        if not len(others):
            return None
        branch = others[counts[others].argmin()]
        inside = np.flatnonzero(which[: len(values)] == branch)
        k = int(inside[values[inside].argmax()])
        top = float(squash(self._answers.values)[k])
        radius = max(self._region.radius, self._region.most / 2)
        return self._most_promising(self._answers.points[k], top, radius, taken, patterns[k])

    def _is_new(self, point: Codes, taken: set[bytes]) -> bool:
        key = point.tobytes()
        if key in taken or self._answers.has(key):
            return False
        if self.archive is None:
            return True
        (packed,) = self.archive.packing.pack(point[None])
        return self.archive.lookup(packed) is None

    def _is_exhausted(self, taken: set[bytes]) -> bool:
        """Return whether every point of a small space is known or has been proposed."""
        if self.space.points > SMALL:
            return False
        return self._answers.count(taken) >= self.space.points

    def _any_new(self, taken: set[bytes]) -> Codes:
        """Return a random point that is new, if one is found."""
        points = self.space.canonical(self._uniform(1))
        if self._is_new(points[0], taken) or self._is_exhausted(taken):
            first: Codes = points[0].copy()
            return first
        points = self.space.canonical(self._uniform(RANDOM_ATTEMPTS))
        if self.space.size <= SMALL and not self.space.groups:
            numbers = self._rng.permutation(self.space.size)
            every = np.stack(np.unravel_index(numbers, tuple(self._cardinalities)), axis=1)
            points = np.concatenate([points, self.space.canonical(every.astype(np.int32))])
        found: Codes = next((p for p in points if self._is_new(p, taken)), points[0]).copy()
        return found

    # --- models ---------------------------------------------------------------------------------

    def _update(self) -> None:
        """Fit or condition the models on the answers, and on the points being evaluated."""
        if not self._stale:
            return
        self._condition()
        if len(self._answers.failed) and self._works_stale:
            self._condition_works()
        for key in self._waiting.values():
            point = np.frombuffer(key, np.int32)
            self._model.add_pending(self._columns.of(point[None])[0])
        self._stale = self._works_stale = False

    def _condition(self) -> None:
        known = len(self._answers.values)
        if len(self._rows) < known:
            more = self._columns.of(self._answers.points[len(self._rows) :])
            self._rows = np.concatenate([self._rows, more])
        chosen = _best_and_latest(self._answers.values)
        values = squash(self._answers.values)[chosen]
        rows = self._rows[chosen]
        noisy = self.archive is not None and not self.archive.deterministic
        if known >= self._fitted * REFIT:
            if noisy:
                self._model.expect_noise(*NOISE_IF_TOLD)
            self._model.fit(rows, values, FIT_ITERATIONS)
            self._fitted = known
            self.generation += 1
        else:
            shorter = min(len(chosen), len(self._chosen))
            differ = np.flatnonzero(chosen[:shorter] != self._chosen[:shorter])
            same = int(differ[0]) if len(differ) else shorter
            self._model.condition(rows, values, same)
        self._chosen = chosen
        self._top = float(values.max())
        if noisy:
            means = self._model.means_of_known()
            k = int(means.argmax())
            self._top, self._best = float(means[k]), self._answers.points[chosen[k]].copy()

    def _condition_works(self) -> None:
        """Fit or condition the model that predicts which points have a value at all."""
        labels = np.repeat([1.0, 0.0], [len(self._answers.points), len(self._answers.failed)])
        points = np.concatenate([self._answers.points, self._answers.failed])[-2 * MOST_POINTS :]
        labels = labels[-2 * MOST_POINTS :] - labels[-2 * MOST_POINTS :].mean()
        rows = self._columns.of(points)
        if len(points) >= self._works_fitted * REFIT:
            self._works.fit(rows, labels, FIT_ITERATIONS)
            self._works_fitted = len(points)
        else:
            self._works.condition(rows, labels)
        self._works_mean = len(self._answers.points) / (
            len(self._answers.points) + len(self._answers.failed)
        )

    # --- the acquisition ------------------------------------------------------------------------

    def _most_promising(
        self,
        best: Codes,
        top: float,
        radius: float,
        taken: set[bytes],
        pattern: npt.NDArray[np.bool_] | None = None,
    ) -> Codes | None:
        """Return a point near the best one with a large expected improvement over `top`.

        Return None if no new point was found. With a `pattern`, the point has just these variables.
        """
        best = self.space.canonical(best[None])[0]
        centre = self._columns.of(best[None])[0]
        found, height = None, -np.inf
        for k in range(ASCENTS):
            start = best
            if k:
                changes = 1 + int(self._rng.random() * max(2.0, radius))
                start = self.space.canonical(self._mutate(best, 1, changes))[0]
            if pattern is not None and (self.space.present(start[None])[0] != pattern).any():
                start = best
            point, gain = self._ascend(start, centre, top, radius, taken, pattern)
            if point is not None and gain > height:
                found, height = point, gain
        return found

    def _ascend(
        self,
        start: Codes,
        centre: Floats,
        top: float,
        radius: float,
        taken: set[bytes],
        pattern: npt.NDArray[np.bool_] | None,
    ) -> tuple[Codes | None, float]:
        """Return the end of a steepest ascent over new points, and its log improvement."""
        found, height = None, -math.inf
        point, present = start, self._neighbourhood.present(start[None])
        row = self._columns.of(point[None], present)[0]
        for _ in range(MOST_STEPS_UP):
            around, presents = self._around.of(point, present[0], self._rng, pattern is None)
            rows = self._columns.of(around, presents)
            inside = self._columns.distances(rows, centre) <= radius
            if not inside.any():
                break
            around, rows = around[inside], rows[inside]
            gains = self._model.improvements(self._model.origin(row), rows, top)
            if len(self._answers.failed):
                gains = gains + np.log(self._chances(row, rows))
            order = np.argsort(-gains, kind="stable")[:LOOKED_AT].tolist()
            c = next((c for c in order if self._is_new(around[c], taken)), -1)
            if c < 0 or gains[c] <= height + LEAST_STEP:
                break
            point = found = around[c]
            row, height = rows[c], float(gains[c])
            if presents is not None:
                present = presents[inside][[c]]
        return found, height

    def _chances(self, origin: Floats, rows: Floats) -> Floats:
        """Return the probability that points near an origin have a value."""
        means = self._works.means(self._works.origin(origin), rows)
        found: Floats = np.clip(self._works_mean + means, LEAST_CHANCE, 1.0)
        return found

    # --- state ----------------------------------------------------------------------------------

    @property
    def _answered(self) -> tuple[Codes, Floats, Codes]:
        return self._answers.state()

    @_answered.setter
    def _answered(self, state: tuple[Codes, Floats, Codes]) -> None:
        self._answers.restore(state)

    @property
    def _trust(self) -> tuple[float, int, int]:
        return self._region.state()

    @_trust.setter
    def _trust(self, state: tuple[float, int, int]) -> None:
        self._region.restore(state)

    @property
    def _parameters(self) -> Floats:
        return self._model.parameters

    @_parameters.setter
    def _parameters(self, parameters: Floats) -> None:
        self._model.parameters = parameters

    @property
    def _works_parameters(self) -> Floats:
        return self._works.parameters

    @_works_parameters.setter
    def _works_parameters(self, parameters: Floats) -> None:
        self._works.parameters = parameters

    @property
    def _quality(self) -> tuple[float, float]:
        return self._model.error, self._model.noise

    @_quality.setter
    def _quality(self, quality: tuple[float, float]) -> None:
        self._model.error, self._model.noise = quality

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Set the attributes in `STATE`; the models follow from them."""
        super().restore(state)
        self._rows, self._chosen = self._rows[:0], self._chosen[:0]
        self._stale = self._works_stale = True
        self._model.forget()

    def facts(self) -> dict[str, Any]:
        """Return the size and the error of the model, the trust region, and what matters most."""
        found: dict[str, Any] = {"model_points": min(len(self._answers.values), MOST_POINTS)}
        if self._fitted:
            relevances = self._model.relevances()
            order = np.argsort(-relevances, kind="stable")[:5]
            found["model_error"] = round(self._model.error, 4)
            found["noise"] = round(self._model.noise, 4)
            found["trust_region"] = round(self._region.radius, 1)
            found["relevant"] = {
                self._columns.labels[k]: round(float(relevances[k]), 2) for k in order
            }
        return found


def _best_and_latest(values: Floats) -> Index:
    """Return the rows for the model: all of them, or the best and the latest."""
    count = len(values)
    if count <= MOST_POINTS:
        return np.arange(count)
    best = np.argsort(-values, kind="stable")[: MOST_POINTS // 2]
    latest = np.arange(count - (MOST_POINTS - MOST_POINTS // 2), count)
    return np.union1d(best, latest)
