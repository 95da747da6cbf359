"""The arrays of a policy's state, and the check of those that are read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import Network

Arrays = Mapping[str, npt.NDArray[Any]]

PARAMETERS = ("theta", "adam_m", "adam_v", "adam_steps")  # of a critic: critic_theta, ...
KINDS = {  # the kind of number in each array
    "theta": "f", "adam_m": "f", "adam_v": "f", "adam_steps": "i", "diversity": "f",
    "codes": "i", "probs": "f", "stamps": "i", "values": "f", "last_probs": "f",
}  # fmt: skip


def check(arrays: Arrays, parameters: Arrays, model: Model[Network], lowest: int) -> None:
    """ValueError if arrays are damaged or of another space.

    `parameters` are arrays of the shapes expected of those that hold parameters, and `lowest` is
    the least code that points may have.
    """
    kept = len(arrays["stamps"]) if arrays["stamps"].ndim else 0
    expected = {name: array.shape for name, array in parameters.items()} | {
        "diversity": (),
        "codes": (kept, model.n),
        "probs": (kept, model.values),
        "stamps": (kept, 4),
        "values": (kept,),
        "last_probs": (*arrays["last_probs"].shape[:1], model.values),
    }
    for name, shape in expected.items():
        kind = KINDS[name.removeprefix("critic_")]
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
