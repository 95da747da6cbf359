"""The scale of the models: f itself, or a function of f by which gains are equal in more contexts.

Suppose that f is the exponential of a function with few interactions. The gain of a change grows
with the value, so that it is different in every context; the logarithm of f has the few
interactions. The scales considered are powers of the distance to a *pole* a, |f - a| ** k, with
k = 0 for the logarithm: Tukey's ladder (J. W. Tukey, "Exploratory Data Analysis", 1977). They undo
exponentials, reciprocals, roots and squares. The pole is below all values; or above all values, as
for the negative of a run time.

Take two gains of the same change: from u to u + p, and from v to v + q. They are equal on a scale
for one value of the pole, which has a closed form (`_solve_for_poles`). It is the true pole if the
variables that differ between both contexts do not interact with the variable that changes. So if
many pairs of gains lead to the same pole, gains are predicted exactly on that scale. Affine changes
of f only move the pole.

For the pole 0, any exponent is considered: again, one value of k makes two gains equal
(`find_powers`). If k is positive, values of f may have both signs, which they keep.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LADDER = (0.0, -1.0, 0.5, 2.0)  # exponents of the scales with any pole; 0 is the logarithm
FIRST_LOOK = 2.0  # times n: observations when the scale is considered for the first time
LOOK_GROWTH = 1.5  # growth of the observations until the scale is considered again
LEAST_AGREEING = 8  # the least number of pairs of gains that must be equal on a new scale
# the least share of pairs that must be equal on a new scale, among pairs that distinguish scales
LEAST_AGREEING_SHARE = 0.025
# so many times more pairs of gains must be equal on a new scale than on the present one, or for f
CLEARLY = 3.0
LEAST_NAMED = 3  # a pole or an exponent is considered if so many pairs of gains lead to it
SETTLED = 0.1  # share of pairs of gains that are equal for f itself, above which f is the scale
WINDOW = 1e-6  # relative differences of gains, or of distances to poles, up to this count as 0
FARTHEST = 100.0  # poles are at most so many times the range of the values away from the values
EPSILON = 1e-15  # relative rounding error of a value
SAME = 1e-9  # gains are equal if they differ by at most this share of the root mean square gain
KNOT = 1e-6  # below this share of the least distance to the pole, a scale continues as its tangent
LARGEST = 1e100  # the largest distance to the pole, in units of `knot`, so that no power overflows
STEEPEST = 3.0  # the largest exponent, of either sign, that is considered for the pole 0
FLATTEST = 0.01  # exponents so close to 0 count as the logarithm, and so close to 1 as f itself
NEWTON_STEPS = 7  # steps of Newton's method to find an exponent
TINY = sys.float_info.min


class Transform(NamedTuple):
    """A strictly increasing function of f: f itself, or a power of the distance to a pole.

    Distances are in units of `knot`, and negative beyond the pole. A positive power is that of the
    absolute value of the distance, with the sign of the distance. Any other power is replaced by
    its tangent at distances below 1. Values that are not finite stay as they are.
    """

    sign: int = 0  # 1: the pole is below the values; -1: it is above them; 0: f itself
    pole: float = 0.0
    power: float = 0.0
    knot: float = 1.0

    def __call__(self, f: float) -> float:
        """Return the value on the scale for a value of f."""
        if self.sign == 0 or not math.isfinite(f):
            return f
        distance = min(max(self.sign * (f - self.pole) / self.knot, -LARGEST), LARGEST)
        if self.power > 0:
            raised = math.pow(abs(distance), self.power) / self.power
            return self.sign * math.copysign(raised, distance)
        if distance < 1.0:
            return self.sign * (self._at_knot() + distance - 1.0)
        if self.power == 0:
            return self.sign * math.log(distance)
        return self.sign * math.pow(distance, self.power) / self.power

    def _at_knot(self) -> float:
        return 1.0 / self.power if self.power else 0.0

    def _distance(self, value: float) -> float:
        level = self.sign * value
        if self.power > 0:
            raised = min(self.power * abs(level), math.pow(LARGEST, self.power))
            return math.copysign(math.pow(raised, 1.0 / self.power), level)
        above = level - self._at_knot()
        if above < 0:
            return 1.0 + above
        if self.power == 0:
            return math.exp(min(level, math.log(LARGEST)))
        # predictions that no value of f can have also get the largest distance
        raised = max(self.power * level, math.pow(LARGEST, self.power))
        return math.pow(raised, 1.0 / self.power)

    def inverse(self, value: float) -> float:
        """Return the value of f, up to rounding, for a value on the scale."""
        if self.sign == 0 or not math.isfinite(value):
            return value
        return self.pole + self.sign * self.knot * self._distance(value)

    def stretch(self, value: float) -> float:
        """Return the derivative of f with respect to the value on the scale."""
        if self.sign == 0 or not math.isfinite(value):
            return 1.0
        distance = self._distance(value)
        if self.power > 0:  # so that the derivative is finite at the pole, too
            distance = abs(distance)
        return self.knot * math.pow(max(distance, 1.0), 1.0 - self.power)

    def describe(self) -> str:
        """Return the scale as a formula; a pole that is 0 up to rounding is left out."""
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
        """Return the values after and before the first gain, then after and before the second."""
        return np.stack([self.u + self.p, self.u, self.v + self.q, self.v])

    def only(self, which: npt.NDArray[np.bool_]) -> Pairs:
        """Return the pairs for which `which` is True."""
        return Pairs(*(column[which] for column in self))


class Votes(NamedTuple):
    """The numbers to which pairs of gains lead: poles for one power, or powers for one pole.

    They are in increasing order.
    """

    number: Floats
    unit: Floats  # the unit of differences between numbers
    error: Floats  # the rounding error of each number

    def winner(self) -> float | None:
        """Return the most frequent number, up to rounding; None if fewer than three agree."""
        if not len(self.number):
            return None
        ends = np.searchsorted(self.number, self.number + WINDOW * self.unit, side="right")
        first = int(np.argmax(ends - np.arange(len(ends))))
        last = int(ends[first])
        if last - first < LEAST_NAMED:
            return None
        weights = (self.error[first] / self.error[first:last]) ** 2
        return float(np.sum(self.number[first:last] * weights) / np.sum(weights))


def pair_up(changes: npt.NDArray[np.int32], levels: Floats) -> Pairs:
    """Pair each gain with the previous gain of the same change.

    Parameters
    ----------
    changes
        For each observation, the variable and both its values. Observations with a negative
        variable, in which several variables change, are left out.
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
    """Choose the scale on which most pairs of gains are equal.

    The present scale is replaced only by one on which clearly more pairs are equal, or by f itself.
    """
    u, p, v, q = pairs
    if not len(u):
        return present
    ends = pairs.ends()
    low, high = float(ends.min()), float(ends.max())
    same = SAME * math.sqrt(float(np.mean(p * p))) + 1e3 * EPSILON * np.abs(ends).max(axis=0)
    equal = np.abs(p - q) <= same
    # gains of 0, and gains between the same two values, are equal on every scale
    telling = ~(equal & ((np.abs(p) <= same) | (np.abs(v - u) <= same)))
    equals, others = int(np.count_nonzero(telling & equal)), telling & ~equal
    enough = max(LEAST_AGREEING, LEAST_AGREEING_SHARE * np.count_nonzero(telling), CLEARLY * equals)
    settled = equals >= max(LEAST_AGREEING, SETTLED * np.count_nonzero(telling))
    if not present.sign and (settled or np.count_nonzero(others) < enough):
        return present
    different = pairs.only(others)
    kept = count_agreeing(different, present) if present.sign else 0
    most, found = 0, present
    for transform in _find_candidates(different, low, high):
        agreeing = count_agreeing(different, transform)
        if agreeing > most:
            most, found = agreeing, transform
    if most >= enough and most > CLEARLY * kept:
        return found
    return present if kept >= equals else IDENTITY


def _find_candidates(pairs: Pairs, low: float, high: float) -> Iterator[Transform]:
    """Yield the scales that some pairs of gains name."""
    for power in LADDER:
        pole = find_poles(pairs, power, low, high).winner()
        if pole is not None:
            sign, distance = (1, low - pole) if pole < low else (-1, pole - high)
            yield Transform(sign, pole, power, KNOT * distance)
    # if f has both signs, the search is moving to values above 0
    sign = 1 if high > 0 else -1
    distances = Pairs(*(sign * column for column in pairs))
    distances = distances.only(distances.ends().min(axis=0) > 0)
    named = find_powers(distances).winner()
    if named is None or abs(named - 1.0) < FLATTEST:
        return
    power = named if abs(named) > FLATTEST else 0.0
    if power > 0:  # values may be as close to the pole as they like
        yield Transform(sign, 0.0, power, KNOT * float(np.median(distances.ends())))
    elif low > 0 or high < 0:
        yield Transform(sign, 0.0, power, max(KNOT * min(abs(low), abs(high)), TINY))


def count_agreeing(pairs: Pairs, transform: Transform) -> int:
    """Count the pairs of gains that are equal on a scale; pairs of the same values count once.

    If f has few values, the same pairs of values occur again and again.
    """
    with np.errstate(all="ignore"):
        ends = transform.sign * (pairs.ends() - transform.pole) / transform.knot
        raised = _raise(ends, transform.power)  # NaN is equal to nothing
        one, two = raised[0] - raised[1], raised[2] - raised[3]
        agree = np.abs(one - two) <= WINDOW * (np.abs(one) + np.abs(two))
    found = np.stack(pairs.only(agree & np.isfinite(one) & np.isfinite(two)))
    return int(np.unique(found, axis=1).shape[1])


def find_poles(pairs: Pairs, power: float, low: float, high: float) -> Votes:
    """Return the poles that make the gains of pairs equal, without inexact ones.

    Poles are outside of the range of the values, [low, high].
    """
    unit = math.ldexp(1.0, math.frexp(high - low)[1])  # in this unit, nothing over- or underflows
    pairs, low, high = Pairs(*(column / unit for column in pairs)), low / unit, high / unit
    with np.errstate(all="ignore"):
        solutions = _solve_for_poles(pairs, power)
        pole = np.concatenate([pairs.u + away for away in solutions])
        distance = np.maximum(low - pole, pole - high)
        outside = (distance > 0) & (distance < FARTHEST * (high - low))
        pole, distance = pole[outside], distance[outside]
        values = np.tile(pairs.ends(), len(solutions))[:, outside]
        ends = np.abs(values - pole)
        raised, slopes = _raise(ends, power), ends ** (power - 1.0)
        doubt = EPSILON * (np.abs(values) * slopes).sum(axis=0)
        residual = np.abs(raised[0] - raised[1] - raised[2] + raised[3])
        error = doubt / np.abs(slopes[0] - slopes[1] - slopes[2] + slopes[3])
        # some solutions come from a squared equation, which adds wrong ones
        right = residual <= 1e3 * (doubt + EPSILON * np.abs(raised).sum(axis=0))
        good = right & (error < WINDOW * distance)
    order = np.argsort(pole[good], kind="stable")
    return Votes(*(unit * column[good][order] for column in (pole, distance, error)))


def find_powers(pairs: Pairs) -> Votes:
    """Return the powers, for pole 0, that make the gains of pairs of positive values equal.

    Let r be half of log(u + p) - log u, s half of log(v + q) - log v, and m the distance between
    the middles of both logarithmic ranges. Then exp(k m) sinh(k r) = sinh(k s). The logarithm of
    the ratio of both sides is monotone in k, unless one range contains the other; then there is no
    solution.
    """
    u, p, v, q = pairs
    with np.errstate(all="ignore"):
        r, s = np.log1p(p / u) / 2, np.log1p(q / v) / 2
        m = np.log(u / v) + r - s
        possible = (r * s > 0) & (np.abs(m) > np.abs(r - s))
        m, r, s = m[possible], r[possible], s[possible]
        doubt = EPSILON * (4.0 + np.abs(u / p) + np.abs(v / q))[possible]
        power = np.full(len(m), 0.5)
        for _ in range(NEWTON_STEPS):
            residual = power * m + np.log(np.sinh(power * r) / np.sinh(power * s))
            slope = m + r / np.tanh(power * r) - s / np.tanh(power * s)
            power = np.clip(power - residual / slope, -STEEPEST, STEEPEST)
            power[power == 0] = EPSILON  # at 0, residual and slope would be 0 / 0
        error = doubt / np.abs(slope)
        inside = np.abs(power) < STEEPEST
        good = inside & (np.abs(residual) <= 1e3 * doubt) & (error < WINDOW)
    order = np.argsort(power[good], kind="stable")
    return Votes(power[good][order], np.ones(len(order)), error[good][order])


def _raise(distances: Floats, power: float) -> Floats:
    """Raise distances to a power as `Transform` does; NaN beyond the pole if it is not positive."""
    if power > 0:
        signed: Floats = np.copysign(np.abs(distances) ** power, distances) / power
        return signed
    beyond = np.where(distances > 0, distances, np.nan)
    raised: Floats = np.log(beyond) if power == 0 else beyond**power / power
    return raised


def _solve_for_poles(pairs: Pairs, power: float) -> list[Floats]:
    """Return the poles that make both gains equal, relative to u; not finite if there is none.

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
