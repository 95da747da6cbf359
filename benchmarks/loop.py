"""What the session around a strategy costs, and what it does for slow functions.

    python benchmarks/loop.py session    results/session_overhead.csv
    python benchmarks/loop.py overhead   results/loop_overhead.csv
    python benchmarks/loop.py async      results/loop_async.csv
    python benchmarks/loop.py million    results/loop_million.csv

- session: 64 bits, a function that costs nothing and a strategy that proposes points drawn before,
  one at a time, without a study: the time of an evaluation, minus that of the strategy itself
  (required: at most 30 us). The median and the minimum of several repetitions are printed, since
  other processes can only add to the time.
- overhead: `maximize` with a function that costs nothing, with and without a study, against the
  optimiser alone (ask, call, tell) at n = 128, in turns: the ratio of times per candidate
  (required: at most 1.2).
- async: NK landscapes (n = 128, K = 4) whose evaluations take times with a heavy tail: log-normal
  with sigma 1, always the same for a point. First with 8 real workers that sleep: the share of
  their time in which they are busy, from the first evaluation to the last that begins (required: at
  least 0.95 in asynchronous mode). Then at many seeds with a simulated clock: the best value after
  equal numbers of evaluations in either mode (two-sided Mann-Whitney test), and the time that it
  would take.
- million: a million evaluations of OneMax, n = 64, with a study: resident memory every 50,000
  evaluations, the size of the file (required: under 200 MB), and the time of an evaluation. Use
  `million 100000` for fewer.
"""

from __future__ import annotations

import functools
import heapq
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
from common import write
from scipy import stats
from tqdm import tqdm

import anyorder as ao
from anyorder.run import loop
from anyorder.run.evaluation import jobs
from anyorder.run.evaluation.evaluators import Outcome, call
from anyorder.strategies.base import Answer, Codes, Proposals, Search

N, WORKERS, MEAN, SIGMA = 128, 8, 0.040, 1.0


# --- the session --------------------------------------------------------------------------------


class Listed(Search):
    """Proposes points that were drawn before, and takes the time that it spends itself."""

    name = "listed"

    def __init__(self, space: ao.Space, seed: int, count: int) -> None:
        super().__init__(space, seed)
        self._points, self._at, self.seconds = self._uniform(count), 0, 0.0

    def propose(self, count: int, given: Codes | None = None) -> Proposals:
        """The next ones."""
        start = time.perf_counter()
        proposals = super().propose(count, given)
        self.seconds += time.perf_counter() - start
        return proposals

    def learn(self, answers: Sequence[Answer]) -> None:
        """Nothing."""
        start = time.perf_counter()
        super().learn(answers)
        self.seconds += time.perf_counter() - start

    def _propose(self, count: int) -> Codes:
        first, self._at = self._at, self._at + count
        return self._points[first : self._at]

    def _learn(self, answers: Sequence[Answer]) -> None:
        pass


def session(repetitions: int = 9, budget: int = 20_000) -> None:
    rows: list[dict[str, Any]] = []
    space = ao.Space.binary(64)
    for repetition in range(-1, repetitions):  # the first is not counted
        strategy = Listed(space, repetition + 1, budget)
        start, cpu = time.perf_counter(), time.process_time()
        ao.maximize(free, space, budget, algorithm=strategy, seed=0, progress=False)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        row = {"n": 64, "repetition": repetition, "evaluations": budget}
        row["us_per_evaluation"] = round(1e6 * (seconds - strategy.seconds) / budget, 2)
        row["cpu_us"] = round(1e6 * (cpu - strategy.seconds * cpu / seconds) / budget, 2)
        row["strategy_us"] = round(1e6 * strategy.seconds / budget, 2)
        if repetition >= 0:
            rows.append(row)
    path = write("session_overhead.csv", rows)
    for name in ("us_per_evaluation", "cpu_us"):
        figures = sorted(row[name] for row in rows)
        print(f"{name:<18} median {statistics.median(figures):.1f}, least {figures[0]:.1f}")
    print(f"every repetition: {path}")


# --- overhead -------------------------------------------------------------------------------------


def free(x: np.ndarray) -> float:
    return float(x[0])


def alone(seed: int, budget: int) -> tuple[float, int]:
    """The optimiser by itself; the free function is called as often as in the loop."""
    optimizer = ao.Optimizer(ao.Space.binary(N), seed)
    start = time.perf_counter()
    while optimizer.told < budget:
        candidates = optimizer.ask()
        optimizer.tell(candidates, [free(x) for x in candidates])
    return time.perf_counter() - start, optimizer.told


def looped(seed: int, budget: int, study: Path | None) -> tuple[float, int]:
    start = time.perf_counter()
    result = ao.maximize(
        free, ao.Space.binary(N), budget, seed=seed, study=study, progress=False, patience=None
    )
    seconds = time.perf_counter() - start
    return seconds, len(result.history)


def overhead(repetitions: int = 9, budget: int = 2_000) -> None:
    rows: list[dict[str, Any]] = []
    alone(0, 100)  # compiled code is read
    for repetition in tqdm(range(repetitions), unit="round", disable=None):
        with tempfile.TemporaryDirectory() as folder:
            times = {
                "optimiser alone": alone(repetition, budget),
                "maximize": looped(repetition, budget, None),
                "maximize, study": looped(repetition, budget, Path(folder) / "study.db"),
            }
        base = times["optimiser alone"][0] / times["optimiser alone"][1]
        for way, (seconds, candidates) in times.items():
            each = seconds / candidates
            rows.append({"way": way, "n": N, "repetition": repetition, "candidates": candidates,
                         "us_per_candidate": round(1e6 * each, 2),
                         "ratio": round(each / base, 4)})  # fmt: skip
    path = write("loop_overhead.csv", rows)
    for way in ("optimiser alone", "maximize", "maximize, study"):
        mine = [row for row in rows if row["way"] == way]
        each = statistics.median(row["us_per_candidate"] for row in mine)
        ratios = sorted(row["ratio"] for row in mine)
        print(f"{way:<18}{each:>9.1f} us   ratio {statistics.median(ratios):.3f} "
              f"({ratios[0]:.3f} to {ratios[-1]:.3f})")  # fmt: skip
    print(f"every repetition: {path}")


# --- asynchronous ---------------------------------------------------------------------------------


def duration(x: np.ndarray) -> float:
    """How long a point takes: log-normal with mean MEAN, the same each time."""
    draw = np.random.default_rng(np.packbits(x.astype(np.uint8)).tolist()).normal()
    return float(MEAN * np.exp(SIGMA * draw - SIGMA**2 / 2))


def sleeping(problem: ao.problems.Problem, log: str, x: np.ndarray) -> float:
    start = time.monotonic()
    time.sleep(duration(x))
    value = float(problem(x))
    line = f"{start} {time.monotonic()}\n".encode()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, line)
    os.close(file)
    return value


def busy(asynchronous: bool, seed: int, budget: int) -> dict[str, Any]:
    """With real workers: the share of their time that they work."""
    problem = ao.problems.nk(N, 4, seed)
    with tempfile.TemporaryDirectory() as folder:
        log = str(Path(folder) / "log")
        ao.maximize(
            functools.partial(sleeping, problem, log), problem.space, budget, seed=seed,
            workers=WORKERS, asynchronous=asynchronous, progress=False,
        )  # fmt: skip
        spans = np.loadtxt(log)
    begin, end = spans.min(), spans[:, 0].max()  # after that there is nothing left to begin
    worked = (np.minimum(spans[:, 1], end) - spans[:, 0]).sum()
    return {"seconds": round(end - begin, 3),
            "busy": round(worked / (WORKERS * (end - begin)), 4)}  # fmt: skip


class Simulated:
    """Workers whose time is simulated: evaluator and queue at once, in place of the session's."""

    slots = WORKERS
    in_process = False
    keeps_time = True

    def __init__(self, f: Any) -> None:
        self.f, self.now, self.worked = f, 0.0, 0.0
        self.out: list[tuple[float, int, Any]] = []
        self.ahead: deque[tuple[int, Any]] = deque()  # what waits for a worker

    def start(self, job: int, points: Any) -> None:
        """Begin an evaluation at this moment, or when a worker is free."""
        self.ahead.append((job, points))
        self._begin()

    def _begin(self) -> None:
        while self.ahead and len(self.out) < WORKERS:
            job, points = self.ahead.popleft()
            lasts = duration(points)
            self.worked += lasts
            heapq.heappush(self.out, (self.now + lasts, job, points))

    def abandon(self, job: int) -> None:
        """Nothing is ever late."""

    def close(self) -> None:
        """Nothing to end."""

    def get(self, timeout: float | None = None) -> tuple[int, Outcome]:
        """Let time pass until the next is done."""
        self.now, job, points = heapq.heappop(self.out)
        self._begin()
        return job, call(self.f, points)._replace(seconds=duration(points))

    def get_nowait(self) -> tuple[int, Outcome]:
        """What is done at this moment, if anything."""
        if not self.out or self.out[0][0] > self.now:
            raise Empty
        return self.get()


def simulated(asynchronous: bool, seed: int, budget: int) -> dict[str, Any]:
    problem = ao.problems.nk(N, 4, seed)
    clock = Simulated(problem)
    plain = loop.make_evaluator, jobs.SimpleQueue
    loop.make_evaluator = lambda *rest: clock  # type: ignore[assignment]
    jobs.SimpleQueue = lambda: clock  # type: ignore[assignment,misc]
    try:
        result = ao.maximize(
            problem, problem.space, budget, seed=seed, workers=WORKERS, asynchronous=asynchronous,
            progress=False,
        )  # fmt: skip
    finally:
        loop.make_evaluator, jobs.SimpleQueue = plain  # type: ignore[misc]
    return {"seconds": round(clock.now, 3), "busy": round(clock.worked / WORKERS / clock.now, 4),
            "best": result.best_value}  # fmt: skip


def asynchronous(seeds: int = 20, budget: int = 2_000, real: int = 3, fewer: int = 800) -> None:
    rows: list[dict[str, Any]] = []
    jobs = [("real", seed, fewer) for seed in range(real)]
    jobs += [("simulated", seed, budget) for seed in range(seeds)]
    simulated(False, 0, 20)  # the engine is loaded before the clock runs
    for clock, seed, evaluations in tqdm(jobs, unit="pair", disable=None):
        for mode in ("batch", "asynchronous"):
            run = busy if clock == "real" else simulated
            rows.append({"clock": clock, "mode": mode, "n": N, "k": 4, "seed": seed,
                         "workers": WORKERS, "mean_seconds": MEAN, "sigma": SIGMA,
                         "evaluations": evaluations, "best": "",
                         **run(mode == "asynchronous", seed, evaluations)})  # fmt: skip
    path = write("loop_async.csv", rows)
    for clock in ("real", "simulated"):
        for mode in ("batch", "asynchronous"):
            mine = [row for row in rows if (row["clock"], row["mode"]) == (clock, mode)]
            text = f"{clock:<10} {mode:<13} busy {np.mean([row['busy'] for row in mine]):.3f}, "
            text += f"{np.mean([row['seconds'] for row in mine]):.1f} s"
            if clock == "simulated":
                best = [row["best"] for row in mine]
                text += (
                    f", best {np.mean(best):.4f} +- {np.std(best, ddof=1) / len(best) ** 0.5:.4f}"
                )
            print(text)
    pair = [
        [row["best"] for row in rows if (row["clock"], row["mode"]) == ("simulated", mode)]
        for mode in ("batch", "asynchronous")
    ]
    p = stats.mannwhitneyu(*pair, alternative="two-sided").pvalue
    print(f"best after {budget:,} evaluations, {seeds} seeds: Mann-Whitney p = {p:.3g}")
    print(f"every run: {path}")


# --- a million ------------------------------------------------------------------------------------


def resident() -> float:
    """Megabytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def million(evaluations: int = 1_000_000) -> None:
    """The cache is off: after a while most of what is drawn is known, and costs as much."""
    step, rows = max(1, evaluations // 20), list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.db"
        start = time.perf_counter()

        def look(optimizer: ao.Optimizer) -> None:
            if optimizer.told // step > len(rows):
                size = sum(file.stat().st_size for file in Path(folder).iterdir())
                seconds = time.perf_counter() - start
                row = {"n": 64, "evaluations": optimizer.told}
                row |= {"resident_mb": round(resident(), 1), "file_mb": round(size / 1e6, 1)}
                row["us_per_evaluation"] = round(1e6 * seconds / optimizer.told, 1)
                rows.append(row)
                print(rows[-1], flush=True)

        ao.maximize(
            lambda x: x.sum(axis=1).astype(float), ao.Space.binary(64), evaluations, seed=0,
            vectorized=True, cache=False, study=study, callback=look, progress=False,
        )  # fmt: skip
        final = study.stat().st_size / 1e6
    path = write("loop_million.csv", rows)
    later = [row["resident_mb"] for row in rows[len(rows) // 10 :]]
    print(f"memory after the first tenth: {later[0]:.0f} to {max(later):.0f} MB; "
          f"file {final:.1f} MB; {rows[-1]['us_per_evaluation']} us an evaluation")  # fmt: skip
    print(f"every step: {path}")


if __name__ == "__main__":
    parts = {"session": session, "overhead": overhead, "async": asynchronous, "million": million}
    if len(sys.argv) < 2 or sys.argv[1] not in parts:
        sys.exit(__doc__)
    parts[sys.argv[1]](*map(int, sys.argv[2:]))
