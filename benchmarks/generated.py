"""Everyday functions on which to compare algorithms; instances are drawn from a seed.

Each generator takes a `numpy.random.Generator`, and returns a space and a function of integer codes
to maximise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import anyorder as ao

Function = Callable[[Any], float]
Drawn = tuple[ao.Space, Function]


def knapsack(rng: np.random.Generator, n: int = 60, rows: int = 3) -> Drawn:
    """Items with pairwise synergies, several capacities, and a penalty for what exceeds them."""
    weights = rng.integers(5, 100, (rows, n))
    worth = weights.mean(axis=0) + rng.integers(0, 40, n)
    capacity = weights.sum(axis=1) * rng.uniform(0.25, 0.5)
    synergy = np.triu(rng.integers(0, 30, (n, n)) * (rng.random((n, n)) < 0.05), 1)

    def f(x: Any) -> float:
        over = np.maximum(weights @ x - capacity, 0).sum()
        return float(worth @ x + x @ synergy @ x - 15 * over)

    return ao.Space([ao.Binary() for _ in range(n)]), f


def schedule(rng: np.random.Generator, jobs: int = 40, machines: int = 5) -> Drawn:
    """Which machine runs each job, given durations, precedences, transfers and due dates."""
    duration = rng.integers(5, 60, (jobs, machines)).tolist()
    before = [[k for k in range(j) if rng.random() < 0.08] for j in range(jobs)]
    transfer = rng.integers(5, 30, (jobs, jobs)).tolist()
    due = (np.cumsum(np.mean(duration, axis=1)) / rng.uniform(2.5, 4) + 20).tolist()
    weight = rng.integers(1, 6, jobs).tolist()

    def f(x: Any) -> float:
        free, end, late = [0.0] * machines, [0.0] * jobs, 0.0
        point = x.tolist()
        for j, m in enumerate(point):
            start = free[m]
            for k in before[j]:
                start = max(start, end[k] + (transfer[k][j] if point[k] != m else 0))
            end[j] = free[m] = start + duration[j][m]
            late += weight[j] * max(0.0, end[j] - due[j])
        return -float(max(end) + 0.2 * late)

    return ao.Space([ao.Categorical(range(machines)) for _ in range(jobs)]), f


def median(rng: np.random.Generator, sites: int = 50, open_sites: int = 8) -> Drawn:
    """Open exactly so many sites (each more or less is penalised) near to the customers."""
    places, customers = rng.random((sites, 2)), rng.random((150, 2))
    demand = rng.integers(1, 20, len(customers))
    distance = np.linalg.norm(customers[:, None] - places[None], axis=2)

    def f(x: Any) -> float:
        chosen = np.flatnonzero(x)
        if not len(chosen):
            return -2000.0
        cost = demand @ distance[:, chosen].min(axis=1)
        return -float(cost + 50.0 * abs(len(chosen) - open_sites))

    return ao.Space([ao.Binary() for _ in range(sites)]), f


def flags(rng: np.random.Generator, n: int = 50) -> Drawn:
    """Compiler flags: the logarithm of a run time with few effects, some pairs, and categories."""
    kinds = [2] * (n - 10) + [int(k) for k in rng.integers(3, 7, 10)]
    effect = [rng.normal(0, 1, k) * (rng.random() < 0.4) for k in kinds]
    pairs = []
    for _ in range(2 * n):
        i, j = rng.choice(n, 2, replace=False).tolist()
        pairs.append((i, j, rng.normal(0, 0.7, (kinds[i], kinds[j]))))
    triples = []
    for _ in range(n // 2):
        i, j, k = rng.choice(n, 3, replace=False).tolist()
        triples.append((i, j, k, rng.normal(0, 0.7, (kinds[i], kinds[j], kinds[k]))))

    def f(x: Any) -> float:
        point = x.tolist()
        total = sum(table[value] for table, value in zip(effect, point, strict=True))
        total += sum(table[point[i], point[j]] for i, j, table in pairs)
        total += sum(table[point[i], point[j], point[k]] for i, j, k, table in triples)
        return -float(np.exp(3.0 - 0.05 * total))

    return ao.Space([ao.Categorical(range(k)) if k > 2 else ao.Binary() for k in kinds]), f


def lots(rng: np.random.Generator, products: int = 6, periods: int = 4) -> Drawn:
    """Integer lot sizes 0..200 per product and period: set-up, holding and shortage costs."""
    demand = rng.poisson(rng.integers(10, 80, (products, 1)), (products, periods))
    setup, hold = rng.uniform(50, 400, products), rng.uniform(0.5, 3, products)
    short, capacity = rng.uniform(5, 20, products), demand.sum(axis=0).mean() * 1.1

    def f(x: Any) -> float:
        lot = np.asarray(x).reshape(products, periods)
        stock = np.cumsum(lot - demand, axis=1)
        cost = (hold[:, None] * np.maximum(stock, 0) + short[:, None] * np.maximum(-stock, 0)).sum()
        over = np.maximum(lot.sum(axis=0) - capacity, 0).sum()
        return -float(cost + (setup[:, None] * (lot > 0)).sum() + 10 * over)

    return ao.Space([ao.Integer(0, 200) for _ in range(products * periods)]), f


def blocks(rng: np.random.Generator, count: int = 12, k: int = 5) -> Drawn:
    """Deceptive traps over random groups of variables."""
    groups = rng.permutation(count * k).reshape(count, k)
    goal = rng.integers(0, 2, count * k)

    def f(x: Any) -> float:
        ones = (x == goal)[groups].sum(axis=1)
        return float(np.where(ones == k, k, k - 1 - ones).sum())

    return ao.Space([ao.Binary() for _ in range(count * k)]), f


def ranking(rng: np.random.Generator, n: int = 64) -> Drawn:
    """Feature selection for linear regression: adjusted R squared on correlated columns."""
    mix = rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.1) + np.eye(n)
    data = rng.normal(size=(200, n)) @ mix
    target = data @ (rng.normal(size=n) * (rng.random(n) < 0.2)) + 3 * rng.normal(size=200)
    train, test = slice(0, 100), slice(100, 200)

    def f(x: Any) -> float:
        chosen = np.flatnonzero(x)
        if not len(chosen):
            return 0.0
        a = data[train][:, chosen]
        w = np.linalg.solve(a.T @ a + 0.1 * np.eye(len(chosen)), a.T @ target[train])
        error = np.mean((target[test] - data[test][:, chosen] @ w) ** 2)
        return float(1 - error / np.var(target[test]) - 0.002 * len(chosen))

    return ao.Space([ao.Binary() for _ in range(n)]), f


FUNCTIONS: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "knapsack": knapsack,
    "schedule": schedule,
    "median": median,
    "flags": flags,
    "lots": lots,
    "blocks": blocks,
    "ranking": ranking,
}


def transformed(drawn: Drawn, how: str, seed: int) -> Drawn:
    """The function through exp, a power, or with noise of so many per cent of its deviation."""
    space, f = drawn
    rng = np.random.default_rng(seed)
    sample = [f(rng.integers(space.cardinalities)) for _ in range(500)]
    centre, width = float(np.mean(sample)), float(np.std(sample))

    def g(x: Any) -> float:
        value = (f(x) - centre) / width
        if how == "exp":
            return float(np.exp(value))
        if how == "power":
            return float(value * abs(value) ** 1.5 if value > 0 else -np.sqrt(-value))
        return value + float(how.removeprefix("noise")) / 100 * rng.normal()

    def truth(x: Any) -> float:
        return (f(x) - centre) / width

    g.truth = truth  # type: ignore[attr-defined]
    return space, g
