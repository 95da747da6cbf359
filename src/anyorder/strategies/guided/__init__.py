"""Guided search: local search on lists that a learned additive model guides.

    features   what the model counts: items in places, neighbours, pairs of chosen items
    model      what each of them is worth, and samples of that
    kernels    the compiled loops: regression, and climbs on the model
    search     the strategy

docs/lists.md explains the method.
"""
