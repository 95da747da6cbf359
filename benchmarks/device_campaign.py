"""Missing runs of the paper's items in a limited time, in several processes on one GPU.

    device_campaign.py --seconds 400 --processes 3 --store runs.db PART ...

A part is ITEM, or ITEM|ROWS|METHODS|INSTANCES|RUNS, of which some may be left out: rows and methods
(separated by semicolons), and the numbers of instances and of runs on each. Runs that are in the
files in results/reproduction are not repeated. `anyorder reproduce all` takes finished runs from
the file of runs. Unlike that command, this script requires neither Click nor tqdm.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from pathlib import Path

from anyorder.bench.reproduce_all import Folder, Part

FOLDER = Path(__file__).parents[1] / "results" / "reproduction"


def part(text: str) -> Part:
    item, rows, methods, instances, runs = (*text.split("|"), "", "", "", "")[:5]
    some = [tuple(x.split(";")) if x else None for x in (rows, methods)]
    return Part(item, some[0], some[1], int(instances or 10), int(runs or 10))


def work(k: int, parts: list[Part], seconds: float, store: Path, engine: str) -> None:
    """Some of the cells, by the k-th process."""
    start = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - start:6.1f} s  {k}: {text}", flush=True)

    said = Folder(FOLDER).do(parts, engine=engine, until=start + seconds, store=store, progress=say)
    say(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", type=part)
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--engine", default="cuda")
    parser.add_argument("--store", type=Path, required=True)
    given = parser.parse_args()
    queue = [one for some in given.parts for one in some.cells()]
    print(f"{len(queue)} cells", flush=True)
    context = multiprocessing.get_context("spawn")
    started = [
        context.Process(
            target=work,
            args=(k, queue[k :: given.processes], given.seconds, given.store,
                  given.engine),
        )
        for k in range(given.processes)
    ]  # fmt: skip
    for process in started:
        process.start()
    for process in started:
        process.join()


if __name__ == "__main__":
    main()
