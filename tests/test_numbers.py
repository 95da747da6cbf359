"""Integers with steps, logarithms or many values, and floats on a grid, through every strategy."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st

import anyorder as ao
from anyorder import Float, Integer, Space
from anyorder.space.changes import Changes
from anyorder.space.digits import WIDE, Digits, Scale
from anyorder.strategies.create import create
from anyorder.strategies.policy.engines import model_of

WIDE_SPACE = Space(
    {
        "count": Integer(1, 10**6),
        "size": Integer(1, 10**6, log=True),
        "rate": Float(1e-5, 1e-1, levels=401, log=True),
        "share": Float(0, 1),
        "kind": ao.Categorical(["a", "b"]),
        "block": Integer(64, 4096, step=64),
    }
)


def goal(point: dict[str, Any]) -> float:
    """0 at one point, less elsewhere."""
    return -(
        abs(point["count"] - 345_678) / 1e6
        + abs(np.log10(point["size"] / 700)) / 6
        + abs(np.log10(point["rate"] / 1e-3)) / 4
        + abs(point["share"] - 0.37)
        + (point["kind"] != "b")
        + abs(point["block"] - 1024) / 4096
    )


# Variables --------------------------------------------------------------------------------------


def test_steps() -> None:
    variable = Integer(1, 9, step=3)
    assert list(variable.values) == [1, 4, 7]
    assert [variable.index(v) for v in (1, 4, 7)] == [0, 1, 2]
    assert repr(variable) == "Integer(1, 9, step=3)"
    with refused(ValueError, "5 is not a value of Integer(1, 9, step=3)", "nearest are 4 and 7"):
        variable.index(5)
    with refused(ValueError, "9 is not a value", "nearest is 7"):
        variable.index(9)
    with refused(ValueError, "step is 0"):
        Integer(1, 9, step=0)


def test_the_grid_of_a_float() -> None:
    variable = Float(0, 1, levels=11)
    assert list(variable.values) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert repr(variable) == "Float(0.0, 1.0, levels=11)"
    assert list(Float(1e-5, 1e-1, levels=5, log=True).values) == [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
    assert variable.index(0.1 + 0.2) == 3
    assert variable.index(np.float32(0.7)) == 7
    assert variable.index(1) == 10
    with refused(ValueError, "0.34 is not a value of Float(0.0, 1.0", "nearest are 0.3 and 0.4"):
        variable.index(0.34)


@pytest.mark.parametrize("value", [True, "0.5", None, float("nan"), float("inf"), -0.1, 1.1])
def test_what_is_not_on_the_grid(value: Any) -> None:
    with refused(ValueError, repr(value), "is not a value of Float(0.0, 1.0)"):
        Float(0, 1).index(value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Float(1, 0), "low is 1.0 and high is 0.0"),
        (lambda: Float(0, 1, log=True), "low is 0.0, expected a number above 0"),
        (lambda: Float(0, 1, levels=1), "levels is 1"),
        (lambda: Float(1, 1 + 1e-12, levels=10**6), "levels is 1000000, expected so few"),
        (lambda: Integer(0, 9, log=True), "low is 0, expected at least 1"),
        (lambda: Space([Float(0, 1)]), "give the variables names"),
    ],
)
def test_bad_numbers(make: Any, words: str) -> None:
    with refused(ValueError, words):
        make()


@given(
    low=st.floats(1e-9, 1e9), ratio=st.floats(1.001, 1e6), levels=st.integers(2, 10**6),
    log=st.booleans(), share=st.floats(0, 1),
)  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_values_of_a_grid_find_their_code(
    low: float, ratio: float, levels: int, log: bool, share: float
) -> None:
    variable = Float(low, low * ratio, levels=levels, log=log)
    code = int(share * (levels - 1))
    assert variable.index(variable.values[code]) == code
    assert variable.low <= variable.values[code] <= variable.high


def test_json() -> None:
    text = WIDE_SPACE.to_json()
    assert Space.from_json(text) == WIDE_SPACE
    assert '"version": 2' in text
    assert '"version": 1' in Space({"x": Integer(1, 8)}).to_json()  # as older versions read it


def test_vectors_of_stepped_integers() -> None:
    space = Space([Integer(-5, 100, step=7), Integer(-(2**62), 2**62, step=2**40)])
    values = [[-5, -(2**62)], [2, 2**40], [100, 2**62]]
    codes = space.encode(np.array(values))
    assert codes[:, 0].tolist() == [0, 1, 15]
    assert np.array_equal(space.encode(values), codes)
    assert np.asarray(space.decode(codes)).tolist() == values
    with refused(ValueError, "point 0, variable 0", "-4 is not a value", "-5 and 2"):
        space.encode(np.array([[-4, 0]]))


# Digits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variable",
    [
        Integer(0, WIDE), Integer(1, 997), Integer(1, 1000), Float(0, 1, levels=1001),
        Integer(1, 10**4, log=True), Integer(5, 10**4, step=5, log=True), Integer(1, 3, log=True),
    ],
    ids=repr,
)  # fmt: skip
def test_digits_reach_every_value_in_order(variable: Any) -> None:
    space = Space({"a": ao.Binary(), "x": variable, "b": ao.Categorical([1, 2, 3]), "y": variable})
    digits, scale, count = Digits(space), Scale(variable), len(variable)
    assert (digits.cardinalities <= 12).all()
    assert len(digits) == 2 + 2 * len(scale.radices)
    every = np.arange(count)
    codes = np.stack([every % 2, every, every % 3, every[::-1]], axis=1)
    split = digits.split(codes)
    assert ((split >= 0) & (split < digits.cardinalities)).all()
    assert np.array_equal(digits.join(split), codes)
    steps = np.diff(scale.codes(np.arange(scale.positions)))
    assert scale.codes(np.array([0, scale.positions - 1])).tolist() == [0, count - 1]
    assert set(steps.tolist()) <= {0, 1}


def test_neighbouring_positions_differ_in_one_digit_by_one() -> None:
    digits = Digits(Space([Integer(0, 999)])).split(np.arange(1000)[:, None])
    assert (np.abs(np.diff(digits, axis=0)).sum(axis=1) == 1).all()


def test_small_integers_are_not_split() -> None:
    assert not Digits(Space([Integer(1, WIDE), ao.Categorical(range(1000))])).split_any
    assert Digits(Space([Integer(1, WIDE + 1)])).split_any


def test_the_model_grows_with_the_logarithm() -> None:
    inputs = [model_of(Space([Integer(1, 10**k)]), ao.policy.Config())[0].coding.features
              for k in (3, 6, 9)]  # fmt: skip
    assert inputs == [27, 54, 81]
    kept = model_of(Space([Integer(1, 1000)]), ao.policy.Config(digits_above=1000))[0]
    assert kept.coding.features == 999


def test_the_graph_of_digits() -> None:
    graph = np.eye(2, dtype=bool)
    space = Space([Integer(1, 1000), ao.Binary()])
    policy = create(ao.policy.Policy(engine="reference", graph=graph), space, 0)
    assert np.array_equal(policy.graph, graph)
    model = policy._model
    assert model.graph[:3, :3].all()
    assert not model.graph[:3, 3].any()
    assert policy.influence(2).shape == (2, 2)


# Steps ------------------------------------------------------------------------------------------


def test_steps_near_and_far() -> None:
    variable = Integer(0, 10**6)
    changes = Changes(np.array([len(variable)]), {0: Scale(variable)})
    assert len(changes) < 50
    point = np.array([500_000], np.int32)
    near = changes.apply(point, np.arange(len(changes)))[:, 0] - 500_000
    assert {-1, 1} <= set(near.tolist())
    assert np.abs(near).max() > 200_000
    assert 0 not in near
    for k, row in enumerate(changes.apply(point, np.arange(len(changes)))):
        there, back = changes.between(point, row) or (-1, -1)
        assert changes.targets(point, np.array([there]))[0] == row[0]
        assert changes.targets(row, np.array([back]))[0] == point[0], k
    for edge in (0, 10**6):
        own = changes.distinct(np.array([edge], np.int32), np.arange(len(changes)))
        targets = changes.targets(np.array([edge], np.int32), own)
        assert len(set(targets.tolist())) == len(own)
        assert ((targets >= 0) & (targets <= 10**6) & (targets != edge)).all()


@pytest.mark.parametrize("variable", [Integer(1, 10**6), Integer(1, 10**6, log=True)])
def test_moves_change_the_code_and_stay_inside(variable: Integer) -> None:
    rng, scale = np.random.default_rng(0), Scale(variable)
    codes = np.concatenate([rng.integers(len(variable), size=500), [0, 1, len(variable) - 1]])
    steps = rng.integers(1, scale.length // 2, size=len(codes)) * rng.choice((-1, 1), len(codes))
    moved = scale.move(codes, steps)
    assert ((moved >= 0) & (moved < len(variable)) & (moved != codes)).all()


def test_uniform_points_follow_the_logarithm() -> None:
    points = create("random", WIDE_SPACE, 0).propose(2000).codes
    # 345 of 10**6 - 1 codes up to 1,000 if all were alike; half of them by the logarithm
    assert 900 < (points[:, 1] < 1000).sum() < 1200
    assert (points[:, 0] < 1000).sum() < 10


# Searches ---------------------------------------------------------------------------------------


@functools.cache
def best_of_random_search() -> float:
    best = ao.maximize(goal, WIDE_SPACE, 400, seed=1, algorithm="random").best_value
    assert best is not None
    return best


@pytest.mark.parametrize("name", ao.strategies.names())
def test_every_strategy_searches_a_million_values(name: str) -> None:
    result = ao.maximize(goal, WIDE_SPACE, 400, seed=1, algorithm=name, progress=False)
    assert result.evaluations == 400
    if name not in ("random", "tabu"):  # of which a move has a hundred evaluations here
        assert result.best_value > best_of_random_search()
    assert WIDE_SPACE.encode([result.best]).shape == (1, 6)


@pytest.mark.parametrize("name", ["policy", "ils", "tabu", "umda", "p3"])
def test_a_study_of_numbers_is_resumed(name: str, tmp_path: Path) -> None:
    whole = ao.maximize(goal, WIDE_SPACE, 60, seed=3, algorithm=name, progress=False)
    path = tmp_path / "run.db"
    ao.maximize(goal, WIDE_SPACE, 25, seed=3, algorithm=name, study=path, progress=False)
    result = ao.resume(path, goal, budget=60, progress=False)
    assert np.array_equal(result.history.values, whole.history.values)
    assert result.history.points == whole.history.points


def test_ask_and_tell_of_floats() -> None:
    optimizer = ao.Optimizer(WIDE_SPACE, seed=0)
    point = {"count": 345_678, "size": 700, "rate": 1e-3, "share": 0.1 + 0.27, "kind": "b",
             "block": 1024}  # fmt: skip
    optimizer.suggest(point)
    first = optimizer.ask(12)
    assert first[0] == {**point, "share": 0.37}
    optimizer.tell(first, [goal(p) for p in first])
    assert optimizer.best == first[0]
    again = ao.Optimizer.from_state(optimizer.state_dict())
    assert again.ask(3) == optimizer.ask(3)
    with refused(ValueError, "0.375 is not a value", "0.37 and 0.38"):
        optimizer.tell({**point, "share": 0.375}, 1.0)


def test_many_runs_of_numbers_are_single_runs() -> None:
    runs = ao.policy.solve_many(
        goal, space=WIDE_SPACE, runs=2, budget=50, seeds=[4, 5], progress=False
    )
    for seed, run in zip((4, 5), runs, strict=True):
        options = {"cache": False, "progress": False, "algorithm": "policy"}
        alone = ao.maximize(goal, WIDE_SPACE, 50, seed=seed, **options)
        assert np.array_equal(run.values, alone.history.values)
        assert run.best == alone.best
