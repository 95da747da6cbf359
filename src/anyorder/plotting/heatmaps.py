"""Heat maps of a run. One function extracts the data, another draws it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.archive import DATA
from anyorder.archive.history import History
from anyorder.space import Space
from anyorder.strategies.base import Strategy

# From white through our blue to nearly black, in order of lightness, so that it can be read in
# print and with any colour vision.
_SHADES = ("#FFFFFF", "#A6CBE3", "#0072B2", "#001A2E")
_NO_DATA = "#D9D9D9"
_WINDOWS = 100  # the most columns of a picture over time
_LINE = 0.14  # inches that the name of a variable takes
_LONGEST = 18  # the most characters of a name
_FINE = 1_000  # least cells of a picture in each direction


@dataclass(frozen=True)
class Agreement:
    """The share of candidates that have the best point's value, over time."""

    shares: npt.NDArray[np.float64]  # (n, windows), NaN where a window has no candidates
    first: int  # generation
    end: int  # the generation after the last


def generations_of(history: History) -> npt.NDArray[np.int64]:
    """Return each entry's generation; final measurements count as of the last generation."""
    generations = history.generations
    return np.where(generations < DATA, generations.max(initial=0), generations)


def agreement(history: History) -> Agreement | None:
    """Return the share of candidates with the best point's value, for windows of generations.

    None if no candidate has a value.
    """
    score = np.where(history.maximized, history.values, -history.values)
    if np.isnan(score).all():
        return None
    same = history.codes == history.codes[np.nanargmax(score)]
    generations = generations_of(history)
    first, last = int(generations.min()), int(generations.max())
    count = last + 1 - first
    windows = min(count, _WINDOWS)
    window = (generations - first) * windows // count
    order = np.argsort(window, kind="stable")
    found, starts, sizes = np.unique(window[order], return_index=True, return_counts=True)
    shares = np.full((same.shape[1], windows), np.nan)
    shares[:, found] = np.add.reduceat(same[order], starts, axis=0, dtype=np.int64).T / sizes
    return Agreement(shares, first, last + 1)


def draw_agreement(figure: Any, axes: Any, data: Agreement | None, space: Space) -> None:
    """Draw variables from top to bottom, and generations from left to right."""
    from matplotlib.ticker import MaxNLocator

    if data is None:
        note(axes, "no candidate has a value yet")
        return
    extent = (data.first, data.end, len(space) - 0.5, -0.5)
    image = _image(axes, data.shares, 1.0, extent)
    _name(axes.yaxis, space, _inches(axes)[1])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("generation")
    axes.set_ylabel("variable")
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    bar.set_label("candidates with the best point's value", size=9)


@dataclass(frozen=True)
class Influence:
    """How much each variable moves when another one changes."""

    moves: npt.NDArray[np.float64]  # (n, n), see Optimizer.influence
    title: str
    label: str  # what the numbers mean


def why_no_influence(strategy: Strategy | None) -> str | None:
    """Return the reason why there is no influence to draw, or None; nothing is computed."""
    if strategy is None:
        return "the state of the search was not kept, or its algorithm is not known here"
    if strategy.generation == 0:
        return f"{strategy.name} has not learned anything yet"
    return None


def influence(strategy: Strategy, space: Space) -> Influence | None:
    """Return the influence that a strategy has learned, from fewer samples of many variables."""
    moves = strategy.influence(max(2, min(10, 2_000 // len(space))))
    if moves is None:
        return None
    return Influence(moves, f"learned by {strategy.name}", strategy.influence_unit)


def draw_influence(
    figure: Any, axes: Any, data: Influence | None, space: Space, why: str = ""
) -> None:
    """Draw the changing variables from left to right, and the moving ones from top to bottom."""
    if data is None:
        note(axes, why)
        return
    n, most = len(space), float(data.moves.max())
    image = _image(axes, data.moves, most if most > 0 else 1.0, (-0.5, n - 0.5, n - 0.5, -0.5))
    room = min(_inches(axes))
    _name(axes.yaxis, space, room)
    if _name(axes.xaxis, space, room):
        axes.tick_params(axis="x", rotation=90)
    axes.set_title(data.title, loc="right", fontsize=9, color="0.35")
    axes.set_xlabel("variable that changes")
    axes.set_ylabel("variable that moves")
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    bar.set_label(data.label, size=9)


def note(axes: Any, text: str) -> None:
    """Write into an empty panel why it is empty."""
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color="0.35")
    axes.set_xticks([])
    axes.set_yticks([])


def _image(axes: Any, data: npt.NDArray[np.float64], most: float, extent: tuple[float, ...]) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("anyorder", _SHADES).with_extremes(bad=_NO_DATA)
    # Make cells finer than dots: Matplotlib smooths when it shrinks, but blurs when it stretches.
    for axis in (0, 1):
        data = np.repeat(data, -(-_FINE // data.shape[axis]), axis=axis)
    return axes.imshow(data, cmap=colours, vmin=0.0, vmax=most, aspect="auto", extent=extent)


def _inches(axes: Any) -> tuple[float, float]:
    box, (width, height) = axes.get_position(), axes.get_figure().get_size_inches()
    return box.width * width, box.height * height


def _name(axis: Any, space: Space, inches: float) -> bool:
    """Label an axis with all names if they fit, else with numbers; return whether names fit."""
    from matplotlib.ticker import MaxNLocator

    if space.labels is None or len(space) * _LINE > inches:
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        return False
    short = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in space.labels]
    axis.set_ticks(range(len(space)), short, fontsize=7.5, parse_math=False)
    return True
