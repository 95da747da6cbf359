"""The TOML file that `anyorder run` takes: what is in it, and what is wrong with it."""

from __future__ import annotations

import math
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyorder._checks import short
from anyorder.program.command import OURS, Command, fill, holes
from anyorder.space import Space
from anyorder.space.variables import Binary, Categorical, Integer, Variable
from anyorder.strategies.policy.config import PRESET_NAMES, resolve
from anyorder.toml_file import Check, TomlFile, a, one_of, positive, table, text, whole


@dataclass(frozen=True)
class Job:
    """A problem file, read; `options` are the keyword arguments of `maximize` that it gives."""

    command: Command
    space: Space
    direction: str
    budget: int
    workers: int
    preset: str
    options: dict[str, Any]


def read(path: str | os.PathLike[str]) -> Job:
    """The problem in a TOML file.

    At the top: `direction` ("minimize" or "maximize") and `budget`; where wanted `seed`, `config`
    (a preset), `workers` (1), `timeout` (seconds of an evaluation), `retries` (0), `on_failure`
    ("raise", "worst" or "skip"), `study`, `target`, `max_seconds`, `patience`, `asynchronous` and
    `deterministic` (true or false), which `maximize` explains. Then

    - `[space]`: `name = [...]` is one of those values, `{ low = 1, high = 8 }` an integer,
      `"binary"` true or false, `{ flag = "-x" }` that text or nothing;
    - `[command]`: `arguments`; where wanted `shell`, `directory` (the file's own), `environment`,
      `infeasible_status`: see `Command`;
    - `[value]`, unless it is the last line: `from = "last line"`, `regex` or `json`;
    - `[settings]`: fields of `Config` to change.

    Paths are relative to the file. A ValueError says what is wrong with it, and in which line.
    """
    if os.name != "posix":
        raise RuntimeError("a command as the function needs Linux or macOS")
    file = TomlFile(Path(path))
    top = file.table((), _TOP, ("direction", "budget", "space", "command"))
    variables = {name: file.one(("space", name), _variable) for name in top.pop("space")}
    with file.at("space"):
        space = Space({name: variable for name, (variable, _) in variables.items()})
    flags = {name: flag for name, (_, flag) in variables.items() if flag is not None}
    for section in ("command", "value"):
        top.pop(section, None)
    command = _command(file, space, flags, top.pop("timeout", None))
    preset, settings = top.pop("config", "default"), top.pop("settings", {})
    with file.at("settings"):
        top["config"] = resolve(preset).replace(**settings)
    if "study" in top:
        top["study"] = file.path.parent / top["study"]
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
    known = dict.fromkeys([*(space.names or ()), *OURS], "")
    for name, template in fields.get("environment", {}).items():
        with file.at("command", "environment", name):
            fill(template, known)
    with file.at("command", "arguments"):
        if isinstance(arguments, str) is not shell:
            expected = "one string with shell = true" if shell else "a list without shell = true"
            raise ValueError(f"arguments is {short(arguments)}, expected {expected}")
        for template in [arguments] if shell else arguments:
            fill(template, known)
        command = Command(flags=flags, timeout=timeout, **fields, **value)
        used = command.placeholders()
        for name in space.names or ():
            if not used & {name, "point"}:
                raise ValueError(f"{{{name}}} is in no argument: the variable has no effect")
        if shell:
            _refuse_quotes(arguments)
        elif not holes(arguments[0]):
            _refuse_missing(fill(arguments[0], {}), place, command.environment.get("PATH"))
    return command


def _refuse_missing(program: str, place: Path, path: str | None) -> None:
    """Better now than as the failure of every evaluation."""
    if shutil.which(str(place / program) if "/" in program else program, path=path) is None:
        where = f"in {place}" if "/" in program else "on this machine"
        raise ValueError(f"there is no program {program!r} {where} that can be run")


def _refuse_quotes(script: str) -> None:
    """Values are quoted for the shell; quotes around them would undo that."""
    quote = ""
    for found in re.finditer(r"""\\.|['"]|\{\{|\{[^{}]*\}""", script, re.DOTALL):
        mark = found[0]
        if mark in "'\"":
            quote = mark if not quote else "" if quote == mark else quote
        elif mark[0] == "{" and mark != "{{" and quote:
            raise ValueError(f"{mark} is between quotes, expected none: values are quoted anyway")


def _regex(what: str, value: Any) -> str:
    try:
        groups = re.compile(text(what, value)).groups
    except re.error as error:
        raise ValueError(f"{what} is {value!r}, no regular expression: {error}") from None
    if groups < 1:
        raise ValueError(f"{what} is {value!r}, expected a group around the value: ( )")
    return str(value)


def _environment(what: str, value: Any) -> dict[str, str]:
    entry = a(str | int | float, "a string or a number")
    return {name: str(entry(name, given)) for name, given in table(what, value).items()}


def _arguments(what: str, value: Any) -> str | tuple[str, ...]:
    check = a(str | list, "a list of strings that is not empty", bool)
    if isinstance(check(what, value), str):
        return str(value)
    return tuple(text(f"{what}[{k}]", entry) for k, entry in enumerate(value))


def _variable(name: str, entry: Any) -> tuple[Variable, str | None]:
    """A variable, and its text if it is a flag."""
    expected = """expected a list, "binary", { low = ..., high = ... } or { flag = "..." }"""
    if name in OURS or "{" in name or "}" in name or not name:
        raise ValueError(f"a variable cannot be called {name!r}: {{{name}}} has a meaning already")
    if entry == "binary":
        return Binary(), None
    if isinstance(entry, list):
        for value in entry:
            if not isinstance(value, str | int | float):
                raise ValueError(f"{name} has {short(value)}, expected text, numbers, true, false")
        return Categorical(entry), None
    if isinstance(entry, dict) and entry.keys() == {"low", "high"}:
        return Integer(**entry), None
    if isinstance(entry, dict) and entry.keys() == {"flag"}:
        return Binary(), str(text("flag", entry["flag"]))
    raise ValueError(f"{name} is {short(entry)}, {expected}")


_TOP: dict[str, Check] = {
    "direction": one_of("minimize", "maximize"),
    "budget": whole(1),
    "seed": whole(0),
    "config": one_of(*PRESET_NAMES),
    "workers": whole(1),
    "timeout": positive,
    "retries": whole(0),
    "on_failure": one_of("raise", "worst", "skip"),
    "study": text,
    "target": a(int | float, "a number", lambda value: not math.isnan(value)),
    "max_seconds": positive,
    "patience": whole(1),
    "asynchronous": a(bool, "true or false"),
    "deterministic": a(bool, "true or false"),
    "space": table,
    "command": table,
    "value": table,
    "settings": table,
}
_COMMAND: dict[str, Check] = {
    "arguments": _arguments,
    "shell": a(bool, "true or false"),
    "directory": text,
    "environment": _environment,
    "infeasible_status": whole(1, 255),
}
_VALUE: dict[str, Check] = {"from": one_of("last line"), "regex": _regex, "json": text}
