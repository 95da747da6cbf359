"""`auto` and `delta`: the portfolios, with their operators and explorers."""

from __future__ import annotations

from anyorder._internal.checks import integer
from anyorder.space import Space
from anyorder.strategies.auto.operators.branch import Branch
from anyorder.strategies.auto.operators.kick import GentleKick, Kick
from anyorder.strategies.auto.operators.leap import Jump, Leap
from anyorder.strategies.auto.operators.mix import Mix
from anyorder.strategies.auto.operators.move import Move, Scan
from anyorder.strategies.auto.operators.mutate import Exchange, Mutate
from anyorder.strategies.auto.operators.restart import Restart
from anyorder.strategies.auto.operators.sample import Sample
from anyorder.strategies.auto.operators.shake import ListKick, Shake
from anyorder.strategies.auto.portfolio import Portfolio
from anyorder.strategies.base import Seed
from anyorder.strategies.gp.search import GPSearch
from anyorder.strategies.plain.one_plus_one import FastOnePlusOneEA
from anyorder.strategies.plain.p3 import P3

# a Gaussian process makes the first points if there are at most so many evaluations and variables
SMALL_BUDGET, MOST_VARIABLES = 300, 500


class DeltaSearch(Portfolio):
    """Local search that predicts the gain of every change, and evaluates only promising ones.

    Parameters
    ----------
    space, seed
        See `Portfolio`.
    """

    name = "delta"
    operators = (Restart, Kick, GentleKick, Jump, Branch, Leap, ListKick)


class AutoSearch(Portfolio):
    """Delta search with further operators: trials, and strategies that use no model.

    Parameters
    ----------
    space, seed
        See `Portfolio`.
    budget
        The number of evaluations, if it is known. With at most 300, and at most 500 variables, a
        Gaussian process makes the first 100 points.
    """

    name = "auto"
    operators = (
        Restart, Kick, GentleKick, Jump, Branch, Mutate, Exchange, Mix, Leap,
        ListKick, Scan, Move, Sample, Shake,
    )  # fmt: skip
    explorers = (P3, FastOnePlusOneEA)

    def __init__(self, space: Space, seed: Seed = None, budget: int | None = None) -> None:
        self.budget = budget if budget is None else integer("budget", budget, 1)
        small = self.budget is not None and self.budget <= SMALL_BUDGET
        few = isinstance(space, Space) and len(space) <= MOST_VARIABLES
        super().__init__(space, seed, GPSearch if small and few else None)
