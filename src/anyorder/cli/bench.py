"""`anyorder bench`: campaigns of many algorithms on many problems."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from anyorder.cli.campaigns import check_output, do_runs, of_runs, read_results, where_to_run
from anyorder.cli.common import echo, errors


@click.group()
def bench() -> None:
    """Run campaigns: many algorithms on many problems."""


@bench.command("run")
@click.argument("campaign", type=click.Path(exists=True, dir_okay=False))
@click.option("-o", "--output", "out", required=True, type=click.Path(dir_okay=False),
              help="The file of runs.")  # fmt: skip
@click.option("--retry-failed", is_flag=True, help="Repeat failed runs.")
@where_to_run
def run_command(
    campaign: str, out: str, retry_failed: bool, workers: int, scheduler: str | None, engine: str
) -> None:
    """Do the runs of a CAMPAIGN file that are missing from the file of runs.

    The exit status is 1 if some of the runs have failed, now or before.
    """
    from anyorder.bench import campaign as campaigns

    with errors():
        read = campaigns.read(campaign)
        failed = do_runs(read, out, workers, scheduler, engine, retry_failed)
    if failed:
        sys.exit(1)


@bench.command()
@click.argument("runs", type=click.Path(exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status(runs: str, as_json: bool) -> None:
    """Show the progress of a campaign, its failures, and the time left."""
    from anyorder.bench.store import Store

    with errors(), Store(runs, existing=True) as store:
        counts, left = store.counts(), store.seconds_left()
        failures, earlier = store.failures(None if as_json else 10), store.earlier()
    totals = {state: sum(cell.get(state, 0) for cell in counts.values())
              for state in ("done", "running", "waiting", "failed")}  # fmt: skip
    if as_json:
        rows = [{"distribution": d, "algorithm": a, **states} for (d, a), states in counts.items()]
        echo(json.dumps({**totals, "seconds_left": left, "done_earlier": earlier, "cells": rows,
                               "failures": [list(row) for row in failures]}))  # fmt: skip
        return
    echo(", ".join(f"{count} {state}" for state, count in totals.items()))
    if totals["waiting"] + totals["running"]:
        known = "not known yet" if left is None else f"{left / 60:.1f} minutes of one worker"
        echo(f"left: {known}")
    if earlier:
        echo(f"{earlier} more are done, of earlier campaigns")
    rest = {cell: states for cell, states in counts.items() if set(states) != {"done"}}
    widths = [max(map(len, labels)) for labels in zip(*rest, strict=True)]
    for cell, states in rest.items():
        labels = "  ".join(label.ljust(w) for label, w in zip(cell, widths, strict=True))
        echo(f"  {labels}  {', '.join(f'{n} {state}' for state, n in states.items())}")
    for algorithm, distribution, reason, count in failures:
        echo(f"failed {count} x {algorithm} on {distribution}: {reason}")
    unnamed = totals["failed"] - sum(count for *_, count in failures)
    if unnamed:
        echo(f"and {unnamed} more, for other reasons: --json has them all")


@bench.command()
@of_runs
@click.option("-o", "--output", "out", required=True, type=click.Path(dir_okay=False),
              help="The page.")  # fmt: skip
@click.option("--title", help="By default the name of the campaign.")
@click.option("--note", "notes", multiple=True, help="A sentence for the reader; may be repeated.")
def report(
    runs: str, algorithms: str | None, distributions: str | None, out: str, title: str | None,
    notes: tuple[str, ...],
) -> None:  # fmt: skip
    """Write one HTML page with all tables and figures."""
    from anyorder.bench import curves
    from anyorder.bench import report as page
    from anyorder.bench.store import Store

    with errors():
        check_output(out, runs)
        found = read_results(runs, algorithms, distributions)
        versions = {}
        if not curves.is_curves(runs):
            with Store(runs, existing=True) as store:
                versions = store.versions()
        page.write(found, out, title, notes, versions=versions)


@bench.command()
@of_runs
@click.option("--show", default="mean", show_default=True,
              type=click.Choice(["mean", "running-time", "area", "mann-whitney"]),
              help="Means and ranks, expected running times, areas over the curve, or tests "
              "against the reference.")  # fmt: skip
@click.option("--at", type=int, help="After so many evaluations.", show_default="the end")
@click.option("--format", "form", default="text", show_default=True,
              type=click.Choice(["text", "markdown", "csv", "latex"]))  # fmt: skip
@click.option("--spread", default="none", show_default=True,
              type=click.Choice(["none", "sd", "error", "interval"]),
              help="What is printed after a mean.")  # fmt: skip
@click.option("--reference", metavar="LABEL", help="The algorithm that others are compared with.")
@click.option("-o", "--output", "out", type=click.Path(dir_okay=False), help="Write to this file.")
def table(
    runs: str, algorithms: str | None, distributions: str | None, show: str, at: int | None,
    form: str, spread: str, reference: str | None, out: str | None,
) -> None:  # fmt: skip
    """Print means and ranks, or another measure: distributions by algorithms."""
    from anyorder.bench import tables

    with errors():
        if out is not None:
            check_output(out, runs)
        found = read_results(runs, algorithms, distributions)
        made: Any
        if show == "mean":
            made = tables.table(found, at, spread=spread, reference=reference)
        elif spread != "none":
            raise ValueError(f"--spread goes with means, not with {show}")
        else:
            made = tables.measures(found, show, at, reference=reference)
        text: str = getattr(made, f"to_{form}")()
        if out is None:
            echo(text, nl=False)
        else:
            Path(out).write_text(text, "utf-8")


@bench.command()
@of_runs
@click.argument("kind", type=click.Choice(["convergence", "ranks", "ecdf", "critical"]))
@click.option("-o", "--output", "out", required=True, type=click.Path(dir_okay=False),
              help="PNG, PDF or SVG, by its suffix.")  # fmt: skip
@click.option("--at", type=int, help="Ranks after so many evaluations.", show_default="the end")
@click.option("--log", is_flag=True, help="Convergence on a logarithmic axis, from the start.")
@click.option("--dark", is_flag=True, help="Use a dark background.")
def figure(
    runs: str, algorithms: str | None, distributions: str | None, kind: str, out: str,
    at: int | None, log: bool, dark: bool,
) -> None:  # fmt: skip
    """Draw the convergence, ranks, ECDF or critical differences."""
    from anyorder.bench import figures

    with errors():
        check_output(out, runs)
        found = read_results(runs, algorithms, distributions)
        if at is not None and kind not in ("ranks", "critical"):
            raise ValueError(f"--at is {at}, expected none: {kind} is over all evaluations")
        if log and kind != "convergence":
            raise ValueError(f"--log goes with convergence, not with {kind}")
        if kind == "convergence":
            figures.convergence(found, out, log=log, dark=dark)
        elif kind == "ecdf":
            figures.ecdf(found, out, dark=dark)
        elif kind == "ranks":
            figures.rank_map(found, out, evaluations=at, dark=dark)
        else:
            figures.critical_difference(found, out, evaluations=at, dark=dark)


@bench.command()
@of_runs
@click.option("--last", is_flag=True, help="Only the runs of the last campaign.")
@click.argument("to", type=click.Path())
def export(
    runs: str, algorithms: str | None, distributions: str | None, last: bool, to: str
) -> None:
    """Export the finished runs, of all campaigns that were run with this file.

    If TO ends in .csv or .csv.gz, it is one small file of curves, which the other commands read as
    well. Otherwise it is an empty folder, in the format of IOHprofiler.
    """
    from anyorder.bench import curves, ioh_export
    from anyorder.bench.store import Store

    with errors():
        if last and curves.is_curves(runs):
            raise ValueError(f"--last goes with a file of runs, and {runs} is one of curves")
        found = read_results(runs, algorithms, distributions, everything=not last)
        if curves.is_curves(to):
            check_output(to, runs)
            curves.write(found, to)
            return
        if curves.is_curves(runs):
            raise ValueError(
                f"{runs} does not contain the number of variables: export from the file of runs"
            )
        with Store(runs, existing=True) as store:
            dimensions = store.dimensions(everything=not last)
        ioh_export.export(found, to, dimensions)
