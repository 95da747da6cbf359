"""The search algorithm for Ray Tune: spaces, first points, outcomes, copies, and a real cluster."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray.tune")
from ray import tune
from ray.tune.search import ConcurrencyLimiter, Searcher
from ray_worker import trainable, value

from anyorder.integrations.ray import AnyOrderSearch

SPACE = {
    "layers": [tune.choice([64, 128, "none"]), 7],
    "optimizer": {
        "name": tune.choice(["sgd", "adam"]),
        "rate": tune.loguniform(1e-4, 1e-1),
        "momentum": tune.quniform(0.1, 0.9, 0.1),
        "decay": tune.qloguniform(1e-3, 1.0, 1e-3),
    },
    "batch": tune.lograndint(8, 257),
    "seed": tune.randint(0, 5),
    "width": tune.qrandint(10, 50, 8),
    "depth": tune.qlograndint(4, 64, 4),
    "shift": tune.uniform(-1.0, 1.0),
    "constant": "c",
}


def run(search: Any, trials: int, first: int = 0) -> list[dict[str, Any]]:
    configs = []
    for k in range(first, first + trials):
        config = search.suggest(f"t{k}")
        configs.append(config)
        search.on_trial_complete(f"t{k}", {"score": value(config)})
    return configs


def test_configurations_are_in_their_domains() -> None:
    search = AnyOrderSearch(SPACE, metric="score", mode="max", seed=0, algorithm="random")
    seen: dict[str, set[Any]] = {}
    for config in run(search, 300):
        assert config["constant"] == "c"
        assert config["layers"][1] == 7
        optimizer = config["optimizer"]
        assert 1e-4 <= optimizer["rate"] <= 1e-1
        assert -1 <= config["shift"] <= 1
        for name in ("batch", "seed", "width", "depth"):
            assert type(config[name]) is int
            seen.setdefault(name, set()).add(config[name])
        for name in ("momentum", "decay"):
            seen.setdefault(name, set()).add(round(optimizer[name], 9))
        seen.setdefault("layer", set()).add(config["layers"][0])
    assert seen["layer"] == {64, 128, "none"}
    assert seen["seed"] == set(range(5))
    assert seen["width"] == {16, 24, 32, 40, 48}
    assert seen["depth"] == set(range(4, 65, 4))
    assert seen["momentum"] == {round(0.1 * k, 9) for k in range(1, 10)}
    assert seen["batch"] <= set(range(8, 257))
    assert seen["decay"] <= {round(k * 1e-3, 9) for k in range(1, 1001)}


def test_it_finds_what_is_good() -> None:
    search = AnyOrderSearch(SPACE, metric="score", mode="max", seed=0, algorithm="ils")
    found = max(map(value, run(search, 300)))
    rng = AnyOrderSearch(SPACE, metric="score", mode="max", seed=0, algorithm="random")
    assert found > max(map(value, run(rng, 300)))


def test_mode_and_space_of_the_tuner() -> None:
    search = AnyOrderSearch(seed=0, algorithm="ils")
    with pytest.raises(RuntimeError, match="no search space has been defined"):
        search.suggest("a")
    assert search.set_search_properties("loss", "min", {"x": tune.randint(0, 30)})
    assert not search.set_search_properties("loss", "min", {"x": tune.randint(0, 3)})
    seen = []
    while (config := search.suggest(f"t{len(seen)}")) != Searcher.FINISHED:
        search.on_trial_complete(f"t{len(seen)}", {"loss": abs(config["x"] - 20)})
        seen.append(config["x"])
    assert sorted(seen) == list(range(30))  # the space has ended
    assert seen.index(20) < 29


def test_first_points_are_evaluated_as_they_are() -> None:
    space = {"a": {"rate": tune.loguniform(1e-4, 1)}, "k": tune.choice([1, True, "one"])}
    points = [{"a": {"rate": 0.00123}, "k": True}, {"a/rate": 0.00123, "k": True}]
    search = AnyOrderSearch(
        space, metric="score", mode="max", seed=0, points_to_evaluate=points, algorithm="ils"
    )
    for k in range(2):  # given twice, evaluated twice
        config = search.suggest(f"t{k}")
        assert config["a"]["rate"] == 0.00123
        assert config["k"] is True
    assert search.suggest("t2")["a"]["rate"] != 0.00123
    rewarded = AnyOrderSearch(
        {"x": tune.randint(0, 3)}, metric="score", mode="max", seed=0,
        points_to_evaluate=[{"x": 0}, {"x": 1}], evaluated_rewards=[3.0, 1.0],
    )  # fmt: skip
    assert rewarded.suggest("a") == {"x": 2}  # the others are known
    assert rewarded.suggest("b") is None
    rewarded.on_trial_complete("a", {"score": 0.0})
    assert rewarded.suggest("c") == Searcher.FINISHED


@pytest.mark.parametrize(
    "outcome",
    [{"score": math.nan}, {"score": math.inf}, {"score": None}, {"other": 9.0}, None, "error"],
)
def test_what_is_no_value_is_a_failure(outcome: Any) -> None:
    search = AnyOrderSearch(
        {"x": tune.randint(0, 8)}, metric="score", mode="max", seed=0, algorithm="ils"
    )
    for k in range(8):
        config = search.suggest(f"t{k}")
        if config["x"] % 2:
            failed = outcome == "error"
            search.on_trial_complete(f"t{k}", None if failed else outcome, error=failed)
        else:
            search.on_trial_complete(f"t{k}", {"score": float(-config["x"])})
    assert search.suggest("end") == Searcher.FINISHED  # nothing is tried again
    search.add_evaluated_point({"x": 3}, 5.0)
    assert search._optimizer.best_value == 5.0


@pytest.mark.parametrize("algorithm", ["auto", "ils"])
def test_a_restored_search_suggests_the_same(algorithm: str, tmp_path: Path) -> None:
    search = AnyOrderSearch(SPACE, metric="score", mode="max", seed=0, algorithm=algorithm)
    run(search, 15)
    search.suggest("open")
    search.save(str(tmp_path / "search.pkl"))
    other = AnyOrderSearch()
    other.restore(str(tmp_path / "search.pkl"))
    for one in (search, other):
        one.on_trial_complete("open", {"score": 0.5})
    assert run(search, 10, 20) == run(other, 10, 20)


def test_a_concurrency_limiter() -> None:
    search = AnyOrderSearch(
        {"x": tune.randint(0, 50)}, metric="score", mode="max", seed=0, algorithm="ils"
    )
    limited = ConcurrencyLimiter(search, max_concurrent=3)
    configs = [limited.suggest(f"t{k}") for k in range(4)]
    assert configs[3] is None
    assert len({config["x"] for config in configs[:3]}) == 3
    limited.on_trial_complete("t0", {"score": 1.0})
    assert limited.suggest("t4")["x"] not in {config["x"] for config in configs[:3]}


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({"a": {"b": tune.grid_search([1, 2])}}, "a/b is grid_search, expected a domain"),
        ({"a": {"b": tune.sample_from(lambda spec: 1)}}, "a/b is sample_from, expected one of"),
        ({"a": tune.randn(0, 1)}, "a is randn, expected one of"),
        ({"a": tune.choice([1, {"b": tune.uniform(0, 1)}])}, "a is a choice of search spaces"),
        ({"a": tune.randint(0, 10**12)}, "a has 1000000000000 values, expected 1 to"),
        ({"a": tune.qrandint(11, 14, 5)}, "a has 0 values"),
        ({"a": 1}, "has no domains"),
    ],
)
def test_spaces_that_are_refused(space: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AnyOrderSearch(space)


def test_other_mistakes() -> None:
    space = {"x": tune.uniform(0, 1)}
    with pytest.raises(ValueError, match="there are 2 metrics, expected one"):
        AnyOrderSearch(space, metric=["a", "b"], mode=["min", "max"])
    with pytest.raises(ValueError, match="mode is 'maximum'"):
        AnyOrderSearch(space, metric="a", mode="maximum")
    with pytest.raises(ValueError, match="there are 2 evaluated_rewards, expected 1"):
        AnyOrderSearch(space, points_to_evaluate=[{"x": 0.5}], evaluated_rewards=[1, 2])
    with pytest.raises(ValueError, match="x is 3, expected a value of"):
        AnyOrderSearch(space, points_to_evaluate=[{"x": 3}])
    with pytest.raises(ValueError, match="a point lacks x"):
        AnyOrderSearch(space, points_to_evaluate=[{"y": 3}])


def test_importing_the_library_does_not_import_ray() -> None:
    code = "import sys, anyorder; raise SystemExit('ray' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_twenty_trials_on_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setenv("RAY_AIR_NEW_OUTPUT", "0")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    here = {"PYTHONPATH": str(Path(__file__).parent)}  # of `trainable`
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": here}
    )
    try:
        tuner = tune.Tuner(
            trainable,
            param_space=SPACE,
            tune_config=tune.TuneConfig(
                metric="score", mode="max", num_samples=20, max_concurrent_trials=2,
                reuse_actors=True, search_alg=AnyOrderSearch(seed=0, algorithm="ils"),
            ),
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
        )  # fmt: skip
        results = tuner.fit()
    finally:
        ray.shutdown()
    assert len(results) == 20
    failed = [one for one in results if one.error is not None]
    assert all(one.config["seed"] == 3 for one in failed)
    best = results.get_best_result()
    assert best.metrics["score"] == value(best.config)
    configs = [str(one.config) for one in results]
    assert len(set(configs)) == 20
    assert np.isfinite(best.metrics["score"])
