"""The policy: n conditional distributions, sampled in random orders, trained by policy gradient.

    rng.py        the random stream, a function of (seed, generation, purpose, candidate, variable)
    layout.py     where inputs, outputs and parameters lie
    orders.py     who sees whom
    advantage.py  from values to advantages
    base.py       what an engine is: `fresh`, `sample`, `conditionals`, `train`
    reference.py  engine "reference": NumPy, meant to be read
    cpu.py        engine "cpu": threads over kernels.py, compiled by Numba

`create` below is the only way from a name to an engine. Naming one that cannot serve is an error
that says why; "auto" takes the best that can.
"""

from __future__ import annotations

import importlib.util
import os
import sys

from .base import Batch, Draw, Engine, Policy
from .layout import Layout, make_layout

__all__ = ["ENGINES", "Batch", "Draw", "Engine", "Layout", "Policy", "create", "make_layout",
           "why_not"]  # fmt: skip

ENGINES = {
    "cpu": "compiled loops on all cores (Numba)",
    "reference": "plain NumPy: slow, to read and to check against",
}


def why_not(name: str) -> str | None:
    """Why the engine cannot run here, or None if it can."""
    if name == "cpu" and importlib.util.find_spec("numba") is None:
        return "Numba is not installed (pip install numba)"
    return None


def create(name: str, layout: Layout) -> Engine:
    """The engine of that name, or the best one for "auto"."""
    if name == "auto":
        name = next(engine for engine in ENGINES if why_not(engine) is None)
    if not isinstance(name, str) or name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}; there are auto, {', '.join(ENGINES)}")
    reason = why_not(name)
    if reason is not None:
        raise RuntimeError(f"the engine {name!r} cannot run here: {reason}")
    _check_memory(layout)
    if name == "reference":
        from .reference import ReferenceEngine

        return ReferenceEngine(layout)
    from .cpu import CpuEngine

    _say_when_compiling()
    return CpuEngine(layout)


def _check_memory(layout: Layout) -> None:
    copies = 3 if layout.config.adam == "kept" else 1
    # one thread's rows of weights and moments are padded to the longest
    rows = int(layout.widths[1:].sum() + layout.outputs.max())
    need = 4 * layout.parameters * copies + 12 * rows * max(layout.features, rows)
    try:
        have = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return
    if need > 0.9 * have:
        raise MemoryError(
            f"{layout.n} variables with {layout.features} inputs and hidden layers "
            f"{layout.config.hidden} make {layout.parameters:,} parameters; with what training "
            f"them takes that is {need / 2**30:.1f} GiB, and this machine has "
            f"{have / 2**30:.1f}. Smaller hidden layers and fewer values need less."
        )


def _say_when_compiling() -> None:
    """On the first run of an installation, say why nothing happens for a while."""
    from . import kernels

    if sys.stderr.isatty() and not kernels.cached():
        print(
            "anyorder: compiling the cpu engine, once (about 20 s); later runs find it on disk",
            file=sys.stderr,
        )
