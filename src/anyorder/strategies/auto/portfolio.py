"""The default strategy: operators that share a best point, models and the evaluations.

    propose    while a climb is under way, what it asks for; else the operator that is due makes a
               point, which is climbed from, or tried by one evaluation
    learn      the climb, the models and the operator take the value; a point that is not worse
               than the best takes its place

`credit.py` says who is due, `climb.py` what a climb asks for, `operators/` how points are made.
Nobody waits: asked for more points while a value is awaited, the portfolio gives further changes of
the present point, and then single trials. docs/default.md explains the method.
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

FIRST_POINTS = 8  # random points, of which the best is climbed from first
FIRST_OF_OPENING = 100  # points by a strategy that opens instead
FREE_CLIMBS = 30  # climbs in a row that cost nothing, after which one is charged an evaluation
STEP, STEP_PRIOR = "step", 0.72  # the next change of a climb that is at the best point
MOST_TURNS = 60  # climbs and operators tried in one proposal; then any new point
TIDY_EVERY = 64  # n / this: climbs between two removals of rounding errors


class Waiting(NamedTuple):
    """A proposal that is not answered: whose it is, and what the climb asked for, if it did."""

    operator: str
    point: bytes  # its codes
    key: bytes  # what it is looked up by; not part of a state
    request: Request | None


class Portfolio(Search):
    """Operators by their credit. A subclass lists them.

    Parameters
    ----------
    space
        Where to search. ValueError if tables over pairs of its variables do not fit in 500 MB.
    seed
        Whatever `numpy.random.default_rng` takes.
    opening
        A strategy that makes the first points; None: they are random.
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
        # Who makes the first points, and how many.
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
        out: set[str] = set()  # who has no new point
        for _ in range(MOST_TURNS):
            if self.climb.active:
                at_best = self._at_best()
                if at_best and (trial := self._interrupt(ticket)) is not None:
                    return trial
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
            name = self._due(out)
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
        """Return whether the first points are still to be proposed, or none has a value yet."""
        progress = self._progress
        if not progress.began and progress.asked >= self._first and self._best.value > -math.inf:
            progress.began = True
            self._begin_climb("restart", self._best.point, self._best.value)
        return not progress.began

    def _at_best(self) -> bool:
        """Return whether the present climb is at the best point, so that it can be interrupted.

        Not before every change may have been tried once: the first ones improve most.
        """
        landscape = self.landscape
        return (
            self._progress.answers > len(self.landscape.columns.free) + self._first
            and landscape.measured
            and not landscape.noisy
            and not landscape.above(self._best.value, landscape.value)
        )

    def _is_too_long(self) -> bool:
        """Return whether a climb below the best point cost what its operator may spend on one."""
        operator = self._operators.get(self._progress.owner)
        return operator is not None and self._progress.cost >= operator.most * len(self.space)

    def _interrupt(self, ticket: int) -> Codes | None:
        """Ask for a trial by an operator more due than the next step; None if there is none."""
        name = self._due(set(), step=True)
        if name is None or name == STEP:
            return None
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

    def _due(self, out: set[str], *, step: bool = False) -> str | None:
        """Return the operator that is due; while there is a climb, one that does not climb.

        With `step` the next step of the climb may be due, too.
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
        if point is None:
            return None
        key = self._memory.key(point)
        self._waiting[ticket] = Waiting(name, point.tobytes(), key, request)
        self._memory.expect(key)
        self._progress.asked += 1
        return point

    def _begin_climb(self, name: str, point: Codes, f: float = math.nan) -> None:
        self._progress.owner, self._progress.cost = name, 0
        self._progress.record = self._best.value
        self.restarts += name == "restart" and self._progress.began and self.generation > 0
        operator = self._operators.get(name)
        held, moves = (-1, True) if operator is None else (operator.held, operator.moves)
        self.climb.start(self._furnisher.furnish(point), f, held, moves=moves)

    def _change(self, point: Codes, columns: Index) -> Codes:
        """Return a copy of a point, with these columns changed at random."""
        found: Codes = self._vary(point[None].copy(), np.zeros(len(columns), np.intp), columns)[0]
        return found

    def _new_point(self, name: str) -> Codes | None:
        point = self._operators[name].propose(self._best)
        return (
            self._unseen.draw(self._best)
            if point is None or not self._memory.is_new(point)
            else point
        )

    # --- the end of a climb -----------------------------------------------------------------------

    def _conclude(self) -> None:
        """Accept the local optimum unless it is worse than the best, and charge who began."""
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
        if self.generation % max(len(self.space) // TIDY_EVERY, 1) == 0:
            landscape.tidy()
        progress.free_climbs = 0 if progress.cost else progress.free_climbs + 1
        self._close(
            landscape.above(self._best.value, progress.record), progress.free_climbs > FREE_CLIMBS
        )

    def _close(self, gain: bool, cost: bool = False) -> None:
        """Account for a climb that has ended."""
        self._credit.charge(self._progress.owner, cost, gain)
        self._credit.close(self._progress.owner, self._progress.cost)

    def _take(self, point: Codes, value: float, name: str) -> None:
        """Make a point the best one."""
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
        """Take an answer: credit who asked for it, and keep the better point."""
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
        """Adopt a trial not worse than the best point; climb from it if the model predicts well.

        Under noise its local optimum is measured again before it becomes the best.
        """
        noisy = self.landscape.noisy
        if not noisy:
            self._take(point, f, name)
        if noisy or self.landscape.predicts or self._lists is not None:
            self._begin_climb(name, point, f)

    def _adopt(self, point: Codes, f: float, name: str) -> None:
        """Leave the present climb for a better point that others found, or that comes late."""
        landscape = self.landscape
        present = landscape.value if self.climb.active and landscape.measured else -math.inf
        if landscape.above(f, max(present, self._best.value)):
            if self.climb.active:
                self._close(gain=False)
            if not landscape.noisy:
                self._take(point, f, name)
            self._begin_climb(name or "restart", point, f)

    def _learn_point(self, point: Codes, f: float) -> None:
        """Teach the models a point that is no step of a climb: its difference to the best one."""
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
        """Go on with another function, of which the landscape and the archive know already.

        Parameters
        ----------
        point, value
            Where to climb first, and its value.
        known
            Good points with their values, for the values of variables that conditions take away.
        values_of
            Gives the values of points that were evaluated.
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

    # --- what is shown ----------------------------------------------------------------------------

    def influence(self, points: int = 10) -> npt.NDArray[np.float64]:
        """Return how much a change of variable j moves the gain of a change of i, if known.

        In units of the function, or of the scale that `facts` tells as its transform, `(n, n)`.
        `points` is there for strategies that sample.
        """
        return self.landscape.effects()

    def facts(self) -> dict[str, Any]:
        """Return facts of the models and the operators, and which of them found the best point."""
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
        # Operators and models share the generator.
        self._rng.bit_generator.state = values["_rng"].bit_generator.state
        for name in ("generation", "restarts", "_next_ticket"):
            integer(name, values[name], 0, 2**62)
        for name in self._kept_names():
            if name != "_rng":
                setattr(self, name, values[name])
