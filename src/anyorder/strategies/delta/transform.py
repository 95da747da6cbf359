"""The scale on which f is modelled: its own, or one on which gains are the same in more contexts.

On the exponential of a function of few interactions the gain of a change grows with the value, so
that it differs in every context. Its logarithm has the interactions of the function itself. The
scales that are considered are powers of the distance to a *pole* a, |f - a| ** k, with k = 0 for
the logarithm: Tukey's ladder (J. W. Tukey, "Exploratory Data Analysis", 1977). They undo
exponentials, reciprocals, roots and squares. The pole is below all values, or above them as for the
negative of a run time.

Two gains of the same change, from u to u + p and from v to v + q, are the same on a scale for one
value of the pole, which has a closed form (`_solutions`). If the variables that differ between both
contexts do not interact with the one that changes, that is the true pole. So if many pairs of gains
name the same pole, the gains on that scale are predicted exactly. Affine changes of f only move the
pole along with it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

POWERS = (0.0, -1.0, 0.5, 2.0)  # scales that are considered; 0 is the logarithm
FIRST_LOOK = 2.0  # times n: observations when a transform is first considered
LOOK_GROWTH = 1.5  # factor from one time to the next
LEAST_AGREEING = 8  # pairs of gains that must agree on a pole
LEAST_SHARE = 0.025  # their share of all pairs that may tell scales apart
CLEARLY = 3.0  # times as many as agree on the present scale, or on that of f
FEWEST = 3  # pairs that must name the same pole before all others are looked at
SETTLED = 0.1  # share of gains that are the same in units of f, so that no other scale is tried
WINDOW = 1e-6  # relative difference of gains, or of the distances to two poles, that is none
FARTHEST = 100.0  # times the range of the values: beyond, all scales are as good as linear
ROUNDING = 1e-15  # relative error of a value
SAME = 1e-9  # of the root mean square gain: gains that are the same
KNOT = 1e-6  # times the smallest distance to the pole: nearer to it the tangent is used
LARGEST = 1e150  # distance in units of that, so that no power overflows


class Transform(NamedTuple):
    """A strictly increasing function of f: f itself, or a power of the distance to a pole.

    Distances are in units of `knot`. Below 1, and beyond the pole, the tangent takes the place of
    the power. Values that are not finite stay as they are.
    """

    sign: int = 0  # 1: the pole is below the values; -1: above; 0: f itself
    pole: float = 0.0
    power: float = 0.0
    knot: float = 1.0

    def __call__(self, f: float) -> float:
        """The value that is modelled."""
        if self.sign == 0 or not math.isfinite(f):
            return f
        distance = min(max(self.sign * (f - self.pole) / self.knot, -LARGEST), LARGEST)
        if distance < 1.0:
            return self.sign * (self._at_knot() + distance - 1.0)
        if self.power == 0:
            return self.sign * math.log(distance)
        return self.sign * math.pow(distance, self.power) / self.power

    def _at_knot(self) -> float:
        return 1.0 / self.power if self.power else 0.0

    def _distance(self, value: float) -> float:
        level, above = self.sign * value, self.sign * value - self._at_knot()
        if above < 0:
            return 1.0 + above
        if self.power == 0:
            return math.exp(min(level, math.log(LARGEST)))
        if self.power < 0 and level >= 0:  # a prediction that no value of f has
            return LARGEST
        return math.pow(self.power * level, 1.0 / self.power)

    def inverse(self, value: float) -> float:
        """The value of f, up to rounding."""
        if self.sign == 0 or not math.isfinite(value):
            return value
        return self.pole + self.sign * self.knot * self._distance(value)

    def stretch(self, value: float) -> float:
        """How much f changes with the value that is modelled."""
        if self.sign == 0 or not math.isfinite(value):
            return 1.0
        return self.knot * math.pow(max(self._distance(value), 1.0), 1.0 - self.power)

    def describe(self) -> str:
        """It as a formula; a pole that is 0 up to rounding is left out."""
        if self.sign == 0:
            return "none"
        pole = self.pole if abs(self.pole) > WINDOW * self.knot / KNOT else 0.0
        if self.sign > 0:
            inner = f"f {'+' if pole < 0 else '-'} {abs(pole):.6g}" if pole else "f"
        else:
            inner = f"{pole:.6g} - f" if pole else "-f"
        if self.power == 0:
            return f"{'-' if self.sign < 0 else ''}log({inner})"
        inner = inner if inner == "f" else f"({inner})"
        return f"{'-' if self.sign * self.power < 0 else ''}{inner}^{self.power:g}"


IDENTITY = Transform()


class Pairs(NamedTuple):
    """Pairs of gains of the same change in two contexts: from u to u + p, from v to v + q."""

    u: Floats
    p: Floats
    v: Floats
    q: Floats

    def ends(self) -> Floats:
        """The values: after and before the first gain, after and before the second."""
        return np.stack([self.u + self.p, self.u, self.v + self.q, self.v])

    def only(self, which: npt.NDArray[np.bool_]) -> Pairs:
        """Some of them."""
        return Pairs(*(column[which] for column in self))


class Poles(NamedTuple):
    """The poles that pairs of gains name for one power, in increasing order."""

    place: Floats
    distance: Floats  # to the nearest value
    error: Floats  # by rounding

    def crowd(self) -> tuple[int, int]:
        """Where most of them are the same: the first one, and the one after the last."""
        if not len(self.place):
            return 0, 0
        ends = np.searchsorted(self.place, self.place + WINDOW * self.distance, side="right")
        first = int(np.argmax(ends - np.arange(len(ends))))
        return first, int(ends[first])


def pair_up(changes: npt.NDArray[np.int32], levels: Floats) -> Pairs:
    """Each gain with the one before of the same change.

    Parameters
    ----------
    changes
        Of each observation the variable and both its values; several variables change if the first
        is negative.
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
    """The scale on which most gains are the same in two contexts.

    The present one is left only for one on which there are clearly more, or for f itself.
    """
    u, p, v, q = pairs
    if not len(u):
        return present
    ends = pairs.ends()
    low, high = float(ends.min()), float(ends.max())
    same = SAME * math.sqrt(float(np.mean(p * p))) + 1e3 * ROUNDING * np.abs(ends).max(axis=0)
    equal = np.abs(p - q) <= same
    # Gains of 0, and those between the same two values, are the same on every scale.
    telling = ~(equal & ((np.abs(p) <= same) | (np.abs(v - u) <= same)))
    equals, others = int(np.count_nonzero(telling & equal)), telling & ~equal
    enough = max(LEAST_AGREEING, LEAST_SHARE * np.count_nonzero(telling), CLEARLY * equals)
    settled = equals >= max(LEAST_AGREEING, SETTLED * np.count_nonzero(telling))
    if not present.sign and (settled or np.count_nonzero(others) < enough):
        return present
    different = pairs.only(others)
    kept = count_agreeing(different, present) if present.sign else 0
    most, found = 0, present
    for power in POWERS:
        poles = find_poles(different, power, low, high)
        first, last = poles.crowd()
        if last - first < FEWEST:
            continue
        weights = (poles.error[first] / poles.error[first:last]) ** 2
        pole = float(np.sum(poles.place[first:last] * weights) / np.sum(weights))
        sign, distance = (1, low - pole) if pole < low else (-1, pole - high)
        transform = Transform(sign, pole, power, KNOT * distance)
        agreeing = count_agreeing(different, transform)
        if agreeing > most:
            most, found = agreeing, transform
    if most >= enough and most > CLEARLY * kept:
        return found
    return present if kept >= equals else IDENTITY


def count_agreeing(pairs: Pairs, transform: Transform) -> int:
    """How many pairs of gains are the same on a scale; those of the same values count once.

    Where f has few values, pairs of the same values come again and again, and agree with each other
    on any scale.
    """
    with np.errstate(all="ignore"):
        ends = transform.sign * (pairs.ends() - transform.pole) / transform.knot
        raised = _raised(ends, transform.power)  # NaN beyond the pole, which agrees with nothing
        one, two = raised[0] - raised[1], raised[2] - raised[3]
        agree = np.abs(one - two) <= WINDOW * (np.abs(one) + np.abs(two))
    found = np.stack(pairs.only(agree & np.isfinite(one) & np.isfinite(two)))
    return int(np.unique(found, axis=1).shape[1])


def find_poles(pairs: Pairs, power: float, low: float, high: float) -> Poles:
    """The poles outside of the values, from `low` to `high`, that make the gains of pairs equal.

    Only those are kept that rounding does not blur.
    """
    unit = math.ldexp(1.0, math.frexp(high - low)[1])  # in which nothing over- or underflows
    pairs, low, high = Pairs(*(column / unit for column in pairs)), low / unit, high / unit
    with np.errstate(all="ignore"):
        solutions = _solutions(pairs, power)
        pole = np.concatenate([pairs.u + away for away in solutions])
        distance = np.maximum(low - pole, pole - high)
        outside = (distance > 0) & (distance < FARTHEST * (high - low))
        pole, distance = pole[outside], distance[outside]
        values = np.tile(pairs.ends(), len(solutions))[:, outside]
        ends = np.abs(values - pole)
        raised, slopes = _raised(ends, power), ends ** (power - 1.0)
        doubt = ROUNDING * (np.abs(values) * slopes).sum(axis=0)
        residual = np.abs(raised[0] - raised[1] - raised[2] + raised[3])
        error = doubt / np.abs(slopes[0] - slopes[1] - slopes[2] + slopes[3])
        # Squaring an equation, as for some of the solutions, adds wrong ones.
        right = residual <= 1e3 * (doubt + ROUNDING * np.abs(raised).sum(axis=0))
        good = right & (error < WINDOW * distance)
    order = np.argsort(pole[good], kind="stable")
    return Poles(*(unit * column[good][order] for column in (pole, distance, error)))


def _raised(distances: Floats, power: float) -> Floats:
    raised: Floats = np.log(distances) if power == 0 else distances**power / power
    return raised


def _solutions(pairs: Pairs, power: float) -> list[Floats]:
    """The poles that make both gains the same, relative to u; not finite if there is none.

    With b for the pole and w = v - u: (p - b) ** k - (-b) ** k = (w + q - b) ** k - (w - b) ** k.
    """
    u, p, v, q = pairs
    w, less = v - u, p - q
    if power == 0:
        return [p * w / less]
    if power == 2:
        return [(p * p - q * q - 2 * q * w) / (2 * less)]
    if power == -1:
        root = np.sqrt(p * q * w * (w - less))
        return [(p * w + root) / less, (p * w - root) / less]
    assert power == 0.5, power
    m = -less / 2 - 2 * p * w / less
    return [(p * w - m * m / 4) / (m + p + w)]
