"""The TOML file of a campaign, and the runs it asks for."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import problems
from .._checks import integer
from ..toml_file import Check, TomlFile, positive, tables, text, whole
from . import algorithms
from .store import Spec


@dataclass(frozen=True)
class Campaign:
    """Algorithms on distributions of problems.

    Attributes
    ----------
    name
        What it is called.
    specs
        Its runs, distribution after distribution.
    seconds, memory
        What a run may take, in seconds and bytes; None: anything.
    """

    name: str
    specs: tuple[Spec, ...]
    seconds: float | None
    memory: int | None


@dataclass(frozen=True)
class Distribution:
    """Instances of one kind of problem, and how much of them."""

    name: str
    problem: str  # without the instance, such as nk:n=64,k=4
    instances: tuple[int, ...]
    runs: int  # on each instance
    budget: int
    grid: tuple[int, ...]
    seed: int = 0  # of the first run

    def specs(self, label: str, method: str) -> Iterator[Spec]:
        """The runs of an algorithm: the same seeds for every one."""
        for place, instance in enumerate(self.instances):
            problem = problems.get(_of_instance(self.problem, instance)).name
            for run in range(self.runs):
                seed = self.seed + place * self.runs + run
                yield Spec(
                    label, method, self.name, problem, instance, seed, self.budget, self.grid
                )


def read(path: str | os.PathLike[str]) -> Campaign:
    """The campaign in a TOML file.

    At the top `budget`, and where wanted `name`, `grid` (record the best value every so many
    evaluations, 100, or at these numbers), `instances` (how many, from the first, or which: 10),
    `runs` (on each instance: 10), `seed` (of the first run), `seconds` and `memory` (what a run
    may take, such as "4 GB"). Then

    - `[[algorithm]]`: `name`, such as "anyorder:default" or "baseline:boa"; `label`;
    - `[[problem]]`: `problem`, such as "nk:n=64,k=4"; where wanted `name`, and its own `budget`,
      `grid`, `instances` and `runs`.

    Everything is checked before anything runs; a ValueError names the line.
    """
    file = TomlFile(Path(path))
    top = file.table((), _TOP, ("budget", "algorithm", "problem"))
    methods: dict[str, str] = {}
    for k in range(len(top["algorithm"])):
        entry = file.table(("algorithm", k), _ALGORITHM, ("name",))
        label = entry.get("label", entry["name"])
        with file.at("algorithm", k, "name"):
            algorithms.check(entry["name"])
        with file.at("algorithm", k, "label"):
            if label in methods:
                raise ValueError(f"{label!r} is there already: give each algorithm its own label")
        methods[label] = entry["name"]
    distributions: dict[str, Distribution] = {}
    for k in range(len(top["problem"])):
        entry = {**_DEFAULTS, **top, **file.table(("problem", k), _PROBLEM, ("problem",))}
        with file.at("problem", k, "problem"):
            found = distribution(
                entry["problem"], entry.get("name") if "name" in top["problem"][k] else None,
                entry["instances"], entry["runs"], entry["budget"], entry["grid"], entry["seed"],
            )  # fmt: skip
            space = problems.get(_of_instance(found.problem, found.instances[0])).space
            for method in methods.values():
                algorithms.check(method, space)
            if found.name in distributions:
                raise ValueError(f"{found.name!r} is there already: give each its own name")
        distributions[found.name] = found
    specs = [
        spec
        for found in distributions.values()
        for label, method in methods.items()
        for spec in found.specs(label, method)
    ]
    if len({spec.key for spec in specs}) < len(specs):
        raise ValueError(f"{file.path}: two algorithms or two problems are the same one")
    name = top.get("name", file.path.stem)
    return Campaign(name, tuple(specs), top.get("seconds"), top.get("memory"))


def distribution(
    problem: str,
    name: str | None = None,
    instances: int | list[int] = 10,
    runs: int = 10,
    budget: int = 10_000,
    grid: int | list[int] = 100,
    seed: int = 0,
) -> Distribution:
    """A distribution, checked: its first instance is made."""
    kind = problem.partition(":")[0]
    varies = _instance_parameter(kind)
    if varies is None:
        chosen: tuple[int, ...] = (0,)  # there is only one
    elif isinstance(instances, int):
        first = problems.registry[kind].parameters[varies]
        chosen = tuple(range(first, first + integer("instances", instances, 1)))
    else:
        chosen = tuple(integer("instances", entry, 0) for entry in instances)
    problems.get(_of_instance(problem, chosen[0]))
    return Distribution(name or problem, problem, chosen, runs, budget, marks(grid, budget), seed)


def marks(grid: int | list[int], budget: int) -> tuple[int, ...]:
    """The numbers of evaluations at which the best value is recorded; the last is the budget."""
    if isinstance(grid, int):
        return tuple(sorted({*range(grid, budget + 1, grid), budget}))
    found = sorted({*(integer("grid", mark, 1) for mark in grid), budget})
    if found[-1] > budget:
        raise ValueError(f"grid goes to {found[-1]}, expected at most the budget, {budget}")
    return tuple(found)


def _instance_parameter(kind: str) -> str | None:
    entry = problems.registry.get(kind)
    if entry is None:
        problems.get(kind)  # says which are known
    names = inspect.signature(problems.registry[kind].factory).parameters
    return next((name for name in ("seed", "instance") if name in names), None)


def _of_instance(problem: str, instance: int) -> str:
    varies = _instance_parameter(problem.partition(":")[0])
    if varies is None:
        return problem
    if re.search(rf"[:,]\s*{varies}\s*=", problem):
        raise ValueError(f"problem is {problem!r}, expected no {varies}: `instances` says which")
    return f"{problem}{',' if ':' in problem else ':'}{varies}={instance}"


def _numbers(what: str, value: Any) -> int | list[int]:
    if isinstance(value, list) and value:
        return [integer(what, entry, 0) for entry in value]
    return integer(what, value, 1)


def _bytes(what: str, value: Any) -> int:
    found = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?)B?\s*", str(value), re.IGNORECASE)
    if found is None or isinstance(value, bool):
        raise ValueError(f"{what} is {value!r}, expected a size such as '4 GB'")
    return int(float(found[1]) * 1000 ** " KMGT".index(found[2].upper() or " "))


_DEFAULTS: dict[str, Any] = {"grid": 100, "instances": 10, "runs": 10, "seed": 0}
_SHARED: dict[str, Check] = {
    "name": text,
    "budget": whole(1),
    "grid": _numbers,
    "instances": _numbers,
    "runs": whole(1),
}
_TOP: dict[str, Check] = {
    **_SHARED,
    "seed": whole(0),
    "seconds": positive,
    "memory": _bytes,
    "algorithm": tables,
    "problem": tables,
}
_ALGORITHM: dict[str, Check] = {"name": text, "label": text}
_PROBLEM: dict[str, Check] = {**_SHARED, "problem": text}
