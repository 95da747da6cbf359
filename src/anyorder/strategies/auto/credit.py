"""Credit: the rule that divides the evaluations among the operators.

The share of an operator is its prior times its gains, relative to the gains expected for its costs.
Gains and costs decay, so that recent gains count most. The next operator is the one that is
furthest behind its share of the evaluations, as a multiple of the cost of one use of the operator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

# each operator is assumed to have had so many gains before the run, at the average cost of a gain
PRIOR_GAIN = 0.5
# after e evaluations in a space of n variables, costs and gains decay over 2n + e / 2 evaluations
MEMORY, MEMORY_SPENT = 2.0, 0.5
PRICE_RATE = 0.2  # the rate of the running mean of the cost of one use of an operator


class Credit:
    """The costs and gains of operators.

    Parameters
    ----------
    prices
        By name: the cost of a use of each operator that is expected at first, in evaluations.
    n
        The number of variables.
    """

    def __init__(self, prices: Mapping[str, float], n: int) -> None:
        self._n, self._spent = n, 0.0
        # costs and gains decay relative to new ones, which are multiplied by this growing factor
        self._unit = 1.0
        self._cost = dict.fromkeys(prices, 0.0)
        self._gain = dict.fromkeys(prices, 0.0)
        self._price = {name: float(price) for name, price in prices.items()}
        self._costs = self._gains = 0.0  # sums over all operators
        self.uses = dict.fromkeys(prices, 0)

    def charge(self, name: str, cost: float, gain: float) -> None:
        """Add evaluations to the costs of an operator, and `gain` (0 or 1) to its gains."""
        if cost:
            self._spent += cost
            self._unit *= math.exp(cost / (MEMORY * self._n + MEMORY_SPENT * self._spent))
        cost, gain = cost * self._unit, gain * self._unit
        self._cost[name] += cost
        self._gain[name] += gain
        self._costs += cost
        self._gains += gain

    def close(self, name: str, cost: float) -> None:
        """Count a use of an operator, and learn its cost in evaluations."""
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
        """Return the next operator, among those whose prior is above 0.

        Parameters
        ----------
        priors
            The prior of each operator by name; at least one is above 0.
        tie
            A random number in [0, 1) that decides between equal operators.
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
        """Return the state, for `restore`."""
        return {
            "spent": self._spent, "unit": self._unit, "cost": self._cost, "gain": self._gain,
            "price": self._price, "uses": self.uses, "costs": self._costs, "gains": self._gains,
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""
        for name in ("cost", "gain", "price", "uses"):
            if state[name].keys() != self._cost.keys():
                raise ValueError(f"the state's {name!r} is of other operators: it is damaged")
        self._spent, self._unit = float(state["spent"]), float(state["unit"])
        self._cost, self._gain = state["cost"], state["gain"]
        self._price, self.uses = state["price"], state["uses"]
        self._costs, self._gains = float(state["costs"]), float(state["gains"])
