"""What the dashboard costs a run, and how it shows a large study.

    python benchmarks/dashboard.py cost     results/dashboard_cost.csv
    python benchmarks/dashboard.py large    results/dashboard_large.csv
    python benchmarks/dashboard.py picture  docs/dashboard.png

- cost: a run of 10,000 evaluations with a study, of a function that computes for about 2 ms, while
  `anyorder dashboard` serves it and Chromium, on the same machine, has the page open; and a second
  run, whose page is read by a client that draws nothing, as if the browser were elsewhere. During
  every other block of 250 evaluations the server is stopped by a signal, so that the run is
  compared with itself. The result is the median ratio of the times of neighbouring blocks, with and
  without the page, with its 95 % bootstrap interval; the requirement is at most 1.02. `own` is the
  time minus that in which other processes had the processors, so that it can be measured on a
  machine that others use: it counts the run's own work, and its waiting for disks and locks. The
  times of the server and the reader are given as shares of one core. A server that was stopped
  sends its next update at once, so this is more than an open page costs.
- large: a study of 100,000 evaluations of 100 variables: the seconds, and the seconds of processor
  time of the server, from the command to the first message with a chart and until all charts are
  there; the largest message (required: at most 200 KB), and the server's memory (required: under
  500 MB). The first chart is required within 3 s.
- picture: the page of a run with four workers, for the documentation.

`cost` and `picture` require Playwright and Chromium.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import write

import anyorder as ao

BUDGET, BLOCK = 10_000, 250
LARGE, VARIABLES = 100_000, 100


@contextlib.contextmanager
def serving(path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process of `anyorder dashboard`, and the address of its page."""
    command = [sys.executable, "-m", "anyorder", "dashboard", str(path), "--port", "0"]
    with subprocess.Popen([*command, "--no-browser"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, "http://" + process.stdout.readline().split("http://")[1].split()[0]
        finally:
            process.kill()


def processor_seconds(pid: int) -> float:
    """What a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def waiting_seconds() -> float:
    """For how long this thread could have run, and others had the processors."""
    return int(Path("/proc/thread-self/schedstat").read_text(encoding="utf-8").split()[1]) / 1e9


def descendants(pid: int) -> list[int]:
    """A process and all that it has started."""
    found = [pid]
    for child in found:
        for task in Path(f"/proc/{child}/task").glob("*/children"):
            found += map(int, task.read_text(encoding="utf-8").split())
    return found


# --- cost ---------------------------------------------------------------------------------------


def work(point: Any) -> float:
    total = 0
    for k in range(30_000):
        total += k & 7
    return float(point.sum()) + 1e-12 * total


class Blocks:
    """Stops the server for every other block of evaluations, and notes the time of each."""

    def __init__(self, server: int) -> None:
        self._server, self._count = server, 0
        self.times: list[tuple[float, float]] = []
        self.open = [True]  # whether the server ran in each
        self._begun, self._waited = time.perf_counter(), waiting_seconds()

    def __call__(self, optimizer: ao.Optimizer) -> None:
        """Count an answer; at the end of a block begin the next."""
        self._count += 1
        if self._count % BLOCK:
            return
        wall, waited = time.perf_counter() - self._begun, waiting_seconds() - self._waited
        self.times.append((wall, wall - waited))
        # the next block is with the page, without, without, with, and so on
        open_next = len(self.times) // 2 % 2 == len(self.times) % 2
        os.kill(self._server, signal.SIGCONT if open_next else signal.SIGSTOP)
        self.open.append(open_next)
        self._begun, self._waited = time.perf_counter(), waiting_seconds()


@contextlib.contextmanager
def reading_in_chromium(address: str) -> Iterator[None]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--headless", "--no-sandbox", "--disable-gpu"]
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        page.locator("[data-figure=time] .main-svg").first.wait_for(timeout=120_000)
        yield
        browser.close()


@contextlib.contextmanager
def reading_by_a_client(address: str) -> Iterator[None]:
    code = "import sys, urllib.request as r; all(r.urlopen(sys.argv[1]))"
    with subprocess.Popen([sys.executable, "-c", code, f"{address}events"]) as process:
        time.sleep(3)
        yield
        process.kill()


def measure_cost() -> None:
    space = ao.Space.binary(64)
    options: dict[str, Any] = {"algorithm": "random", "seed": 0, "batch": 1, "progress": False}
    rows = []
    for name, reader in (("browser", reading_in_chromium), ("client", reading_by_a_client)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.db"
            ao.maximize(work, space, budget=100, study=path, **options)  # something to show
            with serving(path) as (server, address), reader(address):
                others = [pid for pid in descendants(os.getpid())[1:] if pid != server.pid]
                before = processor_seconds(server.pid), sum(map(processor_seconds, others))
                blocks, begun = Blocks(server.pid), time.time()
                ao.maximize(work, space, budget=BUDGET, study=path, callback=blocks, **options)
                os.kill(server.pid, signal.SIGCONT)
                seconds = time.time() - begun
                used = processor_seconds(server.pid), sum(map(processor_seconds, others))
        each = 1e3 * np.median(blocks.times, axis=0)[0] / BLOCK
        rows.append(
            {"reader": name, "evaluations": BUDGET, "ms_each": each}
            | ratio("wall", blocks, 0)
            | ratio("own", blocks, 1)
            | {"server_share": (used[0] - before[0]) / seconds,
               "reader_share": (used[1] - before[1]) / seconds, "load": os.getloadavg()[0]}
        )  # fmt: skip
    report("dashboard_cost.csv", rows)


def ratio(name: str, blocks: Blocks, which: int) -> dict[str, Any]:
    """The median ratio of neighbouring blocks with the page and without, and its interval."""
    size = len(blocks.times) // 2 * 2
    times = np.array(blocks.times)[:size, which].reshape(-1, 2)
    is_open = np.array(blocks.open[:size]).reshape(-1, 2)
    pairs = is_open[:, 0] != is_open[:, 1]
    shown, hidden = (np.where(mask, times, 0).sum(axis=1)[pairs] for mask in (is_open, ~is_open))
    draws = np.random.default_rng(0).choice(shown / hidden, (10_000, int(pairs.sum())))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    found = {"ratio": np.median(shown / hidden), "low": low, "high": high}
    return {"pairs": int(pairs.sum())} | {f"{name}_{key}": x for key, x in found.items()}


# --- a large study ------------------------------------------------------------------------------


def record_large(path: Path) -> None:
    weights = np.random.default_rng(0).normal(size=VARIABLES)
    space = ao.Space(
        {
            f"v{k}": ao.Integer(1, 50) if k % 2 else ao.Categorical(list("abcde"))
            for k in range(VARIABLES)
        }
    )

    def f(point: dict[str, Any]) -> float:
        return sum(weights[k] * point[f"v{k}"] for k in range(1, VARIABLES, 2))

    ao.maximize(f, space, budget=LARGE, study=path, algorithm="random", seed=0, progress=False)


def measure_large() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        record_large(path)
        begun = time.time()
        with serving(path) as (server, address):
            row: dict[str, Any] = {"evaluations": LARGE, "variables": VARIABLES}
            largest, known = 0, set()
            with urllib.request.urlopen(f"{address}events") as events:
                while "0/against" not in known:
                    line = events.readline()
                    if not line.startswith(b"data:"):
                        continue
                    known |= json.loads(line[5:])["parts"].keys()
                    largest = max(largest, len(line))
                    name = "first" if "s_first" not in row else "all"
                    row[f"s_{name}"] = time.time() - begun
                    row[f"cpu_s_{name}"] = processor_seconds(server.pid)
            status = Path(f"/proc/{server.pid}/status").read_text(encoding="utf-8")
            row["kb_largest"] = largest / 1e3
            row["mb_memory"] = int(status.partition("VmHWM:")[2].split()[0]) / 1024
            row["load"] = os.getloadavg()[0]
    report("dashboard_large.csv", [row])


# --- the picture --------------------------------------------------------------------------------

MIXED = {
    "algo": ao.Categorical(["bfs", "dfs", "beam"]),
    "width": ao.Integer(1, 64, when={"algo": "beam"}),
    "depth": ao.Integer(1, 12),
    "cache": ao.Binary(),
    "passes": ao.Subset(["inline", "unroll", "fuse"]),
}


def wait_and_measure(point: dict[str, Any]) -> float:
    score = point["depth"] * {"bfs": 1.0, "dfs": 1.5, "beam": 2.0}[point["algo"]]
    score -= abs(point.get("width", 24) - 24) / 8 + 3 * point["cache"]
    score += 4 * ("fuse" in point["passes"]) - 2 * ("unroll" in point["passes"])
    time.sleep(0.05 + 0.01 * point["depth"])
    if point["depth"] == 12 and point["cache"]:
        raise MemoryError("the cache is full")
    return score


def draw_picture() -> None:
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path, page_file, picture = (Path(folder) / name for name in ("run.db", "run.html", "p.png"))
        options: dict[str, Any] = {"budget": 150, "workers": 4, "executor": "threads", "seed": 0}
        ao.maximize(wait_and_measure, ao.Space(MIXED), study=path, on_failure="worst",
                    algorithm="random", **options)  # fmt: skip
        command = ["report", str(path), "-o", str(page_file)]
        subprocess.run([sys.executable, "-m", "anyorder", *command], check=True)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1180, "height": 3200})
        page.goto(page_file.as_uri())
        page.locator("[data-part=parallel] .main-svg").first.wait_for()
        page.wait_for_timeout(1_000)
        page.screenshot(path=picture, clip={"x": 0, "y": 0, "width": 1180, "height": 1560})
        browser.close()
        small = Image.open(picture).convert("RGB").resize((885, 1170), Image.Resampling.LANCZOS)
        place = Path(__file__).parent.parent / "docs" / "dashboard.png"
        small.quantize(64).save(place, optimize=True)


def report(name: str, rows: list[dict[str, Any]]) -> None:
    rows = [
        {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()}
        for row in rows
    ]
    print(rows, write(name, rows))


if __name__ == "__main__":
    {"cost": measure_cost, "large": measure_large, "picture": draw_picture}[sys.argv[1]]()
