"""Killing of programs and removal of scratch folders when this process ends, however it ends.

No process can clean up after its own SIGKILL, so another process does: the guard, which is started
with the first program and shared by all, and waits for the end of a pipe from here
(`guard_process.py`). The alternatives are worse. `PR_SET_PDEATHSIG` exists only on Linux, acts when
the *thread* that started the program ends, does not reach the program's own children, and needs
`preexec_fn`, which may deadlock in a process with threads. A supervisor for each program costs the
start of a Python interpreter for each evaluation; the guard costs two short writes.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

_lock = threading.Lock()
# the process that started it, and the guard
_guard: tuple[int, subprocess.Popen[bytes]] | None = None


@contextlib.contextmanager
def guarded(kind: str, value: int | str) -> Iterator[None]:
    """Have a process group ("group") killed, or a folder ("folder") removed, if we die."""
    _send([kind, value])
    try:
        yield
    finally:
        _send(["forget", kind, value])


def _send(message: list[int | str]) -> None:
    data = json.dumps(message).encode() + b"\n"
    with _lock, contextlib.suppress(OSError):  # without a guard, everything else still works
        try:
            _write(_get_guard(), data)
        except BrokenPipeError:  # the guard was killed: a new one only knows what comes from now on
            _stop()
            _write(_get_guard(), data)


def _write(guard: subprocess.Popen[bytes], data: bytes) -> None:
    assert guard.stdin is not None
    os.write(guard.stdin.fileno(), data)  # short enough to be written at once


def _get_guard() -> subprocess.Popen[bytes]:
    """Return the guard of this process, started if needed; an inherited guard is not ours."""
    global _guard
    if _guard is None or _guard[0] != os.getpid():
        script = Path(__file__).with_name("guard_process.py")
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        _guard = os.getpid(), process
    return _guard[1]


@atexit.register
def _stop() -> None:
    global _guard
    if _guard is not None and _guard[0] == os.getpid():
        process = _guard[1]
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            # Closing the pipe is not enough if a forked process has it, too: the pipe would not end
            # for the guard, nor would the guard end for us.
            _write(process, b'["end"]\n')
            process.stdin.close()
        process.wait()
    _guard = None


def _after_fork() -> None:
    """Replace the lock, which a thread of the parent may hold, and forget the parent's pipe."""
    global _lock
    _lock = threading.Lock()
    if _guard is not None and _guard[1].stdin is not None:
        with contextlib.suppress(OSError):
            _guard[1].stdin.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
