"""What test_ray.py evaluates in processes of Ray, which import little."""

from __future__ import annotations

import math
from typing import Any

from ray import tune


def value(config: dict[str, Any]) -> float:
    """Return what the test maximises."""
    optimizer = config["optimizer"]
    found = -abs(math.log10(optimizer["rate"]) + 2.5) - abs(config["shift"] - 0.25)
    return found + config["depth"] / 64 + (optimizer["name"] == "adam")


def trainable(config: dict[str, Any]) -> None:
    """Report it, or fail."""
    if config["seed"] == 3:
        raise RuntimeError("on purpose")
    tune.report({"score": value(config)})
