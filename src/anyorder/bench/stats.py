"""Statistics of runs: intervals, tests, ranks, running times. Higher values are better.

NumPy only; tests/test_bench_stats.py verifies all of them against SciPy or counts by hand. If
`evaluations` is None, the final values of the runs are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder.bench.distributions import chi_squared, each, incomplete_beta, studentised_range
from anyorder.bench.results import Cell, Floats, Ints, Results

_NORMAL = NormalDist()


class Summary(NamedTuple):
    """Statistics of the values of some runs; those that require two runs are NaN for one."""

    runs: int
    mean: float
    sd: float
    error: float  # of the mean
    low: float  # of the 95 % interval of the mean
    high: float


def summary(values: npt.ArrayLike, confidence: float = 0.95, seed: int = 0) -> Summary:
    """Mean, standard deviation, standard error, and the bootstrap `interval` of the mean."""
    x = np.asarray(values, np.float64)
    sd = float(x.std(ddof=1)) if len(x) > 1 and np.isfinite(x).all() else math.nan
    low, high = interval(x, confidence, seed=seed)
    return Summary(len(x), mean(x), sd, sd / math.sqrt(len(x)), float(low), float(high))


def mean(values: npt.ArrayLike) -> float:
    """The mean, rounded once: equal values in another order have equal means."""
    x = np.asarray(values, np.float64)
    return math.fsum(x.tolist()) / len(x) if np.isfinite(x).all() else float(np.mean(x))


def interval(
    values: npt.ArrayLike, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[Floats, Floats]:
    """Ends of the bootstrap confidence interval of the mean over runs, the first axis.

    Bias-corrected and accelerated (BCa; Efron, "Better bootstrap confidence intervals", JASA 1987).
    All columns share the resampled runs, and the same seed gives the same interval. NaN for a
    single run, and where a value is not finite.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}, expected more than 0 and less than 1")
    table = np.asarray(values, np.float64)
    flat = table.reshape(len(table), -1)
    runs, fine = len(flat), np.isfinite(flat).all(axis=0)
    low, high = np.full((2, flat.shape[1]), np.nan)
    if runs > 1 and fine.any():
        centre = flat[:, fine].mean(axis=0)
        off = flat[:, fine] - centre
        drawn = np.random.default_rng(seed).multinomial(runs, np.full(runs, 1 / runs), resamples)
        means = np.sort(drawn / runs @ off, axis=0)
        same = 1e-12 * np.abs(off).max(axis=0)  # a tie with the mean, but for rounding
        below = ((means < -same).mean(axis=0) + (means <= same).mean(axis=0)) / 2
        bias = each(_NORMAL.inv_cdf, np.clip(below, 0.5 / resamples, 1 - 0.5 / resamples))
        squares = (off**2).sum(axis=0)
        # the jackknife's estimate, which for a mean is the skewness of the values
        bend = (off**3).sum(axis=0) / (6 * np.where(squares > 0, squares, 1.0) ** 1.5)
        for end, level in ((low, (1 - confidence) / 2), (high, (1 + confidence) / 2)):
            z = bias + _NORMAL.inv_cdf(level)
            place = each(_NORMAL.cdf, bias + z / (1 - bend * z)) * (resamples - 1)
            first = np.minimum(place.astype(np.int64), resamples - 2)[None]
            a, b = (np.take_along_axis(means, k, axis=0)[0] for k in (first, first + 1))
            end[fine] = centre + a + (place - first[0]) * (b - a)
    return low.reshape(table.shape[1:]), high.reshape(table.shape[1:])


def welch(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Two-sided p-value that x and y have equal means, whatever their variances.

    Welch, "The generalization of Student's problem ...", Biometrika 1947. NaN with less than two
    values of either; where neither varies, 1 for equal means and 0 for others.
    """
    return welch_blocked([x], [y])


def welch_blocked(x: Sequence[npt.ArrayLike], y: Sequence[npt.ArrayLike]) -> float:
    """Welch's test of two algorithms that ran on the same instances, with equal weights.

    `x[k]` and `y[k]` are the values on instance k. Only the variance within instances counts, with
    Satterthwaite's degrees of freedom. NaN if an instance has fewer than two values of either.
    """
    means: tuple[list[float], list[float]] = ([], [])
    variances, freedoms = [], []
    for side, samples in enumerate((x, y)):
        for sample in samples:
            values = np.asarray(sample, np.float64)
            if len(values) < 2 or not np.isfinite(values).all():
                return math.nan
            means[side].append(mean(values))
            variances.append(float(values.var(ddof=1)) / len(values) / len(samples) ** 2)
            freedoms.append(len(values) - 1)
    gap, variance = mean(np.array(means[0])) - mean(np.array(means[1])), math.fsum(variances)
    if variance == 0 or gap == 0:
        return float(gap == 0)
    freedom = variance**2 / math.fsum(v * v / k for v, k in zip(variances, freedoms, strict=True))
    t2 = gap**2 / variance
    # both tails of Student's t: Abramowitz and Stegun 26.7.1 with 26.5.27
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t2), t2 / (freedom + t2))


def mann_whitney(x: Floats, y: Floats) -> float:
    """Two-sided p-value for equal distributions: normal approximation, corrected for ties."""
    both = np.concatenate([x, y])
    _, inverse, counts = np.unique(both, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    m, n = len(x), len(y)
    total = m + n
    u = ranks[:m].sum() - m * (m + 1) / 2
    ties = float((counts**3 - counts).sum())
    variance = m * n / 12 * (total + 1 - ties / max(1, total * (total - 1)))
    if variance <= 0:
        return 1.0
    z = max(0.0, abs(u - m * n / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def superiority(x: Floats, y: Floats) -> float:
    """Probability that a value of x exceeds one of y, ties by half (Vargha and Delaney, 2000)."""
    return float(((x[:, None] > y).mean() + (x[:, None] >= y).mean()) / 2)


def holm(p: npt.ArrayLike) -> Floats:
    """The p-values of a family of tests, corrected (Holm, Scand. J. Statistics 1979); NaN stays."""
    raw = np.asarray(p, np.float64)
    corrected = np.full(raw.size, np.nan)
    tested = np.flatnonzero(~np.isnan(raw))
    order = tested[np.argsort(raw.ravel()[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1, np.maximum.accumulate(raw.ravel()[order] * factors))
    return corrected.reshape(raw.shape)


def versus(
    results: Results, reference: str, evaluations: int | None = None, test: str = "mann-whitney"
) -> Floats:
    """`(distributions, algorithms)`: p-values against one algorithm, by Holm over all of them.

    `test` is "mann-whitney" or "welch"; NaN for the reference itself and for missing cells.
    """
    tests: dict[str, Callable[[Floats, Floats], float]]
    tests = {"mann-whitney": mann_whitney, "welch": welch}
    if test not in tests:
        raise ValueError(f"test is {test!r}, expected one of {', '.join(tests)}")
    if reference not in results.algorithms:
        raise ValueError(f"reference is {reference!r}, expected one of {results.algorithms}")
    p = np.full((len(results.distributions), len(results.algorithms)), np.nan)
    for d, distribution in enumerate(results.distributions):
        values = final(results, distribution, evaluations)
        for a, algorithm in enumerate(results.algorithms):
            if algorithm != reference and {algorithm, reference} <= values.keys():
                p[d, a] = tests[test](values[algorithm], values[reference])
    return holm(p)


def final(results: Results, distribution: str, evaluations: int | None = None) -> dict[str, Floats]:
    """The values of all runs on a distribution, by algorithm; a run without a value has -inf."""
    row = results.row(distribution)
    ends = sorted({int(cell.grid[-1]) for cell in row.values()})
    if evaluations is None and len(ends) > 1:
        raise ValueError(
            f"the budgets on {distribution} are {ends}, expected one: give evaluations"
        )
    at = {}
    for label, cell in row.items():
        try:
            at[label] = cell.at(ends[0] if evaluations is None else evaluations)
        except ValueError as error:
            raise ValueError(f"{error}; it is that of {label!r} on {distribution!r}") from None
    return {label: np.where(np.isnan(x), -np.inf, x) for label, x in at.items()}


def ranks(values: npt.ArrayLike) -> Floats:
    """1 for the highest, ties averaged; NaN is not ranked."""
    x = np.asarray(values, np.float64)
    above = (x[None] > x[:, None]).sum(axis=1)
    equal = (x[None] == x[:, None]).sum(axis=1)
    return np.where(np.isnan(x), np.nan, above + (equal + 1) / 2)


def rank_table(results: Results, evaluations: int | None = None) -> Floats:
    """`(distributions, algorithms)`: ranks by the mean over runs; NaN for missing cells."""
    table = np.full((len(results.distributions), len(results.algorithms)), np.nan)
    for d, distribution in enumerate(results.distributions):
        values = final(results, distribution, evaluations)
        table[d] = ranks([mean(values.get(a, [np.nan])) for a in results.algorithms])
    return table


def mean_ranks(table: Floats) -> Floats:
    """Means of the columns of `rank_table`, each over the distributions the algorithm is on."""
    count = (~np.isnan(table)).sum(axis=0)
    return np.where(count > 0, np.nansum(table, axis=0) / np.maximum(count, 1), np.nan)


class Friedman(NamedTuple):
    """The statistic (chi squared, corrected for ties) and its p-value."""

    statistic: float
    p: float


def friedman(table: npt.ArrayLike) -> Friedman:
    """Whether algorithms (columns) differ at all in their ranks on distributions (rows).

    Friedman (JASA 1937). The p-value is that of chi squared, as SciPy's; Iman and Davenport's F is
    0 wherever all rows agree, be they only two.
    """
    r = np.asarray(table, np.float64)
    rows, k = r.shape
    if rows < 2 or k < 2 or np.isnan(r).any():
        raise ValueError(f"ranks are {rows} x {k}, expected at least 2 x 2 and none missing")
    expected = (k + 1) / 2
    varied = float(((r - expected) ** 2).sum())
    if varied == 0:
        return Friedman(0.0, 1.0)
    statistic = (k - 1) * float(((r.sum(axis=0) - rows * expected) ** 2).sum()) / varied
    return Friedman(statistic, chi_squared(statistic, k - 1))


@dataclass(frozen=True)
class Critical:
    """Mean ranks, and which of them differ (Nemenyi 1963; Demšar, JMLR 2006).

    Attributes
    ----------
    algorithms, ranks
        The best first.
    difference
        Of two mean ranks, to be significant.
    groups
        First and last position of each group of algorithms that do not differ significantly.
    distributions
        Those that count: where every algorithm has runs.
    friedman
        The test for any difference at all.
    """

    algorithms: tuple[str, ...]
    ranks: tuple[float, ...]
    difference: float
    groups: tuple[tuple[int, int], ...]
    distributions: tuple[str, ...]
    friedman: Friedman
    alpha: float


def critical_difference(k: int, rows: int, alpha: float = 0.05) -> float:
    """The difference of mean ranks that is significant for k algorithms (Nemenyi)."""
    return studentised_range(1 - alpha, k) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * rows))


def critical(results: Results, evaluations: int | None = None, alpha: float = 0.05) -> Critical:
    """What the critical-difference diagram shows; two algorithms and two distributions at least."""
    whole = [d for d in results.distributions if len(results.row(d)) == len(results.algorithms)]
    table = rank_table(replace(results, distributions=tuple(whole)), evaluations)
    test = friedman(table)
    found = table.mean(axis=0)
    order = np.argsort(found, kind="stable")
    place = found[order]
    gap = critical_difference(len(order), len(whole), alpha)
    groups: list[tuple[int, int]] = []
    for i in range(len(order)):
        j = int(np.searchsorted(place, place[i] + gap, side="right")) - 1
        if j > i and (not groups or j > groups[-1][1]):
            groups.append((i, j))
    names = tuple(results.algorithms[k] for k in order)
    return Critical(names, tuple(place.tolist()), gap, tuple(groups), tuple(whole), test, alpha)


def hits(cell: Cell, targets: npt.ArrayLike) -> Floats:
    """`(R, T)`: the first point of the grid at which a run has reached a target; inf for never."""
    wanted = np.asarray(targets, np.float64).ravel()
    best = np.maximum.accumulate(np.where(np.isnan(cell.curves), -np.inf, cell.curves), axis=1)
    when = np.append(cell.grid.astype(np.float64), np.inf)
    return np.array([when[np.searchsorted(curve, wanted)] for curve in best])


def running_time(cell: Cell, targets: npt.ArrayLike) -> Floats:
    """`(T,)`: the expected running time (ERT) to each target; inf where no run reaches it.

    Evaluations of all runs until the target or the end, over the number of runs that reach it
    (Auger and Hansen, "Performance evaluation of an advanced local search ...", CEC 2005).
    """
    reached = hits(cell, targets)
    spent = np.minimum(reached, cell.grid[-1]).sum(axis=0)
    successes = np.isfinite(reached).sum(axis=0)
    return np.where(successes > 0, spent / np.maximum(successes, 1), np.inf)


def running_times(results: Results) -> tuple[Floats, Floats]:
    """A target for each distribution, and the `(distributions, algorithms)` `running_time` to it.

    The target is the highest mean of an algorithm where the runs ended; NaN where there is none,
    and for missing cells.
    """
    goals = np.full(len(results.distributions), np.nan)
    times = np.full((len(results.distributions), len(results.algorithms)), np.nan)
    for d, distribution in enumerate(results.distributions):
        best = max(final(results, distribution).values(), key=mean, default=np.array([np.nan]))
        if np.isfinite(mean(best)):
            goals[d] = min(mean(best), best.max())  # rounding may lift the mean of equal values
            for a, label in enumerate(results.algorithms):
                if (distribution, label) in results.cells:
                    times[d, a] = running_time(results.cells[distribution, label], goals[d])[0]
    return goals, times


def span(results: Results, distribution: str) -> tuple[float, float]:
    """The values that count on a distribution, from a poor start to the best that was seen.

    From the worst algorithm's median at its first grid point to the best value of any run; NaN
    where no run has a value.
    """
    curves = [cell.curves for cell in results.row(distribution).values()]
    if not curves:
        raise ValueError(f"{results.name} has no runs on {distribution!r}, expected some")
    best = max(float(c[np.isfinite(c)].max(initial=-np.inf)) for c in curves)
    starts = [c[:, 0][np.isfinite(c[:, 0])] for c in curves]
    low = min((float(np.median(s)) for s in starts if len(s)), default=best)
    return (low, best) if best > -np.inf else (np.nan, np.nan)


def targets(results: Results, distribution: str, count: int = 51) -> Floats:
    """Targets equally spaced over the `span` of a distribution: above its low end up to its best.

    They are shared by the instances of the distribution, so not every run can reach every target.
    """
    low, high = span(results, distribution)
    return np.linspace(low, high, count + 1)[1:]


def ecdf(results: Results, count: int = 51) -> tuple[Ints, dict[str, Floats]]:
    """The share of (run, target) pairs reached by so many evaluations: the grid, and each curve.

    Over all distributions an algorithm has runs on, of equal weight each (Hansen et al., "COCO: a
    platform for comparing continuous optimizers", 2021). The grid is that of all cells together.
    """
    if not results.cells:
        raise ValueError(f"{results.name} has no finished runs, expected some")
    grid = np.unique(np.concatenate([cell.grid for cell in results.cells.values()]))
    shares: dict[str, list[Floats]] = {algorithm: [] for algorithm in results.algorithms}
    for distribution in results.distributions:
        row = results.row(distribution)
        wanted = targets(results, distribution, count) if row else np.empty(0)
        for algorithm, cell in row.items():
            reached = np.sort(hits(cell, wanted), axis=None)
            share = np.searchsorted(reached, grid, side="right") / reached.size
            shares[algorithm].append(share)
    return grid, {label: np.mean(rows, axis=0) for label, rows in shares.items() if rows}


def area_over_curve(cell: Cell, low: float, high: float, log: bool = False) -> Floats:
    """`(R,)`: anytime performance, 0 to 1, less is better: the area over each convergence curve.

    Of the box from `low` to `high` (see `span`) and from the start to the budget, the part above
    the curve; in the logarithm of the evaluations if `log`. A value counts from its grid point on,
    so a coarse grid makes the area larger; before the first point nothing is known, and all is
    area. With targets equally spaced over the box it is the area over the runs' ECDF.
    (López-Ibáñez and Stützle, "Automatically improving the anytime behaviour ...", EJOR 2014.)
    """
    if not low <= high:
        raise ValueError(f"low, high are {low}, {high}, expected low <= high")
    curves = np.where(np.isnan(cell.curves), -np.inf, cell.curves)
    above = (high - curves) / (high - low) if high > low else 1.0 * (curves < high)
    above = np.clip(above, 0.0, 1.0)
    edges = np.log(cell.grid) if log else cell.grid.astype(np.float64)
    if edges[-1] == 0:  # one evaluation, on a logarithmic axis
        return above[:, -1]
    share: Floats = (edges[0] + above[:, :-1] @ np.diff(edges)) / edges[-1]
    return share


def areas(results: Results) -> Floats:
    """`(distributions, algorithms)`: mean `area_over_curve` in the `span`; NaN where none is."""
    table = np.full((len(results.distributions), len(results.algorithms)), np.nan)
    for d, distribution in enumerate(results.distributions):
        final(results, distribution)  # areas up to different budgets do not compare
        box = span(results, distribution)
        for a, label in enumerate(results.algorithms):
            cell = results.cells.get((distribution, label))
            if cell is not None and not np.isnan(box).any():
                table[d, a] = mean(area_over_curve(cell, *box))
    return table
