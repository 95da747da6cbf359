"""Strategies of one's own through `maximize`, and what the session asks of any strategy."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import PROC, assert_same, descendants
from functions import QUICK, SPACE, failing, leaves, sometimes, value

import anyorder as ao
from anyorder.run.study.reading import check, load
from anyorder.strategies.base import Answer, Search, score


class Climber(Search):
    """Varies the best point, and starts again now and then: twice when it is the 40th answer."""

    name = "climber"
    STATE = ("_best", "_score", "_count")

    def __init__(self, space: ao.Space, seed: Any = None) -> None:
        super().__init__(space, seed)
        self._best = self._uniform(1)[0]
        self._score = -np.inf
        self._count = 0
        self.asked: list[int] = []

    def _propose(self, count: int) -> Any:
        self.asked.append(count)
        return self._mutate(self._best, count, 2)

    def _learn(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            self._count += 1
            self.generation = self._count // 5
            if score(answer) >= self._score:
                self._best, self._score = answer.codes.copy(), score(answer)
            if self._count in (20, 40):
                self._score = -np.inf
                self.restarts += self._count // 20


def climb(f: Any, budget: int, **options: Any) -> ao.Result:
    # the seed is that of repairs; the strategy has its own
    return ao.maximize(f, SPACE, budget, algorithm=Climber(SPACE, 5), **{"seed": 0, **options})


MODES: dict[str, dict[str, Any]] = {
    "plain": {},
    "failures": {"on_failure": "worst"},
    "failures that are skipped": {"on_failure": "skip"},
    "constraint": {"constraint": lambda x: x[0] + x[1] < 2, "on_failure": "worst"},
    "noise": {"deterministic": False, "confirm": 0, "on_failure": "worst"},
    "without cache": {"cache": False, "on_failure": "worst"},
}


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_stopped_and_resumed_at_any_moment(mode: str, asynchronous: bool, tmp_path: Path) -> None:
    """With one worker at a time, so that an asynchronous run repeats itself."""
    f, options = value if mode == "plain" else failing, MODES[mode]
    constraint = {key: options[key] for key in options if key == "constraint"}
    with ThreadPoolExecutor(1) as pool:
        where = {"executor": pool, "asynchronous": True} if asynchronous else {}
        whole = climb(f, 60, **options, **where)
        assert whole.evaluations == 60
        assert whole.algorithm == "climber"
        assert whole.settings == {}
        assert len(whole.history.restarts) == 3
        study = tmp_path / "study.db"
        climb(f, 7, study=study, **options, **where)
        executor = {"executor": pool} if asynchronous else {}
        for budget in (8, 20, 39, 41, 60):
            fresh = Climber(SPACE, 5)
            result = ao.resume(study, f, budget, algorithm=fresh, **constraint, **executor)
            assert check(study) == []
    assert_same(result.history, whole.history)
    with pytest.raises(ao.StudyError, match="a strategy of your own: pass algorithm="):
        ao.resume(study, f, 70, **constraint)


def test_a_class_gets_the_seed_of_the_study(tmp_path: Path) -> None:
    study = tmp_path / "study.db"
    first = ao.maximize(value, SPACE, 20, algorithm=Climber, study=study)
    again = ao.maximize(value, SPACE, 40, algorithm=Climber, study=study)
    assert again.seed == first.seed
    whole = ao.maximize(value, SPACE, 40, algorithm=Climber, seed=first.seed)
    assert_same(again.history, whole.history)


def test_on_two_workers(tmp_path: Path) -> None:
    for asynchronous in (False, True):
        study = tmp_path / f"{asynchronous}.db"
        result = climb(
            failing, 40, workers=2, asynchronous=asynchronous, on_failure="worst", study=study
        )
        assert result.evaluations == 40
        again = ao.resume(study, failing, 50, algorithm=Climber(SPACE, 5), workers=2)
        assert again.evaluations == 50
        known = result.history.codes[~result.history.cached]
        assert len(np.unique(known, axis=0)) == 40
        assert_same(load(study), again.history)


def test_a_strategy_without_batches_keeps_all_workers_busy() -> None:
    with ThreadPoolExecutor(3) as pool:
        for where, expected in (({}, 1), ({"executor": pool, "workers": 3}, 3)):
            strategy = Climber(SPACE, 5)
            ao.maximize(value, SPACE, 12, algorithm=strategy, **where)
            assert set(strategy.asked) == {expected}
        policy = ao.maximize(value, SPACE, 20, executor=pool, **QUICK)  # has batches of its own
    assert (policy.history.generations[:10] == 0).all()


class Few(Search):
    """Has a plan of 25 points, never gives more than two, and waits for answers after four."""

    name = "few"
    STATE = ("_given", "_open")

    def __init__(self, space: ao.Space, seed: Any = None) -> None:
        super().__init__(space, seed)
        self._given = self._open = 0

    def _propose(self, count: int) -> Any:
        count = min(count, 2, 4 - self._open, 25 - self._given)
        codes = np.arange(self._given, self._given + count)[:, None] >> np.arange(8) & 1
        self._given += count
        self._open += count
        return codes.astype(np.int32)

    def _learn(self, answers: Sequence[Answer]) -> None:
        self._open -= len(answers)


@pytest.mark.parametrize("where", ["here", "threads", "asynchronous"])
def test_fewer_proposals_than_asked_for_and_then_none(
    where: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    study = tmp_path / "study.db"
    with ThreadPoolExecutor(6) as pool:
        options: dict[str, Any] = {"study": study}
        if where != "here":
            options |= {"executor": pool, "asynchronous": where == "asynchronous"}
        for budget in (3, 10, 25):
            result = ao.maximize(value, SPACE, budget, algorithm=Few(SPACE), **options)
            assert (result.stop_reason, result.evaluations) == ("budget", budget)
        result = ao.maximize(value, SPACE, 100, algorithm=Few(SPACE), **options)
    assert (result.stop_reason, result.evaluations) == ("exhausted", 25)
    assert "few has finished" in caplog.text
    assert len(np.unique(result.history.codes, axis=0)) == 25


# --- strategies that go wrong ---------------------------------------------------------------------


class Breaks(Climber):
    """Fails when it proposes, or learns, for the 12th time; `where` is not part of its state."""

    name = "breaks"
    where, calls = "", 0

    def propose(self, count: int, given: Any = None) -> Any:
        self._fail("propose")
        return super().propose(count, given)

    def learn(self, answers: Sequence[Answer]) -> None:
        self._fail("learn")
        super().learn(answers)

    def _fail(self, where: str) -> None:
        if where == self.where:
            self.calls += 1
            if self.calls == 12:
                raise ZeroDivisionError("in the strategy")


@pytest.mark.skipif(not PROC, reason="there is no /proc to look into")
@pytest.mark.parametrize("where", ["propose", "learn"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_error_of_the_strategy(where: str, asynchronous: bool, tmp_path: Path) -> None:
    study, before = tmp_path / "study.db", descendants()
    broken = Breaks(SPACE, 5)
    broken.where = where
    with pytest.raises(ZeroDivisionError, match="in the strategy"):
        ao.maximize(
            value, SPACE, 45, algorithm=broken, study=study, workers=2, asynchronous=asynchronous
        )
    # the fork server stays, the workers do not
    assert len(descendants() - before) <= 2
    assert check(study) == []
    assert [file.name for file in tmp_path.iterdir()] == ["study.db"]
    answered = len(load(study))
    assert answered >= 5
    result = ao.resume(study, value, 45, algorithm=Breaks(SPACE, 5), workers=2)
    assert result.evaluations == 45
    whole = ao.maximize(value, SPACE, 45, algorithm=Breaks(SPACE, 5), workers=2)
    if not asynchronous:
        assert_same(result.history, whole.history)


class Shapes(Climber):
    def _propose(self, count: int) -> Any:
        return self._uniform(count)[:, :-1]


class Many(Climber):
    def _propose(self, count: int) -> Any:
        return self._uniform(count + 1)


@pytest.mark.parametrize("strategy", [Shapes, Many])
def test_proposals_that_break_the_protocol(strategy: Any) -> None:
    with pytest.raises(ValueError, match="climber proposed points of shape"):
        ao.maximize(value, SPACE, 60, algorithm=strategy)


def test_dead_workers_beside_a_strategy_of_ones_own() -> None:
    f = functools.partial(sometimes, leaves, None)
    result = climb(f, 12, workers=2, on_failure="skip")
    bad = result.history.codes[:, 0] == 1
    assert np.isnan(result.history.values[bad]).all()
    assert not np.isnan(result.history.values[~bad]).any()


# --- problems -------------------------------------------------------------------------------------


def test_a_problem_has_its_space() -> None:
    problem = ao.problems.nk(12, 2, 0)
    result = ao.maximize(problem, budget=50, **QUICK)
    assert_same(result.history, ao.maximize(problem, problem.space, 50, **QUICK).history)
    many = ao.maximize(problem, budget=50, vectorized=True, **QUICK)
    assert_same(result.history, many.history)
    with pytest.raises(ValueError, match="leave it out"):
        ao.maximize(problem, ao.Space.binary(13), 50)
    with pytest.raises(ValueError, match="call maximize"):
        ao.minimize(problem, budget=50)
    with pytest.raises(TypeError, match="space is None"):
        ao.maximize(value, budget=50)


def test_a_schedule_is_kept_when_the_budget_grows(tmp_path: Path) -> None:
    """The temperatures of annealing are laid out for the budget that the study began with."""
    problem, options = ao.problems.nk(16, 2, 0), {"algorithm": "annealing", "seed": 0}
    ao.maximize(problem, budget=40, study=tmp_path / "a.db", **options)
    more = ao.maximize(problem, budget=70, study=tmp_path / "a.db", **options)
    assert (more.evaluations, more.settings["budget"]) == (70, 40)
    whole = ao.maximize(problem, budget=70, seed=0, algorithm="annealing+budget=40")
    assert more.history.values.tolist() == whole.history.values.tolist()
    other = {**options, "algorithm": "annealing+hot=2.0"}
    with pytest.raises(ValueError, match=r"was started with config .*hot"):
        ao.maximize(problem, budget=70, study=tmp_path / "a.db", **other)
