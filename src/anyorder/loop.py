"""maximize and minimize: the loop around ask and tell."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from ._checks import integer, number, numbers
from .candidates import Codes
from .config import Config
from .optimizer import Optimizer
from .result import History, Result
from .space import Space

Values = npt.NDArray[np.float64]


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
        "cuda", "cpu" or "reference"; "auto" takes the fastest that can run here for one run of
        this size, and logs why (logger "anyorder", INFO).
    graph
        An n x n boolean matrix, True where variables interact, if that is known.
    target
        Stop as soon as a value is at least this good.
    callback
        Called with the `Optimizer` after each batch; stop if it returns something true.
    progress
        Show a bar: True, False, or None: on a terminal, after two seconds.

    Returns
    -------
    Result
        Ctrl-C returns what was found so far, every finished evaluation counted.
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
    unknown = options.keys() - Options.__annotations__.keys()
    if unknown:
        raise TypeError(f"{direction} got unexpected arguments: {', '.join(sorted(unknown))}")
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
    record = _Record()
    reason = "budget"
    with _bar(budget, options.get("progress")) as bar:
        try:
            while optimizer.told < budget:
                size = min(optimizer.config.population, budget - optimizer.told)
                drawn, generation = optimizer._draw(size), optimizer.generation
                got: list[float] = []
                try:
                    _evaluate(f, space.decode(drawn), bool(options.get("vectorized")), got)
                finally:  # what is finished counts, whatever stops the rest
                    finished, values = drawn[: len(got)], np.array(got, np.float64)
                    record.add(finished, values, generation)
                    optimizer._take(finished, values)
                bar.update(size)
                bar.set_postfix_str(
                    f"best {optimizer.best_value:.6g}, diversity {optimizer.diversity:.3f}, "
                    f"restarts {len(optimizer.restarts)}",
                    refresh=False,
                )
                if target is not None and _reached(optimizer, target):
                    reason = "target"
                    break
                if callback is not None and callback(optimizer):
                    reason = "callback"
                    break
        except KeyboardInterrupt:
            reason = "interrupted"
    return Result(
        best=optimizer.best,
        best_value=optimizer.best_value,
        history=record.history(optimizer),
        stop_reason=reason,
        seed=optimizer.seed,
        config=optimizer.config,
        engine=optimizer.engine,
        seconds=time.perf_counter() - start,
    )


class _Record:
    """The evaluations so far, a batch at a time."""

    def __init__(self) -> None:
        self._batches: list[tuple[Codes, Values, npt.NDArray[np.int64]]] = []

    def add(self, codes: Codes, values: Values, generation: int) -> None:
        self._batches.append((codes, values, np.full(len(values), generation, np.int64)))

    def history(self, optimizer: Optimizer) -> History:
        none = (np.empty((0, len(optimizer.space)), np.int32), np.empty(0), np.empty(0, np.int64))
        codes, values, generations = (
            np.concatenate(parts) for parts in zip(none, *self._batches, strict=True)
        )
        return History(
            space=optimizer.space,
            maximized=optimizer.direction == "maximize",
            values=values,
            codes=codes,
            generations=generations,
            restarts=optimizer.restarts,
        )


def _evaluate(f: Callable[..., Any], candidates: Any, vectorized: bool, got: list[float]) -> None:
    """Evaluate a batch; every value goes to `got` as soon as it is there."""
    if vectorized:
        size = len(candidates)  # before f can change it
        got.extend(numbers(f(candidates), size))
        return
    for candidate in candidates:
        shown = candidate.copy()
        value = number("what f returned", f(candidate))
        if math.isnan(value):
            raise ValueError(f"f returned NaN or None for {shown!r}, expected a number")
        got.append(value)


def _reached(optimizer: Optimizer, target: float) -> bool:
    if optimizer.direction == "maximize":
        return optimizer.best_value >= target
    return optimizer.best_value <= target


def _bar(budget: int, progress: bool | None) -> Any:
    from tqdm import tqdm

    if progress not in (True, False, None):
        raise ValueError(f"progress is {progress!r}, expected True, False or None")
    disable = None if progress is None else not progress  # None: only on a terminal
    return tqdm(total=budget, unit="eval", disable=disable, delay=0 if progress else 2.0)
