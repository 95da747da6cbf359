"""maximize, minimize and resume: the user's arguments, checked, and made into a session."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import numpy.typing as npt

from anyorder._checks import did_you_mean, function, integer, optional
from anyorder.errors import StudyError
from anyorder.feasibility import Feasibility
from anyorder.knowledge import Known, is_study, read_data, read_points
from anyorder.optimizer import Optimizer
from anyorder.problems.base import Problem
from anyorder.result import Result
from anyorder.session.loop import Session
from anyorder.session.options import Evaluation, Stopping, kept, select
from anyorder.session.progress import progress_bar
from anyorder.session.reading import load, opened, read_settings, translated
from anyorder.session.study import Study
from anyorder.space import Space
from anyorder.strategies.base import Strategy
from anyorder.strategies.create import Algorithm, create, recreate, settings_of
from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.search import PolicySearch

P = ParamSpec("P")
R = TypeVar("R")
# What `resume` accepts: the rest is in the study.
_RESUMABLE = (
    "engine", "vectorized", "executor", "workers", "timeout", "retries", "constraint", "target",
    "max_seconds", "patience", "stop_collapsed", "callback", "progress",
)  # fmt: skip


def maximize(
    f: Callable[..., Any] | Problem,
    space: Space | None = None,
    budget: int | None = None,
    *,
    algorithm: Algorithm | None = None,
    seed: int | None = None,
    config: Config | str | None = None,
    engine: str = "auto",
    graph: npt.ArrayLike | None = None,
    vectorized: bool = False,
    executor: Any = None,
    workers: int | None = None,
    asynchronous: bool = False,
    timeout: float | None = None,
    retries: int = 0,
    on_failure: Literal["raise", "worst", "skip"] = "raise",
    constraint: Callable[[Any], Any] | None = None,
    cache: bool = True,
    deterministic: bool = True,
    start: Any = None,
    data: Any = None,
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
        It may raise `anyorder.Infeasible(violation=...)`. Or one of `anyorder.problems`, which has
        a space.
    space
        Where to search.
    budget
        How many evaluations to spend. A point that is known already costs nothing (see `cache`),
        and neither do further tries of one that failed.
    algorithm
        How to search: a name ("auto", "policy", "ils", "tabu", "umda", ...;
        `anyorder.strategies.names()` lists them), with settings if need be ("policy:paper",
        "boa+population=500"), or an object that keeps the protocol of
        `anyorder.strategies.Strategy`. The default is "auto"; where `config`, `engine` or `graph`
        is given it is "policy", and for thousands of variables "ils".
    seed
        An integer makes the run repeatable; None draws one (`result.seed` tells which).
    config
        For the policy: a preset ("default", "fast", "balanced", "paper", "paper-code") or a
        `Config`.
    engine
        For the policy: "cuda", "cpu" or "reference"; "auto" takes the fastest that can run here
        for one run of this size, and logs why (logger "anyorder", INFO).
    graph
        For the policy: an n x n boolean matrix, True where variables interact, if that is known.
    vectorized
        Whether `f` takes batches.
    executor
        Where to evaluate: any `concurrent.futures.Executor`, a Dask `Client`, or "ray".
    workers
        Evaluate in so many local processes; beside `executor`, how many workers it has, if it does
        not say.
    asynchronous
        False: in batches. The run of an algorithm with batches of its own, such as the policy, is
        the same with any number of workers; one without is asked for as many candidates as there
        are workers. True: a candidate is sent out whenever a worker is free, so that none waits
        for the slowest.
    timeout
        Seconds that an evaluation may take. Without `workers` or `executor` it uses one worker
        process. An executor cannot stop what it runs: a worker past its time limit is lost until
        it ends.
    retries
        How often to try again an evaluation that failed.
    on_failure
        What an exception, NaN, None, a timeout or a dead worker means: "raise" ends the run with
        the error; "worst" ranks the candidate below every one with a value; "skip" does not learn
        from it. Points that failed are remembered and not tried again.
    constraint
        Gets a point and returns whether it may be evaluated: a bool, or a number (how much is
        violated; 0 or less is allowed), or several of those. It should be cheap. Points it rejects
        cost nothing, rank below all that were evaluated, by violation, and are repaired.
    cache
        Whether a point that is known is answered from the archive. False evaluates it again.
    deterministic
        False: `f` is noisy. Points that are proposed again are evaluated again, the algorithm
        learns from the mean of their values, and the best is the one with the best mean.
    start
        Points to evaluate first, one or a list, as `f` gets them.
    data
        What is known already: `(points, values)`; a DataFrame with a column for each variable (x0,
        x1, ... in a nameless space) and one called "value"; the path of such a CSV file, or of an
        earlier study; or a `History` or `Result`. Every strategy learns from them before its first
        proposal. They cost no budget, and none of these points is evaluated again (see `cache`). A
        value of NaN or None is a point that failed. `result.best` may be one of them.
    study
        A file to keep the run in. If it exists, the run in it is continued as if it had never
        stopped.
    target
        Stop as soon as a value is at least this good.
    max_seconds
        Stop after this time. What is being evaluated then is abandoned.
    patience
        Stop after so many evaluations without improvement.
    stop_collapsed
        For the policy: stop when the population has become nearly one point, instead of
        restarting.
    callback
        Called with the `Optimizer` after each batch (in asynchronous mode, after each generation);
        the run stops if it returns something true.
    progress
        Show a progress bar: True, False, or None: on a terminal, after two seconds.

    Returns
    -------
    Result
        Ctrl-C waits for what is being evaluated and returns what was found so far; a second one
        raises KeyboardInterrupt. If candidate after candidate is known or rejected, the run ends
        and says so (`stop_reason` "exhausted").
    """
    return _run("maximize", dict(locals()))


def _as_maximize(wrapped: Callable[P, R]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Give a function the signature of another, so that options are listed once."""

    def decorate(wrapper: Callable[..., R]) -> Callable[P, R]:
        wrapper.__wrapped__ = wrapped  # type: ignore[attr-defined]
        return wrapper

    return decorate


@_as_maximize(maximize)
def minimize(
    f: Callable[..., Any] | Problem,
    space: Space | None = None,
    budget: int | None = None,
    **options: Any,
) -> Result:
    """Find a point of `space` with a low value of `f`; all else is as in `maximize`."""
    _refuse_unknown("minimize", options, maximize.__annotations__)
    defaults = dict(maximize.__kwdefaults__ or {})
    return _run("minimize", {"f": f, "space": space, "budget": budget, **defaults, **options})


def resume(
    study: str | os.PathLike[str],
    f: Callable[..., Any] | Problem,
    budget: int | None = None,
    *,
    algorithm: Strategy | None = None,
    **options: Any,
) -> Result:
    """Continue the run that a study holds, as if it had never stopped.

    Parameters
    ----------
    study
        The file that `maximize(..., study=)` made. Space, algorithm, settings and seed are in it.
    f
        The same function.
    budget
        In all, from the beginning; None: what the run was last given.
    algorithm
        For a strategy that is not one of this library's: a new object of its class.
    options
        Where to evaluate and when to stop, as in `maximize`: these are not kept in a study. A
        constraint must be given again.
    """
    _refuse_unknown("resume", options, _RESUMABLE)
    path = Path(study).absolute()
    with opened(path) as database, translated(path):
        settings = read_settings(database)
        space = Space.from_dict(settings["space"])
        if budget is None:
            budget = integer("budget", settings["budget"], 1)
        name, seed = settings["algorithm"], integer("seed", settings["seed"], 0, 2**64 - 1)
        wanted = options.get("engine", "auto")
        if wanted == "auto":
            wanted = settings["engine"] or "auto"
        evaluation = {key: settings[key] for key in kept(Evaluation()) if key != "constraint"}
        known = Known.from_json(space, settings)
    if algorithm is None:
        try:
            algorithm = recreate(
                name, settings["config"], space, seed, engine=wanted, graph=settings["graph"],
                restart=not options.get("stop_collapsed", False),
            )  # fmt: skip
        except (TypeError, ValueError) as error:
            raise StudyError(f"study {path}: {error}") from error
    defaults = dict(maximize.__kwdefaults__ or {})
    options = {
        **defaults, **evaluation, **options, "f": f, "space": space, "budget": budget,
        "algorithm": algorithm, "seed": seed, "study": study, "engine": "auto",
    }  # fmt: skip
    return _run(settings["direction"], options, known)


def _refuse_unknown(what: str, given: dict[str, Any], known: Any) -> None:
    unexpected = [name + did_you_mean(name, known) for name in sorted(given.keys() - set(known))]
    if unexpected:
        raise TypeError(f"{what} got unexpected arguments: {', '.join(unexpected)}")


def _run(direction: str, arguments: dict[str, Any], known: Known | None = None) -> Result:
    """A run: `arguments` are those of `maximize`, by name; `known` is that of a study."""
    start = time.perf_counter()
    f, space = _objective(direction, arguments)
    if arguments["budget"] is None:
        raise TypeError("budget is missing, expected how many evaluations to spend")
    stopping = Stopping(**select(Stopping, arguments))
    callback = optional(function)("callback", arguments["callback"])
    seed = arguments["seed"]
    number = secrets.randbits(32) if seed is None else integer("seed", seed, 0, 2**64 - 1)
    if arguments["algorithm"] is None:
        arguments["algorithm"] = _stored_algorithm(arguments["study"])
    strategy = create(
        arguments["algorithm"], space, number, config=arguments["config"],
        engine=arguments["engine"], graph=arguments["graph"], budget=stopping.budget,
        restart=not stopping.stop_collapsed,
    )  # fmt: skip
    if stopping.stop_collapsed and not isinstance(strategy, PolicySearch):
        raise ValueError(f"stop_collapsed is for the policy, and this is {strategy.name!r}")
    evaluation = Evaluation(**select(Evaluation, arguments))
    known = known or _known(arguments["start"], arguments["data"], space, evaluation)
    with progress_bar(stopping.budget, arguments["progress"]) as bar:
        path = arguments["study"]
        if path is None:
            optimizer = _optimizer(space, number, strategy, direction, evaluation, known)
            session = Session(f, optimizer, evaluation, stopping, None, bar, callback)
            return _result(session, session.run(), start)
        settings = _settings(space, number, strategy, direction, evaluation, stopping)
        settings |= known.to_json(space)
        with Study(path, settings, seed_given=seed is not None) as study:
            if study.resumed:
                number, strategy = _continued(study, strategy, arguments, stopping)
            optimizer = _optimizer(space, number, strategy, direction, evaluation, known)
            session = Session(f, optimizer, evaluation, stopping, study, bar, callback)
            return _result(session, session.run(), start)


def _stored_algorithm(study: Any) -> str | None:
    """The algorithm of a study that a run without a named one continues; None if there is none."""
    path = None if study is None else Path(study).absolute()
    if path is None or not path.is_file() or not path.stat().st_size:
        return None
    name = ""
    # What is wrong with a study is said when it is continued.
    with contextlib.suppress(StudyError), opened(path) as database, translated(path):
        name = read_settings(database)["algorithm"]
    return name if name in ("auto", "ils", "policy") else None


def _objective(direction: str, arguments: dict[str, Any]) -> tuple[Any, Space]:
    """The function and its space."""
    f, space = arguments["f"], arguments["space"]
    if isinstance(f, Problem):
        if f.direction != direction:
            other = "maximize" if direction == "minimize" else "minimize"
            raise ValueError(
                f"{f.name} is to be {f.direction}d: call {other}, or pass a function that calls it"
            )
        if space is not None and space != f.space:
            raise ValueError(f"space is {space}, but {f.name} has {f.space}: leave it out")
        return f.evaluate if arguments["vectorized"] is True else f, f.space
    if not callable(f):
        raise TypeError(f"f is {f!r}, expected a function or a problem")
    if not isinstance(space, Space):
        raise TypeError(f"space is {space!r}, expected a Space")
    return f, space


def _known(start: Any, data: Any, space: Space, evaluation: Evaluation) -> Known:
    """What is known before a run; the path of a study is read here."""
    found = None
    if data is not None:
        found = read_data(load(data) if is_study(data) else data, space)
        if evaluation.constraint is not None:
            found = Feasibility(space, evaluation.constraint, 0).refuse(found)
    return Known(None if start is None else read_points("start", start, space), found)


def _optimizer(
    space: Space,
    seed: int,
    strategy: Strategy,
    direction: str,
    evaluation: Evaluation,
    known: Known,
) -> Optimizer:
    optimizer = Optimizer._of(
        space, seed, strategy, direction, evaluation.deterministic, evaluation.constraint
    )
    if known.data is not None:
        optimizer._know(known.data)
    if known.start is not None:
        optimizer._suggested += list(known.start)
    return optimizer


def _settings(
    space: Space,
    seed: int,
    strategy: Strategy,
    direction: str,
    evaluation: Evaluation,
    stopping: Stopping,
) -> dict[str, Any]:
    """What a study keeps: all that a run must have in common with the one it continues."""
    policy = strategy if isinstance(strategy, PolicySearch) else None
    graph = None if policy is None or policy.graph is None else policy.graph.astype(int).tolist()
    return {
        "direction": direction,
        "space": space.to_dict(),
        "algorithm": strategy.name,
        "config": settings_of(strategy),
        "graph": graph,
        "engine": None if policy is None else policy.engine,
        "seed": seed,
        **kept(evaluation),
        "budget": stopping.budget,
    }


def _continued(
    study: Study, strategy: Strategy, arguments: dict[str, Any], stopping: Stopping
) -> tuple[int, Strategy]:
    """Seed and strategy of a study that is continued by `maximize` with the same arguments."""
    settings, seed = study.settings, int(study.settings["seed"])
    given = arguments["algorithm"]
    if isinstance(given, type):  # its object has the seed of this call
        return seed, create(given, Space.from_dict(settings["space"]), seed)
    if given is not None and not isinstance(given, str):
        return seed, strategy
    engine = arguments["engine"]
    if engine == "auto":
        engine = settings["engine"] or "auto"
    with translated(study.path):
        again = recreate(
            settings["algorithm"], settings["config"], Space.from_dict(settings["space"]), seed,
            engine=engine, graph=settings["graph"], restart=not stopping.stop_collapsed,
        )  # fmt: skip
    return seed, again


def _result(session: Session, reason: str, start: float) -> Result:
    optimizer = session.optimizer
    return Result(
        best=optimizer.best,
        best_value=optimizer.best_value,
        evaluations=session.evaluations,
        failures=session.failures,
        stop_reason=reason,
        seed=optimizer.seed,
        seconds=time.perf_counter() - start,
        study=None if session.study is None else session.study.path,
        optimizer=optimizer,
    )
