"""Any program as the function: `Command`, which `anyorder run` makes from a problem file.

Linux and macOS only: a program runs in a process group of its own, so that everything it has
started ends with it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
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

from anyorder._checks import seconds, short
from anyorder.errors import Infeasible
from anyorder.program import shell
from anyorder.program.guard import guarded
from anyorder.program.matching import last_match
from anyorder.program.templates import fill, placeholders

RESERVED = ("point", "scratch")  # placeholders that are not variables
_KEPT = 2**20  # bytes at the ends of stdout and stderr that are read
_SHOWN = 600  # characters of a command, or of what it printed, in an error
_POLL = 0.1  # seconds between checks that a program has ended or is to be stopped
_MATCH_GRACE = 2.0  # seconds that a regular expression has even if the program left fewer


def require_posix() -> None:
    """Raise an error on Windows, which has no process groups and waits for no pipes."""
    if os.name != "posix":
        raise RuntimeError("a program as the function requires Linux or macOS")


class _Invocation(NamedTuple):
    """What is run for a point, and how it is shown."""

    arguments: list[str] | str
    environment: dict[str, str]
    shown: str


@dataclass
class Command:
    """A program as a function: a point of a named space in, the number it printed out.

    Parameters
    ----------
    arguments
        The program and its arguments, run without a shell; or one string, run by `/bin/sh`.
        `{name}` stands for the value of a variable, `{point}` for all of them as JSON, `{scratch}`
        for an empty folder of this evaluation, `{{` and `}}` for braces. Text is inserted
        unchanged, True and False as `true` and `false`, a list as its items with commas between
        them.

        In a string for the shell, each placeholder is replaced by a reference to an environment
        variable, such as `"$anyorder_name"`, so that a value is one word and never part of the
        script. In single quotes the shell expands nothing: placeholders there are refused. In
        `$(( ))` only numbers are accepted. See `anyorder.program.shell`.
    flags
        Binary variables that stand for a text when True and for nothing when False. An argument
        that consists of an absent flag is left out.
    variables
        The names of all variables, where some points do not have all of them. An argument that
        names a variable that the point does not have is left out; elsewhere it is empty text.
    directory, environment
        The working directory, and variables to add to the environment; placeholders work in their
        values as well.
    regex, json
        Where the value is: the first group of the last match in stdout (`^` and `$` match at
        lines), or a field, such as `metrics.size` or `runs.0.size`, of the JSON document that
        stdout or its last line is. With neither, the last line that is not empty is the value. Of
        very long output only the last MiB is read.
    timeout
        Seconds, after which the program and everything it has started are killed: a TimeoutError.
        It covers the search by `regex`, which has 2 seconds in any case.
    infeasible_status
        The exit status that means that this point has no value: `Infeasible`. Any other but 0 is a
        failure: a RuntimeError that shows the command and what it printed last.

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
    timeout: float | None = None
    infeasible_status: int | None = None
    variables: tuple[str, ...] = ()
    _stopped: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        require_posix()
        if self.timeout is not None:
            self.timeout = seconds("timeout", self.timeout)
        self._script: shell.Script | None = None
        if isinstance(self.arguments, str):
            self._script = shell.parse(self.arguments, self.flags)
            for name in sorted(self.numeric() & {*self.flags, *RESERVED}):
                raise ValueError(f"{{{name}}} is text in $(( )), expected a number")

    def __call__(self, point: Mapping[str, Any]) -> float:
        """Run it for a point."""
        if self._stopped:
            raise RuntimeError("stopped")
        if "scratch" not in self.placeholders():
            return self._evaluate(point, "")
        scratch = tempfile.TemporaryDirectory(prefix="anyorder-", ignore_cleanup_errors=True)
        with guarded("folder", scratch.name), scratch:
            return self._evaluate(point, scratch.name)

    def stop(self) -> None:
        """Kill what is running, in whatever thread, and run nothing more."""
        self._stopped = True

    def line(self, point: Mapping[str, Any]) -> str:
        """The command for a point as one line to paste into a shell.

        A script is preceded by the assignments of the variables it refers to. Otherwise `{scratch}`
        stays as it is.
        """
        return self._fill(point, "{scratch}").shown

    def placeholders(self) -> set[str]:
        """The names in braces in the arguments and the environment."""
        arguments = [self.arguments] if isinstance(self.arguments, str) else self.arguments
        templates = (*arguments, *self.environment.values())
        return {name for template in templates for name in placeholders(template)}

    def numeric(self) -> frozenset[str]:
        """The placeholders in the arithmetic of a script, whose values must be numbers."""
        return frozenset() if self._script is None else self._script.numeric

    def _fill(self, point: Mapping[str, Any], scratch: str) -> _Invocation:
        texts = {name: _text(value) for name, value in point.items()}
        texts |= {"point": json.dumps(dict(point)), "scratch": scratch}
        missing = set(self.variables) - point.keys()
        absent = {name for name in self.flags if not point.get(name)} | missing
        texts |= self.flags
        texts |= dict.fromkeys(absent, "")
        added = {name: fill(template, texts) for name, template in self.environment.items()}
        if self._script is None:
            dropped = {f"{{{name}}}" for name in absent}
            arguments = [
                fill(text, texts)
                for text in self.arguments
                if text not in dropped and not missing & set(placeholders(text))
            ]
            return _Invocation(arguments, os.environ | added, shlex.join(arguments))
        script, variables = self._script.text, self._script.variables
        fill(str(self.arguments), texts)  # an error where a placeholder is unknown
        for name in self.numeric():
            if isinstance(point.get(name), str | bool):
                raise ValueError(f"{name} is {point[name]!r} in $(( )), expected a number")
        values = {variables[name]: texts[name] for name in variables if name not in absent}
        unset = {variables[name] for name in variables.keys() & absent}
        environment = {k: v for k, v in (os.environ | added | values).items() if k not in unset}
        assigned = [f"{name}={shlex.quote(value)}" for name, value in values.items()]
        if "scratch" in variables and scratch == "{scratch}":
            assigned = [a for a in assigned if not a.startswith(f"{variables['scratch']}=")]
            assigned.append(f"{variables['scratch']}=$(mktemp -d)")
        shown = "; ".join([" ".join(assigned), script] if assigned else [script])
        return _Invocation(script, environment, shown)

    def _evaluate(self, point: Mapping[str, Any], scratch: str) -> float:
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
                return self._value(out, end)
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
        """The ends of its stdout and stderr, once it has ended."""
        kept = (bytearray(), bytearray())
        with selectors.DefaultSelector() as selector:
            for stream, data in zip((process.stdout, process.stderr), kept, strict=True):
                selector.register(stream, selectors.EVENT_READ, data)  # type: ignore[arg-type]
            while True:
                ended = process.poll() is not None
                if ended:  # what it leaves behind may hold the pipes open for ever
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
                if not selector.get_map():  # both pipes closed: it is about to end
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(pause)
                if not ended and time.monotonic() >= end and process.poll() is None:
                    raise TimeoutError
                if self._stopped:
                    raise InterruptedError
        out, err = (bytes(data[-_KEPT:]).decode(errors="replace") for data in kept)
        return out, err

    def _value(self, out: str, end: float) -> float:
        lines = [line.strip() for line in out.splitlines() if line.strip()]
        if not lines:
            raise ValueError("nothing on stdout, expected a number")
        found: Any = lines[-1]
        if self.regex is not None:
            deadline = max(end, time.monotonic() + _MATCH_GRACE)
            matched = last_match(self.regex, out, deadline, lambda: self._stopped)
            if not matched:
                raise ValueError(f"no match of {self.regex!r} in stdout, expected a number")
            found = matched[0]
        elif self.json is not None:
            found = _field(out, lines[-1], self.json)
        right = isinstance(found, str if self.json is None else int | float)
        try:
            value = float(found) if right and not isinstance(found, bool) else math.nan
        except (ValueError, OverflowError):
            value = math.nan
        if math.isnan(value):
            raise ValueError(f"the value is {short(found)}, expected a number")
        return value


def _field(out: str, last: str, path: str) -> Any:
    for text in (out, last):  # a log may come before it
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
    """End the program and all that is in its process group; leave no zombie."""
    with suppress(ProcessLookupError, PermissionError):  # macOS reports a zombie by the latter
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
