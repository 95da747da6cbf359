"""What all benchmarks use: a CSV file per script in results/, with machine and versions."""

from __future__ import annotations

import csv
import datetime
import platform
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import anyorder as ao
from anyorder._internal.checks import cores

RESULTS = Path(__file__).parent.parent / "results"


def processor() -> str:
    """The processor's own name where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        name = platform.processor()
    return name


def machine() -> dict[str, str]:
    """Where and with what a number was measured."""
    facts = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor()}, {cores()} cores",
        "python": platform.python_version(),
    }
    for package in ("anyorder", "numpy", "numba", "torch"):
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            facts[package] = ""
    return facts


def write(name: str, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows to results/NAME, each with the machine and the versions."""
    RESULTS.mkdir(exist_ok=True)
    path, facts = RESULTS / name, machine()
    full = [{**row, **facts} for row in rows]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(full[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(full)
    return path


def values_of(strategy: ao.strategies.Search, problem: ao.problems.Problem, budget: int) -> Any:
    """The values of all proposals of a strategy, known points evaluated again."""
    result = ao.maximize(
        problem, budget=budget, algorithm=strategy, vectorized=True, batch=strategy.batch,
        cache=False, progress=False,
    )  # fmt: skip
    return result.history.values
