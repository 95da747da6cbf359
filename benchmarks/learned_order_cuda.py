"""How a learned order spends its time on a GPU: seconds by kernel, for some numbers of runs.

learned_order_cuda.py [--n 256] [--runs 10 90] [--generations 3] [--out FILE]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

import anyorder as ao
from anyorder.policy import PRESETS, solve_many

CONFIG = PRESETS["paper-code"].replace(generation_order="learned", training_order="learned")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=256)
    parser.add_argument("--runs", type=int, nargs="+", default=[10, 90])
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("learned_order_cuda.txt"))
    given = parser.parse_args()
    texts = []
    problems = [ao.problems.get(f"nk:n={given.n},k=4,seed={k}") for k in range(10)]
    for runs in given.runs:
        some = [problems[k % 10] for k in range(runs)]

        def solve(some: list[ao.problems.Problem] = some) -> None:
            solve_many(
                some, runs=1, budget=10 * (given.generations + 1), seeds=list(range(len(some))),
                config=CONFIG, engine="cuda", progress=False,
            )  # fmt: skip
            torch.cuda.synchronize()

        solve()  # compiles
        start = time.perf_counter()
        solve()
        seconds = (time.perf_counter() - start) / given.generations
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            solve()
        texts.append(f"n = {given.n}, {runs} runs: {seconds:.3f} s a generation, with its set-up")
        texts.append(profiler.key_averages().table(sort_by="cuda_time_total", row_limit=14))
        print("\n".join(texts[-2:]), flush=True)
        given.out.write_text("\n".join(texts))


if __name__ == "__main__":
    main()
