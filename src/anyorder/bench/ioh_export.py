"""Export of a campaign to the format of IOHanalyzer and iohinspector.

It is the format that the package `ioh` writes (Doerr et al., "IOHprofiler", arXiv:1810.05281; since
ioh 0.3.3 with JSON): a folder for each algorithm, which holds a JSON file for each function and a
folder with its runs. A distribution becomes a function; functions are numbered from 1 in the order
of the campaign.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.bench.results import Cell, Floats, Results

VERSION = "0.3.22"  # the version of ioh; tests/test_bench_export.py compares with files of ioh


def export(
    results: Results,
    folder: str | os.PathLike[str],
    dimensions: Mapping[str, int],
) -> None:
    """Write all runs to a folder, which is created if necessary and must be empty.

    A run is known by its best values at the points of the grid. A line is written for each point at
    which the best value has improved, and for the last point. Readers expect every run to start
    with its first evaluation. If this is not in the grid, or a run has no value there, the lowest
    value of any run on the distribution at the first grid point is used. Points are not stored: `x`
    is empty.

    Parameters
    ----------
    dimensions
        The number of variables of each distribution, by label.
    """
    if not results.cells:
        raise ValueError(f"{results.name} has no finished runs, expected some")
    used = [d for d in results.distributions if results.row(d)]
    for distribution in used:
        if distribution not in dimensions:
            raise ValueError(
                f"dimensions is {dict(dimensions)!r}, expected the number of variables "
                f"of {distribution!r} as well"
            )
    floors = {distribution: _floor(results, distribution) for distribution in used}
    root = Path(folder)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise ValueError(f"{root} is not an empty folder, expected one, or none")
    folders = _name_folders(results.algorithms)
    for algorithm in results.algorithms:
        for number, distribution in enumerate(results.distributions, 1):
            cell = results.cells.get((distribution, algorithm))
            if cell is not None:
                _write(
                    root / folders[algorithm],
                    {"suite": results.name, "function_id": number, "function_name": distribution,
                     "algorithm": {"name": algorithm, "info": ""}},
                    dimensions[distribution], cell, floors[distribution],
                )  # fmt: skip


def _write(folder: Path, about: dict[str, Any], dimension: int, cell: Cell, floor: float) -> None:
    number = about["function_id"]
    name = f"f{number}_{_make_safe(about['function_name'])}"
    path = f"data_{name}/IOHprofiler_f{number}_DIM{dimension}.dat"
    (folder / f"data_{name}").mkdir(parents=True)
    runs, lines = [], []
    for instance, curve in zip(cell.instances.tolist(), cell.curves, strict=True):
        when, values = steps(cell.grid, curve, floor)
        best = int(np.argmax(values))
        runs.append(
            {"instance": instance, "evals": int(when[-1]),
             "best": {"evals": int(when[best]), "y": float(values[best]), "x": []}}
        )  # fmt: skip
        lines.append("evaluations raw_y")
        lines += [f"{n} {_write_number(y)}" for n, y in zip(when.tolist(), values, strict=True)]
    meta = {
        "version": VERSION,
        **{key: about[key] for key in ("suite", "function_id", "function_name")},
        "maximization": True,
        "algorithm": about["algorithm"],
        "attributes": ["evaluations", "raw_y"],
        "scenarios": [{"dimension": dimension, "path": path, "runs": runs}],
    }
    (folder / path).write_text("\n".join(lines) + "\n", "utf-8")
    text = json.dumps(meta, indent="\t", ensure_ascii=False, allow_nan=False)
    (folder / f"IOHprofiler_{name}.json").write_text(text + "\n", "utf-8")


def steps(grid: Any, curve: Floats, floor: float) -> tuple[Any, Floats]:
    """Return the evaluations and values in the lines of a run, see `export`."""
    values = np.maximum(np.where(np.isfinite(curve), curve, floor), floor)
    if grid[0] > 1:
        grid, values = np.append(1, grid), np.append(floor, values)
    values = np.maximum.accumulate(values)
    keep = np.append(True, np.diff(values) > 0)
    keep[-1] = True
    return grid[keep], values[keep]


def _floor(results: Results, distribution: str) -> float:
    curves = [cell.curves for cell in results.row(distribution).values()]
    starts = np.concatenate([c[:, 0] for c in curves])
    known = starts[np.isfinite(starts)]
    if not len(known):  # no run has a value there: take the lowest value of any run
        every = np.concatenate([c.ravel() for c in curves])
        known = every[np.isfinite(every)]
    if not len(known):
        raise ValueError(f"no run on {distribution!r} has a value, expected one at least")
    return float(known.min())


def _name_folders(labels: tuple[str, ...]) -> dict[str, str]:
    """Return the name of a folder for each label, with numbers if names differ in case only."""
    names: dict[str, str] = {}
    for label in labels:
        name, k = _make_safe(label), 1
        while name.lower() in {other.lower() for other in names.values()}:
            k += 1
            name = f"{_make_safe(label)}_{k}"
        names[label] = name
    return names


def _make_safe(label: str) -> str:
    """Return the label as a part of a file name that every system accepts."""
    return re.sub(r"[^A-Za-z0-9.+-]+", "_", label).strip("._")[:60] or "unnamed"


def _write_number(value: float) -> str:
    """Return a number with all digits and without an exponent, which some readers do not accept."""
    return np.format_float_positional(value, unique=True, trim="0")
