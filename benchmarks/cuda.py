"""The engine `cuda`: its times, eager PyTorch in the same run, and what its kernel waits for.

    cuda.py speed    10,000 evaluations of 100 runs and of one; eager PyTorch  results/cuda.csv
    cuda.py auto     `maximize` on `cpu` and on `cuda`, by size           results/cuda_auto.csv
    cuda.py tiles    a generation with a network cut in other ways       results/cuda_tiles.csv
    cuda.py profile  the training kernel under Nsight Compute          results/cuda_profile.csv

Eager PyTorch is timed over a few generations, and the time is scaled to 1,000. A floor is the least
time that the chip needs for one kind of work: special functions (a square root and a reciprocal
for every parameter and step), other float32 arithmetic (Adam and splitting a weight, 11 operations)
and memory (each candidate reads the networks of its run once when it is drawn).
"""

from __future__ import annotations

if __name__ == "cuda":  # PyTorch looks for a package of this name, and this is not it
    raise ImportError("benchmarks/cuda.py is a script")

import argparse
import csv
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from common import write
from eager_torch import EagerPolicy

import anyorder as ao
from anyorder._internal.checks import cores
from anyorder.strategies.policy.engines import make_model

BUDGET, POPULATION, HIDDEN, EPOCHS = 10_000, 10, 20, 50
CASES = ((64, 2, 100), (128, 2, 100), (256, 2, 100), (128, 3, 100), (128, 2, 1))
LIMITS = {(64, 2, 100): 2.0, (128, 2, 100): 5.0, (256, 2, 100): 16.0, (128, 3, 100): 12.0,
          (128, 2, 1): 1.0}  # fmt: skip


def gpu() -> dict[str, Any]:
    """What the GPU is, and its highest clock."""
    query = ["nvidia-smi", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits"]
    clock = int(
        subprocess.run(
            query, capture_output=True, text=True, check=True, encoding="utf-8"
        ).stdout.split()[0]
    )
    units = torch.cuda.get_device_properties(0).multi_processor_count
    return {"gpu": torch.cuda.get_device_name(), "multiprocessors": units, "clock_mhz": clock}


def copy_rate() -> float:
    """Bytes a second of a device-to-device copy, read and written."""
    a = torch.empty(2**28, device="cuda")
    b = torch.empty_like(a)
    seconds = timed(lambda: b.copy_(a), 5)
    return 2 * 4 * 2**28 / seconds


def timed(step: Callable[[], Any], repeats: int) -> float:
    """Mean seconds of a step, after one that is not counted."""
    step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


def instances(n: int, d: int, runs: int) -> list[ao.problems.Problem]:
    return [ao.problems.nkd(n, 4, d, seed) for seed in range(min(10, runs))]


def eager(n: int, d: int, runs: int, fused: bool) -> float:
    """Seconds of 10,000 evaluations."""
    policy = EagerPolicy(n, d, HIDDEN, fused=fused, runs=runs, device="cuda")
    advantage = torch.linspace(1, -1, POPULATION, device="cuda")

    def generation() -> None:
        points, old = policy.sample(POPULATION)
        policy.train(points, old, advantage, EPOCHS)

    return timed(generation, 2 if runs > 1 else 4) * BUDGET / POPULATION


def speed(cases: list[tuple[int, ...]], repeats: int) -> None:
    chip, rate = gpu(), copy_rate()
    lanes = chip["multiprocessors"] * chip["clock_mhz"] * 1e6
    rows = []
    for n, d, runs in cases:
        problems = instances(n, d, runs)

        def solve(budget: int, problems: Any = problems, runs: int = runs) -> ao.policy.Runs:
            each = runs // len(problems)
            return ao.policy.solve_many(
                problems, runs=each, budget=budget, config="paper", engine="cuda", progress=False
            )

        start = time.perf_counter()
        solve(3 * POPULATION)
        first = time.perf_counter() - start
        ours = [solve(BUDGET).seconds for _ in range(repeats if runs > 1 else 5)]
        theirs, fused = eager(n, d, runs, False), eager(n, d, runs, True)
        model = make_model([d] * n, [False] * n, ao.policy.PRESETS["paper"])
        steps = model.parameters * runs * EPOCHS * BUDGET / POPULATION
        floors = {
            "floor_special_s": 2 * steps / (16 * lanes),
            "floor_arithmetic_s": 11 * steps / (128 * lanes),
            "floor_memory_s": 4 * model.parameters * runs * BUDGET / rate,
        }
        floor = max(floors["floor_special_s"], floors["floor_arithmetic_s"])
        floor += floors["floor_memory_s"]
        seconds = float(np.median(ours))
        row = {
            "n": n, "d": d, "runs": runs, "evaluations": BUDGET, "seconds": round(seconds, 3),
            "least": round(min(ours), 3), "most": round(max(ours), 3),
            "asked_s": LIMITS[n, d, runs], "first_call_s": round(first, 1),
            "eager_s": round(theirs, 1), "eager_fused_s": round(fused, 1),
            "times_eager": round(theirs / seconds, 1),
            "times_eager_fused": round(fused / seconds, 1),
            **{name: round(value, 4) for name, value in floors.items()},
            "share_of_floor": round(floor / seconds, 3),
        }  # fmt: skip
        print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        rows.append(row | chip | {"copy_tb_s": round(rate / 1e12, 2)})
        write("cuda.csv", rows)


def auto() -> None:
    """One run with a function on the host, as `maximize` has it: seconds of a generation."""
    rows = []
    for n in (8, 16, 32, 64, 128):
        space = ao.Space.binary(n)
        model = make_model([2] * n, [False] * n, ao.policy.PRESETS["default"])
        row: dict[str, Any] = {
            "n": n, "work": model.parameters * POPULATION * EPOCHS, "cores": cores(),
        }  # fmt: skip
        for engine in ("cpu", "cuda"):

            def solve(budget: int, space: Any = space, engine: str = engine) -> float:
                result = ao.maximize(
                    lambda x: x.sum(axis=1),
                    space,
                    budget,
                    seed=0,
                    algorithm=ao.policy.Policy(engine=engine),
                    vectorized=True,
                    progress=False,
                    cache=False,
                )
                return result.seconds

            solve(50)
            few, many = (np.median([solve(k) for _ in range(3)]) for k in (100, 600))
            row[f"{engine}_ms"] = round(1e3 * float(many - few) / 50, 4)
        print(row, flush=True)
        rows.append(row)
    write("cuda_auto.csv", rows)


# Bits or values, preset, and ways to cut a network: warps, lots, inputs of a lot, lots that share a
# tile, and registers a thread (0: as many as there are).
PRESETS = {"text": "paper", "authors": "paper-code"}  # by their labels in the results
TILES: dict[tuple[int, int, str], tuple[tuple[int, ...], ...]] = {
    (64, 2, "text"): ((1, 4, 16, 4, 0), (2, 2, 16, 2, 0), (2, 2, 16, 2, 168)),
    (128, 2, "text"): ((2, 4, 16, 4, 0), (4, 2, 16, 2, 0), (4, 2, 16, 2, 168), (2, 2, 32, 2, 0)),
    (256, 2, "text"): ((4, 2, 32, 2, 0), (4, 4, 16, 4, 0), (4, 4, 16, 4, 168), (8, 2, 16, 2, 128)),
    (64, 3, "text"): ((4, 3, 16, 4, 0), (4, 3, 16, 4, 168), (2, 3, 32, 4, 0)),
    (128, 3, "text"): ((8, 3, 16, 4, 0), (8, 3, 16, 4, 128), (4, 3, 32, 4, 0)),
    (256, 3, "text"): ((8, 3, 32, 4, 0), (16, 3, 16, 4, 128)),
    (128, 2, "authors"): ((2, 4, 16, 4, 0), (4, 2, 16, 2, 168)),
    (256, 2, "authors"): ((4, 2, 32, 2, 0), (4, 4, 16, 4, 0)),
    (128, 3, "authors"): ((8, 3, 16, 4, 0), (4, 3, 32, 4, 0)),
    (256, 3, "authors"): ((8, 3, 32, 4, 0),),
}


def generation_of(n: int, d: int, preset: str, cut: tuple[int, ...] | None) -> list[float]:
    """Milliseconds of drawing, of training orders and of training; 100 runs."""
    from anyorder.strategies.policy.engines.cuda import CudaEngine, shapes

    runs = 100
    model = make_model([d] * n, [False] * n, ao.policy.PRESETS[PRESETS[preset]])
    engine = CudaEngine(model)
    shape: dict[str, int] | None = None
    if cut is not None:
        shape = dict(zip(("W", "L", "T", "FOLD", "maxnreg"), cut, strict=True))
        if not shape["maxnreg"]:
            del shape["maxnreg"]
    shapes.tiles_of = lambda inputs, units: shape
    seeds = list(range(runs))
    policy, rows = engine.fresh(seeds, [0] * runs), engine.rows(seeds, [0] * runs)
    points = torch.empty((runs, POPULATION, n), dtype=torch.int32, device="cuda")
    probs = torch.empty((runs, POPULATION, model.values), device="cuda")
    advantages = torch.linspace(1, -1, POPULATION, device="cuda")[None, :, None]
    advantages = advantages.expand(runs, POPULATION, n)
    weights = torch.ones((1, 1, 1), device="cuda").expand(runs, POPULATION, n)
    engine.draw(policy.theta, rows, points, probs, False)
    orders = engine.orders(rows, POPULATION)
    steps: list[Callable[[], Any]] = [
        lambda: engine.draw(policy.theta, rows, points, probs, False),
        lambda: engine.orders(rows, POPULATION, None, orders),
        lambda: engine.learn(policy, rows, points, probs, advantages, weights, orders, False),
    ]
    return [round(1e3 * timed(step, 5), 3) for step in steps]


def tiles() -> None:
    """The kernel's own way to cut a network is the first of each case; "memory" is `general.py`."""
    rows = []
    for (n, d, preset), cuts in TILES.items():
        for cut in (*cuts, *([None] if n == 256 else [])):
            draw, order, train = generation_of(n, d, preset, cut)
            row = {
                "n": n, "d": d, "config": preset, "draw_ms": draw, "orders_ms": order,
                "train_ms": train, "tiles": "memory" if cut is None else " ".join(map(str, cut)),
            }  # fmt: skip
            print(row, flush=True)
            rows.append(row | gpu())
            write("cuda_tiles.csv", rows)


# What is kept of Nsight Compute's page of details, by the name of the column.
DETAILS = {
    "duration_ms": "Duration", "warps_a_multiprocessor": "Achieved Active Warps Per SM",
    "programs_by_registers": "Block Limit Registers",
    "programs_by_shared_memory": "Block Limit Shared Mem",
    "issue_slots_busy_percent": "Issue Slots Busy",
    "cycles_a_warp_and_instruction": "Warp Cycles Per Issued Instruction",
    "l1_throughput_percent": "L1/TEX Cache Throughput",
    "dram_throughput_percent": "DRAM Throughput",
}  # fmt: skip


def profile() -> None:
    """One generation of 100 runs, preset `text`, for the two cases that take longest."""
    rows = []
    for n, d in ((256, 2), (128, 3)):
        with tempfile.TemporaryDirectory() as folder:
            report = f"{folder}/report"
            sections = ("SpeedOfLight", "ComputeWorkloadAnalysis", "WarpStateStats", "Occupancy",
                        "SourceCounters")  # fmt: skip
            command = ["ncu", "--clock-control", "none", "-k", "train", "-c", "1", "-o", report]
            command += [word for section in sections for word in ("--section", section)]
            command += [sys.executable, __file__, "generation", "--case", f"{n},{d},100"]
            subprocess.run(command, check=True)
            details, source = (
                subprocess.run(
                    ["ncu", "--import", f"{report}.ncu-rep", "--page", *page],
                    capture_output=True, text=True, check=True,
                    encoding="utf-8",
                ).stdout
                for page in (["details"], ["source", "--csv"])
            )  # fmt: skip
        rows.append({"n": n, "d": d, "runs": 100} | profiled(details, source) | gpu())
        write("cuda_profile.csv", rows)


def profiled(details: str, source: str) -> dict[str, float]:
    """What the two pages say: totals, and what warps wait for, in percent of all samples."""
    found = {}
    for key, name in DETAILS.items():
        (value,) = re.findall(rf"^ +{re.escape(name)} .*?([\d.,]+)$", details, re.MULTILINE)
        found[key] = float(value.replace(",", ""))
    lines = source[source.index('"Address"') :].splitlines()  # a line for each instruction
    table = list(csv.DictReader(lines))

    def total(column: str) -> int:
        return sum(int(line[column]) for line in table if (line[column] or "").isdigit())

    found["instructions_of_warps"] = total("Instructions Executed")
    ideal, actual = (total(f"L1 Wavefronts Shared{end}") for end in (" Ideal", ""))
    found["shared_memory_conflicts_percent"] = round(100 * (actual - ideal) / actual, 1)
    waits = {name: total(name) for name in table[0] if name and re.fullmatch(r"stall_\w+", name)}
    samples = sum(waits.values())
    return found | {name: round(100 * count / samples, 1) for name, count in waits.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "auto", "tiles", "profile", "generation"])
    cases = [",".join(map(str, case)) for case in CASES]
    parser.add_argument(
        "--case", nargs="*", default=cases, metavar="N,D,RUNS", help="of speed and generation"
    )
    parser.add_argument("--repeats", type=int, default=3, help="of 10,000 evaluations, speed")
    options = parser.parse_args()
    chosen = [tuple(map(int, case.split(","))) for case in options.case]
    if options.what == "speed":
        speed(chosen, options.repeats)
    elif options.what == "generation":  # what `profile` looks at
        for n, d, _ in chosen:
            generation_of(n, d, "text", TILES[n, d, "text"][0])
    else:
        {"auto": auto, "tiles": tiles, "profile": profile}[options.what]()


if __name__ == "__main__":
    main()
