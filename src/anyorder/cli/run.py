"""`anyorder run`: optimise what a program prints."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click

from anyorder._checks import integer
from anyorder.cli.common import (
    aligned,
    check_folder,
    draw,
    echo,
    errors,
    exit_if_interrupted,
    orderly_termination,
)
from anyorder.cli.solve import described, result_facts
from anyorder.optimize import maximize, minimize
from anyorder.program.file import Job, read
from anyorder.result import Result


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--budget", type=int, help="Evaluations to spend, instead of the file's.")
@click.option("--workers", type=int, help="Evaluations at a time, instead of the file's.")
@click.option("--study", type=click.Path(dir_okay=False), help="Record the run here, or resume it.")
@click.option("--data", type=click.Path(exists=True, dir_okay=False),
              help="Learn from this CSV file or study first.")  # fmt: skip
@click.option("--plot", type=click.Path(dir_okay=False), help="Write a convergence figure here.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def run(
    file: str, budget: int | None, workers: int | None, study: str | None, data: str | None,
    plot: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Optimise what a program prints.

    FILE is TOML: the variables, the command line with a {placeholder} for each, and where in the
    output the value is. examples/gcc/problem.toml is an example.
    """
    with errors():
        job = read(file)
        check_folder("--plot", plot)
        slots = integer("--workers", job.workers if workers is None else workers, 1)
        given = {"study": study, "data": data}
        options = job.options | {key: path for key, path in given.items() if path is not None}
        result = _optimize(job, job.budget if budget is None else budget, slots, options)
    if as_json:
        echo(json.dumps(_facts(file, job, result), allow_nan=False))
    else:
        echo(aligned(_rows(file, job, result)))
    draw(result, plot)
    exit_if_interrupted(result.stop_reason)


def _optimize(job: Job, budget: int, slots: int, options: dict[str, Any]) -> Result:
    search = maximize if job.direction == "maximize" else minimize
    # Threads are enough: each evaluation is a process anyway, and keeps its own time.
    with orderly_termination(), ThreadPoolExecutor(slots) as executor:
        try:
            return search(job.command, job.space, budget, executor=executor, **options)
        finally:  # after a failure or a signal, nobody waits for what still runs
            job.command.stop()


def _rows(file: str, job: Job, result: Result) -> dict[str, str]:
    failed = f", {result.failures} of them failed" if result.failures else ""
    rows = {
        "problem": f"{job.direction} {file}",
        "best value": "none" if result.best is None else f"{result.best_value:.10g}",
        "evaluations": f"{result.evaluations}{failed}, stopped by {result.stop_reason}",
        "algorithm": described(result, job.preset),
        "time": f"{result.seconds:.1f} s",
    }
    if result.study is not None:
        rows["study"] = str(result.study)
    if messages := result.history.errors:
        rows["last failure"] = " ".join(messages[max(messages)].split())
    if result.best is not None:
        rows["best point"] = json.dumps(result.best)
        rows["command"] = job.command.line(result.best)
    return rows


def _facts(file: str, job: Job, result: Result) -> dict[str, Any]:
    return {
        **result_facts(file, job.preset, result),
        "direction": job.direction,
        "best": result.best,
        "command": None if result.best is None else job.command.line(result.best),
        "failures": result.failures,
        "study": None if result.study is None else str(result.study),
    }
