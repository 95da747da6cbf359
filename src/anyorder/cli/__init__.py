"""The command `anyorder`."""

from __future__ import annotations

import ast
import json
import math
import platform
import secrets
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import numpy as np

from anyorder import problems
from anyorder._checks import cores, integer
from anyorder._version import __version__
from anyorder.bench.compare import Comparison, compare, run_named
from anyorder.cli.bench import bench, reproduce
from anyorder.cli.show import plot as plot_command
from anyorder.cli.show import show as show_command
from anyorder.optimize import maximize, minimize
from anyorder.program.file import Job, read
from anyorder.result import Result
from anyorder.space import Space
from anyorder.strategies.policy.config import PRESET_NAMES, Config, resolve
from anyorder.strategies.policy.engines import ENGINES, choose, make_model, why_not

_INFO_N = 128  # variables for which `info` says what "auto" takes: the problems' default


class _Interruptible(click.Group):
    """A group whose commands exit with 128 + SIGINT when Ctrl-C ends them; click's with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("interrupted: left at once", err=True)
            sys.exit(130)


@click.group(cls=_Interruptible, context_settings={"help_option_names": ["-h", "--help"]})
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
              type=click.Choice(PRESET_NAMES), help="Preset of the settings.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
              help="Change one setting, for example beta=2; may be repeated.")  # fmt: skip
@click.option("--engine", default="auto", show_default=True,
              type=click.Choice(["auto", *ENGINES]), help="What computes the policy.")  # fmt: skip
@click.option("--algorithm", default="anyorder", show_default=True, metavar="NAME",
              help="Another one: baseline:NAME, such as baseline:tabu.")  # fmt: skip
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
    try:
        chosen = _problem(
            problem, {key: value for key, value in given.items() if value is not None}
        )
        config = parse_config(preset, settings)
        if plot is not None and not Path(plot).absolute().parent.is_dir():
            raise ValueError(f"--plot {plot}: there is no such folder")
        if algorithm != "anyorder":
            if settings or preset != "default" or engine != "auto":
                raise ValueError(f"--config, --set and --engine are not for {algorithm}")
            _solve_otherwise(chosen, algorithm, budget, seed, plot, as_json)
            return
        result = maximize(
            chosen.evaluate, chosen.space, budget, seed=seed, config=config, engine=engine,
            vectorized=True, cache=False,
        )  # fmt: skip
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error
    except (RuntimeError, MemoryError, OSError, ImportError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(_as_json(chosen.name, preset, result), allow_nan=False))
    else:
        click.echo(_as_text(chosen, preset, result))
    _draw(result, plot)
    if result.stop_reason == "interrupted":
        sys.exit(130)


def _draw(result: Result | Comparison, plot: str | None) -> None:
    """Draw what is out already: a figure that fails must not cost the result."""
    if plot is not None:
        try:
            result.plot(plot)
        except (ValueError, ImportError, OSError) as error:
            raise click.ClickException(f"--plot {plot}: {error}") from error


def _solve_otherwise(
    problem: problems.Problem, name: str, budget: int, seed: int | None, plot: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """`solve` by a baseline."""
    if not name.startswith("baseline:"):
        raise ValueError(
            f"--algorithm {name}, expected anyorder (--config has its presets) or baseline:NAME"
        )
    seed = secrets.randbits(32) if seed is None else seed
    trace = run_named(name, problem, budget, seed)
    best = np.maximum.accumulate(trace.values)
    rows: dict[str, Any] = {
        "problem": problem.name,
        "best value": trace.best_value,
        "evaluations": budget,
        "algorithm": name,
        "seed": seed,
        "seconds": round(trace.seconds, 3),
        "best": np.asarray(trace.best).tolist(),
    }
    if as_json:
        every = [float(value) for value in best[99::100]]
        keyed = {key.replace(" ", "_"): value for key, value in rows.items()}
        click.echo(json.dumps({**keyed, "best_every_100": every, "version": __version__}))
    else:
        width = max(map(len, rows))
        for key, value in rows.items():
            shown = f"{value:.6g}" if key == "best value" else value
            shown = _digits(problem.space, value) if key == "best" else shown
            click.echo(f"{key:<{width}}  {shown}")
    _draw(Comparison(problem.name, (name,), best[None, None], (trace.seconds,)), plot)


@main.command("run")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--budget", type=int, help="Evaluations to spend, instead of the file's.")
@click.option("--workers", type=int, help="Evaluations at a time, instead of the file's.")
@click.option("--study", type=click.Path(dir_okay=False), help="Keep the run here, or continue it.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Write a convergence figure here.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def run_file(
    file: str, budget: int | None, workers: int | None, study: str | None, plot: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Optimise what a program prints.

    FILE is TOML: the variables, the command line with a {placeholder} for each, and where in the
    output the value is. examples/gcc/problem.toml shows one.
    """
    try:
        job = read(file)
        if plot is not None and not Path(plot).absolute().parent.is_dir():
            raise ValueError(f"--plot {plot}: there is no such folder")
        slots = integer("--workers", job.workers if workers is None else workers, 1)
        search = maximize if job.direction == "maximize" else minimize
        options = job.options if study is None else {**job.options, "study": study}
        # Threads will do: each evaluation is a process anyway, and keeps its own time.
        with ThreadPoolExecutor(slots) as executor:
            try:
                result = search(
                    job.command, job.space, job.budget if budget is None else budget,
                    executor=executor, **options,
                )  # fmt: skip
            finally:  # after Ctrl-C twice, or a failure, nobody wants what still runs
                job.command.stop()
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error
    except (RuntimeError, MemoryError, OSError, ImportError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(_run_as_json(file, job, result), allow_nan=False))
    else:
        click.echo(_run_as_text(file, job, result))
    _draw(result, plot)
    if result.stop_reason == "interrupted":
        sys.exit(130)


def _run_as_text(file: str, job: Job, result: Result) -> str:
    failed = f", {result.failures} of them failed" if result.failures else ""
    rows = {
        "problem": f"{job.direction} {file}",
        "best value": "none" if result.best is None else f"{result.best_value:.10g}",
        "evaluations": f"{result.evaluations}{failed}, stopped by {result.stop_reason}",
        "settings": f"{job.preset}, seed {result.seed}, engine {result.engine}",
        "time": f"{result.seconds:.1f} s",
    }
    if result.study is not None:
        rows["study"] = str(result.study)
    if errors := result.history.errors:
        rows["last failure"] = " ".join(errors[max(errors)].split())
    if result.best is not None:
        rows["best point"] = json.dumps(result.best)
        rows["command"] = job.command.line(result.best)
    return _aligned(rows)


def _run_as_json(file: str, job: Job, result: Result) -> dict[str, Any]:
    shown = _as_json(file, job.preset, result)
    every = [best if math.isfinite(best) else None for best in shown["best_every_100"]]
    return {
        **shown,
        "best_every_100": every,  # NaN, as long as all have failed, is no JSON
        "direction": job.direction,
        "best": result.best,
        "command": None if result.best is None else job.command.line(result.best),
        "evaluations": result.evaluations,
        "failures": result.failures,
        "study": None if result.study is None else str(result.study),
    }


@main.command("compare")
@click.argument("problem")
@click.option("--algorithms", required=True, metavar="A,B,...",
              help="anyorder, anyorder:PRESET or baseline:NAME, separated by commas.")  # fmt: skip
@click.option("--runs", type=int, default=10, show_default=True, help="Runs of each.")
@click.option("--budget", type=int, default=1_000, show_default=True, help="Evaluations of a run.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the first run.")
@click.option("--engine", default="auto", show_default=True,
              type=click.Choice(["auto", *ENGINES]), help="What computes our policy.")  # fmt: skip
@click.option("--plot", type=click.Path(dir_okay=False), help="Write a convergence figure here.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def compare_command(
    problem: str, algorithms: str, runs: int, budget: int, seed: int, engine: str,
    plot: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Run several algorithms on a built-in PROBLEM, with the same seeds and budget."""
    from tqdm import tqdm

    chosen = [name.strip() for name in algorithms.split(",")]
    try:
        if plot is not None and not Path(plot).absolute().parent.is_dir():
            raise ValueError(f"--plot {plot}: there is no such folder")
        instance = _problem(problem, {})
        with tqdm(total=len(chosen) * runs, unit="run", disable=None, delay=2.0) as bar:
            result = compare(instance, chosen, runs, budget, seed, engine, bar.update)
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error
    except (RuntimeError, MemoryError, OSError, ImportError) as error:
        raise click.ClickException(str(error)) from error
    rows = result.rows()
    if as_json:
        click.echo(json.dumps({"problem": result.problem, "runs": runs, "budget": budget,
                               "seed": seed, "table": rows}))  # fmt: skip
    else:
        click.echo(f"{result.problem}, {runs} runs of {budget} evaluations, seeds from {seed}")
        click.echo(f"{'algorithm':<32}{'mean':>12}{'sd':>12}{'rank':>6}{'p':>10}{'s a run':>9}")
        for row in rows:
            p = "" if row["p"] is None else f"{row['p']:.2g}"
            click.echo(f"{row['algorithm']:<32}{row['mean']:>12.6g}{row['sd']:>12.3g}"
                       f"{row['rank']:>6}{p:>10}{row['seconds']:>9.2f}")  # fmt: skip
        click.echo("p: Mann-Whitney, two-sided, against rank 1")
    _draw(result, plot)


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
    return _aligned(rows)


def _aligned(rows: Mapping[str, str]) -> str:
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


def _short(result: Result) -> str:
    if result.best is None:
        return "none"
    return _digits(result.history.space, result.best)


def _digits(space: Space, point: Any, limit: int = 256) -> str:
    single = np.max(space.cardinalities) <= 10  # a digit a variable
    text = ("" if single else " ").join(map(str, point))
    return text if len(text) <= limit else f"{text[:limit]}... (--json has all of it)"


def _as_json(problem: str, preset: str, result: Result) -> dict[str, Any]:
    paid = np.flatnonzero(~result.history.cached)
    best = result.history.best[paid]
    return {
        "problem": problem,
        "best_value": result.best_value if math.isfinite(result.best_value) else None,
        "best": None if result.best is None else np.asarray(result.best).tolist(),
        "evaluations": result.evaluations,
        "stop_reason": result.stop_reason,
        "restarts": list(result.history.restarts),
        "best_every_100": [float(value) for value in best[99::100]],
        "seed": result.seed,
        "preset": preset,
        "config": result.settings,
        "engine": result.engine,
        "seconds": round(result.seconds, 3),
        "version": __version__,
    }


main.add_command(show_command)
main.add_command(plot_command)
main.add_command(bench)
main.add_command(reproduce)


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
    engine, reason = choose(make_model(space.cardinalities, space.ordered, Config()))
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
