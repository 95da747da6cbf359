"""What the first use after an installation costs, when Numba compiles the loops.

    python benchmarks/compiling.py                                results/compiling.csv
    python benchmarks/compiling.py before=../old/src now=src      two trees, at once
    python benchmarks/compiling.py bits lists                     only these spaces

`ao.maximize(f, space, 300)` is run with the default algorithm, in a new process, first with an
empty folder for Numba's cache, then with the cache that the first process left. The results are:
CPU seconds of the process without its imports, seconds from the call to the first evaluation, the
number of functions that were compiled, their CPU time, and a checksum of all values, which tells
whether two trees search alike. CPU seconds depend on what else the machine does, so trees are
measured at the same time, and only their ratios count.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

BUDGET = 300


def spaces() -> dict[str, Any]:
    """A space of each kind that has loops of its own."""
    import anyorder as ao

    bits = {f"b{k}": ao.Binary() for k in range(10)}
    mixed = {
        **bits,
        **{f"c{k}": ao.Categorical(list("abcd")) for k in range(5)},
        **{f"i{k}": ao.Integer(0, 100) for k in range(5)},
        "f": ao.Float(0.0, 1.0, levels=11, when={"b0": 1}),
    }
    lists = {"p": ao.Permutation(list(range(12))), "s": ao.Subset(list(range(10))), **bits}
    return {
        "bits": ao.Space.binary(40),
        "mixed": ao.Space(mixed),
        "lists": ao.Space(lists),
        "permutation": ao.Space({"p": ao.Permutation(list(range(15)))}),
    }


def measure(kind: str) -> dict[str, Any]:
    """Run once in this process."""
    import numpy as np
    from numba.core import event

    import anyorder as ao

    space, checksum, first = spaces()[kind], hashlib.sha256(), list[float]()
    weights = np.random.default_rng(0).normal(size=(len(space), len(space)))
    starts, spent = list[float](), [0.0]

    class Listener(event.Listener):  # compilations nest: the outermost one counts
        def on_start(self, event: Any) -> None:
            starts.append(time.process_time())

        def on_end(self, event: Any) -> None:
            seconds = time.process_time() - starts.pop()
            spent[0] += 0.0 if starts else seconds
            spent.append(seconds)

    def f(x: Any) -> float:
        if not first:
            first.append(time.perf_counter() - start)
        codes = space.encode([x])[0]
        value = float(codes @ weights @ codes)
        checksum.update(repr(value).encode())
        return value

    event.register("numba:compile", Listener())
    start, cpu = time.perf_counter(), time.process_time()
    ao.maximize(f, space, BUDGET, seed=1, progress=False)
    return {
        "cpu_s": round(time.process_time() - cpu, 2),
        "wall_s": round(time.perf_counter() - start, 2),
        "first_evaluation_s": round(first[0], 2),
        "compiling_cpu_s": round(spent[0], 2),
        "compiled": len(spent) - 1,
        "values": checksum.hexdigest()[:12],
    }


def main(arguments: list[str]) -> None:
    """Measure all trees, each in processes of its own, which run at the same time."""
    from common import write

    trees = dict(text.split("=") for text in arguments if "=" in text) or {"now": "src"}
    kinds = [text for text in arguments if "=" not in text] or list(spaces())
    rows = []
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            for cache in ("empty", "filled"):
                running = {
                    tree: subprocess.Popen(
                        [sys.executable, __file__, "--measure", kind], stdout=subprocess.PIPE,
                        env={
                            **os.environ, "PYTHONPATH": source,
                            "NUMBA_CACHE_DIR": os.path.join(folder, tree),
                        },
                    )
                    for tree, source in trees.items()
                }  # fmt: skip
                for tree, process in running.items():
                    found = json.loads(process.communicate()[0])
                    rows.append({"tree": tree, "space": kind, "cache": cache, **found})
                    print(rows[-1], flush=True)
    print(write("compiling.csv", rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2])))
    else:
        main(sys.argv[1:])
