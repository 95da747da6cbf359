"""Guided search: the strategy, and the default in spaces with subsets or permutations.

Every proposal is made from the best point so far, in one of four ways:

    scan      the next neighbour in a random, cyclic order, as in hill climbing
    step      the neighbour of which the model expects most
    leap      a few random changes, then a climb on a sample of the model, which costs nothing
    mutate    a few random changes

Each has a share of the evaluations, which grows with the improvements that it finds. A point that
is not worse than the best takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from anyorder.errors import OK
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Index, Search, Seed, score
from anyorder.strategies.changes import Changes, turned
from anyorder.strategies.guided.model import AdditiveModel, Features

SCAN, STEP, LEAP, MUTATE = range(4)
NAMES = ("scan", "step", "leap", "mutate")
PRIORS = np.array([0.5, 0.1, 0.3, 0.1])  # shares of the evaluations without any credit
LEAST_SHARE = 0.05  # none gets less
PRIOR_WINS = 0.5  # how many improvements, and their cost, the priors are worth
MEMORY, MEMORY_SPENT = 50, 0.5  # credit decays over 50 + e / 2 evaluations
FIRST = 20  # answers before the first fit
GROWTH = 1.15  # of the number of answers, from one fit to the next
ROWS = 4_000  # answers that the model is fitted to: the latest
PREDICTS = 0.9  # steps follow the model if its error is below this share of the variance
ATTEMPTS = 10  # to find a point that is new


class GuidedSearch(Search):
    """Local search on subsets and permutations, guided by a model of what their parts are worth.

    Neighbours differ by an exchange, insertion or reversal in a list, or in the value of another
    variable. The model is additive: which item is where, which items are next to each other, which
    are chosen together. It is fitted to the answers as they come, and used in the form that
    predicts best. Where it does not predict anything, what remains is local search.

    `propose(k)` gives k points made from the best one so far. Answers of others' points, and data
    of earlier runs, teach the model like its own.

    Parameters
    ----------
    space, seed
        See `Search`.

    Attributes
    ----------
    generation
        The number of answers.
    """

    name = "guided"
    STATE: ClassVar[tuple[str, ...]] = (
        "_best", "_best_value", "_points", "_values", "_waiting", "_cost", "_wins", "_uses",
        "_found_by", "_order", "_untried", "_ranked", "_fitted", "_fitted_rows", "_form",
    )  # fmt: skip

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        self._changes = Changes(self._cardinalities, self._scales, self._groups)
        wide = list(self._scales)
        self._model = AdditiveModel(self._cardinalities, self._groups, self._changes, wide)
        self._best: Codes | None = None
        self._best_value = -np.inf
        # The latest answers that have a value.
        self._points = self._none()
        self._values = np.zeros(0)
        self._waiting: dict[int, int] = {}  # who made a proposal, by ticket
        self._cost, self._wins = np.zeros(len(NAMES)), np.zeros(len(NAMES))  # with decay
        self._uses = np.zeros(len(NAMES), np.int64)
        self._found_by = -1  # who found the best point
        self._order = self._untried = np.empty(0, np.int64)  # changes of the best point, for scans
        self._fitted = 0  # answers when the model was last fitted
        self._fitted_rows = 0  # and how many of them it was fitted to
        self._ranked: Index | None = None  # changes of the best point, the most promising one last
        self._rows: Features | None = None  # features of the points

    def give_up(self, tickets: Sequence[int]) -> None:
        """Forget proposals that will not be answered."""
        for ticket in tickets:
            self._waiting.pop(ticket, None)

    # --- proposals ------------------------------------------------------------------------------

    def _propose(self, count: int) -> Codes:
        if self._best is None or not len(self._free):
            return self._uniform(count)
        self._fit()
        found: list[Codes] = []
        taken: set[bytes] = set()
        for k in range(count):
            operator = self._choose()
            found.append(self._new(operator, self._best, taken))
            taken.add(_key(found[-1]))
            self._waiting[self._next_ticket + k] = operator
        return np.stack(found)

    def _choose(self) -> int:
        """The operator that is furthest behind its share."""
        pending = np.bincount(list(self._waiting.values()), minlength=len(NAMES))
        cost = self._cost + pending
        behind = self.shares() * cost.sum() - cost
        if not self._fitted_rows:
            behind[[STEP, LEAP]] = -np.inf
        return int((behind + 1e-9 * self._rng.random(len(NAMES))).argmax())

    def shares(self) -> npt.NDArray[np.float64]:
        """The share of each operator: the prior ones, times wins relative to the expected ones."""
        rate = self._wins.sum() / (self._cost.sum() + 1.0)
        share = PRIORS * (self._wins + PRIOR_WINS) / (rate * self._cost + PRIOR_WINS)
        share = np.maximum(share / share.sum(), LEAST_SHARE)
        found: npt.NDArray[np.float64] = share / share.sum()
        return found

    def _new(self, operator: int, best: Codes, others: Set[bytes]) -> Codes:
        """A point of this operator that is not known, if there is one; else any."""
        point: Codes = best
        if operator in (SCAN, STEP):
            while (change := self._next_change(operator, best)) is not None:
                point = self._settled(self._changes.apply(best, np.array([change])), best)[0]
                if not self._is_known(point, others):
                    return point
        if operator == LEAP:
            worth = self._model.sample(self._features(), self._values, self._rng)
            for _ in range(ATTEMPTS):
                point = self._mutant(best)
                order = self._rng.permutation(len(self._changes))
                point = self._settled(self._model.climb(point, worth, order)[None], best)[0]
                if not self._is_known(point, others):
                    return point
        for attempt in range(2 * ATTEMPTS):  # in a small space, what is near may all be known
            point = self._mutant(best) if attempt < ATTEMPTS else self._uniform(1)[0]
            if not self._is_known(point, others):
                break
        return point

    def _mutant(self, point: Codes) -> Codes:
        """Some changes: k or more with probability 1 / k, at most as many as half the columns."""
        most = max(1.0, len(self._free) / 2)
        mutant: Codes = self._varied(point, 1, int(min(1 / (1 - self._rng.random()), most)))[0]
        return mutant

    def _next_change(self, operator: int, best: Codes) -> int | None:
        if operator == SCAN:
            if not len(self._untried):
                return None
            change, self._untried = int(self._untried[0]), self._untried[1:]
            return change
        if self._ranked is None:
            changes = self._neighbours(best, self._changes.shuffled(self._rng))
            if self._model.error < PREDICTS:
                gains = self._model.gains(best, changes)
                changes = changes[np.argsort(-gains, kind="stable")]
            self._ranked = changes[::-1]
        if not len(self._ranked):
            return None
        change, self._ranked = int(self._ranked[-1]), self._ranked[:-1]
        return change

    def _neighbours(self, point: Codes, changes: Index) -> Index:
        changeable = self._changeable(point) if self.space.conditional else None
        return self._changes.distinct(point, changes, changeable)

    def _is_known(self, point: Codes, others: Set[bytes]) -> bool:
        """Whether a point is answered, or among the others of this proposal."""
        if _key(point) in others:
            return True
        if self.archive is None:
            return bool((self._points == point).all(axis=1).any())
        (key,) = self.archive.packing.pack(self.space.canonical(point[None]))
        return self.archive.lookup(key) is not None

    # --- the model ------------------------------------------------------------------------------

    def _features(self) -> Features:
        """Those of the latest answers."""
        if self._rows is None:
            self._rows = self._model.features(self._points)
        elif len(self._rows) < len(self._points):
            more = self._model.features(self._points[len(self._rows) :])
            self._rows = np.concatenate([self._rows, more])
        return self._rows

    def _fit(self) -> None:
        """Fit the model whenever there are enough new answers."""
        due = max(FIRST, int(self._fitted * GROWTH) + 1)
        if self.generation < due or len(self._values) < FIRST or not self._model.usable:
            return
        self._fitted, self._fitted_rows = self.generation, len(self._values)
        self._model.select(self._points, self._values)
        self._ranked = self._rows = None
        self._model.fit(self._features(), self._values)

    @property
    def _form(self) -> list[float]:
        """What was selected; the rest of the model follows from the points."""
        return self._model.form

    @_form.setter
    def _form(self, form: list[float]) -> None:
        self._model.form = form

    # --- answers --------------------------------------------------------------------------------

    def _learn(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            self.generation += 1
            value = score(answer)
            operator = None
            if answer.ticket is not None:
                operator = self._waiting.pop(answer.ticket, None)
            if operator is not None:
                self._credit(operator, value > self._best_value)
            if self._best is None or value >= self._best_value:
                if value > self._best_value and operator is not None:
                    self._found_by = operator
                self._go(answer.codes.astype(np.int32), value)
        kept = [a for a in answers if a.status == OK and math.isfinite(a.value)]
        if kept:
            codes = np.stack([answer.codes for answer in kept]).astype(np.int32)
            self._points = np.concatenate([self._points, codes])
            self._values = np.append(self._values, [answer.value for answer in kept])
        if len(self._values) > ROWS * 1.25:  # now and then, since features are then computed anew
            self._points, self._values = self._points[-ROWS:], self._values[-ROWS:]
            self._rows, self._fitted, self._fitted_rows = None, 0, 0

    def _credit(self, operator: int, won: bool) -> None:
        decay = math.exp(-1 / (MEMORY + MEMORY_SPENT * self.generation))
        self._cost *= decay
        self._wins *= decay
        self._cost[operator] += 1
        self._wins[operator] += won
        self._uses[operator] += 1

    def _go(self, point: Codes, value: float) -> None:
        """Make a point the best one."""
        self._best_value = value
        if self._best is not None and np.array_equal(self._best, point):
            return
        step = None if self._best is None else self._changes.between(self._best, point)
        if step is None or not len(self._order):
            self._order = self._untried = self._changes.shuffled(self._rng)
        else:
            self._order, self._untried = turned(self._order, *step)
        self._untried = self._neighbours(point, self._untried)
        self._best, self._ranked = point.copy(), None

    # --- state ----------------------------------------------------------------------------------

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Set the attributes in `STATE`, and fit the model as it was."""
        super().restore(state)
        self._rows = None
        if self._fitted_rows:
            count = self._fitted_rows
            self._model.fit(self._features()[:count], self._values[:count])

    def facts(self) -> dict[str, Any]:
        """The form of the model and its error, the operators, and which found the best point."""
        used = {name: int(count) for name, count in zip(NAMES, self._uses, strict=True)}
        shares = {
            name: round(float(share), 3) for name, share in zip(NAMES, self.shares(), strict=True)
        }
        found: dict[str, Any] = {"operators": used, "shares": shares}
        if self._found_by >= 0:
            found["best_found_by"] = NAMES[self._found_by]
        return {**self._model.facts(), **found}


def _key(point: Codes) -> bytes:
    return point.astype(np.int32, copy=False).tobytes()
