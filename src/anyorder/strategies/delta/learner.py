"""What an answer changes: the models, the present point, and what is known to fail.

Answers may come late and in any order. A gain is learned at the point it belongs to; of several
changes of one point that are better, all are made at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from anyorder.errors import OK
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Seed
from anyorder.strategies.delta import layout
from anyorder.strategies.delta.climber import DISTRUST, READINGS, Climber
from anyorder.strategies.delta.transform import FIRST_LOOK, IDENTITY, LOOK_GROWTH, choose

SURPRISE = 100.0  # times the tolerance: a value differs from what was certain
KICK = 4.0  # least number of changes of an extra proposal, as for other kicks
MOST_STARTS = 16  # answered extra proposals that are kept as points to climb from
CONFIDENT = 1.0  # standard deviations: a gain that is added to others without measuring it again
SMALL = 4096  # spaces up to this size: every point is remembered, and none proposed twice


class Waiting(NamedTuple):
    """A proposal that is not answered."""

    kind: str  # "change", "point" (the present one), "repeat", "confirmation", "trial", "extra"
    point: bytes
    base: bytes  # of a change: the point that is changed
    value: float  # its value; -inf if that was not measured yet
    variable: int
    climb: int  # how many local optima there had been

    def changes(self, base: bytes) -> bool:
        """Whether it is a change of that point."""
        return self.kind == "change" and self.base == base


class Learner(Climber):
    """The proposals that are not answered, and what becomes of their answers."""

    STATE: ClassVar[tuple[str, ...]] = ("_waiting", "_failed", "_known", "_fallback", "_next_look")

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        self._waiting: dict[int, Waiting] = {}  # by ticket
        self._failed: set[bytes] = set()
        self._known: dict[bytes, float] = {}  # in small spaces, all values of f
        self._fallback: tuple[float, bytes] = (-np.inf, b"")  # the best of what was combined
        self._combinations: int = math.prod(self._cardinalities.tolist())
        self._small = self._combinations <= SMALL
        self._transform = IDENTITY  # of f to the scale of all values here and in the models
        # Observations when it is considered next.
        self._next_look = FIRST_LOOK * self._n if self.pairwise.can_replay else math.inf

    def _remembers(self) -> bool:
        """Whether the value of every point is kept: not where there are many, or values differ."""
        return self._small and (self.archive is None or self.archive.deterministic)

    def _learn(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            waiting = None if answer.ticket is None else self._waiting.pop(answer.ticket, None)
            point, f = np.ascontiguousarray(answer.codes, np.int32), float(answer.value)
            ok = answer.status == OK and math.isfinite(f)
            value = self._transform(f)
            if not ok:
                self._failed.add(point.tobytes())
                self._least = min(self._least, (_violation(answer), point.tobytes()))
            elif self._remembers():
                self._known[point.tobytes()] = f
            if waiting is not None and waiting.kind == "change":
                self._learn_neighbour(waiting, point, value, ok)
                continue
            if ok and waiting is not None and waiting.kind in ("trial", "point", "extra"):
                self._note_distant(point, value)
            if waiting is not None and answer.ticket == self._awaited:
                self._awaited = -1
                if ok and waiting.kind == "confirmation":
                    self._readings += 1
                    self.model.average(value, self._readings)
                elif waiting.kind == "trial":
                    self.model.scalars[layout.EVALUATIONS] += ok
                    self._judge(point, *((value, f) if ok else (None, None)))
                elif ok:
                    self._arrive(value)
                else:
                    self._return()
            elif waiting is not None and waiting.kind == "trial":
                self.model.scalars[layout.EVALUATIONS] += ok
                self._judge_late(answer.ticket, point, *((value, f) if ok else (None, None)))
            elif ok:
                self._learn_other(waiting, point, value)
        if self.pairwise.count >= self._next_look:
            self._reconsider()

    def _reconsider(self) -> None:
        """Choose the transform anew; under noise no gains agree, and the present one is kept."""
        self._next_look = LOOK_GROWTH * self.pairwise.count
        if self.model.scalar(layout.NOISE) > 0:
            return
        old = self._transform
        new = choose(self.pairwise.pairs(old), old)
        if new != old:
            self._transform = new
            self._rescale(lambda value: new(old.inverse(value)))

    def _rescale(self, change: Callable[[float], float]) -> None:
        """Map all values to another scale, and learn all gains anew."""
        model = self.model
        present, value, measured = model.point.copy(), change(model.value), model.measured
        evaluations = model.scalar(layout.EVALUATIONS)
        self.pairwise.rescale(change)
        model.go_to(present, value, measured=measured)
        model.scalars[layout.EVALUATIONS], model.scalars[layout.STALE] = evaluations, 1.0
        self._best_value = change(self._best_value)
        self._starts = [(change(f), point) for f, point in self._starts]
        self._fallback = (change(self._fallback[0]), self._fallback[1])
        for ticket, waiting in self._waiting.items():
            self._waiting[ticket] = waiting._replace(value=change(waiting.value))

    def _note_distant(self, point: Codes, f: float) -> None:
        """Teach the global model the difference to the best point."""
        if self._best_value > -np.inf:
            self.pairwise.note_several(self._best, point, self._best_value, f)

    def _learn_change(self, variable: int, value: int, f: float, climb: bool = True) -> bool:
        """Teach both models the value of a neighbour; whether the search moved there."""
        return self.pairwise.observe(self._random(), variable, value, f, climb)

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
        awaited = self._awaited >= 0 and self._waiting[self._awaited].kind == "point"
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

    def _judge(self, point: Codes, value: float | None, f: float | None) -> None:
        """The value of a trial has come; None if it failed. A portfolio decides what to do.

        f is that before the transform.
        """
        self._leave()

    def _judge_late(
        self, ticket: int | None, point: Codes, value: float | None, f: float | None
    ) -> None:
        """The same, of a trial that nobody waited for."""
        if value is not None and value > self._best_value + self.model.slack:
            self._adopt(point, value)

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
            if entry.changes(base):
                self._waiting[ticket] = entry._replace(value=f)
        if f < other - model.slack:
            model.go_to(np.frombuffer(fallback, np.int32), other)

    def give_up(self, tickets: Sequence[int]) -> None:
        """Forget proposals, and do not propose their points again; one that is awaited is left."""
        model = self.model
        for ticket in tickets:
            if (waiting := self._waiting.pop(ticket, None)) is None:
                continue
            point = np.frombuffer(waiting.point, np.int32)
            if waiting.kind not in ("repeat", "confirmation"):
                self._failed.add(waiting.point)
            if waiting.kind == "change" and model.point.tobytes() == waiting.base:
                model.exclude(waiting.variable, int(point[waiting.variable]), failed=True)
            if ticket == self._awaited:
                self._awaited = -1
                if waiting.kind == "trial":
                    self._judge(point, None, None)
                elif waiting.kind == "confirmation":
                    self._readings = READINGS
                else:
                    self._return()
            elif waiting.kind == "trial":
                self._judge_late(ticket, point, None, None)


def _violation(answer: Answer) -> float:
    """By how much a point violates what is allowed; infinite if that is not known."""
    return answer.violation if answer.violation < np.inf else np.inf
