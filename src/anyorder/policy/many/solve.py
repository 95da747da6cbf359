"""solve_many: check the arguments and choose a driver."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import graph as checked_graph
from anyorder._internal.checks import integer
from anyorder.policy.many.base import Log, Task
from anyorder.policy.many.host import run_host
from anyorder.policy.many.objective import Objective, Pointwise, Problems, Torch, Vectorized
from anyorder.policy.many.runs import Runs
from anyorder.problems import Problem
from anyorder.run.options import Stopping
from anyorder.run.progress import progress_bar
from anyorder.run.stopping import Rule
from anyorder.space import Space
from anyorder.strategies.policy.config import Config, resolve
from anyorder.strategies.policy.engines import Engine, create, model_of
from anyorder.strategies.policy.engines.memory import memory_here

__all__ = ["solve_many"]

Ints = npt.NDArray[np.int64]
_MOST_RUNS = 10**7


def solve_many(
    problem: Problem | Sequence[Problem] | Callable[..., Any],
    *,
    runs: int | None = None,
    budget: int,
    seeds: int | Sequence[int] | None = None,
    space: Space | None = None,
    direction: str = "maximize",
    config: Config | str = "default",
    engine: str = "auto",
    vectorized: bool | str = False,
    graph: npt.ArrayLike | None = None,
    target: float | None = None,
    max_seconds: float | None = None,
    patience: int | None = None,
    stop: Rule | Sequence[Rule] = (),
    grid: int | Sequence[int] = 100,
    progress: bool | None = None,
) -> Runs:
    """Run the policy many times in lockstep, as one batch; this is not for other strategies.

    Each run is what `maximize` or `minimize` gives with `algorithm=Policy(config, engine, graph)`,
    its seed and `cache=False`: points that are proposed again are evaluated again. On one engine a
    run is the same, bit for bit, alone and in a batch of any size and order. Runs stop
    independently. If the function raises an exception in a run, or returns no number, that run is
    `"failed"` and has the error, while the others continue. If memory does not hold all runs at
    once, they are done in several batches.

    Parameters
    ----------
    problem
        A `Problem`, several problems with one space, or a function together with `space`.
    runs
        The number of runs of each problem; by default as many as `seeds` has, or one.
    budget
        The evaluations of each run.
    seeds
        A seed for each run, with the first problem's runs first. An integer s stands for s, s + 1,
        ..., and None for 0, 1, ...
    space
        The space to search, for a function; problems have one.
    direction
        "maximize" or "minimize", for a function; problems have a direction.
    config, graph
        As in `Policy`.
    progress
        As in `maximize`.
    engine
        "cuda", "cpu" or "reference"; "auto" takes the fastest that can run here for so many runs.
    vectorized
        For functions of a nameless space. If False, the function receives one point. If True, it
        receives the candidates of all active runs, integers of shape (runs, candidates, n), and
        returns numbers of shape (runs, candidates). With "torch" it receives them as a tensor on
        the engine's device, and returns a tensor or an array. On a GPU, runs that have ended stay
        in the batch, and their values are ignored; if memory is scarce, the batch is cut into
        chunks of runs, which are done one after the other. An exception of a vectorised function
        ends all runs; NaN ends the runs that it belongs to.
    target
        A run stops after the batch in which a value is at least as good as this one.
    max_seconds, patience, stop
        Further rules that stop a run after a batch, as in `maximize`. The time is that of the whole
        call. On a GPU these rules move the bookkeeping to the host, which is slower.
    grid
        Where `curves` are taken: an interval, for multiples of it and the budget, or increasing
        numbers of evaluations.

    Returns
    -------
    Runs
        A sequence of `Run`, and arrays over all of them. Ctrl-C returns what was found so far.

    Examples
    --------
    >>> problems = [ao.problems.nk(64, 4, seed) for seed in range(10)]
    >>> runs = ao.policy.solve_many(problems, runs=10, budget=1_000)
    >>> runs.best_values.reshape(10, 10).mean(axis=1)  # of each problem
    """
    start = time.perf_counter()
    problems = _problems_in(problem, vectorized)
    direction = _direction(direction, problems)
    space = _space(space, problems)
    count, all_seeds = _seeds(runs, seeds, max(1, len(problems)))
    each = [instance for instance in problems for _ in range(count)]
    objective = _objective(problem, each, space, vectorized)
    budget = integer("budget", budget, 1)
    _check_memory(len(all_seeds), budget)
    places = _grid(grid, budget)
    stopping = Stopping(
        budget=budget, target=target, max_seconds=max_seconds, patience=patience, stop=stop
    )
    config = resolve(config)
    known = None if graph is None else checked_graph(graph, len(space))
    layout, digits = model_of(space, config, known)
    chosen = create(engine, layout, len(all_seeds))
    sign = 1.0 if direction == "maximize" else -1.0
    task = Task(space, digits, config, all_seeds, budget, sign, stopping)
    with progress_bar(budget * len(all_seeds), progress) as bar:
        log = _run(chosen, objective, task, bar)
    return Runs(
        seeds=all_seeds,
        problems=tuple(instance.name for instance in each) or None,
        grid=places,
        curves=_curves(log, places, direction),
        best_values=log.best_values,
        best_codes=log.best_codes,
        values=log.values,
        evaluations=log.evaluations,
        restarts=tuple(map(tuple, log.restarts)),
        stop_reasons=tuple(log.stop_reasons),
        errors=tuple(log.errors),
        direction=direction,
        space=space,
        config=config,
        engine=chosen.name,
        seconds=time.perf_counter() - start,
    )


def _run(engine: Engine, objective: Objective, task: Task, bar: Any) -> Log:
    """Do all runs, as many at a time as the memory of the GPU or of the machine holds."""
    driver, total = run_host, len(task.seeds)
    size = engine.runs_that_fit(total, task.budget)
    if engine.name == "cuda":  # only then is PyTorch certainly installed
        from anyorder.policy.many.device import run_device, runs_here

        if runs_here(engine, objective, task):
            driver = run_device
    logs: list[Log] = []
    for first in range(0, total, size):
        runs = range(first, min(first + size, total))
        own = replace(task, seeds=task.seeds[runs.start : runs.stop])
        if logs and "interrupted" in logs[-1].stop_reasons:
            logs.append(Log.start(own))
        else:
            logs.append(driver(engine, objective.part(runs), own, bar))
    return Log.join(logs)


def _check_memory(runs: int, budget: int) -> None:
    """Raise if the values of all runs do not fit into memory, where they stay until the end."""
    need, have = 8 * runs * budget, memory_here()
    if need > 0.9 * have:
        fit = int(0.9 * have / (8 * budget)) or "not even one"
        raise MemoryError(
            f"{runs} runs of {budget} evaluations have {need / 2**30:.1f} GiB of values, and this "
            f"machine has {have / 2**30:.1f}; of such runs it holds {fit}"
        )


def _problems_in(problem: Any, vectorized: Any) -> list[Problem]:
    """Return the problems; an empty list for a function."""
    if not isinstance(vectorized, bool) and vectorized != "torch":
        raise ValueError(f"vectorized is {vectorized!r}, expected False, True or 'torch'")
    if isinstance(problem, Problem):
        problems = [problem]
    elif isinstance(problem, Sequence) and not isinstance(problem, str | bytes):
        if not problem:
            raise ValueError("problem is an empty list, expected at least one Problem")
        for k, entry in enumerate(problem):
            if not isinstance(entry, Problem):
                raise TypeError(f"problem[{k}] is {entry!r}, expected a Problem")
        problems = list(problem)
    elif callable(problem):
        return []
    else:
        raise TypeError(f"problem is {problem!r}, expected a Problem, several, or a function")
    if vectorized:
        raise ValueError(
            f"vectorized is {vectorized!r}, expected False: it is for functions, and problems are "
            "evaluated in batches as they are"
        )
    return problems


def _direction(direction: str, problems: list[Problem]) -> str:
    if direction not in ("maximize", "minimize"):
        raise ValueError(f"direction is {direction!r}, expected 'maximize' or 'minimize'")
    if not problems:
        return direction
    own = {str(problem.direction) for problem in problems}
    if len(own) > 1:
        raise ValueError("some problems are to be maximised, some minimised, expected one kind")
    # "maximize" may be the default, so it does not contradict a problem
    if direction == "minimize" and own != {"minimize"}:
        raise ValueError(
            f"direction is 'minimize', but {problems[0].name} is to be maximised; "
            "to minimise it give a function that calls it"
        )
    return own.pop()


def _space(space: Space | None, problems: list[Problem]) -> Space:
    if space is not None and not isinstance(space, Space):
        raise TypeError(f"space is {space!r}, expected a Space")
    if not problems:
        if space is None:
            raise ValueError("space is None, expected the Space that the function is defined on")
        return space
    first = problems[0]
    if first.space.named:
        raise ValueError(f"{first.name} has a named space, expected a nameless one")
    for other in problems[1:]:
        if other.space != first.space:
            raise ValueError(
                f"{other.name} has {other.space}, expected {first.space} as {first.name}: "
                "the problems of one batch share a space"
            )
    if space is not None and space != first.space:
        raise ValueError(f"space is {space}, expected None or {first.space} as {first.name}")
    return first.space


def _seeds(runs: Any, seeds: Any, problems: int) -> tuple[int, tuple[int, ...]]:
    """Return the number of runs of each problem, and the seeds of all runs."""
    largest = 2**64 - 1
    if runs is not None:
        runs = integer("runs", runs, 1, _MOST_RUNS)
    if seeds is None or (hasattr(seeds, "__index__") and not isinstance(seeds, np.ndarray)):
        runs = 1 if runs is None else runs
        first = 0 if seeds is None else integer("seeds", seeds, 0, largest - problems * runs + 1)
        return runs, tuple(range(first, first + problems * runs))
    several = isinstance(seeds, Sequence | np.ndarray) and not isinstance(seeds, str | bytes)
    if not several or getattr(seeds, "ndim", 1) != 1:
        raise TypeError(f"seeds is {seeds!r}, expected an integer or a sequence of integers")
    listed = tuple(integer(f"seeds[{k}]", seed, 0, largest) for k, seed in enumerate(seeds))
    if runs is None and (not listed or len(listed) % problems):
        expected = f"expected a multiple of {problems}, the number of problems"
        raise ValueError(f"seeds has {len(listed)} entries, {expected}")
    if runs is not None and len(listed) != problems * runs:
        expected = f"expected {problems * runs}: problems x runs = {problems} x {runs}"
        raise ValueError(f"seeds has {len(listed)} entries, {expected}")
    return len(listed) // problems, listed


def _objective(
    problem: Any, each: list[Problem], space: Space, vectorized: bool | str
) -> Objective:
    if each:
        return Problems(each, space)
    if not vectorized:
        return Pointwise(problem, space)
    if space.named:
        raise ValueError(
            f"vectorized is {vectorized!r}, expected False: the points of a named space are dicts"
        )
    if vectorized == "torch":
        if importlib.util.find_spec("torch") is None:
            raise ImportError("vectorized='torch' needs PyTorch: pip install torch", name="torch")
        return Torch(problem, space)
    return Vectorized(problem, space)


def _grid(grid: Any, budget: int) -> Ints:
    if not isinstance(grid, Sequence | np.ndarray) or isinstance(grid, str | bytes):
        step = integer("grid", grid, 1)
        places = list(range(step, budget, step))
        return np.array([*places, budget], np.int64)
    if getattr(grid, "ndim", 1) != 1 or not len(grid):
        raise ValueError(f"grid is {grid!r}, expected an integer or a sequence of integers")
    places = [integer(f"grid[{k}]", place, 1, budget) for k, place in enumerate(grid)]
    if any(np.diff(places) <= 0):
        raise ValueError(f"grid is {grid!r}, expected increasing numbers of evaluations")
    return np.array(places, np.int64)


def _curves(log: Log, grid: Ints, direction: str) -> npt.NDArray[np.float64]:
    """Return the best value so far of every run at the grid; see `Runs` for the end of a run."""
    best = np.fmax if direction == "maximize" else np.fmin  # these ignore NaN
    curves: npt.NDArray[np.float64] = best.accumulate(log.values, axis=1)[:, grid - 1]
    for r, reason in enumerate(log.stop_reasons):
        if reason in ("failed", "interrupted"):
            curves[r, grid > log.evaluations[r]] = np.nan
    return curves
