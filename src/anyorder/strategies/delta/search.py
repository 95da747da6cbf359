"""The strategy `delta`: climb by expected improvement, and leave local optima.

    propose   makes the moves that are certain, and asks for the change that promises most; at a
              local optimum it jumps or kicks
    learn     teaches the models, and moves where a change is better

Everything random comes from the generator of `Search`; kernels are seeded from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder.errors import OK
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Seed
from anyorder.strategies.delta import layout
from anyorder.strategies.delta.climber import DISTRUST, READINGS, Climber
from anyorder.strategies.state import State, from_state, to_state

MOST_FREE_MOVES = 3  # times n: moves in a row that are not paid for
SURPRISE = 100.0  # times the tolerance: a value differs from what was certain
KICK = 4.0  # least number of changes of an extra proposal, as for other kicks
MOST_STARTS = 16  # answered extra proposals that are kept as points to climb from
SMALL = 4096  # spaces up to this size: every point is remembered, and none proposed twice
MOST_AHEAD = 20  # changes looked at for one that is new, while a value is awaited
CONFIDENT = 1.0  # standard deviations: a gain that is added to others without measuring it again
MOST_STEPS = 300  # climbs and changes known already within one proposal; then any new point


class Waiting(NamedTuple):
    """A proposal that is not answered."""

    kind: str  # "change", "point" (the present one), "repeat", "confirmation", "trial", "extra"
    point: bytes
    base: bytes  # of a change: the point that is changed
    value: float  # its value; -inf if that was not measured yet
    variable: int
    climb: int  # how many local optima there had been


class DeltaSearch(Climber):
    """Local search that predicts the gain of every single change, and pays only for some.

    Asked for several points it gives the next best changes of the present point; where those run
    out or the search waits for one value, kicks of the best point, which it may climb from later.

    Parameters
    ----------
    space
        Where to search. ValueError if tables over pairs of its variables do not fit in 500 MB.
    seed
        Whatever `numpy.random.default_rng` takes.
    """

    name = "delta"
    STATE: ClassVar[tuple[str, ...]] = (
        "_waiting", "_free_moves", "_failed", "_known", "_fallback",
    )  # fmt: skip

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        self._waiting: dict[int, tuple[Any, ...]] = {}  # by ticket
        self._free_moves = 0  # in a row
        self._failed: set[bytes] = set()
        self._known: dict[bytes, float] = {}  # in small spaces, all values
        self._fallback: tuple[float, bytes] = (-np.inf, b"")  # the best of what was combined
        self._combinations: int = math.prod(self._cardinalities.tolist())

    # --- proposing ------------------------------------------------------------------------------

    def _propose(self, count: int) -> Codes:
        points: list[Codes] = []
        while len(points) < count and not self._exhausted():
            points.append(self._next(self._next_ticket + len(points)))
        return np.array(points, np.int32) if points else self._none()

    def _remembers(self) -> bool:
        """Whether the value of every point is kept: not where there are many, or values differ."""
        noisy = self.archive is not None and not self.archive.deterministic
        return self._combinations <= SMALL and not noisy

    def _exhausted(self) -> bool:
        """Whether all points are known, failed or being evaluated."""
        if not self._remembers():
            return False
        seen = self._known.keys() | self._failed | {entry[1] for entry in self._waiting.values()}
        return len(seen) >= self._combinations

    def _next(self, ticket: int) -> Codes:
        """The next proposal."""
        model = self.model
        for _ in range(MOST_STEPS):
            if self._awaited >= 0:
                return self._ahead(ticket)
            if self._trial:
                self._awaited = ticket
                point, self._trial = self._trial, b""
                return self._ask(ticket, "trial", point, b"", -1)
            if self._must_measure:
                if (found := self._ask_present(ticket)) is not None:
                    return found
                continue
            if self._step_aside():
                continue
            trusted = model.evaluations >= self._distrusted_until
            free = max(MOST_FREE_MOVES * self._n - self._free_moves, 0) if trusted else 0
            optimum, variable, value, moves = model.advance(self._random(), free)
            self._free_moves += moves
            if not optimum:
                if not model.measured:
                    self._free_moves = 0
                    found = self._ask_present(ticket)
                else:
                    found = self._ask_change(ticket, variable, value)
            else:
                found = self._at_optimum(ticket)
            if found is not None:
                return found
        return self._extra(ticket)

    def _step_aside(self) -> bool:
        """Whether a portfolio wants a trial of its own before the next step of the climb."""
        return False

    def _ahead(self, ticket: int) -> Codes:
        """The most promising change of the present point, while a value is awaited.

        It may be the value of the present point itself: the search will probably climb from there.
        """
        for _ in range(MOST_AHEAD):
            optimum, variable, value, _ = self.model.advance(self._random(), 0)
            if optimum:
                break
            if (found := self._ask_change(ticket, variable, value)) is not None:
                return found
        return self._extra(ticket)

    def _ask(self, ticket: int, kind: str, point: bytes, base: bytes, i: int) -> Codes:
        value = self.model.value if self.model.measured else -np.inf
        self._waiting[ticket] = (kind, point, base, value, i, self._optima)
        return np.frombuffer(point, np.int32)

    def _ask_present(self, ticket: int) -> Codes | None:
        """Ask for the value of the present point; None if that is known already."""
        point = self.model.point.tobytes()
        if point in self._failed:
            self._return()
            return None
        if point in self._known:
            self._arrive(self._known[point])
            return None
        self._awaited = ticket
        return self._ask(ticket, "point", point, b"", -1)

    def _ask_change(self, ticket: int, variable: int, value: int) -> Codes | None:
        """Ask for a neighbour; None if its value is known already, or being evaluated."""
        model = self.model
        base = model.point.tobytes()
        changed = model.point.copy()
        changed[variable] = value
        point = changed.tobytes()
        if self._failed and point in self._failed:
            model.exclude(variable, value, failed=True)
            return None
        if point in self._known:
            if model.measured:
                self._learn_change(variable, value, self._known[point])
            else:
                model.exclude(variable, value)
            return None
        if self._waiting and any(entry[1] == point for entry in self._waiting.values()):
            model.exclude(variable, value)
            return None
        return self._ask(ticket, "change", point, base, variable)

    def _extra(self, ticket: int) -> Codes:
        """A kick of the best point, whatever becomes of the present one; or any new point."""
        point, waiting = b"", {entry[1] for entry in self._waiting.values()}
        for attempt in range(20):
            if self._best_value == -np.inf or attempt >= 10 or not len(self._free):
                point = self._uniform(1)[0].tobytes()
            else:
                point = self._distant().tobytes()
            if not self._is_old(point, waiting):
                break
        if self._is_old(point, waiting) and self._combinations <= SMALL:
            shape = tuple(self._cardinalities.tolist())
            for k in self._rng.permutation(self._combinations).tolist():
                point = np.array(np.unravel_index(k, shape), np.int32).tobytes()
                if not self._is_old(point, waiting):
                    break
        return self._ask(ticket, "extra", point, b"", -1)

    def _distant(self) -> Codes:
        """A kick of the best point."""
        changes = int(min(KICK / (1.0 - self._rng.random()), max(self._n // 2, 1)))
        kicked: Codes = self._varied(self._best, 1, changes)[0].astype(np.int32)
        return kicked

    def _is_old(self, point: bytes, waiting: set[bytes]) -> bool:
        return point in waiting or point in self._failed or point in self._known

    # --- local optima ---------------------------------------------------------------------------

    def _at_optimum(self, ticket: int) -> Codes | None:
        """No change is worth an evaluation: wait, measure, or accept the point and leave it."""
        model = self.model
        if self._waiting:
            base = model.point.tobytes()
            if any(entry[0] == "change" and entry[2] == base for entry in self._waiting.values()):
                return self._extra(ticket)
        if not model.measured and model.value > self._best_value + model.slack:
            return self._ask_present(ticket)
        if not self._known and self._suspects_noise():
            self._repeats += 1
            return self._ask(ticket, "repeat", model.point.tobytes(), b"", -1)
        if not self._known and self._must_confirm():
            self._awaited = ticket
            return self._ask(ticket, "confirmation", model.point.tobytes(), b"", -1)
        self._fallback = (-np.inf, b"")
        self._accept()
        self._leave()
        return None

    # --- learning -------------------------------------------------------------------------------

    def _learn(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            entry = None if answer.ticket is None else self._waiting.pop(answer.ticket, None)
            point = np.ascontiguousarray(answer.codes, np.int32)
            ok = answer.status == OK and math.isfinite(answer.value)
            if not ok:
                self._failed.add(point.tobytes())
            elif self._remembers():
                self._known[point.tobytes()] = float(answer.value)
            waiting = None if entry is None else Waiting(*entry)
            if ok and waiting is not None and waiting.kind in ("trial", "point", "extra"):
                self._note_distant(point, float(answer.value))
            if waiting is not None and waiting.kind == "change":
                self._learn_neighbour(waiting, point, float(answer.value), ok)
            elif waiting is not None and answer.ticket == self._awaited:
                self._awaited = -1
                if ok and waiting.kind == "confirmation":
                    self._readings += 1
                    self.model.average(float(answer.value), self._readings)
                elif waiting.kind == "trial":
                    self.model.scalars[layout.EVALUATIONS] += ok
                    self._judge(point, float(answer.value) if ok else None)
                elif ok:
                    self._arrive(float(answer.value))
                else:
                    self._return()
            elif ok:
                self._learn_other(waiting, point, float(answer.value))

    def _note_distant(self, point: Codes, f: float) -> None:
        """Teach the global model the difference to the best point."""
        if self._best_value > -np.inf:
            self.pairwise.note_several(self._best, point, f - self._best_value)

    def _learn_change(self, variable: int, value: int, f: float, climb: bool = True) -> bool:
        """Teach both models the value of a neighbour; whether the search moved there."""
        model, pairwise = self.model, self.pairwise
        gain = f - model.value
        predicted = pairwise.note(variable, value, gain)
        moved = model.observe(self._random(), variable, value, f, climb)
        pairwise.track(gain, predicted)
        pairwise.update()
        return moved

    def _learn_neighbour(self, waiting: Waiting, point: Codes, f: float, ok: bool) -> None:
        """The answer to a change: of the present point, or of one that was left since."""
        model, i = self.model, waiting.variable
        new = int(point[i])
        here = model.measured and model.point.tobytes() == waiting.base
        if here and ok:
            self._learn_change(i, new, f)
            return
        if here:
            model.exclude(i, new, failed=True)
            return
        value = model.value
        if waiting.value == -np.inf:
            if ok:
                self._learn_other(None, point, f)
            return
        base = np.frombuffer(waiting.base, np.int32)
        self._learn_elsewhere(base, waiting.value, i, new, f if ok else -np.inf)
        same_climb = waiting.climb == self._optima and not self._must_measure
        if ok and same_climb and f > waiting.value + model.slack and self._combine(i, point, f):
            return
        bar = value if same_climb else max(value, self._best_value)
        if ok and f > bar + model.slack:
            self._adopt(point, f)

    def _combine(self, i: int, point: Codes, f: float) -> bool:
        """Add the change of i that leads to `point` to the present point; whether it was done.

        Of several changes of one point that were evaluated at the same time more than one may be
        better. Together they are measured once, instead of one after the other again.
        """
        model = self.model
        found = model.predict(i, int(point[i]))
        deviation = math.sqrt(model.scalars.item(layout.CALIBRATION) * found.variance)
        awaited = self._awaited >= 0 and self._waiting[self._awaited][0] == "point"
        if awaited or not found.known or found.gain <= max(CONFIDENT * deviation, model.slack):
            return False
        if model.measured:
            self._fallback = (model.value, model.point.tobytes())
        self._fallback = max(self._fallback, (f, point.tobytes()))
        together = model.point.copy()
        together[i] = point[i]
        model.go_to(together, model.value + found.gain, measured=False)
        return True

    def _learn_elsewhere(self, base: Codes, value: float, i: int, new: int, f: float) -> None:
        """Learn a neighbour of another point than the present one; f is -inf if it failed."""
        model = self.model
        present, kept, measured = model.point.copy(), model.value, model.measured
        model.go_to(base, value)
        if f > -np.inf:
            self._learn_change(i, new, f, climb=False)
        else:
            model.exclude(i, new, failed=True)
        model.go_to(present, kept, measured=measured)

    def _learn_other(self, waiting: Waiting | None, point: Codes, f: float) -> None:
        """A repeat, an extra proposal, or a point of others."""
        model = self.model
        if waiting is not None and waiting.kind == "repeat":
            model.add_noise(f - waiting.value, max(self._repeats, 1))
            return
        if model.measured and self._awaited < 0:
            different = np.flatnonzero(point != model.point)
            if len(different) == 1:
                self._learn_change(int(different[0]), int(point[different[0]]), f)
                return
        different = np.flatnonzero(point != self._best)
        if len(different) == 1 and self._best_value > -np.inf:
            i = int(different[0])
            self._learn_elsewhere(self._best, self._best_value, i, int(point[i]), f)
        if f > max(model.value if model.measured else -np.inf, self._best_value) + model.slack:
            self._adopt(point, f)
        elif waiting is not None and np.count_nonzero(point != self._best) >= KICK:
            self._starts = [*self._starts, (f, point.tobytes())][-MOST_STARTS:]

    def _judge(self, point: Codes, f: float | None) -> None:
        """The value of a trial has come; None if it failed. A portfolio decides what to do."""
        self._leave()

    def _adopt(self, point: Codes, f: float) -> None:
        """Go to a point that others found, or an answer that came late, since it is better."""
        self._awaited = -1
        self._must_measure = False
        self._trial = b""
        self._fallback = (-np.inf, b"")
        self.model.go_to(point, f)

    def _arrive(self, f: float) -> None:
        """The value of the present point has come."""
        model = self.model
        (other, fallback), self._fallback = self._fallback, (-np.inf, b"")
        certain = not self._must_measure and not fallback
        if certain and abs(f - model.value) > SURPRISE * model.tolerance:
            self._distrusted_until = model.evaluations + DISTRUST * self._n
        self._must_measure = False
        model.arrive(f)
        base = model.point.tobytes()
        for ticket, entry in self._waiting.items():
            if entry[0] == "change" and entry[2] == base:
                self._waiting[ticket] = (*entry[:3], f, *entry[4:])
        if f < other - model.slack:
            model.go_to(np.frombuffer(fallback, np.int32), other)

    def give_up(self, tickets: Sequence[int]) -> None:
        """Forget proposals, and do not propose their points again; one that is awaited is left."""
        model = self.model
        for ticket in tickets:
            if (entry := self._waiting.pop(ticket, None)) is None:
                continue
            waiting = Waiting(*entry)
            point = np.frombuffer(waiting.point, np.int32)
            if waiting.kind not in ("repeat", "confirmation"):
                self._failed.add(waiting.point)
            if waiting.kind == "change" and model.point.tobytes() == waiting.base:
                model.exclude(waiting.variable, int(point[waiting.variable]), failed=True)
            if ticket == self._awaited:
                self._awaited = -1
                if waiting.kind == "trial":
                    self._judge(point, None)
                elif waiting.kind == "confirmation":
                    self._readings = READINGS
                else:
                    self._return()

    # --- state ----------------------------------------------------------------------------------

    def influence(self, points: int = 10) -> npt.NDArray[np.float64]:
        """How much a change of variable j moves the gain of a change of i, as far as is known.

        In units of the function, `(n, n)`. `points` is there for strategies that sample.
        """
        return self.model.effects()

    def facts(self) -> dict[str, Any]:
        """Links, the trust in the global model, local optima, and the share of free moves."""
        scalars = self.model.scalars
        spent = max(self.model.evaluations, 1)
        free = scalars.item(layout.FREE)
        return {
            "links": int(self.model.links().sum()) // 2,
            "not_linked": int((self.model.arrays.link == layout.NOT_LINKED).sum()) // 2,
            "global_model_trusted": self.pairwise.trusted,
            "global_model_error": round(self.pairwise.error, 4),
            "local_optima": self._optima,
            "kicks": self._kicks,
            "jumps": self._jumps,
            "free_moves": round(free / (free + spent), 4),
            "noise": scalars.item(layout.NOISE) ** 0.5,
        }

    def state(self) -> State:
        """The search and both models."""
        return to_state(self._values())

    def _values(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self._kept_names()}
        return {**own, "model": self.model.state(), "pairwise": self.pairwise.state()}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue where `state` was taken."""
        self._set(from_state(state, self._values()))

    def _set(self, values: dict[str, Any]) -> None:
        self.model.restore(values.pop("model"))
        self.pairwise.restore(values.pop("pairwise"))
        for name, value in values.items():
            setattr(self, name, value)
