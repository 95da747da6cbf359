"""The sampler for Optuna: repeats, conditions, states of trials, workers, and copies."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import pytest

optuna = pytest.importorskip("optuna")
from anyorder.integrations.optuna import AnyOrderSampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)


def branches(trial: Any) -> float:
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    layers = trial.suggest_int("layers", 1, 3) if kind != "a" else 0
    widths = [trial.suggest_int(f"width {k}", 1, 4) for k in range(layers)]
    return float(sum(widths) * (1 if kind == "b" else -1))


def points(study: Any) -> list[tuple[Any, ...]]:
    return [tuple(sorted(trial.params.items())) for trial in study.trials]


@pytest.mark.parametrize("seed", range(3))
def test_no_trial_is_repeated_whatever_the_absent_parameters_are(seed: int) -> None:
    study = optuna.create_study(sampler=AnyOrderSampler(seed), direction="maximize")
    study.optimize(branches, n_trials=60)
    later = points(study)[10:]  # the first ones have parameters that are new
    assert len(set(later)) == len(later)


def test_several_samplers_of_one_study_do_not_repeat_each_other() -> None:
    storage = optuna.storages.InMemoryStorage()
    distributions = {f"x{k}": optuna.distributions.IntDistribution(0, 1) for k in range(8)}
    studies = [
        optuna.create_study(
            storage=storage, study_name="one", load_if_exists=True, sampler=AnyOrderSampler(seed)
        )
        for seed in range(4)
    ]
    studies[0].tell(studies[0].ask(distributions), 0.0)
    for _ in range(10):
        trials = [(study, study.ask(distributions)) for study in studies]
        for study, trial in trials:
            study.tell(trial, sum(trial.params.values()))
    found = points(studies[0])
    assert len(set(found)) == len(found)


def test_failed_pruned_and_violating_trials_rank_below() -> None:
    sampler = AnyOrderSampler(0, constraints_func=lambda t: [float(t.params["x"] == 2)])
    study = optuna.create_study(sampler=sampler)

    def f(trial: Any) -> float:
        x = trial.suggest_int("x", 0, 9)
        if x == 0:
            raise RuntimeError
        if x == 1:
            trial.report(-1e9, 0)
            raise optuna.TrialPruned
        return float(x)

    study.optimize(f, n_trials=12, catch=RuntimeError)
    search = sampler._search
    assert search is not None
    study.optimize(f, n_trials=1, catch=RuntimeError)  # learns the last one
    archive = search._optimizer.archive
    assert archive.best_value == -3.0  # although a pruned trial reported less
    assert sorted(archive.codes[archive.column("status") != 0][:, 0].tolist()) == [0, 1, 2]


def test_enqueued_points_are_not_proposed() -> None:
    study = optuna.create_study(sampler=AnyOrderSampler(0))
    distributions = {"x": optuna.distributions.IntDistribution(0, 5)}
    study.tell(study.ask(distributions), 0.0)
    left = sorted(set(range(6)) - {study.trials[0].params["x"]})
    for x in left[1:]:
        study.enqueue_trial({"x": x})
    # as the sampler is asked by a trial that is not from the queue
    trial = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    assert study.sampler.sample_relative(study, trial, distributions) == {"x": left[0]}


@pytest.mark.parametrize("url", ["memory", "sqlite"])
def test_the_same_seed_and_history_give_the_same_point(url: str, tmp_path: Path) -> None:
    where = None if url == "memory" else f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(sampler=AnyOrderSampler(3), storage=where)
    study.optimize(branches, n_trials=20)
    found = []
    for sampler in (AnyOrderSampler(3), pickle.loads(pickle.dumps(study.sampler))):
        copy = optuna.create_study(sampler=sampler)
        copy.add_trials(study.trials)
        trial = copy._storage.get_trial(copy._storage.create_new_trial(copy._study_id))
        space = sampler.infer_relative_search_space(copy, trial)
        found.append(sampler.sample_relative(copy, trial, space))
    assert found[0] == found[1]


def test_infinite_values_and_grids_stay_in_their_ranges() -> None:
    study = optuna.create_study(sampler=AnyOrderSampler(1, levels=5))

    def f(trial: Any) -> float:
        x = trial.suggest_float("x", 1e-5, 1.0, log=True)
        y = trial.suggest_float("y", -1.0, 1.0, step=0.3)
        z = trial.suggest_int("z", 1, 1000, log=True)
        huge = trial.suggest_int("huge", 0, 2**40)
        assert huge >= 0
        return math.inf if z % 3 == 0 else x + y

    study.optimize(f, n_trials=40)
    assert len({round(math.log(t.params["x"]), 6) for t in study.trials[1:]}) <= 5


def test_several_objectives_are_refused() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=AnyOrderSampler())
    with pytest.raises(ValueError, match="2 objectives, expected one"):
        study.ask({"x": optuna.distributions.IntDistribution(0, 5)})
