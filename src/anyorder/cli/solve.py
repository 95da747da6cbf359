"""`anyorder solve`: one run on a built-in problem."""

from __future__ import annotations

import ast
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from anyorder._version import __version__
from anyorder.cli.common import (
    Drawable,
    aligned,
    check_folder,
    draw,
    echo,
    errors,
    exit_if_interrupted,
)
from anyorder.cli.problems import problem as chosen_problem
from anyorder.optimize import maximize
from anyorder.problems import Problem
from anyorder.result import Result
from anyorder.space import Space
from anyorder.strategies.policy.config import PRESETS, Config, resolve
from anyorder.strategies.policy.engines import ENGINES


@click.command()
@click.argument("problem")
@click.option("--n", type=int, help="Number of variables.")
@click.option("--k", type=int, help="Neighbours of each variable (nk, nkd).")
@click.option("--d", type=int, help="Values of each variable (nkd).")
@click.option("--type", "kind", type=int, help="Instance type, 0 to 5 (qubo).")
@click.option("--instance", type=int, help="Seed of the instance.  [default: 0]")
@click.option("--budget", type=int, default=10_000, show_default=True, help="Evaluations to spend.")
@click.option("--seed", type=int, help="Seed of the search; by default a random one.")
@click.option("--config", "preset", default="default", show_default=True,
              type=click.Choice(list(PRESETS)), help="Preset of the settings.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
              help="Change one setting, for example beta=2; may be repeated.")  # fmt: skip
@click.option("--engine", default="auto", show_default=True,
              type=click.Choice(["auto", *ENGINES]), help="What computes the policy.")  # fmt: skip
@click.option("--algorithm", default="anyorder", show_default=True, metavar="NAME",
              help="Another algorithm: baseline:NAME, such as baseline:tabu.")  # fmt: skip
@click.option("--plot", type=click.Path(dir_okay=False), help="Write a convergence figure here.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def solve(
    problem: str, n: int | None, k: int | None, d: int | None, kind: int | None,
    instance: int | None, budget: int, seed: int | None, preset: str, settings: tuple[str, ...],
    engine: str, algorithm: str, plot: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Solve a built-in PROBLEM: a name such as nk, or a full one such as nk:n=64,k=2,seed=1.

    `anyorder problems` lists them.
    """
    given = {"n": n, "k": k, "d": d, "type": kind, "seed": instance}
    with errors():
        request = Request(
            chosen_problem(problem, {key: x for key, x in given.items() if x is not None}),
            algorithm, budget, seed, preset, parse_config(preset, settings), engine,
        )  # fmt: skip
        check_folder("--plot", plot)
        if algorithm != "anyorder" and (settings or preset != "default" or engine != "auto"):
            raise ValueError(f"--config, --set and --engine do not apply to {algorithm}")
        answer = _by_policy(request) if algorithm == "anyorder" else _by_baseline(request)
    echo(json.dumps(answer.facts, allow_nan=False) if as_json else aligned(answer.rows))
    draw(answer.figure, plot)
    exit_if_interrupted(answer.stop_reason)


@dataclass(frozen=True)
class Request:
    """What the options ask for."""

    problem: Problem
    algorithm: str
    budget: int
    seed: int | None
    preset: str
    config: Config
    engine: str


@dataclass(frozen=True)
class Answer:
    """What is printed: rows of text, or facts as JSON; and what is drawn."""

    rows: Mapping[str, str]
    facts: Mapping[str, Any]
    figure: Drawable
    stop_reason: str


def parse_config(preset: str, settings: Sequence[str]) -> Config:
    """A preset with settings changed, each given as NAME=VALUE."""
    changes = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes NAME=VALUE, got {setting!r}")
        try:
            changes[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            changes[name] = text  # a plain word, such as fixed
    return resolve(preset).replace(**changes)


def _by_policy(request: Request) -> Answer:
    problem = request.problem
    result = maximize(
        problem.evaluate, problem.space, request.budget, seed=request.seed, config=request.config,
        engine=request.engine, vectorized=True, cache=False,
    )  # fmt: skip
    optimum = "" if problem.optimum is None else f" (optimum {problem.optimum:g})"
    if problem.optimum is None and problem.best_known is not None:
        optimum = f" (best known {problem.best_known:g})"
    rows = {
        "problem": problem.name,
        "best value": f"{result.best_value:.6g}{optimum}",
        "evaluations": f"{len(result.history)}, stopped by {result.stop_reason}",
        "restarts": str(len(result.history.restarts)),
        "settings": f"{request.preset}, seed {result.seed}, engine {result.engine}",
        "time": f"{result.seconds:.1f} s",
        "best point": "none" if result.best is None else digits(problem.space, result.best),
    }
    facts = result_facts(problem.name, request.preset, result)
    return Answer(rows, facts, result, result.stop_reason)


def _by_baseline(request: Request) -> Answer:
    from anyorder.bench.compare import Comparison, run_named

    name, problem = request.algorithm, request.problem
    if not name.startswith("baseline:"):
        raise ValueError(
            f"--algorithm is {name}, expected anyorder (--config has its presets) or baseline:NAME"
        )
    seed = secrets.randbits(32) if request.seed is None else request.seed
    trace = run_named(name, problem, request.budget, seed)
    best = np.maximum.accumulate(trace.values)
    rows = {
        "problem": problem.name,
        "best value": f"{trace.best_value:.6g}",
        "evaluations": str(request.budget),
        "algorithm": name,
        "seed": str(seed),
        "seconds": str(round(trace.seconds, 3)),
        "best": digits(problem.space, trace.best),
    }
    facts = {
        "problem": problem.name,
        "best_value": trace.best_value,
        "evaluations": request.budget,
        "algorithm": name,
        "seed": seed,
        "seconds": round(trace.seconds, 3),
        "best": np.asarray(trace.best).tolist(),
        "best_every_100": [float(value) for value in best[99::100]],
        "version": __version__,
    }
    figure = Comparison(problem.name, (name,), best[None, None], (trace.seconds,))
    return Answer(rows, facts, figure, "budget")


def digits(space: Space, point: Any, limit: int = 256) -> str:
    """A point as text, one digit for each variable where that is enough."""
    single = np.max(space.cardinalities) <= 10
    text = ("" if single else " ").join(map(str, point))
    return text if len(text) <= limit else f"{text[:limit]}... (--json has all of it)"


def result_facts(problem: str, preset: str, result: Result) -> dict[str, Any]:
    """A result for JSON."""
    paid = np.flatnonzero(~result.history.cached)
    best = result.history.best[paid][99::100].tolist()
    return {
        "problem": problem,
        "best_value": result.best_value if math.isfinite(result.best_value) else None,
        "best": None if result.best is None else np.asarray(result.best).tolist(),
        "evaluations": result.evaluations,
        "stop_reason": result.stop_reason,
        "restarts": list(result.history.restarts),
        # NaN, as long as every evaluation has failed, is not JSON
        "best_every_100": [value if math.isfinite(value) else None for value in best],
        "seed": result.seed,
        "preset": preset,
        "config": result.config.to_dict(),
        "engine": result.engine,
        "seconds": round(result.seconds, 3),
        "version": __version__,
    }
