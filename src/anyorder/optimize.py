"""maximize, minimize and resume: what users say, checked, and made into a run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypedDict, Unpack

import numpy.typing as npt

from anyorder._checks import did_you_mean
from anyorder.optimizer import Optimizer
from anyorder.result import Result
from anyorder.session.loop import Driver
from anyorder.session.options import Rules, make_rules
from anyorder.session.reading import opened, read_settings
from anyorder.session.study import Study
from anyorder.space import Space
from anyorder.strategies.policy.config import Config, resolve

OnFailure = Literal["raise", "worst", "skip"]


class Machine(TypedDict, total=False):
    """The arguments that say where and how long to run, and nothing of what is run."""

    engine: str
    vectorized: bool
    executor: Any
    workers: int | None
    timeout: float | None
    retries: int
    constraint: Callable[[Any], Any] | None
    target: float | None
    max_seconds: float | None
    patience: int | None
    stop_collapsed: bool
    callback: Callable[[Optimizer], Any] | None
    progress: bool | None


class Options(Machine, total=False):
    """The keyword arguments of `maximize` and `minimize`: see `maximize`."""

    seed: int | None
    config: Config | str
    graph: npt.ArrayLike | None
    asynchronous: bool
    on_failure: OnFailure
    cache: bool
    deterministic: bool
    study: str | os.PathLike[str] | None


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
    executor: Any = None,
    workers: int | None = None,
    asynchronous: bool = False,
    timeout: float | None = None,
    retries: int = 0,
    on_failure: OnFailure = "raise",
    constraint: Callable[[Any], Any] | None = None,
    cache: bool = True,
    deterministic: bool = True,
    study: str | os.PathLike[str] | None = None,
    target: float | None = None,
    max_seconds: float | None = None,
    patience: int | None = None,
    stop_collapsed: bool = False,
    callback: Callable[[Optimizer], Any] | None = None,
    progress: bool | None = None,
) -> Result:
    """Find a point of `space` with a high value of `f` in `budget` evaluations.

    Parameters
    ----------
    f
        Gets a dict for a named space, else a NumPy integer vector, and returns a number. With
        `vectorized` it gets a whole batch (a list of dicts, or a matrix) and returns as many.
        It may raise `anyorder.Infeasible`.
    space
        Where to search.
    budget
        How many points to evaluate. One that is known already costs nothing (see `cache`), and
        neither do further tries of one that failed.
    seed
        An integer makes the run repeatable; None draws one (`result.seed` tells which).
    config
        A preset ("default", "text", "authors") or a `Config`.
    engine
        "cuda", "cpu" or "reference"; "auto" takes the fastest that can run here for one run of
        this size, and logs why (logger "anyorder", INFO).
    graph
        An n x n boolean matrix, True where variables interact, if that is known.
    executor
        Where to evaluate: any `concurrent.futures.Executor`, a Dask `Client`, or "ray".
    workers
        Evaluate in so many local processes; beside `executor`, how many it has, if it does not
        tell.
    asynchronous
        False: a generation at a time; the run is the same with any number of workers. True: a
        candidate goes out whenever a worker is free, so none waits for the slowest.
    timeout
        Seconds an evaluation may take. Without `workers` or `executor` it needs, and gets, one
        worker process. An executor cannot stop what it runs: there, a worker is lost until it ends.
    retries
        How often to try again an evaluation that failed.
    on_failure
        What an exception, NaN, None, a timeout or a dead worker means: "raise" ends the run with
        the error; "worst" ranks the candidate below every one with a value; "skip" leaves it out
        of its generation. Points that failed are remembered and not tried again.
    constraint
        Gets a point and returns whether it may be evaluated. Points it refuses cost nothing and
        rank as those that failed.
    cache
        Whether a point that is known is answered from the history. False pays for it again.
    deterministic
        False: `f` is noisy. Points that come up again are evaluated again, the policy learns from
        the mean of their values, and the best is the one with the best mean.
    study
        A file to keep the run in. If it exists, the run in it goes on as if it had never stopped.
    target
        Stop as soon as a value is at least this good.
    max_seconds
        Stop after this time. What is being evaluated then is dropped.
    patience
        Stop after so many evaluations without improvement.
    stop_collapsed
        Stop when the population has become nearly one point, instead of starting afresh.
    callback
        Called with the `Optimizer` after each generation; stop if it returns something true.
    progress
        Show a bar: True, False, or None: on a terminal, after two seconds.

    Returns
    -------
    Result
        Ctrl-C waits for what is being evaluated and returns what was found so far; a second one
        leaves at once. If candidate after candidate is known or refused, the run ends, and says so
        (`stop_reason` "exhausted").
    """
    options: Options = {
        "seed": seed,
        "config": config,
        "engine": engine,
        "vectorized": vectorized,
        "graph": graph,
        "executor": executor,
        "workers": workers,
        "asynchronous": asynchronous,
        "timeout": timeout,
        "retries": retries,
        "on_failure": on_failure,
        "constraint": constraint,
        "cache": cache,
        "deterministic": deterministic,
        "study": study,
        "target": target,
        "max_seconds": max_seconds,
        "patience": patience,
        "stop_collapsed": stop_collapsed,
        "callback": callback,
        "progress": progress,
    }
    return _run(f, space, budget, "maximize", options)


def minimize(
    f: Callable[..., Any], space: Space, budget: int, **options: Unpack[Options]
) -> Result:
    """Find a point of `space` with a low value of `f`; all else is as in `maximize`."""
    return _run(f, space, budget, "minimize", options)


def resume(
    study: str | os.PathLike[str],
    f: Callable[..., Any],
    budget: int | None = None,
    **options: Unpack[Machine],
) -> Result:
    """Go on with the run that a study holds, as if it had never stopped.

    Parameters
    ----------
    study
        The file that `maximize(..., study=)` made. Space, settings and seed come from it.
    f
        The same function.
    budget
        In all, from the beginning; None: what the run was last given.
    options
        Where to run and when to stop, as in `maximize`: these are not kept in a study. A
        constraint must be given again.
    """
    unknown = options.keys() - Machine.__annotations__.keys()
    if unknown:
        raise TypeError(_unexpected("resume", unknown, Machine.__annotations__))
    with opened(study) as database:
        settings = read_settings(database)
    kept: Options = {
        "study": study,
        "config": Config.from_dict(settings["config"]),
        "graph": settings["graph"],
        "asynchronous": settings["asynchronous"],
        "on_failure": settings["on_failure"],
        "cache": settings["cache"],
        "deterministic": settings["deterministic"],
    }
    spent = settings["budget"] if budget is None else budget
    space = Space.from_dict(settings["space"])
    return _run(f, space, spent, settings["direction"], {**options, **kept})


def _run(
    f: Callable[..., Any], space: Space, budget: int, direction: str, options: Options
) -> Result:
    unknown = options.keys() - Options.__annotations__.keys()
    if unknown:
        raise TypeError(_unexpected(direction, unknown, Options.__annotations__))
    if not callable(f):
        raise TypeError(f"f is {f!r}, expected a function")
    if not isinstance(space, Space):
        raise TypeError(f"space must be a Space, got {space!r}")
    rules = make_rules(budget, options)
    config = resolve(options.get("config", "default"))
    start = time.perf_counter()
    optimizer = Optimizer(
        space,
        options.get("seed"),
        config,
        options.get("engine", "auto"),
        direction=direction,
        graph=options.get("graph"),
    )
    given = options.get("seed") is not None
    with (
        _bar(budget, options.get("progress")) as bar,
        _open(options.get("study"), optimizer, rules, given) as study,
    ):
        drawn = told = 0
        if not study.fresh:
            optimizer, drawn, told = _continued(study, optimizer, options.get("engine", "auto"))
        driver = Driver(f, optimizer, study, rules, bar, drawn, told)
        reason = driver.run()
        best, best_value = optimizer.best, optimizer.best_value
        if not rules.deterministic:
            found = study.best_mean(optimizer._sign)
            if found is not None:
                best, best_value = space.one(study.packing.unpack([found[0]])[0]), found[1]
        return Result(
            best=best,
            best_value=best_value,
            evaluations=driver.paid,
            failures=driver.failed,
            stop_reason=reason,
            seed=optimizer.seed,
            config=optimizer.config,
            engine=optimizer.engine,
            seconds=time.perf_counter() - start,
            study=study.path,
            _history=None if study.path is not None else study.history(optimizer.restarts),
            _optimizer=None if study.path is not None else optimizer,
        )


def _unexpected(what: str, unknown: set[str], known: Iterable[str]) -> str:
    listed = [name + did_you_mean(name, known) for name in sorted(unknown)]
    return f"{what} got unexpected arguments: {', '.join(listed)}"


def _open(
    path: str | os.PathLike[str] | None, optimizer: Optimizer, rules: Rules, seed_given: bool
) -> Study:
    graph = optimizer._layout.graph
    try:
        space = optimizer.space.to_dict()
    except TypeError:
        if path is not None:
            raise
        space = {}
    settings = {
        "direction": optimizer.direction,
        "space": space,
        "config": optimizer.config.to_dict(),
        "graph": None if graph is None else graph.astype(int).tolist(),
        "seed": optimizer.seed,
        "engine": optimizer.engine,
        "asynchronous": rules.asynchronous,
        "on_failure": rules.on_failure,
        "cache": rules.cache,
        "deterministic": rules.deterministic,
        "constraint": rules.constraint is not None,
        "budget": rules.budget,
    }
    return Study(path, optimizer.space, settings, seed_given)


def _continued(study: Study, optimizer: Optimizer, engine: str) -> tuple[Optimizer, int, int]:
    """The optimiser at the last state that a study keeps, or at its beginning."""
    wanted = study.settings["engine"] if engine == "auto" else engine
    kept = study.state()
    if kept is not None:
        return Optimizer.from_state(kept[0], wanted), kept[1], kept[2]
    again = Optimizer(
        optimizer.space, study.settings["seed"], optimizer.config, wanted,
        direction=optimizer.direction, graph=optimizer._layout.graph,
    )  # fmt: skip
    return again, 0, 0


def _bar(budget: int, progress: bool | None) -> Any:
    from tqdm import tqdm

    if progress not in (True, False, None):
        raise ValueError(f"progress is {progress!r}, expected True, False or None")
    disable = None if progress is None else not progress  # None: only on a terminal
    return tqdm(total=budget, unit="eval", disable=disable, delay=0 if progress else 2.0)
