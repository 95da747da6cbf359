"""P3: the linkage tree, the pyramid, and what it solves."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from driving import answer, ask, step, tell
from functions import run
from numpy.typing import NDArray
from scipy import stats
from scipy.cluster import hierarchy

from anyorder import Categorical, Integer, Space, problems
from anyorder.strategies import P3, UMDA, HillClimber, Search
from anyorder.strategies.plain.p3 import _Level, distances, linkage_tree


def level_of(rows: NDArray[np.int32], cardinalities: NDArray[np.int64]) -> _Level:
    level = _Level(cardinalities, np.flatnonzero(cardinalities > 1))
    for row in rows:
        level.add(row)
    return level


def sets(clusters: list[NDArray[np.intp]]) -> set[frozenset[int]]:
    found = {frozenset(cluster.tolist()) for cluster in clusters}
    assert len(found) == len(clusters)
    return found


# The tree ---------------------------------------------------------------------------------------


def test_distances_from_the_definition() -> None:
    rng = np.random.default_rng(0)
    cards = np.array([2, 3, 4, 2, 1, 3])
    rows = rng.integers(0, cards, (40, 6)).astype(np.int32)
    rows[:, 3] = rows[:, 2] > 1
    apart = distances(rows, cards)
    for i, j in itertools.product(range(6), repeat=2):
        both = np.unique(rows[:, [i, j]], axis=0, return_counts=True)[1]
        alone = [stats.entropy(np.bincount(rows[:, k])) for k in (i, j)]
        expected = 2 - sum(alone) / stats.entropy(both) if len(both) > 1 else 0
        assert np.isclose(apart[i, j], expected, atol=1e-8)
    assert np.array_equal(apart, apart.T)


def test_distances_at_the_ends() -> None:
    # 0 and 1: independent; 2: opposite of 0; 3: renames the pair of 0 and 1; 4, 5: constant.
    rows = np.array([[a, b, 1 - a, [2, 0, 1, 3][2 * a + b], 1, 2] for a in (0, 1) for b in (0, 1)])
    apart = distances(rows.astype(np.int32), np.array([2, 2, 2, 4, 2, 3]))
    assert apart[0].tolist() == [0, 1, 0, 0.5, 1, 1]
    assert apart[4].tolist() == [1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("to_first", "to_second", "joins"),
    [
        # Single linkage would join 4 to {2, 3} in the first case, complete to {0, 1} in the second.
        ((0.4, 0.4), (0.3, 0.6), {0, 1}),
        ((0.45, 0.45), (0.25, 0.6), {2, 3}),
    ],
)
def test_tree_by_hand(
    to_first: tuple[float, float], to_second: tuple[float, float], joins: set[int]
) -> None:
    apart = np.zeros((5, 5))
    apart[0, 1], apart[2, 3] = 0.1, 0.2
    apart[:2, 2:4] = [[0.7, 0.8], [0.9, 0.8]]
    apart[:4, 4] = *to_first, *to_second
    expected = [{0}, {1}, {2}, {3}, {4}, {0, 1}, {2, 3}, joins | {4}]
    assert sets(linkage_tree(apart + apart.T)) == set(map(frozenset, expected))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_tree_is_that_of_scipy(n: int, seed: int) -> None:
    apart = np.random.default_rng(seed).random((n, n))
    apart += apart.T
    np.fill_diagonal(apart, 0)
    clusters = [frozenset([i]) for i in range(n)]
    if n > 1:
        for a, b, *_ in hierarchy.linkage(apart[np.triu_indices(n, 1)], "average"):
            clusters.append(clusters[int(a)] | clusters[int(b)])
    assert sets(linkage_tree(apart)) == set(clusters[:-1])


def test_what_always_goes_together_is_not_split() -> None:
    apart = np.full((6, 6), 0.8)
    apart[:3, :3] = apart[3:5, 3:5] = 0
    apart[5, 3:5] = apart[3:5, 5] = 0.4
    expected = [{0, 1, 2}, {3, 4}, {5}, {3, 4, 5}]
    assert sets(linkage_tree(apart)) == set(map(frozenset, expected))
    assert linkage_tree(np.zeros((4, 4))) == []


@pytest.mark.parametrize("values", [2, 3])
@pytest.mark.parametrize("noise", [0, 0.1])
def test_tree_finds_planted_blocks(values: int, noise: float) -> None:
    """Blocks of copies, in a hidden order, with noise; and a variable of one value."""
    sizes = [2, 3, 4, 5, 6]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = np.repeat(rng.integers(0, values, (300, 5)), sizes, axis=1)
        # Not the same in all: then what is left at no noise is that each determines the other.
        rows = (rows + rng.integers(0, values, 20)) % values
        rows = np.where(rng.random((300, 20)) < noise, rng.integers(0, values, (300, 20)), rows)
        rows = np.concatenate([rows, np.zeros((300, 1), dtype=int)], axis=1)
        hidden = rng.permutation(21)
        place = hidden.argsort()
        cards = np.array([values] * 20 + [1])[hidden]
        found = sets(level_of(rows[:, hidden].astype(np.int32), cards).clusters(rng))
        blocks = np.split(place[:20], np.cumsum(sizes)[:-1])
        assert found >= {frozenset(block.tolist()) for block in blocks}
        assert not any(place[20] in cluster for cluster in found)
        inside = [c for c in found for block in blocks if c < set(block.tolist())]
        assert bool(inside) == (noise > 0)


def test_clusters_come_by_size_in_random_order() -> None:
    rng = np.random.default_rng(0)
    level = level_of(rng.integers(0, 2, (30, 9), dtype=np.int32), np.full(9, 2))
    first = []
    for _ in range(900):
        clusters = level.clusters(rng)
        sizes = [len(cluster) for cluster in reversed(clusters)]  # as they are tried
        assert sizes == sorted(sizes)
        first.append(int(clusters[-1][0]))
    assert stats.chisquare(np.bincount(first, minlength=9)).pvalue > 0.001


def test_equal_distances_are_joined_in_random_order() -> None:
    """Three variables independent of each other, to the count: any two may be joined first."""
    rows = np.array(list(itertools.product((0, 1), repeat=3)), dtype=np.int32)
    rng = np.random.default_rng(0)
    pairs = [max(map(sorted, level_of(rows, np.full(3, 2)).clusters(rng)), key=len)
             for _ in range(600)]  # fmt: skip
    counts = [pairs.count(pair) for pair in ([0, 1], [0, 2], [1, 2])]
    assert stats.chisquare(counts).pvalue > 0.001


def test_donors_differ_and_are_alike() -> None:
    rows = np.array([[0, 0, 5], [0, 1, 6], [1, 0, 7], [0, 0, 8], [2, 2, 9]], dtype=np.int32)
    level = level_of(rows, np.array([3, 3, 10]))
    rng = np.random.default_rng(0)
    level.clusters(rng)
    point, cluster = np.array([0, 0, 4], dtype=np.int32), np.array([1, 0])
    given = [tuple(level.donate(point, cluster, rng).tolist()) for _ in range(600)]  # type: ignore[union-attr]
    counts = [given.count(values) for values in ((1, 0), (0, 1), (2, 2))]
    assert sum(counts) == 600
    assert stats.chisquare(counts).pvalue > 0.001
    everyone = level_of(rows[[0, 3]], np.array([3, 3, 10]))
    everyone.clusters(rng)
    assert everyone.donate(point, cluster, rng) is None


# The pyramid ------------------------------------------------------------------------------------


class Watched(P3):
    """P3 that checks, from one level to the next, who joins and what is tried."""

    def __init__(self, space: Space, seed: int, height: dict[tuple[int, ...], float]) -> None:
        super().__init__(space, seed)
        self.height = height
        self.came_with = -np.inf
        self.joined = self.equal = self.known = self.hills = 0

    def _continue(self, point: NDArray[np.int32]) -> None:
        members = {tuple(x.tolist()) for level in self._levels for x in level.points}
        sizes = [len(level.points) for level in self._levels]
        level, value = self._level, self._value
        super()._continue(point)
        grown = [len(level.points) for level in self._levels]
        key = tuple(point.tolist())
        assert value == self.height[key]
        if level < 0:
            self.hills += 1
            assert all(self.height.get(x, np.inf) <= value for x in self.neighbours(key))
        better = level < 0 or value > self.came_with
        if better and key not in members:
            sizes += [0] * (level + 2 - len(sizes))
            sizes[level + 1] += 1
            self.joined += level >= 0
        self.equal += level >= 0 and not better
        self.known += better and key in members
        assert grown == sizes
        self.came_with = value
        assert self._level == (level + 1 if level + 1 < len(grown) else -1)
        assert (self._point is None) == (self._level < 0)

    def neighbours(self, key: tuple[int, ...]) -> list[tuple[int, ...]]:
        """All of them were evaluated, so that one that is missing in the table is an error."""
        return [
            (*key[:i], value, *key[i + 1 :])
            for i, values in enumerate(self.space.cardinalities.tolist())
            for value in range(values)
            if value != key[i]
        ]


@pytest.mark.parametrize(
    "space",
    [Space.binary(16), Space.categorical(8, 4), Space([*[Integer(0, 2)] * 10, Categorical([7])])],
)
def test_levels(space: Space) -> None:
    """Seen from outside: a point joins if it is new, and goes up only when strictly better."""
    n = len(space)
    # Each variable counts with the next two, in whole numbers so that there are ties.
    table = np.random.default_rng(0).integers(0, 6, (n, 4, 4, 4))
    height: dict[tuple[int, ...], float] = {}
    strategy = Watched(space, 0, height)
    kept = kept_equal = rejected = 0
    for _ in range(5000):
        proposals = strategy.propose(1)
        codes = proposals.codes[0]
        value = float(table[range(n), codes, np.roll(codes, 1), np.roll(codes, 2)].sum())
        height[tuple(codes.tolist())] = value
        point, before, level = strategy._point, strategy._value, strategy._level
        if level >= 0:
            assert point is not None
            changed = codes != point
            assert changed.any()
            donors = np.array(strategy._levels[level].points)
            assert (donors[:, changed] == codes[changed]).all(axis=1).any()
        answer(strategy, proposals, [value])
        if point is not None:
            moved = np.array_equal(strategy._point, codes)  # type: ignore[arg-type]
            assert moved == (value > before or (level >= 0 and value == before))
            if level >= 0:
                kept, kept_equal = kept + (value > before), kept_equal + (value == before)
                rejected += value < before
    assert min(kept, kept_equal, rejected) > 0
    assert min(strategy.joined, strategy.equal, strategy.known, strategy.hills) > 0
    pyramid = [tuple(x.tolist()) for level in strategy.pyramid for x in level]
    assert len(set(pyramid)) == len(pyramid) > 0
    assert len(strategy.pyramid) > 2
    assert strategy.facts() == {"levels": [len(level) for level in strategy.pyramid]}


def test_pyramid_of_named_candidates() -> None:
    space = Space({"a": Categorical(["x", "y", "z"]), "b": Categorical(["only"])})
    strategy = P3(space, seed=0)
    assert strategy.pyramid == []
    run(strategy, lambda x: float(x["a"] == "y"), 20)
    assert strategy.pyramid == [[{"a": "y", "b": "only"}]]


# What it finds ----------------------------------------------------------------------------------


def best_of(strategy: Search, value: Callable[[Any], Any], optimum: float, budget: int) -> float:
    """The best value found, until the optimum or the budget is reached."""
    best, done = -np.inf, 0
    while done < budget and best < optimum:
        proposals = strategy.propose(strategy.batch)
        values = value(proposals.codes)
        answer(strategy, proposals, values)
        best, done = max(best, values.max()), done + len(values)
    return best


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 1, 2])
def test_traps(seed: int) -> None:
    """12 scattered blocks of 5. Of 40 other runs the slowest took 12,300 evaluations."""
    problem, budget = problems.trap(blocks=12, k=5), 20_000
    order = np.random.default_rng(seed).permutation(60)

    def value(x: NDArray[np.int32]) -> NDArray[np.float64]:
        return problem.evaluate(x[:, order])

    assert best_of(P3(problem.space, seed=seed), value, 60, budget) == 60
    if not seed:
        for kind in (HillClimber, UMDA):
            assert best_of(kind(problem.space, seed=seed), value, 60, budget) < 57


def traps_of_three(x: NDArray[np.int32]) -> NDArray[np.float64]:
    """Blocks of three variables of three values: traps with 2 for 1; variable 9 does not count."""
    twos = (np.delete(x, 9, axis=1).reshape(len(x), -1, 3) == 2).sum(axis=2)
    return np.where(twos == 3, 3.0, 2.0 - twos).sum(axis=1)


def test_traps_of_three_values() -> None:
    """Five runs each of 3,000 evaluations; one-sided Mann-Whitney at .01."""
    space = Space([*[Integer(0, 2)] * 9, Categorical([7]), *[Categorical([0, 1, 2])] * 15])
    best = {
        kind: [best_of(kind(space, seed=seed), traps_of_three, 24, 3000) for seed in range(5)]
        for kind in (P3, HillClimber, UMDA)
    }
    for kind in (HillClimber, UMDA):
        assert stats.mannwhitneyu(best[P3], best[kind], alternative="greater").pvalue < 0.01


# Proposals and answers --------------------------------------------------------------------------


def distance_to(x: NDArray[np.int32], point: Any) -> list[int]:
    return (x != np.asarray(point)).sum(axis=1).tolist()  # type: ignore[no-any-return]


def test_batches_on_the_hill() -> None:
    strategy = P3(Space.binary(6), seed=0)
    tell(strategy, [[0] * 6], [0.0])
    first = strategy.propose(4)
    tried = np.concatenate([first.codes, ask(strategy, 5)[:2]])
    assert sorted(map(tuple, tried.tolist())) == sorted(map(tuple, np.eye(6, dtype=int).tolist()))
    # In any order, in parts: to the first that is better than the present one, not to an equal.
    answer(strategy, first, [1.0, 1.0], [2, 0])
    assert distance_to(ask(strategy, 3), first.codes[2]) == [1, 1, 1]
    answer(strategy, first, [2.0], [1])
    answer(strategy, first, [1.0, 2.0, 2.0], [2, 1, 1])  # answered before
    assert distance_to(ask(strategy, 3), first.codes[1]) == [1, 1, 1]


def in_the_pyramid(problem: problems.Problem) -> P3:
    """One that has ten clusters yet to try."""
    strategy = P3(problem.space, seed=0)
    while strategy._level < 0 or len(strategy._clusters) < 10:
        step(strategy, problem)
    return strategy


def test_batches_in_the_pyramid() -> None:
    """All clusters from the same point; answered in any order, it goes to what is not worse."""
    strategy = in_the_pyramid(problems.nk(20, 3, 0))
    point, value = strategy._point, strategy._value
    assert point is not None
    proposals = strategy.propose(5)
    members = strategy.pyramid[0]
    for trial in proposals.codes:
        changed = trial != point
        assert changed.any()
        assert (members[:, changed] == trial[changed]).all(axis=1).any()
    answer(strategy, proposals, [value - 1, value], [3, 1])
    assert np.array_equal(strategy._point, proposals.codes[1])  # type: ignore[arg-type]
    answer(strategy, proposals, [value + 2, value + 1, value + 2], [2, 0, 4])
    assert np.array_equal(strategy._point, proposals.codes[4])  # type: ignore[arg-type]
    assert strategy._value == value + 2


def test_points_of_others() -> None:
    """They count if better than all before, and so do late trials of an earlier climb."""
    strategy = in_the_pyramid(problems.nk(20, 3, 0))
    record = strategy._record
    late = strategy.propose(1)
    while strategy._point is not None:
        start = strategy.propose(1)  # in the end, that of another climb
    answer(strategy, start, [-1.0])
    stranger = np.arange(20) % 2
    answer(strategy, late, [record])
    tell(strategy, [stranger], [record])
    assert distance_to(ask(strategy, 2), start.codes) == [1, 1]
    tell(strategy, [stranger], [2.0])
    assert distance_to(ask(strategy, 2), stranger) == [1, 1]
    answer(strategy, late, [3.0])
    assert distance_to(ask(strategy, 2), late.codes) == [1, 1]
    # In the middle of the pyramid as well.
    strategy = in_the_pyramid(problems.nk(20, 3, 0))
    tell(strategy, [stranger], [2.0])
    assert distance_to(ask(strategy, 2), stranger) == [1, 1]


def test_trials_are_known_by_their_tickets() -> None:
    """The point of a trial, proposed by someone else or given up, does not move the climb."""
    strategy = in_the_pyramid(problems.nk(20, 3, 0))
    point, value = strategy._point, strategy._value
    proposals = strategy.propose(2)
    strategy.give_up(proposals.tickets)
    tell(strategy, proposals.codes, [value, value])
    answer(strategy, proposals, [value, value])
    assert np.array_equal(strategy._point, point)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(3))
def test_seven_at_a_time_solve_traps(seed: int) -> None:
    """Answers in random order, one in ten never. Of 40 other runs the slowest took 13,600."""
    problem, rng = problems.trap(blocks=4, k=5), np.random.default_rng(seed)
    strategy, best = P3(problem.space, seed=seed), 0.0
    waiting: list[Any] = []
    for _ in range(30_000):
        waiting += [strategy.propose(1) for _ in range(7 - len(waiting))]
        proposals = waiting.pop(int(rng.integers(7)))
        if rng.random() < 0.9:
            best = max(best, problem(proposals.codes[0]))
            answer(strategy, proposals, [problem(proposals.codes[0])])
        if best == problem.optimum:
            return
    pytest.fail(f"the best of 30,000 evaluations is {best}")


def test_restored_at_any_stage_it_continues() -> None:
    problem = problems.trap(blocks=4, k=5)
    strategy = P3(problem.space, seed=0)
    for stage in (-1, 0, 1):
        while strategy._point is None or strategy._level != stage:
            step(strategy, problem)
        proposals = strategy.propose(3)
        other, ahead = (P3(problem.space, seed=1) for _ in range(2))
        other.restore(strategy.state())
        ahead.restore(strategy.state())
        assert other.facts() == strategy.facts()
        answer(ahead, proposals, problem.evaluate(proposals.codes))
        values = run(ahead, problem, 300)
        answer(other, proposals, problem.evaluate(proposals.codes))
        assert np.array_equal(run(other, problem, 300), values)
    answer(strategy, proposals, problem.evaluate(proposals.codes))
    assert np.array_equal(run(strategy, problem, 300), values)


def test_too_many_values() -> None:
    with pytest.raises(ValueError, match=r"4098 values in all, expected at most 4096"):
        P3(Space([Categorical(range(4097)), Categorical([7])]))
