"""Algorithms by name, at equal terms: ours, the baselines, and those of other libraries.

    anyorder, anyorder:PRESET     the method, with settings: anyorder:default+beta=2+hidden=(40,)
    baseline:NAME                 anyorder.baselines, with settings: baseline:boa+population=500
    nevergrad:NAME                any name of its registry
    optuna:TPE                    any sampler, with settings: optuna:TPE+n_startup_trials=20
    cmaes:CatCMAwM                with population_size
    gomea:LinkageTree             or another linkage model, with settings

All evaluations are counted here, duplicates as well, and what counts is the best value that was
evaluated, not what a library would recommend. A further library is a file in this folder, and a
line in `LIBRARIES`.
"""

from __future__ import annotations

import contextlib
import random
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from anyorder._checks import integer
from anyorder.bench.algorithms.cmaes import CMAES
from anyorder.bench.algorithms.gomea import GOMEA
from anyorder.bench.algorithms.meter import Meter, Spent, Trace, check_grid
from anyorder.bench.algorithms.naming import Parts, Settings, installed, split, unknown
from anyorder.bench.algorithms.nevergrad import Nevergrad
from anyorder.bench.algorithms.optuna import Optuna
from anyorder.bench.algorithms.ours import AnyOrder, Baselines, configured, known_graph
from anyorder.many import solve_many
from anyorder.problems.base import Problem
from anyorder.space import Space
from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.engines import why_not

__all__ = [
    "LIBRARIES", "AlgorithmError", "Trace", "available", "check", "check_engines", "meaning", "run",
    "run_many",
]  # fmt: skip


class Library(Protocol):
    """Where algorithms come from."""

    @property
    def package(self) -> str | None:
        """What must be installed, if anything."""

    def names(self) -> list[str]:
        """List its algorithms."""

    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise if these settings, or this space, are not for the algorithm of that name."""

    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Evaluate points by the meter until its budget is spent, or there is no more to do.

        Returns the settings, those that were not given as well where they are known.
        """


LIBRARIES: dict[str, Library] = {
    "anyorder": AnyOrder(),
    "baseline": Baselines(),
    "nevergrad": Nevergrad(),
    "optuna": Optuna(),
    "cmaes": CMAES(),
    "gomea": GOMEA(),
}
_SEEDS = 2**32  # what every library takes


class AlgorithmError(RuntimeError):
    """A run that failed: in which algorithm, on what, and why. The cause is chained."""


def available(kind: str | None = None) -> list[str]:
    """The names that are here, without settings.

    Parameters
    ----------
    kind
        One library's only. None: of all that are installed but nevergrad, whose import takes
        seconds; `available("nevergrad")` has its hundreds.
    """
    if kind is not None:
        return _names(kind)
    here = [
        kind
        for kind, library in LIBRARIES.items()
        if kind != "nevergrad" and (library.package is None or installed(library.package))
    ]
    return [name for kind in here for name in _names(kind)]


def check(name: str, problem: Problem | None = None) -> None:
    """Raise if there is no such algorithm here, or it does not take its settings or the problem.

    ValueError or TypeError for a bad name or setting, ImportError for a package that is missing.
    """
    _, _, settings = _checked(name, None if problem is None else problem.space)
    if problem is not None and settings.get("graph") == "known":
        known_graph(problem)


def check_engines(names: Iterable[str]) -> None:
    """Raise if one of ours asks for an engine that cannot run here."""
    for name in names:
        kind, _, settings = split(name)
        engine = settings.get("engine", "auto") if kind == "anyorder" else "auto"
        reason = None if engine == "auto" else why_not(engine)
        if reason is not None:
            raise RuntimeError(f"{name}: engine {engine} cannot run here: {reason}")


def meaning(name: str) -> tuple[Any, ...]:
    """What two names have in common that stand for the same algorithm."""
    kind, detail, settings = split(name)
    if kind == "anyorder":
        return kind, *configured(detail, settings), "graph" in settings
    return kind, detail, settings


def still(name: str, configuration: Mapping[str, Any]) -> bool:
    """Whether a run of that name has that configuration today, which it had when it was done.

    Known of ours only: a preset may be another one in another version.
    """
    kind, detail, settings = split(name)
    if kind != "anyorder":
        return True
    fields = {key: x for key, x in configuration.items() if key not in ("engine", "graph")}
    try:
        return Config.from_dict(fields) == configured(detail, settings)[0]
    except (TypeError, ValueError):  # settings of another version
        return False


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
    """One run of an algorithm on a problem, maximised; one at a time in a process.

    Parameters
    ----------
    name
        As `check` takes it.
    problem, budget, seed
        The seed is from 0 to 2**32 - 1. What draws from the global generators of NumPy and Python
        draws what the seed says, too; they are left as they were.
    grid
        At which numbers of evaluations to keep the best value so far, increasing.
    engine
        What computes our policy, unless the name sets it.
    each
        Called with every value, in order of evaluation.

    Raises
    ------
    AlgorithmError
        What the algorithm or the problem raised, with their names.
    """
    kind, detail, settings = _checked(name, problem.space)
    integer("seed", seed, 0, _SEEDS - 1)
    if kind == "anyorder":
        settings = {"engine": engine, **settings}
        LIBRARIES[kind].check(detail, settings, problem.space)
    meter = Meter(problem, budget, grid, each)
    start = time.perf_counter()
    try:
        with _seeded(seed), _quiet(kind), contextlib.suppress(Spent):
            settings = LIBRARIES[kind].search(detail, settings, meter, seed)
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
    """Runs of ours in one batch, such as a GPU takes, one on each problem; they share a space.

    Each is what `run` gives with the same engine, or the reason for which it failed. Its time is
    its share of the whole.
    """
    kind, detail, settings = _checked(name, None)
    if kind != "anyorder":
        raise ValueError(f"{name} goes one run at a time, expected anyorder or anyorder:PRESET")
    if "graph" in settings:
        raise ValueError(f"{name} goes one run at a time: each problem has its own graph")
    config, chosen = configured(detail, {"engine": engine, **settings})
    places = check_grid(grid, budget)
    runs = solve_many(
        problems, runs=1, budget=budget, seeds=seeds, config=config, engine=chosen,
        grid=places.tolist(), progress=False,
    )  # fmt: skip
    if "interrupted" in runs.stop_reasons:
        raise KeyboardInterrupt
    configuration = {**runs.config.to_dict(), "engine": runs.engine}
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
    return [f"{kind}:{name}" if name else kind for name in LIBRARIES[kind].names()]


def _checked(name: str, space: Space | None) -> Parts:
    parts = split(name)
    kind, detail, settings = parts
    if kind not in LIBRARIES:
        usual = [*_names("anyorder"), *_names("baseline")]
        others = [f"{k}:NAME" for k, library in LIBRARIES.items() if library.package]
        raise unknown("algorithm", name, [*usual, *others])
    library = LIBRARIES[kind]
    if detail not in library.names():
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
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global generators, from which some libraries draw, and restore them."""
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
    """Ignore the warnings of other libraries: there is one a run, or one a point."""
    with warnings.catch_warnings():
        if LIBRARIES[kind].package is not None:
            warnings.simplefilter("ignore")
        yield
