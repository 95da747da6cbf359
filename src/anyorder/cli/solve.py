"""`anyorder solve`: one run on a built-in problem."""

from __future__ import annotations

import json
import math
from typing import Any

import click
import numpy as np

from anyorder._version import __version__
from anyorder.cli.common import (
    align,
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
from anyorder.strategies.create import describe


@click.command()
@click.argument("problem")
@click.option("--n", type=int, help="Number of variables.")
@click.option("--k", type=int, help="Neighbours of each variable (nk, nkd).")
@click.option("--d", type=int, help="Values of each variable (nkd).")
@click.option("--type", "kind", type=int, help="Instance type, 0 to 5 (qubo).")
@click.option("--instance", type=int, help="Seed of the instance.  [default: 0]")
@click.option("--budget", type=int, default=10_000, show_default=True, help="Evaluations to spend.")
@click.option("--seed", type=int, help="Seed of the search; by default a random one.")
@click.option("--algorithm", metavar="NAME",
              help="How to search: ils, policy:paper, ...  [default: auto]")  # fmt: skip
@click.option("-o", "--output", "plot", type=click.Path(dir_okay=False), metavar="FILE",
              help="Write a convergence figure here.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def solve(
    problem: str, n: int | None, k: int | None, d: int | None, kind: int | None,
    instance: int | None, budget: int, seed: int | None, algorithm: str | None, plot: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Solve a built-in PROBLEM: a name such as nk, or a full one such as nk:n=64,k=2,seed=1.

    `anyorder problems` lists them.
    """
    given = {"n": n, "k": k, "d": d, "type": kind, "seed": instance}
    with errors():
        check_folder("--output", plot)
        chosen = chosen_problem(problem, {key: x for key, x in given.items() if x is not None})
        result = maximize(chosen, budget=budget, algorithm=algorithm, seed=seed, cache=False)
    if as_json:
        echo(json.dumps(result_facts(chosen.name, result), allow_nan=False))
    else:
        echo(align(_rows(chosen, result)))
    draw(result, plot)
    exit_if_interrupted(result.stop_reason)


def _rows(problem: Problem, result: Result) -> dict[str, str]:
    optimum = "" if problem.optimum is None else f" (optimum {problem.optimum:g})"
    if problem.optimum is None and problem.best_known is not None:
        optimum = f" (best known {problem.best_known:g})"
    return {
        "problem": problem.name,
        "best value": f"{result.best_value:.6g}{optimum}",
        "evaluations": f"{result.evaluations}, stopped by {result.stop_reason}",
        "restarts": str(len(result.history.restarts)),
        "algorithm": describe_algorithm(result),
        "time": f"{result.seconds:.1f} s",
        "best point": "none" if result.best is None else digits(problem.space, result.best),
    }


def describe_algorithm(result: Result) -> str:
    """Return the algorithm and its seed in one line."""
    return f"{describe(result.algorithm, result.settings)}, seed {result.seed}"


def digits(space: Space, point: Any, limit: int = 256) -> str:
    """Return a point as text, with one digit for each variable where that is enough."""
    single = np.max(space.cardinalities) <= 10
    text = ("" if single else " ").join(map(str, point))
    return text if len(text) <= limit else f"{text[:limit]}... (--json has all of it)"


def result_facts(problem: str, result: Result) -> dict[str, Any]:
    """Return a result as a dict of values for JSON."""
    paid = np.flatnonzero(~result.history.cached)
    best = result.history.best[paid][99::100].tolist()
    found: dict[str, Any] = {}
    if result.optimizer.objectives is None:
        found = {
            "best_value": result.best_value if math.isfinite(result.best_value) else None,
            "best": None if result.best is None else np.asarray(result.best).tolist(),
        }
    return {
        "problem": problem,
        **found,
        "evaluations": result.evaluations,
        "stop_reason": result.stop_reason,
        "restarts": list(result.history.restarts),
        # NaN, if every evaluation has failed so far, is not in JSON
        "best_every_100": [value if math.isfinite(value) else None for value in best],
        "seed": result.seed,
        "algorithm": result.algorithm,
        "settings": result.settings,
        "seconds": round(result.seconds, 3),
        "version": __version__,
    }
