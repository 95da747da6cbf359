"""The archive: look-up of points, means, the incumbent, and how much memory it takes."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anyorder as ao
from anyorder.archive import Archive
from anyorder.errors import FAILED, INFEASIBLE, OK, REJECTED

SPACES = {
    "bits": ao.Space.binary(11),
    "bytes": ao.Space([ao.Integer(0, 2), ao.Categorical([3, 1]), ao.Integer(-5, 200)]),
    "words": ao.Space([ao.Integer(0, 70_000), ao.Binary()]),
}
LARGE = 1.7e308


def key(archive: Archive, *codes: int) -> bytes:
    return archive.packing.pack(np.array([codes]))[0]


def same(one: Archive, other: Archive) -> None:
    for name in ("value", "status", "known", "generation", "seconds"):
        np.testing.assert_array_equal(one.column(name), other.column(name))
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.best, other.best)
    for name in ("evaluations", "failures", "distinct", "improved", "restarts", "errors"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.best_value == other.best_value


@settings(max_examples=60)
@given(
    name=st.sampled_from(sorted(SPACES)),
    draws=st.lists(
        st.tuples(st.integers(0, 40), st.floats(-5, 5), st.booleans(), st.booleans()), max_size=200
    ),
    minimize=st.booleans(),
)
def test_it_is_a_dict_with_a_history(name: str, draws: list[Any], minimize: bool) -> None:
    """Every look-up against a plain dict, while the archive grows beyond its first size."""
    space = SPACES[name]
    archive = Archive(space, "minimize" if minimize else "maximize")
    first: dict[bytes, tuple[int, float]] = {}
    values: list[float] = []
    for number, (seed, value, fails, known) in enumerate(draws):
        codes = np.random.default_rng(seed).integers(space.cardinalities)
        point = key(archive, *codes)
        status = FAILED if fails else OK
        value = np.nan if fails else value
        assert archive.lookup(point) == pytest.approx(first.get(point), nan_ok=True)
        archive.add(point, value, status, known=known, generation=number, error="e" * fails or None)
        values.append(value)
        if not known:
            first.setdefault(point, (status, value))
    for point, expected in first.items():
        assert archive.lookup(point) == pytest.approx(expected, nan_ok=True)
    assert archive.distinct == len(first)
    assert len(archive) == len(draws)
    assert archive.evaluations == sum(not known for *_, known in draws)
    np.testing.assert_array_equal(archive.values, values)
    np.testing.assert_array_equal(archive.column("generation"), range(len(draws)))
    for place, (seed, *_) in enumerate(draws):
        expected_codes = np.random.default_rng(seed).integers(space.cardinalities)
        np.testing.assert_array_equal(archive.codes[place], expected_codes)
    finite = [value for value in values if value == value]
    if finite:
        assert archive.best_value == (min if minimize else max)(finite)
    else:
        assert archive.best is None
    for other in (copy.deepcopy(archive), pickle.loads(pickle.dumps(archive))):
        same(archive, other)


def test_views_do_not_change_when_it_grows() -> None:
    archive = Archive(ao.Space.binary(8))
    for k in range(300):
        archive.add(bytes([k % 256]), float(k))
        if k == 100:
            early = ao.History(archive)
            values, codes = early.values.copy(), early.codes.copy()
    assert (len(early), len(archive)) == (101, 300)
    np.testing.assert_array_equal(early.values, values)
    np.testing.assert_array_equal(early.codes, codes)
    with pytest.raises(ValueError, match="read-only"):
        early.values[0] = 3


def test_what_is_an_evaluation() -> None:
    archive = Archive(ao.Space.binary(8))
    archive.add(b"\1", np.nan, REJECTED, known=True)
    assert archive.lookup(b"\1") is None  # it may be asked about again
    archive.add(b"\2", np.nan, INFEASIBLE, error="too heavy")
    archive.add(b"\3", 1.0)
    archive.add(b"\3", 1.0, known=True)
    assert (archive.evaluations, archive.failures, archive.distinct) == (2, 1, 2)
    assert archive.errors == {1: "too heavy"}
    assert (archive.improved, archive.best_value) == (2, 1.0)
    with pytest.raises(ValueError, match="has 2 bytes, expected 1"):
        archive.add(b"\1\2", 1.0)


# --- noise ----------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.floats(-LARGE, LARGE, width=64)), min_size=1, max_size=40
    ),
    st.sampled_from(["maximize", "minimize"]),
)
def test_the_incumbent_of_a_noisy_function(answers: list[Any], direction: str) -> None:
    archive = Archive(ao.Space.binary(8), direction, deterministic=False)
    told: dict[int, list[float]] = {}
    for point, value in answers:
        archive.add(bytes([point]), value)
        told.setdefault(point, []).append(value)
        means = {p: float(np.mean(np.array(v, np.longdouble))) for p, v in told.items()}
        size = max(abs(v) for v in told[point])
        for p, mean in means.items():
            size = max(abs(v) for v in told[p])
            assert abs(archive.mean(bytes([p])) - mean) <= 1e-13 * size
        got = [archive.mean(bytes([p])) for p in means]
        assert archive.best_value == (max if direction == "maximize" else min)(got)


def test_means_of_large_and_equal_values() -> None:
    archive = Archive(ao.Space.binary(8), deterministic=False)
    for _ in range(1000):
        archive.add(b"\0", LARGE)
        archive.add(b"\1", 0.1)
    assert archive.mean(b"\0") == LARGE
    assert archive.mean(b"\1") == 0.1  # exactly: equal points stay equal
    archive.add(b"\2", LARGE)
    archive.add(b"\2", -LARGE)
    assert archive.mean(b"\2") == 0.0
    assert np.isnan(archive.mean(b"\7"))


def test_infinities_of_both_signs_are_no_incumbent() -> None:
    archive = Archive(ao.Space.binary(8), deterministic=False)
    archive.add(b"\1", np.inf)
    archive.add(b"\1", -np.inf)
    assert archive.best is None
    archive.add(b"\2", -3.0)
    archive.add(b"\3", -4.0)
    assert archive.best_value == -3.0
    archive.add(b"\2", -100.0)
    assert archive.best_value == -4.0
    archive.add(b"\4", np.inf)
    assert archive.best_value == np.inf


# --- memory ---------------------------------------------------------------------------------------


def test_a_million_evaluations_fit_in_250_megabytes() -> None:
    """Measured with a sixteenth of them, which is as full as a million in 2**20."""
    archive = Archive(ao.Space.binary(64))
    count = 1_000_000 // 16
    keys = [key.tobytes() for key in np.random.default_rng(0).integers(0, 2**63, count)]
    tracemalloc.start()
    try:
        for key in keys:
            archive.add(key, 1.0)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size + 41 * count < 250e6 / 16  # the keys, which a run makes too
