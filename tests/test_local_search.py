"""Hill climbing and iterated local search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import answer, ask, neighbours, step, tell
from functions import run
from numpy.typing import NDArray
from scipy import stats

from anyorder import Binary, Categorical, Integer, Space, problems
from anyorder.strategies import (
    HillClimber,
    IteratedLocalSearch,
    Search,
    TabuSearch,
)

MIXED = Space([Integer(5, 9), Binary(), Categorical([7]), Categorical([40, 20, 30])])


class Heights:
    """Random heights with ties, so that accepting an equal point would show."""

    def __init__(self) -> None:
        self.rng, self.known = np.random.default_rng(0), dict[tuple[int, ...], float]()

    def __call__(self, codes: NDArray[np.int32]) -> float:
        return self.known.setdefault(tuple(codes.tolist()), float(self.rng.integers(0, 12)))


@pytest.mark.parametrize(
    "space", [Space.binary(10), Space.categorical(5, 4), MIXED, Space([Integer(1, 9)])]
)
@pytest.mark.parametrize("kind", [HillClimber, IteratedLocalSearch])
def test_climbers_climb(kind: type[HillClimber], space: Space) -> None:
    """Seen from outside: no neighbour twice, no restart with one untried, no move to an equal.

    Iterated local search restarts four changes from the last local optimum that was not worse.
    """
    ils = kind is IteratedLocalSearch
    strategy = IteratedLocalSearch(space, seed=0, kick=4) if ils else HillClimber(space, seed=0)
    height = Heights()
    point, value, left = np.empty(0, dtype=np.int32), -np.inf, set[tuple[int, ...]]()
    accepted, accepted_value = point, -np.inf
    kick = min(4, int((space.cardinalities > 1).sum()))
    climbs = kept = dropped = equal = 0
    for _ in range(1500):
        codes, v = step(strategy, height)
        start = not left
        if start and ils and climbs:
            kept, dropped = kept + (value > accepted_value), dropped + (value < accepted_value)
            equal += value == accepted_value
            if value >= accepted_value:
                accepted, accepted_value = point, value
            assert (codes != accepted).sum() == kick
        if not start:
            left.remove(tuple(codes.tolist()))
        if start or v > value:
            before = tuple(point.tolist())
            point, value = codes, v
            left = neighbours(space, point)
            if not start:
                left.remove(before)
            climbs += start
    assert climbs > 15
    assert strategy.generation == climbs - 1
    assert strategy.restarts == (0 if ils else climbs - 1)
    if ils and len(space) > 1:
        assert min(kept, equal, dropped) > 0


def kicks(kick: int | None, n: int, count: int) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
    """Which variables of three values a kick changes, and the changes."""
    strategy = IteratedLocalSearch(Space.categorical(n, 3), seed=0, kick=kick)
    top, _ = step(strategy, lambda x: 0.0)
    for _ in range(2 * n):
        step(strategy, lambda x: 0.0)  # nothing is better
    x = ask(strategy, count)
    changed = x != top
    return changed, ((x - top) % 3)[changed]


@pytest.mark.parametrize("kick", [1, 3, 20])
def test_fixed_kicks(kick: int) -> None:
    changed, steps = kicks(kick, 10, 3000)
    assert (changed.sum(axis=1) == min(kick, 10)).all()
    assert stats.chisquare([(steps == 1).sum(), (steps == 2).sum()]).pvalue > 0.001
    if kick < 10:
        assert stats.chisquare(changed.sum(axis=0)).pvalue > 0.001


def test_heavy_tailed_kicks() -> None:
    """k = min(4/U, n/2), rounded down: 4,000 kicks, chi-square at 0.001, fixed seed."""
    changed, steps = kicks(None, 40, 4000)
    sizes = np.arange(4, 21)
    law = np.where(sizes < 20, 4 / sizes - 4 / (sizes + 1), 4 / 20)
    counts = np.bincount(changed.sum(axis=1), minlength=21)
    assert counts[:4].sum() == 0
    assert stats.chisquare(counts[4:], 4000 * law).pvalue > 0.001
    assert stats.chisquare(changed.sum(axis=0)).pvalue > 0.001
    assert stats.chisquare([(steps == 1).sum(), (steps == 2).sum()]).pvalue > 0.001


@pytest.mark.parametrize(("n", "size"), [(1, 1), (2, 1), (3, 1), (4, 2), (7, 3)])
def test_heavy_tailed_kicks_of_few_variables(n: int, size: int) -> None:
    assert (kicks(None, n, 50)[0].sum(axis=1) == size).all()


@pytest.mark.slow
def test_heavy_tailed_kicks_pay() -> None:
    """QUBO of 128 variables, ten instances, 10,000 evaluations; one-sided Wilcoxon at .01."""
    best = np.empty((10, 2))
    for seed in range(10):
        problem = problems.qubo(128, 0, seed)
        for j, kick in enumerate((None, 4)):
            climber = IteratedLocalSearch(problem.space, seed=seed, kick=kick)
            best[seed, j] = run(climber, problem, 10_000).max()
    assert stats.wilcoxon(best[:, 0], best[:, 1], alternative="greater").pvalue < 0.01


def test_hill_climber_solves_onemax_in_one_round() -> None:
    # A start and each bit once: in a cyclic order nothing is tried in vain twice.
    for seed in range(5):
        values = run(HillClimber(Space.binary(40), seed=seed), problems.onemax(40), 41)
        assert values.max() == 40


def test_hill_climber_order_is_random() -> None:
    first = []
    for seed in range(400):
        strategy = HillClimber(Space.binary(8), seed=seed)
        tell(strategy, [[0] * 8], [0.0])
        first.append(int(ask(strategy)[0].argmax()))
    assert stats.chisquare(np.bincount(first, minlength=8)).pvalue > 0.001


def test_hill_climber_batches() -> None:
    strategy = HillClimber(Space.binary(6), seed=0)
    tell(strategy, [[0] * 6], [0.0])
    first, rest = strategy.propose(4), strategy.propose(5)
    tried = np.concatenate([first.codes, rest.codes[:2]])
    assert sorted(map(tuple, tried.tolist())) == sorted(map(tuple, np.eye(6, dtype=int).tolist()))
    # Three starts came with the last two neighbours: a better neighbour that is late still wins.
    answer(strategy, rest, [-1.0, -1.0, -7.0, -8.0, -9.0])
    assert ((ask(strategy, 3) != rest.codes[2]).sum(axis=1) == 1).all()
    answer(strategy, first, [2.0], [0])
    assert ((ask(strategy, 3) != first.codes[0]).sum(axis=1) == 1).all()


def test_starts_are_known_by_their_tickets() -> None:
    """A start that was given up, or proposed by someone else, does not end the climb."""
    strategy = HillClimber(Space.binary(6), seed=0)
    tell(strategy, [[0] * 6], [5.0])
    strategy.propose(6)
    start = strategy.propose(1)
    tell(strategy, start.codes, [1.0])
    strategy.give_up(start.tickets)
    answer(strategy, start, [1.0])
    assert strategy.restarts == 0
    other = strategy.propose(1)
    answer(strategy, other, [1.0])
    assert strategy.restarts == 1
    assert ((ask(strategy, 3) != other.codes[0]).sum(axis=1) == 1).all()


@pytest.mark.parametrize("kind", [HillClimber, IteratedLocalSearch, TabuSearch])
def test_too_many_changes(kind: type[Search]) -> None:
    with pytest.raises(ValueError, match=r"16781312 single changes, expected at most"):
        kind(Space([Categorical(range(4098))] * 4096))


# Mean best values of another implementation on QUBO of n 64: type, evaluations, value.
REFERENCE = [
    (HillClimber, 0, "1k", 197.6),
    (HillClimber, 3, "1k", 418.8),
    (IteratedLocalSearch, 0, "1k", 196.6),
    (IteratedLocalSearch, 3, "1k", 412.1),
    (HillClimber, 0, "10k", 209.7),
    (HillClimber, 3, "10k", 441.6),
    (IteratedLocalSearch, 0, "10k", 209.4),
    (IteratedLocalSearch, 3, "10k", 436.6),
]
QUICK = (REFERENCE[3],)


@pytest.mark.parametrize(
    ("climber", "kind", "budget", "expected"),
    [pytest.param(*row, marks=[] if row in QUICK else [pytest.mark.slow]) for row in REFERENCE],
)
def test_climbers_reproduce_the_reference(
    climber: type[HillClimber], kind: int, budget: str, expected: float
) -> None:
    """Mean best on the ten published instances of n 64.

    The reference is the mean of 50 runs of another implementation, ours of 20; tolerance three
    standard errors of the difference, from the spread between runs of one instance.
    """
    evaluations = {"1k": 1000, "10k": 10_000}[budget]
    settings: dict[str, Any] = {"kick": 4} if climber is IteratedLocalSearch else {}
    best = np.empty((10, 2))
    for seed in range(10):
        problem = problems.qubo(64, kind, seed)
        for repeat in range(2):
            strategy = climber(problem.space, seed=10 * seed + repeat, **settings)
            best[seed, repeat] = run(strategy, problem, evaluations).max()
    variance = best.var(axis=1, ddof=1).mean()
    assert abs(best.mean() - expected) < 3 * np.sqrt(variance / 20 + variance / 50)
