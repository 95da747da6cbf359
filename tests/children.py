"""Runs in processes of their own, which tests stop and kill, and what is left of them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from conftest import ctrl_c_is_heard
from functions import lines

import anyorder as ao

PROC = Path("/proc/self/fd").is_dir()


def assert_same(one: ao.History, other: ao.History) -> None:
    """Bit for bit, but for the time it took."""
    for name in ("values", "codes", "generations", "statuses", "cached"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.restarts == other.restarts


def processes() -> dict[int, int]:
    """Every process that is not a zombie, and its parent."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = entry.read_text(encoding="utf-8").rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        found[int(entry.parent.name)] = int(parent)
        if state == "Z" and int(parent) == os.getpid():
            found[-int(entry.parent.name)] = int(parent)  # a zombie of ours shows up as well
    return found


def descendants() -> set[int]:
    known, parents = {os.getpid()}, processes()
    while True:
        more = {child for child, parent in parents.items() if parent in known} - known
        if not more:
            return known - {os.getpid()}
        known |= more


def marked(mark: str) -> list[int]:
    """The processes that have it in their environment, wherever they hang."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


def wait_until(condition: Callable[[], Any], seconds: float = 120.0) -> Any:
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
    return value


CHILD = """
import json, os, sys, time
import anyorder as ao

def note(line):
    file = os.open(os.environ["LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, line.encode() + b"\\n")
    os.close(file)

def f(x):
    note("start")
    time.sleep(float(os.environ["NAP"]) * (1 + x[0]))
    note("end " + "".join(map(str, x)))
    return float(x.sum() + 0.5 * (x[1:] * x[:-1]).sum() - 1.5 * x[0] * x[-1])

def main():
    budget, options = json.loads(sys.argv[1])
    algorithm = "policy+epochs=3+hidden=(4,)+engine=" + options.pop("engine")
    result = ao.maximize(f, ao.Space.binary(8), budget, seed=0, algorithm=algorithm,
                         study=os.environ["STUDY"], **options)
    print("RESULT", result.stop_reason, result.evaluations, result.best_value, flush=True)

GUARD
    main()
"""


class Child:
    """A script that runs `maximize` in a process of its own, marked so that we can find it.

    On the engine `reference` unless told otherwise: it starts in a third of the time.
    """

    def __init__(self, folder: Path, budget: int, nap: float, guard: bool = True, **options: Any):
        self.log, self.study = folder / "log", folder / "study.db"
        guarded = "if __name__ == '__main__':" if guard else "if True:"
        # What is called is counted: nothing is measured again when a study is continued.
        options = {"engine": "reference", "verify": False, **options}
        script = folder / "script.py"
        script.write_text(CHILD.replace("GUARD", guarded), encoding="utf-8")
        self.mark = f"ANYORDER_MARK={random.SystemRandom().getrandbits(64):x}"
        name, mark = self.mark.split("=")
        env = {"LOG": str(self.log), "NAP": str(nap), "STUDY": str(self.study), name: mark}
        with ctrl_c_is_heard():
            self.process = subprocess.Popen(
                [sys.executable, str(script), json.dumps([budget, options])], env=os.environ | env,
                start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                encoding="utf-8",
            )  # fmt: skip

    def signal(self, number: int) -> None:
        """As a terminal does: to the whole group."""
        os.killpg(self.process.pid, number)

    def end(self, seconds: float = 120) -> tuple[str, str]:
        try:
            return self.process.communicate(timeout=seconds)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.communicate(timeout=seconds)

    def alone(self) -> None:
        """Nothing that it started is alive any more."""
        if PROC:
            wait_until(lambda: not marked(self.mark))


def ends(log: Path) -> list[str]:
    return [line[4:] for line in lines(log) if line.startswith("end ")]
