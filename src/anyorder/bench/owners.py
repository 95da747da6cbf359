"""Which process owns a running run, and whether that process is still alive.

An owner is `host:process:time`. Processes write a heartbeat for their runs; one on this machine is
also looked up in the system's process table.
"""

from __future__ import annotations

import os
import socket
import time

HEARTBEAT = 10.0  # seconds between signs of life
DEAD_AFTER = 60.0  # seconds without one, after which a process on another machine counts as dead
_OWN: set[str] = set()  # the owners in this process


def create() -> str:
    """Return a new owner, in this process."""
    owner = f"{socket.gethostname()}:{os.getpid()}:{time.time_ns()}"
    _OWN.add(owner)
    return owner


def discard(owner: str) -> None:
    """Forget an owner of this process: its runs are nobody's."""
    _OWN.discard(owner)


def is_dead(owner: str, heartbeat: float) -> bool:
    """Return whether an owner's process has died; `heartbeat` is the time of its last one."""
    host, process, _ = owner.rsplit(":", 2)
    here = host == socket.gethostname() and os.name == "posix"
    if here and int(process) == os.getpid():
        return owner not in _OWN
    if here and not _process_exists(int(process)):
        return True
    # Here, a process with the same number exists. It may be another one: that has no heartbeat.
    return time.time() - heartbeat > (10 if here else 1) * DEAD_AFTER


def _process_exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
