"""Several objectives: what users give and get, everywhere that one objective works."""

from __future__ import annotations

import json
import logging
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anyorder as ao
from anyorder.archive.hypervolume import NonDominated, hypervolume, hypervolumes
from anyorder.run.study.rescue import write_csv

SPACE = ao.Space(
    {
        "a": ao.Integer(0, 9),
        "kind": ao.Categorical(["x", "y"]),
        "extra": ao.Integer(1, 4, when={"kind": "x"}),
        "order": ao.Permutation(range(4)),
    }
)
DIRECTIONS = ("max", "min")
QUICK: Any = {"algorithm": "nsga2", "seed": 0}


def two(point: Any) -> tuple[float, float]:
    cost = sum(k * item for k, item in enumerate(point["order"])) + point.get("extra", 3)
    return point["a"] + 2.0 * (point["kind"] == "x"), point["a"] ** 2 / 9 + cost


def named(point: Any) -> dict[str, float]:
    gain, cost = two(point)
    return {"gain": gain, "cost": cost, "unused": -1.0}


def same(one: ao.Result, other: ao.Result) -> None:
    np.testing.assert_array_equal(one.history.codes, other.history.codes)
    np.testing.assert_array_equal(one.history.values, other.history.values)
    np.testing.assert_array_equal(one.front.values, other.front.values)


# --- hypervolume ----------------------------------------------------------------------------------


def test_the_hypervolume_counts_cells() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.integers(0, 8, (30, 2)).astype(float)
        found = hypervolumes(values, np.array([1.0, 2.0]))
        for k in (0, 9, 29):
            first, second = values[: k + 1].T
            cells = sum(
                ((first > i) & (second > j)).any() for i in range(1, 8) for j in range(2, 8)
            )
            assert found[k] == hypervolume(values[: k + 1], np.array([1.0, 2.0])) == cells


def test_three_objectives_have_a_hypervolume() -> None:
    pytest.importorskip("moocore")
    values = np.random.default_rng(0).integers(0, 5, (40, 3)).astype(float)
    cells = [((values > (i, j, k)).all(axis=1)).any()
             for i in range(5) for j in range(5) for k in range(5)]  # fmt: skip
    assert hypervolumes(values, np.zeros(3))[-1] == pytest.approx(sum(cells))


def test_a_front_has_no_dominated_and_no_equal_vectors() -> None:
    values, front = np.random.default_rng(0).integers(0, 6, (60, 3)), NonDominated(3)
    for k, row in enumerate(values):
        front.add(k, row)
    expected = {
        tuple(row) for row in values.tolist()
        if not ((values >= row).all(axis=1) & (values > row).any(axis=1)).any()
    }  # fmt: skip
    assert sorted(expected) == sorted(map(tuple, front.values.tolist()))
    assert all(
        (values[item] == row).all() for item, row in zip(front.items, front.values, strict=True)
    )


# --- what a run gives -----------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [None, "nsga2", "random"])
def test_a_run_gives_a_front(algorithm: str | None) -> None:
    result = ao.optimize(two, SPACE, 120, directions=DIRECTIONS, algorithm=algorithm, seed=0)
    values = result.history.values[~result.history.cached]
    assert values.shape == (120, 2)
    front = result.front
    assert all(
        two(point) == tuple(row) for point, row in zip(front.points, front.values, strict=True)
    )
    assert (np.diff(front.values, axis=0) < 0).all()  # less gain, and less cost
    for row in values:
        assert ((front.values[:, 0] >= row[0]) & (front.values[:, 1] <= row[1])).any()
    volume = result.hypervolume
    assert len(volume) == 120
    assert (np.diff(volume) >= 0).all()
    assert volume[-1] > volume[0]
    assert result.front.rows()[0]["point"] == front.points[0]
    with pytest.raises(AttributeError, match="no best point, but a front of them: use `front`"):
        _ = result.best
    with pytest.raises(AttributeError, match="use `front`"):
        _ = result.best_value
    assert f"a front of {len(front)} points after 120 evaluations" in repr(result)
    assert "front of" in result._repr_html_()


def test_a_dict_is_the_same_as_a_tuple() -> None:
    one = ao.optimize(two, SPACE, 80, directions=DIRECTIONS, **QUICK)
    other = ao.optimize(named, SPACE, 80, objectives={"gain": "max", "cost": "min"}, **QUICK)
    same(one, other)
    assert other.front.names == ("gain", "cost")
    assert set(other.front.rows()[0]) == {"gain", "cost", "point"}


def test_tables_have_a_column_for_each_objective(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    result = ao.optimize(named, SPACE, 60, objectives={"gain": "max", "cost": "min"}, **QUICK)
    table = result.to_pandas()
    np.testing.assert_array_equal(table[["gain", "cost"]].to_numpy(), result.history.values)
    assert "value" not in table
    front = result.front.to_pandas()
    assert [*front] == ["a", "kind", "extra", "order", "gain", "cost"]
    assert len(front) == len(result.front)
    # and the table of a run is data of another
    result.to_csv(tmp_path / "run.csv")
    options = {"objectives": {"gain": "max", "cost": "min"}, "data": tmp_path / "run.csv"}
    more = ao.optimize(named, SPACE, 20, **QUICK, **options)
    assert more.evaluations == 20
    assert len(more.history) == 80
    np.testing.assert_array_equal(more.history.values[:60], result.history.values)


def test_an_objective_may_be_called_seconds() -> None:
    pytest.importorskip("pandas")
    goals = {"seconds": "min", "value": "max"}
    result = ao.optimize(lambda p: {"seconds": two(p)[1], "value": two(p)[0]}, SPACE, 20,
                         objectives=goals, **QUICK)  # fmt: skip
    table = result.to_pandas()
    np.testing.assert_array_equal(table[["seconds", "value"]].to_numpy(), result.history.values)
    np.testing.assert_array_equal(table["seconds_"], result.history.seconds)


def test_one_objective_is_as_before() -> None:
    result = ao.maximize(lambda p: p["a"], SPACE, 20, seed=0, algorithm="random")
    with pytest.raises(AttributeError, match="one objective has no front, but a best point"):
        _ = result.front
    with pytest.raises(ValueError, match="hypervolume is of several objectives"):
        _ = result.hypervolume


def test_a_target_is_a_hypervolume() -> None:
    run: Any = {"directions": DIRECTIONS, "reference": (0, 30), **QUICK}
    whole = ao.optimize(two, SPACE, 500, **run).hypervolume
    found = ao.optimize(two, SPACE, 500, target=whole[200], **run)
    assert found.stop_reason == "target"
    assert found.hypervolume[-1] >= whole[200]
    assert found.evaluations <= 250
    found = ao.optimize(two, SPACE, 5_000, patience=100, **run)
    assert found.stop_reason == "patience"


# --- where it works -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"workers": 2}, {"workers": 2, "asynchronous": True}, {"executor": "threads"}]
)
def test_workers(options: Any) -> None:
    found = ao.optimize(two, SPACE, 60, directions=DIRECTIONS, **QUICK, **options)
    assert found.evaluations == 60
    if "asynchronous" not in options:
        same(found, ao.optimize(two, SPACE, 60, directions=DIRECTIONS, **QUICK))


def test_batches() -> None:
    expected = ao.optimize(two, SPACE, 100, directions=DIRECTIONS, **QUICK)
    forms = (
        lambda points: [two(point) for point in points],
        lambda points: np.array([two(point) for point in points]),
    )
    for f in forms:
        found = ao.optimize(f, SPACE, 100, directions=DIRECTIONS, vectorized=True, **QUICK)
        same(found, expected)

    def columns(points: Any) -> Any:
        gains, costs = zip(*map(two, points), strict=True)
        return {"gain": np.array(gains), "cost": list(costs)}

    goals = {"gain": "max", "cost": "min"}
    same(ao.optimize(columns, SPACE, 100, objectives=goals, vectorized=True, **QUICK), expected)


def test_failures_and_constraints() -> None:
    def f(point: Any) -> tuple[float, float]:
        if point["a"] == 3:
            return math.nan, 1.0
        if point["a"] == 4:
            raise ao.Infeasible(violation=2.0)
        return two(point)

    def allowed(point: Any) -> bool:
        return bool(point["a"] != 5)

    found = ao.optimize(
        f, SPACE, 150, directions=DIRECTIONS, on_failure="worst", constraint=allowed, **QUICK
    )
    assert found.failures > 0
    assert not {3, 4, 5} & {point["a"] for point in found.front.points}
    failed = np.isnan(found.history.values).any(axis=1)
    assert failed.sum() >= found.failures
    assert np.isnan(found.history.values[failed]).all()
    with pytest.raises(ValueError, match="value_0 in what f returned is NaN or None, expected a f"):
        ao.optimize(f, SPACE, 500, directions=DIRECTIONS, **QUICK)


def test_start_and_data() -> None:
    point = {"a": 9, "kind": "x", "extra": 1, "order": [3, 2, 1, 0]}
    found = ao.optimize(two, SPACE, 30, directions=DIRECTIONS, start=point, **QUICK)
    assert found.history.points[0] == point
    data = [point], [(100.0, -100.0)]
    found = ao.optimize(two, SPACE, 30, directions=DIRECTIONS, data=data, **QUICK)
    assert found.front.points == [point]
    again = ao.optimize(two, SPACE, 30, directions=DIRECTIONS, data=found, **QUICK)
    assert again.front.points == [point]
    with pytest.raises(ValueError, match="data has the objectives max value_0, min value_1, and"):
        ao.maximize(lambda p: 1.0, SPACE, 5, data=found, **QUICK)
    with pytest.raises(ValueError, match=r"data: row 0 of the values is .1.0,., which has 1 v"):
        ao.optimize(two, SPACE, 5, directions=DIRECTIONS, data=([point], [(1.0,)]), **QUICK)


def test_noisy_values_are_averaged() -> None:
    rng = np.random.default_rng(0)
    space = ao.Space.binary(3)

    def noisy(x: Any) -> tuple[float, float]:
        return x.sum() + rng.normal(0, 0.1), -x[0] + rng.normal(0, 0.1)

    found = ao.optimize(noisy, space, 200, directions=("max", "max"), deterministic=False, **QUICK)
    values, codes = found.history.values, found.history.codes
    for point, mean in zip(found.front.codes, found.front.values, strict=True):
        own = values[(codes == point).all(axis=1)]
        assert len(own) > 1
        np.testing.assert_allclose(own.mean(axis=0), mean)


@pytest.mark.parametrize("algorithm", ["random", "pareto"])
def test_noisy_values_improve(algorithm: str) -> None:
    """Whether or not anyone looks at the front, and although a point has several values."""
    space, run = ao.Space.binary(2), {"directions": ("max", "max"), "algorithm": algorithm}

    def better_and_better(x: Any) -> tuple[float, float]:
        calls.append(1)
        return float(len(calls)), float(len(calls))

    calls: list[int] = []
    options: Any = {"seed": 0, "deterministic": False, "reference": (0, 0), **run}
    found = ao.optimize(better_and_better, space, 60, patience=12, **options)
    assert (found.stop_reason, found.evaluations) == ("budget", 60)
    calls.clear()
    found = ao.optimize(better_and_better, space, 60, target=400, **options)
    assert found.stop_reason == "target"
    best = found.front.values.max()
    assert 20 <= best < 22


def test_ask_and_tell() -> None:
    opt = ao.Optimizer(SPACE, 0, algorithm="nsga2", directions=DIRECTIONS)
    other = ao.Optimizer(SPACE, 0, algorithm="nsga2", objectives={"gain": "max", "cost": "min"})
    for turn in range(3):
        points = opt.ask(20)
        assert points == other.ask(20)
        opt.tell(points, [two(point) for point in points])
        other.tell(points, [named(point) for point in points])
        if turn == 1:
            opt = ao.Optimizer.from_state(opt.state_dict())
    opt.tell(points[0], two(points[0]))
    np.testing.assert_array_equal(opt.front.values, other.front.values)
    with pytest.raises(AttributeError, match="use `front`"):
        _ = opt.best
    with pytest.raises(ValueError, match=r"row 1 of the values is .1, 2, 3., which has 3 values"):
        opt.tell(opt.ask(2), [(1, 2), (1, 2, 3)])
    opt.tell(opt.ask(1), [(math.nan, 2.0)], on_failure="worst")
    assert opt.archive.failures == 1


def test_points_never_asked_that_are_refused_have_no_values() -> None:
    opt = ao.Optimizer(
        SPACE, 0, algorithm="nsga2", directions=DIRECTIONS, constraint=lambda p: bool(p["a"] != 5)
    )
    points = [{"a": a, "kind": "y", "order": [0, 1, 2, 3]} for a in (4, 5)]
    opt.tell(points, [two(point) for point in points])
    assert np.isnan(opt.archive.values).all(axis=1).tolist() == [False, True]
    again = ao.Optimizer.from_state(opt.state_dict(), constraint=lambda p: bool(p["a"] != 5))
    np.testing.assert_array_equal(again.archive.values, opt.archive.values)


# --- studies --------------------------------------------------------------------------------------


def test_a_study_is_continued(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run: Any = {"directions": DIRECTIONS, "reference": (0, 30), **QUICK}
    expected = ao.optimize(two, SPACE, 150, **run)
    path = tmp_path / "study.db"
    ao.optimize(two, SPACE, 70, study=path, **run)
    found = ao.optimize(two, SPACE, 150, study=path, **run)
    same(found, expected)
    assert found.history.objectives.reference == (0, 30)
    history = ao.load(path)
    np.testing.assert_array_equal(history.values, expected.history.values)
    write_csv(path, tmp_path / "run.csv")
    more = ao.optimize(two, SPACE, 5, data=tmp_path / "run.csv", **run)
    known = expected.history.values[~expected.history.cached]
    np.testing.assert_array_equal(more.history.values[: len(known)], known)
    same(ao.resume(path, two, 150), expected)
    assert "differently" not in caplog.text


_KILLED = """
import os, sys
sys.path[:0] = {path!r}
import anyorder as ao
from test_objectives import SPACE, two, DIRECTIONS, QUICK
calls = 0
def f(point):
    global calls
    calls += 1
    if calls == 77:
        os._exit(9)
    return two(point)
ao.optimize(f, SPACE, 150, directions=DIRECTIONS, study={study!r}, **{{**QUICK, **{options!r}}})
"""


@pytest.mark.parametrize(
    "options", [pytest.param({}, marks=pytest.mark.slow), {"algorithm": "auto"}]
)
def test_a_killed_run_is_continued(
    tmp_path: Path, options: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "study.db"
    where = [str(Path(__file__).parent)]
    script = _KILLED.format(path=where, study=str(path), options=options)
    killed = subprocess.run([sys.executable, "-c", script], check=False)
    assert killed.returncode == 9
    run: Any = {"directions": DIRECTIONS, **QUICK, **options}
    found = ao.optimize(two, SPACE, 150, study=path, **run)
    same(found, ao.optimize(two, SPACE, 150, **run))
    assert "differently" not in caplog.text


def test_a_study_keeps_its_objectives(tmp_path: Path) -> None:
    one, both = tmp_path / "one.db", tmp_path / "two.db"
    ao.maximize(lambda p: p["a"], SPACE, 10, study=one, **QUICK)
    ao.optimize(two, SPACE, 60, directions=DIRECTIONS, study=both, **QUICK)
    with pytest.raises(ValueError, match=r"was started with one objective, and this call has 2"):
        ao.optimize(two, SPACE, 20, directions=DIRECTIONS, study=one, **QUICK)
    with pytest.raises(ValueError, match=r"started with 2 objectives \(max value_0, min value_1"):
        ao.maximize(lambda p: p["a"], SPACE, 20, study=both, **QUICK)
    with pytest.raises(ValueError, match=r"this call has 2 objectives .max value_0, max value_1"):
        ao.optimize(two, SPACE, 80, directions=("max", "max"), study=both, **QUICK)
    for f in (lambda p: (-1.0, two(p)[1]), lambda p: (two(p)[0], -1.0)):
        with pytest.raises(ao.StudyError, match=r"has the value \(.*\) at .* where f now gives \("):
            ao.optimize(f, SPACE, 80, directions=DIRECTIONS, study=both, **QUICK)


def test_a_study_of_one_objective_has_no_table_of_several(tmp_path: Path) -> None:
    import sqlite3

    ao.maximize(lambda p: p["a"], SPACE, 10, study=tmp_path / "one.db", **QUICK)
    with sqlite3.connect(tmp_path / "one.db") as database:
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        settings = {name for (name,) in database.execute("SELECT name FROM settings")}
    assert "objectives" not in names | settings


# --- what is refused ------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "directions is missing, expected one for each objective, such as ('max', 'min')"),
    ({"directions": ("max",)}, "directions is ('max',), expected two or more"),
    ({"directions": "max"}, "directions is 'max', expected a direction for each objective"),
    ({"directions": ("max", "mn")}, "directions[1] is 'mn' (did you mean 'min'?), expected 'max'"),
    ({"directions": ("max", "min"), "objectives": {"a": "max"}}, "expected one of them"),
    ({"objectives": ("max", "min")}, "objectives is ('max', 'min'), expected a dict such as"),
    ({"objectives": {"a": "max", "gain": "max"}}, "objective 'a' has the name of a variable"),
    ({"objectives": {"gain": "max", "cost": 1}}, "objectives['cost'] is 1, expected 'max'"),
    ({"objectives": {"gain": "max", "status": "min"}}, "objective 'status' has the name of a col"),
    (
        {"objectives": {"gain": "max", "order[2]": "min"}},
        "objective 'order[2]' has the name of a v",
    ),
    ({"directions": DIRECTIONS, "reference": (1, 2, 3)}, "reference is (1, 2, 3), which has 3"),
    ({"directions": DIRECTIONS, "reference": 3}, "reference is 3, expected 2 numbers, one for"),
    ({"directions": DIRECTIONS, "reference": (0, math.inf)}, "value_1 in reference is inf"),
    (
        {"objectives": {"gain": "max", "cost": "min"}, "reference": {"gain": 0, "cots": 9}},
        "reference has 'cots' (did you mean 'cost'?), expected",
    ),
    ({"directions": DIRECTIONS, "target": 3}, "target is 3, a hypervolume, which requires refer"),
    ({"directions": DIRECTIONS, "algorithm": "tabu"}, "algorithm is 'tabu', which has one object"),
    ({"directions": DIRECTIONS, "budgt": 3}, "budgt (did you mean 'budget'?)"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        ao.optimize(two, SPACE, 10, **options)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3.0, "what f returned is 3.0, expected 2 numbers, one for each objective (max, min)"),
        ((1.0,), "what f returned is (1.0,), which has 1 values, expected 2 numbers"),
        ((1, 2, 3), "what f returned is (1, 2, 3), which has 3 values, expected 2 numbers"),
        ({"a": 1, "b": 2}, "what f returned is {'a': 1, 'b': 2}, expected 2 numbers"),
        ((1, math.nan), "value_1 in what f returned is NaN or None, expected a finite number"),
        ((None, 1), "value_0 in what f returned is NaN or None, expected a finite number"),
        ((1, -math.inf), "value_1 in what f returned is -inf, expected a finite number"),
        ((1, "two"), "value_1 in what f returned is 'two', expected a number"),
        ({1, 2}, "what f returned is {1, 2}, expected 2 numbers"),
        (np.array(1.0), "what f returned is array(1.), expected 2 numbers"),
        (None, "what f returned is None, expected 2 numbers"),
    ],
)
def test_wrong_values(value: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)) as raised:
        ao.optimize(lambda p: value, SPACE, 10, directions=DIRECTIONS, **QUICK)
    assert "while evaluating" in raised.value.__notes__[0]


def test_the_wrong_number_of_values_is_never_a_failure() -> None:
    for wrong in ((1.0, 2.0, 3.0), 1.0, {"gain": 1.0}):
        with pytest.raises(ValueError, match="expected 2 numbers"):
            ao.optimize(
                lambda p, wrong=wrong: wrong, SPACE, 10, directions=DIRECTIONS,
                on_failure="worst", **QUICK,
            )  # fmt: skip
    goals = {"gain": "max", "cost": "min"}
    with pytest.raises(ValueError, match=r"which has no 'cost' \(did you mean 'costs'\?\)"):
        ao.optimize(
            lambda p: {"gain": 1, "costs": 2}, SPACE, 10, objectives=goals, on_failure="worst",
            **QUICK,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (1.0, "f returned 1 rows of values, expected 3: one for each candidate"),
        (None, "f returned 1 rows of values, expected 3"),
        ({"gain": [1, 2, 3], "cost": [1, 2, 3, 4]}, "f returned 4 values of 'cost', expected 3"),
        ({"gain": [1, 2, 3], "cost": 1.0}, "f returned 1 values of 'cost', expected 3"),
    ],
)
def test_wrong_values_of_a_batch(returned: Any, message: str) -> None:
    goals = {"gain": "max", "cost": "min"}
    with pytest.raises(ValueError, match=re.escape(message)):
        ao.optimize(lambda points: returned, SPACE, 9, objectives=goals, vectorized=True, batch=3,
                    on_failure="worst", **QUICK)  # fmt: skip


def test_wrong_values_that_are_told() -> None:
    point = {"a": 4, "kind": "y", "order": [0, 1, 2, 3]}
    opt = ao.Optimizer(SPACE, 0, algorithm="nsga2", directions=DIRECTIONS)
    for values, message in (
        ((math.inf, 1), "value_0 in row 0 of the values is inf, expected a finite number"),
        ((1, math.nan), "value_1 in row 0 of the values is NaN or None, expected a finite"),
        (None, "row 0 of the values is None, expected 2 numbers"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            opt.tell(point, values)
    assert not len(opt.archive)
    with pytest.raises(ValueError, match="direction is 'minimize', which one objective has"):
        ao.Optimizer(SPACE, 0, direction="minimize", directions=DIRECTIONS)


def test_a_reference_that_nothing_dominates(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "anyorder"):
        found = ao.optimize(two, SPACE, 30, directions=DIRECTIONS, reference=(99, 0), **QUICK)
    assert (
        "no evaluation is better than the reference (99.0, 0.0) in every objective" in caplog.text
    )
    assert not found.hypervolume.any()
    assert len(found.front)


def test_strategies_of_one_objective_name_those_of_several() -> None:
    with pytest.raises(ValueError, match="several are for random, nsga2 and pareto"):
        ao.optimize(two, SPACE, 10, directions=DIRECTIONS, algorithm="umda")
    with pytest.raises(ValueError, match="several are for"):
        ao.Optimizer(SPACE, directions=DIRECTIONS, algorithm=ao.strategies.TabuSearch)
    assert json.dumps(ao.optimize(two, SPACE, 5, directions=DIRECTIONS, **QUICK).settings)


# --- figures --------------------------------------------------------------------------------------


def test_charts_of_a_front() -> None:
    from anyorder import charts

    result = ao.optimize(named, SPACE, 60, objectives={"gain": "max", "cost": "min"}, **QUICK)
    drawn = charts.figure_of(result.history, "front")
    dots, front = drawn["data"]
    assert len(dots["x"]) == np.isfinite(result.history.values[:, 0]).sum()
    assert sorted(front["x"]) == sorted(result.front.values[:, 0].tolist())
    assert drawn["layout"]["xaxis"]["title"]["text"] == "gain (max)"
    curve = charts.figure_of(result.history, "convergence")
    assert curve["layout"]["yaxis"]["title"]["text"] == "hypervolume"
    assert "see the front" in json.dumps(charts.figure_of(result.history, "importance"))
    one = ao.maximize(lambda p: p["a"], SPACE, 20, **QUICK)
    assert "has no front" in json.dumps(charts.figure_of(one.history, "front"))


def test_figures_of_a_front(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = ao.optimize(two, SPACE, 40, directions=DIRECTIONS, **QUICK)
    for kind in ("front", "convergence"):
        result.plot(tmp_path / f"{kind}.png", kind=kind)
        assert (tmp_path / f"{kind}.png").stat().st_size > 5_000
    with pytest.raises(ValueError, match="kind is 'diversity', expected 'front' or 'convergence'"):
        result.plot(kind="diversity")
    with pytest.raises(ValueError, match="kind is 'front', which several objectives have"):
        ao.maximize(lambda p: p["a"], SPACE, 5, **QUICK).plot(kind="front")


# --- the command line -----------------------------------------------------------------------------

PROBLEM = """
budget = 40
seed = 0
algorithm = "nsga2+population=10"
study = "run.db"
reference = { size = 40, speed = 0 }

[space]
a = { low = 0, high = 19 }
b = { low = 1, high = 4 }

[command]
arguments = "echo size: $((AO_a + 3 * AO_b)); echo '{{\\"speed\\": '$((AO_a * AO_b))'}}'"
shell = true

[value.size]
direction = "min"
regex = 'size: (\\d+)'

[value.speed]
direction = "maximize"
json = "speed"
"""


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "problem.toml"
    path.write_text(PROBLEM.replace("{{", "{").replace("}}", "}"), encoding="utf-8")
    return path


def anyorder(*arguments: Any) -> str:
    from click.testing import CliRunner

    from anyorder.cli import main

    done = CliRunner().invoke(main, [str(one) for one in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.skipif(sys.platform == "win32", reason="programs require process groups")
def test_a_program_with_several_values(problem: Path) -> None:
    study = problem.parent / "run.db"
    found = json.loads(anyorder("run", problem, "--json"))
    assert found["objectives"] == {"size": "min", "speed": "max"}
    for row in found["front"]:
        point = row["point"]
        assert row["size"] == point["a"] + 3 * point["b"]
        assert row["speed"] == point["a"] * point["b"]
        assert f"AO_a={point['a']}" in row["command"]
    shown = json.loads(anyorder("show", study, "--json"))
    plain = [{key: row[key] for key in ("size", "speed", "point")} for row in found["front"]]
    assert shown["front"] == plain
    assert shown["hypervolume"] == found["hypervolume"] > 0
    assert shown["best"] is None
    best = json.loads(anyorder("best", study, "--json"))
    assert best["front"] == plain
    text = anyorder("show", study)
    assert f"{len(plain)} points, hypervolume" in text
    assert "min size, max speed" in text
    assert "size (min)  speed (max)  point" in anyorder("best", study)
    anyorder("show", study, "--output", problem.parent / "run.csv")
    head, first, *_ = (problem.parent / "run.csv").read_text(encoding="utf-8").splitlines()
    assert head.split(",")[:5] == ["a", "b", "size", "speed", "generation"]
    a, b, size, speed, *_ = first.split(",")
    assert (float(size), float(speed)) == (int(a) + 3 * int(b), int(a) * int(b))
    assert "min size, max speed" in anyorder("resume", problem, study, "--budget", "44")
    assert json.loads(anyorder("show", study, "--json"))["evaluations"] == 44


def test_a_front_is_shown_without_its_hypervolume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of three objectives requires a package, which is optional."""
    study, goals = tmp_path / "run.db", ("max", "min", "max")
    ao.optimize(lambda p: (*two(p), len(p)), SPACE, 30, directions=goals, study=study, **QUICK)
    monkeypatch.setitem(sys.modules, "moocore", None)
    shown = json.loads(anyorder("show", study, "--json"))
    assert shown["hypervolume"] is None
    assert len(shown["front"]) > 1
    for command in ("show", "best"):
        assert "hypervolume requires moocore: pip install" in anyorder(command, study)


def test_a_target_of_three_objectives_asks_for_its_package_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "moocore", None)
    with pytest.raises(ImportError, match="requires moocore: pip install"):
        ao.optimize(
            lambda p: pytest.fail("f was called"), SPACE, 30, directions=("max", "min", "max"),
            reference=(0, 9, 0), target=5, **QUICK,
        )  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="programs require process groups")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('direction = "min"\n', "", "line 16: 'direction' is missing in [value.size]"),
        ('direction = "min"', 'direction = "mini"', "line 17: direction is 'mini' (did you mean"),
        ("budget = 40", 'budget = 40\ndirection = "minimize"', "expected it in each of [value.si"),
        ("[value.speed]", "[value.a]", "objective 'a' has the name of a variable"),
        ("speed = 0 }", "spd = 0 }", "reference has 'spd' (did you mean 'speed'?)"),
        ("[value.size]", "[value]\nregex = 'x (y)'\n[value.size]", "expected a [section]"),
    ],
)
def test_wrong_values_in_a_problem_file(problem: Path, old: str, new: str, message: str) -> None:
    from anyorder.program.file import read

    text = problem.read_text(encoding="utf-8")
    assert old in text
    problem.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)):
        read(problem)
