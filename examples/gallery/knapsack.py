"""
Knapsack with capacities
========================

Which of 60 items should be loaded if weight, volume and price are limited, and some items are
worth more together? The decision is a subset, and the limits are constraints: a load that exceeds
a limit is repaired before it is evaluated.
"""

import matplotlib.pyplot as plt
import numpy as np

import anyorder as ao

rng = np.random.default_rng(0)
items = list(range(60))
needs = rng.integers(5, 100, (3, len(items)))  # weight, volume and price of each item
worth = needs.mean(axis=0) + rng.integers(0, 40, len(items))
together = np.triu(rng.integers(0, 30, (60, 60)) * (rng.random((60, 60)) < 0.05), 1)
capacity = 0.35 * needs.sum(axis=1)

space = ao.Space({"load": ao.Subset(items)})


def value(point):
    load = point["load"]
    return worth[load].sum() + together[np.ix_(load, load)].sum()


# %%
# The constraint returns how much each limit is exceeded. Numbers guide the repair better than True
# or False.
def exceeded(point):
    return list(needs[:, point["load"]].sum(axis=1) - capacity)


result = ao.maximize(value, space, budget=600, seed=0, constraint=exceeded)

# %%
# A common method without a search is greedy: take the items with the highest worth for what they
# need, as long as they fit.
greedy = []
for item in np.argsort(-worth / (needs / capacity[:, None]).sum(axis=0)):
    if max(exceeded({"load": [*greedy, item]})) <= 0:
        greedy.append(item)
print(f"greedy {value({'load': greedy}):.0f}, found {result.best_value:.0f}")

evaluated = np.cumsum(~result.history.cached)  # refused points do not count
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.step(evaluated, result.history.best, where="post", label="anyorder")
left.axhline(value({"load": greedy}), color="0.5", linestyle="--", label="greedy")
left.set(xlabel="loads evaluated", ylabel="value, best so far")
left.legend()
used = needs[:, result.best["load"]].sum(axis=1) / capacity
right.bar(["weight", "volume", "price"], used)
right.axhline(1, color="k")
right.set(ylabel="share of the capacity that is used")
plt.show()
