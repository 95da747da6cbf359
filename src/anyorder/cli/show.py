"""`anyorder show` and `anyorder plot`: the contents of a study."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from pathlib import Path

import click

from anyorder.cli.common import check_folder, echo, errors
from anyorder.cli.study import as_text, facts
from anyorder.plotting.runs import KINDS, overview
from anyorder.run.study.reading import check as check_study
from anyorder.run.study.reading import load
from anyorder.run.study.replay import load_strategy
from anyorder.run.study.rescue import write_csv


@click.command()
@click.argument("study", type=click.Path(dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.option("--watch", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="Repeat every so often, until it is no longer written or Ctrl-C.")  # fmt: skip
@click.option("-o", "--output", "table", type=click.Path(dir_okay=False), metavar="FILE",
              help="Write every evaluated candidate to this CSV file instead.")  # fmt: skip
@click.option("--check", "checks", is_flag=True,
              help="Verify every checksum; list what is wrong and exit with 1.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Also what the strategy says about its search.")
def show(
    study: str, as_json: bool, watch: float | None, table: str | None, checks: bool, verbose: bool
) -> None:  # fmt: skip
    """Print the contents of a STUDY, even while it is being written.

    --output also saves what can be read of a damaged study, and exits with 1 if that is not
    everything.
    """
    if sum([table is not None, checks, as_json or watch is not None]) > 1:
        raise click.UsageError("--output, --check and --json or --watch exclude each other")
    with errors():
        if checks:
            problems = check_study(study)
            for problem in problems:
                echo(problem)
            if problems:
                raise click.ClickException(f"{len(problems)} problems in {study}")
            echo(f"{study}: no problem found")
            return
        if table is not None:
            _save(study, table)
            return
        with contextlib.suppress(KeyboardInterrupt):
            _look(study, as_json, watch, verbose)


def _look(study: str, as_json: bool, watch: float | None, verbose: bool) -> None:
    before: tuple[float, int] | None = None
    while True:
        now, at = facts(study), time.monotonic()
        rate = None if before is None else (now["evaluations"] - before[1]) / (at - before[0])
        before = at, now["evaluations"]
        if as_json:
            best = [{**one, "value": _finite(one["value"])} for one in now["best_points"]]
            now |= {"best_value": _finite(now["best_value"]), "best_points": best}
            echo(json.dumps(now, allow_nan=False))
        else:
            if watch is not None and sys.stdout.isatty():
                click.clear()
            echo(as_text(now, rate, verbose))
        if watch is None or now["being_written"] is False:
            return
        if not as_json:
            echo()
        time.sleep(watch)


def _finite(value: float | None) -> float | None:
    """Return a number that JSON can hold: None for infinities and NaN."""
    return value if value is not None and math.isfinite(value) else None


def _save(study: str, table: str) -> None:
    target = Path(table)
    if target.exists() and Path(study).exists() and target.samefile(study):
        raise click.UsageError(f"--output {table} is the study itself")
    found = write_csv(study, table)
    if found.error is None:
        echo(f"{found.written} candidates written to {table}")
        return
    lost = f"at least {found.lost} more" if found.lost else "there may be more that"
    raise click.ClickException(
        f"{found.written} candidates could be read and are in {table}; {lost} could not: "
        f"{found.error}"
    )


@click.command()
@click.argument("study", type=click.Path(dir_okay=False))
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False),
              help="Write the figure here (PNG, PDF, SVG).")  # fmt: skip
@click.option("--kind", default="convergence", show_default=True, type=click.Choice(KINDS),
              help="What to draw.")  # fmt: skip
def plot(study: str, output: str, kind: str) -> None:
    """Draw the contents of a STUDY, even while it is being written."""
    with errors():
        check_folder("--output", output)
        history = load(study)
        overview(history, lambda: load_strategy(study), kind, output, Path(study).name)
