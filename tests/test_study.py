"""Studies: a run that was stopped, however it was, goes on as if it had not been."""

from __future__ import annotations

import contextlib
import math
import os
import random
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import Child, assert_same, ends, wait_until
from conftest import posix, refused
from functions import (
    FAST,
    PLAIN,
    QUICK,
    SPACE,
    failing,
    lines,
    value,
)

import anyorder as ao
from anyorder.errors import StudyError
from anyorder.run import exhaustion, loop
from anyorder.run.study.reading import VERSION, load, open_study
from anyorder.space.packing import Packing
from anyorder.strategies.policy.search import PolicySearch


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


@pytest.fixture(params=["always", "now and then", "never"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How often states are kept: it must not matter."""
    if request.param != "now and then":
        monkeypatch.setattr(loop, "_KEEP_EVERY", 0.0 if request.param == "always" else math.inf)
        monkeypatch.setattr(loop, "_KEEP_SHARE", math.inf)
    if request.param == "never":
        keep = loop.Session._keep_state
        monkeypatch.setattr(
            loop.Session, "_keep_state", lambda self, at_once=False: keep(self, False)
        )
    return str(request.param)


# --- going on -------------------------------------------------------------------------------------


def batch(points: np.ndarray) -> list[float]:
    return [value(x) for x in points]


class Noisy:
    """Another value each time, but the same ones for every instance."""

    def __init__(self) -> None:
        self.calls: dict[bytes, int] = {}

    def __call__(self, x: np.ndarray) -> float:
        count = self.calls[x.tobytes()] = self.calls.get(x.tobytes(), 0) + 1
        return value(x) + np.random.default_rng([count, *x.tolist()]).normal()


def allowed(x: np.ndarray) -> bool:
    return bool(x[0] + x[1] + x[2] < 3)


MODES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "plain": (lambda: value, {}),
    "vectorised": (lambda: batch, {"vectorized": True}),
    "worst": (lambda: failing, {"on_failure": "worst"}),
    "skip": (lambda: failing, {"on_failure": "skip"}),
    "constraint": (lambda: value, {"constraint": allowed}),
    "constraint and cache off": (lambda: value, {"constraint": allowed, "cache": False}),
    "constraint and noise": (Noisy, {"constraint": allowed, "deterministic": False, "confirm": 0}),
    "cache off": (lambda: value, {"cache": False}),
    "cache off and failures": (lambda: failing, {"cache": False, "on_failure": "skip"}),
    "noisy": (Noisy, {"deterministic": False, "confirm": 0}),
}
SMALL = ao.Space.binary(4)  # where points come up again in one generation


@pytest.mark.parametrize("mode", MODES)
def test_stopped_at_every_evaluation(mode: str, study: Path, kept: str) -> None:
    """One study, given one more evaluation at a time, or a few."""
    make, options = MODES[mode]
    free = options.get("cache", True) is False or "deterministic" in options
    space = SMALL if free else SPACE
    whole = ao.maximize(make(), space, 40, **options, **QUICK)
    f = make()
    for budget in [*range(1, 40, 1 if kept == "now and then" else 4), 40]:
        result = ao.maximize(f, space, budget, study=study, **options, **QUICK)
        assert result.evaluations == budget
        assert result.stop_reason == ("failed" if result.best is None else "budget")
    assert_same(result.history, whole.history)
    assert (result.best_value, result.failures) == (whole.best_value, whole.failures)
    np.testing.assert_array_equal(result.best, whole.best)
    assert {k: v for k, v in result.history.errors.items() if v} == whole.history.errors


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_split_in_two_anywhere(mode: str, tmp_path: Path, kept: str) -> None:
    make, options = MODES[mode]
    space = ao.Space.binary(6)
    whole = ao.maximize(make(), space, 60, **options, **QUICK)
    # a constraint that has few points left is called often
    for budget in range(1, 60, 7 if mode == "constraint" else 1):
        f, study = make(), tmp_path / f"{budget}.db"
        ao.maximize(f, space, budget, study=study, **options, **QUICK)
        if "constraint" in options:
            again = ao.resume(study, f, 60, constraint=options["constraint"])
        else:
            again = ao.resume(study, f, 60, vectorized=options.get("vectorized", False))
        assert_same(again.history, whole.history)


def test_with_workers(study: Path, kept: str) -> None:
    for budget in (3, 10, 17, 31, 44):
        where = {"workers": 1 + budget % 3}
        result = ao.maximize(
            failing, SPACE, budget, study=study, on_failure="worst", **where, **QUICK
        )
    serial = ao.maximize(failing, SPACE, 44, on_failure="worst", **QUICK)
    assert_same(result.history, serial.history)


@pytest.mark.parametrize("stop", [False, True])
def test_with_restarts_of_the_policy(study: Path, kept: str, stop: bool) -> None:
    """Long enough that the policy collapses; the moments of stopping are drawn, not chosen."""
    config = FAST.replace(learning_rate=0.05)
    options: dict[str, Any] = {
        "seed": 0, "algorithm": ao.policy.Policy(config, stop_collapsed=stop), "cache": False,
    }  # fmt: skip
    whole = ao.maximize(value, ao.Space.binary(6), 900, **options)
    assert (whole.stop_reason == "collapsed") if stop else whole.history.restarts
    for budget in [*sorted(random.Random(0).sample(range(1, 900), 12)), 900]:
        result = ao.maximize(value, ao.Space.binary(6), budget, study=study, **options)
    assert_same(result.history, whole.history)
    assert result.stop_reason == whole.stop_reason


def test_an_interrupted_search_in_a_small_space_ends_where_it_would_have(
    study: Path, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exhaustion, "IDLE_CANDIDATES", 200)
    monkeypatch.setattr(exhaustion, "IDLE_BATCHES", 20)
    options: dict[str, Any] = {"constraint": lambda x: x[0] == 0, **QUICK}
    whole = ao.maximize(value, ao.Space.binary(4), 100, **options)
    assert (whole.stop_reason, whole.evaluations) == ("exhausted", 8)
    stops = []

    def now_and_then(optimizer: ao.Optimizer) -> bool:
        stops.append(optimizer.told)
        return len(stops) % 3 == 0

    for _ in range(100):
        result = ao.maximize(
            value, ao.Space.binary(4), 100, study=study, callback=now_and_then, **options
        )
        if result.stop_reason == "exhausted":
            break
    assert len(stops) > 20
    assert_same(result.history, whole.history)
    again = ao.maximize(value, ao.Space.binary(4), 100, study=study, **options)
    assert again.stop_reason == "exhausted"
    assert_same(again.history, whole.history)  # and does not search on


@pytest.mark.parametrize("patience", [7, 25])
def test_patience_is_the_same_for_all(study: Path, kept: str, patience: int) -> None:
    whole = ao.maximize(value, SPACE, 200, patience=patience, **QUICK)
    assert whole.stop_reason == "patience"
    with ThreadPoolExecutor(3) as pool:
        threads = ao.maximize(value, SPACE, 200, patience=patience, executor=pool, **QUICK)
    assert_same(threads.history, whole.history)
    for budget in (5, 12, 20, 33, 200):
        result = ao.maximize(value, SPACE, budget, patience=patience, study=study, **QUICK)
    assert result.stop_reason == "patience"
    assert_same(result.history, whole.history)


def test_the_same_call_again_does_nothing(study: Path) -> None:
    calls = []

    def f(x: np.ndarray) -> float:
        calls.append(1)
        return value(x)

    first = ao.maximize(f, SPACE, 33, study=study, **QUICK)
    again = ao.maximize(f, SPACE, 33, study=study, **QUICK)
    less = ao.maximize(f, SPACE, 12, study=study, **QUICK)  # what is there stays there
    assert len(calls) == 33
    assert again.best_value == less.best_value == first.best_value
    for result in (again, less):
        assert_same(result.history, first.history)


def test_a_seed_that_was_drawn_is_kept(study: Path) -> None:
    first = ao.maximize(value, SPACE, 20, study=study, algorithm=ao.policy.Policy(FAST))
    again = ao.maximize(value, SPACE, 40, study=study, algorithm=ao.policy.Policy(FAST))
    assert again.seed == first.seed
    assert_same(
        again.history,
        ao.maximize(value, SPACE, 40, seed=first.seed, algorithm=ao.policy.Policy(FAST)).history,
    )


def test_resume_knows_everything_but_the_function(study: Path) -> None:
    space = ao.Space({"kind": ao.Categorical(["a", "b", "c"]), "size": ao.Integer(0, 300)})
    graph = np.array([[True, False], [True, True]])

    def f(point: dict[str, Any]) -> float:
        return abs(point["size"] - 77) + (point["kind"] == "b")

    options: dict[str, Any] = {"seed": 3, "algorithm": ao.policy.Policy(FAST, graph=graph)}
    whole = ao.minimize(f, space, 50, **options)
    ao.minimize(f, space, 21, study=study, **options)
    result = ao.resume(study, f, 50)
    assert_same(result.history, whole.history)
    assert result.best == whole.best
    assert result.history.points == whole.history.points
    assert ao.resume(study, f).evaluations == 50  # the last budget
    with pytest.raises(TypeError, match="unexpected arguments: seed"):
        ao.resume(study, f, seed=1)


def test_a_study_is_continued_with_its_own_algorithm_if_none_is_named(study: Path) -> None:
    whole = ao.maximize(value, SPACE, 40, seed=0, algorithm="tabu+tenure=3")
    ao.maximize(value, SPACE, 20, seed=0, algorithm="tabu+tenure=3", study=study)
    with refused(ValueError, 'with config {"tenure": 3}'):
        ao.maximize(value, SPACE, 40, study=study)
    with refused(ValueError, 'with algorithm "tabu"'):
        ao.maximize(value, SPACE, 40, study=study, algorithm="ils")
    assert_same(ao.resume(study, value, 40).history, whole.history)


@pytest.mark.parametrize("cards", [2, 3, 256, 257, 65_536, 65_537])
def test_points_are_packed_and_come_back(cards: int) -> None:
    space = ao.Space([ao.Integer(0, cards - 1), ao.Binary(), ao.Integer(0, cards - 1)])
    codes = np.array([[cards - 1, 1, 0], [0, 0, cards - 1], [cards // 2, 1, 1]])
    packing = Packing(space)
    np.testing.assert_array_equal(packing.unpack(packing.pack(codes)), codes)
    assert packing.unpack([]).shape == (0, 3)


def test_infinities_are_values(study: Path) -> None:
    def f(x: np.ndarray) -> float:
        return [-math.inf, -math.inf, value(x)][int(x[0] + x[1])]

    ao.maximize(f, SPACE, 15, study=study, **QUICK)
    result = ao.maximize(f, SPACE, 40, study=study, **QUICK)
    assert_same(result.history, ao.maximize(f, SPACE, 40, **QUICK).history)
    assert -math.inf in result.history.values
    # a noisy function may give both, and the one that would be best is a failure
    flips = ao.maximize(
        lambda x: math.inf if os.urandom(1)[0] < 128 else -math.inf, ao.Space.binary(2), 60,
        deterministic=False, on_failure="skip", **QUICK,
    )  # fmt: skip
    assert flips.evaluations == 60


# --- errors of the user's -------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["f", "constraint", "callback"])
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_a_study_that_goes_on(
    study: Path, who: str, asynchronous: bool, error: type[BaseException]
) -> None:
    """On one thread, so that asynchronous runs repeat as well."""
    calls = dict.fromkeys(("f", "constraint", "callback"), 0)
    limit = {"f": 27, "constraint": 27, "callback": 3}[who]

    def count(name: str) -> None:
        calls[name] += 1
        if name == who and calls[name] == limit:
            raise error("now")

    def f(x: np.ndarray) -> float:
        count("f")
        return value(x)

    with ThreadPoolExecutor(1) as pool:
        options = {
            "constraint": lambda x: count("constraint") or allowed(x),
            "callback": lambda optimizer: count("callback"),
            "verify": False,
            **({"executor": pool, "asynchronous": True} if asynchronous else {}),
            **QUICK,
        }
        whole = ao.maximize(value, SPACE, 60, **options | {"constraint": allowed, "callback": None})
        inside = asynchronous and who == "f" and error is not RuntimeError
        if error is KeyboardInterrupt and not inside:
            result = ao.maximize(f, SPACE, 60, study=study, **options)
            assert result.stop_reason == "interrupted"
        else:
            with pytest.raises(RuntimeError if inside else error, match="now"):
                ao.maximize(f, SPACE, 60, study=study, **options)
        result = ao.maximize(f, SPACE, 60, study=study, **options)
    assert_same(result.history, whole.history)
    if who == "f":
        assert calls["f"] == 60 + 1  # only what failed was called again


def test_every_answer_that_came_is_kept_when_one_fails(study: Path) -> None:
    """Of a vectorised call, and of workers that answer together."""

    def f(points: np.ndarray) -> list[float]:
        return [math.nan if k == 3 else value(x) for k, x in enumerate(points)]

    options: dict[str, Any] = {"vectorized": True, "cache": False, "study": study, **QUICK}
    options["verify"] = False
    with pytest.raises(ValueError, match="value 3 is NaN"):
        ao.maximize(f, SPACE, 30, **options)
    whole = ao.maximize(value, SPACE, 30, cache=False, **QUICK).history
    np.testing.assert_array_equal(load(study).values, np.delete(whole.values[:10], 3))
    sizes = []
    result = ao.maximize(lambda x: sizes.append(len(x)) or batch(x), SPACE, 30, **options)
    assert sizes == [1, 10, 10]
    assert_same(result.history, whole)


def test_answers_that_come_together_are_all_kept_when_one_fails(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(4)
    first = []

    def f(x: np.ndarray) -> float:
        together.wait(20)
        first.append(1)
        if len(first) == 1:
            raise ValueError("the first of four")
        wait_until(lambda: len(first) == 4, 20)
        return value(x)

    slow = loop.Session._collect

    def late(self: loop.Session) -> None:
        wait_until(lambda: self.state.jobs._done.qsize() == 4, 20)
        slow(self)

    monkeypatch.setattr(loop.Session, "_collect", late)
    with ThreadPoolExecutor(4) as pool, pytest.raises(ValueError, match="the first of four"):
        ao.maximize(f, SPACE, 40, executor=pool, study=study, **QUICK)
    assert len(load(study)) == 3


def test_a_raising_sigint_handler_in_the_middle_of_training(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then what is told is not trained on: that state must not be kept."""
    train, calls = PolicySearch._train, []

    def interrupted(self: PolicySearch) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        train(self)

    with monkeypatch.context() as patch:
        patch.setattr(PolicySearch, "_train", interrupted)
        result = ao.maximize(value, SPACE, 60, study=study, **QUICK)
    assert result.stop_reason == "interrupted"
    assert_same(
        ao.maximize(value, SPACE, 60, study=study, **QUICK).history,
        ao.maximize(value, SPACE, 60, **QUICK).history,
    )


# --- refusals -------------------------------------------------------------------------------------


OTHERS: dict[str, dict[str, Any]] = {
    "space": {"space": ao.Space.binary(9)},
    "config": {"algorithm": ao.policy.Policy(FAST.replace(epochs=4))},
    "seed": {"seed": 1},
    "graph": {"algorithm": ao.policy.Policy(FAST, graph=np.eye(8, dtype=bool))},
    "on_failure": {"on_failure": "skip"},
    "cache": {"cache": False},
    "deterministic": {"deterministic": False},
    "constraint": {"constraint": allowed},
    "asynchronous": {"asynchronous": True, "workers": 2},
}


@pytest.mark.parametrize("name", [*OTHERS, "direction"])
def test_another_run_is_refused(study: Path, name: str) -> None:
    ao.maximize(value, SPACE, 20, study=study, **QUICK)
    before = study.read_bytes()
    options = {"space": SPACE, **QUICK, **OTHERS.get(name, {})}
    run = ao.minimize if name == "direction" else ao.maximize
    words = "without a constraint" if name == "constraint" else f"with {name} "
    words = 'with config {"graph": null}' if name == "graph" else words
    with refused(ValueError, str(study), f"started {words}", "pass the same, or another file"):
        run(value, options.pop("space"), 40, study=study, **options)
    assert study.read_bytes() == before
    assert [path.name for path in study.parent.iterdir()] == [study.name]
    assert len(ao.maximize(value, SPACE, 21, study=study, **QUICK).history) >= 21


def _foreign(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE candidates (number INTEGER)")
        database.commit()


def _newer(path: Path) -> None:
    ao.maximize(value, SPACE, 20, study=path, **QUICK)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version={VERSION + 1}")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_bytes(b"Dear diary, " * 50), "is not a study of anyorder"),
        (lambda path: path.write_bytes(b"\0"), "is not a study of anyorder"),
        (_foreign, "is not a study of anyorder"),
        (_newer, f"has format {VERSION + 1}"),
    ],
    ids=["text", "a byte", "another's SQLite", "newer"],
)
def test_another_file_is_refused_and_left_alone(study: Path, make: Any, said: str) -> None:
    make(study)
    before = study.read_bytes()
    with refused(StudyError, str(study), said):
        ao.maximize(value, SPACE, 20, study=study, **QUICK)
    with refused(StudyError, str(study), said):
        load(study)
    assert study.read_bytes() == before
    assert [path.name for path in study.parent.iterdir()] == [study.name]


def test_places_where_no_study_can_be(tmp_path: Path) -> None:
    with refused(StudyError, str(tmp_path), "expected a regular file"):
        ao.maximize(value, SPACE, 20, study=tmp_path, **QUICK)
    with refused(StudyError, "there is no such folder"):
        ao.maximize(value, SPACE, 20, study=tmp_path / "a" / "b.db", **QUICK)
    with refused(StudyError, "there is no study"):
        load(tmp_path / "none.db")
    with refused(StudyError, "there is no study"):
        ao.resume(tmp_path / "none.db", value)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.db").touch()  # begun, and stopped before the first line
    assert len(ao.maximize(value, SPACE, 20, study=tmp_path / "empty.db", **QUICK).history) >= 20


def test_odd_names(tmp_path: Path) -> None:
    study = tmp_path / "a b%20?c=1#d 'é.db"
    ao.maximize(value, SPACE, 20, study=study, **QUICK)
    assert_same(load(study), ao.maximize(value, SPACE, 20, **QUICK).history)
    assert [path.name for path in tmp_path.iterdir()] == [study.name]


@posix
def test_a_read_only_folder(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *args: Any, **options: Any) -> None:
        raise PermissionError(13, "Permission denied")

    ao.maximize(value, SPACE, 20, study=study, **QUICK)
    study.parent.chmod(0o500)
    try:
        if os.access(study.parent, os.W_OK):  # permissions do not bind the user root
            monkeypatch.setattr(Path, "touch", refuse)
            monkeypatch.setattr(os, "access", lambda *arguments: False)
        with refused(StudyError, "its folder cannot be written"):
            ao.maximize(value, SPACE, 40, study=study, **QUICK)
        assert_same(load(study), ao.maximize(value, SPACE, 20, **QUICK).history)
        assert [file.name for file in study.parent.iterdir()] == [study.name]
    finally:
        study.parent.chmod(0o700)


# --- who may write, who may read ------------------------------------------------------------------


def test_two_writers(study: Path) -> None:
    def f(x: np.ndarray) -> float:
        if not tried:
            tried.append(1)
            with refused(StudyError, "is being written by another process"):
                ao.maximize(value, SPACE, 20, study=study, **QUICK)
            with refused(StudyError, "is being written by another process"):
                ao.resume(study, value)
            assert len(load(study)) == 0
        return value(x)

    tried: list[int] = []
    result = ao.maximize(f, SPACE, 20, study=study, **QUICK)
    assert tried
    assert_same(result.history, ao.maximize(value, SPACE, 20, **QUICK).history)
    assert [path.name for path in study.parent.iterdir()] == [study.name]


@posix
def test_two_processes_that_write(tmp_path: Path) -> None:
    child = Child(tmp_path, 20, 5.0, workers=1)
    wait_until(lambda: lines(child.log))
    with refused(StudyError, "is being written by another process"):
        ao.maximize(value, SPACE, 20, study=child.study, **PLAIN)
    assert len(load(child.study)) == 0
    child.process.kill()
    child.end()
    child.alone()
    assert ao.maximize(value, SPACE, 20, study=child.study, **PLAIN).evaluations == 20
    assert [p.name for p in tmp_path.glob("study*")] == ["study.db"]


def test_readers_while_one_writes(study: Path) -> None:
    seen: list[int] = []
    whole = ao.maximize(value, SPACE, 60, **QUICK).history

    def read(optimizer: ao.Optimizer) -> None:
        history = load(study)
        seen.append(len(history))
        assert len(history) == optimizer.told
        np.testing.assert_array_equal(history.values, whole.values[: len(history)])
        with open_study(study) as database, pytest.raises(sqlite3.OperationalError):
            database.execute("DELETE FROM candidates")

    result = ao.maximize(value, SPACE, 60, study=study, callback=read, **QUICK)
    assert len(seen) > 5
    assert_same(result.history, whole)


@posix
def test_readers_in_other_processes(tmp_path: Path) -> None:
    child = Child(tmp_path, 60, 0.01, workers=2)
    wait_until(lambda: ends(child.log))
    sizes = []
    while child.process.poll() is None:
        history = load(child.study)
        sizes.append(len(history))
        np.testing.assert_array_equal(
            history.values, [value(x) for x in history.codes], err_msg="half an answer"
        )
    out, err = child.end()
    assert "RESULT budget 60" in out, err
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 3
