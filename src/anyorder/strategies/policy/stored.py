"""The arrays of a policy's state, and the check of arrays that are read from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import integer
from anyorder.strategies.base import Codes
from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import Network
from anyorder.strategies.state import check_sum

Arrays = Mapping[str, npt.NDArray[Any]]

PARAMETERS = ("theta", "adam_m", "adam_v", "adam_steps")
# prefixes for the same arrays of a critic, and of the scores of an order
CRITIC, ORDER = "critic_", "order_"
KINDS = {  # the kind of number in each array
    "theta": "f", "adam_m": "f", "adam_v": "f", "adam_steps": "i", "diversity": "f",
    "codes": "i", "probs": "f", "stamps": "i", "values": "f", "last_probs": "f",
    "keys": "u",
}  # fmt: skip


@dataclass
class Candidate:
    """A proposal that has not been trained on."""

    ticket: int
    generation: int  # the generation of the policy from which it was drawn
    index: int  # its number among the candidates drawn from that policy
    codes: Codes  # the model's codes: wide variables are digits, absent ones are -1
    probs: npt.NDArray[np.floating]  # the distributions from which it was drawn
    keys: npt.NDArray[np.uint32] | None = None  # the keys of its order, if orders are learned
    value: float = np.nan  # its value once it is answered; NaN if it failed
    known: bool = False  # whether the answer came from the archive

    @property
    def key(self) -> bytes:
        """A key that is the same for equal points with equal values."""
        return self.codes.tobytes() + np.float64(self.value).tobytes()


def of_others(model: Model[Network], codes: Codes, value: float) -> Candidate:
    """Return a point that others have measured: without an order; distributions are added later."""
    keys = np.zeros(model.n, np.uint32) if _learns_orders(model) else None
    return Candidate(0, 0, 0, codes, np.ones(model.values, np.float32), keys, value)


def pack(
    kept: Sequence[Candidate], model: Model[Network], dtype: npt.DTypeLike
) -> dict[str, npt.NDArray[Any]]:
    """Return candidates as arrays."""
    stamps = [(c.ticket, c.generation, c.index, c.known) for c in kept]
    arrays = {
        "codes": np.array([c.codes for c in kept], np.int32).reshape(-1, model.n),
        "probs": np.array([c.probs for c in kept], dtype).reshape(-1, model.values),
        "stamps": np.array(stamps, np.int64).reshape(-1, 4),
        "values": np.array([c.value for c in kept], np.float64),
    }
    if _learns_orders(model):
        arrays["keys"] = np.array([c.keys for c in kept], np.uint32).reshape(-1, model.n)
    return arrays


def unpack(arrays: Arrays, dtype: npt.DTypeLike) -> list[Candidate]:
    """Return the candidates that `pack` packed."""
    result = []
    for k, (ticket, generation, index, known) in enumerate(arrays["stamps"].tolist()):
        codes, probs = arrays["codes"][k].astype(np.int32), arrays["probs"][k].astype(dtype)
        keys = arrays["keys"][k].astype(np.uint32) if "keys" in arrays else None
        value = float(arrays["values"][k])
        result.append(Candidate(ticket, generation, index, codes, probs, keys, value, bool(known)))
    return result


def read(
    state: Arrays, counters: Sequence[str], parameters: Arrays, model: Model[Network], lowest: int
) -> tuple[dict[str, int], Arrays]:
    """Return the counters and the arrays of a state.

    The counters include "seed", and the numbers of open candidates and of points of others.

    `parameters` are arrays with the shapes that arrays of parameters must have, and `lowest` is the
    least code that points may have. Raises a ValueError if the state is damaged or of another
    space.
    """
    names = dict.fromkeys([*KINDS, *parameters])
    if not _learns_orders(model):
        del names["keys"]
    try:
        header = json.loads(str(state["header"]))
        check_sum(header, state)
        numbers = {name: integer(name, header[name], 0, 2**62) for name in counters}
        numbers["seed"] = integer("seed", header["seed"], 0, 2**64 - 1)
        arrays = {name: np.asarray(state[name]) for name in names}
        kept = len(arrays["stamps"])
        numbers["open"] = integer("open", header["open"], 0, kept)
        # earlier versions did not store points of others
        numbers["others"] = integer("others", header.get("others", 0), 0, kept - numbers["open"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the state of the policy is damaged: {error!r}") from error
    _check(arrays, parameters, model, lowest)
    return numbers, arrays


def _learns_orders(model: Model[Network]) -> bool:
    return model.config.generation_order == "learned"


def _check(arrays: Arrays, parameters: Arrays, model: Model[Network], lowest: int) -> None:
    kept = len(arrays["stamps"]) if arrays["stamps"].ndim else 0
    expected = {name: array.shape for name, array in parameters.items()} | {
        "diversity": (),
        "codes": (kept, model.n),
        "probs": (kept, model.values),
        "stamps": (kept, 4),
        "values": (kept,),
        "last_probs": (*arrays["last_probs"].shape[:1], model.values),
    }
    if "keys" in arrays:
        expected["keys"] = (kept, model.n)
    for name, shape in expected.items():
        kind = KINDS[name.removeprefix(CRITIC).removeprefix(ORDER)]
        if arrays[name].dtype.kind != kind or arrays[name].shape != shape:
            raise ValueError(
                f"the policy's {name!r} holds {arrays[name].dtype} of shape {arrays[name].shape}, "
                f"expected shape {shape}: the state is damaged or of another space"
            )
    codes, probs = arrays["codes"], arrays["probs"]
    sound = {
        "probs": ((probs > 0) & (probs <= 1)).all(),
        "stamps": (arrays["stamps"] >= 0).all(),
        "last_probs": ((arrays["last_probs"] > 0) & (arrays["last_probs"] <= 1)).all(),
        "diversity": 0 <= arrays["diversity"] <= 1,
        "codes": ((codes >= lowest) & (codes < model.cards)).all()
        and all(group.valid(codes[:, group.columns]).all() for group in model.groups),
    }
    for name in parameters:
        below = 0.0 if name.endswith(("_v", "_steps")) else -np.inf
        sound[name] = np.isfinite(arrays[name]).all() and (arrays[name] >= below).all()
    for name, good in sound.items():
        if not good:
            raise ValueError(f"the policy's {name!r} has impossible values: it is damaged")
