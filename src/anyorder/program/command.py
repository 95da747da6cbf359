"""A program as a function: `Command`, which `anyorder run` makes from a problem file.

Linux and macOS only: a program runs in its own process group, so that everything it has started
ends with it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from anyorder._internal.checks import seconds, short
from anyorder.archive.notes import Measured
from anyorder.errors import Infeasible
from anyorder.program.guard import guarded
from anyorder.program.matching import last_match
from anyorder.program.templates import fill, placeholders

RESERVED = ("point", "scratch")  # placeholders that are not names of variables
_KEPT = 2**20  # bytes that are read at the ends of stdout and stderr
_SHOWN = 600  # the most characters of a command, or of its output, in an error
_POLL = 0.1  # seconds between checks whether a program has ended or is to be stopped
_LATER = "{scratch}"  # stands for a folder that is made later
_MATCH_GRACE = 2.0  # seconds that a regular expression always has, even if the program left fewer


def variable_of(name: str) -> str:
    """Return the name of the environment variable that holds a value in scripts."""
    return "AO_" + re.sub(r"[^A-Za-z0-9_]", "_", name)


def require_posix() -> None:
    """Raise a RuntimeError on Windows: it has no process groups, and cannot wait for pipes."""
    if os.name != "posix":
        raise RuntimeError("a program as the function requires Linux or macOS")


class _Invocation(NamedTuple):
    """The command that is run for a point, and its text for messages."""

    arguments: list[str] | str
    environment: dict[str, str]
    shown: str


@dataclass
class Command:
    """A program as a function: it receives a point of a named space, and prints a number.

    Parameters
    ----------
    arguments
        The program and its arguments, run without a shell; or one string, run by `/bin/sh`.
        `{name}` stands for the value of a variable, `{point}` for all of them as JSON, `{scratch}`
        for an empty folder of this evaluation, `{{` and `}}` for braces. Text is inserted
        unchanged, True and False as `true` and `false`, a list as its items with commas between
        them.

        A string for the shell is run as it is, without placeholders: values are in environment
        variables, `$AO_name`, `$AO_point` and `$AO_scratch`, so that no value becomes part of the
        script. Characters of a name other than letters, digits and underscores become underscores.
    flags
        Binary variables that stand for a text if True and for nothing if False. An argument that
        consists of an absent flag is left out; its environment variable is not set.
    variables
        The names of all variables, if some points do not have all of them. An argument that names a
        variable which the point does not have is left out. The variable's environment variable is
        not set, and in other texts the variable is empty.
    directory, environment
        The working directory, and variables to add to the environment. Their values may contain
        placeholders.
    regex, json
        Where the value is: in the first group of the last match in stdout (`^` and `$` match at
        lines), or in a field, such as `metrics.size` or `runs.0.size`, of a JSON document, which is
        stdout or its last line. Without either, the value is the last line that is not empty. Only
        the last MiB of the output is read.
    values
        For several objectives, where each value is: `{"regex": ...}`, `{"json": ...}` or `{}`, by
        name. A call then returns a dict of numbers.
    notes
        Where notes are, in the same form. A call then returns a `Measured`. Notes that are not
        found are left out.
    timeout
        The seconds after which the program and everything it has started are killed, and a
        TimeoutError is raised. They include the search by `regex`, which always has 2 seconds.
    infeasible_status
        The exit status which means that the point has no value: `Infeasible` is raised. Any other
        status but 0 is a failure: a RuntimeError shows the command and the end of its output.

    Notes
    -----
    Programs are killed and scratch folders removed when this process ends, even by SIGKILL.
    """

    arguments: tuple[str, ...] | str
    flags: Mapping[str, str] = field(default_factory=dict)
    directory: str | os.PathLike[str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    regex: str | None = None
    json: str | None = None
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    timeout: float | None = None
    infeasible_status: int | None = None
    variables: tuple[str, ...] = ()
    _stopped: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        require_posix()
        if self.timeout is not None:
            self.timeout = seconds("timeout", self.timeout)

    def __call__(self, point: Mapping[str, Any]) -> float | dict[str, float] | Measured:
        """Run the program for a point, and return the number that it printed."""
        if self._stopped:
            raise RuntimeError("stopped")
        if not self.uses("scratch"):
            return self._evaluate(point, "")
        scratch = tempfile.TemporaryDirectory(prefix="anyorder-", ignore_cleanup_errors=True)
        with guarded("folder", scratch.name), scratch:
            return self._evaluate(point, scratch.name)

    def stop(self) -> None:
        """Kill all running programs, in all threads, and let no new one run."""
        self._stopped = True

    def line(self, point: Mapping[str, Any]) -> str:
        """Return the command for a point as one line to paste into a shell.

        A script is preceded by assignments of the variables that it refers to. In other commands
        `{scratch}` is not replaced.
        """
        return self._fill(point, _LATER).shown

    def uses(self, name: str) -> bool:
        """Return whether the arguments or the environment refer to a variable by its name."""
        templates = [*self.environment.values()]
        if isinstance(self.arguments, str):
            if re.search(rf"\b{variable_of(name)}\b", self.arguments):
                return True
        else:
            templates += self.arguments
        return any(name in placeholders(template) for template in templates)

    def _fill(self, point: Mapping[str, Any], scratch: str) -> _Invocation:
        texts = {name: _text(value) for name, value in point.items()}
        texts |= {"point": json.dumps(dict(point)), "scratch": scratch}
        missing = set(self.variables) - point.keys()
        absent = {name for name in self.flags if not point.get(name)} | missing
        texts |= self.flags
        texts |= dict.fromkeys(absent, "")
        added = {name: fill(template, texts) for name, template in self.environment.items()}
        environment = os.environ | added
        if isinstance(self.arguments, str):
            return self._script(self.arguments, texts, absent, environment)
        dropped = {f"{{{name}}}" for name in absent}
        arguments = [
            fill(text, texts)
            for text in self.arguments
            if text not in dropped and not missing & set(placeholders(text))
        ]
        return _Invocation(arguments, environment, shlex.join(arguments))

    def _script(
        self, script: str, texts: Mapping[str, str], absent: set[str], environment: dict[str, str]
    ) -> _Invocation:
        """Return a script with its values in the environment; absent values are not set there."""
        values = {variable_of(name): text for name, text in texts.items() if self.uses(name)}
        for name in absent:
            values.pop(variable_of(name), None)
            environment.pop(variable_of(name), None)
        assigned = [
            f"{name}={'$(mktemp -d)' if value == _LATER else shlex.quote(value)}"
            for name, value in values.items()
        ]
        shown = f"export {' '.join(assigned)}; {script}" if assigned else script
        return _Invocation(script, environment | values, shown)

    def _evaluate(
        self, point: Mapping[str, Any], scratch: str
    ) -> float | dict[str, float] | Measured:
        end = math.inf if self.timeout is None else time.monotonic() + self.timeout
        arguments, environment, line = self._fill(point, scratch)
        shown = _cut(line)
        try:
            process = subprocess.Popen(
                arguments, shell=isinstance(arguments, str), cwd=self.directory,
                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise RuntimeError(f"cannot run {shown}: {error}") from None
        with self._errors(shown):
            with guarded("group", process.pid), process:
                try:
                    out, err = self._watch(process, end)
                finally:
                    _kill(process)
            status = process.returncode
            printed = _cut(err.strip() or out.strip(), end=True) or "it printed nothing"
            if status and status == self.infeasible_status:
                raise Infeasible(f"exit status {status}: {shown}: {printed}")
            if status:
                how = f"exit status {status}" if status > 0 else f"killed by signal {-status}"
                raise RuntimeError(f"{how}: {shown}: {printed}")
            try:
                value: float | dict[str, float]
                if self.values:
                    value = {name: self._read_objective(name, out, end) for name in self.values}
                else:
                    value = self._value(out, end, self.regex, self.json)
                return Measured(value, self._read_notes(out, end)) if self.notes else value
            except ValueError as error:
                raise RuntimeError(f"{error}: {shown}: {printed}") from None

    @contextlib.contextmanager
    def _errors(self, shown: str) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise TimeoutError(f"no end after {self.timeout:g} s: {shown}") from None
        except InterruptedError:
            raise RuntimeError(f"stopped: {shown}") from None

    def _watch(self, process: subprocess.Popen[bytes], end: float) -> tuple[str, str]:
        """Wait until a program has ended, and return the ends of its stdout and stderr."""
        kept = (bytearray(), bytearray())
        with selectors.DefaultSelector() as selector:
            for stream, data in zip((process.stdout, process.stderr), kept, strict=True):
                selector.register(stream, selectors.EVENT_READ, data)  # type: ignore[arg-type]
            while True:
                ended = process.poll() is not None
                if ended:  # processes that it leaves behind may hold the pipes open for ever
                    _kill(process)
                pause = 0 if ended else max(0.0, min(_POLL, end - time.monotonic()))
                ready = selector.select(pause) if selector.get_map() else []
                for key, _ in ready:
                    chunk = os.read(key.fd, 2**16)
                    if not chunk:
                        selector.unregister(key.fileobj)
                    key.data.extend(chunk)
                    if len(key.data) > 2 * _KEPT:
                        del key.data[:-_KEPT]
                if ended and not ready:
                    break
                if not selector.get_map():  # both pipes are closed: it is about to end
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(pause)
                if not ended and time.monotonic() >= end and process.poll() is None:
                    raise TimeoutError
                if self._stopped:
                    raise InterruptedError
        out, err = (bytes(data[-_KEPT:]).decode(errors="replace") for data in kept)
        return out, err

    def _read_objective(self, name: str, out: str, end: float) -> float:
        """Return the value of one of several objectives."""
        where = self.values[name]
        try:
            return self._value(out, end, where.get("regex"), where.get("json"))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def _read_notes(self, out: str, end: float) -> dict[str, Any]:
        """Return the notes that are found; matches of a regular expression may become numbers."""
        found = {}
        for name, where in self.notes.items():
            with suppress(ValueError):
                text = found[name] = self._find(out, end, where.get("regex"), where.get("json"))
                if isinstance(text, str) and "regex" in where:
                    found[name] = float(text)
        return found

    def _value(self, out: str, end: float, regex: str | None, path: str | None) -> float:
        found = self._find(out, end, regex, path)
        right = isinstance(found, str if path is None else int | float)
        try:
            value = float(found) if right and not isinstance(found, bool) else math.nan
        except (ValueError, OverflowError):
            value = math.nan
        if math.isnan(value):
            raise ValueError(f"the value is {short(found)}, expected a number")
        return value

    def _find(self, out: str, end: float, regex: str | None, path: str | None) -> Any:
        """Return what is printed at a place, by default the last line; ValueError if nothing is."""
        lines = [line.strip() for line in out.splitlines() if line.strip()]
        if not lines:
            raise ValueError("nothing on stdout, expected a number")
        found: Any = lines[-1]
        if regex is not None:
            deadline = max(end, time.monotonic() + _MATCH_GRACE)
            matched = last_match(regex, out, deadline, lambda: self._stopped)
            if not matched:
                raise ValueError(f"no match of {regex!r} in stdout, expected a number")
            found = matched[0]
        elif path is not None:
            found = _field(out, lines[-1], path)
        return found


def _field(out: str, last: str, path: str) -> Any:
    for text in (out, last):  # a log may precede the document
        with suppress(ValueError, RecursionError):
            found = json.loads(text)
            break
    else:
        raise ValueError("neither stdout nor its last line is JSON")
    for name in path.split("."):
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            raise ValueError(f"no {name!r}, of {path!r}, in the JSON {short(found)}")
    return found


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and everything in its process group, and leave no zombie."""
    with suppress(ProcessLookupError, PermissionError):  # macOS raises the latter for a zombie
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _cut(text: str, end: bool = False) -> str:
    if len(text) <= _SHOWN:
        return text
    return f"...{text[-_SHOWN:]}" if end else f"{text[:_SHOWN]}..."


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
