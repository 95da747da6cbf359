"""`anyorder reproduce`: tables and figures of the paper."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import click

from anyorder.cli.campaigns import do_runs, split_labels, where_to_run
from anyorder.cli.common import echo, errors


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
              help="The file of runs; those in it are not repeated.")  # fmt: skip
@click.option("--figures", type=click.Path(file_okay=False, exists=True), metavar="FOLDER",
              help="Also draw the figures, into this folder.")  # fmt: skip
@click.option("--csv", "as_csv", is_flag=True, help="Print as CSV.")
@where_to_run
def reproduce(
    items: tuple[str, ...], rows: str | None, methods: str | None, runs: int, instances: int,
    out: str, figures: str | None, as_csv: bool, workers: int, scheduler: str | None, engine: str,
) -> None:  # fmt: skip
    """Reproduce tables and figures of the paper; without ITEMS, list them.

    The exit status is 1 if some runs have failed.
    """
    from anyorder.bench import algorithms
    from anyorder.bench import reproduce as paper
    from anyorder.bench.store import Store

    if not items:
        width = max(map(len, paper.ITEMS))
        for name, item in paper.ITEMS.items():
            echo(f"{name:<{width}}  {item.title}")
        return
    with errors():
        campaigns = {}
        for name in items:
            item = paper.find(name)
            some = split_labels(methods, (*item.methods, *item.rivals))
            campaigns[name] = paper.campaign(
                name, split_labels(rows, item.rows), instances, runs, some
            )
        for method in {spec.method for c in campaigns.values() for spec in c.specs}:
            algorithms.check(method)
        failed = 0
        for name, campaign in campaigns.items():
            failed += do_runs(campaign, out, workers, scheduler, engine)
            with Store(out) as store:
                store.request(campaign.name, campaign.specs)  # its labels and its order
                results = store.results()
            echo(_typeset(paper.HEAD, paper.beside(name, results), as_csv))
            if figures is not None:
                for path in paper.figures(name, results, Path(figures), engine):
                    echo(str(path), err=True)
    if failed:
        sys.exit(1)


def _typeset(head: tuple[str, ...], lines: list[dict[str, str]], as_csv: bool) -> str:
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
