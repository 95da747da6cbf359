"""What searches learn about a function: models, each on its own.

    gains       single changes: profiles of each variable, and a table of pairs
    quadratic   the function as a sum over variables and pairs, fitted to all gains;
                observations: those gains
    scale       on which scale of f both work: that of f, or one on which more gains are the same
    landscape   both models around a present point, on that scale
    lists       what the parts of subsets and permutations are worth; list_kernels: its loops
    columns     what the models see of a point: its scalars, and its lists as context
    checking    what a state must be like before a compiled loop sees it
    layout      how the model of gains lies in memory
    kernels/    the compiled loops of gains and quadratic

docs/gains.md, docs/quadratic.md, docs/scale.md and docs/lists.md explain them.
"""
