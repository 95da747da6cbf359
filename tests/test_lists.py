"""Subsets and permutations: spaces, moves, the model of lists, every strategy, files and tables."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st

import anyorder as ao
from anyorder import Binary, Categorical, Integer, Permutation, Sequence, Space, Subset
from anyorder.archive.knowledge import read_data
from anyorder.space.changes import Changes
from anyorder.space.digits import wide_scales
from anyorder.space.groups import ListGroup
from anyorder.space.neighbours import Neighbourhood
from anyorder.strategies.auto import lists
from anyorder.strategies.auto.search import AutoSearch
from anyorder.strategies.create import create
from anyorder.strategies.models.lists import AdditiveModel
from anyorder.testing import _linear, _partly_failing, _Run

SPACE = Space(
    {
        "tour": Permutation(list("abcde")),
        "level": Integer(1, 6),
        "pair": Subset(["x", "y", "z", None], size=2),
        "deep": Binary(when={"level": [4, 5, 6]}),
        "some": Subset(range(5), size=(1, 3)),
    }
)
BEST = {"tour": list("badce"), "level": 6, "pair": ["y", None], "deep": True, "some": [1, 4]}
PLAIN = {"seed": 0, "progress": False}


def value(point: dict[str, Any]) -> float:
    """How much of the best point this is."""
    assert SPACE.decode(SPACE.encode([point])) == [point]
    found = sum(a == b for a, b in zip(point["tour"], BEST["tour"], strict=True))
    found += len({*point["pair"]} & {*BEST["pair"]}) + point.get("deep", 0)
    return found + point["level"] / 6 - len({*point["some"]} ^ {*BEST["some"]})


def groups() -> st.SearchStrategy[ListGroup]:
    def subset(size: int) -> st.SearchStrategy[ListGroup]:
        pairs = st.tuples(st.integers(0, size), st.integers(0, size)).map(sorted)
        return pairs.map(lambda p: Subset(range(size), size=(p[0], p[1])).group(0))

    orders = st.integers(1, 8).map(lambda m: Permutation(range(m)).group(0))
    return st.one_of(orders, st.integers(1, 8).flatmap(subset))


# Spaces -----------------------------------------------------------------------------------------


def test_points_are_lists() -> None:
    codes = SPACE.encode([BEST])
    assert codes.tolist() == [[1, 0, 3, 2, 4, 5, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1]]
    assert SPACE.decode(codes) == [BEST] == [SPACE.point(codes[0])]
    assert len(SPACE) == 16
    assert SPACE.labels is not None
    assert SPACE.labels[4:8] == ("tour[4]", "level", "pair[0]", "pair[1]")
    any_order = {**BEST, "pair": (None, "y"), "some": np.array([4, 1])}
    assert np.array_equal(SPACE.encode([any_order]), codes)
    assert np.array_equal(SPACE.encode([{**BEST, "some": {4, 1}}]), codes)
    # 3 levels without and 3 with "deep"
    assert SPACE.points == 120 * (3 + 3 * 2) * 6 * (5 + 10 + 10)
    assert Space({"p": Permutation(range(5)), "s": Subset(range(4))}).points == 120 * 16


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tour": list("abcdx")}, ("'tour'", "'x' is not one of its items")),
        ({"tour": list("abcda")}, ("'tour'", "'a' is there more than once")),
        ({"tour": list("abcd")}, ("'tour'", "it has 4 items, expected all 5")),
        ({"tour": "abcde"}, ("'tour'", "'abcde'", "expected a list")),
        ({"tour": 3}, ("'tour'", "expected a list")),
        ({"tour": set("abcde")}, ("'tour'", "expected a list")),
        ({"pair": ["x"]}, ("'pair'", "it has 1 items, expected 2")),
        ({"pair": ["x", "x"]}, ("'pair'", "'x' is there more than once")),
        ({"some": []}, ("'some'", "it has 0 items, expected 1 to 3")),
        ({"some": [1, 7]}, ("'some'", "7 is not one of its items")),
    ],
)
def test_what_is_no_value(change: dict[str, Any], words: tuple[str, ...]) -> None:
    with refused(ValueError, "point 0", *words):
        SPACE.encode([{**BEST, **change}])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Space([Permutation([1, 2])]), "name"),
        (lambda: Space({"t": Permutation([1, 2]), "t[0]": Binary()}), "'t[0]' is the name of"),
        (lambda: Space({"t": Subset([1, 2]), "x": Binary(when={"t": 1})}), "'t'"),
        (lambda: Permutation([]), "items is empty"),
        (lambda: Permutation(["a", "a"]), "'a'"),
        (lambda: Subset([1, 2], size=3), "size is 3"),
        (lambda: Subset([1, 2], size=(2, 1)), "size is (2, 1), expected low <= high"),
        (lambda: Subset([1, 2], size=(1, 2, 3)), "size is (1, 2, 3)"),
        (lambda: Subset([1, 2], size=-1), "size is -1"),
    ],
)
def test_what_is_no_variable(make: Any, words: str) -> None:
    with refused(ValueError, words):
        make()


def test_a_size_of_another_type() -> None:
    for size in ("2", 2.0, True, range(1, 3)):
        with refused(TypeError, f"size is {size!r}, expected a number or (low, high)"):
            Subset([1, 2, 3], size=size)


def test_text_is_no_list_of_items() -> None:
    with refused(TypeError, "items is 'ab', expected a list of items"):
        Permutation("ab")


def test_documents_and_copies() -> None:
    again = Space.from_json(SPACE.to_json())
    assert again == SPACE == pickle.loads(pickle.dumps(SPACE))
    assert SPACE.to_dict()["version"] == 3
    assert Space({"n": Integer(1, 2)}).to_dict()["version"] == 1
    tuples = Space({"p": Permutation([(1, "a"), (2, "b")]), "s": Subset([1.5, True], size=1)})
    assert Space.from_json(tuples.to_json()) == tuples
    with refused(ValueError, "entry 0", "size is 4"):
        entry = {"name": "s", "type": "subset", "items": [1, 2], "size": 4}
        Space.from_dict({"format": "anyorder-space", "version": 3, "variables": [entry]})


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_codes_and_points_are_one_to_one(data: st.DataObject) -> None:
    codes = np.array([[data.draw(st.integers(0, int(c) - 1)) for c in SPACE.cardinalities]])
    canonical = SPACE.canonical(codes.astype(np.int32))
    points = SPACE.decode(canonical)
    assert np.array_equal(SPACE.encode(points), canonical)
    assert np.array_equal(SPACE.canonical(canonical), canonical)
    if not all(group.valid(codes[:, group.columns])[0] for group in SPACE.groups):
        with refused(ValueError, "point 0", "are no value of it"):
            SPACE.decode(codes)


# Groups and changes -----------------------------------------------------------------------------


@settings(deadline=None, max_examples=80)
@given(groups(), st.integers(0, 2**32), st.data())
def test_groups_stay_valid(group: ListGroup, seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    rows = group.uniform(4, rng)
    assert group.valid(rows).all()
    values = len(group.most)
    anything = rng.integers(values, size=(6, group.size)).astype(np.int32)
    kept = rng.random(group.size) < 0.5
    for repaired in (
        group.repair(anything),
        group.repair(anything, rng),
        group.repair(anything, rng, kept),
    ):
        assert group.valid(repaired).all()
        valid = group.valid(anything)
        assert np.array_equal(repaired[valid], anything[valid])
    assert np.array_equal(group.repair(rows, rng), rows)
    if group.fixed:
        return
    column = data.draw(st.integers(0, group.size - 1))
    wanted = data.draw(st.integers(0, values - 1))
    for row in rows.copy():
        before = row.copy()
        group.move(row, column, rng)
        assert group.valid(row[None]).all()
        assert not np.array_equal(row, before)
        goal = rows[0] if rng.random() < 0.5 else None
        group.give(row, column, wanted, rng, goal)
        assert group.valid(row[None]).all()
        assert row[column] == wanted or not (row == wanted).any()


def test_uniform_subsets_are_equally_likely() -> None:
    rows = Subset(range(4), size=(1, 2)).group(0).uniform(5_000, np.random.default_rng(0))
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    assert len(counts) == 10
    assert abs(counts / 500 - 1).max() < 0.25  # 5 standard deviations


def test_changes_are_all_neighbours_once() -> None:
    cards = SPACE.cardinalities.astype(np.int64)
    changes = Changes(cards, None, SPACE.groups)
    everything = np.arange(len(changes))
    strategy = create("random", SPACE, 0)
    for point in strategy.propose(12).codes:
        chosen = changes.distinct(point, everything)
        found = changes.apply(point, chosen)
        for group in SPACE.groups:
            assert group.valid(found[:, group.columns]).all()
        assert len(np.unique(found, axis=0)) == len(found)
        assert not (found == point).all(axis=1).any()
        for change, other in zip(chosen.tolist(), found, strict=True):
            there, back = changes.between(point, other) or (-1, -1)
            assert there == change
            assert np.array_equal(changes.apply(other, np.array([back]))[0], point)
        impossible = np.setdiff1d(everything, chosen)
        others = changes.apply(point, impossible)
        wrong = (others == point).all(axis=1)
        for group in SPACE.groups:
            wrong |= ~group.valid(others[:, group.columns])
        assert wrong.all()
        assert sorted(changes.shuffle(np.random.default_rng(1)).tolist()) == everything.tolist()


def test_neighbours_of_an_order() -> None:
    """Exchanges, insertions and reversals of four items, each once."""
    group = Permutation(range(4)).group(0)
    changes = Changes(np.full(4, 4), None, (group,))
    found = {tuple(row) for row in changes.apply(np.arange(4), np.arange(len(changes))).tolist()}
    expected = set()
    for a, b in itertools.permutations(range(4), 2):
        row = [0, 1, 2, 3]
        row[a], row[b] = row[b], row[a]
        rest = [k for k in range(4) if k != a]
        low, high = min(a, b), max(a, b)
        expected |= {tuple(row), (*rest[:b], a, *rest[b:])}
        expected.add((*range(low), *range(high, low - 1, -1), *range(high + 1, 4)))
    assert found == expected
    assert len(changes) == len(expected)


def test_changes_of_lists_come_in_turns() -> None:
    """The steps of a wide variable, far ones first, are not put behind all moves of a list."""
    space = Space({"tour": Permutation(range(30)), "n": Integer(1, 1_000)})
    scales = wide_scales(space)
    changes = Changes(space.cardinalities.astype(np.int64), scales, space.groups)
    order = changes.shuffle(np.random.default_rng(0))
    places = np.flatnonzero(changes.variables[order] == 30)
    assert places.max() < len(changes) // 2
    steps = np.abs(changes.steps[order[places]])
    assert (np.diff(steps) <= 0).all()


# --- the portfolio, and its model of lists --------------------------------------------------------

WIDE = Space(
    {
        "t": Permutation(range(7)),
        "n": Integer(1, 5),
        "s": Subset(range(8), size=(2, 4)),
        "u": Permutation(range(3)),
        "k": Subset(range(6), size=2),
        "r": Sequence(range(3), [2, 1, 2]),
    }
)


def test_predicted_gains_are_differences_of_predictions() -> None:
    near, rng = Neighbourhood(WIDE), np.random.default_rng(1)
    changes = near.changes
    model = AdditiveModel(near, changes)
    kernels = model._kernels
    assert len(model._choices()) == 6
    for kinds in model._choices():
        model.kinds = kinds
        model.worth = rng.normal(size=model._size)
        model.worth[-2:] = 0.0

        def predicted(points: Any) -> Any:
            found = np.empty(len(points))
            kernels.predict(model.features(points), model.worth, found)
            return found

        for point in near.sample(4, rng):
            chosen = changes.distinct(point, np.arange(len(changes)))
            gains = predicted(changes.apply(point, chosen)) - predicted(point[None])
            np.testing.assert_allclose(model.gains(point, chosen), gains, atol=1e-9)
            possible = [
                kernels.possible(model._lists, model._moves, point, c) for c in range(len(changes))
            ]
            tried = changes.apply(point, np.flatnonzero(possible))  # some twice, by equal items
            found = changes.apply(point, chosen)
            assert np.array_equal(np.unique(tried, axis=0), np.unique(found, axis=0))
            top = model.climb(point, model.worth, rng.permutation(len(changes)))
            assert all(group.valid(top[None, group.columns])[0] for group in WIDE.groups)
            better = changes.apply(top, changes.distinct(top, np.arange(len(changes))))
            assert predicted(better).max() <= predicted(top[None])[0] + 1e-9
            assert predicted(top[None])[0] >= predicted(point[None])[0]


def test_the_portfolio_is_restored_when_answers_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lists, "LATEST", 40)
    run = _Run(AutoSearch, SPACE, 0)
    for _ in range(4):
        run.use(_linear, 2)
        expected = run.restore().use(_linear, 3).log
        assert run.use(_linear, 3).log == expected
    kept = run.strategy._lists  # type: ignore[attr-defined]
    assert kept._answers > 100
    assert len(kept._values) <= 50


def distances(seed: int, cities: int) -> Any:
    places = np.random.default_rng(seed).random((cities, 2))
    return np.linalg.norm(places[:, None] - places, axis=2)


def test_tours_are_learned() -> None:
    """Shorter tours than those of iterated local search, on average."""
    found: dict[str, list[float]] = {"auto": [], "ils": []}
    for name, seed in itertools.product(found, range(3)):
        table = distances(seed, 20)

        def length(point: dict[str, Any], table: Any = table) -> float:
            tour = point["tour"]
            return float(table[tour, np.roll(tour, 1)].sum())

        space = Space({"tour": Permutation(range(20))})
        result = ao.minimize(length, space, 300, seed=seed, algorithm=name, progress=False)
        found[name].append(result.best_value or 0.0)
    assert np.mean(found["auto"]) < 0.9 * np.mean(found["ils"])


def test_the_default() -> None:
    result = ao.maximize(value, SPACE, 150, **PLAIN)
    assert result.algorithm == "auto"
    assert result.best_value is not None
    assert result.best_value >= value(BEST) - 2
    assert result.facts["model"].startswith("codes+")


# Every strategy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ao.strategies.names())
def test_every_strategy(name: str, tmp_path: Path) -> None:
    seen: list[bytes] = []

    def f(point: dict[str, Any]) -> float:
        seen.append(SPACE.encode([point]).tobytes())
        return value(point)

    # its schedule ends where the run that is not interrupted does
    algorithm = "annealing+budget=60" if name == "annealing" else name
    options: dict[str, Any] = {**PLAIN, "algorithm": algorithm}
    whole = ao.maximize(f, SPACE, 60, **options)
    assert whole.evaluations == len(seen) == len(set(seen)) == 60
    codes = whole.history.codes
    assert np.array_equal(codes, SPACE.canonical(codes))
    ao.maximize(value, SPACE, 25, study=tmp_path / "run.db", **options)
    result = ao.resume(tmp_path / "run.db", value, budget=60, progress=False)
    assert result.history.points == whole.history.points
    assert ao.load(tmp_path / "run.db").points == whole.history.points
    run = _Run(lambda s, seed: create(name, s, seed), SPACE, 0)
    run.use(_linear, 2)
    expected = run.restore().use(_partly_failing, 2).log
    assert run.use(_partly_failing, 2).log == expected


def after(point: dict[str, Any]) -> float:
    """How far items come too late: "a" before "b" before "c", and "d" before "e"."""
    at = {item: k for k, item in enumerate(point["tour"])}
    return sum(max(0, at[a] - at[b]) for a, b in ("ab", "bc", "de"))


def apart(point: dict[str, Any]) -> bool:
    return not {"y", None} <= {*point["pair"]} and point["tour"][0] != "a"


@pytest.mark.parametrize("constraint", [after, apart])
@pytest.mark.parametrize("name", ["auto", "delta", "ils", "random", "policy"])
def test_constraints(name: str, constraint: Any) -> None:
    def f(point: dict[str, Any]) -> float:
        result = constraint(point)
        assert result is True or result == 0
        return value(point)

    options: dict[str, Any] = {**PLAIN, "algorithm": name, "constraint": constraint}
    result = ao.maximize(f, SPACE, 40, start=[BEST], **options)
    assert result.evaluations == 40
    codes = result.history.codes
    assert np.array_equal(codes, SPACE.canonical(codes))
    assert not np.array_equal(codes[0], codes[1])  # what was refused, and what it became


def test_many_items_in_order() -> None:
    """13 of 20 items must come one after the other: one in 13! orders."""
    hidden = np.random.default_rng(0).permutation(20)[:13].tolist()
    pairs = list(itertools.pairwise(hidden))

    def late(point: dict[str, Any]) -> float:
        at = {item: k for k, item in enumerate(point["order"])}
        return sum(max(0, at[a] - at[b]) for a, b in pairs)

    space = Space({"order": Permutation(range(20))})
    result = ao.maximize(lambda p: p["order"][0], space, 30, constraint=late, **PLAIN)
    assert result.evaluations == 30


def test_start_and_data(tmp_path: Path) -> None:
    from anyorder.cli import main

    study, table = tmp_path / "run.db", tmp_path / "run.csv"
    start = [{**BEST, "some": [4, 1]}]
    run = ao.maximize(value, SPACE, 30, start=start, study=study, algorithm="random", **PLAIN)
    assert run.history.points[0] == BEST == run.best
    assert CliRunner().invoke(main, ["show", str(study), "--output", str(table)]).exit_code == 0
    assert table.read_text().startswith("tour[0],tour[1],")
    earlier = read_data(ao.load(study), SPACE)
    forms: list[Any] = [table, (run.history.points, run.history.values)]
    try:
        forms.append(run.to_pandas())
        assert list(forms[-1]["tour[0]"]) == [point["tour"][0] for point in run.history.points]
    except ImportError:
        pass
    for form in forms:
        for some, other in zip(read_data(form, SPACE), earlier, strict=True):
            np.testing.assert_array_equal(some, other)
    better = ao.maximize(value, SPACE, 20, data=earlier, algorithm="auto", **PLAIN)
    assert better.evaluations == 20
    assert np.mean(better.history.values[30:]) > np.mean(run.history.values[1:]) + 1
    lines = table.read_text().splitlines()
    cells = lines[1].split(",")
    lines[1] = ",".join([cells[1], *cells[1:]])
    table.write_text("\n".join(lines))
    with refused(ValueError, "row 1", "'tour' is no value"):
        read_data(table, SPACE)


def test_ask_and_tell() -> None:
    optimizer = ao.Optimizer(SPACE, seed=0, direction="minimize")
    optimizer.suggest(BEST)
    (first,) = optimizer.ask(1)
    assert first == BEST
    optimizer.tell(first, -9.0)
    for _ in range(10):
        points = optimizer.ask(3)
        optimizer.tell(points, [-value(point) for point in points])
    assert optimizer.best == BEST
    again = ao.Optimizer.from_state(optimizer.state_dict())
    assert again.ask(5) == optimizer.ask(5)


def test_many_runs_are_single_runs() -> None:
    (run,) = ao.policy.solve_many(value, space=SPACE, runs=1, budget=30, seeds=[4], progress=False)
    alone = ao.maximize(value, SPACE, 30, seed=4, cache=False, algorithm="policy", progress=False)
    assert np.array_equal(run.values, alone.history.values)
    assert run.best == alone.best


def test_workers() -> None:
    options: dict[str, Any] = {**PLAIN, "algorithm": "auto"}
    result = ao.minimize(negative, SPACE, 24, workers=2, **options)
    assert result.evaluations == 24
    assert result.best_value == -value(result.best)  # type: ignore[arg-type]


def negative(point: dict[str, Any]) -> float:
    return -value(point)


# Programs, studies, figures ---------------------------------------------------------------------

FILE = """
direction = "maximize"
budget = 8
seed = 0
study = "run.db"
start = [{ tour = ["c", "b", "a"], sites = [], fast = false }]

[space]
tour = { permutation = ["a", "b", "c"] }
sites = { subset = [1, 2, 3], size = [0, 2] }
fast = "binary"
deep = { binary = true, when = { fast = true } }

[command]
arguments = ["echo", "{tour}", "[{sites}]", "{fast}", "{deep}", "7"]

[value]
regex = '(\\d+)$'
"""


def test_a_file_with_lists(tmp_path: Path) -> None:
    from anyorder.cli import main
    from anyorder.program import file

    (tmp_path / "problem.toml").write_text(FILE)
    job = file.read(tmp_path / "problem.toml")
    assert job.space == Space(
        {
            "tour": Permutation(["a", "b", "c"]),
            "sites": Subset([1, 2, 3], size=(0, 2)),
            "fast": Binary(),
            "deep": Binary(when={"fast": True}),
        }
    )
    point = {"tour": ["c", "a", "b"], "sites": [], "fast": False}
    assert job.command.line(point) == "echo c,a,b '[]' false 7"
    point = {"tour": ["c", "a", "b"], "sites": [1, 3], "fast": True, "deep": False}
    assert job.command.line(point) == "echo c,a,b '[1,3]' true false 7"
    assert job.command(point) == 7
    study = str(tmp_path / "run.db")
    done = CliRunner().invoke(main, ["run", str(tmp_path / "problem.toml")])
    assert done.exit_code == 0, done.output
    shown = CliRunner().invoke(main, ["show", study]).output
    assert "1 permutation, 1 subset, 2 binary; 126 points" in shown  # 6 * 7 * 3


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tour = { permutation = 3 }", "tour is 3, expected a list"),
        ('tour = { permutation = ["a", "a"] }', "'a'"),
        ("tour = { permutation = [] }", "items is empty"),
        ('tour = { permutation = ["a,b", "c"] }', "'a,b', expected text without commas"),
        ('tour = { permutation = ["a"], size = 1 }', "'size'"),
        ('tour = { subset = ["a"], size = 2 }', "size is 2"),
        ('tour = { subset = ["a", "b"], size = [2, 1] }', "size is [2, 1], expected low <= high"),
        ('tour = { subset = ["a", "b"], when = { fast = true } }', "'when'"),
        ("tour = { binary = false }", "binary is False, expected true"),
        ("tour = { some = 3 }", "{ permutation = [...] }"),
    ],
)
def test_bad_lines(line: str, words: str, tmp_path: Path) -> None:
    from anyorder.program import file

    old = 'tour = { permutation = ["a", "b", "c"] }'
    (tmp_path / "problem.toml").write_text(FILE.replace(old, line))
    with refused(ValueError, f"line {FILE.splitlines().index(old) + 1}", words):
        file.read(tmp_path / "problem.toml")


def test_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = ao.maximize(value, SPACE, 30, algorithm="policy", **PLAIN)
    result.plot(tmp_path / "run.png", kind="all")
    assert (tmp_path / "run.png").exists()


def test_spaces_of_one_point() -> None:
    space = Space({"t": Permutation([1]), "s": Subset(["a", "b"], size=2)})
    assert space.points == 1
    result = ao.maximize(lambda p: len(p["s"]), space, 10, **PLAIN)
    assert (result.best, result.stop_reason) == ({"t": [1], "s": ["a", "b"]}, "exhausted")
    assert math.isclose(result.best_value or 0, 2)
    assert Categorical([1]) == space.columns[0]


def test_a_large_subset_is_counted_in_no_time() -> None:
    """The binomials one by one took more than a minute, which nothing could interrupt."""
    for least, most in ((0, 30), (3, 9), (30, 30)):
        wanted = sum(math.comb(30, k) for k in range(least, most + 1))
        assert ao.Subset(range(30), size=(least, most)).points() == wanted
    assert ao.Space({"s": ao.Subset(range(20_000))}).points == 2**20_000
