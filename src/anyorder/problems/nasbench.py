"""NAS-Bench-101: the accuracy of small convolutional networks, looked up in a table.

Ying et al., "NAS-Bench-101: towards reproducible neural architecture search", ICML 2019. A cell is
a directed acyclic graph on seven vertices, including input and output, with an operation at each of
the other five, and at most nine edges. Isomorphic cells have the same hash; the table is sorted by
hash.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder.problems.base import Problem
from anyorder.space import Space
from anyorder.space.variables import Binary, Categorical

PATH_VARIABLE = "ANYORDER_NASBENCH101"

_VERTICES, _MOST_EDGES = 7, 9
_UPPER = np.triu_indices(_VERTICES, 1)
# A candidate's digits mean conv1x1, conv3x3, maxpool3x3; hashes count conv3x3 first.
_LABELS = (1, 0, 2)
_FIELDS = ("hash_hi", "hash_lo", "test_accuracy")


class NasBench101(Problem):
    """Mean test accuracy of a cell; 0 if the cell is invalid. Made by `nasbench`.

    21 bits are the edges (the upper triangle of the adjacency matrix, row by row). Five variables
    of three values are the operations 0 = conv1x1, 1 = conv3x3, 2 = maxpool3x3 of vertices 1 to 5.
    A cell with more than nine edges, or without a path from the input to the output, is invalid.

    Parameters
    ----------
    table : the compact table, a .npz file with hash_hi, hash_lo and test_accuracy.
    """

    def __init__(self, table: str | os.PathLike[str]) -> None:
        self.path = os.fspath(table)
        self._high, self._low, self._accuracy = _read(self.path)
        space = Space([Binary()] * len(_UPPER[0]) + [Categorical([0, 1, 2])] * (_VERTICES - 2))
        best = float(self._accuracy.max())
        super().__init__(
            f"nasbench:table={self.path}",
            space,
            optimum=best,
            source="the highest entry of the table",
        )
        self._known: dict[bytes, float] = {}  # candidates are often evaluated again

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        codes = np.ascontiguousarray(points, dtype=np.int8)
        return np.array([self._value(row) for row in codes], dtype=np.float64)

    def _value(self, codes: NDArray[np.int8]) -> float:
        key = codes.tobytes()
        if key not in self._known:
            cell = prune(codes)
            self._known[key] = 0.0 if cell is None else self._look_up(module_hash(*cell))
        return self._known[key]

    def _look_up(self, digest: str) -> float:
        high, low = np.uint64(int(digest[:16], 16)), np.uint64(int(digest[16:], 16))
        row = int(np.searchsorted(self._high, high))
        if row == len(self._high) or self._high[row] != high or self._low[row] != low:
            raise ValueError(
                f"{self.path} has no cell {digest}, expected all valid ones: it is another table"
            )
        return float(self._accuracy[row])


def nasbench(table: str = "") -> NasBench101:
    """Make NAS-Bench-101; `table` is the path of its compact table.

    By default the path is in the environment variable ANYORDER_NASBENCH101.
    """
    path = table or os.environ.get(PATH_VARIABLE, "")
    if not path:
        raise ValueError(
            "NAS-Bench-101 requires its table: give table=PATH, or set the environment variable "
            f"{PATH_VARIABLE} to its path. It is a .npz file of the arrays hash_hi, hash_lo (the "
            "halves of each cell's MD5 hash, sorted) and test_accuracy, made from the release of "
            "google-research/nasbench"
        )
    return NasBench101(path)


def prune(codes: NDArray[Any]) -> tuple[NDArray[np.bool_], list[int]] | None:
    """Return the adjacency matrix and the labels of the cell that a candidate computes.

    Return None if the candidate is invalid.
    """
    matrix = np.zeros((_VERTICES, _VERTICES), dtype=bool)
    matrix[_UPPER] = codes[: len(_UPPER[0])] != 0
    if matrix.sum() > _MOST_EDGES:
        return None
    # vertices are in topological order, so one pass in each direction finds what is connected
    reached, reaching = np.eye(_VERTICES, dtype=bool)[[0, -1]]
    for v in range(1, _VERTICES):
        reached[v] = (matrix[:, v] & reached).any()
    for v in range(_VERTICES - 2, -1, -1):
        reaching[v] = (matrix[v] & reaching).any()
    if not reached[-1]:
        return None
    kept = np.flatnonzero(reached & reaching)
    operations = [_LABELS[int(code)] for code in codes[len(_UPPER[0]) :]]
    labels = [-1, *operations, -2]
    return matrix[np.ix_(kept, kept)], [labels[v] for v in kept]


def module_hash(matrix: NDArray[np.bool_], labels: list[int]) -> str:
    """Return NASBench's hash of a cell, which is the same for isomorphic cells."""

    def md5(text: str) -> str:
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

    into, out = matrix.sum(axis=0).tolist(), matrix.sum(axis=1).tolist()
    hashes = [md5(str(entry)) for entry in zip(out, into, labels, strict=True)]
    for _ in labels:
        hashes = [
            md5(
                "".join(sorted(hashes[w] for w in np.flatnonzero(matrix[:, v])))
                + "|"
                + "".join(sorted(hashes[w] for w in np.flatnonzero(matrix[v])))
                + "|"
                + hashes[v]
            )
            for v in range(len(labels))
        ]
    return md5(str(sorted(hashes)))


def _read(path: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.float64]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no table {path}") from None
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is damaged or no .npz file of arrays: {error}") from None
    missing = [name for name in _FIELDS if name not in arrays]
    if missing:
        raise ValueError(f"{path} has no {', '.join(missing)}: it is not the table")
    high, low, accuracy = (arrays[name] for name in _FIELDS)
    if high.dtype != np.uint64 or low.dtype != np.uint64 or accuracy.dtype.kind != "f":
        kinds = f"{high.dtype}, {low.dtype} and {accuracy.dtype}"
        raise ValueError(f"{path} holds {kinds}, expected uint64 hashes and float accuracies")
    if not len(high) or not high.shape == low.shape == accuracy.shape == (len(high),):
        raise ValueError(
            f"{path} has arrays of different lengths, or none, expected one row a cell"
        )
    if (high[1:] <= high[:-1]).any():
        raise ValueError(f"{path} is not sorted by hash_hi, expected increasing hashes")
    return high, low, accuracy.astype(np.float64)
