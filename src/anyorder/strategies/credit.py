"""Credit: the share of the evaluations that each operator of a portfolio gets."""

from __future__ import annotations

LEAST_SHARE = 0.03  # no operator gets less
PRIOR_WINS = 0.5  # how many improvements, and their cost, the priors are worth


def shares(priors: list[float], cost: list[float], wins: list[float]) -> list[float]:
    """Shares of the evaluations: the prior ones, times wins relative to what was to be expected."""
    rate = total(wins) / (total(cost) + 1.0)
    found = [
        prior * (won + PRIOR_WINS) / (rate * spent + PRIOR_WINS)
        for prior, spent, won in zip(priors, cost, wins, strict=True)
    ]
    return _relative([s if s > LEAST_SHARE else LEAST_SHARE for s in _relative(found)])


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
