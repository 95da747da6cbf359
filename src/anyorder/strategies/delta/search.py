"""The strategy `delta`: climb by expected improvement, and leave local optima.

    propose   makes the moves that are certain, and asks for the change that promises most; at a
              local optimum it jumps or kicks
    learn     teaches the models, and moves where a change is better (`learner`)

Everything random comes from the generator of `Search`; kernels are seeded from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from anyorder.space import Space
from anyorder.strategies.base import Codes, Seed
from anyorder.strategies.delta import layout
from anyorder.strategies.delta.learner import KICK, Learner, Waiting
from anyorder.strategies.delta.transform import Transform
from anyorder.strategies.state import State, from_state, to_state

MOST_FREE_MOVES = 3  # times n: moves in a row that are not paid for
MOST_AHEAD = 20  # changes looked at for one that is new, while a value is awaited
MOST_STEPS = 300  # climbs and changes known already within one proposal; then any new point


class DeltaSearch(Learner):
    """Local search that predicts the gain of every single change, and pays only for some.

    Asked for several points it gives the next best changes of the present point, even before the
    value of that is known; where those run out, kicks of the best point, which it may climb from
    later.

    Parameters
    ----------
    space
        Where to search. ValueError if tables over pairs of its variables do not fit in 500 MB.
    seed
        Whatever `numpy.random.default_rng` takes.
    """

    name = "delta"
    STATE: ClassVar[tuple[str, ...]] = ("_free_moves",)

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        self._free_moves = 0  # in a row
        self._alone = True  # whether one point is evaluated at a time

    # --- proposing ------------------------------------------------------------------------------

    def _propose(self, count: int) -> Codes:
        points: list[Codes] = []
        self._alone = count == 1 and not self._waiting
        while len(points) < count and not self._exhausted():
            points.append(self._next(self._next_ticket + len(points)))
        if len(points) == 1:
            return points[0][None]
        return np.array(points, np.int32) if points else self._none()

    def _exhausted(self) -> bool:
        """Whether all points are known, failed or being evaluated."""
        if not self._small:
            return False
        most = len(self._known) + len(self._failed) + len(self._waiting)
        if most < self._combinations or not self._remembers():
            return False
        waiting = {entry.point for entry in self._waiting.values()}
        seen = self._known.keys() | self._failed | waiting
        return len(seen) >= self._combinations

    def _next(self, ticket: int) -> Codes:
        """The next proposal."""
        model = self.model
        for _ in range(MOST_STEPS):
            if self._awaited >= 0:
                return self._ahead(ticket)
            if self._trial:
                return self._ask_trial(ticket)
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

    def _ask(self, ticket: int, kind: str, point: bytes) -> Codes:
        self._await(ticket, kind, point)
        return np.frombuffer(bytearray(point), np.int32)

    def _await(
        self, ticket: int, kind: str, point: bytes, base: bytes = b"", variable: int = -1
    ) -> None:
        scalar = self.model.scalar
        value = scalar(layout.VALUE) if scalar(layout.MEASURED) else -np.inf
        self._waiting[ticket] = Waiting(kind, point, base, value, variable, self._optima)

    def _ask_trial(self, ticket: int) -> Codes:
        """Ask for the value of a trial; others do not wait for it."""
        point, self._trial = self._trial, b""
        if self._alone:
            self._awaited = ticket
            return self._ask(ticket, "trial", point)
        found = self._ask(ticket, "trial", point)
        self._go_on(ticket)
        return found

    def _go_on(self, ticket: int) -> None:
        """Go on as if a trial had failed, before its answer has come."""
        self._leave()

    def _ask_present(self, ticket: int) -> Codes | None:
        """Ask for the value of the present point; None if that is known already."""
        point = self.model.point.tobytes()
        if point in self._failed:
            self._return()
            return None
        if point in self._known:
            self._arrive(self._transform(self._known[point]))
            return None
        self._awaited = ticket
        return self._ask(ticket, "point", point)

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
        if self._known and point in self._known:
            if model.measured:
                self._learn_change(variable, value, self._transform(self._known[point]))
            else:
                model.exclude(variable, value)
            return None
        if self._waiting and any(entry.point == point for entry in self._waiting.values()):
            model.exclude(variable, value)
            return None
        self._await(ticket, "change", point, base, variable)
        return changed

    def _extra(self, ticket: int) -> Codes:
        """A kick of the best point, whatever becomes of the present one; or any new point."""
        point, waiting = b"", {entry.point for entry in self._waiting.values()}
        for attempt in range(20):
            if self._best_value == -np.inf or attempt >= 10 or not len(self._free):
                point = self._uniform(1)[0].tobytes()
            else:
                point = self._distant().tobytes()
            if not self._is_old(point, waiting):
                break
        if self._small and self._is_old(point, waiting):
            shape = tuple(self._cardinalities.tolist())
            for k in self._rng.permutation(self._combinations).tolist():
                point = np.array(np.unravel_index(k, shape), np.int32).tobytes()
                if not self._is_old(point, waiting):
                    break
        return self._ask(ticket, "extra", point)

    def _distant(self) -> Codes:
        """A kick of the best point."""
        changes = int(min(KICK / (1.0 - self._rng.random()), max(self._n // 2, 1)))
        kicked: Codes = self._varied(self._best, 1, changes)[0].astype(np.int32)
        return kicked

    def _is_old(self, point: bytes, waiting: set[bytes]) -> bool:
        return point in waiting or point in self._failed or point in self._known

    # --- local optima ---------------------------------------------------------------------------

    def _at_optimum(self, ticket: int) -> Codes | None:
        """No change is worth an evaluation: measure, or accept the point and leave it.

        Changes of it that are being evaluated are most likely none either; one that is better will
        be adopted.
        """
        model = self.model
        if not model.measured and model.value > self._best_value + model.slack:
            return self._ask_present(ticket)
        if not self._known and self._suspects_noise():
            self._repeats += 1
            return self._ask(ticket, "repeat", model.point.tobytes())
        if not self._known and self._must_confirm():
            self._awaited = ticket
            return self._ask(ticket, "confirmation", model.point.tobytes())
        self._fallback = (-np.inf, b"")
        self._accept()
        self._leave()
        return None

    # --- state ----------------------------------------------------------------------------------

    def influence(self, points: int = 10) -> npt.NDArray[np.float64]:
        """How much a change of variable j moves the gain of a change of i, as far as is known.

        In units of the function, or of the logarithm that `facts` tells as its transform, `(n, n)`.
        `points` is there for strategies that sample.
        """
        return self.model.effects()

    def facts(self) -> dict[str, Any]:
        """Links, trust in the global model, local optima, free moves, and the transform of f."""
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
            "transform": self._transform.describe(),
        }

    def state(self) -> State:
        """The search and both models."""
        return to_state(self._values())

    def _values(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self._kept_names()}
        models = {"model": self.model.state(), "pairwise": self.pairwise.state()}
        return {**own, **models, "transform": tuple(self._transform)}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue where `state` was taken."""
        self._set(from_state(state, self._values()))

    def _set(self, values: dict[str, Any]) -> None:
        self.model.restore(values.pop("model"))
        self.pairwise.restore(values.pop("pairwise"))
        self._transform = Transform(*values.pop("transform"))
        waiting = values.pop("_waiting")
        self._waiting = {ticket: Waiting(*entry) for ticket, entry in waiting.items()}
        for name, value in values.items():
            setattr(self, name, value)
