"""How the loops of delta search are compiled.

Without `fastmath` unless a function asks for it: by default it would have that of the function that
happens to be the first to call it, and round accordingly.
"""

from anyorder.strategies.compiling import cached


def entry(*, fastmath=False, **options):
    """Compile a function that Python calls."""
    return cached(fastmath=fastmath, **options)


def inner(*, fastmath=False, **options):
    """Compile a function that only compiled ones call.

    It has no wrapper for Python, which takes time to compile: a call from Python ends the process.
    """
    return cached(fastmath=fastmath, no_cpython_wrapper=True, **options)
