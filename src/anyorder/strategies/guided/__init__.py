"""Guided search: local search on lists that a learned additive model guides.

    model      features, such as items in places, what each of them is worth, and samples of that
    kernels    the compiled loops: regression, and climbs on the model
    search     the strategy

docs/lists.md explains the method.
"""
