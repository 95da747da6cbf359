"""Delta search: local search with a learned model of single changes.

    layout     how the model lies in memory
    kernels/   the compiled loops
    model      profiles and pairs: predicts the gain of every single change, with an error bar
    pairwise   the global model, fitted to all gains
    search     which change is next, when a point is a local optimum, how to leave it

docs/delta.md explains the method.
"""
