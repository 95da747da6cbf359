"""Distance of a population to the best point so far, as in figure 1b of the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.bench.algorithms.naming import split
from anyorder.bench.algorithms.ours import configure
from anyorder.policy.many import solve_many
from anyorder.problems import Problem, together
from anyorder.strategies.policy.engines import choose, model_of


def measure(
    method: str,
    problems: Sequence[Problem],
    budget: int,
    seeds: Sequence[int],
    engine: str = "auto",
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Measure the mean distances `(runs, G)`, one per generation, and the evaluations `(G,)`.

    There is one run of the method on each of the problems, which share a space. `method` is the
    name of the method as in a campaign.
    """
    kind, detail, settings = split(method)
    if kind != "policy":
        raise ValueError(f"method is {method!r}, expected policy or policy:PRESET")
    config, chosen = configure(detail, {"engine": engine, **settings})
    space = problems[0].space
    if chosen == "auto":
        layout = model_of(space, config)[0]
        chosen = choose(layout, len(problems))[0]
    watched = Watched(together(list(problems)))
    solve_many(
        watched, space=space, budget=budget, seeds=list(seeds), config=config, engine=chosen,
        vectorized="torch" if chosen == "cuda" else True, progress=False,
    )  # fmt: skip
    means, _ = watched.distances()
    evaluations = np.minimum(budget, config.population * np.arange(1, means.shape[1] + 1))
    return evaluations, means


class Watched:
    """A vectorised objective for `solve_many` that records distances.

    It receives points `(runs, candidates, n)` from NumPy or torch, and passes them to `evaluate`.
    """

    def __init__(self, evaluate: Callable[[Any], Any]) -> None:
        self._evaluate = evaluate
        self._best: Any = None
        self._value: Any = None
        self._means: list[Any] = []
        self._spreads: list[Any] = []

    def __call__(self, points: Any) -> Any:
        """Evaluate the points, and record their distances."""
        values = self._evaluate(points)
        where, rows = _tools(values)
        top = values.argmax(1)
        value, best = values[rows, top], points[rows, top]
        if self._best is not None:
            better = value > self._value
            value = where(better, value, self._value)
            best = where(better[:, None], best, self._best)
        self._value, self._best = value, best
        apart = (points != best[:, None]).sum(-1) * 1.0  # Hamming distances (runs, candidates)
        self._means.append(apart.mean(-1))
        # not std, which differs between NumPy and torch
        self._spreads.append(((apart - apart.mean(-1)[:, None]) ** 2).mean(-1) ** 0.5)
        return values

    def distances(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the means over the population, `(runs, generations)`, and the deviations."""
        return _stack(self._means), _stack(self._spreads)


def _tools(values: Any) -> tuple[Callable[..., Any], Any]:
    if isinstance(values, np.ndarray):
        return np.where, np.arange(len(values))
    import torch

    return torch.where, torch.arange(len(values), device=values.device)


def _stack(parts: list[Any]) -> npt.NDArray[np.float64]:
    return np.stack([np.asarray(p.cpu() if hasattr(p, "cpu") else p, float) for p in parts], axis=1)
