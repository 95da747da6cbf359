"""The TOML file that `anyorder run` reads."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from anyorder._internal.checks import choice, did_you_mean, integer, known_names, short
from anyorder._internal.toml_file import Check, TomlFile, boolean, of_type, table, text
from anyorder.archive.history import check_names
from anyorder.archive.knowledge import read_points
from anyorder.archive.objectives import read_objectives, read_reference
from anyorder.program.command import RESERVED, Command, require_posix, variable_of
from anyorder.program.templates import fill, placeholders
from anyorder.run.options import file_checks
from anyorder.space import Space
from anyorder.space.document import KINDS
from anyorder.space.lists import List
from anyorder.space.variables import Binary, Float, Integer, Variable
from anyorder.strategies.create import arguments_of, default, resolve_name


@dataclass(frozen=True)
class Job:
    """The contents of a problem file.

    Attributes
    ----------
    direction
        "minimize" or "maximize"; None if there are several objectives.
    objectives
        "max" or "min" by the names of several objectives.
    options
        The keyword arguments of `maximize` that are in the file.
    """

    command: Command
    space: Space
    direction: str | None
    budget: int | None
    workers: int
    options: dict[str, Any]
    objectives: dict[str, str] | None = None


def read(path: str | os.PathLike[str]) -> Job:
    """Read the problem in a TOML file.

    The top of the file requires `direction` ("minimize" or "maximize"), unless there are several
    objectives, and `budget`, unless `max_seconds` or `patience` ends the run. Optional are:
    `algorithm` (a name such as "ils" or "policy:paper"), `seed`, `study`, and the options of
    `maximize` on evaluation and stopping: `workers`, `batch`, `timeout`, `retries`, `on_failure`,
    `asynchronous`, `cache`, `deterministic`, `target`, `max_seconds`, `patience`; `start` (a list
    of points such as `{ level = 3, fast = true }`) and `data` (a CSV file or a study). Sections:

    - `[space]`: `name = [...]` is one of the listed values, `"binary"` is true or false,
      `{ flag = "-x" }` is that text or nothing, `{ low = 1, high = 8 }` is an integer, or with
      `levels` a number on a grid. The other kinds are tables with a list of values under the `key`
      of their class, such as `{ permutation = [...] }`. Further keys are arguments of the class. A
      variable with `when = { name = value }`, or with a list of values there, is only present where
      earlier variables have these values; beside `when`, write `values = [...]` or `binary = true`;
    - `[command]`: `arguments`; optional: `shell`, `directory` (by default that of the file),
      `environment`, `infeasible_status`: see `Command`;
    - `[value]`, unless the value is the last line: `from = "last line"`, `regex` or `json`;
    - for several objectives, a section `[value.NAME]` for each instead: `direction`, and the same
      keys. `reference = { NAME = ... }` at the top gives the worst values of interest;
    - `[notes]`, what is stored with the value: `name = { regex = "..." }` or `{ json = "..." }`;
    - `[settings]`: settings of the algorithm, which can also be part of its name.

    Paths are relative to the file. A ValueError names the line and what is wrong in it.
    """
    require_posix()
    file = TomlFile(Path(path))
    top = file.table((), _TOP, ("space", "command"))
    several = _several(file, top)
    if several is None and "direction" not in top:
        file.table((), _TOP, ("direction",))
    variables = {name: file.one(("space", name), _variable) for name in top.pop("space")}
    with file.at("space"):
        space = Space({name: variable for name, (variable, _) in variables.items()})
    flags = {name: flag for name, (_, flag) in variables.items() if flag is not None}
    notes = top.pop("notes", {})
    for section in ("command", "value"):
        top.pop(section, None)
    command = _command(file, space, flags, top.pop("timeout", None), several)
    command.notes = _notes(file, notes)
    goals = None if several is None else {name: d for name, (d, _) in several.items()}
    if goals is not None:
        with file.at("value"):
            found = read_objectives(None, goals)
            assert found is not None
            check_names(found, space)
        with file.at("reference"):
            read_reference(found, top.get("reference"))
    elif "reference" in top:
        with file.at("reference"):
            raise ValueError(
                "reference is for several objectives, and there is no [value.NAME] section"
            )
    if settings := top.pop("settings", {}):
        with file.at("settings"):
            named = top.get("algorithm") or default(space, several is not None)
            top["algorithm"] = _with_settings(named, settings)
    for key in ("study", "data"):
        if key in top:
            top[key] = file.path.parent / top[key]
    with file.at("data"):
        if "data" in top and not top["data"].is_file():
            raise ValueError(f"data is {str(top['data'])!r}, expected a file that exists")
    with file.at("start"):
        if "start" in top:
            read_points("start", top["start"], space)
    direction, workers = top.pop("direction", None), top.pop("workers", 1)
    budget = top.pop("budget", None)
    return Job(command, space, direction, budget, workers, options=top, objectives=goals)


def _several(file: TomlFile, top: dict[str, Any]) -> dict[str, tuple[str, dict[str, str]]] | None:
    """Return direction and place of each of several objectives; None if there is only one."""
    sections = top.get("value", {})
    if not any(isinstance(entry, dict) for entry in sections.values()):
        return None
    found = {}
    for name in sections:
        with file.at("value", name):
            table(f"value.{name}", sections[name])
        value = file.table(("value", name), {"direction": _goal, **_VALUE}, ("direction",))
        direction = value.pop("direction")
        with file.at("value", name):
            if len(value) > 1:
                raise ValueError(f"{' and '.join(value)} given, expected one of them")
        value.pop("from", None)
        found[name] = (direction, value)
    if "direction" in top:
        with file.at("direction"):
            raise ValueError(
                f"direction is {short(top['direction'])}, expected it in each of "
                f"{', '.join(f'[value.{name}]' for name in found)} instead"
            )
    return found


def _goal(what: str, value: Any) -> str:
    allowed = ("minimize", "maximize", "min", "max")
    return choice(what, value, allowed)[:3]


def _command(
    file: TomlFile,
    space: Space,
    flags: dict[str, str],
    timeout: float | None,
    several: dict[str, tuple[str, dict[str, str]]] | None,
) -> Command:
    fields = file.table(("command",), _COMMAND, ("arguments",))
    value: dict[str, Any]
    if several is None:
        value = file.table(("value",), _VALUE)
    else:
        value = {"values": {name: where for name, (_, where) in several.items()}}
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
        if shell:
            _check_script(arguments, list(known))
        else:
            for template in arguments:
                fill(template, known)
        command = Command(
            flags=flags, timeout=timeout, variables=space.names or (), **fields, **value
        )
        for name in space.names or ():
            if not (command.uses(name) or command.uses("point")):
                where = (
                    f"${variable_of(name)} is not in the script"
                    if shell
                    else (f"{{{name}}} is in no argument")
                )
                raise ValueError(f"{where}: the variable has no effect")
        if not shell and not placeholders(arguments[0]):
            _refuse_missing(fill(arguments[0], {}), place, command.environment.get("PATH"))
    return command


def _notes(file: TomlFile, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return where the notes are, by name."""
    notes = {}
    for name in names:
        file.one(("notes", name), table)
        where = notes[name] = file.table(("notes", name), {"regex": _regex, "json": text})
        with file.at("notes", name):
            if len(where) != 1:
                raise ValueError(f"{name} has {len(where)} places, expected one: regex or json")
    return notes


def _check_script(script: str, names: list[str]) -> None:
    """Raise unless each environment variable of a script stands for exactly one known variable."""
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(variable_of(name), name)
        if other != name:
            raise ValueError(f"{other!r} and {name!r} are both ${variable_of(name)} in a script")
    for name in re.findall(r"\$\{?(AO_\w*)", script):
        if name not in known:
            hint = did_you_mean(f"${name}", [f"${variable}" for variable in known])
            raise ValueError(f"unknown ${name}{hint}, expected a variable after $AO_")


def _refuse_missing(program: str, place: Path, path: str | None) -> None:
    """Raise if a program does not exist, before every evaluation fails for that reason."""
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
    """Return a variable, and its text if it is a flag."""
    if name in RESERVED or "{" in name or "}" in name or not name:
        raise ValueError(f"a variable cannot be called {name!r}: {{{name}}} has a meaning already")
    fields = {"binary": True} if entry == "binary" else entry
    fields = {"values": fields} if isinstance(fields, list) else fields
    form = next(
        (form for form in _FORMS if isinstance(fields, dict) and form <= fields.keys()), None
    )
    if form is None:
        raise ValueError(f"{name} is {short(entry)}, {_EXPECTED}")
    kind = _FORMS[form]
    listed, flag = kind.key in form, fields.get("flag")
    # the first argument of these classes is the list of values
    settings = kind.settings()[listed:]
    known_names(f"key of {name}", fields, [*form, *(key for key in settings if key not in form)])
    arguments = {key: value for key, value in fields.items() if key in settings}
    if "when" in fields:
        arguments["when"] = table(f"when of {name}", fields["when"])
    if listed:
        return kind(_items(name, fields[kind.key], issubclass(kind, List)), **arguments), None
    if fields.get("binary", True) is not True:
        raise ValueError(f"binary is {short(fields['binary'])}, expected true")
    if kind is Integer and any(isinstance(fields[key], float) for key in form):
        given = f"low is {short(fields['low'])} and high is {short(fields['high'])}"
        raise ValueError(f"{given}, expected integers, or levels = ... for a grid of numbers")
    return kind(**arguments), None if flag is None else str(text("flag", flag))


def _items(name: str, given: Any, listed: bool = False) -> list[Any]:
    """Return values that can be part of a command line, or of a list there."""
    for value in of_type(list, "a list")(name, given):
        if not isinstance(value, str | int | float):
            raise ValueError(f"{name} has {short(value)}, expected text, numbers, true, false")
        if listed and isinstance(value, str) and ("," in value or not value):
            raise ValueError(f"{name} has {short(value)}, expected text without commas")
    return list(given)


def _algorithm(what: str, value: Any) -> str:
    arguments_of(*resolve_name(text(what, value)))
    return str(value)


def _with_settings(algorithm: str, settings: dict[str, Any]) -> str:
    """Return the name of an algorithm with settings appended."""
    name = algorithm + "".join(f"+{key}={value!r}" for key, value in settings.items())
    arguments_of(*resolve_name(name))
    return name


# The keys that a kind of variable must have tell which kind it is; the longest form comes first.
_FORMS: dict[frozenset[str], Any] = {
    **{frozenset({kind.key}): kind for kind in KINDS.values() if kind.key},
    frozenset({"binary"}): Binary,
    frozenset({"flag"}): Binary,
    frozenset({"low", "high", "levels"}): Float,
    frozenset({"low", "high"}): Integer,
}
_LISTED = [f"{{ {kind.key} = [...] }}" for kind in KINDS.values() if kind.key]
_EXPECTED = (
    'expected a list, "binary", { low = ..., high = ... }, { flag = "..." }, '
    f"{', '.join(_LISTED[:-1])} or {_LISTED[-1]}, with when = {{ ... }} if need be"
)
_TOP: dict[str, Check] = {
    "direction": partial(choice, allowed=("minimize", "maximize")),
    "algorithm": _algorithm,
    "reference": table,
    "seed": partial(integer, minimum=0),
    "study": text,
    "data": text,
    "start": of_type(list, "a list of points such as [{ name = 1 }]", bool),
    **file_checks(),
    "space": table,
    "command": table,
    "value": table,
    "notes": table,
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
