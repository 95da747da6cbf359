"""The compiled loops of the model of gains and of the global model.

    views       the named arrays of `layout`
    tables      profiles and pair tables, and their sums, which follow the present point
    predicting  the predicted gain of a change, and its expected improvement
    learning    the changes of profiles and pair tables by one observed gain
    choosing    the choice of the next change, and changes that need no evaluation
    varying     kicks, mutations and exchanges
    fitting     the fit of the global model
    maximising  tabu search on the global model

Functions that Python calls take the sizes and the two buffers of `layout`; functions that only
other kernels call take `v`, the named arrays. `layout` explains slots and the names of arrays,
docs/gains.md the method. Importing this package imports Numba.
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
