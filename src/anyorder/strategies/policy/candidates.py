"""Candidates from their birth to their training: who is out, who is back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]


@dataclass
class Candidate:
    """A candidate and what training it will need."""

    number: int  # of all the run's candidates
    generation: int  # whose policy it was drawn from
    index: int  # among the candidates drawn from that policy
    codes: Codes
    probs: npt.NDArray[np.floating]  # the distributions it was drawn from
    value: float = 0.0  # once told; maximised; NaN: it failed


class Waiting:
    """The candidates that have not been trained on: pending ones, and those that are answered.

    A candidate is known by its point. Of equal ones that of the latest generation is answered
    first, and of those the oldest: an earlier one is likely to be lost, and if it is not, its turn
    comes with the next answer, which is the same.
    """

    def __init__(self) -> None:
        self._pending: dict[bytes, list[Candidate]] = {}
        self.answered: list[Candidate] = []

    def add(self, candidate: Candidate) -> None:
        """Note that a candidate has been handed out."""
        self._pending.setdefault(candidate.codes.tobytes(), []).append(candidate)

    def answer(self, codes: Codes) -> Candidate | None:
        """Take the pending candidate at a point, if there is one."""
        key = codes.tobytes()
        queue = self._pending.get(key)
        if queue is None:
            return None
        latest = queue[-1].generation
        place = next(k for k, candidate in enumerate(queue) if candidate.generation == latest)
        candidate = queue.pop(place)
        if not queue:
            del self._pending[key]
        return candidate

    def forget(self, first: int) -> None:
        """Drop the pending candidates from this number on."""
        for key, queue in list(self._pending.items()):
            queue[:] = [candidate for candidate in queue if candidate.number < first]
            if not queue:
                del self._pending[key]

    def take(self, size: int) -> list[Candidate]:
        """The `size` oldest of those answered: the order in which they came does not matter."""
        self.answered.sort(key=lambda candidate: candidate.number)
        group, self.answered = self.answered[:size], self.answered[size:]
        return group

    def to_arrays(self, n: int, values: int, dtype: npt.DTypeLike) -> dict[str, npt.NDArray[Any]]:
        """All of them as arrays: the pending ones first, by age."""
        pending = [candidate for queue in self._pending.values() for candidate in queue]
        pending.sort(key=lambda candidate: candidate.number)
        kept = pending + self.answered
        stamps = [(c.number, c.generation, c.index) for c in kept]
        return {
            "codes": np.array([c.codes for c in kept], np.int32).reshape(-1, n),
            "probs": np.array([c.probs for c in kept], dtype).reshape(-1, values),
            "stamps": np.array(stamps, np.int64).reshape(-1, 3),
            "values": np.array([c.value for c in kept], np.float64),
            "pending": np.array(len(pending)),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], dtype: npt.DTypeLike) -> Waiting:
        """The inverse of `to_arrays`."""
        self = cls()
        for k, stamp in enumerate(arrays["stamps"]):
            number, generation, index = (int(entry) for entry in stamp)
            codes, probs = arrays["codes"][k].astype(np.int32), arrays["probs"][k].astype(dtype)
            value = float(arrays["values"][k])
            candidate = Candidate(number, generation, index, codes, probs, value)
            if k < int(arrays["pending"]):
                self.add(candidate)
            else:
                self.answered.append(candidate)
        return self
