"""maximize, minimize, optimize, resume: check the user's arguments, and make a session of them."""

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
from anyorder.archive.hypervolume import import_moocore
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
# The options that `resume` accepts; the study has the others.
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
        The function. It receives a dict for a named space, else a NumPy integer vector, and returns
        a number. With `vectorized` it receives a whole batch (a list of dicts, or a matrix) and
        returns as many numbers. It may raise `anyorder.Infeasible(violation=...)`. A problem of
        `anyorder.problems`, which has its own space, can be given instead.
    space
        The space to search.
    budget
        The number of evaluations to spend. A known point costs nothing (see `cache`), and neither
        do retries of a failed one. It may be left out if something else ends the run:
        `max_seconds`, `patience` or `stop`.
    algorithm
        The search algorithm: a name ("auto", "policy", "ils", "tabu", "umda", ...;
        `anyorder.strategies.names()` lists them), possibly with settings ("policy:paper",
        "boa+population=500"); an object that follows the protocol of
        `anyorder.strategies.Strategy`; or a callable that makes such an object from a space and
        `seed=`, such as its class or an `anyorder.policy.Policy`. The default is "auto", and for
        thousands of variables "ils".
    seed
        An integer makes the run repeatable; None draws one (`result.seed` tells which).
    vectorized
        Whether `f` takes batches.
    batch
        The number of points to propose, evaluate and learn from at a time. The default is the
        algorithm's preference; for an algorithm without batches of its own it is 16 with
        `vectorized`, else the number of workers.
        there are workers.
    executor
        Where to evaluate: any `concurrent.futures.Executor`, a Dask `Client`, "ray", or "threads".
        "threads" uses `workers` threads of this process, for functions that release the
        interpreter's lock.
    workers
        The number of local processes in which to evaluate; with `executor`, the number of its
        workers if it does not tell.
    asynchronous
        If False, work in batches. The run of an algorithm with batches of its own, such as the
        policy, is then the same with any number of workers; an algorithm without is asked for as
        many candidates as there are workers. If True, send out a candidate whenever a worker is
        free, so that no worker waits for the slowest one.
    timeout
        The seconds that an evaluation may take. Without `workers` or `executor` it uses one worker
        process. An executor cannot stop what it runs: a worker that exceeds the limit is lost until
        it ends.
    retries
        How often to retry a failed evaluation.
    on_failure
        What to do about an exception, NaN, None, a timeout or a dead worker: "raise" ends the run
        with the error; "worst" ranks the candidate below every candidate with a value; "skip" does
        not learn from it. Points that failed are remembered and not tried again.
    constraint
        A function that receives a point and returns whether it may be evaluated: a bool, or a
        number (the amount of the violation; 0 or less is allowed), or several of those. It should
        be cheap. Points that it rejects cost nothing, rank below all evaluated points, by
        violation, and are repaired.
    cache
        Whether known points are answered from the archive. If False, they are evaluated again.
    deterministic
        Whether `f` returns the same value for a point every time. If False, `f` is noisy: points
        that are proposed again are evaluated again, the algorithm learns from the mean of their
        values, and the last evaluations measure the most promising points again (see `confirm`).
    confirm
        The number of evaluations, at the end of a noisy run, that measure promising points again.
        Two thirds of them choose the answer, by a lower bound of its mean; the last third measures
        only the answer, and its mean is `result.best_value`. By default a tenth of the budget; 0
        for none.
    start
        Points to evaluate first, one or a list, in the form in which `f` receives them.
    data
        Points with known values: `(points, values)`; a DataFrame with a column for each variable
        (x0, x1, ... in a nameless space) and one called "value"; the path of such a CSV file, or of
        an earlier study; or a `History` or `Result`. Every strategy learns from them before its
        first proposal. They cost no budget, and none of these points is evaluated again (see
        `cache`). A value of NaN or None means that the point failed. `result.best` may be one of
        these points.
    study
        A file to store the run in. If it exists, the run in it is continued as if it had never
        stopped. A message in the log (logger "anyorder") says so.
    verify
        When a study is continued, whether to measure its best point again before any new point. If
        the value differs, `f` has been edited, and a `StudyError` is raised. This costs no budget.
        Relative differences up to 1e-9 count as rounding, and a noisy `f` (see `deterministic`) is
        not measured.
    target
        Stop as soon as a value is at least as good as this one.
    max_seconds
        Stop after this time. Evaluations that are then running are abandoned.
    patience
        Stop after so many evaluations without improvement.
    stop
        Further rules that stop the run, see `anyorder.stopping`: one function, or a list of them,
        that receive the progress of the run and return a reason to stop (`result.stop_reason`), or
        None.
    callback
        A function that is called with the `Optimizer` after each batch (in asynchronous mode, after
        each generation); the run stops if it returns a true value.
    progress
        Whether to show a progress bar. None shows it on a terminal, after two seconds; "detailed"
        adds what the strategy reports about its search. Without a bar, a run logs a message at its
        start, at improvements (at most one in 10 s) and at its end (logger "anyorder", INFO).
        Unless the application has set up logging, or `progress` is False, this log is printed to
        standard error.

    Returns
    -------
    Result
        The outcome of the run. Ctrl-C waits for running evaluations and returns what was found so
        far; a second one raises KeyboardInterrupt. If candidate after candidate is known or
        rejected, the run ends, and `stop_reason` is "exhausted".
    """
    return _run("maximize", dict(locals()))


def _as_maximize(wrapped: Callable[P, R]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Return a decorator that gives a function the signature of another, to list options once."""

    def decorate(wrapper: Callable[..., R]) -> Callable[P, R]:
        wrapper.__wrapped__ = wrapped  # type: ignore[attr-defined]
        return wrapper

    return decorate


def _with_options_of(wrapped: Callable[..., R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that adds the keyword arguments of `wrapped` to a function's signature."""

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
    """Find a point of `space` with a low value of `f`; everything else is as in `maximize`."""
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
        The function, as in `maximize`, but it returns a tuple with a number for each objective, or
        a dict of them. An evaluation has failed if one of its values is no finite number.
    space, budget
        As in `maximize`.
    directions
        "max" or "min" for each value of the tuple.
    objectives
        A dict to give instead of `directions`, for a function that returns a dict: "max" or "min"
        for each entry that is an objective, such as `{"accuracy": "max", "size": "min"}`.
    reference
        The worst values of interest, one for each objective: points that are not better in all of
        them do not count for the hypervolume, and "pareto" does not search for them. By default all
        points are of interest.
    options
        Further options, as in `maximize`. The default algorithm is "pareto"; "nsga2" and "random"
        also support several objectives. `target` is a hypervolume and requires `reference`;
        `patience` counts evaluations that do not change the front.

    Returns
    -------
    Result
        The outcome, with `front` and `hypervolume` in place of `best`.
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
    if options.get("target") is not None and len(several) > 2:
        import_moocore()  # an ImportError before the first evaluation, and not after it
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
    """Continue the run in a study as if it had never stopped.

    Parameters
    ----------
    study
        The file that `maximize(..., study=)` wrote. It holds space, algorithm, settings and seed.
    f
        The function that the run was started with.
    budget
        The budget of the whole run, from its beginning; by default what the run was last given.
    algorithm
        The algorithm, which is only needed if it has no registered name: its class, or a new object
        of the class. Otherwise it is read from the study. The policy can continue on another engine
        with `algorithm="policy+engine=cpu"`, or with the same `Policy(..., engine=...)`.
    options
        Where to evaluate and when to stop, as in `maximize`: a study does not store these options.
        A constraint must be given again.
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
    """Return the settings that a name changes in a study whose algorithm is `name`."""
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
    """Return the result of a run with these `arguments` of `maximize`, and what a study `known`."""
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
    """Return the algorithm stored in a study, if none was given; None without such a study."""
    path: Path | None = study
    if path is None or not path.is_file() or not path.stat().st_size:
        return None
    name = ""
    # Errors in a study are reported when it is continued.
    with contextlib.suppress(StudyError), open_study(path) as database, translate_errors(path):
        name = read_settings(database)["algorithm"]
    return name if find(name) is not None else None


def _objective(direction: str, arguments: dict[str, Any]) -> tuple[Any, Space]:
    """Return the function to optimise, and its space."""
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
    """Raise a TypeError if a function cannot be called with one argument; it says what that is."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # some built-in functions have no signature
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
    """Return what is known before a run; studies given as `data` are read here."""
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
    """Return what a study stores: the settings that a continued run must share with it."""
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
    if makes_strategies(given):  # `strategy` was made with the seed of this call
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
