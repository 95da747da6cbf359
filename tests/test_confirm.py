"""Noisy runs: the best points are measured again, and the value of the answer is not biased."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import assert_same
from click.testing import CliRunner
from conftest import refused

import anyorder as ao
from anyorder.archive import CLAIM, CONFIRM, Archive
from anyorder.cli import main
from anyorder.errors import FAILED
from anyorder.plotting.heatmaps import agreement
from anyorder.plotting.runs import diversity
from anyorder.run import loop

SPACE = ao.Space.binary(12)
RUN: dict[str, Any] = {"deterministic": False, "algorithm": "ils", "progress": False}


def true(x: np.ndarray) -> float:
    return float(x.sum())


class Measuring:
    """A function with noise of its own for each call."""

    def __init__(self, seed: int, sigma: float) -> None:
        self.rng, self.sigma = np.random.default_rng(seed), sigma

    def __call__(self, x: np.ndarray) -> float:
        return true(x) + self.sigma * self.rng.normal()


class Noisy:
    """Another value each time, but the same ones for every instance."""

    def __init__(self) -> None:
        self.calls: dict[bytes, int] = {}

    def __call__(self, x: np.ndarray) -> float:
        count = self.calls[x.tobytes()] = self.calls.get(x.tobytes(), 0) + 1
        return true(x) + np.random.default_rng([count, *x.tolist()]).normal()


def kinds(history: ao.History) -> list[int]:
    return [int(kind) for kind in history.generations if kind < 0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [CONFIRM] * 4 + [CLAIM] * 2),
        ({"confirm": 9}, [CONFIRM] * 6 + [CLAIM] * 3),
        ({"confirm": 1}, [CLAIM]),
        ({"confirm": 0}, []),
        ({"confirm": 9, "batch": 4}, [CONFIRM] * 6 + [CLAIM] * 3),
        ({"confirm": 9, "executor": "threads", "workers": 3}, [CONFIRM] * 6 + [CLAIM] * 3),
    ],
)
def test_the_last_evaluations_measure_again(options: Any, expected: list[int]) -> None:
    result = ao.maximize(Measuring(0, 1.0), SPACE, 60, seed=0, **RUN, **options)
    history = result.history
    assert result.evaluations == len(history) == 60
    assert kinds(history) == expected
    assert (history.generations[: 60 - len(expected)] >= 0).all()
    searched = {x.tobytes() for x in history.codes[: 60 - len(expected)]}
    assert all(x.tobytes() in searched for x in history.codes)


def test_asynchronous_runs_measure_the_answer_after_all_else() -> None:
    result = ao.maximize(
        Measuring(0, 1.0), SPACE, 60, seed=0, **RUN, executor="threads", workers=4,
        asynchronous=True, confirm=12,
    )  # fmt: skip
    history = result.history
    assert sorted(kinds(history)) == [CLAIM] * 4 + [CONFIRM] * 8
    assert (history.generations[-4:] == CLAIM).all()
    assert (history.codes[-4:] == result.best).all()


def test_the_value_is_the_mean_of_the_last_measurements() -> None:
    result = ao.minimize(Measuring(3, 1.0), SPACE, 60, seed=0, confirm=12, **RUN)
    history = result.history
    claimed = history.generations == CLAIM
    assert (history.codes[claimed] == result.best).all()
    assert result.best_value == pytest.approx(history.values[claimed].mean())
    assert result.best_count == 4
    codes = history.codes
    groups = [history.values[(codes == x).all(axis=1)] for x in np.unique(codes, axis=0)]
    squares = sum(((group - group.mean()) ** 2).sum() for group in groups)
    sigma = math.sqrt(squares / sum(len(group) - 1 for group in groups))
    assert result.best_error == pytest.approx(sigma / 2)
    assert f"+- {result.best_error:.2g}" in repr(result)


def test_the_claimed_value_is_unbiased_and_that_of_a_single_measurement_is_not() -> None:
    off, before = [], []
    for seed in range(40):
        result = ao.maximize(Measuring(seed, 3.0), SPACE, 60, seed=seed, confirm=9, **RUN)
        off.append(result.best_value - true(result.best))
        result = ao.maximize(Measuring(seed, 3.0), SPACE, 60, seed=seed, confirm=0, **RUN)
        before.append(result.best_value - true(result.best))
    # of the mean of 40 means of three; 4.5 standard errors, so that it fails by chance once in 1e5
    assert abs(np.mean(off)) < 4.5 * 3.0 / math.sqrt(3 * 40)
    assert np.mean(before) > 3.0


def test_the_answer_is_the_point_with_the_best_lower_bound() -> None:
    archive = Archive(ao.Space.binary(3), deterministic=False)
    keys = archive.packing.pack(np.eye(3, dtype=np.int32))
    for value in (5.0, 5.2, 4.8):
        archive.add(keys[0], value)
    for value in (5.1, 5.3):
        archive.add(keys[1], value)
    archive.add(keys[2], 5.25)  # the best mean, of one measurement
    assert archive.noise() == pytest.approx(math.sqrt((0.08 + 0.02) / 3))
    assert archive.best_value == 5.25
    found = archive.answer()
    assert (found.point, found.count) == (1, 2)
    assert found.value == pytest.approx(5.2)
    archive.add(keys[0], 4.0, generation=CLAIM)
    archive.add(keys[0], np.nan, FAILED, generation=CLAIM)
    archive.add(keys[0], 4.4, generation=CLAIM)
    assert (archive.answer().point, archive.answer().count) == (0, 2)
    assert archive.answer().value == pytest.approx(4.2)
    archive.add(keys[2], 4.9)  # the search goes on: that claim was about another moment
    assert archive.answer().point == 1


@pytest.mark.parametrize("often", [True, False])
@pytest.mark.parametrize("options", [{}, {"batch": 4}, {"algorithm": "umda"}])
def test_a_run_that_stops_while_it_measures_again_goes_on_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, often: bool, options: Any
) -> None:
    """Stopped after each of the last evaluations, with a function that begins anew each time."""
    monkeypatch.setattr(loop, "_KEEP_EVERY", 0.0 if often else 1e9)
    monkeypatch.setattr(loop, "_KEEP_SHARE", 1e9)
    run = {**RUN, "seed": 0, "confirm": 9, **options}
    whole = ao.maximize(Noisy(), SPACE, 40, **run)
    for stop in (30, 33, 36, 37, 39):
        study = tmp_path / f"{stop}.db"
        f, calls = Noisy(), 0

        def stopping(x: np.ndarray, f: Noisy = f, stop: int = stop) -> float:
            nonlocal calls
            calls += 1
            if calls > stop:
                raise KeyboardInterrupt
            return f(x)

        ao.maximize(stopping, SPACE, 40, study=study, **run)
        again = ao.resume(study, f, progress=False, **({"batch": 4} if "batch" in options else {}))
        assert_same(again.history, whole.history)
        assert (again.best == whole.best).all()
        assert (again.best_value, again.best_count) == (whole.best_value, whole.best_count)
        assert again.best_error == whole.best_error


def test_a_larger_budget_searches_on_and_measures_again(tmp_path: Path) -> None:
    f, study = Measuring(0, 1.0), tmp_path / "run.db"
    ao.maximize(f, SPACE, 30, seed=0, confirm=6, study=study, **RUN)
    longer = ao.resume(study, f, 60, progress=False)
    assert kinds(longer.history) == 2 * ([CONFIRM] * 4 + [CLAIM] * 2)
    assert (longer.history.generations[30:54] >= 0).all()
    assert (longer.history.codes[-2:] == longer.best).all()
    assert longer.best_count == 2


def test_points_that_fail_when_they_are_measured_again_are_left(tmp_path: Path) -> None:
    seen = set()

    def f(x: np.ndarray) -> float | None:
        known = x.tobytes() in seen
        seen.add(x.tobytes())
        return None if known else true(x)

    result = ao.maximize(f, SPACE, 40, seed=0, confirm=9, on_failure="skip", **RUN)
    history = result.history
    again = history.codes[history.generations == CONFIRM]
    assert len({x.tobytes() for x in again}) == len(again) == 6
    assert result.evaluations == 40
    assert result.best_value == true(result.best) == max(true(x) for x in history.codes)


def test_a_run_without_values_ends() -> None:
    result = ao.maximize(lambda x: None, SPACE, 20, confirm=5, on_failure="worst", seed=0, **RUN)
    assert (result.best, result.evaluations, result.stop_reason) == (None, 20, "failed")


def test_show_says_how_often_and_how_well(tmp_path: Path) -> None:
    study = tmp_path / "run.db"
    result = ao.maximize(Measuring(0, 1.0), SPACE, 60, seed=0, confirm=12, study=study, **RUN)
    now = json.loads(CliRunner().invoke(main, ["show", str(study), "--json"]).output)
    assert now["best"] == result.best.tolist()
    assert now["best_value"] == result.best_value
    assert (now["best_count"], now["best_error"]) == (4, result.best_error)
    assert now["best_points"][0]["point"] == result.best.tolist()
    assert len(now["best_points"]) == 10
    text = CliRunner().invoke(main, ["show", str(study)]).output
    assert f"{result.best_value} +- {result.best_error:.2g} (measured 4 times)" in text


def test_figures_have_no_generations_of_their_own_for_it() -> None:
    result = ao.maximize(Measuring(0, 1.0), SPACE, 60, seed=0, confirm=12, **RUN)
    found = diversity(result.history).generations
    assert found[0] == 0
    assert found[-1] == result.history.generations.max()
    data = agreement(result.history)
    assert data is not None
    assert data.first == 0


def test_of_a_deterministic_function_nothing_is_measured_again() -> None:
    result = ao.maximize(true, SPACE, 60, seed=0, algorithm="ils", progress=False)
    assert not kinds(result.history)
    assert (result.best_count, result.best_error) == (1, None)
    assert "+-" not in repr(result)


def test_bad_input() -> None:
    with refused(ValueError, "confirm is 5", "deterministic=False"):
        ao.maximize(true, SPACE, 60, confirm=5)
    for kept in (60, 61):
        with refused(ValueError, f"confirm is {kept}", "budget, 60"):
            ao.maximize(true, SPACE, 60, confirm=kept, deterministic=False)
    with refused(ValueError, "confirm is 5", "no budget"):
        ao.maximize(true, SPACE, max_seconds=1, confirm=5, deterministic=False)
    with refused(ValueError, "confirm is 5", "one objective"):
        ao.optimize(lambda x: (1, 2), SPACE, 60, directions=("max", "min"), confirm=5,
                    deterministic=False)  # fmt: skip
    with refused(ValueError, "confirm is -1", "at least 0"):
        ao.maximize(true, SPACE, 60, confirm=-1, deterministic=False)
