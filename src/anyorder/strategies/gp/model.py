"""A Gaussian process over the points of a space.

The correlation of two points is a product over columns (`columns.py`), k = prod g_i with

    nominal    g = exp(-w [x != y])
    ordered    g = (1 + t + t^2 / 3) exp(-t), t = sqrt(6 w) |x - y|     Matern 5/2
    neighbours g = exp(-w s), s the share of an item's two neighbours that differ

and w_i = exp(T + u_i) / n. For a small weight, the ends of an ordered variable are as different as
two categories: g = exp(-w |x - y|^2) except for terms of higher order. If an ordered column is
absent in one of two points, g is exp(-w) times the g of a value in the middle. The covariance of
values is s^2 (k + 1 + v [x = y]), where the 1 stands for an unknown constant. T, u and log v
maximise the posterior density under normal priors, and s^2 maximises the likelihood. With small
weights and a large s^2 the model is additive.

Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), chapters 2 and 5.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anyorder._internal.compiling import announce_compilation
from anyorder.strategies.gp.columns import ORDERED, Columns
from anyorder.strategies.gp.minimise import minimise

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

# Mean, standard deviation, lower and upper bound of each parameter.
SCALE_PRIOR = (math.log(2.0), 1.0, -4.0, 5.0)  # T
NOISE_PRIOR = (-7.0, 3.0, -13.8, 1.0)  # log v
RELEVANCE_PRIOR = (0.0, 1.0, -5.0, 5.0)  # u_i
MOST_WEIGHT = 30.0  # the largest weight of a nominal column: its factor is then 1e-13
MOST_RATE = 100.0  # the largest sqrt(6 w) of an ordered column
LEAST_VARIANCE = 1e-12  # the least variance of a process, in units of the values
MOST_PRODUCTS = 1.5e6  # the most multiplications for deviations in a call of `improvements`
LEAST_EXACT = 24  # at least so many of the points with the best means have a deviation


class Origin(NamedTuple):
    """A point with its correlations to the points of the model."""

    columns: Floats
    correlations: Floats


class GP:
    """A Gaussian process, conditioned on points with values and on points without.

    Points without a value, *pending* ones, come last. They change variances but not means, as if
    each had the value that the model expects (the "kriging believer").

    Parameters
    ----------
    columns
        The columns that describe points.

    Attributes
    ----------
    parameters
        The vector of T, log v and u.
    known
        The number of points with values.
    error
        The mean squared error of predicting each value from all others, in units of the variance of
        the values; below 1 if the model predicts anything. NaN before the first fit.
    noise
        The standard deviation of the noise at the last fit, in units of that of the values.
    """

    def __init__(self, columns: Columns) -> None:
        from anyorder.strategies.gp import kernels  # imports Numba

        self._kernels: Any = kernels
        self.columns = columns
        priors = np.array([SCALE_PRIOR, NOISE_PRIOR, *[RELEVANCE_PRIOR] * len(columns.labels)]).T
        self._mean, self._deviation, self._low, self._high = priors
        self.parameters: Floats = self._mean.copy()
        self.known, self.error, self.noise = 0, math.nan, math.nan
        self._rows: Floats = np.empty((0, len(columns)))
        self._correlations = self._inverse = self._precision = np.empty((0, 0))
        self._solution = np.empty(0)
        self._variance = 1.0

    def __len__(self) -> int:
        return len(self._rows)

    # --- parameters -----------------------------------------------------------------------------

    def expect_noise(self, mean: float, deviation: float) -> None:
        """Set the prior of log v."""
        self._mean[1], self._deviation[1] = mean, deviation

    def weights(self, parameters: Floats | None = None) -> Floats:
        """Return the weight of each column, as the kernels expect it."""
        p = self.parameters if parameters is None else parameters
        found = np.exp(p[0] + p[2:])[self.columns.owner] * self.columns.share
        rates = np.minimum(np.sqrt(6.0 * found), MOST_RATE)
        ordered = self.columns.kinds == ORDERED
        weights: Floats = np.where(ordered, rates, np.minimum(found, MOST_WEIGHT))
        return weights

    def relevances(self) -> Floats:
        """Return exp(u), the relevance of each variable, which is 1 on average under the prior."""
        found: Floats = np.exp(self.parameters[2:])
        return found

    def objective(self, parameters: Floats, rows: Floats, values: Floats) -> tuple[float, Floats]:
        """Return minus the log of the posterior density, up to a constant, and its gradient."""
        count = len(values)
        self._reserve(count)
        self._correlate(rows, 0, parameters)
        self._kernels.extend(self._correlations, math.exp(parameters[1]), 0, count, self._inverse)
        solution = np.empty(count)
        log_determinant = -self._kernels.solve(self._inverse, count, values, solution)
        variance = max(float(values @ solution) / count, LEAST_VARIANCE)
        by_column = np.empty(len(self.columns))
        trace = self._kernels.slope(
            rows, self.weights(parameters), self.columns.kinds, self.columns.nominal,
            self._correlations, self._inverse, solution, variance, self._precision, by_column,
        )  # fmt: skip
        off = (parameters - self._mean) / self._deviation
        value = 0.5 * (count * math.log(variance) + log_determinant + float(off @ off))
        gradient = off / self._deviation
        gradient[0] += by_column.sum()
        gradient[1] += trace * math.exp(parameters[1])
        gradient[2:] += np.bincount(self.columns.owner, by_column, len(gradient) - 2)
        return value, gradient

    def fit(self, rows: Floats, values: Floats, iterations: int) -> None:
        """Improve the parameters, and condition the process on points with values."""
        announce_compilation(self._kernels.slope, "the Gaussian process", 5)
        self.parameters = minimise(
            lambda p: self.objective(p, rows, values),
            self.parameters, self._low, self._high, iterations,
        )  # fmt: skip
        self.condition(rows, values, 0)
        left = self._inverse[: self.known, : self.known]
        precision = np.square(np.tril(left)).sum(axis=0)
        spread = float(np.var(values)) or 1.0
        self.error = float(np.mean(np.square(self._solution / precision))) / spread
        self.noise = math.sqrt(math.exp(self.parameters[1]) * self._variance / spread)

    # --- conditioning ---------------------------------------------------------------------------

    def condition(self, rows: Floats, values: Floats, same: int = 0) -> None:
        """Condition the process on points with values; the first `same` of them are unchanged."""
        self._reserve(len(rows))
        self._rows = np.ascontiguousarray(rows)
        self._extend(min(same, self.known))
        self.known = len(values)
        self._solution = np.empty(self.known)
        self._kernels.solve(self._inverse, self.known, values, self._solution)
        self._variance = float(values @ self._solution) / max(self.known, 1)
        self._variance = max(self._variance, LEAST_VARIANCE)

    def add_pending(self, row: Floats) -> None:
        """Condition the process also on a point without a value."""
        self._reserve(len(self) + 1)
        self._rows = np.concatenate([self._rows, row[None]])
        self._extend(len(self._rows) - 1)

    def forget(self) -> None:
        """Forget all points, but keep the parameters."""
        self._rows, self.known = self._rows[:0], 0

    def _reserve(self, count: int) -> None:
        old = len(self._inverse)
        if count <= old:
            return
        size = max(32, count + count // 2)
        for name in ("_correlations", "_inverse", "_precision"):
            grown = np.zeros((size, size))
            grown[:old, :old] = getattr(self, name)
            setattr(self, name, grown)

    def _correlate(self, rows: Floats, first: int, parameters: Floats | None = None) -> None:
        self._kernels.correlate(
            rows, rows, self.weights(parameters), self.columns.kinds, self.columns.nominal, first,
            True, self._correlations,
        )  # fmt: skip

    def _extend(self, first: int) -> None:
        self._correlate(self._rows, first)
        noise = math.exp(self.parameters[1])
        self._kernels.extend(self._correlations, noise, first, len(self._rows), self._inverse)

    # --- predictions ----------------------------------------------------------------------------

    def origin(self, row: Floats) -> Origin:
        """Return a point with which others are compared."""
        found = np.empty((1, len(self)))
        self._kernels.correlate(
            row[None], self._rows, self.weights(), self.columns.kinds, self.columns.nominal, 0,
            False, found,
        )  # fmt: skip
        return Origin(row, found[0])

    def _compare(self, origin: Origin, rows: Floats) -> tuple[Floats, Floats]:
        correlations, means = np.empty((len(rows), len(self))), np.empty(len(rows))
        self._kernels.neighbours(
            origin.columns, origin.correlations, rows, self._rows, self.weights(),
            self.columns.kinds, self.columns.nominal, self._solution, correlations, means,
        )  # fmt: skip
        return correlations, means

    def _expect(
        self, correlations: Floats, chosen: Index, means: Floats, best: float
    ) -> tuple[Floats, Floats]:
        deviations, gains = np.empty(len(chosen)), np.empty(len(chosen))
        self._kernels.expect(
            correlations, chosen, len(self), self._inverse, means, math.sqrt(self._variance), best,
            deviations, gains,
        )  # fmt: skip
        return deviations, gains

    def predict(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations of the function at points."""
        if not len(rows):
            return np.zeros(0), np.zeros(0)
        correlations, means = self._compare(self.origin(rows[0]), rows)
        return means, self._expect(correlations, np.arange(len(rows)), means, 0.0)[0]

    def means(self, origin: Origin, rows: Floats) -> Floats:
        """Return the predicted means of points near an origin."""
        return self._compare(origin, rows)[1]

    def means_of_known(self) -> Floats:
        """Return the predicted means at the points with values."""
        return self.predict(self._rows[: self.known])[0]

    def improvements(self, origin: Origin, rows: Floats, best: float) -> Floats:
        """Return the log of the expected improvement over `best` at points near an origin.

        If the model is large, only the points with the best means are considered; it is -inf for
        the others.
        """
        correlations, means = self._compare(origin, rows)
        most = max(LEAST_EXACT, int(MOST_PRODUCTS / max(len(self), 1) ** 2))
        chosen = np.arange(len(rows))
        if len(rows) > most:
            chosen = np.argsort(-means, kind="stable")[:most]
        found = np.full(len(rows), -np.inf)
        found[chosen] = self._expect(correlations, chosen, means, best)[1]
        return found
