"""Algorithms by name, on equal terms: our strategies, and the algorithms of other libraries.

    policy, policy:PRESET         the policy, with settings: policy:default+beta=2+hidden=(40,)
    NAME                          any other strategy, with settings: boa+population=500
    nevergrad:NAME                any name of nevergrad's registry
    optuna:TPE                    any sampler, with settings: optuna:TPE+n_startup_trials=20
    cmaes:CatCMAwM                with population_size
    gomea:LinkageTree             or another linkage model, with settings

All evaluations are counted here, including duplicates, and the result is the best value that was
evaluated, not the point that a library recommends. To add a library, add a file to this folder and
a line to `LIBRARIES`.
"""

from __future__ import annotations

import contextlib
import random
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import integer, unknown
from anyorder.bench.algorithms.cmaes import CMAES
from anyorder.bench.algorithms.gomea import GOMEA
from anyorder.bench.algorithms.library import Library
from anyorder.bench.algorithms.meter import Ints, Meter, Spent, Trace, check_grid
from anyorder.bench.algorithms.naming import STRATEGY, Parts, is_installed, split
from anyorder.bench.algorithms.nevergrad import Nevergrad
from anyorder.bench.algorithms.optuna import Optuna
from anyorder.bench.algorithms.ours import Others, Presets, configure, known_graph
from anyorder.policy.many import solve_many
from anyorder.problems.base import Problem
from anyorder.space import Space
from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.engines import why_not

__all__ = [
    "LIBRARIES", "AlgorithmError", "Trace", "available", "check", "check_engines", "meaning", "run",
    "run_many",
]  # fmt: skip


LIBRARIES: dict[str, Library] = {
    "policy": Presets(),
    STRATEGY: Others(),
    "nevergrad": Nevergrad(),
    "optuna": Optuna(),
    "cmaes": CMAES(),
    "gomea": GOMEA(),
}
_SEEDS = 2**32  # accepted by every library


class AlgorithmError(RuntimeError):
    """A failed run: the algorithm, the problem and the reason. The cause is chained."""


def available(kind: str | None = None) -> list[str]:
    """Return the available names, without settings.

    Parameters
    ----------
    kind
        Names of one library only. None: of all installed libraries except nevergrad, whose import
        takes seconds; `available("nevergrad")` lists its hundreds.
    """
    if kind is not None:
        return _names(kind)
    here = [
        kind
        for kind, library in LIBRARIES.items()
        if kind != "nevergrad" and (library.package is None or is_installed(library.package))
    ]
    return [name for kind in here for name in _names(kind)]


def check(name: str, problem: Problem | None = None) -> None:
    """Raise if the algorithm is unknown, or does not accept its settings or the problem.

    A bad name or setting raises a ValueError or TypeError, a missing package an ImportError.
    """
    _, _, settings = _check(name, None if problem is None else problem.space)
    if problem is not None and settings.get("graph") == "known":
        known_graph(problem)


def check_engines(names: Iterable[str]) -> None:
    """Raise if a name sets an engine that cannot run on this machine."""
    for name in names:
        kind, _, settings = split(name)
        engine = LIBRARIES[kind].engine(settings) if kind in LIBRARIES else "auto"
        reason = None if engine == "auto" else why_not(engine)
        if reason is not None:
            raise RuntimeError(f"{name}: engine {engine} cannot run here: {reason}")


def meaning(name: str) -> tuple[Any, ...]:
    """Return a key that is equal for two names that stand for the same algorithm."""
    kind, detail, settings = split(name)
    return kind, *LIBRARIES[kind].meaning(detail, settings)


def still(name: str, configuration: Mapping[str, Any]) -> bool:
    """Return whether a name still stands for the configuration that a run of it had."""
    kind, detail, settings = split(name)
    return LIBRARIES[kind].still(detail, settings, configuration)


def run(
    name: str,
    problem: Problem,
    budget: int,
    seed: int,
    grid: npt.ArrayLike,
    *,
    engine: str = "auto",
    each: Callable[[float], Any] | None = None,
) -> Trace:
    """Run an algorithm on a problem, maximised; one at a time in a process.

    Parameters
    ----------
    name
        As `check` takes it.
    problem, budget, seed
        The seed is from 0 to 2**32 - 1. It also seeds the global generators of NumPy and Python,
        whose state is restored afterwards.
    grid
        The numbers of evaluations at which the best value so far is recorded, increasing.
    engine
        The engine of the policy, unless the name sets it.
    each
        Called with every value, in order of evaluation.

    Raises
    ------
    AlgorithmError
        If the algorithm or the problem raised an exception; it names both.
    """
    kind, detail, settings = _check(name, problem.space)
    integer("seed", seed, 0, _SEEDS - 1)
    library = LIBRARIES[kind]
    chosen = library.choose_engine(settings, engine)
    if chosen != settings:
        library.check(detail, chosen, problem.space)
    meter = Meter(problem, budget, grid, each)
    start = time.perf_counter()
    try:
        with _seed_globals(seed), _quiet(kind), contextlib.suppress(Spent):
            settings = library.search(detail, chosen, meter, seed)
        return meter.trace(time.perf_counter() - start, settings)
    except Exception as error:
        raise AlgorithmError(
            f"{name} on {problem.name}, seed {seed}, after {meter.done} evaluations: "
            f"{type(error).__name__}: {error}"
        ) from error


def run_many(
    name: str,
    problems: Sequence[Problem],
    budget: int,
    seeds: Sequence[int],
    grid: npt.ArrayLike,
    *,
    engine: str = "auto",
) -> list[Trace | str]:
    """Run the policy in one batch, as on a GPU: one run on each problem, in a shared space.

    Each result is what `run` returns with the same engine, or the reason why the run failed. The
    time of a run is its share of the whole. With `graph=known` there is a batch for each problem,
    since each has its own graph.
    """
    kind, detail, settings = _check(name, None)
    if kind != "policy":
        raise ValueError(f"{name} runs one at a time, expected policy or policy:PRESET")
    config, chosen = configure(detail, {"engine": engine, **settings})
    places = check_grid(grid, budget)
    if "graph" not in settings:
        return _batch(problems, budget, seeds, places, config, chosen, None)
    traces: list[Trace | str] = [""] * len(problems)
    for problem in {id(problem): problem for problem in problems}.values():
        own = [r for r, other in enumerate(problems) if other is problem]
        graph, some = known_graph(problem), [seeds[r] for r in own]
        found = _batch([problem] * len(own), budget, some, places, config, chosen, graph)
        for r, trace in zip(own, found, strict=True):
            traces[r] = trace
    return traces


def _batch(
    problems: Sequence[Problem],
    budget: int,
    seeds: Sequence[int],
    places: Ints,
    config: Config,
    engine: str,
    graph: npt.ArrayLike | None,
) -> list[Trace | str]:
    runs = solve_many(
        problems, runs=1, budget=budget, seeds=seeds, config=config, engine=engine, graph=graph,
        grid=places.tolist(), progress=False,
    )  # fmt: skip
    if "interrupted" in runs.stop_reasons:
        raise KeyboardInterrupt
    configuration = {**runs.config.to_dict(), "engine": runs.engine}
    if graph is not None:
        configuration["graph"] = "known"
    share = runs.seconds / len(problems)
    return [
        runs.errors[r]
        or Trace(
            places, runs.curves[r], runs.best_codes[r], float(runs.best_values[r]), budget,
            int(runs.evaluations[r]), share, configuration,
        )
        for r in range(len(problems))
    ]  # fmt: skip


def _names(kind: str) -> list[str]:
    if kind not in LIBRARIES:
        raise unknown("kind of algorithm", kind, LIBRARIES)
    names = LIBRARIES[kind].names()
    if kind == STRATEGY:
        return names
    return [f"{kind}:{name}" if name else kind for name in names]


def _check(name: str, space: Space | None) -> Parts:
    parts = split(name)
    kind, detail, settings = parts
    if kind not in LIBRARIES:
        usual = [*_names("policy"), *_names(STRATEGY)]
        others = [f"{k}:NAME" for k, library in LIBRARIES.items() if library.package]
        raise unknown("algorithm", name, [*usual, *others])
    library = LIBRARIES[kind]
    if kind != STRATEGY and detail not in library.names():
        what = "algorithm (settings are +NAME=VALUE)" if "+" in detail else "algorithm"
        raise unknown(what, name, _names(kind))
    try:
        with _quiet(kind):
            library.check(detail, settings, space)
    except (ValueError, TypeError) as error:
        kept = TypeError if isinstance(error, TypeError) else ValueError
        raise kept(f"{name}: {error}") from error
    return parts


@contextlib.contextmanager
def _seed_globals(seed: int) -> Iterator[None]:
    """Seed the global generators, which some libraries use, and restore them afterwards."""
    ours, theirs = np.random.get_state(), random.getstate()
    np.random.seed(seed)
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(ours)
        random.setstate(theirs)


@contextlib.contextmanager
def _quiet(kind: str) -> Iterator[None]:
    """Ignore the warnings of other libraries, which come for every run or every point."""
    with warnings.catch_warnings():
        if LIBRARIES[kind].package is not None:
            warnings.simplefilter("ignore")
        yield
