"""When a population counts as collapsed."""

import numpy as np
import pytest

from anyorder.strategies.policy.collapse import agreement, generations_in_a_row

FREE = np.array([True, True, False, True])
POINTS = np.array([[0, 1, 0, 2], [0, 1, 0, 2], [1, 1, 0, 2], [0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([4, 3, 2, 1], 9 / 12),
        ([1, 1, 1, 1], 9 / 12),  # the first of equals
        ([0, 0, 5, 0], 7 / 12),
        ([0, 0, 0, 5], 5 / 12),
        ([np.nan, 1, np.nan, 0], 9 / 12),  # a failed evaluation is as bad as -inf
        ([np.nan] * 4, 9 / 12),
    ],
)
def test_agreement(values, expected):
    got = agreement(POINTS, np.array(values, float), FREE)
    assert isinstance(got, float)
    assert got == expected


def test_agreement_of_many_runs():
    rng = np.random.default_rng(0)
    points, values = rng.integers(0, 3, (5, 6, 4)), rng.normal(size=(5, 6))
    together = agreement(points, values, FREE)
    assert together.shape == (5,)
    assert together.tolist() == [agreement(points[r], values[r], FREE) for r in range(5)]


def test_bounds_of_the_agreement():
    assert agreement(np.ones((3, 4), int), np.zeros(3), FREE) == 1.0
    assert agreement(np.arange(12).reshape(3, 4), np.zeros(3), FREE) == 1 / 3
    assert agreement(np.zeros((3, 2), int), np.zeros(3), np.array([False, False])) == 0.0


def test_generations_in_a_row():
    assert generations_in_a_row(3, 0.995, 0.995) == 4
    assert generations_in_a_row(3, 0.994, 0.995) == 0
    got = generations_in_a_row(np.array([0, 2, 9]), np.array([1.0, 0.5, 0.9]), 0.9)
    assert got.tolist() == [1, 0, 10]
