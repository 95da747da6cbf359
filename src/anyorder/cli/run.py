"""`anyorder run`: optimise what a program prints."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import click

from anyorder._internal.checks import integer
from anyorder.cli.common import (
    align,
    check_folder,
    draw,
    echo,
    errors,
    exit_if_interrupted,
    orderly_termination,
)
from anyorder.cli.front import front_of_result, lines, summary
from anyorder.cli.solve import describe_algorithm, result_facts
from anyorder.optimize import maximize, minimize, optimize
from anyorder.program.file import Job, read
from anyorder.result import Result


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--budget", type=int, help="Evaluations to spend, instead of the file's.")
@click.option("--workers", type=int, help="Evaluations at a time, instead of the file's.")
@click.option("--seed", type=int, help="Seed of the search, instead of the file's.")
@click.option("--algorithm", help="Search strategy, instead of the file's.")
@click.option("--max-seconds", type=float, help="Stop after this time.")
@click.option("--study", type=click.Path(dir_okay=False), help="Record the run here, or resume it.")
@click.option("--data", type=click.Path(exists=True, dir_okay=False),
              help="Learn from this CSV file or study first.")  # fmt: skip
@click.option("-o", "--output", "plot", type=click.Path(dir_okay=False), metavar="FILE",
              help="Write a convergence figure here.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def run(
    file: str, budget: int | None, workers: int | None, seed: int | None, algorithm: str | None,
    max_seconds: float | None, study: str | None, data: str | None, plot: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Optimise what a program prints.

    FILE is TOML: the variables, the command line with a {placeholder} for each, and where in the
    output the value is. examples/gcc/problem.toml is an example.

    The exit status is 1 if every evaluation failed.
    """
    with errors():
        job = read(file)
        check_folder("--output", plot)
        slots = integer("--workers", job.workers if workers is None else workers, 1)
        given = {
            "seed": seed, "algorithm": algorithm, "max_seconds": max_seconds, "study": study,
            "data": data,
        }  # fmt: skip
        options = job.options | {key: value for key, value in given.items() if value is not None}
        result = _optimize(job, job.budget if budget is None else budget, slots, options)
    if as_json:
        echo(json.dumps(_facts(file, job, result), allow_nan=False))
    else:
        listed = lines(front_of_result(result)) if job.objectives is not None else []
        echo("\n".join([align(_rows(file, job, result)), *listed]))
    draw(result, plot)
    exit_if_interrupted(result.stop_reason)
    if result.stop_reason == "failed":
        sys.exit(1)


def _optimize(job: Job, budget: int | None, slots: int, options: dict[str, Any]) -> Result:
    search: Any = maximize if job.direction == "maximize" else minimize
    if job.objectives is not None:
        search = partial(optimize, objectives=job.objectives)
    # Threads are enough: each evaluation is a process of its own, which has its own time limit.
    with orderly_termination(), ThreadPoolExecutor(slots) as executor:
        try:
            result: Result = search(job.command, job.space, budget, executor=executor, **options)
            return result
        finally:  # after a failure or a signal, do not wait for evaluations that still run
            job.command.stop()


def _value(result: Result) -> str:
    error = "" if result.best_error is None else f" +- {result.best_error:.2g}"
    return f"{result.best_value:.10g}{error}"


def _rows(file: str, job: Job, result: Result) -> dict[str, str]:
    failed = f", {result.failures} of them failed" if result.failures else ""
    several = job.objectives is not None
    rows = {
        "problem": f"{job.direction or result.optimizer.objectives} {file}",
        **(
            {"front": summary(front_of_result(result))}
            if several
            else {"best value": "none" if result.best is None else _value(result)}
        ),
        "evaluations": f"{result.evaluations}{failed}, stopped by {result.stop_reason}",
        "algorithm": describe_algorithm(result),
        "time": f"{result.seconds:.1f} s",
    }
    if result.study is not None:
        rows["study"] = str(result.study)
    if messages := result.history.errors:
        rows["last failure"] = " ".join(messages[max(messages)].split())
    if not several and result.best is not None:
        rows["best point"] = json.dumps(result.best)
        rows["command"] = job.command.line(result.best)
    return rows


def _facts(file: str, job: Job, result: Result) -> dict[str, Any]:
    found: dict[str, Any]
    if job.objectives is not None:
        found = front_of_result(result)
        for row in found["front"]:
            row["command"] = job.command.line(row["point"])
    else:
        found = {
            "direction": job.direction,
            "best": result.best,
            "best_count": result.best_count,
            "best_error": result.best_error,
            "command": None if result.best is None else job.command.line(result.best),
        }
    return {
        **result_facts(file, result),
        **found,
        "failures": result.failures,
        "study": None if result.study is None else str(result.study),
    }
