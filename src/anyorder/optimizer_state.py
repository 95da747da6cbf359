"""The format of `Optimizer.state_dict`: a header in JSON, and arrays by part."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._version import __version__
from anyorder.errors import DAMAGE
from anyorder.space import Space

FORMAT, VERSION = "anyorder-optimizer", 2


@contextlib.contextmanager
def refusing_damage(what: str) -> Iterator[None]:
    """Turn whatever damaged contents lead to into a ValueError that says so."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"the state is truncated: it has no {error}") from error
    except MemoryError as error:
        raise ValueError(f"{what} is damaged, or needs more memory than there is") from error
    except DAMAGE as error:
        raise ValueError(f"{what} is damaged: {error}") from error


def prefixed(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a part under names of their own."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, state: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a part; `prefixed` undone."""
    start = f"{prefix}."
    return {name[len(start) :]: np.asarray(state[name]) for name in state if name.startswith(start)}


def points_in(state: Mapping[str, Any], name: str, space: Space) -> npt.NDArray[np.int32]:
    """An array of points, if they are of the space."""
    points = np.asarray(state[name])
    if points.dtype.kind != "i" or points.ndim != 2 or points.shape[1] != len(space):
        raise ValueError(f"{name!r} is damaged or of another space")
    if ((points < 0) | (points >= space.cardinalities)).any():
        raise ValueError(f"{name!r} has points outside the space")
    return points.astype(np.int32)


def read_header(state: Mapping[str, Any]) -> dict[str, Any]:
    """The header, if it is one of this format."""
    try:
        header = json.loads(str(state["header"]))
        form, version = header["format"], header["version"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            "this is not the state of an anyorder.Optimizer, or it is truncated"
        ) from error
    if form != FORMAT:
        raise ValueError(f"the state is a {form!r}, expected {FORMAT!r}")
    if version != VERSION:
        raise ValueError(
            f"the state has version {version!r} (anyorder {header.get('library')}); "
            f"this is anyorder {__version__}, which reads version {VERSION}"
        )
    return dict(header)
