"""The compiled loops of delta search.

    views       the named arrays of `layout`
    tables      profiles and pair tables, and their sums as the point moves
    predicting  the gain of a change, and what it promises
    learning    what one observed gain changes in them
    choosing    which change is next, moves that need no evaluation
    varying     kicks, mutations and exchanges
    fitting     the pairwise model of all gains
    maximising  tabu search on it

Functions that Python calls take the sizes and the two buffers of `layout`; those that only other
kernels call take `v`, the named arrays. "Slot" and the names of arrays are explained in `layout`,
the method in docs/gains.md. Importing this package imports Numba.
"""

from anyorder.strategies.models.kernels.choosing import (
    advance,
    fail,
    go_to,
    observe,
    predict_change,
    tidy,
)
from anyorder.strategies.models.kernels.fitting import (
    apply,
    features,
    fit,
    import_effects,
    note_several,
    set_scales,
)
from anyorder.strategies.models.kernels.maximising import maximise
from anyorder.strategies.models.kernels.varying import exchange, kick, mutate

__all__ = [
    "advance",
    "apply",
    "exchange",
    "fail",
    "features",
    "fit",
    "go_to",
    "import_effects",
    "kick",
    "maximise",
    "mutate",
    "note_several",
    "observe",
    "predict_change",
    "set_scales",
    "tidy",
]
