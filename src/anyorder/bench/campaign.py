"""The TOML file of a campaign, and the runs it requests."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from anyorder import problems
from anyorder._internal.checks import integer, seconds
from anyorder._internal.toml_file import Check, TomlFile, of_type, tables, text
from anyorder.bench import algorithms
from anyorder.bench.store import Spec


@dataclass(frozen=True)
class Campaign:
    """Algorithms on distributions of problems.

    Attributes
    ----------
    name
        The name of the campaign.
    specs
        The runs, distribution after distribution.
    seconds, memory
        The limits of a run, in seconds and bytes; None for no limit.
    modules
        The modules to import first: they register problems.
    """

    name: str
    specs: tuple[Spec, ...]
    seconds: float | None
    memory: int | None
    modules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Distribution:
    """Instances of one kind of problem, and the runs on each."""

    name: str
    problem: str  # the name without the instance, such as nk:n=64,k=4
    instances: Mapping[int, str]  # the names of the problems
    runs: int  # on each instance
    budget: int
    grid: tuple[int, ...]
    seed: int = 0  # of the first run

    def specs(self, label: str, method: str) -> Iterator[Spec]:
        """Yield the runs of an algorithm; all algorithms have the same seeds."""
        for instance, problem in self.instances.items():
            # the same on every instance, so that a larger campaign keeps the runs of a smaller one
            for seed in range(self.seed, self.seed + self.runs):
                yield Spec(
                    label, method, self.name, problem, instance, seed, self.budget, self.grid
                )


def read(path: str | os.PathLike[str]) -> Campaign:
    """Read the campaign in a TOML file.

    The top of the file requires `budget`. Optional are: `name`; `grid`, the interval at which the
    best value is recorded (100), or a list of numbers of evaluations; `instances`, their number
    (10) or a list; the number of `runs` on each instance (10); the `seed` of the first run; the
    limits of a run, `seconds` and `memory`, such as "4 GB"; `modules`, names of Python modules to
    import first, such as a module beside the file that registers your own problems. Sections:

    - `[[algorithm]]`: `name`, such as "policy:default" or "boa"; optional: `label`;
    - `[[problem]]`: `problem`, such as "nk:n=64,k=4"; optional: `name`, and its own `budget`,
      `grid`, `instances` and `runs`.

    Everything is checked before anything runs. A ValueError names the line.
    """
    file = TomlFile(Path(path))
    top = file.table((), _TOP, ("budget", "algorithm", "problem"))
    if "modules" in top:
        sys.path.insert(0, str(file.path.absolute().parent))
        with file.at("modules"):
            for module in top["modules"]:
                _import(module)
    methods: dict[str, str] = {}
    meanings: list[Any] = []
    for k in range(len(top["algorithm"])):
        entry = file.table(("algorithm", k), _ALGORITHM, ("name",))
        label = entry.get("label", entry["name"])
        with file.at("algorithm", k, "name"):
            algorithms.check(entry["name"])
            meanings.append(algorithms.meaning(entry["name"]))
            if meanings[-1] in meanings[:-1]:
                there = list(methods.values())[meanings.index(meanings[-1])]
                also = f" as {there!r}" if there != entry["name"] else ""
                raise ValueError(f"{entry['name']!r} is there already{also}, expected each once")
        with file.at("algorithm", k, "label"):
            if label in methods:
                raise ValueError(f"{label!r} is there already: give each algorithm its own label")
        methods[label] = entry["name"]
    specs: dict[str, Spec] = {}
    for k in range(len(top["problem"])):
        own = file.table(("problem", k), _PROBLEM, ("problem",))
        entry = {**_DEFAULTS, **top, **own}
        at_fault = "grid" if "grid" in top or "grid" in own else "budget"
        with file.at(*(("problem", k) if at_fault in own else ()), at_fault):
            marks(entry["grid"], entry["budget"])
        with file.at("problem", k, "problem"):
            found = distribution(
                entry["problem"], own.get("name"), entry["instances"], entry["runs"],
                entry["budget"], entry["grid"], entry["seed"],
            )  # fmt: skip
        with file.at("problem", k, "name"):
            if any(found.name == spec.distribution for spec in specs.values()):
                raise ValueError(f"{found.name!r} is there already: give each its own name")
        with file.at("problem", k, "problem"):
            first = problems.get(next(iter(found.instances.values())))
            for label, method in methods.items():
                algorithms.check(method, first)
                for spec in found.specs(label, method):
                    if spec.key in specs:
                        there = specs[spec.key].distribution
                        raise ValueError(f"{spec.problem} is there already, in {there!r}")
                    specs[spec.key] = spec
    name = top.get("name", file.path.stem)
    modules = tuple(top.get("modules", ()))
    return Campaign(name, tuple(specs.values()), top.get("seconds"), top.get("memory"), modules)


def _import(module: str) -> None:
    try:
        importlib.import_module(module)
    except Exception as error:  # importing a module may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"module {module!r} cannot be imported: {reason}") from error


def distribution(
    problem: str,
    name: str | None = None,
    instances: int | list[int] = 10,
    runs: int = 10,
    budget: int = 10_000,
    grid: int | list[int] = 100,
    seed: int = 0,
) -> Distribution:
    """Return a distribution, checked by making two of its instances, which may take some time."""
    kind = problem.partition(":")[0]
    varies = _instance_parameter(kind)
    first = 0 if varies is None else problems.entry(kind).parameters[varies]
    if isinstance(instances, int):
        chosen = list(range(first, first + integer("instances", instances, 1, _MOST_RUNS)))
    else:
        chosen = [integer("instances", entry, first) for entry in instances]
    one = problems.get(_of_instance(problem, chosen[0])).name
    head, number, tail = one.partition(f"{varies}={chosen[0]}")
    if not number or (tail and not tail.startswith(",")):
        named = {chosen[0] if varies else first: one}  # there is only one instance
    else:
        if max(chosen) != chosen[0]:
            problems.get(_of_instance(problem, max(chosen)))
        named = {instance: f"{head}{varies}={instance}{tail}" for instance in chosen}
    runs = integer("runs", runs, 1, _MOST_RUNS)
    budget = integer("budget", budget, 1, _MOST_EVALUATIONS)
    if len(named) * runs > _MOST_RUNS:
        raise ValueError(
            f"{len(named)} instances with {runs} runs each, expected at most {_MOST_RUNS} runs"
        )
    return Distribution(name or problem, problem, named, runs, budget, marks(grid, budget), seed)


def marks(grid: int | list[int], budget: int) -> tuple[int, ...]:
    """Return the numbers of evaluations at which the best value is recorded, up to the budget."""
    if isinstance(grid, int):
        if budget // grid > _MOST_MARKS:
            raise ValueError(
                f"grid is {grid} and budget {budget}, expected at most {_MOST_MARKS} points"
            )
        return tuple(sorted({*range(grid, budget + 1, grid), budget}))
    found = sorted({*(integer("grid", mark, 1) for mark in grid), budget})
    if found[-1] > budget:
        raise ValueError(f"grid ends at {found[-1]}, expected at most the budget, {budget}")
    return tuple(found)


def _instance_parameter(kind: str) -> str | None:
    names = problems.entry(kind).parameters
    return next((name for name in ("seed", "instance") if name in names), None)


def _of_instance(problem: str, instance: int) -> str:
    varies = _instance_parameter(problem.partition(":")[0])
    if varies is None:
        return problem
    if re.search(rf"[:,]\s*{varies}\s*=", problem):
        raise ValueError(f"problem is {problem!r}, expected no {varies}: it is set by `instances`")
    return f"{problem}{',' if ':' in problem else ':'}{varies}={instance}"


def _numbers(most: int) -> Check:
    def check(what: str, value: Any) -> int | list[int]:
        if isinstance(value, list) and value:
            return [integer(what, entry, 0) for entry in value]
        return integer(what, value, 1, most)

    return check


def _bytes(what: str, value: Any) -> int:
    size = r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?)B?\s*"
    found = re.fullmatch(size, str(value), re.ASCII | re.IGNORECASE)
    scale = 1000 ** " KMGT".index(found[2].upper() or " ") if found else 0
    if found is None or not 1 <= float(found[1]) * scale < 2**63:
        raise ValueError(f"{what} is {value!r}, expected a size such as '4 GB'")
    return int(float(found[1]) * scale)


_MOST_MARKS = 100_000
_MOST_RUNS = 1_000_000  # the most runs of an algorithm on a distribution
_MOST_EVALUATIONS = 10**12
_DEFAULTS: dict[str, Any] = {"grid": 100, "instances": 10, "runs": 10, "seed": 0}
_SHARED: dict[str, Check] = {
    "name": text,
    "budget": partial(integer, minimum=1, maximum=_MOST_EVALUATIONS),
    "grid": _numbers(_MOST_EVALUATIONS),
    "instances": _numbers(_MOST_RUNS),
    "runs": partial(integer, minimum=1, maximum=_MOST_RUNS),
}
_TOP: dict[str, Check] = {
    **_SHARED,
    "seed": partial(integer, minimum=0, maximum=2**31),
    "seconds": seconds,
    "memory": _bytes,
    "modules": of_type(
        list, "a list of module names", lambda v: all(isinstance(m, str) for m in v)
    ),
    "algorithm": tables,
    "problem": tables,
}
_ALGORITHM: dict[str, Check] = {"name": text, "label": text}
_PROBLEM: dict[str, Check] = {**_SHARED, "problem": text}
