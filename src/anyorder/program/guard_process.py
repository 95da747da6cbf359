"""The process behind `guard.py`, which cleans up after a process that was killed.

It is run as a script, with the number of the process to watch. Each line on stdin is a JSON list:
["group", N] and ["folder", PATH] register a process group and a folder, ["forget", ...] removes an
entry. After ["end"], at the end of stdin, or when the watched process is no longer the parent,
every group that is still registered is killed and every folder removed. Only the standard library
is used, so that it starts in milliseconds.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import sys

_LOOK = 1.0  # seconds between checks that the parent lives, in case a fork holds the pipe open


def main() -> None:
    """Read messages until the end, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    parent = int(sys.argv[1])
    registered: dict[str, set[int | str]] = {"group": set(), "folder": set()}
    received, ended = b"", False
    while not ended and os.getppid() == parent:
        ready, _, _ = select.select([0], [], [], _LOOK)
        if not ready:
            continue
        chunk = os.read(0, 65536)
        if not chunk:
            break
        *lines, received = (received + chunk).split(b"\n")
        for line in lines:
            action, *rest = json.loads(line)
            if action == "end":
                ended = True
            elif action == "forget":
                registered[rest[0]].discard(rest[1])
            else:
                registered[action].add(rest[0])
    for group in registered["group"]:
        with contextlib.suppress(OSError):
            os.killpg(int(group), signal.SIGKILL)
    for folder in registered["folder"]:
        shutil.rmtree(str(folder), ignore_errors=True)


if __name__ == "__main__":
    main()
