from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from anyorder import Binary, Categorical, Integer, Space, problems
from anyorder.baselines import Baseline, HillClimber, OnePlusOneEA, RandomSearch, run

ALL = [RandomSearch, OnePlusOneEA, HillClimber]
NAMED = Space(
    {
        "flag": Binary(),
        "fixed": Categorical(["only"]),
        "color": Categorical(["red", "green", "blue"]),
        "depth": Integer(3, 8),
    }
)
NAMELESS = Space([Integer(5, 9), Binary(), Categorical([7]), Categorical([40, 20, 30])])


def named_value(x: dict[str, Any]) -> float:
    return x["depth"] + 2 * (x["color"] == "blue") + x["flag"]


def nameless_value(x: NDArray[np.int64]) -> float:
    return float(x.sum())


@pytest.fixture(params=ALL)
def kind(request: pytest.FixtureRequest) -> type[Baseline]:
    kind: type[Baseline] = request.param
    return kind


# All of them ------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 9, 37])
def test_budget_is_counted(kind: type[Baseline], budget: int) -> None:
    seen = []

    def count(x: NDArray[np.int64]) -> float:
        seen.append(float(x @ np.arange(12)))
        return seen[-1]

    values = run(kind(Space.binary(12), seed=0), count, budget)
    assert values.dtype == np.float64
    assert len(seen) == budget
    assert values.tolist() == seen


def test_problem_and_function_give_the_same_run(kind: type[Baseline]) -> None:
    problem = problems.nk(20, 3, 0)
    as_problem = run(kind(problem.space, seed=3), problem, 300)
    as_function = run(kind(problem.space, seed=3), lambda x: problem(x), 300)
    assert np.array_equal(as_problem, as_function)


def test_seed_decides_and_budget_does_not(kind: type[Baseline]) -> None:
    problem = problems.nk(20, 3, 0)
    values = run(kind(problem.space, seed=3), problem, 205)
    assert np.array_equal(run(kind(problem.space, seed=3), problem, 57), values[:57])
    assert not np.array_equal(run(kind(problem.space, seed=4), problem, 205), values)
    assert not np.array_equal(run(kind(problem.space), problem, 205), values)


def test_best_is_the_first_of_the_best(kind: type[Baseline]) -> None:
    problem = problems.onemax(10)
    algorithm = kind(problem.space, seed=0)
    assert algorithm.best is None
    assert algorithm.best_value == -np.inf
    told: list[tuple[float, list[int]]] = []
    for _ in range(60):
        x = algorithm.ask()
        values = problem.evaluate(x)
        algorithm.tell(x, values)
        told += zip(values.tolist(), x.tolist(), strict=True)
        top = max(value for value, _ in told)
        assert algorithm.best_value == top
        assert algorithm.best.tolist() == next(point for value, point in told if value == top)
    assert isinstance(algorithm.best_value, float)


def test_ask_gives_as_many_as_asked(kind: type[Baseline]) -> None:
    algorithm = kind(NAMELESS, seed=0)
    default = 10 if kind is RandomSearch else 1
    for n, expected in ((None, default), (1, 1), (4, 4), (25, 25)):
        x = algorithm.ask(n)
        assert x.shape == (expected, 4)
        assert x.dtype == np.int64
        algorithm.tell(x, [nameless_value(p) for p in x])


def test_named_spaces_work(kind: type[Baseline]) -> None:
    algorithm = kind(NAMED, seed=0)
    values = run(algorithm, named_value, 500)
    assert values.max() == 11 == algorithm.best_value
    assert algorithm.best == {"flag": True, "fixed": "only", "color": "blue", "depth": 8}
    assert len(algorithm.ask(7)) == 7


def test_nameless_spaces_of_other_values_work(kind: type[Baseline]) -> None:
    algorithm = kind(NAMELESS, seed=0)
    assert run(algorithm, nameless_value, 500).max() == 9 + 1 + 7 + 40
    assert algorithm.best.tolist() == [9, 1, 7, 40]


def test_every_value_is_met(kind: type[Baseline]) -> None:
    algorithm = kind(NAMELESS, seed=0)
    seen: list[set[int]] = [set() for _ in range(4)]
    for _ in range(200):
        x = algorithm.ask(3)
        for j in range(4):
            seen[j].update(x[:, j].tolist())
        algorithm.tell(x, np.zeros(3))
    assert seen == [{5, 6, 7, 8, 9}, {0, 1}, {7}, {20, 30, 40}]


def test_space_of_one_point(kind: type[Baseline]) -> None:
    algorithm = kind(Space([Categorical([4]), Integer(2, 2)]), seed=0)
    assert run(algorithm, nameless_value, 30).tolist() == [6.0] * 30
    assert algorithm.best.tolist() == [4, 2]


def test_tell_takes_subsets_and_strangers(kind: type[Baseline]) -> None:
    problem = problems.onemax(8)
    algorithm = kind(problem.space, seed=0)
    for _ in range(30):
        x = algorithm.ask(6)[[4, 1]]
        algorithm.tell(x, problem.evaluate(x))
    algorithm.tell([[1] * 8], [8])
    assert algorithm.best_value == 8
    algorithm.tell(np.empty((0, 8), dtype=np.int64), [])
    assert algorithm.best.tolist() == [1] * 8
    run(algorithm, problem, 50)


def test_infinite_values(kind: type[Baseline]) -> None:
    algorithm = kind(Space.binary(6), seed=0)
    assert run(algorithm, lambda x: -np.inf, 100).tolist() == [-np.inf] * 100
    assert algorithm.best_value == -np.inf
    assert algorithm.best is not None
    run(algorithm, lambda x: float(x.sum()) if x[0] else -np.inf, 400)
    assert algorithm.best_value == 6


def test_bad_input_leaves_everything_as_it_was(kind: type[Baseline]) -> None:
    problem = problems.nk(12, 2, 0)
    algorithm, untouched = kind(problem.space, seed=1), kind(problem.space, seed=1)
    for a in (algorithm, untouched):
        run(a, problem, 20)
    x = algorithm.ask(2)
    assert np.array_equal(untouched.ask(2), x)
    for values, error, match in (
        ([1.0], ValueError, "1 values, expected 2"),
        (1.0, ValueError, "1 values, expected 2"),
        ([9.0, np.nan], ValueError, "value 1 is NaN"),
        (["9", "9"], TypeError, "expected a number"),
        ([None, 9.0], ValueError, "value 0 is NaN or None"),
        ([1j, 2], TypeError, "expected a number"),
    ):
        with pytest.raises(error, match=match):
            algorithm.tell(x, values)  # type: ignore[arg-type]
    for wrong in (x + 2, x[:, 1:], x + 0.5):
        with pytest.raises((ValueError, TypeError)):
            algorithm.tell(wrong, [9.0, 9.0])
    assert algorithm.best_value == untouched.best_value
    assert np.array_equal(run(algorithm, problem, 50), run(untouched, problem, 50))


def test_bad_arguments(kind: type[Baseline]) -> None:
    space = Space.binary(4)
    with pytest.raises(TypeError, match="space is 4, expected a Space"):
        kind(4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n is 0, expected an integer of at least 1"):
        kind(space).ask(0)
    with pytest.raises(TypeError, match=r"n is 2\.5"):
        kind(space).ask(2.5)  # type: ignore[arg-type]
    for budget, error in ((0, ValueError), (-3, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="budget is"):
            run(kind(space), problems.onemax(4), budget)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="value 0 is NaN"):
        run(kind(space), lambda x: np.nan, 5)
    with pytest.raises((TypeError, ValueError)):
        kind(space, seed=-1)


# Random search ----------------------------------------------------------------------------------


def test_random_search_is_uniform() -> None:
    space = Space([Binary(), Categorical([0, 1, 2]), Integer(0, 1)])
    x = RandomSearch(space, seed=0).ask(6000)
    counts = np.bincount(np.ravel_multi_index(tuple(x.T), (2, 3, 2)), minlength=12)
    assert stats.chisquare(counts).pvalue > 0.001


# (1+1) EA ---------------------------------------------------------------------------------------


def test_one_plus_one_solves_onemax() -> None:
    # The expected time is about e n ln n = 300: 3,000 would be missed once in some 1e8 runs.
    for seed in range(10):
        assert run(OnePlusOneEA(Space.binary(32), seed=seed), problems.onemax(32), 3000).max() == 32


def test_one_plus_one_parent() -> None:
    """At a vanishing rate offspring differ from the parent in one place, so they show it."""
    problem = problems.qubo(20, 0, 0)
    algorithm = OnePlusOneEA(problem.space, seed=0, rate=1e-12)
    parent = algorithm.ask()[0]
    value = problem(parent)
    algorithm.tell([parent], [value])
    equal = 0
    for _ in range(500):
        (x,) = algorithm.ask()
        assert (x != parent).sum() == 1
        algorithm.tell([x], [problem(x)])
        if problem(x) >= value:
            equal += problem(x) == value
            parent, value = x, problem(x)
        assert algorithm.best_value == value
    assert equal > 0, "the instance never showed whether equals are accepted"


def test_one_plus_one_takes_the_last_of_the_best_of_a_batch() -> None:
    algorithm = OnePlusOneEA(Space.binary(6), seed=0, rate=1e-12)
    algorithm.tell([[0] * 6, [1] * 6, [1, 0] * 3], [3.0, 5.0, 5.0])
    assert ((algorithm.ask(20) != [1, 0] * 3).sum(axis=1) == 1).all()
    algorithm.tell([[0] * 6], [4.0])
    assert ((algorithm.ask(20) != [1, 0] * 3).sum(axis=1) == 1).all()


@pytest.mark.parametrize("rate", [None, 0.3])
def test_one_plus_one_changes_are_a_truncated_binomial(rate: float | None) -> None:
    # Seven variables that can change and one that cannot; chi-square at 0.001, fixed seed.
    space = Space([Categorical([5]), *[Categorical(range(3))] * 7])
    algorithm = OnePlusOneEA(space, seed=1, rate=rate)
    parent = np.array([5, 0, 1, 2, 0, 1, 2, 0])
    algorithm.tell([parent], [0.0])
    x = algorithm.ask(20_000)
    changed = x != parent
    assert not changed[:, 0].any()
    p = 1 / 7 if rate is None else rate
    law = stats.binom.pmf(np.arange(1, 8), 7, p) / (1 - (1 - p) ** 7)
    counts = np.bincount(changed.sum(axis=1), minlength=8)
    assert counts[0] == 0
    tail = [*counts[1:5], counts[5:].sum()]
    expected = [*law[:4], law[4:].sum()]
    assert stats.chisquare(tail, np.array(expected) * 20_000).pvalue > 0.001
    # No variable is favoured (the first change is drawn apart), no value either.
    single = changed[changed.sum(axis=1) == 1][:, 1:]
    assert stats.chisquare(single.sum(axis=0)).pvalue > 0.001
    steps = ((x - parent) % 3)[:, 1:]
    assert stats.chisquare([(steps == 1).sum(), (steps == 2).sum()]).pvalue > 0.001


def test_one_plus_one_rate_of_one_changes_everything() -> None:
    algorithm = OnePlusOneEA(Space.binary(6), seed=0, rate=1)
    algorithm.tell([[0, 1, 0, 1, 0, 1]], [0.0])
    assert algorithm.ask(3).tolist() == [[1, 0, 1, 0, 1, 0]] * 3


@pytest.mark.parametrize("rate", [0, -0.1, 1.5, np.nan, "fast"])
def test_one_plus_one_bad_rate(rate: Any) -> None:
    with pytest.raises(ValueError, match=r"rate is .*, expected a number above 0"):
        OnePlusOneEA(Space.binary(4), rate=rate)


# Hill climbing ----------------------------------------------------------------------------------


def neighbours(space: Space, codes: NDArray[np.int32]) -> set[tuple[int, ...]]:
    found = set()
    for i, values in enumerate(space.cardinalities.tolist()):
        for value in range(values):
            if value != codes[i]:
                found.add((*codes[:i].tolist(), value, *codes[i + 1 :].tolist()))
    return found


@pytest.mark.parametrize(
    "space", [Space.binary(10), Space.categorical(5, 4), NAMELESS, Space([Integer(1, 9)])]
)
def test_hill_climber_climbs(space: Space) -> None:
    """Seen from outside: no neighbour twice, no restart with one untried, no move to an equal."""
    table = np.random.default_rng(0)
    height: dict[tuple[int, ...], float] = {}
    algorithm = HillClimber(space, seed=0)
    point, value, left = np.empty(0, dtype=np.int32), -np.inf, set[tuple[int, ...]]()
    climbs = 0
    for _ in range(1500):
        (x,) = algorithm.ask()
        codes = space.encode([x])[0]
        key = tuple(codes.tolist())
        # Heights with ties, so that accepting an equal one would show.
        v = height.setdefault(key, float(table.integers(0, 12)))
        start = not left
        if not start:
            assert key in left
            left.remove(key)
        algorithm.tell([x], [v])
        if start or v > value:
            before = tuple(point.tolist())
            point, value = codes, v
            left = neighbours(space, point)
            if not start:
                left.remove(before)
            climbs += start
    assert climbs > 15


def test_hill_climber_solves_onemax_in_one_round() -> None:
    # A start and each bit once: going round the order, nothing is tried in vain twice.
    for seed in range(5):
        values = run(HillClimber(Space.binary(40), seed=seed), problems.onemax(40), 41)
        assert values.max() == 40


def test_hill_climber_order_is_random() -> None:
    first = []
    for seed in range(400):
        algorithm = HillClimber(Space.binary(8), seed=seed)
        algorithm.tell([[0] * 8], [0.0])
        first.append(int(algorithm.ask()[0].argmax()))
    assert stats.chisquare(np.bincount(first, minlength=8)).pvalue > 0.001


def test_hill_climber_batches() -> None:
    algorithm = HillClimber(Space.binary(6), seed=0)
    algorithm.tell([[0] * 6], [0.0])
    x = algorithm.ask(4)
    rest = algorithm.ask(5)
    asked = np.concatenate([x, rest[:2]])
    assert sorted(map(tuple, asked.tolist())) == sorted(map(tuple, np.eye(6, dtype=int).tolist()))
    # Three starts came with the last two neighbours: a better neighbour told later still wins.
    algorithm.tell(rest, [-1.0, -1.0, -7.0, -8.0, -9.0])
    assert ((algorithm.ask(3) != rest[2]).sum(axis=1) == 1).all()
    algorithm.tell(x[:1], [2.0])
    assert ((algorithm.ask(3) != x[0]).sum(axis=1) == 1).all()


def test_hill_climber_too_many_changes() -> None:
    with pytest.raises(ValueError, match=r"1000000000 single changes, expected at most"):
        HillClimber(Space([Integer(0, 10**9)]))


@pytest.mark.parametrize(("kind", "expected"), [(0, 197.6), (3, 418.8)])
def test_hill_climber_reproduces_the_reference(kind: int, expected: float) -> None:
    """Mean best after 1,000 evaluations on the ten published instances of n 64.

    The reference is the mean of 50 runs of another implementation, ours of 20; tolerance three
    standard errors of the difference, from the spread between runs of one instance.
    """
    best = np.empty((10, 2))
    for seed in range(10):
        problem = problems.qubo(64, kind, seed)
        for repeat in range(2):
            climber = HillClimber(problem.space, seed=10 * seed + repeat)
            best[seed, repeat] = run(climber, problem, 1000).max()
    variance = best.var(axis=1, ddof=1).mean()
    assert abs(best.mean() - expected) < 3 * np.sqrt(variance / 20 + variance / 50)
