"""Functions to optimise, good and bad, for tests that send them to other processes.

Nothing but NumPy and anyorder is imported here: every worker process imports it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import anyorder as ao
from anyorder import errors

FAST = ao.policy.Config(epochs=3, hidden=(4,))
SPACE = ao.Space.binary(8)
QUICK: dict[str, Any] = {"seed": 0, "algorithm": ao.policy.Policy(FAST)}
PLAIN: dict[str, Any] = {
    "seed": 0,
    "algorithm": ao.policy.Policy(FAST, "reference"),
}  # of processes that import no Numba


def run(strategy: ao.strategies.Search, objective: Any, budget: int) -> np.ndarray:
    """The values of all proposals of a strategy, known ones evaluated again."""
    batches = isinstance(objective, ao.problems.Problem)
    result = ao.maximize(
        objective.evaluate if batches else objective, strategy.space, budget, algorithm=strategy,
        cache=False, progress=False, vectorized=batches, batch=strategy.batch,
    )  # fmt: skip
    return np.array(result.history.values)


def note(log: str | Path, line: str) -> None:
    """A line that is in the file before this returns, whatever happens next."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def lines(log: str | Path) -> list[str]:
    return Path(log).read_text(encoding="utf-8").splitlines() if Path(log).exists() else []


def value(x: np.ndarray) -> float:
    """Something to climb, of which neighbours matter to each other."""
    return float(x.sum() + 0.5 * (x[1:] * x[:-1]).sum() - 1.5 * x[0] * x[-1])


def failing(x: np.ndarray) -> float:
    """Fails at a third of the points."""
    kind = int(x @ (1 << np.arange(len(x)))) % 9
    if kind == 0:
        raise ValueError("never here")
    if kind == 1:
        raise ao.Infeasible("nor here")
    return float("nan") if kind == 2 else value(x)


def slow_and_noted(log: str, x: np.ndarray) -> float:
    """Takes its time, and says when it is done."""
    time.sleep(0.02 * (1 + float(x[0])))
    note(log, "".join(map(str, x)))
    return value(x)


# --- functions that go wrong where the first variable is 1 ----------------------------------------


class Demanding(Exception):
    """Cannot be made again from its message."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what} {code}")


class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__("held a lock")
        self.lock = threading.Lock()


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Stranger(Exception):
    """Can be read by the worker that sent it, and by nobody else."""

    def __reduce__(self) -> Any:
        return only_in, (os.getpid(),)


def only_in(process: int) -> Exception:
    if os.getpid() != process:
        raise ImportError("not here")
    return Stranger()


def raises(x: np.ndarray) -> float:
    raise KeyError("missing part")


def nan(x: np.ndarray) -> float:
    return float("nan")


def none(x: np.ndarray) -> None:
    return None


def text(x: np.ndarray) -> str:
    return "good"


def unpicklable_result(x: np.ndarray) -> Any:
    return lambda: 1.0


def infeasible(x: np.ndarray) -> float:
    raise ao.Infeasible("too heavy")


def demanding(x: np.ndarray) -> float:
    raise Demanding("part", 7)


def unpicklable(x: np.ndarray) -> float:
    raise Unpicklable


def speechless(x: np.ndarray) -> float:
    raise Speechless


def stranger(x: np.ndarray) -> float:
    raise Stranger


def leaves(x: np.ndarray) -> float:
    os._exit(3)


def killed(x: np.ndarray) -> float:
    kill = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has no other
    os.kill(os.getpid(), signal.SIGSEGV if x[1] else kill)
    time.sleep(60)
    return 0.0


def exits(x: np.ndarray) -> float:
    raise SystemExit(5)


def interrupts(x: np.ndarray) -> float:
    raise KeyboardInterrupt


def hangs(x: np.ndarray) -> float:
    time.sleep(60)
    return 0.0


def sometimes(trouble: Callable[[Any], Any], log: str | None, x: np.ndarray) -> Any:
    if log is not None:
        note(log, "".join(map(str, x)))
    return trouble(x) if x[0] else value(x)


def no_such_file(x: np.ndarray) -> float:
    """Fails with the name of a file that is no text."""
    if x[0]:
        raise FileNotFoundError(2, "No such file", os.fsdecode(b"caf\xe9.dat"))
    return value(x)


TAME = [  # trouble, status, what is said about it
    (raises, errors.FAILED, "KeyError: 'missing part'"),
    (nan, errors.FAILED, "returned NaN"),
    (none, errors.FAILED, "returned None"),
    (text, errors.FAILED, "'good', expected a number"),
    (unpicklable_result, errors.FAILED, "expected a number"),
    (infeasible, errors.INFEASIBLE, "too heavy"),
    (demanding, errors.FAILED, "Demanding: part 7"),
    (unpicklable, errors.FAILED, "Unpicklable: held a lock"),
    (speechless, errors.FAILED, "Speechless"),
]
WILD = [  # only processes of their own survive these
    (stranger, errors.FAILED, "cannot be read here: ImportError: not here"),
    (leaves, errors.DIED, "exit status 3"),
    (killed, errors.DIED, "exit status -" if os.name == "posix" else "exit status "),
    (exits, errors.DIED, "exit status 5"),
    (interrupts, errors.DIED, "exit status 1"),
    (hangs, errors.TIMEOUT, "no answer in"),
]


def third_time(log: str, x: np.ndarray) -> float:
    """Fails twice at each point, then works."""
    point = "".join(map(str, x))
    note(log, point)
    if lines(log).count(point) <= 2:
        raise OSError("busy")
    return value(x)


def slow_for_some(x: np.ndarray) -> float:
    """The later come first."""
    time.sleep(0.002 * float(x[2] + 2 * x[3]))
    return value(x)


def nap(seconds: float, log: str, x: np.ndarray) -> float:
    start = time.monotonic()
    time.sleep(seconds * (0.5 + float(x.sum()) / 8))
    note(log, f"{start} {time.monotonic()}")
    return value(x)


def flaky(x: np.ndarray) -> float:
    """Goes wrong at three points of ten."""
    draw = zlib.crc32(x.tobytes()) / 2**32
    if draw < 0.075:
        raise ValueError("by chance")
    if draw < 0.15:
        return float("nan")
    if draw < 0.225:
        time.sleep(60)
    if draw < 0.3:
        os._exit(1)
    return value(x)


def flaky_status(x: np.ndarray) -> int:
    """How it ends there, given a time limit."""
    draw = zlib.crc32(x.tobytes()) / 2**32
    if draw < 0.15:
        return errors.FAILED
    return errors.TIMEOUT if draw < 0.225 else errors.DIED if draw < 0.3 else errors.OK


def forks(log: str, x: np.ndarray) -> float:
    """Returns twice: in this process, and later, with another value, in a child of it."""
    child = os.fork()
    if child == 0:
        time.sleep(0.01)
        return -1000.0
    note(log, str(child))
    return value(x)


def bears(x: np.ndarray) -> float:
    """Starts a process of its own, and hangs."""
    subprocess.Popen(["sleep", "300"], env={"ANYORDER_BORN": "here"})
    time.sleep(60)
    return 0.0


class Broken:
    """A function that no worker can read."""

    def __call__(self, x: np.ndarray) -> float:
        return 0.0

    def __reduce__(self) -> Any:
        return only_in, (os.getpid(),)
