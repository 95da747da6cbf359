"""Quadratic problems from matrices and files, and MaxCut; the suite of all is test_problems.py."""

from itertools import product

import numpy as np
import pytest
from conftest import refused

from anyorder import problems


def all_points(n):
    return np.array(list(product((0, 1), repeat=n)))


@pytest.mark.parametrize("n", [1, 2, 7])
def test_matrix(n):
    q = np.random.default_rng(n).normal(size=(n, n)).round(2)
    x = all_points(n)
    np.testing.assert_allclose(
        problems.qubo_matrix(q).evaluate(x), np.einsum("mi,ij,mj->m", x, q, x), atol=1e-12
    )


@pytest.mark.gpu
def test_matrix_on_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    instances = [problems.qubo_matrix(rng.integers(-9, 9, (6, 6))) for _ in range(2)]
    instances.append(problems.Qubo(6, [(0, 1)], [2.0], constant=0.5))
    x = rng.integers(0, 2, (3, 5, 6))
    found = problems.together(instances)(torch.from_numpy(x))
    expected = np.stack([p.evaluate(own) for p, own in zip(instances, x, strict=True)])
    np.testing.assert_array_equal(found.numpy(), expected)


BEASLEY = """2
 2 2
 1 1 3
 1 2 -4
 3 3
 1 3 5
 2 2 -1

 3 3 2.5
"""


def test_beasley(tmp_path):
    path = tmp_path / "bqp.txt"
    path.write_text(BEASLEY, encoding="utf-8")
    first, second = problems.read_qubo(path), problems.read_qubo(path, index=1)
    assert [first(x) for x in ((0, 0), (1, 0), (0, 1), (1, 1))] == [0, 3, 0, 3 - 8]
    x = all_points(3)
    np.testing.assert_allclose(
        second.evaluate(x), 10 * x[:, 0] * x[:, 2] - x[:, 1] + 2.5 * x[:, 2], atol=1e-12
    )
    path.write_text(
        BEASLEY.split("\n", 1)[1].split(" 3 3\n", 1)[0], encoding="utf-8"
    )  # one problem, no number
    np.testing.assert_array_equal(problems.read_qubo(path).evaluate(all_points(2)),
                                  first.evaluate(all_points(2)))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("ends", "the number of problems")),
        ("2\n1 1\n1 1 3\n", ("ends", "n and m")),
        ("1\n2 2\n1 1 3\n", ("ends", "one of 2 entries")),
        ("1\n2 1\n1 3 4\n", ("line 3", "3, expected 1 to 2")),
        ("1\n2 1\n0 1 4\n", ("line 3", "0, expected 1 to 2")),
        ("1\n2 1\n1 2 four\n", ("line 3", "'four', expected a number")),
        ("1\n2 1\n1 2 nan\n", ("line 3", "'nan', expected a finite number")),
        ("1\n2 1\n1 2\n", ("line 3", "2 entries", "i j q")),
        ("1\n2 1\n1 2 3\n1 1 1\n", ("line 4", "after the end")),
        ("one\n", ("line 1", "'one', expected an integer")),
        ("99999999 1\n1 1 1\n", ("line 1", "expected 1 to 30000")),
        ("2 1\n1 2 1e308\n", ("sums of its entries are not finite",)),
    ],
)
def test_bad_qubo_files(tmp_path, text, words):
    path = tmp_path / "bad.txt"
    path.write_text(text, encoding="utf-8")
    with refused(ValueError, "bad.txt", *words):
        problems.read_qubo(path)


def test_bad_arguments(tmp_path):
    with refused(ValueError, "shape (2, 3)", "(n, n)"):
        problems.qubo_matrix(np.zeros((2, 3)))
    with refused(ValueError, "not finite"):
        problems.qubo_matrix([[np.inf]])
    with refused(ValueError, "linear", "(2,)"):
        problems.Qubo(3, [(0, 1)], [1.0], linear=[1.0, 2.0])
    with refused(ValueError, "constant"):
        problems.Qubo(3, [(0, 1)], [1.0], constant=np.nan)
    path = tmp_path / "one.txt"
    path.write_text("1 1\n1 1 1\n", encoding="utf-8")
    with refused(ValueError, "index", "1"):
        problems.read_qubo(path, index=1)
    path.write_bytes(b"\xff\xfe\x00")
    with refused(ValueError, "no text"):
        problems.read_qubo(path)
    with pytest.raises(FileNotFoundError):
        problems.read_qubo(tmp_path / "absent.txt")


def test_cut_is_counted():
    rng = np.random.default_rng(3)
    edges = np.array([(i, j) for i in range(6) for j in range(i) if rng.random() < 0.6])
    weights = rng.normal(size=len(edges)).round(3)
    problem, x = problems.MaxCut(6, edges, weights), all_points(6)
    cut = (weights * (x[:, edges[:, 0]] != x[:, edges[:, 1]])).sum(axis=1)
    np.testing.assert_allclose(problem.evaluate(x), cut, atol=1e-12)
    assert cut.max() <= problem.upper_bound + 1e-12


def test_known_cuts():
    complete = problems.MaxCut(5, [(i, j) for i in range(5) for j in range(i)])
    assert complete.evaluate(all_points(5)).max() == 6  # 2 x 3
    ring = problems.MaxCut(6, [(i, (i + 1) % 6) for i in range(6)])
    assert ring.evaluate(all_points(6)).max() == 6 == ring.upper_bound  # bipartite


def test_gset(tmp_path):
    path = tmp_path / "G.txt"
    path.write_text("4 3\n1 2 1\n2 3 -2.5\n3 4\n", encoding="utf-8")
    problem = problems.read_maxcut(path)
    assert problem((1, 0, 0, 0)) == 1
    assert problem((0, 0, 1, 1)) == -2.5
    assert problem((1, 0, 0, 1)) == 2
    again = problems.get(f"maxcut:file={path}")
    np.testing.assert_array_equal(again.evaluate(all_points(4)), problem.evaluate(all_points(4)))
    assert problems.get(problem.name).name == problem.name
    path.write_text("4 2\n1 2 1\n3 3 1\n", encoding="utf-8")
    with refused(ValueError, "line 3", "from 3 to itself"):
        problems.read_maxcut(path)
    # numbers that no memory would be enough for
    path.write_text("4 100000000000000\n1 2 1\n", encoding="utf-8")
    with refused(ValueError, "G.txt ends, expected one of 100000000000000 edges"):
        problems.read_maxcut(path)
    path.write_text("3 2\n1 2 1e308\n2 3 1e308\n", encoding="utf-8")
    with refused(ValueError, "G.txt: the sum of its weights is not finite"):
        problems.read_maxcut(path)
    path.write_text("65536 1\n1 2 1\n", encoding="utf-8")
    with refused(ValueError, "line 1: 65536, expected 1 to 30000"):
        problems.read_maxcut(path)
    with refused(ValueError, "density", "0 to 1"):
        problems.maxcut(10, 1.5)
