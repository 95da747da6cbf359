"""Regular expressions that can be interrupted.

A search may take exponential time, holds the interpreter lock meanwhile, and cannot be stopped from
another thread. It therefore runs in a process of its own (`match_process.py`), which is kept for
the next search and killed when a search takes too long. A search of a short text takes well under a
millisecond, the first one the start of the process.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

_POLL = 0.1  # seconds between checks whether the caller still needs the answer
_lock = threading.Lock()
_idle: list[tuple[int, subprocess.Popen[bytes]]] = []  # with the process that started them


def last_match(
    pattern: str, text: str, deadline: float, stopped: Callable[[], bool]
) -> list[str | None]:
    """The first group of the last match, in a list that is empty where nothing matches.

    Parameters
    ----------
    pattern, text
        What to search for, with `re.MULTILINE`, and where.
    deadline
        On `time.monotonic`'s clock, after which it is a TimeoutError.
    stopped
        Checked while waiting; once it returns True, it is an InterruptedError.
    """
    process = _take()
    answered = False
    try:
        answer = _ask(process, json.dumps([pattern, text]).encode() + b"\n", deadline, stopped)
        answered = True
    finally:
        if answered:
            with _lock:
                _idle.append((os.getpid(), process))
        else:
            _end(process)
    result: list[str | None] = json.loads(answer)
    return result


def _ask(
    process: subprocess.Popen[bytes], question: bytes, deadline: float, stopped: Callable[[], bool]
) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    to, back = process.stdin.fileno(), process.stdout.fileno()
    os.set_blocking(to, False)
    unsent, answer = memoryview(question), b""
    with selectors.DefaultSelector() as selector:
        selector.register(to, selectors.EVENT_WRITE)
        selector.register(back, selectors.EVENT_READ)
        while not answer.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if stopped():
                raise InterruptedError
            ready = [key.fd for key, _ in selector.select(min(left, _POLL))]
            if to in ready:
                with contextlib.suppress(BlockingIOError, BrokenPipeError):
                    unsent = unsent[os.write(to, unsent) :]
                if not unsent:
                    selector.unregister(to)
            if back in ready:
                chunk = os.read(back, 2**16)
                if not chunk:
                    raise ValueError(f"the regular expression failed: status {process.wait()}")
                answer += chunk
    return answer


def _take() -> subprocess.Popen[bytes]:
    with _lock:
        while _idle:
            owner, process = _idle.pop()
            if owner == os.getpid() and process.poll() is None:
                return process
    script = Path(__file__).with_name("match_process.py")
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(script), str(os.getpid())],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip


def _end(process: subprocess.Popen[bytes]) -> None:
    # An idle one, too: a process that was forked may have the pipe, which then does not end.
    process.kill()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with contextlib.suppress(OSError):
            pipe.close()
    process.wait()


@atexit.register
def _end_all() -> None:
    with _lock:
        ours = [process for owner, process in _idle if owner == os.getpid()]
        _idle.clear()
    for process in ours:
        _end(process)


def _after_fork() -> None:
    """The lock may be held by a thread that is not here."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
