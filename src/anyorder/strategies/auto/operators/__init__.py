"""The operators of a portfolio: each makes points from the best point; one file for each idea.

Some points start a climb:

    restart   a random point
    kick      several variables of the best point change, at random or gently
    branch    a variable on which others depend changes
    shake     a list changes at random ("list kick")

Others are trials, which cost one evaluation:

    mutate    a few variables change, or two variables exchange their values
    mix       variables that belong together are copied from another local optimum
    leap      a maximum of the global model
    explore   a point that another strategy proposes, which uses no model
    move      the next move of a list, in turn or by the model of lists
    sample    a local optimum of a sample of the model of lists
    shake     a list changes at random ("list mutate")

To add an operator, copy `mutate.py`, and add its class to the list in `search.py`.
"""
