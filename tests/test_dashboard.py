"""The page of studies: what it shows, of odd studies too, and who may read it."""

from __future__ import annotations

import itertools
import json
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from dashboards import HOSTILE, MIXED, all_parts, ask, mixed, odd_studies, parts_of, record

import anyorder as ao
from anyorder.archive import Archive
from anyorder.archive.candidate import Candidate
from anyorder.charts import page
from anyorder.cli import main
from anyorder.dashboard import pages, parts, server, views
from anyorder.dashboard.following import Following
from anyorder.dashboard.studies import Studies
from anyorder.dashboard.views import Updates, View
from anyorder.errors import StudyError
from anyorder.run.study.reading import load
from anyorder.run.study.writing import Study


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return odd_studies(tmp_path_factory.mktemp("studies"))


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(main, [*map(str, arguments)])


# --- what is read --------------------------------------------------------------------------------


def test_a_study_is_followed_without_reading_anything_twice(tmp_path: Path) -> None:
    path = record(tmp_path / "run.db", MIXED, mixed, 20)
    study = Following(path)
    study.read()
    assert study.contents is not None
    first, version = study.contents, study.version
    study.read()
    assert (study.contents, study.version) == (first, version)
    ao.maximize(mixed, MIXED, budget=45, study=path, algorithm="random", seed=0, progress=False,
                on_failure="worst")  # fmt: skip
    study.read()
    assert study.contents is first
    assert study.version > version
    whole = load(path)
    np.testing.assert_array_equal(study.contents.history.codes, whole.codes)
    np.testing.assert_array_equal(study.contents.history.values, whole.values)
    assert study.contents.history.errors == whole.errors
    assert np.isfinite(study.contents.ended).sum() == (~whole.cached).sum()


def test_a_study_that_is_replaced_or_vanishes_is_noticed(tmp_path: Path) -> None:
    path = record(tmp_path / "run.db", MIXED, mixed, 20)
    study = Following(path)
    study.read()
    other = record(tmp_path / "other.db", ao.Space.binary(5), lambda x: float(x.sum()), 9)
    path.unlink()
    study.read()
    assert study.contents is None
    assert "there is no study" in (study.problem or "")
    shutil.copy(other, path)
    study.read()
    assert study.problem is None
    assert study.contents is not None
    assert len(study.contents.history) == len(load(other))


def test_what_is_being_evaluated_is_listed_with_its_start(tmp_path: Path) -> None:
    path = record(tmp_path / "run.db", MIXED, mixed, 20)
    study = Following(path)
    study.read()
    known = load(path)
    with Study(path, _settings(path)) as opened:  # a process that writes it
        added = [
            Candidate(None, codes, key, 0, number=20 + k, after=20)
            for k, (codes, key) in enumerate(
                zip(known.codes, Archive(MIXED).packing.pack(known.codes[:2]), strict=False)
            )
        ]
        added[1].started = 1_000.0
        with opened.writing():
            opened.add(added)
        opened.note_running(added)
        study.read()
        assert study.writing
        found = parts.running(study)
        assert [(one["number"], one["since"]) for one in found["running"]] == [
            (21, 1_000.0), (20, None),
        ]  # fmt: skip
        assert json.loads(found["running"][0]["point"]) == MIXED.one(known.codes[1])
        assert found["alive"]
        added[1].status, added[1].value, added[1].place, added[1].ended = 0, 5.0, 20, 1_002.0
        with opened.writing():
            opened.answer(added[1:])
        study.read()
        assert [one["number"] for one in parts.running(study)["running"]] == [20]
        assert study.contents is not None
        assert study.contents.ended[-1] == 1_002.0
        assert study.contents.history.values[-1] == 5.0
    study.read()
    assert not parts.running(study)["alive"]


def _settings(path: Path) -> dict[str, Any]:
    with sqlite3.connect(path) as database:
        found = {k: json.loads(v) for k, v in database.execute("SELECT name, value FROM settings")}
    database.close()
    return found


# --- what is shown -------------------------------------------------------------------------------

FIGURES = ("convergence", "time", "0/workers", "0/importance", "0/parallel", "0/over", "0/against")


def test_a_study_has_all_figures(studies: dict[str, Path]) -> None:
    found = parts_of(studies["mixed"], variable=1, influence=True)
    assert found["shown"] == ["mixed.db"]
    assert all("figure" in found[name] for name in FIGURES), found
    assert found["0/influence"]["note"].startswith("random has not learned")
    assert "0/front" not in found
    assert found["variables"] == {"names": ["algo", "depth", "tree", "sub", "order"], "of": 1}
    facts = dict(found["0/facts"]["rows"])
    assert facts["evaluations"] == "60 of 60"
    assert facts["state"] == "finished"
    assert facts["failures"].endswith(" failed")
    failed = found["0/running"]["failures"]
    assert 0 < len(failed) <= 10
    assert all('"depth": 7' in one["point"] for one in failed)
    assert all("<img" in one["message"] for one in failed)


def test_what_a_strategy_has_learned_is_shown(tmp_path: Path) -> None:
    policy = "policy+epochs=2+hidden=(3,)+engine=reference"
    path = record(tmp_path / "run.db", ao.Space.binary(5), lambda x: float(x.sum()), 60,
                  algorithm=policy)  # fmt: skip
    assert "0/influence" not in parts_of(path)
    assert "figure" in parts_of(path, influence=True)["0/influence"]


def test_the_best_points_can_be_copied_exactly(studies: dict[str, Path]) -> None:
    found, history = parts_of(studies["mixed"])["0/points"], load(studies["mixed"])
    assert found["variables"] == ["algo", "depth", "tree", "sub", "order"]
    assert float(found["rows"][0]["record"][0]) == np.nanmax(history.values)
    for entry in found["rows"]:
        cells = zip(found["variables"], entry["point"], strict=True)
        point = {name: json.loads(text) for name, text in cells if text}
        assert mixed(MIXED.one(MIXED.encode([point])[0])) == float(entry["record"][0])


def test_notes_are_columns_of_the_table(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return float(x.sum()), {"size": int(x[0]), "log": f"<b>{x[1]}"} if x.sum() > 3 else {}

    found = parts_of(record(tmp_path / "run.db", ao.Space.binary(6), f, 30))["0/points"]
    assert found["record"] == ["value", "candidate", "seconds", "size", "log"]
    best, last = found["rows"][0], found["rows"][-1]
    assert best["record"][3:] == [best["point"][0], f'"<b>{best["point"][1]}"']
    assert last["record"][3:] == ["", ""]


def test_points_of_a_noisy_function_are_in_the_order_of_their_means(tmp_path: Path) -> None:
    noise = iter(np.random.default_rng(0).normal(size=60))
    space = ao.Space({"k": ao.Integer(0, 3)})
    path = record(tmp_path / "run.db", space, lambda p: 3.0 * p["k"] + next(noise), 60,
                  deterministic=False)  # fmt: skip
    found = parts_of(path)["0/points"]
    assert found["record"] == ["value", "candidate", "seconds", "mean", "evaluations"]
    assert [row["point"] for row in found["rows"]] == [["3"], ["2"], ["1"], ["0"]]
    history = load(path)
    for row in found["rows"]:
        own = history.values[history.codes[:, 0] == int(row["point"][0])]
        assert float(row["record"][3]) == pytest.approx(own.mean())
        assert int(row["record"][4]) == len(own)


def test_of_several_objectives_one_is_drawn_and_the_front_is_the_table(tmp_path: Path) -> None:
    space = ao.Space({"a": ao.Integer(0, 9), "b": ao.Integer(0, 9)})
    result = ao.optimize(
        lambda p: (float(p["a"] + p["b"]), float(p["a"] ** 2)), space, directions=("max", "min"),
        budget=40, algorithm="random", seed=0, study=tmp_path / "run.db", progress=False,
    )  # fmt: skip
    first, second = (parts_of(tmp_path / "run.db", objective=k) for k in (0, 1))
    assert first["objectives"] == {"names": ["value_0", "value_1"], "of": 0}
    assert second["objectives"]["of"] == 1
    for found in (first, second):
        assert all("figure" in found[name] for name in (*FIGURES, "0/front", "0/hypervolume"))
        values = {tuple(map(float, row["record"][:2])) for row in found["0/points"]["rows"]}
        assert values == set(map(tuple, result.front.values.tolist()))
    assert first["convergence"] != second["convergence"]
    assert f"{len(result.front)} points" in dict(first["0/facts"]["rows"])["front"]


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("failures", {"convergence", "time", "0/importance", "0/parallel", "0/against"}),
        ("constant", {"0/importance"}),
        ("one variable", set()),
        ("extreme", set()),
        ("hostile", set()),
        ("vectors", set()),
        ("single value", {"0/importance"}),
    ],
)
def test_odd_studies_have_sentences_in_place_of_figures(
    studies: dict[str, Path], name: str, notes: set[str]
) -> None:
    found = parts_of(studies[name])
    said = {part for part in FIGURES if "note" in found[part]}
    assert said == notes
    assert not [part for part in said if "cannot be shown" in found[part]["note"]]


def test_an_empty_study_and_a_damaged_one_are_shown_by_a_sentence(
    studies: dict[str, Path], tmp_path: Path
) -> None:
    empty = tmp_path / "empty.db"
    with Study(empty, _settings(studies["mixed"])):
        pass
    found = parts_of(empty)
    assert "Nothing has been evaluated yet." in found["0/over"]["note"]
    assert all("note" in found[name] for name in FIGURES)
    damaged = tmp_path / "damaged.db"
    shutil.copy(studies["mixed"], damaged)
    with sqlite3.connect(damaged) as database:
        database.execute("UPDATE candidates SET value = 99 WHERE number = 5")
    database.close()
    found = parts_of(damaged)
    assert "candidate 5 has been changed" in found["convergence"]["note"]
    assert "candidate 5 has been changed" in found["0/facts"]["note"]


def test_a_page_follows_a_run_and_a_study_that_vanishes(
    studies: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(views, "_now", lambda: next(seconds))  # every look at the clock is later
    path = record(tmp_path / "run.db", MIXED, mixed, 20)
    updates = Updates(Studies([path]), View())

    def look() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(100):
            text = updates.next()
            found |= json.loads(text)["parts"] if text is not None else {}
        return found

    assert look()["convergence"]["figure"]["layout"]["xaxis"]["range"][1] == pytest.approx(20.2)
    assert look() == {}
    ao.maximize(mixed, MIXED, budget=45, study=path, algorithm="random", seed=0, progress=False,
                on_failure="worst")  # fmt: skip
    found = look()
    assert found["convergence"]["figure"]["layout"]["xaxis"]["range"][1] == pytest.approx(45.45)
    assert {"0/facts", "0/importance", "0/points", "0/over"} <= found.keys()
    path.unlink()
    assert "there is no study" in look()["convergence"]["note"]
    shutil.copy(studies["mixed"], path)
    assert "figure" in look()["convergence"]


def test_two_studies_are_side_by_side_and_in_one_chart(studies: dict[str, Path]) -> None:
    folder = studies["mixed"].parent
    names = ("mixed.db", "one.db")
    found = all_parts(Updates(Studies([folder]), View(names, variable=1)))
    assert found["shown"] == list(names)
    assert {row["name"] for row in found["studies"]} == {path.name for path in studies.values()}
    lines = {trace["name"] for trace in found["convergence"]["figure"]["data"]}
    assert set(names) <= lines
    assert "figure" in found["0/over"]
    assert found["1/over"]["note"] == "This study has no variable of that name."


def test_nothing_new_is_sent_again_and_no_update_is_large(studies: dict[str, Path]) -> None:
    folder = studies["mixed"].parent
    updates = Updates(Studies([folder]), View(("mixed.db", "hostile.db", "extreme.db", "one.db")))
    sizes = []
    while (text := updates.next()) is not None:
        sizes.append(len(text.encode()))
    assert max(sizes) <= 200_000
    assert updates.next() is None


@pytest.mark.slow
def test_an_update_of_four_large_studies_has_at_most_200_kb(tmp_path: Path) -> None:
    space = ao.Space({"k": ao.Integer(0, 10**6)})
    for name in "abcd":
        values = iter(np.random.default_rng(0).standard_cauchy(4_000).cumsum() + np.arange(4_000))
        record(tmp_path / f"{name}.db", space, lambda p, v=values: float(next(v)), 4_000)
    updates = Updates(Studies([tmp_path]), View(tuple(f"{name}.db" for name in "abcd")))
    sizes, parts = [], set()
    while (text := updates.next()) is not None:
        sizes.append(len(text.encode()))
        parts |= json.loads(text)["parts"].keys()
    assert max(sizes) <= 200_000
    assert {"convergence", "time", "0/against", "3/points", "3/against"} <= parts


# --- the file ------------------------------------------------------------------------------------


def test_a_report_is_one_file_without_addresses(studies: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "hostile.html"
    assert run("report", studies["hostile"], "-o", out).exit_code == 0
    text = out.read_text("utf-8").replace(page.part("plotly.js"), "")
    assert HOSTILE[0] not in text
    assert "http://" not in text
    assert "https://" not in text
    assert "src=" not in text.replace("src=x", "")
    data = text.partition('id="data">')[2].partition("</script>")[0]
    assert json.loads(data)["parts"]["shown"] == ["hostile.db"]
    assert out.stat().st_size < 2_500_000


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "text.db", "is not a study"),
        (lambda folder: folder / "none", "has no study"),
    ],
)
@pytest.mark.parametrize("command", ["dashboard", "report"])
def test_what_is_no_study_is_refused_in_one_line(
    tmp_path: Path, make: Any, words: str, command: str
) -> None:
    (tmp_path / "text.db").write_text("hello " * 200)
    (tmp_path / "none").mkdir()
    options = ["-o", tmp_path / "out.html"] if command == "report" else ["--no-browser"]
    found = run(command, make(tmp_path), *options)
    assert found.exit_code == 2
    assert words in found.output
    assert len(found.output.splitlines()) == 1


def test_a_port_that_is_taken_is_refused_in_one_line(studies: dict[str, Path]) -> None:
    pytest.importorskip("starlette")
    with server.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        found = run("dashboard", studies["mixed"], "--port", port, "--no-browser")
    assert found.exit_code == 2
    assert f"port {port} of 127.0.0.1: " in found.output
    assert len(found.output.splitlines()) == 1


@pytest.mark.parametrize("name", ["starlette", "uvicorn"])
def test_a_missing_package_is_named_in_one_line(
    studies: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    found = run("dashboard", studies["mixed"], "--port", 0, "--no-browser")
    assert found.exit_code == 1
    assert "pip install 'anyorder[dashboard]'" in found.output
    assert len(found.output.splitlines()) == 1


def test_a_host_that_others_reach_requires_a_token(studies: dict[str, Path]) -> None:
    found = run("dashboard", studies["mixed"], "--host", "0.0.0.0", "--no-browser")
    assert found.exit_code == 2
    assert "add --token" in found.output


# --- who may read it -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def app(studies: dict[str, Path]) -> Any:
    pytest.importorskip("starlette")
    return server.make_app(Studies([studies["mixed"]]))


def test_the_page_has_no_inline_script_and_its_policy(app: Any) -> None:
    found = ask(app)
    assert found.status == 200
    assert found.headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:"
    )
    assert found.headers["x-content-type-options"] == "nosniff"
    scripts = found.text.split("<script")[1:]
    assert len(scripts) == len(pages.SCRIPTS)
    assert all(" src=" in script.partition(">")[0] for script in scripts)
    assert "<style" not in found.text
    assert " style=" not in found.text
    for name, kind in (("plotly.js", "text/javascript"), ("dashboard.css", "text/css")):
        part = ask(app, f"/{name}")
        assert part.status == 200
        assert part.headers["content-type"].startswith(kind)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "192.168.0.7:8421"])
def test_a_foreign_host_is_refused(app: Any, host: str) -> None:
    assert ask(app, host=host).status == 400


@pytest.mark.parametrize("host", ["127.0.0.1:8421", "localhost:8421", "[::1]:8421"])
def test_this_machine_is_answered_by_all_its_names(app: Any, host: str) -> None:
    assert ask(app, host=host).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
def test_nothing_but_get_is_answered(app: Any, method: str) -> None:
    found = ask(app, method=method)
    assert found.status == 405
    assert found.headers["allow"] == "GET"


@pytest.mark.parametrize(
    ("path", "status"),
    [("/other", 404), ("/../../etc/passwd", 404), ("/events?variable=x", 400)],
)
def test_other_addresses_are_not_there(app: Any, path: str, status: int) -> None:
    found = ask(app, path)
    assert found.status == status
    assert "content-security-policy" in found.headers


def test_a_study_that_is_not_of_the_page_is_not_read(studies: dict[str, Path]) -> None:
    other = str(studies["one variable"])
    found = all_parts(Updates(Studies([studies["mixed"]]), View((other, "../one.db"))))
    assert found["shown"] == []


def test_a_token_is_asked_for_and_remembered(studies: dict[str, Path]) -> None:
    pytest.importorskip("starlette")
    app = server.make_app(Studies([studies["mixed"]]), "0.0.0.0", "s3cret&")
    for path in ("/", "/events", "/plotly.js", "/?token=wrong"):
        assert ask(app, path, host="machine:8421").status == 401
    found = ask(app, "/?token=s3cret%26", host="machine:8421")
    assert found.status == 303
    assert found.headers["location"] == "/"
    cookie = found.headers["set-cookie"]
    assert "HttpOnly" in cookie
    again = ask(app, "/", host="machine:8421", cookie=cookie.partition(";")[0])
    assert again.status == 200


def test_no_study_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="has no study"):
        Studies([tmp_path])
