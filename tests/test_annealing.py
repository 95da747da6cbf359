"""Simulated annealing."""

from __future__ import annotations

import numpy as np
from driving import answer, ask, step, tell
from functions import run
from scipy import stats

from anyorder import Space
from anyorder.strategies import (
    Answer,
    SimulatedAnnealing,
)


def test_annealing_cools_geometrically() -> None:
    strategy = SimulatedAnnealing(Space.binary(9), seed=0, budget=110, sample=10, hot=2, cold=0.5)
    proposals = strategy.propose(10)
    x = proposals.codes
    assert ((x != x[0]).sum(axis=1) == [0, *[1] * 9]).all()
    sample = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0]
    answer(strategy, proposals, sample[:9], range(9))
    assert strategy.temperature == np.inf
    assert strategy.facts() == {"temperature": None}
    answer(strategy, proposals, sample[9:], [9])
    assert np.isclose(strategy.temperature, 2 * np.std(sample))
    # It starts from the best of the sample.
    assert ((ask(strategy, 20) != x[5]).sum(axis=1) == 1).all()
    for spent in range(1, 130):
        step(strategy, lambda x: 0.0)
        expected = 2 * np.std(sample) * 0.25 ** min(1, spent / 100)
        assert np.isclose(strategy.temperature, expected)
    assert strategy.facts() == {"temperature": strategy.temperature}


def test_known_answers_do_not_cool() -> None:
    strategy = SimulatedAnnealing(Space.binary(9), seed=0, budget=100, sample=2)
    tell(strategy, [[0] * 9, [1] * 9], [0.0, 1.0])
    hot = strategy.temperature
    strategy.learn([Answer(None, np.ones(9, dtype=np.int32), 1.0, known=True)] * 50)
    assert strategy.temperature == hot
    tell(strategy, [[1] * 9], [1.0])
    assert strategy.temperature < hot


def test_annealing_accepts_by_the_loss() -> None:
    """Metropolis at a constant temperature of 2: 3,000 losses of 3, binomial test at 0.001."""
    strategy = SimulatedAnnealing(Space.binary(8), seed=0, sample=2, hot=1, cold=1)
    low, high = [0] * 8, [1] * 8
    tell(strategy, [low, high], [1.0, 5.0])
    assert strategy.temperature == 2
    accepted = 0
    for _ in range(3000):
        tell(strategy, [low], [2.0])
        now = ask(strategy)[0].sum()  # a neighbour, so it shows which
        assert now in (1, 7)
        accepted += now == 1
        tell(strategy, [high], [5.0])
        assert ask(strategy)[0].sum() == 7
    assert stats.binomtest(accepted, 3000, np.exp(-3 / 2)).pvalue > 0.001
    tell(strategy, [low], [5.0])  # not worse
    assert ask(strategy)[0].sum() == 1


def test_annealing_of_a_constant_accepts_nothing_worse() -> None:
    strategy = SimulatedAnnealing(Space.binary(8), seed=0)
    run(strategy, lambda x: 1.0, 20)
    assert strategy.temperature == 0
    middle = (ask(strategy, 50).mean(axis=0) > 0.5).astype(int)
    for worse in (1.0 - 1e-9, -1e9, -np.inf):
        tell(strategy, 1 - middle[None], [worse])
        assert ((ask(strategy, 20) != middle).sum(axis=1) == 1).all()
    tell(strategy, 1 - middle[None], [1.0])
    assert ((ask(strategy, 20) == middle).sum(axis=1) == 1).all()


def test_annealing_leaves_infinite_values_out() -> None:
    strategy = SimulatedAnnealing(Space.binary(8), seed=0, sample=4)
    for value in (-np.inf, -np.inf, 2.0, -np.inf, -np.inf):
        assert strategy.temperature == np.inf
        tell(strategy, ask(strategy), [value])
    tell(strategy, ask(strategy), [6.0])
    assert np.isclose(strategy.temperature, 2, rtol=0.01)
