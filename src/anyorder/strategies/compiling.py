"""Loops that Numba compiles at their first use: how, and saying so where somebody waits for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def cached(**options: Any) -> Callable[[Any], Any]:
    """Compile a function with these options of Numba, and keep the result on disk if possible.

    No function is passed on as a value, so the wrapper for that is left out: it takes time.
    """
    from numba import njit

    options |= {"no_cfunc_wrapper": True}

    def decorate(function: Any) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # no place for a cache: every process compiles
            return njit(**options)(function)

    return decorate


def is_compiled(function: Any) -> bool:
    """Whether a compiled function is on disk, as far as can be seen without compiling it."""
    if not hasattr(function, "stats"):
        return True  # the JIT is disabled: there is nothing to compile
    folder, plain = function.stats.cache_path, function.py_func
    stem = Path(plain.__code__.co_filename).stem
    return folder is not None and any(Path(folder).glob(f"{stem}.{plain.__qualname__}-*.nbi"))


def announce_compilation(function: Any, what: str, seconds: int) -> None:
    """On a terminal, explain the delay of the first use in an installation."""
    if sys.stderr.isatty() and not is_compiled(function):
        print(
            f"anyorder: compiling {what}, once (about {seconds} s); later runs find it on disk",
            file=sys.stderr,
        )
