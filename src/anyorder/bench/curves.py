"""Results as one small file, with one line per run.

A CSV table, compressed where its name ends in `.gz`. Columns are distribution, algorithm, instance,
seed, seconds, and the numbers of evaluations; a best value that has not changed since the last
column is left out, and "-" marks points that are not in the grid of the run. Labels are in the
order of the campaign. Failed runs are not included.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import zlib
from pathlib import Path

import numpy as np

from anyorder.bench.results import Cell, Results
from anyorder.errors import StudyError

SUFFIXES = (".csv", ".csv.gz")
_HEAD = ("distribution", "algorithm", "instance", "seed", "seconds")


def is_curves(path: str | os.PathLike[str]) -> bool:
    """Return whether a path has the name of a file of curves."""
    return os.fspath(path).endswith(SUFFIXES)


def write(results: Results, path: str | os.PathLike[str]) -> None:
    """Write results; the columns are the union of the grids of all cells."""
    if not results.cells:
        raise ValueError(f"{results.name} has no finished runs, expected some")
    grid = sorted({point for cell in results.cells.values() for point in cell.grid.tolist()})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_HEAD, *grid])
    for distribution in results.distributions:
        for algorithm, cell in results.row(distribution).items():
            for r, curve in enumerate(cell.curves.tolist()):
                texts = {
                    point: _write_number(value) if value != before else ""
                    for point, value, before in
                    zip(cell.grid.tolist(), curve, [None, *curve[:-1]], strict=True)
                }  # fmt: skip
                writer.writerow([
                    distribution, algorithm, cell.instances[r], cell.seeds[r],
                    f"{cell.seconds[r]:.4g}", *(texts.get(point, "-") for point in grid),
                ])  # fmt: skip
    data = text.getvalue().encode()
    # (the header holds no time, so that the same results give the same file)
    Path(path).write_bytes(gzip.compress(data, mtime=0) if str(path).endswith(".gz") else data)


def read(*paths: str | os.PathLike[str]) -> Results:
    """Read one file, or several files as one, which must have the same columns."""
    rows: dict[tuple[str, str], list[tuple[int, int, float, list[float]]]] = {}
    distributions, algorithms = [], []
    grid: list[int] = []
    grids: dict[tuple[str, str], list[int]] = {}
    for path in paths:
        try:
            data = Path(path).read_bytes()
            text = (gzip.decompress(data) if str(path).endswith(".gz") else data).decode()
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
            raise StudyError(f"{path} cannot be read: {error}") from error
        lines = csv.reader(io.StringIO(text))
        try:
            head = next(lines, [])
            if tuple(head[:5]) != _HEAD or grid not in (
                [],
                own := [_read_integer(x) for x in head[5:]],
            ):
                raise ValueError(f"its columns are {', '.join(head[:7])}, ...")
            grid = own
            for distribution, algorithm, instance, seed, seconds, *values in lines:
                curve: list[float] = []
                for value in values:
                    if value != "-":
                        curve.append(float(value) if value else curve[-1])
                if len(values) != len(grid) or not curve:
                    raise ValueError(f"line {lines.line_num} has {len(values)} values")
                mine = [point for point, value in zip(grid, values, strict=True) if value != "-"]
                if grids.setdefault((distribution, algorithm), mine) != mine:
                    raise ValueError(f"line {lines.line_num} has another grid than its like")
                run = (_read_integer(instance), _read_integer(seed), float(seconds), curve)
                rows.setdefault((distribution, algorithm), []).append(run)
                distributions.append(distribution)
                algorithms.append(algorithm)
        except (ValueError, IndexError, csv.Error) as error:
            raise StudyError(
                f"{path} is no file of curves, or a damaged one: {error}; expected the columns "
                f"{', '.join(_HEAD)} and {grid or 'numbers of evaluations'}"
            ) from error
    cells = {}
    for key, runs in rows.items():
        instances, seeds, seconds_, curves = zip(*runs, strict=True)
        cells[key] = Cell(
            np.array(grids[key], np.int64), np.array(curves, np.float64),
            np.array(instances, np.int64), np.array(seeds, np.int64),
            np.array(seconds_, np.float64),
        )  # fmt: skip
    name = Path(paths[0]).name.removesuffix(".gz").removesuffix(".csv")
    return Results(
        name, tuple(dict.fromkeys(algorithms)), tuple(dict.fromkeys(distributions)), cells
    )


def _read_integer(text: str) -> int:
    """Return the integer in a text; raise a ValueError if it has more than 64 bits."""
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{text[:30]} is too large")
    return value


def _write_number(value: float) -> str:
    """Return a number as text, with the fewest digits that read back as the same number."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)
