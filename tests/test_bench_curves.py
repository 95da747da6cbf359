"""Results as one small file."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from anyorder.bench import curves
from anyorder.bench.results import Cell, Results
from anyorder.cli import main
from anyorder.errors import StudyError

GRID = (10, 20, 40)


def cell(values: list[list[float]], grid: tuple[int, ...] = GRID) -> Cell:
    runs = len(values)
    return Cell(
        np.array(grid), np.array(values, float).reshape(runs, len(grid)), np.arange(runs) // 2,
        np.arange(runs), np.full(runs, 0.25),
    )  # fmt: skip


def results(cells: dict[tuple[str, str], Cell]) -> Results:
    return Results(
        "trial",
        tuple(dict.fromkeys(a for _, a in cells)),
        tuple(dict.fromkeys(d for d, _ in cells)),
        cells,
    )


def same(one: Results, other: Results) -> None:
    assert (one.algorithms, one.distributions) == (other.algorithms, other.distributions)
    assert one.cells.keys() == other.cells.keys()
    for key, mine in one.cells.items():
        theirs = other.cells[key]
        for name in ("grid", "curves", "instances", "seeds", "seconds"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))


numbers = st.floats(allow_nan=False, width=64)


@pytest.mark.parametrize("name", ["trial.csv", "trial.csv.gz"])
@given(values=st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=5))
def test_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, name: str, values: list[list[float]]
) -> None:
    path = tmp_path_factory.mktemp("curves") / name
    found = results(
        {("hills, steep", 'ours "x"'): cell(values), ("NK", "theirs"): cell([[1, 1, 2]])}
    )
    curves.write(found, path)
    back = curves.read(path)
    same(back, found)
    assert back.name == "trial"


def test_what_has_not_changed_is_left_out(tmp_path: Path) -> None:
    curves.write(results({("D", "A"): cell([[0.5, 0.5, 7]])}), tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()
    assert lines == ["distribution,algorithm,instance,seed,seconds,10,20,40", "D,A,0,0,0.25,0.5,,7"]


def test_the_same_results_are_the_same_file(tmp_path: Path) -> None:
    found = results({("D", "A"): cell([[1, 2, 3]])})
    for name in ("a.csv.gz", "b.csv.gz"):
        curves.write(found, tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_several_files(tmp_path: Path) -> None:
    parts = [{("D", "A"): cell([[1, 2, 3]])}, {("D", "B"): cell([[2, 2, 3]])}]
    for k, part in enumerate(parts):
        curves.write(results(part), tmp_path / f"{k}.csv")
    same(curves.read(tmp_path / "0.csv", tmp_path / "1.csv"), results(parts[0] | parts[1]))
    curves.write(results({("D", "C"): cell([[1, 2]], (5, 6))}), tmp_path / "2.csv")
    with pytest.raises(StudyError, match=r"2\.csv is no file of curves.*\[10, 20, 40\]"):
        curves.read(tmp_path / "0.csv", tmp_path / "2.csv")


def test_every_cell_has_its_own_grid(tmp_path: Path) -> None:
    found = results({("D", "A"): cell([[1, 1, 3]]), ("D", "B"): cell([[7, 7], [8, 9]], (20, 50))})
    curves.write(found, tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].endswith(",10,20,40,50")
    assert [line.split(",", 5)[5] for line in lines[1:]] == ["1,,3,-", "-,7,-,", "-,8,-,9"]
    same(curves.read(tmp_path / "a.csv"), found)
    with pytest.raises(ValueError, match="trial has no finished runs"):
        curves.write(results({}), tmp_path / "b.csv")
    assert not (tmp_path / "b.csv").exists()


HEAD = "distribution,algorithm,instance,seed,seconds,10,20\n"


@pytest.mark.parametrize(
    "text",
    ["", "a,b\n", HEAD.replace("10", "ten"), HEAD + "D,A,0,0,1,1\n", HEAD + "D,A,0,0,1,,2\n",
     HEAD + "D,A,0,x,1,1,2\n", HEAD + "D,A\n", HEAD + "D,A,0,0,1,1,2,3\n",
     HEAD + "D,A,0,0,1,-,-\n", HEAD + "D,A,0,0,1,1,2\nD,A,0,1,1,1,-\n",
     "\r" + HEAD + "D,A,0,0,1,1,2\n", HEAD + "D,A,9223372036854775808,0,1,1,2\n",
     HEAD + "D,A,0,-9223372036854775809,1,1,2\n", HEAD.replace("10", "9" * 30)],
)  # fmt: skip
def test_damaged_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode())
    with pytest.raises(StudyError, match=r"a\.csv is no file of curves, or a damaged one"):
        curves.read(tmp_path / "a.csv")


def test_a_truncated_archive(tmp_path: Path) -> None:
    whole = gzip.compress(HEAD.encode() * 100)
    for data in (whole[:-9], b"no archive", whole[:12] + b"x" + whole[13:]):
        (tmp_path / "a.csv.gz").write_bytes(data)
        with pytest.raises(StudyError, match=r"a\.csv\.gz cannot be read"):
            curves.read(tmp_path / "a.csv.gz")


def test_the_commands_read_and_write_it(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        'budget = 30\ngrid = 10\ninstances = 1\nruns = 2\n[[algorithm]]\nname = "random"\n'
        '[[algorithm]]\nname = "rls"\n[[problem]]\nproblem = "onemax:n=6"\n',
        encoding="utf-8",
    )
    runs, small = str(tmp_path / "runs.db"), str(tmp_path / "small.csv.gz")

    def command(*arguments: str) -> str:
        got = CliRunner().invoke(main, ["bench", *arguments])
        assert got.exit_code == 0, got.output
        return got.output

    command("run", str(tmp_path / "c.toml"), "--output", runs, "--engine", "cpu", "--workers", "1")
    command("export", runs, small)
    table, again = command("table", runs), command("table", small)
    assert again.splitlines()[1:] == table.splitlines()[1:]  # but for the name
    command("report", small, "-o", str(tmp_path / "page.html"))
    command("export", small, str(tmp_path / "one.csv"), "--algorithms", "rls")
    assert curves.read(tmp_path / "one.csv").algorithms == ("rls",)
    got = CliRunner().invoke(main, ["bench", "export", small, str(tmp_path / "folder")])
    assert got.exit_code != 0
    assert "does not contain the number of variables" in got.output
