"""Search with a Gaussian process, for small budgets.

    search      the strategy
    model       the process; kernels: its compiled loops; minimise: how it is fitted
    columns     how points look to the model, and values how values do
    around      the points that a step of an ascent compares
    region      how far from the best point to look
    answers     what has been evaluated

docs/gp.md explains the method.
"""
