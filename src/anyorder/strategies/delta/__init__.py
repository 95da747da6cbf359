"""Delta search: local search with a learned model of single changes.

    layout     how the model lies in memory
    kernels/   the compiled loops
    model      profiles and pairs: predicts the gain of every single change, with an error bar
    pairwise   the global model, fitted to all gains
    transform  the scale on which both work: that of f, or one on which more gains are the same
    climber    local optima: which are accepted, and how they are left
    learner    what answers mean
    search     the strategy: which change is next

docs/delta.md explains the method.
"""
