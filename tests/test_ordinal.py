"""`Ordinal`: any values in an order, through spaces, tables, files, conditions and strategies."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st

import anyorder as ao
from anyorder import Binary, Categorical, Integer, Ordinal, Space
from anyorder.archive.knowledge import read_data
from anyorder.program.file import read
from anyorder.space.digits import wide_scales
from anyorder.space.neighbours import Neighbourhood

SPACE = Space(
    {
        "size": Ordinal(["s", "m", "l"]),
        "block": Ordinal([64, 128, 256, 512]),
        "fast": Binary(when={"size": ["m", "l"]}),
        "deep": Ordinal((1.5, None, (2, "x")), when={"block": 512}),
    }
)
PLAIN: dict[str, Any] = {"seed": 0, "progress": False}


def value(point: dict[str, Any]) -> float:
    """Best at one point that has all variables."""
    found = 2.0 * ["s", "m", "l"].index(point["size"]) + np.log2(point["block"])
    return found + point.get("fast", 0) + (point.get("deep", 1.5) is None)


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ([], ValueError, ("values is empty",)),
        (["a", "b", "a"], ValueError, ("'a' is repeated",)),
        ([1, 2, True], ValueError, ("1 and True, which are equal",)),
        ([1, 1.0], ValueError, ("1 and 1.0, which are equal",)),
        ([float("nan")], ValueError, ("nan",)),
        ([[1]], TypeError, ("not hashable",)),
        ("sml", TypeError, ("values is 'sml'", "expected a list")),
    ],
)
def test_what_is_no_ordinal(values: Any, error: type[Exception], words: tuple[str, ...]) -> None:
    with refused(error, *words):
        Ordinal(values)


def test_it_is_ordered_and_is_no_categorical() -> None:
    assert SPACE.ordered.tolist() == [True, True, False, True]
    assert Ordinal([1, 2]) != Categorical([1, 2])
    assert repr(Ordinal([1, 2, 4], when={"a": 1})) == "Ordinal([1, 2, 4], when={'a': 1})"
    with refused(ValueError, "'x' is not a value of Ordinal(['s', 'm', 'l'])"):
        SPACE.encode([{"size": "x", "block": 64}])


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(st.integers(), st.text(), st.floats(allow_nan=False)), min_size=1, unique=True
    )
)
def test_round_trips(values: list[Any]) -> None:
    space = Space({"x": Ordinal(values)})
    points = [{"x": value} for value in values]
    codes = space.encode(points)
    assert codes[:, 0].tolist() == list(range(len(values)))
    assert space.decode(codes) == points
    assert Space.from_json(space.to_json()) == space == pickle.loads(pickle.dumps(space))


def test_numbers_need_no_names() -> None:
    space = Space([Ordinal([8, 4, 2, 1]), Integer(1, 3)])
    assert space.encode([[4, 3], [1, 1]]).tolist() == [[1, 2], [3, 0]]
    assert space.decode(np.array([[1, 2]])).tolist() == [[4, 3]]
    with refused(ValueError, "variable 0 has value 'a'", "give the variables names"):
        Space([Ordinal(["a", "b"])])


def test_many_values_are_stepped_through_as_those_of_an_integer() -> None:
    words, numbers = Space({"x": Ordinal(map(str, range(300)))}), Space({"x": Integer(0, 299)})
    assert list(wide_scales(words)) == [0]
    point = np.array([140], np.int32)
    near = [Neighbourhood(space) for space in (words, numbers)]
    steps = [one.mutate(point, 50, 1, np.random.default_rng(1)) for one in near]
    assert np.array_equal(*steps)
    assert len(near[0].changes) == len(near[1].changes) < 20


def test_tables_and_studies(tmp_path: Path) -> None:
    options = {**PLAIN, "algorithm": "ils"}
    whole = ao.maximize(value, SPACE, 20, **options)
    ao.maximize(value, SPACE, 9, study=tmp_path / "run.db", **options)
    again = ao.resume(tmp_path / "run.db", value, budget=20, progress=False)
    assert np.array_equal(again.history.codes, whole.history.codes)
    space = Space({"size": SPACE.variables[0], "block": SPACE.variables[1]})
    table = tmp_path / "data.csv"
    table.write_text("size,block,value\nm,512,1.5\ns,64,2\n", encoding="utf-8")
    assert read_data(table, space).codes.tolist() == [[1, 3], [0, 0]]
    table.write_text("size,block,value\nm,100,1.5\n", encoding="utf-8")
    with refused(ValueError, "row 1, column 'block'", "'100'"):
        read_data(table, space)


@pytest.mark.parametrize("name", ["auto", "policy", "umda", "p3", "tabu"])
def test_strategies_find_the_best_point(name: str) -> None:
    result = ao.maximize(value, SPACE, 40, algorithm=name, **PLAIN)
    assert result.best == {"size": "l", "block": 512, "fast": True, "deep": None}


def test_problem_files(tmp_path: Path) -> None:
    text = """
direction = "minimize"
budget = 5

[space]
size = { ordered = ["s", "m", "l"] }
block = { ordered = [64, 128], when = { size = "l" } }

[command]
arguments = ["echo", "{size}", "{block}"]
"""
    file = tmp_path / "run.toml"
    file.write_text(text, encoding="utf-8")
    expected = {"size": Ordinal(["s", "m", "l"]), "block": Ordinal([64, 128], when={"size": "l"})}
    assert read(file).space == Space(expected)
    file.write_text(text.replace('"m", "l"]', '"m", "s"]'), encoding="utf-8")
    with refused(ValueError, "'s' is repeated"):
        read(file)
