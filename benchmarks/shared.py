"""The shared network: a generation on the CPU by n; and large separate networks on a GPU.

    python benchmarks/shared.py cpu     a generation of 10 candidates, 50 epochs, n = 256 to 10,000
    python benchmarks/shared.py tiles   separate networks around n = 768 on a GPU, by tile

Results are in results/shared_cpu.csv and shared_tiles.csv.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import time
from typing import Any

import numpy as np
from common import write

import anyorder as ao
from anyorder.strategies.policy.engines import Batch, Draw, create, make_model

POPULATION = 10
SIZES = (256, 512, 1024, 2048, 4096, 10_000)


def on_the_cpu(sizes: list[int]) -> None:
    """Seconds of a generation: wall-clock, and of all threads together."""
    rows = []
    for n in sizes:
        config = ao.PRESETS["paper"].replace(network="shared")
        engine = create("cpu", make_model([2] * n, [False] * n, config))
        policy = engine.fresh([0], [0])
        advantages = np.linspace(1.0, -1.0, POPULATION)[None, :, None] * np.ones((1, 1, n))
        stamps = np.zeros((1, POPULATION, 2), np.int64)
        walls, work = [], []
        for generation in range(4):
            wall, cpu = time.perf_counter(), time.process_time()
            points, old = engine.sample(policy, Draw([0], [generation], [0], [0.0], POPULATION))
            sampled = time.perf_counter() - wall
            engine.train(
                policy,
                Batch([0], [generation], points, old, advantages, np.ones_like(advantages), [0.0],
                      stamps),
            )  # fmt: skip
            walls.append(time.perf_counter() - wall)
            work.append(time.process_time() - cpu)
        row = {
            "n": n, "seconds": round(min(walls[1:]), 3), "sampling_s": round(sampled, 4),
            "cpu_seconds": round(min(work[1:]), 3),
            "cpu_us_per_variable": round(1e6 * min(work[1:]) / n, 1),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }  # fmt: skip
        print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        rows.append(row)
    write("shared_cpu.csv", rows)


def tiles(sizes: list[int]) -> None:
    """Separate networks beyond 768 inputs are not in registers: 5 runs x 300 evaluations."""
    from anyorder.strategies.policy.engines.cuda import engine, shapes

    plain, rows = shapes.general_shape, []
    for n, tile, warps in itertools.product(sizes, (32, 64, 128, 256), (4, 8)):

        def chosen(*arguments: Any, tile: int = tile, warps: int = warps) -> dict[str, int]:
            return {**plain(*arguments), "T": tile, "num_warps": warps}

        engine.general_shape = chosen  # type: ignore[assignment]
        problem = ao.problems.nk(n, 8, 0)
        seconds = [
            ao.solve_many(
                problem, runs=5, budget=300, config="paper", engine="cuda", progress=False
            ).seconds
            for _ in range(2)
        ]
        row = {"n": n, "T": tile, "warps": warps, "seconds": round(seconds[-1], 3)}
        print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        rows.append(row)
        if n <= 768:  # in registers: the tile does not matter
            break
    engine.general_shape = plain
    write("shared_tiles.csv", rows)


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("cpu", "tiles"))
    parser.add_argument("--n", type=int, nargs="+")
    given = parser.parse_args()
    if given.what == "cpu":
        on_the_cpu(given.n or list(SIZES))
    else:
        tiles(given.n or [1024])


if __name__ == "__main__":
    main()
