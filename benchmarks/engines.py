"""One generation (sample + train) on every engine, interleaved in one run.

The engines are compared with eager PyTorch as a competent user would write it (`eager_torch.py`),
with PyTorch's default Adam and with its fused one, which is faster. Then `cpu` is measured alone
from n = 32 to 1024, beside the arithmetic floor, and the memory for n = 1024. Speed is the ratio
within one run; times are those of this machine. Writes results/engines.csv and
results/engines_growth.csv.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import cores, write
from tqdm import tqdm

import anyorder as ao
from anyorder.strategies.policy.engines import Batch, Draw, Engine, make_model

POPULATION, HIDDEN, EPOCHS = 10, 20, 50
SIZES = ((64, 2), (128, 2), (256, 2), (128, 3))
CONFIG = ao.policy.PRESETS["paper"]


def our_generation(engine: Engine) -> Callable[[], None]:
    """One generation of an engine, as a function without arguments."""
    n, count = engine.model.n, POPULATION
    advantage = np.linspace(1.0, -1.0, count)[None, :, None]
    policy, state = engine.fresh([0], [0]), {"generation": 0}

    def step() -> None:
        generation = state["generation"]
        draw = Draw([0], [generation], [0], [0.0], count)
        points, old = engine.sample(policy, draw)
        batch = Batch(
            [0], [generation], points, old, np.broadcast_to(advantage, (1, count, n)),
            np.ones((1, count, n)), [0.0], np.zeros((1, count, 2), np.int64),
        )  # fmt: skip
        engine.train(policy, batch)
        state["generation"] += 1

    return step


def torch_generation(n: int, d: int, fused: bool) -> Callable[[], None]:
    import torch
    from eager_torch import EagerPolicy

    torch.set_num_threads(cores())
    policy = EagerPolicy(n, d, HIDDEN, fused=fused)
    advantage = torch.linspace(1, -1, POPULATION)

    def step() -> None:
        points, old = policy.sample(POPULATION)
        policy.train(points, old, advantage, EPOCHS)

    return step


def model(n: int, d: int) -> Any:
    return make_model([d] * n, [False] * n, CONFIG)


def interleaved(
    steps: dict[str, Callable[[], None]], rounds: dict[str, int], rest: float = 0.03
) -> dict[str, list[float]]:
    """Seconds of each step, the steps taking turns so that all see the same machine."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for k in range(max(rounds.values())):
        for name, step in steps.items():
            if k < rounds[name]:
                time.sleep(rest)  # PyTorch's idle threads spin for a while: let them come to rest
                step()  # each measured step follows one of its own kind
                start = time.perf_counter()
                step()
                times[name].append(time.perf_counter() - start)
    return times


def compare(rounds: int) -> list[dict[str, Any]]:
    from anyorder.strategies.policy.engines.cpu import CpuEngine
    from anyorder.strategies.policy.engines.reference import ReferenceEngine

    rows = []
    for n, d in tqdm(SIZES, disable=None):
        steps = {
            "PyTorch eager": torch_generation(n, d, fused=False),
            "PyTorch eager, fused Adam": torch_generation(n, d, fused=True),
            "reference": our_generation(ReferenceEngine(model(n, d))),
            "cpu": our_generation(CpuEngine(model(n, d))),
        }
        counts = dict.fromkeys(steps, rounds) | {"reference": 1}
        times = interleaved(steps, counts)
        for engine, seconds in times.items():
            rows.append(
                {
                    "n": n, "d": d, "engine": engine, "rounds": len(seconds),
                    "p10_ms": round(1e3 * float(np.quantile(seconds, 0.1)), 3),
                    "median_ms": round(1e3 * float(np.median(seconds)), 3),
                    "p90_ms": round(1e3 * float(np.quantile(seconds, 0.9)), 3),
                }
            )  # fmt: skip
    return rows


def multiply_add_rate() -> float:
    """Multiply-adds a second of one core, from L1, as the compiler makes them: the floor's unit."""
    from numba import njit

    from anyorder.strategies.policy.engines import kernels
    from anyorder.strategies.policy.engines.cpu import aligned_zeros

    width, repeats = 1024, 2_000
    w, y, z = (
        aligned_zeros(0, 3, width),
        aligned_zeros(1, 1, 5, width),
        aligned_zeros(2, 1, 5, kernels.LANES),
    )

    @njit
    def work(w, y, z, width, repeats):  # type: ignore[no-untyped-def]
        for _ in range(repeats):
            kernels.dense(w, 0, 2, 2, y, 0, 5, width, z, 0)

    work(w, y, z, width, 1)
    best = np.inf
    for _ in range(30):
        start = time.perf_counter()
        work(w, y, z, width, repeats)
        best = min(best, time.perf_counter() - start)
    return 2 * 5 * width * repeats / best


def growth(rounds: int) -> list[dict[str, Any]]:
    """`cpu` against n, and the time that its multiply-adds alone would take.

    Per weight and epoch: one multiply-add a candidate going forward, one going back, and about ten
    operations of Adam, as if each were as cheap as a multiply-add.
    """
    from anyorder.strategies.policy.engines.cpu import CpuEngine, default_threads

    rate = multiply_add_rate() * default_threads()
    rows = []
    for n in tqdm((32, 64, 128, 256, 512, 1024), disable=None):
        engine = CpuEngine(model(n, 2))
        our_generation(engine)()  # compile
        repeats = max(5, rounds * 64 // n)
        seconds = interleaved({"cpu": our_generation(engine)}, {"cpu": repeats}, rest=0.0)
        operations = engine.model.parameters * EPOCHS * (2 * POPULATION + 10)
        median = float(np.median(seconds["cpu"]))
        rows.append(
            {
                "n": n, "median_ms": round(1e3 * median, 3),
                "us_per_n_squared": round(1e6 * median / n**2, 4),
                "floor_ms": round(1e3 * operations / rate, 3),
                "share_of_floor": round(operations / rate / median, 3),
                "core_gigafma": round(rate / default_threads() / 1e9, 1),
            }
        )  # fmt: skip
    return rows


def memory(n: int) -> float:
    """Peak resident memory in MB of a process that runs three generations."""
    code = f"import engines; engines._three_generations({n})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=os.path.dirname(os.path.abspath(__file__)),
        capture_output=True, text=True, check=True,
        encoding="utf-8",
    )  # fmt: skip
    return float(done.stdout)


def _three_generations(n: int) -> None:
    from anyorder.strategies.policy.engines.cpu import CpuEngine

    step = our_generation(CpuEngine(model(n, 2)))
    for _ in range(3):
        step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    rows = compare(options.rounds)
    print("one generation, lambda 10, hidden 20, E 50: median ms (times PyTorch)")
    for n, d in SIZES:
        of = {row["engine"]: row["median_ms"] for row in rows if (row["n"], row["d"]) == (n, d)}
        cells = [f"{engine} {ms:.2f}" for engine, ms in of.items()]
        ratio, fused = of["PyTorch eager"] / of["cpu"], of["PyTorch eager, fused Adam"] / of["cpu"]
        print(f"n {n:>4} d {d}: {', '.join(cells)}; cpu is {ratio:.1f}x ({fused:.1f}x fused)")
    write("engines.csv", rows)

    table = growth(options.rounds)
    peak = memory(1024)
    print("\ncpu against n")
    for row in table:
        print(
            f"n {row['n']:>5}: {row['median_ms']:>9.2f} ms, "
            f"{row['us_per_n_squared']:.3f} us per n^2, floor {row['floor_ms']:.2f} ms "
            f"({row['share_of_floor']:.0%} reached)"
        )
    print(f"peak memory at n 1024: {peak:.0f} MB")
    write("engines_growth.csv", [{**row, "peak_mb_at_1024": round(peak)} for row in table])


if __name__ == "__main__":
    main()
