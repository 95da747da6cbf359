"""States of strategies: Python values and arrays as a flat dict of arrays, without pickle.

Supported are numbers, strings, bytes, lists, tuples, sets, dicts, arrays and random generators. The
entry "header" is JSON, with a checksum of everything; arrays are stored beside it, each under a
number.
"""

from __future__ import annotations

import contextlib
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.errors import DAMAGE

State = dict[str, npt.NDArray[Any]]

CHECKSUM = "state.crc32"  # a name in the header which no attribute can have
_DAMAGED = "the state is damaged, or belongs to another strategy or space"
_GENERATORS = {
    kind.__name__: kind
    for kind in (
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.MT19937,
        np.random.Philox,
        np.random.SFC64,
    )
}


def to_state(values: Mapping[str, Any]) -> State:
    """Return the values as arrays, for `from_state`."""
    arrays: list[npt.NDArray[Any]] = []
    header = {name: _encode(value, arrays) for name, value in values.items()}
    state = {f"array{k}": array for k, array in enumerate(arrays)}
    header[CHECKSUM] = checksum_of(header, state)
    return {"header": np.array(json.dumps(header)), **state}


def from_state(state: Mapping[str, npt.NDArray[Any]], like: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that `to_state` was given.

    Parameters
    ----------
    state
        What `to_state` returned, possibly stored in a file meanwhile.
    like
        The values of a new object: names, types and numbers of dimensions must agree with them.
        None agrees with everything.
    """
    try:
        header = json.loads(str(state["header"]))
        # Strategies rely on their stored values, and only this tells whether these were changed.
        check_sum(header, state)
        values = {name: _decode(header[name], state) for name in like}
    except DAMAGE as error:
        raise ValueError(f"{_DAMAGED}: {error!r}") from error
    for name, value in values.items():
        expected = like[name]
        if value is None or expected is None:
            continue
        same = type(value) is type(expected) or (
            isinstance(value, int | float) and isinstance(expected, int | float)
        )
        if isinstance(value, np.ndarray) and isinstance(expected, np.ndarray):
            kinds = value.dtype.kind == expected.dtype.kind
            same = kinds and value.ndim == expected.ndim
        if not same:
            raise ValueError(f"{_DAMAGED}: {name} is {type(value).__name__}")
    return values


@contextlib.contextmanager
def refusing_damage() -> Iterator[None]:
    """Convert whatever error damaged contents cause to a ValueError."""
    try:
        yield
    except ValueError:
        raise
    except DAMAGE as error:
        raise ValueError(f"{_DAMAGED}: {error!r}") from error


def check_codes(name: str, value: Any, cardinalities: npt.NDArray[np.integer]) -> None:
    """Raise a ValueError if a restored value has codes that no point of the space can have.

    Codes are arrays of int32 with a column for each variable, also within dicts, lists and tuples.
    The number of values is a code, too: some strategies use it for absent variables. A repair of a
    list with a larger code would allocate as much memory as the code says.
    """
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for entry in value:
            check_codes(name, entry, cardinalities)
    elif (
        isinstance(value, np.ndarray)
        and value.dtype == np.int32
        and value.shape[-1:] == cardinalities.shape
        and ((value < 0) | (value > cardinalities)).any()
    ):
        raise ValueError(f"{_DAMAGED}: {name} has codes outside the space")


def check_sum(header: dict[str, Any], state: Mapping[str, npt.NDArray[Any]]) -> None:
    """Remove the checksum from a header, if it has one; raise a ValueError if it is wrong."""
    if header.pop(CHECKSUM, None) not in (None, checksum_of(header, state)):
        raise ValueError("it has been changed since it was made")


def checksum_of(header: Mapping[str, Any], state: Mapping[str, npt.NDArray[Any]]) -> int:
    """Return the checksum of a header and of the arrays beside it."""
    found = zlib.crc32(json.dumps(header).encode())
    for name in sorted(state.keys() - {"header"}):
        array = np.asarray(state[name])
        found = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), found)
        found = zlib.crc32(array.tobytes(), found)
    return found


def _encode(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        arrays.append(value.copy())
        return {"array": len(arrays) - 1}
    if isinstance(value, np.random.Generator):
        generator: Any = value.bit_generator
        return {"generator": _encode(generator.state, arrays)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, list):
        return [_encode(entry, arrays) for entry in value]
    if isinstance(value, tuple):
        return {"tuple": [_encode(entry, arrays) for entry in value]}
    if isinstance(value, set):
        return {"set": [_encode(entry, arrays) for entry in sorted(value)]}
    if isinstance(value, dict):
        return {"dict": [[_encode(k, arrays), _encode(v, arrays)] for k, v in value.items()]}
    raise TypeError(f"{value!r} cannot be part of a state")


def _decode(value: Any, state: Mapping[str, npt.NDArray[Any]]) -> Any:
    if isinstance(value, list):
        return [_decode(entry, state) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "float":
        return float(content)
    if kind == "array":
        return np.array(state[f"array{content}"])
    if kind == "generator":
        inner = _decode(content, state)
        generator = np.random.Generator(_GENERATORS[inner["bit_generator"]]())
        generator.bit_generator.state = inner
        return generator
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "tuple":
        return tuple(_decode(entry, state) for entry in content)
    if kind == "set":
        return {_decode(entry, state) for entry in content}
    if kind == "dict":
        return {_decode(k, state): _decode(v, state) for k, v in content}
    raise ValueError(f"unknown kind {kind!r}")
