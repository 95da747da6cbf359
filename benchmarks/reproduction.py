"""The tables and figures of docs/reproduction.md, from the runs in results/reproduction.

    reproduction.py          write the tables into the page and as CSV beside the runs; draw
    reproduction.py --check  say whether the page is up to date

The runs, a file for each machine they were done on, were written by `anyorder bench export`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from anyorder.bench import curves, figures, reproduce
from anyorder.bench.results import Results

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "results" / "reproduction"
FIGURES = RUNS / "figures"
FAMILY = RUNS / "family"
READINGS = ROOT / "results" / "readings.csv.gz"
PAGE = ROOT / "docs" / "reproduction.md"
ITEMS = ("table-10000", "table-1000")
VARIANTS = {"table-critic": "critic", "table-shared": "shared", "table-fast": "fast"}
ABLATIONS = ("graph", "rho", "gibbs", "mechanism")
COUNTS = ("rows", "below 2", "2 to 3", "3 to 5", "5 and more")
Line = dict[str, str]
Floats = npt.NDArray[np.float64]


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head)]
    lines += [["---"] * len(lines[0]), *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(line: Line) -> str:
    """A mean, its standard error, and the difference to the printed one in standard errors."""
    apart = line["difference"]
    if apart:
        apart = f" **{apart}**" if abs(float(apart)) >= 3 else f" {apart}"
    return f"{line['ours']} ({line['error']}){apart}"


def ours(lines: dict[tuple[str, str], Line], rows: list[str]) -> str:
    return markdown(
        ("distribution", "paper", "`authors`", "`text`"),
        (
            (row, lines[row, "text"]["paper"],
             *(shown(lines[row, method]) for method in ("authors", "text")))
            for row in rows
        ),
    )  # fmt: skip


def others(lines: dict[tuple[str, str], Line], rows: list[str]) -> str:
    known = ("PBIL", "(1+1) EA", "hill climbing")
    return markdown(
        ("distribution", "PBIL, paper", "PBIL, ours", "(1+1) EA", "hill climbing"),
        (
            (row, lines[row, "PBIL"]["paper"], *(shown(lines[row, method]) for method in known))
            for row in rows
        ),
    )  # fmt: skip


def rivals(lines: dict[tuple[str, str], Line], rows: list[str], name: str) -> str:
    found = [row for row in rows if (row, "best other") in lines]
    specs = reproduce.campaign(name, tuple(found), 1, 1, ("best other",)).specs
    return markdown(
        ("distribution", "algorithm", "paper", "ours"),
        (
            (spec.distribution, spec.method.partition(":")[2],
             lines[spec.distribution, "best other"]["paper"],
             shown(lines[spec.distribution, "best other"]))
            for spec in specs
        ),
    )  # fmt: skip


def counts(lines: list[Line]) -> list[str]:
    """How many lines, and how many are how far from what is printed."""
    apart = [abs(float(line["difference"])) for line in lines]
    bounds = ((0, 2), (2, 3), (3, 5), (5, float("inf")))
    return [str(len(apart)), *(str(sum(low <= x < high for x in apart)) for low, high in bounds)]


def summary(tables: dict[str, list[Line]]) -> str:
    """How many rows of each method are how far from what is printed."""
    rows = []
    for name, lines in tables.items():
        for method in dict.fromkeys(line["method"] for line in lines if line["difference"]):
            mine = [line for line in lines if line["method"] == method and line["difference"]]
            rows.append((name.removeprefix("table-"), method, *counts(mine)))
    return markdown(("table", "method", *COUNTS), rows)


def readings(results: Results) -> str:
    """The same for other readings of the code, and for `authors` on the rows that those have."""
    other, rows = curves.read(READINGS), []
    for label in other.algorithms:
        found = [row for row in other.distributions if (row, label) in other.cells]
        for kind in ("two", "three"):
            part = [row for row in found if row.startswith("NK3") == (kind == "three")]
            for name in ITEMS if part else ():
                for source, method in ((other, label), (results, "authors")):
                    there = [row for row in part if (row, method) in source.cells]
                    lines = reproduce.beside(name, source.only([method], there))
                    rows.append((method, kind, name.removeprefix("table-"), *counts(lines)))
    return markdown(("reading", "values", "evaluations", *COUNTS), rows)


def yardstick(lines: list[Line]) -> str:
    """How often hill climbing is above everything that the paper prints."""
    best: dict[str, float] = {}
    for (row, _), score in reproduce.printed("global_10000").items():
        best[row] = max(score, best.get(row, score))
    found = {line["distribution"]: float(line["ours"]) for line in lines
             if line["method"] == "hill climbing"}  # fmt: skip
    above = sum(score > best[row] for row, score in found.items())
    return (
        "After 10,000 evaluations its mean is above the best printed score, of all 504 algorithms, "
        f"on {above} of {len(found)} rows."
    )


def nasbench(results: Results) -> str:
    rows = []
    for method, cell in results.row("NAS-Bench-101").items():
        scores = [cell.at(mark) for mark in (1_000, 10_000)]
        errors = [x.std(ddof=1) / len(x) ** 0.5 for x in scores]
        means = (f"{x.mean():.4f} ({error:.4f})" for x, error in zip(scores, errors, strict=True))
        rows.append((method, str(len(scores[0])), *means))
    return markdown(("method", "runs", "after 1,000", "after 10,000"), rows)


def orders() -> tuple[Results, Results]:
    """Runs of `figure-orders`, and distances of populations to the incumbents of some of them."""
    return tuple(curves.read(FIGURES / f"figure-orders{end}.csv.gz") for end in ("", "-distances"))


def orders_table() -> str:
    scores, apart = orders()
    (row,) = scores.distributions
    marks = (1_000, 5_000, 10_000)
    learned = curves.read(FAMILY / "learned.csv.gz").cells[row, "learned"]
    fifth = [f"learned, {len(learned.seeds)} runs", *(f"{learned.at(m).mean():.4f}" for m in marks)]
    return markdown(
        ("orders", *(f"after {m:,}" for m in marks), *(f"distance after {m:,}" for m in marks)),
        [
            *((label, *(f"{cell.at(m).mean():.4f}" for m in marks),
               *(f"{apart.cells[row, label].at(m).mean():.1f}" for m in marks))
              for label, cell in scores.row(row).items()),
            [*fifth, "", "", ""],
        ],
    )  # fmt: skip


def family() -> dict[str, list[Line]]:
    """The paper's variants beside what is printed for them."""
    return {
        item: reproduce.beside(item, curves.read(FAMILY / f"{method}.csv.gz"))
        for item, method in VARIANTS.items()
    }


def family_table(lines: dict[str, list[Line]]) -> str:
    """A row per distribution, and for each variant what is printed and what was measured."""
    found = {(line["distribution"], item): line for item in lines for line in lines[item]}
    rows = dict.fromkeys(row for row in reproduce.find("table-fast").rows)
    empty = {"paper": "", "ours": ""}

    def cells(row: str) -> Iterable[str]:
        for item in VARIANTS:
            line = found.get((row, item), empty)
            yield from (line["paper"], shown(line) if line["ours"] else "")

    head = [f"{name}{of}" for name in VARIANTS.values() for of in (", paper", "")]
    return markdown(("distribution", *head), ((row, *cells(row)) for row in rows))


def ablations() -> str:
    """Variants of the figures: all runs of each, the same number on every instance."""
    marks, rows = (1_000, 5_000, 10_000), []
    for name in ABLATIONS:
        results = curves.read(FAMILY / f"{name}.csv.gz")
        for distribution in results.distributions:
            found = results.row(distribution)
            methods = reproduce.find(f"figure-{name}").methods  # in the order of the figure
            for label in (label for label in methods if label in found):
                cell = found[label]
                counts = np.unique(cell.instances, return_counts=True)[1]
                if len(counts) != 10 or len(set(counts.tolist())) != 1:
                    raise ValueError(f"{label} on {distribution} has {counts} runs by instance")
                means = [mean_and_error(cell.at(mark)) for mark in marks]
                rows.append((f"figure-{name}", distribution, label, str(counts.sum()), *means))
    head = ("", "distribution", "variant", "runs", *(f"after {mark:,}" for mark in marks))
    return markdown(head, rows)


def mean_and_error(values: Floats) -> str:
    digits = 1 if values.mean() > 1 else 4
    return f"{values.mean():.{digits}f} ({values.std(ddof=1) / len(values) ** 0.5:.{digits}f})"


def dropout() -> str:
    """After 10,000 evaluations: a row per kind of order and pG, a column per pT."""
    results, levels = curves.read(FAMILY / "dropout.csv.gz"), ("0", "0.25", "0.5", "0.75")
    rows = []
    for distribution in results.distributions:
        cells = results.row(distribution)
        for orders_and_level in dict.fromkeys(label.partition(" pT ")[0] for label in cells):
            means = (
                mean_and_error(cells[label].at(10_000)) if label in cells else ""
                for label in (f"{orders_and_level} pT {level}" for level in levels)
            )
            rows.append((distribution, orders_and_level, *means))
    return markdown(("distribution", "orders", *(f"pT {level}" for level in levels)), rows)


def large() -> str:
    """NK with 1,024 bits."""
    cell = curves.read(FAMILY / "large.csv.gz").cells["NK 1024 8", "shared"]
    marks = (100, 1_000, 5_000, 10_000)
    return markdown(
        ("NK 1024 8", *(f"after {mark:,}" for mark in marks)),
        [(f"shared, {len(cell.at(100))} runs", *(f"{cell.at(m).mean():.4f}" for m in marks))],
    )


def times(results: Results, rows: list[str]) -> str:
    """How long `text` took where values are two; a distribution's runs go together, sharing it."""
    took = {row: results.cells[row, "text"].seconds.sum() for row in rows if "NK3" not in row}
    each = (np.median([took[row] for row in took if f" {n} " in row]) for n in (64, 128, 256))
    return (
        "On one NVIDIA H200, 100 runs of `text` take {:.1f} s for 64 bits, {:.1f} s for 128 and "
        "{:.1f} s for 256 (medians).\n".format(*each)
        + f"The {len(took)} distributions of QUBO and NK together took {sum(took.values()):.0f} s."
    )


def draw(results: Results, rows: list[str]) -> None:
    scores, apart = orders()
    figures.convergence(scores, FIGURES / "figure-orders.png")
    figures.distance(
        {label: (cell.grid, cell.curves) for (_, label), cell in apart.cells.items()},
        FIGURES / "figure-orders-distances.png", title=apart.distributions[0],
        styles=figures.style(scores.algorithms, scores.ours),
    )  # fmt: skip
    alike = results.only(("authors", "text", "PBIL", "(1+1) EA", "hill climbing"), rows)
    for mark in (1_000, 10_000):
        named = replace(alike, name=f"{mark:,} evaluations")
        figures.rank_map(named, FIGURES / f"ranks-{mark}.png", evaluations=mark)


def made(results: Results, rows: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The parts of the page by the name of their place, and the tables as CSV."""
    parts, tables, files = {}, {}, {}
    for name in ITEMS:
        lines = reproduce.beside(name, results.only(distributions=rows))
        tables[name] = lines
        keyed = {(line["distribution"], line["method"]): line for line in lines}
        parts[name] = ours(keyed, rows)
        parts[f"{name}-others"] = others(keyed, rows)
        if name == "table-10000":
            parts["rivals"] = rivals(keyed, rows, name)
            parts["yardstick"] = yardstick(lines)
        text = ",".join(reproduce.HEAD) + "\n"
        files[f"{name}.csv"] = text + "".join(",".join(line.values()) + "\n" for line in lines)
    parts["summary"] = summary(tables)
    parts["readings"] = readings(results)
    parts["nasbench"] = nasbench(results)
    parts["orders"] = orders_table()
    parts["times"] = times(results, rows)
    variants = family()
    parts["family"] = family_table(variants)
    parts["family-summary"] = summary(variants)
    parts["large"] = large()
    parts["ablations"] = ablations()
    parts["dropout"] = dropout()
    return parts, files


def filled(page: str, parts: dict[str, str]) -> str:
    for name, text in parts.items():
        head, mark, rest = page.partition(f"<!-- {name} -->\n")
        _, end, tail = rest.partition("<!-- end -->")
        if not end:
            sys.exit(f"{PAGE} has no place for {name}")
        page = f"{head}{mark}{text}\n{end}{tail}"
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    results = curves.read(*sorted(RUNS.glob("*.csv.gz")))
    rows = list(reproduce.find("table-10000").rows)
    parts, files = made(results, rows)
    wanted = {PAGE: filled(PAGE.read_text("utf-8"), parts)}
    wanted |= {RUNS / name: text for name, text in files.items()}
    for path, text in wanted.items():
        if not check:
            path.write_text(text, "utf-8")
        elif not path.is_file() or path.read_text("utf-8") != text:
            sys.exit(f"{path.relative_to(ROOT)} is not what the runs give")
    if not check:
        draw(results, rows)


if __name__ == "__main__":
    main()
