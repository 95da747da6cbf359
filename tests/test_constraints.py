"""Constraints teach: refused points are ranked and repaired; f may say that it is infeasible."""

from __future__ import annotations

import functools
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import assert_same
from functions import FAST, QUICK, SPACE, value

import anyorder as ao
from anyorder import optimizer
from anyorder.archive import Archive
from anyorder.archive.objectives import read_objectives
from anyorder.constraints.effects import Effects
from anyorder.constraints.feasibility import Feasibility
from anyorder.errors import INFEASIBLE, OK, REJECTED, measure, violation_in
from anyorder.run import exhaustion
from anyorder.strategies.base import Answer, score

WEIGHTS = np.random.default_rng(0).random(40)
BITS = ao.Space.binary(40)


def weight(x: Any) -> float:
    return float(WEIGHTS @ x)


def excess(x: Any) -> int:
    """At most ten ones."""
    return int(x.sum()) - 10


def five(x: Any) -> bool:
    """Exactly five ones."""
    return bool(x.sum() == 5)


# --- what a constraint may return -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (True, 0.0), (np.True_, 0.0), (False, np.inf), (0, 0.0), (-3.5, 0.0), (2, 2.0),
        (np.float32(0.5), 0.5), ((), 0.0), ((1.5, -1, 2), 3.5), ([True, False, False], 2.0),
        (np.array([-1, 4]), 4.0), (np.array([True, False]), 1.0), (np.array(3), 3.0),
        ((True, 0.5), 0.5), (np.inf, np.inf),
    ],
)  # fmt: skip
def test_results_are_violations(result: Any, expected: float) -> None:
    assert measure(result) == expected


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (None, r"constraint .*bad returned None \(is a `return` missing\?\).* at \["),
        ("yes", r"constraint .*bad returned 'yes', expected a bool, a number, or several"),
        (float("nan"), "constraint .*bad returned NaN"),
        ((True, None), "constraint .*bad returned None"),
    ],
)
def test_other_results_are_refused_by_name(result: Any, said: str) -> None:
    def bad(x: Any) -> Any:
        return result

    with pytest.raises((TypeError, ValueError), match=said):
        ao.maximize(value, SPACE, 10, constraint=bad, **QUICK)


def test_an_exception_in_a_constraint_names_the_point() -> None:
    def broken(x: Any) -> Any:
        raise KeyError("no such part")

    with pytest.raises(KeyError) as raised:
        ao.maximize(value, SPACE, 10, constraint=broken, **QUICK)
    (note,) = raised.value.__notes__
    assert note.startswith("in constraint ")
    assert "broken at [" in note


def test_a_constraint_that_refuses_everything_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (exhaustion, optimizer):
        monkeypatch.setattr(module, "IDLE_CANDIDATES", 50)
        monkeypatch.setattr(module, "IDLE_BATCHES", 5)

    def never(x: Any) -> bool:
        return False

    def far(x: Any) -> float:
        return 3.0 + float(x.sum())

    for constraint, said in ((never, "many or few of each"), (far, "the least violation was 3")):
        caplog.clear()
        result = ao.maximize(value, SPACE, 10, constraint=constraint, **QUICK)
        assert (result.stop_reason, result.evaluations, result.best) == ("exhausted", 0, None)
        assert f"{constraint.__name__} refused every one of" in caplog.text
        assert said in caplog.text
        with pytest.raises(ValueError, match="refused every one of"):
            ao.Optimizer(SPACE, 0, algorithm=ao.policy.Policy(FAST), constraint=constraint).ask()


def test_it_is_named_where_the_strategy_knows_every_point(caplog: pytest.LogCaptureFixture) -> None:
    def never(x: Any) -> bool:
        return False

    result = ao.maximize(value, ao.Space.binary(4), 10, seed=0, constraint=never, algorithm="auto")
    assert result.stop_reason == "exhausted"
    assert "never refused every one of" in caplog.text


# --- quality --------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["policy", "ils", "delta", "auto"])
def test_at_most_ten_of_forty(algorithm: str) -> None:
    result = ao.maximize(weight, BITS, 500, seed=0, algorithm=algorithm, constraint=excess)
    optimum = np.sort(WEIGHTS)[-10:].sum()
    assert result.best_value > 0.98 * optimum
    if algorithm in ("policy", "ils"):
        assert result.best_value == pytest.approx(optimum)
    assert result.best.sum() <= 10
    assert result.evaluations == 500


FEW = ("random", "policy", "ils", "delta", "umda")
EVERY = [
    name if name in FEW else pytest.param(name, marks=pytest.mark.slow)
    for name in ao.strategies.names()
]


@pytest.mark.parametrize("algorithm", EVERY)
def test_every_strategy_gets_answers_where_little_is_allowed(algorithm: str) -> None:
    """Exactly five ones, said by a bool: one point in 1.7 million."""
    result = ao.maximize(weight, BITS, 120, seed=0, algorithm=algorithm, constraint=five)
    assert (result.stop_reason, result.evaluations) == ("budget", 120)
    paid = ~result.history.cached
    assert (result.history.codes[paid].sum(axis=1) == 5).all()
    assert len(np.unique(result.history.codes[paid], axis=0)) == 120
    # five random weights have a mean of 2.5 and a standard deviation of .6
    assert result.best_value > 3.8


@pytest.mark.parametrize("constraint", [five, lambda x: abs(float(x.sum()) - 5)])
def test_repairs_go_on_where_all_near_points_are_known(constraint: Any) -> None:
    """The 5 x 11 exchanges of a local optimum are soon known; there are 4,368 allowed points."""
    space = ao.Space.binary(16)
    f = functools.partial(np.dot, WEIGHTS[:16])
    result = ao.maximize(f, space, 200, seed=0, algorithm="rls", constraint=constraint)
    assert (result.stop_reason, result.evaluations) == ("budget", 200)
    assert len(result.history.values) < 600  # hardly any of the refused proposals is in vain


@pytest.mark.parametrize("algorithm", ["auto", "ils", "policy"])
def test_a_sum_of_many_values_is_met_exactly(algorithm: str) -> None:
    """One point in some thousands, which a random change of one variable hardly ever meets."""
    space = ao.Space({f"v{k}": ao.Integer(0, 1000) for k in range(6)})
    calls = 0

    def missed(point: Any) -> int:
        nonlocal calls
        calls += 1
        return abs(sum(point.values()) - 3000)

    def f(point: Any) -> float:
        return -float(sum((v - 200 * k) ** 2 for k, v in enumerate(point.values())))

    result = ao.maximize(f, space, 100, seed=0, algorithm=algorithm, constraint=missed)
    assert (result.stop_reason, result.evaluations) == ("budget", 100)
    assert sum(result.best.values()) == 3000
    assert calls < 100 * 100
    result = ao.maximize(f, space, 1, start=dict.fromkeys(space.names, 0), constraint=missed,
                         seed=0, algorithm=algorithm)  # fmt: skip
    assert sum(result.best.values()) == 3000


def test_other_variables_and_several_constraints() -> None:
    space = ao.Space(
        {
            "mode": ao.Categorical(["a", "b", "c", "d"]),
            "levels": ao.Integer(1, 1000),
            "parts": ao.Integer(1, 30),
            "on": ao.Binary(),
        }
    )

    def constraint(point: dict[str, Any]) -> tuple[Any, ...]:
        return (point["levels"] * point["parts"] - 600, point["mode"] != "a", not point["on"])

    def f(point: dict[str, Any]) -> float:
        return point["levels"] - 10.0 * point["parts"]

    result = ao.maximize(f, space, 200, seed=0, algorithm="ils", constraint=constraint)
    best = result.best
    assert best["levels"] * best["parts"] <= 600
    assert best["mode"] != "a"
    assert not best["on"]
    assert result.best_value > 500


def test_starting_points_are_repaired() -> None:
    result = ao.maximize(
        weight, BITS, 5, constraint=excess, start=np.ones(40, int), algorithm="rls", seed=0
    )
    history = result.history
    assert history.statuses[0] == REJECTED
    assert history.statuses[1] == OK
    assert history.codes[1].sum() == 10


def test_data_that_are_refused_have_no_value() -> None:
    points = np.stack([np.ones(40, int), np.arange(40) < 9])
    result = ao.maximize(
        weight, BITS, 5, constraint=excess, data=(points, [99.0, 1.0]), algorithm="rls", seed=0
    )
    assert ao.STATUSES[result.history.statuses[0]] == "rejected"
    assert result.best.sum() <= 10


# --- learning -------------------------------------------------------------------------------------


def test_points_are_ranked_feasible_first_then_by_violation() -> None:
    x = np.zeros(3, np.int32)
    ranked = [
        Answer(0, x, 1.0), Answer(0, x, -1e300), Answer(0, x, np.nan, REJECTED, True, 1e-9),
        Answer(0, x, np.nan, INFEASIBLE, False, 1.0), Answer(0, x, np.nan, REJECTED, True, 1e6),
        Answer(0, x, np.nan, REJECTED, True, np.inf),
    ]  # fmt: skip
    scores = [score(answer) for answer in ranked]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)
    assert score(Answer(0, x, np.nan, REJECTED)) == -np.inf


@pytest.mark.parametrize("algorithm", ["policy", "rls", "hill-climber", "umda", "annealing"])
def test_infeasible_teaches_by_its_violation(algorithm: str) -> None:
    """From 20 ones on average down to 10, by what only f can find out."""

    def f(x: Any) -> float:
        if excess(x) > 0:
            raise ao.Infeasible("too many", violation=excess(x))
        return weight(x)

    result = ao.maximize(f, BITS, 400, seed=0, algorithm=algorithm, on_failure="worst")
    assert result.best is not None  # of uniform points one in 900 is feasible
    assert result.best_value > 5
    assert 0 < result.failures < result.evaluations
    assert "violation " in next(iter(result.history.errors.values()))


def test_infeasible_says_by_how_much() -> None:
    assert str(ao.Infeasible("too hot")) == "too hot"
    assert str(ao.Infeasible()) == ""
    error = pickle.loads(pickle.dumps(ao.Infeasible("too hot", violation=2)))
    assert (str(error), error.violation) == ("too hot", 2.0)
    assert violation_in(error.reason("too hot: 3")) == 2.0
    assert np.isnan(violation_in("violation of the rules"))
    for bad in (0, -1, float("nan"), "much"):
        with pytest.raises((TypeError, ValueError), match="violation is"):
            ao.Infeasible(violation=bad)  # type: ignore[arg-type]


def test_effects_are_those_of_a_linear_function() -> None:
    rng, space = np.random.default_rng(0), ao.Space.categorical(6, 3)
    table = rng.normal(size=(6, 3))
    archive = Archive(space)
    codes = rng.integers(0, 3, (300, 6)).astype(np.int32)
    for key, row in zip(archive.packing.pack(codes), codes, strict=True):
        archive.add(key, float(table[np.arange(6), row].sum()))
    best, gains = Effects(archive).changes(np.zeros(6, np.int32)) or (None, None)
    np.testing.assert_array_equal(best, 1 + table[:, 1:].argmax(axis=1))
    np.testing.assert_array_equal(gains > 0, table[:, 1:].max(axis=1) > table[:, 0])


def test_effects_do_not_depend_on_when_they_are_fitted() -> None:
    """A run that is resumed fits them later, when its archive has more answers."""
    rng, space = np.random.default_rng(0), ao.Space.categorical(6, 3)
    codes = rng.integers(0, 3, (14, 6)).astype(np.int32)
    values = [*rng.normal(size=(13, 2)).tolist(), [1e6, -1e9]]
    objectives = read_objectives(("max", "min"), None)
    archive = Archive(space, objectives=objectives)
    early, late = Effects(archive), Effects(archive)
    for k, key in enumerate(archive.packing.pack(codes)):
        archive.add(key, values[k][0], values=tuple(values[k]))
        if k == 12:
            early.changes(codes[0])
    for found, expected in zip(late.changes(codes[0]), early.changes(codes[0]), strict=True):
        np.testing.assert_array_equal(found, expected)


# --- states and studies ---------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", [excess, five])
@pytest.mark.parametrize("algorithm", ["policy", "ils", "delta"])
def test_a_study_continues_bit_for_bit(algorithm: str, constraint: Any, tmp_path: Path) -> None:
    study = tmp_path / "study.db"
    chosen = ao.policy.Policy(FAST) if algorithm == "policy" else algorithm
    options: dict[str, Any] = {"seed": 0, "algorithm": chosen, "constraint": constraint}
    whole = ao.maximize(weight, BITS, 60, **options)
    for budget in (1, 14, 33):
        ao.maximize(weight, BITS, budget, study=study, **options)
    again = ao.resume(study, weight, 60, constraint=constraint)
    assert_same(whole.history, again.history)


def test_asynchronous_runs_are_repaired_and_continue(tmp_path: Path) -> None:
    study = tmp_path / "study.db"
    with ThreadPoolExecutor(2) as pool:
        options: dict[str, Any] = {"executor": pool, "constraint": five}
        ao.maximize(
            weight, BITS, 30, seed=0, algorithm="ils", asynchronous=True, study=study, **options
        )
        result = ao.resume(study, weight, 60, **options)
    assert (result.evaluations, result.stop_reason) == (60, "budget")
    assert (result.history.codes[~result.history.cached].sum(axis=1) == 5).all()


def test_ask_gives_what_is_allowed_and_a_state_continues() -> None:
    opt = ao.Optimizer(BITS, 0, algorithm=ao.policy.Policy(FAST), constraint=five)
    again: ao.Optimizer | None = None
    for turn in range(6):
        asked = opt.ask()
        assert len(asked) == 10
        assert (asked.sum(axis=1) == 5).all()
        if again is not None:
            np.testing.assert_array_equal(asked, again.ask())
            again.tell(asked, asked @ WEIGHTS)
        opt.tell(asked, asked @ WEIGHTS)
        if turn == 2:
            with pytest.raises(ValueError, match="pass constraint="):
                ao.Optimizer.from_state(opt.state_dict())
            again = ao.Optimizer.from_state(opt.state_dict(), constraint=five)
    assert pickle.loads(pickle.dumps(opt)).best_value == opt.best_value


def test_a_point_that_is_told_and_refused_has_no_value() -> None:
    opt = ao.Optimizer(BITS, 0, algorithm="ils", constraint=excess)
    few, many = np.zeros(40, int), np.ones(40, int)
    opt.tell([many, few], [99.0, 1.0])
    assert opt.best_value == 1.0
    assert opt.archive.column("status").tolist() == [REJECTED, OK]
    opt.tell(many, 99.0)  # and once more
    assert opt.best_value == 1.0


def test_a_study_says_that_its_constraint_is_missing(tmp_path: Path) -> None:
    study = tmp_path / "study.db"
    ao.maximize(weight, BITS, 5, seed=0, algorithm="ils", constraint=excess, study=study)
    said = "was started with a constraint, and this call has none: pass the same, or another file"
    with pytest.raises(ValueError, match=said):
        ao.resume(study, weight, 10)


def test_a_state_of_repairs_of_another_space_is_refused() -> None:
    feasibility = Feasibility(SPACE, lambda x: True, 0)
    feasibility.violation(np.zeros(8, np.int32))
    with pytest.raises(ValueError, match="another space"):
        Feasibility(BITS, five, 0).restore(feasibility.state())


@pytest.mark.parametrize("name", ["policy", "ils", "p3", "umda", "tabu", "auto", "random"])
def test_ask_gives_no_refused_points_of_data(name: str) -> None:
    """A refused point is known from `data`, so that the constraint is not called for it again."""
    space = ao.Space.binary(4)
    points = np.array(np.unravel_index(np.arange(16), (2,) * 4), np.int32).T
    optimizer = ao.Optimizer(
        space, seed=0, algorithm=name, constraint=lambda point: int(point[0]) == 1,
        data=(points[:8], np.arange(8.0)),
    )  # fmt: skip
    for _ in range(10):
        asked = optimizer.ask(2)
        if not len(asked):
            break
        assert (np.asarray(asked)[:, 0] == 1).all()
        optimizer.tell(asked, np.asarray(asked).sum(axis=1))
