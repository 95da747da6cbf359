"""MaxSAT and its files; the suite of all problems is test_problems.py."""

from itertools import product

import numpy as np
import pytest
from conftest import refused

from anyorder import problems


def all_points(n):
    return np.array(list(product((0, 1), repeat=n)))


def by_hand(clauses, weights, x):
    return sum(
        w * any((x[abs(v) - 1] == 1) == (v > 0) for v in c)
        for c, w in zip(clauses, weights, strict=True)
    )


CLAUSES, WEIGHTS = [[1, -2], [3], [-1, 2, -3], [2, 2]], [1.5, 2.0, 0.25, 1.0]


def test_counted_by_hand():
    problem = problems.MaxSat(3, CLAUSES, WEIGHTS)
    x = all_points(3)
    np.testing.assert_array_equal(problem.evaluate(x), [by_hand(CLAUSES, WEIGHTS, p) for p in x])
    assert problem.upper_bound == sum(WEIGHTS)
    edges = problem.interaction_graph()
    assert edges.tolist() == [[False, True, True], [True, False, True], [True, True, False]]


def test_hard_clauses_come_first():
    problem = problems.MaxSat(3, CLAUSES, WEIGHTS, hard=[False, True, False, False])
    values, x = problem.evaluate(all_points(3)), all_points(3)
    assert values[x[:, 2] == 1].min() > values[x[:, 2] == 0].max()


FILES = {
    "cnf": "c a comment\np cnf 3 4\n1 -2 0\n3 0\nc another\n-1 2 -3 0\n2 2 0\n",
    "wcnf": "p wcnf 3 4\n1.5 1 -2 0\n2 3 0\n0.25 -1 2 -3 0\n1 2 2 0\n",
    "top": "p wcnf 3 4 9\n1.5 1 -2 0\n9 3 0\n0.25 -1 2 -3 0\n1 2 2 0\n",
    "new": "c 2022\n1.5 1 -2 0\nh 3 0\n0.25 -1 2 -3 0\n1 2 2 0\n",
}


@pytest.mark.parametrize("kind", FILES)
def test_files(tmp_path, kind):
    path = tmp_path / f"{kind}.txt"
    path.write_text(FILES[kind], encoding="utf-8")
    weights = [1.0] * 4 if kind == "cnf" else WEIGHTS
    hard = [False, kind in ("top", "new"), False, False]
    expected = problems.MaxSat(3, CLAUSES, weights, hard)
    found = problems.read_maxsat(path)
    np.testing.assert_array_equal(found.evaluate(all_points(3)), expected.evaluate(all_points(3)))
    assert found.hard.tolist() == hard
    assert problems.get(f"maxsat:file={path}").name == found.name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("ends", "a header or a clause")),
        ("p cnf 3\n", ("line 1", "expected 'p cnf n m'")),
        ("p sat 3 1\n1 0\n", ("line 1", "expected 'p cnf n m'")),
        ("p cnf 3 2\n1 0\n", ("ends", "one of 2 clauses")),
        ("p cnf 3 1\n1 2\n", ("line 2", "a 0 at the end")),
        ("p cnf 3 1\n0\n", ("line 2", "expected literals")),
        ("p cnf 3 1\n1 4 0\n", ("line 2", "literal 4", "1 to 3")),
        ("p cnf 3 1\n1 x 0\n", ("line 2", "'x', expected an integer")),
        ("p cnf 3 1\n1 0\n2 0\n", ("line 3", "after the end")),
        ("p wcnf 3 1\n-1 1 0\n", ("line 2", "weight of -1")),
        ("p wcnf 3 1\nx 1 0\n", ("line 2", "'x', expected a number")),
        ("p cnf 99999999999 1\n1 0\n", ("line 1", "99999999999")),
        ("2 1 0\nh 0\n", ("line 2", "expected literals")),
    ],
)
def test_bad_files(tmp_path, text, words):
    path = tmp_path / "bad.txt"
    path.write_text(text, encoding="utf-8")
    with refused(ValueError, "bad.txt", *words):
        problems.read_maxsat(path)


def test_bad_arguments():
    with refused(ValueError, "clauses is empty"):
        problems.MaxSat(2, [])
    with refused(ValueError, "clauses[1]", "other than 0"):
        problems.MaxSat(2, [[1], []])
    with refused(ValueError, "clauses[0]", "3"):
        problems.MaxSat(2, [[3]])
    with refused(ValueError, "weights", "(1,)"):
        problems.MaxSat(2, [[1]], [1.0, 2.0])
    with refused(ValueError, "negative"):
        problems.MaxSat(2, [[1]], [-1.0])
    with refused(ValueError, "ratio"):
        problems.maxsat(10, ratio=0.0)
