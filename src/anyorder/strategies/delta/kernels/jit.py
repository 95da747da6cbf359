"""How the loops of delta search are compiled."""

from numba import njit


def entry(**options):
    """Compile a function that Python calls, and keep the result on disk if there is a place for it.

    No function is passed on as a value, so the wrapper for that is left out: it takes time.
    """
    options |= {"no_cfunc_wrapper": True}

    def decorate(function):
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # no place for a cache: every process compiles
            return njit(**options)(function)

    return decorate


def inner(**options):
    """Compile a function that only compiled ones call.

    It has no wrapper for Python, which takes time to compile: a call from Python ends the process.
    """
    return entry(no_cpython_wrapper=True, **options)
