"""Add runs of another machine to a file of results, if it does not have them yet.

    python benchmarks/merge.py results/ablation.csv OUT/ablation.csv
    python benchmarks/merge.py results/default.csv.gz OUT/default.csv.gz

Two rows are the same run if they agree in the columns that say what was run. Both files must have
the same columns; a file whose name ends in .gz is compressed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from pathlib import Path
from typing import IO, Any

WHAT = {
    "problem", "instance", "seed", "algorithm", "strategy", "variant", "budget", "evaluations",
}  # fmt: skip


def opened(path: Path, mode: str) -> IO[Any]:
    """Open a file of text, compressed or not."""
    if path.suffix == ".gz":
        return gzip.open(path, mode + "t", encoding="utf-8", newline="")
    return path.open(mode, encoding="utf-8", newline="")


def merge(path: Path, others: list[Path]) -> int:
    """Append the rows that are missing; returns how many."""
    rows: list[list[str]] = []
    if path.exists():
        with opened(path, "r") as file:
            rows = list(csv.reader(file))
    before, known = len(rows), set[tuple[str, ...]]()
    for other in others:
        with opened(other, "r") as file:
            header, *found = csv.reader(file)
        rows = rows or [header]
        if header != rows[0]:
            raise SystemExit(f"{other} has the columns {header}, and {path} has {rows[0]}")
        columns = [k for k, name in enumerate(header) if name in WHAT]
        known = known or {tuple(row[k] for k in columns) for row in rows}
        rows += [row for row in found if tuple(row[k] for k in columns) not in known]
        known |= {tuple(row[k] for k in columns) for row in found}
    with opened(path, "w") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    return len(rows) - before


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path, help="the file of results")
    parser.add_argument("others", nargs="+", type=Path, help="files of runs")
    given = parser.parse_args()
    print(f"{merge(given.path, given.others)} rows added to {given.path}")


if __name__ == "__main__":
    main()
