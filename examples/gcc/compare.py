"""The table in README.md: what a person would type, our search, and two plain ones.

Every search may compile the program as often as problem.toml says; flags that come up again cost
nothing. Several minutes: `python compare.py --seeds 3`.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyorder as ao
from anyorder.program.command import Command
from anyorder.program.file import Job, read
from anyorder.strategies import Answer, Search

HERE = Path(__file__).parent
BY_HAND = {
    "-O2": ["-O2"],
    "-Os": ["-Os"],
    "-Oz": ["-Oz"],
    "-Oz and five": ["-Oz", "-no-pie", "-fno-asynchronous-unwind-tables", "-fwhole-program",
                     "-Wl,-z,norelro", "-Wl,--build-id=none"],
}  # fmt: skip


def ours(job: Job, seed: int, executor: ThreadPoolExecutor) -> float:
    options = {**job.options, "seed": seed, "executor": executor}
    return ao.minimize(job.command, job.space, job.budget, **options).best_value


def plain(search: Search, job: Job, executor: ThreadPoolExecutor) -> float:
    known: dict[str, float] = {}

    def value(point: dict[str, Any]) -> float:
        try:
            return job.command(point)
        except (ao.Infeasible, RuntimeError, TimeoutError):
            return float("inf")

    while len(known) < job.budget:
        tickets, codes = search.propose(job.workers)
        points = job.space.decode(codes)
        lines = [job.command.line(point) for point in points]
        new = {line: k for k, line in enumerate(lines) if line not in known}
        found = executor.map(value, [points[k] for k in new.values()])
        known.update(zip(new, found, strict=True))
        values = [-known[line] for line in lines]
        search.learn([Answer(*answer) for answer in zip(tickets, codes, values, strict=True)])
    return min(known.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--budget", type=int)
    options = parser.parse_args()
    job = read(HERE / "problem.toml")
    if options.budget is not None:
        job = Job(**{**vars(job), "budget": options.budget})
    for name, flags in BY_HAND.items():
        typed = Command(("python3", "measure.py", "{scratch}/lz", "lz.c", *flags), directory=HERE)
        print(f"{name:<24}{typed({}):>8.0f}", flush=True)
    searches = {
        "anyorder": lambda seed: ours(job, seed, executor),
        "random flags": lambda seed: plain(
            ao.baselines.RandomSearch(job.space, seed), job, executor
        ),
        "iterated local search": lambda seed: plain(
            ao.baselines.IteratedLocalSearch(job.space, seed), job, executor
        ),
    }
    with ThreadPoolExecutor(job.workers) as executor:
        for name, search in searches.items():
            print(f"{name:<24}", end="", flush=True)
            for seed in range(options.seeds):
                print(f"{search(seed):>8.0f}", end="", flush=True)
            print()


if __name__ == "__main__":
    main()
