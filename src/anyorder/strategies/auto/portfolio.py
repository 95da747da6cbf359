"""The default strategy: operators that share the best point, the models and the evaluations.

    propose    returns the next step of the climb under way; between climbs, the next operator makes
               a point, which is evaluated once (a trial) or starts a new climb
    learn      passes each value to the climb, the models and the operator; a point that is not
               worse than the best point replaces it

`credit.py` chooses the operator, `climb.py` the steps of a climb; the classes in `operators/` make
points. Workers do not wait for each other: while a value is pending, the portfolio proposes further
changes of the present point, and then trials. docs/default.md explains the method.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import integer
from anyorder.errors import OK
from anyorder.space import Space
from anyorder.strategies.auto.climb import Climb
from anyorder.strategies.auto.credit import Credit
from anyorder.strategies.auto.furnish import Furnisher
from anyorder.strategies.auto.lists import Lists
from anyorder.strategies.auto.memory import Memory
from anyorder.strategies.auto.operators.base import Operator, Tools
from anyorder.strategies.auto.operators.explore import Explore, Opening
from anyorder.strategies.auto.progress import Progress
from anyorder.strategies.auto.request import Best, Request
from anyorder.strategies.auto.unseen import Unseen
from anyorder.strategies.auto.words import describe
from anyorder.strategies.base import Answer, Codes, Index, Search, Seed
from anyorder.strategies.models.checking import check_kept, check_points
from anyorder.strategies.models.landscape import Landscape
from anyorder.strategies.state import State, from_state, refusing_damage, to_state

FIRST_POINTS = 8  # random points at the beginning; the first climb starts from the best of them
FIRST_OF_OPENING = 100  # points at the beginning if another strategy makes them
# after so many successive climbs that cost nothing, each further one is charged for one evaluation
FREE_CLIMBS = 30
STEP, STEP_PRIOR = "step", 0.72  # the prior of steps of a climb at the best point
# climbs and operators that are tried for one proposal, before any new point is proposed
MOST_TURNS = 60
TIDY_EVERY = 64  # the models remove rounding errors once in n / 64 climbs


class Waiting(NamedTuple):
    """A proposal without an answer so far."""

    operator: str  # the operator that made it, or ""
    point: bytes  # its codes
    key: bytes  # its key in the memory; not part of a state
    request: Request | None  # the request of the climb, if the climb made it


class Portfolio(Search):
    """A search by operators, which are chosen by their credit. A subclass lists its operators.

    Parameters
    ----------
    space
        The search space. ValueError if tables over pairs of its variables do not fit in 500 MB.
    seed
        Anything that `numpy.random.default_rng` takes.
    opening
        The strategy that makes the first points. The default is random points.
    """

    influence_unit = "effect on the gain of a change"
    operators: ClassVar[tuple[type[Operator], ...]] = ()
    explorers: ClassVar[tuple[type[Search], ...]] = ()

    def __init__(
        self, space: Space, seed: Seed = None, opening: type[Search] | None = None
    ) -> None:
        super().__init__(space, seed)
        self.landscape = Landscape(space, self._rng)
        self._memory = Memory(space)
        listed = any(not group.fixed for group in space.groups)
        self._lists = Lists(self._neighbourhood, self._rng) if listed else None
        self.climb = Climb(space, self.landscape, self._memory, self._lists)
        tools = Tools(
            space, self._rng, self.landscape, self._memory, self._uniform, self._mutate,
            self._change, self._lists,
        )  # fmt: skip
        found = [kind(tools) for kind in self.operators if kind.serves(space)]
        for kind, own in zip(self.explorers, self._rng.spawn(len(self.explorers)), strict=True):
            with contextlib.suppress(ValueError):  # variables of too many values for P3
                found.append(Explore(tools, kind(space, own)))
        # the operator that makes the first points, and the number of these points
        self._opening, self._first = "restart", FIRST_POINTS
        if opening is not None:
            found.append(Opening(tools, opening(space, self._rng.spawn(1)[0])))
            self._opening, self._first = opening.name, FIRST_OF_OPENING
        self._operators = {operator.name: operator for operator in found}
        n = len(space)
        self._credit = Credit({STEP: 1} | {o.name: n if o.climbs else 1 for o in found}, n)
        self._best = Best(self._uniform(1)[0], -math.inf)
        self._waiting: dict[int, Waiting] = {}  # by ticket
        self._progress = Progress()
        self._furnisher = Furnisher(space)
        self._unseen = Unseen(tools, may_vary=len(self._free) > 0)

    # --- proposals --------------------------------------------------------------------------------

    def _propose(self, count: int) -> Codes:
        self._memory.use(self.archive)
        points: list[Codes] = []
        while len(points) < count:
            point = self._next(self._next_ticket + len(points))
            if point is None:
                break
            points.append(point)
        if len(points) == 1:
            return points[0][None]
        return np.array(points, np.int32) if points else self._none()

    def _next(self, ticket: int) -> Codes | None:
        """Return the next proposal; None if every point is known or being evaluated."""
        if self._unseen.is_empty():
            return None
        if self._begins():
            return self._ask(ticket, self._new_point(self._opening), self._opening)
        self._best = Best(self._furnisher.furnish(self._best.point), self._best.value)
        out: set[str] = set()  # operators that have no new point
        for _ in range(MOST_TURNS):
            if self.climb.active:
                at_best = self._is_at_best()
                if at_best:
                    climb = self.climb.number
                    if (trial := self._interrupt(ticket)) is not None:
                        return trial
                    at_best = self.climb.number == climb  # else an operator began another climb
                if not at_best and self._is_too_long():
                    self.climb.active = False
                    self._conclude()
                    continue
                request = self.climb.next(self._best)
                if request is not None:
                    owner = STEP if at_best else self._progress.owner
                    return self._ask(ticket, request.point, owner, request)
                if not self.climb.active:
                    self._conclude()
                    continue
            name = self._choose_operator(out)
            if name is None:
                break
            operator = self._operators[name]
            point = operator.propose(self._best)
            if point is None:
                out.add(name)
                self._credit.charge(name, 1, 0)
                self._credit.close(name, 1)
            elif operator.climbs:
                self._begin_climb(name, point)
            else:
                return self._ask(ticket, point, name)
        return self._ask(ticket, self._unseen.draw(self._best), "")

    def _begins(self) -> bool:
        """Return whether the run still begins; start the first climb when the beginning is over.

        The run begins until all first points have been proposed and one of them has a value.
        """
        progress = self._progress
        if not progress.began and progress.asked >= self._first and self._best.value > -math.inf:
            progress.began = True
            self._begin_climb("restart", self._best.point, self._best.value)
        return not progress.began

    def _is_at_best(self) -> bool:
        """Return whether the present climb is at the best point, so that it can be interrupted.

        Return False until there are enough answers to have tried every change once, since the first
        changes improve most.
        """
        landscape = self.landscape
        return (
            self._progress.answers > len(self.landscape.columns.free) + self._first
            and landscape.measured
            and not landscape.noisy
            and not landscape.above(self._best.value, landscape.value)
        )

    def _is_too_long(self) -> bool:
        """Return whether a climb below the best point has cost as much as its operator allows."""
        operator = self._operators.get(self._progress.owner)
        return operator is not None and self._progress.cost >= operator.most * len(self.space)

    def _interrupt(self, ticket: int) -> Codes | None:
        """Return a trial instead of the next step of the climb, or None.

        None if the step is next, or if the operator that is next has no new point or begins a climb
        of its own.
        """
        name = self._choose_operator(set(), step=True)
        if name is None or name == STEP:
            return None
        if self.landscape.above(self.landscape.value, self._best.value):
            self._progress.found_by = self._progress.owner
        self._best = Best(self.landscape.point.copy(), self.landscape.value)
        operator = self._operators[name]
        point = operator.propose(self._best)
        if point is None:
            self._credit.charge(name, 1, 0)
        elif operator.climbs:
            self._close(self.landscape.above(self._best.value, self._progress.record))
            self._begin_climb(name, point)
        else:
            return self._ask(ticket, point, name)
        return None

    def _choose_operator(self, out: set[str], *, step: bool = False) -> str | None:
        """Return the name of the next operator, which is not in `out`; None if there is none.

        During a climb, only operators that do not climb are chosen. With `step`, also the next step
        of the climb and operators that may interrupt a climb.
        """
        idle = 1 - self._progress.improved / max(self._progress.answers, 1)
        climbing, priors = self.climb.active, {}
        for name, operator in self._operators.items():
            if climbing and operator.climbs and not (step and operator.interrupts):
                continue
            if name not in out:
                priors[name] = operator.prior * operator.weight(idle)
        if step:
            priors[STEP] = STEP_PRIOR
        if not any(priors.values()):
            return None
        return self._credit.next(priors, float(self._rng.random()))

    def _ask(
        self, ticket: int, point: Codes | None, name: str, request: Request | None = None
    ) -> Codes | None:
        """Record a proposal by the operator `name`, and return its point; None if there is none."""
        if point is None:
            return None
        key = self._memory.key(point)
        self._waiting[ticket] = Waiting(name, point.tobytes(), key, request)
        self._memory.expect(key)
        self._progress.asked += 1
        return point

    def _begin_climb(self, name: str, point: Codes, f: float = math.nan) -> None:
        """Begin a climb of the operator `name` at a point, whose value is `f` or not known."""
        self._progress.owner, self._progress.cost = name, 0
        self._progress.record = self._best.value
        self.restarts += name == "restart" and self._progress.began and self.generation > 0
        operator = self._operators.get(name)
        held, moves = (-1, True) if operator is None else (operator.held, operator.moves)
        self.climb.start(self._furnisher.furnish(point), f, held, moves=moves)

    def _change(self, point: Codes, columns: Index) -> Codes:
        """Return a copy of a point in which these columns have changed at random."""
        found: Codes = self._vary(point[None].copy(), np.zeros(len(columns), np.intp), columns)[0]
        return found

    def _new_point(self, name: str) -> Codes | None:
        """Return a new point of the operator `name`, or any new point; None if there is none."""
        point = self._operators[name].propose(self._best)
        return (
            self._unseen.draw(self._best)
            if point is None or not self._memory.is_new(point)
            else point
        )

    # --- the end of a climb -----------------------------------------------------------------------

    def _conclude(self) -> None:
        """Accept the local optimum unless it is worse than the best point; close the climb."""
        landscape, progress, best = self.landscape, self._progress, self._best
        value = landscape.value
        if not math.isnan(value):
            self.generation += 1
            not_worse = not landscape.above(best.value, value)
            if not_worse and (landscape.measured or not landscape.above(value, best.value)):
                self._take(landscape.point.copy(), value, progress.owner)
            if landscape.measured:
                for operator in self._operators.values():
                    operator.note_optimum(landscape.point)
        clean = self.generation % max(len(self.space) // TIDY_EVERY, 1) == 0
        landscape.tidy(clean=clean)
        progress.free_climbs = 0 if progress.cost else progress.free_climbs + 1
        self._close(
            landscape.above(self._best.value, progress.record), progress.free_climbs > FREE_CLIMBS
        )

    def _close(self, gain: bool, cost: bool = False) -> None:
        """Charge the operator that began the climb, which has ended, with its gain and cost."""
        self._credit.charge(self._progress.owner, cost, gain)
        self._credit.close(self._progress.owner, self._progress.cost)

    def _take(self, point: Codes, value: float, name: str) -> None:
        """Make a point the best one, found by the operator `name`."""
        if self.landscape.above(value, self._best.value):
            self._progress.found_by = name
            if not isinstance(self._operators.get(name), Explore):
                self._progress.improved = self._progress.answers
        self._best = Best(point, value)

    # --- answers ----------------------------------------------------------------------------------

    def _learn(self, answers: Sequence[Answer]) -> None:
        self._memory.use(self.archive)
        for answer in answers:
            waiting = None if answer.ticket is None else self._waiting.pop(answer.ticket, None)
            point = np.ascontiguousarray(answer.codes, np.int32)
            key = self._memory.key(point) if waiting is None else waiting.key
            self._memory.answer(key, answer, proposed=waiting is not None)
            if waiting is None and not self._progress.began:
                self._operators[self._opening].note_data(answer)
            f = answer.value if answer.status == OK and math.isfinite(answer.value) else None
            if f is None:
                for operator in self._operators.values():
                    operator.note_violation(point, answer.violation)
            else:
                self._furnisher.keep(point, f)
                if self._lists is not None:
                    self._lists.learn(point, f)
            self._judge(waiting, point, f)
        self.landscape.reconsider()

    def give_up(self, tickets: Sequence[int]) -> None:
        """Forget proposals, and do not propose their points again."""
        self._memory.use(self.archive)
        for ticket in tickets:
            waiting = self._waiting.pop(ticket, None)
            if waiting is not None:
                point = np.frombuffer(bytearray(waiting.point), np.int32)
                self._memory.answer(waiting.key, None, proposed=True)
                self._judge(waiting, point, None)

    def _judge(self, waiting: Waiting | None, point: Codes, f: float | None) -> None:
        """Charge the operator that proposed a point, and keep the point if it is better."""
        progress = self._progress
        progress.answers += 1
        if waiting is not None and waiting.request is not None:
            present = waiting.request.climb == self.climb.number
            progress.cost += present and waiting.operator == progress.owner
            gain = (
                waiting.operator == STEP
                and f is not None
                and self.landscape.above(f, waiting.request.at)
            )
            self._credit.charge(waiting.operator, 1, gain)
            if gain:
                progress.improved = progress.answers
            if waiting.operator == STEP:
                self._credit.close(STEP, 1)
            self.climb.answered(waiting.request, f, self._best)
            if f is not None and f > self._best.value and not (present and self.climb.active):
                self._adopt(point, f, waiting.operator)
            return
        name = "" if waiting is None else waiting.operator
        operator = self._operators.get(name)
        better = f is not None and self.landscape.above(f, self._best.value)
        if operator is not None:
            operator.answered(point, f)
            if progress.began:
                self._credit.charge(name, 1, better)
                self._credit.close(name, 1)
        if f is None:
            return
        self._learn_point(point, f)
        if not progress.began:
            if better:
                self._best = Best(point, f)
        elif self.climb.active:
            self._adopt(point, f, name)
        elif not self.landscape.above(self._best.value, f) and operator is not None:
            self._accept(point, f, name)
        elif better:
            self._adopt(point, f, name)

    def _accept(self, point: Codes, f: float, name: str) -> None:
        """Make a trial the best point, and climb from it if the model of gains predicts well.

        In spaces with lists, always climb from it.
        With noise, the trial does not become the best point, but a climb from it starts: its local
        optimum is measured again first.
        """
        noisy = self.landscape.noisy
        if not noisy:
            self._take(point, f, name)
        if noisy or self.landscape.predicts or self._lists is not None:
            self._begin_climb(name, point, f)

    def _adopt(self, point: Codes, f: float, name: str) -> None:
        """Leave the present climb for a point that is better than the present and the best one."""
        landscape = self.landscape
        present = landscape.value if self.climb.active and landscape.measured else -math.inf
        if landscape.above(f, max(present, self._best.value)):
            if self.climb.active:
                self._close(gain=False)
            if not landscape.noisy:
                self._take(point, f, name)
            self._begin_climb(name or "restart", point, f)

    def _learn_point(self, point: Codes, f: float) -> None:
        """Teach the models how a point that no climb requested differs from the best point."""
        best, landscape = self._best, self.landscape
        if best.value == -math.inf:
            return
        different = np.flatnonzero(point != best.point)
        if len(different) == 1 and landscape.columns.may_change(int(different[0])):
            i = int(different[0])
            landscape.learn_elsewhere(best.point, best.value, i, int(point[i]), f)
        elif len(different):
            landscape.note(best.point, point, best.value, f)

    # --- another function -------------------------------------------------------------------------

    def aim(
        self,
        point: Codes,
        value: float,
        known: Sequence[tuple[Codes, float]],
        values_of: Callable[[Codes], npt.NDArray[np.float64]],
    ) -> None:
        """Continue with another function, which the landscape and the archive describe already.

        Parameters
        ----------
        point, value
            The point from which to climb first, and its value.
        known
            Good points with their values, from which absent variables get values.
        values_of
            Returns the values of evaluated points.
        """
        if self._lists is not None:
            self._lists.revalue(values_of)
        if self.climb.active:
            self._close(gain=False)
        for ticket, waiting in self._waiting.items():
            self._waiting[ticket] = waiting._replace(operator="", request=None)
        self._furnisher = Furnisher(self.space)
        for other, f in known:
            self._furnisher.keep(other, f)
        self._best = Best(point, value)
        self._progress.began = True
        self._begin_climb("restart", point, value)

    # --- facts ------------------------------------------------------------------------------------

    def influence(self, points: int = 10) -> npt.NDArray[np.float64]:
        """Return how much a change of variable j alters the gain of a change of i, if known.

        The array `(n, n)` is in units of the function, or of the scale that `facts` has as
        "transform". `points` is not used; strategies that sample use it.
        """
        return self.landscape.effects()

    def facts(self) -> dict[str, Any]:
        """Return facts of the models and the operators, and the operator with the best point."""
        idle = 1 - self._progress.improved / max(self._progress.answers, 1)
        priors = {o.name: o.prior * o.weight(idle) for o in self._operators.values()}
        shares = self._credit.shares(priors)
        found: dict[str, Any] = {
            "local_optima": self.generation,
            "operators": dict(self._credit.uses),
            "shares": {name: round(share, 3) for name, share in shares.items()},
            "best_found_by": self._progress.found_by,
        }
        explorers = [o.facts() for o in self._operators.values() if o.facts()]
        if explorers:
            found["explorers"] = {name: spent for own in explorers for name, spent in own.items()}
        lists = {} if self._lists is None else self._lists.model.facts()
        told = {**self.landscape.facts(), **lists, **found}
        return {"in_words": describe(told), **told}

    # --- state ------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return the state: the search, the models, and the operators."""
        return to_state(self._values())

    def _values(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self._kept_names()}
        parts = {
            "name": self.name, "cardinalities": self._cardinalities,
            "landscape": self.landscape.state(), "memory": self._memory.state(),
            "climb": self.climb.state(), "credit": self._credit.state(),
            "operators": {name: o.state() for name, o in self._operators.items()},
            "best": tuple(self._best), "furnisher": self._furnisher.state(),
            "lists": self._lists.state() if self._lists is not None else {},
            "waiting": {ticket: (w.operator, w.point, tuple(w.request) if w.request else None)
                        for ticket, w in self._waiting.items()},
            "progress": vars(self._progress),
        }  # fmt: skip
        return {**own, **parts}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue where `state` was taken."""
        with refusing_damage():
            self._set(from_state(state, self._values()))

    def _set(self, values: dict[str, Any]) -> None:
        cardinalities = self._cardinalities
        if values["name"] != self.name or not np.array_equal(
            values["cardinalities"], cardinalities
        ):
            raise ValueError("the state belongs to another strategy or another space")
        self.landscape.restore(values["landscape"])
        if self._lists is not None:
            self._lists.restore(values["lists"])
        self._memory.use(self.archive)
        self.climb.restore(values["climb"])
        self._credit.restore(values["credit"])
        for name, operator in self._operators.items():
            operator.restore(values["operators"][name])
        point, value = values["best"]
        check_points(point, cardinalities)
        self._best = Best(point, float(value))
        self._furnisher.restore(values["furnisher"])
        self._waiting = {}
        for ticket, (name, codes, request) in values["waiting"].items():
            check_kept(codes, cardinalities)
            key = self._memory.key(np.frombuffer(codes, np.int32))
            asked = None if request is None else Request(*request).check(cardinalities)
            self._waiting[ticket] = Waiting(name, codes, key, asked)
        self._memory.restore(values["memory"], [w.key for w in self._waiting.values()])
        self._progress.restore(values["progress"])
        # operators and models share the generator
        self._rng.bit_generator.state = values["_rng"].bit_generator.state
        for name in ("generation", "restarts", "_next_ticket"):
            integer(name, values[name], 0, 2**62)
        for name in self._kept_names():
            if name != "_rng":
                setattr(self, name, values[name])
