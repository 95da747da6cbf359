"""Ordered variables with many values, written in digits.

A table, or a network, with an entry for each of a million values is too large, and knows nothing
about values that are near each other. Strategies with such tables split a variable with many values
into digits, the coarsest first, each of which is a small ordered variable:

    code 523 of 1,000 values  <->  digits 5, 2, 3

The size of a model then grows with the logarithm of the number of values.

*Positions.* Digits number the positions of a scale, and each position means a code. There are at
least as many positions as codes. There are more if the number of codes is not the product of the
radices, or if the scale is logarithmic (`Integer(..., log=True)`), where small values have more
positions.

*Reflection.* If the number made of the preceding digits is odd, a digit counts downwards.
Neighbouring positions therefore always differ in one digit, by one (a Gray code).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder.space.space import Space
from anyorder.space.variables import Variable

WIDE = 50  # an ordered variable with more values than this is wide (docs/integers.md)
_BASE = 12  # the most values of a digit: two digits are enough for 101 levels

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]


class Scale:
    """The positions of one ordered variable: linear in its codes, or logarithmic in its values.

    Attributes
    ----------
    values
        The number of codes.
    positions
        The number of positions, at least the number of codes.
    radices
        The number of values of each digit of a position, coarsest first.
    length
        The length of the scale, in the unit of steps: codes if linear, positions if logarithmic.
    """

    def __init__(self, variable: Variable) -> None:
        self.values = len(variable)
        self.log, least = False, self.values
        if variable.logarithmic:
            self.log = True
            self._first = float(variable.values[0])
            self._step = float(variable.values[1] - variable.values[0])
            last = float(variable.values[-1])
            self._low = math.log(self._first)
            self._width = math.log(last + self._step) - self._low
            # the codes at the upper end have the shortest intervals: two positions each
            least = math.ceil(2 * self._width / math.log1p(self._step / last))
        self.radices = _radices(least)
        self.positions = math.prod(self.radices)
        self.length = self.positions if self.log else self.values

    def codes(self, positions: Ints) -> Ints:
        """Return the code at each position."""
        if not self.log:
            return positions * self.values // self.positions
        value = np.exp(self._low + self._width * (positions + 0.5) / self.positions)
        found: Ints = ((value - self._first) / self._step).astype(np.int64)
        return found.clip(0, self.values - 1)

    def places(self, codes: Ints) -> Ints:
        """Return a position for each code, in the middle of its positions."""
        if not self.log:
            # the middle between the first and the last position of a code
            first = -(-codes * self.positions // self.values)
            last = (-(-(codes + 1) * self.positions // self.values)) - 1
            return (first + last) // 2
        value = self._first + self._step * (codes + 0.5)
        share = (np.log(value) - self._low) / self._width
        found: Ints = (share * self.positions).astype(np.int64)
        return found.clip(0, self.positions - 1)

    def move(self, codes: Ints, steps: Ints) -> Ints:
        """Return the codes that are some steps on, or back; never the same code.

        A step that would leave the scale goes in the other direction. Steps are at most half as
        long as the scale.
        """
        places = self.places(codes) if self.log else codes
        ends = places + steps
        steps = np.where((ends < 0) | (ends >= self.length), -steps, steps)
        if not self.log:
            return codes + steps
        found = self.codes(places + steps)
        # if the new position means the same code, take the next code
        way = np.where(steps > 0, 1, -1)
        way = np.where((codes + way < 0) | (codes + way >= self.values), -way, way)
        return np.where(found == codes, codes + way, found)


class Digits:
    """The codes of a space with every wide variable split into digits.

    Parameters
    ----------
    space
        The space.
    above
        Ordered variables with more values than this are split.

    Attributes
    ----------
    owner
        `(m,)`: the variable of each digit; a variable that is not split is one digit.
    cardinalities, ordered
        `(m,)`: the number of values of each digit, and whether they are ordered.
    """

    def __init__(self, space: Space, above: int = WIDE) -> None:
        scales = wide_scales(space, above)
        wide = np.zeros(len(space), np.bool_)
        counts = np.ones(len(space), np.int64)
        for j, scale in scales.items():
            wide[j], counts[j] = True, len(scale.radices)
        start = np.cumsum(counts) - counts
        self.owner = np.repeat(np.arange(len(space)), counts)
        self.cardinalities = space.cardinalities[self.owner].astype(np.int32)
        self.ordered = space.ordered[self.owner]
        # each kind of scale with its columns of codes, and of digits
        self._groups: list[tuple[Scale, Ints, Ints]] = []
        for scale in dict.fromkeys(scales.values()):
            columns = np.array([j for j in scales if scales[j] is scale], np.int64)
            places = start[columns][:, None] + np.arange(len(scale.radices))
            self.cardinalities[places] = scale.radices
            self._groups.append((scale, columns, places))
        self._plain = np.flatnonzero(~wide), start[~wide]
        self.cardinalities.flags.writeable = False

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def split_any(self) -> bool:
        """Whether any variable is split; if not, digits equal codes."""
        return bool(self._groups)

    def split(self, codes: NDArray[Any]) -> Codes:
        """Return the digits `(..., m)` of codes `(..., n)`."""
        if not self._groups:
            return codes.astype(np.int32)
        digits = np.empty((*codes.shape[:-1], len(self)), np.int32)
        digits[..., self._plain[1]] = codes[..., self._plain[0]]
        for scale, columns, places in self._groups:
            rest = scale.places(codes[..., columns].astype(np.int64))
            for k in range(len(scale.radices) - 1, -1, -1):
                rest, digit = np.divmod(rest, scale.radices[k])
                digits[..., places[:, k]] = np.where(rest % 2, scale.radices[k] - 1 - digit, digit)
        return digits

    def join(self, digits: NDArray[Any]) -> Codes:
        """Return the codes `(..., n)` of digits `(..., m)`."""
        if not self._groups:
            return digits.astype(np.int32)
        codes = np.empty((*digits.shape[:-1], int(self.owner[-1]) + 1), np.int32)
        codes[..., self._plain[0]] = digits[..., self._plain[1]]
        for scale, columns, places in self._groups:
            position = np.zeros((*digits.shape[:-1], len(columns)), np.int64)
            for k, radix in enumerate(scale.radices):
                digit = digits[..., places[:, k]]
                position = position * radix + np.where(position % 2, radix - 1 - digit, digit)
            codes[..., columns] = scale.codes(position)
        return codes


def wide_scales(space: Space, above: int = WIDE) -> dict[int, Scale]:
    """Return the scales of the wide variables, by index; equal variables share a scale.

    Ordered variables with more than `above` values, and logarithmic integers, are wide.
    """
    kinds: dict[Variable, Scale] = {}
    found = {}
    for j in np.flatnonzero(space.ordered & (space.cardinalities > 2)).tolist():
        variable = space.columns[j]
        if len(variable) > above or variable.logarithmic:
            found[j] = kinds.setdefault(variable, Scale(variable))
    return found


def _radices(least: int) -> list[int]:
    """Return as few radices as possible, nearly equal, whose product is at least `least`."""
    count = 1
    while _BASE**count < least:
        count += 1
    radices = [next(r for r in range(1, _BASE + 1) if r**count >= least)] * count
    for k in range(count - 1, -1, -1):
        rest = math.prod(radices) // radices[k]
        radices[k] = -(-least // rest)
    return sorted(radices, reverse=True)
