"""The default for several objectives: the portfolio of `auto`, aimed where the front is thin.

    search    the strategy: models of each objective, and one portfolio on a weighted sum of them
    view      the archive as the portfolio reads it: the weighted sum in place of the values
    aim       the place where the front is thin, and the weights for a search there
    shares    the shares of the portfolio and of NSGA-II, which makes children of two points

docs/objectives.md explains the method.
"""
