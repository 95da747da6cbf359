"""maximize and minimize: the loop around ask and tell."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from ._checks import integer, number, numbers
from .config import Config
from .optimizer import Optimizer
from .result import History, Result
from .space import Space


class Options(TypedDict, total=False):
    """The keyword arguments of `maximize` and `minimize`: see `maximize`."""

    seed: int | None
    config: Config | str
    engine: str
    vectorized: bool
    graph: npt.ArrayLike | None
    target: float | None
    callback: Callable[[Optimizer], Any] | None
    progress: bool | None


def maximize(
    f: Callable[..., Any],
    space: Space,
    budget: int,
    *,
    seed: int | None = None,
    config: Config | str = "default",
    engine: str = "auto",
    vectorized: bool = False,
    graph: npt.ArrayLike | None = None,
    target: float | None = None,
    callback: Callable[[Optimizer], Any] | None = None,
    progress: bool | None = None,
) -> Result:
    """Find a point of `space` with a high value of `f` in `budget` evaluations.

    Parameters
    ----------
    f
        Gets a dict for a named space, else a NumPy integer vector, and returns a number. With
        `vectorized` it gets a whole batch (a list of dicts, or a matrix) and returns as many.
    space
        Where to search.
    budget
        How many points to evaluate. Points that come up again are evaluated, and count, again.
    seed
        An integer makes the run repeatable; None draws one (`result.seed` tells which).
    config
        A preset ("default", "text", "authors") or a `Config`.
    engine
        "auto", "cpu" or "reference".
    graph
        An n x n boolean matrix, True where variables interact, if that is known.
    target
        Stop as soon as a value is at least this good.
    callback
        Called with the `Optimizer` after each batch; stop if it returns True.
    progress
        Show a bar: True, False, or None: on a terminal, after two seconds.

    Returns
    -------
    Result
        Ctrl-C returns what was found so far.
    """
    options: Options = {
        "seed": seed,
        "config": config,
        "engine": engine,
        "vectorized": vectorized,
        "graph": graph,
        "target": target,
        "callback": callback,
        "progress": progress,
    }
    return _run(f, space, budget, "maximize", **options)


def minimize(
    f: Callable[..., Any], space: Space, budget: int, **options: Unpack[Options]
) -> Result:
    """Find a point of `space` with a low value of `f`; all else is as in `maximize`."""
    return _run(f, space, budget, "minimize", **options)


def _run(
    f: Callable[..., Any], space: Space, budget: int, direction: str, **options: Unpack[Options]
) -> Result:
    if not callable(f):
        raise TypeError(f"f is {f!r}, expected a function")
    budget = integer("budget", budget, 1)
    target, callback = options.get("target"), options.get("callback")
    if target is not None and math.isnan(number("target", target)):
        raise ValueError(f"target is {target!r}, expected a number")
    start = time.perf_counter()
    optimizer = Optimizer(
        space,
        options.get("seed"),
        options.get("config", "default"),
        options.get("engine", "auto"),
        direction=direction,
        graph=options.get("graph"),
    )
    evaluate = _batch if options.get("vectorized", False) else _one_by_one
    values = np.empty(budget)
    codes = np.empty((budget, len(space)), np.int32)
    generations = np.empty(budget, np.int64)
    reason = "budget"
    with _bar(budget, options.get("progress")) as bar:
        while (done := optimizer.told) < budget:
            size = min(optimizer.config.population, budget - done)
            batch = slice(done, done + size)
            codes[batch] = drawn = optimizer._draw(size)
            generations[batch] = optimizer.generation
            try:
                values[batch] = evaluate(f, space.decode(drawn))
                optimizer._take(drawn, values[batch])
            except KeyboardInterrupt:
                reason = "interrupted"
                break
            bar.update(size)
            bar.set_postfix_str(
                f"best {optimizer.best_value:.6g}, diversity {optimizer.diversity:.3f}, "
                f"restarts {len(optimizer.restarts)}",
                refresh=False,
            )
            if target is not None and _reached(optimizer, target):
                reason = "target"
                break
            if callback is not None and callback(optimizer) is True:
                reason = "callback"
                break
    told = optimizer.told
    history = History(
        space=space,
        maximized=direction == "maximize",
        values=values[:told],
        codes=codes[:told],
        generations=generations[:told],
        restarts=optimizer.restarts,
    )
    return Result(
        best=optimizer.best,
        best_value=optimizer.best_value,
        history=history,
        stop_reason=reason,
        seed=optimizer.seed,
        config=optimizer.config,
        engine=optimizer.engine,
        seconds=time.perf_counter() - start,
    )


def _batch(f: Callable[..., Any], candidates: Any) -> npt.NDArray[np.float64]:
    size = len(candidates)
    return numbers(f(candidates), size)


def _one_by_one(f: Callable[..., Any], candidates: Any) -> npt.NDArray[np.float64]:
    got = np.empty(len(candidates))
    for k, candidate in enumerate(candidates):
        got[k] = number("what f returned", f(candidate))
        if math.isnan(got[k]):
            raise ValueError(f"f returned NaN or None for {candidate!r}, expected a number")
    return got


def _reached(optimizer: Optimizer, target: float) -> bool:
    if optimizer.direction == "maximize":
        return optimizer.best_value >= target
    return optimizer.best_value <= target


def _bar(budget: int, progress: bool | None) -> Any:
    from tqdm import tqdm

    disable = {True: False, False: True, None: None}[progress]  # None: only on a terminal
    return tqdm(total=budget, unit="eval", disable=disable, delay=0 if progress else 2.0)
