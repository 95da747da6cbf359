"""`anyorder reproduce`: tables and figures of the paper."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from pathlib import Path

import click

from anyorder._internal.checks import unknown
from anyorder.cli.campaigns import do_runs, split_labels, where_to_run
from anyorder.cli.common import echo, errors, exit_if_interrupted


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
@click.option("-o", "--output", "out", type=click.Path(),
              help="The file of runs, reproduce.db; those in it are not repeated. With `all` and "
              "`page` a folder, `reproduction`, with `ranks` a table, ranks.csv.")  # fmt: skip
@click.option("--figures", type=click.Path(file_okay=False, exists=True), metavar="FOLDER",
              help="Also draw the figures, into this folder.")  # fmt: skip
@click.option("--format", "form", default="text", show_default=True,
              type=click.Choice(["text", "csv"]), help="Of the tables.")  # fmt: skip
@click.option("--quick", is_flag=True,
              help="With `all`: one run of 1,000 evaluations of each method on a few small "
              "rows.")  # fmt: skip
@click.option("--seconds", type=float, default=120.0, show_default=True,
              help="With `ranks`: the time limit of a run.")  # fmt: skip
@click.option("--budget", type=int, default=1_000, show_default=True,
              help="With `ranks`: evaluations of a run.")  # fmt: skip
@where_to_run
def reproduce(
    items: tuple[str, ...], rows: str | None, methods: str | None, runs: int, instances: int,
    out: str | None, figures: str | None, form: str, quick: bool, seconds: float, budget: int,
    workers: int, scheduler: str | None, engine: str,
) -> None:  # fmt: skip
    r"""Reproduce tables and figures of the paper; without ITEMS, list them.

    \b
    all    everything, into the folder --output; runs that it has are not repeated
    page   one HTML page of that folder: claims, tables, figures
    ranks  ranks among Nevergrad's algorithms; --output is a table of runs, which is continued

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
    if items[0] in ("all", "page", "ranks"):
        with errors():
            if len(items) > 1:
                raise ValueError(f"{items[1]!r} after {items[0]!r}, expected nothing")
            if items[0] == "ranks":
                _rank(Path(out or "ranks.csv"), rows, methods, runs, workers, seconds, budget)
            elif items[0] == "all":
                _all(Path(out or "reproduction"), instances, runs, quick, workers, engine)
            else:
                _page(Path(out or "reproduction"))
        return
    out = out or "reproduce.db"
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
            echo(_typeset(paper.HEAD, paper.beside(name, results), form == "csv"))
            for warning in paper.warnings(name, results):
                echo(warning, err=True)
            if figures is not None:
                for path in paper.figures(name, results, Path(figures), engine):
                    echo(str(path), err=True)
    if failed:
        sys.exit(1)


def _all(folder: Path, instances: int, runs: int, quick: bool, workers: int, engine: str) -> None:
    from anyorder.bench import reproduce_all

    folder.mkdir(parents=True, exist_ok=True)
    with reproduce_all.shrunk() if quick else contextlib.nullcontext():
        instances, runs = (1, 1) if quick else (instances, runs)
        there = reproduce_all.Folder(folder)
        there.collect()  # of an earlier run of this command
        parts = reproduce_all.everything(instances, runs)
        try:
            reason = there.do(
                parts, workers=workers, engine=engine, progress=lambda text: echo(text, err=True)
            )
        finally:
            there.collect()
        exit_if_interrupted("interrupted" if reason == "interrupted" else "done")
        _page(folder)


def _page(path: Path) -> None:
    from anyorder.bench import paper_page, reproduce_all

    if not path.is_dir():
        raise ValueError(f"{path}: there is no such folder")
    folder = reproduce_all.Folder(path)
    folder.collect()
    if not folder.cells:
        raise ValueError(f"{path} has no files of curves, expected those of `reproduce all`")
    paper_page.write(folder, path / "page.html")
    echo(str(path / "page.html"))


def _rank(
    path: Path, rows: str | None, methods: str | None, runs: int, workers: int, seconds: float,
    budget: int,
) -> None:  # fmt: skip
    from anyorder.bench import rank_panel
    from anyorder.bench import reproduce as paper

    chosen = split_labels(rows, tuple(paper.ROWS)) or ("QUBO 64 3", "NK 64 4")
    wrong = [row for row in chosen if row not in paper.ROWS]
    if wrong:
        raise unknown("row", wrong[0], paper.ROWS)
    panel = rank_panel.members()
    if methods is not None:
        names = split_labels(methods, tuple(panel)) or ()
        panel = rank_panel.members([name for name in names if name not in rank_panel.OURS])
    todo = list(rank_panel.jobs(panel, chosen, runs, budget, path))
    echo(f"{len(panel)} algorithms, {len(todo)} runs to do", err=True)

    def say(job: rank_panel.Job, status: str) -> None:
        echo(f"{job.row}: {job.label}: {status}", err=True)

    rank_panel.do(todo, path, workers, seconds, say)
    for place in rank_panel.ranks(path):
        mark = "*" if place.algorithm in rank_panel.OURS else " "
        echo(f"{place.row:12} {place.rank:4}/{place.of} {mark} {place.algorithm:40} "
             f"{place.mean:.5g}  ({place.runs} runs)")  # fmt: skip


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
