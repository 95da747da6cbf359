"""Notes: what evaluations tell besides their values is kept everywhere and changes nothing."""

from __future__ import annotations

import csv
import json
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import assert_same
from click.testing import CliRunner
from conftest import refused

import anyorder as ao
from anyorder.cli import main
from anyorder.run import loop

SPACE = ao.Space({"depth": ao.Integer(1, 30), "fast": ao.Binary()})
RUN: dict[str, Any] = {"seed": 0, "algorithm": "ils", "progress": False}


def value(point: dict[str, Any]) -> float:
    return float(point["depth"] * (2 - point["fast"]))


def notes(point: dict[str, Any]) -> dict[str, Any]:
    return {"size": point["depth"] + 1, "log": f"{point['depth']}.txt", "parts": [1, {"a": None}]}


def noting(point: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    return value(point), notes(point)


def measuring(point: dict[str, Any]) -> ao.Measured:
    return ao.Measured(value(point), notes=notes(point))


def batch_of_pairs(points: list[dict[str, Any]]) -> list[Any]:
    return [noting(point) for point in points]


def batch_and_list(points: list[dict[str, Any]]) -> Any:
    return np.array([value(point) for point in points]), [notes(point) for point in points]


def assert_noted(history: ao.History) -> None:
    """Every evaluation has its notes, and nothing else has any."""
    points = history.points
    evaluated = np.flatnonzero(~history.cached).tolist()
    assert history.notes == {row: notes(points[row]) for row in evaluated}


@pytest.mark.parametrize(
    ("f", "options"),
    [
        (noting, {}),
        (measuring, {"on_failure": "worst"}),
        (noting, {"workers": 2, "batch": 4}),
        (noting, {"executor": "threads", "workers": 2, "asynchronous": True}),
        (batch_of_pairs, {"vectorized": True}),
        (batch_and_list, {"vectorized": True, "batch": 5}),
    ],
)
def test_notes_are_in_the_history_wherever_f_is_evaluated(f: Any, options: dict[str, Any]) -> None:
    result = ao.maximize(f, SPACE, 24, **RUN, **options)
    assert_noted(result.history)
    assert result.best_notes == notes(result.best)


def test_notes_change_nothing_else() -> None:
    plain, noted = (ao.maximize(f, SPACE, 40, **RUN).history for f in (value, noting))
    assert_same(plain, noted)
    assert not plain.notes


@pytest.mark.parametrize("often", [True, False])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_study_keeps_notes_and_a_resume_restores_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, often: bool, asynchronous: bool
) -> None:
    monkeypatch.setattr(loop, "_KEEP_EVERY", 0.0 if often else 1e9)
    monkeypatch.setattr(loop, "_KEEP_SHARE", 1e9)
    how = {"executor": "threads", "workers": 1, "asynchronous": True} if asynchronous else {}
    study = tmp_path / "run.db"
    ao.maximize(noting, SPACE, 13, study=study, **RUN, **how)
    assert_noted(ao.load(study))
    resumed = ao.resume(study, noting, 30, progress=False, **(how and {"executor": "threads",
                                                                      "workers": 1}))  # fmt: skip
    assert_noted(resumed.history)
    assert_noted(ao.load(study))
    assert_same(resumed.history, ao.maximize(noting, SPACE, 30, **RUN, **how).history)


def test_a_study_without_notes_has_the_tables_it_always_had(tmp_path: Path) -> None:
    study = tmp_path / "run.db"
    ao.maximize(value, SPACE, 5, study=study, **RUN)
    with closing(sqlite3.connect(study)) as database:
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    assert names == {"settings", "candidates", "restarts", "state", "times"}
    assert not ao.resume(study, value, 6, progress=False).history.notes


def test_notes_that_were_edited_are_refused(tmp_path: Path) -> None:
    study = tmp_path / "run.db"
    ao.maximize(noting, SPACE, 5, study=study, **RUN)
    with closing(sqlite3.connect(study)) as database, database:
        database.execute("UPDATE notes SET text = replace(text, 'size', 'cost') WHERE number = 3")
    with refused(ao.StudyError, "notes of candidate 3"):
        ao.load(study)
    with refused(ao.StudyError, "notes of candidate 3"):
        ao.resume(study, noting, 9, progress=False)
    shown = CliRunner().invoke(main, ["show", str(study), "--check"])
    assert shown.exit_code == 1
    assert "notes of candidate 3" in shown.output


def test_tables_have_a_column_for_each_note(tmp_path: Path) -> None:
    study, table = tmp_path / "run.db", tmp_path / "run.csv"
    result = ao.maximize(noting, SPACE, 9, study=study, **RUN)
    frame = result.to_pandas()
    assert [*frame.columns][-4:] == ["error", "notes.size", "notes.log", "notes.parts"]
    assert frame["notes.size"].tolist() == (frame["depth"] + 1).tolist()
    result.to_csv(table)
    shown = tmp_path / "shown.csv"
    assert CliRunner().invoke(main, ["show", str(study), "-o", str(shown)]).exit_code == 0
    for file in (table, shown):
        with open(file, newline="", encoding="utf-8") as opened:
            rows = list(csv.DictReader(opened))
        assert [int(row["notes.size"]) for row in rows] == frame["notes.size"].tolist()
        assert json.loads(rows[0]["notes.parts"]) == [1, {"a": None}]
        again = ao.maximize(value, SPACE, 3, data=file, **RUN)  # notes are no variables
        assert again.history.cached.sum() >= 9


def test_what_is_no_text_is_escaped_in_tables(tmp_path: Path) -> None:
    space = ao.Space({"\ud800": ao.Categorical(["\udfff", "b"])})
    result = ao.maximize(lambda p: (1.0, {"\ud801": "\udffe"}), space, 2, **RUN)
    result.to_csv(tmp_path / "run.csv")
    text = (tmp_path / "run.csv").read_text(encoding="utf-8")
    assert text.startswith("\\ud800,value,")
    assert "notes.\\ud801" in text
    assert "\\udffe" in text


def test_a_note_that_is_called_like_a_variable_gets_an_underscore() -> None:
    space = ao.Space({"notes.size": ao.Integer(1, 9)})
    frame = ao.maximize(lambda p: (1.0, {"size": "s"}), space, 2, **RUN).to_pandas()
    assert frame["notes.size_"].tolist() == ["s", "s"]
    assert set(frame["notes.size"]) <= set(range(1, 10))


def test_many_names_of_notes_are_one_column() -> None:
    def f(point: dict[str, Any]) -> Any:
        return 1.0, {f"{point['depth']}-{k}": k for k in range(9)}

    frame = ao.maximize(f, SPACE, 20, **RUN).to_pandas()
    assert [*frame.columns][-2:] == ["error", "notes"]
    assert all(len(cell) == 9 for cell in frame["notes"])


def test_show_prints_the_notes_of_the_best_point(tmp_path: Path) -> None:
    study = tmp_path / "run.db"
    best = ao.maximize(noting, SPACE, 20, study=study, **RUN).best
    shown = CliRunner().invoke(main, ["show", str(study), "--json"])
    assert json.loads(shown.output)["best_notes"] == notes(best)
    assert f'"log": "{best["depth"]}.txt"' in CliRunner().invoke(main, ["show", str(study)]).output


def test_show_has_null_for_notes_that_are_no_numbers(tmp_path: Path) -> None:
    study = tmp_path / "run.db"
    ao.maximize(lambda p: (1.0, {"x": np.nan, "y": [np.inf, 2]}), SPACE, 3, study=study, **RUN)
    shown = CliRunner().invoke(main, ["show", str(study), "--json"])
    assert json.loads(shown.output)["best_notes"] == {"x": None, "y": [None, 2]}
    assert ao.load(study).notes[0]["y"] == [np.inf, 2]


def test_ask_and_tell_take_notes() -> None:
    optimizer = ao.Optimizer(SPACE, 0, algorithm="ils")
    points = optimizer.ask(4)
    optimizer.tell(points[:2], [value(p) for p in points[:2]], notes=[notes(points[0]), None])
    optimizer.tell(points[2], measuring(points[2]))
    optimizer.tell(points[3:], [noting(points[3])])
    history = ao.History(optimizer.archive)
    assert history.notes == {row: notes(points[row]) for row in (0, 2, 3)}
    restored = ao.Optimizer.from_state(optimizer.state_dict())
    for other in (restored, pickle.loads(pickle.dumps(optimizer))):
        assert other.archive.notes == optimizer.archive.notes
    state = optimizer.state_dict()
    state["archive.notes"] = state["archive.notes"][:-3]
    with refused(ValueError, "damaged"):
        ao.Optimizer.from_state(state)
    with refused(ValueError, "notes is {'a': 1}", "expected 2 dicts"):
        optimizer.tell(points[:2], [1.0, 2.0], notes={"a": 1})


def test_numpy_and_paths_become_json() -> None:
    def f(point: dict[str, Any]) -> Any:
        told = {"n": np.int32(3), "x": np.array([1.5, np.nan]), "ok": np.bool_(True),
                "log": Path("a") / "b", "pair": (1, 2)}  # fmt: skip
        return np.float32(1.0), told

    found = ao.maximize(f, SPACE, 1, **RUN).best_notes
    assert found is not None
    assert found["x"][0] == 1.5
    assert np.isnan(found.pop("x")[1])
    assert found == {"n": 3, "ok": True, "log": str(Path("a") / "b"), "pair": [1, 2]}


def test_a_failed_evaluation_keeps_its_notes() -> None:
    result = ao.maximize(lambda p: (None, {"log": "a"}), SPACE, 3, on_failure="worst", **RUN)
    assert result.failures == 3
    assert result.history.notes == {row: {"log": "a"} for row in range(3)}
    assert result.best_notes is None


def _endless() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"size": 1, "log": "x" * 20_000}, ["20,022", "16,384", "'log'"]),
        ({1: 2}, ["name 1", "a string"]),
        ({"size": object()}, ["notes['size']", "object object", "a number"]),
        ({"a": {"b": [0, {1, 2}]}}, ["notes['a']['b'][1]", "{1, 2}"]),
        ({"a": _endless()}, ["notes['a']", "deep"]),
        ({"a": 10**5000}, ["notes", "JSON"]),
        ({"a": 1j}, ["notes['a']", "1j"]),
    ],
)
@pytest.mark.parametrize("on_failure", ["raise", "skip"])
def test_notes_that_cannot_be_kept_are_an_error_that_names_them(
    bad: Any, words: list[str], on_failure: Any
) -> None:
    with refused(ValueError, *words):
        ao.maximize(lambda p: (1.0, bad), SPACE, 9, on_failure=on_failure, **RUN)


def test_notes_of_another_number_of_points_are_an_error() -> None:
    with refused(ValueError, "expected 4 dicts"):
        ao.maximize(
            lambda points: ([1.0] * 4, [{"a": 1}] * 3), SPACE, 9, vectorized=True, batch=4, **RUN
        )
