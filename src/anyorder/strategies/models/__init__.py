"""The models that searches fit to a function; each can be used without the others.

    gains       the model of gains: profiles of each variable, and a table of pairs
    quadratic   the global model: a sum over variables and pairs, fitted to all gains;
                observations: these gains
    scale       the scale on which both models work: f itself, or one on which more gains are equal
    landscape   both models around a present point, on this scale
    lists       the model of lists: the weights of the features of subsets and permutations;
                list_kernels: its compiled loops
    columns     the columns of a point that models read: its scalars, and its lists as context
    checking    the checks of a state before compiled loops use it
    layout      the arrays of the model of gains
    kernels/    the compiled loops of gains and quadratic

docs/gains.md, docs/quadratic.md, docs/scale.md and docs/lists.md explain them.
"""
