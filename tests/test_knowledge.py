"""What is known before a run: points to evaluate first, and data that strategies learn from."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import assert_same
from click.testing import CliRunner
from functions import FAST, QUICK, SPACE, value

import anyorder as ao
from anyorder.cli import main
from anyorder.run.study.rescue import write_csv

NK = ao.problems.nk(32, 2, seed=0)
MIXED = ao.Space(
    {
        "on": ao.Binary(),
        "algo": ao.Categorical(["a", "b, c", "d"]),
        "size": ao.Categorical([1, 2.5, None]),
        "depth": ao.Integer(-1, 3),
    }
)


def measured(count: int, seed: int = 7) -> tuple[Any, Any]:
    """Random points of NK and their values."""
    points = np.random.default_rng(seed).integers(0, 2, (count, 32))
    return points, NK.evaluate(points)


def speed(point: dict[str, Any]) -> float:
    return point["depth"] * (2.0 if point["algo"] == "d" else 1.0) - point["on"]


def mixed_data() -> tuple[list[dict[str, Any]], list[float]]:
    rng = np.random.default_rng(0)
    points = MIXED.decode(rng.integers(0, MIXED.cardinalities, (40, 4)))
    return list(points), [speed(point) for point in points]


# --- what strategies learn ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ao.strategies.names() if name != "random"])
def test_the_first_proposals_show_what_was_measured(name: str) -> None:
    """The mean of the first 30 proposals, of three seeds each, with 500 points and with none."""
    data = measured(500)
    means = {}
    for known in (None, data):
        optimizers = [ao.Optimizer(NK.space, seed, algorithm=name, data=known) for seed in range(3)]
        means[known is data] = np.mean([NK.evaluate(opt.ask(30)).mean() for opt in optimizers])
    # uniform points have a standard deviation of .04: the mean of 90 of one of .0045
    assert means[True] > means[False] + 0.02


@pytest.mark.parametrize("name", ["policy", "pbil", "ils", "delta"])
def test_telling_points_never_asked_teaches_the_same(name: str) -> None:
    points, values = measured(100)
    by_data = ao.Optimizer(NK.space, 0, algorithm=name, data=(points, values))
    told = ao.Optimizer(NK.space, 0, algorithm=name)
    told.tell(points, values)
    np.testing.assert_array_equal(by_data.ask(30), told.ask(30))


def test_data_of_which_much_is_useless_are_no_obstacle() -> None:
    points, values = measured(30)
    values[:25] = np.nan
    values[25:] = -np.inf
    for name in ao.strategies.names():
        result = ao.maximize(NK, budget=20, seed=0, algorithm=name, data=(points, values))
        assert result.evaluations == 20


# --- what they cost -------------------------------------------------------------------------------


def test_data_cost_nothing_and_are_not_evaluated_again() -> None:
    called = []

    def f(x: Any) -> float:
        called.append(tuple(x.tolist()))
        return value(x)

    every = np.array(np.unravel_index(np.arange(256), (2,) * 8)).T
    known = every[:200]
    values = [value(x) for x in known]
    values[3] = None  # type: ignore[call-overload]  # it failed
    result = ao.maximize(f, SPACE, 1000, data=(known, values), **QUICK)
    assert (result.stop_reason, result.evaluations) == ("exhausted", 56)
    assert not {tuple(x.tolist()) for x in known} & set(called)
    history = result.history
    assert history.cached[:200].all()
    assert (history.generations[:200] == -1).all()
    assert ao.STATUSES[history.statuses[3]] == "failed"
    assert result.best_value == max(value(x) for k, x in enumerate(every) if k != 3)


def test_a_target_that_is_in_the_data_is_reached_at_once() -> None:
    points, values = measured(20)
    result = ao.maximize(NK, budget=50, data=(points, values), target=values.max(), **QUICK)
    assert (result.stop_reason, result.evaluations) == ("target", 0)
    np.testing.assert_array_equal(result.best, points[values.argmax()])


def test_noisy_data_are_averaged() -> None:
    point = np.zeros(8, int)
    data = ([point, point, point + 1], [1.0, 3.0, 0.0])
    opt = ao.Optimizer(SPACE, 0, data=data, deterministic=False)
    assert opt.best_value == 2.0
    again = ao.Optimizer.from_state(opt.state_dict())
    assert again.best_value == 2.0
    opt.tell(point, 5.0)
    assert opt.best_value == 3.0


def test_a_state_holds_data() -> None:
    opt = ao.Optimizer(NK.space, 0, algorithm=ao.policy.Policy(FAST), data=measured(60))
    again = ao.Optimizer.from_state(opt.state_dict())
    assert again.best_value == opt.best_value
    for _ in range(3):
        asked = opt.ask()
        np.testing.assert_array_equal(asked, again.ask())
        for one in (opt, again):
            one.tell(asked, NK.evaluate(asked))


# --- the forms of data ----------------------------------------------------------------------------


def test_all_forms_of_data_are_the_same(tmp_path: Path) -> None:
    points, values = mixed_data()
    study, table = tmp_path / "study.db", tmp_path / "table.csv"
    earlier = ao.maximize(
        speed, MIXED, 20, seed=3, algorithm="rls", study=study, data=(points[:30], values[:30])
    )
    history = ao.load(study)
    rows = ~history.cached | (history.generations == -1)
    kept = [history.points[k] for k in np.flatnonzero(rows)], history.values[rows]
    write_csv(study, table)
    # `anyorder show --output` has what was evaluated, and not the data of the run
    evaluated = [history.points[k] for k in np.flatnonzero(~history.cached)]
    runs = {
        name: ao.maximize(speed, MIXED, 15, seed=1, algorithm="umda+population=10", data=data)
        for name, data in {
            "tuple": kept, "study": study, "history": history, "csv": table, "result": earlier,
            "evaluated": (evaluated, history.values[~history.cached]),
        }.items()
    }  # fmt: skip
    assert_same(runs["tuple"].history, runs["study"].history)
    assert_same(runs["tuple"].history, runs["history"].history)
    assert_same(runs["tuple"].history, runs["result"].history)
    assert_same(runs["csv"].history, runs["evaluated"].history)


def test_a_data_frame_is_understood() -> None:
    pytest.importorskip("pandas")
    first = ao.maximize(speed, MIXED, 20, algorithm="rls", seed=0, data=mixed_data())
    frame = first.to_pandas()
    again = [
        ao.maximize(speed, MIXED, 20, algorithm="rls", seed=1, data=data)
        for data in (frame, first.history)
    ]
    assert_same(again[0].history, again[1].history)


def test_a_csv_file_of_a_nameless_space(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("x1,x0,value,comment\n1,0,2.5,good\n0,1.0,,lost\n")
    opt = ao.Optimizer(ao.Space.binary(2), 0, data=table)
    assert opt.archive.codes.tolist() == [[0, 1], [1, 0]]
    assert opt.best_value == 2.5
    assert opt.archive.column("status").tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("x0,value\n1,2\n", r"no column 'x1' \(did you mean 'x0'\?\)"),
        ("a,b,value\n1,1,2\n", r"no column 'x0': it has \['a', 'b', 'value'\]"),
        ("x0;x1;value\n1;1;2\n", "it has one, 'x0;x1;value', expected commas between"),
        ("x0,x1\n1,2\n", "no column 'value'"),
        ("x0,x1,value\n1,2,3\n", "row 1, column 'x1': '2' is not a value"),
        ("x0,x1,value\n1,0,3\n1,1,much\n", "row 2: the value is 'much', expected a number"),
        ("x0,x1,value\n1,0\n", "row 1: 2 entries, expected 3"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(text)
    with pytest.raises(ValueError, match=said) as raised:
        ao.maximize(sum, ao.Space.binary(2), 3, data=table)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"data": 3}, r"data is 3, expected \(points, values\)"),
        ({"data": ([[0, 2]], [1.0])}, "data: point 0, variable 1: 2 is not a value"),
        ({"data": ([[0, 1]], [1.0, 2.0])}, "data: 2 values, expected 1"),
        ({"data": "nowhere.csv"}, "data is 'nowhere.csv', and there is no such file"),
        ({"data": "."}, "data is '.', which cannot be read: "),
        ({"data": [([9] * 99, 2.0)] * 500}, r"data is .{,300}\.\.\..{,3}, expected \(points, val"),
        ({"start": [[0, 2]]}, "start: point 0, variable 1: 2 is not a value"),
        ({"start": 3}, "start: points is 3"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        ao.maximize(sum, ao.Space.binary(2), 3, **options)


def test_a_spreadsheet_writes_truth_in_capitals(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("on,k,value\nTRUE,3,1\nFALSE,4,2\n")
    space = ao.Space({"on": ao.Binary(), "k": ao.Integer(1, 9)})
    opt = ao.Optimizer(space, 0, data=table)
    assert opt.archive.codes.tolist() == [[1, 2], [0, 3]]


def test_a_study_says_that_its_data_are_others(tmp_path: Path) -> None:
    study, ones = tmp_path / "study.db", ([[1] * len(SPACE)], [1.0])
    zeros = ([[0] * len(SPACE)], [1.0])
    ao.maximize(value, SPACE, 5, study=study, data=ones, **QUICK)
    for options, said in (
        ({}, "was started with data, and this call has none: pass the same"),
        ({"data": zeros}, "was started with other data than this call has: "),
        ({"data": ones, "start": zeros[0]}, "was started without start, and this call has some: "),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            ao.maximize(value, SPACE, 5, study=study, **QUICK, **options)


def test_an_optimizer_says_how_to_pass_a_study(tmp_path: Path) -> None:
    study = tmp_path / "study.db"
    ao.maximize(value, SPACE, 5, study=study, **QUICK)
    with pytest.raises(ValueError, match=r"a study: pass anyorder\.load\("):
        ao.Optimizer(SPACE, 0, data=study)
    assert ao.Optimizer(SPACE, 0, data=ao.load(study)).told == 5


# --- points to start from -------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["policy", "ils", "delta", "umda"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_starting_points_are_evaluated_first(algorithm: str, asynchronous: bool) -> None:
    start = [np.ones(8, int), np.arange(8) % 2]
    with ThreadPoolExecutor(1) as pool:
        options = {"executor": pool, "asynchronous": True} if asynchronous else {}
        result = ao.maximize(value, SPACE, 10, seed=0, algorithm=algorithm, start=start, **options)
    np.testing.assert_array_equal(result.history.codes[:2], start)
    assert result.evaluations == 10


def test_one_starting_point_will_do() -> None:
    point = {"on": True, "algo": "d", "size": None, "depth": 3}
    result = ao.minimize(speed, MIXED, 5, seed=0, algorithm="rls", start=point)
    assert result.history.points[0] == point


# --- studies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["policy", "tabu", "annealing", "delta", "p3"])
def test_a_study_with_data_continues_bit_for_bit(algorithm: str, tmp_path: Path) -> None:
    points, values = measured(60)
    options: dict[str, Any] = {
        "seed": 0, "algorithm": algorithm, "data": (points, values), "start": points[:3] ^ 1,
    }  # fmt: skip
    if algorithm == "policy":
        config = FAST.replace(restart_agreement=0.6)  # restarts, too
        options["algorithm"] = ao.policy.Policy(config)
    whole = ao.maximize(NK, budget=60, **options)
    study = tmp_path / "study.db"
    for budget in (1, 17, 44):
        ao.maximize(NK, budget=budget, study=study, **options)
    again = ao.resume(study, NK, 60)
    if algorithm != "annealing":  # whose schedule is that of its first budget
        assert_same(whole.history, again.history)
    assert_same(again.history, ao.load(study))
    assert again.best_value == ao.load(study).best[-1]
    with pytest.raises(ValueError, match="started with data"):
        ao.maximize(NK, budget=70, study=study, **options | {"data": None})


def test_a_study_without_a_state_is_replayed_with_its_data(tmp_path: Path) -> None:
    import sqlite3

    study = tmp_path / "study.db"
    options: dict[str, Any] = {"data": measured(40), **QUICK}
    ao.maximize(NK, budget=25, study=study, **options)
    with sqlite3.connect(study) as database:
        database.execute("DELETE FROM state")
    database.close()
    whole = ao.maximize(NK, budget=40, **options)
    assert_same(whole.history, ao.resume(study, NK, 40).history)


# --- programs -------------------------------------------------------------------------------------


def test_a_toml_file_has_start_and_data(tmp_path: Path) -> None:
    table, problem = tmp_path / "known.csv", tmp_path / "problem.toml"
    table.write_text("level,mode,value\n1,a,11\n2,b,12\n")
    lines = """
direction = "maximize"
budget = 2
algorithm = "rls"
start = [{ level = 3, mode = "b" }]
data = "known.csv"
study = "run.db"
[space]
level = { low = 1, high = 5 }
mode = ["a", "b"]
[command]
arguments = ["echo", "{mode}", "{level}"]
[value]
regex = "(\\\\d)"
"""
    problem.write_text(lines)
    done = CliRunner().invoke(main, ["run", str(problem)])
    assert done.exit_code == 0, done.output
    history = ao.load(tmp_path / "run.db")
    assert history.values[:3].tolist() == [11, 12, 3]
    assert history.points[2] == {"level": 3, "mode": "b"}
    problem.write_text(lines.replace("level = 3", "level = 9").replace('"run.db"', '"other.db"'))
    done = CliRunner().invoke(main, ["run", str(problem)])
    assert done.exit_code == 2
    assert "line 5" in done.output
    problem.write_text(lines.replace('data = "known.csv"', "").replace("run.db", "third.db"))
    done = CliRunner().invoke(main, ["run", str(problem), "--data", str(tmp_path / "run.db")])
    assert done.exit_code == 0, done.output
    measured = history.values[~history.cached | (history.generations == -1)]
    assert len(measured) == 4  # two of the table, two evaluated
    assert ao.load(tmp_path / "third.db").values[:4].tolist() == measured.tolist()


def test_telling_one_by_one_teaches_the_policy() -> None:
    points = np.random.default_rng(0).integers(0, 2, (200, 12))
    opt = ao.Optimizer(ao.Space.binary(12), seed=0, algorithm="policy")
    first = opt.ask(200).mean()
    state = None
    for k, point in enumerate(points):
        opt.tell(point, float(point.sum()))
        if k == 107:  # in the middle of two generations
            state = opt.state_dict()
    taught = opt.ask(200).mean()
    assert taught > first + 0.1
    assert state is not None
    again = ao.Optimizer.from_state(state)
    for point in points[108:]:
        again.tell(point, float(point.sum()))
    again.ask(200)
    np.testing.assert_array_equal(again.ask(50), opt.ask(50))
