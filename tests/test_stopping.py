"""Rules that stop runs: the library's, a user's own, and runs that have no budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from functions import QUICK, SPACE, value

import anyorder as ao
from anyorder.cli import main
from anyorder.run.exhaustion import _FEW
from anyorder.run.study.reading import load
from anyorder.strategies.policy.search import PolicySearch

FAST = ao.policy.Config(epochs=2, hidden=(3,))


def zero(x: np.ndarray) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("rule", "option", "f"),
    [
        (ao.stopping.Target(6.0), {"target": 6.0}, value),
        (ao.stopping.Patience(20), {"patience": 20}, zero),
        (ao.stopping.Seconds(1e-9), {"max_seconds": 1e-9}, value),
    ],
)
def test_a_rule_is_its_option(rule: Any, option: dict[str, Any], f: Callable[..., float]) -> None:
    options: dict[str, Any] = {"algorithm": "random", "seed": 0, "cache": False}
    named = ao.maximize(f, SPACE, 1_000, **options, **option)
    given = ao.maximize(f, SPACE, 1_000, **options, stop=rule)
    listed = ao.maximize(f, SPACE, 1_000, **options, stop=[lambda progress: None, rule])
    assert named.stop_reason == given.stop_reason == listed.stop_reason
    assert named.stop_reason == next(iter(option)).replace("max_seconds", "time")
    assert named.evaluations == given.evaluations == listed.evaluations < 1_000


@pytest.mark.parametrize("call", [ao.maximize, ao.minimize])
def test_a_rule_of_ones_own_sees_the_run(call: Any) -> None:
    seen: list[tuple[Any, ...]] = []

    def rule(progress: ao.stopping.Progress) -> str | None:
        seen.append((progress.evaluations, progress.failures, progress.best_value))
        assert progress.direction == call.__name__
        assert progress.seconds >= 0
        return "had enough" if progress.evaluations == 7 else None

    def f(x: np.ndarray) -> float:
        return math.nan if x[0] else value(x)

    result = call(
        f, SPACE, 50, stop=rule, on_failure="worst", algorithm="random", seed=1, cache=False
    )
    assert (result.stop_reason, result.evaluations) == ("had enough", 7)
    assert seen[0] == (0, 0, None)
    assert seen[-1] == (7, result.failures, result.best_value)
    assert 0 < result.failures < 7


def test_no_value_reaches_no_target() -> None:
    result = ao.minimize(
        lambda x: math.inf, SPACE, 5, target=math.inf, algorithm="random", cache=False, seed=0
    )
    assert (result.stop_reason, result.evaluations) == ("target", 1)


def test_a_study_that_has_reached_the_target_evaluates_nothing(tmp_path: Path) -> None:
    study = tmp_path / "run.db"
    first = ao.maximize(value, SPACE, 500, target=6.0, study=study, **QUICK)

    def never(x: np.ndarray) -> float:
        raise AssertionError

    again = ao.resume(study, never, target=6.0)
    assert again.stop_reason == first.stop_reason == "target"
    assert again.evaluations == first.evaluations


def test_a_converged_policy_stops() -> None:
    config = FAST.replace(learning_rate=0.3, epochs=10)
    space = ao.Space.binary(8)
    policy = PolicySearch(space, 0, config, stop_collapsed=True)
    result = ao.maximize(
        lambda x: float(x.sum()), space, 5_000, algorithm=policy, cache=False,
        stop=ao.stopping.Converged(),
    )  # fmt: skip
    assert result.stop_reason == "converged"
    assert result.evaluations < 5_000


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3, "stop is 3, expected a rule"),
        ([zero, "time"], r"stop\[1\] is 'time', expected a rule"),
        (ao.stopping.Target, "stop is <class 'anyorder.run.stopping.Target'>, expected a rule"),
    ],
)
def test_what_is_not_a_rule_is_refused(given: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        ao.maximize(value, SPACE, 5, stop=given)


@pytest.mark.parametrize("returned", [True, "", 3])
def test_a_rule_returns_a_reason(returned: Any) -> None:
    with pytest.raises(TypeError, match=f"returned {returned!r}, expected a reason as text"):
        ao.maximize(value, SPACE, 5, stop=lambda progress: returned)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ao.stopping.Target(math.nan), "target is nan, expected a number"),
        (lambda: ao.stopping.Patience(0), "patience is 0, expected"),
        (lambda: ao.stopping.Seconds(-1), "seconds is -1, expected"),
    ],
)
def test_rules_check_their_arguments(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


# --- without a budget -----------------------------------------------------------------------------


def test_without_a_budget_something_else_ends_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TypeError, match=r"budget is missing, .*; or max_seconds="):
        ao.maximize(value, SPACE)
    with pytest.raises(TypeError, match="budget is missing"):
        ao.maximize(value, SPACE, target=1e9)
    study = tmp_path / "run.db"
    options: dict[str, Any] = {"algorithm": "tabu", "seed": 0, "cache": False}
    first = ao.maximize(zero, SPACE, patience=30, study=study, progress=True, **options)
    assert (first.stop_reason, first.evaluations) == ("patience", 31)
    assert "31" in capsys.readouterr().err
    second = ao.resume(study, zero, stop=lambda p: "40" if p.evaluations == 40 else None)
    assert (second.stop_reason, second.evaluations) == ("40", 40)
    with pytest.raises(TypeError, match="budget is missing"):
        ao.resume(study, zero)
    third = ao.resume(study, zero, 50)
    assert (third.stop_reason, third.evaluations) == ("budget", 50)
    timed = ao.maximize(value, SPACE, max_seconds=0.1, **options)
    assert timed.stop_reason == "time"


def test_a_problem_file_without_a_budget(tmp_path: Path) -> None:
    file, study = tmp_path / "problem.toml", tmp_path / "run.db"
    text = 'direction = "minimize"\n{}[space]\nx = [3, 1, 2]\n'
    text += '[command]\narguments = ["echo", "{{x}}"]\n'
    file.write_text(text.format("max_seconds = 60\n"), encoding="utf-8")
    done = CliRunner().invoke(main, ["run", str(file), "--study", str(study)])
    assert done.exit_code == 0, done.output
    assert "stopped by exhausted" in done.output
    shown = CliRunner().invoke(main, ["show", str(study)])
    assert shown.exit_code == 0, shown.output
    assert "3, without a budget" in shown.output
    file.write_text(text.format(""), encoding="utf-8")
    assert "budget is missing" in CliRunner().invoke(main, ["run", str(file)]).output
    given = CliRunner().invoke(main, ["run", str(file), "--max-seconds", "60"])
    assert given.exit_code == 0, given.output


# --- many runs ------------------------------------------------------------------------------------


def test_many_runs_have_the_same_rules() -> None:
    class Counts:
        """Keeps a state, of which each run has its own."""

        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, progress: ao.stopping.Progress) -> str | None:
            self.calls += 1
            assert progress.evaluations == 10 * self.calls
            return "three" if self.calls == 3 and progress.best_value == 0.0 else None

    options: dict[str, Any] = {"runs": 3, "budget": 100, "space": SPACE, "config": FAST}
    runs = ao.policy.solve_many(zero, stop=Counts(), **options)
    assert [(run.stop_reason, run.evaluations) for run in runs] == [("three", 30)] * 3
    runs = ao.policy.solve_many(zero, patience=15, **options)
    assert [(run.stop_reason, run.evaluations) for run in runs] == [("patience", 20)] * 3
    runs = ao.policy.solve_many(zero, max_seconds=1e-9, **options)
    assert [(run.stop_reason, run.evaluations) for run in runs] == [("time", 10)] * 3
    assert np.isfinite(runs.curves).all()
    with pytest.raises(TypeError, match="stop is 3, expected a rule"):
        ao.policy.solve_many(zero, stop=3, **options)


# --- points at a time -----------------------------------------------------------------------------


class Sizes:
    """A vectorised function that notes how many points it gets."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, points: np.ndarray) -> list[float]:
        self.sizes.append(len(points))
        return [value(x) for x in points]


@pytest.mark.parametrize("algorithm", ["auto", "ils", "tabu", "umda", "policy"])
def test_points_at_a_time(algorithm: str) -> None:
    f, options = Sizes(), {"algorithm": algorithm, "seed": 0, "cache": False}
    ao.maximize(f, ao.Space.binary(30), 60, vectorized=True, batch=7, **options)
    assert set(f.sizes) <= {7, 60 % 7} | set(range(1, 7))
    assert np.mean(f.sizes) > 4
    f = Sizes()
    ao.maximize(f, ao.Space.binary(30), 60, vectorized=True, **options)
    assert np.mean(f.sizes) > 4


def test_a_batch_makes_a_run_independent_of_workers(tmp_path: Path) -> None:
    options: dict[str, Any] = {"algorithm": "tabu", "seed": 0, "batch": 5}
    one = ao.maximize(value, SPACE, 30, **options)
    two = ao.maximize(value, SPACE, 30, workers=2, **options)
    np.testing.assert_array_equal(one.history.codes, two.history.codes)


def test_points_at_a_time_are_a_number() -> None:
    with pytest.raises(ValueError, match="batch is 0, expected"):
        ao.maximize(value, SPACE, 5, batch=0)
    with pytest.raises(ValueError, match="batch is 4 with asynchronous=True"):
        ao.maximize(value, SPACE, 5, batch=4, workers=2, asynchronous=True)


@pytest.mark.parametrize("on_failure", ["raise", "worst", "skip"])
def test_a_wrong_number_of_values_is_an_error(on_failure: Any) -> None:
    with pytest.raises(ValueError, match="f returned 3 values, expected 7: one for each"):
        ao.maximize(
            lambda points: [0.0] * 3, SPACE, 60, vectorized=True, batch=7, on_failure=on_failure
        )


# --- exhausted ------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["rls", "ils", "annealing", "auto", "tabu", "umda", "p3"])
def test_exhausted_means_the_same_for_all(algorithm: str, tmp_path: Path) -> None:
    space = ao.Space({"a": ao.Binary(), "b": ao.Integer(0, 3), "c": ao.Binary(when={"a": True})})
    assert space.points <= _FEW
    options: dict[str, Any] = {"seed": 0, "algorithm": algorithm}

    def f(point: dict[str, Any]) -> float:
        return point["a"] + point["b"]

    known = ao.maximize(f, space, 60, **options)
    assert (known.stop_reason, known.evaluations) == ("exhausted", space.points)
    again = ao.maximize(f, space, 60, cache=False, **options)
    assert (again.stop_reason, again.evaluations) == ("budget", 60)
    allowed = ao.maximize(f, space, 60, constraint=lambda p: p["b"] < 2, **options)
    assert (allowed.stop_reason, allowed.evaluations) == ("exhausted", space.points / 2)


@pytest.mark.parametrize("options", [{"algorithm": "rls"}, {"algorithm": "auto", "cache": False}])
def test_points_that_the_run_adds_are_repeated(
    options: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = ao.maximize(value, ao.Space.binary(3), 12, seed=0, **options)
    for budget in range(1, 13):
        last = ao.maximize(
            value, ao.Space.binary(3), budget, seed=0, study=tmp_path / "run.db", **options
        )
    assert (last.history.values == whole.history.values).all()
    assert (load(tmp_path / "run.db").codes == whole.history.codes).all()
    assert "proposed differently" not in caplog.text
