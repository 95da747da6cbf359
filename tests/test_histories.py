"""The method does not change unnoticed: histories of fixed seeds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import histories as h
import numpy as np
import pytest
from children import assert_same
from functions import value

import anyorder as ao
from anyorder.run.study.reading import check

EXPECTED = json.loads(h.FILE.read_text(encoding="utf-8"))


def test_every_stored_history_is_checked() -> None:
    assert set(h.NAMES) == set(EXPECTED)


@pytest.mark.usefixtures("quick_reference")
@pytest.mark.parametrize("name", h.NAMES)
def test_the_history_is_the_stored_one(name: str) -> None:
    assert h.run(name) == EXPECTED[name]


# --- studies from before the engine and the graph were settings of a strategy ---------------------


@pytest.mark.parametrize("way", ["resume", "maximize", "another engine"])
def test_a_study_with_the_engine_beside_the_settings_is_continued(way: str, tmp_path: Path) -> None:
    study = tmp_path / "study.db"
    shutil.copy(h.FILE.parent / "study_v2.db", study)
    graph = np.eye(8, dtype=bool) | np.eye(8, k=1, dtype=bool)
    config = ao.policy.Config(epochs=3, hidden=(4,))
    policy = ao.policy.Policy(config, "reference", graph)
    expected = ao.maximize(value, ao.Space.binary(8), 60, seed=3, algorithm=policy)
    if way == "resume":
        result = ao.resume(study, value, 60)
    elif way == "another engine":
        result = ao.resume(study, value, 60, algorithm="policy+engine=cpu")
    else:
        result = ao.maximize(value, ao.Space.binary(8), 60, study=study, algorithm=policy)
    assert_same(result.history, expected.history)
    settings = {**config.to_dict(), "graph": graph.astype(int).tolist(), "stop_collapsed": False}
    engine = "cpu" if way == "another engine" else "reference"
    assert result.settings == {**settings, "engine": engine}
    assert check(study) == []
    other = ao.policy.Policy(config, "reference")  # without the graph
    with pytest.raises(ValueError, match="was started with config"):
        ao.maximize(value, ao.Space.binary(8), 70, study=study, algorithm=other)
    with pytest.raises(ValueError, match=r"expected 'policy', or 'policy\+setting=value'"):
        ao.resume(study, value, 70, algorithm="ils")
    with pytest.raises(ValueError, match=r'started with config \{"beta": 1.0\}'):
        ao.resume(study, value, 70, algorithm="policy+beta=2")
