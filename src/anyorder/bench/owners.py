"""Owners of runs: which process is doing a run, and whether that process is still alive.

An owner is the text `host:process:time`. Processes record heartbeats for their runs. A process on
this machine is also looked up in the system's process table.
"""

from __future__ import annotations

import os
import socket
import time

HEARTBEAT = 10.0  # seconds between signs of life
# a process on another machine counts as dead after so many seconds without a heartbeat
DEAD_AFTER = 60.0
_OWN: set[str] = set()  # the owners in this process


def create() -> str:
    """Return a new owner in this process."""
    owner = f"{socket.gethostname()}:{os.getpid()}:{time.time_ns()}"
    _OWN.add(owner)
    return owner


def discard(owner: str) -> None:
    """Forget an owner in this process, so that its runs have no owner."""
    _OWN.discard(owner)


def is_dead(owner: str, heartbeat: float) -> bool:
    """Return whether the process of an owner has died; `heartbeat` is the time of its last one."""
    host, process, _ = owner.rsplit(":", 2)
    here = host == socket.gethostname() and os.name == "posix"
    if here and int(process) == os.getpid():
        return owner not in _OWN
    if here and not _process_exists(int(process)):
        return True
    # A process with this number exists. If it is another process, there are no heartbeats.
    return time.time() - heartbeat > (10 if here else 1) * DEAD_AFTER


def _process_exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
