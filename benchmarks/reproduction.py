"""The generated parts of docs/reproduction.md and docs/paper.md, from results/reproduction.

    reproduction.py              write them, the tables as CSV beside the runs, and the figures
    reproduction.py --take FILE  take the finished runs of files of runs first
    reproduction.py --check      say whether the documents are up to date

The runs are in files of curves, see `anyorder.bench.reproduce_all`.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from anyorder.bench import (
    figures,
    paper_figures,
    paper_list,
    paper_page,
    rank_panel,
    reproduce,
)
from anyorder.bench.claims import CLAIMS, HOLDS, OPEN, Verdict
from anyorder.bench.reproduce_all import Folder

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "results" / "reproduction"
FIGURES = RUNS / "figures"
PAGE, LIST = ROOT / "docs" / "reproduction.md", ROOT / "docs" / "paper.md"
TABLES = ("table-10000", "table-1000", "table-fast", "table-critic", "table-shared")
COUNTS = ("rows", "below 2", "2 to 3", "3 to 5", "5 and more")
Line = dict[str, str]


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head)]
    lines += [["---"] * len(lines[0]), *map(list, rows)]
    return "\n".join("| " + " | ".join(x.replace("|", ",") for x in line) + " |" for line in lines)


def counts(lines: list[Line]) -> list[str]:
    """How many lines, and how many are how far from what is printed."""
    apart = [abs(float(line["difference"])) for line in lines]
    bounds = ((0, 2), (2, 3), (3, 5), (5, float("inf")))
    return [str(len(apart)), *(str(sum(low <= x < high for x in apart)) for low, high in bounds)]


def agreement(tables: dict[str, list[Line]]) -> str:
    """How many rows of each method are how far from what is printed; no others are left out."""
    rows = []
    for name, lines in tables.items():
        for method in dict.fromkeys(line["method"] for line in lines if line["difference"]):
            mine = [line for line in lines if line["method"] == method and line["difference"]]
            if method not in ("ranks", "separate"):  # `authors` under another name
                rows.append((name, method, *counts(mine)))
    return markdown(("table", "method", *COUNTS), rows)


def groups(tables: dict[str, list[Line]]) -> str:
    """Sums of the differences over the square root of their number, by family and size."""
    wanted = (
        ("table-10000", "authors"), ("table-10000", "PBIL"), ("table-1000", "authors"),
        ("table-fast", "fast"), ("table-shared", "shared"), ("table-critic", "critic"),
    )  # fmt: skip
    names = [f"{family} {n}" for family in ("QUBO", "NK", "NK3") for n in (64, 128, 256)]
    rows = []
    for table, method in wanted:
        cells = []
        for name in names:
            apart = [float(line["difference"]) for line in tables[table]
                     if line["method"] == method and line["difference"]
                     and line["distribution"].startswith(f"{name} ")]  # fmt: skip
            cells.append(f"{sum(apart) / len(apart) ** 0.5:+.1f}" if apart else "")
        rows.append((f"{method}, {table}", *cells))
    return markdown(("", *names), rows)


def claims(found: list[Verdict]) -> str:
    words = {HOLDS: "holds", OPEN: "cannot be decided"}
    return markdown(
        ("where", "claim", "verdict", "by", "item"),
        (
            (claim.where, claim.text, words.get(v.verdict, f"**{v.verdict}**"), shortened(v.number),
             f"`{claim.item}`")
            for claim, v in zip(CLAIMS, found, strict=True)
        ),
    )  # fmt: skip


def shortened(text: str, most: int = 170) -> str:
    return text if len(text) <= most else f"{text[: most - 3].rstrip()}..."


def missing(folder: Folder) -> str:
    rows = []
    for name, item in reproduce.ITEMS.items():
        full, cells, runs = paper_page.counts(folder, name)
        if runs and not item.runs_of:
            least = str(paper_page.fewest(folder, name))
            rows.append((f"`{name}`", f"{full} of {cells}", least, f"{runs:,}"))
    return markdown(("item", "cells with 100 runs", "fewest", "runs missing"), rows)


def panel(path: Path) -> str:
    """The ranks of this library's algorithms among Nevergrad's, a line for each row."""
    found = rank_panel.ranks(path)
    rows = []
    for row in dict.fromkeys(place.row for place in found):
        mine = {place.algorithm: place for place in found if place.row == row}
        ranks = (str(mine[x].rank) if x in mine else "" for x in rank_panel.OURS)
        best = next(p for p in found if p.row == row and p.algorithm not in rank_panel.OURS)
        runs = sorted({place.runs for place in mine.values()})
        of = f"{row}, of {len(mine)}, {' or '.join(map(str, runs))} runs"
        rows.append((of, *ranks, f"{best.algorithm}, {best.rank}"))
    return markdown(("", *rank_panel.OURS, "best of Nevergrad"), rows)


def the_list(folder: Folder, found: list[Verdict]) -> tuple[str, str]:
    entries = paper_list.entries(folder, found)
    of = Counter(entry.state for entry in entries)
    summary = f"{len(entries)} items: " + ", ".join(f"{n} {word}" for word, n in of.most_common())
    table = markdown(
        ("", "kind", "in the paper", "item", "code", "test", "runs", "state"),
        (
            (str(k), entry.kind, entry.where, entry.item, entry.code, entry.test,
             f"`{entry.data}`" if entry.data else "",
             entry.state if not entry.said else f"{entry.state}: {entry.said}")
            for k, entry in enumerate(entries, 1)
        ),
    )  # fmt: skip
    return f"{summary}.", table


def times(folder: Folder) -> str:
    """How long `text` took where values are two; a distribution's runs go together, sharing it."""
    cells = folder.results("table-10000").cells
    took = {row: cells[row, "text"].seconds.sum() for row in reproduce.find("table-10000").rows
            if "NK3" not in row}  # fmt: skip
    each = (np.median([took[row] for row in took if f" {n} " in row]) for n in (64, 128, 256))
    return (
        "On one NVIDIA H200, 100 runs of `text` take {:.1f} s for 64 bits, {:.1f} s for 128 and "
        "{:.1f} s for 256 (medians).\n".format(*each)
        + f"The {len(took)} distributions of QUBO and NK together took {sum(took.values()):.0f} s."
    )


def filled(path: Path, parts: dict[str, str]) -> str:
    page = path.read_text("utf-8")
    for name, text in parts.items():
        head, mark, rest = page.partition(f"<!-- {name} -->\n")
        _, end, tail = rest.partition("<!-- end -->")
        if not end:
            sys.exit(f"{path} has no place for {name}")
        page = f"{head}{mark}{text}\n{end}{tail}"
    return page


def draw(folder: Folder) -> None:
    FIGURES.mkdir(exist_ok=True)
    for name in reproduce.ITEMS:
        if name.startswith(("figure", "nasbench")):
            paper_figures.draw(name, folder, FIGURES)
    for name, one in paper_figures.FREE.items():
        one(FIGURES / f"{name}.png")
    alike = folder.results("table-10000").only(
        ("authors", "text", "PBIL", "MIMIC", "BOA, as published", "(1+1) EA", "hill climbing")
    )
    for mark in (1_000, 10_000):
        named = replace(alike, name=f"{mark:,} evaluations")
        figures.rank_map(named, FIGURES / f"ranks-{mark}.png", evaluations=mark)


def take(folder: Folder, files: list[Path]) -> None:
    """Take runs from files of runs, which may be compressed."""
    for file in files:
        with tempfile.TemporaryDirectory() as place:
            data = file.read_bytes()
            copy = Path(place) / "runs.db"
            copy.write_bytes(gzip.decompress(data) if file.suffix == ".gz" else data)
            print(f"{folder.collect(copy)} runs from {file}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--take", type=Path, nargs="+", default=[], metavar="FILE")
    given = parser.parse_args()
    folder = Folder(RUNS)
    take(folder, given.take)
    tables = {name: reproduce.beside(name, folder.results(name)) for name in TABLES}
    found = paper_page.verdicts(folder)
    summary, table = the_list(folder, found)
    wanted = {
        PAGE: filled(PAGE, {
            "tally": paper_page.tally(found), "claims": claims(found),
            "agreement": agreement(tables), "groups": groups(tables), "times": times(folder),
            "ranks": panel(RUNS / paper_page.RANKS),
        }),
        LIST: filled(LIST, {"summary": summary, "list": table, "missing": missing(folder)}),
    }  # fmt: skip
    for name, lines in tables.items():
        text = ",".join(reproduce.HEAD) + "\n"
        wanted[RUNS / f"{name}.csv"] = text + "".join(
            ",".join(f'"{x}"' if "," in x else x for x in line.values()) + "\n" for line in lines
        )
    for path, text in wanted.items():
        if not given.check:
            path.write_text(text, "utf-8")
        elif not path.is_file() or path.read_text("utf-8") != text:
            sys.exit(f"{path.relative_to(ROOT)} is not what the runs give")
    if not given.check:
        draw(folder)


if __name__ == "__main__":
    main()
