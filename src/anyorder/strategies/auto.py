"""The strategy `auto`: delta search in a portfolio, and who gets the next evaluations.

Three operators share one model and one best point:

    climb     an iteration of delta search: jump or kick from the best point, and climb
    mutate    change a few variables of the best point; climb on only if that is not worse
    restart   climb from a random point

Each has a prior share of the evaluations. The share grows with its credit, improvements of the best
value per evaluation spent, where old ones count less. The first local optima are left by restarts
while the model predicts well, since a model makes later climbs cheap.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from anyorder.space import Space
from anyorder.strategies.base import Seed
from anyorder.strategies.delta import layout
from anyorder.strategies.delta.climber import FREE_CLIMBS
from anyorder.strategies.delta.search import DeltaSearch

CLIMB, MUTATE, RESTART = 0, 1, 2
NAMES = ("climb", "mutate", "restart")
PRIORS = (0.8, 0.15, 0.05)  # shares of the evaluations without any credit
LEAST_SHARE = 0.03  # no operator gets less
PRIOR_WINS = 0.5  # how many improvements, and their cost, the priors are worth
MEMORY_N, MEMORY_SPENT = 2.0, 0.5  # credit decays over 2n + e / 2 evaluations
EARLY_RESTARTS = 2  # local optima that are left by a restart
PREDICTS = 0.7  # if the squared error of the model is below this share of the squared gains
MORE_CHANGES = 0.33  # chance of each further change of a mutation
FEWEST_CHANGES = 2  # of a mutation


class AutoSearch(DeltaSearch):
    """Delta search, mutations and restarts, by their credit.

    Parameters
    ----------
    space
        Where to search. ValueError if tables over pairs of its variables do not fit in 500 MB.
    seed
        Whatever `numpy.random.default_rng` takes.
    """

    name = "auto"
    STATE: ClassVar[tuple[str, ...]] = ("_cost", "_wins", "_uses", "_begun", "_record")

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        self._operator = RESTART  # the first climb starts at a random point
        self._cost = np.zeros(3)  # evaluations spent, with decay
        self._wins = np.zeros(3)  # improvements of the best value, with decay
        self._uses = np.zeros(3, np.int64)
        self._begun = 0  # evaluations when the present operator began
        self._record = -np.inf  # the best value then

    def _leave(self) -> None:
        self._credit()
        self._tidy()
        self._operator = self._choose()
        if self._operator == RESTART:
            self._restart()
        elif self._operator == MUTATE:
            changes = FEWEST_CHANGES
            while self._rng.random() < MORE_CHANGES:
                changes += 1
            self._kick(changes)
            self._must_measure = True
        elif not self._resume_extra() and not self._jump():
            self._kick()

    def _credit(self) -> None:
        """Account for what the last operator spent and won."""
        now, operator = self.model.evaluations, self._operator
        spent = now - self._begun
        decay = math.exp(-spent / (MEMORY_N * self._n + MEMORY_SPENT * max(now, 1)))
        self._cost *= decay
        self._wins *= decay
        if operator != RESTART or self._optima > EARLY_RESTARTS + 1:
            self._cost[operator] += spent
            self._wins[operator] += self._best_value > self._record + self.model.tolerance
        self._uses[operator] += 1
        self._begun, self._record = now, self._best_value

    def _choose(self) -> int:
        """The operator that is furthest behind its share."""
        if self._free_climbs >= FREE_CLIMBS:
            return RESTART
        scalars = self.model.scalars
        predicts = scalars[layout.ERROR] < PREDICTS * scalars[layout.ERROR_NONE]
        if self._optima <= EARLY_RESTARTS and predicts:
            return RESTART
        behind = self.shares() * self._cost.sum() - self._cost
        if self._free_climbs:
            behind[MUTATE] = -np.inf
        behind += 1e-9 * self._rng.random(3)
        return int(behind.argmax())

    def shares(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The share of each operator."""
        rate = self._wins.sum() / (self._cost.sum() + 1.0)
        credit = (self._wins + PRIOR_WINS) / (rate * self._cost + PRIOR_WINS)
        share = np.array(PRIORS) * credit
        share = np.maximum(share / share.sum(), LEAST_SHARE)
        found: np.ndarray[Any, np.dtype[np.float64]] = share / share.sum()
        return found

    def _arrive(self, f: float) -> None:
        tried = self._operator == MUTATE and self._must_measure
        super()._arrive(f)
        if tried and f < self._best_value - self.model.tolerance:
            self._leave()  # the mutant is worse: not climbed from
        elif tried:
            self._best, self._best_value = self.model.point.copy(), f

    def facts(self) -> dict[str, Any]:
        """Those of delta search, and the operators."""
        used = {name: int(count) for name, count in zip(NAMES, self._uses, strict=True)}
        shares = {
            name: round(float(share), 3) for name, share in zip(NAMES, self.shares(), strict=True)
        }
        return {**super().facts(), "operators": used, "shares": shares}
