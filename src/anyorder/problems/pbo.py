"""PBO: the 25 pseudo-Boolean problems of IOHprofiler, computed by its package `ioh`.

Doerr, Ye, Horesh, Wang, Shir, Bäck, "Benchmarking discrete optimization heuristics with
IOHprofiler", Applied Soft Computing 88 (2020).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder._internal.checks import did_you_mean, integer, require
from anyorder.problems.base import Problem
from anyorder.space import Space

_MOST_BITS = 20_000  # NKLandscapes takes a second to make; its time is quadratic
_MOST_INSTANCE = 2**31 - 1
# IsingTorus would silently leave out bits, and the others raise an exception
_SQUARE = {20, 21, 23}
# All but LABS, MIS, NQueens, ConcatenatedTrap and NKLandscapes.
_OPTIMUM_IS_TRUE = {*range(1, 18), 19, 20, 21}


class Pbo(Problem):
    """A problem of PBO; made by `pbo`.

    Attributes
    ----------
    function : the number of the function, 1 to 25.
    instance : the number of the instance.
    """

    def __init__(self, function: str | int, n: int, instance: int) -> None:
        ioh = _package()
        self.function, label = _find(function, ioh.ProblemClass.PBO.problems)
        # LABS divides by the autocorrelations of its bits, and a single bit has none
        n = integer("n", n, 2 if self.function == 18 else 1, _MOST_BITS)
        self.instance = integer("instance", instance, 1, _MOST_INSTANCE)
        if self.function in _SQUARE and math.isqrt(n) ** 2 != n:
            raise ValueError(f"n is {n}, expected a square number for {label}")
        self._n, self._ioh = n, None
        optimum = float(self._build().optimum.y) if self._knows_optimum() else None
        super().__init__(
            f"pbo:function={label},n={n},instance={self.instance}",
            Space.binary(n),
            optimum=optimum,
            source=None if optimum is None else "the optimum that IOHprofiler states",
        )

    def __getstate__(self) -> dict[str, Any]:
        # ioh's objects cannot be pickled; a copy makes its own.
        return {**super().__getstate__(), "_ioh": None}

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        # ioh reads lists faster than arrays
        return np.array(self._build()(points.tolist()), dtype=np.float64)

    def _build(self) -> Any:
        if self._ioh is None:
            ioh = _package()
            self._ioh = ioh.get_problem(self.function, self.instance, self._n, ioh.ProblemClass.PBO)
        return self._ioh

    def _knows_optimum(self) -> bool:
        """Return whether the optimum that ioh states is the maximum, which is not always so."""
        if self.function == 22:  # it is transformed as if it were the value of a point
            return self.instance == 1
        if self.function == 23:  # so many queens do not fit on boards of 2 x 2 and 3 x 3
            return self._n not in (4, 9)
        if self.function == 24:  # it is the value of all ones, which is not the best if bits remain
            return self._n % 5 == 0 or self._n < 5
        return self.function in _OPTIMUM_IS_TRUE


def pbo(function: str | int = "LABS", n: int = 64, instance: int = 1) -> Pbo:
    """Make a problem of PBO by its name or number; requires ``pip install 'anyorder[pbo]'``.

    1 OneMax, 2 LeadingOnes, 3 Linear, 4 to 10 and 11 to 17 the W-model on OneMax and LeadingOnes
    (Dummy1, Dummy2, Neutrality, Epistasis, Ruggedness1 to 3), 18 LABS, 19 IsingRing, 20 IsingTorus,
    21 IsingTriangular, 22 MIS, 23 NQueens, 24 ConcatenatedTrap, 25 NKLandscapes. 20, 21 and 23
    require a square number of bits.

    Instance 1 is the function itself. In other instances values are scaled and shifted, and bits
    are flipped (2 to 50) or reordered (51 to 100). The optimum is what ioh states if that is true,
    else None: always for LABS and NKLandscapes, for MIS beyond instance 1, for NQueens with 4 and 9
    bits, and for ConcatenatedTrap if 5 does not divide n, since ioh's last block then overlaps
    others.
    """
    return Pbo(function, n, instance)


def _package() -> Any:
    return require("ioh", "pbo", "PBO problems require IOHprofiler")


def _find(function: str | int, known: dict[int, str]) -> tuple[int, str]:
    """Return number and name of a function, given by one of them."""
    if not isinstance(function, str):
        number = integer("function", function, 1, len(known))
        return number, known[number]
    text = function.strip().lower()
    numbers = {name.lower(): number for number, name in known.items()}
    number = int(text) if text.isdecimal() and len(text) < 4 else numbers.get(text, 0)
    if number not in known:
        raise ValueError(
            f"function is {function!r}{did_you_mean(text, known.values())}, expected 1 to "
            f"{len(known)} or one of {', '.join(known.values())}"
        )
    return number, known[number]
