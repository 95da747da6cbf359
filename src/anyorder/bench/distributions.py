"""Probability distributions for the tests in stats.py, which NumPy does not provide."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from anyorder.bench.results import Floats

_NORMAL = NormalDist()


def each(function: Callable[[float], float], values: Floats) -> Floats:
    """Apply a scalar function to each entry of an array."""
    return np.array([function(x) for x in values.tolist()])


def incomplete_beta(a: float, b: float, x: float, rest: float | None = None) -> float:
    """The regularised incomplete beta function I_x(a, b); `rest` is 1 - x if known more precisely.

    Continued fraction DLMF 8.17.22 by Lentz's method (Press et al., Numerical Recipes, 6.4).
    """
    rest = 1 - x if rest is None else rest
    if not (a > 0 and b > 0 and 0 <= x <= 1):
        raise ValueError(f"a, b, x are {a}, {b}, {x}, expected a, b > 0 and x from 0 to 1")
    if x == 0 or rest == 0:
        return float(x > 0)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on this side only
        return 1 - incomplete_beta(b, a, rest, x)
    log_x = math.log(x) if x < 0.5 else math.log1p(-rest)
    log_rest = math.log(rest) if rest < 0.5 else math.log1p(-x)
    front = math.exp(a * log_x + b * log_rest - _log_beta(a, b)) / a
    tiny, c, d = 1e-300, 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 100_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            c, d = 1 + step / c or tiny, 1 / (1 + step * d or tiny)
            value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return front * value


def _log_beta(a: float, b: float) -> float:
    a, b = max(a, b), min(a, b)
    if a < 20:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    def tail(x: float) -> float:  # of Stirling's series: the logarithms of large numbers cancel
        return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / x**2) / x**2) / x**2) / x

    ratio = (a - 0.5) * math.log1p(b / a) + b * math.log(a + b) - b + tail(a + b) - tail(a)
    return math.lgamma(b) - ratio


def chi_squared(x: float, freedom: int) -> float:
    """The survival function, by the finite sum for integer degrees of freedom.

    Abramowitz and Stegun 26.4.4 and 26.4.5.
    """
    half = x / 2
    if half <= 0:
        return 1.0
    powers = [k + freedom % 2 / 2 for k in range(freedom // 2)]
    terms = [math.exp(k * math.log(half) - half - math.lgamma(k + 1)) for k in powers]
    return min(1.0, math.fsum(terms) + (math.erfc(math.sqrt(half)) if freedom % 2 else 0.0))


def studentised_range(level: float, k: int) -> float:
    """The quantile of the range of k standard normals: Tukey's q with infinite degrees of freedom.

    The probability k ∫ φ(z) (Φ(z) - Φ(z - q))^(k-1) dz by the trapezoid rule, which converges
    faster than any power for such integrands, then bisection; accurate to 1e-9.
    """
    if not 0 < level < 1 or k < 2:
        raise ValueError(f"level, k are {level}, {k}, expected 0 < level < 1 and k >= 2")
    z = np.linspace(-9.0, 9.0, 361)
    weights = k * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    below = each(_NORMAL.cdf, z)
    low, high = 0.0, 20.0
    while high - low > 1e-10:
        q = (low + high) / 2
        reached = float(weights @ (below - each(_NORMAL.cdf, z - q)) ** (k - 1))
        low, high = (q, high) if reached < level else (low, q)
    return (low + high) / 2
