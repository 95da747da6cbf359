"""Statistics of runs: intervals, tests, ranks, running times. Higher values are better.

Intervals and tests require SciPy (`pip install 'anyorder[bench]'`), the rest NumPy only. If
`evaluations` is None, the final values of the runs are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import require
from anyorder.bench.results import Cell, Floats, Ints, Results

_LARGE = 1e100  # larger values are scaled, so that sums and cubes do not overflow
_BATCH = 4_000_000  # the most numbers that a bootstrap holds at a time
MISSING = "intervals and tests require SciPy: pip install 'anyorder[bench]'"


def scipy_stats() -> Any:
    """Return `scipy.stats`, or raise the error that says what to install."""
    return require("scipy.stats", "bench", "intervals and tests require SciPy")


def can_test() -> bool:
    """Return whether SciPy is installed, so that intervals and tests can be computed."""
    try:
        scipy_stats()
    except ImportError:
        return False
    return True


class Summary(NamedTuple):
    """Statistics of the values of some runs; those that require two runs are NaN for one run."""

    runs: int
    mean: float
    sd: float
    error: float  # the standard error of the mean
    low: float  # the lower end of the 95 % interval of the mean
    high: float


def summary(values: npt.ArrayLike, confidence: float = 0.95, seed: int = 0) -> Summary:
    """Return mean, standard deviation, standard error, and the bootstrap `interval` of the mean.

    The interval is NaN without SciPy.
    """
    x = np.asarray(values, np.float64)
    sd = float(deviation(x)) if len(x) > 1 and np.isfinite(x).all() else math.nan
    low, high = interval(x, confidence, seed=seed) if can_test() else (math.nan, math.nan)
    return Summary(len(x), mean(x), sd, sd / math.sqrt(len(x)), float(low), float(high))


def mean(values: npt.ArrayLike) -> float:
    """Return the mean, rounded once, so that the order of values does not matter."""
    x = np.asarray(values, np.float64)
    if not np.isfinite(x).all():
        return float(np.mean(x))
    size = exponent(x)
    return float(np.ldexp(math.fsum(np.ldexp(x, -size).tolist()) / len(x), size))


def means(table: npt.ArrayLike) -> Floats:
    """Return the means of the columns, even of values near the largest float."""
    x = np.asarray(table, np.float64)
    size = exponent(x)
    found: Floats = np.ldexp(np.ldexp(x, -size).mean(axis=0), size)
    return found


def deviation(values: npt.ArrayLike) -> Floats:
    """Return the standard deviations along the first axis, without overflow."""
    x = np.asarray(values, np.float64)
    size = exponent(x)
    with np.errstate(invalid="ignore", over="ignore"):  # infinities have no deviation
        found: Floats = np.ldexp(np.ldexp(x, -size).std(axis=0, ddof=1), size)
    return found


def exponent(x: Floats) -> int:
    """Return k such that all finite values are below 2**k; scaling by 2**k is exact.

    k is 0 unless there are values near the largest float.
    """
    largest = float(np.abs(x[np.isfinite(x)]).max(initial=0.0))
    return math.frexp(largest)[1] if largest > _LARGE else 0


def interval(
    values: npt.ArrayLike, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[Floats, Floats]:
    """Return the ends of the bootstrap confidence interval of the mean over runs, the first axis.

    It is bias-corrected and accelerated (BCa; Efron, "Better bootstrap confidence intervals", JASA
    1987). All columns share the resampled runs, and the same seed gives the same interval. It is
    NaN for a single run, and where a value is not finite; where values do not vary, its width is 0.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}, expected more than 0 and less than 1")
    table = np.asarray(values, np.float64)
    size = exponent(table)
    flat = np.ldexp(table.reshape(len(table), -1), -size)
    low, high = np.full((2, flat.shape[1]), np.nan)
    fine = np.isfinite(flat).all(axis=0) & (len(flat) > 1)
    varied = fine & (np.ptp(np.where(fine, flat, 0.0), axis=0) > 0)
    low[fine] = high[fine] = np.ldexp(flat[:, fine].mean(axis=0), size)
    if varied.any():
        centre = flat[:, varied].mean(axis=0)
        off = flat[:, varied] - centre
        # scale each column, whose squares might underflow otherwise
        spread = np.abs(off).max(axis=0)
        off /= spread
        found = scipy_stats().bootstrap(
            (off,), np.mean, n_resamples=resamples, confidence_level=confidence, method="BCa",
            axis=0, batch=max(1, _BATCH // off.size), random_state=np.random.default_rng(seed),
        ).confidence_interval  # fmt: skip
        low[varied], high[varied] = (np.ldexp(centre + spread * end, size) for end in found)
    return low.reshape(table.shape[1:]), high.reshape(table.shape[1:])


def welch(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return the two-sided p-value that x and y have equal means, with any variances.

    Welch, "The generalization of Student's problem ...", Biometrika 1947. NaN if either has fewer
    than two values; if neither varies, 1 for equal means and 0 for different ones.
    """
    return welch_blocked([x], [y])


def welch_blocked(x: Sequence[npt.ArrayLike], y: Sequence[npt.ArrayLike]) -> float:
    """Return the p-value of Welch's test of two algorithms on instances of equal weight.

    `x[k]` and `y[k]` are the values on instance k. Only the variance within instances counts, with
    Satterthwaite's degrees of freedom. NaN if an instance has fewer than two values of either.
    """
    averages: tuple[list[float], list[float]] = ([], [])
    variances, freedoms = [], []
    size = max((exponent(np.asarray(s, np.float64)) for s in (*x, *y)), default=0)
    for side, samples in enumerate((x, y)):
        for sample in samples:
            values = np.ldexp(np.asarray(sample, np.float64), -size)
            if len(values) < 2 or not np.isfinite(values).all():
                return math.nan
            averages[side].append(mean(values))
            variances.append(float(values.var(ddof=1)) / len(values) / len(samples) ** 2)
            freedoms.append(len(values) - 1)
    gap = mean(np.array(averages[0])) - mean(np.array(averages[1]))
    variance = math.fsum(variances)
    if variance == 0 or gap == 0:
        return float(gap == 0)
    freedom = variance**2 / math.fsum(v * v / k for v, k in zip(variances, freedoms, strict=True))
    return float(2 * scipy_stats().t.sf(abs(gap) / math.sqrt(variance), freedom))


def welch_pairs(mean: Floats, sd: Floats, runs: npt.ArrayLike) -> Floats:
    """Return `welch` for all pairs of K samples, `(K, K, ...)`, from their statistics `(K, ...)`.

    NaN for fewer than two values; if neither varies, 1 for equal means and 0 for different ones.
    """
    size = exponent(np.stack([mean, sd]))
    centre, spread = np.ldexp(mean, -size), np.ldexp(sd, -size)
    count = np.broadcast_to(np.reshape(runs, (-1, *[1] * (mean.ndim - 1))), mean.shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = centre[:, None] - centre
        found = scipy_stats().ttest_ind_from_stats(
            centre[:, None], spread[:, None], count[:, None], centre, spread, count,
            equal_var=False,
        )  # fmt: skip
        still = (spread[:, None] == 0) & (spread == 0)
        p: Floats = np.where(still, 1.0 * (centre[:, None] == centre), found.pvalue)
        return np.where((count[:, None] > 1) & (count > 1) & np.isfinite(gap), p, np.nan)


def mann_whitney(x: Floats, y: Floats) -> float:
    """Return the two-sided p-value that x and y have the same distribution.

    It is the normal approximation, corrected for ties and for continuity.
    """
    return float(scipy_stats().mannwhitneyu(x, y, method="asymptotic").pvalue)


def superiority(x: Floats, y: Floats) -> float:
    """Return the probability that x exceeds y; ties count half (Vargha and Delaney, 2000)."""
    return float(((x[:, None] > y).mean() + (x[:, None] >= y).mean()) / 2)


def holm(p: npt.ArrayLike) -> Floats:
    """Return the p-values of a family of tests, corrected by Holm (1979); NaN stays NaN."""
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
    """Return corrected p-values against one algorithm, `(distributions, algorithms)`.

    `test` is "mann-whitney" or "welch"; the correction is Holm's. NaN for the reference itself and
    for missing cells.
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
    """Return the values of all runs on a distribution, by algorithm; -inf if a run has none."""
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
    """Return ranks: 1 for the highest, the average for ties, NaN for NaN."""
    x = np.asarray(values, np.float64)
    above = (x[None] > x[:, None]).sum(axis=1)
    equal = (x[None] == x[:, None]).sum(axis=1)
    return np.where(np.isnan(x), np.nan, above + (equal + 1) / 2)


def rank_table(results: Results, evaluations: int | None = None) -> Floats:
    """Return ranks by the mean over runs, `(distributions, algorithms)`; NaN for missing cells."""
    table = np.full((len(results.distributions), len(results.algorithms)), np.nan)
    for d, distribution in enumerate(results.distributions):
        values = final(results, distribution, evaluations)
        table[d] = ranks([mean(values.get(a, [np.nan])) for a in results.algorithms])
    return table


def mean_ranks(table: Floats) -> Floats:
    """Return the mean ranks of a `rank_table`, over the distributions where there is a rank."""
    count = (~np.isnan(table)).sum(axis=0)
    return np.where(count > 0, np.nansum(table, axis=0) / np.maximum(count, 1), np.nan)


class Friedman(NamedTuple):
    """The statistic of Friedman's test (chi squared, corrected for ties) and its p-value."""

    statistic: float
    p: float


def friedman(table: npt.ArrayLike) -> Friedman:
    """Return whether algorithms (columns) differ at all in their ranks on distributions (rows).

    The p-value is Friedman's (JASA 1937), by chi squared: by Iman and Davenport's F it would be 0
    wherever all rows agree, even if there are only two. For two algorithms it is the sign test, in
    which ties are left out.
    """
    r = np.asarray(table, np.float64)
    rows, k = r.shape
    if rows < 2 or k < 2 or np.isnan(r).any():
        raise ValueError(f"ranks are {rows} x {k}, expected at least 2 x 2 and none missing")
    if (r == r[:, :1]).all():
        return Friedman(0.0, 1.0)
    if k > 2:
        return Friedman(*map(float, scipy_stats().friedmanchisquare(*r.T)))
    signs = np.sign(r[:, 1] - r[:, 0])
    statistic = float(signs.sum() ** 2 / (signs != 0).sum())
    return Friedman(statistic, float(scipy_stats().chi2.sf(statistic, 1)))


@dataclass(frozen=True)
class Critical:
    """Mean ranks, and which of them differ (Nemenyi 1963; Demšar, JMLR 2006).

    Attributes
    ----------
    algorithms, ranks
        The labels of the algorithms, and their mean ranks; best first.
    difference
        The difference of two mean ranks from which it is significant.
    groups
        The first and last position of each group of algorithms that do not differ significantly.
    distributions
        The distributions that count: those where every algorithm has runs.
    friedman
        The test whether there is any difference at all.
    """

    algorithms: tuple[str, ...]
    ranks: tuple[float, ...]
    difference: float
    groups: tuple[tuple[int, int], ...]
    distributions: tuple[str, ...]
    friedman: Friedman
    alpha: float


def critical_difference(k: int, rows: int, alpha: float = 0.05) -> float:
    """Return the difference of mean ranks that is significant for k algorithms (Nemenyi)."""
    return studentised_range(k, alpha) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * rows))


def studentised_range(k: int, alpha: float = 0.05) -> float:
    """Return Tukey's q for k algorithms, with infinite degrees of freedom."""
    if not 0 < alpha < 1 or k < 2:
        raise ValueError(f"alpha, k are {alpha}, {k}, expected 0 < alpha < 1 and k >= 2")
    return float(scipy_stats().studentized_range.ppf(1 - alpha, k, np.inf))


def critical(results: Results, evaluations: int | None = None, alpha: float = 0.05) -> Critical:
    """Return the data of the critical-difference diagram.

    At least two algorithms, and two distributions on which all of them have runs, are required.
    """
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
    """Return the grid point at which each run reached each target, `(R, T)`; inf for never."""
    wanted = np.asarray(targets, np.float64).ravel()
    best = np.maximum.accumulate(np.where(np.isnan(cell.curves), -np.inf, cell.curves), axis=1)
    when = np.append(cell.grid.astype(np.float64), np.inf)
    return np.array([when[np.searchsorted(curve, wanted)] for curve in best])


def running_time(cell: Cell, targets: npt.ArrayLike) -> Floats:
    """Return the expected running time (ERT) to each target, `(T,)`; inf if no run reaches it.

    It is the number of evaluations of all runs, up to the target or the end, over the number of
    runs that reach it (Auger and Hansen, "Performance evaluation of an advanced local search ...",
    CEC 2005).
    """
    reached = hits(cell, targets)
    spent = np.minimum(reached, cell.grid[-1]).sum(axis=0)
    successes = np.isfinite(reached).sum(axis=0)
    return np.where(successes > 0, spent / np.maximum(successes, 1), np.inf)


def running_times(results: Results) -> tuple[Floats, Floats]:
    """Return a target for each distribution, and `running_time` `(distributions, algorithms)`.

    The target is the highest mean of an algorithm at the end of its runs. NaN where there is none,
    and for missing cells.
    """
    goals = np.full(len(results.distributions), np.nan)
    times = np.full((len(results.distributions), len(results.algorithms)), np.nan)
    for d, distribution in enumerate(results.distributions):
        best = max(final(results, distribution).values(), key=mean, default=np.array([np.nan]))
        if np.isfinite(mean(best)):
            goals[d] = min(mean(best), best.max())  # rounding may raise the mean of equal values
            for a, label in enumerate(results.algorithms):
                if (distribution, label) in results.cells:
                    times[d, a] = running_time(results.cells[distribution, label], goals[d])[0]
    return goals, times


def span(results: Results, distribution: str) -> tuple[float, float]:
    """Return the range of interesting values on a distribution, from a poor start to the best.

    It goes from the worst algorithm's median at its first grid point to the best value of any run;
    NaN if no run has a value.
    """
    curves = [cell.curves for cell in results.row(distribution).values()]
    if not curves:
        raise ValueError(f"{results.name} has no runs on {distribution!r}, expected some")
    best = max(float(c[np.isfinite(c)].max(initial=-np.inf)) for c in curves)
    starts = [c[:, 0][np.isfinite(c[:, 0])] for c in curves]
    low = min((2 * float(np.median(s / 2)) for s in starts if len(s)), default=best)
    return (low, best) if best > -np.inf else (np.nan, np.nan)


def targets(results: Results, distribution: str, count: int = 51) -> Floats:
    """Return targets, equally spaced over the `span` of a distribution; the last is its best value.

    The instances of the distribution share them, so not every run can reach every target.
    """
    low, high = span(results, distribution)
    return 2 * np.linspace(low / 2, high / 2, count + 1)[1:]  # halved, so that nothing overflows


def ecdf(results: Results, count: int = 51) -> tuple[Ints, dict[str, Floats]]:
    """Return the grid, and the share of (run, target) pairs that each algorithm has reached there.

    All distributions on which an algorithm has runs have equal weight (Hansen et al., "COCO: a
    platform for comparing continuous optimizers", 2021). The grid is the union of those of all
    cells.
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
    """Return the area over each convergence curve, `(R,)`, from 0 to 1; lower is better.

    It is the part above the curve of a box, which reaches from `low` to `high` (see `span`) and
    from the start to the budget, in the logarithm of the evaluations if `log` is set. A value
    counts from its grid point on, so a coarse grid makes the area larger; before the first point
    nothing is known, and everything counts as area. If targets are equally spaced over the box, it
    is also the area over the ECDF of the runs. (López-Ibáñez and Stützle, "Automatically improving
    the anytime behaviour ...", EJOR 2014.)
    """
    if not low <= high:
        raise ValueError(f"low, high are {low}, {high}, expected low <= high")
    curves = np.where(np.isnan(cell.curves), -np.inf, cell.curves)
    height = high / 2 - low / 2  # halved, so that nothing overflows
    above = (high / 2 - curves / 2) / height if height > 0 else 1.0 * (curves < high)
    above = np.clip(above, 0.0, 1.0)
    edges = np.log(cell.grid) if log else cell.grid.astype(np.float64)
    if edges[-1] == 0:  # the logarithm of a budget of one evaluation is 0
        return above[:, -1]
    share: Floats = (edges[0] + above[:, :-1] @ np.diff(edges)) / edges[-1]
    return share


def areas(results: Results) -> Floats:
    """Return the mean `area_over_curve` in the `span`, `(distributions, algorithms)`, or NaN."""
    table = np.full((len(results.distributions), len(results.algorithms)), np.nan)
    for d, distribution in enumerate(results.distributions):
        # raises if budgets differ: areas up to different budgets cannot be compared
        final(results, distribution)
        box = span(results, distribution)
        for a, label in enumerate(results.algorithms):
            cell = results.cells.get((distribution, label))
            if cell is not None and not np.isnan(box).any():
                table[d, a] = mean(area_over_curve(cell, *box))
    return table
