"""maximize and minimize: budgets, what f gets and may return, why a run stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anyorder as ao
from anyorder.proposer import Proposer

FAST = ao.policy.Config(epochs=3, hidden=(4,))
NAMED = ao.Space({"flag": ao.Binary(), "algo": ao.Categorical(["a", "b"]), "k": ao.Integer(2, 5)})
# cache=False: every candidate is an evaluation, so that numbers are easy to foresee
QUICK: dict[str, Any] = {"seed": 0, "algorithm": ao.policy.Policy(FAST), "cache": False}


def test_named_spaces_give_dicts() -> None:
    seen = []

    def f(point: dict[str, Any]) -> float:
        seen.append(dict(point))
        point["k"] = None  # what f does to its argument is its own affair
        return seen[-1]["k"] + (seen[-1]["algo"] == "b")

    result = ao.maximize(f, NAMED, 57, **QUICK)
    assert len(seen) == 57
    assert result.best_value == 6.0
    assert (result.best["algo"], result.best["k"]) == ("b", 5)
    assert result.history.points == seen
    np.testing.assert_array_equal(
        result.history.values, [p["k"] + (p["algo"] == "b") for p in seen]
    )


def test_nameless_spaces_give_integer_vectors() -> None:
    def f(point: np.ndarray) -> float:
        assert point.dtype == np.int64
        assert point.shape == (5,)
        value = float(point.sum())
        point[:] = 9
        return value

    result = ao.maximize(f, ao.Space.categorical(5, 3), 40, **QUICK)
    assert result.history.values.max() == result.best_value == result.best.sum()
    assert result.history.points.max() <= 2


@pytest.mark.parametrize("space", [NAMED, ao.Space.binary(4)])
def test_vectorized_gets_the_batch_and_gives_the_same(space: ao.Space) -> None:
    def value(point: Any) -> float:
        return float(np.sum(list(point.values())[0::2] if isinstance(point, dict) else point))

    one = ao.maximize(value, space, 35, **QUICK)
    sizes = []

    def batch(points: Any) -> list[float]:
        assert isinstance(points, list if space.named else np.ndarray)
        sizes.append(len(points))
        return [value(point) for point in points]

    many = ao.maximize(batch, space, 35, vectorized=True, **QUICK)
    assert sizes == [10, 10, 10, 5]
    np.testing.assert_array_equal(one.history.codes, many.history.codes)


def test_minimize_is_maximize_of_the_negative() -> None:
    space = ao.Space.binary(6)
    low = ao.minimize(lambda x: float(x.sum()), space, 60, **QUICK)
    high = ao.maximize(lambda x: -float(x.sum()), space, 60, **QUICK)
    assert low.best_value == -high.best_value
    np.testing.assert_array_equal(low.history.codes, high.history.codes)
    np.testing.assert_array_equal(low.history.best, np.minimum.accumulate(low.history.values))


def test_stops_at_the_target() -> None:
    result = ao.maximize(lambda x: float(x.sum()), ao.Space.binary(8), 5_000, target=7, **QUICK)
    assert result.stop_reason == "target"
    assert result.best_value >= 7
    assert len(result.history) < 5_000
    assert (
        ao.minimize(lambda x: 1.0, ao.Space.binary(2), 100, target=1, **QUICK).stop_reason
        == "target"
    )


def test_stops_when_the_callback_says_so() -> None:
    told = []
    result = ao.maximize(
        lambda x: 0.0, ao.Space.binary(3), 100, **QUICK,
        callback=lambda optimizer: told.append(optimizer.told) or len(told) == 3,
    )  # fmt: skip
    assert result.stop_reason == "callback"
    assert told == [10, 20, 30]


def test_ctrl_c_returns_what_was_found() -> None:
    calls = []

    def f(point: np.ndarray) -> float:
        calls.append(1)
        if len(calls) == 25:
            raise KeyboardInterrupt
        return float(point.sum())

    result = ao.maximize(f, ao.Space.binary(5), 100, **QUICK)
    assert result.stop_reason == "interrupted"
    assert len(result.history) == 24  # every evaluation that was finished
    assert result.best_value == result.history.values.max()


def test_ctrl_c_before_anything_is_found(tmp_path: Path) -> None:
    def f(point: np.ndarray) -> float:
        raise KeyboardInterrupt

    result = ao.maximize(f, ao.Space.binary(5), 100, **QUICK)
    assert (result.stop_reason, result.best, len(result.history)) == ("interrupted", None, 0)
    result.plot(tmp_path / "empty.png")


def test_ctrl_c_while_the_policy_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Proposer.draw

    def interrupted(self: Proposer, count: int) -> Any:
        if len(self.archive) == 30:
            raise KeyboardInterrupt
        return draw(self, count)

    monkeypatch.setattr(Proposer, "draw", interrupted)
    result = ao.maximize(lambda x: float(x.sum()), ao.Space.binary(5), 100, **QUICK)
    assert (result.stop_reason, len(result.history)) == ("interrupted", 30)


def test_history_says_where_the_policy_started_afresh() -> None:
    config = FAST.replace(learning_rate=0.05)
    options = QUICK | {"algorithm": ao.policy.Policy(config)}
    result = ao.maximize(lambda x: float(x.sum()), ao.Space.binary(6), 2_000, **options)
    assert result.history.restarts
    for told in result.history.restarts:
        assert told % 10 == 0
        after = result.history.codes[told : told + 10]
        assert (after == after[0]).mean() < 0.995  # diverse again
    assert list(result.history.generations[[0, 9, 10, 1_999]]) == [0, 0, 1, 199]


def test_the_same_seed_gives_the_same_result_and_none_draws_one() -> None:
    problem = ao.problems.nk(12, 2, 0)
    runs = [ao.maximize(problem, problem.space, 100, **QUICK) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].history.values, runs[1].history.values)
    free = ao.maximize(problem, problem.space, 100, algorithm=ao.policy.Policy(FAST))
    again = ao.maximize(
        problem, problem.space, 100, algorithm=ao.policy.Policy(FAST), seed=free.seed
    )
    np.testing.assert_array_equal(free.history.values, again.history.values)


def test_a_known_graph_reaches_the_policy() -> None:
    problem = ao.problems.nk(12, 2, 0)
    runs = [
        ao.maximize(
            problem,
            problem.space,
            200,
            **QUICK | {"algorithm": ao.policy.Policy(FAST, graph=graph)},
        ).history.values
        for graph in (None, problem.interaction_graph())
    ]
    assert not np.array_equal(*runs)


def test_plot_writes_a_picture(tmp_path: Path) -> None:
    result = ao.maximize(lambda x: float(x.sum()), ao.Space.binary(6), 50, **QUICK)
    result.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert result.plot().axes[0].get_xlabel() == "evaluations"
    flat = ao.maximize(lambda x: -np.inf, ao.Space.binary(2), 20, **QUICK)
    flat.plot(tmp_path / "flat.png")
    assert "50 evaluations" in repr(result)


@pytest.mark.parametrize(
    ("f", "options", "error", "message"),
    [
        (3, {}, TypeError, "f is 3, expected a function"),
        (len, {"budget": 0}, ValueError, "budget is 0"),
        (len, {"budget": -5}, ValueError, "budget is -5"),
        (len, {"budget": 10.5}, TypeError, "budget is 10.5"),
        (len, {"algorithm": "policy:papper"}, ValueError, "unknown preset 'papper'"),
        (len, {"algorithm": "policy+engine=cude"}, ValueError, "unknown engine 'cude'"),
        (len, {"target": "high"}, TypeError, "target is 'high'"),
        (len, {"target": float("nan")}, ValueError, "target is nan"),
        (lambda x: float("nan"), {}, ValueError, r"returned NaN for array\(\["),
        (lambda x: None, {}, ValueError, "returned None for array"),
        (lambda x: "good", {}, TypeError, "what f returned is 'good'"),
        (
            lambda x: [1.0],
            {"vectorized": True, "algorithm": "policy"},
            ValueError,
            "1 values, expected 10",
        ),
        (lambda x: 10**400, {}, ValueError, "too large for a float"),
        (len, {"progress": "yes"}, ValueError, "progress is 'yes'"),
        (len, {"algorithm": "policy+engine=['cpu']"}, ValueError, "unknown engine"),
        (len, {"cache": "no"}, TypeError, "cache is 'no', expected True or False"),
        (len, {"vectorized": "torch"}, TypeError, "vectorized is 'torch', expected True or False"),
    ],
)
def test_bad_input(f: Any, options: dict[str, Any], error: type, message: str) -> None:
    arguments = {"budget": 20, "seed": 0, "cache": False} | options
    with pytest.raises(error, match=message):
        ao.maximize(f, ao.Space.binary(4), **arguments)
    with pytest.raises(TypeError, match=r"unexpected arguments: sed \(did you mean 'seed'\?\)"):
        ao.minimize(len, ao.Space.binary(4), 20, sed=3)
    with pytest.raises(ValueError, match="population is 1, expected an integer of at least 2"):
        ao.policy.Config(population=1)


def test_a_run_that_stops_when_collapsed_keeps_its_policy() -> None:
    config = FAST.replace(learning_rate=0.05)
    options = QUICK | {"algorithm": ao.policy.Policy(config, stop_collapsed=True)}
    result = ao.maximize(lambda x: float(x.sum()), ao.Space.binary(6), 2_000, **options)
    assert result.stop_reason == "collapsed"
    assert result.history.restarts == ()
    last = result.history.codes[-10:]
    assert (last == last[0]).mean() > 0.9


def test_a_misspelt_argument_is_named_with_the_right_one() -> None:
    for call in (ao.maximize, ao.minimize):
        with pytest.raises(TypeError, match=r"buget \(did you mean 'budget'\?\)"):
            call(len, ao.Space.binary(3), buget=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"sed \(did you mean 'seed'\?\)"):
        ao.Optimizer(ao.Space.binary(3), sed=5)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["config", "engine", "graph", "stop_collapsed"])
def test_what_only_the_policy_has_is_given_to_the_policy(name: str) -> None:
    space = ao.Space.binary(3)
    expected = rf"{name} \(of the policy: algorithm=anyorder.policy.Policy\({name}=...\)\)"
    for algorithm in ("ils", "policy"):
        options: dict[str, Any] = {"algorithm": algorithm, name: "nonsense"}
        for call in (ao.maximize, ao.minimize):
            with pytest.raises(TypeError, match=expected):
                call(len, space, 5, **options)
        with pytest.raises(TypeError, match=expected):
            ao.Optimizer(space, **options)
    with pytest.raises(TypeError, match=expected):
        ao.resume("study.db", len, **{name: "nonsense"})


@pytest.mark.parametrize(
    ("f", "space", "said"),
    [
        (lambda a, b: 0.0, ao.Space({"a": ao.Binary()}), "a dict of all variables"),
        (lambda a, b: 0.0, ao.Space.binary(2), "a vector of all variables"),
        (lambda: 0.0, ao.Space.binary(2), "a vector of all variables"),
        (lambda x: 0.0, {"a": [1, 2]}, r"such as anyorder.Space\(\{'a': anyorder.Categorical"),
    ],
)  # fmt: skip
def test_what_f_gets_and_what_a_space_is(f: Any, space: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        ao.maximize(f, space, 5)


def test_what_is_a_number_and_a_count() -> None:
    space = ao.Space.binary(4)
    for one in (np.ones(1), np.ones((1, 1)), np.float32(1), True):
        assert ao.maximize(lambda x, one=one: one, space, 1e1, progress=False).best_value == 1
    with pytest.raises(TypeError, match=r"what f returned is .*1j"):
        ao.maximize(lambda x: np.complex128(1 + 1j), space, 5, progress=False)
    with pytest.raises(TypeError, match="study is 3, expected the path of a file"):
        ao.maximize(len, space, 5, study=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="study is 3, expected the path of a file"):
        ao.resume(3, len)  # type: ignore[arg-type]


def test_a_result_shows_its_best_point() -> None:
    space = ao.Space({"size": ao.Integer(1, 9)})
    result = ao.maximize(lambda point: point["size"], space, 20, seed=0, progress=False)
    assert "best value 9 at {'size': 9}" in repr(result)
    failed = ao.maximize(lambda point: None, space, 3, on_failure="worst", progress=False)
    assert "no value" in repr(failed)
