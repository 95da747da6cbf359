"""The shared network: a generation on the CPU by n; many runs on a GPU, and eager PyTorch.

    python benchmarks/shared.py cpu     a generation of 10 candidates, 50 epochs, n = 256 to 10,000
    python benchmarks/shared.py cuda    100 runs of n = 1,024, K = 8, and eager PyTorch beside it
    python benchmarks/shared.py epoch   the kernels of an epoch of these, on an otherwise idle GPU
    python benchmarks/shared.py large   separate networks of 512 to 1,536 inputs on a GPU

Results are in results/shared_cpu.csv, shared_cuda.csv, shared_epoch.csv and cuda_large.csv.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import write

import anyorder as ao
from anyorder.strategies.policy.engines import Batch, Draw, create, make_model

POPULATION, EPOCHS, BUDGET = 10, 50, 10_000
SIZES = (256, 512, 1024, 2048, 4096, 10_000)


def on_the_cpu(sizes: list[int]) -> None:
    """Seconds of a generation: wall-clock, and of all threads together."""
    rows = []
    for n in sizes:
        config = ao.policy.PRESETS["paper"].replace(network="shared")
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


def on_a_gpu(n: int, runs: int, budget: int) -> None:
    """`solve_many` on NK landscapes with K = 8, and a generation of eager PyTorch, scaled up.

    Eager PyTorch trains all layers; so it is compared with the network that does, too.
    """
    import torch
    from eager_torch import EagerShared

    problems = [ao.problems.nk(n, 8, seed) for seed in range(min(10, runs))]
    eager_runs = min(runs, 20)  # its masks are (runs, candidates, n, n)
    policy = EagerShared(n, runs=eager_runs, device="cuda")
    advantage = torch.linspace(1, -1, POPULATION, device="cuda")
    seconds = []
    for _ in range(3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        points, old = policy.sample(POPULATION)
        policy.train(points, old, advantage, EPOCHS)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    eager = min(seconds) * budget / POPULATION * runs / eager_runs
    rows = []
    for frozen in (True, False):
        config = large_config(frozen)

        def solve(evaluations: int, config: ao.policy.Config = config) -> ao.policy.Runs:
            return ao.policy.solve_many(
                problems, runs=runs // len(problems), budget=evaluations, config=config,
                engine="cuda", progress=False,
            )  # fmt: skip

        start = time.perf_counter()
        solve(3 * POPULATION)
        first = time.perf_counter() - start
        ours = solve(budget)
        rows.append({
            "n": n, "second_layer": "frozen" if frozen else "trained", "runs": runs,
            "evaluations": budget, "seconds": round(ours.seconds, 2),
            "first_call_s": round(first, 1), "mean_best": round(float(ours.best_values.mean()), 4),
            "eager_s": "" if frozen else round(eager, 1),
            "times_eager": "" if frozen else round(eager / ours.seconds, 1),
            "gpu": torch.cuda.get_device_name(),
        })  # fmt: skip
        print(", ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    write("shared_cuda.csv", rows)


def large_config(frozen: bool) -> ao.policy.Config:
    """The setting of `anyorder reproduce figure-large`, where the second layer is frozen."""
    config = ao.policy.PRESETS["paper-code"].replace(network="shared", hidden=(100, 100))
    return config if frozen else config.replace(layer_rates=None)


def epoch(n: int, runs: int) -> None:
    """Microseconds of each kernel of training, and of sampling and sorting."""
    table = [
        {"n": n, "runs": runs, "second_layer": kind, **row}
        for kind in ("frozen", "trained")
        for row in kernels(n, runs, kind == "frozen")
    ]
    for row in table:
        print(", ".join(f"{key} {value}" for key, value in row.items()))
    write("shared_epoch.csv", table)


def kernels(n: int, runs: int, frozen: bool) -> Iterator[dict[str, Any]]:
    """Those of a generation."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    engine: Any = create("cuda", make_model([2] * n, [False] * n, large_config(frozen)), runs)
    policy, rows = engine.fresh(range(runs), [0] * runs), engine.rows(range(runs))
    shape = (runs, POPULATION)
    points = torch.empty((*shape, n), dtype=torch.int32, device="cuda")
    probs = torch.empty((*shape, 2 * n), device="cuda")
    gain = torch.linspace(1, -1, POPULATION, device="cuda")[None, :, None].expand(*shape, n)
    weights = torch.ones((1, 1, 1), device="cuda").expand(*shape, n)

    def generation() -> None:
        engine.draw(policy.theta, rows, points, probs, False)
        orders = engine.orders(rows, POPULATION)
        engine.learn(policy, rows, points, probs, gain, weights, orders, False)
        torch.cuda.synchronize()

    generation()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        generation()
    for event in found.key_averages():
        if event.device_time_total > 0:
            us = round(event.device_time_total / event.count, 1)
            yield {"kernel": event.key, "calls": event.count, "us": us}


def large(sizes: list[int]) -> None:
    """Separate networks: 5 runs x 300 evaluations, the second of two calls."""
    rows = []
    for n in sizes:
        problem = ao.problems.nk(n, 8, 0)
        seconds = [
            ao.policy.solve_many(
                problem, runs=5, budget=300, config="paper", engine="cuda", progress=False
            ).seconds
            for _ in range(2)
        ]
        rows.append({"n": n, "seconds": round(seconds[-1], 3)})
        print(f"n {n}, seconds {seconds[-1]:.3f}", flush=True)
    write("cuda_large.csv", rows)


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("cpu", "cuda", "epoch", "large"))
    parser.add_argument("--n", type=int, nargs="+")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--budget", type=int, default=BUDGET)
    given = parser.parse_args()
    if given.what == "cpu":
        on_the_cpu(given.n or list(SIZES))
    elif given.what == "cuda":
        on_a_gpu((given.n or [1024])[0], given.runs, given.budget)
    elif given.what == "epoch":
        epoch((given.n or [1024])[0], given.runs)
    else:
        large(given.n or [512, 768, 1024, 1536])


if __name__ == "__main__":
    main()
