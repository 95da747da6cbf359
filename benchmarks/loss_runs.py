"""How many runs share one loss: QUBO 128 0 and 3 after 1,000 evaluations, and the paper's scores.

The published code averages the loss over all runs of a batch, so that gradients shrink with the
number of runs and Adam's eps has an effect (`Config.loss_runs`). Writes every run to
results/loss_runs.csv. Takes about five minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from common import cores, write

import anyorder as ao
from anyorder.bench import reproduce

BUDGET, LOSSES, TYPES = 1_000, (100, 300, 500, 1_000, 2_000), (0, 3)


def one(job: tuple[int, int, int]) -> list[dict[str, Any]]:
    """All runs of one type of instances."""
    loss, kind, runs = job
    problems = [ao.problems.qubo(128, kind, seed) for seed in range(10)]
    config = ao.policy.PRESETS["paper-code"].replace(loss_runs=loss)
    found = ao.policy.solve_many(
        problems, runs=runs, budget=BUDGET, config=config, engine="cpu", progress=False
    )
    return [
        {"loss_runs": loss, "type": kind, "instance": r // runs, "seed": run.seed,
         "best_1000": round(float(np.nanmax(run.values)), 5)}
        for r, run in enumerate(found)
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="of each of 10 instances")
    runs = parser.parse_args().runs
    paper = reproduce.printed("global_1000")
    jobs = [(loss, kind, runs) for loss in LOSSES for kind in TYPES]
    os.environ["ANYORDER_NUM_THREADS"] = "1"  # one process a core, one thread a process
    with ProcessPoolExecutor(cores()) as pool:
        rows = [row for part in pool.map(one, jobs) for row in part]
    write("loss_runs.csv", rows)
    for loss in LOSSES:
        apart = []
        for kind in TYPES:
            mine = [row for row in rows if (row["loss_runs"], row["type"]) == (loss, kind)]
            best = np.array([row["best_1000"] for row in mine])
            error = reproduce.errors(best, np.array([row["instance"] for row in mine]), True)[1]
            apart.append((best.mean() - paper[f"QUBO 128 {kind}", "sigma_sigma"]) / error)
        print(f"{loss:>5} runs: " + "  ".join(f"{x:+.1f}" for x in apart), flush=True)


if __name__ == "__main__":
    main()
