"""Runs with fixed seeds, whose histories are stored in `data/histories.json`.

    python tests/histories.py        compares this tree with the file, and lists what differs

The file was written by version 0.1.0 before strategies and sessions were introduced. A change of
a history is a change of the method, and belongs in the CHANGELOG.

A fast engine rounds to float32, in an order that depends on the instructions the CPU has, and
training amplifies it: after some hundred evaluations, fewer the larger the learning rate, a draw
tips and the histories of two machines differ. These runs are too short for that. A policy that
collapses is not, so `restarts` and `collapsed` run on the engine `reference`, in float64. These two
were stored later; the longer ones on the engine `cpu` that they replace were those of 0.1.0 bit for
bit, on a CPU with AVX-512. `reference engine` is the first half of what 0.1.0 stored.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import anyorder as ao
from anyorder.strategies.registry import REGISTRY

FILE = Path(__file__).parent / "data" / "histories.json"
MIXED = ao.Space(
    {
        "cache": ao.Binary(),
        "algo": ao.Categorical(["a", "b", "c"]),
        "depth": ao.Integer(1, 8),
        "threads": ao.Integer(1, 32),
    }
)
NK = ao.problems.nk(24, 3, 0)
SMALL = ao.problems.nk(10, 2, 0)


def speed(point: dict[str, Any]) -> float:
    """The function of the README."""
    gain = 2 if point["algo"] == "b" else 1
    return point["depth"] * gain - 3 * point["cache"] - abs(point["threads"] - 12) / 4


def failing(point: dict[str, Any]) -> float:
    """The same, failing at some points."""
    if point["threads"] % 5 == 0:
        raise RuntimeError("out of memory")
    if point["threads"] % 7 == 0:
        raise ao.Infeasible
    return speed(point)


class Noisy:
    """A function that adds the same noise to its first, second, ... call in every run."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(5)

    def __call__(self, x: Any) -> float:
        """OneMax with noise."""
        return float(x.sum() + self._rng.normal())


def summary(history: ao.History) -> dict[str, Any]:
    """What a history holds, as a fingerprint."""
    digest = hashlib.sha256()
    for array in (
        history.codes.astype("<i4"), history.values.astype("<f8"),
        history.generations.astype("<i8"), history.statuses.astype("u1"),
        history.cached.astype("u1"),
    ):  # fmt: skip
        digest.update(np.ascontiguousarray(array).tobytes())
    best = history.best[-1]
    return {
        "entries": len(history), "best": float(best), "restarts": list(history.restarts),
        "sha256": digest.hexdigest(),
    }  # fmt: skip


def maximized(f: Any, space: ao.Space, budget: int, **options: Any) -> Callable[[], Any]:
    """A run of `maximize`, with the policy unless it is said."""
    options = {"algorithm": "policy", "progress": False, **options}
    return lambda: summary(ao.maximize(f, space, budget, **options).history)


def minimized(f: Any, space: ao.Space, budget: int, **options: Any) -> Callable[[], Any]:
    """A run of `minimize`, with the policy unless it is said."""
    options = {"algorithm": "policy", "progress": False, **options}
    return lambda: summary(ao.minimize(f, space, budget, **options).history)


def on_one_thread(**options: Any) -> dict[str, Any]:
    """A run on an executor with one worker."""
    with ThreadPoolExecutor(1) as pool:
        run = maximized(NK, NK.space, 150, seed=3, executor=pool, **options)
        return dict(run())


def ask_and_tell(direction: str = "maximize") -> dict[str, Any]:
    """Partial, late and repeated answers, points never asked, suggestions, a copy midway."""
    opt = ao.Optimizer(NK.space, 4, algorithm="policy", direction=direction)
    rng, digest, out = np.random.default_rng(0), hashlib.sha256(), []
    for turn in range(60):
        if turn % 9 == 4:
            opt.suggest(rng.integers(0, 2, 24))
        if turn == 30:
            opt = ao.Optimizer.from_state(opt.state_dict())
        asked = np.asarray(opt.ask(1 + turn % 13))
        digest.update(asked.astype("<i8").tobytes())
        out += list(asked)
        chosen = [out.pop(int(rng.integers(len(out)))) for _ in range(min(len(out), turn % 12))]
        for point in chosen:
            opt.tell(point, NK(point))
        opt.tell(rng.integers(0, 2, 24), 0.1)
    return {
        "told": opt.told, "generation": opt.generation, "best": opt.best_value,
        "restarts": list(opt.restarts), "sha256": digest.hexdigest(),
    }  # fmt: skip


def baseline(name: str, problem: Any, **settings: Any) -> Callable[[], Any]:
    """A run of a plain strategy, in which every candidate is evaluated."""

    def run() -> dict[str, Any]:
        result = ao.maximize(
            problem, budget=700, algorithm=REGISTRY[name](problem.space, seed=7, **settings),
            cache=False, progress=False,
        )  # fmt: skip
        values = result.history.values
        digest = hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()
        return {"best": float(values.max()), "sha256": digest}

    return run


_DEEP = ao.policy.Config(hidden=(8, 6), drop_training=0.2, drop_generation=0.1, drop_decay=0.99)
_HASTY = ao.policy.Config(
    learning_rate=0.1, hidden=(4,), epochs=5, restart_agreement=0.8, restart_patience=2
)
_PLAIN = (
    "random", "rls", "one-plus-one", "fast-one-plus-one", "hill-climber", "annealing", "tabu",
    "umda", "pbil", "cga", "mimic", "boa", "p3",
)  # fmt: skip
_RUNS: dict[str, Callable[[], Any]] = {
    "default": maximized(NK, NK.space, 500, seed=0),
    "default, another seed": maximized(NK, NK.space, 300, seed=2**63 + 11),
    "restarts": maximized(
        SMALL, SMALL.space, 100, seed=0, algorithm=ao.policy.Policy(_HASTY, "reference"),
    ),
    "text": maximized(NK, NK.space, 400, seed=0, algorithm="policy:paper", cache=False),
    "authors": maximized(NK, NK.space, 400, seed=0, algorithm="policy:paper-code", cache=False),
    "three values": maximized(
        ao.problems.nkd(12, 2, 3, 0), ao.problems.nkd(12, 2, 3, 0).space, 200, seed=0,
        algorithm="policy:paper-code", cache=False,
    ),
    "deep, dropout": maximized(NK, NK.space, 200, seed=0, algorithm=ao.policy.Policy(_DEEP)),
    "fixed orders": maximized(
        NK, NK.space, 200, seed=0,
        algorithm="policy+generation_order=fixed+training_order=generation",
    ),
    "known graph": maximized(
        NK, NK.space, 200, seed=0, algorithm=ao.policy.Policy(graph=NK.interaction_graph()),
    ),
    "reference engine": maximized(NK, NK.space, 30, seed=0, algorithm="policy+engine=reference"),
    "mixed": maximized(speed, MIXED, 200, seed=0),
    "mixed, minimized": minimized(speed, MIXED, 200, seed=0),
    "failures rank last": maximized(failing, MIXED, 150, seed=0, on_failure="worst", retries=1),
    "failures are skipped": maximized(failing, MIXED, 150, seed=0, on_failure="skip"),
    "constraint": maximized(
        speed, MIXED, 150, seed=0, constraint=lambda p: p["depth"] + p["threads"] % 8 < 12,
    ),
    "noise": lambda: maximized(
        Noisy(), ao.Space.binary(12), 300, seed=0, deterministic=False, confirm=0
    )(),
    "vectorized": maximized(NK.evaluate, NK.space, 150, seed=0, vectorized=True),
    "target": maximized(NK, NK.space, 500, seed=0, target=0.7),
    "patience": maximized(NK, NK.space, 500, seed=0, patience=40),
    "collapsed": maximized(
        SMALL, SMALL.space, 100, seed=0,
        algorithm=ao.policy.Policy(_HASTY, "reference", stop_collapsed=True),
    ),
    "one thread": lambda: on_one_thread(),
    "one thread, asynchronous": lambda: on_one_thread(asynchronous=True),
    "two processes": maximized(NK, NK.space, 100, seed=0, workers=2),
    "ask and tell": ask_and_tell,
    "ask and tell, minimized": lambda: ask_and_tell("minimize"),
    **{f"baseline {name}": baseline(name, NK) for name in _PLAIN},
    "baseline iterated-local-search": baseline("ils", NK, kick=4),
    "baseline tabu, three values": baseline("tabu", ao.problems.nkd(12, 2, 3, 0)),
    "baseline p3, three values": baseline("p3", ao.problems.nkd(12, 2, 3, 0)),
    "baseline mimic, three values": baseline("mimic", ao.problems.nkd(12, 2, 3, 0)),
}  # fmt: skip
NAMES = tuple(_RUNS)


def run(name: str) -> Any:
    """The fingerprint of a run, computed now."""
    return json.loads(json.dumps(_RUNS[name]()))


def main() -> None:
    """Compare, or write a file that does not exist."""
    got = {name: run(name) for name in NAMES}
    if not FILE.exists():
        FILE.write_text(json.dumps(got, indent=1) + "\n", encoding="utf-8")
        return
    expected = json.loads(FILE.read_text(encoding="utf-8"))
    differ = [name for name in NAMES if got[name] != expected.get(name)]
    for name in differ:
        print(f"{name}\n  expected {expected.get(name)}\n  got      {got[name]}")
    print(f"{len(NAMES) - len(differ)} of {len(NAMES)} histories are identical")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
