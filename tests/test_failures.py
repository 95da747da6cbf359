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
from functions import QUICK

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
