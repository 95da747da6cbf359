"""One self-contained HTML page about a folder of runs: claims, tables, figures and their data."""

from __future__ import annotations

import base64
import html
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from anyorder.bench import paper_figures, rank_panel, reproduce
from anyorder.bench.claims import CLAIMS, FAILS, HOLDS, OPEN, Verdict
from anyorder.bench.reproduce_all import Folder

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em;
       color: #222; background: #fff; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; }
td, th { border-bottom: 1px solid #ddd; padding: .2em .7em; text-align: left; vertical-align: top; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
td:first-child { white-space: nowrap; } a { color: #0060a0; }
img { max-width: 100%; } code { background: #f3f3f3; padding: 0 .2em; }
div { overflow-x: auto; } nav a { white-space: nowrap; margin-right: .7em; }
summary { cursor: pointer; color: #0060a0; } h1 { font-size: 1.7em; }
.yes { color: #176b2c; } .no { color: #a11; font-weight: 600; } .open { color: #666; }
"""
_PAPERS_RUNS = 100
_LONG = 30  # a table with more lines is collapsed at first
RANKS = "ranks.csv"  # the panel of `anyorder reproduce ranks`, if the folder has it


def verdicts(folder: Folder) -> list[Verdict]:
    """Return the verdict of the runs on each of `CLAIMS`."""
    return [claim.decide(folder) for claim in CLAIMS]


def tally(found: Sequence[Verdict]) -> str:
    """Return how many claims hold, as a sentence."""
    of, words = Counter(verdict.verdict for verdict in found), []
    for verdict, one, more in ((HOLDS, "holds", "hold"), (FAILS, "does not hold", "do not hold"),
                               (OPEN, OPEN, OPEN)):  # fmt: skip
        words.append(f"{of[verdict]} {one if of[verdict] == 1 else more}")
    return f"Of {len(found)} claims, {words[0]}, {words[1]}, and {words[2]}."


def counts(folder: Folder, item: str) -> tuple[int, int, int]:
    """Return three numbers of an item: cells with 100 runs, all cells, and missing usual runs."""
    known, found = reproduce.find(item), folder.results(item).cells
    runs = [
        len(found[row, label].seeds) if (row, label) in found else 0
        for row in known.rows
        for label in known.methods
    ]
    full = sum(count >= _PAPERS_RUNS for count in runs)
    return full, len(runs), sum(max(0, _PAPERS_RUNS - count) for count in runs)


def fewest(folder: Folder, item: str) -> int:
    """Return the smallest number of runs in a cell of an item."""
    known, found = reproduce.find(item), folder.results(item).cells
    keys = [(row, label) for row in known.rows for label in known.methods]
    return min(len(found[key].seeds) if key in found else 0 for key in keys)


def write(folder: Folder, path: Path) -> None:
    """Write the page to a file."""
    found = verdicts(folder)
    there = [name for name in reproduce.ITEMS if folder.results(name).cells]
    panel = folder.path / RANKS
    links = [("claims", "claims"), ("missing", "missing runs"), *((name, name) for name in there),
             *([("ranks", "ranks")] if panel.is_file() else []),
             *((name, name) for name in paper_figures.FREE)]  # fmt: skip
    contents = "".join(f"<a href='#{where}'>{html.escape(text)}</a> " for where, text in links)
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>The paper's results</title><style>{_STYLE}</style>",
        "<h1>Black-box combinatorial optimisation with order-invariant reinforcement learning: "
        "what was reproduced</h1>",
        f"<p>{tally(found)} A difference decides from two standard errors on; numbers in brackets "
        "are such differences. (s,s) and <code>authors</code> are the paper's method, with the "
        "settings that reproduce its tables.</p>",
        f"<nav>{contents}</nav>", _claims(found), _missing(folder),
    ]  # fmt: skip
    for name in there:
        title = html.escape(reproduce.find(name).title)
        lines = reproduce.beside(name, folder.results(name))
        parts += [f"<h2 id='{name}'>{name}: {title}</h2>", _source(name), _figures(name, folder),
                  _table(reproduce.HEAD, [list(line.values()) for line in lines], 2)]  # fmt: skip
    if panel.is_file():
        parts.append(_ranks(panel))
    for name, draw in paper_figures.FREE.items():
        with tempfile.TemporaryDirectory() as place:
            image = _image(draw(Path(place) / f"{name}.png"))
        parts += [f"<h2 id='{name}'>{name}</h2>", image]
    path.write_text("\n".join([*parts, "</html>", ""]), "utf-8")


def _claims(found: Iterable[Verdict]) -> str:
    classes = {HOLDS: "yes", OPEN: "open"}
    rows = "".join(
        f"<tr><td>{html.escape(claim.where)}</td><td>{html.escape(claim.text)}</td>"
        f"<td class='{classes.get(v.verdict, 'no')}'>{v.verdict}</td>"
        f"<td>{html.escape(v.number)}</td><td><a href='#{claim.item}'>{claim.item}</a></td></tr>"
        for claim, v in zip(CLAIMS, found, strict=True)
    )
    head = "".join(f"<th>{x}</th>" for x in ("where", "claim", "verdict", "by", "item"))
    return f"<h2 id='claims'>Claims</h2><div><table><tr>{head}</tr>{rows}</table></div>"


def _missing(folder: Folder) -> str:
    rows = []
    for name, item in reproduce.ITEMS.items():
        full, cells, runs = counts(folder, name)
        if runs and not item.runs_of:
            rows.append([name, f"{full} of {cells}", str(fewest(folder, name)), f"{runs:,}"])
    table = _table(("item", "cells with 100 runs", "fewest of a cell", "runs missing"), rows, 1)
    return f"<h2 id='missing'>Runs that are missing</h2>{table if rows else 'None.'}"


def _ranks(path: Path) -> str:
    """Return the HTML of the ranks in the panel, with this library's algorithms in bold."""
    found = rank_panel.ranks(path)
    parts = ["<h2 id='ranks'>Ranks among Nevergrad's algorithms</h2>",
             f"<p><code>anyorder reproduce ranks</code>; runs: <code>{path.name}</code>. Bold: "
             "algorithms of this library.</p>"]  # fmt: skip
    for row in dict.fromkeys(place.row for place in found):
        lines = [[place.algorithm, f"{place.rank} of {place.of}", f"{place.mean:.5g}",
                  str(place.runs)] for place in found if place.row == row]  # fmt: skip
        table = _table((row, "rank", "mean", "runs"), lines, 1)
        for name in rank_panel.OURS:
            cell = html.escape(name)
            table = table.replace(f"<td>{cell}</td>", f"<td><b>{cell}</b></td>")
        parts.append(table)
    return "".join(parts)


def _source(name: str) -> str:
    file = reproduce.find(name).runs_of or name
    return (f"<p><code>anyorder reproduce {name}</code>; runs: "
            f"<code>{file}.csv.gz</code>, <code>{file}.*.csv.gz</code>, and those of the same "
            "algorithms in other files</p>")  # fmt: skip


def _figures(name: str, folder: Folder) -> str:
    if not name.startswith(("figure", "nasbench")):
        return ""
    with tempfile.TemporaryDirectory() as place:
        return "".join(map(_image, paper_figures.draw(name, folder, Path(place))))


def _image(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f"<img alt='{path.stem}' src='data:image/png;base64,{data}'>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> str:
    top = "".join(f"<th>{html.escape(x)}</th>" for x in head)
    body = "".join(
        "<tr>" + "".join(
            f"<td{' class=n' if k >= texts else ''}>{html.escape(x)}</td>"
            for k, x in enumerate(row)
        ) + "</tr>"
        for row in rows
    )  # fmt: skip
    table = f"<div><table><tr>{top}</tr>{body}</table></div>"
    if len(rows) <= _LONG:
        return table
    what = "Table" if head == reproduce.HEAD else html.escape(head[0])
    return f"<details><summary>{what}, {len(rows)} lines</summary>{table}</details>"
