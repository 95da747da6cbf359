"""Estimation of distributions: the models, and that they are learned from the right points."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from driving import ask, tell
from functions import run
from numpy.typing import NDArray
from scipy import stats

from anyorder import Binary, Categorical, Integer, Space, problems
from anyorder.strategies.base import Search
from anyorder.strategies.plain.boa import BOA, learn_network
from anyorder.strategies.plain.mimic import MIMIC, draw, learn_chain
from anyorder.strategies.plain.univariate import CGA, PBIL, UMDA

ALL = [UMDA, PBIL, CGA, MIMIC, BOA]
MIXED = Space([Categorical([7]), Binary(), Categorical([40, 20, 30]), Integer(5, 9)])


@pytest.fixture(params=ALL)
def kind(request: pytest.FixtureRequest) -> type[Search]:
    kind: type[Search] = request.param
    return kind


def frequencies(strategy: Search, n: int = 20_000) -> NDArray[np.float64]:
    """How often each binary variable is 1 in n candidates."""
    ones: NDArray[np.float64] = ask(strategy, n).mean(axis=0)
    return ones


def assert_chances(strategy: Search, expected: Any) -> None:
    """Of 1 for each binary variable; binomial tests, Bonferroni at .001, fixed seed."""
    found = frequencies(strategy)
    for ones, p in zip(found, np.broadcast_to(expected, found.shape), strict=True):
        assert stats.binomtest(round(ones * 20_000), 20_000, p).pvalue > 0.001 / len(found)


# All of them ------------------------------------------------------------------------------------


def test_onemax(kind: type[Search]) -> None:
    # At a population of 100 BOA's networks are noise enough to lose a bit in some runs; at 200 not.
    settings: dict[str, Any] = {"population": 200} if kind is BOA else {}
    for seed in range(2):
        strategy = kind(Space.binary(32), seed=seed, **settings)
        assert run(strategy, problems.onemax(32), 4000).max() == 32


def test_mixed_spaces(kind: type[Search]) -> None:
    assert run(kind(MIXED, seed=0), lambda x: float(x.sum()), 800).max() == 7 + 1 + 40 + 9


def test_it_learns_from_points_that_others_propose(kind: type[Search]) -> None:
    """The model depends on the points and their order alone."""
    space = Space.categorical(6, 3)
    x = np.random.default_rng(0).integers(0, 3, (1000, 6))
    values = x @ np.arange(6.0)
    strategies = [kind(space, seed=5) for _ in range(2)]
    tell(strategies[0], x, values)
    for at in range(0, 1000, 7):
        tell(strategies[1], x[at : at + 7], values[at : at + 7])
    first, second = (ask(strategy, 50) for strategy in strategies)
    assert np.array_equal(first, second)
    assert first[:, 5].mean() > 1.2  # and it was learned: a uniform variable has 1


def test_batch_is_what_the_generation_lacks(kind: type[Search]) -> None:
    first, later = {UMDA: (100, 100), PBIL: (32, 32), CGA: (2, 2)}.get(kind, (100, 50))
    strategy = kind(Space.binary(8), seed=0)
    assert strategy.batch == first
    x = ask(strategy, first - 1)
    tell(strategy, x, x.sum(axis=1))
    assert (strategy.batch, strategy.generation) == (1, 0)
    tell(strategy, x[:1], x[:1].sum(axis=1))
    assert (strategy.batch, strategy.generation) == (later, 1)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(UMDA, {"population": 20, "margins": False}), (MIMIC, {"population": 20}),
     (BOA, {"population": 20})],
)  # fmt: skip
def test_convergence_is_noticed(kind: type[Search], settings: dict[str, Any]) -> None:
    strategy = kind(Space.binary(6), seed=0, **settings)
    run(strategy, problems.onemax(6), 20)
    assert not strategy.converged
    run(strategy, problems.onemax(6), 1000)
    assert strategy.converged
    assert len(np.unique(ask(strategy, 50), axis=0)) == 1


@pytest.mark.parametrize(
    ("kind", "settings", "match"),
    [
        (UMDA, {"population": 1}, "population is 1, expected an integer of at least 2"),
        (UMDA, {"population": 9.5}, r"population is 9\.5, expected an integer"),
        (UMDA, {"selection": 0}, "selection is 0, expected .* above 0 and of at most 1"),
        (UMDA, {"selection": 1.5}, r"selection is 1\.5, expected .* of at most 1"),
        (UMDA, {"margins": "no"}, "margins is 'no', expected True or False"),
        (PBIL, {"population": 1}, "population is 1"),
        (PBIL, {"rate": 0}, "rate is 0, expected .* above 0 and of at most 1"),
        (PBIL, {"negative_rate": -0.1}, r"negative_rate is -0\.1, expected .* of at least 0"),
        (PBIL, {"mutation": np.nan}, "mutation is nan, expected a finite number"),
        (PBIL, {"shift": "x"}, "shift is 'x', expected a finite number"),
        (CGA, {"size": 1}, "size is 1, expected an integer of at least 2"),
        (MIMIC, {"population": 3}, "population is 3, expected an integer of at least 4"),
        (MIMIC, {"replacement": 0}, "replacement is 0, expected .* above 0"),
        (MIMIC, {"window": 0}, "window is 0, expected an integer of at least 1"),
        (BOA, {"max_parents": -1}, "max_parents is -1, expected an integer of at least 0"),
        (BOA, {"selection": 2}, "selection is 2, expected .* of at most 1"),
    ],
)
def test_bad_settings(kind: type[Search], settings: dict[str, Any], match: str) -> None:
    with pytest.raises((TypeError, ValueError), match=match):
        kind(Space.binary(4), **settings)


def test_spaces_that_are_too_large(kind: type[Search]) -> None:
    with pytest.raises(ValueError, match=r"space has .*(1025|1049600) values.* at most"):
        kind(Space([Categorical(range(1025))] * 1024))


# One variable at a time -------------------------------------------------------------------------


def test_umda_takes_the_frequencies_of_the_best_half() -> None:
    x = np.zeros((10, 10), dtype=int)
    x[:5, 1] = x[:2, 2] = x[5:, 3] = x[:, 4] = 1
    strategy = UMDA(Space.binary(10), seed=0, population=10)
    order = np.random.default_rng(0).permutation(10)
    tell(strategy, x[order], -np.arange(10.0)[order])
    assert_chances(strategy, [0.1, 0.9, 0.4, 0.1, 0.9, *[0.1] * 5])
    strategy = UMDA(Space.binary(10), seed=0, population=10, selection=0.2, margins=False)
    tell(strategy, x[order], -np.arange(10.0)[order])
    assert frequencies(strategy).tolist() == [0, 1, 1, 0, 1, 0, 0, 0, 0, 0]


def test_margins_of_several_values() -> None:
    """Five variables can change: no chance below 1/(5 (d - 1)), and the others in proportion."""
    space = Space([*[Categorical(range(4))] * 5, Categorical([3])])
    strategy = UMDA(space, seed=0, population=8, selection=0.5)
    x = np.array([[0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 1, 0, 2, 0, 0], [0, 1, 1, 3, 0, 0]])
    tell(strategy, np.concatenate([x, x]), [1.0] * 4 + [0.0] * 4)
    asked = ask(strategy, 20_000)
    low, spare = 1 / 15, 1 - 4 / 15
    share = (0.75 - low) / (1 - 2 * low)
    for i, law in (
        (0, [low + spare, low, low, low]),
        (1, [low + spare / 2, low + spare / 2, low, low]),
        (2, [low + share * spare, low + (1 - share) * spare, low, low]),
        (3, [0.25] * 4),
    ):
        counts = np.bincount(asked[:, i], minlength=4)
        assert stats.chisquare(counts, np.array(law) * 20_000).pvalue > 0.001
    assert (asked[:, 5] == 0).all()


def test_pbil_step() -> None:
    """Towards the best by .1; by .075 more where best and worst differ."""
    x = np.random.default_rng(0).integers(0, 2, (32, 4))
    x[7], x[20] = [1, 0, 1, 0], [1, 0, 0, 1]
    values = np.arange(32.0)
    values[7], values[20] = 99, -99
    strategy = PBIL(Space.binary(4), seed=0, mutation=0)
    tell(strategy, x, values)
    both = 0.925 * 0.55 + 0.075
    assert_chances(strategy, [0.55, 0.45, both, 1 - both])


def test_pbil_mutation() -> None:
    """At rates of 1 the chances are the best point, and a half of the variables a random one."""
    strategy = PBIL(Space.binary(4000), seed=0, population=2, rate=1, mutation=0.5, shift=0.25)
    tell(strategy, [[1] * 4000, [1] * 4000], [1.0, 0.0])
    sure = frequencies(strategy, 100)
    # A half are not mutated, a quarter are towards 1; the rest have 1 with chance .75.
    assert stats.binomtest(int((sure < 1).sum()), 4000, 0.25).pvalue > 0.001
    assert abs(sure[sure < 1].mean() - 0.75) < 0.01


def test_pbil_of_several_values() -> None:
    strategy = PBIL(Space.categorical(2, 4), seed=0, population=2, mutation=0)
    tell(strategy, [[3, 1], [3, 2]], [1.0, 0.0])
    asked = ask(strategy, 20_000)
    for i, (best, chance) in enumerate([(3, 0.325), (1, 0.925 * 0.325 + 0.075)]):
        law = np.full(4, (1 - chance) / 3)
        law[best] = chance
        counts = np.bincount(asked[:, i], minlength=4)
        assert stats.chisquare(counts, law * 20_000).pvalue > 0.001


def test_cga_step() -> None:
    strategy = CGA(Space.binary(4), seed=0, size=5, margins=False)
    a, b = [1, 1, 0, 0], [1, 0, 1, 0]
    tell(strategy, [a, b], [1.0, 1.0])  # equal
    assert_chances(strategy, 0.5)
    tell(strategy, [a, b], [2.0, 1.0])
    assert_chances(strategy, [0.5, 0.7, 0.3, 0.5])
    tell(strategy, [b, a], [-np.inf, 1.0])
    assert_chances(strategy, [0.5, 0.9, 0.1, 0.5])
    tell(strategy, [a, b], [2.0, 1.0])
    assert frequencies(strategy)[1:3].tolist() == [1, 0]
    with_margins = CGA(Space.binary(10), seed=0, size=2)
    tell(with_margins, [[1] * 10, [0] * 10] * 3, [1.0, 0.0] * 3)
    assert_chances(with_margins, 0.9)


# Networks ---------------------------------------------------------------------------------------


def test_draw_follows_the_rows() -> None:
    """Chances given the parents are the frequencies of the rows; parents no row has are ignored."""
    cases = {(0, 0): [0, 1, 2], (0, 1): [2, 1, 0], (1, 0): [1, 0, 2]}
    rows = np.array(
        [(a, b, c) for (a, b), law in cases.items() for c in range(3) for _ in range(law[c])],
        dtype=np.int32,
    )
    a, b, c = draw(rows, [1, 0, 2], [[], [], [1, 0]], 12_000, np.random.default_rng(0)).T
    assert (
        stats.chisquare(np.bincount(2 * a + b), np.array([4, 2, 2, 1]) / 9 * 12_000).pvalue > 1e-3
    )
    for parents, law in (cases | {(1, 1): [3, 2, 4]}).items():
        counts = np.bincount(c[(a == parents[0]) & (b == parents[1])], minlength=3)
        seen = np.array(law) > 0
        assert not counts[~seen].any()
        expected = np.array(law)[seen] / sum(law) * counts.sum()
        assert stats.chisquare(counts[seen], expected).pvalue > 0.001


@pytest.mark.parametrize("values", [2, 3])
def test_mimic_finds_a_planted_chain(values: int) -> None:
    """Points of a Markov chain in a hidden order, whose first variable is the surest."""
    rng = np.random.default_rng(values)
    hidden = rng.permutation(15)
    rows = np.zeros((3000, 15), dtype=np.int32)
    rows[:, hidden[0]] = rng.random(3000) < 0.1
    for k in range(1, 15):
        change = rng.random(3000) < 0.12
        step = rng.integers(1, values, 3000)
        rows[:, hidden[k]] = (rows[:, hidden[k - 1]] + change * step) % values
    assert learn_chain(rows, np.full(15, values)) == hidden.tolist()
    strategy = MIMIC(Space.categorical(15, values), seed=0, population=6000)
    tell(strategy, np.concatenate([rows, rng.permuted(rows, axis=1)]), [1.0] * 3000 + [0.0] * 3000)
    assert strategy.chain == hidden.tolist()
    asked = ask(strategy, 3000)  # and neighbours agree in the candidates as in the rows
    agree = (asked[:, hidden[1:]] == asked[:, hidden[:-1]]).mean()
    assert abs(agree - 0.88) < 0.01


def test_mimic_replacement() -> None:
    """With all members met, a better point takes the place of the nearest, whatever that is."""
    strategy = MIMIC(Space.binary(8), seed=0, population=4, selection=1, window=200)
    members = np.repeat(np.eye(4, dtype=int), 2, axis=1)
    tell(strategy, members, [5.0, 6.0, 7.0, 8.0])
    near = members[2].copy()
    near[0] = 1
    far = 1 - members[3]
    equal = members[1].copy()
    equal[0] = 1
    tell(strategy, [near, equal], [7.5, 6.0])  # the second is not better
    assert strategy._points.tolist() == [*members[:2].tolist(), near.tolist(), members[3].tolist()]
    assert strategy._values.tolist() == [5.0, 6.0, 7.5, 8.0]
    tell(strategy, [near, far], [7.2, 0.0])
    assert strategy._values.tolist() == [5.0, 6.0, 7.5, 8.0]


def test_boa_replacement() -> None:
    """The worst half goes, even for worse points; the network is of the best half."""
    strategy = BOA(Space.binary(4), seed=0, population=4)
    tell(strategy, np.eye(4, dtype=int), [1.0, 4.0, 2.0, 3.0])
    tell(strategy, [[1, 1, 1, 1], [0, 0, 0, 0]], [0.5, 3.5])
    assert sorted(strategy._values.tolist()) == [0.5, 3.0, 3.5, 4.0]
    asked = {tuple(x) for x in ask(strategy, 200).tolist()}
    assert asked == {(0, 1, 0, 0), (0, 0, 0, 0)}


def bic(rows: NDArray[np.int32], cards: NDArray[np.int64], child: int, parents: list[int]) -> float:
    """From the definition: log-likelihood less ln(rows)/2 for every free parameter."""
    score = -np.log(len(rows)) / 2 * (cards[child] - 1) * np.prod(cards[parents])
    for case in np.unique(rows[:, parents], axis=0):
        counts = np.bincount(rows[(rows[:, parents] == case).all(axis=1), child])
        score += stats.entropy(counts) * -counts.sum()
    return float(score)


def creates_cycle(parents: list[list[int]], child: int, parent: int) -> bool:
    above = [parent]
    while above:
        if (node := above.pop()) == child:
            return True
        above += parents[node]
    return False


@pytest.mark.parametrize("max_parents", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_network_is_the_greedy_one(seed: int, max_parents: int) -> None:
    """Edge for edge what scoring every network anew gives, ties aside, for 2 to 4 values."""
    rng = np.random.default_rng(seed)
    cards = np.array([2, 3, 2, 4, 2, 2, 1, 3])
    rows = rng.integers(0, cards, (150, 8)).astype(np.int32)
    for i in range(1, 8):  # each follows some earlier ones
        follows = rows[:, rng.integers(0, i, 2)].sum(axis=1) % cards[i]
        rows[:, i] = np.where(rng.random(150) < 0.75, follows, rows[:, i])
    found = learn_network(rows, cards, max_parents)
    parents: list[list[int]] = [[] for _ in cards]

    @functools.cache
    def worth(child: int, *above: int) -> float:
        return bic(rows, cards, child, [*above])

    while True:
        gains = {
            (child, parent): worth(child, *parents[child], parent) - worth(child, *parents[child])
            for child in range(8)
            for parent in range(8)
            if parent not in parents[child]
            and len(parents[child]) < max_parents
            and not creates_cycle(parents, child, parent)
        }
        best = max(gains.values())
        if best <= 1e-9:
            break
        # Which of equal edges comes first is not said; take the one that was found.
        equal = [edge for edge, gain in gains.items() if gain > best - 1e-9]
        child, parent = next(((c, p) for c, p in equal if p in found[c]), equal[0])
        parents[child].append(parent)
    assert [sorted(p) for p in found] == [sorted(p) for p in parents]
    assert sum(map(len, found)) >= 4


def test_boa_recovers_a_planted_network() -> None:
    """A tree and a triangle, in a hidden order; without directions, which are not identifiable.

    The edges weaken away from the roots: else a greedy search can grow towards itself, give a
    variable two parents that the truth has not, and need an edge between them. All edges must be
    found. Of the pairs that have none, BIC takes one where a chi-square variable is above ln(rows):
    no more than that may be too many, at .001.
    """
    edges = {(0, 1): 0.9, (1, 2): 0.8, (1, 3): 0.7, (3, 4): 0.6, (0, 5): 0.5}
    edges |= {(6, 7): 0.9, (7, 8): 0.5, (6, 8): 0.4, (8, 9): 0.3}
    cards = np.where(np.arange(12) == 3, 3, 2)  # 10 and 11 are independent of all
    extra = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, cards, (2000, 12)).astype(np.int32)
        for (parent, child), strength in edges.items():
            copied = rng.random(2000) < strength
            rows[copied, child] = rows[copied, parent] % cards[child]
        hidden = rng.permutation(12)
        found = learn_network(rows[:, hidden], cards[hidden], 4)
        pairs = [(hidden[p], hidden[c]) for c, parents in enumerate(found) for p in parents]
        skeleton = {(min(pair), max(pair)) for pair in pairs}
        assert len(skeleton) == len(pairs)
        assert skeleton >= edges.keys()
        extra += len(skeleton) - len(edges)
    expected = 30 * (66 - len(edges)) * stats.chi2.sf(np.log(2000), 1)
    assert stats.poisson.sf(extra - 1, expected) > 0.001


def test_boa_without_parents_is_univariate() -> None:
    problem = problems.nk(16, 3, 0)
    strategy = BOA(problem.space, seed=0, max_parents=0)
    run(strategy, problem, 300)
    assert strategy.parents == [[]] * 16
    strategy = BOA(problem.space, seed=0)
    run(strategy, problem, 300)
    assert sum(map(len, strategy.parents)) > 0


class Scattered(problems.Problem):
    """5-traps: each block of five, scattered, leads away from its optimum, all ones."""

    def __init__(self, order: NDArray[np.intp]) -> None:
        super().__init__("scattered traps", Space.binary(len(order)))
        self.order = order

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        ones = points[:, self.order].reshape(len(points), -1, 5).sum(axis=2)
        values: NDArray[np.float64] = np.where(ones == 5, 5.0, 4.0 - ones).sum(axis=1)
        return values


@pytest.mark.slow
def test_boa_solves_traps_and_umda_does_not() -> None:
    """Ten runs of 20,000 evaluations each, scattered blocks; one-sided Mann-Whitney at .001."""
    best: dict[type[Search], list[float]] = {UMDA: [], BOA: []}
    for kind, found in best.items():
        for seed in range(10):
            block = np.random.default_rng(seed).permutation(30)
            strategy = kind(Space.binary(30), seed=seed, population=2000)  # type: ignore[call-arg]
            found.append(run(strategy, Scattered(block), 20_000).max())
    assert stats.mannwhitneyu(best[BOA], best[UMDA], alternative="greater").pvalue < 0.001
    assert np.median(best[BOA]) == 30
    assert np.median(best[UMDA]) < 27  # nothing but the false optima has 24


@pytest.mark.parametrize("reverse", [False, True])
def test_tables_are_read_with_the_parents_in_reverse(reverse: bool) -> None:
    """A child that is its first parent: read in reverse, it is the second one of the point."""
    rows = np.array([[a, b, a] for a in (0, 1) for b in (0, 1)], np.int32)
    points = draw(rows, [0, 1, 2], [[], [], [0, 1]], 200, np.random.default_rng(0), reverse)
    np.testing.assert_array_equal(points[:, 2], points[:, 1 if reverse else 0])
    assert len(np.unique(points[:, :2], axis=0)) == 4


def test_boa_reads_correctly_by_default() -> None:
    space = Space.binary(4)
    assert not BOA(space).reverse_parents
    with pytest.raises(TypeError, match="reverse_parents"):
        BOA(space, reverse_parents=1)  # type: ignore[arg-type]
