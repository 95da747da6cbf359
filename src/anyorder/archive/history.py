"""The history of a run, as users see it: a view of its archive."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal import markup
from anyorder._internal.checks import short
from anyorder.archive import Archive, Codes
from anyorder.archive.hypervolume import hypervolumes
from anyorder.archive.notes import from_json
from anyorder.archive.objectives import Objectives, read_reference
from anyorder.errors import STATUSES
from anyorder.space import Space

# The columns that a table of a history has besides the variables.
RECORD = ("value", "generation", "status", "cached", "seconds", "error")
_SHOWN = 5  # the entries that a notebook shows of the beginning and of the end
_WIDE = 12  # the most variables that a notebook shows


def check_names(objectives: Objectives, space: Space) -> None:
    """Raise if an objective has the name of a variable, or of another column of tables."""
    for name in objectives.names:
        if name in (space.labels or ()):
            raise ValueError(
                f"objective {name!r} has the name of a variable of the space, expected another name"
            )
        if name in ("generation", "status", "cached"):  # readers of tables rely on these columns
            raise ValueError(
                f"objective {name!r} has the name of a column that every table of a run has, "
                "expected another name"
            )


def record(objectives: Objectives | None) -> tuple[str, ...]:
    """Return the columns of a table besides the variables, including those of the objectives.

    A column with the same name as an objective gets an underscore.
    """
    if objectives is None:
        return RECORD
    names = objectives.names
    return (*names, *(f"{name}_" if name in names else name for name in RECORD[1:]))


def columns(space: Space) -> list[str]:
    """Return the names of the variables' columns in a table: their labels, or x0, x1, ...

    A name that is also in `RECORD` gets underscores until it is unique.
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
    """All answered candidates of a run, in the order in which the strategy learned their answers.

    A history is a view of the archive: it holds no values of its own. It does not change when the
    archive grows.

    Attributes
    ----------
    space, maximized
        The space that was searched, and whether the function was maximized.
    objectives
        The objectives of a function with several; None if it has one.
    values
        The values of the function; NaN where it failed. With k objectives `(entries, k)`.
    codes
        The points as indices of their values, `(entries, n)`; `points` gives them as the function
        receives them.
    generations
        The strategy's own count of its progress when it proposed each point; for the policy, the
        number of its updates. -1 for what was known before the run (`data`). With noisy functions
        -2 for points that were measured again at the end, and -3 for the answer (`confirm`).
    restarts
        The numbers of entries after which the strategy restarted.
    statuses
        The status of each entry, as an index of `anyorder.STATUSES`; 0 is "ok".
    cached
        Whether nothing was evaluated: the value was known, or the constraint rejected the point.
    seconds
        The duration of each evaluation; 0 where nothing was evaluated.
    errors
        What went wrong, by position.
    notes
        What evaluations reported besides their values, by position; see `Measured`.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive, self._size = archive, len(archive)
        self.space, self.objectives = archive.space, archive.objectives
        self.maximized = archive.direction == "maximize"
        self.restarts = tuple(archive.restarts)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<History: {len(self)} entries>"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: the first and the last entries."""
        size, names = len(self), self.space.names or tuple(f"x{k}" for k in range(len(self.space)))
        hidden = ["..."] if len(names) > _WIDE else []
        head = ["", *names[:_WIDE], *hidden, *record(self.objectives)[:-1]]
        rows: list[list[Any]] = []
        for k in [*range(min(_SHOWN, size)), *range(max(_SHOWN, size - _SHOWN), size)]:
            if k == size - _SHOWN > _SHOWN:
                rows.append(["..."] + [""] * (len(head) - 1))
            point = self.space.one(self.codes[k])
            values = point if isinstance(point, dict) else dict(zip(names, point, strict=True))
            cells = [short(values[name]) if name in values else None for name in names[:_WIDE]]
            known: list[Any] = np.ravel(self.values[k]).tolist()
            known += [self.generations[k], STATUSES[self.statuses[k]]]
            known += [bool(self.cached[k]), round(float(self.seconds[k]), 3)]
            rows.append([k, *cells, *hidden, *known])
        return markup.panel(f"{size} entries", markup.table(rows, head))

    def _column(self, name: str) -> npt.NDArray[Any]:
        return self._archive.column(name)[: self._size]

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The values of the function."""
        return self._archive.values[: self._size]

    @property
    def codes(self) -> Codes:
        """The points as indices of their values."""
        return self._archive.codes_of(self._column("point"))

    def codes_at(self, rows: npt.NDArray[np.integer]) -> Codes:
        """Return the points of some entries as indices of their values."""
        return self._archive.codes_of(self._column("point")[rows])

    @property
    def points(self) -> Any:
        """All points: a list of dicts, or a matrix."""
        return self.space.decode(self.codes)

    @property
    def generations(self) -> npt.NDArray[np.int64]:
        """The generation of the strategy when it proposed each point."""
        return self._column("generation")

    @property
    def statuses(self) -> npt.NDArray[np.uint8]:
        """The status of each entry."""
        return self._column("status")

    @property
    def cached(self) -> npt.NDArray[np.bool_]:
        """Whether nothing was evaluated."""
        return self._column("known")

    @property
    def seconds(self) -> npt.NDArray[np.float64]:
        """The duration of each evaluation."""
        return self._column("seconds")

    @property
    def errors(self) -> dict[int, str]:
        """What went wrong, by position."""
        return {row: text for row, text in self._archive.errors.items() if row < self._size}

    @property
    def notes(self) -> dict[int, dict[str, Any]]:
        """What evaluations reported besides their values, by position."""
        notes = self._archive.notes.items()
        return {row: from_json(text) for row, text in notes if row < self._size}

    @property
    def best(self) -> npt.NDArray[np.float64]:
        """The best value so far, after each entry; NaN before the first value.

        With several objectives this is the hypervolume (see `hypervolume`).
        """
        if self.objectives is not None:
            return self.hypervolume()
        best = np.fmax if self.maximized else np.fmin
        return np.asarray(best.accumulate(self.values))

    def hypervolume(self, reference: Any = None) -> npt.NDArray[np.float64]:
        """Return the hypervolume of several objectives after each entry.

        Parameters
        ----------
        reference
            The worst values of interest, one for each objective. By default those that the run was
            given or, if there were none, the worst of all its values.
        """
        several, values = self.objectives, self.values
        if several is None:
            raise ValueError("hypervolume is of several objectives, and this run has one")
        if reference is None and several.reference is None:
            good = values[~np.isnan(values).any(axis=1)] * several.signs
            if not len(good):
                return np.zeros(len(values))
            return hypervolumes(values * several.signs, good.min(axis=0))
        given = several.reference if reference is None else reference
        worst = np.array(read_reference(several, given))
        return hypervolumes(values * several.signs, worst * several.signs)
