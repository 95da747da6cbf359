"""Conditional variables: in the space, through every strategy, in studies, files and programs."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import refused

import anyorder as ao
from anyorder import Binary, Categorical, Float, Integer, Space
from anyorder.archive.knowledge import read_data
from anyorder.space.digits import Digits
from anyorder.strategies.auto.operators.explore import Explore
from anyorder.strategies.auto.search import AutoSearch
from anyorder.strategies.create import create
from anyorder.strategies.plain.p3 import P3
from anyorder.strategies.policy.search import PolicySearch
from anyorder.testing import _linear, _partly_failing, _Run

SPACE = Space(
    {
        "algo": Categorical(["a", "b", "c"]),
        "depth": Integer(1, 8, when={"algo": "b"}),
        "rate": Float(1e-4, 1, levels=201, log=True, when={"algo": ("b", "c")}),
        "deep": Binary(when={"depth": [6, 7, 8]}),
        "x": Integer(0, 1000),
        "y": Binary(),
    }
)


def value(point: dict[str, Any]) -> float:
    """At most 1.3; fails where a variable is there and should not be, or the other way round."""
    algo = point["algo"]
    expected = {"algo", "x", "y"} | ({"depth"} if algo == "b" else set())
    expected |= {"rate"} if algo != "a" else set()
    expected |= {"deep"} if point.get("depth", 0) > 5 else set()
    assert point.keys() == expected
    found = 0.1 * point["y"] - abs(point["x"] - 300) / 1000
    if algo == "b":
        found += point["depth"] / 8 - abs(np.log10(point["rate"]) + 2) / 4
        found += 0.2 * point.get("deep", False)
    return float(found + (algo == "c") * 0.3)


def deep_enough(point: dict[str, Any]) -> bool:
    return bool(point.get("depth", 0) >= 5)


def by_how_much(point: dict[str, Any]) -> float:
    return float(5 - point["depth"]) if "depth" in point else 9.0


# The space --------------------------------------------------------------------------------------


def test_points_have_what_is_present() -> None:
    points = SPACE.decode([[0, 3, 4, 1, 5, 1], [1, 0, 4, 1, 5, 1], [1, 6, 4, 1, 5, 0]])
    assert [list(point) for point in points] == [
        ["algo", "x", "y"], ["algo", "depth", "rate", "x", "y"],
        ["algo", "depth", "rate", "deep", "x", "y"],
    ]  # fmt: skip
    codes = SPACE.encode(points)
    assert codes.tolist() == [[0, 0, 0, 0, 5, 1], [1, 0, 4, 0, 5, 1], [1, 6, 4, 1, 5, 0]]
    assert SPACE.decode(codes) == points
    assert [SPACE.point(row) for row in codes] == points


def test_absent_variables_make_no_difference() -> None:
    point = {"algo": "a", "x": 1, "y": 0}
    others = [{"depth": 5}, {"rate": None}, {"depth": 8, "deep": True}]
    assert len({SPACE.encode([point | other]).tobytes() for other in [{}, *others]}) == 1


def test_what_encode_refuses() -> None:
    with refused(ValueError, "point 1 lacks 'depth'", "every variable that is present"):
        SPACE.encode([{"algo": "a", "x": 1, "y": 0}, {"algo": "b", "x": 1, "y": 0, "rate": 1}])
    with refused(ValueError, "point 0 has unexpected", "'z'"):
        SPACE.encode([{"algo": "a", "z": 1, "y": 0}])
    with refused(ValueError, "'depth'", "9 is not a value"):
        SPACE.encode([{"algo": "a", "depth": 9, "x": 1, "y": 0}])


def test_the_number_of_points() -> None:
    space = Space(
        {
            "a": Categorical([1, 2, 3]),
            "b": Integer(1, 4, when={"a": [1, 2]}),
            "c": Binary(when={"a": 2, "b": [2, 3]}),
            "d": Integer(1, 5, when=lambda p: p.get("c", False)),
        }
    )
    codes = np.array(list(itertools.product(*map(range, space.cardinalities))), np.int32)
    assert space.size == len(codes) == 120
    assert space.points == len(np.unique(space.canonical(codes), axis=0))
    tried: list[dict[str, Any]] = []
    result = ao.maximize(lambda p: tried.append(p) or 0.0, space, 200, seed=0, algorithm="random")  # type: ignore[func-returns-value]
    assert (result.stop_reason, len(tried)) == ("exhausted", space.points)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"x": Binary(when={"y": 1}), "y": Binary(when={"x": 1})}, "names 'y', a later variable"),
        ({"x": Binary(when={"x": 1})}, "names 'x', itself"),
        ({"xy": Binary(), "z": Binary(when={"x": 1})}, "names 'x' (did you mean 'xy'?)"),
        ({"x": Binary(), "z": Binary(when={"x": 2})}, "2 is not a value of Binary()"),
        ({"x": Binary(), "z": Binary(when={"x": []})}, "without a value"),
        ({"x": Binary(), "z": Binary(when=lambda p: p["q"])}, "raised KeyError('q')"),
        ([Binary(), Binary(when={"x": 1})], "requires names"),
    ],
)
def test_bad_conditions(variables: Any, words: str) -> None:
    with refused(ValueError, words):
        Space(variables)


def test_conditions_of_another_type() -> None:
    with refused(TypeError, "when is 3"):
        Binary(when=3)
    with refused(ValueError, "when is empty"):
        Integer(1, 2, when={})
    with refused(TypeError, "the condition of 'z' returned None"):
        Space({"x": Binary(), "z": Binary(when=lambda p: None)})


def test_json_and_copies() -> None:
    again = Space.from_json(SPACE.to_json())
    assert again == SPACE == pickle.loads(pickle.dumps(SPACE))
    assert again.variables[3].when == {"depth": [6, 7, 8]}
    pairs = Space({"a": Categorical([("b", 1), 2]), "c": Float(0, 1, when={"a": ("b", 1)})})
    assert Space.from_json(pairs.to_json()) == pairs
    assert pairs.decode([[1, 0]]) == [{"a": 2}]
    function = Space({"a": Binary(), "b": Binary(when=lambda p: p["a"])})
    with refused(TypeError, "a function, which cannot be written to JSON", "require a dict"):
        function.to_json()


# Searches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ao.strategies.names())
def test_every_strategy(name: str) -> None:
    seen: list[bytes] = []

    def f(point: dict[str, Any]) -> float:
        seen.append(SPACE.encode([point]).tobytes())
        return value(point)

    result = ao.maximize(f, SPACE, 150, seed=0, algorithm=name, progress=False)
    assert result.evaluations == len(seen) == len(set(seen)) == 150
    assert result.best_value == value(result.best)
    if name != "random":
        assert result.best_value > 0.8  # only "b" has more than 0.4


@pytest.mark.parametrize("name", ao.strategies.names())
def test_strategies_keep_the_protocol(name: str) -> None:
    wide = Space({"a": Categorical([1, 2]), "b": Integer(1, 500, when={"a": 2}), "c": Binary()})
    for space in (wide, SPACE):
        run = _Run(lambda s, seed: create(name, s, seed), space, 0)
        run.use(_linear, 3)
        expected = run.restore().use(_linear, 3).log
        assert run.use(_linear, 3).log == expected
        run.use(_partly_failing, 3)


@pytest.mark.parametrize("name", ["policy", "delta", "tabu", "mimic", "p3"])
def test_studies_are_resumed(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"seed": 3, "algorithm": name, "progress": False}
    whole = ao.maximize(value, SPACE, 60, **options)
    ao.maximize(value, SPACE, 25, study=tmp_path / "run.db", **options)
    result = ao.resume(tmp_path / "run.db", value, budget=60, progress=False)
    assert result.history.points == whole.history.points
    loaded = ao.load(tmp_path / "run.db")
    assert loaded.points == whole.history.points


def test_a_study_refuses_a_function(tmp_path: Path) -> None:
    space = Space({"a": Binary(), "b": Binary(when=lambda p: p["a"])})
    with refused(TypeError, "a function", "studies require a dict"):
        ao.maximize(len, space, 10, study=tmp_path / "run.db", progress=False)
    assert ao.maximize(len, space, 10, seed=0, progress=False).best_value == 2


def test_the_policy_hides_what_is_absent() -> None:
    policy = PolicySearch(SPACE, 0, engine="reference")
    proposals = policy.propose(10)
    kept = np.stack([policy._open[ticket].codes for ticket in proposals.tickets])
    owner = Digits(SPACE).owner
    present = SPACE.present(proposals.codes)
    assert not present.all()
    assert np.array_equal(kept >= 0, present[:, owner])
    assert (proposals.codes[~present] == 0).all()


def test_what_is_absent_is_not_trained() -> None:
    space = Space({"a": Binary(), "b": Integer(1, 5, when={"a": True}), "c": Binary()})
    policy = PolicySearch(space, 0, ao.policy.Config(population=2), engine="reference")
    before = policy._policy.theta.copy()
    tickets, codes = policy.propose(2, np.array([[0, 0, 0], [0, 0, 1]], np.int32))
    answers = [
        ao.strategies.Answer(t, c, v) for t, c, v in zip(tickets, codes, (1, 2), strict=True)
    ]
    policy.learn(answers)
    start = policy._model.network.theta_start  # type: ignore[attr-defined]
    same = (policy._policy.theta == before)[0]
    assert policy.generation == 1
    assert same[start[1] : start[2]].all()
    assert not same[start[2] :].all()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({"network": "shared", "hidden": (8, 8)}, marks=pytest.mark.slow),
        {"critic": 1.0},
        {"generation_order": "gibbs", "training_order": "none", "gibbs_sweeps": 2},
        {"generation_order": "learned", "training_order": "learned", "epochs": 10},
    ],
)
def test_many_runs_are_single_runs(settings: dict[str, Any]) -> None:
    config = ao.policy.Config(**settings)
    runs = ao.policy.solve_many(
        value, space=SPACE, runs=2, budget=50, seeds=[4, 5], config=config, progress=False
    )
    for seed, run in zip((4, 5), runs, strict=True):
        alone = ao.maximize(
            value, SPACE, 50, seed=seed, algorithm=ao.policy.Policy(config), cache=False,
            progress=False,
        )  # fmt: skip
        assert alone.algorithm == "policy"
        assert np.array_equal(run.values, alone.history.values)
        assert run.best == alone.best


@pytest.mark.parametrize("constraint", [deep_enough, by_how_much])
@pytest.mark.parametrize("name", ["policy", "ils", "auto"])
def test_refused_points_are_repaired(name: str, constraint: Any, tmp_path: Path) -> None:
    seen: list[bytes] = []

    def f(point: dict[str, Any]) -> float:
        assert deep_enough(point)
        seen.append(SPACE.encode([point]).tobytes())
        return value(point)

    options: dict[str, Any] = {"seed": 1, "algorithm": name, "constraint": constraint}
    result = ao.maximize(f, SPACE, 40, progress=False, **options)
    assert result.evaluations == len(seen) == len(set(seen)) == 40
    history = result.history
    assert np.array_equal(history.codes, SPACE.canonical(history.codes))
    ao.maximize(value, SPACE, 15, study=tmp_path / "run.db", progress=False, **options)
    again = ao.resume(tmp_path / "run.db", value, 40, constraint=constraint, progress=False)
    assert again.history.points == history.points


def test_data_of_earlier_runs(tmp_path: Path) -> None:
    from anyorder.cli import main

    study, table = tmp_path / "run.db", tmp_path / "run.csv"
    ao.maximize(value, SPACE, 40, seed=0, algorithm="random", study=study, progress=False)
    assert CliRunner().invoke(main, ["show", str(study), "--output", str(table)]).exit_code == 0
    earlier = read_data(ao.load(study), SPACE)
    for some, other in zip(read_data(table, SPACE), earlier, strict=True):
        np.testing.assert_array_equal(some, other)
    policy = PolicySearch(SPACE, 0, ao.policy.Config(epochs=3, hidden=(4,)), engine="reference")
    before = ao.Optimizer(SPACE, 0, algorithm=policy, data=earlier).told
    assert before == 40
    assert policy.generation == 7  # 4 of all points, 2 of the better half, 1 of the better quarter
    lines = table.read_text(encoding="utf-8").splitlines()
    row = next(k for k, line in enumerate(lines) if line.startswith("b,"))
    lines[row] = ",".join(["b", "", *lines[row].split(",")[2:]])
    table.write_text("\n".join(lines), encoding="utf-8")
    with refused(ValueError, f"row {row}, column 'depth': there is no value"):
        read_data(table, SPACE)


def test_the_explorer_of_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    """P3 gets the answers to what it proposed, in the digits and absent values that it chose."""
    monkeypatch.setattr(AutoSearch, "operators", AutoSearch.operators[:1])
    monkeypatch.setattr(AutoSearch, "explorers", (P3,))
    monkeypatch.setattr(Explore, "weight", lambda self, idle: 100.0)
    run = _Run(lambda s, seed: create("auto", s, seed), SPACE, 0)
    run.use(_linear, 100)
    explorer = run.strategy._operators["p3"]
    p3 = explorer._strategy
    assert p3.generation > 0 or p3._point is not None
    assert run.strategy.facts()["explorers"]["p3"] > 10
    assert not p3._as_proposed.keys() - set(explorer._open.values())
    expected = run.restore().use(_linear, 20).log
    assert run.use(_linear, 20).log == expected


def test_ask_and_tell() -> None:
    optimizer = ao.Optimizer(SPACE, seed=0, algorithm="ils")
    optimizer.suggest({"algo": "a", "x": 3, "y": True, "depth": 5})
    (first,) = optimizer.ask(1)
    assert first == {"algo": "a", "x": 3, "y": True}
    optimizer.tell({**first, "depth": 7}, 1.0)  # the same point
    assert optimizer.best == first
    assert not len(optimizer.state_dict()["open_points"])


def test_tables() -> None:
    pytest.importorskip("pandas")
    table = ao.maximize(value, SPACE, 40, seed=0, algorithm="random", progress=False).to_pandas()
    assert table["depth"].isna().equals(table["algo"] != "b")
    assert table["x"].notna().all()


def test_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = ao.maximize(value, SPACE, 40, seed=0, progress=False)
    result.plot(tmp_path / "run.png", kind="all")
    assert (tmp_path / "run.png").exists()


# Programs ---------------------------------------------------------------------------------------

FILE = """
direction = "maximize"
budget = 12
algorithm = "random"
seed = 0
study = "run.db"

[space]
algo = ["a", "b"]
depth = {{ low = 2, high = 8, step = 2, when = {{ algo = "b" }} }}
rate = {{ low = 0.001, high = 1.0, levels = 4, log = true, when = {{ depth = [4, 6] }} }}
kind = {{ values = ["x", "y"], when = {{ algo = ["a"] }} }}
fast = {{ flag = "--fast", when = {{ algo = "b" }} }}

[value]
regex = '(\\d+)$'

[command]
{command}
"""
LIST = 'arguments = ["echo", "{algo}", "--depth={depth}", "{rate}", "{kind}", "{fast}", "7"]'
SCRIPT = """shell = true
arguments = 'echo "$AO_algo $AO_depth $AO_rate $AO_kind" $AO_fast >&2; echo $(( AO_depth + 1 ))'
"""


def test_a_file_with_conditions(tmp_path: Path) -> None:
    from anyorder.program import file

    (tmp_path / "problem.toml").write_text(FILE.format(command=LIST))
    job = file.read(tmp_path / "problem.toml")
    variables = dict(zip(job.space.names or (), job.space.variables, strict=True))
    assert list(variables["depth"].values) == [2, 4, 6, 8]
    assert list(variables["rate"].values) == [0.001, 0.01, 0.1, 1.0]
    assert variables["rate"].when == {"depth": [4, 6]}
    assert job.command.line({"algo": "a", "kind": "x"}) == "echo a x 7"
    full = {"algo": "b", "depth": 4, "rate": 0.1, "fast": True}
    assert job.command.line(full) == "echo b --depth=4 0.1 --fast 7"
    assert job.command.line({"algo": "b", "depth": 8, "fast": False}) == "echo b --depth=8 7"
    assert job.command({"algo": "a", "kind": "x"}) == 7


def test_a_script_with_conditions(tmp_path: Path) -> None:
    from anyorder.program import file

    (tmp_path / "problem.toml").write_text(FILE.format(command=SCRIPT))
    command = file.read(tmp_path / "problem.toml").command
    assert command({"algo": "b", "depth": 4, "rate": 0.1, "fast": True}) == 5
    assert command({"algo": "a", "kind": "x"}) == 1  # empty text is 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('x = { low = 1, high = 3, when = "algo" }', "when of x"),
        ('x = { low = 1, high = 3, when = { other = "a" } }', "names 'other'"),
        ("x = { low = 1, high = 3, levels = 3, step = 2 }", "step"),
        ("x = { low = 0.0, high = 1.0 }", "levels = ... for a grid of numbers"),
        ("x = { low = 1.5, high = 3 }", "low is 1.5 and high is 3, expected integers, or levels"),
    ],
)
def test_bad_lines(line: str, words: str, tmp_path: Path) -> None:
    from anyorder.program import file

    text = FILE.format(command=LIST).replace('algo = ["a", "b"]', f'algo = ["a", "b"]\n{line}')
    (tmp_path / "problem.toml").write_text(text)
    with refused(ValueError, words):
        file.read(tmp_path / "problem.toml")


def test_the_commands(tmp_path: Path) -> None:
    from anyorder.cli import main

    (tmp_path / "problem.toml").write_text(FILE.format(command=LIST))
    study, table = str(tmp_path / "run.db"), tmp_path / "run.csv"
    for arguments in (["run", str(tmp_path / "problem.toml")], ["show", study],
                      ["show", study, "--output", str(table)]):  # fmt: skip
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, done.output
    head, *rows = [row.split(",") for row in table.read_text().splitlines()]
    assert head[:5] == ["algo", "depth", "rate", "kind", "fast"]
    assert {row[0] for row in rows} == {"a", "b"}
    assert all((row[1] == "") == (row[0] == "a") and (row[3] == "") == (row[0] == "b")
               for row in rows)  # fmt: skip
