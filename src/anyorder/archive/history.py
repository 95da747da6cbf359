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

# What a table of a history has beside the variables.
RECORD = ("value", "generation", "status", "cached", "seconds", "error")
_SHOWN = 5  # entries at the beginning and at the end that a notebook shows
_WIDE = 12  # variables


def check_names(objectives: Objectives, space: Space) -> None:
    """Refuse objectives that have the name of a variable, or of another column of tables."""
    for name in objectives.names:
        if name in (space.labels or ()):
            raise ValueError(
                f"objective {name!r} has the name of a variable of the space, expected another name"
            )
        if name in ("generation", "status", "cached"):  # which tables are read by
            raise ValueError(
                f"objective {name!r} has the name of a column that every table of a run has, "
                "expected another name"
            )


def record(objectives: Objectives | None) -> tuple[str, ...]:
    """Return what a table has beside the variables: with the values of each objective.

    A column whose name an objective has gets an underscore.
    """
    if objectives is None:
        return RECORD
    names = objectives.names
    return (*names, *(f"{name}_" if name in names else name for name in RECORD[1:]))


def columns(space: Space) -> list[str]:
    """Return what the variables are called in a table: their names, or x0, x1, ...

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
    objectives
        The objectives of a function with several; None where there is one.
    values
        What the function gave; NaN where it failed. Of k objectives `(entries, k)`.
    codes
        The points as indices of their values, `(entries, n)`; `points` gives them as the function
        saw them.
    generations
        The strategy's own count of its progress when each was proposed; for the policy, how often
        it had trained. -1 for what was known before the run (`data`); of noisy functions, -2 for
        points that were measured again at the end, and -3 for the answer (`confirm`).
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
    notes
        What evaluations told besides their values, by position; see `Measured`.
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
        """Return what a notebook shows: the first and the last entries."""
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
        """What the function gave."""
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
    def notes(self) -> dict[int, dict[str, Any]]:
        """What evaluations told besides their values, by position."""
        notes = self._archive.notes.items()
        return {row: from_json(text) for row, text in notes if row < self._size}

    @property
    def best(self) -> npt.NDArray[np.float64]:
        """The best value so far, after each; NaN before the first that has one.

        Of several objectives the hypervolume (see `hypervolume`).
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
            The worst values that are of interest, one for each objective; None: those of the run,
            or, if it has none, the worst of all its values.
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
