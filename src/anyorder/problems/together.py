"""Several problems with one space as one function, for runs in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anyorder.problems.base import Kernel, Problem, distinct, is_tensor, run_kernel


def together(problems: Sequence[Problem]) -> Callable[[Any], Any]:
    """Return a function that evaluates points (P, ..., n), where slice p belongs to problems[p].

    Its values (P, ...) are those of `Problem.evaluate`, up to rounding, and the notes there about
    NumPy, torch and devices apply. With torch, instances of one class are computed together if the
    class supports it (NK landscapes of equal k, QUBO, OneMax); others are evaluated one after
    another. A problem may occur several times; its constants are stored once on a device.

    Examples
    --------
    >>> runs = [nk(64, 4, seed) for seed in range(10)] * 10
    >>> values = together(runs)(points)  # (100, 10, 64) gives (100, 10)
    """
    problems = list(problems)
    if not problems:
        raise ValueError("problems is empty, expected at least one")
    first = problems[0]
    instances, runs = distinct(problems)
    for other in instances:
        if other.space != first.space:
            raise ValueError(
                f"{first.name} has {first.space} and {other.name} has {other.space}, "
                "expected problems of one space"
            )
    kernels: dict[Any, Kernel] = {}

    def evaluate(points: Any) -> Any:
        x: Any = points if is_tensor(points) else np.asarray(points)
        if x.ndim < 2 or len(x) != len(problems):
            expected = f"({len(problems)}, ..., {len(first.space)})"
            raise ValueError(f"points of shape {tuple(x.shape)}, expected {expected}")
        if is_tensor(x):
            # Slice by slice if values are checked, so that an error names the right problem.
            on_cpu = x.device.type == "cpu"
            for problem, own in zip(problems, x, strict=True) if on_cpu else [(first, x)]:
                problem._check_tensor(own)
            return run_kernel(kernels, problems, x)
        values = np.empty(x.shape[:-1])
        for i, instance in enumerate(instances):
            values[runs == i] = instance.evaluate(x[runs == i])
        return values

    return evaluate
