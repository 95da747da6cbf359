"""Compilation of loops by Numba at their first use, and a message to whoever waits for it."""

from __future__ import annotations

import functools
import logging
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

logger = logging.getLogger("anyorder")
_warned = False  # whether it was reported that nothing can be cached on disk


def cached(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function with Numba and caches the result if possible.

    Compiled functions are never passed as values, so the wrapper that this needs is left out: it
    takes time to compile.
    """
    from numba import njit

    options |= {"no_cfunc_wrapper": True}

    def decorate(function: Any) -> Any:
        try:
            compiled = njit(cache=True, **options)(function)
        except RuntimeError as error:
            _warn_of_no_cache(str(error))
            return njit(**options)(function)
        _notice_changes(compiled)
        _tolerate_full_disks(compiled)
        return compiled

    return decorate


def entry(*, fastmath: Any = False, **options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function which Python calls.

    `fastmath` is off unless a function asks for it. Otherwise Numba would take the setting from
    whichever compiled function calls this one first, and results would be rounded accordingly.
    Division by 0 gives what NumPy gives: code that raises an exception takes longer to compile.
    """
    return cached(fastmath=fastmath, error_model="numpy", **options)


def inner(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function which only compiled functions call.

    It has no wrapper for Python, since that takes time to compile. Calling it from Python crashes
    the process.
    """
    return entry(no_cpython_wrapper=True, **options)


def _notice_changes(compiled: Any) -> None:
    """Invalidate the cached function when a module in its folder, or in the one above, changes.

    Numba checks only the file of the function itself. But functions that it calls and constants
    that it reads are compiled into it, and a stale function could write outside its arrays.
    """
    index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    stamp = getattr(index, "_source_stamp", None)
    if index is not None and stamp is not None:
        folder = Path(compiled.py_func.__code__.co_filename).parent
        own = vars(index)
        own["_source_stamp"] = (stamp, _stamp_of(folder), _stamp_of(folder.parent))


@functools.cache
def _stamp_of(folder: Path) -> int:
    """Return a number that changes with the modules in a folder."""
    files = {path.name: path.stat() for path in sorted(folder.glob("*.py"))}
    facts = [(name, found.st_mtime_ns, found.st_size) for name, found in files.items()]
    return zlib.crc32(repr(facts).encode())


def _tolerate_full_disks(compiled: Any) -> None:
    """Make a compiled function usable even if it cannot be written to the cache."""
    cache = getattr(compiled, "_cache", None)
    if cache is None:  # the JIT is disabled
        return
    save = cache.save_overload

    def save_overload(*arguments: Any) -> None:
        try:
            save(*arguments)
        except OSError as error:
            _warn_of_no_cache(str(error))

    cache.save_overload = save_overload


def _warn_of_no_cache(reason: str) -> None:
    """Warn that compiled functions cannot be cached, once: the reason is the same for all."""
    global _warned
    if _warned:
        return
    _warned = True
    logger.warning(
        "compiled loops cannot be kept on disk, so that every process compiles them again (%s): "
        "set the environment variable NUMBA_CACHE_DIR to a folder that can be written",
        reason,
    )


def is_compiled(function: Any) -> bool:
    """Return whether a function is in the cache on disk, without compiling it."""
    if not hasattr(function, "stats"):
        return True  # the JIT is disabled: there is nothing to compile
    folder, plain = function.stats.cache_path, function.py_func
    stem = Path(plain.__code__.co_filename).stem
    return folder is not None and any(Path(folder).glob(f"{stem}.{plain.__qualname__}-*.nbi"))


def announce_compilation(function: Any, what: str, seconds: int) -> None:
    """Explain the delay of the first use in an installation: in the log, or on the terminal."""
    if is_compiled(function):
        return
    text = f"compiling {what}, once (about {seconds} s); later runs find it on disk"
    if logger.isEnabledFor(logging.INFO):
        logger.info(text)
    elif sys.stderr.isatty():
        print(f"anyorder: {text}", file=sys.stderr)
