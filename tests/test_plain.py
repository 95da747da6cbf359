"""The strategies without a model: what each promises, and that all of them search."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from driving import answer, ask, step, tell
from functions import run
from numpy.typing import NDArray
from scipy import stats

from anyorder import Binary, Categorical, Integer, Space, problems
from anyorder.errors import FAILED
from anyorder.strategies import (
    RLS,
    Answer,
    FastOnePlusOneEA,
    IteratedLocalSearch,
    OnePlusOneEA,
    RandomSearch,
    Search,
    SimulatedAnnealing,
    TabuSearch,
)
from anyorder.strategies.registry import REGISTRY

PLAIN = [
    name for name in REGISTRY if REGISTRY[name].__module__.startswith("anyorder.strategies.plain")
]

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


@pytest.fixture(params=PLAIN)
def kind(request: pytest.FixtureRequest) -> type[Search]:
    kind: type[Search] = REGISTRY[request.param]
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
    with pytest.raises(ValueError, match="returned NaN"):
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


@functools.cache
def best_of_random_search(seed: int) -> float:
    problem = problems.nk(32, 2, seed)
    return float(run(RandomSearch(problem.space, seed=seed), problem, 1000).max())


@pytest.mark.parametrize("name", [name for name in PLAIN if name != "random"])
def test_it_beats_random_search(name: str) -> None:
    """On every one of three instances after 1,000 evaluations."""
    settings: dict[str, Any] = {"budget": 1000} if name == "annealing" else {}
    for seed in range(3):
        problem = problems.nk(32, 2, seed)
        found = run(REGISTRY[name](problem.space, seed=seed, **settings), problem, 1000).max()
        assert found > best_of_random_search(seed)


# Random search ----------------------------------------------------------------------------------


def test_random_search_is_uniform() -> None:
    x = ask(RandomSearch(Space([Binary(), Categorical([0, 1, 2]), Integer(0, 1)]), seed=0), 6000)
    counts = np.bincount(np.ravel_multi_index(tuple(x.T), (2, 3, 2)), minlength=12)
    assert stats.chisquare(counts).pvalue > 0.001


# One parent -------------------------------------------------------------------------------------


def until_solved(strategy: Search, problem: problems.OneMax, budget: int) -> list[float]:
    """The values of a run that ends at the optimum."""
    values: list[float] = []
    while not values or values[-1] < len(strategy.space):
        values.append(step(strategy, problem)[1])
        assert len(values) <= budget
    return values


def test_rls_solves_onemax_in_the_expected_time() -> None:
    """From k zeros the mean is n (1 + 1/2 + ... + 1/k), about n ln n; three standard errors."""
    n, runs, problem = 20, 40, problems.onemax(20)
    excess = np.empty(runs)
    for seed in range(runs):
        values = until_solved(RLS(Space.binary(n), seed=seed), problem, 300)
        excess[seed] = len(values) - 1 - n * (1 / np.arange(1, n - values[0] + 1)).sum()
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
    # The expected time is about e n ln n = 120: 1,200 would be missed once in some 1e8 runs.
    for seed in range(5):
        until_solved(OnePlusOneEA(Space.binary(16), seed=seed), problems.onemax(16), 1200)


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
