"""`anyorder compile`: compile the loops of all algorithms ahead of their first use.

It makes short runs in spaces of every kind, in which some evaluations fail, so that the loops are
compiled for all types of arguments that occur.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import click
import numpy as np

from anyorder.cli.common import echo, errors
from anyorder.optimizer import Optimizer
from anyorder.space import Binary, Categorical, Float, Integer, Permutation, Space, Subset

SPACES = {
    "binary variables": Space.binary(12),
    "variables of many kinds": Space(
        {
            "b": Binary(),
            "c": Categorical(list("vwxyz")),
            "i": Integer(0, 200),
            "j": Integer(0, 4),
            "f": Float(0.0, 1.0, levels=9, when={"b": 1}),
        }
    ),
    "permutations": Space({"p": Permutation(list("abcdefg"))}),
    "subsets": Space({"s": Subset(list("abcdefgh")), "b": Binary()}),
}
# The algorithms with compiled loops, and how many evaluations it takes until all loops were used.
_POLICY = "policy+engine=cpu+population=12"
RUNS = {
    "auto": 300,
    "delta": 300,
    _POLICY: 60,
    f"{_POLICY}+generation_order=fixed+training_order=fixed": 60,
    f"{_POLICY}+network=shared": 60,
    f"{_POLICY}+network=univariate": 60,
    f"{_POLICY}+critic=1.0": 60,
    f"{_POLICY}+generation_order=gibbs+training_order=none": 60,
    f"{_POLICY}+generation_order=learned+training_order=learned": 60,
}
# parts of the names of algorithms that do not accept permutations and subsets
NO_LISTS = ("=gibbs", "=learned")


@click.command("compile")
@click.option("--algorithms", metavar="NAMES", help="Only these, separated by commas.")
def compile_all(algorithms: str | None) -> None:
    """Compile the loops of all algorithms now, instead of at their first use.

    This is for images of containers and for clusters. Functions that are on disk already are not
    compiled again; the environment variable NUMBA_CACHE_DIR says where they are kept.
    """
    with errors():
        names = list(dict.fromkeys(map(_kind, RUNS)))
        chosen = names if algorithms is None else algorithms.split(",")
        for name in chosen:
            if name not in names:
                raise ValueError(f"--algorithms has {name!r}, expected some of {', '.join(names)}")
        start, count = time.perf_counter(), 0
        for text, made, seconds in compile_runs(chosen):
            said = f"{made} functions compiled in {seconds:.1f} s" if made else "on disk already"
            echo(f"{text}: {said}")
            count += made
        echo(f"{count} functions compiled in {time.perf_counter() - start:.1f} s")


def compile_runs(algorithms: list[str]) -> Iterator[tuple[str, int, float]]:
    """Compile, and yield what was used, how many functions that compiled, and the seconds."""
    from numba.core import event

    for name, budget in RUNS.items():
        for kind, space in SPACES.items():
            if _kind(name) not in algorithms:
                continue
            if space.groups and any(part in name for part in NO_LISTS):
                continue
            start = time.perf_counter()
            with event.install_recorder("numba:compile") as recorder:
                _run(space, name, budget)
            made = sum(what.is_start for _, what in recorder.buffer)
            yield f"{name}, {kind}", made, time.perf_counter() - start


def _kind(name: str) -> str:
    """Return the name of an algorithm without its settings."""
    return name.partition("+")[0]


def _run(space: Space, name: str, budget: int) -> None:
    """Search with one evaluation at a time, and then with several; some evaluations fail."""
    weights = np.random.default_rng(0).normal(size=(len(space), len(space)))
    for most, rounds in ((1, budget), (4, budget // 4)):
        optimizer = Optimizer(space, 0, algorithm=name)
        for k in range(rounds):
            points = optimizer.ask(most)
            if not len(points):
                break
            codes = space.encode(points)
            values = ((codes @ weights) * codes).sum(axis=1)
            optimizer.tell(points, np.where(k % 11 == 5, np.nan, values), on_failure="worst")
