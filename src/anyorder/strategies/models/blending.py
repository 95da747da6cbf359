"""The landscape of a weighted sum of functions, computed from the landscapes of the functions.

Models of several functions that learned the same points in the same order remember the same
contexts. Gains, their means and the effects of a fit are linear in the values; variances are linear
in squares of values. So weighted sums of the arrays are a model of the weighted sum of the
functions. They cost no more than copies, however many observations there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from anyorder.strategies.models import layout
from anyorder.strategies.models.gains import GainModel
from anyorder.strategies.models.landscape import Landscape
from anyorder.strategies.models.scale import IDENTITY

Floats = npt.NDArray[np.float64]

# scalars of the model of gains, by how those of a sum are computed: squares of gains, and gains
_SQUARES = (layout.NOISE, layout.SUM_SQUARES, layout.ERROR, layout.ERROR_PROFILE, layout.ERROR_NONE)
_LENGTHS = (layout.TOLERANCE, layout.SLACK)
_COUNTS = (layout.GAINS, layout.WEIGHT, layout.PRIOR)  # equal in all models
_LARGEST = (layout.DEPARTURE, layout.WAITING)
_SUMS = (layout.DEGREE, layout.DEGREE_LINKS)  # a sum of functions has the links of all of them
_MEANS = (
    layout.CALIBRATION, layout.CALIBRATED, layout.DEPARTURES, layout.DEPARTED, layout.EQUAL,
    layout.COMPARED, layout.RINGED, layout.CERTAIN, layout.WRONG, layout.COINCIDENCES,
    layout.DEGREE_WEIGHT, layout.TYPICAL_GAINS,
)  # fmt: skip


def blend(target: Landscape, parts: Sequence[Landscape], weights: Floats) -> None:
    """Turn a landscape into that of a weighted sum of functions.

    Parameters
    ----------
    target
        The landscape to overwrite. Its present point has no value afterwards.
    parts
        The landscapes of the functions, which learned the same points in the same order and have
        not changed their scale.
    weights
        The weight of each function, 0 or more, not all 0.
    """
    used = [(part, float(a)) for part, a in zip(parts, weights, strict=True) if a > 0]
    own = [part for part, _ in used]
    scales = np.array([a for _, a in used])
    _blend_gains(target.gains, [part.gains for part in own], scales)
    target.quadratic.blend([part.quadratic for part in own], scales)
    target.keep_scale(IDENTITY)


def _blend_gains(target: GainModel, parts: Sequence[GainModel], a: Floats) -> None:
    arrays, sources = target.arrays, [part.arrays for part in parts]
    order = arrays.order.copy()
    evaluations, free = target.scalar(layout.EVALUATIONS), target.scalar(layout.FREE)
    target.buffers[1][:] = parts[0].buffers[1]
    arrays.order[:] = order
    links = np.stack([source.link for source in sources])
    arrays.link[:] = np.where((links == layout.NOT_LINKED).all(axis=0), layout.NOT_LINKED,
                              layout.UNKNOWN)  # fmt: skip
    arrays.link[(links == layout.LINKED).any(axis=0)] = layout.LINKED
    for name in ("mean", "shift"):
        getattr(arrays, name)[:] = sum(
            w * getattr(source, name) for w, source in zip(a, sources, strict=True)
        )
    for name in ("variance", "spread", "firm", "squares", "slope"):
        getattr(arrays, name)[:] = sum(
            w * w * getattr(source, name) for w, source in zip(a, sources, strict=True)
        )
    for name in ("tries", "scale"):
        getattr(arrays, name)[:] = np.mean([getattr(source, name) for source in sources], axis=0)
    arrays.ring[:] = a[0] * sources[0].ring
    _blend_profiles(target, parts, a)
    _blend_scalars(target, parts, a)
    target.scalars[layout.EVALUATIONS], target.scalars[layout.FREE] = evaluations, free
    target.tidy()


def _blend_profiles(target: GainModel, parts: Sequence[GainModel], a: Floats) -> None:
    """Add up the values in each context; drop values that are not known for all functions."""
    arrays, first = target.arrays, parts[0].arrays
    arrays.value[:] = a[0] * first.value
    common = np.arange(first.code.shape[2]) < first.entries[..., None]
    there = common.copy()
    for weight, part in zip(a[1:], parts[1:], strict=True):
        other = part.arrays
        if np.array_equal(other.code, first.code) and np.array_equal(other.entries, first.entries):
            arrays.value += weight * other.value
            continue
        # profiles differ if a variable has more values than a profile holds
        known = np.arange(other.code.shape[2]) < other.entries[..., None]
        same = (first.code[..., :, None] == other.code[..., None, :]) & known[..., None, :]
        place = same.argmax(axis=-1)
        arrays.value += weight * np.take_along_axis(other.value, place, axis=-1)
        there &= same.any(axis=-1)
    if there.all() or np.array_equal(there, common):
        return
    kept = np.argsort(~there, axis=-1, kind="stable")
    arrays.code[:] = np.take_along_axis(arrays.code, kept, axis=-1)
    arrays.value[:] = np.take_along_axis(arrays.value, kept, axis=-1)
    arrays.entries[:] = there.sum(axis=-1)


def _blend_scalars(target: GainModel, parts: Sequence[GainModel], a: Floats) -> None:
    scalars, table = target.scalars, np.stack([part.scalars for part in parts])
    scalars[:] = 0.0
    for names, found in (
        (_SQUARES, (a**2) @ table), (_LENGTHS, a @ table), (_COUNTS, table[0]),
        (_LARGEST, table.max(axis=0)), (_SUMS, table.sum(axis=0)), (_MEANS, table.mean(axis=0)),
        ((layout.SUM_FOURTH,), (a**4) @ table),
    ):  # fmt: skip
        scalars[list(names)] = found[list(names)]
    known = table[:, layout.TYPICAL_GAINS] > 0
    if known.any():
        logarithms = 2 * np.log(a[known]) + table[known, layout.TYPICAL]
        scalars[layout.TYPICAL] = float(np.logaddexp.reduce(logarithms))
    scalars[layout.VALUE], scalars[layout.STALE] = math.nan, 1.0
