"""Failures name the point at which they happened, and a run without a value says so."""

from __future__ import annotations

import functools
import logging
import os
import re
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest
from functions import FAST, QUICK

import anyorder as ao

NAMED = ao.Space({"depth": ao.Integer(7, 7), "algo": ao.Categorical(["b"]), "on": ao.Binary()})
AT = r"\{'depth': 7, 'algo': 'b', 'on': (True|False)\}"


def fail(how: str, point: Any) -> float:
    """A function that never has a value."""
    if how == "raises":
        raise KeyError("no such part")
    if how == "dies":
        os._exit(3)
    if how == "hangs":
        time.sleep(60)
    if how == "infeasible":
        raise ao.Infeasible("too hot")
    return float("nan")


def notes(error: BaseException) -> str:
    """The message of an error with its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


@pytest.mark.parametrize(
    ("how", "kind", "options"),
    [
        ("raises", KeyError, {}),
        ("raises", KeyError, {"workers": 1}),
        ("nan", ValueError, {}),
        ("dies", RuntimeError, {"workers": 1}),
        ("hangs", RuntimeError, {"timeout": 0.2}),
    ],
)
def test_the_error_that_ends_a_run_names_the_point(how: str, kind: Any, options: Any) -> None:
    with pytest.raises(kind) as raised:
        ao.maximize(functools.partial(fail, how), NAMED, 5, **QUICK, **options)
    assert re.search(AT, notes(raised.value))


def test_a_pool_that_breaks_names_what_was_being_evaluated() -> None:
    with ProcessPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="not possible") as e:
        ao.maximize(functools.partial(fail, "dies"), NAMED, 5, executor=pool, **QUICK)
    assert "while evaluating {'depth': 7, 'algo': 'b', 'on': " in str(e.value)


def test_a_batch_that_fails_names_its_first_point() -> None:
    def f(points: Any) -> Any:
        raise KeyError("no such part")

    with pytest.raises(KeyError) as raised:
        ao.maximize(f, ao.Space.binary(40), 20, vectorized=True, **QUICK)
    assert "a batch of 10 points, the first of them [" in notes(raised.value)
    assert "... (40 variables)]" in notes(raised.value)


def test_the_log_names_the_point(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "anyorder"):
        ao.maximize(functools.partial(fail, "raises"), NAMED, 2, on_failure="worst", **QUICK)
    assert "{'depth': 7, 'algo': 'b', 'on': " in caplog.text


def test_a_point_of_many_variables_is_shortened() -> None:
    space = ao.Space({f"v{k}": ao.Integer(0, 9) for k in range(50)})
    text = space.brief(np.arange(50, dtype=np.int32) % 10)
    assert text.startswith("{'v0': 0, 'v1': 1")
    assert text.endswith("... (50 variables)}")
    assert len(text) < 100
    assert ao.Space.binary(3).brief(np.array([1, 0, 1], np.int32)) == "[1, 0, 1]"


@pytest.mark.parametrize("how", ["raises", "infeasible"])
def test_a_run_without_a_value_is_called_failed(how: str, caplog: pytest.LogCaptureFixture) -> None:
    f = functools.partial(fail, how)
    result = ao.maximize(f, ao.Space.binary(5), 20, on_failure="worst", **QUICK)
    assert (result.stop_reason, result.evaluations, result.failures) == ("failed", 20, 20)
    assert result.best is None
    assert "every evaluation failed, 20 in all; the last at [" in caplog.text


def test_one_value_is_enough(caplog: pytest.LogCaptureFixture) -> None:
    def f(x: Any) -> float:
        return 1.0 if x[0] else fail("raises", x)

    result = ao.maximize(f, ao.Space.binary(5), 20, on_failure="worst", **QUICK)
    assert result.stop_reason == "budget"
    assert "every evaluation failed" not in caplog.text


# --- several objectives, which are for `optimize` -------------------------------------------------

SEVERAL = "several objectives are for anyorder.optimize(f, space, directions=('max', 'min'))"


def two(form: str, point: Any) -> Any:
    """A function with two values for a point, in one of the forms that people return them in."""
    forms = {"tuple": (1.0, 2.0), "list": [1, 2], "array": np.ones(2), "dict": {"a": 1, "b": 2}}
    return forms[form]


@pytest.mark.parametrize(
    ("form", "options"),
    [
        *((form, {}) for form in ("tuple", "list", "array", "dict")),
        ("tuple", {"workers": 1}),
        ("tuple", {"workers": 2, "algorithm": "ils"}),
        ("tuple", {"asynchronous": True, "workers": 1}),
    ],
)
def test_several_objectives_are_refused(form: str, options: Any) -> None:
    for run in (ao.maximize, ao.minimize):
        with pytest.raises(TypeError) as raised:
            run(functools.partial(two, form), NAMED, 5, **{**QUICK, **options})
        assert str(raised.value).startswith("what f returned is ")
        assert str(raised.value).endswith(f", expected one number: {SEVERAL}")
        assert re.search(AT, notes(raised.value))


@pytest.mark.parametrize(
    "f",
    [
        lambda points: [(1, 2)] * len(points),
        lambda points: np.ones((len(points), 2)),
        lambda points: (points.sum(1), points.sum(1)),
    ],
)
def test_several_objectives_of_a_batch_are_refused(f: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(SEVERAL)):
        ao.maximize(f, ao.Space.binary(4), 20, vectorized=True, **QUICK)


def test_several_objectives_are_not_told() -> None:
    opt = ao.Optimizer(ao.Space.binary(4), 0, algorithm=ao.policy.Policy(FAST))
    asked = opt.ask(2)
    for points, values in (
        (asked, [(1, 2), (3, 4)]),
        (asked, np.ones((2, 2))),
        (asked[0], (1, 2)),
        (asked, ([1, 2], [3, 4])),
        (asked, [(1, 2), (3, 4, 5)]),
    ):
        with pytest.raises((TypeError, ValueError), match=re.escape(SEVERAL)):
            opt.tell(points, values, on_failure="worst")
    assert opt.told == 0
    with pytest.raises(
        TypeError, match=re.escape(f"data: value 0 is (1, 2), expected one number: {SEVERAL}")
    ):
        ao.Optimizer(
            ao.Space.binary(4), 0, algorithm=ao.policy.Policy(FAST), data=(asked, [(1, 2), 3])
        )


def test_other_wrong_values_are_no_objectives() -> None:
    for value, shown in (((3.0,), "(3.0,)"), (np.complex128(1j), "1j"), ("12", "'12'")):
        with pytest.raises(TypeError) as raised:
            ao.maximize(lambda x, value=value: value, ao.Space.binary(4), 5, **QUICK)
        assert str(raised.value) == f"what f returned is {shown}, expected a number"


def test_many_runs_refuse_several_objectives() -> None:
    space = ao.Space.binary(4)
    runs = ao.policy.solve_many(lambda x: (1.0, 2.0), space=space, runs=2, budget=20, config=FAST)
    assert runs.stop_reasons == ("failed", "failed")
    assert all(SEVERAL in (run.error or "") for run in runs)
    for f in (lambda x: (x.sum(-1), x.sum(-1)), lambda x: np.ones((*x.shape[:2], 2))):
        with pytest.raises(ValueError, match=re.escape(SEVERAL)):
            ao.policy.solve_many(f, space=space, runs=2, budget=20, config=FAST, vectorized=True)
