"""Any program as the function: `Command`, which `anyorder run` makes from a problem file.

Linux and macOS only: a command runs in a process group of its own, so that whatever it has started
ends with it.
"""

from __future__ import annotations

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
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from anyorder._checks import did_you_mean, short
from anyorder.errors import Infeasible

OURS = ("point", "scratch")  # placeholders that are not variables
_HOLE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_KEPT = 2**20  # bytes of the ends of stdout and stderr that are looked at
_SHOWN = 600  # characters of a command, or of what it printed, in an error
_POLL = 0.1  # seconds between looks at whether a command has ended or shall be stopped


@dataclass
class Command:
    """A program as a function: a point of a named space in, the number it printed out.

    Parameters
    ----------
    arguments
        The program and its arguments, run without a shell; or one string, run by `/bin/sh`.
        `{name}` stands for the value of a variable, `{point}` for all of them as JSON, `{scratch}`
        for an empty folder of this evaluation's own, `{{` and `}}` for braces. Text goes in as it
        is, True and False as `true` and `false`. In a string for the shell, values are quoted.
    flags
        Binary variables that stand for a text when True and for nothing when False. An argument
        that is nothing but an absent flag is left out.
    directory, environment
        Where it runs, and what is added to our environment; placeholders work there as well.
    regex, json
        Where the value is: the first group of the last match in stdout (`^` and `$` match at
        lines), or a field, such as `metrics.size` or `runs.0.size`, of the JSON that stdout or its
        last line is. With neither, the last line that is not empty is the value. Of very long
        output only the last MiB is looked at.
    timeout
        Seconds, after which the program and all it has started are killed: a TimeoutError.
    infeasible_status
        The exit status that says that this point can have no value: `Infeasible`. Any other but 0
        is a failure: a RuntimeError that shows the command and what it printed last.
    """

    arguments: tuple[str, ...] | str
    flags: Mapping[str, str] = field(default_factory=dict)
    directory: str | os.PathLike[str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    regex: str | None = None
    json: str | None = None
    timeout: float | None = None
    infeasible_status: int | None = None
    _stopped: bool = field(default=False, init=False, repr=False)

    def __call__(self, point: Mapping[str, Any]) -> float:
        """Run it for a point."""
        if self._stopped:
            raise RuntimeError("stopped")
        if "scratch" not in self.placeholders():
            return self._evaluate(point, "")
        with tempfile.TemporaryDirectory(prefix="anyorder-", ignore_cleanup_errors=True) as scratch:
            return self._evaluate(point, scratch)

    def stop(self) -> None:
        """Kill what is running, in whatever thread, and run nothing more."""
        self._stopped = True

    def line(self, point: Mapping[str, Any]) -> str:
        """The command for a point as one types it; `{scratch}` stays as it is."""
        filled, _ = self._fill(point, "{scratch}")
        return filled if isinstance(filled, str) else shlex.join(filled)

    def placeholders(self) -> set[str]:
        """The names in braces in the arguments and the environment."""
        arguments = [self.arguments] if isinstance(self.arguments, str) else self.arguments
        return {name for text in (*arguments, *self.environment.values()) for name in holes(text)}

    def _fill(self, point: Mapping[str, Any], scratch: str) -> tuple[list[str] | str, Any]:
        """Arguments and additions to the environment."""
        texts = {name: _text(value) for name, value in point.items()}
        texts |= {"point": json.dumps(dict(point)), "scratch": scratch}
        absent = {name for name in self.flags if not point[name]}
        texts |= self.flags
        texts |= dict.fromkeys(absent, "")
        added = {name: fill(text, texts) for name, text in self.environment.items()}
        if isinstance(self.arguments, str):
            quoted = {k: "" if k in absent else shlex.quote(text) for k, text in texts.items()}
            return fill(self.arguments, quoted), added
        dropped = {f"{{{name}}}" for name in absent}
        return [fill(text, texts) for text in self.arguments if text not in dropped], added

    def _evaluate(self, point: Mapping[str, Any], scratch: str) -> float:
        arguments, added = self._fill(point, scratch)
        shown = _cut(arguments if isinstance(arguments, str) else shlex.join(arguments))
        try:
            process = subprocess.Popen(
                arguments, shell=isinstance(arguments, str), cwd=self.directory,
                env=os.environ | added, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise RuntimeError(f"cannot run {shown}: {error}") from None
        with process:
            try:
                out, err = self._watch(process)
            except TimeoutError:
                raise TimeoutError(f"no end after {self.timeout:g} s: {shown}") from None
            except InterruptedError:
                raise RuntimeError(f"stopped: {shown}") from None
            finally:
                _kill(process)
        status = process.returncode
        said = _cut(err.strip() or out.strip(), end=True) or "it printed nothing"
        if status and status == self.infeasible_status:
            raise Infeasible(f"exit status {status}: {shown}: {said}")
        if status:
            how = f"exit status {status}" if status > 0 else f"killed by signal {-status}"
            raise RuntimeError(f"{how}: {shown}: {said}")
        try:
            return self._value(out)
        except ValueError as error:
            raise RuntimeError(f"{error}: {shown}: {said}") from None

    def _watch(self, process: subprocess.Popen[bytes]) -> tuple[str, str]:
        """The ends of its stdout and stderr, once it has ended."""
        end = math.inf if self.timeout is None else time.monotonic() + self.timeout
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

    def _value(self, out: str) -> float:
        lines = [line.strip() for line in out.splitlines() if line.strip()]
        if not lines:
            raise ValueError("nothing on stdout, expected a number")
        found: Any = lines[-1]
        if self.regex is not None:
            matches = list(re.finditer(self.regex, out, re.MULTILINE))
            if not matches:
                raise ValueError(f"no match of {self.regex!r} in stdout, expected a number")
            found = matches[-1][1]
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
    with suppress(ProcessLookupError, PermissionError):  # the latter is macOS's word for a zombie
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _cut(text: str, end: bool = False) -> str:
    if len(text) <= _SHOWN:
        return text
    return f"...{text[-_SHOWN:]}" if end else f"{text[:_SHOWN]}..."


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def holes(template: str) -> list[str]:
    """The names in braces in a text; a ValueError where braces do not pair."""
    for found in _HOLE.finditer(template):
        if found[0] in ("{", "}"):
            raise ValueError(f"lone {found[0]} in {short(template)}, a brace is written twice")
    return [found[1] for found in _HOLE.finditer(template) if found[1] is not None]


def fill(template: str, texts: Mapping[str, str]) -> str:
    """The template with its placeholders filled in; a ValueError where one is unknown."""
    for name in holes(template):
        if name not in texts:
            expected = "expected a variable, {point} or {scratch}; a brace is written twice"
            raise ValueError(f"unknown {{{name}}}{did_you_mean(name, texts)}, {expected}")
    return _HOLE.sub(lambda found: found[0][0] if found[1] is None else texts[found[1]], template)
