"""The strategy `auto`: delta search in a portfolio, and who gets the next evaluations.

Six operators share one best point:

    climb     an iteration of delta search: jump or kick from the best point, and climb
    restart   climb from a random point
    mutate    change a few variables of the best point, or exchange the values of two
    mix       copy to the best point what belongs together in another local optimum
    explore   a trial of P3 or of an evolutionary algorithm, which do without the model; only while
              nothing else improves, the model predicts badly, or one of them is ahead
    leap      go to a maximum of the global model, fitted to all that was observed

The last four cost one evaluation, a *trial*. A trial that is not worse than the best point takes
its place, and is climbed from where the model predicts well.

Each operator has a prior share of the evaluations. The share grows with its credit, improvements of
the best value per evaluation spent, where old ones count less. The first local optima are left by
restarts while the model predicts well, since a model makes later climbs cheap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from anyorder.space import Space
from anyorder.strategies import credit
from anyorder.strategies.base import Answer, Codes, Seed
from anyorder.strategies.delta import layout
from anyorder.strategies.delta.climber import FREE_CLIMBS, MORE_CHANGES
from anyorder.strategies.delta.search import DeltaSearch
from anyorder.strategies.explorers import NOBODY, Explorers
from anyorder.strategies.pool import Pool

CLIMB, RESTART, MUTATE, MIX, EXPLORE, LEAP = 0, 1, 2, 3, 4, 5
NAMES = ("climb", "restart", "mutate", "mix", "explore", "leap")
# Shares of the evaluations without any credit; that of exploring is multiplied by the share of the
# run since the last improvement, unless one of the explorers is ahead.
PRIORS = (0.72, 0.05, 0.15, 0.08, 1.0, 0.3)
AHEAD = 2.0  # the share of exploring then
SCOUT, SCOUT_N = 0.1, 5  # its least factor after 5n evaluations, if the model predicts badly
MEMORY_N, MEMORY_SPENT = 2.0, 0.5  # credit decays over 2n + e / 2 evaluations
EARLY_RESTARTS = 2  # local optima that are left by a restart, if the model predicts well
# They are left at once where a variable has few links, and up to many if climbs take at most 4n
# evaluations on average; else after 3 and 6 times the evaluations of the first climb.
FEW_LINKS, MANY_LINKS, EARLY_N, LATER = 10, 20, 4, 3
PRICE_N, PRICE_RATE = 3.0, 0.2  # of a restart: cost in n at first, rate of its running mean
PREDICTS = 0.7  # if the squared error of the model is below this share of the squared gains
FEWEST_CHANGES = 2  # of a mutation; one less where the model does not predict well
EXCHANGES = 0.5  # share of mutations that are exchanges
STAGNANT, STAGNANT_N = 0.25, 5  # of the run, and times n: evaluations without any improvement
KICKS = 0.5  # share of kicks among points proposed while others are awaited; the rest are mutations
ATTEMPTS = 5  # to find a trial that is new
MOST_TRIED = 10_000  # trials of one best point that are remembered
# Lists, since operations on small arrays take long; saved as arrays.
_RECORDS = ("_cost", "_wins", "_step_cost", "_step_gains")


class AutoSearch(DeltaSearch):
    """Delta search, trials and restarts, by their credit.

    Parameters
    ----------
    space
        Where to search. ValueError if tables over pairs of its variables do not fit in 500 MB.
    seed
        Whatever `numpy.random.default_rng` takes.
    """

    name = "auto"
    STATE: ClassVar[tuple[str, ...]] = (
        "_cost", "_wins", "_price", "_uses", "_found", "_begun", "_record", "_tried", "_improved",
        "_aside", "_trials", "_step_cost", "_step_gains", "_counted", "_height", "_first",
    )  # fmt: skip

    def __init__(self, space: Space, seed: Seed = None) -> None:
        super().__init__(space, seed)
        self._operator = RESTART  # the first climb starts at a random point
        self._cost = [0.0] * len(NAMES)  # evaluations spent, with decay
        self._wins = [0.0] * len(NAMES)  # improvements of the best value, with decay
        self._price = PRICE_N * self._n  # evaluations that a restart is expected to cost
        self._uses = np.zeros(len(NAMES), np.int64)
        self._found = RESTART  # who found the best point
        self._begun = 0  # evaluations when the present operator began
        self._record = -np.inf  # the best value then
        self._first = 0  # evaluations of the first climb
        self._improved = 0  # evaluations when the best value last improved
        self._tried: set[bytes] = set()  # mutations and mixtures of the best point
        self._pool = Pool(len(space))
        self._explorers = Explorers(space, self._rng)
        self._aside = False  # whether the present trial interrupts a climb
        # Trials that nobody waits for, by ticket: the operator, and whether it interrupted a climb.
        self._trials: dict[int, tuple[int, bool]] = {}
        # Of steps of a climb at the best point, and of mutations that interrupt it:
        self._step_cost = [0.0, 0.0]  # evaluations, with decay
        self._step_gains = [0.0, 0.0]  # what they improved, with decay
        self._counted, self._height = 0, -np.inf  # evaluations and best value when last counted

    # --- operators ------------------------------------------------------------------------------

    def _leave(self) -> None:
        self._credit()
        if self._operator in (CLIMB, RESTART):  # trials leave the model as it is
            self._tidy()
        self._operator = self._choose()
        if self._operator == RESTART:
            self._restart()
            return
        if self._operator != CLIMB:
            if self._operator == EXPLORE:
                point = self._explorers.propose(self._known, self._failed, self._slack_of_f())
            elif self._operator == LEAP:
                point = self._leap()
            else:
                point = self._variation()
            if point is not None:
                self._trial = point.tobytes()
                return
            self._operator = CLIMB  # a further trial instead measured worse: docs/delta.md
        if not self._jump() and not self._resume_extra():
            self._kick()

    def _leap(self) -> Codes | None:
        """A maximum of the global model that is new; None if there is none."""
        self.pairwise.refresh()
        point = self.pairwise.maximum(self._best, self._rng)
        if point is None:
            return None
        waiting = {entry.point for entry in self._waiting.values()}
        return None if self._is_old(point.tobytes(), waiting) else point

    def _variation(self) -> Codes | None:
        """A mutation or mixture of the best point that is new; None if none was found."""
        for _ in range(ATTEMPTS):
            if self._operator == MIX:
                point = self._pool.mixture(self._best, self.model.links(), self._rng)
            else:
                point = self._mutation()
            if point is None:
                return None
            key = point.tobytes()
            known = key in self._tried or key in self._failed or key in self._known
            if not known and not np.array_equal(point, self._best):
                if len(self._tried) < MOST_TRIED:
                    self._tried.add(key)
                return point
        return None

    def _mutation(self) -> Codes:
        point, model = self._best.copy(), self.model
        if self._rng.random() < EXCHANGES and model.exchange(self._random(), point):
            return point
        changes = FEWEST_CHANGES if self._predicts() else FEWEST_CHANGES - 1
        while self._rng.random() < MORE_CHANGES:
            changes += 1
        model.mutate(self._random(), point, changes)
        return point

    def _distant(self) -> Codes:
        """A mutation of the best point, or a kick."""
        return super()._distant() if self._rng.random() < KICKS else self._mutation()

    def _step_aside(self) -> bool:
        """Try a mutation of the present point, if it is the best one and mutations earn it.

        Where single changes promise little, a climb to a local optimum can take many passes over
        all changes; mutations are then the better use of some of its evaluations.
        """
        model, scalar = self.model, self.model.scalar
        now, value = int(scalar(layout.EVALUATIONS)), scalar(layout.VALUE)
        spent, gained = now - self._counted, max(value - self._height, 0.0)
        self._counted, self._height = now, value
        ahead = scalar(layout.MEASURED) and value >= self._best_value - scalar(layout.SLACK)
        if now < self._n or not ahead or scalar(layout.NOISE) > 0:
            return False
        cost, gains = self._step_cost, self._step_gains
        if spent:
            decay = math.exp(-spent / (MEMORY_N * self._n + MEMORY_SPENT * now))
            cost[:] = cost[0] * decay + spent, cost[1] * decay
            gains[:] = gains[0] * decay + gained, gains[1] * decay
        waits = scalar(layout.WAITING) > 0
        if cost[1] >= credit.share_of_mutations(cost, gains, waits) * (cost[0] + cost[1]):
            return False
        self._take(model.point, value)
        cost[1] += 1
        operator, self._operator = self._operator, MUTATE
        point = self._variation()
        self._operator = operator
        if point is None:
            return False
        self._trial, self._aside = point.tobytes(), True
        self._uses[MUTATE] += 1
        return True

    def _judge_aside(self, point: Codes, f: float | None) -> None:
        """The answer to a mutation that interrupted a climb, which goes on."""
        model = self.model
        self._aside = False
        if f is not None and f >= self._best_value - model.slack:
            self._step_gains[1] += max(f - self._best_value, 0.0)
            self._take(point, f)
            model.go_to(point, f)
            self._must_measure = False
        self._counted, self._height = model.evaluations, model.value

    def _judge(self, point: Codes, value: float | None, f: float | None) -> None:
        if self._aside:
            self._judge_aside(point, value)
            return
        if self._explorers.waiting:
            self._explorers.learn(point, f)
        if value is None or value < self._best_value - self.model.slack:
            self._leave()
            return
        self.model.go_to(point, value)
        self._must_measure = False
        if self.model.scalars[layout.NOISE] == 0:
            self._take(point, value)
            if not self._predicts():
                self._leave()

    def _go_on(self, ticket: int) -> None:
        aside, self._aside = self._aside, False
        self._trials[ticket] = (MUTATE if aside else self._operator, aside)
        if not aside:
            self._cost[self._operator] += 1
            self._leave()

    def _judge_late(
        self, ticket: int | None, point: Codes, value: float | None, f: float | None
    ) -> None:
        """Credit its operator, and go there if it is better."""
        if ticket is None or ticket not in self._trials:  # awaited until a better point came
            super()._judge_late(ticket, point, value, f)
            return
        operator, aside = self._trials.pop(ticket)
        if operator == EXPLORE:
            self._explorers.learn(point, f)
        if value is None:
            return
        self._begun += 1  # not spent by the present operator
        if value <= self._best_value + self.model.slack:
            return
        if aside:
            self._step_gains[1] += value - self._best_value
        self._adopt(point, value)
        if self.model.scalars[layout.NOISE] > 0:  # to be confirmed first, as all under noise
            return
        self._wins[operator] += 1
        present, self._operator = self._operator, operator
        self._take(point, value)
        self._operator = present
        self._record, self._improved = value, self.model.evaluations
        self._counted, self._height = self.model.evaluations, value

    def _predicts(self) -> bool:
        """Whether the model predicts single changes well."""
        scalars = self.model.scalars
        return bool(scalars[layout.ERROR] < PREDICTS * scalars[layout.ERROR_NONE])

    def _accept(self) -> None:
        super()._accept()
        if self.model.measured:
            self._pool.add(self.model.point)

    def _take(self, point: Codes, f: float) -> None:
        if not np.array_equal(point, self._best):
            self._tried.clear()
        if f > self._best_value + self.model.slack:
            self._found = self._operator
        super()._take(point, f)

    def _adopt(self, point: Codes, f: float) -> None:
        awaited = self._waiting.get(self._awaited)
        if awaited is not None and awaited.kind == "trial":
            self._explorers.give_up()
        self._aside = False  # the answer of the present trial comes too late
        super()._adopt(point, f)

    def _learn(self, answers: Sequence[Answer]) -> None:
        self._explorers.note(answers)
        super()._learn(answers)

    def _rescale(self, change: Callable[[float], float]) -> None:
        super()._rescale(change)
        self._record, self._height = change(self._record), change(self._height)
        self._step_cost, self._step_gains = [0.0, 0.0], [0.0, 0.0]  # of another unit

    # --- credit ---------------------------------------------------------------------------------

    def _return(self) -> None:
        self._cost[self._operator] += 1  # a point that failed or was refused is not for nothing
        super()._return()

    def _credit(self) -> None:
        """Account for what the last operator spent and won."""
        now, operator = self.model.evaluations, self._operator
        spent = now - self._begun
        decay = math.exp(-spent / (MEMORY_N * self._n + MEMORY_SPENT * max(now, 1)))
        self._cost = [decay * cost for cost in self._cost]
        self._wins = [decay * wins for wins in self._wins]
        won = self._best_value > self._record + self.model.slack
        if operator != RESTART or self._optima > EARLY_RESTARTS + 1:
            self._cost[operator] += spent
            self._wins[operator] += won
        if won:
            self._improved = now
        if operator == RESTART and spent:
            self._price += PRICE_RATE * (spent - self._price)
        self._uses[operator] += 1
        self._begun, self._record = now, self._best_value

    def _choose(self) -> int:
        """The operator that is furthest behind its share.

        Restarts cost most: one is made only if their share pays for it as a whole.
        """
        if self._free_climbs >= FREE_CLIMBS:
            return RESTART
        now = self.model.evaluations
        self._first = self._first or now
        if self._restarts_early(now):
            return RESTART
        stagnant = now - self._improved > max(STAGNANT * now, STAGNANT_N * self._n)
        ahead, scouts, free = self._explorer_ahead(), self._scouts(), self._free_climbs > 0
        total, shares = credit.total(self._cost), self._shares(now, ahead, scouts)
        due = [share * total - cost for share, cost in zip(shares, self._cost, strict=True)]
        out = (  # in the order of NAMES
            False,  # climb
            due[RESTART] < self._price,
            free,  # mutate
            free or not len(self._pool),  # mix
            not (stagnant or ahead or scouts) or self._explorers.waiting,
            free or not self.pairwise.trusted,  # leap
        )
        ties = self._rng.random(len(NAMES)).tolist()
        behind = [
            -math.inf if refused else evaluations + 1e-9 * tie
            for refused, evaluations, tie in zip(out, due, ties, strict=True)
        ]
        return behind.index(max(behind))

    def _restarts_early(self, now: int) -> bool:
        """Whether to leave one of the first local optima by a restart.

        With few links the model soon makes further climbs cheap. With many it does not, and most of
        a small budget would go into them.
        """
        starts, degree = self._uses.item(RESTART), self.model.scalar(layout.DEGREE)
        if starts > EARLY_RESTARTS or not self._predicts():
            return False
        cheap = now <= EARLY_N * self._n * max(self._optima, 1)
        soon = degree <= FEW_LINKS or (degree <= MANY_LINKS and cheap)
        return soon or now >= LATER * starts * self._first

    def shares(self) -> list[float]:
        """The share of each operator."""
        return self._shares(self.model.evaluations, self._explorer_ahead(), self._scouts())

    def _shares(self, now: int, ahead: bool, scouts: bool) -> list[float]:
        explore = max(1 - self._improved / max(now, 1), SCOUT if scouts else 0.0)
        priors = [*PRIORS]
        priors[EXPLORE] = AHEAD if ahead else PRIORS[EXPLORE] * explore
        return credit.shares(priors, self._cost, self._wins)

    def _explorer_ahead(self) -> bool:
        return self._explorers.leader(self._slack_of_f()) != NOBODY

    def _slack_of_f(self) -> float:
        """Differences of f up to this are rounding: explorers know nothing of a transform."""
        return self.model.slack * self._transform.stretch(self._best_value)

    def _scouts(self) -> bool:
        """Whether to explore a little: the model predicts badly, so another way may be better."""
        return self.model.evaluations > SCOUT_N * self._n and not self._predicts()

    # --- state ----------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """Those of delta search, the operators, and which of them found the best point."""
        used = {name: int(count) for name, count in zip(NAMES, self._uses, strict=True)}
        shares = {name: round(share, 3) for name, share in zip(NAMES, self.shares(), strict=True)}
        found = {"operators": used, "shares": shares, "best_found_by": NAMES[self._found]}
        return {**super().facts(), **found, "explorers": self._explorers.facts()}

    def _values(self) -> dict[str, Any]:
        records = {name: np.array(getattr(self, name)) for name in _RECORDS}
        parts = {"pool": self._pool.state(), "explorers": self._explorers.state()}
        return {**super()._values(), **records, **parts}

    def _set(self, values: dict[str, Any]) -> None:
        values |= {name: values[name].tolist() for name in _RECORDS}
        self._pool.restore(values.pop("pool"))
        self._explorers.restore(values.pop("explorers"))
        super()._set(values)
