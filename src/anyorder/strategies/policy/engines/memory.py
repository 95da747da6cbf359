"""The number of runs that fit into the memory of this machine; `cuda` asks its device instead."""

from __future__ import annotations

import logging
import math
import os

from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import Network

LARGE = 2**30  # if a run's parameters take so many bytes, the user is told what takes less

_log = logging.getLogger("anyorder")


def memory_here() -> float:
    """Return the bytes of memory of this machine; infinity if unknown."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def runs_in_memory(model: Model[Network], size: int, scratch: int, runs: int) -> int:
    """Return how many of `runs` runs fit in memory together; MemoryError if none does.

    Parameters
    ----------
    size
        The bytes of a parameter.
    scratch
        The bytes that training takes besides, for any number of runs.
    """
    copies = 3 if model.config.adam == "kept" else 1
    each = size * model.parameters * copies
    have = memory_here()
    less = "Smaller hidden layers and variables with fewer values need less"
    if model.network.kind == "separate":
        less += ", and one network for all variables (network='shared') needs far less"
    if each + scratch > 0.9 * have:
        raise MemoryError(
            f"{model.n} variables with {model.coding.features} inputs and hidden layers "
            f"{model.config.hidden} have {model.parameters:,} parameters; training them takes "
            f"{(each + scratch) / 2**30:.1f} GiB, and this machine has {have / 2**30:.1f}. {less}."
        )
    if each > LARGE and runs == 1:
        _log.warning(
            "the policy of %d variables has %s parameters, %.1f GiB, which take long to train. %s.",
            model.n, f"{model.parameters:,}", each / 2**30, less,
        )  # fmt: skip
    if have == math.inf or not each:
        return runs
    return min(runs, int((0.9 * have - scratch) / each))
