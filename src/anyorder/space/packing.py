"""Points as bytes, by which archives look points up, and as which studies store them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.space.space import Space


class Packing:
    """Points as bytes: bits where all variables are binary, else the smallest integers that fit.

    Attributes
    ----------
    width
        The number of bytes of a point.
    """

    def __init__(self, space: Space) -> None:
        most = int(space.cardinalities.max())
        self._n, self._bits = len(space), most <= 2
        self._type = np.dtype(np.uint8 if most <= 256 else "<u2" if most <= 65536 else "<u4")
        self.width = (self._n + 7) // 8 if self._bits else self._n * self._type.itemsize

    def pack(self, codes: npt.NDArray[Any]) -> list[bytes]:
        """Return the packed bytes of each row."""
        if self._bits:
            joined = np.packbits(codes.astype(np.uint8), axis=1).tobytes()
        else:
            joined = codes.astype(self._type).tobytes()
        width = self.width
        return [joined[k : k + width] for k in range(0, width * len(codes), width)]

    def unpack(self, points: bytes | Iterable[bytes]) -> Codes:
        """Return the codes, a row for each point; `points` may be a single piece of bytes."""
        joined = points if isinstance(points, bytes) else b"".join(points)
        if self._bits:
            rows = np.frombuffer(joined, np.uint8).reshape(-1, self.width)
            return np.unpackbits(rows, axis=1, count=self._n).astype(np.int32)
        return np.frombuffer(joined, self._type).reshape(-1, self._n).astype(np.int32)


Codes = npt.NDArray[np.int32]
