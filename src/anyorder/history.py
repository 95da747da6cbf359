"""The history of a run, as users see it: a view of its archive."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.archive import Archive, Codes
from anyorder.space import Space

# What a table of a history has beside the variables.
RECORD = ("value", "generation", "status", "cached", "seconds", "error")


def columns(space: Space) -> list[str]:
    """What the variables are called in a table: their names, or x0, x1, ...

    A name that is one of `RECORD` gets underscores until it is like no other.
    """
    names = space.labels or tuple(f"x{k}" for k in range(len(space)))
    taken = {*RECORD, *names}
    result = []
    for name in names:
        if name in RECORD:
            while name in taken:
                name += "_"
            taken.add(name)
        result.append(name)
    return result


class History:
    """Every candidate of a run that was answered, in the order in which the strategy learned them.

    A view of the archive: it holds no values of its own, and does not change when the archive
    grows.

    Attributes
    ----------
    space, maximized
        Where the search was, and in which direction.
    values
        What the function gave; NaN where it failed.
    codes
        The points as indices of their values, `(entries, n)`; `points` gives them as the function
        saw them.
    generations
        The strategy's own count of its progress when each was proposed; for the policy, how often
        it had trained. -1 for what was known before the run (`data`).
    restarts
        The numbers of entries after which the strategy was restarted.
    statuses
        How each ended, as an index of `anyorder.STATUSES`; 0 is "ok".
    cached
        Where nothing was evaluated: the value was known, or the constraint rejected the point.
    seconds
        How long each took; 0 where nothing was evaluated.
    errors
        What went wrong, by position.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive, self._size = archive, len(archive)
        self.space = archive.space
        self.maximized = archive.direction == "maximize"
        self.restarts = tuple(archive.restarts)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<History: {len(self)} entries>"

    def _column(self, name: str) -> npt.NDArray[Any]:
        return self._archive.column(name)[: self._size]

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """What the function gave."""
        return self._column("value")

    @property
    def codes(self) -> Codes:
        """The points as indices of their values."""
        return self._archive.codes_of(self._column("point"))

    @property
    def points(self) -> Any:
        """All points: a list of dicts, or a matrix."""
        return self.space.decode(self.codes)

    @property
    def generations(self) -> npt.NDArray[np.int64]:
        """The strategy's generation when each was proposed."""
        return self._column("generation")

    @property
    def statuses(self) -> npt.NDArray[np.uint8]:
        """How each ended."""
        return self._column("status")

    @property
    def cached(self) -> npt.NDArray[np.bool_]:
        """Where nothing was evaluated."""
        return self._column("known")

    @property
    def seconds(self) -> npt.NDArray[np.float64]:
        """How long each evaluation took."""
        return self._column("seconds")

    @property
    def errors(self) -> dict[int, str]:
        """What went wrong, by position."""
        return {row: text for row, text in self._archive.errors.items() if row < self._size}

    @property
    def best(self) -> npt.NDArray[np.float64]:
        """The best value so far, after each; NaN before the first that has one."""
        best = np.fmax if self.maximized else np.fmin
        return np.asarray(best.accumulate(self.values))
