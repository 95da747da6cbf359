"""One climb: from a point to a local optimum, paying only for changes that may be worth it.

A state machine, which knows nothing of tickets and operators. `next` gives what is to be evaluated,
and `answered` takes the value. Between the two, `next` may be called again: it gives further
changes of the same point, for workers that would wait.

    climb.start(point)
    while climb.active:
        request = climb.next(best)
        if request is not None:
            climb.answered(request, f(request.point), best)

Changes are of single scalars, as the landscape ranks them. Where none is worth an evaluation, moves
of lists follow, if there are any: always at the best point, and below it if the climb is told so.

What is certain to improve is done without an evaluation, and what is in the memory is not asked
again. The climb ends, `active` is False, where no change is worth an evaluation.
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

MOST_FREE_MOVES = 3  # times n: moves in a row that are not paid for
MOST_LOOKS = 100  # and 4n: changes looked at in one call
CONFIDENT = 1.0  # deviations: a gain that is added to others without measuring it again
READINGS = 4  # of a point before it becomes the best, once there is noise
REPEATS = 8  # local optima that are measured twice once there is noise


class Climb:
    """The present climb, if there is one.

    Parameters
    ----------
    space
        Where to search.
    landscape
        Has the present point, and predicts changes of it.
    memory
        Knows what has been evaluated.
    lists
        Knows moves of lists; None if there are no lists.

    Attributes
    ----------
    active
        Whether there is a climb that has not ended.
    number
        How many climbs there have been.
    """

    def __init__(
        self, space: Space, landscape: Landscape, memory: Memory, lists: Lists | None = None
    ) -> None:
        self._lists, self._moves = lists, False  # whether lists are climbed below the best point
        self._space, self._landscape, self._memory = space, landscape, memory
        self._n = len(space)
        self.active = False
        self.number = 0
        self._awaited = False  # whether the value of the present point is being measured
        self._free = 0  # moves in a row that were not paid for
        self._fallback: tuple[float, bytes] = (-math.inf, b"")  # the best of what was combined
        self._readings = 1  # of the present point
        self._held = -1  # a variable that is not changed
        self._repeats = 0  # local optima that were measured twice
        self._present: tuple[bytes, Any] = (b"", None)  # which variables a point has

    def start(
        self, point: Codes, f: float = math.nan, held: int = -1, *, moves: bool = True
    ) -> None:
        """Begin at a point.

        Parameters
        ----------
        point, f
            The point and its value, NaN if that is not known.
        held
            A variable that is kept, or -1.
        moves
            Whether lists are climbed below the best point, too.
        """
        self._moves = moves
        landscape = self._landscape
        known = self._memory.value(self._memory.key(point)) if math.isnan(f) else f
        if known is not None and not math.isnan(known):
            landscape.go_to(point, known)
        elif not np.array_equal(point, landscape.point) or landscape.measured:
            landscape.go_to(point)  # else an operator has gone there, and may know the value
        self.active, self._awaited = True, False
        self._free, self._readings, self._held = 0, 1, held
        self._fallback = (-math.inf, b"")
        self.number += 1

    # --- what is next -----------------------------------------------------------------------------

    def next(self, best: Best) -> Request | None:
        """Return what to evaluate; None if that depends on an answer, or if the climb has ended."""
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
                free = MOST_FREE_MOVES * self._n - self._free
            step = landscape.advance(max(free, 0))
            self._free += step.moves
            found = None
            if step.optimum:
                if self._awaited:
                    return None
                found, moved = self._ask_move(best)
                if found is None and moved:
                    continue
                found = found or self._at_optimum(best)
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
        """Ask for the value of the present point, unless that is known or not to be had."""
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
        """Ask for a neighbour, unless its value is known or being evaluated."""
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
        """Ask for the next move of a list; also returns whether a known one was made."""
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
        """Return whether the present point has a variable: conditions may say that it has not."""
        point = self._landscape.point
        key = point.tobytes()
        if self._present[0] != key:
            self._present = key, self._space.present(point[None])[0]
        return bool(self._present[1][variable])

    def _at_optimum(self, best: Best) -> Request | None:
        """Ask for the value of a point that no change improves, or a further one, if need be."""
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

        Under noise, a point that seems better than the best. Where there may be noise, the first,
        second, fourth, ... local optimum.
        """
        landscape = self._landscape
        if not self._memory.archive.deterministic:
            return False  # its means are over all readings
        if not landscape.noisy:
            return landscape.doubtful and self._readings == 1 and self.number >= 2**self._repeats
        if self._repeats < REPEATS and self._readings == 1:
            return True
        better = landscape.value > best.value and not np.array_equal(landscape.point, best.point)
        return better and self._readings < READINGS

    # --- answers ----------------------------------------------------------------------------------

    def answered(self, request: Request, f: float | None, best: Best) -> None:
        """Take the value of a request; None if it failed, or will never come."""
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
        """Take the value of the present point."""
        landscape = self._landscape
        (other, fallback), self._fallback = self._fallback, (-math.inf, b"")
        self._free, self._readings = 0, 1
        landscape.measure(f)
        if fallback and landscape.above(other, f):
            landscape.go_to(np.frombuffer(fallback, np.int32), other)

    def _reread(self, f: float) -> None:
        """Take a further value of the present point."""
        landscape = self._landscape
        if self._readings == 2 and (self._repeats < REPEATS or not landscape.noisy):
            self._repeats += 1
            landscape.add_noise(f, landscape.value, self._repeats)
        if landscape.noisy:
            landscape.average(f, self._readings)

    def _learn_change(self, request: Request, f: float | None, best: Best, *, here: bool) -> None:
        """Learn from a change of the present point, or of one that was left since."""
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
        if math.isnan(at):  # asked before the value of its base came, which may be known now
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
        """Learn from a move of a list of the present point, or of one that was left since."""
        landscape = self._landscape
        if f is None:
            return
        landscape.note(request.start, request.point, request.at, f)
        same = self.active and request.climb == self.number and landscape.measured
        if same and landscape.above(f, landscape.value):
            landscape.go_to(request.point, f)
            self._note_move()

    def _combine(self, request: Request, i: int, code: int, f: float, best: Best) -> None:
        """Make a change that was better at a point that was left, too.

        Of several changes of one point that were evaluated at the same time more than one may be
        better. Together they are measured once, instead of one after the other again.
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
        """Take note that the present point is another one, and measured."""
        self._free, self._readings = 0, 1

    # --- state ------------------------------------------------------------------------------------

    _STATE = (
        "active", "number", "_awaited", "_free", "_fallback", "_readings",
        "_repeats", "_held", "_moves",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return the state, which `restore` takes over."""
        return {name: getattr(self, name) for name in self._STATE}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        check_kept(state["_fallback"], self._space.cardinalities)
        for name in self._STATE:
            setattr(self, name, state[name])
