"""Local optima of delta search: which are accepted, and how they are left.

The present point is that of the model. A climb begins where the last local optimum was left for,
and ends at the next.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from anyorder.space import Space
from anyorder.strategies.base import Codes, Search, Seed
from anyorder.strategies.delta import layout
from anyorder.strategies.delta.model import Model
from anyorder.strategies.delta.pairwise import Pairwise

DISTRUST = 2  # times n: evaluations without free moves after a value that was not as predicted
JUMP = 0.5  # share of local optima that are left for a maximum of the global model, if trusted
JUMPS_UNTIL = 30  # climbs in a row that cost nothing, after which there are no more jumps
FREE_CLIMBS = 50  # climbs in a row that cost nothing, after which it starts again elsewhere
TIDY_EVERY = 64  # n / this: climbs between two removals of rounding errors
MORE_CHANGES = 0.33  # chance of each further change of a mutation
READINGS = 4  # of a point before it becomes the best, once there is noise
NOISE_REPEATS = 8  # local optima that are measured twice once there is noise


class Climber(Search):
    """Both models, the best point, and what happens between two climbs."""

    STATE: ClassVar[tuple[str, ...]] = (
        "_best", "_best_value", "_awaited", "_must_measure", "_distrusted_until", "_free_climbs",
        "_spent", "_optima", "_kicks", "_jumps", "_repeats", "_forgot", "_starts", "_operator",
        "_readings", "_trial", "_least",
    )  # fmt: skip

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        self.model = Model(space, self._rng)
        self.pairwise = Pairwise(space, self.model)
        self._n = len(space)
        self._best = self.model.point.copy()
        self._best_value = -np.inf
        self._awaited = -1  # the ticket of the present point, if its value is awaited
        self._must_measure = True  # whether the present point must be measured before all else
        self._distrusted_until = 0  # evaluations
        self._free_climbs = 0  # in a row, that cost no evaluation
        self._spent = 0  # evaluations at the last local optimum
        self._optima = self._kicks = self._jumps = self._repeats = 0
        self._forgot = 0  # evaluations when the means of pairs were last forgotten
        self._least: tuple[float, bytes] = (np.inf, b"")  # violation of the point that has least
        self._starts: list[tuple[float, bytes]] = []  # answered extra proposals
        self._readings = 1  # of the present point
        self._trial = b""  # a point to measure while the present one stays, if not empty
        self._operator = 0  # of a portfolio: which one led to the present point

    def _random(self) -> int:
        """A seed for a kernel."""
        raw: int = self._rng.bit_generator.random_raw()
        return raw >> 1  # fits an int64

    def _accept(self) -> None:
        """The local optimum is the point to leave from next, unless it is worse than the best."""
        model = self.model
        self._optima += 1
        self._readings = 1
        self.generation = self._optima
        slack = model.slack
        above = model.value - self._best_value
        if above >= -slack and (model.measured or above <= slack):
            self._take(model.point, model.value)
        self._free_climbs = self._free_climbs + 1 if model.evaluations == self._spent else 0
        self._spent = model.evaluations

    def _take(self, point: Codes, value: float) -> None:
        """Make a point the best."""
        self._best, self._best_value = point.copy(), value

    def _must_confirm(self) -> bool:
        """Whether a point that seems better than the best is to be measured again."""
        model = self.model
        return bool(
            model.scalars[layout.NOISE] > 0
            and model.measured
            and self._readings < READINGS
            and model.value > self._best_value
            and not np.array_equal(model.point, self._best)
        )

    def _suspects_noise(self) -> bool:
        """Whether to measure a local optimum twice: the first, second, fourth, ... if in doubt."""
        model, scalars = self.model, self.model.scalars
        if not model.measured or self._repeats > self._optima:
            return False
        if scalars[layout.NOISE] > 0 and self._repeats < NOISE_REPEATS:
            return True
        doubt = scalars[layout.COINCIDENCES] == 0 or (
            scalars[layout.WRONG] > 0.5 * scalars[layout.CERTAIN]
        )
        return bool(doubt) and self._optima + 1 >= 2**self._repeats

    def _leave(self) -> None:
        """Go elsewhere from the best point: to a maximum of the global model, or by a kick."""
        self._tidy()
        if self._free_climbs >= FREE_CLIMBS:
            self._restart()
        elif not self._jump() and not self._resume_extra():
            self._kick()

    def _tidy(self) -> None:
        model, scalars = self.model, self.model.scalars
        forget = bool(
            scalars[layout.WEIGHT] > 2 * self._n
            and scalars[layout.ERROR_PROFILE] < scalars[layout.ERROR]
            and model.evaluations - self._forgot > self._n
        )
        if forget:
            self._forgot = model.evaluations
        if forget or self._optima % max(self._n // TIDY_EVERY, 1) == 0:
            model.tidy(forget=forget)

    def _resume_extra(self) -> bool:
        """Climb from the best of the extra proposals that were answered."""
        if not self._starts:
            return False
        value, point = max(self._starts)
        self._starts.remove((value, point))
        self.model.go_to(np.frombuffer(point, np.int32), value)
        self._must_measure = False
        return True

    def _jump(self) -> bool:
        if not self.pairwise.trusted or self._free_climbs >= JUMPS_UNTIL:
            return False
        if self._rng.random() >= JUMP:
            return False
        point = self.pairwise.maximum(self._best, self._rng)
        if point is None:
            return False
        self._jumps += 1
        self.model.go_to(point, 0.0, measured=False)
        self._must_measure = True
        return True

    def _kick(self) -> None:
        """Change several variables of the best point.

        If pairs of variables do not explain the function, a climb is expensive, and after a random
        kick it spends most of its evaluations on repairing the damage. A gentle kick starts from a
        higher value.
        """
        self._kicks += 1
        self.model.go_to(self._best, self._best_value)
        gentle = self.pairwise.enabled and not self.pairwise.trusted
        self._must_measure = not self.model.kick(self._random(), gentle=gentle)

    def _restart(self) -> None:
        """Begin at a random point: near what is violated least, if no point has a value yet."""
        self.restarts += 1
        self._free_climbs = 0
        point = self._uniform(1)[0]
        if self._best_value == -np.inf and self._least[1]:
            least, changes = np.frombuffer(self._least[1], np.int32), 1
            while self._rng.random() < MORE_CHANGES:
                changes += 1
            point = self._varied(least, 1, changes)[0]
        self.model.go_to(point.astype(np.int32), 0.0, measured=False)
        self._must_measure = True

    def _return(self) -> None:
        """The present point has no value: leave the best one anew, or begin anew."""
        self._awaited = -1
        self._distrusted_until = self.model.evaluations + DISTRUST * self._n
        if self._best_value == -np.inf:
            self._restart()
        else:
            self._leave()
