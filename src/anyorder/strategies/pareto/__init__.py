"""The default for several objectives: the portfolio of `auto`, aimed where the front is thin.

    search    the strategy: models of each objective, and one portfolio on a weighted sum of them
    view      the archive as the portfolio sees it: the weighted sum in place of the values
    aim       where the front is thin, and the weights to look there
    shares    how many points the portfolio makes, and how many are children of two points

docs/objectives.md explains the method.
"""
