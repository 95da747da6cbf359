"""NAS-Bench-101: cells, hashes and tables; the suite of all problems is test_problems.py."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import refused

from anyorder import problems
from anyorder.problems.nasbench import module_hash, prune

SHARED = Path(__file__).parents[1].parent / "shared"

# Bits and operations of cells, with what the real table says; the last four are not valid.
CELLS = [
    ("110011000101000100101", "01211", 0.9431757),
    ("100110100001001010101", "12110", 0.9206063),
    ("111010000010001100011", "01112", 0.9308560),
    ("000001000000000000000", "01201", 0.8377070),
    ("110000000000010010001", "01201", 0.9277177),
    ("000000000000000000000", "11111", 0.0),
    ("111000110001000000111", "11111", 0.0),
    ("111111111111111111111", "11111", 0.0),
    ("111110001010001001100", "10211", 0.0),
]


def codes(bits, operations):
    return np.array([int(c) for c in bits + operations], dtype=np.int8)


@pytest.fixture
def table(tmp_path):
    """A table of our own, of the valid cells above."""
    rows = {}
    for bits, operations, accuracy in CELLS:
        cell = prune(codes(bits, operations))
        if cell is not None:
            digest = module_hash(*cell)
            rows[int(digest[:16], 16)] = (int(digest[16:], 16), accuracy)
    high = sorted(rows)
    path = tmp_path / "small.npz"
    np.savez(
        path,
        hash_hi=np.array(high, np.uint64),
        hash_lo=np.array([rows[h][0] for h in high], np.uint64),
        test_accuracy=np.array([rows[h][1] for h in high], np.float32),
    )
    return path


def test_cells(table):
    problem = problems.nasbench(str(table))
    points = np.stack([codes(bits, operations) for bits, operations, _ in CELLS])
    np.testing.assert_allclose(problem.evaluate(points), [a for *_, a in CELLS], atol=1e-7)
    assert problem.optimum == pytest.approx(0.9431757)
    assert len(problem.space) == 26
    assert problem.space.cardinalities.tolist() == [2] * 21 + [3] * 5
    with refused(ValueError, "small.npz", "has no cell"):
        problem(codes("100000000010000000000", "00000"))


def test_hash_of_the_first_row():
    assert module_hash(*prune(codes("100110100001001010101", "12110"))).startswith("00005c14")


def test_isomorphic_cells_have_one_hash():
    """Vertices 2 and 3 of the best cell change places, edges and operations with them."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        matrix = np.triu(rng.random((7, 7)) < 0.35, 1)
        operations = rng.integers(0, 3, 5)
        if matrix[2, 3]:
            continue  # they may not: 2 comes before 3
        swap = [0, 1, 3, 2, 4, 5, 6]
        other = matrix[np.ix_(swap, swap)]
        upper = np.triu_indices(7, 1)
        cells = [
            prune(np.concatenate([matrix[upper], operations])),
            prune(np.concatenate([other[upper], operations[[0, 2, 1, 3, 4]]])),
        ]
        assert (cells[0] is None) == (cells[1] is None)
        if cells[0] is not None:
            assert module_hash(*cells[0]) == module_hash(*cells[1])


def test_known_answers():
    path, table = SHARED / "known_answers" / "nasbench101.json", SHARED / "data" / "nasbench101.npz"
    if not (path.is_file() and table.is_file()):
        pytest.skip("shared/ is not beside the repository")
    problem = problems.nasbench(str(table))
    assert problem.optimum == pytest.approx(0.9431757, abs=1e-7)
    text = json.dumps(json.loads(path.read_text(encoding="utf-8")))
    for bits, operations, accuracy in CELLS:
        assert bits in text or list(map(int, bits)).__repr__() in text
        assert problem(codes(bits, operations)) == pytest.approx(accuracy, abs=1e-7)
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.random((3000, 21)) < 0.35, rng.integers(0, 3, (3000, 5))], axis=1)
    values = problem.evaluate(points.astype(np.int8))  # every valid cell is in the table
    assert 0 < (values > 0).mean() < 1


def test_where_is_the_table(monkeypatch, table, tmp_path):
    monkeypatch.delenv("ANYORDER_NASBENCH101", raising=False)
    with refused(ValueError, "requires its table", "ANYORDER_NASBENCH101"):
        problems.nasbench()
    monkeypatch.setenv("ANYORDER_NASBENCH101", str(table))
    assert problems.nasbench().path == str(table)
    assert problems.get(problems.nasbench().name).path == str(table)
    with refused(FileNotFoundError, "absent.npz"):
        problems.nasbench(str(tmp_path / "absent.npz"))


def test_bad_tables(table, tmp_path):
    with np.load(table) as file:
        good = {name: file[name] for name in file.files}
    bad = tmp_path / "bad.npz"

    def write(**changes):
        np.savez(bad, **{**good, **changes})

    bad.write_bytes(table.read_bytes()[:100])
    with refused(ValueError, "bad.npz", "damaged"):
        problems.nasbench(str(bad))
    bad.write_text("no table", encoding="utf-8")
    with refused(ValueError, "bad.npz"):
        problems.nasbench(str(bad))
    np.savez(bad, hash_hi=good["hash_hi"])
    with refused(ValueError, "has no hash_lo, test_accuracy"):
        problems.nasbench(str(bad))
    write(hash_hi=good["hash_hi"][::-1])
    with refused(ValueError, "not sorted"):
        problems.nasbench(str(bad))
    write(test_accuracy=good["test_accuracy"][:2])
    with refused(ValueError, "different lengths"):
        problems.nasbench(str(bad))
    write(hash_hi=good["hash_hi"].astype(float))
    with refused(ValueError, "expected uint64"):
        problems.nasbench(str(bad))
    write(hash_lo=np.array([{}], dtype=object))
    with refused(ValueError, "bad.npz", "damaged"):  # nothing pickled is read
        problems.nasbench(str(bad))
