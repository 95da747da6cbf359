"""The outcome of a run: the incumbent, all evaluations, and the reason why it stopped."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder import charts
from anyorder._internal import markup
from anyorder._internal.checks import require, short
from anyorder.archive.front import Front
from anyorder.archive.history import History, columns, record
from anyorder.archive.notes import cell, table_of
from anyorder.errors import STATUSES
from anyorder.optimizer import NO_BEST, Optimizer
from anyorder.plotting.runs import overview

_SHOWN = 30  # the most variables in the summary that a notebook shows


class _OfOneObjective:
    """An attribute that the results of several objectives do not have."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, result: Any, owner: type) -> Any:
        if result is None:
            return self
        if result.optimizer.objectives is not None:
            raise AttributeError(NO_BEST)
        return result.__dict__[self._name]

    def __set__(self, result: Any, value: Any) -> None:
        result.__dict__[self._name] = value


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of `maximize` or `minimize`.

    Attributes
    ----------
    best, best_value
        The best point found, as the function receives it, and its value. With several objectives
        there is a `front` instead.
    best_count, best_error
        The number of measurements whose mean is `best_value`, and its standard error; None if it is
        not known, because `f` is deterministic or no point was measured twice.
    best_notes
        What the evaluation of the best point reported besides its value; None if it had no notes.
    evaluations, failures
        The number of evaluations, and of those that gave no value.
    stop_reason
        "budget", "target", "callback", "time", "patience", "converged", "collapsed", "interrupted",
        a reason that a rule of `stop=` returned, "exhausted" (the strategy had nothing new to
        propose, see `maximize`), or "failed" (no evaluation gave a value).
    seed
        The seed of the strategy.
    seconds
        The wall time of this call, including the evaluations.
    study
        The file in which the run is stored, or None.
    optimizer
        The strategy and the archive at the end of the run.
    """

    best: Any
    best_value: float
    evaluations: int
    failures: int
    stop_reason: str
    seed: int
    seconds: float
    study: Path | None = None
    optimizer: Optimizer = field(repr=False, kw_only=True)

    @cached_property
    def front(self) -> Front:
        """The points that no other point is better than in all of several objectives."""
        return self.optimizer.front

    @property
    def hypervolume(self) -> npt.NDArray[np.float64]:
        """The hypervolume of several objectives after each evaluation.

        It is relative to the reference point, or if there is none to the worst values of the run;
        see `History.hypervolume`.
        """
        return self.history.hypervolume()[~self.history.cached]

    @cached_property
    def history(self) -> History:
        """All answered candidates."""
        return History(self.optimizer.archive)

    @property
    def best_notes(self) -> dict[str, Any] | None:
        """The notes of the best point."""
        self.optimizer.refuse_best()
        archive = self.optimizer.archive
        best = archive.answer().point
        return None if best < 0 else archive.notes_of(best)

    @property
    def best_count(self) -> int:
        """The number of measurements whose mean is the best value."""
        self.optimizer.refuse_best()
        return self.optimizer.archive.answer().count

    @property
    def best_error(self) -> float | None:
        """The standard error of the best value."""
        self.optimizer.refuse_best()
        return self.optimizer.archive.answer().error

    @property
    def _value(self) -> str:
        """The best value, with its standard error if the function is noisy."""
        error = self.best_error
        return f"{self.best_value:.6g}" + (f" +- {error:.2g}" if error is not None else "")

    @property
    def algorithm(self) -> str:
        """The name of the strategy."""
        return self.optimizer.strategy.name

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the strategy, as JSON values."""
        return self.optimizer.strategy.settings()

    @property
    def facts(self) -> dict[str, Any]:
        """What the strategy reports about its search, such as the diversity of the policy."""
        return self.optimizer.facts()

    def __repr__(self) -> str:
        failed = f", {self.failures} failed" if self.failures else ""
        best = "no value"
        if self.optimizer.objectives is not None:
            best = f"a front of {len(self.front)} points"
        elif self.best is not None:
            best = f"best value {self._value} at {short(self.best)}"
        return (
            f"<Result: {best} after {self.evaluations} evaluations{failed}, "
            f"stopped by {self.stop_reason}>"
        )

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: a summary, the best point and the convergence."""
        known: dict[str, Any] = {"evaluations": self.evaluations, "failures": self.failures or None}
        known |= {"seconds": round(self.seconds, 2), "stopped by": self.stop_reason}
        known |= {"algorithm": self.algorithm, "seed": self.seed, "study": self.study}
        rows = [(name, value) for name, value in known.items() if value is not None]
        if self.optimizer.objectives is not None:
            return markup.panel(repr(self), markup.table(rows), self.front._repr_html_())
        if self.best is None:
            return markup.panel("no evaluation gave a value", markup.table(rows))
        found = self.best if isinstance(self.best, dict) else {"best": self.best.tolist()}
        point = [(name, short(value)) for name, value in [*found.items()][:_SHOWN]]
        if len(found) > _SHOWN:
            point.append(("...", f"{len(found)} variables"))
        point += [(f"notes.{name}", short(note)) for name, note in (self.best_notes or {}).items()]
        try:
            curve = markup.picture(self.plot()._repr_png_(), "best value over evaluations")
        except ImportError as error:
            curve = markup.note(str(error))
        return markup.panel(
            f"best value {self._value}", markup.table(point), markup.table(rows), curve
        )

    def plot(self, path: str | os.PathLike[str] | None = None, kind: str = "convergence") -> Any:
        """Draw a figure; write it to `path` (PNG, PDF, SVG) or return the Matplotlib figure.

        Parameters
        ----------
        path
            The file to write; None returns the figure.
        kind
            The figure: "convergence": the best value against evaluations. "diversity": how much
            candidates differ from the best of their generation. "probabilities": how often
            candidates have the best point's value, for each variable over time. "influence": how
            much each variable moves when another one changes, as the strategy has learned it
            (`Optimizer.influence`). "all": these four. With two or three objectives "front": the
            values of all evaluations, and the front; "convergence" is then that of the hypervolume.
        """
        label = f"{self.algorithm}, seed {self.seed}"
        return overview(self.history, lambda: self.optimizer.strategy, kind, path, label)

    def figure(self, kind: str = "convergence") -> Any:
        """Return an interactive figure for a notebook: Plotly's, or Matplotlib's if it is missing.

        Parameters
        ----------
        kind
            One of the figures of `plot`, or with Plotly also "importance": the share of the
            variance that each variable explains, and "parallel": the best 50 points as lines across
            the variables. `pip install 'anyorder[plotly]'` installs Plotly.
        """
        label = f"{self.algorithm}, seed {self.seed}"
        if find_spec("plotly") is None and kind not in charts.ONLY_PLOTLY:
            return self.plot(kind=kind)
        made = charts.figure_of(
            self.history, kind, strategy=lambda: self.optimizer.strategy, label=label
        )
        plotly = require("plotly.graph_objects", "plotly", f"the figure {kind!r} requires Plotly")
        return plotly.Figure(made)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table of `to_pandas` to a CSV file, which `data=` reads."""
        folder = Path(path).absolute().parent
        if not folder.is_dir():
            raise ValueError(f"path is {os.fspath(path)!r}, and there is no such folder")
        table = self.to_pandas()
        for name in table.columns[table.columns.get_loc("error") + 1 :]:
            table[name] = [cell(note) for note in table[name]]
        # names and messages may have lone surrogates, such as from bytes that were no text
        table.to_csv(path, index=False, encoding="utf-8", errors="backslashreplace")

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each entry of the history.

        Columns are the variables (x0, x1, ... if they have no names), then value (or several
        objectives by their names), generation, status, cached, seconds, error, and a column for
        each note, such as "notes.size" (`Measured`). A variable with the name of another column
        gets an underscore appended. Absent variables are missing values.
        """
        pandas = require("pandas", "pandas", "tables require pandas")
        history = self.history
        space, codes = history.space, history.codes
        present = space.present(codes)
        table: dict[str, Any] = {}
        if space.named:
            for k, (name, variable) in enumerate(zip(columns(space), space.columns, strict=True)):
                table[name] = [variable.values[code] for code in codes[:, k].tolist()]
                if variable.when is not None:
                    table[name] = [
                        value if here else None
                        for value, here in zip(table[name], present[:, k].tolist(), strict=True)
                    ]
        else:
            table = dict(zip(columns(space), np.asarray(history.points).T, strict=True))
        errors = history.errors
        rows = range(len(history))
        known = (
            *np.atleast_2d(history.values.T), history.generations,
            [STATUSES[status] for status in history.statuses], history.cached, history.seconds,
            [errors.get(k) for k in rows],
        )  # fmt: skip
        table |= dict(zip(record(history.objectives), known, strict=True))
        table |= table_of(history.notes, rows, table)
        return pandas.DataFrame(table)


for _name in ("best", "best_value"):
    setattr(Result, _name, _OfOneObjective(_name))
