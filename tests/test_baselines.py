"""The strategies without a model: what each promises, and that all of them search."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driving import answer, ask, step, tell
from numpy.typing import NDArray
from scipy import stats

from anyorder import Binary, Categorical, Integer, Space, problems
from anyorder.baselines import registry, run
from anyorder.errors import FAILED
from anyorder.strategies import (
    RLS,
    Answer,
    FastOnePlusOneEA,
    HillClimber,
    IteratedLocalSearch,
    OnePlusOneEA,
    RandomSearch,
    Search,
    SimulatedAnnealing,
    TabuSearch,
)

NAMED = Space(
    {
        "flag": Binary(),
        "fixed": Categorical(["only"]),
        "color": Categorical(["red", "green", "blue"]),
        "depth": Integer(3, 8),
    }
)
MIXED = Space([Integer(5, 9), Binary(), Categorical([7]), Categorical([40, 20, 30])])


def named_value(x: dict[str, Any]) -> float:
    return x["depth"] + 2 * (x["color"] == "blue") + x["flag"]


@pytest.fixture(params=registry)
def kind(request: pytest.FixtureRequest) -> type[Search]:
    kind: type[Search] = registry[request.param]
    return kind


# All of them ------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 37])
def test_run_spends_its_budget(kind: type[Search], budget: int) -> None:
    seen: list[float] = []

    def value(x: NDArray[np.int64]) -> float:
        seen.append(float(x @ np.arange(12)))
        return seen[-1]

    values = run(kind(Space.binary(12), seed=0), value, budget)
    assert values.dtype == np.float64
    assert values.tolist() == seen
    assert len(seen) == budget


def test_seed_decides_and_budget_does_not(kind: type[Search]) -> None:
    problem = problems.nk(20, 3, 0)
    values = run(kind(problem.space, seed=3), problem, 205)
    assert np.array_equal(run(kind(problem.space, seed=3), lambda x: problem(x), 57), values[:57])
    assert not np.array_equal(run(kind(problem.space, seed=4), problem, 205), values)


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match="space is 4, expected a Space"):
        RLS(4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="budget is 0, expected an integer of at least 1"):
        run(RLS(Space.binary(4)), problems.onemax(4), 0)
    with pytest.raises(ValueError, match="value 0 is NaN"):
        run(RLS(Space.binary(4)), lambda x: np.nan, 5)


def test_named_spaces_are_solved(kind: type[Search]) -> None:
    assert run(kind(NAMED, seed=0), named_value, 500).max() == 11


def test_every_value_is_met(kind: type[Search]) -> None:
    strategy = kind(MIXED, seed=0)
    points = []
    for _ in range(200):
        proposals = strategy.propose(3)
        answer(strategy, proposals, np.zeros(3).tolist())
        points.append(proposals.codes)
    found = [set(column.tolist()) for column in np.concatenate(points).T]
    assert found == [set(range(5)), {0, 1}, {0}, {0, 1, 2}]


def test_failures_are_worse_than_all_values(kind: type[Search]) -> None:
    """Half of the space fails, and it is where the search would be drawn to."""
    strategy, best = kind(Space.binary(6), seed=0), -np.inf
    for _ in range(60):
        proposals = strategy.propose(8)
        values = proposals.codes.sum(axis=1) - 100.0
        failed = proposals.codes[:, 0] == 1
        answers = zip(proposals.tickets, proposals.codes, values, failed, strict=True)
        strategy.learn(
            [Answer(t, x, np.nan, FAILED) if bad else Answer(t, x, v) for t, x, v, bad in answers]
        )
        best = max(best, values[~failed].max(initial=-np.inf))
    assert best == -95


def test_answers_count_one_by_one(kind: type[Search]) -> None:
    problem = problems.nk(12, 2, 0)
    together, apart = kind(problem.space, seed=2), kind(problem.space, seed=2)
    for count in (3, 40, 1, 5, 30, 2):
        proposals = together.propose(count)
        assert np.array_equal(apart.propose(count).codes, proposals.codes)
        order = np.random.default_rng(count).permutation(count)
        answer(together, proposals, problem.evaluate(proposals.codes[order]).tolist(), order)
        for i in order:
            answer(apart, proposals, [problem(proposals.codes[i])], [i])
    assert np.array_equal(ask(apart, 20), ask(together, 20))


def test_late_answers_in_any_order(kind: type[Search]) -> None:
    """Seven open at a time, one in ten never answered; random search fails in 1e-4 of runs."""
    problem = problems.onemax(6)
    strategy, rng, best = kind(problem.space, seed=0), np.random.default_rng(0), 0.0
    strategy.propose(50)  # nobody answers these
    waiting: list[Any] = []
    for _ in range(660):
        waiting += [strategy.propose(1) for _ in range(7 - len(waiting))]
        proposals = waiting.pop(int(rng.integers(7)))
        if rng.random() < 0.1:
            strategy.give_up(proposals.tickets)
        else:
            value = problem(proposals.codes[0])
            best = max(best, value)
            answer(strategy, proposals, [value])
    assert best == 6


@pytest.mark.parametrize("name", [name for name in registry if name != "random"])
def test_it_beats_random_search(name: str) -> None:
    """On every one of five instances after 1,000 evaluations."""
    settings: dict[str, Any] = {"budget": 1000} if name == "annealing" else {}
    for seed in range(5):
        problem = problems.nk(32, 2, seed)
        found = run(registry[name](problem.space, seed=seed, **settings), problem, 1000).max()
        assert found > run(RandomSearch(problem.space, seed=seed), problem, 1000).max()


# Random search ----------------------------------------------------------------------------------


def test_random_search_is_uniform() -> None:
    x = ask(RandomSearch(Space([Binary(), Categorical([0, 1, 2]), Integer(0, 1)]), seed=0), 6000)
    counts = np.bincount(np.ravel_multi_index(tuple(x.T), (2, 3, 2)), minlength=12)
    assert stats.chisquare(counts).pvalue > 0.001


# One parent -------------------------------------------------------------------------------------


def test_rls_solves_onemax_in_the_expected_time() -> None:
    """From k zeros the mean is n (1 + 1/2 + ... + 1/k), about n ln n; three standard errors."""
    n, runs, problem = 32, 40, problems.onemax(32)
    excess = np.empty(runs)
    for seed in range(runs):
        values = run(RLS(Space.binary(n), seed=seed), problem, 600)
        spent = int((values == n).argmax())
        assert values[spent] == n
        excess[seed] = spent - n * (1 / np.arange(1, n - values[0] + 1)).sum()
    assert abs(excess.mean()) < 3 * excess.std(ddof=1) / np.sqrt(runs)


def test_rls_changes_one_variable_uniformly() -> None:
    """12,000 offspring; chi-square at 0.001, fixed seed."""
    strategy = RLS(MIXED, seed=1)
    parent = np.array([1, 1, 0, 1])
    tell(strategy, [parent], [0.0])
    x = ask(strategy, 12_000)
    changed = x != parent
    assert (changed.sum(axis=1) == 1).all()
    assert not changed[:, 2].any()
    assert stats.chisquare(changed[:, [0, 1, 3]].sum(axis=0)).pvalue > 0.001
    for j, others in ((0, [0, 2, 3, 4]), (3, [0, 2])):
        assert stats.chisquare([(x[:, j] == code).sum() for code in others]).pvalue > 0.001


@pytest.mark.parametrize("beta", [1.5, 3.0])
def test_fast_mutation_follows_the_power_law(beta: float) -> None:
    """20,000 offspring of 40 variables of three values, chi-square at 0.001, fixed seed."""
    n, size = 40, 20_000
    space = Space([Categorical([5]), *[Categorical(range(3))] * n])
    strategy = FastOnePlusOneEA(space, seed=1, beta=beta)
    parent = np.array([0, *[0, 1, 2, 0] * 10])
    tell(strategy, [parent], [0.0])
    changed = (ask(strategy, size) != parent)[:, 1:]
    # The operator of the paper, given that something changes.
    strengths = np.arange(1, n // 2 + 1)
    law = stats.binom.pmf(np.arange(n + 1)[:, None], n, strengths / n) @ strengths**-beta
    law[0] = 0
    law /= law.sum()
    counts = np.bincount(changed.sum(axis=1), minlength=n + 1)
    assert counts[0] == 0
    many = int(np.argmax(size * law[1:] < 20)) + 1  # the cells from here on are one
    observed, expected = [*counts[1:many], counts[many:].sum()], [*law[1:many], law[many:].sum()]
    assert stats.chisquare(observed, size * np.array(expected)).pvalue > 0.001
    # And its point: the log probability falls by beta per log of the number of changes.
    few = np.arange(1, 11)
    slope = np.polyfit(np.log(few), np.log(counts[few]), 1)[0]
    assert abs(slope + beta) < 0.3
    assert stats.chisquare(changed.sum(axis=0)).pvalue > 0.001


@pytest.mark.parametrize("n", [1, 2, 3])
def test_fast_mutation_of_few_variables(n: int) -> None:
    strategy = FastOnePlusOneEA(Space.binary(n), seed=0)
    tell(strategy, [[0] * n], [0.0])
    # n/2 is 1 here: the standard mutation.
    assert strategy._rates.tolist() == [OnePlusOneEA(Space.binary(n), seed=0).rate]
    assert ask(strategy, 50).sum(axis=1).min() == 1


def test_one_plus_one_solves_onemax() -> None:
    # The expected time is about e n ln n = 300: 3,000 would be missed once in some 1e8 runs.
    for seed in range(5):
        assert run(OnePlusOneEA(Space.binary(32), seed=seed), problems.onemax(32), 3000).max() == 32


@pytest.mark.parametrize(("kind", "options"), [(RLS, {}), (OnePlusOneEA, {"rate": 1e-12})])
def test_the_parent(kind: type[Search], options: dict[str, Any]) -> None:
    """At a vanishing rate offspring differ from the parent in one place, so they show it."""
    problem = problems.qubo(20, 0, 0)
    strategy = kind(problem.space, seed=0, **options)
    parent, value = step(strategy, problem)
    equal = 0
    for _ in range(500):
        x, found = step(strategy, problem)
        assert (x != parent).sum() == 1
        if found >= value:
            equal += found == value
            parent, value = x, found
    assert equal > 0, "the instance never showed whether equals are accepted"


def test_one_plus_one_takes_the_last_of_the_best_of_a_batch() -> None:
    strategy = OnePlusOneEA(Space.binary(6), seed=0, rate=1e-12)
    tell(strategy, [[0] * 6, [1] * 6, [1, 0] * 3], [3.0, 5.0, 5.0])
    assert ((ask(strategy, 20) != [1, 0] * 3).sum(axis=1) == 1).all()
    tell(strategy, [[0] * 6], [4.0])
    assert ((ask(strategy, 20) != [1, 0] * 3).sum(axis=1) == 1).all()


@pytest.mark.parametrize("rate", [None, 0.3])
def test_one_plus_one_changes_are_a_truncated_binomial(rate: float | None) -> None:
    """Seven variables that can change and one that cannot; chi-square at 0.001, fixed seed."""
    space = Space([Categorical([5]), *[Categorical(range(3))] * 7])
    strategy = OnePlusOneEA(space, seed=1, rate=rate)
    parent = np.array([0, 0, 1, 2, 0, 1, 2, 0])
    tell(strategy, [parent], [0.0])
    x = ask(strategy, 20_000)
    changed = x != parent
    assert not changed[:, 0].any()
    p = 1 / 7 if rate is None else rate
    law = stats.binom.pmf(np.arange(1, 8), 7, p) / (1 - (1 - p) ** 7)
    counts = np.bincount(changed.sum(axis=1), minlength=8)
    assert counts[0] == 0
    tail = [*counts[1:5], counts[5:].sum()]
    expected = [*law[:4], law[4:].sum()]
    assert stats.chisquare(tail, np.array(expected) * 20_000).pvalue > 0.001
    # No variable is favoured (the first change is drawn separately), and no value.
    single = changed[changed.sum(axis=1) == 1][:, 1:]
    assert stats.chisquare(single.sum(axis=0)).pvalue > 0.001
    steps = ((x - parent) % 3)[:, 1:]
    assert stats.chisquare([(steps == 1).sum(), (steps == 2).sum()]).pvalue > 0.001


def test_one_plus_one_rate_of_one_changes_everything() -> None:
    strategy = OnePlusOneEA(Space.binary(6), seed=0, rate=1)
    tell(strategy, [[0, 1, 0, 1, 0, 1]], [0.0])
    assert ask(strategy, 3).tolist() == [[1, 0, 1, 0, 1, 0]] * 3


# Local search -----------------------------------------------------------------------------------


def neighbours(space: Space, codes: NDArray[np.int32]) -> set[tuple[int, ...]]:
    found = set()
    for i, values in enumerate(space.cardinalities.tolist()):
        for value in range(values):
            if value != codes[i]:
                found.add((*codes[:i].tolist(), value, *codes[i + 1 :].tolist()))
    return found


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
    with pytest.raises(ValueError, match=r"1000000000 single changes, expected at most"):
        kind(Space([Integer(0, 10**9)]))


# Copied from shared/spec/local_search.csv, QUBO of n 64: kind, evaluations, mean best.
REFERENCE = [
    ("hc", HillClimber, 0, "1k", 197.6),
    ("hc", HillClimber, 3, "1k", 418.8),
    ("ils4", IteratedLocalSearch, 0, "1k", 196.6),
    ("ils4", IteratedLocalSearch, 3, "1k", 412.1),
    ("hc", HillClimber, 0, "10k", 209.7),
    ("hc", HillClimber, 3, "10k", 441.6),
    ("ils4", IteratedLocalSearch, 0, "10k", 209.4),
    ("ils4", IteratedLocalSearch, 3, "10k", 436.6),
]
LOCAL_SEARCH = Path(__file__).parents[1].parent / "shared" / "spec" / "local_search.csv"


@pytest.mark.skipif(not LOCAL_SEARCH.is_file(), reason="shared/spec is not beside the repository")
def test_reference_is_as_published() -> None:
    with LOCAL_SEARCH.open() as file:
        rows = {(row["problem"], row["n"], row["k"]): row for row in csv.DictReader(file)}
    for column, _, kind, budget, expected in REFERENCE:
        assert float(rows["QUBO", "64", str(kind)][f"{column}_{budget}"]) == expected


@pytest.mark.parametrize(
    ("climber", "kind", "budget", "expected"),
    [
        pytest.param(*row[1:], marks=[pytest.mark.slow] if row[3] == "10k" else [])
        for row in REFERENCE
    ],
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


# Simulated annealing ----------------------------------------------------------------------------


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


# Tabu search ------------------------------------------------------------------------------------


def place(old: tuple[int, ...], new: tuple[int, ...]) -> int:
    return next(i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)


@pytest.mark.parametrize(
    ("space", "tenure"),
    [
        (Space.binary(12), None),
        (Space.binary(12), 7),
        (Space.categorical(5, 4), 3),
        (MIXED, 3),
        (Space([Integer(1, 5)]), 9),
    ],
)
def test_tabu_moves_by_its_rule(space: Space, tenure: int | None) -> None:
    """Seen from outside, against the rule written down plainly."""
    table = np.random.default_rng(0)
    strategy = TabuSearch(space, seed=0, tenure=tenure)
    length = 3 if tenure is None else tenure  # 12 // 4
    point = tuple(step(strategy, lambda x: 0.0)[0].tolist())
    record, left, worse = 0.0, list[tuple[int, int]](), 0
    barred = aspired = stuck = 0
    for move in range(1000 // int((space.cardinalities - 1).sum())):
        seen: dict[tuple[int, ...], float] = {}
        for _ in range(int((space.cardinalities - 1).sum())):
            # Heights with ties; they rise, so that there are records to the end.
            value = float(table.integers(0, 12)) + move // 3
            x, _ = step(strategy, lambda x, value=value: value)
            seen[tuple(x.tolist())] = value
        assert set(seen) == neighbours(space, np.array(point))

        # Moves since its variable left the value that a neighbour gives back; many if never.
        age = {}
        for key in seen:
            i = place(point, key)
            age[key] = left[::-1].index((i, key[i])) if (i, key[i]) in left else 10**9
        free = [key for key in seen if age[key] >= length or seen[key] > record]
        stuck += not free
        if not free:
            free = [key for key in seen if age[key] == max(age.values())]
        new = max(free, key=seen.__getitem__)  # the first of equals
        aspired += age[new] < length and seen[new] > record
        barred += max(seen.values()) > seen[new]
        worse += seen[new] < record
        left.append((place(point, new), point[place(point, new)]))
        point, record = new, max(record, seen[new])
    assert worse > 5
    assert barred > 0 or len(space) == 1
    assert aspired > 0
    assert stuck > 0 or len(space) > 1


def test_tabu_moves_to_a_better_stranger_at_once() -> None:
    strategy = TabuSearch(Space.binary(8), seed=0)
    tell(strategy, [[0] * 8], [3.0])
    assert (ask(strategy, 5).sum(axis=1) == 1).all()
    tell(strategy, [[1] * 8], [3.0])  # equal: stays
    assert (ask(strategy, 3).sum(axis=1) == 1).all()
    tell(strategy, [[1] * 8], [4.0])
    assert (ask(strategy, 8).sum(axis=1) == 7).all()
    assert strategy.generation == 2


def test_tabu_neighbours_are_known_by_their_tickets() -> None:
    """Late neighbours of the last point do not count, nor do those that were given up."""
    strategy = TabuSearch(Space.binary(4), seed=0)
    tell(strategy, [[0] * 4], [9.0])
    first = strategy.propose(4)
    answer(strategy, first, [1.0, 2.0], [0, 1])
    strategy.give_up(first.tickets[2:3])
    answer(strategy, first, [7.0], [2])  # given up
    second = strategy.propose(4)
    assert ((second.codes != first.codes[1]).sum(axis=1) == 1).all()  # to the better of two
    answer(strategy, first, [8.0], [3])  # late
    answer(strategy, second, [1.0, 3.0, 2.0, 0.0])
    third = strategy.propose(4)
    best = 1 if (second.codes[1] != 0).any() else 2  # back to the start is tabu
    assert ((third.codes != second.codes[best]).sum(axis=1) == 1).all()


@pytest.mark.parametrize(("n", "expected"), [(1, 1), (5, 1), (64, 16), (500, 20)])
def test_tabu_default_tenure(n: int, expected: int) -> None:
    assert TabuSearch(Space([Categorical([3]), *[Binary()] * n])).tenure == expected


# Settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (OnePlusOneEA, {"rate": 0}, "rate is 0, expected .* above 0 and of at most 1"),
        (OnePlusOneEA, {"rate": 1.5}, r"rate is 1\.5, expected"),
        (OnePlusOneEA, {"rate": np.nan}, "rate is nan, expected"),
        (OnePlusOneEA, {"rate": "fast"}, "rate is 'fast', expected a finite number"),
        (FastOnePlusOneEA, {"beta": 1}, "beta is 1, expected .* above 1"),
        (FastOnePlusOneEA, {"beta": np.inf}, "beta is inf, expected"),
        (FastOnePlusOneEA, {"beta": None}, "beta is None, expected"),
        (IteratedLocalSearch, {"kick": 0}, "kick is 0, expected an integer of at least 1"),
        (IteratedLocalSearch, {"kick": 2.0}, r"kick is 2\.0, expected an integer"),
        (SimulatedAnnealing, {"budget": 0}, "budget is 0, expected an integer of at least 1"),
        (SimulatedAnnealing, {"budget": 1e4}, r"budget is 10000\.0, expected an integer"),
        (SimulatedAnnealing, {"sample": 1}, "sample is 1, expected an integer of at least 2"),
        (SimulatedAnnealing, {"hot": 0}, "hot is 0, expected .* above 0"),
        (SimulatedAnnealing, {"hot": 2, "cold": 3}, "cold is 3, expected .* of at most 2"),
        (SimulatedAnnealing, {"cold": "low"}, "cold is 'low', expected a finite number"),
        (TabuSearch, {"tenure": 0}, "tenure is 0, expected an integer of at least 1"),
        (TabuSearch, {"tenure": "9"}, "tenure is '9', expected an integer"),
    ],
)
def test_bad_settings(kind: type[Search], settings: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        kind(Space.binary(4), **settings)
