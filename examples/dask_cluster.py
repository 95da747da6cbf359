"""Evaluations on a Dask cluster: pass its client as the executor.

Here the cluster is two processes on this machine. `Client("tcp://scheduler:8786")` connects to a
cluster of many machines; nothing else changes. The function stands for something slow: it sleeps
for a twentieth of a second. With `asynchronous=True`, a free worker gets the next candidate at
once, and no worker waits for the slowest. Requires Dask: `pip install 'dask[distributed]'`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import anyorder as ao

try:
    from dask.distributed import Client, LocalCluster
except ImportError:
    sys.exit("this example needs Dask: pip install 'dask[distributed]'")

SPACE = ao.Space(
    {
        "compress": ao.Binary(),
        "index": ao.Categorical(["none", "hash", "tree"]),
        "cache": ao.Integer(0, 15),
        "threads": ao.Integer(1, 16),
        "batch": ao.Categorical([16, 64, 256, 1024]),
    }
)


def throughput(point: dict) -> float:
    """A made-up server under load."""
    time.sleep(0.05)
    lookup = {"none": 1.0, "hash": 3.0, "tree": 2.5}[point["index"]]
    threads = point["threads"] / (
        1 + (point["threads"] / 9) ** 3
    )  # too many threads slow each other down
    memory = point["cache"] + point["batch"] / 128
    swapping = 0.2 if memory > 16 else 1.0
    packed = (
        0.8 if point["compress"] and point["threads"] < 4 else 1.1 if point["compress"] else 1.0
    )
    return lookup * threads * (1 + point["cache"] / 10) * packed * swapping


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/dask_cluster.png"))
    parser.add_argument("--quick", action="store_true", help="a small one, to see that it works")
    options = parser.parse_args()
    budget = 40 if options.quick else options.budget

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        result = ao.maximize(
            throughput, SPACE, budget, seed=options.seed, executor=client, asynchronous=True
        )
    one = 0.05 * result.evaluations
    print(f"{result.evaluations} evaluations in {result.seconds:.1f} s; one at a time, {one:.1f} s")
    print(f"best: {result.best_value:.4g} at {result.best}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    result.plot(options.out)
    print(f"Figure: {options.out}")


if __name__ == "__main__":  # the workers of the cluster import this file
    main()
