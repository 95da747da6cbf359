"""Ranks of this library's algorithms among all that Nevergrad can run, as in the paper's tables.

The table of runs is a CSV file: row, algorithm, instance, seed, seconds, status, best. Runs that it
has are not repeated, so a panel can be stopped and continued; each run is added as it ends. A run
that exceeds its time, or fails, is kept with that status, and its algorithm has no rank on that
row.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from anyorder import problems
from anyorder.bench import algorithms, reproduce
from anyorder.bench.campaign import distribution
from anyorder.errors import OK, TIMEOUT
from anyorder.run.evaluation.jobs import Jobs
from anyorder.run.evaluation.processes import Processes

HEAD = ("row", "algorithm", "instance", "seed", "seconds", "status", "best")
OURS = {
    "authors": "policy:paper-code",
    "default policy": "policy",
    "auto": "auto",
    "PBIL": "pbil",
    "MIMIC": "mimic",
    "BOA, as published": "boa+reverse_parents=True",
    "(1+1) EA": "one-plus-one",
    "hill climbing": "hill-climber",
}


class Job(NamedTuple):
    """A run of the panel."""

    row: str
    label: str
    method: str
    problem: str
    instance: int
    seed: int
    budget: int


class Rank(NamedTuple):
    """The rank of an algorithm on a row, the number of ranks, its mean and its runs."""

    row: str
    algorithm: str
    rank: int
    of: int
    mean: float
    runs: int


def members(names: Iterable[str] | None = None) -> dict[str, str]:
    """Return labels and algorithms of the panel: ours, and all or given ones of Nevergrad."""
    chosen = algorithms.LIBRARIES["nevergrad"].names() if names is None else names
    return {**OURS, **{name: f"nevergrad:{name}" for name in chosen}}


def jobs(
    panel: dict[str, str], rows: Iterable[str], runs: int, budget: int, path: Path
) -> Iterator[Job]:
    """Yield the runs that a table does not have; the first run of every algorithm comes first."""
    done = {(row["row"], row["algorithm"], row["seed"]) for row in read(path)}
    places = {row: distribution(reproduce.ROWS[row], row, 10, 1, budget).instances for row in rows}
    for seed in range(runs):
        for row, instances in places.items():
            for label, method in panel.items():
                if (row, label, str(seed)) not in done:
                    k = list(instances)[seed % len(instances)]
                    yield Job(row, label, method, instances[k], k, seed, budget)


def one(job: Job) -> tuple[float, float]:
    """Do a run; return its best value, and its seconds."""
    problem = problems.get(job.problem)
    trace = algorithms.run(job.method, problem, job.budget, job.seed, [job.budget])
    return trace.best_value, trace.seconds


def do(
    todo: Iterable[Job],
    path: Path,
    workers: int,
    seconds: float,
    progress: Callable[[Job, str], None] = lambda job, status: None,
) -> None:
    """Do runs in parallel processes, with a time limit for each, and add them to the table."""
    new = not path.is_file()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(HEAD)
        pool = Jobs(lambda done: Processes(one, done, workers, seconds))
        running: dict[int, Job] = {}
        rest = iter(todo)
        try:
            while True:
                while pool.slots > len(running) and (job := next(rest, None)) is not None:
                    running[pool.start(job)] = job
                if not running:
                    return
                for number, outcome in pool.wait():
                    job, ok = running.pop(number), outcome.status == OK
                    status = "ok" if ok else "late" if outcome.status == TIMEOUT else "failed"
                    best, took = outcome.value if ok else (np.nan, outcome.seconds)
                    value = "" if np.isnan(best) else repr(float(best))
                    writer.writerow(
                        [job.row, job.label, job.instance, job.seed, f"{took:.3g}", status, value]
                    )
                    file.flush()
                    progress(job, status)
        finally:
            pool.close()


def read(path: Path) -> list[dict[str, str]]:
    """Return the runs of a table; none if the file does not exist."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ranks(path: Path) -> list[Rank]:
    """Return ranks by mean, best first; algorithms with a failed run have none."""
    found: dict[tuple[str, str], list[float]] = {}
    for line in read(path):
        value = float(line["best"]) if line["best"] else np.nan
        found.setdefault((line["row"], line["algorithm"]), []).append(value)
    result = []
    for row in dict.fromkeys(row for row, _ in found):
        means = {
            label: (float(np.mean(values)), len(values))
            for (where, label), values in found.items()
            if where == row and not np.isnan(values).any()
        }
        ordered = sorted(means.items(), key=lambda pair: -pair[1][0])
        for label, (mean, runs) in ordered:
            rank = 1 + sum(other > mean for other, _ in means.values())
            result.append(Rank(row, label, rank, len(means), mean, runs))
    return result
