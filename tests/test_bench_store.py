"""The file of all runs: who does what, what was measured, and files that are not ours."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import posix

import anyorder as ao
from anyorder.bench import curves, owners, records
from anyorder.bench.store import Finished, Spec, Store
from anyorder.cli import main
from anyorder.errors import StudyError

GRID = (2, 4, 6)


def specs(
    algorithm: str = "A",
    distribution: str = "D",
    *,
    instances: int = 2,
    runs: int = 2,
    grid: tuple[int, ...] = GRID,
) -> list[Spec]:
    method = f"{algorithm.lower()}"
    return [
        Spec(
            algorithm, method, distribution, f"{distribution.lower()}:seed={i}", i, seed, grid[-1],
            grid,
        )
        for i in range(instances)
        for seed in range(runs)
    ]  # fmt: skip


def given(spec: Spec, seconds: float = 2.0) -> Finished:
    """Made up; the curve tells which run it is of."""
    curve = 100.0 * spec.instance + 10.0 * spec.seed + np.arange(len(spec.grid))
    return Finished(
        curve=curve,
        best=float(curve[-1]),
        point=[0, 1],
        evaluations=spec.budget,
        seconds=seconds,
        configuration={"population": 5, "rates": (0.5, 1)},
        versions={"anyorder": "1"},
    )


def do_all(store: Store, seconds: float = 2.0) -> int:
    count = 0
    while claimed := store.claim(3):
        for spec in claimed:
            assert store.finish((spec, given(spec, seconds)))
            count += 1
    return count


def rows(path: Path, columns: str = "*") -> list[dict[str, Any]]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        found = database.execute(f"SELECT {columns} FROM runs ORDER BY rowid").fetchall()
    return [dict(row) for row in found]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


# --- who does what --------------------------------------------------------------------------------


def test_a_run_is_a_row_with_all_there_is_to_know(path: Path) -> None:
    (spec,) = specs(instances=1, runs=1)
    before = time.time()
    with Store(path) as store:
        store.request("trial", [spec])
        (waiting,) = rows(path)
        assert (waiting["status"], waiting["tries"], waiting["owner"]) == ("waiting", 0, None)
        assert store.claim(5) == [spec]
        (running,) = rows(path)
        assert (running["status"], running["tries"], running["owner"]) == (
            "running", 1, store.owner,
        )  # fmt: skip
        assert before <= running["started"] <= time.time()
        assert store.finish((spec, given(spec)))
    (done,) = rows(path)
    assert np.frombuffer(done.pop("curve"), "<f8").tolist() == [0.0, 1.0, 2.0]
    assert json.loads(done.pop("configuration")) == {"population": 5, "rates": [0.5, 1]}
    assert json.loads(done.pop("versions")) == {"anyorder": "1"}
    assert json.loads(done.pop("grid")) == list(GRID)
    assert json.loads(done.pop("point")) == [0, 1]
    assert done.items() >= {
        "key": spec.key, "algorithm": "A", "method": "a", "distribution": "D",
        "problem": "d:seed=0", "instance": 0, "seed": 0, "budget": 6, "status": "done",
        "reason": None, "tries": 1, "owner": None, "seconds": 2.0, "evaluations": 6, "best": 2.0,
    }.items()  # fmt: skip


def test_nobody_gets_what_another_has(path: Path) -> None:
    with Store(path) as one, Store(path) as other:
        one.request("trial", specs())
        first, second = one.claim(3), other.claim(3)
        assert [*first, *second] == specs()
        assert len(second) == 1
        assert not one.claim(1)
        assert not other.finish((first[0], given(first[0])))
        other.fail((first[0], "not its own"))
        assert not other.release(first[0])
        assert one.finish((first[0], given(first[0])))
        assert not one.finish((first[0], given(first[0])))
        one.fail((first[0], "too late"))
    assert [row["status"] for row in rows(path)] == ["done"] + 3 * ["waiting"]


def test_many_at_once_get_every_run_once(path: Path) -> None:
    """Four at a time, each of which may be the one that makes the file."""
    wanted = specs(instances=10, runs=6)

    def work(number: int) -> list[Spec]:
        mine: list[Spec] = []
        with Store(path) as store:
            store.request("trial", wanted)
            while claimed := store.claim(1):
                mine += claimed
                assert store.finish((claimed[0], given(claimed[0])))
        return mine

    with ThreadPoolExecutor(4) as pool:
        done = [spec for part in pool.map(work, range(4)) for spec in part]
    assert len(done) == len(set(done)) == 60
    assert {row["tries"] for row in rows(path)} == {1}


def test_what_was_not_finished_is_given_back(path: Path) -> None:
    with Store(path) as store:
        store.request("trial", specs())
        done, *_ = store.claim(3)
        store.finish((done, given(done)))
    assert [row["status"] for row in rows(path)] == ["done", "waiting", "waiting", "waiting"]
    with Store(path) as store:
        store.request("trial", specs())
        assert do_all(store) == 3


def test_a_run_is_tried_so_often(path: Path) -> None:
    (spec,) = specs(instances=1, runs=1)
    with Store(path) as store:
        store.request("trial", [spec])
        for _ in range(2):
            assert store.claim(1) == [spec]
            assert store.release(spec, most_tries=3)
        assert store.claim(1) == [spec]
        assert not store.release(spec, most_tries=3)
        store.fail((spec, "it died"))
        assert not store.claim(1)
        store.request("trial", [spec])
        assert not store.claim(1)
        store.request("trial", [spec], retry_failed=True)
        assert store.claim(1) == [spec]
        assert store.finish((spec, given(spec)))
    (row,) = rows(path)
    assert (row["status"], row["reason"], row["tries"]) == ("done", None, 1)


def test_a_stop_of_the_campaign_is_no_try(path: Path) -> None:
    (spec,) = specs(instances=1, runs=1)
    for _ in range(3):
        with Store(path) as store:
            store.request("trial", [spec])
            assert store.claim(1) == [spec]
            assert store.release(spec)
            assert store.claim(1) == [spec]
        assert rows(path, "status, tries") == [{"status": "waiting", "tries": 0}]


def test_a_batch_is_of_one_method_distribution_budget_and_grid(path: Path) -> None:
    def ours(text: str, distribution: str, **more: Any) -> list[Spec]:
        return [
            dataclasses.replace(spec, method=text) for spec in specs(text, distribution, **more)
        ]

    groups = [
        ours("policy:paper", "D"),
        ours("policy:paper", "E"),
        ours("policy", "D"),
        ours("policy:paper", "D", grid=(3, 6)),
        ours("policy:paper", "D", grid=(2, 4)),
        ours("policy+graph=known", "D"),
    ]
    single = specs("B")
    with Store(path) as store:
        store.request("trial", [*single, *(spec for group in groups for spec in group)])
        assert store.claim(3, batch=True) == groups[0][:3]
        skipped = ("policy:paper", "D"), ("policy:paper", "E")
        assert store.claim(1, batch=True, but_not=skipped) == groups[2][:1]
        assert store.release(groups[2][0])
        assert store.claim(100, batch=True) == groups[0][3:]
        for group in groups[1:]:
            assert store.claim(100, batch=True) == group
        assert not store.claim(100, batch=True)
        assert store.claim(100) == single


# --- the dead -------------------------------------------------------------------------------------


def gone() -> int:
    """The number of a process that has been."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    ("host", "process", "silent", "dead"),
    [
        ("here", "gone", 0, True),
        ("here", "parent", 30, False),
        ("here", "parent", 10_000, True),  # its number is another's by now
        ("here", "same", 0, True),  # this process has its number
        ("elsewhere:with:colons", "gone", 30, False),
        ("elsewhere", "parent", 90, True),
    ],
)
def test_runs_of_the_dead_are_taken_over(
    path: Path, host: str, process: str, silent: float, dead: bool
) -> None:
    number = {"gone": gone, "parent": os.getppid, "same": os.getpid}[process]()
    owner = f"{socket.gethostname() if host == 'here' else host}:{number}:1"
    with Store(path) as store:
        store.request("trial", specs())
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute(
                "UPDATE runs SET status='running', owner=?, beat=?, tries=1 WHERE seed=0",
                (owner, time.time() - silent),
            )
        claimed = store.claim(10)
    assert [spec.seed for spec in claimed] == ([0, 1, 0, 1] if dead else [1, 1])


def test_a_store_in_the_same_process_lives(path: Path) -> None:
    with Store(path) as one, Store(path) as other:
        one.request("trial", specs())
        one.claim(2)
        assert len(other.claim(10)) == 2


def test_what_the_dead_were_at_is_counted_as_waiting(path: Path) -> None:
    with Store(path) as store:
        store.request("trial", specs())
        store.claim(3)
        assert store.counts() == {("D", "A"): {"running": 3, "waiting": 1}}
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE runs SET owner='elsewhere:1:1', beat=0 WHERE owner NOT NULL")
        assert store.counts() == {("D", "A"): {"waiting": 4}}
        assert rows(path)[0]["status"] == "running"  # looking changes nothing


def test_a_failed_run_has_its_time(path: Path) -> None:
    with Store(path) as store:
        store.request("trial", specs())
        spec = store.claim(1)[0]
        store.fail((spec, "ValueError: no"))
    assert 0 <= rows(path)[0]["seconds"] < 60


def test_whoever_works_beats(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "HEARTBEAT", 0.05)
    with Store(path) as store:
        store.request("trial", specs())
        store.claim(1)
        start = rows(path, "beat")[0]["beat"]
        with store.heartbeat():
            end = time.monotonic() + 20
            while rows(path, "beat")[0]["beat"] == start:
                assert time.monotonic() < end
                time.sleep(0.01)
        assert rows(path, "beat")[1]["beat"] is None


# --- what there is --------------------------------------------------------------------------------


def test_results_are_in_the_order_of_the_campaign(path: Path) -> None:
    asked = [
        *specs("B", "Y", instances=3),
        *specs("A", "Y", instances=3),
        *specs("B", "X"),
        *specs("A", "X"),
    ]
    with Store(path) as store:
        # done in another order than asked for
        store.request("trial", asked[::-1])
        do_all(store)
        store.request("trial", asked)
        found = store.results()
    assert (found.name, found.algorithms, found.distributions) == ("trial", ("B", "A"), ("Y", "X"))
    assert list(found.row("Y")) == ["B", "A"]
    cell = found.cells["Y", "A"]
    assert cell.instances.tolist() == [0, 0, 1, 1, 2, 2]
    assert cell.seeds.tolist() == [0, 1, 0, 1, 0, 1]
    assert cell.grid.tolist() == list(GRID)
    assert cell.curves.shape == (6, 3)
    expected = 100.0 * cell.instances + 10.0 * cell.seeds
    np.testing.assert_array_equal(cell.curves, expected[:, None] + [0, 1, 2])
    np.testing.assert_array_equal(cell.at(4), expected + 1)
    assert cell.seconds.tolist() == [2.0] * 6
    with pytest.raises(ValueError, match=r"evaluations is 5, expected a point of the grid: 2, "):
        cell.at(5)
    assert found.only(["A"], ["X"]).cells.keys() == {("X", "A")}
    assert found.only(("A", "B")).algorithms == ("A", "B")
    with pytest.raises(ValueError, match="'C' is not in trial, expected one of"):
        found.only(["C"])
    with pytest.raises(ValueError, match="'Z' is not in trial"):
        found.only(None, ["Z"])


def test_results_of_some(path: Path) -> None:
    """What runs, waits or has failed is not in the arrays; failures are counted."""
    with Store(path) as store:
        store.request("trial", [*specs("A", runs=5, instances=1), *specs("B")])
        one, two, three, four, _ = store.claim(5)
        store.finish((one, given(one)))
        store.finish((four, given(four)))
        store.fail((two, "ValueError: no"))
        store.fail((three, "ValueError: no"))
        found = store.results()
        assert store.counts() == {
            ("D", "A"): {"done": 2, "failed": 2, "running": 1},
            ("D", "B"): {"waiting": 4},
        }
        assert store.failures() == [("A", "D", "ValueError: no", 2)]
    assert found.algorithms == ("A", "B")
    assert list(found.cells) == [("D", "A")]
    assert found.cells["D", "A"].seeds.tolist() == [0, 3]
    assert found.failed == {("D", "A"): {"ValueError: no": 2}}


def test_a_campaign_that_grows(path: Path) -> None:
    with Store(path) as store:
        store.request("trial", specs())
        assert do_all(store) == 4
        store.request("trial", specs(runs=3))
        assert do_all(store) == 2
        store.request("trial", [*specs(runs=3), *specs("B")])
        assert do_all(store) == 4
        store.request("trial", [*specs(runs=3), *specs("B")])
        assert do_all(store) == 0
        assert store.results().cells["D", "A"].seeds.tolist() == [0, 1, 2, 0, 1, 2]
    assert {row["tries"] for row in rows(path)} == {1}


def test_each_process_does_what_it_has_asked_for(path: Path) -> None:
    """Two campaigns in one file, at once."""
    with Store(path) as one, Store(path) as other:
        one.request("first", specs("A"))
        other.request("second", specs("B"))
        assert (one.waiting(), other.waiting()) == (4, 4)
        assert one.claim(100) == specs("A")
        assert (one.waiting(), other.waiting()) == (0, 4)
        other.request("second", [*specs("A"), *specs("B")])
        assert other.claim(100) == specs("B")  # the rest is being done


def test_other_labels_for_what_is_done(path: Path) -> None:
    renamed = [
        dataclasses.replace(spec, algorithm="best", distribution="hills") for spec in specs()
    ]
    with Store(path) as store:
        store.request("trial", specs())
        do_all(store)
        store.request("second", renamed)
        assert not store.claim(1)
        found = store.results()
    assert (found.name, found.algorithms, found.distributions) == ("second", ("best",), ("hills",))
    assert found.cells["hills", "best"].curves.shape == (4, 3)
    assert len(found.cells) == 1


def test_runs_of_what_a_name_no_longer_means_are_set_aside(path: Path) -> None:
    def known(method: str, configuration: Any) -> bool:
        assert configuration == {"population": 5, "rates": [0.5, 1]}
        return method != "a"

    both = [*specs("A"), *specs("B")]
    with Store(path) as store:
        store.request("trial", both)
        do_all(store)
        assert store.set_aside(["b"], known) == 0
        assert store.set_aside(["a", "b"], known) == 4
        assert store.set_aside(["a", "b"], known) == 0
        store.request("trial", both)
        assert store.waiting() == 4
        assert list(store.results().cells) == [("D", "B")]
        assert do_all(store) == 4
        assert len(store.results().cells["D", "A"].curves) == 4
        assert store.set_aside(["a"], known) == 4  # and the ones of today tomorrow
    assert len(rows(path)) == 12
    assert len({row["key"] for row in rows(path)}) == 12


def test_a_preset_that_has_changed_is_run_again(tmp_path: Path, path: Path) -> None:
    campaign = tmp_path / "campaign.toml"
    campaign.write_text(
        "budget = 20\ngrid = 10\ninstances = 1\nruns = 2\n[[algorithm]]\n"
        'name = "policy:paper-code"\n[[algorithm]]\nname = "random"\n'
        '[[problem]]\nproblem = "onemax:n=4"\n',
        encoding="utf-8",
    )
    arguments = ["bench", "run", str(campaign), "--output", str(path), "--engine", "cpu"]
    for said in ("4 to do", "0 to do"):
        got = CliRunner().invoke(main, arguments)
        assert got.exit_code == 0, got.output
        assert said in got.output
        assert "no longer" not in got.output
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        records.sign_changes(database)
        changed = "UPDATE runs SET configuration=json_set(configuration, '$.beta', 2.0) WHERE "
        database.execute(changed + "method LIKE 'policy%' AND seed=(SELECT min(seed) FROM runs)")
    got = CliRunner().invoke(main, arguments)
    assert got.exit_code == 0, got.output
    assert "1 runs in" in got.output
    assert "no longer" in got.output
    assert "1 to do" in got.output
    assert [row["status"] for row in rows(path)] == ["done"] * 5


def test_budgets_and_grids_under_one_label(path: Path) -> None:
    """What their grids have in common."""
    with Store(path) as store:
        store.request("trial", [*specs(runs=1), *specs(runs=1, grid=(1, 4, 6, 8))])
        do_all(store)
        cell = store.results().cells["D", "A"]
    assert cell.grid.tolist() == [4, 6]
    assert cell.instances.tolist() == [0, 0, 1, 1]
    # the second and third points of the one, the second and third of the other
    assert sorted(cell.at(4).tolist()) == [1, 1, 101, 101]
    assert sorted(cell.at(6).tolist()) == [2, 2, 102, 102]


def test_what_is_not_asked_for_any_more_does_not_count(path: Path) -> None:
    """A campaign with another budget: the same seeds are there twice, and count once."""
    with Store(path) as store:
        store.request("trial", specs(runs=3))
        do_all(store)
        store.request("trial", specs(runs=2, grid=(1, 4, 6, 8)))
        do_all(store)
        cell = store.results().cells["D", "A"]
        assert cell.grid.tolist() == [1, 4, 6, 8]
        assert cell.seeds.tolist() == [0, 1, 0, 1]
        store.request("trial", specs(runs=3))
        assert not store.claim(1)
        assert len(store.results().cells["D", "A"].curves) == 6


def test_only_what_is_asked_for_is_counted(path: Path) -> None:
    with Store(path) as store:
        store.request("first", [*specs("A"), *specs("B")])
        one, two = store.claim(2)
        store.finish((one, given(one)))
        store.fail((two, "ValueError: no"))
        store.request("second", specs("B"), retry_failed=True)
        assert store.counts() == {("D", "B"): {"waiting": 4}}
        assert not store.failures()
        assert not store.versions()
        assert not store.dimensions()
        assert do_all(store) == 4  # the failed one of the first campaign is left alone
        assert store.seconds_left() == 0
        store.request("first", [*specs("A"), *specs("B")])
        assert store.counts()["D", "A"] == {"done": 1, "failed": 1, "waiting": 2}


# --- several campaigns in one file ---------------------------------------------------------------


def test_results_of_all_campaigns(path: Path) -> None:
    """The last one's labels first; what a name no longer means stays out."""
    with Store(path) as store:
        store.request("first", [*specs("A"), *specs("B", "E"), *specs("gone")])
        do_all(store)
        assert store.earlier() == 0
        store.set_aside(["gone"], lambda *rest: False)
        store.request("second", [*specs("C", "E"), *specs("A", "E")])
        do_all(store)
        assert store.earlier() == 8
        assert set(store.results().cells) == {("E", "C"), ("E", "A")}
        assert set(store.dimensions()) == {"E"}
        found = store.results(everything=True)
        assert set(store.dimensions(everything=True)) == {"D", "E"}
    assert found.name == "second"
    assert (found.algorithms, found.distributions) == (("C", "A", "B"), ("E", "D"))
    assert set(found.cells) == {("D", "A"), ("E", "B"), ("E", "C"), ("E", "A")}
    assert all(len(cell.curves) == 4 for cell in found.cells.values())


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (specs(grid=(1, 4, 6, 8)), "'A' on 'D' stands"),
        ([dataclasses.replace(spec, method="boa") for spec in specs()], "'A' on 'D' stands"),
        ([dataclasses.replace(spec, problem=f"e:seed={spec.instance}") for spec in specs("B")],
         "'D' stands"),
    ],
    ids=("budget", "method", "problem"),
)  # fmt: skip
def test_labels_that_stand_for_different_runs(
    path: Path, tmp_path: Path, other: list[Spec], named: str
) -> None:
    with Store(path) as store:
        for name, listed in (("first", specs()), ("second", other)):
            store.request(name, listed)
            do_all(store)
        with pytest.raises(ValueError, match=named):
            store.results(everything=True)
    small = tmp_path / "small.csv"
    got = CliRunner().invoke(main, ["bench", "export", str(path), str(small)])
    assert got.exit_code == 2
    assert "--last" in got.output
    assert not small.exists()
    got = CliRunner().invoke(main, ["bench", "export", str(path), str(small), "--last"])
    assert got.exit_code == 0, got.output
    assert len(small.read_text(encoding="utf-8").splitlines()) == 1 + 4


def test_what_the_last_campaign_mixes_itself_is_no_error(path: Path) -> None:
    with Store(path) as store:
        store.request("first", specs(runs=3))
        do_all(store)
        store.request("second", [*specs(), *specs(grid=(1, 4, 6, 8))])
        do_all(store)
        assert store.earlier() == 2
        assert store.results(everything=True).cells["D", "A"].seeds.tolist() == [
            seed for _ in range(2) for seed in (0, 0, 1, 1, 2)
        ]


def test_commands_say_that_there_are_several_campaigns(path: Path, tmp_path: Path) -> None:
    with Store(path) as store:
        for name in ("A", "B"):
            store.request(name, specs(name, f"on {name}"))
            do_all(store)

    def command(*arguments: str) -> Any:
        got = CliRunner().invoke(main, ["bench", arguments[0], str(path), *arguments[1:]])
        assert got.exit_code == 0, got.output
        return got

    said = command("table")
    assert "also holds 4 finished runs of earlier campaigns, which are left out" in said.stderr
    assert "on A" not in said.stdout
    assert "4 more are done, of earlier campaigns" in command("status").output
    assert json.loads(command("status", "--json").stdout)["done_earlier"] == 4
    small, folder = tmp_path / "small.csv", tmp_path / "folder"
    assert "4 finished runs of earlier campaigns, which are included" in (
        command("export", str(small)).stderr
    )
    assert set(curves.read(small).cells) == {("on A", "A"), ("on B", "B")}
    command("export", str(small), "--algorithms", "A")
    assert set(curves.read(small).cells) == {("on A", "A")}
    command("export", str(small), "--last")
    assert set(curves.read(small).cells) == {("on B", "B")}
    command("export", str(folder))
    assert {entry.name for entry in folder.iterdir()} == {"A", "B"}
    got = CliRunner().invoke(main, ["bench", "export", str(small), "x.csv", "--last"])
    assert got.exit_code == 2
    assert "--last goes with a file of runs" in got.output


# --- odd contents --------------------------------------------------------------------------------


def test_nothing_in_common_under_one_label(path: Path) -> None:
    with Store(path) as store:
        store.request("trial", [*specs(), *specs(grid=(3, 5))])
        do_all(store)
        with pytest.raises(StudyError, match="'A' on 'D' have no number of evaluations in common"):
            store.results()


def test_a_value_that_json_does_not_have(path: Path) -> None:
    """A configuration is someone else's: it must not cost the run."""
    (spec,) = specs(instances=1, runs=1)
    with Store(path) as store:
        store.request("trial", [spec])
        store.claim(1)
        odd = dataclasses.replace(given(spec), configuration={"set": {1}, "array": np.ones(1)})
        assert store.finish((spec, odd))
    assert json.loads(rows(path)[0]["configuration"])["set"] == "{1}"


def test_the_time_that_is_left(path: Path) -> None:
    with Store(path) as store:
        store.request("trial", [*specs("A"), *specs("B"), *specs("C")])
        assert store.seconds_left() is None
        a, *_ = store.claim(6)
        store.finish((a, given(a, seconds=10.0)))
        assert store.seconds_left() == 3 * 10 + 4 * 10 + 4 * 10
        for b in specs("B")[:2]:
            assert store.finish((b, given(b, seconds=4.0)))
        # of A three at 10 s, of B two at 4 s, of C four at their mean, 7 s
        assert store.seconds_left() == 30 + 8 + 28
    with Store(path) as store:
        do_all(store)
        assert store.seconds_left() == 0


def test_status_tells_it(path: Path) -> None:
    with Store(path) as store:
        store.request("trial", [*specs("A", runs=20), *specs("B")])
        one, two, *_ = store.claim(2)
        store.finish((one, given(one, seconds=90.0)))
        store.fail((two, "ValueError: no"))
    got = CliRunner().invoke(main, ["bench", "status", str(path)])
    assert got.exit_code == 0, got.output
    # 38 of A and 4 of B at 90 s
    assert "1 done, 0 running, 42 waiting, 1 failed" in got.output
    assert "left: 63.0 minutes of one worker" in got.output
    assert "failed 1 x A on D: ValueError: no" in got.output
    told = json.loads(CliRunner().invoke(main, ["bench", "status", str(path), "--json"]).output)
    assert told["seconds_left"] == 42 * 90
    assert {"distribution": "D", "algorithm": "B", "waiting": 4} in told["cells"]
    assert told["failures"] == [["A", "D", "ValueError: no", 1]]


# --- files that are not ours, or not whole -------------------------------------------------------


def filled(path: Path) -> None:
    with Store(path) as store:
        store.request("trial", specs(instances=100, runs=4, grid=tuple(range(1, 200))))
        do_all(store)


def damaged(path: Path) -> None:
    filled(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 20_000] = b"\x55" * 20_000
    path.write_bytes(content)


def truncated(path: Path) -> None:
    filled(path)
    os.truncate(path, path.stat().st_size // 2)


def newer(path: Path) -> None:
    filled(path)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version=3")


def text(path: Path) -> None:
    path.write_text("algorithm,value\nA,3\n", encoding="utf-8")


def another(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE runs (key TEXT, status TEXT)")


def study(path: Path) -> None:
    ao.maximize(lambda x: float(x.sum()), ao.Space.binary(4), 10, seed=0, study=path)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (text, "is not a file of runs of anyorder; it was left unchanged"),
        (another, "is not a file of runs of anyorder; it was left unchanged"),
        (study, "is not a file of runs of anyorder; it was left unchanged"),
        (newer, "has format 3; .* reads format 2"),
        (truncated, "malformed"),
        (damaged, "damaged|malformed"),
    ],
)
def test_refused_and_left_as_it_is(tmp_path: Path, made: Any, said: str) -> None:
    path = tmp_path / "study.db"
    made(path)
    before = {entry: entry.read_bytes() for entry in tmp_path.iterdir()}
    for existing in (False, True):
        with pytest.raises(StudyError, match=said) as error:
            Store(path, existing=existing)
        assert str(path) in str(error.value)
    campaign = tmp_path.parent / f"{tmp_path.name}.toml"
    campaign.write_text(
        'budget = 5\n[[algorithm]]\nname = "random"\n[[problem]]\nproblem = "onemax:n=4"\n',
        encoding="utf-8",
    )
    for command in (["run", str(campaign), "--output", str(path)], ["status", str(path)]):
        got = CliRunner().invoke(main, ["bench", *command])
        assert got.exit_code == 1
        assert "Error" in got.output
        assert "Traceback" not in got.output
    assert {entry: entry.read_bytes() for entry in tmp_path.iterdir()} == before


EDITS = [
    ("UPDATE campaign SET value = '-1' WHERE name = 'algorithms'", Store.results),
    ("UPDATE campaign SET value = '[[1]]' WHERE name = 'distributions'", Store.results),
    ("UPDATE runs SET distribution = x'ff' WHERE instance = 0", Store.results),
    ("UPDATE runs SET grid = '7' WHERE instance = 0", Store.results),
    ("UPDATE runs SET curve = x'00' WHERE instance = 0", Store.results),
    ("UPDATE runs SET point = '3'", Store.dimensions),
    ("UPDATE runs SET versions = '[]'", Store.versions),
    ("UPDATE runs SET status = 'running', owner = 'x'", Store.counts),
    ("UPDATE runs SET status = 'waiting', seed = 'x'", lambda store: store.claim(1)),
    ("UPDATE runs SET status = 'waiting', grid = '{'", lambda store: store.claim(1)),
    ("UPDATE runs SET status = 'failed', reason = 7.5, algorithm = x'ff'", Store.failures),
]


def edited(path: Path, statement: str, sign: bool = False) -> None:
    """A campaign of two runs, changed, with checksums that fit or not."""
    with Store(path) as store:
        store.request("trial", specs(instances=2, runs=1))
        do_all(store)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        if sign:
            records.sign_changes(database)
        assert database.execute(statement).rowcount


@pytest.mark.parametrize(("statement", "use"), EDITS)
def test_edited_contents_are_a_study_error(path: Path, statement: str, use: Any) -> None:
    edited(path, statement, sign=True)
    with Store(path) as store, pytest.raises(StudyError, match=re.escape(str(path))):
        use(store)


@pytest.mark.parametrize(
    "statement",
    [
        *(statement for statement, _ in EDITS),
        "UPDATE runs SET algorithm = 'B' WHERE instance = 0",
        "UPDATE runs SET asked = 0 WHERE instance = 0",
        "UPDATE runs SET status = 'done?' WHERE instance = 0",
        "UPDATE runs SET seconds = 1e9",
        "UPDATE runs SET checksum = checksum + 1",
        "UPDATE runs SET checksum = NULL",
        "UPDATE campaign SET checksum = NULL",
    ],
)
def test_edited_contents_are_noticed_by_their_checksum(path: Path, statement: str) -> None:
    edited(path, statement)
    before = path.read_bytes()
    for existing in (True, False):
        with pytest.raises(StudyError, match=r"damaged.* was changed") as error:
            Store(path, existing=existing)
        assert "run " in str(error.value) or "entry" in str(error.value)
    assert path.read_bytes() == before


def test_flipped_bits_give_no_other_results(path: Path) -> None:
    with Store(path) as store:
        store.request("trial", [*specs("A"), *specs("B")])
        do_all(store)
        before = described(store)
    content, rng = path.read_bytes(), np.random.default_rng()
    damaged = path.with_name("damaged.db")
    for _ in range(300):
        flipped = bytearray(content)
        flipped[rng.integers(len(content))] ^= 1 << rng.integers(8)
        damaged.write_bytes(flipped)
        with contextlib.suppress(StudyError), Store(damaged, existing=True) as store:
            assert described(store) == before


def described(store: Store) -> Any:
    """What tables and figures are made of."""
    found = store.results()
    return (
        found.name, found.algorithms, found.distributions, found.failed, store.counts(),
        store.versions(),
        {k: (v.grid.tolist(), v.curves.tolist(), v.instances.tolist(), v.seeds.tolist(),
             v.seconds.tolist()) for k, v in found.cells.items()},
    )  # fmt: skip


LARGEST = sys.float_info.max


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "curve",
    [
        (-LARGEST, -1e308, 1.0),
        (-LARGEST, -LARGEST, -LARGEST),
        (1.0, 1e308, LARGEST),
        (-LARGEST, -1e-300, LARGEST),
        (-math.inf, -math.inf, -LARGEST),
    ],
)
def test_values_near_the_largest_float(path: Path, tmp_path: Path, curve: Any) -> None:
    with Store(path) as store:
        wanted = [specs(a, d, runs=3) for a in "AB" for d in "DE"]
        store.request("trial", [spec for some in wanted for spec in some])
        rng = np.random.default_rng(0)
        for spec in store.claim(100):
            values = np.maximum.accumulate(np.array(curve) * rng.uniform(0.5, 1.0))
            store.finish((spec, dataclasses.replace(given(spec), curve=values)))
    out = ["--output", str(tmp_path / "out")]
    for command in [
        *(["table", "--show", what] for what in ("mean", "running-time", "area", "mann-whitney")),
        *(["table", "--spread", spread] for spread in ("sd", "error", "interval")),
        ["table", "--format", "csv", "--reference", "A"],
        ["report", *out],
        *(["figure", kind, "--output", str(tmp_path / "figure.svg")] for kind in
          ("convergence", "ranks", "ecdf", "critical")),
        ["figure", "convergence", "--log", "--output", str(tmp_path / "figure.svg")],
    ]:  # fmt: skip
        arguments = ["bench", command[0], str(path), *command[1:]]
        got = CliRunner().invoke(main, arguments, catch_exceptions=False)
        assert got.exit_code == 0, got.output


def test_no_file_and_no_folder(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no file of runs"):
        Store(tmp_path / "none.db", existing=True)
    with pytest.raises(StudyError, match="no such folder"):
        Store(tmp_path / "none" / "runs.db")
    assert not list(tmp_path.iterdir())


def test_an_empty_file_is_filled(path: Path) -> None:
    """A process that was killed before it wrote anything leaves one."""
    path.touch()
    with Store(path) as store:
        store.request("trial", specs())
        assert do_all(store) == 4


def test_an_empty_file_is_not_filled_by_who_only_reads(path: Path) -> None:
    path.touch()
    with pytest.raises(StudyError, match="there is no file of runs"):
        Store(path, existing=True)
    assert not path.read_bytes()


@posix
def test_a_file_that_may_only_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disc that is locked; root may write everywhere, so the system is made to say no."""
    filled(path)
    before = {entry: entry.read_bytes() for entry in path.parent.iterdir()}
    os.chmod(path, 0o444)
    os.chmod(path.parent, 0o555)
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK)
    try:
        with Store(path, existing=True) as store:
            assert store.results().cells
            assert store.counts()
        for command in (["status", str(path)], ["table", str(path)]):
            got = CliRunner().invoke(main, ["bench", *command])
            assert got.exit_code == 0, got.output
        assert {entry: entry.read_bytes() for entry in path.parent.iterdir()} == before
    finally:
        os.chmod(path.parent, 0o755)


@pytest.mark.parametrize(
    "command", [["table", "-o"], ["report", "-o"], ["figure", "ranks", "-o"], ["export"]]
)
def test_runs_are_not_written_over(path: Path, tmp_path: Path, command: list[str]) -> None:
    other = tmp_path / "other.csv"
    filled(path)
    filled(other)
    name, *rest = command
    for target in (path, other):
        before = target.read_bytes()
        if name == "export" and target == path:
            continue  # not by its name a file of curves: a folder, which must be empty
        got = CliRunner().invoke(main, ["bench", name, str(path), *rest, str(target)])
        assert got.exit_code == 2
        assert f"{target} holds runs, and is left as it is" in got.output
        assert target.read_bytes() == before


def test_curves_are_no_place_for_runs(tmp_path: Path) -> None:
    campaign = tmp_path / "c.toml"
    campaign.write_text(
        'budget = 5\n[[algorithm]]\nname = "random"\n[[problem]]\nproblem = "onemax:n=4"\n',
        encoding="utf-8",
    )
    out = str(tmp_path / "runs.csv")
    got = CliRunner().invoke(main, ["bench", "run", str(campaign), "--output", out])
    assert got.exit_code == 2
    assert f"--output is {out}, expected another name" in " ".join(got.output.split())
    assert list(tmp_path.iterdir()) == [campaign]
