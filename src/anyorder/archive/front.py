"""The front of several objectives, as users see it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal import markup
from anyorder._internal.checks import require, short
from anyorder.archive import Archive
from anyorder.archive.history import columns

_SHOWN = 30  # the most points that a notebook shows


class Front:
    """The points of a run that no other one is better than in every objective.

    It is sorted by the first objective, best first, and does not change when the run continues.

    Attributes
    ----------
    names, directions
        The names of the objectives, and "max" or "min" for each.
    codes
        The points as indices of their values, `(points, n)`.
    values
        Their values, `(points, objectives)`; the means if the function is noisy.
    """

    def __init__(self, archive: Archive) -> None:
        objectives = archive.objectives
        if objectives is None:
            raise AttributeError("one objective has no front, but a best point: use `best`")
        self._space, self._objectives = archive.space, objectives
        self.names, self.directions = objectives.names, objectives.directions
        scores = archive.front_values
        order = np.lexsort((*-scores.T[::-1],))
        self.codes = archive.codes_of(archive.front[order])
        self.values: npt.NDArray[np.float64] = scores[order] * objectives.signs

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<Front: {len(self)} points, {self._objectives}>"

    @property
    def points(self) -> Any:
        """The points as the function receives them: a list of dicts, or a matrix."""
        return self._space.decode(self.codes)

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict for each point, with the value of each objective by name and the point."""
        return [
            {**dict(zip(self.names, values, strict=True)), "point": self._space.one(codes)}
            for values, codes in zip(self.values.tolist(), self.codes, strict=True)
        ]

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each point: its variables and its values."""
        pandas = require("pandas", "pandas", "tables require pandas")
        points = [self._space.one(codes) for codes in self.codes]
        names = columns(self._space) if not self._space.named else list(self._space.names or ())
        table = {
            name: [point.get(name) if isinstance(point, dict) else point[k] for point in points]
            for k, name in enumerate(names)
        }
        table |= dict(zip(self.names, self.values.T, strict=True))
        return pandas.DataFrame(table)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: the values and the points."""
        head = [f"{name} ({way})" for name, way in zip(self.names, self.directions, strict=True)]
        rows: list[list[Any]] = [
            [*values, short(self._space.one(codes))]
            for values, codes in zip(self.values[:_SHOWN].tolist(), self.codes, strict=False)
        ]
        if len(self) > _SHOWN:
            rows.append(["..."] * len(head) + [f"{len(self)} points"])
        return markup.panel(f"front of {len(self)} points", markup.table(rows, [*head, "point"]))
