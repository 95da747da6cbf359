"""PBO of IOHprofiler: values by hand, optima, bad input; the suite of all is test_problems.py."""

from __future__ import annotations

import pickle
import re
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
from conftest import refused
from numpy.typing import NDArray

from anyorder import problems

ioh = pytest.importorskip("ioh")


def every_point(n: int) -> NDArray[np.int8]:
    return (np.arange(1 << n)[:, None] >> np.arange(n)[::-1] & 1).astype(np.int8)


def labs(x: NDArray[Any]) -> float:
    s = 2.0 * x - 1
    energy = sum(float(s[: len(s) - k] @ s[k:]) ** 2 for k in range(1, len(s)))
    return len(s) ** 2 / (2 * energy)


def queens(x: NDArray[Any]) -> float:
    """Queens, less the side of the board for each one too many in a row, column or diagonal."""
    side = int(len(x) ** 0.5)
    board = x.reshape(side, side)
    lines = [*board, *board.T]
    for view in (board, board[::-1]):
        lines += [np.diagonal(view, k) for k in range(1 - side, side)]
    return float(x.sum() - side * sum(max(0, int(line.sum()) - 1) for line in lines))


FORMULAS = {
    "OneMax": lambda x: x.sum(),
    "LeadingOnes": lambda x: np.cumprod(x).sum(),
    "Linear": lambda x: x @ np.arange(1, len(x) + 1),
    "LABS": labs,
    "IsingRing": lambda x: (x == np.roll(x, 1)).sum(),
    "NQueens": queens,
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("n", [9, 16, 25])
def test_values_by_hand(name: str, n: int) -> None:
    problem = problems.pbo(name, n)
    x = np.random.default_rng(0).integers(0, 2, (200, n))
    expected = [float(FORMULAS[name](row)) for row in x]
    assert problem.evaluate(x) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("function", range(1, 26))
def test_optimum_is_true(function: int) -> None:
    """By enumeration: what we state is the maximum, and it is left out only where it must be."""
    for n, instance in product((1, 4, 5, 9, 10, 12), (1, 2, 50, 51, 100, 101)):
        if (function in (20, 21, 23) and n not in (1, 4, 9)) or (function, n) == (18, 1):
            continue
        problem = problems.pbo(function, n, instance)
        stated = float(ioh.get_problem(function, instance, n, ioh.ProblemClass.PBO).optimum.y)
        values = problem.evaluate(every_point(n))
        true = values.max()
        assert np.isfinite(values).all()
        assert problem.optimum == (true if stated == true else None), problem.name


@pytest.mark.parametrize("function", [7, 14, 22, 23, 24])
def test_optimum_of_larger_ones(function: int) -> None:
    problem = problems.pbo(function, 15 if function == 24 else 16)
    assert problem.optimum == problem.evaluate(every_point(len(problem.space))).max()


def test_values_do_not_depend_on_what_came_before() -> None:
    for function in range(1, 26):
        problem = problems.pbo(function, 16, instance=3)
        x = np.random.default_rng(0).integers(0, 2, (50, 16))
        first = problem.evaluate(x)
        assert np.array_equal(problem.evaluate(x[::-1]), first[::-1])
        assert np.array_equal(problems.pbo(function, 16, instance=3).evaluate(x), first)
        copy = pickle.loads(pickle.dumps(problem))
        assert copy._ioh is None
        assert np.array_equal(copy.evaluate(x), first)


def test_names_and_numbers() -> None:
    for given in ("IsingRing", "isingring", " ISINGRING", "19", 19):
        assert problems.pbo(given, 8).name == "pbo:function=IsingRing,n=8,instance=1"
    assert problems.get("pbo:function=19,n=8").name == "pbo:function=IsingRing,n=8,instance=1"
    with refused(
        ValueError, "function is 'isingrin' (did you mean 'IsingRing'?), expected 1 to 25"
    ):
        problems.pbo("isingrin")
    for bad in ("0", "26", "999999", ""):
        with refused(ValueError, f"function is {bad!r}, expected 1 to 25"):
            problems.pbo(bad)
    with refused(ValueError, "function is 26, expected an integer from 1 to 25"):
        problems.pbo(26)


@pytest.mark.parametrize("function", ["IsingTorus", "IsingTriangular", "NQueens"])
def test_squares(function: str) -> None:
    with refused(ValueError, f"n is 15, expected a square number for {function}"):
        problems.pbo(function, 15)
    assert len(problems.pbo(function, 16).space) == 16


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n": 1}, ValueError, "n is 1, expected an integer from 2 to 20000"),
        ({"n": 0, "function": 1}, ValueError, "n is 0, expected an integer from 1 to 20000"),
        ({"n": 10**9}, ValueError, "n is 1000000000, expected an integer from 2 to"),
        ({"n": "eight"}, TypeError, "n is 'eight', expected an integer"),
        ({"instance": 0}, ValueError, "instance is 0, expected an integer from 1 to"),
        ({"instance": 2**31}, ValueError, "instance is 2147483648, expected"),
        ({"function": True}, TypeError, "function is True, expected an integer from 1 to 25"),
        ({"function": None}, TypeError, "function is None"),
    ],
)
def test_bad_input(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        problems.pbo(**arguments)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ioh", None)
    with refused(ImportError, "pip install 'anyorder[pbo]'"):
        problems.pbo()
