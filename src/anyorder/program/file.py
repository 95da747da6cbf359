"""The TOML file that `anyorder run` reads."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from anyorder._checks import choice, integer, known_names, short
from anyorder.knowledge import read_points
from anyorder.program.command import RESERVED, Command, require_posix
from anyorder.program.templates import fill, placeholders
from anyorder.session.options import file_checks
from anyorder.space import Space
from anyorder.space.groups import List, Permutation, Subset
from anyorder.space.variables import Binary, Categorical, Float, Integer, Variable
from anyorder.strategies.create import resolve_name
from anyorder.strategies.policy.config import PRESET_NAMES, resolve
from anyorder.toml_file import Check, TomlFile, boolean, of_type, table, text


@dataclass(frozen=True)
class Job:
    """The contents of a problem file.

    Attributes
    ----------
    preset
        Of the policy; empty where the file names none.
    options
        The keyword arguments of `maximize` that the file gives.
    """

    command: Command
    space: Space
    direction: str
    budget: int
    workers: int
    preset: str
    options: dict[str, Any]


def read(path: str | os.PathLike[str]) -> Job:
    """The problem in a TOML file.

    Required at the top: `direction` ("minimize" or "maximize") and `budget`. Optional: `algorithm`
    (a name), `config` (a preset of the policy), `seed`, `study`, and the options of `maximize` on
    evaluation and stopping: `workers`, `timeout`, `retries`, `on_failure`, `asynchronous`, `cache`,
    `deterministic`, `target`, `max_seconds`, `patience`, `stop_collapsed`; `start` (a list of
    points such as `{ level = 3, fast = true }`) and `data` (a CSV file or a study). Sections:

    - `[space]`: `name = [...]` is one of those values, `{ low = 1, high = 8 }` an integer (with
      `step` and `log` if need be), `{ low = 0.0, high = 1.0, levels = 11 }` a number on a grid
      (with `log`), `"binary"` true or false, `{ flag = "-x" }` that text or nothing,
      `{ permutation = [...] }` all items in an order, `{ subset = [...], size = 3 }` some of them
      (`size = [1, 3]`: one to three; without: any number). With `when = { name = value }`, or a
      list of values, in these braces, beside `values = [...]` or `binary = true`, a variable is
      there only where earlier ones have these values;
    - `[command]`: `arguments`; optional: `shell`, `directory` (by default that of the file),
      `environment`, `infeasible_status`: see `Command`;
    - `[value]`, unless the value is the last line: `from = "last line"`, `regex` or `json`;
    - `[settings]`: fields of `Config` to change, for the policy.

    Paths are relative to the file. A ValueError names the line and what is wrong in it.
    """
    require_posix()
    file = TomlFile(Path(path))
    top = file.table((), _TOP, ("direction", "budget", "space", "command"))
    variables = {name: file.one(("space", name), _variable) for name in top.pop("space")}
    with file.at("space"):
        space = Space({name: variable for name, (variable, _) in variables.items()})
    flags = {name: flag for name, (_, flag) in variables.items() if flag is not None}
    for section in ("command", "value"):
        top.pop(section, None)
    command = _command(file, space, flags, top.pop("timeout", None))
    preset, settings = top.pop("config", ""), top.pop("settings", {})
    name = resolve_name(top.get("algorithm", "policy" if preset or settings else "auto"))
    if name.name == "policy" and not name.preset and not name.settings:
        with file.at("settings"):
            top["config"] = resolve(preset or "default").replace(**settings)
    elif preset or settings:
        with file.at("config" if preset else "settings"):
            raise ValueError(
                "settings are part of the algorithm's name, such as boa+population=500"
            )
    for key in ("study", "data"):
        if key in top:
            top[key] = file.path.parent / top[key]
    with file.at("data"):
        if "data" in top and not top["data"].is_file():
            raise ValueError(f"data is {str(top['data'])!r}, expected a file that exists")
    with file.at("start"):
        if "start" in top:
            read_points("start", top["start"], space)
    direction, budget, workers = top.pop("direction"), top.pop("budget"), top.pop("workers", 1)
    return Job(command, space, direction, budget, workers, preset, options=top)


def _command(file: TomlFile, space: Space, flags: dict[str, str], timeout: float | None) -> Command:
    fields = file.table(("command",), _COMMAND, ("arguments",))
    value = file.table(("value",), _VALUE)
    arguments, shell = fields["arguments"], fields.pop("shell", False)
    place = fields["directory"] = (file.path.parent / fields.get("directory", ".")).absolute()
    with file.at("value"):
        if len(value) > 1:
            raise ValueError(f"{' and '.join(value)} given, expected one of them")
        value.pop("from", None)
    with file.at("command", "directory"):
        if not place.is_dir():
            raise ValueError(f"directory is {str(place)!r}, expected a folder that exists")
    known = dict.fromkeys([*(space.names or ()), *RESERVED], "")
    for name, template in fields.get("environment", {}).items():
        with file.at("command", "environment", name):
            fill(template, known)
    with file.at("command", "arguments"):
        if isinstance(arguments, str) is not shell:
            expected = "one string with shell = true" if shell else "a list without shell = true"
            raise ValueError(f"arguments is {short(arguments)}, expected {expected}")
        for template in [arguments] if shell else arguments:
            fill(template, known)
        command = Command(
            flags=flags, timeout=timeout, variables=space.names or (), **fields, **value
        )
        used = command.placeholders()
        for name in space.names or ():
            if not used & {name, "point"}:
                raise ValueError(f"{{{name}}} is in no argument: the variable has no effect")
        for name in sorted(command.numeric()):
            variable = dict(zip(space.names or (), space.variables, strict=True))[name]
            if isinstance(variable, Binary | Float | List) or any(
                isinstance(v, str) for v in _values(variable)
            ):
                raise ValueError(f"{{{name}}} is in $(( )), which accepts integers only")
        if not shell and not placeholders(arguments[0]):
            _refuse_missing(fill(arguments[0], {}), place, command.environment.get("PATH"))
    return command


def _values(variable: Variable | List) -> tuple[Any, ...]:
    return variable.values if isinstance(variable, Categorical) else ()


def _refuse_missing(program: str, place: Path, path: str | None) -> None:
    """Refuse a program that is not there before every evaluation fails for it."""
    if shutil.which(str(place / program) if "/" in program else program, path=path) is None:
        where = f"in {place}" if "/" in program else "on this machine"
        raise ValueError(f"there is no program {program!r} {where} that can be run")


def _regex(what: str, value: Any) -> str:
    try:
        groups = re.compile(text(what, value)).groups
    except re.error as error:
        raise ValueError(f"{what} is {value!r}, no regular expression: {error}") from None
    if groups < 1:
        raise ValueError(f"{what} is {value!r}, expected a group around the value: ( )")
    return str(value)


def _environment(what: str, value: Any) -> dict[str, str]:
    entry = of_type(str | int | float, "a string or a number")
    return {name: str(entry(name, given)) for name, given in table(what, value).items()}


def _arguments(what: str, value: Any) -> str | tuple[str, ...]:
    check = of_type(str | list, "a list of strings that is not empty", bool)
    if isinstance(check(what, value), str):
        return str(value)
    return tuple(text(f"{what}[{k}]", entry) for k, entry in enumerate(value))


def _variable(name: str, entry: Any) -> tuple[Variable | List, str | None]:
    """A variable, and its text if it is a flag."""
    if name in RESERVED or "{" in name or "}" in name or not name:
        raise ValueError(f"a variable cannot be called {name!r}: {{{name}}} has a meaning already")
    fields = {"binary": True} if entry == "binary" else entry
    fields = {"values": fields} if isinstance(fields, list) else fields
    kind = next((k for k in _KINDS if isinstance(fields, dict) and k <= fields.keys()), None)
    if kind is None:
        raise ValueError(f"{name} is {short(entry)}, {_EXPECTED}")
    known_names(f"key of {name}", fields, _KINDS[kind])
    when = _when(name, fields.get("when"))
    match fields:
        case {"values": values}:
            return Categorical(_items(name, values), when=when), None
        case {"binary": value}:
            if value is not True:
                raise ValueError(f"binary is {short(value)}, expected true")
            return Binary(when=when), None
        case {"flag": flag}:
            return Binary(when=when), str(text("flag", flag))
        case {"permutation": items}:
            return Permutation(_items(name, items, listed=True)), None
        case {"subset": items}:
            return Subset(_items(name, items, listed=True), fields.get("size")), None
    numbers = {**fields, "when": when}
    if "levels" not in fields and any(isinstance(fields[key], float) for key in ("low", "high")):
        given = f"low is {short(fields['low'])} and high is {short(fields['high'])}"
        raise ValueError(f"{given}, expected integers, or levels = ... for a grid of numbers")
    return (Float(**numbers) if "levels" in numbers else Integer(**numbers)), None


def _items(name: str, given: Any, listed: bool = False) -> list[Any]:
    """Values that can be part of a command line, or of a list there."""
    for value in of_type(list, "a list")(name, given):
        if not isinstance(value, str | int | float):
            raise ValueError(f"{name} has {short(value)}, expected text, numbers, true, false")
        if listed and isinstance(value, str) and ("," in value or not value):
            raise ValueError(f"{name} has {short(value)}, expected text without commas")
    return list(given)


def _when(name: str, given: Any) -> dict[str, Any] | None:
    """The condition of a variable: a table of names and values."""
    return None if given is None else table(f"when of {name}", given)


def _algorithm(what: str, value: Any) -> str:
    resolve_name(text(what, value))
    return str(value)


# What tells the form of a variable, and all keys that it may have.
_KINDS: dict[frozenset[str], tuple[str, ...]] = {
    frozenset({"values"}): ("values", "when"),
    frozenset({"binary"}): ("binary", "when"),
    frozenset({"flag"}): ("flag", "when"),
    frozenset({"permutation"}): ("permutation",),
    frozenset({"subset"}): ("subset", "size"),
    frozenset({"low", "high", "levels"}): ("low", "high", "levels", "log", "when"),
    frozenset({"low", "high"}): ("low", "high", "step", "log", "when"),
}
_EXPECTED = (
    'expected a list, "binary", { low = ..., high = ... }, { flag = "..." }, '
    "{ permutation = [...] }, { subset = [...] } or { values = [...], when = { ... } }"
)
_TOP: dict[str, Check] = {
    "direction": partial(choice, allowed=("minimize", "maximize")),
    "algorithm": _algorithm,
    "seed": partial(integer, minimum=0),
    "config": partial(choice, allowed=PRESET_NAMES),
    "study": text,
    "data": text,
    "start": of_type(list, "a list of points such as [{ name = 1 }]", bool),
    **file_checks(),
    "space": table,
    "command": table,
    "value": table,
    "settings": table,
}
_COMMAND: dict[str, Check] = {
    "arguments": _arguments,
    "shell": boolean,
    "directory": text,
    "environment": _environment,
    "infeasible_status": partial(integer, minimum=1, maximum=255),
}
_VALUE: dict[str, Check] = {
    "from": partial(choice, allowed=("last line",)),
    "regex": _regex,
    "json": text,
}
