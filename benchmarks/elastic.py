"""How soon a run uses workers that join its cluster: Dask and Ray, from one worker to four.

    python benchmarks/elastic.py --kind dask --kind ray

Evaluations sleep for 0.5 s; three workers join while an asynchronous run is under way. The result
is the mean number of evaluations that run at a time, for six seconds from 2 s after the last worker
has joined (results/elastic.csv). The target is 3.5 of 4.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import write

import anyorder as ao

NAP, AFTER, WINDOW = 0.5, 2.0, 6.0


def nap(path: str, point: Any) -> float:
    """Sleep, and write down when."""
    start = time.time()
    time.sleep(NAP)
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{start} {time.time()}\n")
    return float(np.sum(point))


def run(executor: Any, grow: Any) -> float:
    """How many evaluations ran at a time after `grow`, which adds workers and returns the time."""
    path = Path(tempfile.mkdtemp()) / "naps"
    come: list[float] = []

    def add() -> None:
        time.sleep(2)
        come.append(grow())

    thread = threading.Thread(target=add)
    thread.start()
    ao.maximize(
        functools.partial(nap, str(path)), ao.Space.binary(200), executor=executor, seed=0,
        algorithm="random", asynchronous=True, cache=False, progress=False,
        stop=lambda _: "over" if come and time.time() > come[0] + AFTER + WINDOW + 1 else None,
        max_seconds=120,
    )  # fmt: skip
    thread.join()
    naps = np.loadtxt(path)
    low, high = come[0] + AFTER, come[0] + AFTER + WINDOW
    inside = np.clip(naps[:, 1], low, high) - np.clip(naps[:, 0], low, high)
    return float(inside.sum() / WINDOW)


def on_dask() -> float:
    """Workers of one thread each."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def grow() -> float:
            cluster.scale(4)
            client.wait_for_workers(4)
            return time.time()

        return run(client, grow)


def on_ray() -> float:
    """Nodes of one core each."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    ray.init(address=cluster.address, log_to_driver=False)

    def grow() -> float:
        for _ in range(3):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        return time.time()

    try:
        return run("ray", grow)
    finally:
        ray.shutdown()
        cluster.shutdown()


def main() -> None:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", action="append", choices=("dask", "ray"), required=True)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    rows = []
    for kind in given.kind:
        for repeat in range(given.repeats):
            busy = {"dask": on_dask, "ray": on_ray}[kind]()
            print(kind, repeat, f"{busy:.2f} of 4", flush=True)
            rows.append({"kind": kind, "repeat": repeat, "workers": 4, "busy": round(busy, 3)})
    write("elastic.csv", rows)


if __name__ == "__main__":
    main()
