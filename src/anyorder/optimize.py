"""maximize, minimize, optimize, resume: the user's arguments, checked, made into a session."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from anyorder._internal.checks import (
    function,
    integer,
    optional,
    refuse_unknown,
    short,
    suggesting_names,
)
from anyorder._internal.checks import path as path_of
from anyorder.archive.history import check_names
from anyorder.archive.knowledge import Known, is_study, read_data, read_points
from anyorder.archive.objectives import Objectives, read_objectives
from anyorder.constraints.feasibility import Feasibility
from anyorder.errors import StudyError
from anyorder.optimizer import Optimizer, wrap
from anyorder.problems.base import Problem
from anyorder.proposer import Proposer
from anyorder.result import Result
from anyorder.run.confirm import check_confirm
from anyorder.run.evaluation.processes import leave_unguarded_import
from anyorder.run.loop import Session
from anyorder.run.options import Evaluation, Stopping, select, study_options
from anyorder.run.progress import progress_bar, show_log
from anyorder.run.state import State
from anyorder.run.stopping import Rule
from anyorder.run.study.reading import load, open_study, read_settings, translate_errors
from anyorder.run.study.writing import Study
from anyorder.space import Space
from anyorder.strategies.base import Strategy
from anyorder.strategies.create import Algorithm, create, makes_strategies, recreate, resolve_name
from anyorder.strategies.registry import find

P = ParamSpec("P")
R = TypeVar("R")
# What `resume` accepts: the rest is in the study.
_RESUMABLE = (
    "vectorized", "batch", "executor", "workers", "timeout", "retries", "constraint", "verify",
    "target", "max_seconds", "patience", "stop", "callback", "progress",
)  # fmt: skip


@suggesting_names
def maximize(
    f: Callable[..., Any] | Problem,
    space: Space | None = None,
    budget: int | None = None,
    *,
    algorithm: Algorithm | None = None,
    seed: int | None = None,
    vectorized: bool = False,
    batch: int | None = None,
    executor: Any = None,
    workers: int | None = None,
    asynchronous: bool = False,
    timeout: float | None = None,
    retries: int = 0,
    on_failure: Literal["raise", "worst", "skip"] = "raise",
    constraint: Callable[[Any], Any] | None = None,
    cache: bool = True,
    deterministic: bool = True,
    confirm: int | None = None,
    start: Any = None,
    data: Any = None,
    study: str | os.PathLike[str] | None = None,
    verify: bool = True,
    target: float | None = None,
    max_seconds: float | None = None,
    patience: int | None = None,
    stop: Rule | Sequence[Rule] = (),
    callback: Callable[[Optimizer], Any] | None = None,
    progress: bool | Literal["detailed"] | None = None,
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
        and neither do further tries of one that failed. It may be left out where something else
        ends the run: `max_seconds`, `patience` or `stop`.
    algorithm
        How to search: a name ("auto", "policy", "ils", "tabu", "umda", ...;
        `anyorder.strategies.names()` lists them), with settings if need be ("policy:paper",
        "boa+population=500"); an object that keeps the protocol of `anyorder.strategies.Strategy`;
        or what is called with a space and `seed=` and makes one: its class, or an
        `anyorder.policy.Policy`. The default is "auto", and for thousands of variables "ils".
    seed
        An integer makes the run repeatable; None draws one (`result.seed` tells which).
    vectorized
        Whether `f` takes batches.
    batch
        How many points are proposed, evaluated and learned at a time. By default as many as the
        algorithm prefers; of one without batches of its own, 16 with `vectorized`, else as many as
        there are workers.
    executor
        Where to evaluate: any `concurrent.futures.Executor`, a Dask `Client`, "ray", or "threads":
        `workers` threads of this process, for functions that release the interpreter's lock.
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
        learns from the mean of their values, and the last evaluations measure the most promising
        points again (see `confirm`).
    confirm
        How many evaluations at the end of a noisy run measure promising points again: two thirds of
        them to choose the answer, by a lower bound of its mean, and a third to measure that one
        alone, whose mean is `result.best_value`. By default a tenth of the budget; 0 for none.
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
        stopped. A line in the log (logger "anyorder") says so.
    verify
        When a study is continued, measure its best point again before anything new is evaluated.
        Another value is a `StudyError`: `f` has been edited. It costs no budget; differences of
        1e-9, relatively, count as rounding, and a noisy `f` (see `deterministic`) is not measured.
    target
        Stop as soon as a value is at least this good.
    max_seconds
        Stop after this time. What is being evaluated then is abandoned.
    patience
        Stop after so many evaluations without improvement.
    stop
        Further rules that stop the run, see `anyorder.stopping`: one, or a list of functions that
        get the progress of the run and return a reason to stop (`result.stop_reason`), or None.
    callback
        Called with the `Optimizer` after each batch (in asynchronous mode, after each generation);
        the run stops if it returns something true.
    progress
        Show a progress bar: True, False, or None: on a terminal, after two seconds. "detailed"
        adds what the strategy says about its search. Where there is no bar, a run logs a line at
        its start, at improvements (at most one in 10 s) and at its end (logger "anyorder", INFO);
        unless the application has set up logging, or `progress` is False, the log of a run is
        printed to standard error.

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


def _with_options_of(wrapped: Callable[..., R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a function that takes the keyword arguments of another a signature that lists them."""

    def decorate(wrapper: Callable[P, R]) -> Callable[P, R]:
        own = [*inspect.signature(wrapper).parameters.values()][:-1]
        names = {parameter.name for parameter in own}
        more = [p for p in inspect.signature(wrapped).parameters.values() if p.name not in names]
        signature = inspect.signature(wrapped).replace(parameters=[*own, *more])
        wrapper.__signature__ = signature  # type: ignore[attr-defined]
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
    refuse_unknown("minimize", options, maximize.__annotations__)
    defaults = _defaults()
    return _run("minimize", {"f": f, "space": space, "budget": budget, **defaults, **options})


@_with_options_of(maximize)
def optimize(
    f: Callable[..., Any],
    space: Space | None = None,
    budget: int | None = None,
    *,
    directions: Sequence[str] | None = None,
    objectives: Mapping[str, str] | None = None,
    reference: Any = None,
    **options: Any,
) -> Result:
    """Find the points of `space` that are best in several values of `f`: its Pareto front.

    Parameters
    ----------
    f
        As in `maximize`, but it returns a tuple with a number for each objective, or a dict of
        them. An evaluation with a value that is no finite number has failed.
    space, budget
        As in `maximize`.
    directions
        "max" or "min" for each value of the tuple.
    objectives
        Instead of `directions`, for a function that returns a dict: "max" or "min" for each of its
        entries that is an objective, such as `{"accuracy": "max", "size": "min"}`.
    reference
        The worst values that are of interest, one for each objective: points that are not better
        than all of them do not count for the hypervolume, and "pareto" does not look for them. By
        default all points are of interest.
    options
        As in `maximize`. The default algorithm is "pareto"; "nsga2" and "random" take several
        objectives as well. `target` is a hypervolume and requires `reference`; `patience` counts
        evaluations that do not change the front.

    Returns
    -------
    Result
        With `front` and `hypervolume`; there is no `best`.
    """
    refuse_unknown("optimize", options, maximize.__annotations__)
    several = read_objectives(directions, objectives, reference)
    if several is None:
        raise TypeError(
            "directions is missing, expected one for each objective, such as ('max', 'min'); or "
            "objectives={'accuracy': 'max', 'size': 'min'} for a function that returns a dict"
        )
    if options.get("target") is not None and several.reference is None:
        raise ValueError(
            f"target is {short(options['target'])}, a hypervolume, which requires reference="
        )
    given = {"f": f, "space": space, "budget": budget, "objectives": several}
    return _run("maximize", {**_defaults(), **options, **given})


def resume(
    study: str | os.PathLike[str],
    f: Callable[..., Any] | Problem,
    budget: int | None = None,
    *,
    algorithm: Algorithm | None = None,
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
        For a strategy without a registered name: its class, or a new object of it. Otherwise the
        study says what it is; the policy continues on another engine with
        `algorithm="policy+engine=cpu"`, or the same `Policy(..., engine=...)`.
    options
        Where to evaluate and when to stop, as in `maximize`: these are not kept in a study. A
        constraint must be given again.
    """
    refuse_unknown("resume", options, _RESUMABLE)
    path = path_of("study", study)
    with open_study(path) as database, translate_errors(path):
        settings = read_settings(database)
        space = Space.from_dict(settings["space"])
        if budget is None:
            budget = settings["budget"]
        name, seed = settings["algorithm"], integer("seed", settings["seed"], 0, 2**64 - 1)
        evaluation = {
            key: settings[key]
            for key in study_options(Evaluation())
            if key in settings and key != "constraint"
        }
        known = Known.from_json(space, settings)
        several = Objectives.from_json(settings.get("objectives"))
    if algorithm is None or isinstance(algorithm, str):
        changes = {} if algorithm is None else _changes(algorithm, name)
        try:
            algorithm = recreate(name, {**settings["config"], **changes}, space, seed)
        except (TypeError, ValueError) as error:
            raise StudyError(f"study {path}: {error}") from error
    defaults = _defaults()
    options = {
        **defaults, **evaluation, **options, "f": f, "space": space, "budget": budget,
        "algorithm": algorithm, "seed": seed, "study": study, "objectives": several,
    }  # fmt: skip
    return _run(settings["direction"], options, known)


def _changes(algorithm: str, name: str) -> dict[str, Any]:
    """Return the settings that a name changes in those of a study by the algorithm `name`."""
    given = resolve_name(algorithm)
    if given.name != name or given.preset:
        expected = f"'{name}', or '{name}+setting=value': it continues a run of {name}"
        raise ValueError(f"algorithm is {algorithm!r}, expected {expected}")
    return given.settings


def _defaults() -> dict[str, Any]:
    """Return the options of `maximize` with their defaults."""
    parameters = inspect.signature(maximize).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def _run(direction: str, arguments: dict[str, Any], known: Known | None = None) -> Result:
    """Return the result of a run: `arguments` of `maximize`, by name; `known` of a study."""
    with show_log(arguments["progress"]):
        return _run_quietly(direction, arguments, known)


def _run_quietly(direction: str, arguments: dict[str, Any], known: Known | None) -> Result:
    start = time.perf_counter()
    f, space = _objective(direction, arguments)
    several: Objectives | None = arguments.get("objectives")
    if several is not None:
        check_names(several, space)
    if arguments["study"] is not None:
        arguments["study"] = path_of("study", arguments["study"])
    stopping = Stopping(**select(Stopping, arguments))
    callback = optional(function)("callback", arguments["callback"])
    seed = arguments["seed"]
    number = secrets.randbits(32) if seed is None else integer("seed", seed, 0, 2**64 - 1)
    if arguments["algorithm"] is None:
        arguments["algorithm"] = _read_algorithm(arguments["study"])
    strategy = create(
        arguments["algorithm"], space, number, budget=stopping.budget, several=several is not None
    )
    evaluation = Evaluation(**select(Evaluation, arguments))
    check_confirm(evaluation, stopping, several is not None)
    if evaluation.in_processes:
        leave_unguarded_import()
    known = known or _gather_known(
        arguments["start"], arguments["data"], space, evaluation, several
    )
    study: Study | None = None
    with contextlib.ExitStack() as opened:
        bar = opened.enter_context(progress_bar(stopping.budget, arguments["progress"]))
        if arguments["study"] is not None:
            settings = _settings(space, number, strategy, direction, evaluation, stopping)
            settings |= known.to_json(space)
            if several is not None:
                settings["objectives"] = several.to_json()
            study = Study(arguments["study"], settings, seed_given=seed is not None)
            opened.enter_context(study)
            if study.resumed:
                number, strategy = _continue(study, strategy, arguments["algorithm"])
        parts = space, number, strategy, direction, evaluation.deterministic
        proposer = Proposer(*parts, evaluation.constraint, several)
        if known.data is not None:
            proposer.learn_data(known.data)
        if known.start is not None:
            proposer.suggested += list(known.start)
        optimizer = wrap(Optimizer, proposer)
        called = None if callback is None else functools.partial(callback, optimizer)
        session = Session(f, proposer, evaluation, stopping, study, bar, called)
        return _result(optimizer, session.run(), session.state, start)


def _read_algorithm(study: Any) -> str | None:
    """Return the algorithm of a study that a run without a named one continues, if any."""
    path: Path | None = study
    if path is None or not path.is_file() or not path.stat().st_size:
        return None
    name = ""
    # What is wrong with a study is said when it is continued.
    with contextlib.suppress(StudyError), open_study(path) as database, translate_errors(path):
        name = read_settings(database)["algorithm"]
    return name if find(name) is not None else None


def _objective(direction: str, arguments: dict[str, Any]) -> tuple[Any, Space]:
    """Return the function and its space."""
    f, space = arguments["f"], arguments["space"]
    if isinstance(f, Problem):
        if arguments.get("objectives") is not None:
            raise TypeError(f"f is {f.name}, which has one objective: call {f.direction[:-1]}e")
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
        hint = ""
        if isinstance(space, dict):
            hint = ", such as anyorder.Space({'a': anyorder.Categorical([1, 2])})"
        raise TypeError(f"space is {short(space)}, expected a Space{hint}")
    _check_parameters(f, space, arguments["vectorized"] is True)
    return f, space


def _check_parameters(f: Callable[..., Any], space: Space, vectorized: bool) -> None:
    """Refuse a function that cannot be called with one argument, and say what it gets."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # some built-in functions do not tell
        return
    try:
        signature.bind(None)
    except TypeError:
        gets = "a dict of all variables" if space.named else "a vector of all variables"
        if vectorized:
            gets = "a list of dicts" if space.named else "a matrix with a row for each point"
        name = getattr(f, "__name__", type(f).__name__)
        raise TypeError(
            f"f is {name}{signature}, expected a function of one argument: it gets {gets}"
        ) from None


def _gather_known(
    start: Any, data: Any, space: Space, evaluation: Evaluation, several: Objectives | None
) -> Known:
    """Return what is known before a run; the path of a study is read here."""
    found = None
    if data is not None:
        found = read_data(load(data) if is_study(data) else data, space, several)
        if evaluation.constraint is not None:
            found = Feasibility(space, evaluation.constraint, 0).refuse(found)
    return Known(None if start is None else read_points("start", start, space), found)


def _settings(
    space: Space,
    seed: int,
    strategy: Strategy,
    direction: str,
    evaluation: Evaluation,
    stopping: Stopping,
) -> dict[str, Any]:
    """Return what a study keeps: all that a run must have in common with the one it continues."""
    return {
        "direction": direction,
        "space": space.to_dict(),
        "algorithm": strategy.name,
        "config": strategy.settings(),
        "seed": seed,
        **study_options(evaluation),
        "budget": stopping.budget,
    }


def _continue(study: Study, strategy: Strategy, given: Algorithm | None) -> tuple[int, Strategy]:
    """Return seed and strategy of a study that is continued with the same algorithm."""
    settings, seed = study.settings, int(study.settings["seed"])
    space = Space.from_dict(settings["space"])
    if given is None or isinstance(given, str):
        changes = {} if given is None else resolve_name(given).settings
        with translate_errors(study.path):
            return seed, recreate(
                settings["algorithm"], {**settings["config"], **changes}, space, seed
            )
    if makes_strategies(given):  # `strategy` has the seed of this call
        strategy = create(given, space, seed)
    return seed, strategy


def _result(optimizer: Optimizer, reason: str, state: State, start: float) -> Result:
    one = optimizer.objectives is None
    return Result(
        best=optimizer.best if one else None,
        best_value=optimizer.best_value if one else math.nan,
        evaluations=state.evaluations,
        failures=state.failures,
        stop_reason=reason,
        seed=optimizer.seed,
        seconds=time.perf_counter() - start,
        study=None if state.study is None else state.study.path,
        optimizer=optimizer,
    )
