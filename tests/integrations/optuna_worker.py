"""A process that works on a study: `python optuna_worker.py STORAGE TRIALS [MARKER]`.

With a marker it hangs in the evaluation of its fifth trial, and makes that file first.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import MaxTrialsCallback
from optuna.trial import TrialState

from anyorder.integrations.optuna import AnyOrderSampler


def open_storage(where: str) -> str | BaseStorage:
    """Return the storage: of a database, or of a journal file."""
    return where if "://" in where else JournalStorage(JournalFileBackend(where))


def work(where: str, trials: int, marker: Path | None) -> None:
    """Evaluate until so many trials are complete."""
    evaluated = 0

    def objective(trial: Any) -> float:
        nonlocal evaluated
        evaluated += 1
        x = [trial.suggest_int(f"x{k}", 0, 15) for k in range(6)]
        if marker is not None and evaluated == 5:
            marker.touch()
            time.sleep(600)
        time.sleep(0.01)
        return float(sum(x) - (x[0] * x[1]) % 7)

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    # the same seed everywhere: without a look at the others they would propose the same points
    study = optuna.create_study(
        storage=open_storage(where), study_name="one", load_if_exists=True,
        sampler=AnyOrderSampler(0), direction="maximize",
    )  # fmt: skip
    enough = MaxTrialsCallback(trials, states=(TrialState.COMPLETE,))
    study.optimize(objective, callbacks=[enough])


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
