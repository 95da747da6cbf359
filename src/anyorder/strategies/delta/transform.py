"""The scale on which f is modelled: its own, or a logarithm that makes gains alike.

On the exponential of a function of few interactions the gain of a change grows with the value, so
that it differs in every context. Its logarithm has the links of the function itself. For any two
gains of the same change, from u to u + p and from v to v + q, the logarithms of the distances to a
*pole* a agree if

    (u + p - a) / (u - a) = (v + q - a) / (v - a),    so    a = u + p (v - u) / (p - q).

Where the variables that differ between both contexts do not interact with the one that changes, the
gains are predicted exactly; if many pairs of gains name the same pole, f is the exponential of a
simpler function. The pole is below all values if f is steep where it is high (products,
likelihoods), and above them if it is flat there (the negative of a run time, or of an error that is
a product). Affine changes of f move the pole along with it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FIRST_LOOK = 1.5  # times n: observations when a transform is first considered
LOOK_GROWTH = 1.5  # factor from one time to the next
LEAST_AGREEING = 8  # pairs of gains that must agree on a pole
LEAST_SHARE = 0.025  # their share of all pairs that may tell scales apart
CLEARLY = 3.0  # times: as many as those that agree on another scale, the present one or f itself
WINDOW = 1e-6  # poles that differ less, relative to the distance to the values, are the same
FARTHEST = 100.0  # times the range of the values: beyond, the logarithm is as good as linear
ROUNDING = 1e-15  # relative error of a value
SAME = 1e-9  # of the root mean square gain: gains that are the same
KNOT = 1e-6  # times the smallest distance to the pole: the logarithm is continued linearly there


class Transform(NamedTuple):
    """A strictly increasing function of f: f itself, or a logarithm of the distance to a pole.

    Closer to the pole than `knot`, and beyond it, the tangent takes the place of the logarithm.
    """

    sign: int = 0  # 1: the pole is below the values; -1: above; 0: f itself
    pole: float = 0.0
    knot: float = 1.0

    def __call__(self, f: float) -> float:
        """The value that is modelled."""
        if self.sign == 0:
            return f
        distance = self.sign * (f - self.pole)
        if distance >= self.knot:
            return self.sign * math.log(distance)
        return self.sign * (math.log(self.knot) + distance / self.knot - 1.0)

    def _distance(self, value: float) -> float:
        level, least = self.sign * value, math.log(self.knot)
        return math.exp(level) if level >= least else self.knot * (level - least + 1.0)

    def inverse(self, value: float) -> float:
        """The value of f, up to rounding."""
        return value if self.sign == 0 else self.pole + self.sign * self._distance(value)

    def stretch(self, value: float) -> float:
        """How much f changes with the value that is modelled."""
        return 1.0 if self.sign == 0 else max(self._distance(value), self.knot)

    def describe(self) -> str:
        """It as a formula; a pole that is 0 up to rounding is left out."""
        if self.sign == 0:
            return "none"
        pole = self.pole if abs(self.pole) > WINDOW * self.knot / KNOT else 0.0
        if self.sign < 0:
            return f"-log({pole:.6g} - f)" if pole else "-log(-f)"
        return f"log(f {'+' if pole < 0 else '-'} {abs(pole):.6g})" if pole else "log(f)"


IDENTITY = Transform()


class Pairs(NamedTuple):
    """Pairs of gains of the same change in two contexts: from u to u + p, from v to v + q."""

    u: Floats
    p: Floats
    v: Floats
    q: Floats


def pair_up(changes: npt.NDArray[np.int32], levels: Floats) -> Pairs:
    """Each gain with the one before of the same change.

    Parameters
    ----------
    changes
        Of each observation the variable and both its values; it is none of a single variable if
        the first is negative.
    levels
        The values of f at both points.
    """
    single = changes[:, 0] >= 0
    variable, old, new = changes[single].T
    up = old < new
    low, high = np.where(up, old, new), np.where(up, new, old)
    at_low, at_high = np.where(up[:, None], levels[single], levels[single][:, ::-1]).T
    order = np.lexsort((high, low, variable))
    keys = np.stack([variable, low, high])[:, order]
    k = np.flatnonzero((keys[:, 1:] == keys[:, :-1]).all(axis=0))
    before, after = order[k], order[k + 1]
    gains = at_high - at_low
    return Pairs(at_low[before], gains[before], at_low[after], gains[after])


def choose(pairs: Pairs, present: Transform) -> Transform:
    """The transform under which most gains are the same in two contexts.

    f itself is left only for one that is clearly better, and so is another.
    """
    u, p, v, q = pairs
    if not len(u):
        return present
    ends = np.concatenate([u, u + p, v, v + q])
    low, high = float(ends.min()), float(ends.max())
    largest = max(abs(low), abs(high))
    same = SAME * math.sqrt(float(np.mean(p * p))) + 1e3 * ROUNDING * largest
    equal = np.abs(p - q) <= same
    # Gains of 0, and of the same two values, are the same on every scale.
    telling = ~(equal & ((np.abs(p) <= same) | (np.abs(v - u) <= same)))
    equals = int(np.count_nonzero(telling & equal))
    poles = _poles(pairs, telling & ~equal, low, high)
    first, last = _crowd(*poles[:2])
    agreeing = last - first
    kept = 0
    if present.sign:
        kept = int(np.count_nonzero(np.abs(poles[0] - present.pole) <= 2 * WINDOW * poles[1]))
    enough = max(LEAST_AGREEING, LEAST_SHARE * np.count_nonzero(telling), CLEARLY * equals)
    if agreeing < enough or agreeing <= CLEARLY * kept:
        return present if kept >= equals else IDENTITY
    weights = poles[2][first:last] ** -2.0
    pole = float(np.sum(poles[0][first:last] * weights) / np.sum(weights))
    distance = low - pole if pole < low else pole - high
    return Transform(1 if pole < low else -1, pole, KNOT * distance)


def _poles(
    pairs: Pairs, which: npt.NDArray[np.bool_], low: float, high: float
) -> tuple[Floats, Floats, Floats]:
    """The pole that each pair names, its distance to the values, and its error; sorted."""
    u, p, v, q = (column[which] for column in pairs)
    w = v - u
    keep = (p != 0) & (w != 0)
    u, p, q, w = u[keep], p[keep], q[keep], w[keep]
    away = p * w / (p - q)
    pole = u + away
    relative = 1 / np.abs(p) + 1 / np.abs(w) + 1 / np.abs(p - q)
    error = ROUNDING * max(abs(low), abs(high)) * (1 + np.abs(away) * relative)
    distance = np.where(pole < low, low - pole, pole - high)
    good = (distance < FARTHEST * (high - low)) & (error < WINDOW * distance)
    order = np.argsort(pole[good], kind="stable")
    return pole[good][order], distance[good][order], error[good][order]


def _crowd(poles: Floats, distances: Floats) -> tuple[int, int]:
    """Where most poles are the same: the first of them, and the one after the last."""
    if not len(poles):
        return 0, 0
    ends = np.searchsorted(poles, poles + WINDOW * distances, side="right")
    first = int(np.argmax(ends - np.arange(len(poles))))
    return first, int(ends[first])
