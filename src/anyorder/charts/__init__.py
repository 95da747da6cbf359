"""Charts of runs as plain dicts in Plotly's format: one description for pages and notebooks.

`figure_of` makes a chart of a history. `Result.figure` shows it in a notebook; `anyorder report`
and `anyorder dashboard` show it in a page. Nothing here imports Plotly: pages contain its script,
and notebooks need `pip install 'anyorder[plotly]'`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anyorder.archive.history import History
from anyorder.charts import runs, variables
from anyorder.charts.base import Figure, note
from anyorder.charts.front import front
from anyorder.charts.shares import shares_of_variance
from anyorder.charts.top import best_rows
from anyorder.strategies.base import Strategy

__all__ = ["KINDS", "figure_of", "shares_of_variance"]

# Functions of a history, the strategy (a function, called only if needed), and the label of the
# run.
_MAKERS: dict[str, Callable[[History, Callable[[], Strategy | None], str], Figure]] = {
    "front": lambda history, strategy, label: front(history),
    "convergence": lambda history, strategy, label: runs.convergence({label: history}),
    "diversity": lambda history, strategy, label: runs.generations(history),
    "probabilities": lambda history, strategy, label: runs.agreement(history),
    "influence": lambda history, strategy, label: runs.influence(strategy(), history.space),
    "importance": lambda history, strategy, label: runs.importance(history),
    "parallel": lambda history, strategy, label: variables.parallel(history, best_rows(history)),
}
KINDS = tuple(_MAKERS)
OF_SEVERAL = ("front", "convergence")  # the charts for several objectives
ONLY_PLOTLY = ("importance", "parallel")  # Matplotlib does not draw these charts


def figure_of(
    history: History,
    kind: str = "convergence",
    *,
    strategy: Callable[[], Strategy | None] = lambda: None,
    label: str = "anyorder",
) -> dict[str, Any]:
    """Return a chart of a history as a dict that Plotly draws.

    Parameters
    ----------
    kind
        The chart: "convergence": the best value against evaluations. "diversity": how much
        candidates differ from the best of their generation. "probabilities": how often candidates
        have the best point's value, for each variable over time. "influence": how much each
        variable moves when another one changes, as the strategy has learned it. "importance": the
        share of the variance that each variable explains (`shares_of_variance`). "parallel": the
        best 50 points as lines across the variables. "front": the values of several objectives, and
        the front. For several objectives there are only "front" and "convergence", which then shows
        the hypervolume.
    strategy
        A function that returns the strategy, or None; it is called for "influence" only.
    label
        The label of the run.
    """
    if kind not in _MAKERS:
        raise ValueError(f"kind is {kind!r}, expected one of {', '.join(KINDS)}")
    if history.objectives is not None and kind not in OF_SEVERAL:
        return note(f"Several objectives have no chart {kind!r}: see the front.")
    return _MAKERS[kind](history, strategy, label)
