"""Operators of a portfolio: each makes points from the best one, one file an idea.

    restart   a random point, to climb from
    kick      several variables of the best point change, at random or gently, to climb from
    branch    a variable that others depend on changes, to climb from
    mutate    a few variables change, or two exchange their values: one evaluation
    mix       what belongs together is copied from another local optimum: one evaluation
    leap      a maximum of the global model: one evaluation
    shake     lists change at random: one evaluation, or to climb from
    move      the next move of a list, in turn or by the model: one evaluation
    sample    a local optimum of a sample of the model of lists: one evaluation
    explore   what another strategy proposes, which does without the models: one evaluation

To add one, copy `mutate.py`, and name it in the list of `search.py`.
"""
