"""How the loops of delta search are compiled."""

from anyorder.strategies.compiling import cached

entry = cached  # a function that Python calls


def inner(**options):
    """Compile a function that only compiled ones call.

    It has no wrapper for Python, which takes time to compile: a call from Python ends the process.
    """
    return cached(no_cpython_wrapper=True, **options)
