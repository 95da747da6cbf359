"""Statistics of campaigns, against SciPy and by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pytest
from conftest import refused
from scipy import stats as scipy_stats

from anyorder.bench import stats
from anyorder.bench.results import Cell, Results

RNG = np.random.default_rng(0)


def cell(grid: Sequence[int], curves: Sequence[Sequence[float]]) -> Cell:
    runs = np.arange(len(curves))
    at = np.array(grid, np.int64)
    return Cell(at, np.array(curves, float), runs, runs, np.ones(len(curves)))


def results(
    cells: dict[tuple[str, str], Cell],
    name: str = "small",
    failed: Mapping[tuple[str, str], Mapping[str, int]] = MappingProxyType({}),
) -> Results:
    """The cells with their labels in the order they are met."""
    rows, columns = (tuple(dict.fromkeys(key[k] for key in [*cells, *failed])) for k in (0, 1))
    return Results(name, columns, rows, cells, failed)


def ends(values: dict[str, dict[str, Sequence[float]]]) -> Results:
    """Results of which only the ends are known: by distribution and algorithm."""
    return results(
        {(d, a): cell([100], [[v] for v in x]) for d, row in values.items() for a, x in row.items()}
    )


def test_summary_by_hand():
    found = stats.summary([1.0, 2, 3, 6])
    assert found[:3] == (4, 3.0, pytest.approx(math.sqrt(14 / 3)))
    assert found.error == pytest.approx(found.sd / 2)
    assert 1 <= found.low < 3 < found.high <= 6
    alone = stats.summary([5.0])
    assert alone[:2] == (1, 5.0)
    assert np.isnan(alone[2:]).all()
    assert stats.summary([2.0, 2, 2])[1:] == (2.0, 0.0, 0.0, 2.0, 2.0)


def test_mean_does_not_depend_on_the_order():
    x = RNG.normal(size=99) * 10.0 ** RNG.integers(-8, 8, 99)
    assert len({stats.mean(RNG.permutation(x)) for _ in range(20)}) == 1
    assert stats.mean([1.0, -math.inf]) == -math.inf


def test_interval_by_the_definition():
    """The formula of Efron's paper, from resamples drawn here."""
    x = np.random.default_rng(0).exponential(size=25)
    drawn = np.random.default_rng(1).choice(x, (20_000, 25)).mean(axis=1)
    bias = scipy_stats.norm.ppf((drawn < x.mean()).mean())
    off = x - x.mean()
    bend = (off**3).sum() / (6 * (off**2).sum() ** 1.5)
    z = bias + scipy_stats.norm.ppf([0.025, 0.975])
    expected = np.quantile(drawn, scipy_stats.norm.cdf(bias + z / (1 - bend * z)))
    # two draws of 20,000: each end has a standard error of about 1 % of the width
    found = np.array(stats.interval(x, resamples=20_000))
    assert found == pytest.approx(expected, abs=0.04 * np.ptp(expected))


def test_interval_of_what_does_not_vary():
    low, high = stats.interval([[2.0, 1], [2.0, 3], [2.0, 1]])
    assert (low[0], high[0]) == (2, 2)
    assert 1 <= low[1] < high[1] <= 3
    low, high = stats.interval([1e308, 1.5e308, 1e308])
    assert 1e308 <= low < high <= 1.5e308


def test_interval_of_columns_and_its_seed():
    x = RNG.normal(size=(12, 3))
    x[2, 1] = np.nan
    low, high = stats.interval(x)
    assert low.shape == high.shape == (3,)
    assert np.isnan([low[1], high[1]]).all()
    for k in (0, 2):
        assert (low[k], high[k]) == pytest.approx(tuple(map(float, stats.interval(x[:, k]))))
    assert (stats.interval(x[:, 0], seed=1)[0], low[0]) != pytest.approx((low[0],) * 2, rel=1e-9)
    narrow = stats.interval(x[:, 0], 0.5)
    assert low[0] < narrow[0] < narrow[1] < high[0]
    with refused(ValueError, "confidence is 95"):
        stats.interval(x, 95)


def test_interval_covers():
    # 400 samples of 30 skewed values: the true mean, 1, is in about 95 % of the intervals
    low, high = stats.interval(np.random.default_rng(5).exponential(size=(30, 400)))
    assert 0.90 <= ((low <= 1) & (high >= 1)).mean() <= 0.98


@pytest.mark.parametrize(("m", "n", "shift"), [(2, 2, 1), (5, 9, 0), (100, 100, 3), (20, 7, 50)])
def test_welch_is_scipys(m, n, shift):
    x, y = RNG.normal(size=m), shift + 3 * RNG.normal(size=n)
    expected = scipy_stats.ttest_ind(x, y, equal_var=False).pvalue
    assert stats.welch(x, y) == pytest.approx(expected, rel=1e-10)
    assert stats.welch(y, x) == stats.welch(x, y)


def test_blocks_take_out_what_instances_have_in_common():
    """Of 1,000 comparisons of equals about 50 are significant (binomial: 30 to 72 with p > .001).

    Without blocks there are hardly any, and a difference is not seen.
    """
    rng = np.random.default_rng(0)
    instances = 10 * rng.standard_normal((1000, 10, 1))
    x = instances + rng.standard_normal((1000, 10, 5)) * rng.uniform(0.5, 2, (1000, 10, 1))
    y = instances + rng.standard_normal((1000, 10, 8))
    blocked = np.array([stats.welch_blocked(a, b) for a, b in zip(x, y, strict=True)])
    pooled = np.array([stats.welch(a.ravel(), b.ravel()) for a, b in zip(x, y, strict=True)])
    assert 30 <= (blocked < 0.05).sum() <= 72
    assert (pooled < 0.05).sum() < 5
    assert np.mean([stats.welch_blocked(a + 1, b) < 0.05 for a, b in zip(x, y, strict=True)]) > 0.9
    assert math.isnan(stats.welch_blocked([[1.0, 2], [1.0]], [[1.0, 2], [1.0, 2]]))


def test_welch_without_variance():
    assert stats.welch([1.0, 1], [1.0, 1]) == 1
    assert stats.welch([1.0, 1], [2.0, 2]) == 0
    assert math.isnan(stats.welch([1.0], [2.0, 3]))
    assert math.isnan(stats.welch([1.0, -math.inf], [2.0, 3]))


def test_welch_of_all_pairs():
    samples = [RNG.normal(k, 1 + k, size=(n, 3)) for k, n in enumerate((4, 9, 2))]
    samples += [np.full((3, 3), 2.0), np.full((5, 3), 2.0), RNG.normal(size=(1, 3))]
    samples[0][1, 2] = -np.inf
    with np.errstate(invalid="ignore"):
        means = np.array([x.mean(axis=0) for x in samples])
        sds = np.array([x.std(axis=0, ddof=min(1, len(x) - 1)) for x in samples])
    p = stats.welch_pairs(means, sds, [len(x) for x in samples])
    for a, x in enumerate(samples):
        for b, y in enumerate(samples):
            expected = [stats.welch(x[:, k], y[:, k]) for k in range(3)]
            np.testing.assert_allclose(p[a, b], expected, rtol=1e-9)


def test_holm_by_hand():
    # 0.01 x 4, 0.02 x 3, max(0.06, 0.03 x 2), 0.5 x 1; NaN is no test
    found = stats.holm([0.03, 0.01, np.nan, 0.5, 0.02])
    np.testing.assert_allclose(found, [0.06, 0.04, np.nan, 0.5, 0.06])
    assert stats.holm([0.9, 0.8]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("test", ["mann-whitney", "welch"])
def test_versus_is_one_family(test):
    x, y, z = (RNG.normal(k, 1, 20) for k in (0, 0.5, 1))
    all_runs = ends({"d": {"a": x, "b": y, "c": z}, "e": {"a": y, "b": z}})
    one = {
        "mann-whitney": lambda a, b: scipy_stats.mannwhitneyu(a, b, method="asymptotic").pvalue,
        "welch": lambda a, b: scipy_stats.ttest_ind(a, b, equal_var=False).pvalue,
    }[test]
    raw = [one(y, x), one(z, x), one(z, y)]
    expected = stats.holm(raw)
    found = stats.versus(all_runs, "a", test=test)
    nan = np.nan
    np.testing.assert_allclose(found, [[nan, *expected[:2]], [nan, expected[2], nan]])
    with refused(ValueError, "'t'", "mann-whitney"):
        stats.versus(all_runs, "a", test="t")
    with refused(ValueError, "'x'", "'a'"):
        stats.versus(all_runs, "x")


def test_ranks():
    assert stats.ranks([3.0, 5, 3, 9]).tolist() == [3.5, 2, 3.5, 1]
    np.testing.assert_equal(stats.ranks([1, np.nan, -np.inf]), [1, np.nan, 2])
    x = RNG.integers(0, 5, 30).astype(float)
    np.testing.assert_array_equal(stats.ranks(x), scipy_stats.rankdata(-x))


def test_rank_table():
    found = stats.rank_table(
        ends({"d": {"a": [1, 3], "b": [2, 2], "c": [np.nan, 9]}, "e": {"a": [1], "b": [0]}})
    )
    np.testing.assert_equal(found, [[1.5, 1.5, 3], [1, 2, np.nan]])
    assert stats.mean_ranks(found).tolist() == [1.25, 1.75, 3]


def test_final_wants_equal_budgets():
    some = results({("d", "a"): cell([5, 10], [[1, 2]]), ("d", "b"): cell([5], [[3]])})
    assert {k: v.tolist() for k, v in stats.final(some, "d", 5).items()} == {"a": [1], "b": [3]}
    with refused(ValueError, "[5, 10]"):
        stats.final(some, "d")
    with refused(ValueError, "evaluations is 10", "'b' on 'd'"):
        stats.final(some, "d", 10)


def test_friedman_is_scipys():
    scores = RNG.integers(0, 6, (8, 5)) + np.arange(5)
    table = np.array([stats.ranks(row) for row in scores])
    found = stats.friedman(table)
    assert found == pytest.approx(tuple(scipy_stats.friedmanchisquare(*scores.T)))
    agreed = scipy_stats.friedmanchisquare([1, 1], [2, 2], [3, 3])
    assert stats.friedman([[1, 2, 3], [1, 2, 3]]) == pytest.approx(tuple(agreed))
    assert agreed.pvalue > 0.1
    assert stats.friedman(np.full((3, 2), 1.5)) == (0, 1)
    assert stats.friedman([[1, 2], [1, 2], [1, 2]]) == pytest.approx((3, scipy_stats.chi2.sf(3, 1)))
    with refused(ValueError, "1 x 3", "2 x 2"):
        stats.friedman([[1, 2, 3]])


def test_critical_difference_is_demsars():
    # table 5 of Demšar's paper: q is 2.343 for three and 3.164 for ten classifiers at 0.05
    assert stats.critical_difference(3, 1) / math.sqrt(2) == pytest.approx(2.343, abs=1e-3)
    expected = 3.164 * math.sqrt(110 / 6 / 30)
    assert stats.critical_difference(10, 30) == pytest.approx(expected, abs=1e-3)
    with refused(ValueError, "k", "1"):
        stats.critical_difference(1, 3)
    # the range of two normals is a normal of variance 2, folded
    expected = math.sqrt(2) * scipy_stats.norm.ppf(0.975)
    assert stats.studentised_range(2) == pytest.approx(expected, abs=1e-8)


def test_critical_groups():
    rows = {f"d{k}": {a: [float(v)] for a, v in zip("cbad", (3, 4, 5, 0), strict=True)}
            for k in range(12)}  # fmt: skip
    rows["missing"] = {"a": [1.0]}
    found = stats.critical(ends(rows))
    assert found.algorithms == tuple("abcd")
    assert found.ranks == (1, 2, 3, 4)
    assert len(found.distributions) == 12
    assert 1 < found.difference < 2
    assert found.groups == ((0, 1), (1, 2), (2, 3))
    assert found.friedman.p == pytest.approx(scipy_stats.chi2.sf(36, 3))
    with refused(ValueError, "ranks are 0 x 2"):
        stats.critical(ends({"d": {"a": [1.0]}, "e": {"b": [1.0]}}))


def test_superiority():
    x, y = RNG.integers(0, 9, 12).astype(float), RNG.integers(2, 9, 7).astype(float)
    u = scipy_stats.mannwhitneyu(x, y).statistic
    assert stats.superiority(x, y) == pytest.approx(u / (12 * 7))


def test_only_some():
    some = results({("d", "a"): cell([1], [[1]]), ("e", "b"): cell([1], [[1]])},
                   failed={("d", "b"): {"no": 2}, ("e", "a"): {"no": 1}})  # fmt: skip
    assert some.only(distributions=["d"]).failed == {("d", "b"): {"no": 2}}
    assert some.only(["a"]).failed == {("e", "a"): {"no": 1}}
    with refused(ValueError, "algorithms is ()", "('a', 'b')"):
        some.only([])
    with refused(ValueError, "distributions is ()"):
        some.only(distributions=())
    with refused(ValueError, "algorithms is ('a', 'b', 'a')", "'a' once"):
        some.only(["a", "b", "a"])


def test_ours_by_their_labels_or_as_given():
    labels = ("policy", "policy:paper", "policy+beta=2", "authors", "anyorderly", "PBIL")
    some = Results("x", labels, (), {})
    assert some.ours == set(labels[:4])
    assert some.only(labels[3:]).ours == {"authors"}
    given = Results("x", labels, (), {}, ours=frozenset({"PBIL"}))
    assert given.only(labels[3:]).ours == {"PBIL"}
    assert Results("x", labels, (), {}, ours=frozenset()).ours == frozenset()


STEPS = cell([1, 4, 10], [[0, 2, 4], [1, 1, 3], [np.nan, 0, 1]])


def test_hits_and_running_time_by_hand():
    inf = np.inf
    np.testing.assert_equal(
        stats.hits(STEPS, [0, 2, 3, 5]), [[1, 4, 10, inf], [1, 10, 10, inf], [4, inf, inf, inf]]
    )
    # (1 + 1 + 4) / 3, (4 + 10 + 10) / 2, 30 / 2, no success
    assert stats.running_time(STEPS, [0, 2, 3, 5]).tolist() == [2, 12, 15, inf]


def test_running_times_to_the_best_mean():
    some = results({("d", "a"): STEPS, ("d", "b"): cell([5, 10], [[1, 2], [3, 4]]),
                    ("e", "b"): cell([10], [[np.nan]])})  # fmt: skip
    goals, times = stats.running_times(some)
    # means at the end 8/3 and 3; a: 30 / 2, b: 5 and 10 without
    np.testing.assert_equal(goals, [3, np.nan])
    np.testing.assert_equal(times, [[15, 15], [np.nan, np.nan]])
    tenths = ends({"d": {"a": [0.1] * 3, "b": [0.0]}})  # the rounded mean may be more than 0.1
    assert stats.running_times(tenths)[1].tolist() == [[100, np.inf]]
    with refused(ValueError, "the budgets on d are [10, 20]"):
        stats.running_times(results({("d", "a"): STEPS, ("d", "b"): cell([20], [[1]])}))


def test_areas():
    some = results({("d", "a"): STEPS, ("d", "b"): cell([5, 10], [[1, 2], [3, 4]]),
                    ("e", "b"): cell([10], [[np.nan]])})  # fmt: skip
    box = stats.span(some, "d")
    expected = [stats.area_over_curve(some.cells["d", a], *box).mean() for a in "ab"]
    np.testing.assert_allclose(stats.areas(some), [expected, [np.nan, np.nan]])
    with refused(ValueError, "the budgets on d are [10, 20]"):
        stats.areas(results({("d", "a"): STEPS, ("d", "b"): cell([20], [[1]])}))


def test_targets_by_hand():
    some = results({("d", "a"): STEPS, ("d", "b"): cell([2], [[-4], [-2], [0]])})
    assert stats.span(some, "d") == (-2, 4)  # medians 0.5 and -2
    assert stats.targets(some, "d", 3).tolist() == [0, 2, 4]
    hopeless = results({("d", "a"): cell([2], [[np.nan]])})
    assert np.isnan(stats.span(hopeless, "d")).all()
    assert stats.ecdf(hopeless)[1]["a"].tolist() == [0]
    with refused(ValueError, "'e'"):
        stats.span(Results("none", ("a",), ("e",), {}), "e")


def test_ecdf_by_hand():
    some = results({("d", "a"): STEPS, ("d", "b"): cell([2], [[-4], [-2], [0]]),
                    ("e", "b"): cell([2, 10], [[0, 1]])})  # fmt: skip
    grid, shares = stats.ecdf(some, 3)  # targets 0, 2, 4 on d and 1/3, 2/3, 1 on e
    assert grid.tolist() == [1, 2, 4, 10]
    np.testing.assert_allclose(shares["a"], np.array([2, 2, 4, 6]) / 9)
    np.testing.assert_allclose(shares["b"], [0, 1 / 18, 1 / 18, (1 / 9 + 1) / 2])


def test_area_over_curve_by_hand():
    some = cell([1, 4, 10], [[0, 2, 4], [4, 4, 4], [np.nan, 1, 1]])
    # before 1: all; from 1 to 4 and from 4 to 10 the first two values
    expected = [(1 + 3 * 1 + 6 * 0.5) / 10, 0.1, (1 + 3 + 6 * 0.75) / 10]
    np.testing.assert_allclose(stats.area_over_curve(some, 0, 4), expected)
    log = (math.log(4) + math.log(2.5) * 0.5) / math.log(10)
    assert stats.area_over_curve(some, 0, 4, log=True)[0] == pytest.approx(log)
    assert stats.area_over_curve(cell([1], [[1.0]]), 0, 4, log=True).tolist() == [0.75]
    assert stats.area_over_curve(some, 4, 4)[1] == pytest.approx(0.1)
    with refused(ValueError, "4, 0"):
        stats.area_over_curve(some, 4, 0)


def test_area_over_curve_is_that_of_the_ecdf():
    grid = np.arange(1, 41)
    curves = np.maximum.accumulate(RNG.normal(size=(7, 40)), axis=1)
    some = results({("d", "a"): cell(grid, curves)})
    low, high = stats.span(some, "d")
    _, shares = stats.ecdf(some, 4000)
    area = (1 + (1 - shares["a"][:-1]).sum()) / 40
    assert stats.area_over_curve(some.cells["d", "a"], low, high).mean() == pytest.approx(
        area, abs=1e-3
    )
