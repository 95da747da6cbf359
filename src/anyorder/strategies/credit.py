"""Credit: the share of the evaluations that each operator of a portfolio gets."""

from __future__ import annotations

import math

LEAST_SHARE = 0.03  # no operator gets less
PRIOR_WINS = 0.5  # how many improvements, and their cost, the priors are worth
# Of mutations that interrupt a climb:
STEP_SHARES = (0.75, 0.25)  # without credit: steps of a climb at the best point, and mutations
STEP_PRIOR = 10.0  # evaluations that the mean improvement of both is worth
STEP_LEAST, STEP_MOST = 0.04, 0.75  # bounds of the share of mutations
# The upper one where most changes have no effect: a lucky mutation must not displace single
# changes, each of which is tried but once.
STEP_WAITING = 0.5


def shares(priors: list[float], cost: list[float], wins: list[float]) -> list[float]:
    """Shares of the evaluations: the prior ones, times wins relative to what was to be expected."""
    rate = total(wins) / (total(cost) + 1.0)
    found = [
        prior * (won + PRIOR_WINS) / (rate * spent + PRIOR_WINS)
        for prior, spent, won in zip(priors, cost, wins, strict=True)
    ]
    return _relative([s if s > LEAST_SHARE else LEAST_SHARE for s in _relative(found)])


def share_of_mutations(cost: list[float], gains: list[float], waiting: bool) -> float:
    """The share of mutations that interrupt a climb, by the squares of gains per evaluation.

    One that is twice as good gets most of the evaluations: while single changes are cheap
    improvements, mutations would only slow the climb down.

    Parameters
    ----------
    cost, gains
        Evaluations, and what they improved: of steps of the climb, and of mutations.
    waiting
        Whether most changes have no effect.
    """
    prior = STEP_PRIOR * ((gains[0] + gains[1]) / (cost[0] + cost[1] + 1.0))
    climb = (gains[0] + prior) / (cost[0] + STEP_PRIOR)
    mutate = (gains[1] + prior) / (cost[1] + STEP_PRIOR)
    most = max(climb, mutate)
    if not 0 < most < math.inf:
        return STEP_SHARES[1]
    climb, mutate = climb / most, mutate / most
    climb, mutate = STEP_SHARES[0] * (climb * climb), STEP_SHARES[1] * (mutate * mutate)
    highest = STEP_WAITING if waiting else STEP_MOST
    return min(max(mutate / (climb + mutate), STEP_LEAST), highest)


def total(numbers: list[float]) -> float:
    """Their sum, from left to right: how `sum` rounds depends on the version of Python."""
    whole = 0.0
    for number in numbers:
        whole += number
    return whole


def _relative(numbers: list[float]) -> list[float]:
    """Each relative to the sum of all."""
    whole = total(numbers)
    return [number / whole for number in numbers]
