"""
A noisy simulation
==================

How many counters should a shop open in each hour? A simulation draws customers at random, so the
same plan has a different cost every day. With ``deterministic=False``, plans that are proposed
again are simulated again, and means are compared.
"""

import heapq

import matplotlib.pyplot as plt
import numpy as np

import anyorder as ao

CUSTOMERS = [20, 35, 60, 90, 75, 50, 70, 110, 95, 40]  # expected in each hour from 9 o'clock
HOURS = [f"{hour}:00" for hour in range(9, 19)]
rng = np.random.default_rng(0)


def simulate(plan):
    """The cost of one day: 20 for a counter and hour, and a half for each minute of waiting."""
    cost, free = 0.0, []
    for hour, (mean, counters) in enumerate(zip(CUSTOMERS, plan)):
        start = 60 * hour
        free = sorted(max(start, time) for time in free)[:counters]
        free += [start] * (counters - len(free))
        heapq.heapify(free)  # when each counter is free
        for arrival in np.sort(rng.uniform(start, start + 60, rng.poisson(mean))):
            begin = max(arrival, heapq.heappop(free))
            heapq.heappush(free, begin + rng.exponential(2.0))
            cost += 0.5 * (begin - arrival)
        cost += 20 * counters
    return cost


# %%
# Single days differ too much, so an evaluation is the mean of ten days. There are 300 evaluations.
space = ao.Space({hour: ao.Integer(1, 8) for hour in HOURS})


def cost(point):
    return np.mean([simulate(point.values()) for _ in range(10)])


result = ao.minimize(cost, space, budget=300, seed=0, deterministic=False)

# %%
# The best of many noisy values is too optimistic, so both plans are compared on the same number of
# new days.
rule = [max(1, round(mean * 2.0 / 60 + 1)) for mean in CUSTOMERS]  # the work, and one more
found = list(result.best.values())
days = {"rule of thumb": rule, "found": found}
costs = {label: [simulate(plan) for _ in range(200)] for label, plan in days.items()}
for label, values in costs.items():
    error = np.std(values, ddof=1) / len(values) ** 0.5
    print(f"{label}: {days[label]}, {np.mean(values):.0f} ± {error:.0f} a day")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.plot(result.history.values, ".", color="0.6", markersize=4)
left.set(xlabel="evaluations", ylabel="mean cost of ten days", yscale="log")
right.step(HOURS, rule, where="mid", label="rule of thumb", color="0.5", linestyle="--")
right.step(HOURS, found, where="mid", label="found")
right.set(ylabel="counters")
right.tick_params(axis="x", rotation=60)
right.legend()
plt.show()
