"""`anyorder show` and `anyorder plot`: what they say of studies that run, rest, or are damaged."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import anyorder as ao
from anyorder.cli import main
from anyorder.run.study.reading import load

FAST = ao.policy.Config(epochs=2, hidden=(3,))
SPACE = ao.Space(
    {"flag": ao.Binary(), "value": ao.Categorical(["a", "b"])}
    | {f"k{i}": ao.Integer(1, 20) for i in range(30)}
)
PAGE = 4096


def f(point: dict[str, Any]) -> float:
    if point["k0"] == 3:
        raise RuntimeError("three, it seems\nis bad")
    return float(point["k0"] + 10 * (point["value"] == "b"))


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def show(path: Path) -> dict[str, Any]:
    done = run("show", path, "--json")
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "run.db"
    ao.maximize(
        f,
        SPACE,
        1_000,
        seed=7,
        algorithm=ao.policy.Policy(FAST, engine="cpu"),
        study=path,
        on_failure="worst",
        constraint=lambda point: point["k1"] != 4,
    )
    return path


@pytest.fixture
def copy(study: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(study, tmp_path / "copy.db"))


def test_names_and_messages_that_are_no_text_can_be_saved(tmp_path: Path) -> None:
    """Lone surrogates stand for bytes that are no UTF-8, as in the names of files."""

    def f(point: dict[str, Any]) -> float:
        if point["x"] == 2:
            raise RuntimeError("bad \udce9")
        return float(point["x"])

    space = ao.Space({"f\udce9": ao.Categorical(["a\udce9", "b"]), "x": ao.Integer(1, 3)})
    ao.maximize(f, space, 6, seed=0, study=tmp_path / "a.db", on_failure="worst")
    done = run("show", tmp_path / "a.db", "--output", tmp_path / "a.csv")
    assert done.exit_code == 0, done.output
    table = rows(tmp_path / "a.csv")
    assert {row["f\\udce9"] for row in table} == {"a\\udce9", "b"}


# --- show ---------------------------------------------------------------------------------------


def test_show_says_what_the_history_says(study: Path) -> None:
    now, history = show(study), load(study)
    best = int(np.nanargmax(history.values))
    paid = ~history.cached
    assert now["best"] == history.points[best]
    assert now["best_value"] == history.values[best]
    assert now["improved_after"] == paid[: best + 1].sum()
    assert (now["evaluations"], now["budget"], now["direction"]) == (1_000, 1_000, "maximize")
    assert now["failures"] == {"failed": int((history.statuses[paid] == 1).sum())}
    assert now["rejected"] == (history.statuses == 5).sum() > 0
    assert now["cached"] + now["rejected"] == history.cached.sum()
    assert now["generation"] == history.generations.max()
    assert now["restarts"] == len(history.restarts)
    assert now["seconds_each"] == pytest.approx(history.seconds[paid].mean())
    assert (now["seed"], now["settings"].pop("engine")) == (7, "cpu")
    assert {"graph", "stop_collapsed"} <= now["settings"].keys()
    assert json.loads(json.dumps(FAST.to_dict())).items() <= now["settings"].items()
    assert now["being_written"] is False
    assert (now["variables"], now["kinds"]) == (
        32, {"binary": 1, "categorical": 1, "integer": 30},
    )  # fmt: skip


def test_show_as_text(study: Path) -> None:
    text = run("show", study).output
    for words in (
        "not being written", "maximize; 1 binary, 1 categorical, 30 integer",
        "1000 of 1000 (100 %)", "rejected", "best value   30.0, found after", '"value": "b"',
        "policy:default+hidden=[3]+epochs=2+engine=cpu",
        "seed 7, failures: worst, with a constraint",
    ):  # fmt: skip
        assert words in text, words
    assert "entropy" not in text
    told = run("show", study, "--verbose").output
    assert "facts        diversity" in told
    assert "entropy" in told


def test_failures_are_grouped_and_the_best_points_listed(tmp_path: Path) -> None:
    """Messages that differ in numbers only are one."""

    def f(point: dict[str, Any]) -> float:
        if point["a"] < 20:
            raise ValueError(f"a = {point['a']}.5 is too small")
        if point["b"] == 0:
            raise ao.Infeasible("no b")
        return float(point["a"])

    space = ao.Space({"a": ao.Integer(0, 39), "b": ao.Integer(0, 3)})
    found = ao.maximize(
        f, space, 100, seed=0, algorithm="random", on_failure="worst", study=tmp_path / "a.db"
    )
    now, text = show(tmp_path / "a.db"), run("show", tmp_path / "a.db").output
    errors = found.history.errors.values()
    small = [text for text in errors if "too small" in text]
    assert [group["count"] for group in now["failure_messages"]] == [
        len(small), len(errors) - len(small),
    ]  # fmt: skip
    assert now["failure_messages"][0]["point"]["a"] < 20
    assert f"  {len(small)} times, failed: ValueError: a = " in text
    assert "times, infeasible: no b; at {" in text
    values = found.history.values[~found.history.cached]
    best = sorted(values[np.isfinite(values)].tolist(), reverse=True)[:10]
    assert [one["value"] for one in now["best_points"]] == best
    assert all(f(one["point"]) == one["value"] for one in now["best_points"])
    assert f'  {best[0]:g}  {{"a": {best[0]:g}' in text


def test_the_time_of_a_run_goes_on_when_it_is_continued(tmp_path: Path) -> None:
    options: dict[str, Any] = {"algorithm": "tabu", "study": tmp_path / "a.db", "seed": 0}

    def slow(x: np.ndarray) -> float:
        time.sleep(0.01)
        return float(x.sum())

    ao.maximize(slow, ao.Space.binary(20), 10, **options)
    first = show(tmp_path / "a.db")
    assert first["seconds"] >= 0.1
    assert first["seconds_left"] == 0
    ao.maximize(slow, ao.Space.binary(20), 20, **options)
    assert show(tmp_path / "a.db")["seconds"] >= first["seconds"] + 0.1


def test_show_says_when_a_study_was_written(copy: Path) -> None:
    """And not when it was opened to be read."""
    before = time.time() - 7_200
    os.utime(copy, (before, before))
    for _ in range(2):
        assert "last 2 hours ago" in run("show", copy).output
    assert show(copy)["last_written"] == pytest.approx(before)


def test_show_of_the_default(tmp_path: Path) -> None:
    problem = ao.problems.nk(16, 2, seed=0)
    result = ao.maximize(problem, budget=500, seed=0, study=tmp_path / "a.db")
    now, text = show(tmp_path / "a.db"), run("show", tmp_path / "a.db", "-v").output
    assert now["restarts"] == len(result.history.restarts) > 0
    # the climb from a random point that has not ended is not counted as a use
    assert now["restarts"] + 1 - result.facts["operators"]["restart"] in (0, 1)
    assert f"restarted {now['restarts']} times" in text
    assert result.facts["in_words"] in run("show", tmp_path / "a.db").output
    assert f"{result.facts['local_optima']} local optima" in result.facts["in_words"]
    assert f"found by {result.facts['best_found_by']}" in result.facts["in_words"]
    assert f"links {result.facts['links']}, not linked {result.facts['not_linked']}" in text
    assert "global model trusted yes" in text or "global model trusted no" in text
    assert f"operators    step {result.facts['operators']['step']}, restart" in text


def test_show_of_a_minimised_and_of_a_noisy_run(tmp_path: Path) -> None:
    noise = iter(np.tile([0.0, 4.0, -4.0], 200))
    found = ao.minimize(
        lambda x: x.sum() + next(noise),
        ao.Space.binary(3),
        100,
        seed=0,
        algorithm="policy:paper",
        study=tmp_path / "a.db",
        deterministic=False,
    )
    now = show(tmp_path / "a.db")
    assert now["direction"] == "minimize"
    assert now["best_value"] == pytest.approx(found.best_value)
    assert now["best"] == found.best.tolist()
    assert "policy:paper+engine=" in run("show", tmp_path / "a.db").output
    assert "noisy" in run("show", tmp_path / "a.db").output


def test_infinities_and_nothing_at_all(tmp_path: Path) -> None:
    ao.minimize(
        lambda x: np.inf,
        ao.Space.binary(3),
        5,
        study=tmp_path / "a.db",
        algorithm=ao.policy.Policy(FAST),
    )
    assert show(tmp_path / "a.db")["best_value"] is None
    assert "best value   inf" in run("show", tmp_path / "a.db").output

    def interrupt(point: Any) -> float:
        raise KeyboardInterrupt

    ao.maximize(
        interrupt,
        ao.Space.binary(300),
        5,
        study=tmp_path / "b.db",
        algorithm=ao.policy.Policy(FAST),
    )
    now, text = show(tmp_path / "b.db"), run("show", tmp_path / "b.db").output
    assert (now["best"], now["evaluations"], now["unanswered"]) == (None, 0, 10)
    assert "none yet" in text
    assert "about 10^90 points" in text
    for kind in ("diversity", "probabilities", "influence", "all"):
        done = run("plot", tmp_path / "b.db", "-o", tmp_path / "b.png", "--kind", kind)
        assert done.exit_code == 0, done.output


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Path, threading.Event]]:
    """A run that waits in its 26th evaluation until it is told to go on."""
    reached, go_on, calls = threading.Event(), threading.Event(), []

    def slow(point: Any) -> float:
        calls.append(1)
        if len(calls) == 26:
            reached.set()
            go_on.wait(60)
        return float(point.sum())

    thread = threading.Thread(
        target=ao.maximize, args=(slow, ao.Space.binary(40), 60),
        kwargs={"seed": 0, "algorithm": ao.policy.Policy(FAST), "study": tmp_path / "run.db"},
    )  # fmt: skip
    thread.start()
    assert reached.wait(60)
    yield tmp_path / "run.db", go_on
    go_on.set()
    thread.join()


def test_show_and_plot_while_it_runs(running: tuple[Path, threading.Event], tmp_path: Path) -> None:
    path, _ = running
    now = show(path)
    assert (now["evaluations"], now["unanswered"], now["generation"]) == (25, 5, 2)
    assert now["being_written"] is True
    assert "being written" in run("show", path).output
    assert run("show", path, "--output", tmp_path / "a.csv").exit_code == 0
    assert len(rows(tmp_path / "a.csv")) == 25
    done = run("plot", path, "-o", tmp_path / "a.png", "--kind", "all")
    assert done.exit_code == 0, done.output


def test_watch_ends_with_the_run(running: tuple[Path, threading.Event]) -> None:
    path, go_on = running
    timer = threading.Timer(0.3, go_on.set)
    timer.start()
    done = run("show", path, "--watch", "0.05", "--json")
    looks = [json.loads(line) for line in done.output.splitlines()]
    assert done.exit_code == 0
    assert looks[0]["evaluations"] == 25
    assert (looks[-1]["evaluations"], looks[-1]["being_written"]) == (60, False)


def test_watch_ends_with_ctrl_c(
    running: tuple[Path, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float, left: list[int] = [1]) -> None:  # noqa: B006
        if not left:
            raise KeyboardInterrupt
        left.pop()

    monkeypatch.setattr(time, "sleep", interrupted)
    done = run("show", running[0], "--watch", "5")
    assert done.exit_code == 0
    assert done.output.count("best value") == 2
    assert "0 a second now" in done.output


def test_the_owner_of_a_killed_run_is_nobody(copy: Path) -> None:
    copy.with_name("copy.db-owner").touch()
    assert show(copy)["being_written"] is False


# --- tables -------------------------------------------------------------------------------------


def test_csv_has_every_answer(study: Path, tmp_path: Path) -> None:
    done = run("show", study, "--output", tmp_path / "a.csv")
    history = load(study)
    assert (done.exit_code, done.output) == (
        0, f"{len(history)} candidates written to {tmp_path / 'a.csv'}\n",
    )  # fmt: skip
    table = rows(tmp_path / "a.csv")
    names = ["value", "generation", "status", "cached", "seconds", "error"]
    assert list(table[0]) == ["flag", "value_", *list(SPACE.names or ())[2:], *names]
    for k, (row, point) in enumerate(zip(table, history.points, strict=True)):
        assert row["value_"] == point["value"]
        assert row["k29"] == str(point["k29"])
        assert float(row["value"] or "nan") == pytest.approx(history.values[k], nan_ok=True)
        assert row["status"] == ao.STATUSES[history.statuses[k]]
        assert row["cached"] == str(bool(history.cached[k]))
        assert row["error"] == history.errors.get(k, "")


def test_csv_of_an_asynchronous_run_is_in_the_order_of_the_answers(tmp_path: Path) -> None:
    ao.maximize(
        lambda x: float(x.sum()),
        ao.Space.binary(9),
        40,
        seed=0,
        algorithm=ao.policy.Policy(FAST),
        workers=2,
        asynchronous=True,
        study=tmp_path / "a.db",
    )
    assert run("show", tmp_path / "a.db", "--output", tmp_path / "a.csv").exit_code == 0
    history = load(tmp_path / "a.db")
    table = rows(tmp_path / "a.csv")
    assert [[int(row[f"x{k}"]) for k in range(9)] for row in table] == history.points.tolist()


def saved(path: Path, study: Path) -> tuple[list[dict[str, str]], str]:
    """What --output saves of a damaged copy; all of it must be true."""
    table = path.with_suffix(".csv")
    before = path.read_bytes()
    done = run("show", path, "--output", table)
    assert (done.exit_code, "Traceback" in done.output) == (1, False)
    assert path.read_bytes() == before
    whole = table.with_name("whole.csv")
    run("show", study, "--output", whole)
    truth = {tuple(row.values()) for row in rows(whole)}
    found = rows(table)
    assert {tuple(row.values()) for row in found} <= truth
    assert f"{len(found)} candidates could be read" in done.stderr
    assert done.stderr.count("\n") == 1
    return found, done.stderr


def test_a_study_cut_off_in_a_page_gives_what_is_left(copy: Path, study: Path) -> None:
    size = copy.stat().st_size
    with copy.open("r+b") as file:
        file.truncate(20 * PAGE + 1_000)
    assert size > 30 * PAGE
    found, words = saved(copy, study)
    assert 100 < len(found) < len(rows(copy.with_name("whole.csv")))
    assert "malformed" in words


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE state SET counters = -1",
        "UPDATE state SET counters = '{\"facts\": 3}'",
        "UPDATE candidates SET status = 77",
    ],
)
def test_edited_contents_are_one_line(copy: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(copy)) as database, database:
        database.execute(statement)
    done = run("show", copy)
    assert done.exit_code == 1
    assert "is damaged" in done.output
    assert "Traceback" not in done.output


def test_candidates_after_a_damaged_page_are_saved(copy: Path, study: Path) -> None:
    data = bytearray(copy.read_bytes())
    leaves = [
        page
        for page in range(2, len(data) // PAGE)
        if data[page * PAGE] == 13  # a leaf of a table
    ]
    for k in (5, 9):  # two gaps, with readable candidates before, between and after
        start = leaves[k] * PAGE
        data[start : start + PAGE] = b"\xff" * PAGE
    copy.write_bytes(data)
    found, words = saved(copy, study)
    assert "at least" in words
    last, first = rows(copy.with_name("whole.csv"))[-1], rows(copy.with_name("whole.csv"))[0]
    assert (found[0], found[-1]) == (first, last)
    missing = len(rows(copy.with_name("whole.csv"))) - len(found)
    assert 0 < missing < 200
    done = run("show", copy)
    assert done.exit_code == 1
    assert "`anyorder show --output` saves what can still be read" in done.output


def test_points_of_an_unknown_space_are_saved_as_codes(copy: Path) -> None:
    copy.write_bytes(copy.read_bytes().replace(b"anyorder-space", b"anyorder-zpace"))
    done = run("show", copy, "--output", copy.with_suffix(".csv"))
    assert done.exit_code == 1
    table = rows(copy.with_suffix(".csv"))
    assert len(bytes.fromhex(table[0]["point"])) == len(SPACE)
    assert len(table) >= 1_000
    done = run("show", copy)
    assert (done.exit_code, "damaged" in done.output) == (1, True)


# --- what is no study ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["show"], ["show", "--output", "x.csv"], ["plot", "-o", "x.png"]]
)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no study"),
        (b"", "there is no study"),
        (b"no database", "is not a study of anyorder"),
        (b"SQLite format 3\0" + bytes(3_000), "study"),
        ("PRAGMA user_version=99", "has format 99; this is anyorder"),
        ("PRAGMA application_id=5", "is not a study of anyorder"),
        ("DROP TABLE candidates", "no such table"),
    ],
)
def test_errors_are_one_line(
    command: list[str], content: bytes | str | None, message: str, copy: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(copy.parent)
    if isinstance(content, str):
        database = sqlite3.connect(copy)
        database.execute(content)
        database.commit()
        database.close()
    elif content is not None:
        copy.write_bytes(content)
    path = copy if content is not None else copy.with_name("none.db")
    done = run(*command, path)
    assert done.exit_code == 1
    assert message in done.output
    assert done.output.count("\n") == 1
    assert "Traceback" not in done.output


def test_bad_usage(study: Path, tmp_path: Path) -> None:
    for arguments, message in (
        (["show", study, "--output", study], "is the study itself"),
        (["show", study, "--output", "a.csv", "--json"], "exclude each other"),
        (["show", study, "--watch", "0"], "--watch"),
        (["plot", study, "-o", tmp_path / "no" / "a.png"], "there is no such folder"),
        (["plot", study, "-o", "a.png", "--kind", "heat"], "'probabilities'"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2
        assert message in done.output
    done = run("plot", study, "-o", tmp_path / "a.xyz")
    assert (done.exit_code, "xyz" in done.output) == (2, True)


def test_plot_draws_every_kind(study: Path, tmp_path: Path) -> None:
    done = run("plot", study, "-o", tmp_path / "a.png", "--kind", "all")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_best_and_resume_of_a_study(tmp_path: Path) -> None:
    problem, path = tmp_path / "p.toml", tmp_path / "run.db"
    problem.write_text(
        'direction = "maximize"\nbudget = 4\n[space]\na = { low = 0, high = 50 }\n'
        '[command]\narguments = ["echo", "{a}"]\n', encoding="utf-8",
    )  # fmt: skip
    assert run("resume", problem, path).exit_code == 2
    first = run("run", problem, "--study", path, "--seed", "3", "--algorithm", "random")
    assert first.exit_code == 0, first.output
    done = run("resume", problem, path, "--budget", "6", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(run("best", path, "--json").output)
    assert (found["evaluations"], found["budget"]) == (6, 6)
    assert found["best_value"] == found["best"]["a"]
    assert f"best value   {found['best_value']}" in run("best", path).output
