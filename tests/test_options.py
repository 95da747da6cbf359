"""The options of a run: a bad value is refused before anything runs, and by its name."""

from __future__ import annotations

import dataclasses
import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anyorder as ao
from anyorder.run.options import (
    Evaluation,
    Stopping,
    file_checks,
    option_names,
    select,
    study_options,
)

BAD: dict[str, list[Any]] = {
    "vectorized": ["yes", 1, None],
    "executor": [3, "slurm"],
    "batch": [0, -1, 2.0, "2", True],
    "workers": [0, -1, 2.0, "2", True],
    "asynchronous": ["no", 0, None],
    "timeout": [0, -1.0, math.inf, math.nan, 1e10, "1", True, 10**400],
    "retries": [-1, 1.5, None],
    "on_failure": ["ignore", None, 3],
    "constraint": [3, "x[0] == 0"],
    "cache": ["off", 0, None],
    "deterministic": ["no", 1, None],
    "confirm": [-1, 1.5, "2", True],
    "verify": ["no", 1, None],
    "budget": [0, -5, 10.5, math.inf, math.nan, "10", True],
    "target": ["high", math.nan, 10**400],
    "max_seconds": [0, -1, math.inf, math.nan, 1e10, "1"],
    "patience": [0, -1, 1.5, "3"],
    "stop": [3, ["time"], ao.stopping.Target],
}
OPTIONS = (*option_names(Evaluation), *option_names(Stopping))


def never(x: np.ndarray) -> float:
    raise AssertionError("it must not be called")


def test_every_option_has_bad_values() -> None:
    assert set(BAD) == set(OPTIONS)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    for bad in BAD[name]:
        options: dict[str, Any] = {"budget": 10, "study": tmp_path / "study.db", name: bad}
        with pytest.raises((TypeError, ValueError), match=rf"^{name}(\[0\])? is |^executor "):
            ao.maximize(never, ao.Space.binary(4), **options)
        with pytest.raises((TypeError, ValueError), match=rf"^{name}(\[0\])? is |^executor "):
            ao.minimize(never, ao.Space.binary(4), **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"vectorized": True, "workers": 2}, "vectorized=True evaluates a batch in one call"),
        ({"vectorized": True, "timeout": 1.0}, "vectorized=True evaluates a batch in one call"),
        ({"asynchronous": True}, "asynchronous=True requires workers= or executor="),
        ({"budget": None}, "budget is missing"),
    ],
)
def test_options_that_exclude_each_other(options: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        ao.maximize(never, ao.Space.binary(4), **{"budget": 10, **options})


def test_the_defaults_of_maximize_are_those_of_the_options() -> None:
    defaults = {
        field.name: field.default
        for kind in (Evaluation, Stopping)
        for field in dataclasses.fields(kind)
        if field.name != "budget"
    }
    parameters = inspect.signature(ao.maximize).parameters
    assert defaults == {name: parameters[name].default for name in defaults}


def test_what_files_may_set_and_studies_keep() -> None:
    assert set(file_checks()) == set(OPTIONS) - {"vectorized", "executor", "constraint", "stop"}
    assert study_options(Evaluation()) == {
        "asynchronous": False, "on_failure": "raise", "cache": True, "deterministic": True,
        "confirm": None, "constraint": False,
    }  # fmt: skip
    assert study_options(Evaluation(constraint=len))["constraint"] is True
    assert select(Stopping, {"budget": 3, "workers": 2}) == {"budget": 3}
