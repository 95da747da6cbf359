"""
Sensor placement
================

Where should five sensors stand so that together they see as much of a hilly area as possible? A
sensor sees places that are near and not behind a hill. The decision is a subset of the sites, of a
given size.
"""

import matplotlib.pyplot as plt
import numpy as np

import anyorder as ao

SIDE, RANGE = 24, 10
rng = np.random.default_rng(0)
y, x = np.mgrid[:SIDE, :SIDE]
height = np.zeros((SIDE, SIDE))
for top, row, column, width in rng.random((25, 4)) * [15, SIDE, SIDE, 3]:
    height += top * np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * (1.5 + width) ** 2))

sites = [(int(row), int(column)) for row, column in rng.integers(0, SIDE, (80, 2))]
sites = sorted(set(sites))


def view(site):
    """Which cells a sensor on a mast of 1 m sees: no cell on the way is above the line of sight."""
    seen = np.zeros((SIDE, SIDE), bool)
    eye = height[site] + 1
    for target in np.argwhere((y - site[0]) ** 2 + (x - site[1]) ** 2 <= RANGE**2):
        steps = max(1, int(np.abs(target - site).max()))
        way = np.linspace(0, 1, steps + 1)[1:-1, None]
        cells = np.rint(site + way * (target - site)).astype(int)
        line = eye + way[:, 0] * (height[tuple(target)] + 0.2 - eye)
        seen[tuple(target)] = (height[cells[:, 0], cells[:, 1]] <= line).all()
    return seen


views = {site: view(site) for site in sites}
space = ao.Space({"sensors": ao.Subset(sites, size=5)})


def seen(chosen):
    return np.any([views[site] for site in chosen], axis=0)


# %%
# The search exchanges sites and learns which of them go together.
result = ao.maximize(lambda point: seen(point["sensors"]).mean(), space, budget=500, seed=0)

# %%
# A common method without a search is greedy: place one sensor at a time, each where it sees the
# largest new area.
greedy = []
for _ in range(5):
    greedy.append(max(sites, key=lambda site: seen([*greedy, site]).sum()))
print(f"of the area, greedy sees {seen(greedy).mean():.1%}, the best found {result.best_value:.1%}")

figure, both = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for axes, chosen, title in zip(both, (greedy, result.best["sensors"]), ("greedy", "found")):
    axes.imshow(height, cmap="Greys")
    hidden = np.where(seen(chosen), np.nan, 1.0)
    axes.imshow(hidden, cmap="Blues", vmin=0, vmax=1.5, alpha=0.7)
    axes.plot(*np.array(sites).T[::-1], ".", color="k", markersize=3)
    axes.plot(*np.array(chosen).T[::-1], "^", color="#D55E00", markersize=9)
    axes.set(
        title=f"{title}: {seen(chosen).mean():.1%} seen, the rest is blue", xticks=[], yticks=[]
    )
plt.show()
