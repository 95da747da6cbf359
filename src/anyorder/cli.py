"""The command `anyorder`."""

from __future__ import annotations

import ast
import json
import math
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import numpy as np

from . import problems
from ._checks import cores
from ._version import __version__
from .config import PRESETS, Config, resolve
from .loop import maximize
from .policy import ENGINES, choose, make_layout, why_not
from .result import Result
from .space import Space

_INFO_N = 128  # variables for which `info` says what "auto" takes: the problems' default


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="anyorder")
def main() -> None:
    """Optimise black-box functions over discrete variables."""


@main.command()
@click.argument("problem")
@click.option("--n", type=int, help="Number of variables.")
@click.option("--k", type=int, help="Neighbours of each variable (nk, nkd).")
@click.option("--d", type=int, help="Values of each variable (nkd).")
@click.option("--type", "kind", type=int, help="Instance type, 0 to 5 (qubo).")
@click.option("--instance", type=int, help="Seed of the instance.  [default: 0]")
@click.option("--budget", type=int, default=10_000, show_default=True, help="Evaluations to spend.")
@click.option("--seed", type=int, help="Seed of the search; without one, each run is another.")
@click.option("--config", "preset", default="default", show_default=True,
              type=click.Choice(list(PRESETS)), help="Preset of the settings.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
              help="Change one setting, for example beta=2; may be repeated.")  # fmt: skip
@click.option("--engine", default="auto", show_default=True,
              type=click.Choice(["auto", *ENGINES]), help="What computes the policy.")  # fmt: skip
@click.option("--plot", type=click.Path(dir_okay=False), help="Write a convergence figure here.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def solve(
    problem: str, n: int | None, k: int | None, d: int | None, kind: int | None,
    instance: int | None, budget: int, seed: int | None, preset: str, settings: tuple[str, ...],
    engine: str, plot: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Solve a built-in PROBLEM: a name such as nk, or a full one such as nk:n=64,k=2,seed=1.

    `anyorder problems` lists them.
    """
    given = {"n": n, "k": k, "d": d, "type": kind, "seed": instance}
    try:
        chosen = _problem(
            problem, {key: value for key, value in given.items() if value is not None}
        )
        config = parse_config(preset, settings)
        if plot is not None and not Path(plot).absolute().parent.is_dir():
            raise ValueError(f"--plot {plot}: there is no such folder")
        result = maximize(
            chosen.evaluate, chosen.space, budget, seed=seed, config=config, engine=engine,
            vectorized=True,
        )  # fmt: skip
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error
    except (RuntimeError, MemoryError, OSError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(_as_json(chosen, preset, result), allow_nan=False))
    else:
        click.echo(_as_text(chosen, preset, result))
    if plot is not None:  # after the result is out: a figure that fails must not cost it
        try:
            result.plot(plot)
        except (ValueError, ImportError, OSError) as error:
            raise click.ClickException(f"--plot {plot}: {error}") from error
    if result.stop_reason == "interrupted":
        sys.exit(130)


@main.command("problems")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def list_problems(as_json: bool) -> None:
    """List the built-in problems with their parameters and defaults."""
    entries = sorted(problems.registry.items())
    if as_json:
        rows = [
            {"name": name, "description": entry.description, "parameters": entry.parameters}
            for name, entry in entries
        ]
        click.echo(json.dumps(rows))
        return
    width = max(len(name) for name, _ in entries)
    for name, entry in entries:
        settings = ",".join(f"{key}={value}" for key, value in entry.parameters.items())
        click.echo(f"{name:<{width}}  {entry.description}")
        click.echo(f"{'':<{width}}  {name}:{settings}")


def _problem(name: str, given: dict[str, Any]) -> problems.Problem:
    if ":" in name:
        if given:
            options = ", ".join(f"--{'instance' if key == 'seed' else key}" for key in given)
            raise ValueError(f"{options} given beside the full name {name!r}: use one or the other")
        return problems.get(name)
    entry = problems.registry.get(name)
    if "seed" in given and entry is not None and "seed" not in entry.parameters:
        raise ValueError(f"{name} has no --instance: there is only one of each size")
    return problems.make(name, **given)


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


def _as_text(problem: problems.Problem, preset: str, result: Result) -> str:
    history = result.history
    optimum = "" if problem.optimum is None else f" (optimum {problem.optimum:g})"
    if problem.optimum is None and problem.best_known is not None:
        optimum = f" (best known {problem.best_known:g})"
    rows = {
        "problem": problem.name,
        "best value": f"{result.best_value:.6g}{optimum}",
        "evaluations": f"{len(history)}, stopped by {result.stop_reason}",
        "restarts": str(len(history.restarts)),
        "settings": f"{preset}, seed {result.seed}, engine {result.engine}",
        "time": f"{result.seconds:.1f} s",
        "best point": _short(result),
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


def _short(result: Result, limit: int = 256) -> str:
    if result.best is None:
        return "none"
    single = np.max(result.history.space.cardinalities) <= 10  # a digit a variable
    text = ("" if single else " ").join(map(str, result.best))
    return text if len(text) <= limit else f"{text[:limit]}... (--json has all of it)"


def _as_json(problem: problems.Problem, preset: str, result: Result) -> dict[str, Any]:
    best = result.history.best
    every = list(range(99, len(best), 100))
    return {
        "problem": problem.name,
        "best_value": result.best_value if math.isfinite(result.best_value) else None,
        "best": None if result.best is None else np.asarray(result.best).tolist(),
        "evaluations": len(result.history),
        "stop_reason": result.stop_reason,
        "restarts": list(result.history.restarts),
        "best_every_100": [float(best[k]) for k in every],
        "seed": result.seed,
        "preset": preset,
        "config": result.config.to_dict(),
        "engine": result.engine,
        "seconds": round(result.seconds, 3),
        "version": __version__,
    }


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def info(as_json: bool) -> None:
    """Version, which engines can run here, and which one "auto" takes."""
    reasons = {name: why_not(name) for name in ENGINES}
    facts: dict[str, Any] = {
        "anyorder": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": cores(),
    }
    for package in ("numpy", "numba", "matplotlib", "torch", "triton"):
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            facts[package] = "not installed"
    space = Space.binary(_INFO_N)
    engine, reason = choose(make_layout(space.cardinalities, space.ordered, Config()))
    if as_json:
        auto = {"n": _INFO_N, "runs": 1, "takes": engine, "reason": reason}
        engines = {name: {"runs": why is None, "why_not": why} for name, why in reasons.items()}
        click.echo(json.dumps({**facts, "engines": engines, "auto": auto}))
        return
    for name, value in facts.items():
        click.echo(f"{name:<12}{value}")
    click.echo("engines")
    for name, why in reasons.items():
        state = "runs here" if why is None else f"cannot run here: {why}"
        click.echo(f"  {name:<12}{state}; {ENGINES[name]}")
    click.echo(f"  {'auto':<12}takes {engine} for one run of {_INFO_N} bits: {reason}")
