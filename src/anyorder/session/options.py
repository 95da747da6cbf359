"""How to evaluate and when to stop: what users say, checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anyorder._checks import integer, number
from anyorder.optimizer import Optimizer


@dataclass(frozen=True)
class Rules:
    """How to evaluate and when to stop: see `maximize`, whose checked arguments these are."""

    budget: int
    vectorized: bool = False
    executor: Any = None
    workers: int | None = None
    asynchronous: bool = False
    timeout: float | None = None
    retries: int = 0
    on_failure: str = "raise"
    constraint: Callable[[Any], Any] | None = None
    cache: bool = True
    deterministic: bool = True
    target: float | None = None
    max_seconds: float | None = None
    patience: int | None = None
    stop_collapsed: bool = False
    callback: Callable[[Optimizer], Any] | None = None


def make_rules(budget: int, options: Mapping[str, Any]) -> Rules:
    """The arguments about evaluating and stopping, checked."""
    defaults = Rules(budget=integer("budget", budget, 1))
    values: dict[str, Any] = {
        name: options.get(name, getattr(defaults, name)) for name in Rules.__annotations__
    }
    rules = Rules(**values)
    for name in ("target", "timeout", "max_seconds"):
        value = values[name]
        if value is None:
            continue
        if math.isnan(number(name, value)):
            raise ValueError(f"{name} is {value!r}, expected a number")
        if name != "target" and not value > 0:
            raise ValueError(f"{name} is {value!r}, expected a number of seconds above 0")
    if rules.on_failure not in ("raise", "worst", "skip"):
        raise ValueError(f"on_failure is {rules.on_failure!r}, expected 'raise', 'worst' or 'skip'")
    for name in ("vectorized", "asynchronous", "cache", "deterministic", "stop_collapsed"):
        if not isinstance(values[name], bool):
            raise TypeError(f"{name} is {values[name]!r}, expected True or False")
    integer("retries", rules.retries, 0)
    for name in ("workers", "patience"):
        if values[name] is not None:
            integer(name, values[name], 1)
    for name in ("constraint", "callback"):
        if values[name] is not None and not callable(values[name]):
            raise TypeError(f"{name} is {values[name]!r}, expected a function")
    apart = rules.executor is not None or rules.workers is not None or rules.timeout is not None
    if rules.vectorized and apart:
        raise ValueError(
            "vectorized=True evaluates a generation in one call, here: it does not go together "
            "with workers, executor or timeout"
        )
    if rules.asynchronous and not apart:
        raise ValueError("asynchronous=True wants workers= or executor=: there is nobody to wait")
    return rules
