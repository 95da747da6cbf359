"""The table in README.md: flags that a person would type, the policy, and two plain searches.

Every search may compile the program as often as problem.toml says; flags that are proposed again
cost nothing. Several minutes: `python compare.py --seeds 3`.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyorder as ao
from anyorder.program import Command, Job, read

HERE = Path(__file__).parent
ALGORITHMS = {
    "policy": "policy",
    "random flags": "random",
    "iterated local search": "ils",
}
BY_HAND = {
    "-O2": ["-O2"],
    "-Os": ["-Os"],
    "-Oz": ["-Oz"],
    "-Oz and five": ["-Oz", "-no-pie", "-fno-asynchronous-unwind-tables", "-fwhole-program",
                     "-Wl,-z,norelro", "-Wl,--build-id=none"],
}  # fmt: skip


def search(algorithm: str, job: Job, seed: int, executor: ThreadPoolExecutor) -> float:
    options = {**job.options, "algorithm": algorithm, "seed": seed, "executor": executor}
    return ao.minimize(job.command, job.space, job.budget, **options).best_value


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
    with ThreadPoolExecutor(job.workers) as executor:
        for name, algorithm in ALGORITHMS.items():
            print(f"{name:<24}", end="", flush=True)
            for seed in range(options.seeds):
                print(f"{search(algorithm, job, seed, executor):>8.0f}", end="", flush=True)
            print()


if __name__ == "__main__":
    main()
