"""A climb: a search from a point to a local optimum that evaluates only promising changes.

A climb is a state machine, and knows nothing about tickets and operators. `next` returns a request
for an evaluation, and `answered` takes its value. `next` may be called again before the value is
known: it then requests further changes of the same point, so that workers do not wait.

    climb.start(point)
    while climb.active:
        request = climb.next(best)
        if request is not None:
            climb.answered(request, f(request.point), best)

The climb changes one scalar at a time, the most promising change first. When no change of a scalar
is worth an evaluation, it makes moves of lists: always at the best point, and elsewhere if `start`
says so.

A change that is certain to improve the value is made without an evaluation. The values of points
that were evaluated before come from the memory. The climb ends (`active` becomes False) when no
change is worth an evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from anyorder.space import Space
from anyorder.strategies.auto.lists import Lists
from anyorder.strategies.auto.memory import Memory
from anyorder.strategies.auto.request import CHANGE, MOVE, POINT, READING, Best, Request
from anyorder.strategies.base import Codes
from anyorder.strategies.models.checking import check_kept
from anyorder.strategies.models.landscape import Landscape

MOST_FREE_MOVES = 3  # times n: successive changes that a climb makes without an evaluation
DISTRUST = 2  # times n: evaluations without free changes after a certain prediction was wrong
MOST_LOOKS = 100  # plus 4n: changes that a climb considers for one proposal
# a change that improved an earlier point of a climb is also made at the present point if its
# predicted gain is more than so many standard deviations
CONFIDENT = 1.0
READINGS = 4  # with noise: measurements of a local optimum before it becomes the best point
REPEATS = 8  # with noise: the number of local optima that are measured twice to estimate it


class Climb:
    """The present climb, if there is one.

    Parameters
    ----------
    space
        The search space.
    landscape
        The present point, and the models that predict the gains of its changes.
    memory
        The points that have been evaluated.
    lists
        The moves of lists; None if there are no lists.

    Attributes
    ----------
    active
        Whether there is a climb that has not ended.
    number
        The number of climbs so far.
    """

    def __init__(
        self, space: Space, landscape: Landscape, memory: Memory, lists: Lists | None = None
    ) -> None:
        self._lists, self._moves = lists, False  # whether lists change below the best point
        self._space, self._landscape, self._memory = space, landscape, memory
        self._n = len(space)
        self.active = False
        self.number = 0
        self._awaited = False  # whether the value of the present point is being measured
        self._free = 0  # successive changes that were made without an evaluation
        self._suspicious = 0  # evaluations until changes are free again
        # the best of the points whose changes were combined
        self._fallback: tuple[float, bytes] = (-math.inf, b"")
        self._readings = 1  # measurements of the present point
        self._held = -1  # the variable that the climb does not change
        self._repeats = 0  # local optima that were measured twice
        self._present: tuple[bytes, Any] = (b"", None)  # a point, and its present variables

    def start(
        self, point: Codes, f: float = math.nan, held: int = -1, *, moves: bool = True
    ) -> None:
        """Begin a climb at a point.

        Parameters
        ----------
        point, f
            The point and its value, NaN if that is not known.
        held
            A variable that the climb does not change, or -1.
        moves
            Whether the climb also makes moves of lists while it is below the best point.
        """
        self._moves = moves
        landscape = self._landscape
        known = self._memory.value(self._memory.key(point)) if math.isnan(f) else f
        if known is not None and not math.isnan(known):
            landscape.go_to(point, known)
        elif not np.array_equal(point, landscape.point) or landscape.measured:
            landscape.go_to(point)  # otherwise an operator is there already, maybe with a value
        self.active, self._awaited = True, False
        self._free, self._readings, self._held = 0, 1, held
        self._fallback = (-math.inf, b"")
        self.number += 1

    # --- requests ---------------------------------------------------------------------------------

    def next(self, best: Best) -> Request | None:
        """Return the next request; None if it depends on an answer, or if the climb has ended."""
        landscape = self._landscape
        for _ in range(MOST_LOOKS + 4 * self._n):
            if self._awaited:
                free = 0
            elif math.isnan(landscape.value):
                found = self._ask_present()
                if found is not None or not self.active:
                    return found
                continue
            else:
                free = 0 if self._suspicious else MOST_FREE_MOVES * self._n - self._free
            step = landscape.advance(max(free, 0))
            self._free += step.moves
            found = None
            if step.optimum:
                if self._awaited:
                    return None
                found, moved = self._ask_move(best)
                if found is None and moved:
                    continue
                found = found or self._ask_at_optimum(best)
                if found is None and landscape.measured:
                    self.active = False
            elif landscape.measured or self._awaited:
                found = self._ask_change(step.variable, step.code)
            else:
                found = self._ask_present()
            if found is not None or not self.active:
                return found
        if not self._awaited:
            self.active = False
        return None

    def _request(self, kind: int, key: bytes, variable: int = -1) -> Request:
        landscape = self._landscape
        at = landscape.value if landscape.measured else math.nan
        return Request(kind, key, landscape.point.tobytes(), at, variable, self.number)

    def _ask_present(self) -> Request | None:
        """Request the value of the present point, unless it is known, pending or has failed."""
        landscape, key = self._landscape, self._memory.key(self._landscape.point)
        known = self._memory.value(key)
        if known is None and not self._memory.is_pending(key):
            self._awaited = True
            return self._request(POINT, landscape.point.tobytes())
        if known is None or math.isnan(known):
            self.active = False
        else:
            self._arrive(known)
        return None

    def _ask_change(self, variable: int, code: int) -> Request | None:
        """Request a change of the present point, unless its value is known or pending."""
        landscape = self._landscape
        if variable == self._held or (self._space.conditional and not self._has(variable)):
            landscape.exclude(variable, code)
            return None
        changed = landscape.point.copy()
        changed[variable] = code
        key = self._memory.key(changed)
        known = self._memory.value(key)
        if known is None:
            if not self._memory.is_pending(key):
                return self._request(CHANGE, changed.tobytes(), variable)
            landscape.exclude(variable, code)
        elif math.isnan(known):
            landscape.exclude(variable, code, failed=True)
        elif not landscape.measured:
            landscape.exclude(variable, code)
        elif landscape.observe(variable, code, known):
            self._note_move()
        return None

    def _ask_move(self, best: Best) -> tuple[Request | None, bool]:
        """Request the next move of a list; also return whether the climb goes on without it.

        It does if the move to a point of known value was made, or if the value of the present point
        comes first.
        """
        landscape, lists, memory = self._landscape, self._lists, self._memory
        below = landscape.above(best.value, landscape.value)
        if lists is None or (below and not self._moves):
            return None, False
        if not landscape.measured:
            return self._ask_present(), True
        for point in lists.scan(landscape.point):
            key = memory.key(point)
            known = memory.value(key)
            if known is None and not memory.is_pending(key):
                return self._request(MOVE, point.tobytes()), False
            if known is not None and landscape.above(known, landscape.value):
                landscape.go_to(point, known)
                self._note_move()
                return None, True
        return None, False

    def _has(self, variable: int) -> bool:
        """Return whether a variable is present in the present point, by the conditions."""
        point = self._landscape.point
        key = point.tobytes()
        if self._present[0] != key:
            self._present = key, self._space.present(point[None])[0]
        return bool(self._present[1][variable])

    def _ask_at_optimum(self, best: Best) -> Request | None:
        """Request a first or further measurement of a local optimum, if it is needed."""
        landscape = self._landscape
        if not landscape.measured:
            if landscape.above(landscape.value, best.value):
                return self._ask_present()
            self.active = False
            return None
        if not self._wants_reading(best):
            return None
        self._awaited = True
        return self._request(READING, landscape.point.tobytes())

    def _wants_reading(self, best: Best) -> bool:
        """Return whether to measure a local optimum again.

        With noise, return True for a point that seems better than the best point. If there may be
        noise, return True for the first, second, fourth, ... local optimum.
        """
        landscape = self._landscape
        if not self._memory.archive.deterministic:
            return False  # values in the archive are then means over all measurements
        if not landscape.noisy:
            return landscape.doubtful and self._readings == 1 and self.number >= 2**self._repeats
        if self._repeats < REPEATS and self._readings == 1:
            return True
        better = landscape.value > best.value and not np.array_equal(landscape.point, best.point)
        return better and self._readings < READINGS

    # --- answers ----------------------------------------------------------------------------------

    def answered(self, request: Request, f: float | None, best: Best) -> None:
        """Learn the value of a request; None if it failed, or will never come."""
        self._suspicious = max(self._suspicious - 1, 0)
        landscape = self._landscape
        here = self.active and request.base == landscape.point.tobytes()
        if request.kind == CHANGE:
            self._learn_change(request, f, best, here=here)
        elif request.kind == MOVE:
            self._learn_move(request, f)
        elif not here or not self._awaited or request.climb != self.number:
            return
        elif request.kind == POINT:
            self._awaited = False
            if f is None:
                self.active = False
            else:
                self._arrive(f)
        else:
            self._awaited = False
            self._readings += 1
            if f is not None:
                self._reread(f)

    def _arrive(self, f: float) -> None:
        """Learn the value of the present point; return to the fallback if that is better."""
        landscape = self._landscape
        expected = not math.isnan(landscape.value)
        (other, fallback), self._fallback = self._fallback, (-math.inf, b"")
        self._free, self._readings = 0, 1
        if landscape.measure(f) and expected and not fallback:
            self._suspicious = DISTRUST * self._n
        if fallback and landscape.above(other, f):
            landscape.go_to(np.frombuffer(fallback, np.int32), other)

    def _reread(self, f: float) -> None:
        """Learn a further measurement of the present point."""
        landscape = self._landscape
        if self._readings == 2 and (self._repeats < REPEATS or not landscape.noisy):
            self._repeats += 1
            landscape.add_noise(f, landscape.value, self._repeats)
        if landscape.noisy:
            landscape.average(f, self._readings)

    def _learn_change(self, request: Request, f: float | None, best: Best, *, here: bool) -> None:
        """Learn the value of a change of the present point, or of an earlier one."""
        landscape, i = self._landscape, request.variable
        code = int(request.point[i])
        if here and landscape.measured:
            if f is None:
                landscape.exclude(i, code, failed=True)
            elif landscape.observe(i, code, f):
                self._note_move()
            return
        if here and f is None:
            landscape.exclude(i, code, failed=True)
        at = request.at
        if math.isnan(at):  # requested before the value of its base was known; it may be known now
            found = self._memory.value(self._memory.key(request.start))
            at = math.nan if found is None else found
        if math.isnan(at):
            return
        value = math.nan if f is None else f
        landscape.learn_elsewhere(request.start, at, i, code, value)
        same = self.active and request.climb == self.number
        if same and f is not None and landscape.above(f, at):
            self._combine(request, i, code, f, best)

    def _learn_move(self, request: Request, f: float | None) -> None:
        """Learn the value of a move of a list at the present point, or at an earlier one."""
        landscape = self._landscape
        if f is None:
            return
        landscape.note(request.start, request.point, request.at, f)
        same = self.active and request.climb == self.number and landscape.measured
        if same and landscape.above(f, landscape.value):
            landscape.go_to(request.point, f)
            self._note_move()

    def _combine(self, request: Request, i: int, code: int, f: float, best: Best) -> None:
        """Make at the present point a change that was an improvement at an earlier point.

        If several changes of one point were evaluated at the same time, more than one may be an
        improvement. They are made together, and the combined point is evaluated once.
        """
        landscape = self._landscape
        if self._awaited or math.isnan(landscape.value):
            return
        present = (landscape.value if landscape.measured else -math.inf, landscape.point.tobytes())
        if landscape.add_confident(i, code, CONFIDENT):
            self._fallback = max(self._fallback, present, (f, request.key))
            self._readings = 1
        elif landscape.above(f, landscape.value):
            landscape.go_to(request.point, f)
            self._note_move()

    def _note_move(self) -> None:
        """Reset the counts of the present point, which has moved and was measured."""
        self._free, self._readings = 0, 1

    # --- state ------------------------------------------------------------------------------------

    _STATE = (
        "active", "number", "_awaited", "_free", "_suspicious", "_fallback", "_readings",
        "_repeats", "_held", "_moves",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {name: getattr(self, name) for name in self._STATE}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""
        check_kept(state["_fallback"], self._space.cardinalities)
        for name in self._STATE:
            setattr(self, name, state[name])
