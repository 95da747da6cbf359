"""Algorithms for `ioh.Experiment` of IOHprofiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import integer, optional, refuse_unknown, require
from anyorder.optimize import maximize, minimize
from anyorder.space import Space
from anyorder.space.variables import Binary, Integer
from anyorder.strategies.create import Algorithm as Given

ioh = require("ioh", "pbo", "anyorder.integrations.ioh requires IOHprofiler")


class Algorithm:
    """An algorithm that `ioh.Experiment` calls with a problem in each of its runs.

    Parameters
    ----------
    algorithm
        The algorithm, as in `anyorder.maximize`.
    budget
        The evaluations of a run.
    seed
        An integer makes the runs repeatable: the seed of each is derived from it, the problem, the
        instance, the number of variables and the repetition.
    name
        The name in ioh's files; by default made from `algorithm`.
    cache
        Whether known points cost nothing. By default they are evaluated again, as the algorithms do
        that IOHprofiler is used to compare.
    options
        Further options of `anyorder.maximize`: `target=`, `patience=`, `max_seconds=` and so on.

    Attributes
    ----------
    run_seed
        The seed of the last run: `ioh.Experiment(..., run_attributes=["run_seed"])` records it.
    """

    def __init__(
        self,
        algorithm: Given | None = None,
        budget: int = 10_000,
        *,
        seed: int | None = None,
        name: str | None = None,
        cache: bool = False,
        **options: Any,
    ) -> None:
        known = maximize.__annotations__.keys() - {"f", "space", "return"}
        refuse_unknown("Algorithm", options, sorted(known))
        self.algorithm, self.budget = algorithm, integer("budget", budget, 1)
        self.seed = optional(integer)("seed", seed)
        self.name, self.options = name, {"progress": False, "cache": cache, **options}
        self.run_seed, self._runs = 0, 0

    def __str__(self) -> str:
        given = "auto" if self.algorithm is None else self.algorithm
        return self.name or (given if isinstance(given, str) else type(given).__name__)

    def __call__(self, problem: Any) -> None:
        """Spend the budget on a problem with integer variables."""
        about = problem.meta_data
        self.run_seed = self._next_seed(about)
        best = maximize if about.optimization_type == ioh.OptimizationType.MAX else minimize

        def f(point: npt.NDArray[np.int64]) -> float:
            value: float = problem(point.tolist())
            return value

        best(f, _space(problem), self.budget, algorithm=self.algorithm, seed=self.run_seed,
             **self.options)  # fmt: skip

    def _next_seed(self, about: Any) -> int:
        self._runs += 1
        if self.seed is None:
            return int(np.random.SeedSequence().generate_state(1)[0])
        which = about.problem_id, about.instance, about.n_variables, self._runs
        return int(np.random.SeedSequence([self.seed, *which]).generate_state(1)[0])


def _space(problem: Any) -> Space:
    if not isinstance(problem, ioh.problem.IntegerSingleObjective):
        expected = "expected one of integers, such as those of ioh.ProblemClass.PBO"
        raise TypeError(f"problem is {problem!r}, {expected}")
    ends = zip(problem.bounds.lb, problem.bounds.ub, strict=True)
    return Space(
        [Binary() if (low, high) == (0, 1) else Integer(int(low), int(high)) for low, high in ends]
    )
