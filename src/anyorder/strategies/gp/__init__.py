"""Search with a Gaussian process, for small budgets.

    search      the strategy
    model       the process; kernels: its compiled loops; minimise: the optimiser that fits it
    columns     how the model sees points; values: how it sees values
    around      the points that are compared in a step of an ascent
    region      how far from the best point to search
    answers     the evaluated points

docs/gp.md explains the method.
"""
