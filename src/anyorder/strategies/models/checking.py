"""Checks of a state before compiled loops use it.

Compiled loops do not check their indices: with a damaged or edited state, they would write outside
their arrays. So such a state is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.strategies.models import layout


def check_model(
    state: Mapping[str, Any],
    own: SimpleNamespace,
    sizes: layout.Sizes,
    cardinalities: npt.NDArray[np.integer],
) -> None:
    """Raise a ValueError unless both buffers fit the space and all indices are in their ranges.

    `own` has the named arrays of a model of the space, whose columns have these cardinalities.
    """
    buffers = []
    for name, shapes, kind in (
        ("integers", layout.INTEGERS, np.int32),
        ("floats", layout.FLOATS, np.float64),
    ):
        given, count = np.asarray(state[name]), sizes.count(shapes)
        if given.shape != (count,) or given.dtype != kind:
            raise ValueError(f"the state's {name} have shape {given.shape}, not {(count,)}")
        buffers.append(given)
    found = layout.views(sizes, *buffers)
    for name in ("values", "kind", "first_slot"):
        if not np.array_equal(getattr(found, name), getattr(own, name)):
            raise ValueError("the state belongs to another space")
    values, n = cardinalities, sizes.n
    most: dict[str, Any] = {
        "x": values - 1,
        "order": n * sizes.width - 1,
        "candidates": values[:, None] - 1,
        "profiles": sizes.profiles,
        "oldest": sizes.profiles - 1,
        "differing": n,
        "entries": sizes.entries,
        "code": values[:, None, None] - 1,
        "context": values[:, None, None] - 1,
        "link": layout.NOT_LINKED,
    }
    for name, limit in most.items():
        array = getattr(found, name)
        if (array < 0).any() or (array > limit).any():
            raise ValueError(f"the state's {name!r} has impossible values: it is damaged")
    for name in layout.FLOATS:
        if name not in ("value", "scalars") and np.isnan(getattr(found, name)).any():
            raise ValueError(f"the state's {name!r} has NaN: it is damaged")


def check_observations(
    state: Mapping[str, Any], own: Mapping[str, Any], values: npt.NDArray[np.integer], features: int
) -> None:
    """Raise a ValueError unless a state of observations is possible in the space.

    `own` is another state of observations of the space; `values` are the numbers of values of the
    variables, and `features` is the number of features of a point.
    """
    size = len(np.atleast_1d(state["gains"]))
    if not size:
        raise ValueError("the state's global model has no room: it is damaged")
    for name, mine in own.items():
        if not isinstance(mine, np.ndarray):
            continue
        given = np.asarray(state[name])
        if given.shape != (size, *mine.shape[1:]) or given.dtype != mine.dtype:
            raise ValueError(f"the state's {name!r} has shape {given.shape}: it is damaged")
    rows, changes = np.asarray(state["rows"]), np.asarray(state["changes"])
    variables = changes[:, 0]
    most = np.where(variables[:, None] < 0, 0, values[np.maximum(variables, 0) % len(values), None])
    single = (variables >= 0)[:, None]
    for name, good in {
        "rows": ((rows >= 0) & (rows < max(features, 1))).all(),
        "changes": (np.abs(variables) <= len(values)).all()
        and (variables < len(values)).all()
        and ((changes[:, 1:] >= 0) & ((changes[:, 1:] < most) | ~single)).all(),
        "count": type(state["count"]) is int and 0 <= state["count"] < 2**62,
    }.items():
        if not good:
            raise ValueError(f"the state's {name!r} has impossible values: it is damaged")


def check_points(value: Any, values: npt.NDArray[np.integer]) -> None:
    """Raise a ValueError unless these codes are points of the space.

    `values` are the numbers of values of the variables.
    """
    codes = np.asarray(value)
    sound = codes.dtype == np.int32 and codes.ndim > 0 and codes.shape[-1] == len(values)
    if not sound or ((codes < 0) | (codes >= values)).any():
        raise ValueError("the state has points outside the space: it is damaged")


def check_kept(value: Any, values: npt.NDArray[np.integer]) -> None:
    """Check all points in nested containers: bytes, unless empty, are the codes of a point."""
    if isinstance(value, bytes) and value:
        if len(value) != 4 * len(values):
            raise ValueError("the state has points of another space: it is damaged")
        check_points(np.frombuffer(value, np.int32), values)
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            check_kept(key, values)
            check_kept(entry, values)
    elif isinstance(value, list | tuple | set | frozenset):
        for entry in value:
            check_kept(entry, values)
