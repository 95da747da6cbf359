"""Ten timings of what users wait for: import, ask and tell, the session, studies.

What compiles is compiled in `setup_cache` or `setup`, which are not timed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import anyorder as ao


def ones(point: Any) -> float:
    return float(point.sum())


class Import:
    """A process that imports the library, beside one that imports NumPy only."""

    def time_import(self) -> None:
        subprocess.run([sys.executable, "-c", "import anyorder"], check=True)

    def time_import_numpy(self) -> None:
        subprocess.run([sys.executable, "-c", "import numpy"], check=True)


class AskTell:
    """Ten candidates asked for and told, in the middle of a run."""

    params = (["auto", "ils"], [100, 1_000])
    param_names = ("algorithm", "variables")
    number, warmup_time = 1, 0

    def setup(self, algorithm: str, variables: int) -> None:
        self.optimizer = ao.Optimizer(ao.Space.binary(variables), seed=0, algorithm=algorithm)
        for _ in range(30):
            self.time_ask_tell(algorithm, variables)

    def time_ask_tell(self, algorithm: str, variables: int) -> None:
        for _ in range(10):
            points = self.optimizer.ask(1)
            self.optimizer.tell(points, [float(np.sum(point)) for point in points])


class Session:
    """A run of 1,000 evaluations that cost nothing, by random search on 64 bits."""

    def time_session(self) -> None:
        ao.maximize(ones, ao.Space.binary(64), 1_000, seed=0, algorithm="random", progress=False)

    def time_session_with_study(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ao.maximize(
                ones, ao.Space.binary(64), 1_000, seed=0, algorithm="random", progress=False,
                study=Path(folder) / "run.db",
            )  # fmt: skip


class Study:
    """A study of 100,000 evaluations is opened, and continued by one evaluation."""

    timeout, number, repeat, warmup_time = 600, 1, 3, 0

    def setup_cache(self) -> str:
        path = str(Path("large.db").resolve())
        ao.maximize(
            ones, ao.Space.binary(64), 100_000, seed=0, algorithm="random", progress=False,
            study=path,
        )  # fmt: skip
        return path

    def setup(self, path: str) -> None:
        self.budget = ao.load(path).values.size + 1

    def time_load(self, path: str) -> None:
        ao.load(path)

    def time_resume(self, path: str) -> None:
        ao.resume(path, ones, budget=self.budget, progress=False)
