"""Deprecated public names: they work for two more minor versions, and warn."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def deprecated(removed_in: str, instead: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that makes a function warn, at each call, that it will be removed.

    Parameters
    ----------
    removed_in
        The first version without the function, such as "1.4".
    instead
        What to use instead, as code: "`ao.load(path)`".
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        text = (
            f"{function.__qualname__} is deprecated and will be removed in anyorder {removed_in}; "
            f"use {instead}"
        )

        @functools.wraps(function)
        def warning(*args: P.args, **kwargs: P.kwargs) -> R:
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        return warning

    return decorate
