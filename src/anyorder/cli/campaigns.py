"""Options, runs, labels and output files that `anyorder bench` and `anyorder reproduce` share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from anyorder._internal.checks import cores, integer
from anyorder.cli.common import echo, exit_if_interrupted, orderly_termination

if TYPE_CHECKING:
    from anyorder.bench.campaign import Campaign
    from anyorder.bench.results import Results


def where_to_run(command: Any) -> Any:
    """Add to a command the options that say where runs are done."""
    for option in (
        click.option("--workers", type=int, default=cores(), show_default="cores",
                     help="Processes."),
        click.option("--scheduler", metavar="ADDRESS",
                     help="A Dask scheduler whose workers to use instead."),
        click.option("--engine", default="auto", show_default=True,
                     type=click.Choice(["auto", "cpu", "cuda"]),
                     help="Whether the method runs on the GPU, many runs at once."),
    ):  # fmt: skip
        command = option(command)
    return command


def do_runs(
    campaign: Campaign,
    out: str,
    workers: int,
    scheduler: str | None,
    engine: str,
    retry: bool = False,
) -> int:
    """Do the runs of a campaign, and return how many of them have failed."""
    from tqdm import tqdm

    from anyorder.bench import algorithms, curves, runner
    from anyorder.bench.store import Store

    integer("workers", workers, 1)
    if curves.is_curves(out):
        raise ValueError(f"--output is {out}, expected another name, such as runs.db: what ends in "
                         f"{' or '.join(curves.SUFFIXES)} is a file of curves")  # fmt: skip
    methods = {spec.method for spec in campaign.specs}
    if scheduler is None:  # another machine may have an engine that this one lacks
        algorithms.check_engines(methods)
    with Store(out) as store:
        other = store.set_aside(methods, algorithms.still)
        if other:
            echo(
                f"{other} runs in {out} were done with settings that their algorithm's name no "
                "longer stands for: they stay in the file, and are repeated", err=True,
            )  # fmt: skip
        store.request(campaign.name, campaign.specs, retry)
        missing = store.waiting()
        echo(f"{campaign.name}: {len(campaign.specs)} runs, {missing} to do", err=True)
        with orderly_termination(), tqdm(total=missing, unit="run", disable=None) as bar:
            reason = runner.run(
                store, workers=workers, scheduler=scheduler, seconds=campaign.seconds,
                memory=campaign.memory, modules=campaign.modules, engine=engine,
                progress=bar.update,
            )  # fmt: skip
        failed = sum(states.get("failed", 0) for states in store.counts().values())
    if failed:
        echo(f"{failed} runs failed: `anyorder bench status {out}` says why", err=True)
    exit_if_interrupted(reason)
    return failed


def of_runs(command: Any) -> Any:
    """Add to a command a file of runs as an argument, and options for some of its labels."""
    for option in (
        click.option("--distributions", metavar="LABELS", help="Only these, separated by commas."),
        click.option("--algorithms", metavar="LABELS",
                     help="Only these, separated by commas, in this order."),
        click.argument("runs", type=click.Path(exists=True, dir_okay=False)),
    ):  # fmt: skip
        command = option(command)
    return command


def read_results(
    runs: str, algorithms: str | None, distributions: str | None, *, everything: bool = False
) -> Results:
    """Return the results in a file of runs or of curves, or a part of them.

    From a file of runs they are those of the last campaign, or of all; if there are several, a
    message says so.
    """
    from anyorder.bench import curves
    from anyorder.bench.store import Store

    if curves.is_curves(runs):
        found = curves.read(runs)
    else:
        with Store(runs, existing=True) as store:
            earlier, found = store.earlier(), store.results(everything=everything)
        if earlier:
            echo(f"{runs} also holds {earlier} finished runs of earlier campaigns, which are "
                 f"{'included' if everything else 'left out'}", err=True)  # fmt: skip
    return found.only(
        split_labels(algorithms, found.algorithms), split_labels(distributions, found.distributions)
    )


def split_labels(text: str | None, known: tuple[str, ...]) -> tuple[str, ...] | None:
    """Split labels at commas, except at commas within known labels."""
    if text is None:
        return None
    found, rest = [], text
    while rest.strip():
        fits = [label for label in known if re.match(rf"\s*{re.escape(label)}\s*(,|$)", rest)]
        # unknown labels are kept: `Results.only` names them in its error
        label = max(fits, key=len) if fits else rest.partition(",")[0].strip()
        found.append(label)
        rest = rest.lstrip()[len(label) :].lstrip().removeprefix(",")
    return tuple(found)


def check_output(path: str, runs: str) -> None:
    """Raise if the folder of an output file does not exist, or the file is a database or the input.

    A mistyped name must not destroy the runs of a week.
    """
    from anyorder._internal.sqlite import is_database

    to = Path(path).absolute()
    if not to.parent.is_dir():
        raise ValueError(f"{path}: there is no such folder")
    if to.is_file() and (to.samefile(runs) or is_database(to)):
        raise ValueError(f"{path} holds runs, and is left as it is: write to another file")
