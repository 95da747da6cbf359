"""How many runs the machine's memory holds; the engine `cuda` knows its device's itself."""

from __future__ import annotations

import math
import os

from anyorder.strategies.policy.layout import Layout


def memory_here() -> float:
    """Bytes of the machine's memory; infinitely many if it does not tell."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def runs_in_memory(layout: Layout, size: int, runs: int) -> int:
    """How many of so many runs fit together, of `size` bytes a number; MemoryError if not one."""
    copies = 3 if layout.config.adam == "kept" else 1
    each = size * layout.parameters * copies
    # one thread's rows of weights and moments are padded to the longest
    rows = int(layout.widths[1:].sum() + layout.outputs.max())
    shared = 12 * rows * max(layout.features, rows)
    have = memory_here()
    if each + shared > 0.9 * have:
        raise MemoryError(
            f"{layout.n} variables with {layout.features} inputs and hidden layers "
            f"{layout.config.hidden} make {layout.parameters:,} parameters; with what training "
            f"them takes that is {(each + shared) / 2**30:.1f} GiB, and this machine has "
            f"{have / 2**30:.1f}. Smaller hidden layers and fewer values need less."
        )
    if have == math.inf or not each:
        return runs
    return min(runs, int((0.9 * have - shared) / each))
