"""Credit: which operator gets the next evaluations.

The share of an operator is its prior, times its gains relative to what was to be expected of its
costs. Both decay, so that the share follows what has helped lately. The next one is that which is
furthest behind its share of the evaluations, in units of what a use of it costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

PRIOR_GAIN = 0.5  # how many gains, and their cost, the priors are worth
MEMORY, MEMORY_SPENT = 2.0, 0.5  # costs and gains decay over 2n + e / 2 evaluations
PRICE_RATE = 0.2  # rate of the running mean of what a use costs


class Credit:
    """Costs and gains of operators.

    Parameters
    ----------
    prices
        By name: what a use of each operator is expected to cost at first, in evaluations.
    n
        The number of variables.
    """

    def __init__(self, prices: Mapping[str, float], n: int) -> None:
        self._n, self._spent = n, 0.0
        # Instead of all that is old falling, what is new grows: by this factor.
        self._unit = 1.0
        self._cost = dict.fromkeys(prices, 0.0)
        self._gain = dict.fromkeys(prices, 0.0)
        self._price = {name: float(price) for name, price in prices.items()}
        self._costs = self._gains = 0.0  # of all
        self.uses = dict.fromkeys(prices, 0)

    def charge(self, name: str, cost: float, gain: float) -> None:
        """Account for evaluations of an operator, and 1 if they improved the best value."""
        if cost:
            self._spent += cost
            self._unit *= math.exp(cost / (MEMORY * self._n + MEMORY_SPENT * self._spent))
        cost, gain = cost * self._unit, gain * self._unit
        self._cost[name] += cost
        self._gain[name] += gain
        self._costs += cost
        self._gains += gain

    def close(self, name: str, cost: float) -> None:
        """Count a use of an operator, and what it cost in all."""
        self.uses[name] += 1
        if cost:
            self._price[name] += PRICE_RATE * (cost - self._price[name])

    def shares(self, priors: Mapping[str, float]) -> dict[str, float]:
        """Return the share of each operator whose prior is above 0."""
        unit = self._unit
        rate, prior_gain = self._gains / (self._costs + unit), PRIOR_GAIN * unit
        found, whole = {}, 0.0
        for name, prior in priors.items():
            if prior > 0:
                gain, expected = self._gain[name] + prior_gain, rate * self._cost[name] + prior_gain
                found[name] = share = prior * gain / expected
                whole += share
        return {name: share / whole for name, share in found.items()}

    def next(self, priors: Mapping[str, float], tie: float) -> str:
        """Return the operator to use, of those whose prior is above 0.

        Parameters
        ----------
        priors
            By name, at least one above 0.
        tie
            A number in [0, 1) that decides between equals.
        """
        shares, cost = self.shares(priors), self._cost
        names, total = list(shares), 0.0
        for name in names:
            total += cost[name]
        first = int(tie * len(names))
        best, most = names[first], -math.inf
        for name in names[first:] + names[:first]:
            behind = (shares[name] * total - cost[name]) / self._price[name]
            if behind > most:
                best, most = name, behind
        return best

    def state(self) -> dict[str, Any]:
        """Return the state, which `restore` takes over."""
        return {
            "spent": self._spent, "unit": self._unit, "cost": self._cost, "gain": self._gain,
            "price": self._price, "uses": self.uses, "costs": self._costs, "gains": self._gains,
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        for name in ("cost", "gain", "price", "uses"):
            if state[name].keys() != self._cost.keys():
                raise ValueError(f"the state's {name!r} is of other operators: it is damaged")
        self._spent, self._unit = float(state["spent"]), float(state["unit"])
        self._cost, self._gain = state["cost"], state["gain"]
        self._price, self.uses = state["price"], state["uses"]
        self._costs, self._gains = float(state["costs"]), float(state["gains"])
