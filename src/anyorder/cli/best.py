"""`anyorder best` and `anyorder resume`: short commands for a study."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from anyorder.cli.common import align, echo, errors
from anyorder.cli.front import lines, summary
from anyorder.cli.run import run
from anyorder.cli.study import facts
from anyorder.run.study.reading import open_study, read_settings, translate_errors


@click.command()
@click.argument("study", type=click.Path(dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def best(study: str, as_json: bool) -> None:
    """Print the best value of a STUDY and its point, while it is being written as well.

    With several objectives it prints the front, with all of its points.

    The exit status is 1 if no evaluation has a value yet.
    """
    with errors():
        known = facts(study)
    if "front" in known:
        _print_front(known, as_json)
        return
    names = ("best_value", "best_error", "best", "improved_after", "evaluations", "budget")
    found = {name: known[name] for name in names}
    value = known["best_value"]
    if as_json:
        if value is not None and abs(value) == float("inf"):
            found["best_value"] = None  # JSON has no infinity
        echo(json.dumps(found, allow_nan=False))
    else:
        rows = {"best value": "none" if value is None else f"{value!r}"}
        if known["best_error"] is not None:
            rows["best value"] += f" +- {known['best_error']:.2g}"
        if value is not None:
            rows["best point"] = json.dumps(known["best"])
            rows["found after"] = f"{known['improved_after']} of {known['evaluations']} evaluations"
        echo(align(rows))
    if value is None:
        sys.exit(1)


def _print_front(known: dict[str, Any], as_json: bool) -> None:
    names = ("objectives", "front", "hypervolume", "improved_after", "evaluations", "budget")
    if as_json:
        echo(json.dumps({name: known[name] for name in names}, allow_nan=False))
    else:
        echo("\n".join([align({"front": summary(known)}), *lines(known)]))
    if not known["front"]:
        sys.exit(1)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("study", type=click.Path(exists=True, dir_okay=False))
@click.option("--budget", type=int, help="Evaluations in all.", show_default="the study's")
@click.option("--workers", type=int, help="Evaluations at a time, instead of the file's.")
@click.option("--max-seconds", type=float, help="Stop after this time.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def resume(
    context: click.Context, file: str, study: str, budget: int | None, workers: int | None,
    max_seconds: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Continue the run of the problem in FILE that a STUDY holds.

    This does what `anyorder run FILE --study STUDY` does, but the study must exist, and its budget
    counts.
    """
    with errors():
        path = Path(study).absolute()
        with open_study(path) as database, translate_errors(path):
            budget = read_settings(database)["budget"] if budget is None else budget
    context.invoke(
        run, file=file, study=study, budget=budget, workers=workers, max_seconds=max_seconds,
        as_json=as_json,
    )  # fmt: skip
