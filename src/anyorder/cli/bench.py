"""`anyorder bench` and `anyorder reproduce`."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from anyorder._checks import cores, integer


@contextlib.contextmanager
def one_line() -> Iterator[None]:
    """What goes wrong is told in one line."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error
    except (RuntimeError, MemoryError, OSError, ImportError) as error:
        raise click.ClickException(str(error)) from error


@click.group()
def bench() -> None:
    """Campaigns: many algorithms on many problems."""


def _where_to_run(command: Any) -> Any:
    for option in (
        click.option("--workers", type=int, default=cores(), show_default="cores",
                     help="Processes."),
        click.option("--scheduler", metavar="ADDRESS",
                     help="A Dask scheduler whose workers to use instead."),
        click.option("--engine", default="auto", show_default=True,
                     type=click.Choice(["auto", "cpu", "cuda"]),
                     help="Ours on the GPU, many runs at once, where there is one."),
    ):  # fmt: skip
        command = option(command)
    return command


@bench.command("run")
@click.argument("campaign", type=click.Path(exists=True, dir_okay=False))
@click.option("--out", required=True, type=click.Path(dir_okay=False), help="The file of runs.")
@click.option("--retry-failed", is_flag=True, help="Do again what has failed.")
@_where_to_run
def run_command(
    campaign: str, out: str, retry_failed: bool, workers: int, scheduler: str | None, engine: str
) -> None:
    """Do the runs of a CAMPAIGN file that are missing in the file of runs.

    The exit status is 1 if some of them have failed, now or before.
    """
    from anyorder.bench import campaign as campaigns

    with one_line():
        read = campaigns.read(campaign)
        failed = _do(read, out, workers, scheduler, engine, retry_failed)
    if failed:
        sys.exit(1)


def _do(
    campaign: Any, out: str, workers: int, scheduler: str | None, engine: str, retry: bool = False
) -> int:
    """Do the runs of a campaign; returns how many of them have failed."""
    from tqdm import tqdm

    from anyorder.bench import algorithms, curves, runner
    from anyorder.bench.store import Store

    integer("workers", workers, 1)
    if curves.is_curves(out):
        raise ValueError(f"--out is {out}, expected another name, such as runs.db: what ends in "
                         f"{' or '.join(curves.SUFFIXES)} is a file of curves")  # fmt: skip
    methods = {spec.method for spec in campaign.specs}
    if scheduler is None:  # another machine may have what this one has not
        algorithms.check_engines(methods)
    with Store(out) as store:
        other = store.set_aside(methods, algorithms.still)
        if other:
            click.echo(
                f"{other} runs in {out} were done with settings that their algorithm's name no "
                "longer stands for: they stay in the file, and are done again", err=True,
            )  # fmt: skip
        store.request(campaign.name, campaign.specs, retry)
        missing = store.waiting()
        click.echo(f"{campaign.name}: {len(campaign.specs)} runs, {missing} to do", err=True)
        with tqdm(total=missing, unit="run", disable=None) as bar:
            reason = runner.run(
                store, workers=workers, scheduler=scheduler, seconds=campaign.seconds,
                memory=campaign.memory, modules=campaign.modules, engine=engine,
                progress=bar.update,
            )  # fmt: skip
        failed = sum(states.get("failed", 0) for states in store.counts().values())
    if failed:
        click.echo(f"{failed} runs failed: `anyorder bench status {out}` says why", err=True)
    if reason == "interrupted":
        sys.exit(130)
    return failed


@bench.command()
@click.argument("runs", type=click.Path(exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status(runs: str, as_json: bool) -> None:
    """How far a campaign is, what has failed, and how long the rest will take."""
    from anyorder.bench.store import Store

    with one_line(), Store(runs, existing=True) as store:
        counts, left = store.counts(), store.seconds_left()
        failures = store.failures(None if as_json else 10)
    totals = {state: sum(cell.get(state, 0) for cell in counts.values())
              for state in ("done", "running", "waiting", "failed")}  # fmt: skip
    if as_json:
        rows = [{"distribution": d, "algorithm": a, **states} for (d, a), states in counts.items()]
        click.echo(json.dumps({**totals, "seconds_left": left, "cells": rows,
                               "failures": [list(row) for row in failures]}))  # fmt: skip
        return
    click.echo(", ".join(f"{count} {state}" for state, count in totals.items()))
    if totals["waiting"] + totals["running"]:
        known = "not known yet" if left is None else f"{left / 60:.1f} minutes of one worker"
        click.echo(f"left: {known}")
    rest = {cell: states for cell, states in counts.items() if set(states) != {"done"}}
    widths = [max(map(len, labels)) for labels in zip(*rest, strict=True)]
    for cell, states in rest.items():
        labels = "  ".join(label.ljust(w) for label, w in zip(cell, widths, strict=True))
        click.echo(f"  {labels}  {', '.join(f'{n} {state}' for state, n in states.items())}")
    for algorithm, distribution, reason, count in failures:
        click.echo(f"failed {count} x {algorithm} on {distribution}: {reason}")
    unnamed = totals["failed"] - sum(count for *_, count in failures)
    if unnamed:
        click.echo(f"and {unnamed} more, for other reasons: --json has them all")


def _of_runs(command: Any) -> Any:
    """A command on a file of runs, or on some of its algorithms and distributions."""
    for option in (
        click.option("--distributions", metavar="LABELS", help="Only these, separated by commas."),
        click.option("--algorithms", metavar="LABELS",
                     help="Only these, separated by commas, in this order."),
        click.argument("runs", type=click.Path(exists=True, dir_okay=False)),
    ):  # fmt: skip
        command = option(command)
    return command


def _results(runs: str, algorithms: str | None, distributions: str | None) -> Any:
    from anyorder.bench import curves
    from anyorder.bench.store import Store

    if curves.is_curves(runs):
        found = curves.read(runs)
    else:
        with Store(runs, existing=True) as store:
            found = store.results()
    return found.only(
        _labels(algorithms, found.algorithms), _labels(distributions, found.distributions)
    )


def _labels(text: str | None, known: tuple[str, ...]) -> tuple[str, ...] | None:
    """Labels separated by commas; those that have commas themselves are found as well."""
    if text is None:
        return None
    found, rest = [], text
    while rest.strip():
        fits = [label for label in known if re.match(rf"\s*{re.escape(label)}\s*(,|$)", rest)]
        # an unknown one goes on, for `Results.only` to name it
        label = max(fits, key=len) if fits else rest.partition(",")[0].strip()
        found.append(label)
        rest = rest.lstrip()[len(label) :].lstrip().removeprefix(",")
    return tuple(found)


@bench.command()
@_of_runs
@click.option("-o", "--out", required=True, type=click.Path(dir_okay=False), help="The page.")
@click.option("--title", help="By default the name of the campaign.")
@click.option("--note", "notes", multiple=True, help="A sentence for the reader; may be repeated.")
def report(
    runs: str, algorithms: str | None, distributions: str | None, out: str, title: str | None,
    notes: tuple[str, ...],
) -> None:  # fmt: skip
    """Write one HTML page that shows it all, to be opened in a browser."""
    from anyorder.bench import curves
    from anyorder.bench import report as page
    from anyorder.bench.store import Store

    with one_line():
        may_write(out, runs)
        found = _results(runs, algorithms, distributions)
        versions = {}
        if not curves.is_curves(runs):
            with Store(runs, existing=True) as store:
                versions = store.versions()
        page.write(found, out, title, notes, versions=versions)


@bench.command()
@_of_runs
@click.option("--show", default="mean", show_default=True,
              type=click.Choice(["mean", "running-time", "area", "mann-whitney"]),
              help="Means and ranks, expected running times, areas over the curve, or tests "
              "against the reference.")  # fmt: skip
@click.option("--at", type=int, help="After so many evaluations.", show_default="the end")
@click.option("--format", "form", default="text", show_default=True,
              type=click.Choice(["text", "markdown", "csv", "latex"]))  # fmt: skip
@click.option("--spread", default="none", show_default=True,
              type=click.Choice(["none", "sd", "error", "interval"]),
              help="What stands after a mean.")  # fmt: skip
@click.option("--reference", metavar="LABEL", help="The algorithm that stars or tests are about.")
@click.option("-o", "--out", type=click.Path(dir_okay=False), help="A file, instead of here.")
def table(
    runs: str, algorithms: str | None, distributions: str | None, show: str, at: int | None,
    form: str, spread: str, reference: str | None, out: str | None,
) -> None:  # fmt: skip
    """Print means and ranks, or another measure: distributions by algorithms."""
    from anyorder.bench import tables

    with one_line():
        if out is not None:
            may_write(out, runs)
        found = _results(runs, algorithms, distributions)
        made: Any
        if show == "mean":
            made = tables.table(found, at, spread=spread, reference=reference)
        elif spread != "none":
            raise ValueError(f"--spread goes with means, not with {show}")
        else:
            made = tables.measures(found, show, at, reference=reference)
        text: str = getattr(made, f"to_{form}")()
        if out is None:
            click.echo(text, nl=False)
        else:
            Path(out).write_text(text, "utf-8")


@bench.command()
@_of_runs
@click.argument("kind", type=click.Choice(["convergence", "ranks", "ecdf", "critical"]))
@click.option("-o", "--out", required=True, type=click.Path(dir_okay=False),
              help="PNG, PDF or SVG, by its suffix.")  # fmt: skip
@click.option("--at", type=int, help="Ranks after so many evaluations.", show_default="the end")
@click.option("--log", is_flag=True, help="Convergence on a logarithmic axis, from the start.")
@click.option("--dark", is_flag=True, help="On a dark ground.")
def figure(
    runs: str, algorithms: str | None, distributions: str | None, kind: str, out: str,
    at: int | None, log: bool, dark: bool,
) -> None:  # fmt: skip
    """Draw the convergence, ranks, ECDF or critical differences."""
    from anyorder.bench import figures

    with one_line():
        may_write(out, runs)
        found = _results(runs, algorithms, distributions)
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
@_of_runs
@click.argument("to", type=click.Path())
def export(runs: str, algorithms: str | None, distributions: str | None, to: str) -> None:
    """Write the runs elsewhere.

    TO a name in .csv or .csv.gz: one small file of curves, which the other commands read as well.
    Otherwise an empty folder, in the format of IOHprofiler.
    """
    from anyorder.bench import curves, ioh_export
    from anyorder.bench.store import Store

    with one_line():
        found = _results(runs, algorithms, distributions)
        if curves.is_curves(to):
            may_write(to, runs)
            curves.write(found, to)
            return
        if curves.is_curves(runs):
            raise ValueError(f"{runs} does not say how many variables there are: export the runs")
        with Store(runs, existing=True) as store:
            dimensions = store.dimensions()
        ioh_export.export(found, to, dimensions)


@click.command()
@click.argument("items", nargs=-1)
@click.option(
    "--rows",
    help="Only these distributions, separated by commas, by name or first words: QUBO,NK 64 4.",
)
@click.option(
    "--methods",
    help="Only these labels, separated by commas; the tables also have PBIL, "
    "MIMIC, BOA, (1+1) EA, hill climbing, and best other (through Nevergrad).",
)
@click.option("--runs", type=int, default=10, show_default=True, help="On each instance.")
@click.option("--instances", type=int, default=10, show_default=True, help="Of each distribution.")
@click.option("--out", type=click.Path(dir_okay=False), default="reproduce.db", show_default=True,
              help="The file of runs; what is there is not done again.")  # fmt: skip
@click.option("--figures", type=click.Path(file_okay=False, exists=True), metavar="FOLDER",
              help="Draw them there, too.")  # fmt: skip
@click.option("--csv", "as_csv", is_flag=True, help="Print as CSV.")
@_where_to_run
def reproduce(
    items: tuple[str, ...], rows: str | None, methods: str | None, runs: int, instances: int,
    out: str, figures: str | None, as_csv: bool, workers: int, scheduler: str | None, engine: str,
) -> None:  # fmt: skip
    """Run tables and figures of the paper again; without ITEMS, list them.

    The exit status is 1 if some runs have failed.
    """
    from anyorder.bench import algorithms
    from anyorder.bench import reproduce as paper
    from anyorder.bench.store import Store

    if not items:
        width = max(map(len, paper.ITEMS))
        for name, item in paper.ITEMS.items():
            note = f" (not yet there: {item.missing})" if item.missing else ""
            click.echo(f"{name:<{width}}  {item.title}{note}")
        return
    with one_line():
        campaigns = {}
        for name in items:
            item = paper.find(name)
            some = _labels(methods, (*item.methods, *item.rivals))
            campaigns[name] = paper.campaign(name, _labels(rows, item.rows), instances, runs, some)
        for method in {spec.method for c in campaigns.values() for spec in c.specs}:
            algorithms.check(method)
        failed = 0
        for name, campaign in campaigns.items():
            failed += _do(campaign, out, workers, scheduler, engine)
            with Store(out) as store:
                store.request(campaign.name, campaign.specs)  # its labels and its order
                results = store.results()
            click.echo(_set(paper.HEAD, paper.beside(name, results), as_csv))
            if figures is not None:
                for path in paper.figures(name, results, Path(figures), engine):
                    click.echo(str(path), err=True)
    if failed:
        sys.exit(1)


def _set(head: tuple[str, ...], lines: list[dict[str, str]], as_csv: bool) -> str:
    if as_csv:
        text = io.StringIO()
        writer = csv.DictWriter(text, head, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        return text.getvalue().rstrip()
    widths = [max([len(name), *(len(line[name]) for line in lines)]) for name in head]
    rows = [dict(zip(head, head, strict=True)), *lines]
    return "\n".join(
        "  ".join(row[name].ljust(w) if k < 2 else row[name].rjust(w)
                  for k, (name, w) in enumerate(zip(head, widths, strict=True)))
        for row in rows
    )  # fmt: skip


def may_write(path: str, runs: str) -> None:
    """Refuse a path to write to whose folder is not there, or that is a database, or what is read.

    A mistyped name must not cost the runs of a week.
    """
    from anyorder._sqlite import is_database

    to = Path(path).absolute()
    if not to.parent.is_dir():
        raise ValueError(f"{path}: there is no such folder")
    if to.is_file() and (to.samefile(runs) or is_database(to)):
        raise ValueError(f"{path} holds runs, and is left as it is: write to another file")
