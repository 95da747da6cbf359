"""`anyorder solve`: one run on a built-in problem."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from anyorder._version import __version__
from anyorder.cli.common import (
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
from anyorder.strategies.policy.config import PRESET_NAMES, Config, resolve
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
@click.option("--config", "preset", type=click.Choice(list(PRESET_NAMES)),
              help="Preset of the policy.  [default: default]")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
              help="Change a setting of the policy, such as beta=2; may be repeated.")  # fmt: skip
@click.option("--engine", default="auto", show_default=True,
              type=click.Choice(["auto", *ENGINES]), help="What computes the policy.")  # fmt: skip
@click.option("--algorithm", metavar="NAME",
              help="How to search: policy, ils, tabu, ...  [default: auto]")  # fmt: skip
@click.option("--plot", type=click.Path(dir_okay=False), help="Write a convergence figure here.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def solve(
    problem: str, n: int | None, k: int | None, d: int | None, kind: int | None,
    instance: int | None, budget: int, seed: int | None, preset: str | None,
    settings: tuple[str, ...],
    engine: str, algorithm: str | None, plot: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Solve a built-in PROBLEM: a name such as nk, or a full one such as nk:n=64,k=2,seed=1.

    `anyorder problems` lists them.
    """
    given = {"n": n, "k": k, "d": d, "type": kind, "seed": instance}
    with errors():
        check_folder("--plot", plot)
        chosen = chosen_problem(problem, {key: x for key, x in given.items() if x is not None})
        preset = preset or ""
        config = parse_config(preset, settings) if settings or preset else None
        result = maximize(
            chosen, budget=budget, algorithm=algorithm, seed=seed, engine=engine,
            config=config, vectorized=True, cache=False,
        )  # fmt: skip
    if as_json:
        echo(json.dumps(result_facts(chosen.name, preset, result), allow_nan=False))
    else:
        echo(aligned(_rows(chosen, preset, result)))
    draw(result, plot)
    exit_if_interrupted(result.stop_reason)


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
    return resolve(preset or "default").replace(**changes)


def _rows(problem: Problem, preset: str, result: Result) -> dict[str, str]:
    optimum = "" if problem.optimum is None else f" (optimum {problem.optimum:g})"
    if problem.optimum is None and problem.best_known is not None:
        optimum = f" (best known {problem.best_known:g})"
    return {
        "problem": problem.name,
        "best value": f"{result.best_value:.6g}{optimum}",
        "evaluations": f"{result.evaluations}, stopped by {result.stop_reason}",
        "restarts": str(len(result.history.restarts)),
        "algorithm": described(result, preset),
        "time": f"{result.seconds:.1f} s",
        "best point": "none" if result.best is None else digits(problem.space, result.best),
    }


def described(result: Result, preset: str) -> str:
    """The algorithm in one line: its name, preset, seed and engine."""
    parts = [result.algorithm, preset, f"seed {result.seed}"]
    parts += [] if result.engine is None else [f"engine {result.engine}"]
    return ", ".join(part for part in parts if part)


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
        "algorithm": result.algorithm,
        "preset": preset or ("default" if result.config is not None else None),
        "config": result.settings,
        "engine": result.engine,
        "seconds": round(result.seconds, 3),
        "version": __version__,
    }
