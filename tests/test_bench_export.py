"""Campaigns as IOHprofiler's files: read back, and beside what ioh itself writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import refused
from test_bench_report import runs as runs
from test_bench_stats import cell, results

from anyorder.bench.ioh_export import export
from anyorder.bench.results import Results
from anyorder.cli.bench import bench

SOME = results(
    {
        ("NK 64/4", "anyorder"): cell([10, 20, 30], [[0.5, 0.5, 0.75], [0.25, 0.6, 0.6]]),
        ("NK 64/4", "a <b> & c"): cell([10, 20, 30], [[0.1, 0.2, 0.2000001]]),
        ("QUBO", "A <b> & c"): cell([1, 30], [[-3.0, 12345678.125]]),
        ("QUBO", "none yet"): cell([1, 30], [[np.nan, 4.0], [np.nan, -np.inf]]),
    }
)
DIMENSIONS = {"NK 64/4": 64, "QUBO": 8}


def read(folder: Path) -> dict[tuple[str, str], list[tuple[dict[str, Any], list[list[float]]]]]:
    """Runs by function and algorithm, as a reader of the format finds them."""
    found = {}
    for path in sorted(folder.glob("*/IOHprofiler_f*.json")):
        about = json.loads(path.read_text("utf-8"))
        for scenario in about["scenarios"]:
            lines = (path.parent / scenario["path"]).read_text("utf-8").splitlines()
            tables: list[list[list[float]]] = []
            for line in lines:
                if line == " ".join(about["attributes"]):
                    tables.append([])
                else:
                    tables[-1].append([float(text) for text in line.split(" ")])
            key = about["function_name"], about["algorithm"]["name"]
            found[key] = list(zip(scenario["runs"], tables, strict=True))
    return found


def test_read_back(tmp_path):
    export(SOME, tmp_path / "out", DIMENSIONS)
    found = read(tmp_path / "out")
    assert set(found) == set(SOME.cells)
    for key, measured in SOME.cells.items():
        for (run, lines), curve, instance in zip(
            found[key], measured.curves, measured.instances, strict=True
        ):
            assert run["instance"] == instance
            assert run["evals"] == lines[-1][0] == measured.grid[-1]
            assert lines[0][0] == 1
            when, values = np.array(lines).T
            assert (np.diff(when) > 0).all()
            assert run["best"]["y"] == values.max()
            assert run["best"]["evals"] == when[values.argmax()]
            for n, value in zip(measured.grid, curve, strict=True):
                if np.isfinite(value):  # what was best by then
                    assert values[when <= n].max() == value
    # only what improves, and the last; the start is the lowest first value of the distribution
    assert found["NK 64/4", "anyorder"][0][1] == [[1, 0.1], [10, 0.5], [30, 0.75]]
    assert found["NK 64/4", "anyorder"][1][1] == [[1, 0.1], [10, 0.25], [20, 0.6], [30, 0.6]]
    assert found["QUBO", "none yet"][0][1] == [[1, -3], [30, 4]]
    assert found["QUBO", "none yet"][1][1] == [[1, -3], [30, -3]]


def test_names(tmp_path):
    export(SOME, tmp_path, DIMENSIONS)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")} == {
        "anyorder/IOHprofiler_f1_NK_64_4.json",
        "anyorder/data_f1_NK_64_4/IOHprofiler_f1_DIM64.dat",
        "a_b_c/IOHprofiler_f1_NK_64_4.json",
        "a_b_c/data_f1_NK_64_4/IOHprofiler_f1_DIM64.dat",
        "A_b_c_2/IOHprofiler_f2_QUBO.json",
        "A_b_c_2/data_f2_QUBO/IOHprofiler_f2_DIM8.dat",
        "none_yet/IOHprofiler_f2_QUBO.json",
        "none_yet/data_f2_QUBO/IOHprofiler_f2_DIM8.dat",
    }
    text = (tmp_path / "a_b_c/data_f1_NK_64_4/IOHprofiler_f1_DIM64.dat").read_text(encoding="utf-8")
    assert text.startswith("evaluations raw_y\n1 0.1\n")
    assert "30 0.2000001\n" in text
    text = (tmp_path / "A_b_c_2/data_f2_QUBO/IOHprofiler_f2_DIM8.dat").read_text(encoding="utf-8")
    assert text == "evaluations raw_y\n1 -3.0\n30 12345678.125\n"


def shape(value: Any) -> Any:
    """The keys and types of JSON; of a list, its first entry."""
    if isinstance(value, dict):
        return {key: shape(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return (
        "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
    )


def test_beside_what_ioh_writes(tmp_path):
    ioh = pytest.importorskip("ioh")
    logger = ioh.logger.Analyzer(
        root=str(tmp_path), folder_name="theirs", algorithm_name="search", algorithm_info=""
    )
    problem = ioh.get_problem(1, 1, 16, ioh.ProblemClass.PBO)
    problem.attach_logger(logger)
    rng, curves = np.random.default_rng(0), []
    for _ in range(3):
        values = [problem(rng.integers(0, 2, 16).tolist()) for _ in range(40)]
        curves.append(np.maximum.accumulate(values))
        problem.reset()
    logger.close()
    ours = results({("OneMax", "search"): cell(list(range(1, 41)), curves)})
    export(ours, tmp_path / "ours", {"OneMax": 16})
    theirs, mine = tmp_path / "theirs", tmp_path / "ours/search"
    names = {p.relative_to(theirs).as_posix() for p in theirs.rglob("*")}
    assert {p.relative_to(mine).as_posix() for p in mine.rglob("*")} == names
    about, written = (
        json.loads((folder / "IOHprofiler_f1_OneMax.json").read_text(encoding="utf-8"))
        for folder in (theirs, mine)
    )
    assert list(written) == list(about)
    for run in (r for a in (about, written) for s in a["scenarios"] for r in s["runs"]):
        run["best"]["x"] = []  # which is not known
    assert shape(written) == shape(about)
    for key in ("function_id", "function_name", "maximization", "algorithm", "attributes"):
        assert written[key] == about[key]
    for run in about["scenarios"][0]["runs"]:
        run["instance"] = 0  # ours are numbered by the helper
    for k, run in enumerate(written["scenarios"][0]["runs"]):
        assert {**run, "instance": 0} == about["scenarios"][0]["runs"][k]
    # the same lines; only the last is the best so far here, and the last evaluation there
    for (_, lines), (_, expected) in zip(
        read(tmp_path / "ours")["OneMax", "search"], read(tmp_path)["OneMax", "search"], strict=True
    ):
        assert lines[:-1] == expected[:-1]
        assert lines[-1][0] == expected[-1][0]


def test_iohinspector_reads_it(tmp_path):
    inspector = pytest.importorskip("iohinspector")
    export(SOME, tmp_path / "out", DIMENSIONS)
    manager = inspector.DataManager()
    manager.add_folder(str(tmp_path / "out"))
    overview = manager.overview.to_dicts()
    assert {(row["function_name"], row["algorithm_name"]) for row in overview} == set(SOME.cells)
    for row in overview:
        curves = SOME.cells[row["function_name"], row["algorithm_name"]].curves
        assert row["dimension"] == DIMENSIONS[row["function_name"]]
        assert row["evals"] == 30
        assert row["best_y"] in {*curves[:, -1], -3.0}
    data = manager.load(monotonic=False, include_meta_data=True).to_dicts()
    for row in data:
        measured = SOME.cells[row["function_name"], row["algorithm_name"]]
        place = np.flatnonzero(measured.grid == row["evaluations"])
        curve = measured.curves[row["run_id"] - 1]
        if len(place) and np.isfinite(curve[place[0]]):
            assert row["raw_y"] == curve[place[0]]
    assert len(data) == 3 + 4 + 3 + 2 + 2 + 2


def test_refused(tmp_path):
    with refused(ValueError, "dimensions is {'QUBO': 8}", "'NK 64/4'"):
        export(SOME, tmp_path / "out", {"QUBO": 8})
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("kept", encoding="utf-8")
    with refused(ValueError, "full is not an empty folder"):
        export(SOME, tmp_path / "full", DIMENSIONS)
    with refused(ValueError, "mine.txt is not an empty folder"):
        export(SOME, tmp_path / "full/mine.txt", DIMENSIONS)
    with refused(ValueError, "no finished runs"):
        export(Results("none", (), (), {}), tmp_path / "out", {})
    void = results({("d", "a"): cell([1], [[np.nan]])})
    with refused(ValueError, "no run on 'd' has a value"):
        export(void, tmp_path / "out", {"d": 3})
    assert not (tmp_path / "out").exists()


def test_export_command(runs, tmp_path):
    out = tmp_path / "out"
    said = CliRunner().invoke(bench, ["export", str(runs), str(out), "--algorithms", "RLS"])
    assert said.exit_code == 0, said.output
    found = read(out)
    assert set(found) == {("nk:n=16,k=1", "RLS"), ("nk:n=16,k=2", "RLS")}
    assert (out / "RLS/data_f2_nk_n_16_k_2/IOHprofiler_f2_DIM16.dat").is_file()
    assert [run["instance"] for run, _ in found["nk:n=16,k=1", "RLS"]] == [0, 0, 1, 1]
    again = CliRunner().invoke(bench, ["export", str(runs), str(out)])
    assert again.exit_code == 2
    assert "is not an empty folder" in again.output
