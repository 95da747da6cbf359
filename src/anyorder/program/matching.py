"""Regular expressions that can be interrupted.

A search may take exponential time, holds the interpreter lock meanwhile, and cannot be stopped from
another thread. It therefore runs in its own process, which is killed when it takes too long. That
costs the start of an interpreter without packages, about 15 ms, which is little beside the program
whose output is searched.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable

from anyorder.program.guard import guarded

_POLL = 0.1  # seconds between checks whether the caller still needs the answer
# It reads one line, not to the end: a process that was forked meanwhile may hold the pipe open.
_SEARCH = """
import collections, json, re, sys
pattern, text = json.loads(sys.stdin.readline())
last = collections.deque(re.finditer(pattern, text, re.MULTILINE), maxlen=1)
print(json.dumps([match[1] for match in last]))
"""


def last_match(
    pattern: str, text: str, deadline: float, stopped: Callable[[], bool]
) -> list[str | None]:
    """Return a list with the first group of the last match; it is empty if nothing matches.

    Parameters
    ----------
    pattern, text
        The regular expression, which is searched with `re.MULTILINE`, and the text.
    deadline
        The time, on the clock of `time.monotonic`, after which a TimeoutError is raised.
    stopped
        A function that is called while waiting; if it returns True, an InterruptedError is raised.
    """
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _SEARCH],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    with guarded("group", process.pid), process:
        try:
            return _wait(process, json.dumps([pattern, text]).encode() + b"\n", deadline, stopped)
        finally:
            process.kill()


def _wait(
    process: subprocess.Popen[bytes], question: bytes, deadline: float, stopped: Callable[[], bool]
) -> list[str | None]:
    unsent: bytes | None = question
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if stopped():
            raise InterruptedError
        try:
            answer, _ = process.communicate(unsent, timeout=min(left, _POLL))
        except subprocess.TimeoutExpired:  # nothing is lost: the next call continues
            unsent = None
            continue
        if process.returncode:
            raise ValueError(f"the regular expression failed: status {process.returncode}")
        result: list[str | None] = json.loads(answer)
        return result
