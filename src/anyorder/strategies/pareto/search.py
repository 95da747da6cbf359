"""The search for several objectives: models of each, and a portfolio on a weighted sum of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import integer
from anyorder.errors import OK
from anyorder.space import Space
from anyorder.strategies.auto.portfolio import FIRST_POINTS, Portfolio
from anyorder.strategies.auto.request import CHANGE
from anyorder.strategies.auto.search import AutoSearch
from anyorder.strategies.base import Answer, Codes, Proposals, Search, Seed
from anyorder.strategies.models.blending import blend
from anyorder.strategies.models.landscape import Landscape
from anyorder.strategies.pareto.aim import choose, scales_of
from anyorder.strategies.pareto.shares import Shares
from anyorder.strategies.pareto.view import View
from anyorder.strategies.plain.nsga2 import NSGA2
from anyorder.strategies.state import State, from_state, refusing_damage, to_state

Floats = npt.NDArray[np.float64]

LEAST_TURN, MOST_TURN = 4, 1.0  # evaluations for an aim: the least number, and the most, times n
MOST_AIMS = 8  # aims for one proposal, if they cost no evaluation


class _Sum(Portfolio):
    """The portfolio of `auto`, whose value of a point is a weighted sum."""

    name = "sum"
    operators = AutoSearch.operators


class ParetoSearch(Search):
    """Search of the whole front: climbs on weighted sums, where the front is thin.

    Every objective has its own models, which learn from every answer. A weighted sum of the models
    is a model of the weighted sum of the objectives, so that every answer helps in all directions.
    The portfolio of `auto` works on such a sum: it starts from a point beside a gap of the front,
    with weights for which both ends of the gap are equal. After a local optimum it is aimed at
    another gap, drawn with a probability in proportion to its area.

    Where single changes mislead, children of two points of the front are better. So NSGA-II, which
    also learns from all answers, makes a share of the points, which grows with the hypervolume that
    its points have added lately, relative to the points of the portfolio.

    Parameters
    ----------
    space, seed
        See `Search`.
    """

    name = "pareto"
    several = True
    influence_unit = "effect on the gain of a change"
    STATE: ClassVar[tuple[str, ...]] = ("_weights", "_aims", "_spent", "_optima", "_bred")

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        one, other = self._rng.spawn(2)
        self._sum, self._evolution = _Sum(space, one), NSGA2(space, other)
        self._shares = Shares()
        # the landscape of each objective, from the first answer on
        self._parts: list[Landscape] = []
        self._weights: Floats = np.ones(1)
        self._aims = 0  # the number of aims so far
        # evaluations since the last aim, and the number of local optima at that time
        self._spent = self._optima = 0
        self._bred: set[int] = set()  # tickets of children without an answer

    # --- proposals and answers --------------------------------------------------------------------

    def propose(self, count: int, given: Codes | None = None) -> Proposals:
        """Return up to `count` points, those in `given` first."""
        self._update_view()
        extra = 0 if given is None else len(given)
        if self._parts and count > extra and self._evolution.generation and self._shares.breeds():
            self._evolution.archive = self.archive
            children = self._evolution.propose(count - extra).codes
            whole = children if given is None else np.concatenate([given, children])
            found = self._sum.propose(count, whole.astype(np.int32))
            self._bred.update(found.tickets[extra:])
            return found
        if self._parts and count > extra:
            for _ in range(MOST_AIMS):
                if not self._is_due():
                    break
                self._aim()
        found = self._sum.propose(count, given)
        self.generation, self._spent = self._sum.generation, self._spent + len(found.codes)
        return found

    def _propose(self, count: int) -> Codes:
        raise NotImplementedError  # `propose` does not use it

    def learn(self, answers: Sequence[Answer]) -> None:
        """Learn answers: each teaches the models of all objectives."""
        self._update_view()
        summed = []
        for answer in answers:
            if answer.status == OK and answer.values is not None:
                if not self._parts:
                    self._begin(len(answer.values))
                values = np.array(answer.values)
                if len(values) != len(self._weights):
                    raise ValueError(
                        f"an answer has {len(values)} values, expected {len(self._weights)}"
                    )
                self._teach(answer, values)
                answer = answer._replace(value=float(self._weights @ values))
            elif answer.status != OK and self._parts:
                self._teach(answer, np.full(len(self._parts), math.nan))
            summed.append(answer)
        bred = [answer.ticket in self._bred for answer in answers if answer.ticket is not None]
        self._bred.difference_update(a.ticket for a in answers if a.ticket is not None)
        if self._parts and self.archive is not None and self.archive.objectives is not None:
            self._evolution.learn(answers)
            self._shares.credit(bred, self.archive.front_values)
        self._sum.learn(summed)
        self.generation = self._sum.generation

    def _learn(self, answers: Sequence[Answer]) -> None:
        raise NotImplementedError

    def give_up(self, tickets: Sequence[int]) -> None:
        """Forget proposals, and do not propose their points again."""
        self._update_view()
        self._bred.difference_update(tickets)
        self._sum.give_up(tickets)

    def _update_view(self) -> None:
        """Give the portfolio the archive, with weighted sums if there are several objectives."""
        archive = self.archive
        if archive is None or len(self._weights) == 1:
            self._sum.archive = archive
        elif not isinstance(self._sum.archive, View):
            self._sum.archive = View(archive, self._weights)  # type: ignore[assignment]

    def _begin(self, count: int) -> None:
        self._parts = [Landscape(self.space, self._rng) for _ in range(count)]
        self._set_weights(np.full(count, 1.0 / count))

    def _set_weights(self, weights: Floats) -> None:
        """Set the weights of the sum on which the portfolio works."""
        self._weights = weights
        if self.archive is not None and self.archive.objectives is not None:
            self._sum.archive = View(self.archive, weights)  # type: ignore[assignment]

    # --- models -----------------------------------------------------------------------------------

    def _teach(self, answer: Answer, values: Floats) -> None:
        """Teach the models of all objectives an answer; `values` are NaN if it has none."""
        ticket, portfolio = answer.ticket, self._sum
        waiting = None if ticket is None else portfolio._waiting.get(ticket)
        request = None if waiting is None else waiting.request
        point = np.ascontiguousarray(answer.codes, np.int32)
        base = portfolio._best.point
        if request is not None:
            point, base = request.point, request.start
        at = self._values_at(base)
        if at is None:
            return
        columns = self._parts[0].columns
        if request is not None and request.kind == CHANGE:
            changed = [request.variable]
        else:
            changed = np.flatnonzero(point != base).tolist()
        single = len(changed) == 1 and columns.may_change(changed[0])
        for part, one, value in zip(self._parts, at.tolist(), values.tolist(), strict=True):
            if single:
                part.learn_elsewhere(base, one, changed[0], int(point[changed[0]]), value)
            elif changed and not math.isnan(value):
                part.note(base, point, one, value)

    def _values_at(self, point: Codes) -> Floats | None:
        """Return the values of a point, all to be maximised; None if the point has none."""
        archive = self.archive
        if archive is None or archive.objectives is None:
            return None
        values = np.array(archive.vector(self._sum._memory.key(point)))
        return None if np.isnan(values).any() else values * archive.objectives.signs

    # --- aims -------------------------------------------------------------------------------------

    def _is_due(self) -> bool:
        """Return whether it is time to aim at another place of the front."""
        portfolio, archive = self._sum, self.archive
        if archive is None or archive.objectives is None or not len(archive.front):
            return False
        if not self._aims:
            return portfolio._progress.answers >= FIRST_POINTS and portfolio._progress.began
        if self._spent >= max(LEAST_TURN, MOST_TURN * len(self.space)):
            return True
        climbed = portfolio.generation > self._optima
        return climbed and self._spent >= LEAST_TURN

    def _aim(self) -> None:
        """Aim the portfolio at a place where the front is thin."""
        archive, portfolio = self.archive, self._sum
        assert archive is not None
        assert archive.objectives is not None
        front = archive.front_values
        reference = archive.objectives.reference
        worst = None if reference is None else np.array(reference) * archive.objectives.signs
        aim = choose(front, worst, self._rng)
        self._set_weights(aim.weights * scales_of(front, worst))
        self._aims, self._spent, self._optima = self._aims + 1, 0, portfolio.generation
        blend(portfolio.landscape, self._parts, self._weights)
        points = archive.codes_of(archive.front)
        sums = front @ self._weights
        start, value = points[aim.place], float(sums[aim.place])
        portfolio.aim(start, value, list(zip(points, sums.tolist(), strict=True)), self._weigh)

    def _weigh(self, points: Codes) -> Floats:
        """Return the weighted sums of evaluated points."""
        view = self._sum.archive
        assert view is not None
        keys = view.packing.pack(self.space.canonical(points))
        return np.array([view.mean(key) for key in keys])

    # --- facts ------------------------------------------------------------------------------------

    def influence(self, points: int = 10) -> npt.NDArray[np.float64]:
        """Return how much a change of variable j alters the gain of a change of i, if known."""
        return self._sum.influence(points)

    def facts(self) -> dict[str, Any]:
        """Return the facts of the portfolio, and the numbers of aims and of children."""
        return {**self._sum.facts(), "aims": self._aims, "bred": self._shares.spent[1]}

    # --- state ------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return the state: the portfolio, and the models of the objectives."""
        return to_state(self._all())

    def _all(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in self._kept_names() if name != "_as_proposed"}
        return {
            "name": self.name, "cardinalities": self._cardinalities, **kept,
            "sum": dict(self._sum.state()), "parts": [part.state() for part in self._parts],
            "evolution": dict(self._evolution.state()), "shares": self._shares.state(),
        }  # fmt: skip

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue where `state` was taken."""
        values = from_state(state, self._all())
        same = np.array_equal(values["cardinalities"], self._cardinalities)
        if values["name"] != self.name or not same:
            raise ValueError("the state belongs to another strategy or another space")
        for name in ("generation", "restarts", "_next_ticket", "_aims", "_spent", "_optima"):
            integer(name, values[name], 0, 2**62)
        with refusing_damage():
            weights = np.asarray(values["_weights"], np.float64)
            parts = values["parts"]
            count = len(weights)
            if self.archive is not None:
                objectives = self.archive.objectives
                count = 1 if objectives is None else len(objectives)
            other = parts and not len(parts) == len(weights) == count
            if other or not (weights >= 0).all():
                raise ValueError("the state has weights of other objectives: it is damaged")
            self._parts = [Landscape(self.space, self._rng) for _ in parts]
            for part, kept in zip(self._parts, parts, strict=True):
                part.restore(kept)
            # the models share the generator
            self._rng.bit_generator.state = values["_rng"].bit_generator.state
            for name in self._kept_names():
                if name not in ("_as_proposed", "_rng"):
                    setattr(self, name, values[name])
            self._set_weights(weights)
            self._update_view()
            self._sum.restore(values["sum"])
            self._evolution.restore(values["evolution"])
            self._shares.restore(values["shares"])
