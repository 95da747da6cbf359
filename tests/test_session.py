"""The loop: what is paid for, what is known, when it ends, and in which order things happen."""

from __future__ import annotations

import logging
import math
import random
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
import pytest
from children import assert_same
from functions import (
    FAST,
    QUICK,
    SPACE,
    failing,
    value,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import anyorder as ao
from anyorder import errors
from anyorder.run import exhaustion, loop
from anyorder.run.evaluation.evaluators import Outcome, call
from anyorder.run.study.reading import open_study
from anyorder.strategies.base import Answer
from anyorder.strategies.policy.engines.cpu import CpuEngine
from anyorder.strategies.policy.search import PolicySearch


class Counted:
    """A function that knows how often it was called, and for what."""

    def __init__(self, f: Any = value) -> None:
        self.f, self.points = f, list[tuple[int, ...]]()

    def __call__(self, x: np.ndarray) -> float:
        self.points.append(tuple(x.tolist()))
        return float(self.f(x))


# --- the cache ------------------------------------------------------------------------------------


def test_what_is_known_costs_nothing_and_is_marked() -> None:
    f = Counted()
    history = ao.maximize(f, ao.Space.binary(6), 50, **QUICK).history
    assert len(f.points) == len(set(f.points)) == 50 == (~history.cached).sum()
    assert history.cached.sum() > 0
    np.testing.assert_array_equal(history.values, [value(x) for x in history.codes])
    assert (history.seconds[history.cached] == 0).all()
    seen: set[bytes] = set()
    for codes, cached in zip(history.codes, history.cached, strict=True):
        assert (codes.tobytes() in seen) == cached
        seen.add(codes.tobytes())


@pytest.mark.parametrize("where", ["here", "threads", "vectorised"])
def test_twins_in_a_generation_are_evaluated_once(where: str) -> None:
    config = FAST.replace(population=40)  # of 16 points
    calls: list[tuple[int, ...]] = []
    lock = threading.Lock()

    def one(x: np.ndarray) -> float:
        with lock:
            calls.append(tuple(x.tolist()))
        time.sleep(0.001)
        return value(x)

    def many(points: np.ndarray) -> list[float]:
        return [one(x) for x in points]

    with ThreadPoolExecutor(4) as pool:
        options: dict[str, Any] = {
            "here": {}, "threads": {"executor": pool}, "vectorised": {"vectorized": True}
        }[where]  # fmt: skip
        f = many if where == "vectorised" else one
        result = ao.maximize(
            f, ao.Space.binary(4), 16, seed=0, algorithm=ao.policy.Policy(config), **options
        )
    assert len(set(calls)) == len(calls) == result.evaluations
    first = result.history.generations == 0
    distinct = len(np.unique(result.history.codes[first], axis=0))
    assert result.history.cached[first].sum() == 40 - distinct


def test_without_cache_everything_is_paid_for() -> None:
    f = Counted()
    result = ao.maximize(f, ao.Space.binary(3), 90, cache=False, **QUICK)
    assert len(f.points) == result.evaluations == len(result.history) == 90
    assert not result.history.cached.any()


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("on_failure", ["worst", "skip"])
def test_what_failed_is_not_tried_again(cache: bool, on_failure: Any) -> None:
    def f(x: np.ndarray) -> float:
        return math.nan if x[:2].sum() == 0 else value(x)

    counted = Counted(f)
    result = ao.maximize(
        counted, ao.Space.binary(5), 120 if not cache else 30, cache=cache, on_failure=on_failure,
        **QUICK,
    )  # fmt: skip
    history = result.history
    bad = (history.codes[:, :2] == 0).all(axis=1)
    assert np.isnan(history.values[bad]).all()
    for point in np.unique(history.codes[bad], axis=0):
        same = (history.codes == point).all(axis=1)
        tried = same & ~history.cached
        # twins of one generation are out together; after that it is known
        assert len(np.unique(history.generations[tried])) == 1
        assert counted.points.count(tuple(point.tolist())) == tried.sum()
        assert not cache or tried.sum() == 1
    assert result.best_value == np.nanmax(history.values)


def test_a_noisy_function_is_averaged() -> None:
    noise = np.random.default_rng(0)
    f = Counted(lambda x: value(x) + noise.normal())
    result = ao.maximize(f, ao.Space.binary(3), 200, deterministic=False, confirm=0, **QUICK)
    history = result.history
    assert len(f.points) == result.evaluations == len(history) == 200
    assert not history.cached.any()
    groups = {
        tuple(point.tolist()): history.values[(history.codes == point).all(axis=1)]
        for point in np.unique(history.codes, axis=0)
    }
    squares = sum(((group - group.mean()) ** 2).sum() for group in groups.values())
    sigma = (squares / (200 - len(groups))) ** 0.5
    best = max(groups, key=lambda x: groups[x].mean() - sigma / len(groups[x]) ** 0.5)
    assert tuple(result.best.tolist()) == best
    assert result.best_value == pytest.approx(groups[best].mean(), abs=1e-12)
    assert result.best_value < history.values.max()


def test_the_policy_learns_from_means(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    learn = PolicySearch.learn

    def spy(self: PolicySearch, answers: Sequence[Answer]) -> None:
        told.extend(answer.value for answer in answers)
        learn(self, answers)

    monkeypatch.setattr(PolicySearch, "learn", spy)
    noise = np.random.default_rng(0)
    history = ao.maximize(
        lambda x: noise.normal(), ao.Space.binary(2), 60, deterministic=False, **QUICK
    ).history
    for k, codes in enumerate(history.codes):
        so_far = history.values[: k + 1][(history.codes[: k + 1] == codes).all(axis=1)]
        assert told[k] == pytest.approx(so_far.mean(), abs=1e-12)


# --- the constraint -------------------------------------------------------------------------------


def test_refused_points_are_not_evaluated_and_cost_nothing() -> None:
    f = Counted()
    result = ao.maximize(f, SPACE, 60, constraint=lambda x: x[0] == 0, **QUICK)
    history = result.history
    refused = history.codes[:, 0] == 1
    assert refused.any()
    assert all(point[0] == 0 for point in f.points)
    assert (history.statuses[refused] == errors.REJECTED).all()
    assert np.isnan(history.values[refused]).all()
    assert history.cached[refused].all()
    assert (result.evaluations, result.failures) == (60, 0)
    assert result.best[0] == 0


def test_a_constraint_gets_what_the_function_gets() -> None:
    space = ao.Space({"a": ao.Categorical(["x", "y"]), "b": ao.Integer(3, 9)})
    seen: list[dict[str, Any]] = []

    def constraint(point: dict[str, Any]) -> bool:
        seen.append(dict(point))
        allowed = point["b"] > 4
        point.clear()  # its own affair
        return allowed

    result = ao.maximize(lambda p: p["b"], space, 10, constraint=constraint, **QUICK)
    assert result.best["b"] == 9
    assert all(point["b"] >= 3 and point["a"] in "xy" for point in seen)
    paid = np.flatnonzero(~result.history.cached)
    assert min(result.history.points[k]["b"] for k in paid) > 4


# --- the end --------------------------------------------------------------------------------------


def test_a_space_that_is_known_ends_the_run(caplog: pytest.LogCaptureFixture) -> None:
    f = Counted()
    result = ao.maximize(f, ao.Space.binary(3), 1_000, **QUICK)
    assert (result.stop_reason, len(f.points)) == ("exhausted", 8)
    assert "stopped after 8 evaluations: all points of the space are known" in caplog.text


def test_a_converged_policy_ends_the_run() -> None:
    """If it is told not to restart; a policy as an object is as good as its specification."""
    config = ao.policy.PRESETS["paper"].replace(epochs=20, learning_rate=0.1, hidden=(4,))
    space = ao.Space.binary(12)
    policy = PolicySearch(space, 0, config, stop_collapsed=True)
    result = ao.maximize(value, space, 4_096, algorithm=policy)
    assert result.stop_reason == "collapsed"
    assert result.evaluations < 4_096
    assert policy.converged
    assert len(policy.propose(3).tickets) == 0
    given = np.zeros((1, 12), np.int32)
    np.testing.assert_array_equal(policy.propose(3, given).codes, given)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_a_policy_that_knows_all_it_draws_is_restarted(preset: str) -> None:
    """Also under presets that never restart otherwise; so the budget is spent."""
    config = ao.policy.PRESETS[preset].replace(epochs=20, learning_rate=0.1, hidden=(4,))
    result = ao.maximize(
        value, ao.Space.binary(12), 400, seed=0, algorithm=ao.policy.Policy(config)
    )
    assert (result.stop_reason, result.evaluations) == ("budget", 400)
    assert result.history.restarts
    free = ao.maximize(
        value, ao.Space.binary(12), 400, seed=0, algorithm=ao.policy.Policy(config), cache=False
    )
    assert preset == "default" or not free.history.restarts  # nothing is known there


def test_a_constraint_that_refuses_everything_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhaustion, "IDLE_CANDIDATES", 50)
    monkeypatch.setattr(exhaustion, "IDLE_BATCHES", 5)
    result = ao.maximize(value, SPACE, 10, constraint=lambda x: False, **QUICK)
    assert (result.stop_reason, result.evaluations, result.best) == ("exhausted", 0, None)
    with ThreadPoolExecutor(2) as pool:
        result = ao.maximize(
            value, SPACE, 10, constraint=lambda x: False, executor=pool, asynchronous=True, **QUICK
        )
    assert (result.stop_reason, result.evaluations) == ("exhausted", 0)


@pytest.mark.parametrize("where", ["here", "threads", "asynchronous"])
def test_reasons_to_stop(where: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        options: dict[str, Any] = {
            "here": {},
            "threads": {"executor": pool},
            "asynchronous": {"executor": pool, "asynchronous": True},
        }[where] | {**QUICK, "cache": False}  # fmt: skip

        result = ao.maximize(value, SPACE, 2_000, target=6.0, **options)
        assert result.stop_reason == "target"
        assert result.best_value >= 6.0
        assert result.evaluations < 2_000

        start = time.monotonic()
        result = ao.maximize(
            lambda x: time.sleep(0.01) or value(x), SPACE, 100_000, max_seconds=0.5, **options
        )
        assert result.stop_reason == "time"
        assert 0.5 <= time.monotonic() - start < 60

        result = ao.maximize(lambda x: 1.0, SPACE, 2_000, patience=35, **options)
        assert result.stop_reason == "patience"
        # the first one was the best; in batch mode a generation is told as a whole
        assert result.evaluations == {"here": 40, "threads": 40}.get(where, result.evaluations)
        assert 36 <= result.evaluations <= 40

        config = FAST.replace(learning_rate=0.3)
        collapsing = options | {"algorithm": ao.policy.Policy(config, stop_collapsed=True)}
        result = ao.maximize(lambda x: float(x.sum()), SPACE, 5_000, **collapsing)
        assert result.stop_reason == "collapsed"
        last = result.history.codes[-10:]
        assert (last == last[0]).mean() > 0.9

        told: list[int] = []
        result = ao.maximize(
            value, SPACE, 200, callback=lambda o: told.append(o.told) or len(told) == 4, **options
        )
        assert result.stop_reason == "callback"
        assert told == [10, 20, 30, 40]


@pytest.mark.parametrize("budget", range(31, 40))
def test_a_target_in_a_generation_that_is_cut_off(budget: int) -> None:
    def f(x: np.ndarray) -> float:
        calls.append(1)
        return float(len(calls))

    calls: list[int] = []
    result = ao.maximize(f, SPACE, budget, target=budget, **QUICK)
    assert (result.stop_reason, result.best_value) == ("target", budget)
    calls.clear()
    assert ao.maximize(f, SPACE, budget, target=budget + 1, **QUICK).stop_reason == "budget"


def test_an_infinite_target() -> None:
    result = ao.minimize(lambda x: math.inf, SPACE, 50, target=math.inf, **QUICK)
    assert result.stop_reason == "target"


@pytest.mark.parametrize(("call", "best"), [(ao.maximize, math.inf), (ao.minimize, -math.inf)])
def test_the_better_infinity_is_a_failure(call: Any, best: float) -> None:
    with pytest.raises(ValueError, match=f"f returned {best}, expected a finite number"):
        call(lambda x: best, SPACE, 50, **QUICK)
    result = call(
        lambda x: best if x[0] else float(x.sum()), SPACE, 50, on_failure="worst", **QUICK
    )
    assert result.failures > 0
    assert math.isfinite(result.best_value)
    worst = call(lambda x: -best if x[0] else float(x.sum()), SPACE, 50, **QUICK)
    assert worst.failures == 0
    assert math.isfinite(worst.best_value)


# --- asynchronous ---------------------------------------------------------------------------------


def test_each_candidate_is_weighed_by_what_it_was_drawn_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: dict[tuple[int, int], np.ndarray] = {}
    late = []
    sample, train = CpuEngine.sample, CpuEngine.train

    def remember(self: Any, policy: Any, draw: Any) -> Any:
        codes, probs = sample(self, policy, draw)
        for k in range(draw.count):
            drawn[draw.generations[0], draw.first[0] + k] = np.array(probs[0, k])
        return codes, probs

    def check(self: Any, policy: Any, batch: Any) -> Any:
        for k, (generation, index) in enumerate(batch.stamps[0].tolist()):
            old, birth = batch.old[0, k], drawn[generation, index]
            chosen = self.model.value_start[:-1] + batch.points[0, k]
            # pi / old * gain is pi / birth * A, with one A for all variables
            advantage = batch.advantages[0, k] * birth[chosen] / old[chosen]
            np.testing.assert_allclose(advantage, advantage[0], rtol=1e-5)
            if generation == batch.generations[0]:
                np.testing.assert_array_equal(old, birth)
            else:  # the KL holds on to today's policy
                assert not np.array_equal(old, birth)
            late.append(batch.generations[0] - generation)
        return train(self, policy, batch)

    monkeypatch.setattr(CpuEngine, "sample", remember)
    monkeypatch.setattr(CpuEngine, "train", check)
    with ThreadPoolExecutor(6) as pool:
        ao.maximize(
            lambda x: time.sleep(0.01 * float(x[0] + x[1])) or value(x),
            ao.Space.binary(16),
            120,
            executor=pool,
            asynchronous=True,
            seed=0,
            algorithm=ao.policy.Policy(FAST, "cpu"),
        )
    assert max(late) >= 1  # else nothing was shown


@pytest.mark.parametrize("options", [{}, {"cache": False}, {"on_failure": "worst"}])
def test_asynchronous_with_one_worker_is_the_serial_run(options: dict[str, Any]) -> None:
    """Nobody is late then: what differs with more is how old the answers are, and nothing else."""
    f = failing if "on_failure" in options else value
    whole = ao.maximize(f, SPACE, 100, **options, **QUICK)
    with ThreadPoolExecutor(1) as pool:
        one = ao.maximize(f, SPACE, 100, executor=pool, asynchronous=True, **options, **QUICK)
    told = len(one.history)
    # but that a generation that is cut off is drawn to its end, of which some may be known
    assert whole.history.cached[told:].all()
    for name in ("values", "codes", "generations", "statuses", "cached"):
        np.testing.assert_array_equal(
            getattr(one.history, name), getattr(whole.history, name)[:told], err_msg=name
        )


class _Crash(BaseException):
    pass


class _Fake:
    """Workers that answer in an order of our choice, and a process that dies at a moment of it.

    It is evaluator and queue at once: the session asks for outcomes, and we decide whose.
    """

    in_process = False
    keeps_time = True

    def __init__(self, f: Any, slots: int) -> None:
        self.f, self.slots = f, slots
        self.out: dict[int, Any] = {}
        self.session: Any = None

    def start(self, job: int, points: Any) -> None:
        self.out[job] = points

    def abandon(self, job: int) -> None:
        raise AssertionError

    def close(self) -> None:
        self.out.clear()

    def put(self, item: Any) -> None:
        raise AssertionError

    def deliver(self, job: int) -> tuple[int, Outcome]:
        return job, call(self.f, self.out.pop(job))


class _AtRandom(_Fake):
    def __init__(self, f: Any, slots: int, rng: random.Random, crash: float) -> None:
        super().__init__(f, slots)
        self.rng, self.crash = rng, crash

    def get(self, timeout: float | None = None) -> tuple[int, Outcome]:
        if self.rng.random() < self.crash:
            raise _Crash
        return self.deliver(self.rng.choice(sorted(self.out)))

    def get_nowait(self) -> tuple[int, Outcome]:
        if not self.out or self.rng.random() < 0.6:
            raise Empty
        return self.deliver(self.rng.choice(sorted(self.out)))


class _AsRecorded(_Fake):
    """Answers and draws in the order of a study."""

    def __init__(self, f: Any, slots: int, study: Path) -> None:
        super().__init__(f, slots)
        with open_study(study) as database:
            rows = database.execute("SELECT number, after, place, paid FROM candidates").fetchall()
        self.after = {number: after for number, after, _, _ in rows}
        answers = sorted((place, number) for number, _, place, paid in rows if paid)
        self.answers = deque(answers)

    def get(self, timeout: float | None = None) -> tuple[int, Outcome]:
        place, number = self.answers.popleft()
        running = self.session.state.running.items()
        jobs = {candidates[0].number: job for job, candidates in running if job in self.out}
        assert number in jobs, (place, number)
        return self.deliver(jobs[number])

    def get_nowait(self) -> tuple[int, Outcome]:
        running = [candidates[0].number for job, candidates in self.session.state.running.items()]
        next_draw = self.after.get(self.session.state.drawn, math.inf)
        if not self.answers or next_draw <= self.answers[0][0]:
            raise Empty  # then a candidate was drawn before the next answer was learned
        if self.answers[0][1] not in running:
            raise Empty
        return self.get()


def _asynchronously(fake: _Fake, study: Path, budget: int, options: dict[str, Any]) -> Any:
    make = loop.Session.__init__

    def with_fake(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        self.state.jobs._evaluator = self.state.jobs._done = fake
        fake.session = self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.Session, "__init__", with_fake)
        # how many are sent ahead depends on the clock
        patch.setattr(loop.Session, "_places", lambda self: self.state.jobs.slots)
        with ThreadPoolExecutor(1) as unused:
            return ao.maximize(
                fake.f,
                ao.Space.binary(5),
                budget,
                asynchronous=True,
                executor=unused,
                study=study,
                seed=0,
                algorithm=ao.policy.Policy(FAST.replace(population=4, learning_rate=0.05)),
                **options,
            )


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32),
    slots=st.integers(1, 6),
    crash=st.sampled_from([0.05, 0.2, 0.5]),
    keep=st.sampled_from([0.0, math.inf]),
    options=st.sampled_from([
        {"on_failure": "worst"},
        {"on_failure": "skip"},
        {"cache": False},
        {"on_failure": "worst", "constraint": lambda x: x[0] == 0 or x[1] == 0},
    ]),
)  # fmt: skip
def test_any_order_of_answers_and_crashes_is_a_run_without_crashes(
    seed: int, slots: int, crash: float, keep: float, options: dict[str, Any]
) -> None:
    # Without a cache only what failed is known, and that depends on when a life ended.
    budget, f = (16, failing) if options.get("cache", True) else (40, value)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "_KEEP_EVERY", keep)
        patch.setattr(loop, "_KEEP_SHARE", math.inf)
        patch.setattr(exhaustion, "IDLE_CANDIDATES", 60)
        patch.setattr(exhaustion, "IDLE_BATCHES", 15)
        study, rng = Path(folder) / "study.db", random.Random(seed)
        for _ in range(300):
            try:
                got = _asynchronously(_AtRandom(f, slots, rng, crash), study, budget, options)
                break
            except _Crash:
                pass
        again = Path(folder) / "again.db"
        whole = _asynchronously(_AsRecorded(f, slots, study), again, budget, options)
        assert whole.stop_reason == got.stop_reason
        assert whole.evaluations == got.evaluations <= budget
        assert_same(got.history, whole.history)
        np.testing.assert_array_equal(got.best, whole.best)
        known = got.history.codes[~got.history.cached]
        if options.get("cache", True):
            assert len(np.unique(known, axis=0)) == len(known)
        assert (got.stop_reason == "budget") == (got.evaluations == budget)


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    ao.maximize(failing, SPACE, 40, on_failure="worst", progress=True, **QUICK)
    shown = capsys.readouterr().err
    assert "40/40" in shown
    assert "failed" in shown


def test_the_bar_shows_what_a_user_knows_and_the_rest_on_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(
        "tqdm.auto.tqdm.set_postfix_str", lambda bar, text, refresh: shown.append(text)
    )
    last = {}
    for progress in (True, "detailed"):
        result = ao.maximize(failing, SPACE, 40, progress=progress, on_failure="worst", **QUICK)
        last[progress] = shown[-1]
    assert last[True] == f"best {result.best_value:.6g}, failed {result.failures}"
    assert last["detailed"].startswith(f"{last[True]}, ")
    assert "entropy" in last["detailed"]


def test_the_first_failure_is_a_warning_and_the_rest_are_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "anyorder"):
        result = ao.maximize(failing, SPACE, 60, on_failure="skip", **QUICK)
    levels = [r.levelno for r in caplog.records if r.getMessage().startswith("candidate ")]
    assert levels == [logging.WARNING] + [logging.DEBUG] * (result.failures - 1)
