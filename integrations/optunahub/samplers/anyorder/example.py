"""A study of a mixed, conditional space: `python example.py`, or from the registry itself."""

from __future__ import annotations

from pathlib import Path

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """Return the value of a model: a tree with a depth, or a line without one."""
    kind = trial.suggest_categorical("kind", ["tree", "linear"])
    depth = trial.suggest_int("depth", 1, 8) if kind == "tree" else 0
    return depth - abs(trial.suggest_float("rate", 1e-3, 1.0, log=True) - 0.1)


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    module = optunahub.load_local_module("samplers/anyorder", registry_root=str(here.parent.parent))
    study = optuna.create_study(direction="maximize", sampler=module.AnyOrderSampler(seed=0))
    study.optimize(objective, n_trials=40)
    print(study.best_trial.params)
