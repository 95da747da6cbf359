"""Ranks and utilities: ties, failures and infinities are defined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anyorder.strategies.policy.advantage import advantages, ranks

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("values", "ties", "expected"),
    [
        ([3, 1, 2], "strict", [0, 2, 1]),
        ([1, 1, 2, 0], "strict", [1, 1, 0, 3]),
        ([1, 1, 2, 0], "average", [1.5, 1.5, 0, 3]),
        ([1, 1, 2, 0], "sort", [1, 2, 0, 3]),
        ([5, 5, 5], "strict", [0, 0, 0]),
        ([5, 5, 5], "average", [1, 1, 1]),
        ([5, 5, 5], "sort", [0, 1, 2]),
        ([-INF, 0, INF], "strict", [2, 1, 0]),
        ([-INF, NAN, 0], "strict", [1, 2, 0]),  # a failure is below every success
        ([NAN, NAN, 0], "strict", [2, 2, 0]),  # and all failures are last: none is reinforced
        ([NAN, NAN, 0], "sort", [2, 2, 0]),
        ([NAN, NAN, NAN], "average", [2, 2, 2]),
    ],
)
def test_ranks(values: list[float], ties: str, expected: list[float]) -> None:
    np.testing.assert_array_equal(ranks(np.array(values, float), ties), expected)


def test_linear_utility_is_one_minus_two_r() -> None:
    got = advantages(np.array([4.0, 3.0, 2.0, 1.0, 0.0]), (1.0, -1.0), "strict")
    np.testing.assert_allclose(got, [1.0, 0.5, 0.0, -0.5, -1.0])


def test_utility_is_linear_between_its_knots() -> None:
    got = advantages(np.array([4.0, 3.0, 2.0, 1.0, 0.0]), (2.0, 0.0, 0.0), "strict")
    np.testing.assert_allclose(got, [2.0, 1.0, 0.0, 0.0, 0.0])


def test_all_equal_values() -> None:
    """By the paper's definition of the rank, all are best."""
    np.testing.assert_array_equal(advantages(np.ones(4), (1.0, -1.0), "strict"), np.ones(4))
    np.testing.assert_array_equal(advantages(np.ones(4), (1.0, -1.0), "average"), np.zeros(4))


def test_one_candidate_has_nothing_to_be_compared_with() -> None:
    np.testing.assert_array_equal(advantages(np.array([7.0]), (1.0, -1.0), "strict"), [0.0])


@given(arrays(float, st.integers(2, 12), elements=st.floats(-1e6, 1e6)))
def test_invariant_under_monotone_transformations(values: np.ndarray) -> None:
    transformed = 3.0 * np.sign(values) * np.abs(values) ** 3 + 1.0
    if len(np.unique(transformed)) != len(np.unique(values)):
        return  # rounding made two values equal
    for ties in ("strict", "average", "sort"):
        np.testing.assert_array_equal(ranks(values, ties), ranks(transformed, ties))
