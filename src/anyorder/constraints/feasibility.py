"""Constraints: how much a point violates one, and how a rejected point is made an allowed one.

The constraint is called before anything is evaluated, and is assumed to be cheap. The strategy is
told which of its proposals were rejected, and by how much they violate the constraint. A rejected
point is also repaired: an allowed point nearby, if possible a new one, is evaluated next. Every
strategy therefore gets answers, however small the allowed part of the space is, and learns from
them as from any others. If the constraint returns no numbers, points are repaired only while it
rejects at least half of the proposals: strategies cope with fewer rejections alone.

    violation   0 for an allowed point; else the amount of the violation, inf without a number
    repair      attempts to repair a rejected point, in this order:
                  a single change that makes it allowed
                  with numbers, single changes that each lower the violation; if a variable has
                    many values, also the value where the violation would be 0 if it were linear
                  a few of its values, with the other values of the best point so far
                  the first allowed point on a random path to an allowed point
                  from the nearest allowed point towards the rejected one, as far as allowed
                in a list, a change of one place moves another item, so that it stays valid
                half of the time, changes that a linear model of the values favours come first
    the first allowed point is searched for by sampling: each sample has its own shares of values
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import short
from anyorder.archive import Archive
from anyorder.archive.candidate import Candidate
from anyorder.archive.knowledge import Data
from anyorder.constraints.effects import Effects
from anyorder.constraints.samples import FEW, samples
from anyorder.errors import INFEASIBLE, OK, REJECTED, measure, violation_in
from anyorder.space import Space
from anyorder.space.neighbours import Neighbourhood
from anyorder.strategies.base import Codes
from anyorder.strategies.state import State, from_state, to_state

OFTEN = 0.5  # from this share of rejected proposals on, they are repaired
MEMORY = 16  # the share is a mean over about so many proposals
POOL = 16  # the most allowed points that are stored
GUIDED = 0.5  # the share of repairs that a linear model of the values guides
SMALL = 3  # the most variables that change at a time
TRIES = 60  # the most random changes that are tried at a time
LONGEST = 2_000  # the most calls of the constraint in one repair
MOST_VAIN = 8  # after so many repairs in vain, only one in 2**8 rejected proposals is repaired
SAMPLES = 10_000  # the most calls of the constraint to find the first allowed point


class Feasibility:
    """A constraint, and what is known about it.

    Parameters
    ----------
    space
        The space to search.
    constraint
        A function of a point that returns a bool, a number (the amount of the violation; 0 or less
        is allowed), or several of those.
    seed
        The seed of the random numbers for repairs.

    Attributes
    ----------
    calls
        The number of calls of the constraint.
    allowed
        Whether an allowed point is known.
    """

    def __init__(self, space: Space, constraint: Callable[[Any], Any], seed: int) -> None:
        self.space, self.constraint = space, constraint
        self._neighbourhood = Neighbourhood(space)
        # columns with many values, for which a straight line says which values to try
        self._many = space.ordered & (space.cardinalities > FEW)
        # passes over all columns without an improvement, after which a descent ends
        self._passes = max([group.passes for group in space.groups], default=1)
        self._rng = np.random.default_rng([seed, 17])
        self._effects: Effects | None = None
        self._share = 0.0  # the share of proposals that were rejected
        self._pool: list[Codes] = []
        self._least, self._least_point = math.inf, np.zeros(len(space), np.int32)
        self._vain = 0  # repairs in a row that found no new point
        # so many rejected proposals will not be repaired, since repairs were in vain
        self._skip = 0
        self._searched = False  # whether the first allowed point was searched for
        self.calls = 0

    # --- what the constraint says ---------------------------------------------------------------

    @property
    def allowed(self) -> bool:
        """Whether an allowed point is known."""
        return bool(self._pool)

    def violation(self, codes: Codes) -> float:
        """Return how much a point violates the constraint: 0 if allowed, inf without a number."""
        self.calls += 1
        (codes,) = self.space.canonical(codes[None])
        try:
            result = self.constraint(self.space.point(codes))
        except Exception as error:
            error.add_note(f"in constraint {self._name()} at {self.space.brief(codes)}")
            raise
        try:
            found = measure(result)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"constraint {self._name()} returned {error} at {self.space.brief(codes)}"
            ) from None
        if not found:
            if not any((codes == known).all() for known in self._pool):
                self._pool = [*self._pool[-POOL + 1 :], codes.copy()]
        elif found < self._least:
            self._least, self._least_point = found, codes.copy()
        return found

    def note(self, refused: bool) -> None:
        """Count a proposal of the strategy, and whether it was rejected."""
        self._share += (refused - self._share) / MEMORY

    @property
    def often(self) -> bool:
        """Whether proposals are rejected so often that they are repaired even without numbers."""
        return self._share >= OFTEN

    def _name(self) -> str:
        return getattr(self.constraint, "__qualname__", None) or short(self.constraint)

    def explain(self) -> str:
        """Return a message for a run that found no allowed point: what was tried."""
        text = f"constraint {self._name()} refused every one of {self.calls} points"
        if math.isfinite(self._least):
            near = self.space.brief(self._least_point)
            return f"{text}; the least violation was {self._least:g}, at {near}"
        tried = "those proposed, changes of them, and samples with many or few of each value"
        return f"{text} ({tried}): it must return True, or 0, for points that may be evaluated"

    def screen(
        self, candidates: Sequence[Candidate], given: int, archive: Archive, suggested: list[Codes]
    ) -> None:
        """Check new candidates, and add repaired points for rejected ones to `suggested`.

        The first `given` candidates do not come from the strategy, such as the user's starting
        points. They are repaired in any case.
        """
        pack = archive.packing.pack
        taken = {candidate.key for candidate in candidates}
        taken.update(pack(np.array(suggested)) if suggested else ())

        def is_known(codes: Codes) -> bool:
            (key,) = pack(self.space.canonical(codes[None]))
            return key in taken or archive.lookup(key) is not None

        for k, candidate in enumerate(candidates):
            if archive.lookup(candidate.key) is not None:
                continue  # it is answered from the archive, or was allowed before
            candidate.violation = self.violation(candidate.codes)
            refused = candidate.violation > 0
            if k >= given:
                self.note(refused)
            numeric = math.isfinite(candidate.violation)
            if refused and (numeric or self.often or k < given):
                if self._skip and k >= given:
                    self._skip -= 1
                    continue
                found = self.repair(candidate.codes, candidate.violation, is_known, archive)
                self._vain = 0 if found is not None else min(self._vain + 1, MOST_VAIN)
                self._skip = 2**self._vain if self._vain else 0
                if found is not None:
                    suggested.append(found)
                    taken.update(pack(found[None]))

    def refuse(self, data: Data) -> Data:
        """Return the data without the values of points that the constraint rejects."""
        measured = (data.statuses == OK) | (data.statuses == REJECTED)
        refused = [
            bool(ok) and self.violation(row) > 0
            for ok, row in zip(measured, data.codes, strict=True)
        ]
        values = data.values.copy()
        values[refused] = np.nan
        statuses = np.where(refused, REJECTED, data.statuses).astype(np.uint8)
        return Data(data.codes, values, statuses)

    def judge(self, candidate: Candidate) -> None:
        """Mark a candidate as rejected if the constraint rejects it, as `refuse` does with data."""
        candidate.violation = self.violation(candidate.codes)
        if candidate.violation > 0:
            candidate.value, candidate.status, candidate.known = math.nan, REJECTED, True
            candidate.values = None

    # --- repair ---------------------------------------------------------------------------------

    def repair(
        self,
        codes: Codes,
        violation: float,
        is_known: Callable[[Codes], bool],
        archive: Archive,
    ) -> Codes | None:
        """Return an allowed point near a rejected one, if possible a new point, or None."""
        if self._searched and not self._pool:
            return None  # no point is allowed, as far as is known
        if self._effects is None:
            self._effects = Effects(archive)
        effects = self._effects if self._rng.random() < GUIDED else None
        found = self._change_once(codes, is_known, effects)
        if found is None and math.isfinite(violation):
            found = self._descend(codes, violation, self.calls + LONGEST, effects)
        best = archive.best if archive.objectives is None else archive.on_front(self._rng)
        if found is None and best is not None:
            found = self._mix(best, codes, is_known)
        if found is None and not self._pool and not self._search():
            return None
        if found is None:
            other = self._pool[int(self._rng.integers(len(self._pool)))]
            found = self._search_between(codes, other, is_known)
        if found is None:
            nearest = min(self._pool, key=lambda known: int((known != codes).sum()))
            found = self._walk_towards(nearest, codes)
        if is_known(found):
            found = self._search_near(found, is_known)
        return None if found is None else self.space.canonical(found[None])[0]

    def _changes(self, codes: Codes, effects: Effects | None) -> Iterator[tuple[int, int]]:
        """Yield a change of each variable, in random order or the most promising first."""
        known = None if effects is None else effects.changes(codes)
        order = self._rng.permutation(self._neighbourhood.free)
        if known is None:
            targets = self._neighbourhood.other_values(codes[order], order, self._rng)
        else:
            order = order[np.argsort(-known[1][order], kind="stable")]
            targets = known[0][order]
        return zip(order.tolist(), targets.tolist(), strict=True)

    def _disturb(self, codes: Codes, changes: int) -> Codes:
        """Return the point with new random values of some variables; `changes` is their number."""
        near = self._neighbourhood
        which = self._rng.choice(near.free, changes, replace=False)
        values = near.other_values(codes[which], which, self._rng)
        return near.give(codes, which.tolist(), values.tolist(), self._rng)

    def _change_once(
        self, codes: Codes, is_known: Callable[[Codes], bool], effects: Effects | None
    ) -> Codes | None:
        """Return an allowed, unknown point that is one change away; None if there is none."""
        for i, target in islice(self._changes(codes, effects), TRIES):
            point = self._neighbourhood.give(codes, [i], [target], self._rng)
            if not is_known(point) and not self.violation(point):
                return point
        return None

    def _descend(
        self, codes: Codes, violation: float, end: int, effects: Effects | None = None
    ) -> Codes | None:
        """Return a point reached by single changes that lower the violation to 0, or None.

        In a permutation, changes that leave the violation equal are accepted too: several items may
        have to move before fewer of them are in a wrong place.
        """
        point, passes = codes, self._passes
        while passes and self.calls < end:
            passes, before = passes - 1, violation
            for i, target in self._changes(point, effects):
                trial = self._neighbourhood.give(point, [i], [target], self._rng)
                now = self.violation(trial)
                if now and self._many[i]:
                    trial, now = self._interpolate(point, violation, trial, now, i)
                if not now:
                    return trial
                if now < violation:
                    passes = self._passes
                if now < violation or (now == violation and self._passes > 1):
                    point, violation = trial, now
                if self.calls >= end:
                    break
            if violation == before:
                effects = None  # effects would suggest the same changes again
        return None

    def _interpolate(
        self, point: Codes, violation: float, trial: Codes, now: float, i: int
    ) -> tuple[Codes, float]:
        """Return the best of a change of variable i and the changes that a straight line suggests.

        If a sum is too large, or is not what it must be, one of these values is exactly right.
        """
        start, step = int(point[i]), int(trial[i]) - int(point[i])
        both_sides, one_side = violation + now, violation - now
        for span in (both_sides, one_side):
            if not now or not span or not math.isfinite(span):
                continue
            guess = start + step * (violation / span)
            other = point.copy()
            other[i] = round(min(max(guess, 0.0), float(self._neighbourhood.cardinalities[i] - 1)))
            if other[i] not in (start, trial[i]) and (found := self.violation(other)) < now:
                trial, now = other, found
        return trial, now

    def _mix(self, base: Codes, codes: Codes, is_known: Callable[[Codes], bool]) -> Codes | None:
        """Return an allowed, unknown point, `base` with a few values of `codes`, or None."""
        different = np.flatnonzero(base != codes)
        most = min(SMALL, len(different) - 1)
        for _ in range(TRIES if most > 0 else 0):
            which = self._rng.choice(different, 1 + int(self._rng.integers(most)), replace=False)
            point = self._neighbourhood.give(base, which.tolist(), codes[which], self._rng, codes)
            if not is_known(point) and not self.violation(point):
                return point
        return None

    def _search_between(
        self, codes: Codes, other: Codes, is_known: Callable[[Codes], bool]
    ) -> Codes | None:
        """Return the first allowed, unknown point on a random path from one point to another."""
        point = codes.copy()
        for i in self._rng.permutation(np.flatnonzero(codes != other))[:-1].tolist():
            point = self._neighbourhood.give(point, [i], [other[i]], self._rng, other)
            if not is_known(point) and not self.violation(point):
                return point
        return None

    def _search_near(self, codes: Codes, is_known: Callable[[Codes], bool]) -> Codes | None:
        """Return an allowed, unknown point that is one to three random changes away, or more.

        If all points nearby are known, it is the end of a random walk over allowed points.
        """
        most = min(SMALL, len(self._neighbourhood.free))
        for changes in range(1, most + 1):
            for _ in range(TRIES):
                point = self._disturb(codes, changes)
                if not is_known(point) and not self.violation(point):
                    return point
        end = self.calls + SMALL * TRIES
        while most and self.calls < end:
            point = self._disturb(codes, 1 + int(self._rng.integers(most)))
            violation = self.violation(point)
            if violation and math.isfinite(violation) and self._many.any():
                found = self._descend(point, violation, self.calls + TRIES)
                point, violation = (point, violation) if found is None else (found, 0.0)
            if not violation:
                if not is_known(point):
                    return point
                codes = point
        return None

    def _walk_towards(self, base: Codes, codes: Codes) -> Codes:
        """Walk from an allowed point towards another one; return the last allowed point."""
        point = base.copy()
        for _ in range(TRIES):
            different = np.flatnonzero(point != codes)
            if not len(different):
                break
            count = min(len(different), 1 + int(self._rng.integers(SMALL)))
            which = self._rng.choice(different, count, replace=False)
            trial = self._neighbourhood.give(point, which.tolist(), codes[which], self._rng, codes)
            if not self.violation(trial):
                point = trial
        return point

    def _search(self) -> bool:
        """Search for a first allowed point, only once; return whether there is one."""
        if self._searched:
            return False
        self._searched = True
        end = self.calls + SAMPLES
        for point in samples(self.space, self._rng):
            found = self.violation(point)
            if math.isfinite(found) and found:
                self._descend(point, found, min(end, self.calls + LONGEST))
            if self._pool or self.calls >= end:
                break
        return bool(self._pool)

    # --- state ----------------------------------------------------------------------------------

    def _values(self) -> dict[str, Any]:
        return {
            "rng": self._rng,
            "share": self._share,
            "pool": np.array(self._pool, np.int32).reshape(-1, len(self.space)),
            "least": self._least,
            "least_point": self._least_point,
            "vain": self._vain,
            "skip": self._skip,
            "searched": self._searched,
            "calls": self.calls,
        }

    def state(self) -> State:
        """Return everything that determines future repairs, as arrays."""
        return to_state(self._values())

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned."""
        values = from_state(state, self._values())
        pool: npt.NDArray[np.int32] = values["pool"]
        if (
            pool.shape[1:] != (len(self.space),)
            or ((pool < 0) | (pool >= self._neighbourhood.cardinalities)).any()
        ):
            raise ValueError("the allowed points of the state are of another space")
        self._rng, self._share, self._pool = values["rng"], values["share"], list(pool)
        self._least, self._least_point = values["least"], values["least_point"]
        self._vain, self._skip = values["vain"], values["skip"]
        self._searched, self.calls = values["searched"], values["calls"]


def violation_of(candidate: Candidate, archive: Archive, feasibility: Feasibility | None) -> float:
    """Return how much a candidate without a value violates the constraint; NaN if not known."""
    if candidate.status == REJECTED and feasibility is not None:
        if candidate.violation is None:
            candidate.violation = feasibility.violation(candidate.codes)
        return candidate.violation
    if candidate.status == INFEASIBLE:
        return violation_in(candidate.error or archive.error(candidate.key))
    return math.nan
