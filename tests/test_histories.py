"""The method does not change unnoticed: histories of fixed seeds, and studies of format 1."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import histories as h
import numpy as np
import pytest
from children import assert_same

import anyorder as ao
from anyorder.session.reading import check, opened

EXPECTED = json.loads(h.FILE.read_text(encoding="utf-8"))


def test_every_stored_history_is_checked() -> None:
    assert set(h.NAMES) == set(EXPECTED)


@pytest.mark.usefixtures("quick_reference")
@pytest.mark.parametrize("name", h.NAMES)
def test_the_history_is_the_stored_one(name: str) -> None:
    assert h.run(name) == EXPECTED[name]


# --- studies of format 1 --------------------------------------------------------------------------

OLD: dict[str, tuple[int, int]] = {  # evaluations in the file, and to go on to
    "finished": (60, 90),
    "crashed": (37, 200),
    "async": (45, 80),
}


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def whole(kind: str, budget: int, thread: Any) -> ao.Result:
    """The run of the study, not interrupted."""
    policy: dict[str, Any] = {"algorithm": "policy"}
    if kind == "finished":
        return ao.maximize(h.failing, h.MIXED, budget, seed=0, on_failure="worst", **policy)
    if kind == "crashed":
        return ao.maximize(h.speed, h.MIXED, budget, seed=0, **policy)
    return ao.maximize(
        h.NK, h.NK.space, budget, seed=3, executor=thread, asynchronous=True, **policy
    )


@pytest.mark.parametrize("kind", OLD)
def test_a_study_of_format_1_is_read_and_continued(kind: str, tmp_path: Path, thread: Any) -> None:
    study = tmp_path / "study.db"
    shutil.copy(h.FILE.parent / f"study_v1_{kind}.db", study)
    before, budget = OLD[kind]
    loaded, expected = ao.load(study), whole(kind, budget, thread)
    assert (~loaded.cached).sum() == before
    assert check(study) == []
    for name in ("values", "codes", "generations", "statuses", "cached"):
        size = len(loaded) // 10 * 10  # whole batches: of the last, any may be answered
        known = getattr(expected.history, name)[:size]
        np.testing.assert_array_equal(getattr(loaded, name)[:size], known, err_msg=name)
    f = {"finished": h.failing, "crashed": h.speed, "async": h.NK}[kind]
    where = {"executor": thread} if kind == "async" else {}
    result = ao.resume(study, f, budget, **where)
    assert_same(result.history, expected.history)
    assert (result.evaluations, result.failures) == (budget, expected.failures)
    assert check(study) == []
    with opened(study) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (2,)
    again = ao.resume(study, f, budget, **where)  # from the state that was kept now
    assert_same(again.history, expected.history)
